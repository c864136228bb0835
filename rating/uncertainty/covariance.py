"""Covariances of parameters when votes are independent, quasi-standard errors, and quantiles."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.fitting import Fit
from rating.likelihood.design import blocks
from rating.likelihood.identification import strong_groups
from rating.likelihood.objective import ScoredCells
from rating.likelihood.ties import A, B
from rating.typing import Bools, Floats, Ints


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
    return fit.inverse_information


def sandwich_covariance(fit: Fit, data: Comparisons) -> Floats:
    """Estimate the covariance when every vote is independent of the others.

    ``H^- G H^-`` with ``G = sum_i weight_i^2 s_i s_i'``, s the gradient of one
    vote's negative log-likelihood, plus `bare_tie_meat`.

    References
    ----------
    .. [1] H. White, "Maximum likelihood estimation of misspecified models",
       Econometrica 50(1), 1982, pp. 1-25.
    """
    bread = fit.inverse_information
    merged = data.merged()
    meat = bare_tie_meat(fit, merged)
    for cells in blocks_of_cells(fit, merged):
        meat += cells.vote_meat()
    return bread @ meat @ bread


def blocks_of_cells(fit: Fit, data: Comparisons) -> Iterator[ScoredCells]:
    """Evaluate every cell, so many at a time as the processor's cache holds."""
    for rows in blocks(len(data.votes)):
        yield fit.scored(data.subset(rows))


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
    joined_by_ties = group[a] != group[b]
    if fit.absolute or not joined_by_ties.any():
        return np.zeros((n_parameters, n_parameters))
    bare = data.subset(joined_by_ties)
    cells = fit.cells(bare)
    expected = np.zeros(len(bare.outcome))
    for _, probability, local in cells.each_outcome(fit.x):
        expected = expected + probability * local.slope[0] ** 2
    return cells.design.hessian({(0, 0): bare.weight_sq * expected})


def decided_groups(data: Comparisons) -> Ints:
    """Label the groups of models joined by votes that are not ties, shape (n_models,)."""
    decided = data.table()[..., [A, B]].sum(axis=-1) > 0
    return strong_groups(decided | decided.T)


def quantile(level: float, df: float) -> float:
    """Return by how many standard errors an interval reaches out on either side."""
    return float(quantiles(level, np.array([df]))[0])


def quantiles(level: float, df: Floats) -> Floats:
    """Return `quantile` of each number of degrees of freedom; infinite for none."""
    finite = np.isfinite(df) & (df > 0)
    reach = np.where(df > 0, scipy.special.ndtri((1 + level) / 2), np.inf)
    reach[finite] = scipy.special.stdtrit(df[finite], (1 + level) / 2)
    return np.asarray(reach)


_MAX_STEPS = 200


class QuasiErrors(NamedTuple):
    """Quasi-standard errors and how far they are to be trusted.

    Attributes
    ----------
    qse : ndarray of shape (n_models,)
        Nats; the error of a difference is about ``sqrt(qse_i^2 + qse_j^2)``.
    worst_error : float
        Largest relative error of that over all pairs.
    """

    qse: Floats
    worst_error: float


def quasi_standard_errors(variances: Floats) -> QuasiErrors:
    """Find the variances q that best give the variance of every difference as ``q_i + q_j``.

    Minimises ``sum_(i<j) (log v_ij - log(q_i + q_j))^2`` by Gauss-Newton steps,
    where ``v_ij`` is the variance of the difference of i and j. They depend on no reference model.
    A q that would be negative ends at zero, and shows in ``worst_error``.

    Parameters
    ----------
    variances : ndarray of shape (n_models, n_models)
        Of the differences, see `difference_variances`; at least two models.

    Raises
    ------
    DataError
        If a difference has no positive variance, or there is one model only.

    References
    ----------
    .. [1] D. Firth and R. X. de Menezes, "Quasi-variances", Biometrika 91(1),
       2004, pp. 65-80, section 3.

    Examples
    --------
    Independent strengths are their own quasi-variances.

    >>> found = quasi_standard_errors(difference_variances(np.diag([1.0, 4.0, 9.0])))
    >>> found.qse.round(6).tolist()
    [1.0, 2.0, 3.0]
    """
    target = np.array(variances)
    k = len(target)
    off = ~np.eye(k, dtype=bool)
    if k < 2 or not (target[off] > 0).all():
        raise DataError("Quasi-standard errors need two models and positive pairwise variances.")
    np.fill_diagonal(target, 1.0)
    q = _start(target, off)
    for _ in range(_MAX_STEPS):
        step = _step(q, target, off)
        while _misfit(q + step, target, off) > _misfit(q, target, off) + 1e-15:
            step = step / 2
        q = q + step
        if np.abs(step).max() <= 1e-12 * q.max():
            break
    q = q.clip(min=0)
    ratio = np.sqrt((q[:, None] + q)[off] / target[off])
    return QuasiErrors(np.sqrt(q), float(np.abs(ratio - 1).max()))


def difference_variances(covariance: Floats) -> Floats:
    """Return ``V_ii + V_jj - 2 V_ij``, shape (n_models, n_models), zero on the diagonal."""
    variance = np.diag(covariance)
    return np.asarray(variance[:, None] + variance - 2 * covariance)


def _start(target: Floats, off: Bools) -> Floats:
    """Return the least-squares solution on the variances themselves, made positive."""
    k = len(target)
    sums = np.where(off, target, 0.0).sum(axis=1)
    if k == 2:
        return np.asarray(sums / 2)
    q = (sums - sums.sum() / (2 * (k - 1))) / (k - 2)
    return np.asarray(q.clip(min=1e-3 * sums / (k - 1)))


def _step(q: Floats, target: Floats, off: Bools) -> Floats:
    total = np.where(off, q[:, None] + q, 1.0)
    slope = np.where(off, 1 / total, 0.0)
    miss = np.where(off, np.log(target) - np.log(total), 0.0)
    normal = slope**2 + np.diag((slope**2).sum(axis=1))
    return np.asarray(np.linalg.lstsq(normal, (slope * miss).sum(axis=1))[0])


def _misfit(q: Floats, target: Floats, off: Bools) -> float:
    total = (q[:, None] + q)[off]
    if (total <= 0).any():
        return np.inf
    return float(((np.log(target[off]) - np.log(total)) ** 2).sum())
