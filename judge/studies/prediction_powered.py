"""Means of few votes, made more precise by many verdicts and never wrong because of them."""

from dataclasses import dataclass

import numpy as np

from judge.studies.estimates import Estimate
from judge.studies.power_tuning import NOTHING_TO_GAIN, Clusters, Moments, Parts, parts
from rating.errors import DataError, NotIdentifiedError
from rating.typing import Floats, Ints

FOLDS = 5
NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean of people's scores, with and without the judge's help.

    Attributes
    ----------
    value, lower, upper, standard_error : float
    judge_weight : float
        ``lam``, the mean of the folds': from 0, people alone, to 1.
    gain : Estimate
        As many times the votes would give the same variance without the judge, with an interval;
        1 without one where the judge has no weight, and no value where its verdicts explain every
        vote, or votes are on fewer than 20 prompts. ``n`` is the number of prompts with votes.
    explained : float or None
        Share of the variance of the votes that endless verdicts would take away: the squared
        correlation of both, None where one of them does not vary.
    people_only : Estimate
        The mean of the votes alone.
    people_error : float
        Its standard error.
    n, n_judged : int
        Items with votes, and items with a verdict and no vote.
    warnings : tuple of str
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    judge_weight: float
    gain: Estimate
    explained: float | None
    people_only: Estimate
    people_error: float
    n: int
    n_judged: int
    warnings: tuple[str, ...]


def powered_mean(
    people: Floats,
    judge: Floats,
    prompt: Ints,
    *,
    level: float = 0.95,
    probability: Floats | None = None,
    folds: int = FOLDS,
) -> PoweredMean:
    """Estimate people's mean score over all items from the few that they voted on.

    ::

        mean_voted(people - lam judge) + lam mean_rest(judge)

    with ``lam`` in [0, 1] chosen for the smallest variance [1]_, [2]_. The variance is that of
    one influence summed by prompt over votes and verdicts together; the published formula for
    independent items misses what the items of a prompt have in common, also between the two
    parts. See `judge.studies.power_tuning.ASSUMPTION`.

    A weight that is tuned on the very votes it is to make precise makes their residuals look
    smaller than they are. So prompts are dealt into folds in their order, those with votes and
    those without each in turn, and the items of a fold take the ``lam`` that is best on the other
    folds; the rest takes the mean over the items with both (cross-fitting [3]_). Intervals are
    Student's t with the effective prompts of the votes less one.

    Parameters
    ----------
    people, judge : ndarray of shape (n,)
        A score of each item, such as 1 for a win and 1/2 for a tie; NaN where nobody voted, or
        where there is no verdict.
    prompt : ndarray of shape (n,), int64
        Numbers from 0.
    probability : ndarray of shape (n,), optional
        See `parts`.
    folds : int, default 5
        1 tunes one weight on all prompts, as published.

    Raises
    ------
    DataError
        For columns of different lengths, a chance that is none, or less than one fold.
    NotIdentifiedError
        If the votes are on fewer than five prompts, or show no spread.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic,
       "Prediction-powered inference", Science 382, 2023, pp. 669-674.
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, sections 2 and 6.
    .. [3] T. Zrnic and E. J. Candès, "Cross-prediction-powered inference", PNAS 121(15), 2024;
       there the judge is fitted by folds, here its weight is.

    Examples
    --------
    People and the judge differ on one of the items that both saw; the judge likes the others more.

    >>> people = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, np.nan, np.nan])
    >>> judge = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.5])
    >>> mean = powered_mean(people, judge, np.arange(8), folds=1)
    >>> round(mean.judge_weight, 3), round(mean.value, 3)
    (0.407, 0.534)
    """
    _check(people, judge, prompt, folds)
    voted, judged = ~np.isnan(people), ~np.isnan(judge)
    weigh = parts(voted, judged, probability)
    clusters = Clusters.of(prompt[voted], weigh.voted[voted])
    vote, verdict = np.nan_to_num(people), np.nan_to_num(judge)
    lam = _weights(people, judge, prompt, probability, folds)
    own, mean_lam = float(weigh.voted @ vote), float(weigh.both @ lam)
    value = own + mean_lam * float(weigh.rest @ verdict) - float((weigh.both * lam) @ verdict)
    alone, helped = (
        np.asarray(np.bincount(prompt, one) ** 2, dtype=np.float64)
        for one in _influences(weigh, vote, verdict, lam)
    )
    errors = [float(np.sqrt(clusters.correction * square.sum())) for square in (alone, helped)]
    _check_spread(errors)
    explained = _moments(weigh, vote, verdict, prompt).explained(np.eye(1))
    gain = Estimate(1.0, None, None, clusters.n)
    if mean_lam > 0:
        ratio = float(alone.sum() / helped.sum())
        gain = clusters.gain(ratio, alone, helped, explained, level)
    nothing = () if weigh.has_rest else (NOTHING_TO_GAIN,)
    reach = clusters.reach(level)
    return PoweredMean(
        value=value,
        lower=value - reach * errors[1],
        upper=value + reach * errors[1],
        standard_error=errors[1],
        judge_weight=mean_lam,
        gain=gain,
        explained=explained,
        people_only=Estimate(
            own, own - reach * errors[0], own + reach * errors[0], int(voted.sum())
        ),
        people_error=errors[0],
        n=int(voted.sum()),
        n_judged=int((judged & ~voted).sum()),
        warnings=(*clusters.warnings, *nothing, *clusters.on_gain(gain)),
    )


