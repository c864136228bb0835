"""What powered ratings promise, on simulated studies; docs/evidence.md has the tables.

Each promise stands beside a planted error that breaks it.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.judge.studies.simulated import RatingStudy, Study, rating_study
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = 1000
FEWER = 400
SEED = 1
SHARED = {
    signal: Study(n_models=6, n_prompts=80, n_voted=800, n_judged=4000, suits=1.5, signal=signal)
    for signal in (0.0, 1.0, 2.0)
}
OWN = {
    signal: Study(n_models=6, n_prompts=5000, n_voted=400, n_judged=4000, suits=2.0, signal=signal)
    for signal in (0.0, 1.0, 4.0)
}
VOTERS = {
    (prompts, taste): Study(
        n_models=6,
        n_prompts=prompts,
        n_voted=800,
        n_judged=2400,
        suits=0.8,
        n_voters=20,
        taste=taste,
    )
    for prompts in (60, 9000)
    for taste in (0.0, 0.8)
}


def holds(share: Share) -> bool:
    """Within two points of 95 %, and so sure that a right program is four errors inside."""
    return 0.93 <= share.mean <= 0.97 and share.error < 0.005


def row(signal: float, promised: RatingStudy) -> dict[str, object]:
    return {
        "signal": signal,
        **{name: str(share) for name, share in promised.covered.items()},
        "weight": f"{promised.judge_weight:.2f}",
        "gain": f"{promised.gain:.3f}",
        "true gain": str(promised.true_gain),
        "its interval": str(promised.gain_covered),
        "alarms": str(promised.alarms),
    }


@pytest.mark.parametrize("signal", SHARED)
def test_intervals_hold_the_truth_where_votes_and_verdicts_share_prompts(
    signal: float, record_property: Record
) -> None:
    promised = rating_study(SHARED[signal], STUDIES, SEED)
    record_property(
        f"ratings with a judge, 80 shared prompts, {STUDIES} a row", row(signal, promised)
    )
    assert holds(promised.covered["powered"])
    assert holds(promised.covered["people"])


@pytest.mark.parametrize("signal", SHARED)
def test_intervals_for_independent_items_fail_on_shared_prompts(signal: float) -> None:
    wrong = rating_study(SHARED[signal], STUDIES, SEED).covered["independent"]
    assert not holds(wrong)
    assert wrong.mean + 3 * wrong.error < 0.9


@pytest.mark.parametrize("signal", OWN)
def test_intervals_hold_the_truth_where_every_item_has_its_prompt(
    signal: float, record_property: Record
) -> None:
    promised = rating_study(OWN[signal], STUDIES, SEED)
    record_property(f"ratings with a judge, own prompts, {STUDIES} a row", row(signal, promised))
    assert holds(promised.covered["powered"])


@pytest.mark.parametrize(("prompts", "taste"), VOTERS)
def test_intervals_hold_the_truth_where_twenty_voters_cast_forty_votes_each(
    prompts: int, taste: float, record_property: Record
) -> None:
    promised = rating_study(VOTERS[prompts, taste], FEWER, SEED)
    columns = {name: str(promised.covered[name]) for name in ("powered", "people")}
    if taste:
        columns["as if each vote a voter"] = str(promised.covered["votes"])
    record_property(
        f"ratings with a judge, 20 voters x 40 votes, {FEWER} a row",
        {"prompts": prompts, "taste": taste, **columns},
    )
    for name in ("powered", "people"):
        assert 0.93 - 3 * promised.covered[name].error <= promised.covered[name].mean <= 0.98


@pytest.mark.parametrize("prompts", [60, 9000])
def test_intervals_that_leave_out_voters_fail_where_these_have_tastes(prompts: int) -> None:
    wrong = rating_study(VOTERS[prompts, 0.8], FEWER, SEED).covered["votes"]
    assert wrong.mean + 3 * wrong.error < 0.93


@pytest.mark.parametrize("study", [*SHARED.values(), *OWN.values()], ids=str)
def test_the_intervals_of_a_judge_alone_miss_what_people_think(study: Study) -> None:
    wrong = rating_study(study, STUDIES, SEED).covered["judge"]
    assert not holds(wrong)
    assert wrong.mean + 3 * wrong.error < 0.8


def test_the_gain_grows_with_how_far_the_judge_follows_people() -> None:
    gains = [rating_study(study, STUDIES, SEED).true_gain for study in OWN.values()]
    for less, more in pairwise(gains):
        assert more.mean - less.mean > 3 * (more.error + less.error)
    assert gains[-1].mean > 1.3


@pytest.mark.parametrize("signal", OWN)
def test_the_gain_that_is_printed_is_the_one_that_is_had(signal: float) -> None:
    promised = rating_study(OWN[signal], STUDIES, SEED)
    # Small samples print a variance up to a few per cent from the one that they have.
    assert abs(promised.gain - promised.true_gain.mean) < 4 * promised.true_gain.error + 0.02


@pytest.mark.parametrize("studies", [SHARED, OWN], ids=["shared", "own"])
def test_a_judge_that_follows_nobody_does_no_harm(studies: dict[float, Study]) -> None:
    promised = rating_study(studies[0.0], STUDIES, SEED)
    assert promised.true_gain.mean > 0.99
    assert promised.judge_weight < 0.05


@pytest.mark.parametrize("study", [SHARED[1.0], OWN[1.0]], ids=["shared", "own"])
def test_a_random_subset_is_seldom_taken_for_none(study: Study) -> None:
    """At a wanted 5 %; a warning comes at 1 %."""
    assert 0.02 <= rating_study(study, STUDIES, SEED).alarms.mean <= 0.08
