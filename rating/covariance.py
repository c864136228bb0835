"""Covariances of a fit: inverse information, sandwich, and cluster-robust CR3 jackknife.

Three estimates of the covariance of all parameters: `hessian_covariance` from the curvature,
`sandwich_covariance` for independent votes, `jackknife` for votes in clusters, one omitted at a
time. `SignSums` changes the signs of the same shifts at random (wild bootstrap), for claims on all
pairs at once. `taste_covariance` models voter random effects instead. `activity` and
`ClusterShares` measure how evenly votes and their information are spread over clusters.
"""

import importlib.util
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rating.comparisons import Comparisons, Sums
from rating.counting import dense
from rating.errors import DataError
from rating.fitting import Fit, has_finite_fit
from rating.identification import decided_groups, strong_groups
from rating.leave_out import jackknife_factor
from rating.likelihood import (
    CHUNK_ENTRIES,
    ScoredCells,
    blocks,
    minimise,
    one_thread,
    win_probability,
)
from rating.typing import Bools, Floats, Ints

COMPILED_FROM = 1_000_000
"""Microseconds of numpy from which compiled loops pay; numpy does less, and all without numba."""
ROWS_AT_ONCE = 1 << 18
THREADS_FROM = 3_000_000
"""Cells from which threads share the clusters out; parts of votes are in threads already."""
ENTRIES_AT_ONCE = 1 << 18
DENSE_UP_TO = 1_000_000_000
"""Multiplications up to which zeros are multiplied, too: to load sparse arrays takes longer."""
_TASTE_STEPS = 50

T = TypeVar("T")

Cluster = Literal["voter", "prompt"]
KINDS: tuple[Cluster, Cluster] = ("voter", "prompt")

LARGEST = "largest"
"""Name of the weight of the largest cluster among sums."""

FEW_PROMPTS = 20
"""Prompts below which intervals that generalise over them are rough."""


# Spread of votes over voters or prompts


