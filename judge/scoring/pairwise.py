"""Plain pairwise verdicts: how often each model is preferred, whoever judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rating import Outcome
from rating.errors import DataError
from rating.typing import Floats, Ints


@dataclass(frozen=True, slots=True)
class PairwiseScores:
    """One model in all its battles.

    Attributes
    ----------
    win_rate : float
        Per cent, ties half, both bad being a tie.
    standard_error : float
        Per cent; over prompts where they are known, so many verdicts on one prompt count as
        what they are. NaN under two prompts.
    """

    model: str
    n: int
    n_wins: int
    n_ties: int
    n_losses: int
    win_rate: float
    standard_error: float


def pairwise_scores(
    model_a: Sequence[str],
    model_b: Sequence[str],
    outcome: Sequence[Outcome],
    prompt: Sequence[str] | None = None,
) -> tuple[PairwiseScores, ...]:
    """Score every model, sorted by name.

    The win rate depends on whom a model met: for ratings that do not, fit the same rows with
    `rating.rate`.

    Raises
    ------
    DataError
        If the columns have different lengths.
    """
    lengths = {len(model_a), len(model_b), len(outcome), len(prompt or outcome)}
    if len(lengths) > 1:
        msg = f"Columns of {', '.join(map(str, sorted(lengths)))} rows: give one value a row."
        raise DataError(msg)
    a, b = np.array(model_a, dtype=np.str_), np.array(model_b, dtype=np.str_)
    score = np.array([one.score_a for one in outcome], dtype=np.float64)
    groups = np.arange(len(a)) if prompt is None else np.unique(prompt, return_inverse=True)[1]
    return tuple(
        _one(
            str(name),
            np.r_[score[a == name], 1 - score[b == name]],
            np.r_[groups[a == name], groups[b == name]],
        )
        for name in np.union1d(a, b)
    )


def _one(model: str, score: Floats, group: Ints) -> PairwiseScores:
    return PairwiseScores(
        model=model,
        n=len(score),
        n_wins=int((score == 1).sum()),
        n_ties=int((score == 0.5).sum()),
        n_losses=int((score == 0).sum()),
        win_rate=100 * float(score.mean()),
        standard_error=100 * clustered_error(score, group),
    )


def clustered_error(values: Floats, group: Ints) -> float:
    """Return the standard error of a mean over groups; NaN under two.

    With one value a group it is the usual one, ``sd / sqrt(n)``.
    """
    places = np.unique(group, return_inverse=True)[1]
    moved = np.bincount(places, values - values.mean()) / len(values)
    n = len(moved)
    return math.sqrt(n / (n - 1) * float(moved @ moved)) if n > 1 else math.nan
