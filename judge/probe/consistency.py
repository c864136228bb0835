"""Whether boards made with choices that should not matter say the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.correlation import MIN_MODELS, correlations
from rating.errors import DataError
from rating.typing import Bools, Floats, Ints

LEAST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Consistency:
    """How boards of the same votes agree.

    Attributes
    ----------
    boards : tuple of str, length n_boards
    spearman : ndarray of shape (n_boards, n_boards)
        NaN where a board is flat, or with fewer than three entrants.
    contradictions : ndarray of shape (n_boards, n_boards), int64
        Pairs of entrants that both boards claim to tell apart, in opposite orders.
    same_winner : float
        Share of the other boards with the first one's winner.
    """

    boards: tuple[str, ...]
    spearman: Floats
    contradictions: Ints
    same_winner: float

    @property
    def lowest(self) -> float | None:
        """The lowest correlation of two boards; None where none is defined."""
        known = self.spearman[~np.isnan(self.spearman) & ~np.eye(len(self.boards), dtype=bool)]
        return float(known.min()) if len(known) else None

    @property
    def most_contradictions(self) -> int:
        """Of any two boards."""
        return int(self.contradictions.max())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "boards": list(self.boards),
            "spearman": [[_known(x) for x in row] for row in self.spearman.tolist()],
            "contradictions": self.contradictions.tolist(),
            "same_winner": self.same_winner,
        }


def consistency(boards: Sequence[str], theta: Floats, above: Bools) -> Consistency:
    """Compare boards by pairs.

    Parameters
    ----------
    boards : sequence of str, length n_boards
        What was chosen for each; the first is the one that is shown.
    theta : ndarray of shape (n_boards, n_entrants)
        Scores; only their order is used, so boards may have scales of their own.
    above : ndarray of shape (n_boards, n_entrants, n_entrants), bool
        Where a board claims that the row is better than the column.

    Raises
    ------
    DataError
        With fewer than two boards.

    Examples
    --------
    Two boards in opposite orders, of which the second is sure of nothing.

    >>> theta = np.array([[1.0, 0, -1], [-1.0, 0, 1]])
    >>> sure = np.array([[[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.zeros((3, 3))], dtype=bool)
    >>> found = consistency(["shown", "other"], theta, sure)
    >>> found.lowest, found.most_contradictions, found.same_winner
    (-1.0, 0, 0.0)
    """
    n = len(boards)
    if n < 2:
        raise DataError(f"{n} board has nothing to be compared with: give two or more.")
    winners = theta.argmax(axis=1)
    against = np.einsum("aij,bji->ab", above.astype(np.int64), above.astype(np.int64))
    return Consistency(
        boards=tuple(boards),
        spearman=np.array([[spearman(one, other) for other in theta] for one in theta]),
        contradictions=against,
        same_winner=float((winners[1:] == winners[0]).mean()),
    )


def spearman(one: Floats, other: Floats) -> float:
    """Return the rank correlation; NaN where a column is flat or shorter than three."""
    return correlations(one, other).spearman if len(one) >= MIN_MODELS else math.nan


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
