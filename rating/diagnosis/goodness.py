"""How well a fit describes each pair of models, and all of them together."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.counting import narrowest
from rating.fitting import Fit
from rating.likelihood.objective import ScoredCells, outcome_counts, win_probability
from rating.likelihood.ties import SCORE_A
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.clusters import Grouping, is_plain

DRAWS = 499
CLUSTERS_AT_ONCE = 2000
TIES_OF_ALL = 5.0
"""Votes with the tie rate of all pairs that are added to a pair's own, to know its tie rate."""

_EXACT = 1e-6
"""Share of a residual's variance below which the fit follows the pair whatever it says."""


@dataclass(frozen=True, slots=True, eq=False)
class GoodnessOfFit:
    """Observed against expected outcomes, by unordered pair of models.

    Attributes
    ----------
    models : tuple of str
    pairs : ndarray of shape (n_pairs, 2), int64
        The pairs that met, first index lower.
    residual : ndarray of shape (n_pairs,)
        ``(score - expected) / sd`` of the first model's score. The sd is that
        of the difference between independent votes and a fit to them; NaN
        where the fit follows the pair whatever its votes.
    pearson, g2 : ndarray of shape (n_pairs,)
        Contributions to the totals.
    pearson_total, g2_total : float
    df : int
        Pairs times (outcomes - 1), less the free parameters: pairs less
        (models - 1) for plain Bradley-Terry. Chi-squared holds for
        independent votes of weight one without half-win ties.
    """

    models: tuple[str, ...]
    pairs: Ints
    residual: Floats
    pearson: Floats
    g2: Floats
    pearson_total: float
    g2_total: float
    df: int


@dataclass(frozen=True, slots=True)
class MisfitTest:
    """All pairs together, against votes that the fit describes.

    Attributes
    ----------
    p : float
        Probability of residuals as large, or larger.
    n_far : float
        Pairs that such votes put beyond ``far``, on average.
    """

    p: float
    n_far: float


def goodness_of_fit(fit: Fit, data: Comparisons) -> GoodnessOfFit:
    """Compare the outcomes of every pair, both sides together, with those expected.

    ``pearson = sum (observed - expected)^2 / expected`` and
    ``g2 = 2 sum observed log(observed / expected)`` over the outcomes that the
    likelihood tells apart. Expectations follow the order effect and the
    features of each vote, before sides are put together.

    A residual is what is left of a pair's score when the fit has followed it
    as far as it can. With r the raw residuals, g the gradient of the
    log-likelihood and ``D = dE(score)/dx``, it is ``r - D H^- g``, of variance::

        Var(r) - 2 D H^- Cov(g, r) + D H^- Var(g) H^- D'

    for independent votes. Under half wins a vote's variance is that of three
    outcomes, ``p (1 - p) - t / 4``, t the pair's tie rate shrunk towards that
    of all votes by `TIES_OF_ALL` votes; ties have no place in the likelihood,
    and would else make every residual too small.

    References
    ----------
    .. [1] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, sections 4.5
       and 10.6.
    .. [2] S. J. Haberman, "The analysis of residuals in cross-classified
       tables", Biometrics 29(1), 1973, pp. 205-220 (the variance of a
       residual after the fit).
    """
    merged = data.merged()
    m = len(fit.likelihood.outcomes)
    observed = _unordered(outcome_counts(merged.table(), fit.likelihood))
    expected = _unordered(_expected_counts(fit, merged))
    met = np.triu(observed.sum(axis=-1) > 0)
    o, e = observed[met], expected[met]
    logs = np.log(np.where(o > 0, o, 1.0) / np.where(o > 0, e, 1.0))
    pearson, g2 = ((o - e) ** 2 / e).sum(axis=1), 2 * (o * logs).sum(axis=1)
    free = len(fit.x) - (not fit.absolute)
    return GoodnessOfFit(
        models=fit.models,
        pairs=np.argwhere(met),
        residual=_residual(fit, merged),
        pearson=pearson,
        g2=g2,
        pearson_total=float(pearson.sum()),
        g2_total=float(g2.sum()),
        df=len(o) * (m - 1) - free,
    )