@dataclass(frozen=True, slots=True)
class Activity:
    """How evenly the votes are spread over clusters.

    Attributes
    ----------
    n_clusters : int
        Voters, or prompts, with a vote of positive weight.
    effective : float
        ``U / (1 + CV^2)`` of the votes per cluster, which is
        ``(sum n)^2 / sum n^2``: as many as there are when all are equally
        busy, one when a single voter cast nearly everything.
    top_share : float
        Share of all votes in the largest cluster.
    """

    n_clusters: int
    effective: float
    top_share: float


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The cluster of each cell.

    Attributes
    ----------
    index : ndarray of shape (n_cells,), int64
    size : int
        Number of clusters.
    """

    index: Ints
    size: int


def grouping(data: Comparisons, cluster: Cluster) -> Grouping:
    """Return the voter or the prompt of each cell.

    Raises
    ------
    DataError
        If they are not known.
    """
    if cluster == "voter":
        index, size, plural = data.voter, data.n_voters, "voters"
    else:
        index, size, plural = data.prompt, data.n_prompts, "prompts"
    if index is None:
        raise DataError(
            f"These comparisons carry no {plural}: pass {cluster}= when building them."
        )
    return Grouping(index.astype(np.int64, copy=False), size)


def intersection(data: Comparisons) -> Grouping:
    """Return the distinct (voter, prompt) of each cell."""
    voters, prompts = grouping(data, "voter"), grouping(data, "prompt")
    index, size = dense(voters.index * prompts.size + prompts.index)
    return Grouping(index.astype(np.int64, copy=False), size)


def activity(data: Comparisons, cluster: Cluster = "voter") -> Activity:
    """Measure how evenly the votes (by weight) are spread over voters, or prompts.

    Raises
    ------
    DataError
        If they are not known, or there are no votes.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     ["x"] * 5, ["y"] * 5, ["model_a"] * 5, voter=["ann", "ann", "ann", "bob", "cy"]
    ... )
    >>> round(activity(votes).effective, 4)  # 25 / (9 + 1 + 1)
    2.2727
    """
    return activity_from(activity_sums(data, grouping(data, cluster)))


def activity_sums(data: Comparisons, groups: Grouping) -> Sums:
    """Return what `activity_from` needs of some clusters: numbers, by name."""
    weight = np.bincount(groups.index, data.weight, groups.size)
    return {
        "clusters": np.asarray((weight > 0).sum()),
        "weight": np.asarray(weight.sum()),
        "weight_sq": np.asarray((weight**2).sum()),
        LARGEST: np.asarray(weight.max(initial=0.0)),
    }


def activity_from(sums: Sums) -> Activity:
    """Measure how evenly votes are spread over clusters, from `activity_sums` or `totals`."""
    n, weight, square, largest = (
        float(sums[name]) for name in ("clusters", "weight", "weight_sq", LARGEST)
    )
    if not weight:
        raise DataError("There are no votes to count clusters by.")
    return Activity(int(n), weight**2 / square, largest / weight)


def totals(parts: Iterable[Sums]) -> Sums:
    """Add up the arrays of each name, in the order of the parts; of `LARGEST` take the largest."""
    total: dict[str, NDArray[Any]] = {}
    for part in parts:
        for name, value in part.items():
            add = np.maximum if name == LARGEST else np.add
            total[name] = add(total[name], value) if name in total else value
    return total


def checked_activity(sums: Sums) -> Activity:
    """Return `activity_from` the sums; raises `DataError` unless two clusters voted."""
    by_cluster = activity_from(sums)
    if by_cluster.n_clusters < 2:
        raise DataError("Clustered errors need two voters (or prompts) at least; one voted.")
    return by_cluster


# Information of votes by cluster


def compiled_loops(fit: Fit, cost: int) -> ModuleType | None:
    """Return compiled loops for Bradley-Terry, where they pay and are there.

    Parameters
    ----------
    cost : int
        About how many microseconds numpy takes on a quiet core: to omit voters, one a cell.
    """
    if fit.likelihood.coordinates != ("gap",) or cost < COMPILED_FROM:
        return None
    if importlib.util.find_spec("numba") is None:
        return None
    from rating import kernels  # numba takes a third of a second to import

    return kernels


def is_plain(fit: Fit) -> bool:
    """Whether the fit has no other parameters than strengths, and a vote moves the gap alone."""
    return fit.likelihood.coordinates == ("gap",) and len(fit.x) == fit.n_models


@dataclass(frozen=True, slots=True, eq=False)
class _InOrder:
    """Cells in the order of their clusters, as the compiled loops take them.

    Attributes
    ----------
    starts : ndarray of shape (n_clusters + 1,), int64
    pairs : ndarray of shape (n_cells, 2), int32
    covariates : ndarray of shape (n_cells, n_covariates)
    score, weight : ndarray of shape (n_cells,)
    """

    starts: Ints
    pairs: NDArray[np.int32]
    covariates: Floats
    score: Floats
    weight: Floats

    @classmethod
    def of(cls, fit: Fit, data: Comparisons, groups: Grouping) -> "_InOrder":
        """Sort the cells, unless they are."""
        n = len(groups.index)
        starts = np.r_[0, np.cumsum(np.bincount(groups.index, minlength=groups.size))]
        order: Ints | slice = slice(None)
        if (groups.index[1:] < groups.index[:-1]).any():
            import scipy

            at = (groups.index, np.arange(n))  # rows of a sparse array are sorted by counting
            order = scipy.sparse.csr_array((np.ones(n, dtype=np.int8), at)).indices
        pairs = np.ascontiguousarray(data.pairs[order], dtype=np.int32)
        features = np.empty((n, 0)) if data.features is None else data.features[order]
        covariates = np.hstack([np.ones((n, int(fit.order_effect))), features])
        return cls(starts, pairs, covariates, data.score_a[order], data.weight[order])

    def along(self, fit: Fit, vectors: Floats) -> tuple[NDArray[Any], ...]:
        """Return what the loops need, after the ``starts``, to look along some vectors."""
        cells = (self.pairs, self.covariates, self.weight, win_probability(fit.theta))
        return (*cells, fit.x[fit.n_models :], np.ascontiguousarray(vectors))

    def each(self, work: Callable[[int, Ints], T]) -> Iterator[T]:
        """Call a function with the first cluster of each of some parts, and its ``starts``.

        In threads, if there are many; the parts, and so the rounding of sums over them, do not
        depend on how many.
        """
        step = max(ROWS_AT_ONCE, len(self.pairs) // 16)
        bounds = np.arange(0, len(self.pairs) + step, step)
        at = np.unique(np.searchsorted(self.starts, bounds).clip(max=len(self.starts) - 1))
        parts = [self.starts[i : j + 1] for i, j in itertools.pairwise(at)]
        firsts = at[:-1].tolist()
        if len(self.pairs) < THREADS_FROM:
            yield from map(work, firsts, parts)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor() as pool:
            yield from pool.map(work, firsts, parts)


def squared_information(fit: Fit, data: Comparisons, groups: Grouping, vectors: Floats) -> Floats:
    """Sum the squares of `information_by_cluster` over the clusters, shape (m,)."""
    loops = compiled_loops(fit, len(groups.index))
    if loops is not None:
        ordered = _InOrder.of(fit, data, groups)
        args = ordered.along(fit, vectors)
        parts = ordered.each(lambda _, starts: loops.information_squared(starts, *args))
        return sum(parts, np.zeros(vectors.shape[1]))
    square = np.zeros(vectors.shape[1])
    for share in information_by_cluster(fit, data, groups, vectors):
        square += (share**2).sum(axis=0)
    return square


def information_by_cluster(
    fit: Fit, data: Comparisons, groups: Grouping, vectors: Floats
) -> Iterator[Floats]:
    """Yield ``v' H_c v`` of every cluster c, as many at a time as the cache holds.

    Parameters
    ----------
    vectors : ndarray of shape (n_parameters, m)

    Yields
    ------
    ndarray of shape (some clusters, m)
    """
    loops = compiled_loops(fit, len(groups.index))
    if loops is not None:
        ordered = _InOrder.of(fit, data, groups)
        args = ordered.along(fit, vectors)
        at_once = max(1, ENTRIES_AT_ONCE // vectors.shape[1])
        for first in range(0, groups.size, at_once):
            yield loops.information_along(ordered.starts[first : first + at_once + 1], *args)
        return
    if is_plain(fit):
        yield from _information_of_pairs(fit, data, groups, vectors)
        return
    order = np.argsort(groups.index, kind="stable")
    index = groups.index[order]
    at_once = max(1, ENTRIES_AT_ONCE // vectors.shape[1])
    open_sum, last = np.zeros((1, vectors.shape[1])), -1
    for first in range(0, len(order), CHUNK_ENTRIES):
        rows = order[first : first + CHUNK_ENTRIES]
        cells = fit.scored(data.subset(rows))
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            own = index[first + start : first + min(start + at_once, len(rows))]
            starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
            sums = np.add.reduceat(cells.rows(part).information_along(vectors), starts, axis=0)
            if own[0] == last:
                sums[0] += open_sum[0]
            elif last >= 0:
                yield open_sum
            yield sums[:-1]
            open_sum, last = sums[-1:], int(own[-1])
    yield open_sum


def _information_of_pairs(
    fit: Fit, data: Comparisons, groups: Grouping, vectors: Floats
) -> Iterator[Floats]:
    """Yield the same where the information of a vote is that of its pair: Bradley-Terry alone."""
    met = data.table().sum(axis=-1)
    first, second = np.nonzero(np.triu(met + met.T))
    place = np.zeros(met.shape, dtype=np.int32)
    place[first, second] = place[second, first] = np.arange(len(first))
    probability = 1 / (1 + np.exp(fit.theta[second] - fit.theta[first]))
    of_pair = vectors[first] - vectors[second]
    of_pair *= of_pair
    of_pair *= (probability * (1 - probability))[:, None]
    order = np.argsort(groups.index, kind="stable")
    index = groups.index[order]
    dense = groups.size * of_pair.size <= DENSE_UP_TO
    at_once = max(1, CHUNK_ENTRIES // max(1, len(first) if dense else vectors.shape[1]))
    for start in range(0, groups.size, at_once):
        stop = min(start + at_once, groups.size)
        rows = order[slice(*np.searchsorted(index, [start, stop]))]
        own, pair = groups.index[rows] - start, place[*data.pairs[rows].T]
        shape = (stop - start, len(first))
        if dense:
            sums = np.bincount(own * len(first) + pair, data.weight[rows], math.prod(shape))
            yield sums.reshape(shape) @ of_pair
        else:
            import scipy

            yield scipy.sparse.csr_array((data.weight[rows], (own, pair)), shape=shape) @ of_pair


@dataclass(frozen=True, slots=True, eq=False)
class ClusterShares:
    """The information of clusters on each parameter by itself.

    Of a model that is its distance from the average of all, each weighed by its information: a
    model that hardly anybody met does not enter into that of the others.

    Attributes
    ----------
    shared : ndarray of shape (n_parameters, n_parameters)
        ``sum_c h_c(i) h_c(j)``.
    effective : ndarray of shape (n_parameters,)
    """

    shared: Floats
    effective: Floats

    @classmethod
    def of(cls, fit: Fit, shared: Floats) -> "ClusterShares":
        """Count the effective clusters of each parameter."""
        total = (_contrasts_of_parameters(fit).T * vectors_of_parameters(fit)).sum(axis=0)
        return cls(shared, effective_number(total, np.diag(shared)))


def _contrasts_of_parameters(fit: Fit) -> Floats:
    k, contrasts = fit.n_models, np.eye(len(fit.x))
    if not fit.absolute:
        known = np.diag(fit.hessian)[:k]
        contrasts[:k, :k] -= known / known.sum()
    return contrasts


def vectors_of_parameters(fit: Fit) -> Floats:
    """Return ``H^- c`` of the contrast of each parameter, shape (n_parameters, n_parameters)."""
    return fit.inverse_information @ _contrasts_of_parameters(fit).T


def effective_number(total: Floats, square: Floats) -> Floats:
    """Return the square of each sum over its sum of squares; 0 where that is zero."""
    return np.asarray(np.divide(total**2, square, out=np.zeros_like(total), where=square > 0))


# Voter random effects


def taste_covariance(fit: Fit, parts: Iterable[Sums]) -> Floats:
    """Return the covariance of the parameters if every cluster had a random effect of its own.

    A random effect adds to the strengths, for one cluster, independent normal numbers of variance
    ``tau^2``. To first order the score of cluster c then has the variance::

        H_c + tau^2 (H_c^2 - sum_i H_i^2)

    its own votes' spread, and what the random effect adds to pairs of its votes. ``tau^2`` is
    fitted to the products of scores of different votes of one cluster, whose means are those of
    the second term: each cluster weighs one over the variance of its own.

    Parameters
    ----------
    parts : iterable of mapping
        From `taste_sums`.
    """
    bread, sums = fit.inverse_information, totals(parts)
    variance = _taste_variance(sums["products"], sums["expected"])
    return np.asarray(bread @ (sums["plain"] + variance * sums["taste"]) @ bread)


def taste_sums(data: Comparisons, *, fit: Fit, cluster: Cluster) -> Sums:
    """Return what `taste_covariance` needs of some clusters.

    Returns
    -------
    mapping of str to ndarray
        ``plain`` and ``taste`` of shape (n_parameters, n_parameters), and ``products`` and
        ``expected`` of `_by_ratio`, all of them summed over clusters.
    """
    groups = grouping(data, cluster)
    k, size = fit.n_models, len(fit.x)
    plain, taste = np.zeros((size, size)), np.zeros((size, size))
    products, expected, scale = (np.zeros(groups.size) for _ in range(3))
    order = np.argsort(groups.index, kind="stable")
    index = groups.index[order]
    at_once = max(1, CHUNK_ENTRIES // (k * 4))
    for first in range(0, groups.size, at_once):
        last = min(first + at_once, groups.size)
        start, stop = np.searchsorted(index, [first, last])
        cells = fit.scored(data.subset(order[start:stop]))
        own, n = index[start:stop] - first, last - first
        gap = cells.design.coordinates.index("gap")
        curve = cells.curve[gap, gap]
        pulled = _pulled_together(cells, own, n, gap)
        moved = 2.0 * (cells.design.a != cells.design.b)  # moved apart
        alone = moved * cells.weight_sq * curve**2
        plain += cells.design.hessian({(gap, gap): cells.weight_sq * curve})
        taste += (pulled.T @ pulled).toarray() - cells.design.hessian({(gap, gap): alone})
        score = cells.scores(own, n)[:, :k]
        spread = moved * cells.weight_sq * cells.slope[gap] ** 2
        part = slice(first, last)
        products[part] = (score**2).sum(axis=1) - np.bincount(own, spread, n)
        square = np.asarray(pulled[:, :k].multiply(pulled[:, :k]).sum(axis=1)).ravel()
        square = square.reshape(n, k).sum(axis=1)
        expected[part] = square - np.bincount(own, 2 * alone, n)
        scale[part] = np.bincount(own, moved * cells.weight * curve, n)
    products, expected = _by_ratio(products, expected, scale)
    return {"plain": plain, "taste": taste, "products": products, "expected": expected}


def _pulled_together(cells: ScoredCells, own: Ints, n: int, gap: int) -> Any:
    """Return ``H_c`` of every cluster, one below the other, as a sparse array.

    Its shape is (n * n_models, n_parameters); rows are the strengths that a random effect moves.
    """
    import scipy

    design, k = cells.design, cells.design.n_models
    value = cells.weight * cells.curve[gap, gap]
    a, b = own * k + design.a, own * k + design.b
    rows = [a, a, b, b]
    columns = [design.a, design.b, design.a, design.b]
    values = [value, -value, -value, value]
    for column in range(design.n_covariates):
        moved = value * design.covariates[:, column]
        rows += [a, b]
        columns += [np.full(len(a), k + column)] * 2
        values += [moved, -moved]
    at = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_array((np.concatenate(values), at), shape=(n * k, design.n_parameters))


RATIOS = (-16.0, 16.0)
"""Logarithms of the random-effect part of a variance over the rest, and parts of each unit."""
PER_UNIT = 512


def _by_ratio(products: Floats, expected: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Sum over clusters of nearly the same ratio ``expected / scale``, four moments of each.

    So a part of the votes gives as many numbers as any other, however many clusters it has.

    Returns
    -------
    (ndarray, ndarray), each of shape (n_ratios, 4)
        Of the products and of what is expected, times ``(ratio / centre - 1)`` to the power of
        0 to 3: with these, a sum over clusters weighed by ratio is right to 1e-11.
    """
    ratio = np.divide(expected, scale, out=np.zeros_like(scale), where=scale > 0)
    # Clusters of one vote have a ratio of zero, or of rounding below the least.
    used = (ratio > np.exp(RATIOS[0])) & (ratio < np.exp(RATIOS[1]))
    ratio, centres = ratio[used], _centres()
    place = ((np.log(ratio) - RATIOS[0]) * PER_UNIT).astype(np.int64).clip(max=len(centres) - 1)
    off = ratio / centres[place] - 1

    def moments(value: Floats) -> Floats:
        sums = [np.bincount(place, value[used] * off**power, len(centres)) for power in range(4)]
        return np.column_stack(sums).astype(np.float64, copy=False)

    return moments(products), moments(expected)


