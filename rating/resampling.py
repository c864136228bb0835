"""How often each vote, or each cluster of votes, counts in a bootstrap round."""

import math

import numpy as np

from rating.typing import Floats

NORMAL_FROM = 10
"""Votes from which their number in a round is drawn from its normal expansion."""

_LEVELS = 2**16


def poisson_sums(mean: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw Poisson numbers, shape (len(mean), n).

    From a mean of 10 on as ``m + sqrt(m) z + (z^2 - 1) / 6`` with z standard
    normal: not whole, but of the same mean, and of the same variance and
    skewness to a relative 1/(18 m). It takes a fifth of the time.
    """
    drawn = np.empty((len(mean), n))
    large = mean >= NORMAL_FROM
    drawn[~large] = rng.poisson(mean[~large, None], (int((~large).sum()), n))
    z = rng.standard_normal((int(large.sum()), n))
    m = mean[large, None]
    drawn[large] = (m + np.sqrt(m) * z + (z * z - 1) / 6).clip(min=0)
    return drawn


def poisson_ones(n_clusters: int, n: int, rng: np.random.Generator) -> Floats:
    """Draw Poisson numbers of mean one, to 16 bits of probability, shape (n_clusters, n)."""
    return _table_of_ones()[rng.integers(_LEVELS, size=(n_clusters, n), dtype=np.uint16)]


def _table_of_ones() -> Floats:
    upto = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(16)])
    return np.searchsorted(upto, (np.arange(_LEVELS) + 0.5) / _LEVELS).astype(np.float64)
