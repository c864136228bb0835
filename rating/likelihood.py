"""Likelihoods of votes under Bradley-Terry and three models of ties, and Newton's method.

A `Likelihood` gives, for many votes at once, minus the log of the probability of the outcome and
its first two derivatives in *local coordinates*: the gap
``g = theta_a - theta_b + (order effect and features)``, the tie parameter on the scale it is
optimised in, and the level ``m = (theta_a + theta_b) / 2``. `_Design` carries them to all
parameters, and `objective` puts votes and a likelihood into the form that `minimise` evaluates
fastest. For plain Bradley-Terry a table of scores is enough (`ScoreTable`, `solve`). `deviance`
compares the optimum with the saturated model.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, wraps
from typing import ClassVar, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from rating.comparisons import Comparisons
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.outcome import OUTCOMES, Outcome, Ties
from rating.typing import Floats, Integers, Ints

Coordinate = Literal["gap", "tie", "level"]


P = ParamSpec("P")
T = TypeVar("T")


@cache
def _linear_algebra(*, of_scipy: bool) -> ThreadpoolController:
    """Find the libraries of linear algebra; scipy brings one of its own once it is loaded."""
    return ThreadpoolController()


def one_thread(work: Callable[P, T]) -> Callable[P, T]:
    """Keep linear algebra on one thread.

    On matrices of some hundred models several threads mostly wait for each other: at two million
    votes they take up to twice the processor time, and no less of the user's.
    """

    @wraps(work)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        libraries = _linear_algebra(of_scipy="scipy.linalg" in sys.modules)
        with libraries.limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return alone


A, B, TIE, BOTH_BAD = (OUTCOMES.index(outcome) for outcome in Outcome)
SCORE_A = np.array([outcome.score_a for outcome in OUTCOMES])
_WON_A = np.array([1.0, 0.0, 0.0, 0.0])
_WON_B = np.array([0.0, 1.0, 0.0, 0.0])
_TIED = np.array([0.0, 0.0, 1.0, 1.0])


# Likelihoods of one vote


class _Local(NamedTuple):
    """Negative log-likelihood of each vote and its derivatives.

    Attributes
    ----------
    value : ndarray of shape (n,)
        Minus the log of the probability of the outcome, nats; infinite
        outside the domain of the tie parameter.
    slope : tuple of ndarray of shape (n,)
        First derivatives, in the order of the likelihood's coordinates.
    curve : dict of (int, int) to ndarray of shape (n,)
        Second derivatives, for positions ``c <= d`` among the coordinates.
    """

    value: Floats
    slope: tuple[Floats, ...]
    curve: dict[tuple[int, int], Floats]


class Likelihood(Protocol):
    """One way to account for ties.

    Attributes
    ----------
    coordinates : tuple of {"gap", "tie", "level"}
    outcomes : tuple of int
        One code for each outcome it tells apart.
    """

    @property
    def coordinates(self) -> tuple[Coordinate, ...]: ...  # noqa: D102
    @property
    def outcomes(self) -> tuple[int, ...]: ...  # noqa: D102

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return `_Local` for each vote; outcomes are codes, all arrays of shape (n,)."""


class _HalfWin:
    """Bradley-Terry; a tie of either kind is half a win for each side.

    ``P(A) = 1 / (1 + exp(-g))``.

    References
    ----------
    .. [1] R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block
       designs", Biometrika 39(3/4), 1952, pp. 324-345.
    """

    coordinates: tuple[Coordinate, ...] = ("gap",)
    outcomes: tuple[int, ...] = (A, B)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return the negative log-likelihood; neither the tie parameter nor the level matters."""
        p, cost = _logistic(gap)
        score = SCORE_A[outcome]
        return _Local(cost - score * gap, (p - score,), {(0, 0): p * (1 - p)})


class _Davidson:
    """Ties as likely as ``nu`` times the geometric mean of both strengths; both bad is a tie.

    ``P(A) = e^(g/2) / Z``, ``P(tie) = nu / Z``, ``Z = e^(g/2) + e^(-g/2) + nu``;
    the tie parameter is ``log nu``.

    References
    ----------
    .. [1] R. R. Davidson, "On extending the Bradley-Terry model to
       accommodate ties in paired comparison experiments", JASA 65(329), 1970,
       pp. 317-328.
    """

    coordinates: tuple[Coordinate, ...] = ("gap", "tie")
    outcomes: tuple[int, ...] = (A, B, TIE)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return the negative log-likelihood, convex in gap and tie parameter together."""
        lead = np.abs(gap) / 2
        top = np.maximum(lead, tie)
        strong, weak, even = np.exp(lead - top), np.exp(-lead - top), np.exp(tie - top)
        total = strong + weak + even
        swing = np.sign(gap) * (strong - weak) / total / 2  # (P(A) - P(B)) / 2
        tied = even / total
        score, is_tie = SCORE_A[outcome], _TIED[outcome]
        return _Local(
            value=top + np.log(total) - (score - 0.5) * gap - is_tie * tie,
            slope=(swing - (score - 0.5), tied - is_tie),
            curve={
                (0, 0): (1 - tied) / 4 - swing**2,
                (0, 1): -tied * swing,
                (1, 1): tied * (1 - tied),
            },
        )


