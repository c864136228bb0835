"""Ratings by people from few votes and many verdicts: prediction-powered Bradley-Terry."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.estimates import Estimate, finite
from judge.studies.items import Items, Labels
from judge.studies.power_tuning import (
    ASSUMPTION,
    FEWEST_OF_A_PAIR,
    NOTHING_TO_GAIN,
    Clusters,
    Moments,
    Problem,
    by_pair,
    problem_of,
    row_scores,
)
from judge.studies.voters_and_prompts import (
    bread_at,
    founded,
    moments_at,
    pull,
    solved,
    uncertainty,
)
from rating.elo import to_points
from rating.errors import NotIdentifiedError
from rating.likelihood.objective import win_probability
from rating.typing import Bools, Floats
from rating.uncertainty.sequence import Lead, require_comparable

UNLIKELY = 0.01
"""Under this chance a difference between the items with votes and the rest is reported."""
FEW_VOTERS = 15.0
_NO_PAIR = (
    f"No two models have {FEWEST_OF_A_PAIR} verdicts on items with votes, and as many on others: "
    "the judge adds nothing to the votes."
)
_UNLIKE = "The judge's verdicts on the items with votes differ from those on the rest"

RATING = ("rating", "lower", "upper", "df")
POWERED = ("ratings", *(f"effective_sample_gain{end}" for end in ("", "_lower", "_upper")))


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Strengths with their uncertainty.

    Attributes
    ----------
    theta, lower, upper : ndarray of shape (n_models,)
        Nats; the strengths sum to zero over the models with 15 effective voters and prompts or
        more, over all if fewer than two have them. Ends are NaN where ``df`` is less than one.
    variance, df : ndarray of shape (n_models,)
        Of each strength, and the degrees of freedom by voters and prompts.
    averaged : ndarray of shape (n_models,), bool
        Models whose strengths sum to zero.
    """

    theta: Floats
    lower: Floats
    upper: Floats
    variance: Floats
    df: Floats
    averaged: Bools


