"""Votes drawn from known strengths by voters with tastes of their own, board after board."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from rating import (
    Comparisons,
    Covariance,
    Fit,
    RankRanges,
    covariance,
    fit_bradley_terry,
    rank_ranges,
    sandwich_covariance,
)
from rating.bradley_terry import solve
from rating.ranks import MIN_EFFECTIVE_FOR_RANKS, joint_rank_ranges

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NORMAL_95 = 1.959964
MEAN_PARETO_VOTES = 4


@dataclass(frozen=True, slots=True)
class Design:
    """A board to simulate.

    ``busy`` is the law of the votes per voter: a lognormal with log-mean
    ``log_votes`` and log-sd ``tail``, or a Pareto of index ``tail`` from 4
    votes. ``taste`` is the sd in nats of a voter's own shift of every model,
    ``spread`` the strength of the best model in nats.
    """

    name: str = "D1"
    n_models: int = 10
    n_voters: int = 200
    busy: Literal["lognormal", "pareto"] = "lognormal"
    log_votes: float = 1.7
    tail: float = 1.4
    taste: float = 0.4
    tie_rate: float = 0.0
    spread: float = 0.8

    @property
    def strengths(self) -> Floats:
        return np.linspace(-self.spread, self.spread, self.n_models)

    def pseudo_true(self) -> Floats:
        """Bradley-Terry strengths of the voters together, under uniform pairs."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        gap = self.strengths[:, None] - self.strengths[None, :]
        shifted = gap[..., None] + np.sqrt(2) * self.taste * nodes
        chance = (1 / (1 + np.exp(-shifted))) @ (weights / weights.sum())
        chance = (1 - self.tie_rate) * chance + self.tie_rate / 2
        np.fill_diagonal(chance, 0.0)
        return solve(chance, np.zeros(self.n_models)).theta

    @property
    def names(self) -> list[str]:
        return [f"m{i:02}" for i in range(self.n_models)]

    def draw(self, rng: np.random.Generator) -> Comparisons:
        voter, a, b = self.draw_pairs(rng)
        gap = self.draw_gaps(rng, voter, a, b)
        outcome = np.where(rng.random(len(voter)) < 1 / (1 + np.exp(-gap)), 0, 1)
        outcome = np.where(rng.random(len(voter)) < self.tie_rate, 2, outcome)
        return Comparisons.from_codes(self.names, a, b, outcome, voter=voter)

    def draw_pairs(self, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
        """The voter and the models on side A and side B of every vote."""
        voter = np.repeat(np.arange(self.n_voters), self._votes_per_voter(rng))
        a = rng.integers(self.n_models, size=len(voter))
        b = (a + rng.integers(1, self.n_models, size=len(voter))) % self.n_models
        return voter, a, b

    def draw_gaps(self, rng: np.random.Generator, voter: Codes, a: Codes, b: Codes) -> Floats:
        """By how much each vote's voter likes side A better, in nats."""
        taste = rng.normal(0, self.taste, (self.n_voters, self.n_models))
        liking = self.strengths + taste
        return np.asarray(liking[voter, a] - liking[voter, b])

    def generator(self, seed: int) -> np.random.Generator:
        """A generator of its own for every design, so that studies can run in any order."""
        name = int.from_bytes(self.name.encode())
        return np.random.default_rng([seed, name, round(10 * self.taste)])

    def _votes_per_voter(self, rng: np.random.Generator) -> Codes:
        if self.busy == "lognormal":
            drawn = rng.lognormal(self.log_votes, self.tail, self.n_voters)
        else:
            drawn = MEAN_PARETO_VOTES * (1 + rng.pareto(self.tail, self.n_voters))
        return np.ceil(drawn).astype(np.int64)


D1 = Design()
D2 = Design("D2", n_models=20, n_voters=800, busy="pareto", tail=1.3)
D3 = Design("D3", n_voters=500, tail=1.0)
DESIGNS = {design.name: design for design in (D1, D2, D3)}
TASTES = (0.0, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class Share:
    """A mean over boards of what happened on each, and its Monte Carlo error."""

    mean: float
    error: float

    @classmethod
    def of(cls, per_board: Floats) -> "Share":
        return cls(float(per_board.mean()), float(per_board.std() / np.sqrt(len(per_board))))

    def __str__(self) -> str:
        return f"{self.mean:.3f}±{self.error:.3f}"


Half = Callable[[Fit, Comparisons, Covariance], Floats]


def leaving_voters_out(fit: Fit, data: Comparisons, found: Covariance) -> Floats:
    """Half widths of the board's intervals."""
    return np.asarray(stdtrit(found.df, 0.975) * np.sqrt(np.diag(found.strengths)))


def leaving_voters_out_normal(fit: Fit, data: Comparisons, found: Covariance) -> Floats:
    return np.asarray(NORMAL_95 * np.sqrt(np.diag(found.strengths)))


def as_if_independent(fit: Fit, data: Comparisons, found: Covariance) -> Floats:
    """A planted error: half widths for votes that have nothing to do with each other."""
    return np.asarray(NORMAL_95 * np.sqrt(np.diag(sandwich_covariance(fit, data))))


INTERVALS: dict[str, Half] = {
    "CR3 t": leaving_voters_out,
    "CR3 normal": leaving_voters_out_normal,
    "independent": as_if_independent,
}


@cache
def coverage(design: Design, runs: int, seed: int) -> dict[str, Share]:
    """How often each kind of 95 % interval holds the truth, over models and boards."""
    rng, truth = design.generator(seed), design.pseudo_true()
    held: dict[str, list[float]] = {name: [] for name in INTERVALS}
    for _ in range(runs):
        data = design.draw(rng)
        fit = fit_bradley_terry(data)
        found = covariance(fit, data)
        for name, half in INTERVALS.items():
            held[name].append(float(np.mean(np.abs(fit.theta - truth) <= half(fit, data, found))))
    return {name: Share.of(np.array(shares)) for name, shares in held.items()}


@dataclass(frozen=True, slots=True)
class RankStudy:
    """Boards whose rank ranges claim something false, and pairs told apart.

    Attributes
    ----------
    claimed : float
        Share of the boards on which ranks are claimed.
    false : Share
        Of all boards: those that put some model above one as good or better.
    apart : Share
        Of the pairs on boards that claim ranks.
    """

    claimed: float
    false: Share
    apart: Share


Rule = Callable[[Fit, Comparisons, Covariance, np.random.Generator], RankRanges]


def as_on_the_board(
    fit: Fit, data: Comparisons, found: Covariance, rng: np.random.Generator
) -> RankRanges:
    return joint_rank_ranges(fit, data, found, rng=rng)


def by_multivariate_t(
    fit: Fit, data: Comparisons, found: Covariance, rng: np.random.Generator
) -> RankRanges:
    return rank_ranges(fit.theta, found.strengths, rng=rng, df=found.df)


def unadjusted(
    fit: Fit, data: Comparisons, found: Covariance, rng: np.random.Generator
) -> RankRanges:
    """A planted error: each pair told apart at 95 % by itself."""
    matrix = found.strengths
    square = np.diag(matrix)[:, None] + np.diag(matrix) - 2 * matrix
    bar = stdtrit(found.df, 0.975) * np.sqrt(square.clip(min=0))
    above = fit.theta[:, None] - fit.theta > np.where(np.eye(len(bar)), np.inf, bar)
    return RankRanges(low=1 + above.sum(axis=0), high=len(bar) - above.sum(axis=1))


RULES: dict[str, Rule] = {
    "wild": as_on_the_board,
    "multivariate t": by_multivariate_t,
    "unadjusted": unadjusted,
}


@cache
def ranks(design: Design, runs: int, seed: int) -> dict[str, RankStudy]:
    """How often each rule for the ranks says something false, and how much it says."""
    rng, k = design.generator(seed), design.n_models
    better = (design.strengths[:, None] > design.strengths[None, :]).sum(axis=0)
    worse = (design.strengths[:, None] < design.strengths[None, :]).sum(axis=0)
    false: dict[str, list[float]] = {rule: [] for rule in RULES}
    apart: dict[str, list[float]] = {rule: [] for rule in RULES}
    claimed = 0
    for _ in range(runs):
        data = design.draw(rng)
        fit = fit_bradley_terry(data)
        found = covariance(fit, data)
        claims = found.df + 1 >= max(MIN_EFFECTIVE_FOR_RANKS, k)
        claimed += claims
        for rule, bound in RULES.items():
            if not claims:
                false[rule].append(0.0)
                continue
            ranges = bound(fit, data, found, rng)
            wrong = (ranges.low > 1 + better) | (ranges.high < k - worse)
            false[rule].append(float(wrong.any()))
            apart[rule].append(float((ranges.low - 1).sum()) / (k * (k - 1) / 2))
    return {
        rule: RankStudy(
            claimed / runs, Share.of(np.array(false[rule])), Share.of(np.array(apart[rule]))
        )
        for rule in RULES
    }


def at(design: str, taste: float, *, spread: float = 0.8, tie_rate: float = 0.0) -> Design:
    """Return a named design at a taste."""
    return replace(DESIGNS[design], taste=taste, spread=spread, tie_rate=tie_rate)