def misfit_test(
    fit: Fit,
    data: Comparisons,
    groups: Grouping | None,
    judged: Bools,
    *,
    rng: np.random.Generator,
    far: float = 2.0,
    draws: int = DRAWS,
) -> MisfitTest:
    """Ask whether the residuals of all pairs are those of votes that the fit describes.

    The statistic is the sum of the fourth powers of the residuals: it sees a
    single pair that is far off nearly as well as the largest of them would,
    and many that are a little off nearly as well as the sum of squares. A draw
    changes the sign of all that a cluster adds to the raw residuals and to the
    gradient, each cluster by its own coin, and lets the fit follow as in
    `goodness_of_fit`: what hangs together in a cluster stays together, tastes
    among it. Without clusters every vote has its own coin.

    Parameters
    ----------
    groups : Grouping or None
        Voters, as a rule; None if votes are independent.
    judged : ndarray of shape (n_pairs,), bool
        Pairs of `goodness_of_fit` that count, of those whose residual is known.
    far : float
        Residual beyond which a pair is called far.

    References
    ----------
    .. [1] P. Kline and A. Santos, "A score based approach to wild bootstrap
       inference", Journal of Econometric Methods 1(1), 2012, pp. 23-41.
    """
    whole = _Pairs.of(fit, data.merged())
    sd = whole.sd()
    judged = judged & ~np.isnan(sd)
    drawn = _drawn(fit, data, groups, whole, draws, rng)[:, judged] / sd[judged]
    seen = whole.raw[judged] / sd[judged]
    at_least = (drawn**4).sum(axis=1) >= (seen**4).sum()
    return MisfitTest(
        p=(1 + int(at_least.sum())) / (1 + draws),
        n_far=float((np.abs(drawn) > far).sum(axis=1).mean()),
    )


def _residual(fit: Fit, data: Comparisons) -> Floats:
    whole = _Pairs.of(fit, data)
    return np.asarray(whole.raw / whole.sd())


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Cells at the parameters of a fit, and the score of each pair's first model in them.

    Attributes
    ----------
    number : ndarray of shape (n_cells,), int64
        ``n_models * i + j`` of the unordered pair, i the lower.
    raw : ndarray of shape (n_cells,)
        Weighted score of the first model less what is expected.
    variance : ndarray of shape (n_cells,)
        Of one vote's score by the likelihood.
    slope : tuple of ndarray of shape (n_cells,)
        Derivatives of one vote's expected score in the local coordinates.
    """

    cells: ScoredCells
    number: Ints
    raw: Floats
    variance: Floats
    slope: tuple[Floats, ...]

    @classmethod
    def of(cls, fit: Fit, data: Comparisons) -> "_Cells":
        cells = fit.scored(data)
        a, b = cells.design.a, cells.design.b
        mean, square = np.zeros(len(a)), np.zeros(len(a))
        slope = [np.zeros(len(a)) for _ in cells.slope]
        for code, probability, local in fit.cells(data).each_outcome(fit.x):
            score = SCORE_A[code]
            mean += probability * score
            square += probability * score**2
            for total, change in zip(slope, local.slope, strict=True):
                total -= probability * score * change
        sign = np.where(a < b, 1.0, -1.0)
        return cls(
            cells,
            np.minimum(a, b) * fit.n_models + np.maximum(a, b),
            sign * data.weight * (SCORE_A[data.outcome] - mean),
            square - mean**2,
            tuple(sign * each for each in slope),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Raw residuals of all pairs that met, and how the fit follows them.

    Attributes
    ----------
    number : ndarray of shape (n_pairs,), int64
        As `_Cells` has it, sorted.
    raw, variance : ndarray of shape (n_pairs,)
    moves : ndarray of shape (n_pairs, n_parameters)
        ``D H^-``: how the expected scores follow a gradient.
    beside : ndarray of shape (n_pairs, n_parameters)
        Covariance of the raw residuals and the gradient.
    meat : ndarray of shape (n_parameters, n_parameters)
        Variance of the gradient.
    """

    number: Ints
    raw: Floats
    variance: Floats
    moves: Floats
    beside: Floats
    meat: Floats

    @classmethod
    def of(cls, fit: Fit, data: Comparisons) -> "_Pairs":
        at = _Cells.of(fit, data)
        cells = at.cells
        number, pair = np.unique(at.number, return_inverse=True)
        n = len(number)
        untied = _untied(fit, data, pair, at.variance)
        square = cells.weight_sq * untied
        by_pair = cells.design.scores(tuple(cells.weight * d for d in at.slope), pair, n)
        beside = cells.design.scores(tuple(square * d for d in at.slope), pair, n)
        return cls(
            number,
            np.bincount(pair, at.raw, n).astype(np.float64),
            np.bincount(pair, square * at.variance, n).astype(np.float64),
            by_pair @ fit.inverse_information,
            beside,
            cells.design.hessian({of: square * curve for of, curve in cells.curve.items()}),
        )

    def sd(self) -> Floats:
        """Sd of the residuals after the fit; NaN where nothing is left of them."""
        follows = ((self.moves @ self.meat - 2 * self.beside) * self.moves).sum(axis=1)
        left = self.variance + follows
        return np.sqrt(np.where(left > _EXACT * self.variance, left, np.nan))


def _untied(fit: Fit, data: Comparisons, pair: Ints, variance: Floats) -> Floats:
    """Return the part of the likelihood's variance that ties leave, one for each cell.

    Of a likelihood that knows ties it is all. A tie rate is at most what the
    expected score allows.
    """
    if len(fit.likelihood.outcomes) > 2:
        return np.ones(len(pair))
    tied = np.isin(data.outcome, np.flatnonzero(SCORE_A == 0.5))
    votes, ties = (np.bincount(pair, data.weight * one) for one in (np.ones(len(tied)), tied))
    rate = (ties + TIES_OF_ALL * ties.sum() / votes.sum()) / (votes + TIES_OF_ALL)
    rarer = (1 - np.sqrt(np.maximum(1 - 4 * variance, 0.0))) / 2  # of p and 1 - p
    return np.asarray(1 - np.minimum(rate[pair], 2 * rarer) / (4 * variance))


