from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.board_view import Board, Moment, PastRating
from arena.pages.value import MOST_MODELS, MOST_PANELS, Course, heatmap, panels, per_pair, tone
from rating.charts.drawing import Scale
from tests.arena.pages.conftest import NOW, MakeBoard, MakeRow, a_pair
from tests.arena.pages.page import Page, board_page, text


@given(st.floats(-5000, 5000), st.floats(1, 20000))
def test_there_are_two_to_five_round_ticks_inside(low: float, span: float) -> None:
    ticks = Scale(low, low + span).ticks()
    assert 2 <= len(ticks) <= 5
    assert all(low - 1e-6 <= tick <= low + span + 1e-6 for tick in ticks)
    steps = {f"{b - a:.6g}" for a, b in pairwise(ticks)}
    assert len(steps) == 1
    assert steps.pop().strip("0.").rstrip("0")[:1] in {"1", "2", "5"}


def test_percent_of_the_width_is_linear_and_ends_at_the_ends() -> None:
    axis = Scale(900, 1100)
    assert [axis.at(p) for p in (900, 950, 1100, 5000, float("-inf"))] == [0, 25, 100, 100, 0]


def test_the_axis_holds_every_interval_and_the_anchor(make_row: MakeRow) -> None:
    rows = [make_row("a", 1200, 30), make_row("b", 1150, 20)]
    axis = Scale.of_ratings(rows, 1000)
    assert axis.low < 1000
    assert axis.high > 1230
    assert all(axis.low <= row.lower and row.upper <= axis.high for row in rows)


def test_one_wild_interval_is_cut_and_does_not_flatten_the_others(make_row: MakeRow) -> None:
    tame = [make_row(f"m{i}", 1000 + 20 * i, 15) for i in range(5)]
    wild = make_row("wild", 1010, 9000)
    axis = Scale.of_ratings([*tame, wild], 1000)
    assert wild.lower < axis.low
    assert wild.upper > axis.high
    assert axis.at(tame[0].upper) - axis.at(tame[0].lower) > 5


def test_an_endless_interval_is_cut_where_the_axis_ends(make_row: MakeRow) -> None:
    row = replace(make_row("a", 1100, 50), upper=float("inf"))
    axis = Scale.of_ratings([row], 1000)
    assert axis.low <= row.lower
    assert axis.at(row.upper) == 100


def test_a_single_model_without_spread_still_has_an_axis(make_row: MakeRow) -> None:
    axis = Scale.of_ratings([make_row("a", 1000, 0)], 1000)
    assert axis.high - axis.low >= 100
    assert axis.at(1000) == 50


def test_the_rating_stands_inside_its_interval(make_row: MakeRow) -> None:
    row = make_row("a", 1010, 25)
    axis = Scale.of_ratings([row, make_row("b", 900, 10)], 1000)
    assert axis.at(row.lower) < axis.at(row.rating) < axis.at(row.upper)


def test_a_pair_given_once_is_mirrored(make_board: MakeBoard) -> None:
    _, _, cells = heatmap(make_board())
    better, worse = cells["quartz-8b", "chalk-3b"], cells["chalk-3b", "quartz-8b"]
    assert (better.expected, better.share, better.n) == (0.75, 0.7, 40)
    assert (worse.expected, worse.share, worse.n) == pytest.approx((0.25, 0.3, 40))
    assert (better.low, better.high) == pytest.approx((0.65, 0.8))
    assert (worse.low, worse.high) == pytest.approx((0.2, 0.35))


def test_colour_is_that_of_the_rating_centred_on_one_half(make_board: MakeBoard) -> None:
    _, _, cells = heatmap(make_board())
    assert tone(cells["quartz-8b", "chalk-3b"]) == 50
    assert tone(cells["chalk-3b", "quartz-8b"]) == -50


@pytest.mark.parametrize(("n", "colour"), [(4, 0), (5, 100)])
def test_a_handful_of_votes_without_a_rating_has_no_colour(n: int, colour: int) -> None:
    assert tone(a_pair(share=1.0, n=n, expected=None)) == colour


def test_models_stand_in_the_order_of_the_board_and_only_if_they_met(
    make_board: MakeBoard,
) -> None:
    pair = replace(a_pair(), row="chalk-3b", column="quartz-8b")
    assert list(heatmap(make_board(pairs=(pair,)))[0]) == ["quartz-8b", "chalk-3b"]


def test_a_large_table_shows_the_best_and_says_of_how_many(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    names = [f"m{i:02}" for i in range(MOST_MODELS + 2)]
    rows = tuple(make_row(name) for name in names)
    pairs = tuple(replace(a_pair(), row=names[0], column=name) for name in names[1:])
    shown, of, cells = heatmap(make_board(rows=rows, pairs=pairs))
    assert list(shown) == names[:MOST_MODELS]
    assert of == MOST_MODELS + 2
    assert (names[0], names[-1]) not in cells


def test_votes_per_pair_are_summed_up(make_board: MakeBoard) -> None:
    pairs = (a_pair(n=3), a_pair(n=40), a_pair(n=8), a_pair(share=None, n=0))
    assert per_pair(make_board(pairs=pairs)) == (3, 8, 40, 1)
    assert per_pair(make_board(pairs=())) is None


def moment(days_ago: float, *models: str, rating: float = 1000.0) -> Moment:
    ratings = tuple(
        PastRating(model=m, rating=rating, lower=rating - 50, upper=rating + 50) for m in models
    )
    return Moment(when=NOW - timedelta(days=days_ago), votes=50, ratings=ratings)


def laid_out(board: Board) -> list[Course]:
    layout = panels(board)
    assert layout is not None
    return list(layout[2].values())


def test_a_panel_runs_from_the_first_date_to_the_present(make_board: MakeBoard) -> None:
    both = ("quartz-8b", "chalk-3b")
    board = make_board(history=(moment(8, *both), moment(4, *both)), updated=NOW)
    quartz = laid_out(board)[0]
    assert [place for place, _, _ in quartz] == [0, 50, 100]
    assert [one.rating for _, _, one in quartz] == [1000, 1000, 1184]
    html = board_page(board, "robustness")
    line, band = (
        [tuple(map(float, point.split(","))) for point in (one["points"] or "").split()]
        for one in (Page(html).all("polyline")[0], Page(html).all("polygon")[0])
    )
    assert [x for x, _ in line] == [0, 50, 100]
    assert line[2][1] < line[0][1]
    assert all(
        top < y < bottom
        for (_, y), (_, top), (_, bottom) in zip(line, band[:3], band[:2:-1], strict=True)
    )


def test_a_newcomer_has_points_only_since_it_was_rated(make_board: MakeBoard) -> None:
    history = (moment(8, "quartz-8b"), moment(4, "quartz-8b", "chalk-3b", "gone"))
    quartz, chalk = laid_out(make_board(history=history))
    assert (len(quartz), len(chalk)) == (3, 2)


@pytest.mark.parametrize("days", [(), (moment(3),)])
def test_without_a_rated_past_there_are_no_panels(
    make_board: MakeBoard, days: tuple[Moment, ...]
) -> None:
    assert panels(make_board(history=days)) is None


def test_a_long_board_shows_the_best_and_says_of_how_many(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    rows = tuple(make_row(f"m{i}") for i in range(MOST_PANELS + 3))
    nothing = {"pairs": (), "holds": (), "fit_check": None}
    board = make_board(rows=rows, history=(moment(4, "m0"),), **nothing)
    assert len(laid_out(board)) == MOST_PANELS
    shown = text(board_page(board, "robustness"))
    assert f"The first {MOST_PANELS} of {MOST_PANELS + 3} models." in shown
