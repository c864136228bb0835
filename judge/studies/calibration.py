"""Whether the probabilities that a judge gives are those with which people agree."""

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from judge.scoring.logistic import Rows
from judge.studies.agreement import counts
from judge.studies.boards import from_influence
from judge.studies.estimates import (
    SHARE,
    Draws,
    Estimate,
    clustered,
    interval,
    over,
    ratio,
    with_width,
)
from judge.studies.items import Items, Labels
from rating.errors import NotIdentifiedError
from rating.leave_out import drawn_sums, sums_within
from rating.likelihood.newton import minimise
from rating.typing import Bools, Floats, Ints

N_BINS = 10
FOLDS = 5
NEAREST = 1e-4
"""Chances this near to 0 or 1 are taken as this, before they become odds: a certain judge that
is wrong once would otherwise have no temperature."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts of about the same probability.

    Attributes
    ----------
    mean_chance : float
        The judge's mean probability of the side that it prefers.
    people : Estimate
        How often people prefer that side, a tie counting as half; ``n`` is the number of pairs of
        a verdict and a vote.
    """

    mean_chance: float
    people: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """How far probabilities can be trusted.

    Attributes
    ----------
    bins : tuple of Bin
        The reliability curve, from a half up; bins without verdicts are left out.
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

    bins: tuple[Bin, ...]
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
    cases = _cases(items, people, judge)
    if not cases.votes.sum():
        raise NotIdentifiedError("No verdict with a chance has a vote of the same item.")
    stats = _by_bin(cases)
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


def _cases(items: Items, people: Labels, judge: Labels) -> _Cases:
    labels = counts(items, people)[judge.item]
    votes = labels.sum(axis=1)
    used = ~np.isnan(judge.probability) & (votes > 0)
    probability, labels, votes = judge.probability[used], labels[used], votes[used]
    for_a, tied = labels[:, 2] / votes, labels[:, 1] / votes
    turned = np.where(probability < 0.5, labels[:, 0] / votes, for_a)
    undecided = probability == 0.5  # either side is as good: half of the votes each way
    whole = np.where(undecided, (1 - tied) / 2, turned)
    return _Cases(
        prompt=items.prompt[judge.item[used]],
        probability=np.maximum(probability, 1 - probability),
        score=whole + tied / 2,
        square=whole + tied / 4,
        votes=votes,
    )


def _sums(cases: _Cases, values: Floats) -> Floats:
    """Sum values of each pair, shape (n_cases, k), over prompts."""
    known, place = np.unique(cases.prompt, return_inverse=True)
    return sums_within(place, values * cases.votes[:, None], len(known))


def _by_bin(cases: _Cases) -> Floats:
    """Sum probabilities, scores and pairs by prompt and bin, shape (n_prompts, 3 bins)."""
    at = np.minimum((2 * N_BINS * (cases.probability - 0.5)).astype(int), N_BINS - 1)
    within = (at[:, None] == np.arange(N_BINS)).astype(np.float64)
    parts = [within * cases.probability[:, None], within * cases.score[:, None], within]
    return _sums(cases, np.hstack(parts))


def _curve(stats: Floats, drawn: Floats, level: float) -> tuple[Bin, ...]:
    probability, score, pairs = np.split(stats.sum(axis=0), 3)
    _, scores, sizes = np.split(drawn, 3, axis=1)
    shares = over(scores, sizes)
    return tuple(
        Bin(
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
    rows = Rows(odds[certain, None], score, cases.votes[certain])
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
