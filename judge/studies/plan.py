"""Sample-size planning of studies: votes beside a judge, ratings, and Krippendorff's alpha.

`plan_votes` describes how many items people must vote on beside a judge, `sending` which ones.
`plan_ratings` gives half-widths of other designs from the components of variance, `plan_alpha`
those of alpha.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import scipy

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import (
    FEW_PROMPTS,
    FEWEST_PEOPLE,
    SHARE,
    Components,
    Draws,
    Estimate,
    Raters,
    clustered,
    ratio,
    scores_of,
)
from judge.studies.powered import (
    PoweredRatings,
    Problem,
    Ratings,
    bread_at,
    powered_ratings,
    problem_of,
)
from judge.studies.reliability import Ratings as RaterMarks
from judge.studies.rows import Items, Labels
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import quantile, quantiles, sums_within, two_way
from rating.likelihood import win_probability
from rating.sentences import plural
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT

# Votes beside a judge


WANTED = (100.0, 50.0, 30.0, 20.0, 10.0, 5.0)
"""Half-widths in points that are planned for, as far as they are not reached."""

MOST_WANTED = 3

MOST_SENT = 100
EXPLORATION = 0.1
"""Share of the votes spread evenly, so that every item has a fair probability."""

NO_COMMON = "No items have votes and verdicts that vary: the judge's value is unknown."

PRIOR_ITEMS = 10.0
"""Items without any relation that are added to those from which residuals are learnt."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What a vote and a verdict are worth.

    Attributes
    ----------
    variance : float
        Of the estimate from one item with votes, were there only that one: n times the variance
        of the estimate by n of them. That of ratings is read off their intervals, and so allows
        for few voters.
    explained : float
        Share of it that the judge explains, from 0 to 1: its squared correlation with people.
    n_voted, n_items : int
        Items with votes, and all items that have votes or a verdict.
    """

    variance: float
    explained: float
    n_voted: int
    n_items: int

    @classmethod
    def of_ratings(cls, ratings: PoweredRatings) -> "Signal":
        """Read it off the intervals of ratings, in squared points, the mean over the models.

        Raises
        ------
        NotIdentifiedError
            If no item has votes and a verdict, or no rating has an interval.
        """
        wide = half_width(ratings.human_only) / quantile(ratings.level, np.inf)
        if ratings.explained is None:
            raise NotIdentifiedError(NO_COMMON)
        n = ratings.n
        return cls(n * wide**2, ratings.explained, n, n + ratings.n_judged)


def half_width(ratings: Ratings) -> float:
    """Return half of the intervals of ratings in points, the root of the mean square.

    Raises
    ------
    NotIdentifiedError
        If no rating has an interval.
    """
    half = (ratings.upper - ratings.lower)[~np.isnan(ratings.lower)] / 2
    if not len(half):
        raise NotIdentifiedError("No rating has an interval: there is none to narrow.")
    return POINTS_PER_NAT * float(np.sqrt((half**2).mean()))


@dataclass(frozen=True, slots=True)
class _Purchase:
    """How many items people must have voted on for a wanted half-width.

    Attributes
    ----------
    votes : int
        With the judge's help, those there are included.
    more : int
        Of these, still to come.
    without_judge : int
        By votes alone.
    enough_items : bool
        Whether the items with verdicts suffice; if not, ``votes`` is ``without_judge``, and items
        must be added.
    """

    votes: int
    more: int
    without_judge: int
    enough_items: bool

    @property
    def saved(self) -> int:
        """Votes that the judge saves."""
        return self.without_judge - self.votes


def votes_to_buy(signal: Signal, half_width: float, *, level: float = 0.95) -> _Purchase:
    """Describe how many items people must vote on until intervals are as narrow as wanted.

    With n of M judged items voted on, the variance of the powered estimate at its best weight is
    ``s^2 / n (1 - r^2 (M - n) / M)``, s² the variance of one item and r² the share that the judge
    explains; setting it to ``t^2 = (half_width / z)^2`` gives::

        n = s^2 (1 - r^2) / (t^2 - s^2 r^2 / M)

    if that is no more than M, else ``s^2 / t^2`` votes on more items. Variances are taken to fall
    as one over the items: more votes by more voters and verdicts on more prompts, not more of the
    same.

    Parameters
    ----------
    half_width : float
        Wanted, in the unit of the signal: points for ratings.

    Raises
    ------
    DataError
        If the half-width is not positive or ``level`` not between 0 and 1.

    References
    ----------
    .. [1] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, section 6; solved for n here.

    Examples
    --------
    A judge that explains half of a coin's variance, 10,000 verdicts, one point of 50%.

    >>> votes_to_buy(Signal(0.25, 0.5, 100, 10_000), 0.0196).more
    1329
    """
    if not 0 < half_width < np.inf:
        raise DataError(f"A half-width is positive and finite, not {half_width}.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    wanted = (half_width / quantile(level, np.inf)) ** 2
    alone = max(ceil(signal.variance / wanted), 1)
    enough = alone <= signal.n_items
    votes = _with_judge(signal, wanted) if enough else alone
    return _Purchase(votes, max(votes - signal.n_voted, 0), alone, enough)


def _with_judge(signal: Signal, wanted: float) -> int:
    left = wanted - signal.variance * signal.explained / signal.n_items
    if left <= 0:
        return signal.n_items
    return min(max(ceil(signal.variance * (1 - signal.explained) / left), 1), signal.n_items)


@dataclass(frozen=True, slots=True, eq=False)
class _Sending:
    """Which items to send to people next.

    Attributes
    ----------
    item : ndarray of shape (n_open,), int64
        Items with a verdict and no vote, between rated models.
    probability : ndarray of shape (n_open,)
        With which each is drawn; they sum to the votes to buy.
    overall : ndarray of shape (n_items,)
        Chance of each judged item to have votes in the end, if those with votes so far were drawn
        at random: what `powered_ratings` needs to know afterwards. Zero where none is known.
    """

    item: Ints
    probability: Floats
    overall: Floats

    def draw(self, rng: np.random.Generator) -> Ints:
        """Draw items, each with exactly its probability, as many as the votes to buy.

        Steps of one from a random start along the summed probabilities, the items shuffled
        (systematic sampling).

        References
        ----------
        .. [1] W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical
           Statistics 20(3), 1949, pp. 333-354.
        """
        order = rng.permutation(len(self.item))
        upto = np.cumsum(self.probability[order])
        n = round(float(upto[-1]))
        at = np.searchsorted(upto * (n / upto[-1]), np.arange(n) + rng.random(), side="right")
        return np.sort(self.item[order[at]])


def sending(
    items: Items, people: Labels, judge: Labels, n: int, powered: PoweredRatings | None = None
) -> _Sending:
    """Say with what probability each judged item should be sent to people.

    In proportion to how far its vote is expected to move the ratings: ``||H^- (e_a - e_b)||``
    times the root mean square of ``vote - p - lam (verdict - p)``, p the probability by the
    ratings. The latter is learnt from the items with both: where the judge is unsure, or its
    verdict surprises, more is left open. A tenth of the votes is spread evenly.

    Rate afterwards with ``powered_ratings(..., probability=sending.overall)``: items with votes
    are no random subset any more.

    Parameters
    ----------
    people : Labels
        Votes on a random subset of the items, to learn from.
    n : int
        Items to send.
    powered : PoweredRatings, optional
        What `powered_ratings` gives for the same, where it is at hand.

    Raises
    ------
    DataError
        If ``n`` is not between 1 and the items that have a verdict and no vote.
    NotIdentifiedError
        If the votes so far do not determine ratings, or none is on an item with a verdict.

    References
    ----------
    .. [1] T. Zrnic and E. J. Candès, "Active statistical inference", arXiv 2403.03208, 2024,
       section 4; how residuals are learnt is ours.
    """
    powered = powered or powered_ratings(items, people, judge)
    problem, _ = problem_of(items, people, judge, None)
    if not (problem.judged & problem.voted).any():
        raise NotIdentifiedError(NO_COMMON)
    index = np.flatnonzero(problem.judged & ~problem.voted)
    if not 1 <= n <= len(index):
        msg = f"{n} items to send, of {len(index)} with a verdict and no vote: choose 1 or more."
        raise DataError(msg)
    worth = np.where(problem.judged, _moves(problem, powered) * _residual(problem, powered), 0.0)
    probability = _probabilities(worth, problem.judged & ~problem.voted, n)
    before = problem.voted[problem.judged].mean()
    overall = np.zeros(items.n)
    overall[problem.item] = np.where(problem.judged, before + (1 - before) * probability, 0.0)
    return _Sending(problem.item[index], probability[index], overall)


def _moves(problem: Problem, powered: PoweredRatings) -> Floats:
    """Return how far a residual of one would move the strengths."""
    bread = bread_at(problem, powered.human_only.theta, 0.0)
    inner = bread @ bread.T
    size = np.diag(inner)
    square = np.maximum(size[:, None] + size - 2 * inner, 0)
    return np.asarray(np.sqrt(square)[problem.items.pairs[:, 0], problem.items.pairs[:, 1]])


def _residual(problem: Problem, powered: PoweredRatings) -> Floats:
    """Return the expected size of what each verdict leaves open; NaN without a verdict.

    Squared residuals of the items with both, regressed on how unsure the judge is and on how much
    the verdict surprises; at least a tenth of their mean.
    """
    a, b = problem.items.pairs.T
    expected = win_probability(powered.ratings.theta)[a, b]
    away, lam = problem.judge - expected, powered.judge_weight
    both = problem.judged & problem.voted
    square = (problem.people - expected - lam * away)[both] ** 2
    features = np.column_stack([problem.judge * (1 - problem.judge), np.abs(away)])
    spread = features[both].std(axis=0)
    scaled = (features - features[both].mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    known = scaled[both]
    slopes = np.linalg.solve(
        known.T @ known + PRIOR_ITEMS * np.eye(2), known.T @ (square - square.mean())
    )
    return np.asarray(np.sqrt(np.maximum(square.mean() + scaled @ slopes, square.mean() / 10)))


def _probabilities(worth: Floats, is_open: Bools, n: int) -> Floats:
    """Scale to probabilities of at most one that sum to n over the open items."""
    low, high = 0.0, 1.0
    n_open = int(is_open.sum())
    floor = EXPLORATION * n / n_open

    def at(scale: float) -> Floats:
        return np.minimum(floor + scale * worth, 1.0)

    while at(high)[is_open].sum() < n and high < np.finfo(np.float64).max / 4:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[is_open].sum() < n else (low, middle)
    return at(high)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many votes intervals of some widths take.

    Attributes
    ----------
    half_width : float
        Of the ratings now, with the judge's help: points, the root of the mean square.
    purchases : mapping of float to Purchase
        By half-width wanted.
    sent : mapping of int to float
        Items drawn for people to vote on next, of those that were judged and have no vote, each
        with its chance to have votes in the end, as `_Sending.overall`. Empty where all have.
    by_pair : mapping of (str, str) to (float, float)
        By the two models: share of what is sent, and of what is open; most sent first.
    """

    half_width: float
    purchases: dict[float, _Purchase]
    sent: dict[int, float]
    by_pair: dict[tuple[str, str], tuple[float, float]]