def _drawn(
    fit: Fit,
    data: Comparisons,
    groups: Grouping | None,
    whole: _Pairs,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw residuals after the fit, shape (draws, n_pairs)."""
    raw, gradient = np.zeros((draws, len(whole.number))), np.zeros((draws, len(fit.hessian)))
    for sign, part, cluster in _signs(data, groups, draws, rng):
        sums, scores = _summed(fit, part, cluster, sign.shape[1], whole)
        raw += sign @ sums
        gradient -= sign @ scores
    return np.asarray(raw - gradient @ whole.moves.T)


def _summed(
    fit: Fit, data: Comparisons, cluster: Ints, size: int, whole: _Pairs
) -> tuple[Any, Floats]:
    """Sum by cluster what its cells add to the raw residual of each pair, and to the gradient."""
    if is_plain(fit):
        sums = _by_pair(*_plain_residuals(fit, data), cluster, size, whole)
        return sums, np.asarray(sums @ _sides(whole, fit.n_models))
    at = _Cells.of(fit, data)
    return _by_pair(at.raw, at.number, cluster, size, whole), at.cells.scores(cluster, size)


def _by_pair(raw: Floats, number: Ints, cluster: Ints, size: int, whole: _Pairs) -> Any:
    """Sum what cells add to the residuals, shape (size, n_pairs): dense unless most are zero."""
    shape = (size, len(whole.number))
    place = np.zeros(int(whole.number[-1]) + 1, dtype=np.int64)
    place[whole.number] = np.arange(len(whole.number))
    if len(raw) > math.prod(shape) / 8:
        key = cluster * shape[1] + place[number]
        return np.bincount(key, raw, math.prod(shape)).reshape(shape)
    return scipy.sparse.csr_array((raw, (cluster, place[number])), shape=shape)


def _plain_residuals(fit: Fit, data: Comparisons) -> tuple[Floats, Ints]:
    """Return ``raw`` and ``number`` of `_Cells` where a vote moves nothing but the gap.

    Of all that a cell can be there is a table: cells may be millions.
    """
    a, b = np.indices((fit.n_models, fit.n_models))[..., None]
    number = np.minimum(a, b) * fit.n_models + np.maximum(a, b)
    off = np.where(a < b, 1.0, -1.0) * (SCORE_A - win_probability(fit.theta)[..., None])
    code = data.codes()
    return data.weight * off.ravel()[code], np.broadcast_to(number, off.shape).ravel()[code]


def _sides(whole: _Pairs, n_models: int) -> Floats:
    """Return how a raw residual enters the gradient, shape (n_pairs, n_models)."""
    pairs = np.arange(len(whole.number))
    sides = np.zeros((len(pairs), n_models))
    sides[pairs, whole.number // n_models], sides[pairs, whole.number % n_models] = -1.0, 1.0
    return sides


def _signs(
    data: Comparisons, groups: Grouping | None, draws: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Comparisons, Ints]]:
    """Yield coins of some clusters, shape (draws, n_clusters), their cells, and whose these are.

    Without clusters a cell is one, whose sign is the mean of its votes' signs.
    """
    if groups is None:
        merged = data.merged()
        votes = merged.votes.astype(np.int64)
        heads = rng.binomial(votes, 0.5, (draws, len(votes)))
        yield np.asarray(2 * heads / votes - 1, dtype=np.float64), merged, np.arange(len(votes))
        return
    order = np.argsort(groups.index.astype(narrowest(groups.size)), kind="stable")
    index = groups.index[order]
    for first in range(0, groups.size, CLUSTERS_AT_ONCE):
        last = min(first + CLUSTERS_AT_ONCE, groups.size)
        start, stop = np.searchsorted(index, [first, last])
        sign = np.where(rng.random((draws, last - first)) < 0.5, 1.0, -1.0)
        yield sign, data.subset(order[start:stop]), index[start:stop] - first


def _expected_counts(fit: Fit, data: Comparisons) -> Floats:
    """Return the expected weight of each outcome, shape (n_models, n_models, n_outcomes)."""
    counts = [
        data.table(data.weight * probability).sum(axis=-1)
        for _, probability, _ in fit.cells(data).each_outcome(fit.x)
    ]
    return np.stack(counts, axis=-1)


def _unordered(counts: Floats) -> Floats:
    """Add what happened with sides exchanged: outcomes 0 and 1 are the wins of A and B."""
    swapped = counts.transpose(1, 0, 2).copy()
    swapped[..., [0, 1]] = swapped[..., [1, 0]]
    return np.asarray(counts + swapped)
