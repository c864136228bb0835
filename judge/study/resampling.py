"""Intervals by drawing whole prompts with replacement."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from judge.errors import DataError
from judge.study.items import Estimate, Items, Said

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Statistic = Callable[[Floats], Floats]

FEW_PROMPTS = 20
"""Under this many prompts an interval from drawing them is too narrow: say so beside it."""
MOST_CLUSTERS = 4096
"""More prompts than this are drawn in this many random groups, whose sums vary as theirs do: the
width of an interval keeps to some 2 %, which is what a thousand rounds leave open as well."""

_DRAWN_AT_ONCE = 1_000_000


def clustered(
    stats: Floats,
    statistic: Statistic,
    *,
    n: int,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate a function of sums over prompts, with its interval.

    Whole prompts are drawn with replacement, as many as there are, so whatever depends within a
    prompt stays together. A round in which the statistic is not defined counts as endless at both
    ends, and is not dropped: an end that falls on one is None.

    Parameters
    ----------
    stats : ndarray of shape (n_prompts, k)
        What each prompt adds to the sums. A prompt that adds nothing is no part of the draw.
    statistic : callable
        Takes sums of shape (r, k) to values of shape (r,), NaN where not defined.
    n : int
        Comparisons behind the estimate, to hand on.

    Returns
    -------
    Estimate
        Without a value where the statistic is not defined, without an interval where fewer than
        two prompts add to it.

    References
    ----------
    .. [1] A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, 1997,
       section 3.8 (clusters) and 5.3 (percentiles).

    Examples
    --------
    Four prompts of ten votes: 9, 8, 7 and 8 agree.

    >>> sums = np.array([[9.0, 10.0], [8.0, 10.0], [7.0, 10.0], [8.0, 10.0]])
    >>> rate = clustered(sums, lambda s: s[:, 0] / s[:, 1], n=40, rng=np.random.default_rng(1))
    >>> rate.value, rate.lower, rate.upper
    (0.8, 0.725, 0.875)
    """
    value = float(statistic(stats.sum(axis=0, keepdims=True))[0])
    if math.isnan(value):
        return Estimate(None, None, None, n)
    used = stats[(stats != 0).any(axis=1)]
    if len(used) < 2:
        return Estimate(value, None, None, n)
    drawn = statistic(drawn_sums(used, rounds, rng))
    lower, upper = interval(drawn, level)
    return Estimate(value, lower, upper, n)


def drawn_sums(stats: Floats, rounds: int, rng: np.random.Generator) -> Floats:
    """Return the sums over prompts drawn with replacement, shape (rounds, k)."""
    if not rounds:
        return np.empty((0, stats.shape[1]))
    rows = _in_groups(stats, rng) if len(stats) > MOST_CLUSTERS else stats
    at_once = max(1, _DRAWN_AT_ONCE // len(rows))
    sizes = [min(at_once, rounds - start) for start in range(0, rounds, at_once)]
    return np.concatenate([draw_counts(len(rows), size, rng) @ rows for size in sizes])


def draw_counts(n: int, rounds: int, rng: np.random.Generator) -> Floats:
    """Return how often each of n was drawn in each round, shape (rounds, n)."""
    drawn = rng.integers(n, size=(rounds, n)) + n * np.arange(rounds)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=rounds * n)
    return counts.reshape(rounds, n).astype(np.float64)


def interval(drawn: Floats, level: float) -> tuple[float | None, float | None]:
    """Return the percentile interval of rounds; NaN is endless at both ends.

    Raises
    ------
    DataError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    tails = (1 - level) / 2, (1 + level) / 2
    low = np.quantile(np.where(np.isnan(drawn), -np.inf, drawn), tails[0], method="lower")
    high = np.quantile(np.where(np.isnan(drawn), np.inf, drawn), tails[1], method="higher")
    return _finite(low), _finite(high)


def prompts_behind(items: Items, *said: Said) -> int:
    """Return of how many prompts something was said: under `FEW_PROMPTS` intervals need a word."""
    return len(np.unique(items.prompt[np.concatenate([one.item for one in said])]))


def sums_by_prompt(items: Items, values: Floats) -> Floats:
    """Sum one row an item, shape (n_items, k), over the items of each prompt."""
    return sums_within(items.prompt, values, items.n_prompts)


def sums_within(cluster: Ints, values: Floats, n_clusters: int) -> Floats:
    """Sum rows, shape (n, k), within clusters numbered from 0, shape (n_clusters, k)."""
    sums = np.zeros((n_clusters, values.shape[1]))
    for column, total in zip(values.T, sums.T, strict=True):
        total[:] = np.bincount(cluster, column, n_clusters)
    return sums


def _in_groups(stats: Floats, rng: np.random.Generator) -> Floats:
    of_group = np.arange(len(stats)) % MOST_CLUSTERS
    rng.shuffle(of_group)
    return sums_within(of_group, stats, MOST_CLUSTERS)


def _finite(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None
