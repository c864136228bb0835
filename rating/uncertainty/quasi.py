"""Quasi-standard errors: one number a model, from which the error of any difference follows."""

from typing import NamedTuple

import numpy as np

from rating.errors import DataError
from rating.typing import Bools, Floats

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
