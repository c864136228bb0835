"""Votes and a likelihood as one objective in all parameters, and the deviance of its optimum.

Of plain Bradley-Terry, a table of scores is enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from rating.comparisons import Comparisons
from rating.likelihood.design import Design, blocks
from rating.likelihood.newton import Evaluation, Objective, minimise
from rating.likelihood.ties import BOTH_BAD, HALF_WIN, SCORE_A, TIE, A, B, Likelihood, Local
from rating.typing import Floats, Integers, Ints


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The objective of plain Bradley-Terry.

    With ``P(i beats j) = sigmoid(theta[i] - theta[j])``, minimise::

        -sum_ij wins[i, j] * log P(i beats j) + ridge / 2 * sum(theta ** 2)

    Attributes
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column, a tie half a win for each.
    """

    wins: Floats
    ridge: float = 0.0
    absolute: ClassVar[bool] = False

    @cached_property
    def n_models(self) -> int:
        """Number of strengths, which are all the parameters."""
        return len(self.wins)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.wins.sum())

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian."""
        gap = x[:, None] - x[None, :]
        small = np.exp(-np.abs(gap))
        probability = np.where(gap >= 0, 1.0, small) / (1.0 + small)
        loss = np.log1p(small) + np.maximum(-gap, 0.0)
        games = self.wins + self.wins.T
        information = games * probability * probability.T
        return Evaluation(
            loss=float((self.wins * loss).sum() + self.ridge / 2 * (x @ x)),
            gradient=(games * probability - self.wins).sum(axis=1) + self.ridge * x,
            hessian=np.diag(information.sum(axis=1) + self.ridge) - information,
        )


class Strengths(NamedTuple):
    """Where `solve` ended: strengths that sum to zero, and the steps taken."""

    theta: Floats
    iterations: int


def solve(wins: Floats, start: Floats, *, ridge: float = 0.0) -> Strengths:
    """Minimise `ScoreTable`.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column; a finite minimum must exist.
    start : ndarray of shape (n_models,)

    Raises
    ------
    ConvergenceError
        If the gradient does not vanish.
    """
    best = minimise(ScoreTable(wins, ridge), start)
    return Strengths(best.x, best.iterations)


def win_probability(theta: Floats) -> Floats:
    """Return the probability that row beats column, shape (n_models, n_models)."""
    return np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))


def hessian(theta: Floats, wins: Floats, *, ridge: float = 0.0) -> Floats:
    """Return the Hessian of `ScoreTable`: without a ridge, its rows sum to zero."""
    return ScoreTable(wins, ridge).evaluate(theta).hessian


@dataclass(frozen=True, slots=True, eq=False)
class CellObjective:
    """Weighted negative log-likelihood of cells, plus a ridge on the strengths.

    Attributes
    ----------
    outcome : ndarray of shape (n,), int64
    weight : ndarray of shape (n,)
    """

    likelihood: Likelihood
    design: Design
    outcome: Integers
    weight: Floats
    ridge: float = 0.0

    @property
    def n_models(self) -> int:
        """Number of strengths."""
        return self.design.n_models

    @property
    def absolute(self) -> bool:
        """Whether the strengths have a zero of their own."""
        return "level" in self.likelihood.coordinates

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def local(self, x: Floats) -> Local:
        """Return `Local` of one vote in each cell, whatever its weight."""
        design = self.design
        level = design.level(x) if self.absolute else np.empty(0)
        return self.likelihood.loss(self.outcome, design.gap(x), float(x[-1]), level)

    def each_outcome(self, x: Floats) -> Iterator[tuple[int, Floats, Local]]:
        """Yield each outcome of the likelihood, its probability and its `Local` in every cell."""
        for code in self.likelihood.outcomes:
            local = replace(self, outcome=np.full(len(self.outcome), code)).local(x)
            yield code, np.exp(-local.value), local

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian."""
        k, n = self.n_models, len(x)
        loss, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
        for rows in blocks(len(self.outcome)):
            part = self.rows(rows)
            local = part.local(x)
            loss += float(part.weight @ local.value)
            gradient += part.design.gradient(tuple(part.weight * s for s in local.slope))
            curve = {at: part.weight * value for at, value in local.curve.items()}
            hessian += part.design.hessian(curve)
        gradient[:k] += self.ridge * x[:k]
        hessian[np.arange(k), np.arange(k)] += self.ridge
        return Evaluation(loss + self.ridge / 2 * float(x[:k] @ x[:k]), gradient, hessian)

    def rows(self, rows: slice) -> "CellObjective":
        """Return the objective on some of the cells, without the ridge."""
        design = self.design.rows(rows)
        return CellObjective(self.likelihood, design, self.outcome[rows], self.weight[rows])


def cell_objective(
    likelihood: Likelihood, data: Comparisons, *, ridge: float = 0.0, order_effect: bool = False
) -> CellObjective:
    """Return the objective on the cells as they are.

    The order effect is a covariate of ones, before the features.
    """
    features = np.empty((len(data.outcome), 0)) if data.features is None else data.features
    covariates = np.empty((len(features), order_effect + features.shape[1]), order="F")
    covariates[:, :order_effect] = 1.0
    covariates[:, order_effect:] = features
    a, b = np.ascontiguousarray(data.pairs.T, dtype=np.int64)
    k = len(data.models)
    design = Design(k, a, b, k * a + b, covariates, likelihood.coordinates)
    return CellObjective(likelihood, design, data.outcome, data.weight, ridge)