class _RaoKupper:
    """A gap must exceed a threshold ``eta = log theta`` to be seen; both bad is a tie.

    ``P(A) = 1 / (1 + exp(eta - g))``, ``P(tie) = 1 - P(A) - P(B)``; the tie
    parameter is ``eta > 0``.

    References
    ----------
    .. [1] P. V. Rao and L. L. Kupper, "Ties in paired-comparison
       experiments", JASA 62(317), 1967, pp. 194-204.
    """

    coordinates: tuple[Coordinate, ...] = ("gap", "tie")
    outcomes: tuple[int, ...] = (A, B, TIE)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return the negative log-likelihood, convex in gap and tie parameter together."""
        if tie <= 0:
            return _outside(len(gap), 2)
        not_b, not_a, is_tie = 1 - _WON_B[outcome], 1 - _WON_A[outcome], _TIED[outcome]
        miss_a, cost_a = _logistic(tie - gap)  # probability that A does not win
        miss_b, cost_b = _logistic(tie + gap)
        width, growth, bend = _log_expm1(2 * tie)
        bend_a, bend_b = not_b * miss_a * (1 - miss_a), not_a * miss_b * (1 - miss_b)
        return _Local(
            value=not_b * cost_a + not_a * cost_b - is_tie * width,
            slope=(
                not_a * miss_b - not_b * miss_a,
                not_a * miss_b + not_b * miss_a - is_tie * 2 * growth,
            ),
            curve={
                (0, 0): bend_a + bend_b,
                (0, 1): bend_b - bend_a,
                (1, 1): bend_a + bend_b - is_tie * 4 * bend,
            },
        )


class _Grounded:
    """Rao-Kupper with an absolute zero: a response may be too bad whatever the other is.

    With ``pi = exp(theta)``: ``P(A) = pi_a / (pi_a + t pi_b + 1)``,
    ``P(both bad) = 1 / (1 + pi_a + pi_b)``, and a tie for the rest, which is
    ``(t - 1) pi_a pi_b (2 + (t + 1)(pi_a + pi_b))`` over the product of the
    three denominators. The tie parameter is ``eta = log t > 0``. The order
    effect and features move the two strengths apart by equal halves.

    References
    ----------
    .. [1] E. Frick et al., "Prompt-to-Leaderboard", arXiv 2502.14855, 2025
       (called grounded Rao-Kupper there).
    """

    coordinates: tuple[Coordinate, ...] = ("gap", "tie", "level")
    outcomes: tuple[int, ...] = (A, B, TIE, BOTH_BAD)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return the negative log-likelihood; it is not convex where there are ties."""
        if tie <= 0:
            return _outside(len(gap), 3)
        left, right = level + gap / 2, level - gap / 2
        a, b, none = (0.5, 0.0, 1.0), (-0.5, 0.0, 1.0), (0.0, 0.0, 0.0)
        past_a, past_b = (0.5, 1.0, 1.0), (-0.5, 1.0, 1.0)
        zero = np.zeros_like(gap)
        is_tie = (outcome == TIE).astype(np.float64)
        share, rise = 1 / (1 + math.exp(-tie)), float(np.logaddexp(0.0, tie))  # of log(t + 1)
        sums = [
            (is_tie + (outcome == BOTH_BAD), [(left, a), (right, b), (zero, none)]),
            (is_tie + (outcome == A), [(left, a), (right + tie, past_b), (zero, none)]),
            (is_tie + (outcome == B), [(right, b), (left + tie, past_a), (zero, none)]),
            (
                -is_tie,
                [
                    (left + rise, (0.5, share, 1.0)),
                    (right + rise, (-0.5, share, 1.0)),
                    (zero + np.log(2.0), none),
                ],
            ),
        ]
        scored_a, scored_b = is_tie + (outcome == A), is_tie + (outcome == B)
        width, growth, bend = _log_expm1(tie)
        linear = (
            -scored_a * left - scored_b * right - is_tie * width,
            (-(scored_a - scored_b) / 2, -is_tie * growth, -(scored_a + scored_b)),
        )
        local = _add_up(sums, linear, 3)
        bends, _ = _logistic(np.logaddexp(left, right) + rise - np.log(2.0))
        local.curve[1, 1][:] -= is_tie * (bends * share * (1 - share) + bend)
        return local


