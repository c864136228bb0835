"""May a judge take the place of one of the people? The alternative-annotator test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.agreement import LABELS, counts
from judge.studies.gates import MARGINS, MIN_ITEMS, MIN_PEOPLE, PASS, Alternative, Raters
from judge.studies.items import Items, Labels
from judge.studies.rates import larger
from rating.errors import DataError
from rating.leave_out import influence_factor
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import normal_quantile

STAND_INS = 20
"""Draws of a person in the place of the judge."""
FALSE_DISCOVERIES = 0.05
POWER = 0.9

_COIN = (np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))


@dataclass(frozen=True, slots=True)
class Annotator:
    """A judge against one of the people, over items that others voted on as well.

    Attributes
    ----------
    rater : int
    judge_wins, person_wins : float
        Share of the items on which the one agrees with the others at least as often.
    p_value : float
        That the judge wins no more than the person less the margin.
    rejected : bool
        Whether that is rejected, over all people together.
    n : int
        Items.
    """

    rater: int
    judge_wins: float
    person_wins: float
    p_value: float
    rejected: bool
    n: int


@dataclass(frozen=True, slots=True)
class AlternativeTest:
    """Whether a judge may stand in for people.

    Attributes
    ----------
    winning_rate : float or None
        Share of the people whom the judge can replace; None where nobody can be tested.
    advantage : float or None
        Mean of ``judge_wins``: how often the judge is as good as the person it replaces.
    passed : bool or None
        Whether ``winning_rate`` is a half or more.
    annotators : tuple of Annotator
    n_left_out : int
        People with too few items to be tested.
    margin : float
    """

    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    annotators: tuple[Annotator, ...]
    n_left_out: int
    margin: float

    @property
    def n_tested(self) -> int:
        """How many people were tested."""
        return len(self.annotators)


def alternative(
    items: Items, people: Labels, judge: Labels, *, raters: Raters = "crowd"
) -> Alternative | None:
    """Test a judge in the place of people, and others for reference, on the same items.

    A coin may pass where people hardly agree. It is tested by expectation, without a throw: a
    person's d on an item is the mean over both sides, and the square of its error has their
    variance in it, as that of a thrown coin has on average. What people could reach: one of the
    others, drawn at random on each item, in `STAND_INS` draws, is the judge and none of the
    others; and the answer that most of the others give, which no judge exceeds.

    ``decides_at`` is the number of items per person at which half of the m people are replaced
    with 90% power, by a judge who loses nothing to them::

        s^2 (z(1 - p) + z(.9))^2 / margin^2,    p = ceil(m / 2) .05 / (m sum_i 1 / i)

    where s^2 is the mean of ``items * error^2`` of the stand-ins. Not 80%: where all people label
    the same items, their tests are correlated, and fewer pass together.

    Parameters
    ----------
    raters : {"expert", "skilled", "crowd"}
        What kind of raters the people are: gives the margin, as in `MARGINS`.

    Returns
    -------
    Alternative or None
        None where fewer than `MIN_PEOPLE` have `MIN_ITEMS` items that were judged and that
        others voted on as well.
    """
    margin = MARGINS[raters]
    cells, verdicts = _Cells.of(items, people), counts(items, judge)
    whole = _measured(cells, [verdicts])
    if len(whole.rater) < MIN_PEOPLE:
        return None
    judged = verdicts.sum(axis=1) > 0
    most = cells.others == cells.others.max(axis=1, keepdims=True)
    coin, majority = (
        _replaced(_measured(cells, sides), margin)
        for sides in (
            [judged[:, None] * side for side in _COIN],
            [most * judged[cells.item][:, None]],
        )
    )
    longest = None
    if "length" in items.gaps:
        rule = larger(items, "length")
        tested = _measured(cells, [counts(items, rule.only(judged[rule.item]))])
        longest = _replaced(tested, margin) if len(tested.rater) >= MIN_PEOPLE else None
    rng = np.random.default_rng(0)
    drawn = [_measured(*cells.with_stand_in(judged, rng)) for _ in range(STAND_INS)]
    person, passed, needed = None, None, None
    if min(len(one.rater) for one in drawn) >= MIN_PEOPLE:
        rates = np.array([_replaced(one, margin) for one in drawn])
        person, passed = float(rates.mean()), float((rates >= PASS).mean())
        spread = np.concatenate([one.n * one.variance for one in drawn]).mean()
        m = len(whole.rater)
        tail = math.ceil(m / 2) * FALSE_DISCOVERIES / (m * float(np.sum(1 / np.arange(1, m + 1))))
        reach = normal_quantile(tail) + normal_quantile(1 - POWER)
        needed = math.ceil(spread * (reach / margin) ** 2)
    return Alternative(
        winning_rate=_replaced(whole, margin),
        advantage=float(whole.judge_wins.mean()),
        margin=margin,
        people_tested=len(whole.rater),
        coin=coin,
        longest=longest,
        items_per_person=float(np.median(whole.n)),
        person=person,
        person_passed=passed,
        majority=majority,
        decides_at=needed,
    )


def alternative_test(
    items: Items,
    people: Labels,
    judge: Labels,
    *,
    margin: float = MARGINS["crowd"],
    min_items: int = MIN_ITEMS,
    false_discoveries: float = FALSE_DISCOVERIES,
) -> AlternativeTest:
    """Test whether a judge agrees with people as well as each one of them does.

    For person j and item i that j, others and the judge labelled, the judge wins if its label is
    shared by at least as many of the others as j's, and j wins if not by fewer. ``d_i`` is j's win
    less the judge's; that its mean is the margin or more is rejected by a one-sided t-test, with
    Benjamini and Yekutieli's control of false discoveries, which allows for people sharing items.

    The paper takes items as independent. Here the error of the mean is that of whole prompts, with
    t of prompts less one; one item a prompt gives the paper's test. Where a judge or a person
    labelled an item repeatedly, it speaks with its mean share of others.

    Parameters
    ----------
    margin : float
        How much a judge may lose and pass for its price: the paper's values are in `MARGINS`.
    min_items : int
        People with fewer items are left out.
    false_discoveries : float

    Raises
    ------
    DataError
        If the margin is not from 0 to 1.

    References
    ----------
    .. [1] N. Calderon, R. Reichart and R. Dror, "The Alternative Annotator Test for LLM-as-a-
       Judge", ACL 2025 (arXiv:2501.10970), section 3.
    """
    if not 0 <= margin <= 1:
        raise DataError(f"The margin is a share from 0 to 1, not {margin}.")
    tested = _measured(_Cells.of(items, people), [counts(items, judge)], min_items)
    n_left_out = len(np.unique(people.rater)) - len(tested.rater)
    if not len(tested.rater):
        return AlternativeTest(None, None, None, (), n_left_out, margin)
    p_values = tested.p_values(margin)
    rejected = _rejected(p_values, false_discoveries)
    columns = (tested.rater, tested.judge_wins, tested.person_wins, p_values, rejected, tested.n)
    annotators = tuple(map(Annotator, *(column.tolist() for column in columns)))
    rate = float(rejected.mean())
    return AlternativeTest(
        rate, float(tested.judge_wins.mean()), rate >= PASS, annotators, n_left_out, margin
    )


class _Cells(NamedTuple):
    """What each person said of each item, and what the others did.

    Attributes
    ----------
    item, rater, prompt : ndarray of shape (n,), int64
        Sorted by item.
    own, others : ndarray of shape (n, 3)
        Counts of labels, as of `counts`.
    """

    item: Ints
    rater: Ints
    prompt: Ints
    own: Floats
    others: Floats

    @classmethod
    def of(cls, items: Items, people: Labels) -> "_Cells":
        n_raters = int(people.rater.max(initial=0)) + 1
        cells, place = np.unique(people.item * n_raters + people.rater, return_inverse=True)
        item, rater = np.divmod(cells, n_raters)
        at = LABELS * place + people.label + 1
        own = np.bincount(at, minlength=LABELS * len(cells)).reshape(-1, LABELS).astype(np.float64)
        return cls(item, rater, items.prompt[item], own, counts(items, people)[item] - own)

    def with_stand_in(
        self, judged: Bools, rng: np.random.Generator
    ) -> "tuple[_Cells, list[Floats]]":
        """Draw one of the others for each cell, of items judged that two others or more rated."""
        first, n = (
            of_item[self.item]
            for of_item in (
                np.searchsorted(self.item, np.arange(len(judged))),
                np.bincount(self.item, minlength=len(judged)),
            )
        )
        fits = np.flatnonzero(judged[self.item] & (n > 2))
        drawn = first[fits] + rng.integers(n[fits] - 1)
        labels = self.own[drawn + (drawn >= fits)]
        others = self.others[fits] - labels
        places = self.item[fits], self.rater[fits], self.prompt[fits]
        return _Cells(*places, self.own[fits], others), [labels]


class _Measured(NamedTuple):
    """A judge against each person that can be tested, shape (n_people,) each."""

    rater: Ints
    n: Ints
    judge_wins: Floats
    person_wins: Floats
    lost: Floats
    variance: Floats
    n_prompts: Ints

    def p_values(self, margin: float) -> Floats:
        """Test that what the judge loses is the margin or more, against its being less."""
        ahead = self.lost - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            t = ahead / np.sqrt(self.variance)  # without an error it is sure
            p = scipy.special.stdtr(self.n_prompts - 1, np.where(ahead == 0, np.inf, t))
        return np.where(self.n_prompts < 2, 1.0, np.nan_to_num(p, nan=1.0))


def _replaced(tested: _Measured, margin: float) -> float:
    """Return the winning rate."""
    return float(_rejected(tested.p_values(margin), FALSE_DISCOVERIES).mean())


def _measured(cells: _Cells, sides: Sequence[Floats], min_items: int = MIN_ITEMS) -> _Measured:
    """Compare with each person what says, of each item, one of ``sides`` alike.

    Parameters
    ----------
    sides : sequence of ndarray of shape (n_items, 3) or (n_cells, 3)
        Counts of labels, as of `counts`; one of a judge, two of a coin.
    """
    judged = [side if len(side) == len(cells.item) else side[cells.item] for side in sides]
    used = np.flatnonzero((cells.others.sum(axis=1) > 0) & (judged[0].sum(axis=1) > 0))
    names, rater, n = np.unique(cells.rater[used], return_inverse=True, return_counts=True)
    enough = n >= max(min_items, 2)
    used = used[enough[rater]]
    rater = (np.cumsum(enough) - 1)[rater[enough[rater]]]
    names, n = names[enough], n[enough]
    by_person = _shared(cells.own[used], cells.others[used])
    by_judge = np.stack([_shared(side[used], cells.others[used]) for side in judged])
    judge_wins, person_wins = by_judge >= by_person - 1e-12, by_person >= by_judge - 1e-12
    gap = person_wins.astype(np.float64) - judge_wins

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(rater, values, len(n)) / n)

    lost = mean(gap.mean(axis=0))
    most = int(cells.prompt.max(initial=0)) + 1
    known, place = np.unique(rater * most + cells.prompt[used], return_inverse=True)
    of = known // most
    away = np.bincount(place, gap.mean(axis=0) - lost[rater], len(known))
    n_prompts = np.bincount(of, minlength=len(n))
    factor = np.array([influence_factor(int(m)) if m > 1 else 0.0 for m in n_prompts])
    squares = factor * np.bincount(of, away**2, len(n)) + n * mean(gap.var(axis=0))
    return _Measured(
        rater=names,
        n=n,
        judge_wins=mean(judge_wins.mean(axis=0)),
        person_wins=mean(person_wins.mean(axis=0)),
        lost=lost,
        variance=squares / n**2,
        n_prompts=n_prompts,
    )


def _shared(labels: Floats, others: Floats) -> Floats:
    """Return the mean share of the others who say the same."""
    share = others / others.sum(axis=1, keepdims=True)
    return np.asarray((labels * share).sum(axis=1) / labels.sum(axis=1))


def _rejected(p: Floats, rate: float) -> Bools:
    """Return what Benjamini and Yekutieli's procedure rejects."""
    m = len(p)
    order = np.argsort(p)
    harmonic = float(np.sum(1 / np.arange(1, m + 1)))
    enough = p[order] <= np.arange(1, m + 1) * rate / (m * harmonic)
    rejected = np.zeros(m, dtype=bool)
    rejected[order[: np.flatnonzero(enough).max(initial=-1) + 1]] = True
    return rejected
