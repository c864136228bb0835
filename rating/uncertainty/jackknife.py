"""Leaving out one cluster at a time: how far one person's votes can move a rating."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rating.comparisons import Comparisons
from rating.fitting import Fit, has_finite_fit
from rating.likelihood.design import blocks
from rating.likelihood.identification import strong_groups
from rating.likelihood.newton import minimise
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.clusters import Grouping, checked_activity
from rating.uncertainty.sandwich import (
    CHUNK_ENTRIES,
    ScoredCells,
    bare_tie_meat,
    blocks_of_cells,
    hessian_covariance,
    scored_cells,
)

REFIT_LEVERAGE = 0.5
_MAX_ROUNDS = 40


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


class Shifts(Protocol):
    """Takes every cluster's shift as it comes: `rating.uncertainty.wild.SignSums`."""

    def add(self, left_out: LeftOut) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True, eq=False)
class Jackknife:
    """Covariance when the votes of one cluster depend on each other.

    Attributes
    ----------
    matrix : ndarray of shape (n_models + n_free, n_models + n_free)
        As `rating.uncertainty.sandwich.hessian_covariance` returns it.
    lengths : ndarray of shape (n_clusters,)
        How far the strengths move without each cluster, squared.
    """

    matrix: Floats
    lengths: Floats


def jackknife(
    fit: Fit, data: Comparisons, groups: Grouping, shifts: Shifts | None = None
) -> Jackknife:
    """Estimate the covariance by leaving out one cluster at a time (CR3).

    ``(U - 1) / U * sum_c d_c d_c'``, where ``d_c`` is how far the parameters
    move without cluster c: by an exact refit for the clusters of leverage
    ``trace(H^- H_c) >= 1/2`` (there are at most twice as many as free
    parameters), by one Newton step with the remaining Hessian,
    ``(H - H_c)^- s_c``, for the rest. A step also stands in where the votes
    without c have no finite fit.

    Two directions in which clusters show no spread are filled in as if votes
    were independent: ties that alone join two groups (see
    `rating.uncertainty.sandwich.bare_tie_meat`), and the votes of a cluster that alone
    joins models to the rest.

    Parameters
    ----------
    shifts : optional
        Is given every cluster's shift on the way: one pass serves both.

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
    u = checked_activity(data, groups).n_clusters
    bread = hessian_covariance(fit)
    k, meat = data.n_models, bare_tie_meat(fit, data.merged())
    lengths = np.zeros(groups.size)
    leverage = _leverage(fit, data, groups, bread)
    alone = np.zeros(groups.size, dtype=bool)
    if shifts is None and fit.likelihood.coordinates == ("gap",):
        alone = (np.bincount(groups.index, minlength=groups.size) == 1) & (
            leverage < REFIT_LEVERAGE
        )
    spread = _of_lone_cells(fit, data, groups, bread, alone, lengths)
    for left_out in _leave_out_each(fit, data, groups, bread, leverage, ~alone):
        spread += left_out.shift.T @ left_out.shift
        lengths[left_out.clusters] = (left_out.shift[:, :k] ** 2).sum(axis=1)
        if shifts is not None:
            shifts.add(left_out)
        if left_out.stranded:
            own = data.subset(np.isin(groups.index, left_out.clusters))
            meat += scored_cells(fit, own).vote_meat()
    return Jackknife(
        matrix=(u - 1) / u * spread + bread @ meat @ bread,
        lengths=lengths,
    )


def _of_lone_cells(
    fit: Fit, data: Comparisons, groups: Grouping, bread: Floats, alone: Bools, lengths: Floats
) -> Floats:
    """Sum the squares of the shifts of clusters with one cell, and note their lengths.

    Where a vote moves the gap alone, ``H_c = q x x'`` and ``s_c = s x``, so that
    ``(H - H_c)^- s_c = H^- x s / (1 - q x' H^- x)``: no step is repeated.
    """
    k, spread = data.n_models, np.zeros_like(bread)
    of_strengths = bread[:, :k] @ bread[:k]
    cells_alone = np.flatnonzero(alone[groups.index])
    for part in blocks(len(cells_alone)):
        rows = cells_alone[part]
        cells = scored_cells(fit, data.subset(rows))
        leverage = cells.weight * cells.curve[0, 0] * cells.design.inner(bread, 0, 0)
        square = (cells.weight * cells.slope[0] / (1 - leverage)) ** 2
        spread += cells.design.hessian({(0, 0): square})
        lengths[groups.index[rows]] = square * cells.design.inner(of_strengths, 0, 0)
    return np.asarray(bread @ spread @ bread)


def leave_one_out(fit: Fit, data: Comparisons, groups: Grouping) -> Iterator[LeftOut]:
    """Yield every cluster once, left out as `jackknife` does.

    By one step those of little leverage, so many at a time as fit in memory,
    and by a refit each of the others.

    Raises
    ------
    DataError
        If fewer than two clusters have a vote of positive weight.
    """
    checked_activity(data, groups)
    bread = hessian_covariance(fit)
    leverage = _leverage(fit, data, groups, bread)
    everybody = np.ones(groups.size, dtype=bool)
    yield from _leave_out_each(fit, data, groups, bread, leverage, everybody)


def _leave_out_each(
    fit: Fit,
    data: Comparisons,
    groups: Grouping,
    bread: Floats,
    leverage: Floats,
    wanted: Bools,
) -> Iterator[LeftOut]:
    """Yield the clusters that are wanted, left out."""
    share = leverage / leverage.sum()
    light = wanted & (leverage < REFIT_LEVERAGE)
    for clusters, shift in _light_shifts(fit, data, groups, bread, leverage, light):
        yield LeftOut(clusters, shift, share[clusters], stranded=False)
    whole = data.merged()
    for cluster in np.flatnonzero(wanted & (leverage >= REFIT_LEVERAGE)):
        shift, stranded = _leave_out(fit, without(data, whole, groups.index == cluster))
        at = np.array([cluster])
        yield LeftOut(at, shift[None], share[at], stranded)


def _leverage(fit: Fit, data: Comparisons, groups: Grouping, bread: Floats) -> Floats:
    """Return ``trace(H^- H_c)`` of each cluster; they sum to the free parameters."""
    reach, first = np.zeros(len(groups.index)), 0
    for cells in blocks_of_cells(fit, data):
        part = reach[first : first + len(cells.weight)]
        for (c, d), value in cells.curve.items():
            twice = 1.0 if c == d else 2.0
            part += twice * cells.weight * value * cells.design.inner(bread, c, d)
        first += len(part)
    return np.asarray(np.bincount(groups.index, reach, groups.size), dtype=np.float64)


def _light_shifts(
    fit: Fit,
    data: Comparisons,
    groups: Grouping,
    bread: Floats,
    leverage: Floats,
    wanted: Bools,
) -> Iterator[tuple[Ints, Floats]]:
    """Yield clusters of little leverage and their one-step shifts, so many as fit in memory.

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
        cells = scored_cells(fit, data.subset(rows))
        yield chosen, _one_step(bread, cells, index, leverage[chosen])
        first += n_clusters


def _chunks(index: Ints, size: int, n_parameters: int) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield the clusters in their order, so many at a time as fit in memory."""
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
    for _ in range(_MAX_ROUNDS):
        previous = shift
        shift = first + cells.curvature_along(shift, cluster) @ bread
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
    kept = votes > 0  # counts are exact, sums of weights are not
    return replace(whole.subset(kept), votes=votes[kept].astype(np.int64), weight=weight[kept])


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
