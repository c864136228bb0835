"""Win rates between all pairs: expected by the fit, and observed."""

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from rating.comparisons import Comparisons
from rating.covariance import Covariance
from rating.errors import DataError
from rating.fit import Fit
from rating.ties import SCORE_A

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WinRates:
    """Expected and observed scores of row against column, a tie half a win.

    All arrays have shape (n_models, n_models).

    Attributes
    ----------
    models : tuple of str
    expected, low, high : ndarray
        Chance that row beats column, plus half that of a tie of either kind,
        each model as often on side A as on side B, features at zero; with
        its interval. NaN on the diagonal.
    observed, observed_low, observed_high : ndarray
        Share of the weighted score, with Wilson's interval; NaN for a pair
        that never met.
    n : ndarray
        Weight of the votes.
    """

    models: tuple[str, ...]
    expected: Floats
    low: Floats
    high: Floats
    observed: Floats
    observed_low: Floats
    observed_high: Floats
    n: Floats


def win_rates(
    fit: Fit, data: Comparisons, covariance: Covariance, *, level: float = 0.95
) -> WinRates:
    """Set the win rates that a fit expects beside those observed.

    The interval of the expected rate is by the delta method on its log-odds,
    with Student's t where the covariance has finite degrees of freedom. The
    observed one takes votes as independent, ``weight^2 / weight_sq`` of them,
    and a tie as if it were decided: wide rather than narrow.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and
       statistical inference", JASA 22(158), 1927, pp. 209-212.

    Examples
    --------
    >>> from rating import covariance, fit
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> found = fit(data)
    >>> spread = covariance(found, data, method="sandwich", cluster=None)
    >>> float(win_rates(found, data, spread).expected[0, 1].round(6))
    0.75
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    rate, variance = _expected(fit, covariance.matrix)
    wide = float(scipy.special.stdtrit(covariance.df, (1 + level) / 2))
    if np.isinf(covariance.df):
        wide = float(scipy.special.ndtri((1 + level) / 2))
    odds = np.log(rate / (1 - rate))
    reach = wide * np.sqrt(variance) / (rate * (1 - rate))
    observed, observed_low, observed_high, n = _observed(data, level)
    return WinRates(
        models=fit.models,
        expected=rate,
        low=1 / (1 + np.exp(reach - odds)),
        high=1 / (1 + np.exp(-reach - odds)),
        observed=observed,
        observed_low=observed_low,
        observed_high=observed_high,
        n=n,
    )


def _expected(fit: Fit, matrix: Floats) -> tuple[Floats, Floats]:
    """Return the expected rates and their variances, NaN on the diagonal."""
    k = fit.n_models
    row, column = np.divmod(np.arange(k * k), k)
    rate, slope = np.zeros(k * k), np.zeros((3, k * k))
    order = fit.x[k] if fit.order_effect else 0.0
    gap, level = fit.theta[row] - fit.theta[column], (fit.theta[row] + fit.theta[column]) / 2
    on_order = np.zeros(k * k)
    for side in (1.0, -1.0):
        share, change = _score(fit, side * gap + order, level)
        rate += (share if side > 0 else 1 - share) / 2
        slope += np.stack([change[0], side * change[1], side * change[2]]) / 2
        on_order += side * change[0] / 2
    at = (rate.reshape(k, k), _delta(fit, matrix, row, column, slope, on_order).reshape(k, k))
    for table in at:
        np.fill_diagonal(table, np.nan)
    return at


def _score(fit: Fit, gap: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Return side A's expected score and its derivatives in gap, tie parameter and level."""
    names = fit.likelihood.coordinates
    share, change = np.zeros(len(gap)), np.zeros((3, len(gap)))
    for code in fit.likelihood.outcomes:
        outcome = np.full(len(gap), code)
        local = fit.likelihood.surprise(outcome, gap, float(fit.x[-1]), level)
        part = SCORE_A[code] * np.exp(-local.value)
        share += part
        for name, value in zip(names, local.slope, strict=True):
            change[("gap", "tie", "level").index(name)] -= part * value
    return share, change


def _delta(
    fit: Fit,
    matrix: Floats,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    slope: Floats,
    on_order: Floats,
) -> Floats:
    """Return the variance of each rate from its derivatives in the parameters."""
    on_gap, on_tie, on_level = slope
    parts = [(row, on_gap + on_level / 2), (column, on_level / 2 - on_gap)]
    if fit.order_effect:
        parts.append((np.full_like(row, fit.n_models), on_order))
    if "tie" in fit.likelihood.coordinates:
        parts.append((np.full_like(row, len(matrix) - 1), on_tie))
    return np.asarray(sum(x * y * matrix[i, j] for i, x in parts for j, y in parts))


def _observed(data: Comparisons, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return observed shares, their Wilson limits, and the weight behind them."""
    wins = data.wins()
    n = wins + wins.T
    square = data.table(data.weight_sq).sum(axis=-1)
    square = square + square.T
    met = n > 0
    share = np.where(met, wins, np.nan) / np.where(met, n, 1.0)
    votes = n**2 / np.where(met, square, 1.0)
    z2 = float(scipy.special.ndtri((1 + level) / 2)) ** 2
    scale = np.where(met, votes, 1.0) + z2
    middle = (votes * share + z2 / 2) / scale
    reach = np.sqrt(z2 * (votes * share * (1 - share) + z2 / 4)) / scale
    return share, middle - reach, middle + reach, n
