"""How far a fit is from one that follows every ordered pair of models exactly."""

from dataclasses import dataclass

import numpy as np

from rating.comparisons import Comparisons
from rating.ties import BOTH_BAD, SCORE_A, TIE, Likelihood
from rating.typing import Floats


@dataclass(frozen=True, slots=True)
class Deviance:
    """Twice the log-likelihood that a fit lacks.

    Attributes
    ----------
    value : float
        Weighted, in nats.
    df : int
        Free cells of the ordered pairs that met, less the free parameters.
    """

    value: float
    df: int


def deviance(
    data: Comparisons, likelihood: Likelihood, surprise: float, *, n_free: int
) -> Deviance:
    """Compare with the saturated model: each ordered pair has its own shares of the outcomes.

    Sides count: a pair that met both ways is two rows (baseball's 42).

    Parameters
    ----------
    surprise : float
        Minus the log-likelihood of the fit.
    n_free : int
        Parameters of the fit, all strengths counted.

    References
    ----------
    .. [1] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, section 10.6.
    """
    counts = outcome_counts(data.table(), likelihood)
    played = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / played[..., None]), 0.0)
    n_cells = int((played > 0).sum()) * (len(likelihood.outcomes) - 1)
    absolute = "level" in likelihood.coordinates
    return Deviance(2 * (float(terms.sum()) + surprise), n_cells - (n_free - (not absolute)))


def outcome_counts(table: Floats, likelihood: Likelihood) -> Floats:
    """Merge the outcomes that the likelihood does not tell apart.

    Parameters
    ----------
    table : ndarray of shape (..., 4)

    Returns
    -------
    ndarray of shape (..., n_outcomes)
        In the order of ``likelihood.outcomes``; under half wins a tie adds
        half to each side.
    """
    if len(likelihood.outcomes) == 2:
        return np.stack([table @ SCORE_A, table @ (1 - SCORE_A)], axis=-1)
    merged = table.copy()
    if BOTH_BAD not in likelihood.outcomes:
        merged[..., TIE] += merged[..., BOTH_BAD]
    return np.asarray(merged[..., list(likelihood.outcomes)])
