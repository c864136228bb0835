"""The chances that a judge gives."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from judge.studies.alternative import calibration, with_isotonic
from judge.studies.estimates import Draws
from judge.studies.rows import Items, Labels
from rating.errors import NotIdentifiedError
from tests.judge.studies.labels import ends, holds, items_of, labels_of, repeated, swapped, width

calibration_ = partial(calibration, draws=Draws(np.random.default_rng(1), 20))
probabilities = st.lists(
    st.tuples(st.integers(0, 100), st.integers(-1, 1)), min_size=5, max_size=30
)


def _judged(
    n: int, rng: np.random.Generator, *, temperature: float = 1.0, prompts: int | None = None
) -> tuple[Items, Labels, Labels]:
    """Draw a vote an item, and a judge whose log-odds are too large by a factor."""
    odds = rng.normal(0, 1.2, n)
    label = np.where(rng.random(n) < expit(odds), 1, -1)
    probability = expit(temperature * odds)
    verdict = np.where(probability >= 0.5, 1, -1)
    prompt = None if prompts is None else rng.integers(prompts, size=n).tolist()
    return (
        items_of(n, prompt=prompt),
        labels_of(enumerate(label.tolist())),
        labels_of(enumerate(verdict.tolist()), probability=probability.tolist()),
    )


def test_four_verdicts_by_hand() -> None:
    # Turned to the preferred side: .9 right, .9 wrong, .8 (for B) right, .6 with a tie.
    people = labels_of([(0, 1), (1, -1), (2, -1), (3, 0)])
    judge = labels_of([(0, 1), (1, 1), (2, -1), (3, 1)], probability=[0.9, 0.9, 0.2, 0.6])
    calibrated = calibration_(items_of(4), people, judge)
    assert [claimed for claimed, _ in calibrated.bins] == pytest.approx([0.6, 0.8, 0.9])
    shares = [(people.value, people.n) for _, people in calibrated.bins]
    assert shares == [(0.5, 1), (1.0, 1), (0.5, 2)]
    assert calibrated.ece.value == pytest.approx((0.1 + 0.2 + 2 * 0.4) / 4)
    assert calibrated.brier.value == pytest.approx((0.01 + 0.81 + 0.04 + 0.01) / 4)
    assert calibrated.n == 4


def test_other_programs_find_the_same_curve_score_and_maps() -> None:
    items, people, judge = _judged(800, np.random.default_rng(1), temperature=2.0)
    calibrated = calibration_(items, people, judge)
    sure = np.maximum(judge.probability, 1 - judge.probability)
    right = (people.label == judge.label).astype(int)
    shares, means = calibration_curve(np.r_[right, 1], np.r_[2 * sure - 1, 0], n_bins=10)
    at = np.flatnonzero([people.n for _, people in calibrated.bins])
    ours = np.array([(claimed, people.value) for claimed, people in calibrated.bins])
    # scikit-learn bins 0 to 1: chances are stretched to it; its first bin holds a row of ours.
    assert ours[at[1:], 1] == pytest.approx(shares[1:])
    assert 2 * ours[at[1:], 0] - 1 == pytest.approx(means[1:])
    assert calibrated.brier.value == pytest.approx(brier_score_loss(right, sure))
    line = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10)
    odds = np.log(sure / (1 - sure))[:, None]
    assert calibrated.temperature.value == pytest.approx(
        1 / line.fit(odds, right).coef_[0, 0], rel=1e-4
    )
    other = IsotonicRegression().fit(sure, right)
    assert with_isotonic(sure, calibrated.isotonic) == pytest.approx(other.predict(sure), abs=1e-9)


def test_a_planted_temperature_is_found_and_maps_better_than_nothing() -> None:
    items, people, judge = _judged(4000, np.random.default_rng(2), temperature=2.5, prompts=400)
    calibrated = calibration(items, people, judge, draws=Draws(np.random.default_rng(2), 200))
    assert holds(calibrated.temperature, 2.5)
    assert ends(calibrated.ece)[0] > 0.05
    assert calibrated.brier.value is not None
    for mapped in (calibrated.brier_by_temperature, calibrated.brier_isotonic):
        assert mapped.value is not None
        assert mapped.value < calibrated.brier.value - 0.01
    half = calibration(items, people, judge, draws=Draws(np.random.default_rng(2), 200, 0.5))
    for one, other in (
        (half.ece, calibrated.ece),
        (half.brier, calibrated.brier),
        (half.temperature, calibrated.temperature),
        (half.bins[0][1], calibrated.bins[0][1]),
    ):
        assert width(one) < 0.6 * width(other)


def test_chances_that_hold_have_an_error_that_may_be_nothing() -> None:
    """Noise alone gives an ECE of .02 here: its interval must reach down to nothing."""
    rng, reached = np.random.default_rng(3), 0
    for _ in range(8):
        calibrated = calibration(*_judged(1000, rng), draws=Draws(rng, 100))
        assert calibrated.ece.value is not None
        assert calibrated.ece.value > 0.005
        reached += ends(calibrated.ece)[0] < 0.006
    assert reached >= 6


@pytest.mark.slow
def test_intervals_cover_the_temperature_and_the_brier_score() -> None:
    """600 runs with ten items a prompt: 95 % less three standard errors."""
    rng = np.random.default_rng(4)
    sums = np.zeros(2)
    nodes = np.random.default_rng(5).normal(0, 1.2, 1_000_000)
    sure = expit(2.0 * nodes)
    truth = float(np.mean(expit(nodes) * (1 - sure) ** 2 + (1 - expit(nodes)) * sure**2))
    for _ in range(600):
        calibrated = calibration(
            *_judged(800, rng, temperature=2.0, prompts=80), draws=Draws(rng, 200)
        )
        for k, (one, want) in enumerate(
            ((calibrated.temperature, 2.0), (calibrated.brier, truth))
        ):
            sums[k] += holds(one, want)
    assert (sums / 600 >= 0.923).all(), sums / 600


def test_a_map_is_scored_on_prompts_that_it_has_not_seen() -> None:
    """Chances that say nothing of the votes: a map that saw these votes would seem to help."""
    rng = np.random.default_rng(8)
    votes, sure = rng.choice([-1, 1], 120), 0.5 + rng.random(120) / 2
    judge = labels_of([(i, 1) for i in range(120)], probability=sure.tolist())
    calibrated = calibration_(items_of(120), labels_of(enumerate(votes.tolist())), judge)
    seen = np.mean((with_isotonic(sure, calibrated.isotonic) - (votes == 1)) ** 2)
    assert seen < 0.245
    assert calibrated.brier_isotonic.value is not None
    assert calibrated.brier_isotonic.value > 0.25


def test_a_map_of_certain_chances_stays_certain_and_keeps_sides() -> None:
    steps = np.array([[0.5, 0.5], [0.8, 0.6], [1.0, 0.9]])
    assert with_isotonic(np.array([0.9, 0.1, 0.5]), steps) == pytest.approx([0.75, 0.25, 0.5])


def test_a_judge_that_is_always_right_has_no_temperature() -> None:
    verdicts = [(i, 1) for i in range(30)]
    calibrated = calibration_(
        items_of(30), labels_of(verdicts), labels_of(verdicts, probability=[0.8] * 30)
    )
    assert (calibrated.temperature.value, calibrated.brier_by_temperature.value) == (None, None)
    assert calibrated.brier.value == pytest.approx(0.04)
    assert calibrated.ece.value == pytest.approx(0.2)


def test_verdicts_without_a_chance_are_no_cases() -> None:
    people = labels_of([(0, 1), (1, 1)])
    judge = labels_of([(0, 1), (1, 1)], probability=[0.7, np.nan])
    calibrated = calibration_(items_of(2), people, judge)
    assert (calibrated.n, calibrated.ece.lower) == (1, None)
    with pytest.raises(NotIdentifiedError, match="No verdict with a probability"):
        calibration_(items_of(2), people, labels_of([(0, 1)]))


@settings(max_examples=12)
@given(probabilities)
def test_sides_and_repetitions_do_not_matter(rows: list[tuple[int, int]]) -> None:
    items, n = items_of(len(rows)), len(rows)
    people = labels_of([(i, label) for i, (_, label) in enumerate(rows)])
    judge = labels_of([(i, 1) for i in range(n)], probability=[c / 100 for c, _ in rows])
    calibrated = calibration_(items, people, judge)
    assert (np.diff(calibrated.isotonic, axis=0) >= 0).all()
    for other in (
        calibration_(items, swapped(people), swapped(judge)),
        calibration_(items, people, repeated(judge, 2)),
    ):
        assert other.brier.value == pytest.approx(calibrated.brier.value)
        assert other.ece.value == pytest.approx(calibrated.ece.value)
        one, two = calibrated.temperature.value, other.temperature.value
        assert two == (None if one is None else pytest.approx(one, rel=1e-6))