@dataclass(frozen=True, slots=True, eq=False)
class PoweredRatings:
    """Ratings by people, with and without the judge's help.

    Attributes
    ----------
    models : tuple of str, length n_models
        Those with votes, sorted.
    ratings : Ratings
        By votes and verdicts together.
    human_only : Ratings
        By the votes alone; each item counts once, however many voted on it.
    judge_weight : float
        ``lam``: from 0, people alone, to 1.
    gain : Estimate
        Total variance of ``human_only`` over that of ``ratings``: as many times the votes would
        do without the judge. 1 without an interval where the judge has no weight, and no value
        where its verdicts explain every vote, or votes are on fewer than 20 prompts. ``n`` is the
        number of prompts with votes.
    explained : float or None
        Share of the variance of the votes that endless verdicts on other prompts would take away:
        the squared correlation of what votes and verdicts do to the ratings. None without items
        that have both.
    level : float
        Of the intervals.
    n, n_judged : int
        Items with votes, and items with a verdict and no vote.
    n_prompts : int
        Prompts of the items with votes.
    random_subset_p : float or None
        Chance of the judge differing so much between the items with votes and the rest, were the
        former a random subset; None where it cannot be tested.
    warnings : tuple of str
    assumption : str
    """

    models: tuple[str, ...]
    ratings: Ratings
    human_only: Ratings
    judge_weight: float
    gain: Estimate
    explained: float | None
    level: float
    n: int
    n_judged: int
    n_prompts: int
    random_subset_p: float | None
    warnings: tuple[str, ...]
    assumption: str = ASSUMPTION

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, by the names `POWERED`."""
        ratings, gain = self.ratings, self.gain
        points = (to_points(x) for x in (ratings.theta, ratings.lower, ratings.upper))
        rated = [
            {"model": model, **dict(zip(RATING, map(finite, row), strict=True))}
            for model, *row in zip(self.models, *points, ratings.df, strict=True)
        ]
        values = (rated, gain.value, gain.lower, gain.upper)
        return dict(zip(POWERED, values, strict=True))


def powered_ratings(
    items: Items,
    people: Labels,
    judge: Labels,
    *,
    level: float = 0.95,
    probability: Floats | None = None,
) -> PoweredRatings:
    """Rate models by people's preferences from the votes on some items and verdicts on more.

    Minimise, over strengths that sum to zero,

    ::

        mean_voted l(vote) - lam mean_both l(verdict) + lam mean_rest l(verdict)

    where ``l(s) = log(1 + exp(gap)) - s gap`` is the surprise of a score s of side A, a tie
    counting as half: the mean of an item's votes, and of a judge's probabilities where it gave
    them, its verdicts otherwise. The means are over the items with votes, those with a verdict as
    well, and those with a verdict alone; ``lam`` in [0, 1] minimises the total variance. What is
    estimated is Bradley-Terry under the pairs of the items, whatever the judge is like.

    Votes and verdicts are summed by voter and by prompt before they are squared, with Student's t
    for the effective voters and prompts behind each rating: see
    `judge.studies.voters_and_prompts.uncertainty`. The published covariance takes items as
    independent: too narrow where they share prompts, or votes share voters. ``lam`` is tuned on
    the covariance by prompt.

    Parameters
    ----------
    people, judge : Labels
        A judge's repetitions and orders are averaged. Where voters are not known, each vote is of
        a voter of its own: the intervals then allow for prompts alone.
    probability : ndarray of shape (n_items,), optional
        With what probability each item was sent to people, where it was not the same for all.

    Raises
    ------
    NotIdentifiedError
        If the votes alone leave a strength without a finite value, show no spread or are on
        fewer than five prompts, or the verdicts pull the loss down without end.
    DataError
        For a chance that is none.

    References
    ----------
    .. [1] P. Boyeau, A. N. Angelopoulos, N. Yosef, J. Malik and M. I. Jordan, "AutoEval done
       right: using synthetic data for model evaluation", arXiv 2403.07008, 2024, section 4.
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, sections 5 and 6.
    """
    problem, left_out = problem_of(items, people, judge, probability)
    weigh = problem.parts
    clusters = Clusters.of(problem.items.prompt[problem.voted], weigh.voted[problem.voted])
    alone = solved(problem, 0.0)
    start = moments_at(problem, alone)
    bread = bread_at(problem, alone, 0.0)
    lam = start.tuned(bread) if weigh.has_rest else 0.0
    _check_spread(start)
    explained = start.explained(bread)
    average = founded(problem, alone)
    human_only, by_prompt = _ratings(problem, alone, 0.0, level, average)
    ratings, gain = human_only, Estimate(1.0, None, None, clusters.n)
    if lam > 0:
        theta = solved(problem, lam)
        ratings, powered_by_prompt = _ratings(problem, theta, lam, level, average)
        ratio = float(human_only.variance.sum() / ratings.variance.sum())
        gain = clusters.gain(ratio, by_prompt, powered_by_prompt, explained, level)
    subset_p = _random_subset(problem, alone, start, clusters)
    return PoweredRatings(
        models=problem.items.models,
        ratings=ratings,
        human_only=human_only,
        judge_weight=lam,
        gain=gain,
        explained=explained,
        level=level,
        n=int(problem.voted.sum()),
        n_judged=int((problem.judged & ~problem.voted).sum()),
        n_prompts=clusters.n,
        random_subset_p=subset_p,
        warnings=(
            *left_out,
            *clusters.warnings,
            *_on_voters(people),
            *_without_interval(problem.items.models, ratings),
            *_on_parts(problem, subset_p),
            *clusters.on_gain(gain),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredLead:
    """The lead of one model over another by votes and verdicts together.

    Attributes
    ----------
    judge_weight : float
        ``lam``, of least variance of this lead.
    verdicts : int
        Items with a verdict that counted; 0 where the judge has no weight.
    """

    lead: Lead
    judge_weight: float
    verdicts: int
    warnings: tuple[str, ...]


def powered_lead(
    items: Items, people: Labels, judge: Labels, between: tuple[str, str]
) -> PoweredLead:
    """Estimate the lead of one model over another from votes and verdicts.

    As `powered_ratings`, but that verdicts count pair by pair
    (`judge.studies.power_tuning.by_pair`), and that ``lam`` in [0, 1] minimises the variance of
    this lead alone. Where the verdicts on the items with votes differ from those on the rest, pair
    by pair, the judge is left out, and a warning says so.

    Raises
    ------
    NotIdentifiedError
        As `powered_ratings`; and if nobody voted on one of the two, votes do not link them, or
        either has won and lost too few.
    """
    problem, left_out = problem_of(items, people, judge, None)
    ends = _ends(problem, between)
    clusters = Clusters.of(problem.items.prompt[problem.voted], problem.parts.voted[problem.voted])
    contrast = np.zeros((1, len(problem.items.models)))
    contrast[0, ends[0]], contrast[0, ends[1]] = 1.0, -1.0
    theta = solved(problem, 0.0)
    problem = by_pair(problem, theta)
    start = moments_at(problem, theta)
    _check_spread(start)
    subset_p = _random_subset(problem, theta, start, clusters)
    lam, warnings = 0.0, left_out
    if subset_p is not None and subset_p < UNLIKELY:
        warnings += (f"{_UNLIKE} (p = {subset_p:.2g}): the judge is left out.",)
    elif problem.parts.has_rest:
        toward = bread_at(problem, theta, 0.0) @ contrast[0]
        lam = start.tuned(np.outer(toward, toward))
        theta = solved(problem, lam)
    else:
        warnings += (_NO_PAIR,)
    errors = uncertainty(problem, theta, lam, contrast)
    lead = Lead(
        value=float(contrast[0] @ theta),
        variance=float(errors.two_way[0]),
        df=float(errors.df[0]),
        of_prompts=float(errors.added[0]),
        by_prompt=float(errors.by_prompt[0]),
        prompt_df=float(errors.prompt_df[0]),
        independent=float(errors.independent[0]),
        effective=float(errors.effective[0]),
    )
    counted = (problem.parts.both > 0) | (problem.parts.rest > 0)
    return PoweredLead(
        lead=lead,
        judge_weight=lam,
        verdicts=int(counted.sum()) if lam > 0 else 0,
        warnings=warnings,
    )


def _ends(problem: Problem, between: tuple[str, str]) -> tuple[int, int]:
    """Find the two among the rated models; raise where nothing can be told of them yet."""
    for name in between:
        if name not in problem.items.models:
            raise NotIdentifiedError(f"Nobody voted on {name!r} yet.")
    ends = problem.items.models.index(between[0]), problem.items.models.index(between[1])
    votes = problem.votes
    k = len(problem.items.models)
    place = np.full(int(max(problem.item.max(), votes.item.max())) + 1, -1)
    place[problem.item] = np.arange(len(problem.item))
    at = place[votes.item]
    (a, b), score = problem.items.pairs[at[at >= 0]].T, row_scores(votes)[at >= 0]
    wins = np.zeros((k, k))
    np.add.at(wins, (a, b), score == 1)
    np.add.at(wins, (b, a), score == 0)
    require_comparable(wins, ends)
    return ends


def _check_spread(moments: Moments) -> None:
    """Raise where every vote is as expected to the digit, as when all are ties."""
    if np.trace(moments.people) <= np.finfo(np.float64).eps ** 2:
        raise NotIdentifiedError("The votes show no spread, such as ties alone: no intervals.")


def _ratings(
    problem: Problem, theta: Floats, lam: float, level: float, average: Bools
) -> tuple[Ratings, Floats]:
    """Return strengths with their intervals, and what each prompt adds to the variances."""
    errors = uncertainty(problem, theta, lam, np.eye(len(theta)) - average / average.sum())
    half = errors.half_width(level)
    theta = theta - theta[average].mean()
    ratings = Ratings(theta, theta - half, theta + half, errors.variance, errors.df, average)
    return ratings, errors.of_prompts


def _random_subset(
    problem: Problem, theta: Floats, moments: Moments, clusters: Clusters
) -> float | None:
    """Test that verdicts on the items with votes are like those on the rest.

    The judge's part of the gradient has mean zero when the items with votes are a random subset;
    its square in units of its covariance is compared with an F distribution (Hotelling).
    """
    k, n, weigh = len(theta), clusters.effective, problem.parts
    if not weigh.has_rest or n <= 2 * k:
        return None
    a, b = problem.items.pairs.T
    residual = win_probability(theta)[a, b] - np.nan_to_num(problem.judge)
    gap = pull(problem.items.pairs, (weigh.rest - weigh.both) * residual, k)
    square = clusters.correction * moments.judge
    if np.linalg.matrix_rank(square) < k - 1:
        return None
    statistic = float(gap @ np.linalg.pinv(square, rcond=1e-10, hermitian=True) @ gap)
    df = n - k + 1
    return float(scipy.special.fdtrc(k - 1, df, statistic * df / ((n - 1) * (k - 1))))


def _on_parts(problem: Problem, subset_p: float | None) -> tuple[str, ...]:
    warnings = []
    if not problem.parts.has_rest:
        warnings.append(NOTHING_TO_GAIN)
    unjudged = int((problem.voted & ~problem.judged).sum())
    if unjudged:
        warnings.append(
            f"{unjudged} items have votes and no verdict: they count in the votes alone."
        )
    if subset_p is not None and subset_p < UNLIKELY:
        warnings.append(
            f"{_UNLIKE} (p = {subset_p:.2g}): these are not a random subset, and the judge's help "
            "may mislead. Read the ratings by votes alone, or give the chances with which items "
            "were sent to people."
        )
    return tuple(warnings)


def _on_voters(people: Labels) -> tuple[str, ...]:
    count = np.bincount(people.rater).astype(np.float64)
    effective = float(count.sum() ** 2 / (count @ count))
    if effective >= FEW_VOTERS:
        return ()
    return (
        f"The votes are those of {effective:.1f} effective voters: the intervals of ratings by "
        "people are for voters like these, and as wide as so few make them.",
    )


def _without_interval(models: tuple[str, ...], ratings: Ratings) -> tuple[str, ...]:
    names = [model for model, low in zip(models, ratings.lower, strict=True) if np.isnan(low)]
    if not names:
        return ()
    return (
        "Ratings without an interval, for behind them stand less than two effective voters, or "
        f"prompts: {', '.join(names)}.",
    )
