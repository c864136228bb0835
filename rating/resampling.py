"""Bootstrap: strengths refitted to votes drawn again, many rounds at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import NamedTuple

import numpy as np

from rating.comparisons import Comparisons
from rating.covariance import Cluster, Grouping, compiled_loops, grouping
from rating.errors import DataError
from rating.fitting import Fit, has_finite_fit
from rating.identification import reachable
from rating.likelihood import HALF_WIN, minimise, one_thread, solve
from rating.typing import Bools, Floats, Ints, Words

NORMAL_FROM = 10
"""Votes from which their number in a round is drawn from its normal expansion."""

_LARGEST_SUM = 2**31 / 16
"""Weight from which whole weights, each drawn less than 16 times, may not fit in 32 bits."""

_LEVELS = 2**16


def random_words(n_rows: int, n: int, rng: np.random.Generator) -> Words:
    """Draw words, shape (n_rows, n)."""
    drawn = rng.integers(2**64, size=-(-n_rows * n // 4), dtype=np.uint64)
    return drawn.view(np.uint16)[: n_rows * n].reshape(n_rows, n)


@dataclass(frozen=True, slots=True, eq=False)
class PoissonTable:
    """Poisson numbers of some means, from words: to 16 bits of probability.

    From a mean of 10 on as ``m + sqrt(m) z + (z^2 - 1) / 6`` with z standard normal: not whole,
    but of the same mean, and of the same variance and skewness to a relative 1/(18 m).

    Attributes
    ----------
    mean : ndarray of shape (n,)
    last : ndarray of shape (n, n_steps), uint16
        The largest word that gives each number or less, 0 first; of no use for large means.
    z : ndarray of shape (65536,)
        Standard normal numbers, by word.
    """

    mean: Floats
    last: Words
    z: Floats

    @classmethod
    def of(cls, mean: Floats) -> "PoissonTable":
        """Tabulate the distributions, by the middle of each word's probability."""
        import scipy

        small = np.where(mean < NORMAL_FROM, mean, 0.0)
        n_steps = int(np.max(small + 6 * np.sqrt(small), initial=0)) + 8  # up to 1 - 2^-17
        ratio = small[:, None] / np.arange(n_steps).clip(min=1)
        ratio[:, 0] = np.exp(-small)
        upto = np.cumsum(np.cumprod(ratio, axis=1), axis=1)
        last = np.floor(_LEVELS * upto + 0.5) - 1
        z = scipy.special.ndtri((np.arange(_LEVELS) + 0.5) / _LEVELS)
        return cls(mean, last.astype(np.uint16), z / z.std())

    @property
    def large(self) -> Bools:
        """Which means are drawn by normal numbers."""
        return self.mean >= NORMAL_FROM

    def sums(self, words: Words) -> Floats:
        """Return the number that each word gives: a row of words for a mean, or all for one."""
        counts = np.zeros(words.shape, dtype=np.uint8)
        for last in self.last.T:
            more = words > last[:, None]
            if not more.any():
                break
            counts += more
        sums = counts.astype(np.float64)
        if self.large.any():
            z, m = self.z[words[self.large]], self.mean[self.large, None]
            sums[self.large] = (m + np.sqrt(m) * z + (z * z - 1) / 6).clip(min=0)
        return sums


MAX_CHORD_STEPS = 25
STEP_IN_ERRORS = 1e-6


