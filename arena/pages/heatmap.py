"""The table of who beats whom: which cell stands where, and how strongly it is coloured."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median_low

from arena.domain.board import Board, PairCell

FEWEST_COLOURED = 5
"""A share of fewer votes than this is printed but not coloured: it is mostly chance."""
MOST_MODELS = 40
"""Models in the table, the best ones; of more it could not be read."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes
    ----------
    rate : float or None
        What the ratings expect; None where one of the two is not rated.
    low, high : float or None
        Its interval.
    share : float or None
        What the row won of the ``n`` votes; None without a vote.
    tone : int
        From -100 (the row loses every vote) over 0 (even, or unrated with too few votes) to 100.
    """

    rate: float | None
    low: float | None
    high: float | None
    share: float | None
    n: int
    tone: int


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Models that have met another, best first, and a cell for each pair.

    Attributes
    ----------
    names : mapping of str to str
        Name of each model by its id; at most `MOST_MODELS`.
    of : int
        Models that could be shown.
    cells : mapping of (str, str) to Cell
        By ids of row and column; a pair that never met and is not rated has none.
    """

    names: Mapping[str, str]
    of: int
    cells: Mapping[tuple[str, str], Cell]


@dataclass(frozen=True, slots=True)
class PerPair:
    """Votes of the pairs that met.

    Attributes
    ----------
    unmet : int
        Pairs of rated models without a vote.
    """

    fewest: int
    median: int
    most: int
    unmet: int


def tone(share: float) -> int:
    """Strength of colour for a share.

    Examples
    --------
    >>> tone(0.75), tone(0.0)
    (50, -100)
    """
    return round(200 * (share - 0.5))


def heatmap(board: Board) -> Heatmap:
    """Arrange the board's pairs by rating, each seen from both sides."""
    met = {model for p in board.pairs if p.n for model in (p.row, p.column)}
    names = {m: name for m, name in board.names.items() if m in met}
    shown = dict(list(names.items())[:MOST_MODELS])
    cells = {
        (p.row, p.column): _cell(p)
        for pair in board.pairs
        for p in (pair, _mirrored(pair))
        if p.row in shown and p.column in shown
    }
    return Heatmap(shown, len(names), cells)


def per_pair(board: Board) -> PerPair | None:
    """Summarise how often pairs met; None if none did."""
    votes = [pair.n for pair in board.pairs if pair.n]
    if not votes:
        return None
    return PerPair(min(votes), median_low(votes), max(votes), len(board.pairs) - len(votes))


def _mirrored(pair: PairCell) -> PairCell:
    return PairCell(
        row=pair.column,
        column=pair.row,
        share=_other(pair.share),
        n=pair.n,
        expected=_other(pair.expected),
        low=_other(pair.high),
        high=_other(pair.low),
    )


def _other(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _cell(pair: PairCell) -> Cell:
    share = pair.share if pair.n >= FEWEST_COLOURED else None
    coloured = share if pair.expected is None else pair.expected
    strength = 0 if coloured is None else tone(coloured)
    return Cell(pair.expected, pair.low, pair.high, pair.share, pair.n, strength)
