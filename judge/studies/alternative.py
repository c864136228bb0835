"""Alternative-annotator test, prevalence corrected for a judge's errors, and calibration.

`alternative` tests whether a judge may take the place of one of the raters. `corrected_rate`
corrects a rate for the judge's sensitivity and specificity (Rogan and Gladen), `win_rates` those
of models. `calibration` compares a judge's probabilities with the votes of people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from judge.studies.boards import from_influence
from judge.studies.estimates import (
    LABELS,
    SHARE,
    Draws,
    Estimate,
    clustered,
    counts,
    interval,
    over,
    ratio,
    with_width,
)
from judge.studies.gates import MIN_ITEMS, MIN_PEOPLE, PASS, Alternative
from judge.studies.options import MARGINS, Raters
from judge.studies.reliability import larger
from judge.studies.rows import Items, Labels
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import (
    drawn_sums,
    influence_factor,
    influence_variance,
    normal_quantile,
    quantile,
    sums_within,
)
from rating.likelihood import Logistic, minimise
from rating.typing import Bools, Floats, Ints

# Alternative-annotator test


STAND_INS = 20
"""Draws of a person in the place of the judge."""
FALSE_DISCOVERIES = 0.05
POWER = 0.9

_COIN = (np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))


def alternative(
    items: Items, people: Labels, judge: Labels, *, raters: Raters = "crowd"
) -> Alternative | None:
    """Test a judge in the place of people, and others for reference, on the same items.

    For person j and item i that j, others and the judge labelled, the judge wins if its label is
    shared by at least as many of the others as j's, and j wins if not by fewer. ``d_i`` is j's win
    less the judge's; that its mean is the margin or more is rejected by a one-sided t-test, with
    Benjamini and Yekutieli's control of false discoveries, which allows for people sharing items.
    The paper takes items as independent. Here the error of the mean is that of whole prompts, with
    t of prompts less one; one item a prompt gives the paper's test. Where a judge or a person
    labelled an item repeatedly, it speaks with its mean share of others.

    A coin may pass where people hardly agree. It is tested by expectation, without a throw: a
    person's d on an item is the mean over both sides, and the square of its error has their
    variance in it, as that of a thrown coin has on average. What people could reach: one of the
    others, drawn at random on each item, in `STAND_INS` draws, is the judge and none of the
    others; and the answer that most of the others give: no judge has a higher advantage.

    ``decides_at`` is a number of items per person that is enough for half of the m people to be
    replaced, with 90% power, by a judge who loses nothing to them; `MIN_ITEMS` at least::

        s^2 (z(1 - p) + z(0.9))^2 / margin^2,    p = ceil(m / 2) 0.05 / (m sum_i 1 / i)

    where s^2 is the mean of ``items * error^2`` of the stand-ins. It gives one person's test this
    power. That half of the tests reject then has more power the less they depend on each other:
    of 49 people 1.00 where independent, and 0.94 where all are the same test.

    Parameters
    ----------
    raters : {"expert", "skilled", "crowd"}
        What kind of raters the people are: gives the margin, as in `MARGINS`.

    Returns
    -------
    Alternative or None
        None where fewer than `MIN_PEOPLE` have `MIN_ITEMS` items that were judged and that
        others voted on as well.

    References
    ----------
    .. [1] N. Calderon, R. Reichart and R. Dror, "The Alternative Annotator Test for LLM-as-a-
       Judge", ACL 2025 (arXiv:2501.10970), section 3.
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
        needed = max(MIN_ITEMS, math.ceil(spread * (reach / margin) ** 2))
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


# Corrected rates


ASSUMPTION = (
    "Assumes that the judge's error rates, estimated where people preferred a side, hold for all "
    "its verdicts, and that its errors on different prompts are independent."
)


