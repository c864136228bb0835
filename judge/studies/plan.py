"""What to buy next beside a judge: how many votes, and on which items."""

from dataclasses import dataclass

import numpy as np

from judge.studies.buying import Purchase, Sending, Signal, half_width, sending, votes_to_buy
from judge.studies.data import JudgeSaid, StudyData
from judge.studies.powered_ratings import PoweredRatings

WANTED = (100.0, 50.0, 30.0, 20.0, 10.0, 5.0)
"""Half-widths in points that are planned for, as far as they are not reached."""
MOST_WANTED = 3
MOST_SENT = 100


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Items drawn for people to vote on next, of those that were judged and have no vote.

    Attributes
    ----------
    item : tuple of int
        Those drawn, each with its chance; `sending` says which.
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
    data: StudyData, judge: JudgeSaid, powered: PoweredRatings, rng: np.random.Generator
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
    data: StudyData, judge: JudgeSaid, powered: PoweredRatings, rng: np.random.Generator
) -> Sent | None:
    n = min(MOST_SENT, powered.n_judged)
    if not n:
        return None
    found = sending(data.items, data.people, judge.verdicts, n, powered)
    return Sent(tuple(found.draw(rng).tolist()), found, _by_pair(data, found))


def _by_pair(data: StudyData, found: Sending) -> dict[tuple[str, str], tuple[float, float]]:
    models = data.items.models
    key = data.items.pairs[found.item] @ np.array([len(models), 1])
    pairs, number = np.unique(key, return_inverse=True)
    sent = np.bincount(number, found.chance) / found.chance.sum()
    there = np.bincount(number) / len(found.item)
    named = [(models[pair // len(models)], models[pair % len(models)]) for pair in pairs.tolist()]
    return {
        named[i]: (float(sent[i]), float(there[i]))
        for i in np.argsort(-sent, kind="stable").tolist()
    }
