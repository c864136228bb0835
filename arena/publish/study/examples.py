"""The items on which people and a judge differ most."""

from dataclasses import dataclass

import numpy as np

from arena.publish.study.data import JudgeSaid, StudyData
from judge.study.agreement import counts
from rating.typing import Floats

MOST_A_PROMPT = 2


@dataclass(frozen=True, slots=True)
class Differing:
    """An item, and what was said of it.

    Attributes
    ----------
    votes, verdicts : tuple of int
        How many are for side A, a tie, and side B.
    """

    item: int
    votes: tuple[int, int, int]
    verdicts: tuple[int, int, int]


def differing(data: StudyData, judge: JudgeSaid, n: int = 6) -> tuple[Differing, ...]:
    """Give the items on which the judge stands furthest from most people, most votes first.

    The distance is that of the mean labels, weighed by the root of the votes beyond one: a vote
    that stands alone says little of people. Of a prompt at most `MOST_A_PROMPT` are given.
    """
    votes, verdicts = (counts(data.items, said) for said in (data.people, judge.verdicts))
    sizes = votes.sum(axis=1), verdicts.sum(axis=1)
    both = (sizes[0] > 0) & (sizes[1] > 0)
    apart = np.zeros(data.items.n)
    apart[both] = np.abs(_mean(votes[both]) - _mean(verdicts[both]))
    order = np.argsort(-apart * np.sqrt(np.maximum(sizes[0] - 0.5, 0)), kind="stable")
    chosen: list[Differing] = []
    of_prompt: dict[int, int] = {}
    for item in order[: 50 * n].tolist():
        prompt = int(data.items.prompt[item])
        if len(chosen) == n or apart[item] < 1:
            break
        if of_prompt.get(prompt, 0) < MOST_A_PROMPT:
            of_prompt[prompt] = of_prompt.get(prompt, 0) + 1
            chosen.append(Differing(item, _said(votes[item]), _said(verdicts[item])))
    return tuple(chosen)


def _mean(found: Floats) -> Floats:
    return np.asarray((found[:, 2] - found[:, 0]) / found.sum(axis=1))


def _said(found: Floats) -> tuple[int, int, int]:
    b, tie, a = (int(n) for n in found)
    return a, tie, b
