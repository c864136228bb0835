"""Costs and seconds of both answers of battles, with variances by voter and prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.leave_out import influence_factor, two_way
from rating.rows import VoteRows
from rating.sentences import Sentence
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantiles

FEWEST_ANSWERS = 10
"""Compared answers from which a model has a cost."""
FEWEST_UNITS = 2.0
"""Effective voters, or prompts, from which these are clusters."""

Measure = Literal["cost", "seconds"]
"""US dollars, and seconds, of one answer."""

MEASURES: tuple[Measure, ...] = ("cost", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What an answer takes by each model, and how sure that is.

    Attributes
    ----------
    logs : ndarray of shape (n_models,)
        Logarithms; NaN for models without one.
    covariance : ndarray of shape (n_models, n_models)
        Of these, by voters and what prompts add.
    df : ndarray of shape (n_models,)
    left_out : mapping of str to Sentence
        Why a model has none.
    answers : ndarray of shape (n_models,), int64
        Answers that it rests on.
    """

    logs: Floats
    covariance: Floats
    df: Floats
    left_out: Mapping[str, Sentence]
    answers: Ints

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, by Student's t of logarithms; NaN without a value."""
        half = quantiles(level, self.df) * np.sqrt(np.diag(self.covariance))
        return np.exp(self.logs - half), np.exp(self.logs + half)


NOT_KNOWN: Mapping[Measure, Sentence] = {
    "cost": Sentence("no price is known"),
    "seconds": Sentence("no time is known"),
}
NOTHING: Mapping[Measure, Sentence] = {
    "cost": Sentence("answers that cost nothing have no place on a scale of ratios"),
    "seconds": Sentence("answers that took no time have no place on a scale of ratios"),
}


def paired_means(votes: VoteRows, name: Measure) -> Compared:
    """Estimate what an answer takes by each model, all on the same prompts.

    Within battle b, ``log x_ba - log x_bb = c_a - c_b + e_b``: what a prompt asks for makes both
    answers long or short, and drops out. Least squares over all battles, as Bradley-Terry takes
    wins; then ``exp(c_m) mean(x / exp(c))`` with the mean over all compared answers (Duan's
    smearing estimate) puts ratios on the scale of the arithmetic mean. That takes costs to
    scatter alike, in their logarithm, for every model; ratios do not need it.

    With ``e_b`` the residual and L the Laplacian of who met whom, battle b moves the c's by
    ``h_b = L^+ (X_b e_b)``, and their level by ``(z_a + z_b) / T - 1 / n - share'h_b`` with
    ``z = x / exp(c)``, T their sum and ``share`` each model's part of it. The covariance is that
    of these summed by voter, and what sums by prompt have beyond those by voter and prompt; no
    variance is less than by prompt, or by voter and prompt.

    Parameters
    ----------
    votes : VoteRows
        With the columns ``cost_a`` and ``cost_b``, or ``seconds_a`` and ``seconds_b``.
    name : {"cost", "seconds"}

    Returns
    -------
    Compared
        Of one answer. Models that no battle joins to most of the others have no value.

    References
    ----------
    .. [1] N. Duan, "Smearing estimate: a nonparametric retransformation method", JASA 78(383),
       1983, pp. 605-610.
    .. [2] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway
       clustering", Journal of Business and Economic Statistics 29(2), 2011, pp. 238-249.
    """
    k, pairs = len(votes.models), votes.pairs
    left_out: dict[str, Sentence] = {}
    values = votes.of_answers(name)
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        positive = values > 0
    free = _models(pairs[known & ~positive], k)
    both = positive.all(axis=1) & ~free[pairs].any(axis=1)
    compared = np.bincount(pairs[both].ravel(), minlength=k)
    core = _core(pairs[both], compared >= FEWEST_ANSWERS)
    rows = np.flatnonzero(both & core[pairs].all(axis=1))
    has_any = _models(pairs[known], k)
    for i in np.flatnonzero(~core):
        left_out[votes.models[i]] = (
            NOT_KNOWN[name]
            if not has_any[i]
            else NOTHING[name]
            if free[i]
            else Sentence("too few battles compare it with the others")
        )
    logs, covariance, df = np.full(k, np.nan), np.full((k, k), np.nan), np.full(k, np.nan)
    if core.any():
        place = np.cumsum(core) - 1
        at = np.ix_(core, core)
        logs[core], covariance[at], df[core] = _least_squares(
            place[pairs[rows]], values[rows], *_units(votes, rows)
        )
    return Compared(logs, covariance, df, left_out, np.where(core, compared, 0))


