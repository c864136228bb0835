"""May a judge take the place of one of the people? The alternative-annotator test."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from judge.errors import DataError
from judge.study.agreement import LABELS, counts
from judge.study.items import Items, Said
from judge.study.resampling import sums_within

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["expert", "skilled", "crowd"]

MARGINS: dict[Kind, float] = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""What a judge may lose to a person and still be worth its lower price."""
MIN_ITEMS = 30
"""Fewer of a person's items than this give the t-test no footing."""
PASS = 0.5


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


def alternative_test(
    items: Items,
    people: Said,
    judge: Said,
    *,
    margin: float = MARGINS["expert"],
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
    judged = counts(items, judge)
    votes = counts(items, people)
    tested, left_out = [], 0
    by_rater = np.argsort(people.rater, kind="stable")
    raters, starts = np.unique(people.rater[by_rater], return_index=True)
    for rater, rows in zip(raters.tolist(), np.split(by_rater, starts[1:]), strict=True):
        at, own = _labels(people.only(rows))
        others = votes[at] - own
        used = (others.sum(axis=1) > 0) & (judged[at].sum(axis=1) > 0)
        if used.sum() < max(min_items, 2):
            left_out += 1
            continue
        prompt = items.prompt[at[used]]
        tested.append(_against(rater, prompt, judged[at[used]], own[used], others[used], margin))
    rejected = _rejected(np.array([one.p_value for one in tested]), false_discoveries)
    annotators = tuple(
        Annotator(one.rater, one.judge_wins, one.person_wins, one.p_value, bool(found), one.n)
        for one, found in zip(tested, rejected, strict=True)
    )
    if not annotators:
        return AlternativeTest(None, None, None, (), left_out, margin)
    rate = sum(one.rejected for one in annotators) / len(annotators)
    advantage = sum(one.judge_wins for one in annotators) / len(annotators)
    return AlternativeTest(rate, advantage, rate >= PASS, annotators, left_out, margin)


def _against(
    rater: int, prompt: Ints, judged: Floats, own: Floats, others: Floats, margin: float
) -> Annotator:
    by_judge, by_person = _shared(judged, others), _shared(own, others)
    judge_wins = (by_judge >= by_person - 1e-12).astype(np.float64)
    person_wins = (by_person >= by_judge - 1e-12).astype(np.float64)
    return Annotator(
        rater=rater,
        judge_wins=float(judge_wins.mean()),
        person_wins=float(person_wins.mean()),
        p_value=_p_value(person_wins - judge_wins, prompt, margin),
        rejected=False,
        n=len(prompt),
    )


def _labels(own: Said) -> tuple[Ints, Floats]:
    """Return the items that rows are of, and the counts of their labels, as `counts` has them."""
    at, place = np.unique(own.item, return_inverse=True)
    table = np.bincount(LABELS * place + own.label + 1, minlength=LABELS * len(at))
    return at, table.reshape(len(at), LABELS).astype(np.float64)


def _shared(labels: Floats, others: Floats) -> Floats:
    """Return the mean share of the others who say the same."""
    share = others / others.sum(axis=1, keepdims=True)
    return np.asarray((labels * share).sum(axis=1) / labels.sum(axis=1))


def _p_value(difference: Floats, prompt: Ints, margin: float) -> float:
    """Test by prompts that the mean is the margin or more, against its being less."""
    known, place = np.unique(prompt, return_inverse=True)
    mean, m = float(difference.mean()), len(known)
    if m < 2:
        return 1.0
    away = sums_within(place, (difference - mean)[:, None], m)[:, 0]
    error = math.sqrt(m / (m - 1) * float(away @ away)) / len(difference)
    if error == 0:
        return 0.0 if mean < margin else 1.0
    return float(scipy.special.stdtr(m - 1, (mean - margin) / error))


def _rejected(p: Floats, rate: float) -> NDArray[np.bool_]:
    """Return what Benjamini and Yekutieli's procedure rejects."""
    m = len(p)
    order = np.argsort(p)
    harmonic = float(np.sum(1 / np.arange(1, m + 1)))
    enough = p[order] <= np.arange(1, m + 1) * rate / (m * harmonic)
    found = np.zeros(m, dtype=bool)
    found[order[: np.flatnonzero(enough).max(initial=-1) + 1]] = True
    return found