def _influences(weigh: Parts, vote: Floats, verdict: Floats, lam: Floats) -> tuple[Floats, Floats]:
    """Return what each item adds to the error of the votes' mean, and to that of the powered."""
    alone = weigh.voted * (vote - weigh.voted @ vote)
    on_both = weigh.both * lam * (verdict - weigh.both @ verdict)
    on_rest = weigh.both @ lam * weigh.rest * (verdict - weigh.rest @ verdict)
    return alone, alone - on_both + on_rest


def _weights(
    people: Floats, judge: Floats, prompt: Ints, probability: Floats | None, folds: int
) -> Floats:
    """Return the weight of each item's verdict, tuned where its prompt is not."""
    voted = np.zeros(int(prompt.max()) + 1, dtype=bool)
    voted[prompt[~np.isnan(people)]] = True
    fold = (np.where(voted, np.cumsum(voted), np.cumsum(~voted)) - 1) % folds
    weights = np.zeros(len(people))
    for number in range(folds):
        inside = fold[prompt] == number
        rows = ~inside if folds > 1 else np.ones_like(inside)
        of_rows = None if probability is None else probability[rows]
        weights[inside] = _tuned(people[rows], judge[rows], prompt[rows], of_rows)
    return weights


def _tuned(people: Floats, judge: Floats, prompt: Ints, probability: Floats | None) -> float:
    weigh = parts(~np.isnan(people), ~np.isnan(judge), probability)
    if not weigh.has_rest:
        return 0.0
    moments = _moments(weigh, np.nan_to_num(people), np.nan_to_num(judge), prompt)
    return moments.tuned(np.eye(1))


def _check(people: Floats, judge: Floats, prompt: Ints, folds: int) -> None:
    if not len(people) == len(judge) == len(prompt):
        msg = (
            f"{len(people)} scores of people, {len(judge)} of the judge and {len(prompt)} "
            "prompts: give one of each an item."
        )
        raise DataError(msg)
    if folds < 1:
        raise DataError(f"Prompts are dealt into 1 fold or more, not into {folds}.")


def _check_spread(errors: list[float]) -> None:
    """Raise where all votes are alike, or nothing varies once verdicts are taken off."""
    if min(errors) <= NO_SPREAD:
        what = "votes" if errors[0] <= NO_SPREAD else "votes and verdicts together"
        raise NotIdentifiedError(f"The {what} show no spread: there is no interval.")


def _moments(weigh: Parts, people: Floats, judge: Floats, prompt: Ints) -> Moments:
    def summed(weight: Floats, score: Floats) -> Floats:
        by_prompt = np.bincount(prompt, weight * (score - weight @ score))
        return np.asarray(by_prompt, dtype=np.float64)[:, None]

    return Moments.of(
        summed(weigh.voted, people), summed(weigh.both, judge), summed(weigh.rest, judge)
    )


def effective_sample(n: int, n_judged: int, correlation: float) -> float:
    """Return how many votes alone would be as good as ``n`` with ``n_judged`` verdicts more.

    ``n (n + N) / (n + (1 - r^2) N)`` for independent items, ``r`` the correlation of votes and
    verdicts over items that have both.

    Raises
    ------
    DataError
        For a correlation outside of -1 to 1, no votes, or a negative number of verdicts.

    References
    ----------
    .. [1] P. Boyeau et al., "AutoEval done right: using synthetic data for model evaluation",
       arXiv 2403.07008, 2024; the formula follows from the variance of PPI++ at its best weight.

    Examples
    --------
    >>> round(effective_sample(100, 774, 0.57), 1)
    140.4
    """
    if not -1 <= correlation <= 1:
        raise DataError(f"A correlation lies between -1 and 1, not at {correlation}.")
    if n < 1 or n_judged < 0:
        raise DataError(f"{n} votes and {n_judged} verdicts: give at least one vote.")
    return n * (n + n_judged) / (n + (1 - correlation**2) * n_judged)
