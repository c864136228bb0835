"""Reliability of people and judges: alpha, AC1, human upper bound, and agreement.

`alpha` and `ac1` measure how reliable people are; `ceiling` how high that lets a judge's agreement
be. `agreement` and `baselines` compare a judge, people and simple rules with people; `swaps` and
`rerun_variance` compare a judge with itself.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from judge.studies.data import JudgeVerdicts
from judge.studies.estimates import (
    Draws,
    Estimate,
    MeanOfPrompts,
    Weighting,
    by_rater,
    clustered,
    counts,
    kappa,
    majority,
    over,
    over_another,
    own_agreement,
    own_kappa,
    pair_agreement,
    pairs_with_others,
    ratio,
    sums_by_prompt,
)
from judge.studies.gates import FIRST, LONGEST, MARKDOWN, MIN_CASES, RANDOM, Rule
from judge.studies.options import StudyOptions
from judge.studies.rows import Items, Labels
from rating.errors import DataError
from rating.leave_out import sums_within
from rating.typing import Bools, Floats, Ints

# Chance-corrected agreement


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """How often each value was given to each unit.

    Attributes
    ----------
    values : ndarray of shape (q,)
        What could be said, ascending.
    counts : ndarray of shape (n_units, q)
    pairs : ndarray of shape (n_units, q, q)
        Ordered pairs of ratings of a unit by different raters: how often each two values.
    cluster : ndarray of shape (n_units,), int64
        What intervals draw: the prompt of a unit, or the unit itself.
    """

    values: Floats
    counts: Floats
    pairs: Floats
    cluster: Ints

    @classmethod
    def of_labels(
        cls, items: Items, labels: Labels, *, ties: bool = True, sides: bool = True
    ) -> "Ratings":
        """Count what was said of items; the values are -1, 0 and 1.

        Parameters
        ----------
        ties : bool
            Whether a tie could be given; else the values are -1 and 1.
        sides : bool
            As of `judge.studies.estimates.kappa`.

        Raises
        ------
        DataError
            If there are ties where none could be given.
        """
        table = counts(items, labels)
        if not ties and table[:, 1].any():
            raise DataError(f"{int(table[:, 1].sum())} ties where none could be given.")
        value = np.array([-1.0, 0.0, 1.0] if ties else [-1.0, 1.0])
        item, own, _ = by_rater(items, labels)
        table, own = (of[:, value.astype(np.int64) + 1] for of in (table, own))
        alone = sums_within(item, _squared(own).reshape(len(own), -1), items.n)
        pairs = _squared(table) - alone.reshape(items.n, len(value), len(value))
        if not sides:
            table, pairs = (table + table[:, ::-1]) / 2, (pairs + pairs[:, ::-1, ::-1]) / 2
        return cls(value, table, pairs, items.prompt)

    @property
    def shared(self) -> Bools:
        """Which units two raters or more rated."""
        return np.asarray(self.pairs.any(axis=(1, 2)))


def alpha(ratings: Ratings, draws: Draws) -> Estimate:
    """Estimate Krippendorff's alpha of nominal values.

    ``1 - observed / expected`` disagreement: how often two ratings of the same unit differ over
    how often any two ratings do. A unit of m ratings adds its ordered pairs by different
    raters, which weigh m together: ``1 / (m - 1)`` each where everybody rated it once. A unit of
    one rater adds nothing. 1 is agreement, 0 what chance gives.

    Returns
    -------
    Estimate
        ``n`` is the number of units with two raters or more. Undefined where all ratings are
        equal.

    References
    ----------
    .. [1] K. Krippendorff, "Computing Krippendorff's Alpha-Reliability", University of
       Pennsylvania, 2011.
    """
    many = ratings.shared
    q = len(ratings.values)
    apart = 1 - np.eye(q)
    pairs = ratings.pairs[many].reshape(int(many.sum()), q**2)
    weight = ratings.counts[many].sum(axis=1) / pairs.sum(axis=1)
    stats = _by_cluster(pairs * weight[:, None], ratings.cluster[many])

    def of_sums(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), q, q)
        given = tables.sum(axis=2)
        total = given.sum(axis=1)
        observed = (tables * apart).sum(axis=(1, 2))
        expected = np.einsum("rc,rk,ck->r", given, given, apart)
        expected /= np.where(total > 1, total - 1, np.nan)
        return 1 - over(observed, expected)

    return clustered(stats, of_sums, draws, n=len(pairs))


def ac1(ratings: Ratings, draws: Draws) -> Estimate:
    """Estimate Gwet's AC1, which does not fall when nearly all ratings are of one value.

    ``(agreed - chance) / (1 - chance)``: agreed is the mean over units of two raters or more of
    the share of pairs of different raters that agree; chance is
    ``sum_k p_k (1 - p_k) / (q - 1)``, p_k the mean share of value k over all rated units. The q
    values are those that could be given: a value that nobody could give lowers the chance, so that
    coins seem to agree.

    Returns
    -------
    Estimate
        ``n`` is the number of units with two raters or more.

    Raises
    ------
    DataError
        If there is only one value to give.

    References
    ----------
    .. [1] K. L. Gwet, "Computing inter-rater reliability and its variance in the presence of
       high agreement", British Journal of Mathematical and Statistical Psychology 61, 2008.
    """
    q = len(ratings.values)
    if q < 2:
        raise DataError(f"AC1 needs two values that could be given, and there is {q}.")
    rated = ratings.counts.sum(axis=1) >= 1
    table, cluster = ratings.counts[rated], ratings.cluster[rated]
    pairs, many = ratings.pairs[rated], ratings.shared[rated]
    agreed = np.trace(pairs, axis1=1, axis2=2) / np.where(many, pairs.sum(axis=(1, 2)), 1)
    shares = table / table.sum(axis=1, keepdims=True)
    columns = [agreed * many, many, np.ones(len(table)), *shares.T]
    stats = _by_cluster(np.column_stack(columns), cluster)

    def of_sums(sums: Floats) -> Floats:
        share = sums[:, 3:] / sums[:, 2:3]
        expected = (share * (1 - share)).sum(axis=1) / (q - 1)
        return np.asarray((ratio(sums) - expected) / (1 - expected))

    return clustered(stats, of_sums, draws, n=int(many.sum()))


def _squared(table: Floats) -> Floats:
    """Return ``c_k c_l`` of each row, shape (n, q, q)."""
    return np.asarray(table[:, :, None] * table[:, None, :])


def _by_cluster(values: Floats, cluster: Ints) -> Floats:
    known, place = np.unique(cluster, return_inverse=True)
    return sums_within(place, values, len(known))


# Upper bound for a judge


CONDITION = (
    "Over equally weighted items on which the judge and at least two people preferred a side; "
    "votes for a tie are omitted."
)
_MIN_VOTES_TO_FIT = 3

_SHARE = MeanOfPrompts(0.0, 1.0, (2,))
_LOG_SHAPES = np.linspace(math.log(1e-2), math.log(1e3), 231)
"""Shapes of the beta law that are tried, from full agreement to a coin for every item."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What people leave for a judge to reach; see `CONDITION` for the items it is over.

    Attributes
    ----------
    people : Estimate
        A: the chance that two people agree.
    lowest, highest : Estimate
        The best judge that says one thing of an item reaches between ``max(A, 1/2)`` and
        ``(1 + sqrt(2 A - 1)) / 2``.
    fitted : Estimate
        What it reaches if the share of people for a side follows a beta law over items; from
        those with three such people or more, no value without one.
    judge : Estimate
        How often the judge agrees with a person; no value without a judge.
    to_people, to_highest : Estimate
        The judge's agreement over ``people``, and over ``highest``.
    """

    people: Estimate
    lowest: Estimate
    highest: Estimate
    fitted: Estimate
    judge: Estimate
    to_people: Estimate
    to_highest: Estimate


def ceiling(items: Items, people: Labels, judge: Labels | None = None, *, draws: Draws) -> Ceiling:
    """Estimate how far a judge can agree with a person, and how far one does.

    With ``d = 2 p - 1``, p the share of all people who prefer side A of an item, two people agree
    with chance ``A = E(1 + d^2) / 2``, and a judge that always states what most people do agrees
    with one of them with chance ``E(1 + |d|) / 2``. That lies between A and
    ``(1 + sqrt(2 A - 1)) / 2``, by Jensen's inequality, whatever the law of d. Where people agree
    less than half of the time, ``2 A - 1`` is taken as 0.

    Parameters
    ----------
    judge : Labels, optional
        Its repetitions of an item count together as one.

    Returns
    -------
    Ceiling
        ``n`` of every estimate is a number of items. Intervals draw prompts, and are joint: those
        of the ratios hold the uncertainty of both parts. Where every draw gives the same, the
        bounds and the ratios have none.

    Examples
    --------
    Two people agree on four items of five: the best judge reaches 80 to 89%.

    >>> from judge.studies.rows import Items, Labels
    >>> label, item = np.array([1] * 9 + [-1], dtype=np.int8), np.repeat(np.arange(5), 2)
    >>> people = Labels(item, np.arange(10), label, 0 * label, np.nan * label)
    >>> items = Items(("x", "y"), np.tile([0, 1], (5, 1)), np.arange(5))
    >>> bounds = ceiling(items, people, draws=Draws(np.random.default_rng(1)))
    >>> bounds.lowest.value, round(bounds.highest.value, 3)
    (0.8, 0.887)
    """
    votes = counts(items, people)[:, [0, 2]]
    verdicts = np.ones_like(votes) if judge is None else counts(items, judge)[:, [0, 2]]
    pairs = sums_within(people.item, pairs_with_others(items, people, ties=False), items.n)
    used = (pairs[:, 1] > 0) & (verdicts.sum(axis=1) >= 1)
    both = np.where(used, pairs[:, 0] / np.where(used, pairs[:, 1], 1), 0)
    cases = np.where(used, votes.sum(axis=1) * verdicts.sum(axis=1), 1)
    with_judge = np.where(used, (votes * verdicts).sum(axis=1) / cases, 0)
    stats = sums_by_prompt(items, np.column_stack([both, with_judge, used]))
    estimate = partial(clustered, stats, draws=draws, n=int(used.sum()))
    by_judge = dict.fromkeys(
        ("judge", "to_people", "to_highest"), Estimate(None, None, None, int(used.sum()))
    )
    bounds = {
        "people": estimate(_agreed, mean=_SHARE),
        "lowest": estimate(lambda sums: np.maximum(_agreed(sums), 0.5)),
        "highest": estimate(lambda sums: _highest(_agreed(sums))),
        "fitted": _fitted(items, people, used, draws),
    }
    if judge is not None:
        by_judge = {
            "judge": estimate(_judged, mean=_SHARE),
            "to_people": estimate(lambda sums: over(sums[:, 1], sums[:, 0])),
            "to_highest": estimate(lambda sums: _judged(sums) / _highest(_agreed(sums))),
        }
    return Ceiling(**bounds, **by_judge)


def _agreed(sums: Floats) -> Floats:
    return over(sums[:, 0], sums[:, 2])


def _judged(sums: Floats) -> Floats:
    return over(sums[:, 1], sums[:, 2])


def _highest(agreed: Floats) -> Floats:
    return np.asarray((1 + np.sqrt(np.maximum(2 * agreed - 1, 0))) / 2)


def _fitted(items: Items, people: Labels, used: Bools, draws: Draws) -> Estimate:
    """Fit a symmetric beta law to the votes of each item by maximum likelihood.

    Which side is which means nothing here, so the law of p is that of 1 - p. A person has one
    vote on an item: of several, each with the same probability, over which the loss is averaged.
    """
    item, given, _ = by_rater(items, people)
    item, given = item[sided := given[:, [0, 2]].any(axis=1)], given[sided]
    n = np.bincount(item, minlength=items.n)
    many = np.flatnonzero(used & (n >= _MIN_VOTES_TO_FIT))
    if not len(many):
        return Estimate(None, None, None, 0)
    share = given[:, 2] / (given[:, 0] + given[:, 2])
    sure = np.bincount(item, share == 1, items.n).astype(np.int64)
    unsure = (share > 0) & (share < 1)
    more: dict[int, Floats] = {}
    for of, p in zip(item[unsure].tolist(), share[unsure].tolist(), strict=True):
        more[of] = np.convolve(more.get(of, np.ones(1)), [1 - p, p])
    laws = [more.get(of, np.ones(1)) for of in many.tolist()]
    of = np.repeat(many, [len(law) for law in laws])
    won = sure[of] + np.concatenate([np.arange(len(law)) for law in laws])
    folded = np.sort(np.column_stack([won, n[of] - won]), axis=1).astype(np.float64)
    kinds, kind = np.unique(folded, axis=0, return_inverse=True)
    stats = np.zeros((items.n_prompts, len(kinds)))
    np.add.at(stats, (items.prompt[of], kind), np.concatenate(laws))
    loss = _losses(kinds)
    return clustered(stats, lambda sums: _reached(_log_shape(sums @ loss)), draws, n=len(many))


def _losses(kinds: Floats) -> Floats:
    """Return minus the log-likelihood of each kind of item at each shape."""
    shape = np.exp(_LOG_SHAPES)
    lost, won = kinds[:, :1], kinds[:, 1:]
    beta = scipy.special.betaln
    return np.asarray(beta(shape, shape) - beta(lost + shape, won + shape))


def _log_shape(loss: Floats) -> Floats:
    """Return the most likely log-shape of each row, by a parabola through three points."""
    inner = np.clip(loss.argmin(axis=1), 1, len(_LOG_SHAPES) - 2)
    left, middle, right = (
        np.take_along_axis(loss, (inner + step)[:, None], axis=1)[:, 0] for step in (-1, 0, 1)
    )
    bend = left - 2 * middle + right
    step = (left - right) / 2 / np.where(bend > 0, bend, np.inf)
    width = _LOG_SHAPES[1] - _LOG_SHAPES[0]
    return np.asarray(
        np.where(
            loss.argmin(axis=1) == inner,
            _LOG_SHAPES[inner] + width * step,
            _LOG_SHAPES[loss.argmin(axis=1)],
        )
    )


def _reached(log_shape: Floats) -> Floats:
    """Return ``E max(p, 1 - p) = 1/2 + 4^-s / (s B(s, s))``."""
    shape = np.exp(log_shape)
    log_half = -shape * math.log(4) - log_shape - scipy.special.betaln(shape, shape)
    return np.asarray(0.5 + np.exp(log_half))


# Agreement of judges, people and rules


_OF_ORDERS = MeanOfPrompts(0.0, 1.0, (3,))


@dataclass(frozen=True, slots=True)
class Rates:
    """Agreement with ties as a third answer, and where both prefer a side."""

    with_ties: Estimate
    without_ties: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        both = {"with_ties": self.with_ties, "without_ties": self.without_ties}
        return {
            name: {"rate": one.value, "lower": one.lower, "upper": one.upper, "n": one.n}
            for name, one in both.items()
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge with people, beside that of people on the same items.

    Attributes
    ----------
    judge, people : Rates
        Every pair counts the same; those of people are of votes on items that the judge has a
        verdict on.
    by_item : Rates
        Of the judge, every item counting the same.
    kappa, people_kappa, alpha, ac1 : Estimate
        The last two of people.
    """

    judge: Rates
    people: Rates
    by_item: Rates
    kappa: Estimate
    people_kappa: Estimate
    alpha: Estimate
    ac1: Estimate