class _Solved(NamedTuple):
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
    loops : module, optional
        Compiled loops to use, from `compiled_loops`.
    """

    first: Ints
    second: Ints
    starts: Ints
    games: Floats
    score: Floats
    total: Floats
    loops: ModuleType | None = None

    @classmethod
    def of(
        cls,
        first: Ints,
        second: Ints,
        n_models: int,
        games: Floats,
        score: Floats,
        loops: ModuleType | None = None,
    ) -> "PairRounds":
        """Add up the scores of each model."""
        starts = np.searchsorted(first, np.arange(n_models + 1))
        total = np.zeros((n_models, games.shape[1]))
        if loops is not None:
            loops.add_scores(first, second, games, score, total)
            return cls(first, second, starts, games, score, total, loops)
        for i in range(n_models):
            own = slice(starts[i], starts[i + 1])
            total[i] += score[own].sum(axis=0)
            total[second[own]] += games[own] - score[own]
        return cls(first, second, starts, games, score, total)

    def gradient(self, theta: Floats) -> Floats:
        """Return expected less observed scores at strengths of shape (n_models, n_rounds)."""
        slope = -self.total
        odds = np.exp(theta - theta.max(axis=0))
        if self.loops is not None:
            self.loops.add_expected(self.first, self.second, self.games, odds, slope)
            return slope
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
        games, score, total = (x.take(chosen, 1) for x in (self.games, self.score, self.total))
        return replace(self, games=games, score=score, total=total)


def _spanning_pairs(first: Ints, second: Ints, games: Floats, n_models: int) -> Ints:
    """Return pairs that join all models, preferring those with many games.

    While all of them were played in a round, its models are connected.
    """
    import scipy

    met = scipy.sparse.csr_array((-games, (first, second)), shape=(n_models, n_models))
    tree = scipy.sparse.csgraph.minimum_spanning_tree(met).tocoo()
    number = np.searchsorted(first * n_models + second, tree.row * n_models + tree.col)
    return np.asarray(number, dtype=np.int64)


def chord_newton(rounds: PairRounds, start: Floats, bread: Floats, *, ridge: float) -> _Solved:
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
    product = np.matmul if rounds.loops is None else rounds.loops.product
    for _ in range(MAX_CHORD_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):  # a round may run away: it stays undone
            here = theta.take(active, 1)
            step = product(bread, at.gradient(here) + ridge * here)
        theta[:, active] -= step
        settled = (np.abs(step) <= close).all(axis=0)
        done[active[settled]] = True
        if settled.all():
            break
        if settled.mean() > 0.3:  # copying the rest pays only when much is done
            active, at = active[~settled], at.pick(np.flatnonzero(~settled))
    return _Solved(theta, done)


ROUNDS_AT_ONCE = 64


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


@one_thread
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
    number; see `rating.resampling`. Unequal weights within a cell enter as a Poisson
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
    """Yield some rounds at a time, each with a generator of its own: threads change nothing."""
    table = _PairTable.of(data)
    n_cells = 0 if cluster is None else len(data.votes)
    loops = compiled_loops(fit, rounds * (len(table.first) // 10 + n_cells // 1000))
    if cluster is None:
        draw = table.votes_drawn(loops)
    else:
        draw = table.clusters_drawn(data, grouping(data, cluster), loops)
    met = table.mean.reshape(3, -1).sum(axis=0)
    tree = _spanning_pairs(table.first, table.second, met, table.n_models)

    def work(n: int, rng: np.random.Generator) -> Floats:
        games, score = draw(n, rng)
        drawn = PairRounds.of(table.first, table.second, table.n_models, games, score, loops)
        theta, done = chord_newton(drawn, fit.theta, fit.inverse_information, ridge=fit.ridge)
        joined = (drawn.games[tree] > 0).all(axis=0) | (fit.ridge > 0)
        for r in np.flatnonzero(~(done & joined)):
            theta[:, r] = _refit(drawn.wins(int(r)), fit)
        return theta.T

    sizes = [min(ROUNDS_AT_ONCE, rounds - first) for first in range(0, rounds, ROUNDS_AT_ONCE)]
    if loops is None:
        yield from map(work, sizes, rng.spawn(len(sizes)))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        yield from pool.map(work, sizes, rng.spawn(len(sizes)))


_KIND, _TURNED = np.array([0, 1, 2, 2]), np.array([1, 0, 2, 2])
"""Kinds of the outcomes, with the first model on side A and on side B."""

GamesAndScore = tuple[Floats, Floats]
"""Of every pair in some rounds, as `PairRounds` has them."""

Draw = Callable[[int, np.random.Generator], GamesAndScore]


@dataclass(frozen=True, slots=True, eq=False)
class _PairTable:
    """Which unordered pairs met, and where the cells of each kind are among them.

    Kinds are a win of the first model, a win of the second and a tie; each
    (kind, pair) is one entry.
    """

    first: Ints
    second: Ints
    n_models: int
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, data: Comparisons) -> "_PairTable":
        """Fold the sides of all cells together."""
        total = _by_pair(data.table())
        square = total if data.weight_sq is data.weight else _by_pair(data.table(data.weight_sq))
        first, second = np.nonzero(total.any(axis=0))
        weight = total[:, first, second].ravel()
        mean = _effective_votes(weight, square[:, first, second].ravel())
        scale = weight / np.where(mean > 0, mean, 1.0)
        return cls(first, second, data.n_models, mean, scale)

    def entries(self, data: Comparisons) -> Ints:
        """Return the entry of every cell."""
        n_pairs = len(self.first)
        number = np.zeros((self.n_models, self.n_models, len(_KIND)), dtype=np.int64)
        pair = np.arange(n_pairs)[:, None]
        number[self.first, self.second] = _KIND * n_pairs + pair
        number[self.second, self.first] = _TURNED * n_pairs + pair
        return number.ravel()[data.codes()]

    def votes_drawn(self, loops: ModuleType | None) -> Draw:
        """Return a function that draws the votes of every entry in n rounds."""
        poisson = PoissonTable.of(self.mean)

        def draw(n: int, rng: np.random.Generator) -> GamesAndScore:
            words = random_words(len(self.mean), n, rng)
            if loops is None:
                return _folded(poisson.sums(words) * self.scale[:, None])
            args = (poisson.mean, poisson.large, self.scale, poisson.last, poisson.z)
            return loops.draw_votes(words, *args)  # type: ignore[no-any-return]

        return draw

    def clusters_drawn(
        self, data: Comparisons, groups: Grouping, loops: ModuleType | None
    ) -> Draw:
        """Return a function that draws whole clusters in n rounds."""
        import scipy

        by_cluster = scipy.sparse.csr_array(
            (data.weight, (self.entries(data), groups.index)), (len(self.mean), groups.size)
        )
        ones = PoissonTable.of(np.ones(1))
        weight = by_cluster.data
        if weight.sum() < _LARGEST_SUM and (weight == np.floor(weight)).all():
            weight = weight.astype(np.int32)
        cells = (by_cluster.indptr, by_cluster.indices, weight)

        def draw(n: int, rng: np.random.Generator) -> GamesAndScore:
            words = random_words(groups.size, n, rng)
            if loops is None:
                return _folded(by_cluster @ ones.sums(words))
            counts = loops.count_small(words, ones.last)
            return loops.draw_clusters(counts, *cells)  # type: ignore[no-any-return]

        return draw


def _by_pair(table: Floats) -> Floats:
    """Sum a value of cells by kind and pair, the first model before the second."""
    by_kind = np.zeros((3, *table.shape[:2]))
    for outcome, (kind, turned) in enumerate(zip(_KIND, _TURNED, strict=True)):
        by_kind[kind] += table[..., outcome]
        by_kind[turned] += table[..., outcome].T
    return np.triu(by_kind, 1)


def _folded(drawn: Floats) -> GamesAndScore:
    """Turn the weights of the entries into games and scores of the pairs."""
    won, lost, tied = drawn.reshape(3, len(drawn) // 3, -1)
    return won + lost + tied, won + tied / 2


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
    """Solve the largest group that can be compared, and place the others beyond it.

    A group without most of the models is no scale on which to place any: all are NaN.
    """
    mutual = reach & reach.T
    centre = int(mutual.sum(axis=1).argmax())
    group = np.flatnonzero(mutual[centre])
    above, below = reach[:, centre], reach[centre]
    strengths = np.full(len(wins), np.nan)
    if 2 * len(group) <= len(wins):
        return strengths
    strengths[above & ~below] = np.inf
    strengths[below & ~above] = -np.inf
    strengths[group] = solve(wins[np.ix_(group, group)], theta[group]).theta + theta[group].mean()
    return strengths


def _general_rounds(
    fit: Fit, data: Comparisons, rounds: int, cluster: Cluster | None, rng: np.random.Generator
) -> Iterator[Floats]:
    groups = None if cluster is None else grouping(data, cluster)
    cells = data.merged() if groups is None else data
    mean = np.ones(1)
    if groups is None:
        mean = _effective_votes(cells.weight, cells.weight_sq)
    n, scale = len(mean) if groups is None else groups.size, 1 / np.where(mean > 0, mean, 1.0)
    poisson = PoissonTable.of(mean)
    for _ in range(rounds):
        times = poisson.sums(random_words(n, 1, rng))[:, 0] * scale
        if groups is not None:
            times = times[groups.index]
        drawn = replace(cells, weight=cells.weight * times)
        if has_finite_fit(fit, drawn):
            yield minimise(fit.objective(drawn), fit.x).x[None, : fit.n_models]
        else:
            yield np.full((1, fit.n_models), np.nan)
