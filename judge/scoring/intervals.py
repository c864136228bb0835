"""Intervals of means that lie on a scale with two ends."""

import math

from judge.ifeval.accuracy import wilson
from rating.uncertainty.student import quantile

LEVEL = 0.95


def bounded(
    mean: float, standard_error: float, n: int, low: float, high: float
) -> dict[str, float]:
    """Give the 95 % interval of a mean as ``lower`` and ``upper``, within its scale.

    Wilson's interval for as many wins and losses as would have this standard error, with the
    quantile of Student's t for ``n - 1`` degrees of freedom. Where all values are alike, which
    leaves no standard error to go by, for ``n`` of them.

    Parameters
    ----------
    mean, standard_error : float
        NaN where they are not known.
    n : int
        Values behind the mean, or groups of them that stand and fall together.
    low, high : float
        The ends of the scale.

    Returns
    -------
    dict
        NaN for both where the standard error is not known.

    References
    ----------
    .. [1] E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small
       expected number of positive counts estimated from survey data", Survey Methodology 24(2),
       1998, pp. 193-201.

    Examples
    --------
    >>> ends = bounded(50.0, 5.0, 101, 0.0, 100.0)
    >>> round(ends["lower"], 1), round(ends["upper"], 1)
    (40.3, 59.7)
    """
    if n < 2 or math.isnan(mean) or math.isnan(standard_error):
        return {"lower": math.nan, "upper": math.nan}
    wide = high - low
    share, error = (mean - low) / wide, standard_error / wide
    size = share * (1 - share) / error**2 if error > 0 and 0 < share < 1 else float(n)
    lower, upper = wilson(share, size, LEVEL, n - 1)
    return {"lower": low + wide * lower, "upper": low + wide * upper}


def unbounded(mean: float, standard_error: float, n: int) -> dict[str, float]:
    """Give the 95 % interval of a mean on a scale whose ends are not known, by Student's t.

    NaN for both where there is no standard error, or all values are alike: then nothing says how
    far others might be.

    Examples
    --------
    >>> ends = unbounded(5.0, 0.5, 11)
    >>> round(ends["lower"], 2), round(ends["upper"], 2)
    (3.89, 6.11)
    """
    if n < 2 or not standard_error > 0:
        return {"lower": math.nan, "upper": math.nan}
    reach = quantile(LEVEL, n - 1) * standard_error
    return {"lower": mean - reach, "upper": mean + reach}
