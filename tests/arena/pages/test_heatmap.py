from dataclasses import replace

import pytest

from arena.pages.heatmap import MOST_MODELS, PerPair, heatmap, per_pair
from tests.arena.pages.conftest import MakeBoard, MakeRow, a_pair


def test_a_pair_given_once_is_mirrored(make_board: MakeBoard) -> None:
    cells = heatmap(make_board()).cells
    better, worse = cells["quartz-8b", "chalk-3b"], cells["chalk-3b", "quartz-8b"]
    assert (better.rate, better.share, better.n) == (0.75, 0.7, 40)
    assert (worse.rate, worse.share, worse.n) == pytest.approx((0.25, 0.3, 40))
    assert (better.low, better.high) == pytest.approx((0.65, 0.8))
    assert (worse.low, worse.high) == pytest.approx((0.2, 0.35))


def test_colour_is_that_of_the_rating_centred_on_one_half(make_board: MakeBoard) -> None:
    cells = heatmap(make_board()).cells
    assert cells["quartz-8b", "chalk-3b"].tone == 50
    assert cells["chalk-3b", "quartz-8b"].tone == -50


@pytest.mark.parametrize(("n", "tone"), [(4, 0), (5, 100)])
def test_a_handful_of_votes_without_a_rating_has_no_colour(
    make_board: MakeBoard, n: int, tone: int
) -> None:
    pair = a_pair(share=1.0, n=n, expected=None)
    assert heatmap(make_board(pairs=(pair,))).cells["quartz-8b", "chalk-3b"].tone == tone


def test_models_stand_in_the_order_of_the_board_and_only_if_they_met(
    make_board: MakeBoard,
) -> None:
    pair = replace(a_pair(), row="chalk-3b", column="quartz-8b")
    assert list(heatmap(make_board(pairs=(pair,))).names) == ["quartz-8b", "chalk-3b"]


def test_a_long_board_shows_the_best_and_says_of_how_many(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    names = [f"m{i:02}" for i in range(MOST_MODELS + 2)]
    rows = tuple(make_row(name) for name in names)
    pairs = tuple(replace(a_pair(), row=names[0], column=name) for name in names[1:])
    found = heatmap(make_board(rows=rows, pairs=pairs))
    assert list(found.names) == names[:MOST_MODELS]
    assert found.of == MOST_MODELS + 2
    assert (names[0], names[-1]) not in found.cells


def test_votes_per_pair_are_summed_up(make_board: MakeBoard) -> None:
    pairs = (a_pair(n=3), a_pair(n=40), a_pair(n=8), a_pair(share=None, n=0))
    assert per_pair(make_board(pairs=pairs)) == PerPair(fewest=3, median=8, most=40, unmet=1)
    assert per_pair(make_board(pairs=())) is None
