"""Quantiles of the normal distribution and of Student's t.

`scipy.special` has them, too, but to load it takes longer than to rate a small file.
"""

import math

import numpy as np

from rating.typing import Floats

NEARLY_NORMAL = 1000.0
"""Degrees of freedom from which four terms of the expansion are exact."""
_MOST_STEPS = 100
_MOST_TERMS = 1000
_AT_ONCE = 4096
_LEAST = 1e-300
_LARGEST = 340.0
"""Logarithm of a quantile above which its square is no number: infinite."""


def normal_quantile(tail: float) -> float:
    """Return the number that a standard normal one exceeds with this probability, under 1/2.

    >>> round(normal_quantile(0.025), 6)
    1.959964
    """
    z, step = 0.0, 1.0  # the curve is concave: steps from below never go too far
    for _ in range(_MOST_STEPS):
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        step = (math.erfc(z / math.sqrt(2)) / 2 - tail) / density
        z += step
        if abs(step) <= 1e-15 * z:
            break
    return z


def student_quantiles(tail: float, df: Floats) -> Floats:
    """Return what Student's t exceeds with this probability, by degrees of freedom.

    Newton steps for the logarithm of the probability in that of t, which is concave; from 1,000
    degrees of freedom on the expansion in their inverse. Relative errors are under 1e-11.

    Parameters
    ----------
    tail : float
        Above 0 and under 1/2.
    df : ndarray of shape (n,)
        Positive; infinite for the normal distribution. Quantiles above 1e147, of fewer than a
        hundredth, are infinite.

    References
    ----------
    .. [1] M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 1964, 26.7.5 (the
       expansion) and 26.5.8 (the continued fraction).

    Examples
    --------
    >>> student_quantiles(0.025, np.array([1.0, 10.0, np.inf])).round(4).tolist()
    [12.7062, 2.2281, 1.96]
    """
    z = normal_quantile(tail)
    t = _expanded(z, np.maximum(df, 1e-3))
    few = np.flatnonzero(df < NEARLY_NORMAL)
    few = few[np.argsort(df[few])]  # alike they need as many terms
    for first in range(0, len(few), _AT_ONCE):
        part = few[first : first + _AT_ONCE]
        t[part] = _solved(tail, np.maximum(t[part], z), df[part])
    return t


def quantile(level: float, df: float) -> float:
    """Return by how many standard errors an interval reaches out on either side."""
    return float(quantiles(level, np.array([df]))[0])


def quantiles(level: float, df: Floats) -> Floats:
    """Return `quantile` of each number of degrees of freedom; infinite for none."""
    reach = np.full(df.shape, np.inf)
    reach[df > 0] = student_quantiles((1 - level) / 2, df[df > 0])
    return reach


def _expanded(z: float, df: Floats) -> Floats:
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return np.asarray(z + sum(term / df**power for power, term in enumerate(terms, 1)))


def _solved(tail: float, start: Floats, df: Floats) -> Floats:
    log_t = np.log(start)
    gammas = [math.lgamma(a + 0.5) - math.lgamma(a) for a in (df / 2).tolist()]
    scale = np.exp(gammas) / math.sqrt(math.pi)
    for _ in range(_MOST_STEPS):
        log_t = np.minimum(log_t, _LARGEST)
        above, slope = _tail(np.exp(log_t), df, scale)
        step = np.log(above / tail) * above / slope
        log_t += step
        if np.abs(step[log_t < _LARGEST]).max(initial=0.0) <= 1e-8:  # the next one would be 1e-16
            break
    return np.where(log_t < _LARGEST, np.exp(np.minimum(log_t, _LARGEST)), np.inf)


def _tail(t: Floats, df: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return the probability of exceeding t, and t times the density there."""
    with np.errstate(over="ignore"):
        a, square = df / 2, np.minimum(t * t / df, 1 / _LEAST)
    x, rest = 1 / (1 + square), square / (1 + square)
    density = scale * np.exp(-a * np.log1p(square)) * np.sqrt(rest)
    # The fraction converges fast for the smaller of the two tails of a beta distribution.
    turned = x > (a + 1) / (a + 2.5)
    first, second = np.where(turned, 0.5, a), np.where(turned, a, 0.5)
    share = density * _fraction(first, second, np.where(turned, rest, x)) / first
    return np.where(turned, 1 - share, share) / 2, density


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Evaluate the continued fraction of the incomplete beta function, from its head."""
    c = np.ones_like(x)
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if (np.abs(c * d - 1) <= 1e-15).all():
            break
    return value


def _not_zero(value: Floats) -> Floats:
    return np.where(value == 0, _LEAST, value)
