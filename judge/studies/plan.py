"""What to buy next beside a judge: how many votes, and on which items."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.items import Items, Labels
from judge.studies.power_tuning import Problem, problem_of
from judge.studies.powered_ratings import PoweredRatings, Ratings, powered_ratings
from judge.studies.voters_and_prompts import bread_at
from rating.elo import POINTS_PER_NAT
from rating.errors import DataError, NotIdentifiedError
from rating.likelihood.objective import win_probability
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantile

WANTED = (100.0, 50.0, 30.0, 20.0, 10.0, 5.0)
"""Half-widths in points that are planned for, as far as they are not reached."""

MOST_WANTED = 3

MOST_SENT = 100
EXPLORATION = 0.1
"""Share of the votes spread evenly, so that every item has a fair probability."""

NO_COMMON = "No items have votes and verdicts that vary: nothing shows what the judge is worth."

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
        raise NotIdentifiedError("No rating has an interval: there is nothing to make narrower.")
    return POINTS_PER_NAT * float(np.sqrt((half**2).mean()))


@dataclass(frozen=True, slots=True)
class Purchase:
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


def votes_to_buy(signal: Signal, half_width: float, *, level: float = 0.95) -> Purchase:
    """Say how many items people must vote on until intervals are as narrow as wanted.

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
    A judge that explains half of a coin's variance, 10,000 verdicts, one point of 50 %.

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
    return Purchase(votes, max(votes - signal.n_voted, 0), alone, enough)


def _with_judge(signal: Signal, wanted: float) -> int:
    left = wanted - signal.variance * signal.explained / signal.n_items
    if left <= 0:
        return signal.n_items
    return min(max(ceil(signal.variance * (1 - signal.explained) / left), 1), signal.n_items)


@dataclass(frozen=True, slots=True, eq=False)
class Sending:
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
) -> Sending:
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
    return Sending(problem.item[index], probability[index], overall)


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
class Sent:
    """Items drawn for people to vote on next, of those that were judged and have no vote.

    Attributes
    ----------
    item : tuple of int
        Those drawn, each with its probability in ``sending``.
    by_pair : mapping of (str, str) to (float, float)
        By the two models: share of what is sent, and of what is open; most sent first.
    """

    item: tuple[int, ...]
    sending: Sending
    by_pair: dict[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many votes intervals of some widths take.

    Attributes
    ----------
    half_width : float
        Of the ratings now, with the judge's help: points, the root of the mean square.
    purchases : mapping of float to Purchase
        By half-width wanted.
    sent : Sent or None
        None where every judged item has votes.
    """

    half_width: float
    purchases: dict[float, Purchase]
    sent: Sent | None


def plan_votes(
    data: StudyData, judge: JudgeVerdicts, powered: PoweredRatings, rng: np.random.Generator
) -> Plan:
    """Say what to buy until ratings by people are as sure as wanted.

    Raises
    ------
    NotIdentifiedError
        If nothing shows what the judge is worth, or no rating has an interval.
    """
    signal = Signal.of_ratings(powered)
    now = half_width(powered.ratings)
    wanted = [width for width in WANTED if width < now][:MOST_WANTED]
    bought = {width: votes_to_buy(signal, width, level=powered.level) for width in wanted}
    return Plan(now, bought, _sent(data, judge, powered, rng))


def _sent(
    data: StudyData, judge: JudgeVerdicts, powered: PoweredRatings, rng: np.random.Generator
) -> Sent | None:
    n = min(MOST_SENT, powered.n_judged)
    if not n:
        return None
    drawn = sending(data.items, data.people, judge.verdicts, n, powered)
    return Sent(tuple(drawn.draw(rng).tolist()), drawn, _by_pair(data, drawn))


def _by_pair(data: StudyData, drawn: Sending) -> dict[tuple[str, str], tuple[float, float]]:
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
