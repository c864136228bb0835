"""Races between the first two of some models, drawn vote by vote with a rule for pairs."""

from dataclasses import dataclass

import numpy as np
import scipy

from rating.elo import POINTS_PER_NAT
from rating.likelihood.objective import hessian, solve
from rating.rows import VoteRows
from rating.sampling import gain_pairs, pair_contrast, uniform_pairs
from rating.typing import Floats, Ints
from rating.uncertainty.race import Control

BLOCK = 25
"""Voters between two refreshes of the probabilities of pairs."""
RIDGE = 0.1


def expit(x: Floats) -> Floats:
    return np.asarray(scipy.special.expit(x))


@dataclass(frozen=True, slots=True)
class Field:
    """Models and people.

    Attributes
    ----------
    lead : float
        Of the first over the second, in points of their own battles.
    taste : float
        Sd in nats of a voter's own shift of every model.
    liking : float
        Sd in nats of what makes one answer better than another of the same model.
    verdicts : int
        Verdicts on each pair, beside those on the battles; 0 for no judge.
    returning : float
        Share of voters, as they come, who came before and vote on.
    prompts : int
        Prompts that all voters share, drawn alike; 0 for one of its own for each vote.
    of_prompt : float
        Sd in nats of a shared prompt's own shift of every model.
    """

    lead: float = 0.0
    n_models: int = 6
    taste: float = 0.4
    liking: float = 2.0
    verdicts: int = 0
    gain: bool = True
    returning: float = 0.0
    prompts: int = 0
    of_prompt: float = 0.4

    def draw(self, n_votes: int, seed: int) -> VoteRows:
        return self.judged(n_votes, seed)[0]

    def judged(self, n_votes: int, seed: int) -> tuple[VoteRows, Control | None]:
        """Draw votes, and what a judge explains of them where there are verdicts."""
        rng = np.random.default_rng(seed)
        theta, k = self._strengths(), self.n_models
        wins, columns, n, voters = np.zeros((k, k)), [], 0, 0
        of_prompt = rng.normal(0, self.of_prompt, (self.prompts, k)) if self.prompts else None
        tastes = np.empty((0, k))
        while n < n_votes:
            votes = np.ceil(rng.lognormal(1.7, 1.0, BLOCK)).astype(int)
            voter = np.repeat(np.arange(BLOCK), votes)
            a, b = self._pairs(wins, len(voter), rng)
            tastes = np.vstack([tastes, rng.normal(0, self.taste, (BLOCK, k))])
            item = rng.normal(0, self.liking, len(voter))
            gap = theta[a] - theta[b] + item
            if of_prompt is not None:
                prompt = rng.integers(self.prompts, size=len(voter))
                gap += of_prompt[prompt, a] - of_prompt[prompt, b]
            voter = self._who(voter, voters, rng)
            odds = gap + tastes[voter, a] - tastes[voter, b]
            score = (rng.random(len(voter)) < expit(odds)).astype(np.float64)
            np.add.at(wins, (a, b), score)
            np.add.at(wins, (b, a), 1 - score)
            prefers = expit(gap + rng.normal(0, 1, len(gap)))
            columns.append((a, b, score, voter, prefers))
            n, voters = n + len(voter), voters + BLOCK
        a, b, score, voter, prefers = (np.concatenate(x) for x in zip(*columns, strict=True))
        names = tuple(f"m{i}" for i in range(k))
        control = self._control(theta, a, b, prefers, rng) if self.verdicts else None
        return VoteRows.scored(names, a, b, score, voter), control

    def _who(self, voter: Ints, before: int, rng: np.random.Generator) -> Ints:
        """Number the voters of a block, some of whom came before."""
        new = before + np.arange(BLOCK)
        if self.returning and before:
            again = rng.random(BLOCK) < self.returning
            new = np.where(again, rng.integers(before, size=BLOCK), new)
        return new[voter]

    def _strengths(self) -> Floats:
        """Put the first two in the middle of the others, their lead as endless votes show it."""
        wide = np.hypot(self.liking, np.sqrt(2) * self.taste)
        nodes, weights = np.polynomial.hermite_e.hermegauss(61)
        weights = weights / weights.sum()

        def short(gap: float) -> float:
            share = float(expit(gap + wide * nodes) @ weights)
            return POINTS_PER_NAT * float(scipy.special.logit(share)) - self.lead

        gap = scipy.optimize.brentq(short, -1.0, 10.0)
        return np.concatenate([[gap / 2, -gap / 2], np.linspace(-1.5, 1.5, self.n_models - 2)])

    def _pairs(self, wins: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        k = self.n_models
        table = uniform_pairs(k)
        if self.gain and wins.any():
            theta = solve(wins, np.zeros(k), ridge=RIDGE).theta
            inverse = np.linalg.inv(hessian(theta, wins, ridge=RIDGE))
            contrast = pair_contrast(k, 0, 1)
            table = gain_pairs(theta, (inverse + inverse.T) / 2, contrast=contrast)
        first, second = np.triu_indices(k, 1)
        pair = rng.choice(len(first), n, p=table[first, second] / table[first, second].sum())
        swap = rng.random(n) < 0.5
        a, b = np.where(swap, second[pair], first[pair]), np.where(swap, first[pair], second[pair])
        return a, b

    def _control(
        self, theta: Floats, a: Ints, b: Ints, prefers: Floats, rng: np.random.Generator
    ) -> Control:
        k = self.n_models
        noise = np.hypot(self.liking, 1)
        mean, variance = np.zeros((k, k)), np.zeros((k, k))
        for i in range(k):
            for j in range(i + 1, k):
                seen = expit(theta[i] - theta[j] + rng.normal(0, noise, self.verdicts))
                mean[i, j], mean[j, i] = seen.mean(), 1 - seen.mean()
                variance[i, j] = variance[j, i] = seen.var() / self.verdicts
        return Control(prefers - mean[a, b], variance)
