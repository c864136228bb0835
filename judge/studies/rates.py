"""How far a judge, people among themselves and rules that read nothing agree with people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.agreement import (
    kappa,
    majority,
    over_another,
    own_agreement,
    own_kappa,
    pair_agreement,
)
from judge.studies.baselines import always_first, larger, random_agreement
from judge.studies.data import JudgeSaid
from judge.studies.gates import FIRST, LONGEST, MARKDOWN, MIN_CASES, RANDOM, Rule
from judge.studies.items import Estimate, Items, Said
from judge.studies.options import StudyOptions
from judge.studies.reliability import Ratings, ac1, alpha
from rating.typing import Bools


@dataclass(frozen=True, slots=True)
class Rates:
    """Agreement by what counts.

    Attributes
    ----------
    with_ties, without_ties : Estimate
        Every pair counts the same.
    by_item, by_item_without_ties : Estimate
        Every item counts the same.
    """

    with_ties: Estimate
    without_ties: Estimate
    by_item: Estimate
    by_item_without_ties: Estimate


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge with people, beside that of people on the same items.

    Attributes
    ----------
    judge, people : Rates
        The latter over pairs of votes on items that the judge has a verdict on.
    kappa, people_kappa, alpha, ac1 : Estimate
        The last two of people.
    """

    judge: Rates
    people: Rates
    kappa: Estimate
    people_kappa: Estimate
    alpha: Estimate
    ac1: Estimate


def agreement(items: Items, people: Said, verdicts: Said, options: StudyOptions) -> Agreement:
    """Compare verdicts with votes, and votes with votes on the same items.

    Where no vote is a tie, nobody could give one: AC1 then knows two answers.
    """
    alike = people.only(np.isin(people.item, verdicts.item))
    ratings = Ratings.of_said(items, alike, ties=bool((people.label == 0).any()))
    draws: dict[str, Any] = {"rounds": options.rounds, "level": options.level}
    votes = voted(items, alike, options)
    return Agreement(
        judge=with_people(items, verdicts, votes, options),
        people=_rates(
            lambda **how: own_agreement(items, alike, rng=options.rng(), **how, **draws)
        ),
        kappa=kappa(items, verdicts, votes, rng=options.rng(), **draws),
        people_kappa=own_kappa(items, alike, rng=options.rng(), **draws),
        alpha=alpha(ratings, rng=options.rng(), **draws),
        ac1=ac1(ratings, rng=options.rng(), **draws),
    )


def voted(items: Items, people: Said, options: StudyOptions) -> Said:
    """Give what verdicts are compared with: every vote, or what most votes of an item say."""
    return majority(items, people) if options.pairs == "majority" else people


def with_people(items: Items, verdicts: Said, votes: Said, options: StudyOptions) -> Rates:
    """Give the agreement of verdicts, or of a rule, with people."""
    draws: dict[str, Any] = {"rounds": options.rounds, "level": options.level}
    return _rates(
        lambda **how: pair_agreement(items, verdicts, votes, rng=options.rng(), **how, **draws)
    )


def _rates(found: Callable[..., Estimate]) -> Rates:
    return Rates(
        with_ties=found(ties=True),
        without_ties=found(ties=False),
        by_item=found(ties=True, weighting="items"),
        by_item_without_ties=found(ties=False, weighting="items"),
    )


@dataclass(frozen=True, slots=True)
class Baseline:
    """A rule, on the items that the judge has a verdict on.

    Attributes
    ----------
    rates : Rates
        Its agreement with people.
    lead, lead_without_ties : Estimate
        By how much the judge agrees with people more, on the items of which the rule says
        something, and on those of which it prefers a side.
    followed : Estimate or None
        How often the judge says what the rule says, where both prefer a side; None of a coin.
    """

    name: str
    rates: Rates
    lead: Estimate
    lead_without_ties: Estimate
    followed: Estimate | None

    @property
    def rule(self) -> Rule:
        """What the first answer takes from it."""
        return Rule(self.name, self.rates.without_ties, self.lead_without_ties, self.followed)


def baselines(
    items: Items, votes: Said, judge: JudgeSaid, options: StudyOptions
) -> tuple[Baseline, ...]:
    """Hold a judge against each rule that has `MIN_CASES`, and so against a die."""
    judged = np.isin(np.arange(items.n), judge.verdicts.item)
    rules = {
        name: larger(items, feature)
        for name, feature in ((LONGEST, "length"), (MARKDOWN, "format"))
        if feature in items.gaps
    }
    if (judge.in_orders.first != 0).any():
        rules[FIRST] = always_first(items, judge.in_orders)
    decided = _sided(items, votes) & _sided(items, judge.verdicts)
    found = [
        _ruled(name, items, rule.only(judged[rule.item]), votes, judge.verdicts, options)
        for name, rule in rules.items()
        if (decided & _sided(items, rule)).sum() >= MIN_CASES
    ]
    if decided.sum() >= MIN_CASES:
        found.append(_random(items, votes, judge.verdicts, options))
    return tuple(found)


def _sided(items: Items, said: Said) -> Bools:
    """Tell of which items somebody prefers a side."""
    return np.isin(np.arange(items.n), said.item[said.label != 0])


def _ruled(
    name: str, items: Items, rule: Said, votes: Said, verdicts: Said, options: StudyOptions
) -> Baseline:
    draws: dict[str, Any] = {"rounds": options.rounds, "level": options.level}
    cases = {True: rule, False: rule.only(rule.label != 0)}
    lead, lead_without_ties = (
        over_another(
            items,
            verdicts.only(np.isin(verdicts.item, own.item)),
            own,
            votes,
            ties=ties,
            rng=options.rng(),
            **draws,
        )
        for ties, own in cases.items()
    )
    followed = pair_agreement(items, verdicts, rule, ties=False, rng=options.rng(), **draws)
    rates = with_people(items, rule, votes, options)
    return Baseline(name, rates, lead, lead_without_ties, followed)


def _random(items: Items, votes: Said, verdicts: Said, options: StudyOptions) -> Baseline:
    """Give the expectation of a die, which is exact: only the judge's part of a lead varies."""
    found = with_people(items, verdicts, votes, options)
    exact = {ties: random_agreement(ties=ties) for ties in (True, False)}
    rates = Rates(
        _known(exact[True], found.with_ties),
        _known(exact[False], found.without_ties),
        _known(exact[True], found.by_item),
        _known(exact[False], found.by_item_without_ties),
    )
    leads = (_less(found.with_ties, exact[True]), _less(found.without_ties, exact[False]))
    return Baseline(RANDOM, rates, *leads, None)


def _known(value: float, beside: Estimate) -> Estimate:
    """Give a value that no data move: it has no interval."""
    return Estimate(value, None, None, beside.n)


def _less(estimate: Estimate, by: float) -> Estimate:
    value, lower, upper = (
        None if end is None else end - by
        for end in (estimate.value, estimate.lower, estimate.upper)
    )
    return Estimate(value, lower, upper, estimate.n)
