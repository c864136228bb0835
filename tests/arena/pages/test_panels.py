from datetime import timedelta

import pytest

from arena.domain.board import Board
from arena.domain.evidence import Moment, PastRating
from arena.pages.panels import MOST_PANELS, Panels, panels
from tests.arena.pages.conftest import NOW, MakeBoard, MakeRow


def moment(days_ago: float, *models: str, rating: float = 1000.0) -> Moment:
    ratings = tuple(
        PastRating(model=m, rating=rating, lower=rating - 50, upper=rating + 50) for m in models
    )
    return Moment(when=NOW - timedelta(days=days_ago), votes=50, ratings=ratings)


def laid_out(board: Board) -> Panels:
    found = panels(board)
    assert found is not None
    return found


def test_a_panel_runs_from_the_first_date_to_the_present(make_board: MakeBoard) -> None:
    both = ("quartz-8b", "chalk-3b")
    board = make_board(history=(moment(8, *both), moment(4, *both)), updated=NOW)
    quartz = laid_out(board).panels[0]
    assert [point.x for point in quartz.points] == [0, 50, 100]
    assert [point.rating.rating for point in quartz.points] == [1000, 1000, 1184]
    assert quartz.points[2].y < quartz.points[0].y
    assert all(p.top < p.y < p.bottom for p in quartz.points)
    assert quartz.line.startswith(f"0.0,{quartz.points[0].y} ")
    assert len(quartz.band.split()) == 6


def test_a_newcomer_has_points_only_since_it_was_rated(make_board: MakeBoard) -> None:
    history = (moment(8, "quartz-8b"), moment(4, "quartz-8b", "chalk-3b", "gone"))
    quartz, chalk = laid_out(make_board(history=history)).panels
    assert (len(quartz.points), len(chalk.points)) == (3, 2)


@pytest.mark.parametrize("days", [(), (moment(3),)])
def test_without_a_rated_past_there_are_no_panels(
    make_board: MakeBoard, days: tuple[Moment, ...]
) -> None:
    assert panels(make_board(history=days)) is None


def test_a_long_board_shows_the_best_and_says_of_how_many(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    rows = tuple(make_row(f"m{i}") for i in range(MOST_PANELS + 3))
    found = laid_out(make_board(rows=rows, history=(moment(4, "m0"),)))
    assert (len(found.panels), found.of) == (MOST_PANELS, MOST_PANELS + 3)
    assert len(found.labelled) <= 3
