"""Means of few votes, made more precise by many verdicts and never wrong because of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.errors import DataError
from judge.study.items import Estimate
from judge.study.power_tuning import NOTHING_TO_GAIN, Clusters, Moments, Parts, parts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean of people's scores, with and without the judge's help.

    Attributes
    ----------
    value, lower, upper, standard_error : float
    judge_weight : float
        ``lam``: from 0, people alone, to 1.
    gain : float
        As many times the votes would give the same variance without the judge.
    explained : float or None
        Share of the variance of the votes that endless verdicts would take away: the squared
        correlation of both, None where one of them does not vary.
    people_only : Estimate
        The mean of the votes alone.
    n, n_judged : int
        Items with votes, and items with a verdict and no vote.
    warnings : tuple of str
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    judge_weight: float
    gain: float
    explained: float | None
    people_only: Estimate
    n: int
    n_judged: int
    warnings: tuple[str, ...]


def powered_mean(
    people: Floats,
    judge: Floats,
    prompt: Ints,
    *,
    level: float = 0.95,
    chance: Floats | None = None,
) -> PoweredMean:
    """Estimate people's mean score over all items from the few that they voted on.

    ::

        mean_voted(people - lam judge) + lam mean_rest(judge)

    with ``lam`` in [0, 1] chosen for the smallest variance [1]_, [2]_. The variance is that of
    one influence summed by prompt over votes and verdicts together; the published formula for
    independent items misses what the items of a prompt have in common, also between the two
    parts. See `judge.study.power_tuning.ASSUMPTION`.

    Parameters
    ----------
    people, judge : ndarray of shape (n,)
        A score of each item, such as 1 for a win and 1/2 for a tie; NaN where nobody voted, or
        where there is no verdict.
    prompt : ndarray of shape (n,), int64
        Numbers from 0.
    chance : ndarray of shape (n,), optional
        See `parts`.

    Raises
    ------
    DataError
        For columns of different lengths, or a chance that is none.
    NotIdentifiedError
        If the votes are on fewer than two prompts.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic,
       "Prediction-powered inference", Science 382, 2023, pp. 669-674.
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, sections 2 and 6.

    Examples
    --------
    People agree with the judge on the items that both saw; the judge likes the others more.

    >>> people = np.array([1.0, 0.0, 1.0, 0.0, np.nan, np.nan])
    >>> judge = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    >>> found = powered_mean(people, judge, np.arange(6))
    >>> round(found.judge_weight, 3), round(found.value, 3)
    (1.0, 1.0)
    """
    _check_lengths(people, judge, prompt)
    voted, judged = ~np.isnan(people), ~np.isnan(judge)
    weigh = parts(voted, judged, chance)
    clusters = Clusters.of(prompt[voted], weigh.voted[voted])
    scores = np.nan_to_num(people), np.nan_to_num(judge)
    own = float(weigh.voted @ scores[0])
    shift = float((weigh.rest - weigh.both) @ scores[1])
    moments, unit = _moments(weigh, *scores, prompt), np.eye(1)
    lam = moments.tuned(unit) if weigh.has_rest else 0.0
    errors = [
        float(np.sqrt(clusters.correction * moments.covariance(unit, at)[0, 0]))
        for at in (lam, 0.0)
    ]
    reach, value = clusters.reach(level), own + lam * shift
    nothing = () if weigh.has_rest else (NOTHING_TO_GAIN,)
    return PoweredMean(
        value=value,
        lower=value - reach * errors[0],
        upper=value + reach * errors[0],
        standard_error=errors[0],
        judge_weight=lam,
        gain=(errors[1] / errors[0]) ** 2 if errors[0] else 1.0,
        explained=moments.explained(unit),
        people_only=Estimate(
            own, own - reach * errors[1], own + reach * errors[1], int(voted.sum())
        ),
        n=int(voted.sum()),
        n_judged=int((judged & ~voted).sum()),
        warnings=(*clusters.warnings, *nothing),
    )


def _check_lengths(people: Floats, judge: Floats, prompt: Ints) -> None:
    if not len(people) == len(judge) == len(prompt):
        msg = (
            f"{len(people)} scores of people, {len(judge)} of the judge and {len(prompt)} "
            "prompts: give one of each an item."
        )
        raise DataError(msg)


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
