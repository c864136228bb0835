"""Rates by a judge that errs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from judge.studies.alternative import ASSUMPTION, Counted, corrected_rate, win_rates, win_tallies
from judge.studies.rows import Items, Labels
from rating.errors import DataError, NotIdentifiedError
from tests.judge.studies.labels import ends, holds, items_of, labels_of, repeated, width
from tests.simulation import Share

Record = Callable[[str, object], None]

shares = st.builds(lambda n, k: Counted(min(n, k), n), st.integers(1, 300), st.integers(0, 300))


def test_the_published_example() -> None:
    # Lee et al. 2025: p = .4 of 1000; right of .7 of 200 and of .9 of 200.
    rate = corrected_rate(Counted(400, 1000), Counted(140, 200), Counted(180, 200))
    ours = [rate.value, rate.lower, rate.upper]
    assert ours == pytest.approx([0.16667, 0.05635, 0.26273], abs=5e-6)
    assert rate.n == 1000
    assert "estimated where people preferred a side" in ASSUMPTION


def test_a_judge_that_never_errs_is_left_as_it_is() -> None:
    rate = corrected_rate(Counted(30, 100), Counted(5000, 5000), Counted(5000, 5000))
    assert rate.value == pytest.approx(0.3)
    # What remains is the interval of Agresti and Coull, .2189 to .3958.
    assert rate.lower == pytest.approx(0.2189, abs=0.002)
    assert rate.upper == pytest.approx(0.3958, abs=0.002)


@pytest.mark.parametrize("right", [50, 40, 51])
def test_a_judge_no_better_than_a_coin_is_refused(right: int) -> None:
    """51 of 100 and 49 of 100: smoothing does not help it over the line."""
    with pytest.raises(NotIdentifiedError, match="like a random choice, its verdicts cannot"):
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
        rate = corrected_rate(p, q0, q1)
    except NotIdentifiedError:
        smoothed = q0.smoothed(2)[0] + q1.smoothed(2)[0]
        assert min(q0.share + q1.share, smoothed) <= 1 + 1e-12
        return
    lower, upper = ends(rate)
    assert 0 <= lower <= upper <= 1
    assert 0 <= (rate.value if rate.value is not None else -1) <= 1


@settings(max_examples=40)
@given(shares, shares, shares)
def test_asking_the_opposite_gives_the_opposite(p: Counted, q0: Counted, q1: Counted) -> None:
    try:
        rate = corrected_rate(p, q0, q1)
    except NotIdentifiedError:
        return
    other = corrected_rate(Counted(p.n - p.hits, p.n), q1, q0)
    for ours, theirs in (
        (rate.value, other.value),
        (rate.lower, other.upper),
        (rate.upper, other.lower),
    ):
        assert ours is not None
        assert theirs is not None
        assert ours == pytest.approx(1 - theirs, abs=1e-9)


def test_a_models_win_rate_by_hand() -> None:
    # m1 on side B of every item. People: B B A; the judge: B B B on these and A B on two more.
    items = items_of(5)
    people = labels_of([(0, -1), (1, -1), (2, 1), (2, 0)])
    judge = labels_of([(0, -1), (1, -1), (2, -1), (3, 1), (4, -1)])
    with pytest.raises(NotIdentifiedError, match=r"0\.000 of the cases with the label no"):
        corrected_rate(*win_tallies(items, people, judge)["m1"][1:])
    better = labels_of([(0, -1), (1, -1), (2, 1), (3, 1), (4, -1)])
    tally = win_tallies(items, people, better)["m1"]
    corrected = corrected_rate(*tally[1:])
    assert (tally[1].share, corrected.n) == (0.6, 5)
    assert corrected.value == pytest.approx(0.6)
    for count, hits in ((tally[2], 1), (tally[3], 2)):
        assert (count.hits, count.n) == (hits, hits)
    m0, m1 = win_rates(items, people, better, 0.95)
    assert (m0.model, m1.model, m0.by_judge, m1.by_judge) == ("m0", "m1", 0.4, 0.6)
    assert [m0.by_people, m1.by_people] == pytest.approx([1 / 3, 2 / 3])
    assert (m1.corrected, m1.why) == (corrected, "")
    assert win_rates(items, people, better.only(better.item < 3), 0.95) == ()
    tied, _ = win_rates(items, labels_of([(0, 0)]), better, 0.8)
    assert (tied.by_people, tied.by_judge, tied.corrected) == (None, 0.4, None)
    assert tied.why == "No case that people voted against has a verdict: its errors are unknown."


def test_a_judge_with_a_liking_for_a_model_is_corrected() -> None:
    rng = np.random.default_rng(2)
    n = 20_000
    pairs = np.where(rng.random(n)[:, None] < 0.5, [[0, 1]], [[1, 0]])
    items = Items(("x", "y"), pairs, np.arange(n))
    side = np.where(pairs[:, 0] == 0, 1, -1)  # of model x
    truth = rng.random(n) < 0.3
    judged = np.where(truth, rng.random(n) < 0.95, rng.random(n) < 0.25)
    votes = labels_of((i, int(side[i] if truth[i] else -side[i])) for i in range(2000))
    verdicts = labels_of((i, int(side[i] if judged[i] else -side[i])) for i in range(n))
    tally = win_tallies(items, votes, verdicts)["x"]
    corrected = corrected_rate(*tally[1:])
    assert tally[1].share == pytest.approx(0.46, abs=0.01)
    assert holds(corrected, 0.3)
    assert ends(corrected)[1] < tally[1].share
    of_x, _ = win_rates(items, votes, verdicts, 0.5)
    assert of_x.corrected == corrected_rate(*tally[1:], level=0.5)


def by_prompt(
    rng: np.random.Generator, *, n_prompts: int, rows: int, n_voted: int, together: float
) -> tuple[Items, Labels, Labels]:
    """Two models on several rows a prompt; ``together`` of a prompt's rows are copies of one.

    x is preferred on 30 % of the rows; the judge is right on 75 % of the others and 95 % of these.
    """
    prompt = np.repeat(np.arange(n_prompts), rows)
    copied = rng.random(len(prompt)) < together
    first = prompt * rows

    def drawn() -> NDArray[np.float64]:
        uniform = rng.random(len(prompt))
        return np.where(copied, uniform[first], uniform)

    x_wins = drawn() < 0.3
    says_x = drawn() < np.where(x_wins, 0.95, 0.25)
    at = np.arange(len(prompt))
    voted = prompt < n_voted
    items = Items(("x", "y"), np.tile([0, 1], (len(prompt), 1)), prompt)
    signs = [np.where(column, 1, -1) for column in (x_wins, says_x)]
    votes = labels_of(zip(at[voted], signs[0][voted], strict=True))
    return items, votes, labels_of(zip(at, signs[1], strict=True))


def test_repeating_every_row_within_its_prompt_narrows_no_interval() -> None:
    items, votes, verdicts = by_prompt(
        np.random.default_rng(3), n_prompts=200, rows=2, n_voted=60, together=0.5
    )
    once = corrected_rate(*win_tallies(items, votes, verdicts)["x"][1:])
    twice = Items(items.models, np.tile(items.pairs, (2, 1)), np.tile(items.prompt, 2))
    more, judged = (
        replace(repeated(one, 2), item=np.r_[one.item, one.item + items.n])
        for one in (votes, verdicts)
    )
    again = corrected_rate(*win_tallies(twice, more, judged)["x"][1:])
    assert again.value == pytest.approx(once.value)
    assert width(again) >= width(once)
    assert width(again) == pytest.approx(width(once), rel=0.01)


def test_where_each_row_has_its_prompt_the_interval_is_the_published_one() -> None:
    rng = np.random.default_rng(4)
    items, votes, verdicts = by_prompt(rng, n_prompts=1400, rows=1, n_voted=400, together=0.0)
    # Of the verdicts, the ones beside votes are kept apart, as where published figures come from.
    tallies = win_tallies(items, votes, verdicts)["x"]
    plain = [Counted(one.hits, one.n) for one in tallies[1:]]
    ours, published = corrected_rate(*tallies[1:]), corrected_rate(*plain)
    assert (ours.lower, ours.upper) == pytest.approx((published.lower, published.upper))


def test_rows_of_one_kind_count_once_a_prompt() -> None:
    sure = Counted.by_prompt(np.full(6, 10.0), np.full(6, 10.0))
    assert (sure.hits, sure.n, sure.independent, sure.prompts) == (60, 60, 6, 6)
    alone = Counted.by_prompt(np.array([3.0]), np.array([4.0]))
    assert alone.independent == 1
    rows = np.repeat([9.0, 1.0], [1, 9])  # (9 + 9)^2 / (81 + 9) = 3.6
    uneven = Counted.by_prompt(rows, rows)
    assert (uneven.independent, uneven.prompts) == pytest.approx((3.6, 3.6))


@pytest.mark.slow
@pytest.mark.parametrize("together", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("n_voted", [20, 60])
def test_intervals_of_ten_rows_a_prompt_cover(
    n_voted: int, together: float, record_property: Record
) -> None:
    """400 studies a cell, beside what the rows would give as if they were independent."""
    rng, inside = np.random.default_rng(5), np.zeros((400, 2))
    for run in range(len(inside)):
        data = by_prompt(rng, n_prompts=300, rows=10, n_voted=n_voted, together=together)
        tally = win_tallies(*data)["x"]
        plain = [Counted(one.hits, one.n) for one in tally[1:]]
        for place, one in enumerate((tally[1:], plain)):
            rate = corrected_rate(*one)
            inside[run, place] = holds(rate, 0.3)
    ours, as_if_independent = (Share.of(column) for column in inside.T)
    row = {"prompts with votes": n_voted, "copies": together, "covered": str(ours)}
    record_property(
        "corrected win rates, ten rows a prompt, 400 studies",
        row | {"as if independent": str(as_if_independent)},
    )
    assert 0.93 - 3 * ours.error <= ours.mean <= 0.98 + 3 * ours.error
    if together:
        assert as_if_independent.mean + 3 * as_if_independent.error < 0.93