def _centres() -> Floats:
    n = int((RATIOS[1] - RATIOS[0]) * PER_UNIT)
    return np.exp(RATIOS[0] + (np.arange(n) + 0.5) / PER_UNIT)


def _taste_variance(products: Floats, expected: Floats) -> float:
    """Fit the variance of random effects to the products of scores, each cluster by its precision.

    A cluster weighs ``(1 + variance * ratio)^-2``, which is expanded about each centre.
    """
    variance, centres = 0.0, _centres()
    for _ in range(_TASTE_STEPS):
        slope = variance * centres / (1 + variance * centres)
        powers = np.column_stack([slope**0, -2 * slope, 3 * slope**2, -4 * slope**3])
        weight = powers / (1 + variance * centres)[:, None] ** 2
        seen, total = float((weight * products).sum()), float((weight * expected).sum())
        before, variance = variance, max(0.0, seen / total) if total else 0.0
        if abs(variance - before) <= 1e-10 * max(variance, 1e-10):
            break
    return variance


# Covariances of the parameters


REFIT_LEVERAGE = 0.5
_MAX_ROUNDS = 40


@one_thread
def hessian_covariance(fit: Fit) -> Floats:
    """Return the inverse information: valid if the model is, too wide under half-win ties.

    Returns
    -------
    ndarray of shape (n_models + n_free, n_models + n_free)
        Strengths in squared nats, then the free parameters on the scale they
        are optimised in. Rows sum to zero over the strengths, as for every
        covariance here, unless their scale is absolute. Read a difference,
        ``V[i, i] + V[j, j] - 2 * V[i, j]``.

    Examples
    --------
    Twelve votes split evenly carry 12 / 4 units of information on the gap.

    >>> from rating import Comparisons, fit_bradley_terry
    >>> sides = ["model_a", "model_b"] * 6
    >>> fit = fit_bradley_terry(Comparisons.from_arrays(["x"] * 12, ["y"] * 12, sides))
    >>> v = hessian_covariance(fit)
    >>> round(float(v[0, 0] + v[1, 1] - 2 * v[0, 1]), 6)  # 1 / 3
    0.333333
    """
    return fit.inverse_information


