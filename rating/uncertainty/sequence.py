"""Intervals that may be looked at after every voter: confidence sequences."""

import numpy as np

from rating.typing import Floats, Ints

MIN_VOTERS = 30


def boundary(t: Ints | Floats, rho: float, *, level: float = 0.95) -> Floats:
    """Return how many spreads of one voter the mean of t voters may lie off, at all t at once.

    ::

        sqrt(2 * (t * rho**2 + 1) / (t * rho)**2 * log(sqrt(t * rho**2 + 1) / (1 - level)))

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas,
       "Time-uniform central limit theory and asymptotic confidence
       sequences", Annals of Statistics 52(6), 2024, pp. 2613-2640, theorem
       2.2, and its appendix on rho.
    """
    grown = t * rho**2 + 1
    square = 2 * grown / (t * rho) ** 2 * np.log(np.sqrt(grown) / (1 - level))
    return np.asarray(np.sqrt(square))


def tightest_at(planned: int, *, level: float = 0.95) -> float:
    """Return the rho that makes a confidence sequence tightest after ``planned`` voters.

    ``sqrt((-2 ln alpha + ln(1 - 2 ln alpha)) / planned)``, nearly.

    Examples
    --------
    >>> round(tightest_at(2000), 4)
    0.063
    """
    log_alpha = np.log1p(-level)
    return float(np.sqrt((-2 * log_alpha + np.log(1 - 2 * log_alpha)) / planned))