def agreement(items: Items, people: Labels, verdicts: Labels, options: StudyOptions) -> Agreement:
    """Compare verdicts with votes, and votes with votes on the same items.

    Where no vote is a tie, nobody could give one: AC1 then knows two answers. Which model of a
    pair is on side A means nothing, so chance agreement takes both as equally often preferred.
    """
    alike = people.only(np.isin(people.item, verdicts.item))
    ties = bool((people.label == 0).any())
    ratings = Ratings.of_labels(items, alike, ties=ties, sides=False)
    votes = voted(items, alike, options)

    def with_people(weighting: Weighting) -> Rates:
        return Rates(
            *(
                pair_agreement(
                    items, verdicts, votes, options.draws(), ties=ties, weighting=weighting
                )
                for ties in (True, False)
            )
        )

    return Agreement(
        judge=with_people("pairs"),
        people=Rates(
            *(own_agreement(items, alike, options.draws(), ties=ties) for ties in (True, False))
        ),
        by_item=with_people("items"),
        kappa=kappa(items, verdicts, votes, options.draws(), sides=False),
        people_kappa=own_kappa(items, alike, options.draws(), sides=False),
        alpha=alpha(ratings, options.draws()),
        ac1=ac1(ratings, options.draws()),
    )


def voted(items: Items, people: Labels, options: StudyOptions) -> Labels:
    """Give what verdicts are compared with: every vote, or what most votes of an item say."""
    return majority(items, people) if options.pairs == "majority" else people