@one_thread
def sandwich_covariance(fit: Fit, data: Comparisons) -> Floats:
    """Estimate the sandwich covariance for independent votes.

    ``H^- G H^-`` with ``G = sum_i weight_i^2 s_i s_i'``, s the gradient of one
    vote's negative log-likelihood, plus `_bare_tie_meat`.

    References
    ----------
    .. [1] H. White, "Maximum likelihood estimation of misspecified models",
       Econometrica 50(1), 1982, pp. 1-25.
    """
    bread = fit.inverse_information
    merged = data.merged()
    meat = _bare_tie_meat(fit, merged)
    for cells in _blocks_of_cells(fit, merged):
        meat += cells.vote_meat()
    return bread @ meat @ bread


def _blocks_of_cells(fit: Fit, data: Comparisons) -> Iterator[ScoredCells]:
    """Evaluate every cell, as many at a time as the processor's cache holds."""
    for rows in blocks(len(data.votes)):
        yield fit.scored(data.subset(rows))


def _bare_tie_meat(fit: Fit, data: Comparisons) -> Floats:
    """Return what the model says of ties that alone join two groups of models.

    Such ties fit almost perfectly, so their residuals show no spread and the
    distance between the groups would seem certain. They enter with the
    variance that the model gives the gradient in the gap of such a vote:
    under half wins that of a decided vote, ``weight_i^2 P_i (1 - P_i)``.
    With an absolute zero such votes do show a spread; nothing is added.
    """
    n_parameters = len(fit.hessian)
    group = decided_groups(data)
    a, b = data.pairs.T
    joined_by_ties = group[a] != group[b]
    if fit.absolute or not joined_by_ties.any():
        return np.zeros((n_parameters, n_parameters))
    bare = data.subset(joined_by_ties)
    cells = fit.cells(bare)
    expected = np.zeros(len(bare.outcome))
    for _, probability, local in cells.each_outcome(fit.x):
        expected = expected + probability * local.slope[0] ** 2
    return cells.design.hessian({(0, 0): bare.weight_sq * expected})


