"""Selection among variants of one producer, and the Elo scale.

`selection_inflation` is the expected gain from publishing the best of several variants;
`project_on_order` imposes the order that their producer declared. `to_points` puts strengths in
nats on the Elo scale; `online_elo` is Elo's update vote by vote, which depends on the order of
votes.
"""

from collections.abc import Iterator
from math import exp, log

import numpy as np
import scipy

from rating.counting import check_lengths, checked_codes
from rating.errors import DataError
from rating.typing import Floats, Ints

# Variants of one producer


LEAST_VARIANCE = 1e-6
"""Of any combination of strengths, as a share of the mean variance: what is added if need be."""


def selection_inflation(se: float, n_variants: int) -> float:
    """Return the expected selection gain of the best of equal variants.

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
    """Return the standard error of a variant without the variants' common error.

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
    """Project the strengths of variants onto the order that their producer declared.

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
        The declared order: the lowest number for the best variant.

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


# Elo


SCALE = 400.0
POINTS_PER_NAT = SCALE / log(10)
MEAN_POINTS = 1000.0
STEP = 4.0
CHUNK_VOTES = 65_536


def to_points(theta: Floats) -> Floats:
    """Return ``400 / ln 10 * theta + 1000``: the Elo scale, for strengths that sum to zero.

    A lead of 400 points is odds of ten to one.

    Examples
    --------
    >>> to_points(np.log([10.0, 1.0])).tolist()
    [1400.0, 1000.0]
    """
    return POINTS_PER_NAT * theta + MEAN_POINTS


def to_nats(points: Floats) -> Floats:
    """Return the strength in nats of a rating in points: the inverse of `to_points`."""
    return (points - MEAN_POINTS) / POINTS_PER_NAT


def expected_score(lead: float, *, scale: float = SCALE) -> float:
    """Return ``1 / (1 + 10 ** (-lead / scale))``: the Elo probability at a lead in points.

    Examples
    --------
    >>> round(expected_score(400), 4)  # ten to one
    0.9091
    """
    return 1.0 / (1.0 + exp(-lead / scale * log(10)))


def online_elo(
    a: Ints,
    b: Ints,
    score_a: Floats,
    n_models: int,
    *,
    k: float = STEP,
    scale: float = SCALE,
    start: float = MEAN_POINTS,
) -> Floats:
    """Rate models by one pass over the votes, in the order given.

    Each vote moves both ratings by how unexpected it was::

        R_a += k * (score_a - E),   R_b -= k * (score_a - E)
        E = 1 / (1 + 10 ** ((R_b - R_a) / scale))

    The result depends on the order. A vote is judged by the ratings of its
    moment, which the earlier votes made, and what it adds fades by
    ``k * ln 10 / scale * E * (1 - E)`` with every later vote on its models:
    the last few hundred votes on a model weigh most. Among models that do not
    change there is no reason for that, so the arena rates by Bradley-Terry,
    in which order leaves no trace, and shows Elo for history.

    Parameters
    ----------
    a, b : ndarray of shape (n_votes,), int
        Codes of the models on the two sides, from 0 to n_models - 1.
    score_a : ndarray of shape (n_votes,)
        Score of the first side, in [0, 1]: 1 win, 1/2 tie, 0 loss.
    k : float, default 4
        Points at stake in a vote.

    Returns
    -------
    ndarray of shape (n_models,)
        Points. The mean stays at ``start``.

    Raises
    ------
    DataError
        For columns of unequal length, a code out of range, a model against
        itself, a score outside [0, 1], or ``k`` or ``scale`` not positive.

    References
    ----------
    .. [1] A. E. Elo, "The Rating of Chessplayers, Past and Present", Arco,
       1978, section 1.6.
    .. [2] M. Boubdir, E. Kim, B. Ermis, S. Hooker and M. Fadaee, "Elo
       Uncovered: Robustness and Best Practices in Language Model Evaluation",
       2023, arXiv 2311.17295, on the order of votes.

    Examples
    --------
    >>> online_elo(np.array([0]), np.array([1]), np.array([1.0]), 2, k=32).tolist()
    [1016.0, 984.0]
    """
    check_lengths({"a": len(a), "b": len(b), "score_a": len(score_a)})
    for side, codes in (("a", a), ("b", b)):
        checked_codes(side, codes, n_models)
    if (a == b).any():
        raise DataError(f"Model {a[a == b][0]} meets itself; leave such votes out.")
    bad = score_a[~((score_a >= 0) & (score_a <= 1))]
    if bad.size:
        raise DataError(f"Score {bad[0]} lies outside [0, 1]; use 1, 1/2 or 0.")
    for name, value in (("k", k), ("scale", scale)):
        if not 0 < value < np.inf:
            raise DataError(f"{name} must be positive and finite, not {value}.")
    nats = [0.0] * n_models
    stake = k * log(10) / scale
    # Lists of Python numbers: each vote waits for the one before, and a numpy
    # scalar costs ten times a list's entry. The loop is the whole cost.
    for i, j, won in _rows(a, b, stake * score_a):
        nats_i = nats[i]
        nats_j = nats[j]
        change = won - stake / (1.0 + exp(nats_j - nats_i))
        nats[i] = nats_i + change
        nats[j] = nats_j - change
    return start + scale / log(10) * np.array(nats)


def _rows(a: Ints, b: Ints, value: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield the votes as Python numbers, a cache's worth at a time."""
    for first in range(0, len(a), CHUNK_VOTES):
        part = slice(first, first + CHUNK_VOTES)
        yield from zip(a[part].tolist(), b[part].tolist(), value[part].tolist(), strict=True)
