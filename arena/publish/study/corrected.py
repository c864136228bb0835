"""How often people would prefer each model, by a judge's verdicts and its known errors."""

from dataclasses import dataclass

import numpy as np

from judge.study.corrected import Corrected, Tally, win_tallies
from judge.study.items import Items, Said
from rating.errors import NotIdentifiedError


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often one model is preferred, ties left out.

    Attributes
    ----------
    by_people : float or None
        On the items with votes; None without votes that prefer a side.
    corrected : Corrected or None
        By the judge on all items, corrected; None where it cannot be: ``why`` says it.
    """

    model: str
    by_people: float | None
    corrected: Corrected | None
    why: str = ""


def win_rates(items: Items, people: Said, judge: Said, level: float) -> tuple[WinRate, ...]:
    """Correct the judge's win rate of each model that it compared.

    Empty where every item it judged has votes: people's own rate needs no correction.
    """
    if np.isin(judge.item, people.item).all():
        return ()
    tallies = win_tallies(items, people, judge)
    compared = np.unique(items.pairs[judge.item]).tolist()
    names = [items.models[number] for number in compared]
    return tuple(_win_rate(name, tallies[name], level) for name in names)


def _win_rate(model: str, tally: Tally, level: float) -> WinRate:
    by_people = tally.by_people.share if tally.by_people.n else None
    try:
        return WinRate(model, by_people, tally.corrected(level=level))
    except NotIdentifiedError as error:
        return WinRate(model, by_people, None, str(error))
