"""Win rates from plain pairwise verdicts."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.scoring.pairwise import pairwise_scores
from rating import Outcome
from rating.errors import DataError

battle = st.sampled_from([("x", "y"), ("y", "z"), ("z", "x")])
battles = st.lists(st.tuples(battle, st.sampled_from(tuple(Outcome))), min_size=1)


def test_four_battles_by_hand() -> None:
    outcomes = [Outcome.A, Outcome.A, Outcome.TIE, Outcome.B]
    x, y = pairwise_scores(["x", "x", "x", "y"], ["y", "y", "y", "x"], outcomes)
    assert (x.model, x.n, x.n_wins, x.n_ties, x.n_losses, x.win_rate) == ("x", 4, 3, 1, 0, 87.5)
    assert (y.n_wins, y.n_ties, y.n_losses, y.win_rate) == (0, 1, 3, 12.5)
    # 1 1 .5 1 has a standard deviation of 1/4, and a standard error of 1/8.
    assert x.standard_error == pytest.approx(12.5)


def test_many_verdicts_on_one_prompt_count_as_one() -> None:
    outcomes = [Outcome.A, Outcome.B, Outcome.A, Outcome.B]
    names = (["x"] * 4, ["y"] * 4)
    alone, _ = pairwise_scores(*names, outcomes, ["p", "q", "r", "s"])
    tripled, _ = pairwise_scores(["x"] * 12, ["y"] * 12, outcomes * 3, ["p", "q", "r", "s"] * 3)
    assert tripled.standard_error == pytest.approx(alone.standard_error)
    assert alone.standard_error == pairwise_scores(*names, outcomes)[0].standard_error


def test_one_prompt_shows_no_spread() -> None:
    found, _ = pairwise_scores(["x", "x"], ["y", "y"], [Outcome.A, Outcome.B], ["p", "p"])
    assert math.isnan(found.standard_error)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="1, 2 rows"):
        pairwise_scores(["x", "x"], ["y", "y"], [Outcome.A])


@settings(max_examples=30)
@given(battles)
def test_swapping_all_sides_changes_nothing(rows: list[tuple[tuple[str, str], Outcome]]) -> None:
    a, b = [pair[0] for pair, _ in rows], [pair[1] for pair, _ in rows]
    outcomes = [outcome for _, outcome in rows]
    found = pairwise_scores(a, b, outcomes)
    turned = pairwise_scores(b, a, [outcome.swapped() for outcome in outcomes])
    for one, other in zip(found, turned, strict=True):
        assert (one.model, one.n, one.n_wins) == (other.model, other.n, other.n_wins)
        assert one.win_rate == pytest.approx(other.win_rate)
    assert sum(one.n_wins for one in found) == sum(one.n_losses for one in found)