class _GroundedWithoutTies:
    """`_Grounded` at its boundary ``t = 1``, where ties have no probability."""

    coordinates: tuple[Coordinate, ...] = ("gap", "level")
    outcomes: tuple[int, ...] = (A, B, BOTH_BAD)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> _Local:
        """Return the negative log-likelihood, convex in gap and level together."""
        left, right = level + gap / 2, level - gap / 2
        won_a, won_b = _WON_A[outcome], _WON_B[outcome]
        terms = [(left, (0.5, 1.0)), (right, (-0.5, 1.0)), (np.zeros_like(gap), (0.0, 0.0))]
        linear = (-won_a * left - won_b * right, (-(won_a - won_b) / 2, -(won_a + won_b)))
        return _add_up([(np.ones_like(gap), terms)], linear, 2)


HALF_WIN = _HalfWin()
LIKELIHOODS: dict[Ties, Likelihood] = {
    "half": HALF_WIN,
    "davidson": _Davidson(),
    "rao-kupper": _RaoKupper(),
    "grounded": _Grounded(),
}
AT_BOUNDARY: dict[Ties, Likelihood] = {
    "davidson": HALF_WIN,
    "rao-kupper": HALF_WIN,
    "grounded": _GroundedWithoutTies(),
}
"""The likelihood that is left when no vote is a tie."""

_Term = tuple[Floats, tuple[float, ...]]


def _add_up(
    sums: Sequence[tuple[Floats, Sequence[_Term]]],
    linear: tuple[Floats, tuple[Floats, ...]],
    n_coordinates: int,
) -> _Local:
    """Add multiples of ``log sum_k exp(term_k)`` to a linear part.

    A term is its value and its gradient, which is constant.
    """
    value, slope = linear
    curve = {
        (c, d): np.zeros_like(value) for c in range(n_coordinates) for d in range(c, n_coordinates)
    }
    for times, terms in sums:
        top = np.maximum.reduce([term for term, _ in terms])
        parts = [np.exp(term - top) for term, _ in terms]
        total = np.add.reduce(parts)
        shares = [
            (part / total, direction)
            for part, direction in zip(parts, (d for _, d in terms), strict=True)
        ]
        mean = [sum(s * way[c] for s, way in shares) for c in range(n_coordinates)]
        value = value + times * (top + np.log(total))
        slope = tuple(old + times * new for old, new in zip(slope, mean, strict=True))
        for c, d in curve:
            square = sum(s * (way[c] * way[d]) for s, way in shares)
            curve[c, d] += times * (square - mean[c] * mean[d])
    return _Local(value, slope, curve)


def _logistic(x: Floats) -> tuple[Floats, Floats]:
    """Return ``1 / (1 + exp(-x))`` and ``log(1 + exp(x))`` without overflow."""
    small = np.exp(-np.abs(x))
    both = 1.0 + small
    return np.where(x >= 0, 1.0, small) / both, np.maximum(x, 0.0) + np.log(both)


def _log_expm1(x: float) -> tuple[float, float, float]:
    """Return ``log(exp(x) - 1)`` for positive x and its first two derivatives."""
    gone = -np.expm1(-x)  # 1 - exp(-x)
    return float(x + np.log(gone)), float(1 / gone), float(-(1 - gone) / gone**2)


