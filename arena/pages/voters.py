"""What would change if every voter counted the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from arena.domain.board import Board, BoardRow


@dataclass(frozen=True, slots=True)
class Even:
    """The board beside one on which every voter has the same weight.

    Attributes
    ----------
    moved : sequence of BoardRow
        Models of another place there, or of a rating outside their interval.
    furthest : BoardRow
        The model whose rating moves most.
    """

    moved: Sequence[BoardRow]
    furthest: BoardRow


def even(board: Board) -> Even | None:
    """Compare the two; None where one person voted, or nothing is rated."""
    if not board.rows or board.voters < 2:
        return None
    moved = [
        row
        for row in board.rows
        if row.voter_rank != row.rank or not row.lower <= row.voter_rating <= row.upper
    ]
    furthest = max(board.rows, key=lambda row: abs(row.voter_rating - row.rating))
    return Even(moved, furthest)
