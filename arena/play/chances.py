"""How likely each pair is drawn: `rating.planning.sampling` on the votes so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from arena.domain.battle import Sampler, Wins
from arena.domain.model import Model
from rating.likelihood.bradley_terry import hessian, solve
from rating.planning.sampling import (
    arena_pairs,
    gain_pairs,
    score_variances,
    uniform_pairs,
    weighted_pairs,
)
from rating.typing import Floats, Ints

RIDGE = 0.1
"""Gives a place to a model that has no votes or has not lost yet: strengths of sd 3.2 nats."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the votes say of the models, in their order.

    Attributes
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column, a tie half a win for each.
    theta, covariance : ndarray, or None
        Strengths in nats of a fit with a ridge, and the inverse of its information; None
        unless the sampler needs them and there are votes.
    """

    models: tuple[str, ...]
    wins: Floats
    theta: Floats | None = None
    covariance: Floats | None = None

    @classmethod
    def of(cls, wins: Wins, models: Sequence[str], sampler: Sampler) -> Self:
        """Take in the votes; models that have left the roster still tell about the others."""
        names = tuple(sorted({*models, *(name for pair in wins for name in pair)}))
        place = {name: i for i, name in enumerate(names)}
        table = np.zeros((len(names), len(names)))
        for (row, column), score in wins.items():
            table[place[row], place[column]] = score
        if sampler is not Sampler.GAIN or not table.any():
            return cls(names, table)
        theta = solve(table, np.zeros(len(names)), ridge=RIDGE).theta
        covariance = np.linalg.inv(hessian(theta, table, ridge=RIDGE))
        return cls(names, table, theta, (covariance + covariance.T) / 2)

    def among(self, models: Sequence[str]) -> Self:
        """Give what is known of some of the models, in their order."""
        place = {name: i for i, name in enumerate(self.models)}
        rows = np.array([place[name] for name in models])
        cells = np.ix_(rows, rows)
        if self.theta is None or self.covariance is None:
            return type(self)(tuple(models), self.wins[cells])
        return type(self)(
            tuple(models), self.wins[cells], self.theta[rows], self.covariance[cells]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """Every pair of some models, ready to be drawn from.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,), int64
        Positions of the models.
    chance : ndarray of shape (n_pairs,)
    cumulative : list of float
        Sums of the chances so far.
    """

    first: Ints
    second: Ints
    chance: Floats
    cumulative: list[float]

    @classmethod
    def of(cls, table: Floats) -> Self:
        """Line up the pairs of a table of chances."""
        first, second = np.triu_indices(len(table), k=1)
        chance = table[first, second]
        return cls(first, second, chance, chance.cumsum().tolist())


def chances(models: Sequence[Model], known: Known, sampler: Sampler, exploration: float) -> Floats:
    """Give the chance of every pair of two models or more.

    Parameters
    ----------
    known : Known
        Holds the models, among others perhaps.
    exploration : float
        Share of the draws that goes to all pairs alike, in (0, 1].

    Returns
    -------
    ndarray of shape (n_models, n_models)
        Symmetric, the upper triangle summing to one: see `rating.planning.sampling`.
    """
    if sampler is Sampler.UNIFORM:
        return uniform_pairs(len(models))
    if sampler is Sampler.WEIGHTED:
        weights = np.array([model.weight for model in models])
        return weighted_pairs(weights, exploration=exploration)
    own = known.among([model.id for model in models])
    if sampler is Sampler.ARENA:
        variances = score_variances(own.wins)
        return arena_pairs(own.wins + own.wins.T, variances, exploration=exploration)
    if own.theta is None or own.covariance is None:  # no votes: no neighbours to tell apart
        return uniform_pairs(len(models))
    return gain_pairs(own.theta, own.covariance, exploration=exploration)