def _units(votes: VoteRows, rows: Ints) -> tuple[Ints, Ints]:
    """Give voters and prompts of some battles; where they are not known each battle is one."""
    alone = np.arange(len(rows))
    voter, prompt = (
        votes.groups[role][rows] if role in votes.groups else alone for role in ("voter", "prompt")
    )
    if effective_number(voter) < FEWEST_UNITS:
        voter = alone
    return voter, prompt if effective_number(prompt) >= FEWEST_UNITS else alone


def effective_number(unit: Ints) -> float:
    """Count units that are equally often there and amount to the same."""
    n = np.bincount(np.unique(unit, return_inverse=True)[1]).astype(np.float64)
    return float(n.sum() ** 2 / (n @ n)) if n.size else 0.0


def _models(entries: Ints, k: int) -> Bools:
    there = np.zeros(k, dtype=bool)
    there[entries] = True
    return there


def _core(pairs: Ints, enough: Bools) -> Bools:
    """Mark the largest group of models that battles join, all with enough answers."""
    k = len(enough)
    inside = pairs[enough[pairs].all(axis=1)]
    graph = scipy.sparse.coo_array((np.ones(len(inside)), inside.T), shape=(k, k))
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    size = np.bincount(label[enough], minlength=1)
    core = enough & (label == size.argmax())
    return np.asarray(core if core.sum() > 1 else np.zeros(k, dtype=bool))


def _least_squares(
    pairs: Ints, values: Floats, voter: Ints, prompt: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return logarithms of the means, their covariance and degrees of freedom."""
    (a, b), n, k = pairs.T, len(pairs), int(pairs.max()) + 1
    gap = np.log(values[:, 0]) - np.log(values[:, 1])
    met = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
    laplacian = np.diag((met + met.T).sum(axis=1)) - (met + met.T)
    inverse = np.linalg.pinv(laplacian.astype(np.float64), hermitian=True)
    ratio = inverse @ (np.bincount(a, gap, k) - np.bincount(b, gap, k))
    residual = gap - (ratio[a] - ratio[b])
    z = values * np.exp(-ratio[pairs])
    total = float(z.sum())
    share = np.bincount(pairs.ravel(), z.ravel(), k) / total
    level = z.sum(axis=1) / total - 1 / n
    # A battle moves the logarithms by moves @ (its residual at a, less at b; its level).
    moves = np.column_stack([inverse - share @ inverse, np.ones(k)])
    table = np.r_[residual, -residual, level], np.r_[a, b, np.full(n, k)], np.tile(np.arange(n), 3)

    def covariance(unit: Ints) -> Floats:
        place = np.unique(unit, return_inverse=True)[1]
        entries, columns, battles = table
        shape = (int(place.max()) + 1, k + 1)
        sums = scipy.sparse.coo_array((entries, (place[battles], columns)), shape=shape).tocsr()
        squares = (sums.T @ sums).toarray()
        return np.asarray(influence_factor(shape[0]) * (moves @ squares @ moves.T))

    by_voter, by_prompt = covariance(voter), covariance(prompt)
    cells = covariance(np.unique(voter, return_inverse=True)[1] * (prompt.max() + 1) + prompt)
    more = positive_part(by_prompt - cells)
    df_voter, df_prompt = (
        np.full(k, max(effective_number(unit) - 1, 1.0)) for unit in (voter, prompt)
    )
    variance, df = two_way((np.diag(by_voter), df_voter), (np.diag(more), df_prompt), np.zeros(k))
    least = np.maximum(np.diag(by_prompt), np.diag(cells))
    wider = np.sqrt(np.maximum(least, variance) / np.where(variance > 0, variance, 1.0))
    whole = wider[:, None] * (by_voter + more) * wider
    return ratio + np.log(total / (2 * n)), whole, df


def positive_part(matrix: Floats) -> Floats:
    """Drop what a difference of covariances has below zero."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values.clip(min=0)) @ vectors.T)
