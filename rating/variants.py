"""Variants of one producer: what choosing the best of them adds, and the producer's own order."""

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import DataError
from rating.typing import Floats, Ints

LEAST_VARIANCE = 1e-6
"""Of any combination of strengths, as a share of the mean variance: what is added if need be."""


def selection_inflation(se: float, n_variants: int) -> float:
    """Return by how much the best of equal variants looks better than it is.

    ``se * E[max of n_variants standard normals]``: what a vendor gains by
    testing many variants in private and publishing the best.

    Parameters
    ----------
    se : float
        Standard error of one variant's rating, in any unit; the result is in
        the same.

    Raises
    ------
    DataError
        If ``n_variants`` is under one or ``se`` negative.

    Examples
    --------
    >>> [round(selection_inflation(1.0, n), 2) for n in (2, 5, 10, 20, 50)]
    [0.56, 1.16, 1.54, 1.87, 2.25]
    """
    if n_variants < 1:
        raise DataError(f"n_variants must be at least 1, not {n_variants}.")
    if not 0 <= se < np.inf:
        raise DataError(f"se must be finite and not negative, not {se}.")
    # The mean of the maximum: the integral of P(max > z) over z > 0 less that of P(max < -z).
    z = np.linspace(0, 12, 4001)
    above = 1 - scipy.special.ndtr(z) ** n_variants - scipy.special.ndtr(-z) ** n_variants
    return se * float(np.trapezoid(above, z))


def standard_error_apart(covariance: Floats) -> float:
    """Return the standard error of a variant, but for what the variants have in common.

    The root of half the mean variance of a difference of two; choosing among
    them selects on nothing else. Of one variant, its own.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
        Of the strengths of k variants.

    Raises
    ------
    DataError
        If there is no variant, or a value is not finite.

    Examples
    --------
    >>> standard_error_apart(np.array([[5.0, 1.0], [1.0, 5.0]]))
    2.0
    """
    covariance = _checked(covariance)
    k = len(covariance)
    if k == 1:
        return float(np.sqrt(covariance[0, 0]))
    between = (np.trace(covariance) - covariance.sum() / k) / (k - 1)
    return float(np.sqrt(max(between, 0.0)))


def project_on_order(strength: Floats, covariance: Floats, order: Ints) -> Floats:
    """Return the strengths of variants, moved as little as their producer's own order asks.

    Producers rank their variants before they know the votes ("you rank, we
    rank"). Minimise::

        (x - strength)' covariance^-1 (x - strength)   with x not increasing along the order

    so that what the votes know well moves least. Strengths in the declared
    order already stay as they are. A true order never takes the variants
    further from their true order; among all models it helps on average, and
    not each time.

    Parameters
    ----------
    strength : ndarray of shape (k,)
        In any unit.
    covariance : ndarray of shape (k, k)
        Of the strengths, in the square of that unit. To one that knows some combination
        exactly, or is estimated pair by pair and none of any numbers together, the same
        variance is added for each strength until it is one.
    order : ndarray of shape (k,), int
        The producer's places: the lowest for the variant that is to be the best.

    Returns
    -------
    ndarray of shape (k,)
        In the order of ``strength``. Variants that the votes have the other
        way round share a value: one between theirs where covariances are
        zero, and where errors go together perhaps another.

    Raises
    ------
    DataError
        If the shapes differ, a value is not finite, or two have one place.

    References
    ----------
    .. [1] Hays et al., "You rank, we rank", arXiv 2603.26891, 2026. There
       the projection is isotonic regression; here errors may be correlated,
       as ratings of one board are.

    Examples
    --------
    The first is declared the better one, and the votes say otherwise: both get the mean.

    >>> project_on_order(np.array([0.0, 2.0]), np.eye(2), np.array([1, 2])).round(6).tolist()
    [1.0, 1.0]
    """
    strength, covariance = np.asarray(strength, dtype=np.float64), _checked(covariance)
    k, mean_variance = len(strength), np.trace(covariance) / len(covariance)
    if covariance.shape != (k, k) or np.shape(order) != (k,) or not np.isfinite(strength).all():
        msg = f"{k} finite strengths need {k} places and a covariance of shape ({k}, {k})."
        raise DataError(msg)
    if mean_variance <= 0:
        raise DataError("covariance must have variances above zero.")
    if len(np.unique(order)) < k:
        raise DataError(
            f"Each variant needs a place of its own, not {np.asarray(order).tolist()}."
        )
    place = np.argsort(order)
    if (np.diff(strength[place]) <= 0).all():
        return strength.copy()
    # x falls along the order: the last one, plus steps of zero or more.
    steps = np.triu(np.ones((k, k)))
    variances, axes = np.linalg.eigh(covariance[np.ix_(place, place)])
    variances += max(0.0, LEAST_VARIANCE * mean_variance - variances.min())
    root = (axes / np.sqrt(variances)).T
    least = np.append(np.zeros(k - 1), -np.inf)
    solved = scipy.optimize.lsq_linear(
        root @ steps, root @ strength[place], (least, np.full(k, np.inf)), method="bvls"
    )
    projected = np.empty(k)
    projected[place] = steps @ solved.x
    return projected


def gini(amounts: Floats) -> float:
    """Return how unequal amounts are: 0 if all are the same, near 1 if one has nearly all.

    The mean absolute difference over twice the mean, ``sum_ij |x_i - x_j| / (2 n^2 mean)``.

    Parameters
    ----------
    amounts : ndarray of shape (n,)
        Zero or more.

    Raises
    ------
    DataError
        If there is none, one is negative or not finite, or all are zero.

    Examples
    --------
    >>> gini(np.array([1.0, 1.0])), gini(np.array([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    amounts = np.asarray(amounts, dtype=np.float64)
    if not (np.isfinite(amounts).all() and (amounts >= 0).all() and amounts.sum() > 0):
        raise DataError(f"amounts must be zero or more, and one above, not {amounts.tolist()}.")
    apart = np.abs(amounts[:, None] - amounts).sum()
    return float(apart / (2 * len(amounts) * amounts.sum()))


def _checked(covariance: Floats) -> Floats:
    covariance = np.asarray(covariance, dtype=np.float64)
    shape = covariance.shape
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise DataError(f"covariance must be a square matrix of one variant or more, not {shape}.")
    if not np.isfinite(covariance).all():
        raise DataError("covariance must be finite.")
    return covariance