@dataclass(frozen=True, slots=True)
class Counted:
    """How often something happened of how many times.

    Attributes
    ----------
    hits, n : int
    independent : float or None
        Independent rows that carry as much as these n; None for n itself.
    prompts : float or None
        Effective prompts that the rows are of, ``(sum n)^2 / sum n^2``; None for n of them.
    """

    hits: int
    n: int
    independent: float | None = None
    prompts: float | None = None

    @classmethod
    def by_prompt(cls, hits: Floats, n: Floats) -> "Counted":
        """Count over prompts, given the hits and the rows of each, shape (n_prompts,).

        The n rows are worth ``n / D`` independent ones, D the variance of the share clustered by
        prompt over that for independent rows, and at least 1 [1]_. A share of 0 or 1 shows no
        spread: there each prompt is worth one row.

        References
        ----------
        .. [1] J. N. K. Rao and A. J. Scott, "A simple method for the analysis of clustered binary
           data", Biometrics 48(2), 1992, pp. 577-585.
        """
        n_hits, total = round(float(hits.sum())), round(float(n.sum()))
        if not total:
            return cls(n_hits, total)
        share, n_prompts = n_hits / total, int((n > 0).sum())
        prompts = float(total**2 / (n @ n))
        if 0 < share < 1 and n_prompts > 1:
            apart = hits - share * n
            clustered = float(influence_variance(apart, n_prompts)) / total**2
            design = max(clustered * (total - 1) / (share * (1 - share)), 1.0)
        else:
            design = total / prompts
        return cls(n_hits, total, total / design, prompts)

    def __post_init__(self) -> None:
        """Raise `DataError` unless it happened 0 to n times."""
        if not 0 <= self.hits <= self.n:
            raise DataError(f"{self.hits} of {self.n} is no share: count from 0 to all of them.")

    @property
    def share(self) -> float:
        """Hits over n; NaN of nothing."""
        return self.hits / self.n if self.n else math.nan

    def smoothed(self, more: float) -> tuple[float, float]:
        """Return the share and the independent rows with ``more`` added, half of them hits."""
        rows = self.n if self.independent is None else self.independent
        return (rows * self.share + more / 2) / (rows + more), rows + more

    def df(self) -> tuple[float, float]:
        """Return the degrees of freedom of its variance by prompt and by row, 1 or more."""
        prompts = self.n if self.prompts is None else self.prompts
        return max(prompts - 1.0, 1.0), max(self.n - 1.0, 1.0)


def corrected_rate(
    positive: Counted, specificity: Counted, sensitivity: Counted, *, level: float = 0.95
) -> Estimate:
    """Correct the rate at which a judge says yes (Rogan and Gladen), with an honest interval.

    With p the judge's rate, ``q0`` its specificity and ``q1`` its sensitivity

    ::

        theta = (p + q0 - 1) / (q0 + q1 - 1)

    clipped to 0 and 1. The interval is centred at theta of the smoothed p (``z^2`` more cases,
    half of them yes), q0 and q1 (two more each), moved by

    ::

        2 z^2 (theta q1 (1 - q1) / m1 - (1 - theta) q0 (1 - q0) / m0)

    and z times as wide to each side as the root of

    ::

        p (1 - p) / n + (1 - theta)^2 q0 (1 - q0) / m0 + theta^2 q1 (1 - q1) / m1

    over ``q0 + q1 - 1``, all of it smoothed, sizes included: it allows for the errors being
    estimated as well as for the verdicts being a sample.

    Where counts say of how many prompts they are, each size is the number of independent rows
    that they are worth, and the interval is wider by the quantile of Student's t for prompts over
    the one for rows (degrees of freedom after Satterthwaite). With a prompt a row both change
    nothing: it is the published interval [2]_.

    Parameters
    ----------
    positive : Counted
        Verdicts that say yes.
    specificity, sensitivity : Counted
        Verdicts that were right where people said no, and where they said yes.

    Raises
    ------
    NotIdentifiedError
        If ``q0 + q1 <= 1``, found or smoothed, so that the verdict says nothing, or one of the
        three counts is of nothing.

    References
    ----------
    .. [1] W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening
       test", American Journal of Epidemiology 107(1), 1978.
    .. [2] C. Lee et al., "How to Correctly Report LLM-as-a-Judge Evaluations", 2025
       (arXiv:2511.21140).

    Examples
    --------
    >>> rate = corrected_rate(Counted(400, 1000), Counted(140, 200), Counted(180, 200))
    >>> round(rate.value, 5), round(rate.lower, 5), round(rate.upper, 5)
    (0.16667, 0.05635, 0.26273)
    """
    _check(positive, specificity, sensitivity)
    z = quantile(level, np.inf)
    p, n = positive.smoothed(z * z)
    q0, m0 = specificity.smoothed(2)
    q1, m1 = sensitivity.smoothed(2)
    informed = q0 + q1 - 1
    if informed <= 0:
        raise NotIdentifiedError(_uninformed(q0, q1))
    theta = _rate(p, q0, q1)
    of_no, of_yes = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    shift = 2 * z * z * (theta * of_yes - (1 - theta) * of_no)
    parts = (p * (1 - p) / n, (1 - theta) ** 2 * of_no, theta**2 * of_yes)
    wider = _wider((positive, specificity, sensitivity), parts, level)
    reach = wider * z * math.sqrt(sum(parts)) / informed
    return Estimate(
        _rate(positive.share, specificity.share, sensitivity.share),
        _clipped(theta + shift - reach),
        _clipped(theta + shift + reach),
        positive.n,
    )