def difference_variances(covariance: Floats) -> Floats:
    """Return ``V_ii + V_jj - 2 V_ij``, shape (n_models, n_models), zero on the diagonal."""
    variance = np.diag(covariance)
    return np.asarray(variance[:, None] + variance - 2 * covariance)


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Some clusters and how far the parameters move without each.

    Attributes
    ----------
    clusters : ndarray of shape (n,), int64
    shift : ndarray of shape (n, n_models + n_free)
    share : ndarray of shape (n,)
        Of the information: ``trace(H^- H_c)`` over its sum, one for all clusters.
    stranded : bool
        Whether the votes without them leave some model unconnected.
    """

    clusters: Ints
    shift: Floats
    share: Floats
    stranded: bool


def jackknife(
    fit: Fit, data: Comparisons, groups: Grouping, shifts: "SignSums | None" = None
) -> tuple[Floats, Floats]:
    """Estimate the covariance by the CR3 jackknife over clusters.

    ``(U - 1) / U * sum_c d_c d_c'``, where ``d_c`` is how far the parameters
    move without cluster c: by an exact refit for the clusters of leverage
    ``trace(H^- H_c) >= 1/2`` (there are at most twice as many as free
    parameters), by one Newton step with the remaining Hessian,
    ``(H - H_c)^- s_c``, for the rest. A step also stands in where the votes
    without c have no finite fit.

    Two directions in which clusters show no spread are filled in as if votes
    were independent: ties that alone join two groups (see
    `_bare_tie_meat`), and the votes of a cluster that alone
    joins models to the rest.

    Parameters
    ----------
    shifts : SignSums, optional
        Is given every cluster's shift on the way: one pass serves both.

    Returns
    -------
    ndarray of shape (n_models + n_free, n_models + n_free)
        As `hessian_covariance` returns it.
    ndarray of shape (n_clusters,)
        How far the strengths move without each cluster, squared.

    Raises
    ------
    DataError
        If fewer than two clusters have a vote of positive weight.

    References
    ----------
    .. [1] R. M. Bell and D. F. McCaffrey, "Bias reduction in standard errors
       for linear regression with multi-stage samples", Survey Methodology
       28(2), 2002, pp. 169-181.
    .. [2] J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, "Fast and reliable
       jackknife and bootstrap methods for cluster-robust inference", Journal
       of Applied Econometrics 38(5), 2023, pp. 671-694.
    """
    u = checked_activity(activity_sums(data, groups)).n_clusters
    whole = data.merged()
    spread, meat, lengths = left_out_sums(fit, data, groups, whole, shifts)
    return jackknife_of(fit, whole, u, spread, meat), lengths


def jackknife_of(fit: Fit, whole: Comparisons, u: int, spread: Floats, meat: Floats) -> Floats:
    """Return the covariance of `jackknife` from the sums over its u clusters."""
    bread = fit.inverse_information
    return jackknife_factor(u) * spread + bread @ (_bare_tie_meat(fit, whole) + meat) @ bread


def left_out_sums(
    fit: Fit,
    data: Comparisons,
    groups: Grouping,
    whole: Comparisons,
    shifts: "SignSums | None" = None,
    *,
    measured: bool = True,
) -> tuple[Floats, Floats, Floats]:
    """Omit each cluster of some votes, which may be a part of the whole.

    Parameters
    ----------
    whole : Comparisons
        All votes, merged.
    measured : bool
        Whether the lengths are wanted; without, some are zero.

    Returns
    -------
    ndarray of shape (n_models + n_free, n_models + n_free)
        Sum of ``d_c d_c'``.
    ndarray of shape (n_models + n_free, n_models + n_free)
        Sum of the squared scores of votes that alone join models to the rest.
    ndarray of shape (n_clusters,)
        Lengths, as of `jackknife`.
    """
    bread, k = fit.inverse_information, fit.n_models
    lengths, meat = np.zeros(groups.size), np.zeros_like(bread)
    loops = compiled_loops(fit, len(groups.index)) if shifts is None else None
    if loops is not None:
        spread, leverage = _light_at_once(loops, fit, data, groups, lengths if measured else None)
        done = leverage < REFIT_LEVERAGE
    else:
        leverage, done = _leverage(fit, data, groups, bread), np.zeros(groups.size, dtype=bool)
        if shifts is None and fit.likelihood.coordinates == ("gap",):
            done = (np.bincount(groups.index, minlength=groups.size) == 1) & (
                leverage < REFIT_LEVERAGE
            )
        spread = _of_lone_cells(fit, data, groups, bread, done, lengths)
    for left_out in _leave_out_each(fit, data, groups, whole, leverage, ~done):
        spread += left_out.shift.T @ left_out.shift
        lengths[left_out.clusters] = (left_out.shift[:, :k] ** 2).sum(axis=1)
        if shifts is not None:
            shifts.add(left_out)
        if left_out.stranded:
            own = data.subset(np.isin(groups.index, left_out.clusters))
            meat += fit.scored(own).vote_meat()
    return spread, meat, lengths


def _light_at_once(
    loops: ModuleType, fit: Fit, data: Comparisons, groups: Grouping, lengths: Floats | None
) -> tuple[Floats, Floats]:
    """Sum the squares of the shifts of light clusters; also return everybody's leverage."""
    bread, cells, k = fit.inverse_information, _InOrder.of(fit, data, groups), fit.n_models
    probability, leverage = win_probability(fit.theta), np.zeros(groups.size)
    squared = np.empty((0, 0)) if lengths is None else bread[:, :k] @ bread[:k]
    lengths = np.empty(groups.size) if lengths is None else lengths

    def work(first: int, starts: Ints) -> Floats:
        meat, own = np.zeros_like(bread), slice(first, first + len(starts) - 1)
        loops.leave_out_light(
            starts,
            cells.pairs,
            cells.covariates,
            cells.score,
            cells.weight,
            probability,
            fit.x[k:],
            bread,
            squared,
            REFIT_LEVERAGE,
            meat,
            leverage[own],
            lengths[own],
        )
        return meat

    half = sum(cells.each(work), np.zeros_like(bread))
    return bread @ (half + half.T) @ bread, leverage


