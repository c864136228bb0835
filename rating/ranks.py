"""Rank ranges that hold for all models at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
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
