"""The interval of what was never measured, from known models that are left out in turn.

Jackknife+ of Barber, Candès, Ramdas and Tibshirani (Annals of Statistics 49, 2021), section 1.2,
over models instead of rows; two of its intervals, and Student's t where its ranks do not exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.soft_verdicts import Placed
from rating.typing import Floats
from rating.uncertainty.student import quantile


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """A known model rated as if it were new, and the newcomer without it.

    Attributes
    ----------
    people, judge : Placed
        Its strength against the other known models.
    newcomer : float
        Strength of the newcomer without this model's votes; of all anchors' average.
    """

    model: int
    people: Placed
    judge: Placed
    newcomer: float

    @property
    def residual(self) -> float:
        """By how much people rate it above the judge, nats."""
        return self.people.theta - self.judge.theta

    @property
    def variance(self) -> float:
        """Of the residual, from sampling."""
        return self.people.variance + self.judge.variance


def between(residual: Floats, variance: Floats) -> float:
    """Return by what variance residuals of mean zero exceed their sampling variances.

    The value at which their squares over the sum of both add up to their number; 0 where they
    never do.

    Examples
    --------
    >>> round(between(np.array([2.0, -2.0]), np.array([1.0, 1.0])), 6)
    3.0
    """

    def excess(gap: float) -> float:
        return float((residual**2 / (variance + gap)).sum()) - len(residual)

    if excess(0.0) <= 0:
        return 0.0
    highest = float((residual**2).max()) * len(residual)
    return float(scipy.optimize.brentq(excess, 0.0, highest))


def jackknife_plus(centres: Floats, reach: Floats, level: float) -> tuple[float, float] | None:
    """Return the interval of jackknife+; None where there are too few for its ranks.

    Parameters
    ----------
    centres : ndarray of shape (n,)
        What is predicted without each of n units.
    reach : ndarray of shape (n,)
        How far the prediction of that unit was off.

    Examples
    --------
    >>> jackknife_plus(np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), 0.6)
    (-3.0, 3.0)
    """
    n = len(centres)
    rank = int(np.ceil(round(level * (n + 1), 9)))
    if rank > n:
        return None
    lower = np.sort(centres - reach)[n - rank]
    upper = np.sort(centres + reach)[rank - 1]
    return float(lower), float(upper)


@dataclass(frozen=True, slots=True)
class Interval:
    """A strength with its interval, nats."""

    theta: float
    lower: float
    upper: float


def interval(
    theta: float, own_variance: float, others: Sequence[LeftOut], gap: float, level: float
) -> Interval:
    """Give a strength its interval from the errors on known models.

    The narrower of two: by standardised residuals, for how badly the gap is known widened by
    Student's t; and by residuals as they are, which hold the uncertainty of people's ratings too.
    """
    n = len(others)
    residual = np.array([one.residual for one in others])
    total = np.array([one.variance for one in others]) + gap
    centres = np.array([one.newcomer for one in others])
    own = own_variance + gap
    df = float(np.clip(own**2 * (1 / total**2).sum(), 1.0, n))
    wider = quantile(level, df) / quantile(level, n)
    plain = np.sqrt(residual**2 + own_variance)
    by_size = jackknife_plus(centres, np.abs(residual) * np.sqrt(own / total) * wider, level)
    as_it_is = jackknife_plus(centres, plain, level)
    if by_size is None or as_it_is is None:
        spread = min(
            quantile(level, min(df, n - 1)) * float(np.sqrt(own)),
            quantile(level, n - 1) * float(np.sqrt(np.mean(plain**2))),
        )
        half = spread * float(np.sqrt(1 + 1 / n))
        return Interval(theta, theta - half, theta + half)
    lower, upper = max(by_size[0], as_it_is[0]), min(by_size[1], as_it_is[1])
    return Interval(theta, min(lower, theta), max(upper, theta))
