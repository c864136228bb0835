"""The Bradley-Terry likelihood on tables of scores: one, or many on the same pairs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rating.likelihood.newton import Evaluation, minimise
from rating.typing import Bools, Floats, Ints


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
        probability = np.where(gap >= 0, 1.0, small) / (1.0 + small)
        loss = np.log1p(small) + np.maximum(-gap, 0.0)
        games = self.wins + self.wins.T
        information = games * probability * probability.T
        return Evaluation(
            loss=float((self.wins * loss).sum() + self.ridge / 2 * (x @ x)),
            gradient=(games * probability - self.wins).sum(axis=1) + self.ridge * x,
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
    """Return the probability that row beats column, shape (n_models, n_models)."""
    return np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))


def hessian(theta: Floats, wins: Floats, *, ridge: float = 0.0) -> Floats:
    """Return the Hessian of `ScoreTable`: without a ridge, its rows sum to zero."""
    return ScoreTable(wins, ridge).evaluate(theta).hessian


MAX_CHORD_STEPS = 25
STEP_IN_ERRORS = 1e-6


class Solved(NamedTuple):
    """Strengths of every round, shape (n_models, n_rounds), and which rounds converged."""

    theta: Floats
    done: Bools


@dataclass(frozen=True, slots=True, eq=False)
class PairRounds:
    """Games and scores of unordered pairs in many rounds.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,), int64
        Models of each pair, ``first < second``, in ascending order.
    starts : ndarray of shape (n_models + 1,), int64
        Where the pairs of each first model begin.
    games, score : ndarray of shape (n_pairs, n_rounds)
        Weight of the votes, and the first model's score in them.
    total : ndarray of shape (n_models, n_rounds)
        Score of each model against all others.
    """

    first: Ints
    second: Ints
    starts: Ints
    games: Floats
    score: Floats
    total: Floats

    @classmethod
    def of(
        cls, first: Ints, second: Ints, n_models: int, games: Floats, score: Floats
    ) -> "PairRounds":
        """Add up the scores of each model."""
        starts = np.searchsorted(first, np.arange(n_models + 1))
        total = np.zeros((n_models, games.shape[1]))
        for i in range(n_models):
            own = slice(starts[i], starts[i + 1])
            total[i] += score[own].sum(axis=0)
            total[second[own]] += games[own] - score[own]
        return cls(first, second, starts, games, score, total)

    def gradient(self, theta: Floats) -> Floats:
        """Return expected less observed scores at strengths of shape (n_models, n_rounds)."""
        slope = -self.total
        odds = np.exp(theta - theta.max(axis=0))
        for i in range(len(theta)):
            own = slice(self.starts[i], self.starts[i + 1])
            others = self.second[own]
            games = self.games[own]
            share = odds[others]
            share += odds[i]
            np.divide(odds[i], share, out=share)
            share *= games
            slope[i] += share.sum(axis=0)
            slope[others] += games - share
        return slope

    def wins(self, r: int) -> Floats:
        """Return the scores of round r, row against column, shape (n_models, n_models)."""
        k = len(self.starts) - 1
        table = np.zeros((k, k))
        table[self.first, self.second] = self.score[:, r]
        table[self.second, self.first] = self.games[:, r] - self.score[:, r]
        return table

    def pick(self, chosen: Ints) -> "PairRounds":
        """Return some of the rounds."""
        return PairRounds(
            self.first,
            self.second,
            self.starts,
            self.games[:, chosen],
            self.score[:, chosen],
            self.total[:, chosen],
        )


def spanning_pairs(first: Ints, second: Ints, games: Floats, n_models: int) -> Ints:
    """Return pairs that join all models, preferring those with many games.

    Prim's algorithm. While all of them were played in a round, its models
    are connected; a board in several parts keeps its first part only.
    """
    table = np.full((n_models, n_models), -1)
    table[first, second] = table[second, first] = np.arange(len(first))
    weight = np.where(table >= 0, games[table], 0.0)
    best, link = weight[0].copy(), table[0].copy()
    inside, chosen = np.arange(n_models) == 0, []
    for _ in range(n_models - 1):
        nearest = int(np.where(inside, -1.0, best).argmax())
        if best[nearest] <= 0:
            break
        chosen.append(link[nearest])
        inside[nearest] = True
        closer = weight[nearest] > best
        best, link = (
            np.where(closer, weight[nearest], best),
            np.where(closer, table[nearest], link),
        )
    return np.array(chosen, dtype=np.int64)


def chord_newton(rounds: PairRounds, start: Floats, bread: Floats, *, ridge: float) -> Solved:
    """Solve all rounds by Newton steps with one frozen Hessian.

    Each round is done when its next step is below `STEP_IN_ERRORS` standard
    errors in every strength; what `MAX_CHORD_STEPS` did not settle is left.
    A connected round that is not identified never settles: its strengths grow
    by less and less, but by more than that. One in several parts may settle,
    and must be looked for beforehand.

    Parameters
    ----------
    start : ndarray of shape (n_models,)
    bread : ndarray of shape (n_models, n_models)
        Inverse Hessian at ``start``, on strengths that sum to zero.
    """
    theta = np.repeat(start[:, None], rounds.games.shape[1], axis=1)
    done = np.zeros(theta.shape[1], dtype=bool)
    close = STEP_IN_ERRORS * np.sqrt(np.diag(bread))[:, None]
    active, at = np.arange(len(done)), rounds
    for _ in range(MAX_CHORD_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):  # a round may run away: it stays undone
            step = bread @ (at.gradient(theta[:, active]) + ridge * theta[:, active])
        theta[:, active] -= step
        settled = (np.abs(step) <= close).all(axis=0)
        done[active[settled]] = True
        if settled.all():
            break
        if settled.mean() > 0.3:  # copying the rest pays only when much is done
            active, at = active[~settled], at.pick(np.flatnonzero(~settled))
    return Solved(theta, done)
