"""Arena-Hard: two games a prompt in five levels, as a score against the baseline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from judge.grammar import NOT_PLAYED
from judge.scoring.logistic import Rows, fit_logistic
from rating.errors import DataError
from rating.leave_out import clustered_variance, drawn_sums
from rating.typing import Floats
from rating.uncertainty.student import quantile

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


STYLE = ("length", "headers", "lists", "bold")
"""What upstream's style control counts of a response; it counts tokens for the length."""


def style_controlled(
    models: Sequence[str],
    games: Sequence[Games],
    prompts: Sequence[str],
    counts: Floats,
    of_baseline: Floats,
) -> Mapping[str, dict[str, float]]:
    """Score all models against the baseline as if answers had the same style, as upstream.

    ``logit P(game won) = beta_model + sum_k gamma_k x_k`` over all games of all models, with
    the weights of `arena_hard_score` and ties half, by maximum likelihood. ``x_1`` is
    ``(l_a - l_b) / (l_a + l_b)`` of the lengths, the others ``(d_a - d_b) / (d_a + d_b + 1)`` of
    ``d = count / (l + 1)``, each in standard deviations over the weighted games. The score is
    ``expit(beta)`` in per cent. Where we deviate: lengths are of characters where upstream has
    tokens, a count that never differs has no term, and intervals are clustered by prompt where
    upstream resamples games.

    Parameters
    ----------
    models, games, prompts : sequence of length n
    counts, of_baseline : ndarray of shape (n, 4)
        Of the model's response and of the baseline's, as in `STYLE`.

    Returns
    -------
    mapping of str to dict
        By model ``style_score``, ``style_lower`` and ``style_upper`` in per cent.

    Raises
    ------
    NotIdentifiedError
        If the games do not tell the strengths from the style.
    """
    read = [(n, part) for n, pair in enumerate(games) if all(pair) for part in _games_of(pair)]
    row = np.array([n for n, _ in read], dtype=np.int64)
    share, weight = np.array([part for _, part in read]).reshape(-1, 2).T
    names, place = np.unique([models[n] for n in row], return_inverse=True)
    style = _standardised(_style(counts, of_baseline)[row], weight)
    design = np.hstack([np.eye(len(names))[place], style])
    fitted = fit_logistic(Rows(design, share, weight))
    scores = design * (weight * (share - fitted.probability))[:, None]
    influence = scores @ np.linalg.inv(fitted.hessian)[:, : len(names)]
    prompt = np.unique([prompts[n] for n in row], return_inverse=True)[1]
    n_prompts = len(np.unique(prompt))
    times = quantile(0.95, n_prompts - 1) if n_prompts > 1 else math.nan
    beta = fitted.coefficients[: len(names)]
    reach = times * np.sqrt(clustered_variance(influence, prompt))
    ends = {"style_score": beta, "style_lower": beta - reach, "style_upper": beta + reach}
    return {
        str(name): {end: float(100 * scipy.special.expit(value[n])) for end, value in ends.items()}
        for n, name in enumerate(names)
    }


def _style(counts: Floats, of_baseline: Floats) -> Floats:
    """Give the differences of style, shape (n, 4); two empty answers do not differ in length."""
    length, base = counts[:, :1], of_baseline[:, :1]
    longer = (length - base) / np.maximum(length + base, 1)
    density, other = counts[:, 1:] / (length + 1), of_baseline[:, 1:] / (base + 1)
    return np.hstack([longer, (density - other) / (density + other + 1)])


def _standardised(style: Floats, weight: Floats) -> Floats:
    """Centre columns and divide by their standard deviation, each row as often as it counts."""
    total = weight.sum()
    centred = style - weight @ style / total
    spread = np.sqrt(weight @ centred**2 / (total - 1))
    known = spread > 1e-12
    return np.asarray(centred[:, known] / spread[known])


def _games_of(pair: Games) -> Iterator[tuple[float, int]]:
    """Give the model's share of each game that was played, and how often it counts."""
    for verdict, is_swapped in zip(pair, (True, False), strict=True):
        share, times = _read(str(verdict))
        if times:
            yield (1 - share if is_swapped else share), times


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
