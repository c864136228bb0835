"""Rates by a judge that errs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import DataError, NotIdentifiedError
from judge.study.corrected import (
    ASSUMPTION,
    Counted,
    corrected_rate,
    corrected_win_rate,
    optimal_split,
)
from judge.study.items import Items
from tests.judge.study.said import items_of, said

shares = st.builds(lambda n, k: Counted(min(n, k), n), st.integers(1, 300), st.integers(0, 300))


def test_the_published_example() -> None:
    # Lee et al. 2025: p = .4 of 1000; right of .7 of 200 and of .9 of 200.
    found = corrected_rate(Counted(400, 1000), Counted(140, 200), Counted(180, 200))
    ours = [found.value, found.lower, found.upper]
    assert ours == pytest.approx([0.16667, 0.05635, 0.26273], abs=5e-6)
    assert found.n == 1000
    assert "errs as often" in ASSUMPTION


def test_a_judge_that_never_errs_is_left_as_it_is() -> None:
    found = corrected_rate(Counted(30, 100), Counted(5000, 5000), Counted(5000, 5000))
    assert found.value == pytest.approx(0.3)
    # What remains is the interval of Agresti and Coull, .2189 to .3958.
    assert found.lower == pytest.approx(0.2189, abs=0.002)
    assert found.upper == pytest.approx(0.3958, abs=0.002)


def test_errors_that_are_themselves_uncertain_make_the_interval_wider() -> None:
    few, many = (
        corrected_rate(Counted(400, 1000), Counted(7 * k, 10 * k), Counted(9 * k, 10 * k))
        for k in (5, 500)
    )
    assert few.lower is not None
    assert few.upper is not None
    assert many.lower is not None
    assert many.upper is not None
    assert few.upper - few.lower > 1.8 * (many.upper - many.lower)


@pytest.mark.parametrize("right", [50, 40, 51])
def test_a_judge_no_better_than_a_coin_is_refused(right: int) -> None:
    """51 of 100 and 49 of 100: smoothing does not help it over the line."""
    with pytest.raises(NotIdentifiedError, match="as if it threw a coin"):
        corrected_rate(Counted(40, 100), Counted(right, 100), Counted(min(49, right), 100))


def test_what_was_not_counted_is_refused() -> None:
    good = Counted(90, 100)
    with pytest.raises(NotIdentifiedError, match="no verdicts"):
        corrected_rate(Counted(0, 0), good, good)
    with pytest.raises(NotIdentifiedError, match="voted against"):
        corrected_rate(good, Counted(0, 0), good)
    with pytest.raises(NotIdentifiedError, match="voted for"):
        corrected_rate(good, good, Counted(0, 0))
    with pytest.raises(DataError, match="7 of 3"):
        Counted(7, 3)


@settings(max_examples=60)
@given(shares, shares, shares)
def test_the_interval_lies_within_0_and_1_in_order(p: Counted, q0: Counted, q1: Counted) -> None:
    try:
        found = corrected_rate(p, q0, q1)
    except NotIdentifiedError:
        smoothed = q0.smoothed(2)[0] + q1.smoothed(2)[0]
        assert min(q0.share + q1.share, smoothed) <= 1 + 1e-12
        return
    assert found.lower is not None
    assert found.upper is not None
    assert found.value is not None
    assert 0 <= found.lower <= found.upper <= 1
    assert 0 <= found.value <= 1


@settings(max_examples=40)
@given(shares, shares, shares)
def test_asking_the_opposite_gives_the_opposite(p: Counted, q0: Counted, q1: Counted) -> None:
    try:
        found = corrected_rate(p, q0, q1)
    except NotIdentifiedError:
        return
    other = corrected_rate(Counted(p.n - p.hits, p.n), q1, q0)
    for ours, theirs in (
        (found.value, other.value),
        (found.lower, other.upper),
        (found.upper, other.lower),
    ):
        assert ours is not None
        assert theirs is not None
        assert ours == pytest.approx(1 - theirs, abs=1e-9)


def test_intervals_cover_the_rate_that_was_drawn() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(1000):
        p = 0.2 * 0.9 + 0.8 * 0.3
        found = corrected_rate(
            Counted(int(rng.binomial(500, p)), 500),
            Counted(int(rng.binomial(100, 0.7)), 100),
            Counted(int(rng.binomial(100, 0.9)), 100),
        )
        assert found.lower is not None
        assert found.upper is not None
        inside += found.lower <= 0.2 <= found.upper
    assert 0.93 <= inside / 1000 <= 0.98


def test_a_models_win_rate_by_hand() -> None:
    # m1 on side B of every item. People: B B A; the judge: B B B on these and A B on two more.
    items = items_of(5)
    people = said([(0, -1), (1, -1), (2, 1), (2, 0)])
    judge = said([(0, -1), (1, -1), (2, -1), (3, 1), (4, -1)])
    with pytest.raises(NotIdentifiedError, match=r"0\.000 of what people say no to"):
        corrected_win_rate(items, people, judge, "m1")
    better = said([(0, -1), (1, -1), (2, 1), (3, 1), (4, -1)])
    found = corrected_win_rate(items, people, better, "m1")
    assert (found.by_judge, found.rate.n) == (0.6, 5)
    assert found.rate.value == pytest.approx(0.6)
    assert (found.specificity, found.sensitivity) == (Counted(1, 1), Counted(2, 2))


def test_a_judge_with_a_liking_for_a_model_is_corrected() -> None:
    rng = np.random.default_rng(2)
    n = 20_000
    pairs = np.where(rng.random(n)[:, None] < 0.5, [[0, 1]], [[1, 0]])
    items = Items(("x", "y"), pairs, np.arange(n))
    side = np.where(pairs[:, 0] == 0, 1, -1)  # of model x
    truth = rng.random(n) < 0.3
    judged = np.where(truth, rng.random(n) < 0.95, rng.random(n) < 0.25)
    votes = said((i, int(side[i] if truth[i] else -side[i])) for i in range(2000))
    verdicts = said((i, int(side[i] if judged[i] else -side[i])) for i in range(n))
    found = corrected_win_rate(items, votes, verdicts, "x")
    assert found.by_judge == pytest.approx(0.46, abs=0.01)
    assert found.rate.lower is not None
    assert found.rate.upper is not None
    assert found.rate.lower < 0.3 < found.rate.upper < found.by_judge


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(DataError, match="No model 'z'; there are m0, m1"):
        corrected_win_rate(items_of(1), said([(0, 1)]), said([(0, 1)]), "z")


def test_the_split_of_votes_gives_the_narrowest_interval() -> None:
    p, q0, q1, n = 0.4, 0.7, 0.9, 400
    theta = (p + q0 - 1) / (q0 + q1 - 1)

    def variance(of_yes: int) -> float:
        no, yes = q0 * (1 - q0) / (n - of_yes), q1 * (1 - q1) / of_yes
        return (1 - theta) ** 2 * no + theta**2 * yes

    ours = optimal_split(n, rate=p, specificity=q0, sensitivity=q1)
    assert ours == math.ceil(n / (1 + 1.5 * math.sqrt(3)))
    best = min(range(1, n), key=variance)
    assert variance(ours) < 1.35 * variance(best)
    assert variance(ours) < variance(n // 2)


def test_a_rate_of_all_or_nothing_has_no_split() -> None:
    with pytest.raises(DataError, match=r"sensitivity must lie between 0 and 1, not 1\.0"):
        optimal_split(100, rate=0.5, specificity=0.5, sensitivity=1.0)
