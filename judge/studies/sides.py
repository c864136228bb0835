"""Raters who go by the side an answer stands on, or say other than they said before."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import scipy  # its submodules load on first use

from judge.ifeval.accuracy import wilson
from judge.studies.estimates import Estimate, percent, percent_of
from rating.sentences import Sentence

FALSE_ALARM = 0.05
"""At most so often one of a study's raters is warned of who goes by the answers."""
BY_SIDE = 0.75
"""Share of choices that go to one side, where half of all go by the side alone."""
COIN = 0.5

Kind = Literal["side", "side again", "other answer"]


@dataclass(frozen=True, slots=True)
class SideCounts:
    """What a rater chose.

    Attributes
    ----------
    left, chosen : int
        Choices for what stood on the left, of those for either side.
    same, twice : int
        Items that came again with their sides exchanged and got the same answer, of those where
        a side was chosen both times.
    """

    rater: str
    left: int = 0
    chosen: int = 0
    same: int = 0
    twice: int = 0


@dataclass(frozen=True, slots=True)
class SideWarning:
    """What speaks against a rater.

    Attributes
    ----------
    kind : {"side", "side again", "other answer"}
        Whether choices go to one side, to the same side when an item comes again, or to another
        answer as often as a coin's.
    share : Estimate
        Of choices for what stood on the left; of items with the same side again; of items with
        the same answer again.
    sentence : Sentence
    """

    rater: str
    kind: Kind
    share: Estimate
    sentence: Sentence

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "rater": self.rater,
            "kind": self.kind,
            "share": self.share.to_dict(),
            "sentence": str(self.sentence),
        }


def warn_of_sides(raters: Sequence[SideCounts], level: float = 0.95) -> tuple[SideWarning, ...]:
    """Name the raters whose choices follow the side, or contradict each other like a coin's.

    Three tests a rater, each at ``FALSE_ALARM`` over three times the number of raters:

    - more than `BY_SIDE` of the choices for a side go to the left, or to the right. Sides are
      drawn, so who goes by the answer gets half, and who goes by the side in a share d of the
      choices and by the answer in the others gets ``(1 + d) / 2``: exact binomial, both ends;
    - items that come again with sides exchanged get the same side more often than the same
      answer. Without a lean to a side that is at most as likely, whatever the answers: exact
      binomial;
    - they get the same answer in at most half, and less often than the other raters' items:
      exact hypergeometric (Fisher). Who is steady, but less so than others, can meet it.

    Parameters
    ----------
    level : float
        Of the intervals (Wilson); the tests do not depend on it.

    Returns
    -------
    tuple of SideWarning
        At most one a rater, the first that holds, in the order of the raters.

    Examples
    --------
    >>> [one.kind for one in warn_of_sides([SideCounts("r1", 58, 60), SideCounts("r2", 31, 60)])]
    ['side']
    """
    return tuple(_warnings(raters, level)) if raters else ()


def _warnings(raters: Sequence[SideCounts], level: float) -> Iterator[SideWarning]:
    limit = FALSE_ALARM / (3 * len(raters))
    same, twice = sum(one.same for one in raters), sum(one.twice for one in raters)
    for one in raters:
        others = (same - one.same, twice - one.twice)
        if 2 * _at_least(max(one.left, one.chosen - one.left), one.chosen, BY_SIDE) <= limit:
            yield _side(one, level)
        elif _at_least(one.twice - one.same, one.twice, COIN) <= limit:
            yield _side_again(one, level)
        elif 2 * one.same <= one.twice and _at_most(one.same, one.twice, *others) <= limit:
            yield _other_answer(one, *others, level)


def _at_least(hits: int, n: int, p: float) -> float:
    """Return how likely so many hits or more are, each with probability p."""
    return float(scipy.special.bdtrc(hits - 1, n, p)) if hits > 0 else 1.0


def _at_most(hits: int, n: int, others: int, of_others: int) -> float:
    """Return how likely so few of all hits are among these n, if all n are alike."""
    total, every = hits + others, math.comb(n + of_others, n)
    ways = (math.comb(total, k) * math.comb(n + of_others - total, n - k) for k in range(hits + 1))
    return sum(ways) / every


def _side(one: SideCounts, level: float) -> SideWarning:
    share = _share(one.left, one.chosen, level)
    sentence = Sentence(
        "%(rater)s goes by the side more than by the answer: of %(n)s choices for a side "
        "%(share)s are for the answer shown first. Who goes by the answer gets half.",
        rater=one.rater,
        share=percent_of(share),
        n=one.chosen,
    )
    return SideWarning(one.rater, "side", share, sentence)


def _side_again(one: SideCounts, level: float) -> SideWarning:
    share = _share(one.twice - one.same, one.twice, level)
    sentence = Sentence(
        "%(rater)s goes by the side more than by the answer: of %(n)s items that came again with "
        "their sides exchanged, %(share)s got the same side again.",
        rater=one.rater,
        share=percent_of(share),
        n=one.twice,
    )
    return SideWarning(one.rater, "side again", share, sentence)


def _other_answer(one: SideCounts, others: int, of_others: int, level: float) -> SideWarning:
    share = _share(one.same, one.twice, level)
    sentence = Sentence(
        "%(rater)s is not shown to choose better than a coin: of %(n)s items that came again with "
        "their sides exchanged, %(share)s got the same answer. With the others it is %(others)s.",
        rater=one.rater,
        share=percent_of(share),
        n=one.twice,
        others=percent(others / of_others),
    )
    return SideWarning(one.rater, "other answer", share, sentence)


def _share(hits: int, n: int, level: float) -> Estimate:
    rate = hits / n
    return Estimate(rate, *wilson(rate, n, level), n)
