"""Bootstrap: strengths refitted to votes drawn anew, many rounds at a time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.fitting import Fit, has_finite_fit
from rating.likelihood.identification import reachable
from rating.likelihood.newton import minimise
from rating.likelihood.objective import solve
from rating.likelihood.ties import HALF_WIN
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.clusters import Cluster, grouping

NORMAL_FROM = 10
"""Votes from which their number in a round is drawn from its normal expansion."""

_LEVELS = 2**16


def poisson_sums(mean: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw Poisson numbers, shape (len(mean), n).

    From a mean of 10 on as ``m + sqrt(m) z + (z^2 - 1) / 6`` with z standard
    normal: not whole, but of the same mean, and of the same variance and
    skewness to a relative 1/(18 m). It takes a fifth of the time.
    """
    drawn = np.empty((len(mean), n))
    large = mean >= NORMAL_FROM
    drawn[~large] = rng.poisson(mean[~large, None], (int((~large).sum()), n))
    z = rng.standard_normal((int(large.sum()), n))
    m = mean[large, None]
    drawn[large] = (m + np.sqrt(m) * z + (z * z - 1) / 6).clip(min=0)
    return drawn


def poisson_ones(n_clusters: int, n: int, rng: np.random.Generator) -> Floats:
    """Draw Poisson numbers of mean one, to 16 bits of probability, shape (n_clusters, n)."""
    return _table_of_ones()[rng.integers(_LEVELS, size=(n_clusters, n), dtype=np.uint16)]


def _table_of_ones() -> Floats:
    upto = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(16)])
    return np.searchsorted(upto, (np.arange(_LEVELS) + 0.5) / _LEVELS).astype(np.float64)


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

    While all of them were played in a round, its models are connected.
    """
    met = scipy.sparse.csr_array((-games, (first, second)), shape=(n_models, n_models))
    tree = scipy.sparse.csgraph.minimum_spanning_tree(met).tocoo()
    number = np.searchsorted(first * n_models + second, tree.row * n_models + tree.col)
    return np.asarray(number, dtype=np.int64)


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


ROUNDS_AT_ONCE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Strengths of every round.

    Attributes
    ----------
    models : tuple of str
    theta : ndarray of shape (n_rounds, n_models)
        Nats. In a degenerate round the largest group of models that can be
        compared keeps the mean it had in the fit; a model that only beat it
        stands at infinity, one that only lost to it at minus infinity, and
        one that cannot be compared with it is NaN. Fits other than plain
        Bradley-Terry are NaN throughout such a round.
    n_degenerate : int
        Rounds without a finite fit.
    """

    models: tuple[str, ...]
    theta: Floats
    n_degenerate: int

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the percentile interval of every strength, (low, high) in nats.

        Order statistics, the outer ones. What cannot be compared counts as
        minus infinity below and as infinity above: no round is dropped.
        """
        if not 0 < level < 1:
            raise DataError(f"level must lie between 0 and 1, not {level}.")
        low, high = (
            np.nan_to_num(self.theta, nan=sign * np.inf, posinf=np.inf, neginf=-np.inf)
            for sign in (-1, 1)
        )
        tail = (1 - level) / 2
        return (
            np.quantile(low, tail, axis=0, method="lower"),
            np.quantile(high, 1 - tail, axis=0, method="higher"),
        )


def bootstrap(
    fit: Fit,
    data: Comparisons,
    *,
    rounds: int = 1000,
    cluster: Cluster | None = None,
    rng: np.random.Generator,
) -> Bootstrap:
    """Refit to Poisson-weighted votes, or to Poisson-weighted voters or prompts.

    Every vote (voter, prompt) counts a Poisson(1) number of times, equal votes together a Poisson
    number; see `rating.uncertainty.bootstrap`. Unequal weights within a cell enter as a Poisson
    number of mean ``weight^2 / weight_sq``, scaled: the same mean and variance. Plain
    Bradley-Terry is solved for all rounds together, with the Hessian of the fit, until the next
    step is below 1e-6 standard errors; rounds that stall are solved one by one. Other fits are
    refitted from where they are.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    rounds : int
    cluster : {"voter", "prompt"}, optional
        None draws votes independently.

    Raises
    ------
    DataError
        If ``rounds`` is under 1, or the clusters are not known.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap,
       1993, chapter 13 (percentile intervals).
    .. [2] N. Chamandy et al., "Estimating uncertainty for massive data
       streams", Google technical report, 2012 (Poisson weights).
    """
    if rounds < 1:
        raise DataError(f"rounds must be 1 or more, not {rounds}.")
    plain = fit.likelihood is HALF_WIN and len(fit.x) == fit.n_models
    make = _plain_rounds if plain else _general_rounds
    theta = np.vstack([*make(fit, data, rounds, cluster, rng)])
    degenerate = ~np.isfinite(theta).all(axis=1)
    return Bootstrap(fit.models, theta, int(degenerate.sum()))


def _plain_rounds(
    fit: Fit, data: Comparisons, rounds: int, cluster: Cluster | None, rng: np.random.Generator
) -> Iterator[Floats]:
    table = _PairTable.of(data)
    draw = table.votes_drawn if cluster is None else table.clusters_drawn(data, cluster)
    bread = fit.inverse_information
    games = table.mean.reshape(3, -1).sum(axis=0)
    tree = spanning_pairs(table.first, table.second, games, table.n_models)
    for first in range(0, rounds, ROUNDS_AT_ONCE):
        n = min(ROUNDS_AT_ONCE, rounds - first)
        drawn = table.rounds(draw(n, rng))
        theta, done = chord_newton(drawn, fit.theta, bread, ridge=fit.ridge)
        joined = (drawn.games[tree] > 0).all(axis=0) | (fit.ridge > 0)
        for r in np.flatnonzero(~(done & joined)):
            theta[:, r] = _refit(drawn.wins(int(r)), fit)
        yield theta.T


@dataclass(frozen=True, slots=True, eq=False)
class _PairTable:
    """Which unordered pairs met, and where the cells of each kind are among them.

    Kinds are a win of the first model, a win of the second and a tie; each
    (kind, pair) is one entry.
    """

    first: Ints
    second: Ints
    n_models: int
    entry: Ints
    mean: Floats
    scale: Floats
    weight: Floats

    @classmethod
    def of(cls, data: Comparisons) -> "_PairTable":
        """Fold the sides of all cells together."""
        a, b = data.pairs.T.astype(np.int64)  # they may be narrow, and their products are not
        k = data.n_models
        low, high = np.minimum(a, b), np.maximum(a, b)
        present = np.bincount(low * k + high, minlength=k * k) > 0
        place = np.cumsum(present) - 1
        n_pairs = int(present.sum())
        score = np.where(a < b, data.score_a, 1 - data.score_a)
        kind = np.array([1, 2, 0])[(2 * score).astype(np.int64)]  # 0, 1/2, 1
        entry = kind * n_pairs + place[low * k + high]
        total = np.bincount(entry, data.weight, 3 * n_pairs).astype(np.float64)
        square = np.bincount(entry, data.weight_sq, 3 * n_pairs).astype(np.float64)
        first, second = np.divmod(np.flatnonzero(present), k)
        mean = _effective_votes(total, square)
        scale = total / np.where(mean > 0, mean, 1.0)
        return cls(first, second, k, entry, mean, scale, data.weight)

    def votes_drawn(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw the weight of every entry in n rounds, shape (n_entries, n)."""
        return poisson_sums(self.mean, n, rng) * self.scale[:, None]

    def clusters_drawn(self, data: Comparisons, cluster: Cluster) -> Any:
        """Return a function like `votes_drawn` that draws whole clusters."""
        groups = grouping(data, cluster)
        by_cluster = scipy.sparse.csr_array(
            (self.weight, (self.entry, groups.index)), (len(self.mean), groups.size)
        )

        def draw(n: int, rng: np.random.Generator) -> Floats:
            return np.asarray(by_cluster @ poisson_ones(groups.size, n, rng))

        return draw

    def rounds(self, drawn: Floats) -> PairRounds:
        """Turn the weights of the entries into games and scores of the pairs."""
        won, lost, tied = drawn.reshape(3, len(self.first), -1)
        return PairRounds.of(
            self.first, self.second, self.n_models, won + lost + tied, won + tied / 2
        )


