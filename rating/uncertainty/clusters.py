"""How evenly votes, and what they tell of a contrast, are spread over voters or prompts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.counting import dense
from rating.errors import DataError
from rating.fitting import Fit
from rating.likelihood.design import CHUNK_ENTRIES
from rating.likelihood.objective import ScoredCells
from rating.typing import Floats, Ints

ENTRIES_AT_ONCE = 1 << 18
_TASTE_STEPS = 50

Cluster = Literal["voter", "prompt"]
KINDS: tuple[Cluster, Cluster] = ("voter", "prompt")

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
    weight = np.bincount(groups.index, data.weight, groups.size)
    if not weight.any():
        raise DataError("There are no votes to count clusters by.")
    return Activity(
        n_clusters=int((weight > 0).sum()),
        effective=float(weight.sum() ** 2 / (weight**2).sum()),
        top_share=float(weight.max() / weight.sum()),
    )


def checked_activity(data: Comparisons, groups: Grouping) -> Activity:
    """Return the activity of the clusters; raises `DataError` unless two of them voted."""
    by_cluster = activity_of(data, groups)
    if by_cluster.n_clusters < 2:
        raise DataError("Clustered errors need two voters (or prompts) at least; one voted.")
    return by_cluster


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
    if fit.likelihood.coordinates == ("gap",) and len(fit.x) == fit.n_models:
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
            else:
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
    at_once = max(1, CHUNK_ENTRIES // vectors.shape[1])
    for start in range(0, groups.size, at_once):
        stop = min(start + at_once, groups.size)
        rows = order[slice(*np.searchsorted(index, [start, stop]))]
        cell = (groups.index[rows] - start, place[*data.pairs[rows].T])
        shape = (stop - start, len(first))
        yield scipy.sparse.csr_array((data.weight[rows], cell), shape=shape) @ of_pair


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


def cluster_shares(fit: Fit, data: Comparisons, groups: Grouping) -> ClusterShares:
    """Share the information on each parameter out among the clusters."""
    k, size = fit.n_models, len(fit.x)
    contrasts = np.eye(size)
    if not fit.absolute:
        known = np.diag(fit.hessian)[:k]
        contrasts[:k, :k] -= known / known.sum()
    vectors = fit.inverse_information @ contrasts.T
    shared = np.zeros((size, size))
    for share in information_by_cluster(fit, data, groups, vectors):
        shared += share.T @ share
    total = (contrasts.T * vectors).sum(axis=0)
    return ClusterShares(shared, effective_number(total, np.diag(shared)))


def effective_number(total: Floats, square: Floats) -> Floats:
    """Return the square of each sum over its sum of squares; 0 where that is zero."""
    return np.asarray(np.divide(total**2, square, out=np.zeros_like(total), where=square > 0))


def taste_covariance(fit: Fit, data: Comparisons, groups: Grouping) -> Floats:
    """Return the covariance of the parameters if every cluster had a taste of its own.

    A taste adds to the strengths, for one cluster, independent normal numbers of variance
    ``tau^2``. To first order the score of cluster c then has the variance::

        H_c + tau^2 (H_c^2 - sum_i H_i^2)

    its own votes' spread, and what the taste adds to pairs of its votes. ``tau^2`` is fitted to
    the products of scores of different votes of one cluster, whose means are those of the second
    term: each cluster weighs one over the variance of its own.
    """
    k, size = fit.n_models, len(fit.x)
    bread = fit.inverse_information
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
        alone = 2 * cells.weight_sq * curve**2
        plain += cells.design.hessian({(gap, gap): cells.weight_sq * curve})
        taste += (pulled.T @ pulled).toarray() - cells.design.hessian({(gap, gap): alone})
        score = cells.scores(own, n)[:, :k]
        spread = 2 * cells.weight_sq * cells.slope[gap] ** 2
        part = slice(first, last)
        products[part] = (score**2).sum(axis=1) - np.bincount(own, spread, n)
        square = np.asarray(pulled[:, :k].multiply(pulled[:, :k]).sum(axis=1)).ravel()
        square = square.reshape(n, k).sum(axis=1)
        expected[part] = square - np.bincount(own, 2 * alone, n)
        scale[part] = np.bincount(own, 2 * cells.weight * curve, n)
    return bread @ (plain + _taste_variance(products, expected, scale) * taste) @ bread


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


def _taste_variance(products: Floats, expected: Floats, scale: Floats) -> float:
    """Fit the variance of tastes to the products of scores, each cluster by its precision."""
    used = expected > 0
    products, expected, scale = products[used], expected[used], scale[used]
    variance = 0.0
    for _ in range(_TASTE_STEPS):
        weight = 1 / (1 + variance * expected / scale) ** 2
        total = float(weight @ expected)
        before, variance = variance, max(0.0, float(weight @ products) / total) if total else 0.0
        if abs(variance - before) <= 1e-10 * max(variance, 1e-10):
            break
    return variance