def _of_lone_cells(
    fit: Fit, data: Comparisons, groups: Grouping, bread: Floats, alone: Bools, lengths: Floats
) -> Floats:
    """Sum the squares of the shifts of clusters with one cell, and note their lengths.

    Where a vote moves the gap alone, ``H_c = q x x'`` and ``s_c = s x``, so that
    ``(H - H_c)^- s_c = H^- x s / (1 - q x' H^- x)``: no step is repeated.
    """
    k, spread = fit.n_models, np.zeros_like(bread)
    of_strengths = bread[:, :k] @ bread[:k]
    cells_alone = np.flatnonzero(alone[groups.index])
    for part in blocks(len(cells_alone)):
        rows = cells_alone[part]
        cells = fit.scored(data.subset(rows))
        leverage = cells.weight * cells.curve[0, 0] * cells.design.inner(bread, 0, 0)
        square = (cells.weight * cells.slope[0] / (1 - leverage)) ** 2
        spread += cells.design.hessian({(0, 0): square})
        lengths[groups.index[rows]] = square * cells.design.inner(of_strengths, 0, 0)
    return np.asarray(bread @ spread @ bread)


def leave_one_out(fit: Fit, data: Comparisons, groups: Grouping) -> Iterator[LeftOut]:
    """Yield every cluster once, excluded as `jackknife` does.

    By one step those of little leverage, as many at a time as fit in memory,
    and by a refit each of the others.

    Raises
    ------
    DataError
        If fewer than two clusters have a vote of positive weight.
    """
    checked_activity(activity_sums(data, groups))
    bread = fit.inverse_information
    leverage = _leverage(fit, data, groups, bread)
    everybody = np.ones(groups.size, dtype=bool)
    yield from _leave_out_each(fit, data, groups, data.merged(), leverage, everybody)


def _leave_out_each(
    fit: Fit,
    data: Comparisons,
    groups: Grouping,
    whole: Comparisons,
    leverage: Floats,
    wanted: Bools,
) -> Iterator[LeftOut]:
    """Yield the clusters that are wanted, excluded."""
    bread, share = fit.inverse_information, leverage / (leverage.sum() or 1.0)
    light = wanted & (leverage < REFIT_LEVERAGE)
    for clusters, shift in _light_shifts(fit, data, groups, bread, leverage, light):
        yield LeftOut(clusters, shift, share[clusters], stranded=False)
    heavy = np.flatnonzero(wanted & (leverage >= REFIT_LEVERAGE))
    for cluster in heavy:
        shift, stranded = _leave_out(fit, without(data, whole, groups.index == cluster))
        at = np.array([cluster])
        yield LeftOut(at, shift[None], share[at], stranded)


