"""Cluster-robust variances: jackknife, influence functions, and quantiles for intervals.

Each tool reduces its estimate to one of two things and gets the variance here: the estimate
without each cluster (`jackknife_variance`), or each cluster's influence on it, to first order
(`influence_variance`). `two_way` adds what prompts add to what voters show; `draw_counts` and
`drawn_sums` are for the bootstrap. `quantile` gives half-widths in standard errors; its quantiles
are computed here because `scipy.special` takes longer to load than a small file takes to rate.
"""

import math

import numpy as np

from rating.typing import Floats, Ints

# Jackknife and influence


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


def positive_part(matrix: Floats) -> Floats:
    """Drop what a difference of covariances has below zero, direction by direction."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def effective_count(counts: Floats | Ints) -> float:
    """Return how many clusters of equal counts amount to the same: ``(sum n)^2 / sum n^2``.

    >>> effective_count(np.array([2, 2])), effective_count(np.array([]))
    (2.0, 0.0)
    """
    n = counts.astype(np.float64)
    return float(n.sum() ** 2 / (n**2).sum()) if n.any() else 0.0


def sums_within(cluster: Ints, values: Floats, n_clusters: int) -> Floats:
    """Sum rows, shape (n, k), within clusters numbered from 0, shape (n_clusters, k)."""
    sums = np.zeros((n_clusters, values.shape[1]))
    for column, total in zip(values.T, sums.T, strict=True):
        total[:] = np.bincount(cluster, column, n_clusters)
    return sums


# Bootstrap


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


# Quantiles of the normal distribution and of Student's t


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
