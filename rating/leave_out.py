"""Variances by the jackknife over voters, prompts or other clusters, and bootstrap draws of them.

Each tool reduces its estimate to one of two things and gets the variance here: the estimate
without each cluster (`jackknife_variance`), or each cluster's influence on it, to first order
(`influence_variance`). `two_way` adds what prompts add to what voters show.
"""

import numpy as np

from rating.typing import Floats, Ints

MOST_CLUSTERS = 4096
"""More clusters than this are drawn in this many random groups, whose sums vary as theirs do: the
width of an interval keeps to some 2 %, which is what a thousand rounds leave open as well."""
_DRAWN_AT_ONCE = 1_000_000

Known = tuple[Floats, Floats]
"""Variances and their degrees of freedom, each of shape (m,)."""


def influence_factor(n: int) -> float:
    """Return ``n / (n - 1)``, by which squared influences are multiplied; infinite under two."""
    return n / (n - 1) if n > 1 else np.inf


def jackknife_factor(n: int) -> float:
    """Return ``(n - 1) / n``, by which squared changes are multiplied; 0 of none."""
    return (n - 1) / n if n else 0.0


def influence_variance(influence: Floats, n: int | None = None) -> Floats:
    """Return ``n / (n - 1) sum_c h_c^2``, where cluster c moves the estimate by about h_c.

    Parameters
    ----------
    influence : ndarray of shape (n_clusters,) or (n_clusters, m)
        Sums to zero over the clusters.
    n : int, optional
        Clusters that count, if not all; fewer than two give infinity.

    Returns
    -------
    ndarray of shape () or (m,)
    """
    n, squares = len(influence) if n is None else n, (influence**2).sum(axis=0)
    return np.asarray(influence_factor(n) * squares if n > 1 else np.full_like(squares, np.inf))


def clustered_variance(influence: Floats, cluster: Ints) -> Floats:
    """Return `influence_variance` of the sums within clusters.

    Parameters
    ----------
    influence : ndarray of shape (n,) or (n, m)
    cluster : ndarray of shape (n,), int
        Any numbers.
    """
    known, place = np.unique(cluster, return_inverse=True)
    columns = influence.reshape(len(influence), -1)
    sums = sums_within(place, columns, len(known))
    return influence_variance(sums.reshape(len(known), *influence.shape[1:]))


def jackknife_variance(without: Floats, around: Floats | float | None = None) -> Floats:
    """Return ``(n - 1) / n sum_c (t_c - t)^2``, where t_c is the estimate without cluster c.

    Parameters
    ----------
    without : ndarray of shape (n_clusters,) or (n_clusters, m)
    around : float or ndarray of shape (m,), optional
        t: the estimate on everything, or by default the mean of t_c, which is no wider.

    References
    ----------
    .. [1] B. Efron and C. Stein, "The jackknife estimate of variance", Annals of Statistics 9(3),
       1981, pp. 586-596.
    """
    moved = without - (without.mean(axis=0) if around is None else around)
    return np.asarray(jackknife_factor(len(without)) * (moved**2).sum(axis=0))


def two_way(first: Known, second: Known, both: Floats) -> Known:
    """Add to the variances by one kind of cluster what another kind adds to them.

    ``A = max(0, V_second - V_both)`` and ``V = V_first + A``, with the degrees of freedom
    ``V^2 / (V_first^2 / df_first + A^2 / df_second)``. Where we deviate from the source: A is
    never negative, so that V is no smaller than V_first.

    Parameters
    ----------
    both : ndarray of shape (m,)
        Variances by the cells of both kinds, such as a voter's votes on one prompt.

    References
    ----------
    .. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway
       clustering", Journal of Business and Economic Statistics 29(2), 2011, pp. 238-249.
    .. [2] F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
       Biometrics Bulletin 2(6), 1946, pp. 110-114.

    Examples
    --------
    >>> both = two_way((np.array(3.0), np.array(9.0)), (np.array(2.0), np.array(5.0)), np.array(1))
    >>> [float(one) for one in both]
    [4.0, 13.333333333333334]
    """
    (one, one_df), (whole, more_df) = first, second
    more = np.maximum(0.0, whole - both)
    total = one + more
    with np.errstate(divide="ignore", invalid="ignore"):
        share = one**2 / one_df + more**2 / more_df
        df = np.nan_to_num(np.where(more > 0, total**2 / share, one_df), posinf=np.inf)
    return total, df


def sums_within(cluster: Ints, values: Floats, n_clusters: int) -> Floats:
    """Sum rows, shape (n, k), within clusters numbered from 0, shape (n_clusters, k)."""
    sums = np.zeros((n_clusters, values.shape[1]))
    for column, total in zip(values.T, sums.T, strict=True):
        total[:] = np.bincount(cluster, column, n_clusters)
    return sums


def draw_counts(n: int, rounds: int, rng: np.random.Generator) -> Floats:
    """Return how often each of n was drawn in each round of a bootstrap, shape (rounds, n)."""
    drawn = rng.integers(n, size=(rounds, n)) + n * np.arange(rounds)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=rounds * n)
    return counts.reshape(rounds, n).astype(np.float64)


def drawn_sums(stats: Floats, rounds: int, rng: np.random.Generator) -> Floats:
    """Return the sums over clusters drawn with replacement, shape (rounds, k).

    Parameters
    ----------
    stats : ndarray of shape (n_clusters, k)
    """
    if not rounds:
        return np.empty((0, stats.shape[1]))
    rows = stats
    if len(stats) > MOST_CLUSTERS:
        of_group = np.arange(len(stats)) % MOST_CLUSTERS
        rng.shuffle(of_group)
        rows = sums_within(of_group, stats, MOST_CLUSTERS)
    at_once = max(1, _DRAWN_AT_ONCE // len(rows))
    sizes = [min(at_once, rounds - start) for start in range(0, rounds, at_once)]
    return np.concatenate([draw_counts(len(rows), size, rng) @ rows for size in sizes])