Tally = tuple[Counted, Counted, Counted, Counted]
"""How often people, and a judge, prefer a model, over rows that prefer a side; and the judge's
specificity and sensitivity as in `corrected_rate`, over pairs of a verdict and a vote of the same
item."""


def win_tallies(items: Items, people: Labels, judge: Labels) -> dict[str, Tally]:
    """Count for each model what people and a judge prefer, by prompt.

    Over rows that prefer a side. The errors are counted over pairs of a verdict and a vote of the
    same item, so they hold people's own disagreement; `ASSUMPTION` must hold. Rows of a prompt
    are taken as dependent, and the three counts as independent of each other.
    """
    votes, says = (_decisive(items, one) for one in (people, judge))
    (voted, against), (judged, denied) = (
        (counts.ravel(), counts[::-1].ravel()) for counts in (votes, says)
    )
    happened = np.stack([voted, judged, against * denied, voted * judged])
    not_so = np.stack([against, denied, against * judged, voted * denied])
    key = items.pairs.T.ravel() * items.n_prompts + np.tile(items.prompt, 2)
    cells, cell = np.unique(key, return_inverse=True)
    hits, misses = (
        np.array([np.bincount(cell, row, len(cells)) for row in rows])
        for rows in (happened, not_so)
    )
    ends = np.searchsorted(cells, items.n_prompts * np.arange(len(items.models) + 1))
    tallies: dict[str, Tally] = {}
    for model, start, stop in zip(items.models, ends[:-1], ends[1:], strict=True):
        of = slice(start, stop)
        cast, given, no, yes = map(Counted.by_prompt, hits[:, of], (hits + misses)[:, of])
        tallies[model] = cast, given, no, yes
    return tallies


def _check(positive: Counted, specificity: Counted, sensitivity: Counted) -> None:
    if not positive.n:
        raise NotIdentifiedError("There are no verdicts to correct.")
    if not specificity.n or not sensitivity.n:
        what = "against" if not specificity.n else "for"
        msg = f"No case that people voted {what} has a verdict: its errors are unknown."
        raise NotIdentifiedError(msg)
    if specificity.share + sensitivity.share <= 1:
        raise NotIdentifiedError(_uninformed(specificity.share, sensitivity.share))


def _uninformed(q0: float, q1: float) -> str:
    return (
        f"The judge is right on {q0:.3f} of the cases with the label no and {q1:.3f} of those "
        "with yes: like a random choice, its verdicts cannot be corrected."
    )