def baselines(
    items: Items, votes: Labels, judge: JudgeVerdicts, options: StudyOptions
) -> tuple[Rule, ...]:
    """Compare a judge with each rule that has `MIN_CASES`, and with random verdicts."""
    judged = np.isin(np.arange(items.n), judge.verdicts.item)
    rules = {
        name: larger(items, feature)
        for name, feature in ((LONGEST, "length"), (MARKDOWN, "format"))
        if feature in items.gaps
    }
    if (judge.in_orders.first != 0).any():
        rules[FIRST] = always_first(items, judge.in_orders)
    decided = _sided(items, votes) & _sided(items, judge.verdicts)
    held_against = [
        _ruled(name, items, rule.only(judged[rule.item]), votes, judge.verdicts, options)
        for name, rule in rules.items()
        if (decided & _sided(items, rule)).sum() >= MIN_CASES
    ]
    if decided.sum() >= MIN_CASES:
        held_against.append(_random(items, votes, judge.verdicts, options))
    return tuple(held_against)


def _sided(items: Items, labels: Labels) -> Bools:
    """Return the items on which a rater prefers a side, as a mask."""
    return np.isin(np.arange(items.n), labels.item[labels.label != 0])


def _ruled(
    name: str, items: Items, rule: Labels, votes: Labels, verdicts: Labels, options: StudyOptions
) -> Rule:
    sided = rule.only(rule.label != 0)
    on_the_same = verdicts.only(np.isin(verdicts.item, sided.item))
    return Rule(
        name,
        agreement=pair_agreement(items, rule, votes, options.draws(), ties=False),
        with_ties=pair_agreement(items, rule, votes, options.draws(), ties=True),
        lead=over_another(items, on_the_same, sided, votes, options.draws(), ties=False),
        followed=pair_agreement(items, verdicts, rule, options.draws(), ties=False),
    )