def _effective_votes(weight: Floats, weight_sq: Floats) -> Floats:
    """Return how many equal votes have this total weight and this sum of squares."""
    return np.asarray(weight**2 / np.where(weight_sq > 0, weight_sq, 1.0))


def _refit(wins: Floats, fit: Fit) -> Floats:
    """Solve one round by itself, whatever the votes drawn."""
    scored = wins > 0
    reach = reachable(scored)
    if fit.ridge > 0 or reach.all():
        return solve(wins, fit.theta, ridge=fit.ridge).theta
    return _degenerate(wins, reach, fit.theta)


def _degenerate(wins: Floats, reach: Bools, theta: Floats) -> Floats:
    """Solve the largest group that can be compared, and place the others beyond it."""
    mutual = reach & reach.T
    centre = int(mutual.sum(axis=1).argmax())
    group = np.flatnonzero(mutual[centre])
    above, below = reach[:, centre], reach[centre]
    strengths = np.full(len(wins), np.nan)
    strengths[above & ~below] = np.inf
    strengths[below & ~above] = -np.inf
    strengths[group] = solve(wins[np.ix_(group, group)], theta[group]).theta + theta[group].mean()
    return strengths


def _general_rounds(
    fit: Fit, data: Comparisons, rounds: int, cluster: Cluster | None, rng: np.random.Generator
) -> Iterator[Floats]:
    groups = None if cluster is None else grouping(data, cluster)
    cells = data.merged() if groups is None else data
    mean = _effective_votes(cells.weight, cells.weight_sq)
    for _ in range(rounds):
        if groups is None:
            times = poisson_sums(mean, 1, rng)[:, 0] / np.where(mean > 0, mean, 1.0)
        else:
            times = poisson_ones(groups.size, 1, rng)[groups.index, 0]
        drawn = replace(cells, weight=cells.weight * times)
        if has_finite_fit(fit, drawn):
            yield minimise(fit.objective(drawn), fit.x).x[None, : fit.n_models]
        else:
            yield np.full((1, fit.n_models), np.nan)
