from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.pages.axis import Axis, bar, round_ticks, shared_axis
from tests.arena.pages.conftest import MakeRow


@given(st.floats(-5000, 5000), st.floats(1, 20000))
def test_there_are_two_to_five_round_ticks_inside(low: float, span: float) -> None:
    ticks = round_ticks(low, low + span)
    assert 2 <= len(ticks) <= 5
    assert all(low - 1e-6 <= tick <= low + span + 1e-6 for tick in ticks)
    steps = {f"{b - a:.6g}" for a, b in pairwise(ticks)}
    assert len(steps) == 1
    assert steps.pop().strip("0.").rstrip("0")[:1] in {"1", "2", "5"}


def test_ticks_of_a_usual_board_are_hundreds() -> None:
    assert round_ticks(880, 1210) == (900, 1000, 1100, 1200)


def test_percent_of_the_width_is_linear_and_ends_at_the_ends() -> None:
    axis = Axis(900, 1100, (1000,))
    assert [axis.at(p) for p in (900, 950, 1100, 5000, float("-inf"))] == [0, 25, 100, 100, 0]


def test_the_axis_holds_every_interval_and_the_anchor(make_row: MakeRow) -> None:
    rows = [make_row("a", 1200, 30), make_row("b", 1150, 20)]
    axis = shared_axis(rows, 1000)
    assert axis.low < 1000
    assert axis.high > 1230
    assert not any(bar(row, axis).cut_low or bar(row, axis).cut_high for row in rows)


def test_one_wild_interval_is_cut_and_does_not_flatten_the_others(make_row: MakeRow) -> None:
    tame = [make_row(f"m{i}", 1000 + 20 * i, 15) for i in range(5)]
    wild = make_row("wild", 1010, 9000)
    axis = shared_axis([*tame, wild], 1000)
    assert bar(wild, axis).cut_low
    assert bar(wild, axis).cut_high
    assert bar(tame[0], axis).width > 5


def test_an_endless_interval_is_cut_where_the_axis_ends(make_row: MakeRow) -> None:
    row = replace(make_row("a", 1100, 50), upper=float("inf"))
    place = bar(row, shared_axis([row], 1000))
    assert place.cut_high
    assert not place.cut_low
    assert place.left + place.width == pytest.approx(100)


def test_a_single_model_without_spread_still_has_an_axis(make_row: MakeRow) -> None:
    axis = shared_axis([make_row("a", 1000, 0)], 1000)
    assert axis.high - axis.low >= 100
    assert axis.at(1000) == 50


def test_the_rating_stands_inside_its_interval(make_row: MakeRow) -> None:
    row = make_row("a", 1010, 25)
    place = bar(row, shared_axis([row, make_row("b", 900, 10)], 1000))
    assert place.left < place.centre < place.left + place.width