def _random(items: Items, votes: Labels, verdicts: Labels, options: StudyOptions) -> Rule:
    """Give the expectation of random verdicts, which is exact: only the judge's part varies."""
    without_ties, with_ties = (
        pair_agreement(items, verdicts, votes, options.draws(), ties=ties)
        for ties in (False, True)
    )
    coin = random_agreement(ties=False)
    value, lower, upper = (
        None if end is None else end - coin
        for end in (without_ties.value, without_ties.lower, without_ties.upper)
    )
    return Rule(
        RANDOM,
        agreement=Estimate(coin, None, None, without_ties.n),
        with_ties=Estimate(random_agreement(ties=True), None, None, with_ties.n),
        lead=Estimate(value, lower, upper, without_ties.n),
        followed=None,
    )


def larger(items: Items, feature: str) -> Labels:
    """Return a judge that prefers the response with more of a feature, such as ``length``.

    It ties where both have as much, and says nothing where it is unknown.

    Raises
    ------
    DataError
        If nothing is known of the feature.
    """
    if feature not in items.gaps:
        known = ", ".join(sorted(items.gaps)) or "none"
        raise DataError(f"{feature!r} is unknown for all responses; known are: {known}.")
    gap = items.gaps[feature]
    return Labels.of_one_rater(np.flatnonzero(~np.isnan(gap)), np.sign(gap[~np.isnan(gap)]))


