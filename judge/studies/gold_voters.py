"""Votes on pairs of which one answer is right, and how often each voter names it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import scipy  # its submodules load on first use

from rating.errors import DataError
from rating.outcome import Outcome

PRIOR = (8.0, 2.0)
"""Of a voter's accuracy, before any answer: Beta, as if ten had been seen and eight been right."""


@dataclass(frozen=True, slots=True)
class GoldVote:
    """A vote on a pair of which one answer is right.

    Attributes
    ----------
    item : str
        Names the prompt: answers to one prompt are not independent.
    right, choice : Outcome
        The vote that is right, and the one that was cast.
    length_a, length_b : int or None
        Characters of the answers.
    """

    voter: str
    item: str
    right: Outcome
    choice: Outcome
    length_a: int | None = None
    length_b: int | None = None


@dataclass(frozen=True, slots=True)
class VoterAccuracy:
    """How often a voter names what is right: posterior mean and interval of a Beta prior."""

    voter: str
    right: int
    answered: int
    accuracy: float
    lower: float
    upper: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def accuracy_of(voter: str, right: int, answered: int, level: float = 0.95) -> VoterAccuracy:
    """Estimate a voter's accuracy from gold pairs.

    With the prior ``Beta(8, 2)`` the accuracy after ``r`` right of ``n`` has the distribution
    ``Beta(8 + r, 2 + n - r)``: its mean, and its equal-tailed interval.

    Raises
    ------
    DataError
        If more are right than were answered.

    Examples
    --------
    >>> one = accuracy_of("ada", 7, 10)
    >>> one.accuracy, round(one.lower, 3), round(one.upper, 3)
    (0.75, 0.544, 0.909)
    """
    if not 0 <= right <= answered:
        raise DataError(f"{right} right of {answered} answered: give at most as many.")
    a, b = PRIOR[0] + right, PRIOR[1] + answered - right
    tails = scipy.special.betaincinv(a, b, [(1 - level) / 2, (1 + level) / 2])
    return VoterAccuracy(voter, right, answered, a / (a + b), float(tails[0]), float(tails[1]))


def accuracies(votes: Iterable[GoldVote], level: float = 0.95) -> tuple[VoterAccuracy, ...]:
    """Estimate the accuracy of every voter, those with most answers first."""
    answered, right = Counter[str](), Counter[str]()
    for vote in first_answers(votes):
        answered[vote.voter] += 1
        right[vote.voter] += vote.choice is vote.right
    return tuple(
        accuracy_of(voter, right[voter], n, level)
        for voter, n in sorted(answered.items(), key=lambda one: (-one[1], one[0]))
    )


def first_answers(votes: Iterable[GoldVote]) -> list[GoldVote]:
    """Keep each voter's first vote on an item: they know it afterwards."""
    firsts: dict[tuple[str, str], GoldVote] = {}
    for vote in votes:
        firsts.setdefault((vote.voter, vote.item), vote)
    return [*firsts.values()]
