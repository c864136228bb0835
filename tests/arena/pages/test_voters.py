from dataclasses import replace

from arena.pages.voters import even
from tests.arena.pages.conftest import MakeBoard, MakeRow


def test_models_that_change_place_or_leave_their_interval_are_named(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    steady = replace(make_row("a", 1100, 30), voter_rating=1110.0)
    placed = replace(make_row("b", 1000, 30), voter_rating=995.0, voter_rank=2)
    outside = replace(make_row("c", 900, 30), voter_rating=931.0)
    found = even(make_board(rows=(steady, placed, outside)))
    assert found is not None
    assert [row.model for row in found.moved] == ["b", "c"]
    assert found.furthest.model == "c"


def test_one_voter_has_nothing_to_be_compared_with(make_board: MakeBoard) -> None:
    assert even(make_board(voters=1)) is None
    assert even(make_board(rows=())) is None