def _leverage(fit: Fit, data: Comparisons, groups: Grouping, bread: Floats) -> Floats:
    """Return ``trace(H^- H_c)`` of each cluster; they sum to the free parameters."""
    reach, first = np.zeros(len(groups.index)), 0
    for cells in _blocks_of_cells(fit, data):
        part = reach[first : first + len(cells.weight)]
        for (c, d), value in cells.curve.items():
            twice = 1.0 if c == d else 2.0
            part += twice * cells.weight * value * cells.design.inner(bread, c, d)
        first += len(part)
    return np.asarray(np.bincount(groups.index, reach, groups.size), dtype=np.float64)


def _light_shifts(
    fit: Fit, data: Comparisons, groups: Grouping, bread: Floats, leverage: Floats, wanted: Bools
) -> Iterator[tuple[Ints, Floats]]:
    """Yield clusters of little leverage and their one-step shifts, as many as fit in memory.

    Clusters are taken in the order of their leverage: those that matter less
    need fewer rounds.
    """
    light = np.flatnonzero(wanted)
    light = light[np.argsort(leverage[light], kind="stable")]
    place = np.full(groups.size, len(light))
    place[light] = np.arange(len(light))
    first = 0
    for index, rows, n_clusters in _chunks(place[groups.index], len(light), len(bread)):
        chosen = light[first : first + n_clusters]
        cells = fit.scored(data.subset(rows))
        yield chosen, _one_step(bread, cells, index, leverage[chosen])
        first += n_clusters


