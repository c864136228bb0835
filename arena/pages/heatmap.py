"""The table of who beats whom: which cell stands where, and how strongly it is coloured."""

from collections.abc import Mapping
from dataclasses import dataclass

from arena.domain.board import Board, PairCell

FEWEST_COLOURED = 5
"""A share of fewer votes than this is printed but not coloured: it is mostly chance."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes
    ----------
    tone : int
        From -100 (the row lost every vote) over 0 (even, or too few votes) to 100.
    """

    share: float
    n: int
    tone: int


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Models that have met another, best first, and a cell for each pair that met.

    Attributes
    ----------
    names : mapping of str to str
        Name of each model by its id.
    cells : mapping of (str, str) to Cell
        By ids of row and column; a pair that never met has none.
    """

    names: Mapping[str, str]
    cells: Mapping[tuple[str, str], Cell]


def tone(share: float, n: int) -> int:
    """Strength of colour for a share.

    Examples
    --------
    >>> tone(0.75, 40), tone(0.0, 40), tone(1.0, 2)
    (50, -100, 0)
    """
    return round(200 * (share - 0.5)) if n >= FEWEST_COLOURED else 0


def heatmap(board: Board) -> Heatmap:
    """Arrange the board's pairs by rating, mirroring those given in one order only."""
    mirrored = [
        PairCell(row=p.column, column=p.row, share=1 - p.share, n=p.n) for p in board.pairs
    ]
    cells = {
        (p.row, p.column): Cell(p.share, p.n, tone(p.share, p.n))
        for p in (*mirrored, *board.pairs)
    }
    met = {row for row, _ in cells}
    return Heatmap({m: name for m, name in board.names.items() if m in met}, cells)