def always_first(items: Items, orders: Labels) -> Labels:
    """Return a judge that prefers what it sees first, in the orders in which one was asked.

    Asked as often in one order as in the other, it ties: its answers cancel. It says nothing of
    an item whose orders are unknown.

    Parameters
    ----------
    orders : Labels
        The rows of the judge to compare with.
    """
    known = orders.first != 0
    asked = np.bincount(orders.item[known], minlength=items.n)
    turned = np.bincount(orders.item[known], orders.first[known], items.n)
    return Labels.of_one_rater(np.flatnonzero(asked > 0), np.sign(turned[asked > 0]))


def random_agreement(*, ties: bool) -> float:
    """Return how often a judge that throws a die agrees with anyone.

    1/3 of three labels; 1/2 over the pairs in which both prefer a side. Its kappa is 0.
    """
    return 1 / 3 if ties else 1 / 2


def swaps(items: Items, judge: Labels, draws: Draws) -> dict[str, Estimate]:
    """Compare the labels of each item when side A is shown first and when side B is.

    Over pairs of rows of an item in opposite orders, ``n`` of them, shares that add up to 1:
    ``consistent``, where both orders give the same label, and ``to_first`` and ``to_second``,
    where it moves to the side that is shown first, or second.

    Every row of one order with every row of the other, of the same item. A row of an unknown
    order is in no pair. A judge that changes between a tie and the first side leans to the first
    as one that changes from side to side does. Without pairs nothing has a value.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, table 2.
    """
    a_first, b_first = (counts(items, judge.only(judge.first == side)) for side in (1, -1))
    pairs = a_first[:, :, None] * b_first[:, None, :]
    parts = [np.trace(pairs, axis1=1, axis2=2), _below(pairs), _below(pairs.transpose(0, 2, 1))]
    stats = sums_by_prompt(items, np.column_stack([*parts, pairs.sum(axis=(1, 2))]))
    n = int(stats[:, 3].sum())

    def share(k: int) -> Estimate:
        return clustered(
            stats, lambda sums: over(sums[:, k], sums[:, 3]), draws, n=n, mean=_OF_ORDERS
        )

    return {"consistent": share(0), "to_first": share(1), "to_second": share(2)}