def plan_votes(
    data: StudyData, judge: JudgeVerdicts, powered: PoweredRatings, rng: np.random.Generator
) -> Plan:
    """Describe what to buy until ratings by people are as sure as wanted.

    Raises
    ------
    NotIdentifiedError
        If nothing shows what the judge is worth, or no rating has an interval.
    """
    signal = Signal.of_ratings(powered)
    now = half_width(powered.ratings)
    wanted = [width for width in WANTED if width < now][:MOST_WANTED]
    bought = {width: votes_to_buy(signal, width, level=powered.level) for width in wanted}
    n = min(MOST_SENT, powered.n_judged)
    if not n:
        return Plan(now, bought, {}, {})
    drawn = sending(data.items, data.people, judge.verdicts, n, powered)
    sent = {item: float(drawn.overall[item]) for item in drawn.draw(rng).tolist()}
    return Plan(now, bought, sent, _by_pair(data, drawn))


def _by_pair(data: StudyData, drawn: _Sending) -> dict[tuple[str, str], tuple[float, float]]:
    models = data.items.models
    key = data.items.pairs[drawn.item] @ np.array([len(models), 1])
    pairs, number = np.unique(key, return_inverse=True)
    sent = np.bincount(number, drawn.probability) / drawn.probability.sum()
    there = np.bincount(number) / len(drawn.item)
    named = [(models[pair // len(models)], models[pair % len(models)]) for pair in pairs.tolist()]
    return {
        named[i]: (float(sent[i]), float(there[i]))
        for i in np.argsort(-sent, kind="stable").tolist()
    }


# Ratings


WANTED_RATERS = 0.05
"""Half-width that is planned for where none is named."""
EACH = (1, 2, 3, 5, 8)
"""Ratings an item that are tried."""
MOST_ITEMS = 1_000_000
_QUANTILES = (np.arange(64) + 0.5) / 64
ALIKE = 0.05
"""Two ways of going on are alike where one half-width is within this part of the other."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Whether an interval is as narrow as wanted.

    Attributes
    ----------
    half_width : float or None
        Now; None where there is no interval.
    reached : bool
    more : int or None
        About how many more ratings it takes, 0 where it is reached; None where that is unknown.
    """

    wanted: float
    half_width: float | None
    reached: bool
    more: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def enough(estimate: Estimate, wanted: float, *, ratings: int, prompts: int) -> Enough:
    """Return whether an estimate is sure enough, or about how many more ratings make it so.

    The square of a half-width falls as one over the ratings as long as new items come with new
    ratings and the people stay as many: where few raters are what keeps it wide, more people are
    needed, see `half_width`.

    It may be asked as often as one likes: whether to go on hangs on how wide the interval is,
    not on what it says, and then its coverage tends to its level [1]_ (0.925 to 0.943 of
    simulated studies that were looked at every 20 ratings). To stop as soon as an interval
    excludes a value is another thing, for which it is not valid: that takes
    `rating.decide`.

    Parameters
    ----------
    estimate : Estimate
        A share, or a coefficient such as alpha.
    wanted : float
        Half-width.
    ratings, prompts : int
        Behind the estimate. Under `FEW_PROMPTS` prompts an interval is too narrow to stop by.

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.

    References
    ----------
    .. [1] Y. S. Chow and H. Robbins, "On the asymptotic theory of fixed-width sequential
       confidence intervals for the mean", Annals of Mathematical Statistics 36(2), 1965.

    Examples
    --------
    >>> enough(Estimate(0.6, 0.5, 0.7, 200), 0.05, ratings=200, prompts=100).more
    600
    """
    if not 0 < wanted < math.inf:
        raise DataError(f"The half-width wanted must be above 0, not {wanted:g}.")
    if estimate.lower is None or estimate.upper is None:
        return Enough(wanted, None, reached=False, more=None)
    now = (estimate.upper - estimate.lower) / 2
    least = ratings * (FEW_PROMPTS / max(prompts, 1) - 1)
    more = max(0, math.ceil(max(ratings * ((now / wanted) ** 2 - 1), least)))
    return Enough(wanted, now, reached=more == 0, more=more)


def preference(items: Items, labels: Labels, draws: Draws) -> Estimate:
    """Estimate the share of side A among ratings, a tie half; of other items and other raters."""
    return share_of(items, labels, np.column_stack([scores_of(labels), np.ones(labels.n)]), draws)


def share_of(
    items: Items, labels: Labels, each: Floats, draws: Draws, lost: Floats | None = None
) -> Estimate:
    """Estimate a share of ratings.

    Parameters
    ----------
    each : ndarray of shape (n, 2)
        What each row adds to what is counted, and to what is counted out of.
    lost : ndarray of shape (n, 2), optional
        What both lose without the row; ``each`` by default.
    """
    stats = sums_within(items.prompt[labels.item], each, items.n_prompts)
    raters = Raters.of(items, labels, each if lost is None else lost)
    return clustered(stats, ratio, draws, n=int(each[:, 1].sum()), mean=SHARE, raters=raters)


def rater_plan_half_width(
    parts: Components, n_items: int, each: float, n_raters: float, level: float = 0.95
) -> float:
    """Return the half-width to expect of a share of side A in a design.

    ``V_prompt = item / n_items + rest / (n_items each)``, each item a prompt of its own, and
    ``V_rater = rater / n_raters + rest / (n_items each)``, which is known by ``n_raters - 1``
    degrees of freedom: the mean over what may be seen of it (chi-squared) of the half-width that
    `preference` makes of both.

    Parameters
    ----------
    each : float
        Ratings an item.
    n_raters : float
        Equally busy people that the raters amount to.

    Examples
    --------
    >>> parts = Components(item=0.05, rater=0.0, rest=0.2, within=None)
    >>> [round(rater_plan_half_width(parts, n, k, 20), 3) for n, k in ((100, 2), (200, 1))]
    [0.079, 0.073]
    """
    rest = parts.rest / (n_items * each)
    by_prompt = max(parts.item, 0.0) / n_items + rest
    of_prompts = quantile(level, math.inf) * math.sqrt(max(by_prompt, 0.0))
    if n_raters < FEWEST_PEOPLE or not by_prompt > 0:
        return of_prompts
    nu = n_raters - 1
    seen = scipy.special.chdtri(nu, 1 - _QUANTILES) / nu
    by_rater = max(parts.rater / n_raters + rest, 0.0) * seen
    more = np.maximum(by_rater - rest, 0.0)
    of_prompt = np.array(by_prompt), np.array(max(n_items - 1.0, 1.0))
    total, df = two_way(of_prompt, (by_rater, np.array(nu)), np.array(rest))
    of_both = np.where(more > 0, quantiles(level, df) * np.sqrt(total), of_prompts)
    of_raters = quantile(level, nu) * np.sqrt(by_rater)
    return float(np.maximum(of_both, of_raters).mean())


@dataclass(frozen=True, slots=True)
class _Design:
    """Ratings an item, and what they make of the half-width.

    Attributes
    ----------
    half_width : float
        With the items that there are.
    items, ratings : int or None
        That reach the half-width wanted, with as many people as now; None where no number does.
    """

    each: int
    half_width: float
    items: int | None
    ratings: int | None


@dataclass(frozen=True, slots=True)
class RaterPlan:
    """What a study would take to be as sure as wanted.

    Attributes
    ----------
    enough : Enough
        Of the share now.
    n_items, n_ratings : int
    raters : float
        Equally busy people that the raters amount to.
    designs : tuple of Design
    one_more, same_on_new : float
        Half-widths with one more rating an item, and with as many ratings on new items.
    twice_as_many : float
        With as many ratings as now by twice as many people.
    """

    enough: Enough
    n_items: int
    n_ratings: int
    raters: float
    designs: tuple[_Design, ...]
    one_more: float
    same_on_new: float
    twice_as_many: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Describe what to do next."""
        return tuple(_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"sentences": list(self.sentences)}


def plan_ratings(
    items: Items, labels: Labels, parts: Components, share: Estimate, wanted: float, level: float
) -> RaterPlan:
    """Describe what half-widths other designs would have, by the components of variance.

    Where items share prompts, all are wider by as much as that makes the present one: new items
    are taken to come with new prompts, as many items each.

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.
    """
    n_items = len(np.unique(labels.item))
    n_prompts = len(np.unique(items.prompt[labels.item]))
    each = labels.n / n_items
    busy = np.unique(labels.rater, return_counts=True)[1]
    people = float(busy.sum() ** 2 / (busy**2).sum())

    now = enough(share, wanted, ratings=labels.n, prompts=n_prompts)
    wider = 1.0
    if n_prompts < n_items and now.half_width is not None:
        wider = max(
            1.0, now.half_width / rater_plan_half_width(parts, n_items, each, people, level)
        )

    def width(n: int, k: float, raters: float = people) -> float:
        return wider * rater_plan_half_width(parts, n, k, raters, level)

    if not now.reached and now.more is not None:
        needed = _items_for(partial(width, k=each), wanted)
        by_plan = None if needed is None else math.ceil(needed * each) - labels.n
        now = replace(now, more=None if by_plan is None else max(now.more, by_plan))
    return RaterPlan(
        enough=now,
        n_items=n_items,
        n_ratings=labels.n,
        raters=people,
        designs=tuple(
            _Design(k, width(n_items, k), needed, None if needed is None else needed * k)
            for k in sorted({*EACH, round(each)})
            if k <= len(busy)
            for needed in (_items_for(partial(width, k=k), wanted),)
        ),
        one_more=width(n_items, each + 1),
        same_on_new=width(round(n_items * (each + 1) / each), each),
        twice_as_many=width(n_items, each, 2 * people),
    )


def _items_for(width: Callable[[int], float], wanted: float) -> int | None:
    """Return the fewest items, of which there must be some, that make an interval so narrow."""
    low, high = FEW_PROMPTS, MOST_ITEMS
    if width(high) > wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle) <= wanted else (middle + 1, high)
    return high


def _sentences(plan: RaterPlan) -> Iterator[str]:
    now, points = plan.enough, f"{100 * plan.enough.wanted:g}"
    if now.half_width is None:
        return
    known = f"The share of side A is known to ±{100 * now.half_width:.1f} percentage points"
    if now.reached:
        yield f"{known}: ±{points} are reached."
        return
    if now.half_width <= now.wanted:
        yield f"{known}, but from too few prompts, so it may be wider: {FEW_PROMPTS} are needed."
        return
    if now.more is None:
        yield (
            f"{known}; with these raters, whose preferences differ, ±{points} cannot be reached. "
            f"With twice as many raters and no more ratings, ±{100 * plan.twice_as_many:.1f} is "
            "expected."
        )
    else:
        more = plural(now.more, "more rating")
        yield f"{known}; ±{points} needs about {more} on new items."
    one, new = 100 * plan.one_more, 100 * plan.same_on_new
    compared = (
        f"{plural(plan.n_items, 'more rating')}, one on each item, would give about "
        f"±{one:.1f}, and as many on new items ±{new:.1f}"
    )
    if plan.same_on_new < (1 - ALIKE) * plan.one_more:
        yield f"{compared}: rate more items."
    else:
        yield f"{compared}: these are about equal, so choose the cheaper."


# Krippendorff's alpha


WANTED_ALPHA = 0.1
"""Half-width of alpha that is planned for where none is named."""
RATERS_EACH = (2, 3, 5, 8)
"""Ratings an item that are tried."""
DRAWN = 20_000
"""Items that are drawn to estimate the spread of alpha with one rating more."""


@dataclass(frozen=True, slots=True)
class AlphaPlan:
    """What a study would take to know alpha as surely as wanted.

    Attributes
    ----------
    enough : Enough
        Of alpha now.
    n_items, each : int
        With two raters or more, and how many of these an item has on average, rounded.
    designs : tuple of Design
    one_more, same_on_new : float
        Half-widths with one more rating an item, and with as many ratings on new items.
    """

    enough: Enough
    n_items: int
    each: int
    designs: tuple[_Design, ...]
    one_more: float
    same_on_new: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Describe what to do next."""
        return tuple(_alpha_plan_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"sentences": list(self.sentences)}


def plan_alpha(
    ratings: RaterMarks, alpha: Estimate, wanted: float, n_raters: int, rng: np.random.Generator
) -> AlphaPlan | None:
    """Describe how wide alpha's interval would be in other designs; None where it has none.

    Items are taken to differ by a Dirichlet law with the mean shares of the values and, as the
    part of the variance that is of items, alpha (not below 0). From items drawn so, with this many
    ratings each, comes the standard deviation of what an item adds to alpha: half-widths are in
    its ratio to that of the present design, and as one over the square root of the items. So the
    present half-width, which need not go by that law, is kept as it is.

    Parameters
    ----------
    ratings : Ratings
        Those that ``alpha`` is of.
    n_raters : int
        An item cannot have more ratings.
    rng : numpy.random.Generator

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.

    References
    ----------
    .. [1] A. Zapf et al., "Measuring inter-rater reliability for nominal data: which coefficients
       and confidence intervals are appropriate?", BMC Medical Research Methodology 16, 2016: the
       interval of alpha by drawing items.
    """
    if alpha.value is None or alpha.lower is None or alpha.upper is None:
        return None
    table = ratings.counts[ratings.shared]
    n, n_ratings = len(table), int(table.sum())
    each, prompts = round(n_ratings / n), len(np.unique(ratings.cluster[ratings.shared]))
    now = enough(alpha, wanted, ratings=n_ratings, prompts=prompts)
    assert now.half_width is not None
    shares, present = table.sum(axis=0) / n_ratings, now.half_width
    spread = {
        k: _spread(shares, alpha.value, k, rng) for k in sorted({*RATERS_EACH, each, each + 1})
    }

    def width(items: float, k: int) -> float:
        return present * spread[k] / spread[each] * math.sqrt(n / items)

    def needed(k: int) -> int:
        least = math.ceil(n * (width(n, k) / wanted) ** 2)
        return max(least, math.ceil(n * FEW_PROMPTS / prompts))

    return AlphaPlan(
        enough=now,
        n_items=n,
        each=each,
        designs=tuple(
            _Design(k, width(n, k), needed(k), needed(k) * k)
            for k in sorted({*RATERS_EACH, each})
            if k <= n_raters
        ),
        one_more=width(n, each + 1),
        same_on_new=width(n * (each + 1) / each, each),
    )


def _spread(shares: Floats, of_items: float, k: int, rng: np.random.Generator) -> float:
    """Return the standard deviation of what an item of k ratings adds to alpha, times sqrt(n)."""
    between = min(max(of_items, 0.0), 0.999)
    given = shares[shares > 0]
    if between > 0:
        of_item = rng.dirichlet(given * (1 / between - 1), DRAWN)
    else:
        of_item = np.broadcast_to(given, (DRAWN, len(given)))
    counts = rng.multinomial(k, of_item).astype(np.float64)
    mean = counts.mean(axis=0)
    apart = (k**2 - (counts**2).sum(axis=1)) / (k - 1)
    observed, expected = float(apart.mean()), k - float((mean**2).sum()) / k
    moved = -2 * (counts - mean) @ mean / k
    added = -(apart - observed) / expected + observed / expected**2 * moved
    return float(added.std())


def _alpha_plan_sentences(plan: AlphaPlan) -> Iterator[str]:
    now = plan.enough
    known = f"Krippendorff's alpha is known to ±{now.half_width:.2f}"
    if now.reached:
        yield f"{known}: ±{now.wanted:g} is reached."
        return
    assert now.more is not None
    yield f"{known}; ±{now.wanted:g} needs about {plural(now.more, 'more rating')} on new items."
    compared = (
        f"{plural(plan.n_items, 'more rating')}, one on each item, would give about "
        f"±{plan.one_more:.2f} for alpha, and as many on new items ±{plan.same_on_new:.2f}"
    )
    if plan.same_on_new < (1 - ALIKE) * plan.one_more:
        yield f"{compared}: for alpha, rate more items."
    elif plan.one_more < (1 - ALIKE) * plan.same_on_new:
        yield f"{compared}: for alpha, collect more ratings per item."
    else:
        yield f"{compared}: these are about equal for alpha."
