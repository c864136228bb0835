"""The Bradley-Terry likelihood on a table of scores: the short way to the strengths."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rating.newton import Evaluation, minimise
from rating.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """The objective of plain Bradley-Terry.

    With ``P(i beats j) = sigmoid(theta[i] - theta[j])``, minimise::

        -sum_ij wins[i, j] * log P(i beats j) + ridge / 2 * sum(theta ** 2)

    Attributes
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column, a tie half a win for each.
    """

    wins: Floats
    ridge: float = 0.0

    @property
    def n_models(self) -> int:
        """Number of strengths, which are all the parameters."""
        return len(self.wins)

    @property
    def absolute(self) -> bool:
        """False: only differences count."""
        return False

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.wins.sum())

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian."""
        gap = x[:, None] - x[None, :]
        small = np.exp(-np.abs(gap))
        chance = np.where(gap >= 0, 1.0, small) / (1.0 + small)
        surprise = np.log1p(small) + np.maximum(-gap, 0.0)
        games = self.wins + self.wins.T
        information = games * chance * chance.T
        return Evaluation(
            loss=float((self.wins * surprise).sum() + self.ridge / 2 * (x @ x)),
            gradient=(games * chance - self.wins).sum(axis=1) + self.ridge * x,
            hessian=np.diag(information.sum(axis=1) + self.ridge) - information,
        )


class Strengths(NamedTuple):
    """Where `solve` ended: strengths that sum to zero, and the steps taken."""

    theta: Floats
    iterations: int


def solve(wins: Floats, start: Floats, *, ridge: float = 0.0) -> Strengths:
    """Minimise `ScoreTable`.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column; a finite minimum must exist.
    start : ndarray of shape (n_models,)

    Raises
    ------
    ConvergenceError
        If the gradient does not vanish.
    """
    best = minimise(ScoreTable(wins, ridge), start)
    return Strengths(best.x, best.iterations)


def win_probability(theta: Floats) -> Floats:
    """Return the chance that row beats column, shape (n_models, n_models)."""
    return np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))


def hessian(theta: Floats, wins: Floats, *, ridge: float = 0.0) -> Floats:
    """Return the Hessian of `ScoreTable`: without a ridge, its rows sum to zero."""
    return ScoreTable(wins, ridge).evaluate(theta).hessian
