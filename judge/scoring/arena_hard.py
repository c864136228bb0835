"""Arena-Hard: two games a prompt in five levels, as a score against the baseline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.grammar import NOT_PLAYED
from rating.errors import DataError
from rating.leave_out import drawn_sums
from rating.typing import Floats

STRONG = 3
"""Times that a verdict of much better counts."""

_SHARE: Mapping[str, tuple[float, int]] = {
    NOT_PLAYED: (0.0, 0),
    "A>>B": (1.0, STRONG),
    "A>B": (1.0, 1),
    "A=B": (0.5, 1),
    "B>A": (0.0, 1),
    "B>>A": (0.0, STRONG),
}
"""Of a verdict: what goes to side A, and how often it counts."""

Games = tuple[str | None, str | None]
"""Verdicts of the game with the baseline on side A, and of the one with the model there."""


@dataclass(frozen=True, slots=True)
class ArenaHardScore:
    """A model's score against the baseline, in per cent.

    Attributes
    ----------
    score : float
        Share of the weighted games won; NaN without a prompt.
    standard_error, lower, upper : float
        Spread and 95 % percentile interval over resampled prompts; NaN under two prompts.
    n_prompts : int
        Prompts with a verdict of each game that was played.
    n_dropped : int
        Prompts without.
    """

    score: float
    standard_error: float
    lower: float
    upper: float
    n_prompts: int
    n_dropped: int


def arena_hard_score(
    games: Sequence[Games], rng: np.random.Generator, *, draws: int = 1000
) -> ArenaHardScore:
    """Score a model from its verdicts.

    With a single baseline the published Bradley-Terry fit is saturated, so its score is the
    mean of all verdicts, ties half, those of much better `STRONG` times. What we change: the
    published interval resamples those copies, and both games of a prompt, as if they were
    independent, and prints the 5 and 95 % points; here prompts are resampled, at 95 %.

    Parameters
    ----------
    games : sequence of pairs
        One a prompt; None where a game has no verdict: the prompt is left out and counted.
        Of a prompt with `NOT_PLAYED` the other game counts.

    Raises
    ------
    DataError
        For a verdict that was not offered.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024, section 4.
    """
    whole = [(first, second) for first, second in games if first and second]
    sums = np.array([_prompt(first, second) for first, second in whole]).reshape(-1, 2)
    dropped = len(games) - len(whole)
    if len(sums) < 2:
        score = 100 * float(sums[0, 0] / sums[0, 1]) if len(sums) else math.nan
        return ArenaHardScore(score, math.nan, math.nan, math.nan, len(sums), dropped)
    won, counted = sums.sum(axis=0)
    drawn = _resampled(sums, rng, draws)
    lower, upper = np.percentile(drawn, [2.5, 97.5])
    return ArenaHardScore(
        score=100 * float(won / counted),
        standard_error=float(drawn.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        n_prompts=len(sums),
        n_dropped=dropped,
    )


def _resampled(sums: Floats, rng: np.random.Generator, draws: int) -> Floats:
    totals = drawn_sums(sums, draws, rng)
    return np.asarray(100 * totals[:, 0] / totals[:, 1])


def _prompt(first: str, second: str) -> tuple[float, int]:
    """Return what the model won in both games of a prompt, and how much counted."""
    to_baseline, times = _read(first)
    to_model, times_swapped = _read(second)
    return times * (1 - to_baseline) + times_swapped * to_model, times + times_swapped


def _read(verdict: str) -> tuple[float, int]:
    try:
        return _SHARE[verdict]
    except KeyError:
        verdicts = ", ".join(name for name in _SHARE if name != NOT_PLAYED)
        msg = f"There is no verdict {verdict!r}; the verdicts are {verdicts}."
        raise DataError(msg) from None
