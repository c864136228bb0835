"""Win rates between all pairs, expected and observed, and against an average opponent."""

from dataclasses import dataclass

import numpy as np

from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.fitting import Fit
from rating.likelihood.ties import SCORE_A
from rating.typing import Floats, Ints
from rating.uncertainty.contrasts import Inference, Pairs
from rating.uncertainty.student import quantile


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


def win_rates(inference: Inference, *, level: float = 0.95) -> WinRates:
    """Set the win rates that a fit expects beside those observed.

    The interval of the expected rate is by the delta method on its log-odds,
    with the variance and the degrees of freedom of the pair. The observed one
    takes votes as independent, ``weight^2 / weight_sq`` of them, and a tie as
    if it were decided: wide rather than narrow.

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
    >>> from rating import fit, infer
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> float(win_rates(infer(fit(data), data, ())).expected[0, 1].round(6))
    0.75
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    fit, pairs = inference.fit, inference.pairs
    rate, slope = _expected(fit, pairs.first, pairs.second)
    on_odds = slope / (rate * (1 - rate))[:, None]
    reach = inference.of(on_odds, pairs.behind).half_width(level)
    odds = np.log(rate / (1 - rate))
    low, high = 1 / (1 + np.exp(reach - odds)), 1 / (1 + np.exp(-reach - odds))
    observed, observed_low, observed_high, n = _observed(inference.data, level)
    return WinRates(
        models=fit.models,
        expected=_mirrored(pairs, rate, 1 - rate),
        low=_mirrored(pairs, low, 1 - high),
        high=_mirrored(pairs, high, 1 - low),
        observed=observed,
        observed_low=observed_low,
        observed_high=observed_high,
        n=n,
    )


def _mirrored(pairs: Pairs, value: Floats, other: Floats) -> Floats:
    """Lay out a value of each pair, and that of its second model; NaN on the diagonal."""
    size = int(pairs.second[-1]) + 1
    laid = np.full((size, size), np.nan)
    laid[pairs.first, pairs.second], laid[pairs.second, pairs.first] = value, other
    return laid


def _expected(fit: Fit, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the rates of pairs, and their derivatives in all parameters."""
    k, n = fit.n_models, np.arange(len(first))
    rate, slope, along = np.zeros(len(first)), np.zeros((3, len(first))), np.zeros(len(first))
    order = fit.x[k] if fit.order_effect else 0.0
    gap, level = fit.theta[first] - fit.theta[second], (fit.theta[first] + fit.theta[second]) / 2
    for side in (1.0, -1.0):
        share, change = _score(fit, side * gap + order, level)
        rate += (share if side > 0 else 1 - share) / 2
        slope += np.stack([change[0], side * change[1], side * change[2]]) / 2
        along += side * change[0] / 2
    on_gap, on_tie, on_level = slope
    on_all = np.zeros((len(first), len(fit.x)))
    on_all[n, first] = on_gap + on_level / 2
    on_all[n, second] = on_level / 2 - on_gap
    if fit.order_effect:
        on_all[:, k] = along
    if "tie" in fit.likelihood.coordinates:
        on_all[:, -1] = on_tie
    return rate, on_all


def _score(fit: Fit, gap: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Return side A's expected score and its derivatives in gap, tie parameter and level."""
    names = fit.likelihood.coordinates
    share, change = np.zeros(len(gap)), np.zeros((3, len(gap)))
    for code in fit.likelihood.outcomes:
        outcome = np.full(len(gap), code)
        local = fit.likelihood.loss(outcome, gap, float(fit.x[-1]), level)
        part = SCORE_A[code] * np.exp(-local.value)
        share += part
        for name, value in zip(names, local.slope, strict=True):
            change[("gap", "tie", "level").index(name)] -= part * value
    return share, change


def _observed(data: Comparisons, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return observed shares, their Wilson limits, and the weight behind them."""
    wins = data.wins()
    n = wins + wins.T
    square = data.table(data.weight_sq).sum(axis=-1)
    square = square + square.T
    met = n > 0
    share = np.where(met, wins, np.nan) / np.where(met, n, 1.0)
    votes = n**2 / np.where(met, square, 1.0)
    z2 = quantile(level, np.inf) ** 2
    scale = np.where(met, votes, 1.0) + z2
    middle = (votes * share + z2 / 2) / scale
    reach = np.sqrt(z2 * (votes * share * (1 - share) + z2 / 4)) / scale
    return share, middle - reach, middle + reach, n


@dataclass(frozen=True, slots=True, eq=False)
class FieldRates:
    """How each model is expected to fare against the others, each met equally often.

    Attributes
    ----------
    models : tuple of str
    rate, low, high : ndarray of shape (n_models,)
        Expected score, a tie half a win, and its interval.
    """

    models: tuple[str, ...]
    rate: Floats
    low: Floats
    high: Floats


def field_rates(inference: Inference, *, level: float = 0.95) -> FieldRates:
    """Average a model's expected win rate over all the others.

    ``w_i = sum_(j != i) p_ij / (n_models - 1)`` with
    ``p_ij = sigmoid(theta_i - theta_j)``. The interval is by the delta method
    on the log-odds of ``w_i``: others' errors count. Its effective voters are those behind the
    rating, see `rating.uncertainty.contrasts`.

    Parameters
    ----------
    inference : Inference
        Of a fit with ties as half wins and without an order effect.

    Raises
    ------
    DataError
        If the fit has other parameters, or ``level`` is not between 0 and 1.

    Examples
    --------
    >>> from rating import Comparisons, fit, infer
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> field_rates(infer(fit(data), data, ())).rate.round(6).tolist()
    [0.75, 0.25]
    """
    fit = inference.fit
    if fit.parameters:
        named = ", ".join(p.name for p in fit.parameters)
        raise DataError(f"Rates against the field are of strengths alone; this fit has {named}.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    probability = 1 / (1 + np.exp(fit.theta[None, :] - fit.theta[:, None]))
    others = fit.n_models - 1
    rate = (probability.sum(axis=1) - 0.5) / others
    slope = -probability * (1 - probability) / others
    np.fill_diagonal(slope, 0.0)
    np.fill_diagonal(slope, -slope.sum(axis=1))
    slope /= (rate * (1 - rate))[:, None]
    behind = [kind.own.effective for kind in inference.shared]
    reach = inference.of(slope, behind).half_width(level)
    odds = np.log(rate / (1 - rate))
    return FieldRates(
        models=fit.models,
        rate=rate,
        low=1 / (1 + np.exp(reach - odds)),
        high=1 / (1 + np.exp(-reach - odds)),
    )