def _wider(counts: tuple[Counted, ...], variances: tuple[float, ...], level: float) -> float:
    """Return t for the prompts over t for the rows; 1 where no count knows prompts."""
    if all(count.prompts is None for count in counts):
        return 1.0
    by_prompt, by_row = (
        sum(variances) ** 2 / sum(v**2 / df for v, df in zip(variances, degrees, strict=True))
        for degrees in zip(*(count.df() for count in counts), strict=True)
    )
    return quantile(level, by_prompt) / quantile(level, by_row)


def _rate(p: float, q0: float, q1: float) -> float:
    return _clipped((p + q0 - 1) / (q0 + q1 - 1))


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _decisive(items: Items, labels: Labels) -> Ints:
    """Count rows for side A and for side B of each item, shape (2, n_items)."""
    return np.stack(
        [np.bincount(labels.item[labels.label == sign], minlength=items.n) for sign in (1, -1)]
    )


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often one model is preferred, ties excluded.

    Attributes
    ----------
    by_people : float or None
        On the items with votes; None without votes that prefer a side.
    by_judge : float
        On all items that it judged.
    corrected : Estimate or None
        The same, corrected; None where it cannot be: ``why`` says it.
    """

    model: str
    by_people: float | None
    by_judge: float
    corrected: Estimate | None
    why: str = ""


def win_rates(items: Items, people: Labels, judge: Labels, level: float) -> tuple[WinRate, ...]:
    """Correct the judge's win rate of each model that it compared.

    Empty where every item it judged has votes: people's own rate needs no correction.
    """
    if np.isin(judge.item, people.item).all():
        return ()
    rates = []
    tallies = win_tallies(items, people, judge)
    for number in np.unique(items.pairs[judge.item]).tolist():
        by_people, *of_judge = tallies[items.models[number]]
        corrected, why = None, ""
        try:
            corrected = corrected_rate(*of_judge, level=level)
        except NotIdentifiedError as error:
            why = str(error)
        share = by_people.share if by_people.n else None
        rates.append(WinRate(items.models[number], share, of_judge[0].share, corrected, why))
    return tuple(rates)


# Calibration


N_BINS = 10
FOLDS = 5
NEAREST = 1e-4
"""Chances this near to 0 or 1 are taken as this, before they become odds: a certain judge that
is wrong once would otherwise have no temperature."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """How far probabilities can be trusted.

    Attributes
    ----------
    bins : tuple of (float, Estimate)
        The reliability curve, from a half up: the judge's mean probability of the side that it
        prefers, and how often people prefer that side, a tie counting as half; ``n`` is the number
        of pairs. Bins without verdicts are excluded.
    ece : Estimate
        Expected calibration error: the mean distance of the bins from people.
    brier : Estimate
        Mean squared distance of the probability from the vote, 1, 1/2 or 0.
    temperature : Estimate
        What to divide the judge's log-odds by: above 1 it is too sure of itself.
    isotonic : ndarray of shape (n_steps, 2)
        Chances and what people make of them, never falling; between steps in straight lines.
    brier_by_temperature, brier_isotonic : Estimate
        The Brier score of probabilities mapped by either map, learnt on other prompts.
    n : int
        Pairs of a verdict with a probability and a vote.
    """

    bins: tuple[tuple[float, Estimate], ...]
    ece: Estimate
    brier: Estimate
    temperature: Estimate
    isotonic: Floats
    brier_by_temperature: Estimate
    brier_isotonic: Estimate
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """Verdicts with a probability, sides turned so that the judge prefers side A."""

    prompt: Ints
    probability: Floats
    score: Floats
    square: Floats
    votes: Floats

    def only(self, rows: Bools) -> "_Cases":
        return _Cases(*(getattr(self, name)[rows] for name in _Cases.__slots__))


def calibration(items: Items, people: Labels, judge: Labels, draws: Draws) -> Calibration:
    """Compare a judge's probabilities with people's votes, over pairs of the same item.

    Which side is A means nothing, so every verdict is turned to the side that the judge prefers:
    chances run from a half to one. A bin holds a tenth of that range. Noise makes every bin miss
    by a little, and drawing prompts adds it once more: for the interval of ``ece`` the squared
    miss of a bin in a round loses twice its variance over rounds, and the interval is widened to
    hold the value. The temperature T is the maximum likelihood of ``logit P = logit(chance) / T``;
    its interval is the sandwich by prompt.

    Raises
    ------
    NotIdentifiedError
        If no verdict with a probability has a vote.

    References
    ----------
    .. [1] C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
    .. [2] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", KDD 2002 (isotonic regression).
    """
    labels = counts(items, people)[judge.item]
    votes = labels.sum(axis=1)
    used = ~np.isnan(judge.probability) & (votes > 0)
    probability, labels, votes = judge.probability[used], labels[used], votes[used]
    for_a, tied = labels[:, 2] / votes, labels[:, 1] / votes
    turned = np.where(probability < 0.5, labels[:, 0] / votes, for_a)
    undecided = probability == 0.5  # either side is as good: half of the votes each way
    whole = np.where(undecided, (1 - tied) / 2, turned)
    cases = _Cases(
        prompt=items.prompt[judge.item[used]],
        probability=np.maximum(probability, 1 - probability),
        score=whole + tied / 2,
        square=whole + tied / 4,
        votes=votes,
    )
    if not cases.votes.sum():
        raise NotIdentifiedError("No verdict with a probability has a vote on the same item.")
    at = np.minimum((2 * N_BINS * (cases.probability - 0.5)).astype(int), N_BINS - 1)
    within = (at[:, None] == np.arange(N_BINS)).astype(np.float64)
    parts = [within * cases.probability[:, None], within * cases.score[:, None], within]
    stats = _sums(cases, np.hstack(parts))
    drawn = drawn_sums(stats, draws.rounds if len(stats) >= 2 else 0, draws.rng)
    on_others = _mapped_on_other_prompts(cases, draws.rng)
    briers = [_brier(cases, mapped, draws) for mapped in (cases.probability, *on_others)]
    return Calibration(
        bins=_curve(stats, drawn, draws.level),
        ece=_ece(stats, drawn, draws.level),
        brier=briers[0],
        temperature=_temperature(cases, draws.level),
        isotonic=_steps(cases),
        brier_by_temperature=briers[1],
        brier_isotonic=briers[2],
        n=int(cases.votes.sum()),
    )


def with_isotonic(probability: Floats, steps: Floats) -> Floats:
    """Map probabilities by `Calibration.isotonic`; those below a half as their reverse."""
    upper = np.interp(np.maximum(probability, 1 - probability), steps[:, 0], steps[:, 1])
    return np.where(probability >= 0.5, upper, 1 - upper)


def _sums(cases: _Cases, values: Floats) -> Floats:
    """Sum values of each pair, shape (n_cases, k), over prompts."""
    known, place = np.unique(cases.prompt, return_inverse=True)
    return sums_within(place, values * cases.votes[:, None], len(known))


def _curve(stats: Floats, drawn: Floats, level: float) -> tuple[tuple[float, Estimate], ...]:
    probability, score, pairs = np.split(stats.sum(axis=0), 3)
    _, scores, sizes = np.split(drawn, 3, axis=1)
    shares = over(scores, sizes)
    return tuple(
        (
            float(probability[k] / pairs[k]),
            Estimate(float(score[k] / pairs[k]), *_ends(shares[:, k], level), n=int(pairs[k])),
        )
        for k in np.flatnonzero(pairs)
    )


def _ends(drawn: Floats, level: float) -> tuple[float | None, float | None]:
    return with_width(*interval(drawn, level)) if len(drawn) else (None, None)


def _ece(stats: Floats, drawn: Floats, level: float) -> Estimate:
    value = float(np.abs(_misses(stats.sum(axis=0, keepdims=True))).sum())
    n = int(stats[:, 2 * N_BINS :].sum())
    if not len(drawn):
        return Estimate(value, None, None, n)
    misses = _misses(drawn)
    left = np.sqrt(np.maximum(misses**2 - 2 * misses.var(axis=0), 0)).sum(axis=1)
    low, high = np.quantile(left, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, *with_width(min(float(low), value), max(float(high), value)), n)


def _misses(sums: Floats) -> Floats:
    """Return how far each bin lies off people, weighed by its pairs, shape (r, bins)."""
    probability, score, pairs = np.split(sums, 3, axis=1)
    return np.asarray((probability - score) / pairs.sum(axis=1, keepdims=True))


def _brier(cases: _Cases, probability: Floats, draws: Draws) -> Estimate:
    n = int(cases.votes.sum())
    if np.isnan(probability).any():  # a fold without a map
        return Estimate(None, None, None, n)
    distance = cases.square - 2 * probability * cases.score + probability**2
    stats = _sums(cases, np.column_stack([distance, np.ones(len(distance))]))
    return clustered(stats, ratio, draws, n=n, mean=SHARE)


def _temperature(cases: _Cases, level: float) -> Estimate:
    n, slope = int(cases.votes.sum()), _slope(cases)
    if slope is None or slope <= 0:
        return Estimate(None, None, None, n)
    odds = _logit(cases.probability)
    fitted = scipy.special.expit(slope * odds)
    curve = float(cases.votes @ (fitted * (1 - fitted) * odds**2))
    pull = _sums(cases, ((cases.score - fitted) * odds / curve)[:, None])[:, 0]
    inverse = from_influence(slope, pull, n=n, level=level)
    if inverse.lower is None or inverse.upper is None:
        return Estimate(1 / slope, None, None, n)
    hottest = 1 / inverse.lower if inverse.lower > 0 else None
    return Estimate(1 / slope, 1 / inverse.upper, hottest, n)


def _slope(cases: _Cases) -> float | None:
    """Return what log-odds are to be multiplied by; None where nothing holds it."""
    odds = _logit(cases.probability)
    certain = odds > 0
    score = cases.score[certain]
    if not certain.any() or (score == 1).all() or (score == 0).all():
        return None
    rows = Logistic(odds[certain, None], score, cases.votes[certain])
    return float(minimise(rows, np.zeros(1)).x[0])


def _steps(cases: _Cases) -> Floats:
    """Fit the isotonic map: where each level begins and ends, shape (n_steps, 2)."""
    probability, place = np.unique(cases.probability, return_inverse=True)
    votes = np.bincount(place, cases.votes)
    score = np.bincount(place, cases.votes * cases.score) / votes
    fitted = scipy.optimize.isotonic_regression(score, weights=votes).x
    ends = np.r_[True, fitted[1:] != fitted[:-1]] | np.r_[fitted[1:] != fitted[:-1], True]
    return np.column_stack([probability[ends], fitted[ends]])


def _mapped_on_other_prompts(cases: _Cases, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return probabilities by temperature and by the isotonic map, learnt on other prompts."""
    known, place = np.unique(cases.prompt, return_inverse=True)
    fold = rng.permutation(len(known))[place] % FOLDS
    hot, steps = np.full((2, len(fold)), np.nan)
    for k in range(FOLDS):
        held, rest = fold == k, cases.only(fold != k)
        slope = _slope(rest) if len(rest.probability) else None
        if slope is not None:
            hot[held] = scipy.special.expit(slope * _logit(cases.probability[held]))
        if len(rest.probability):
            steps[held] = with_isotonic(cases.probability[held], _steps(rest))
    return hot, steps


def _logit(probability: Floats) -> Floats:
    return np.asarray(scipy.special.logit(np.clip(probability, NEAREST, 1 - NEAREST)))
