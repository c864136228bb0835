"""Covariances of the parameters when votes, or clusters of them, are independent."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rating.comparisons import Comparisons
from rating.fitting import Fit
from rating.likelihood.design import Design, blocks
from rating.likelihood.identification import strong_groups
from rating.likelihood.newton import anchored
from rating.likelihood.objective import cell_objective
from rating.likelihood.ties import A, B
from rating.typing import Floats, Ints

CHUNK_ENTRIES = 2_000_000


def hessian_covariance(fit: Fit) -> Floats:
    """Return the inverse information: right when the model is, too wide under half-win ties.

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
    return identified_inverse(fit.hessian, fit.n_models, absolute=fit.absolute)


def sandwich_covariance(fit: Fit, data: Comparisons) -> Floats:
    """Estimate the covariance when every vote is independent of the others.

    ``H^- G H^-`` with ``G = sum_i weight_i^2 s_i s_i'``, s the gradient of one
    vote's surprise, plus `bare_tie_meat`.

    References
    ----------
    .. [1] H. White, "Maximum likelihood estimation of misspecified models",
       Econometrica 50(1), 1982, pp. 1-25.
    """
    bread = hessian_covariance(fit)
    merged = data.merged()
    meat = bare_tie_meat(fit, merged)
    for cells in blocks_of_cells(fit, merged):
        meat += cells.vote_meat()
    return bread @ meat @ bread


@dataclass(frozen=True, slots=True, eq=False)
class ScoredCells:
    """Gradients and Hessians of cells at the parameters of a fit.

    Attributes
    ----------
    design : Design
    weight, weight_sq : ndarray of shape (n,)
    slope : tuple of ndarray of shape (n,)
    curve : dict of (int, int) to ndarray of shape (n,)
        Of one vote in each cell, whatever its weight, as in `Local`.
    """

    design: Design
    weight: Floats
    weight_sq: Floats
    slope: tuple[Floats, ...]
    curve: dict[tuple[int, int], Floats]

    def rows(self, chosen: Ints | slice) -> "ScoredCells":
        """Return some of the cells, in the order given."""
        return ScoredCells(
            self.design.rows(chosen),
            self.weight[chosen],
            self.weight_sq[chosen],
            tuple(value[chosen] for value in self.slope),
            {at: value[chosen] for at, value in self.curve.items()},
        )

    def scores(self, cluster: Ints, n_clusters: int) -> Floats:
        """Sum the weighted gradients in each cluster, shape (n_clusters, n_parameters)."""
        weighted = tuple(self.weight * value for value in self.slope)
        return self.design.scores(weighted, cluster, n_clusters)

    def curvature_along(self, shift: Floats, cluster: Ints) -> Floats:
        """Return the Hessian of each cluster times its own shift, as `scores` shapes it."""
        moved = self.design.along(shift, cluster)
        change = [np.zeros(len(cluster)) for _ in moved]
        for (c, d), value in self.curve.items():
            change[c] += self.weight * value * moved[d]
            if c != d:
                change[d] += self.weight * value * moved[c]
        return self.design.scores(tuple(change), cluster, len(shift))

    def information_along(self, vectors: Floats) -> Floats:
        """Return ``v' H_i v`` of each cell and each of some shifts of all parameters.

        Parameters
        ----------
        vectors : ndarray of shape (n_parameters, m)

        Returns
        -------
        ndarray of shape (n, m)
        """
        moved = self.design.across(vectors)
        total = np.zeros((len(self.weight), vectors.shape[1]))
        for (c, d), value in self.curve.items():
            part = moved[c] * moved[d]
            part *= (self.weight * value * (1.0 if c == d else 2.0))[:, None]
            total += part
        return total

    def vote_meat(self) -> Floats:
        """Return ``sum_i weight_i^2 s_i s_i'``."""
        return self.design.hessian(
            {(c, d): self.weight_sq * self.slope[c] * self.slope[d] for c, d in self.curve}
        )


def scored_cells(fit: Fit, data: Comparisons) -> ScoredCells:
    """Evaluate every cell at the parameters of the fit."""
    cells = cell_objective(fit.likelihood, data, order_effect=fit.order_effect)
    local = cells.local(fit.x)
    return ScoredCells(cells.design, data.weight, data.weight_sq, local.slope, local.curve)


def blocks_of_cells(fit: Fit, data: Comparisons) -> Iterator[ScoredCells]:
    """Evaluate every cell, so many at a time as the processor's cache holds."""
    for rows in blocks(len(data.votes)):
        yield scored_cells(fit, data.subset(rows))


def bare_tie_meat(fit: Fit, data: Comparisons) -> Floats:
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
    bare = data.subset(group[a] != group[b])
    if fit.absolute or not len(bare.outcome):
        return np.zeros((n_parameters, n_parameters))
    cells = cell_objective(fit.likelihood, bare, order_effect=fit.order_effect)
    expected = np.zeros(len(bare.outcome))
    for code in fit.likelihood.outcomes:
        local = replace(cells, outcome=np.full(len(expected), code)).local(fit.x)
        expected = expected + np.exp(-local.value) * local.slope[0] ** 2
    return cells.design.hessian({(0, 0): bare.weight_sq * expected})


def decided_groups(data: Comparisons) -> Ints:
    """Label the groups of models joined by votes that are not ties, shape (n_models,)."""
    decided = data.table()[..., [A, B]].sum(axis=-1) > 0
    return strong_groups(decided | decided.T)


def identified_inverse(matrix: Floats, n_models: int, *, absolute: bool) -> Floats:
    """Invert a symmetric matrix of all parameters on strengths that sum to zero.

    Rows of the result sum to zero over the strengths. With an absolute scale
    it is the plain inverse.
    """
    inverse = np.linalg.inv(anchored(matrix, n_models, absolute=absolute))
    if not absolute:
        inverse[:n_models] -= inverse[:n_models].mean(axis=0)
        inverse[:, :n_models] -= inverse[:, :n_models].mean(axis=1, keepdims=True)
    return np.asarray((inverse + inverse.T) / 2)
