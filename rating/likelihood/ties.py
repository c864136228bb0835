"""Likelihoods of one vote: four ways to account for ties.

Each gives, for many votes at once, minus the log of the probability of the outcome
and its first two derivatives in *local coordinates*: the gap
``g = theta_a - theta_b + (order effect and features)``, the tie parameter on
the scale it is optimised in, and the level ``m = (theta_a + theta_b) / 2``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from rating.outcome import OUTCOMES, Outcome, Ties
from rating.typing import Floats, Integers

Coordinate = Literal["gap", "tie", "level"]

A, B, TIE, BOTH_BAD = (OUTCOMES.index(outcome) for outcome in Outcome)
SCORE_A = np.array([outcome.score_a for outcome in OUTCOMES])
_WON_A = np.array([1.0, 0.0, 0.0, 0.0])
_WON_B = np.array([0.0, 1.0, 0.0, 0.0])
_TIED = np.array([0.0, 0.0, 1.0, 1.0])


class Local(NamedTuple):
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

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
        """Return `Local` for each vote; outcomes are codes, all arrays of shape (n,)."""


@dataclass(frozen=True, slots=True)
class HalfWin:
    """Bradley-Terry; a tie of either kind is half a win for each side.

    ``P(A) = 1 / (1 + exp(-g))``.

    References
    ----------
    .. [1] R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block
       designs", Biometrika 39(3/4), 1952, pp. 324-345.
    """

    coordinates: tuple[Coordinate, ...] = ("gap",)
    outcomes: tuple[int, ...] = (A, B)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
        """Return the negative log-likelihood; neither the tie parameter nor the level matters."""
        p, cost = _logistic(gap)
        score = SCORE_A[outcome]
        return Local(cost - score * gap, (p - score,), {(0, 0): p * (1 - p)})


@dataclass(frozen=True, slots=True)
class Davidson:
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

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
        """Return the negative log-likelihood, convex in gap and tie parameter together."""
        lead = np.abs(gap) / 2
        top = np.maximum(lead, tie)
        strong, weak, even = np.exp(lead - top), np.exp(-lead - top), np.exp(tie - top)
        total = strong + weak + even
        swing = np.sign(gap) * (strong - weak) / total / 2  # (P(A) - P(B)) / 2
        tied = even / total
        score, is_tie = SCORE_A[outcome], _TIED[outcome]
        return Local(
            value=top + np.log(total) - (score - 0.5) * gap - is_tie * tie,
            slope=(swing - (score - 0.5), tied - is_tie),
            curve={
                (0, 0): (1 - tied) / 4 - swing**2,
                (0, 1): -tied * swing,
                (1, 1): tied * (1 - tied),
            },
        )


@dataclass(frozen=True, slots=True)
class RaoKupper:
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

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
        """Return the negative log-likelihood, convex in gap and tie parameter together."""
        if tie <= 0:
            return _outside(len(gap), 2)
        not_b, not_a, is_tie = 1 - _WON_B[outcome], 1 - _WON_A[outcome], _TIED[outcome]
        miss_a, cost_a = _logistic(tie - gap)  # probability that A does not win
        miss_b, cost_b = _logistic(tie + gap)
        width, growth, bend = _log_expm1(2 * tie)
        bend_a, bend_b = not_b * miss_a * (1 - miss_a), not_a * miss_b * (1 - miss_b)
        return Local(
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


@dataclass(frozen=True, slots=True)
class Grounded:
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

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
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


@dataclass(frozen=True, slots=True)
class GroundedWithoutTies:
    """`Grounded` at its boundary ``t = 1``, where ties have no probability."""

    coordinates: tuple[Coordinate, ...] = ("gap", "level")
    outcomes: tuple[int, ...] = (A, B, BOTH_BAD)

    def loss(self, outcome: Integers, gap: Floats, tie: float, level: Floats) -> Local:
        """Return the negative log-likelihood, convex in gap and level together."""
        left, right = level + gap / 2, level - gap / 2
        won_a, won_b = _WON_A[outcome], _WON_B[outcome]
        terms = [(left, (0.5, 1.0)), (right, (-0.5, 1.0)), (np.zeros_like(gap), (0.0, 0.0))]
        linear = (-won_a * left - won_b * right, (-(won_a - won_b) / 2, -(won_a + won_b)))
        return _add_up([(np.ones_like(gap), terms)], linear, 2)


HALF_WIN = HalfWin()
LIKELIHOODS: dict[Ties, Likelihood] = {
    "half": HALF_WIN,
    "davidson": Davidson(),
    "rao-kupper": RaoKupper(),
    "grounded": Grounded(),
}
AT_BOUNDARY: dict[Ties, Likelihood] = {
    "davidson": HALF_WIN,
    "rao-kupper": HALF_WIN,
    "grounded": GroundedWithoutTies(),
}
"""The likelihood that is left when no vote is a tie."""

_Term = tuple[Floats, tuple[float, ...]]


def _add_up(
    sums: Sequence[tuple[Floats, Sequence[_Term]]],
    linear: tuple[Floats, tuple[Floats, ...]],
    n_coordinates: int,
) -> Local:
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
    return Local(value, slope, curve)


def _logistic(x: Floats) -> tuple[Floats, Floats]:
    """Return ``1 / (1 + exp(-x))`` and ``log(1 + exp(x))`` without overflow."""
    small = np.exp(-np.abs(x))
    both = 1.0 + small
    return np.where(x >= 0, 1.0, small) / both, np.maximum(x, 0.0) + np.log(both)


def _log_expm1(x: float) -> tuple[float, float, float]:
    """Return ``log(exp(x) - 1)`` for positive x and its first two derivatives."""
    gone = -np.expm1(-x)  # 1 - exp(-x)
    return float(x + np.log(gone)), float(1 / gone), float(-(1 - gone) / gone**2)


def _outside(n: int, n_coordinates: int) -> Local:
    nowhere = np.full(n, np.nan)
    curve = {(c, d): nowhere for c in range(n_coordinates) for d in range(c, n_coordinates)}
    return Local(np.full(n, np.inf), (nowhere,) * n_coordinates, curve)