def objective(
    likelihood: Likelihood, data: Comparisons, *, ridge: float = 0.0, order_effect: bool = False
) -> Objective:
    """Return the objective in the form that is quickest to evaluate."""
    if data.features is not None or order_effect:
        return cell_objective(likelihood, data.merged(), ridge=ridge, order_effect=order_effect)
    if likelihood is HALF_WIN:
        return ScoreTable(data.wins(), ridge)
    return replace(_folded(data, likelihood), ridge=ridge)


def _folded(data: Comparisons, likelihood: Likelihood) -> CellObjective:
    """Return the objective with every winner on side A: without covariates, sides are alike."""
    table, k = data.table(), data.n_models
    kinds = {A: table[..., A] + table[..., B].T}
    kinds |= {code: np.triu(table[..., code] + table[..., code].T) for code in (TIE, BOTH_BAD)}
    pair = np.concatenate([np.flatnonzero(kind) for kind in kinds.values()])
    weight = np.concatenate([kind[kind != 0] for kind in kinds.values()])
    outcome = np.repeat(list(kinds), [np.count_nonzero(kind) for kind in kinds.values()])
    a, b = np.divmod(pair, k)
    design = Design(k, a, b, pair, np.empty((len(pair), 0)), likelihood.coordinates)
    return CellObjective(likelihood, design, outcome, weight)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredCells:
    """Gradients and Hessians of cells at the parameters of a fit.

    Attributes
    ----------
    design : Design
    weight, weight_sq : ndarray of shape (n,)
    slope : tuple of ndarray of shape (n,)
    curve : dict of (int, int) to ndarray of shape (n,)
        Of one vote in each cell, whatever its weight, as in `Local`.
    """

    design: Design
    weight: Floats
    weight_sq: Floats
    slope: tuple[Floats, ...]
    curve: dict[tuple[int, int], Floats]

    def rows(self, chosen: Ints | slice) -> "ScoredCells":
        """Return some of the cells, in the order given."""
        return ScoredCells(
            self.design.rows(chosen),
            self.weight[chosen],
            self.weight_sq[chosen],
            tuple(value[chosen] for value in self.slope),
            {at: value[chosen] for at, value in self.curve.items()},
        )

    def scores(self, cluster: Ints, n_clusters: int) -> Floats:
        """Sum the weighted gradients in each cluster, shape (n_clusters, n_parameters)."""
        weighted = tuple(self.weight * value for value in self.slope)
        return self.design.scores(weighted, cluster, n_clusters)

    def information_along(self, vectors: Floats) -> Floats:
        """Return ``v' H_i v`` of each cell and each of some shifts of all parameters.

        Parameters
        ----------
        vectors : ndarray of shape (n_parameters, m)

        Returns
        -------
        ndarray of shape (n, m)
        """
        moved = self.design.across(vectors)
        total = np.zeros((len(self.weight), vectors.shape[1]))
        for (c, d), value in self.curve.items():
            part = moved[c] * moved[d]
            part *= (self.weight * value * (1.0 if c == d else 2.0))[:, None]
            total += part
        return total

    def vote_meat(self) -> Floats:
        """Return ``sum_i weight_i^2 s_i s_i'``."""
        return self.design.hessian(
            {(c, d): self.weight_sq * self.slope[c] * self.slope[d] for c, d in self.curve}
        )


@dataclass(frozen=True, slots=True)
class Deviance:
    """Twice the log-likelihood that a fit lacks.

    Attributes
    ----------
    value : float
        Weighted, in nats.
    df : int
        Free cells of the ordered pairs that met, less the free parameters.
    """

    value: float
    df: int


def deviance(data: Comparisons, likelihood: Likelihood, loss: float, *, n_free: int) -> Deviance:
    """Compare with the saturated model: each ordered pair has its own shares of the outcomes.

    Sides count: a pair that met both ways is two rows (baseball's 42).

    Parameters
    ----------
    loss : float
        Minus the log-likelihood of the fit.
    n_free : int
        Parameters of the fit, all strengths counted.

    References
    ----------
    .. [1] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, section 10.6.
    """
    counts = outcome_counts(data.table(), likelihood)
    played = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / played[..., None]), 0.0)
    n_cells = int((played > 0).sum()) * (len(likelihood.outcomes) - 1)
    absolute = "level" in likelihood.coordinates
    return Deviance(2 * (float(terms.sum()) + loss), n_cells - (n_free - (not absolute)))


def outcome_counts(table: Floats, likelihood: Likelihood) -> Floats:
    """Merge the outcomes that the likelihood does not tell apart.

    Parameters
    ----------
    table : ndarray of shape (..., 4)

    Returns
    -------
    ndarray of shape (..., n_outcomes)
        In the order of ``likelihood.outcomes``; under half wins a tie adds
        half to each side.
    """
    if len(likelihood.outcomes) == 2:
        return np.stack([table @ SCORE_A, table @ (1 - SCORE_A)], axis=-1)
    merged = table.copy()
    if BOTH_BAD not in likelihood.outcomes:
        merged[..., TIE] += merged[..., BOTH_BAD]
    return np.asarray(merged[..., list(likelihood.outcomes)])
