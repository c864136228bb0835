"""Votes drawn from known strengths by voters with tastes of their own, board after board."""

import math
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

import rating
from rating import Cluster, Comparisons, Inference, RankRanges, fit_bradley_terry, infer
from rating.contrasts import MIN_EFFECTIVE_FOR_CLUSTERS
from rating.likelihood import solve
from rating.planning import arena_pairs, gain_pairs, score_variances
from rating.ranks import joint_rank_ranges
from rating.variants import POINTS_PER_NAT

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NORMAL_95 = 1.959964
MEAN_PARETO_VOTES = 4


def runs(default: int) -> int:
    """Return the number of runs per design: ``SIMULATION_RUNS``, or what `make slow` can pay.

    Raises
    ------
    ValueError
        If ``SIMULATION_RUNS`` is not a whole number of 1 or more.
    """
    text = os.environ.get("SIMULATION_RUNS", "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"SIMULATION_RUNS is {text!r}: give a whole number of 1 or more.")
    return int(text)


def monte_carlo_error(share: float, n: int) -> float:
    """Return the standard error of a share seen in n runs, where ``share`` is wanted."""
    return math.sqrt(share * (1 - share) / n)


@dataclass(frozen=True, slots=True)
class Design:
    """A board to simulate.

    ``busy`` is the law of the votes per voter: a lognormal with log-mean
    ``log_votes`` and log-sd ``tail``, a Pareto of index ``tail`` from 4
    votes, or ``each`` votes of everybody; one voter may cast the share
    ``heaviest`` of all. ``taste`` is the sd in nats of a voter's own shift of
    every model, ``spread`` the strength of the best model in nats. The last
    model may be a ``newcomer`` that so many voters met so many times each.
    ``n_prompts`` prompts are shared, if there are any, and suit each model by
    ``liking`` nats more or less; sides lean to the left by ``lean`` nats.
    Pairs are uniform, or ``adaptive``: drawn by the votes so far, see
    `rating.planning`.
    """

    name: str = "D1"
    n_models: int = 10
    n_voters: int = 200
    busy: Literal["lognormal", "pareto", "even"] = "lognormal"
    log_votes: float = 1.7
    tail: float = 1.4
    taste: float = 0.4
    tie_rate: float = 0.0
    spread: float = 0.8
    each: int = 0
    heaviest: float = 0.0
    newcomer: tuple[int, int] | None = None
    n_prompts: int = 0
    liking: float = 0.0
    lean: float = 0.0
    adaptive: Literal["", "arena", "gain"] = ""

    @property
    def strengths(self) -> Floats:
        return np.linspace(-self.spread, self.spread, self.n_models)

    def pseudo_true(self) -> Floats:
        """Bradley-Terry strengths of the voters together, under uniform pairs."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        gap = self.strengths[:, None] - self.strengths[None, :]
        shifted = gap[..., None] + np.sqrt(2) * np.hypot(self.taste, self.liking) * nodes
        probability = (1 / (1 + np.exp(-shifted))) @ (weights / weights.sum())
        probability = (1 - self.tie_rate) * probability + self.tie_rate / 2
        np.fill_diagonal(probability, 0.0)
        return solve(probability, np.zeros(self.n_models)).theta

    @property
    def names(self) -> list[str]:
        return [f"m{i:02}" for i in range(self.n_models)]

    def draw(self, rng: np.random.Generator) -> Comparisons:
        if self.adaptive:
            return self._drawn_adaptively(rng)
        voter, a, b = self.draw_pairs(rng)
        return self.counted(voter, a, b, rng, self.draw_gaps(rng, voter, a, b))

    def counted(
        self, voter: Codes, a: Codes, b: Codes, rng: np.random.Generator, gap: Floats
    ) -> Comparisons:
        prompt = None
        gap = gap + self.lean
        if self.n_prompts:
            prompt = rng.integers(self.n_prompts, size=len(voter))
            suits = rng.normal(0, self.liking, (self.n_prompts, self.n_models))
            gap = gap + suits[prompt, a] - suits[prompt, b]
        outcome = np.where(rng.random(len(voter)) < 1 / (1 + np.exp(-gap)), 0, 1)
        outcome = np.where(rng.random(len(voter)) < self.tie_rate, 2, outcome)
        return Comparisons.from_codes(self.names, a, b, outcome, voter=voter, prompt=prompt)

    def draw_pairs(self, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
        """The voter and the models on side A and side B of every vote."""
        votes = self._votes_per_voter(rng)
        if self.heaviest:
            votes[0] = int(self.heaviest / (1 - self.heaviest) * votes[1:].sum())
        voter = np.repeat(np.arange(self.n_voters), votes)
        k = self.n_models - (self.newcomer is not None)
        a = rng.integers(k, size=len(voter))
        b = (a + rng.integers(1, k, size=len(voter))) % k
        if self.newcomer is None:
            return voter, a, b
        n_fans, times = self.newcomer
        fans = np.repeat(rng.choice(self.n_voters, n_fans, replace=False), times)
        other, new = rng.integers(k, size=len(fans)), np.full(len(fans), k)
        left = rng.random(len(fans)) < 0.5
        sides = np.where(left, new, other), np.where(left, other, new)
        return np.r_[voter, fans], np.r_[a, sides[0]], np.r_[b, sides[1]]

    def _drawn_adaptively(self, rng: np.random.Generator) -> Comparisons:
        """A fifth at a time: after the first, pairs are drawn by the votes so far."""
        voter, a, b = self.draw_pairs(rng)
        voter = rng.permutation(voter)
        liking = self.strengths + rng.normal(0, self.taste, (self.n_voters, self.n_models))
        wins = np.zeros((self.n_models, self.n_models))
        outcome = np.zeros(len(voter), dtype=np.int64)
        for rows in np.array_split(np.arange(len(voter)), 5):
            if rows[0]:
                p = arena_pairs(wins + wins.T, score_variances(wins))
                if self.adaptive == "gain":
                    at = fit_bradley_terry(_as_votes(wins), ridge=0.1)
                    p = gain_pairs(at.theta, rating.hessian_covariance(at))
                first, second = np.divmod(
                    rng.choice(p.size, size=len(rows), p=p.ravel() / p.sum()), self.n_models
                )
                left = rng.random(len(rows)) < 0.5
                a[rows], b[rows] = np.where(left, first, second), np.where(left, second, first)
            gap = liking[voter[rows], a[rows]] - liking[voter[rows], b[rows]]
            won = rng.random(len(rows)) < 1 / (1 + np.exp(-gap))
            np.add.at(wins, (a[rows], b[rows]), won)
            np.add.at(wins, (b[rows], a[rows]), ~won)
            outcome[rows] = np.where(won, 0, 1)
        return Comparisons.from_codes(self.names, a, b, outcome, voter=voter)

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
        if self.busy == "even":
            return np.full(self.n_voters, self.each)
        if self.busy == "lognormal":
            drawn = rng.lognormal(self.log_votes, self.tail, self.n_voters)
        else:
            drawn = MEAN_PARETO_VOTES * (1 + rng.pareto(self.tail, self.n_voters))
        return np.ceil(drawn).astype(np.int64)


def _as_votes(wins: Floats) -> Comparisons:
    a, b = np.nonzero(wins)
    names = [f"m{i:02}" for i in range(len(wins))]
    return Comparisons.from_codes(names, a, b, 0 * a, votes=wins[a, b].astype(np.int64))


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


Half = Callable[[Inference], Floats]


def on_the_board(inference: Inference) -> Floats:
    """Half widths of the board's intervals."""
    return inference.ratings().half_width(0.95)


def by_one_t(inference: Inference) -> Floats:
    """A planted error: leaving out voters, with the same Student's t for every model."""
    df = inference.kinds[0].activity.effective - 1
    return np.asarray(stdtrit(df, 0.975) * np.sqrt(np.diag(inference.kinds[0].matrix)))


def as_if_independent(inference: Inference) -> Floats:
    """A planted error: half widths for votes that have nothing to do with each other."""
    return np.asarray(NORMAL_95 * np.sqrt(np.diag(inference.matrix)))


INTERVALS: dict[str, Half] = {"board": on_the_board, "one t": by_one_t}
INTERVALS["independent"] = as_if_independent

Rule = Callable[[Inference, np.random.Generator], RankRanges]


def as_on_the_board(inference: Inference, rng: np.random.Generator) -> RankRanges:
    return joint_rank_ranges(inference, rng=rng)


def by_multivariate_t(inference: Inference, rng: np.random.Generator) -> RankRanges:
    by_voter = inference.kinds[0]
    if by_voter.is_small:
        k = inference.fit.n_models
        return RankRanges.of(np.zeros((k, k), dtype=bool))
    df = by_voter.activity.effective - 1
    return rating.rank_ranges(inference.fit.theta, by_voter.matrix, rng=rng, df=df)


def unadjusted(inference: Inference, rng: np.random.Generator) -> RankRanges:
    """A planted error: each pair told apart at 95 % by itself."""
    matrix, theta = inference.kinds[0].matrix, inference.fit.theta
    df = inference.kinds[0].activity.effective - 1
    square = np.diag(matrix)[:, None] + np.diag(matrix) - 2 * matrix
    bar = stdtrit(df, 0.975) * np.sqrt(square.clip(min=0))
    above = theta[:, None] - theta > np.where(np.eye(len(bar)), np.inf, bar)
    return RankRanges.of(above)


RULES: dict[str, Rule] = {
    "board": as_on_the_board,
    "multivariate t": by_multivariate_t,
    "unadjusted": unadjusted,
}


@dataclass(frozen=True, slots=True)
class Study:
    """What many boards of one design say.

    Attributes
    ----------
    covered : dict of str to Share
        By each kind of interval: share of the models whose interval holds the truth; the
        newcomer, where there is one, is excluded.
    newcomer : dict of str to Share
        The same of the newcomer; empty without one.
    newcomer_points : dict of str to float
        Median half width of its interval.
    false : dict of str to Share
        Boards on which a rank interval excludes the model's true rank, by each rule.
    apart : dict of str to Share
        Pairs told apart.
    """

    covered: dict[str, Share]
    newcomer: dict[str, Share]
    newcomer_points: dict[str, float]
    false: dict[str, Share]
    apart: dict[str, Share]


@cache
def study(
    design: Design, runs: int, seed: int, clusters: tuple[Cluster, ...] = ("voter",)
) -> Study:
    """Draw boards, and hold intervals and claims against the truth."""
    rng, k, new = design.generator(seed), design.n_models, design.newcomer is not None
    truth = design.pseudo_true()
    better = (design.strengths[:, None] > design.strengths[None, :]).sum(axis=0)
    worse = (design.strengths[:, None] < design.strengths[None, :]).sum(axis=0)
    held, newcomer, points, false, apart = (defaultdict[str, list[float]](list) for _ in range(5))
    while len(held["board"]) < runs:
        try:
            data = design.draw(rng)
            if rating.activity(data).effective < MIN_EFFECTIVE_FOR_CLUSTERS:
                continue  # one voter's board speaks for that voter
            inference = infer(fit_bradley_terry(data), data, clusters, rng=rng)
        except rating.NotIdentifiedError:  # a newcomer that never won, or never lost
            continue
        theta, of = inference.fit.theta, inference.founded
        for name, half in INTERVALS.items():
            centre = of if name == "board" else np.ones(k, dtype=bool)
            off = np.abs((theta - theta[centre].mean()) - (truth - truth[centre].mean()))
            reach = half(inference)
            held[name].append(float((off <= reach)[: k - new].mean()))
            if new:
                newcomer[name].append(float(off[-1] <= reach[-1]))
                points[name].append(float(POINTS_PER_NAT * reach[-1]))
        for rule, bound in RULES.items():
            ranges = bound(inference, rng)
            wrong = (ranges.low > 1 + better) | (ranges.high < k - worse)
            false[rule].append(float(wrong.any()))
            apart[rule].append(float((ranges.low - 1).sum()) / (k * (k - 1) / 2))
    covered, covered_new, wrong_ranks, told_apart = (
        {name: Share.of(np.array(shares)) for name, shares in of.items()}
        for of in (held, newcomer, false, apart)
    )
    widths = {name: float(np.median(half)) for name, half in points.items()}
    return Study(covered, covered_new, widths, wrong_ranks, told_apart)


def at(design: str, taste: float, *, spread: float = 0.8, tie_rate: float = 0.0) -> Design:
    """Return a named design at a taste."""
    return replace(DESIGNS[design], taste=taste, spread=spread, tie_rate=tie_rate)
