"""Each rule at its threshold, from both sides; what is inconclusive neither passes nor fails."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import f

from judge.probe import ranking
from judge.probe.ranking import SignalToNoise, Simulated, VarianceShares
from judge.probe.robustness import consistency, rerun_noise

GOOD: dict[str, Any] = {
    "spearman": Simulated(0.95, 0.01, 100),
    "rmse": 0.1,
    "covered": Simulated(0.95, 0.005, 100),
    "permuted": Simulated(0.02, 0.03, 50),
    "oracle": 1.0,
    "failed": 0,
}


@pytest.mark.parametrize(
    ("ends", "passed"),
    [((0.1, 0.33), True), ((0.1, 0.34), None), ((0.33, 0.6), None), ((0.34, 0.6), False)],
)
def test_reruns_may_move_a_score_by_a_third_of_its_error(
    ends: tuple[float, float], passed: bool | None
) -> None:
    noise = rerun_noise(np.array([[1.0, 2.0, 3.0]]))
    outcome = ranking.on_reruns(noise, 3 * noise.sd, ends, sample="60 prompts")
    assert outcome.passed is passed
    assert outcome.text.startswith("Inconclusive with 60 prompts.") is (passed is None)
    low, high = (f"{100 * end:.0f}%" for end in ends)
    assert outcome.text.endswith(
        f"changes a score by 1 (sd), 33% of its standard error 3 ({low} to {high}); the smallest "
        "reliable difference of two single-run scores is 6.1."
    )
    verdicts = {True: "passes", False: "fails", None: "cannot_tell"}
    assert outcome.to_dict()["verdict"] == verdicts[passed]


def test_no_noise_passes_even_where_a_score_claims_to_be_exact() -> None:
    still = rerun_noise(np.ones((2, 3)))
    ends = still.over_interval(0.0, 9)
    assert ranking.on_reruns(still, 0.0, ends, sample="9 votes").passed is True
    moving = rerun_noise(np.array([[1.0, 2.0]]))
    ends = moving.over_interval(0.0, 9)
    outcome = ranking.on_reruns(moving, 0.0, ends, sample="9 votes")
    assert outcome.passed is False
    assert outcome.to_dict()["numbers"]["ratio"] is None


def test_the_interval_of_the_ratio_is_that_of_fisher_s_f() -> None:
    noise = rerun_noise(np.random.default_rng(1).normal(0, 3, (5, 4)))
    lower, upper = noise.over_interval(2.0, 40)
    ratio = noise.sd / 2
    assert [ratio / lower, ratio / upper] == pytest.approx(np.sqrt(f.ppf([0.975, 0.025], 12, 40)))


def test_a_good_measure_is_valid() -> None:
    good = ranking.on_validity(**GOOD)
    assert (good.passed, good.text) == (
        True,
        "Rank correlation with the true ranking 0.95; 95% intervals cover 95.0% of the true "
        "ratings; 1.00 with perfect votes (an oracle's), 0.02 with permuted ones.",
    )
    figures = {"spearman": 0.95, "rmse": 0.1, "coverage": 0.95, "coverage_error": 0.005}
    figures |= {"permuted": 0.02, "permuted_error": 0.03, "oracle": 1.0}
    assert good.numbers == figures | {"arenas": 100, "arenas_failed": 0}
    assert "no intervals" in ranking.on_validity(**GOOD | {"covered": None}).text
    some = ranking.on_validity(**GOOD | {"failed": 3})
    assert some.text.endswith("The votes of 3 more arenas gave no rating.")
    assert (some.numbers["arenas"], some.numbers["arenas_failed"]) == (100, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covered": Simulated(0.9, 0.005, 100)}, "too narrow"),
        ({"covered": Simulated(0.995, 0.005, 100)}, "too wide"),
        ({"permuted": Simulated(-0.2, 0.02, 50)}, "order although there is none"),
        ({"oracle": 0.9}, "worse with perfect votes"),
        ({"spearman": Simulated(0.01, 0.01, 100), "oracle": 0.5}, "does not recover"),
    ],
)
def test_each_fault_of_validity_is_named(change: dict[str, object], message: str) -> None:
    outcome = ranking.on_validity(**GOOD | change)
    assert outcome.passed is False
    assert message in outcome.text


@pytest.mark.parametrize(("mean", "passed"), [(0.913, False), (0.914, True), (0.987, False)])
def test_coverage_is_excused_by_chance_of_one_in_a_thousand_only(
    mean: float, passed: bool
) -> None:
    covered = Simulated(mean, 0.005, 200)  # t quantile 3.340
    assert ranking.on_validity(**GOOD | {"covered": covered}).passed is passed


@pytest.mark.parametrize(
    ("lower", "signal", "p", "passed"),
    [
        (2.1, 1.0, 0.01, True),
        (1.9, 1.0, 0.01, None),
        (0.0, 1.0, 0.9, None),
        (2.1, 1.0, 0.06, None),
        (None, 1.0, 0.01, True),
        (None, 0.0, 0.01, None),
    ],
)
def test_entrants_must_stand_out_and_not_by_chance_and_never_fail(
    lower: float | None, signal: float, p: float, passed: bool | None
) -> None:
    ratio = None if lower is None else 3.0
    noise = SignalToNoise(
        signal, 0.0 if ratio is None else signal / ratio, ratio, lower, None, 4, 9
    )
    shares = VarianceShares(0.5, 0.2, 0.3, p, 0.01, (4, 3, 9))
    exchanged = replace(shares, p=shares.p_exchanged, p_exchanged=shares.p)
    for each in (shares, exchanged):
        outcome = ranking.on_discriminability(noise, each, sample="30 prompts")
        assert outcome.passed is passed
        start = "Inconclusive with 30 prompts. The models may be equal"
        assert outcome.text.startswith(start) is (passed is None)
        ratio_of = "infinite" if lower is None else f"3.0 ({lower:.1f} to infinity)"
        assert outcome.text.endswith(
            f"Signal-to-noise ratio {ratio_of}; 50% of the variance is between models (p = "
            f"{max(p, 0.01):.2g} under equal models), 20% between reruns, 30% between 9 parts."
        )


def test_boards_must_correlate_and_never_contradict() -> None:
    rng = np.random.default_rng(1)
    up = np.arange(10.0)
    nothing = np.zeros((2, 10, 10), dtype=bool)
    near = consistency("ab", np.stack([up, up + 0.6 * rng.normal(size=10)]), nothing)
    far = consistency("ab", np.stack([up, rng.permutation(up)]), nothing)
    one = nothing.copy()
    one[0, 3, 2] = one[1, 2, 3] = True
    against = consistency("ab", np.stack([up, up]), one)
    assert [ranking.on_consistency(x, sample="9 votes").passed for x in (near, far, against)] == [
        True,
        None,
        False,
    ]
    assert ranking.on_consistency(against, sample="9", ends=(0.8, 1.0)).text == (
        "Lowest rank correlation of 2 boards 1.00 (0.80 to 1.00); two boards contradict each "
        "other on 1 pair; 100% of them have the same winner."
    )
    wide, narrow = (
        ranking.on_consistency(near, sample="9 prompts", ends=ends).passed
        for ends in ((0.89, 1.0), (0.9, 1.0))
    )
    assert (wide, narrow) == (None, True)


def test_two_entrants_have_no_rank_correlation_to_pass_by() -> None:
    two = consistency("ab", np.array([[1.0, 0], [1.0, 0]]), np.zeros((2, 2, 2), dtype=bool))
    assert ranking.on_consistency(two, sample="9 votes").passed is None


def test_more_votes_must_not_lead_away_from_the_truth() -> None:
    shares = np.array([0.25, 0.5, 1.0])
    wander = np.random.default_rng(2).normal(0, 0.002, (40, 3))
    for per_doubling, passed in ((0.03, True), (0.0, True), (-0.009, True), (-0.011, False)):
        outcome = ranking.on_monotone(0.8 + per_doubling * np.log2(shares) + wander, shares)
        assert outcome.passed is passed
        assert outcome.numbers["lower"] < per_doubling + 0.005
        assert outcome.numbers["slope"] == pytest.approx(per_doubling, abs=0.001)
    assert ranking.on_monotone(np.zeros((1, 3)), shares).passed is None


def test_a_fall_that_is_neither_seen_nor_ruled_out_is_no_verdict() -> None:
    shares = np.array([0.25, 0.5, 1.0])
    few = np.array([[0.9, 0.8, 0.7], [0.7, 0.8, 0.9], [0.8, 0.8, 0.5]])
    outcome = ranking.on_monotone(few, shares)
    assert outcome.passed is None
    assert outcome.text == (  # slopes of -0.1, 0.1 and -0.15; Student's t of 2 df is 4.30
        "Too few arenas to exclude a decrease: simulate more. Each doubling of the votes adds "
        "-0.050 (-0.379 to 0.279) to the rank correlation with the true ranking: 0.80, 0.80, 0.70."
    )