def _chunks(index: Ints, size: int, n_parameters: int) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield the clusters in their order, as many at a time as fit in memory."""
    order = np.argsort(index, kind="stable")
    in_order = index[order]
    per_chunk = max(1, CHUNK_ENTRIES // n_parameters)
    for first in range(0, size, per_chunk):
        last = min(first + per_chunk, size)
        start, stop = np.searchsorted(in_order, [first, last])
        yield in_order[start:stop] - first, order[start:stop], last - first


def _one_step(bread: Floats, cells: ScoredCells, cluster: Ints, leverage: Floats) -> Floats:
    """Solve ``(H - H_c) d_c = s_c`` for many clusters by ``d <- H^- (s + H_c d)``.

    The gradient at the optimum sums to zero, so without c the slope is minus
    that of c. Every round multiplies the error by the leverage, under 1/2, at
    most; so the change of a round foretells what those after it would add.
    """
    shift = first = cells.scores(cluster, len(leverage)) @ bread
    close = 1e-9 * np.abs(first).max(initial=0.0)
    ahead = leverage.max(initial=0.0) / (1 - leverage.max(initial=0.0))
    curve = {at: cells.weight * value for at, value in cells.curve.items()}
    for _ in range(_MAX_ROUNDS):
        previous = shift
        shift = first + cells.design.curvature_along(curve, shift, cluster) @ bread
        if ahead * np.abs(shift - previous).max(initial=0.0) <= close:
            break
    return shift


def without(data: Comparisons, whole: Comparisons, out: Bools) -> Comparisons:
    """Take some cells out of all votes, without voters and prompts.

    ``whole`` is ``data.merged()``, which a caller with many questions makes once.
    """
    if data.features is not None:
        return whole.subset(~out)
    gone = data.subset(out)
    votes = (whole.table(whole.votes) - gone.table(gone.votes))[*whole.pairs.T, whole.outcome]
    weight = whole.weight - gone.table()[*whole.pairs.T, whole.outcome]
    left = votes > 0  # counts are exact, sums of weights are not
    return replace(whole.subset(left), votes=votes[left].astype(np.int64), weight=weight[left])


def _leave_out(fit: Fit, rest: Comparisons) -> tuple[Floats, bool]:
    """Return how the parameters move without one cluster, and whether that strands a model."""
    problem = fit.objective(rest)
    if has_finite_fit(fit, rest):
        return minimise(problem, fit.x).x - fit.x, False
    at = problem.evaluate(fit.x)
    shift = -np.linalg.pinv(at.hessian, rcond=1e-9, hermitian=True) @ at.gradient
    met = rest.wins()
    connected = strong_groups(met + met.T > 0)
    return np.asarray(shift), bool((connected != connected[0]).any())


# Wild bootstrap of the largest statistic


DRAWS = 999
WILD_UP_TO = 100
"""Models beyond which the maximum is drawn from a multivariate t, as in `rating.ranks`."""
SIGNS_UP_TO = 20_000
"""Effective clusters beyond which it is, too: such sums are normal whatever their signs."""
CLUSTERS_AT_ONCE = 2000
CHUNK = 1_000_000


class SignSums:
    """What the largest statistic needs of the clusters, summed as each is excluded.

    The score of cluster c at the fit, ``s_c``, is too small where c has pulled
    the fit to itself; ``z_c = (I - H_c H^-)^-1 s_c`` undoes that. A draw
    gives every cluster the score ``e_c z_c``, ``e_c`` +1 or -1, and keeps the
    fit as the truth. One Newton step from there::

        delta = sum_c H^- e_c z_c = sum_c e_c d_c

    where ``d_c = (H - H_c)^- s_c = H^- z_c`` is how far the parameters move
    without c. Estimating delta projects the scores: at the new fit that of c
    is ``e_c z_c - H_c delta``, and leaving c out there moves the parameters by
    ``(H - H_c)^-`` times that. With ``H_c = w_c H``, w_c the cluster's share
    of the information, this is ``(e_c d_c - w_c delta) / (1 - w_c)``. So, for
    the contrast a_c of d_c between two models and N of delta::

        T = |N| / sqrt((U - 1) / U sum_c (e_c a_c - w_c N)^2 / (1 - w_c)^2)

    the same statistic as the leaderboard's, whose squared error is
    ``(U - 1) / U sum_c a_c^2`` (CR3); `DRAWS` draws of its maximum over pairs. Noise beside the
    clusters is of known size, so all scores are multiplied by ``sqrt((U - 1) / U)``: then N varies
    as CR3 has it.

    Where we deviate: the literature tests one contrast at a time, and has no
    need of ``H_c = w_c H``. With each cluster's own H_c the bar is 0.3 to 0.4 %
    higher on the board of 10 models and 200 uneven voters that
    docs/evidence.md calls D1.

    References
    ----------
    .. [1] P. Kline and A. Santos, "A score based approach to wild bootstrap
       inference", Journal of Econometric Methods 1(1), 2012, pp. 23-41.
    .. [2] J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, "Fast and reliable
       jackknife and bootstrap methods for cluster-robust inference", Journal
       of Applied Econometrics 38(5), 2023, pp. 671-694 (the scores z_c: their
       bootstrap "S").
    """

    def __init__(self, n_models: int, rng: np.random.Generator, draws: int = DRAWS) -> None:
        self._rng = rng
        self.clusters = 0
        self.spread = np.zeros((n_models, n_models))  # sum d d'
        self.widened = np.zeros((n_models, n_models))  # sum d d' / (1 - w)^2
        self.delta = np.zeros((draws, n_models))  # sum e d
        self.crossed = np.zeros((draws, n_models))  # sum e d w / (1 - w)^2
        self.projected = 0.0  # sum w^2 / (1 - w)^2

    def add(self, left_out: LeftOut) -> None:
        """Give every cluster a sign in every draw."""
        k = len(self.spread)
        for first in range(0, len(left_out.clusters), CLUSTERS_AT_ONCE):
            part = slice(first, first + CLUSTERS_AT_ONCE)
            shift, share = left_out.shift[part, :k], left_out.share[part]
            widening = 1 / (1 - np.minimum(share, 1 - 1e-9)) ** 2
            sign = self._rng.integers(2, size=(len(self.delta), len(share))) * 2.0 - 1.0
            self.clusters += int((share > 0).sum())
            self.spread += shift.T @ shift
            self.widened += (shift.T * widening) @ shift
            self.delta += sign @ shift
            self.crossed += sign @ (shift * (share * widening)[:, None])
            self.projected += float((share**2 * widening).sum())

    def critical_value(
        self, covariance: Floats, pairs: tuple[Ints, Ints], *, level: float = 0.95
    ) -> float:
        """Return the quantile of the largest absolute t statistic over some pairs of models.

        Parameters
        ----------
        covariance : ndarray of shape (n_models, n_models)
            CR3 of the strengths with these clusters, see `jackknife`. What it
            holds beside the clusters (ties that alone join two groups, see
            `_bare_tie_meat`) enters as independent normal noise of
            known variance.
        pairs : (ndarray, ndarray)
            Positions of the two models of each pair. Without a pair the value is infinite.
        """
        if not len(pairs[0]):
            return np.inf
        largest = np.sort(self._largest(covariance, pairs))
        draws = len(largest)
        return float(largest[min(int(np.ceil(level * (draws + 1))), draws) - 1])

    def _largest(self, covariance: Floats, pairs: tuple[Ints, Ints]) -> Floats:
        first, second = pairs
        shrink = jackknife_factor(self.clusters)
        beside = covariance - shrink * self.spread
        noise = _noise(beside, np.abs(covariance).max(), len(self.delta), self._rng)
        own = shrink**2 * difference_variances(self.widened)[first, second]
        known = difference_variances(beside)[first, second].clip(min=0)
        parts = []
        for rows in np.array_split(np.arange(len(noise)), -(-len(noise) * len(own) // CHUNK)):
            delta, crossed, extra = (
                each[rows][:, first] - each[rows][:, second]
                for each in (self.delta, self.crossed, noise)
            )
            square = own + shrink**2 * delta * (delta * self.projected - 2 * crossed) + known
            reach, error = np.sqrt(shrink) * delta + extra, np.sqrt(square.clip(min=0))
            ratio = np.divide(np.abs(reach), error, out=np.zeros_like(reach), where=error > 0)
            parts.append(ratio.max(axis=1))
        return np.concatenate(parts)


def _noise(beside: Floats, scale: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw normal vectors of this covariance; zeros where it is rounding."""
    values, vectors = np.linalg.eigh(beside)
    if values[-1] <= 1e-9 * scale:
        return np.zeros((draws, len(beside)))
    return np.asarray(
        rng.standard_normal((draws, len(beside))) @ (vectors * np.sqrt(values.clip(min=0))).T
    )
