"""A judge's verdicts as calibrated probabilities, and boards of models by votes or by these."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from judge.studies.items import Items, Labels
from judge.studies.rows import Rows
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import clustered_variance, influence_variance, two_way
from rating.likelihood.newton import Evaluation, minimise
from rating.likelihood.objective import hessian, solve
from rating.typing import Bools, Floats, Ints

RIDGE = 0.01
"""Of strengths and of the slope: a finite place for who only won, and next to nothing else."""
NEAREST = 1e-4
"""Probabilities this near to 0 or 1 are taken as this, before they become odds."""

Kind = Literal["probabilities", "marks", "confidence", "verdicts"]
CalibrationMethod = Literal["temperature", "isotonic"]


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Comparisons of two models by people, a judge or both, one a row.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
        Models on side A and on side B.
    prompt, rater : ndarray of shape (n,), int64
    score : ndarray of shape (n,)
        What a person gave side A: 1, 1/2 or 0; NaN where nobody voted.
    signal : ndarray of shape (n,)
        How far the judge prefers side A, on any scale on which 0 is undecided; NaN where it was
        not asked.
    judge : ndarray of shape (n,)
        The mean of 1, 1/2 or 0 over the judge's verdicts of the item; NaN where it was not asked.
    """

    pairs: Ints
    prompt: Ints
    rater: Ints
    score: Floats
    signal: Floats
    judge: Floats

    @classmethod
    def of(cls, items: Items, votes: Labels, signal: Floats, judge: Floats) -> "Compared":
        """Set votes beside what a judge says of each item."""
        at = votes.item
        score = (votes.label + 1) / 2
        return cls(items.pairs[at], items.prompt[at], votes.rater, score, signal[at], judge[at])

    @property
    def size(self) -> Floats:
        """How far the judge is from undecided; 0 where it was not asked."""
        return np.nan_to_num(np.abs(self.signal))

    @property
    def agreement(self) -> Floats:
        """How far each vote agrees with the judge: 1, 0, or between where one sees a tie."""
        return np.asarray(1 - np.abs(self.score - self.judge))

    def only(self, rows: NDArray[Any]) -> "Compared":
        """Return some rows, by mask or by index."""
        return Compared(*(getattr(self, field.name)[rows] for field in fields(self)))

    def has(self, model: int) -> Bools:
        """Tell in which rows a model was compared."""
        return np.asarray((self.pairs == model).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What people and a judge say of some models.

    Attributes
    ----------
    voted : Compared
        One row a vote.
    judged : Compared
        One row an item with a verdict; scores are not known.
    """

    models: tuple[str, ...]
    voted: Compared
    judged: Compared

    @classmethod
    def of(cls, items: Items, people: Labels, verdicts: Labels) -> "Evidence":
        """Collect votes and verdicts; a judge's orders and repetitions of an item are averaged."""
        read = verdicts.only(~np.isnan(verdicts.probability))
        signal = read.mean(odds_of(read.probability), items.n)
        judge = read.mean((read.label + 1) / 2, items.n)
        asked = np.flatnonzero(~np.isnan(judge))
        nobody = np.full(len(asked), np.nan)
        judged = Compared(
            items.pairs[asked], items.prompt[asked], asked, nobody, signal[asked], judge[asked]
        )
        return cls(items.models, Compared.of(items, people, signal, judge), judged)


def with_signal(rows: Rows) -> tuple[Rows, Kind]:
    """Give verdicts a preference for side A from whatever the judge gave: the best that is there.

    Its probability; else the gap of two marks in units of the gaps' root mean square; else the
    verdict times its confidence; else the verdict. What is not a probability is put into the
    logistic function, for calibration finds the scale of it.

    Raises
    ------
    DataError
        For a confidence below 0, or marks that give every two answers the same.
    """
    kind, signal = _signal(rows)
    if signal is None:
        return rows, kind
    preference = np.where(rows.read, scipy.special.expit(signal), np.nan)
    return replace(rows, numbers={**rows.numbers, "preference": preference}), kind


def _signal(rows: Rows) -> tuple[Kind, Floats | None]:
    numbers = rows.numbers
    if not np.isnan(numbers.get("preference", np.array([np.nan]))).all():
        return "probabilities", None
    if "score_a" in numbers and "score_b" in numbers:
        gap = numbers["score_a"] - numbers["score_b"]
        scale = float(np.sqrt(np.nanmean(gap**2))) if not np.isnan(gap).all() else 0.0
        if scale == 0:
            msg = f"The marks of {rows.source!r} are the same on both sides: they tell nothing."
            raise DataError(msg)
        return "marks", np.asarray(gap / scale)
    label = rows.label.astype(np.float64)
    if "confidence" not in numbers:
        return "verdicts", label
    confidence = numbers["confidence"]
    if (confidence < 0).any():
        low = confidence[confidence < 0][0]
        msg = f"A confidence of {rows.source!r} is {low:g}: give none below 0."
        raise DataError(msg)
    return "confidence", np.asarray(label * confidence)


def odds_of(probability: Floats) -> Floats:
    """Return log-odds, of probabilities no nearer to 0 and 1 than `NEAREST`."""
    return np.asarray(scipy.special.logit(np.clip(probability, NEAREST, 1 - NEAREST)))


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Which probability a judge's signal stands for.

    Attributes
    ----------
    slope : float
        What the signal is multiplied by to be log-odds: the inverse of the temperature.
    loss : float
        Negative log-likelihood of the votes at that slope, nats.
    n : int
        Decisive votes behind it.
    steps : ndarray of shape (n_steps, 2), or None
        The isotonic map of the signal's size, where that is used instead of the slope.
    """

    slope: float
    loss: float
    n: int
    steps: Floats | None = None

    def probability(self, signal: Floats) -> Floats:
        """Return the probability that people prefer side A."""
        if self.steps is None:
            return np.asarray(scipy.special.expit(self.slope * signal))
        size, upper = self.steps.T
        above = np.interp(np.abs(signal), size, upper)
        return np.where(signal > 0, above, np.where(signal < 0, 1 - above, 0.5))


def calibrated(votes: Compared, method: CalibrationMethod = "temperature") -> Calibrated:
    """Learn the probability of a signal from decisive votes, by maximum likelihood.

    ``P(people prefer A) = expit(slope signal)``, or any function that never falls and treats both
    sides alike. Ties decide nothing and are left out, as published [1]_.

    Raises
    ------
    NotIdentifiedError
        If no vote with a verdict is decisive, or the judge is undecided in all of them.

    References
    ----------
    .. [1] A. Kargi and D. Salinas, arXiv 2606.13221, 2026.
    """
    there = votes.only(~np.isnan(votes.signal))
    rows = there.only(there.score != 0.5)
    n_there, n = len(there.score), len(rows.score)
    if n_there and not n:
        msg = (
            f"All {n_there} votes with a verdict are ties: which answers people prefer, and how "
            "often the judge agrees, cannot be learnt from them."
        )
        raise NotIdentifiedError(msg)
    if not np.any(rows.signal):
        msg = (
            f"The judge is undecided in all {n} cases that people decided: it gives nothing to "
            "rate a model by."
        )
        raise NotIdentifiedError(msg)
    line = _Line(rows.signal, rows.score)
    slope, at = line.best()
    loss = at.loss - RIDGE / 2 * slope**2
    steps = _isotonic(rows) if method == "isotonic" else None
    return Calibrated(slope, float(loss), n, steps)


def _isotonic(rows: Compared) -> Floats:
    """Fit how often people prefer the side that a signal of some size prefers, never falling."""
    decided = rows.only(rows.signal != 0)
    right = np.where(decided.signal > 0, decided.score, 1 - decided.score)
    size, place = np.unique(np.abs(decided.signal), return_inverse=True)
    votes = np.bincount(place)
    share = np.bincount(place, right) / votes
    return np.column_stack([size, scipy.optimize.isotonic_regression(share, weights=votes).x])


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """Strengths of the models that others are rated against.

    Attributes
    ----------
    theta : ndarray of shape (n_models,)
        Nats, summing to zero over the anchors; NaN for the others.
    anchors : ndarray of int
        Their positions.
    influence : ndarray of shape (n_rows, n_anchors)
        How far each vote moved each strength.
    """

    theta: Floats
    anchors: Ints
    influence: Floats
    votes: Compared

    def variances(self, contrasts: Floats, voters: bool) -> Floats:
        """Return the variances of contrasts of the anchors, shape (m, n_anchors), by prompt.

        With ``voters`` by voter, and what prompts add: see `rating.leave_out.two_way`.
        """
        moved = self.influence @ contrasts.T
        prompt, rater = self.votes.prompt, self.votes.rater
        by_prompt = clustered_variance(moved, prompt)
        if not voters:
            return by_prompt
        by_voter = clustered_variance(moved, rater)
        cells = clustered_variance(moved, rater * (int(prompt.max()) + 1) + prompt)
        endless = np.full(len(contrasts), np.inf)
        return two_way((by_voter, endless), (by_prompt, endless), cells)[0]


def board_of(rows: Compared, score: Floats, anchors: Ints, n_models: int) -> Board:
    """Fit Bradley-Terry with soft targets to the comparisons of anchors, with `RIDGE`.

    Parameters
    ----------
    score : ndarray of shape (n_rows,)
        Of side A, from 0 to 1: of a person, or what a judge expects.
    """
    place = np.full(n_models, -1)
    place[anchors] = np.arange(len(anchors))
    among: Bools = np.all(place[rows.pairs] >= 0, axis=1)
    rows, score, k = rows.only(among), score[among], len(anchors)
    a, b = place[rows.pairs].T
    wins = np.zeros((k, k))
    np.add.at(wins, (a, b), score)
    np.add.at(wins, (b, a), 1 - score)
    own = solve(wins, np.zeros(k), ridge=RIDGE).theta
    inverse = np.linalg.inv(hessian(own, wins, ridge=RIDGE))
    residual = score - scipy.special.expit(own[a] - own[b])
    influence = residual[:, None] * (inverse[a] - inverse[b])
    theta = np.full(n_models, np.nan)
    theta[anchors] = own
    return Board(theta, anchors, influence, rows)


def variance_of_sum(influence: Floats, prompt: Ints, rater: Ints | None = None) -> float:
    """Return the variance of a sum whose terms depend on each other within prompts and raters.

    ``max(V_rater + max(0, V_prompt - V_each), V_each)``, each with ``n / (n - 1)``; infinite
    where there is one cluster of a kind.
    """
    by_prompt = float(clustered_variance(influence, prompt))
    each = float(influence_variance(influence))
    if rater is None:
        return max(by_prompt, each)
    by_rater = float(clustered_variance(influence, rater))
    if not np.isfinite(by_rater + by_prompt):
        return np.inf
    return max(by_rater + max(0.0, by_prompt - each), each)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Logistic loss of one coefficient, with `RIDGE`: ``logit = x slope``."""

    x: Floats
    score: Floats

    @property
    def n_models(self) -> int:
        return 0

    @property
    def absolute(self) -> bool:
        return True

    @property
    def total(self) -> float:
        return float(len(self.score))

    def evaluate(self, at: Floats) -> Evaluation:
        logit = self.x * at[0]
        probability = scipy.special.expit(logit)
        loss = (np.logaddexp(0, logit) - self.score * logit).sum() + RIDGE / 2 * at[0] ** 2
        gradient = self.x @ (probability - self.score) + RIDGE * at[0]
        curve = self.x**2 @ (probability * (1 - probability)) + RIDGE
        return Evaluation(float(loss), np.array([gradient]), np.array([[curve]]))

    def best(self) -> tuple[float, Evaluation]:
        best = minimise(self, np.zeros(1))
        return float(best.x[0]), best.at
