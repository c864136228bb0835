import pytest

from arena.domain.board import PairCell
from arena.pages.heatmap import heatmap
from tests.arena.pages.conftest import MakeBoard


def test_a_pair_given_once_is_mirrored(make_board: MakeBoard) -> None:
    cells = heatmap(make_board()).cells
    assert cells["quartz-8b", "chalk-3b"].share == 0.75
    assert cells["chalk-3b", "quartz-8b"].share == 0.25
    assert cells["chalk-3b", "quartz-8b"].n == 40


def test_a_pair_given_twice_stands_as_given(make_board: MakeBoard) -> None:
    both = (
        PairCell(row="a", column="b", share=0.7, n=9),
        PairCell(row="b", column="a", share=0.3, n=9),
    )
    cells = heatmap(make_board(pairs=both)).cells
    assert (cells["a", "b"].share, cells["b", "a"].share) == (0.7, 0.3)


def test_colour_is_centred_on_one_half_and_symmetric(make_board: MakeBoard) -> None:
    cells = heatmap(make_board()).cells
    assert cells["quartz-8b", "chalk-3b"].tone == 50
    assert cells["chalk-3b", "quartz-8b"].tone == -50


@pytest.mark.parametrize(("n", "tone"), [(4, 0), (5, 100)])
def test_a_handful_of_votes_has_no_colour(make_board: MakeBoard, n: int, tone: int) -> None:
    pair = PairCell(row="quartz-8b", column="chalk-3b", share=1.0, n=n)
    assert heatmap(make_board(pairs=(pair,))).cells["quartz-8b", "chalk-3b"].tone == tone


def test_models_stand_in_the_order_of_the_board_and_only_if_they_met(
    make_board: MakeBoard,
) -> None:
    pair = PairCell(row="chalk-3b", column="quartz-8b", share=0.2, n=8)
    assert list(heatmap(make_board(pairs=(pair,))).names) == ["quartz-8b", "chalk-3b"]