def _outside(n: int, n_coordinates: int) -> _Local:
    nowhere = np.full(n, np.nan)
    curve = {(c, d): nowhere for c in range(n_coordinates) for d in range(c, n_coordinates)}
    return _Local(np.full(n, np.inf), (nowhere,) * n_coordinates, curve)


# Newton's method


MAX_STEPS = 100
_MAX_HALVINGS = 60


class Evaluation(NamedTuple):
    """An objective at a point: loss in nats, gradient (p,) and Hessian (p, p)."""

    loss: float
    gradient: Floats
    hessian: Floats


class Objective(Protocol):
    """What is minimised.

    Attributes
    ----------
    n_models : int
        The first ``n_models`` parameters are strengths.
    absolute : bool
        False when all strengths may move together without a change.
    total : float
        Sum of the weights, the scale of rounding errors.
    """

    @property
    def n_models(self) -> int: ...  # noqa: D102
    @property
    def absolute(self) -> bool: ...  # noqa: D102
    @property
    def total(self) -> float: ...  # noqa: D102

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian; an infinite loss outside the domain."""


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """Weighted logistic loss: ``logit E[share] = design @ coefficients``, with a ridge.

    Attributes
    ----------
    design : ndarray of shape (n, k)
    share : ndarray of shape (n,)
        From 0 to 1; a share of 0.3 is three tenths of a win and seven of a loss.
    weight : ndarray of shape (n,)
    ridge : float
        The loss has ``ridge / 2`` times the squared coefficients.
    """

    design: Floats
    share: Floats
    weight: Floats
    ridge: float = 0.0
    n_models: ClassVar[int] = 0
    absolute: ClassVar[bool] = True

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def evaluate(self, x: Floats) -> Evaluation:
        """Return the loss in nats, its gradient and its Hessian."""
        import scipy

        logit = self.design @ x
        probability = scipy.special.expit(logit)
        loss = self.weight @ (np.logaddexp(0, logit) - self.share * logit)
        gradient = self.design.T @ (self.weight * (probability - self.share)) + self.ridge * x
        curved = self.design * (self.weight * probability * (1 - probability))[:, None]
        hessian = curved.T @ self.design + self.ridge * np.eye(len(x))
        return Evaluation(float(loss + self.ridge / 2 * (x @ x)), gradient, hessian)


class Optimum(NamedTuple):
    """Where `minimise` ended, what is there, and the steps taken."""

    x: Floats
    at: Evaluation
    iterations: int


def minimise(objective: Objective, start: Floats) -> Optimum:
    """Minimise by Newton's method, halving any step that does not descend.

    Converged when no entry of the gradient exceeds 1e-9, or 1e-15 of all votes, which rounding
    leaves of a very large board. Unless the scale is absolute, the strengths found sum to zero.

    Raises
    ------
    ConvergenceError
        After `MAX_STEPS` steps, or where the loss falls along a straight line.
    """
    x, at, close = start, objective.evaluate(start), max(1e-9, 1e-15 * objective.total)
    for iteration in range(MAX_STEPS):
        if np.abs(at.gradient).max(initial=0.0) <= close:
            return Optimum(_centred(objective, x), at, iteration)
        x, at = _descend(objective, x, at, _direction(objective, at))
    worst = float(np.abs(at.gradient).max())
    raise ConvergenceError(f"The gradient is still {worst:.3g} after {MAX_STEPS} Newton steps.")


def _centred(objective: Objective, x: Floats) -> Floats:
    """Make the strengths sum to zero, unless their scale is absolute."""
    if objective.absolute:
        return x
    k = objective.n_models
    return np.concatenate([x[:k] - x[:k].mean(), x[k:]])


def anchored(hessian: Floats, n_models: int, *, absolute: bool) -> Floats:
    """Give the flat direction, all strengths moving together, their mean curvature."""
    if absolute:
        return hessian
    filled = hessian.copy()
    filled[:n_models, :n_models] += np.diag(hessian)[:n_models].mean() / n_models
    return filled


def identified_inverse(matrix: Floats, n_models: int, *, absolute: bool) -> Floats:
    """Invert a symmetric matrix of all parameters on strengths that sum to zero.

    Rows of the result sum to zero over the strengths. With an absolute scale
    it is the plain inverse.
    """
    inverse = np.linalg.inv(anchored(matrix, n_models, absolute=absolute))
    if not absolute:
        inverse[:n_models] -= inverse[:n_models].mean(axis=0)
        inverse[:, :n_models] -= inverse[:, :n_models].mean(axis=1, keepdims=True)
    return np.asarray((inverse + inverse.T) / 2)


def _direction(objective: Objective, at: Evaluation) -> Floats:
    """Return the Newton step, or where the objective is not convex a damped one that descends."""
    curvature = anchored(at.hessian, objective.n_models, absolute=objective.absolute)
    scale = np.abs(np.diag(curvature)).max()
    if scale == 0:
        raise ConvergenceError("No curvature is left and the loss still falls: it has no minimum.")
    for damping in (0.0, *(10.0**power for power in range(-6, 3))):
        try:
            step = np.linalg.solve(
                curvature + damping * scale * np.eye(len(curvature)), at.gradient
            )
        except np.linalg.LinAlgError:
            continue
        if step @ at.gradient > 0:
            return np.asarray(step)
    return np.asarray(at.gradient / scale)


def _descend(
    objective: Objective, x: Floats, at: Evaluation, step: Floats
) -> tuple[Floats, Evaluation]:
    allowed = at.loss + 1e-12 * abs(at.loss)  # rounding of a sum is not an ascent
    for _ in range(_MAX_HALVINGS):
        there = objective.evaluate(x - step)
        if there.loss <= allowed:
            return x - step, there
        step = step / 2
    return x, at


# From local coordinates to parameters


BLOCK_ROWS = 1 << 17
CHUNK_ENTRIES = 2_000_000
"""Entries of an array that are computed at a time."""


_ON_STRENGTHS: dict[Coordinate, tuple[float, float]] = {
    "gap": (1.0, -1.0),
    "tie": (0.0, 0.0),
    "level": (0.5, 0.5),
}
"""Derivatives of a local coordinate in the strengths of side A and side B."""


def blocks(n: int) -> list[slice]:
    """Divide n rows into blocks that the processor's cache holds."""
    return [slice(first, first + BLOCK_ROWS) for first in range(0, n, BLOCK_ROWS)]


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """How the local coordinates of n rows depend on the parameters.

    The parameters are the strengths, the coefficients of the covariates and,
    if the likelihood has one, the tie parameter, in this order.

    Attributes
    ----------
    n_models : int
    a, b : ndarray of shape (n,), int64
        Models on side A and side B.
    pair : ndarray of shape (n,), int64
        ``n_models * a + b``.
    covariates : ndarray of shape (n, n_covariates)
        Added to the gap, with a coefficient each.
    coordinates : tuple of {"gap", "tie", "level"}
    """

    n_models: int
    a: Ints
    b: Ints
    pair: Ints
    covariates: Floats
    coordinates: tuple[Coordinate, ...]

    @property
    def n_covariates(self) -> int:
        """Number of covariates, the order effect included."""
        return int(self.covariates.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self.n_models + self.n_covariates + ("tie" in self.coordinates)

    def gap(self, x: Floats) -> Floats:
        """Return the gap of each row, shape (n,)."""
        gap = x[self.a] - x[self.b]
        if self.n_covariates:
            gap += self.covariates @ x[self.n_models : self.n_models + self.n_covariates]
        return np.asarray(gap)

    def level(self, x: Floats) -> Floats:
        """Return the mean of both strengths of each row, shape (n,)."""
        return np.asarray((x[self.a] + x[self.b]) / 2)

    def rows(self, chosen: Ints | slice) -> "_Design":
        """Return the design of some of the rows, in the order given."""
        return _Design(
            self.n_models,
            self.a[chosen],
            self.b[chosen],
            self.pair[chosen],
            self.covariates[chosen],
            self.coordinates,
        )

    def curvature_along(
        self, curve: Mapping[tuple[int, int], Floats], shift: Floats, cluster: Ints
    ) -> Floats:
        """Return the Hessian of each cluster times its own shift, as `scores` shapes it.

        Parameters
        ----------
        curve : mapping of (int, int) to ndarray of shape (n,)
            As `hessian` takes it.
        shift : ndarray of shape (n_clusters, n_parameters)
        cluster : ndarray of shape (n,), int64
        """
        moved = self._along(shift, cluster)
        change = [np.zeros(len(cluster)) for _ in moved]
        for (c, d), value in curve.items():
            change[c] += value * moved[d]
            if c != d:
                change[d] += value * moved[c]
        return self.scores(tuple(change), cluster, len(shift))

    def _along(self, shift: Floats, cluster: Ints) -> list[Floats]:
        """Return how each local coordinate moves when each cluster has its own shift."""
        a, b, k = shift[cluster, self.a], shift[cluster, self.b], self.n_models
        moved = {"level": (a + b) / 2, "tie": shift[cluster, -1], "gap": a - b}
        for column in range(self.n_covariates):
            moved["gap"] += self.covariates[:, column] * shift[cluster, k + column]
        return [moved[name] for name in self.coordinates]

    def across(self, vectors: Floats) -> list[Floats]:
        """Return how each local coordinate moves along each of some shifts of all parameters.

        Parameters
        ----------
        vectors : ndarray of shape (n_parameters, m)

        Returns
        -------
        list of ndarray of shape (n, m)
        """
        a, b, k = vectors[self.a], vectors[self.b], self.n_models
        moved = []
        for name in self.coordinates:
            if name == "gap":
                gap = a - b
                if self.n_covariates:
                    gap += self.covariates @ vectors[k : k + self.n_covariates]
                moved.append(gap)
            else:
                moved.append((a + b) / 2 if name == "level" else np.tile(vectors[-1], (len(a), 1)))
        return moved

    def inner(self, matrix: Floats, c: int, d: int) -> Floats:
        """Return ``x_i' M y_i`` of each row, x and y the directions of two coordinates.

        ``matrix`` is symmetric, of shape (n_parameters, n_parameters).
        """
        first, second = self.coordinates[c], self.coordinates[d]
        (a1, b1), (a2, b2) = _ON_STRENGTHS[first], _ON_STRENGTHS[second]
        a, b, x, y = self.a, self.b, self._extras(first), self._extras(second)
        on_x, on_y = self._place(first), self._place(second)
        total = a1 * a2 * matrix[a, a] + b1 * b2 * matrix[b, b]
        total += (a1 * b2 + b1 * a2) * matrix[a, b]
        for column, values in zip(matrix[:, on_y].T, y.T, strict=True):
            total += values * (a1 * column[a] + b1 * column[b])
        for column, values in zip(matrix[:, on_x].T, x.T, strict=True):
            total += values * (a2 * column[a] + b2 * column[b])
        return np.asarray(total + ((x @ matrix[on_x, on_y]) * y).sum(axis=1))

    def scores(self, slope: tuple[Floats, ...], cluster: Ints, n_clusters: int) -> Floats:
        """Sum the gradients of the rows in each cluster, shape (n_clusters, n_parameters)."""
        row = cluster * self.n_parameters
        at, value = [row + self.a, row + self.b], [np.zeros(len(row)), np.zeros(len(row))]
        for name, change in zip(self.coordinates, slope, strict=True):
            for side in (0, 1):
                value[side] += _ON_STRENGTHS[name][side] * change
            for column, derivative in enumerate(self._extras(name).T, self._place(name).start):
                at.append(row + column)
                value.append(change * derivative)
        size = n_clusters * self.n_parameters
        sums = np.bincount(np.concatenate(at), np.concatenate(value), size)
        return np.asarray(sums, dtype=np.float64).reshape(n_clusters, -1)

    def gradient(self, slope: tuple[Floats, ...]) -> Floats:
        """Sum the gradients of all rows, shape (n_parameters,)."""
        total = np.zeros(self.n_parameters)
        for name, value in zip(self.coordinates, slope, strict=True):
            total[: self.n_models] += self._on_strengths(name, value[:, None])[:, 0]
            total[self._place(name)] += self._extras(name).T @ value
        return total

    def hessian(self, curve: Mapping[tuple[int, int], Floats]) -> Floats:
        """Sum the Hessians of all rows, shape (n_parameters, n_parameters).

        Parameters
        ----------
        curve : mapping of (int, int) to ndarray of shape (n,)
            Second derivatives in the local coordinates, as in `_Local`.
        """
        total = np.zeros((self.n_parameters, self.n_parameters))
        for (c, d), value in curve.items():
            block = self._block(self.coordinates[c], self.coordinates[d], value)
            total += block if c == d else block + block.T
        return total

    def _block(self, first: Coordinate, second: Coordinate, value: Floats) -> Floats:
        """Sum ``value_i x_i y_i'`` over the rows, x and y the directions of two coordinates."""
        k = self.n_models
        rows, columns = self._place(first), self._place(second)
        weighted = value[:, None] * self._extras(second)
        block = np.zeros((self.n_parameters, self.n_parameters))
        block[:k, :k] = self._strength_block(first, second, value)
        block[:k, columns] = self._on_strengths(first, weighted)
        block[rows, columns] = self._extras(first).T @ weighted
        if first == second:
            block[rows, :k] = block[:k, columns].T
        else:
            block[rows, :k] = self._on_strengths(second, value[:, None] * self._extras(first)).T
        return block

    def _place(self, name: Coordinate) -> slice:
        """Return where the coordinate's parameters beside the strengths are."""
        k, c = self.n_models, self.n_covariates
        return {"gap": slice(k, k + c), "tie": slice(k + c, k + c + 1), "level": slice(0, 0)}[name]

    def _extras(self, name: Coordinate) -> Floats:
        """Return the coordinate's derivatives in them, shape (n, as many)."""
        if name == "gap":
            return self.covariates
        return np.ones((len(self.a), 1)) if name == "tie" else np.empty((len(self.a), 0))

    def _on_strengths(self, name: Coordinate, value: Floats) -> Floats:
        """Sum the columns of ``value`` times the coordinate's derivatives in the strengths."""
        on_a, on_b = _ON_STRENGTHS[name]
        sums = np.zeros((self.n_models, value.shape[1]))
        for column in range(value.shape[1] if name != "tie" else 0):
            table = self._by_pair(value[:, column])
            sums[:, column] = on_a * table.sum(axis=1) + on_b * table.sum(axis=0)
        return sums

    def _strength_block(self, first: Coordinate, second: Coordinate, value: Floats) -> Floats:
        if "tie" in (first, second):
            return np.zeros((self.n_models, self.n_models))
        table = self._by_pair(value)
        (a1, b1), (a2, b2) = _ON_STRENGTHS[first], _ON_STRENGTHS[second]
        on_diagonal = a1 * a2 * table.sum(axis=1) + b1 * b2 * table.sum(axis=0)
        return np.asarray(a1 * b2 * table + b1 * a2 * table.T + np.diag(on_diagonal))

    def _by_pair(self, value: Floats) -> Floats:
        k = self.n_models
        sums = np.bincount(self.pair, value, k * k)
        return np.asarray(sums, dtype=np.float64).reshape(k, k)


ORDER_EFFECT = "order_effect"
STYLE = "style:"

_COLLINEAR = 1e-10
_SEPARATED = 1e-8


def information_left(design: _Design, weight: Floats) -> Floats:
    """Return the information on the coefficients that the strengths leave over.

    The Schur complement of the strengths in ``sum_i weight_i x_i x_i'``, on
    the gap alone: shape (n_covariates, n_covariates).
    """
    k, c = design.n_models, design.n_covariates
    gaps = _Design(k, design.a, design.b, design.pair, design.covariates, ("gap",))
    total = np.zeros((k + c, k + c))
    for rows in blocks(len(gaps.a)):
        total += gaps.rows(rows).hessian({(0, 0): weight[rows]})
    return _schur(anchored(total, k, absolute=False), k, c)


def check_covariates(
    names: tuple[str, ...], design: _Design, weight: Floats, left: Floats
) -> None:
    """Raise unless every covariate says something that the others and the strengths do not.

    Parameters
    ----------
    left : ndarray of shape (n_covariates, n_covariates)
        As `information_left` returns it.

    Raises
    ------
    NotIdentifiedError
        Naming the first covariate that is zero throughout, or a combination
        of the strengths and the covariates before it.
    """
    size = np.einsum("i,ij,ij->j", weight, design.covariates, design.covariates)
    for j, name in enumerate(names):
        if size[j] == 0:
            raise NotIdentifiedError(f"{name} is zero in every vote: leave it out.", ())
        known = left[:j, :j]
        rest = left[j, j] - left[j, :j] @ np.linalg.solve(known, left[:j, j]) if j else left[0, 0]
        if rest <= _COLLINEAR * size[j]:
            raise NotIdentifiedError(
                f"{name} cannot be distinguished from the strengths"
                + (f" and {', '.join(names[:j])}" if j else "")
                + ": in these votes it is a combination of them. Leave it out.",
                (),
            )


def check_not_separated(
    names: tuple[str, ...], n_models: int, left: Floats, hessian: Floats
) -> None:
    """Raise if a coefficient ran off to infinity, which leaves no curvature behind.

    Parameters
    ----------
    left : ndarray of shape (n_covariates, n_covariates)
        As `information_left` returns it.
    hessian : ndarray of shape (n_parameters, n_parameters)
        At the end of the iteration, with its flat direction filled.

    Raises
    ------
    NotIdentifiedError
        Naming the covariate that foretells the votes without fail.
    """
    scale, end = 1 / np.sqrt(np.diag(left)), n_models + len(left)
    curvature = _schur(hessian[:end, :end], n_models, len(left))
    values, vectors = np.linalg.eigh(curvature * scale[:, None] * scale)
    if values[0] < _SEPARATED:
        name = names[int(np.abs(vectors[:, 0]).argmax())]
        raise NotIdentifiedError(
            f"{name} foretells the votes without fail: its coefficient has no finite value.", ()
        )


def _schur(matrix: Floats, k: int, c: int) -> Floats:
    cross = matrix[:k, k : k + c]
    # Votes that are all foretold leave no curvature of the strengths either: a singular block.
    explained = np.linalg.lstsq(matrix[:k, :k], cross, rcond=None)[0]
    return np.asarray(matrix[k : k + c, k : k + c] - cross.T @ explained)


# Bradley-Terry from a table of scores


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


class _Strengths(NamedTuple):
    """Where `solve` ended: strengths that sum to zero, and the steps taken."""

    theta: Floats
    iterations: int


def solve(wins: Floats, start: Floats, *, ridge: float = 0.0) -> _Strengths:
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
    return _Strengths(best.x, best.iterations)


def win_probability(theta: Floats) -> Floats:
    """Return the probability that row beats column, shape (n_models, n_models)."""
    return np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))