_VARIANCE = MeanOfPrompts(0.0, 0.5, (1,))


def rerun_variance(items: Items, judge: Labels, draws: Draws) -> Estimate:
    """Estimate how much a judge's verdict varies when it is asked the same again.

    The variance of the score of side A (1, 1/2 for a tie, 0) over the verdicts on one item in one
    order, with one degree of freedom less than verdicts; its mean over those with two verdicts or
    more, ``n`` of them. 0 is a judge that never changes, 1/4 one that throws a coin.

    Examples
    --------
    Asked twice about each of two items, a judge changes sides on one.

    >>> item, label = np.array([0, 0, 1, 1]), np.array([1, -1, 1, 1], dtype=np.int8)
    >>> judge = Labels(item, np.array([0, 1, 0, 1]), label, 0 * label, np.nan * label)
    >>> items = Items(("x", "y"), np.tile([0, 1], (2, 1)), np.arange(2))
    >>> rerun_variance(items, judge, Draws(np.random.default_rng(1))).value
    0.25
    """
    cells, place = np.unique(3 * judge.item + judge.first + 1, return_inverse=True)
    n, total, square = (
        np.bincount(place, weights, len(cells))
        for score in [(judge.label + 1) / 2]
        for weights in (None, score, score**2)
    )
    again = n > 1
    varies = (square - total**2 / n) / np.maximum(n - 1, 1)
    stats = np.column_stack([varies * again, again]).astype(np.float64)
    by_prompt = sums_within(items.prompt[cells // 3], stats, items.n_prompts)
    return clustered(by_prompt, ratio, draws, n=int(again.sum()), mean=_VARIANCE)


TIE_STEPS = 10
"""Thresholds on preferences, from 0 to 1/2."""


def tie_thresholds(items: Items, people: Labels, judge: Labels) -> tuple[dict[str, Any], ...]:
    """Return how often a judge ties if near preferences are ties, and its agreement then.

    A verdict whose probability for side A is within ``threshold`` of 1/2 is a tie. ``ties`` is the
    share of such verdicts, ``agreement`` that with people with a tie as a third answer, and
    ``people`` the share of ties among the votes; ``matches_people`` marks the threshold whose
    ties are nearest to these. Nothing for verdicts of fewer than four different probabilities.
    """
    graded = judge.only(~np.isnan(judge.probability))
    off = np.abs(graded.probability - 0.5)
    if len(np.unique(off.round(9))) < 4:
        return ()
    votes = counts(items, people)
    side = np.sign(graded.probability - 0.5)
    rows: list[dict[str, Any]] = []
    for threshold in np.linspace(0, 0.5, TIE_STEPS + 1).tolist():
        label = np.where(off <= threshold + 1e-12, 0, side).astype(np.int8)
        pairs = counts(items, replace(graded, label=label))
        total = (votes.sum(axis=1) * pairs.sum(axis=1)).sum()
        rows.append(
            {
                "threshold": threshold,
                "ties": float((label == 0).mean()),
                "agreement": float((votes * pairs).sum() / total) if total else None,
                "people": float((people.label == 0).mean()),
            }
        )
    nearest = min(rows, key=lambda row: abs(row["ties"] - row["people"]))
    return tuple(row | {"matches_people": row is nearest} for row in rows)


def _below(pairs: Floats) -> Floats:
    """Sum where the first index is the larger: the better for side A when it is shown first."""
    return np.asarray(np.tril(pairs, -1).sum(axis=(1, 2)))
