"""Agreement beyond chance among any number of raters, with ratings missing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from judge.studies.agreement import counts
from judge.studies.items import Estimate, Items, Said
from judge.studies.resampling import clustered, sums_within
from rating.errors import DataError
from rating.typing import Floats, Ints

Metric = Literal["nominal", "ordinal", "interval", "ratio"]


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """How often each value was given to each unit.

    Attributes
    ----------
    values : ndarray of shape (q,)
        What could be said, ascending.
    counts : ndarray of shape (n_units, q)
    cluster : ndarray of shape (n_units,), int64
        What intervals draw: the prompt of a unit, or the unit itself.
    """

    values: Floats
    counts: Floats
    cluster: Ints

    @classmethod
    def of_said(cls, items: Items, said: Said, *, ties: bool = True) -> "Ratings":
        """Count what was said of items; the values are -1, 0 and 1.

        Parameters
        ----------
        ties : bool
            Whether a tie could be given; else the values are -1 and 1.

        Raises
        ------
        DataError
            If there are ties where none could be given.
        """
        found = counts(items, said)
        if ties:
            return cls(np.array([-1.0, 0.0, 1.0]), found, items.prompt)
        if found[:, 1].any():
            raise DataError(f"{int(found[:, 1].sum())} ties where none could be given.")
        return cls(np.array([-1.0, 1.0]), found[:, [0, 2]], items.prompt)

    @classmethod
    def of_matrix(cls, matrix: Floats, cluster: Ints | None = None) -> "Ratings":
        """Count a matrix of shape (n_units, n_raters), NaN where a rating is missing.

        The values are those that occur.
        """
        values = np.unique(matrix[~np.isnan(matrix)])
        found = (matrix[:, :, None] == values).sum(axis=1).astype(np.float64)
        return cls(values, found, np.arange(len(matrix)) if cluster is None else cluster)


def alpha(
    ratings: Ratings,
    *,
    metric: Metric = "nominal",
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate Krippendorff's alpha.

    ``1 - observed / expected`` disagreement: the mean squared difference of two ratings of the
    same unit over that of any two ratings. A unit of m ratings adds its ordered pairs, each with
    weight ``1 / (m - 1)``; a unit of one rating adds nothing. 1 is agreement, 0 what chance gives.

    Parameters
    ----------
    metric : {"nominal", "ordinal", "interval", "ratio"}
        The difference of two values: none or all; the ratings between them, halves of both
        included; their difference; their difference over their sum.

    Returns
    -------
    Estimate
        ``n`` is the number of units with two ratings or more. Undefined where all ratings are
        equal.

    Raises
    ------
    DataError
        If the metric is unknown, or ``ratio`` meets a negative value.

    References
    ----------
    .. [1] K. Krippendorff, "Computing Krippendorff's Alpha-Reliability", University of
       Pennsylvania, 2011.
    """
    difference = _difference(metric, ratings.values)
    found = ratings.counts[ratings.counts.sum(axis=1) >= 2]
    size = found.sum(axis=1)
    pairs = found[:, :, None] * found[:, None, :] - found[:, :, None] * np.eye(found.shape[1])
    weighted = pairs / (size - 1)[:, None, None]
    cluster = ratings.cluster[ratings.counts.sum(axis=1) >= 2]
    stats = _by_cluster(weighted.reshape(len(found), found.shape[1] ** 2), cluster)

    def of_sums(sums: Floats) -> Floats:
        q = found.shape[1]
        tables = sums.reshape(len(sums), q, q)
        given = tables.sum(axis=2)
        total = given.sum(axis=1)
        apart = difference(given)
        observed = (tables * apart).sum(axis=(1, 2))
        expected = np.einsum("rc,rk,rck->r", given, given, apart)
        expected /= np.where(total > 1, total - 1, np.nan)
        return np.asarray(1 - observed / np.where(expected > 0, expected, np.nan))

    return clustered(stats, of_sums, n=len(found), rounds=rounds, rng=rng, level=level)


def ac1(
    ratings: Ratings,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate Gwet's AC1, which does not fall when nearly all ratings are of one value.

    ``(agreed - chance) / (1 - chance)``: agreed is the mean over units of two ratings or more of
    the share of pairs that agree; chance is ``sum_k p_k (1 - p_k) / (q - 1)``, p_k the mean share
    of value k over all rated units. The q values are those that could be given: a value that
    nobody could give lowers the chance, so that coins seem to agree.

    Returns
    -------
    Estimate
        ``n`` is the number of units with two ratings or more.

    Raises
    ------
    DataError
        If there is only one value to give.

    References
    ----------
    .. [1] K. L. Gwet, "Computing inter-rater reliability and its variance in the presence of
       high agreement", British Journal of Mathematical and Statistical Psychology 61, 2008.
    """
    q = len(ratings.values)
    if q < 2:
        raise DataError(f"AC1 needs two values that could be given, and there is {q}.")
    rated = ratings.counts.sum(axis=1) >= 1
    found, cluster = ratings.counts[rated], ratings.cluster[rated]
    size = found.sum(axis=1)
    many = size >= 2
    pairs = np.where(many, size * (size - 1), 1)
    agreed = (found * (found - 1)).sum(axis=1) / pairs
    columns = [agreed * many, many, np.ones(len(found)), *(found / size[:, None]).T]
    stats = _by_cluster(np.column_stack(columns), cluster)

    def of_sums(sums: Floats) -> Floats:
        share = sums[:, 3:] / sums[:, 2:3]
        chance = (share * (1 - share)).sum(axis=1) / (q - 1)
        mean = sums[:, 0] / np.where(sums[:, 1] > 0, sums[:, 1], np.nan)
        return np.asarray((mean - chance) / (1 - chance))

    return clustered(stats, of_sums, n=int(many.sum()), rounds=rounds, rng=rng, level=level)


def _difference(metric: Metric, values: Floats) -> Callable[[Floats], Floats]:
    """Return how totals of each value, (r, q), give squared differences, (r, q, q) or (q, q)."""
    if metric not in get_args(Metric):
        msg = f"metric must be {', '.join(get_args(Metric))}, not {metric!r}."
        raise DataError(msg)
    if metric == "ordinal":
        return _ordinal
    x, y = values[:, None], values[None, :]
    fixed = (x != y).astype(np.float64) if metric == "nominal" else (x - y) ** 2
    if metric == "ratio":
        if (values < 0).any():
            raise DataError(f"Ratios need values from 0 up, not {values.min()}.")
        fixed = fixed / np.where(x + y > 0, x + y, 1) ** 2
    return lambda given: np.broadcast_to(fixed, (len(given), *fixed.shape))


def _ordinal(given: Floats) -> Floats:
    """Square the ratings from one value to the other, half of each end's own left out."""
    middle = given.cumsum(axis=1) - given / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _by_cluster(values: Floats, cluster: Ints) -> Floats:
    known, place = np.unique(cluster, return_inverse=True)
    return sums_within(place, values, len(known))
