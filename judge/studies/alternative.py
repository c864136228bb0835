"""May a judge take the place of one of the people? The alternative-annotator test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.agreement import LABELS, counts
from judge.studies.gates import MARGINS, MIN_ITEMS, MIN_PEOPLE, PASS, Alternative, Raters
from judge.studies.items import Items, Labels
from judge.studies.rates import larger
from rating.errors import DataError
from rating.leave_out import clustered_variance
from rating.typing import Bools, Floats, Ints

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
    """Test a judge, a coin and the longer answer in the place of people, on the same items.

    What passes where people hardly agree is no proof of a judge: a coin may. It is tested by
    expectation, without a throw: a person's d on an item is the mean over both sides, and the
    square of its error has their variance in it, as that of a thrown coin has on average.

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
    test = alternative_test(items, people, judge, margin=margin)
    if test.winning_rate is None or test.advantage is None or test.n_tested < MIN_PEOPLE:
        return None
    judged = np.isin(np.arange(items.n), judge.item)
    coin = _tested(items, people, [judged[:, None] * side for side in _COIN], margin).winning_rate
    assert coin is not None  # on the judge's items, with the same people
    longest = None
    if "length" in items.gaps:
        rule = larger(items, "length")
        tested = alternative_test(items, people, rule.only(judged[rule.item]), margin=margin)
        longest = tested.winning_rate if tested.n_tested >= MIN_PEOPLE else None
    return Alternative(
        winning_rate=test.winning_rate,
        advantage=test.advantage,
        margin=margin,
        people_tested=test.n_tested,
        coin=coin,
        longest=longest,
    )


def alternative_test(
    items: Items,
    people: Labels,
    judge: Labels,
    *,
    margin: float = MARGINS["crowd"],
    min_items: int = MIN_ITEMS,
    false_discoveries: float = 0.05,
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
    return _tested(items, people, [counts(items, judge)], margin, min_items, false_discoveries)


def _tested(
    items: Items,
    people: Labels,
    sides: Sequence[Floats],
    margin: float,
    min_items: int = MIN_ITEMS,
    false_discoveries: float = 0.05,
) -> AlternativeTest:
    """Test what says, of each item, one of ``sides`` with the same probability.

    Parameters
    ----------
    sides : sequence of ndarray of shape (n_items, 3)
        Counts of labels, as of `counts`; one of a judge, two of a coin.
    """
    votes = counts(items, people)
    known = sides[0].sum(axis=1) > 0
    at_least = max(min_items, 2)
    tested, left_out = [], 0
    by_rater = np.argsort(people.rater, kind="stable")
    raters, starts = np.unique(people.rater[by_rater], return_index=True)
    for rater, rows in zip(raters.tolist(), np.split(by_rater, starts[1:]), strict=True):
        if len(rows) < at_least:
            left_out += 1
            continue
        at, own = _labels(people.only(rows))
        others = votes[at] - own
        used = (others.sum(axis=1) > 0) & known[at]
        if used.sum() < at_least:
            left_out += 1
            continue
        at, own, others = at[used], own[used], others[used]
        judged = [side[at] for side in sides]
        tested.append(_against(rater, items.prompt[at], judged, own, others, margin))
    rejected = _rejected(np.array([one.p_value for one in tested]), false_discoveries)
    annotators = tuple(
        replace(one, rejected=bool(refuted)) for one, refuted in zip(tested, rejected, strict=True)
    )
    if not annotators:
        return AlternativeTest(None, None, None, (), left_out, margin)
    rate = sum(one.rejected for one in annotators) / len(annotators)
    advantage = sum(one.judge_wins for one in annotators) / len(annotators)
    return AlternativeTest(rate, advantage, rate >= PASS, annotators, left_out, margin)


def _against(
    rater: int, prompt: Ints, judged: Sequence[Floats], own: Floats, others: Floats, margin: float
) -> Annotator:
    by_judge = np.stack([_shared(labels, others) for labels in judged])
    by_person = _shared(own, others)
    judge_wins = (by_judge >= by_person - 1e-12).astype(np.float64)
    person_wins = (by_person >= by_judge - 1e-12).astype(np.float64)
    gap = person_wins - judge_wins
    return Annotator(
        rater=rater,
        judge_wins=float(judge_wins.mean()),
        person_wins=float(person_wins.mean()),
        p_value=_p_value(gap.mean(axis=0), gap.var(axis=0), prompt, margin),
        rejected=False,
        n=len(prompt),
    )


def _labels(own: Labels) -> tuple[Ints, Floats]:
    """Return the items that rows are of, and the counts of their labels, as `counts` has them."""
    at, place = np.unique(own.item, return_inverse=True)
    table = np.bincount(LABELS * place + own.label + 1, minlength=LABELS * len(at))
    return at, table.reshape(len(at), LABELS).astype(np.float64)


def _shared(labels: Floats, others: Floats) -> Floats:
    """Return the mean share of the others who say the same."""
    share = others / others.sum(axis=1, keepdims=True)
    return np.asarray((labels * share).sum(axis=1) / labels.sum(axis=1))


def _p_value(difference: Floats, thrown: Floats, prompt: Ints, margin: float) -> float:
    """Test by prompts that the mean is the margin or more, against its being less.

    Parameters
    ----------
    thrown : ndarray of shape (n_items,)
        Variance of each difference by itself: 0 but of a coin.
    """
    mean, m = float(difference.mean()), len(np.unique(prompt))
    if m < 2:
        return 1.0
    square = float(clustered_variance(difference - mean, prompt) + thrown.sum())
    error = math.sqrt(square) / len(difference)
    if error == 0:
        return 0.0 if mean < margin else 1.0
    return float(scipy.special.stdtr(m - 1, (mean - margin) / error))


def _rejected(p: Floats, rate: float) -> Bools:
    """Return what Benjamini and Yekutieli's procedure rejects."""
    m = len(p)
    order = np.argsort(p)
    harmonic = float(np.sum(1 / np.arange(1, m + 1)))
    enough = p[order] <= np.arange(1, m + 1) * rate / (m * harmonic)
    rejected = np.zeros(m, dtype=bool)
    rejected[order[: np.flatnonzero(enough).max(initial=-1) + 1]] = True
    return rejected
