"""How far a judge, people among themselves and simple rules agree with people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.publish.study.options import StudyOptions
from judge.study.agreement import kappa, majority, own_agreement, own_kappa, pair_agreement
from judge.study.items import Estimate, Items, Said
from judge.study.reliability import Ratings, ac1, alpha


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
