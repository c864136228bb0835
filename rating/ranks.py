"""Rank ranges that hold for all models at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rating.clusters import grouping
from rating.comparisons import Comparisons
from rating.covariance import Covariance
from rating.fit import Fit
from rating.wild import wild_critical_value

MIN_EFFECTIVE_FOR_RANKS = 15
"""Effective voters from which ranks are claimed, if there are as many as models."""
EQUAL_NATS = 1e-9
"""Strengths this close share a rank."""
DRAWS = 10_000
WILD_UP_TO = 100
"""Models beyond which the maximum is drawn from a multivariate t."""
CHUNK_ENTRIES = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class RankRanges:
    """The ranks each model may hold; all ranges are right together at the level asked for.

    Attributes
    ----------
    low, high : ndarray of shape (n_models,), int64
        Best and worst rank, 1 being the best of all.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]


def joint_rank_ranges(
    fit: Fit,
    data: Comparisons,
    covariance: Covariance,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> RankRanges:
    """Bound every model's rank by the differences that stand up together: the board's way.

    With one kind of cluster, left out one at a time (CR3), and up to
    `WILD_UP_TO` models, the bar is the largest t statistic when clusters
    change their sign (see `rating.wild`); otherwise it is drawn from a
    multivariate normal or t as in `rank_ranges`. No claim is made on models
    that one cluster alone joins to the rest.

    Parameters
    ----------
    covariance : Covariance
        Of this fit and these votes.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference
       for ranks with applications to mobility across neighbourhoods and
       academic achievement across countries", Review of Economic Studies
       91(1), 2024, pp. 476-518.
    """
    comparable = np.array([name not in covariance.lone_models for name in fit.models])
    matrix = covariance.strengths
    if _is_wild(covariance):
        groups = grouping(data, covariance.cluster)  # type: ignore[arg-type]
        bar = wild_critical_value(
            fit, data, groups, matrix, rng=rng, level=level, comparable=comparable
        )
    else:
        bar = critical_value(matrix, rng=rng, df=covariance.df, level=level)
    return _ranges(fit.theta, matrix, bar, comparable)


def overlap_ranks(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rank by intervals that do not overlap: what the LMArena boards print.

    ``1 + #{m': lower(m') > upper(m)}``. For comparison with those boards
    only: several models share the first rank, the rank is a best one without
    a worst, and it does not hold for all models at the level of the intervals.

    References
    ----------
    .. [1] W.-L. Chiang et al., "Chatbot Arena: an open platform for evaluating
       LLMs by human preference", arXiv 2403.04132, 2024, equation 8 (there
       with simultaneous intervals).

    Examples
    --------
    >>> overlap_ranks(np.array([4.0, 1.0, 3.0]), np.array([6.0, 2.0, 5.0])).tolist()
    [1, 3, 1]
    """
    return np.asarray(1 + (lower[None, :] > upper[:, None]).sum(axis=1))


def _is_wild(covariance: Covariance) -> bool:
    one_kind = covariance.cluster in ("voter", "prompt")
    return covariance.method == "cr3" and one_kind and covariance.n_models <= WILD_UP_TO


def rank_ranges(
    theta: NDArray[np.float64],
    covariance: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    df: float = np.inf,
    level: float = 0.95,
    comparable: NDArray[np.bool_] | None = None,
) -> RankRanges:
    """Bound every model's rank by the differences that stand up together.

    Model i is better than j when ``theta[i] - theta[j]`` exceeds
    `critical_value` standard errors of that difference. Its range runs from
    1 + (models better than it) to n_models - (models worse than it).

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
    covariance : ndarray of shape (n_models, n_models)
    df : float, default infinity
        Degrees of freedom; infinity for the normal distribution.
    comparable : ndarray of shape (n_models,), bool, optional
        Models whose covariance may be relied on; no claim is made on a pair
        with any other. All by default.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference
       for ranks with applications to mobility across neighbourhoods and
       academic achievement across countries", Review of Economic Studies
       91(1), 2024, pp. 476-518. The maximum there is bootstrapped; here it is
       drawn from a multivariate t.

    Examples
    --------
    >>> ranges = rank_ranges(np.array([1.0, 0.0, -1.0]), np.diag([0.01, 0.3, 0.01]),
    ...                      rng=np.random.default_rng(1))
    >>> ranges.low.tolist(), ranges.high.tolist()
    ([1, 1, 2], [2, 3, 3])
    """
    bar = critical_value(covariance, rng=rng, df=df, level=level)
    return _ranges(theta, covariance, bar, comparable)


def _ranges(
    theta: NDArray[np.float64],
    covariance: NDArray[np.float64],
    bar: float,
    comparable: NDArray[np.bool_] | None,
) -> RankRanges:
    better = theta[:, None] - theta[None, :] > bar * _standard_errors(covariance)
    if comparable is not None:
        better &= comparable[:, None] & comparable[None, :]
    return RankRanges(low=1 + better.sum(axis=0), high=len(theta) - better.sum(axis=1))


def critical_value(
    covariance: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    df: float = np.inf,
    level: float = 0.95,
) -> float:
    """Draw the quantile of the largest absolute t statistic over all pairs of models.

    `DRAWS` vectors of the multivariate normal or t with this covariance; the
    quantile is the next order statistic up, so never below the level.
    """
    first, second = np.triu_indices(len(covariance), k=1)
    errors = _standard_errors(covariance)[first, second]
    per_chunk = max(1, CHUNK_ENTRIES // len(errors))
    largest = [
        np.abs((draws[:, first] - draws[:, second]) / errors).max(axis=1)
        for draws in np.array_split(_draws(covariance, rng, df), -(-DRAWS // per_chunk))
    ]
    return float(np.quantile(np.concatenate(largest), level, method="higher"))


def _draws(
    covariance: NDArray[np.float64], rng: np.random.Generator, df: float
) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T  # symmetric, hence unique
    normal = rng.standard_normal((DRAWS, len(values))) @ root
    if np.isinf(df):
        return np.asarray(normal)
    return np.asarray(normal / np.sqrt(rng.chisquare(df, (DRAWS, 1)) / df))


def _standard_errors(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    variance = np.diag(covariance)
    square = variance[:, None] + variance[None, :] - 2 * covariance
    np.fill_diagonal(square, np.inf)  # no model is better than itself
    return np.asarray(np.sqrt(square))
