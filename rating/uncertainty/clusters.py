"""How evenly votes, and what they tell of a contrast, are spread over voters or prompts."""

import importlib.util
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeVar

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from rating.comparisons import Comparisons, Sums
from rating.counting import dense
from rating.errors import DataError
from rating.fitting import Fit
from rating.likelihood.design import CHUNK_ENTRIES
from rating.likelihood.objective import ScoredCells, win_probability
from rating.typing import Floats, Ints

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
    return activity_of(data, grouping(data, cluster))


def activity_of(data: Comparisons, groups: Grouping) -> Activity:
    """Measure how evenly the votes (by weight) are spread over any clusters."""
    return activity_from(activity_sums(data, groups))


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


def checked_activity(data: Comparisons, groups: Grouping) -> Activity:
    """Return the activity of the clusters; raises `DataError` unless two of them voted."""
    return require_two(activity_of(data, groups))


def require_two(by_cluster: Activity) -> Activity:
    """Give the activity back; raises `DataError` unless two clusters voted."""
    if by_cluster.n_clusters < 2:
        raise DataError("Clustered errors need two voters (or prompts) at least; one voted.")
    return by_cluster


def compiled_loops(fit: Fit, cost: int) -> ModuleType | None:
    """Return compiled loops for Bradley-Terry, where they pay and are there.

    Parameters
    ----------
    cost : int
        About how many microseconds numpy takes on a quiet core: to leave out voters, one a cell.
    """
    if fit.likelihood.coordinates != ("gap",) or cost < COMPILED_FROM:
        return None
    if importlib.util.find_spec("numba") is None:
        return None
    from rating.uncertainty import kernels  # numba takes a third of a second to import

    return kernels


def is_plain(fit: Fit) -> bool:
    """Whether the fit has no other parameters than strengths, and a vote moves the gap alone."""
    return fit.likelihood.coordinates == ("gap",) and len(fit.x) == fit.n_models


@dataclass(frozen=True, slots=True, eq=False)
class InOrder:
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
    def of(cls, fit: Fit, data: Comparisons, groups: Grouping) -> "InOrder":
        """Sort the cells, unless they are."""
        n = len(groups.index)
        starts = np.r_[0, np.cumsum(np.bincount(groups.index, minlength=groups.size))]
        order: Ints | slice = slice(None)
        if (groups.index[1:] < groups.index[:-1]).any():
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
        with ThreadPoolExecutor() as pool:
            yield from pool.map(work, firsts, parts)


def squared_information(fit: Fit, data: Comparisons, groups: Grouping, vectors: Floats) -> Floats:
    """Sum the squares of `information_by_cluster` over the clusters, shape (m,)."""
    loops = compiled_loops(fit, len(groups.index))
    if loops is not None:
        ordered = InOrder.of(fit, data, groups)
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
    """Yield ``v' H_c v`` of every cluster c, so many at a time as the cache holds.

    Parameters
    ----------
    vectors : ndarray of shape (n_parameters, m)

    Yields
    ------
    ndarray of shape (some clusters, m)
    """
    loops = compiled_loops(fit, len(groups.index))
    if loops is not None:
        ordered = InOrder.of(fit, data, groups)
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


def taste_covariance(fit: Fit, parts: Iterable[Sums]) -> Floats:
    """Return the covariance of the parameters if every cluster had a taste of its own.

    A taste adds to the strengths, for one cluster, independent normal numbers of variance
    ``tau^2``. To first order the score of cluster c then has the variance::

        H_c + tau^2 (H_c^2 - sum_i H_i^2)

    its own votes' spread, and what the taste adds to pairs of its votes. ``tau^2`` is fitted to
    the products of scores of different votes of one cluster, whose means are those of the second
    term: each cluster weighs one over the variance of its own.

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
        moved = 2.0 * (cells.design.a != cells.design.b)  # strengths that a taste moves apart
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


def _pulled_together(cells: ScoredCells, own: Ints, n: int, gap: int) -> "scipy.sparse.csr_array":
    """Return ``H_c`` of every cluster, one below the other, shape (n * n_models, n_parameters).

    Rows are the strengths that a taste moves.
    """
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
"""Logarithms of what a taste adds to a variance over the rest of it, and parts of each unit."""
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
    """Fit the variance of tastes to the products of scores, each cluster by its precision.

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
