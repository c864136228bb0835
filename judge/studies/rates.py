"""How often a judge, people and simple rules agree with people, and a judge with itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.agreement import (
    Weighting,
    counts,
    kappa,
    majority,
    over_another,
    own_agreement,
    own_kappa,
    pair_agreement,
)
from judge.studies.data import JudgeVerdicts
from judge.studies.estimates import (
    Draws,
    Estimate,
    MeanOfPrompts,
    clustered,
    over,
    sums_by_prompt,
)
from judge.studies.gates import FIRST, LONGEST, MARKDOWN, MIN_CASES, RANDOM, Rule
from judge.studies.items import Items, Labels
from judge.studies.options import StudyOptions
from judge.studies.reliability import Ratings, ac1, alpha
from rating.errors import DataError
from rating.typing import Bools, Floats

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

    Where no vote is a tie, nobody could give one: AC1 then knows two answers.
    """
    alike = people.only(np.isin(people.item, verdicts.item))
    ratings = Ratings.of_labels(items, alike, ties=bool((people.label == 0).any()))
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
        kappa=kappa(items, verdicts, votes, options.draws()),
        people_kappa=own_kappa(items, alike, options.draws()),
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
    return Rule(
        RANDOM,
        agreement=Estimate(coin, None, None, without_ties.n),
        with_ties=Estimate(random_agreement(ties=True), None, None, with_ties.n),
        lead=_less(without_ties, coin),
        followed=None,
    )


def _less(estimate: Estimate, by: float) -> Estimate:
    value, lower, upper = (
        None if end is None else end - by
        for end in (estimate.value, estimate.lower, estimate.upper)
    )
    return Estimate(value, lower, upper, estimate.n)


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
        raise DataError(f"Nothing is known of {feature!r}; known of the responses: {known}.")
    gap = items.gaps[feature]
    return Labels.of_one_rater(np.flatnonzero(~np.isnan(gap)), np.sign(gap[~np.isnan(gap)]))


def always_first(items: Items, orders: Labels) -> Labels:
    """Return a judge that prefers what it sees first, in the orders in which one was asked.

    Asked as often in one order as in the other, it ties: its answers cancel. It says nothing of
    an item whose orders are unknown.

    Parameters
    ----------
    orders : Labels
        The rows of the judge that it stands beside.
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


@dataclass(frozen=True, slots=True)
class Swaps:
    """Over pairs of rows of an item in opposite orders, ``n`` of them; the shares add up to 1.

    Attributes
    ----------
    consistent : Estimate
        Share in which both orders give the same label.
    to_first, to_second : Estimate
        Share in which the label moves to the side that is shown first, or second.
    """

    consistent: Estimate
    to_first: Estimate
    to_second: Estimate


def swaps(items: Items, judge: Labels, draws: Draws) -> Swaps:
    """Compare the labels of each item when side A is shown first and when side B is.

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

    return Swaps(consistent=share(0), to_first=share(1), to_second=share(2))


def _below(pairs: Floats) -> Floats:
    """Sum where the first index is the larger: the better for side A when it is shown first."""
    return np.asarray(np.tril(pairs, -1).sum(axis=(1, 2)))
