"""AlpacaEval 2: preferences from two log-probabilities, and what they make of one model."""

import math
from dataclasses import dataclass

import numpy as np

from rating.typing import Bools, Floats

DRAWS = (0.0, 1.5)
"""Preferences that are draws: 0 in annotations of the first version, 1.5 since."""


@dataclass(frozen=True, slots=True)
class AlpacaEvalScores:
    """One model against the baseline, in per cent; NaN where too few rows leave it undefined.

    Attributes
    ----------
    n : int
        Rows with a preference.
    n_wins, n_losses : int
        Rows whose preference lies on the model's side, or the baseline's, however slightly.
    n_ties : int
        Rows marked as draws.
    win_rate, standard_error : float
        Mean preference and its standard error over rows.
    discrete_win_rate : float
        Each preference first rounded to a win or a loss, a draw half.
    n_dropped : int
        Rows without a preference, or with one outside of [1, 2]: left out, not guessed.
    """

    n: int
    n_wins: int
    n_ties: int
    n_losses: int
    win_rate: float
    standard_error: float
    discrete_win_rate: float
    n_dropped: int


def wins(preference: Floats) -> Floats:
    """Turn preferences into the model's share of each row: 0 loss, 1/2 draw, 1 win.

    Parameters
    ----------
    preference : ndarray of shape (n,)
        1 where the baseline is better, 2 where the model is, between them how sure the judge
        was; `DRAWS` are draws.

    Returns
    -------
    ndarray of shape (n,)
        NaN where there is no preference, or it lies outside of [1, 2].
    """
    level = np.where(preference == 0, 1.5, preference)
    share = level - 1
    return np.where((level >= 1) & (level <= 2), share, np.nan)


def alpaca_eval_scores(preference: Floats) -> AlpacaEvalScores:
    """Score one model.

    Examples
    --------
    >>> scores = alpaca_eval_scores(np.array([1.0, 2.0, 1.5, 1.75, np.nan]))
    >>> scores.win_rate, scores.discrete_win_rate, scores.n_wins, scores.n_ties, scores.n_dropped
    (56.25, 62.5, 2, 1, 1)

    References
    ----------
    .. [1] X. Li et al., AlpacaEval, github.com/tatsu-lab/alpaca_eval, metrics `winrate`.
    """
    share = wins(np.asarray(preference, dtype=np.float64))
    used = ~np.isnan(share)
    share, drawn = share[used], np.isin(preference, DRAWS)[used]
    n = len(share)
    # Halves go to the even neighbour, upstream's rounding: 1.5 and 2.5 to 2, .5 to 0.
    whole = np.where(drawn, 0.5, np.round(share + 1) - 1)
    return AlpacaEvalScores(
        n=n,
        n_wins=int((share > 0.5).sum()),
        n_ties=int(drawn.sum()),
        n_losses=int((share < 0.5).sum()),
        win_rate=_mean(share),
        standard_error=100 * float(share.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan,
        discrete_win_rate=_mean(whole),
        n_dropped=int((~used).sum()),
    )


def _mean(share: Floats) -> float:
    return 100 * float(share.mean()) if len(share) else math.nan


def preferences_from_logprobs(first: Floats, second: Floats, shown_first: Bools) -> Floats:
    """Read preferences from the log-probabilities of the two labels.

    ``P(first) = exp(first) / (exp(first) + exp(second))``; the preference for what was shown
    second is ``2 - P(first)``, and is turned round where the model was shown first.

    Parameters
    ----------
    first, second : ndarray of shape (n,)
        Log-probability that the reply names the response shown first, or second; -inf where
        the label was not among the most probable.
    shown_first : ndarray of shape (n,), bool
        Where the model's response was the first.

    Returns
    -------
    ndarray of shape (n,)
        NaN where neither label has a probability: such a reply is unread, no draw.
    """
    neither = np.isneginf(first) & np.isneginf(second)
    gap = np.where(neither, np.nan, 0.0)
    np.subtract(second, first, out=gap, where=~neither)
    with np.errstate(over="ignore"):  # an infinite odds is a probability of zero
        of_second = 2 - 1 / (1 + np.exp(gap))
    return np.where(shown_first, 3 - of_second, of_second)
