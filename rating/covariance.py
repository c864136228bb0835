"""Covariance of the strengths: as the model has it, and without trusting the model."""

import numpy as np
from numpy.typing import NDArray

from rating.bradley_terry import BradleyTerryFit, win_probability
from rating.comparisons import Comparisons
from rating.connectivity import strong_groups


def hessian_covariance(fit: BradleyTerryFit) -> NDArray[np.float64]:
    """Return the inverse information: right when the model is, too wide under half-win ties.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        In squared nats; rows sum to zero, as for every covariance here. Read
        a difference, ``V[i, i] + V[j, j] - 2 * V[i, j]``.

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
    return sum_zero_inverse(fit.hessian)


def sandwich_covariance(fit: BradleyTerryFit, data: Comparisons) -> NDArray[np.float64]:
    """Estimate the covariance when every vote is independent of the others.

    ``H^- G H^-`` with ``G = sum_i weight_i^2 (score_a_i - P_i)^2 x_i x_i'``
    and ``x_i = e_a - e_b``, plus `bare_tie_meat`.

    References
    ----------
    .. [1] H. White, "Maximum likelihood estimation of misspecified models",
       Econometrica 50(1), 1982, pp. 1-25.
    """
    bread = sum_zero_inverse(fit.hessian)
    return bread @ (vote_meat(fit, data) + bare_tie_meat(fit, data)) @ bread


def vote_meat(
    fit: BradleyTerryFit, data: Comparisons, cells: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return ``G`` of `sandwich_covariance`, over the cells marked (by default all)."""
    chance = win_probability(fit.theta)[data.pairs[:, 0], data.pairs[:, 1]]
    value = data.weight_sq * (data.score_a - chance) ** 2
    return _laplacian(data, value if cells is None else np.where(cells, value, 0.0))


def bare_tie_meat(fit: BradleyTerryFit, data: Comparisons) -> NDArray[np.float64]:
    """Return what the model says of ties that alone join two groups of models.

    Such ties fit almost perfectly, so their residuals show no spread and the
    distance between the groups would seem certain. They enter with the
    variance of a decided vote, ``weight_i^2 P_i (1 - P_i) x_i x_i'``.
    """
    a, b = data.pairs.T
    group = decided_groups(data)
    chance = win_probability(fit.theta)
    value = data.weight_sq * chance[a, b] * chance[b, a]
    return _laplacian(data, np.where(group[a] != group[b], value, 0.0))


def decided_groups(data: Comparisons) -> NDArray[np.int64]:
    """Label the groups of models joined by votes that are not ties, shape (n_models,)."""
    met = np.zeros((data.n_models, data.n_models), dtype=bool)
    a, b = data.pairs[(data.score_a != 0.5) & (data.weight > 0)].T
    met[a, b] = met[b, a] = True
    return strong_groups(met)


def sum_zero_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert a symmetric matrix on the vectors that sum to zero; rows of the result do too."""
    inverse = np.linalg.inv(matrix + np.diag(matrix).mean() / len(matrix))
    inverse = inverse - inverse.mean(axis=0)
    inverse = inverse - inverse.mean(axis=1, keepdims=True)
    return np.asarray((inverse + inverse.T) / 2)


def _laplacian(data: Comparisons, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum ``value_i x_i x_i'`` over the cells."""
    a, b = data.pairs.T
    k = data.n_models
    table = np.bincount(a * k + b, value, k * k).reshape(k, k)
    table = table + table.T
    return np.asarray(np.diag(table.sum(axis=1)) - table)