def hessian(theta: Floats, wins: Floats, *, ridge: float = 0.0) -> Floats:
    """Return the Hessian of `ScoreTable`: without a ridge, its rows sum to zero."""
    return ScoreTable(wins, ridge).evaluate(theta).hessian


# Likelihoods of cells


@dataclass(frozen=True, slots=True, eq=False)
class CellObjective:
    """Weighted negative log-likelihood of cells, plus a ridge on the strengths.

    Attributes
    ----------
    outcome : ndarray of shape (n,), int64
    weight : ndarray of shape (n,)
    """

    likelihood: Likelihood
    design: _Design
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

    def local(self, x: Floats) -> _Local:
        """Return `_Local` of one vote in each cell, whatever its weight."""
        design = self.design
        level = design.level(x) if self.absolute else np.empty(0)
        return self.likelihood.loss(self.outcome, design.gap(x), float(x[-1]), level)

    def each_outcome(self, x: Floats) -> Iterator[tuple[int, Floats, _Local]]:
        """Yield each outcome of the likelihood, its probability and its `_Local` in every cell."""
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
    design = _Design(k, a, b, k * a + b, covariates, likelihood.coordinates)
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
    design = _Design(k, a, b, pair, np.empty((len(pair), 0)), likelihood.coordinates)
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
        Of one vote in each cell, whatever its weight, as in `_Local`.
    """

    design: _Design
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


# Deviance


@dataclass(frozen=True, slots=True)
class Deviance:
    """Deviance: twice the difference to the log-likelihood of the saturated model.

    Attributes
    ----------
    value : float
        Weighted, in nats.
    df : int
        Free cells of the observed ordered pairs, minus the free parameters.
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
