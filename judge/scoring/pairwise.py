"""Scores of models, and of judges asked in both orders, from pairwise verdicts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.ifeval.accuracy import share
from rating import Outcome
from rating.errors import DataError
from rating.leave_out import clustered_variance
from rating.typing import Bools, Floats, Ints


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
    square = float(clustered_variance(values - values.mean(), group))
    return math.sqrt(square) / len(values) if math.isfinite(square) else math.nan


TIE = "tie"
_CHOICES = ("1", "2")
_UNREAD = "None"


@dataclass(frozen=True, slots=True)
class SwapScores:
    """A judge against labels, with the responses as they are and swapped.

    Attributes
    ----------
    correct_as_is, correct_swapped, correct_mean : float
        Right verdicts in each order and their mean, per cent of all cases; an unread verdict
        is not right, and no tie is.
    lower, upper : float
        Interval of ``correct_mean`` for other prompts (`judge.ifeval.accuracy.share`).
    correct_both, both_lower, both_upper : float
        Right in both orders, per cent, and its interval.
    wrong_both : float
        For the other side in both orders, per cent.
    equal : float
        The same in both orders, unread being the same as unread, per cent.
    n_first, n_second : int
        Cases in which the two orders name different responses: each time what stands first, or
        second.
    kappa_agreement : float
        Cohen's kappa of the two orders, as published: an unread verdict counted as "2".
    miscoded_kappa_as_is, miscoded_kappa_swapped : float
        The published kappas of judge and label, in which labels are coded 1 and 2 and verdicts
        1 and 0: a "2" can never agree. Kept to recognise the published figures; no measure.
    n, n_unread, n_tied : int
        Cases, and verdicts that could not be read or are ties, of twice as many.
    """

    correct_as_is: float
    correct_swapped: float
    correct_mean: float
    lower: float
    upper: float
    correct_both: float
    both_lower: float
    both_upper: float
    wrong_both: float
    equal: float
    n_first: int
    n_second: int
    kappa_agreement: float
    miscoded_kappa_as_is: float
    miscoded_kappa_swapped: float
    n: int
    n_unread: int
    n_tied: int


def swap_scores(
    label: Sequence[str],
    as_is: Sequence[str | None],
    swapped: Sequence[str | None],
    prompt: Sequence[str] | None = None,
    *,
    level: float = 0.95,
) -> SwapScores:
    """Score a judge on cases with a label.

    Parameters
    ----------
    label : sequence of str
        The better response: "1" or "2".
    as_is, swapped : sequence of str or None
        Verdicts with response 1 first, and with response 2 first, both naming responses, not
        places; "tie"; None, or "None", where unread.
    prompt : sequence of str, optional
        What cases are alike within, for intervals; each case by itself if not given.

    Raises
    ------
    DataError
        For lengths that differ, no cases, or any other value.

    References
    ----------
    .. [1] Z. Zeng et al., "Evaluating Large Language Models at Evaluating Instruction
       Following", ICLR 2024, section 4.
    """
    truth, first, second = _checked(label), _checked(as_is), _checked(swapped)
    if not len(truth) == len(first) == len(second) > 0 or not np.isin(truth, _CHOICES).all():
        msg = (
            f"{len(truth)} labels, {len(first)} and {len(second)} verdicts: give one of each "
            "for every case, and only cases with a label."
        )
        raise DataError(msg)
    right, right_swapped = first == truth, second == truth
    clusters = [str(i) for i in range(len(truth))] if prompt is None else list(prompt)
    each = share([*zip(clusters * 2, [*right, *right_swapped], strict=True)], level=level)
    both = share(zip(clusters, right & right_swapped, strict=True), level=level)
    sided = np.isin(first, _CHOICES) & np.isin(second, _CHOICES)
    return SwapScores(
        correct_as_is=_percent(right),
        correct_swapped=_percent(right_swapped),
        correct_mean=(_percent(right) + _percent(right_swapped)) / 2,
        lower=100 * each.low,
        upper=100 * each.high,
        correct_both=_percent(right & right_swapped),
        both_lower=100 * both.low,
        both_upper=100 * both.high,
        wrong_both=_percent(sided & ~right & ~right_swapped),
        equal=_percent(first == second),
        n_first=int((sided & (first == "1") & (second == "2")).sum()),
        n_second=int((sided & (first == "2") & (second == "1")).sum()),
        kappa_agreement=_kappa(_or_two(first), _or_two(second)),
        miscoded_kappa_as_is=_miscoded(truth, first),
        miscoded_kappa_swapped=_miscoded(truth, second),
        n=len(truth),
        n_unread=int((first == _UNREAD).sum() + (second == _UNREAD).sum()),
        n_tied=int((first == TIE).sum() + (second == TIE).sum()),
    )


def _checked(verdicts: Sequence[str | None]) -> NDArray[np.str_]:
    named = [_UNREAD if verdict is None else verdict for verdict in verdicts]
    for name in named:
        if name not in (*_CHOICES, TIE, _UNREAD):
            msg = f"A verdict is {name!r}; verdicts are '1', '2' and 'tie', or None where unread."
            raise DataError(msg)
    return np.array(named, dtype=np.str_)


def _or_two(verdicts: NDArray[np.str_]) -> NDArray[np.str_]:
    return np.where(verdicts == _UNREAD, "2", verdicts)


def _miscoded(truth: NDArray[np.str_], verdicts: NDArray[np.str_]) -> float:
    return _kappa(truth, np.where(verdicts == "1", "1", "0"))


def _percent(right: Bools) -> float:
    return 100 * float(right.mean())


def _kappa(first: NDArray[np.str_], second: NDArray[np.str_]) -> float:
    """Return Cohen's kappa; NaN where one value is all that either uses."""
    values = np.union1d(first, second)
    shares = [np.array([(side == value).mean() for value in values]) for side in (first, second)]
    by_chance = float(shares[0] @ shares[1])
    if by_chance == 1:
        return float("nan")
    return (float((first == second).mean()) - by_chance) / (1 - by_chance)
