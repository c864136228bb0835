"""Races between the first two of some models, drawn vote by vote with a rule for pairs."""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from rating.likelihood import hessian, solve
from rating.planning import gain_pairs, pair_contrast, uniform_pairs
from rating.rows import VoteRows
from rating.typing import Floats, Ints
from rating.variants import POINTS_PER_NAT


def two_models(
    rng: np.random.Generator,
    n: int = 3000,
    lead: float = 0.0,
    *,
    of_voter: float = 0.8,
    of_prompt: float = 0.8,
    voters: int = 300,
    prompts: int = 60,
) -> VoteRows:
    """Draw votes on two models by voters and on prompts that have random effects on their gap.

    Parameters
    ----------
    lead : float
        Points by which the first is ahead over all voters and prompts, nearly.
    """
    voter, prompt = rng.integers(voters, size=n), rng.integers(prompts, size=n)
    of_both = rng.normal(0, of_voter, voters)[voter] + rng.normal(0, of_prompt, prompts)[prompt]
    flatter = np.sqrt(1 + 0.346 * (of_voter**2 + of_prompt**2))
    gap = lead * np.log(10) / 400 * flatter + of_both
    won = rng.random(n) < 1 / (1 + np.exp(-gap))
    side = rng.integers(2, size=n)
    score = np.where(side == 0, won, ~won).astype(np.float64)
    rows = VoteRows.scored(("m0", "m1"), side, 1 - side, score, voter)
    return replace(rows, groups={"voter": voter, "prompt": prompt})


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
    gain: bool = True
    returning: float = 0.0
    prompts: int = 0
    of_prompt: float = 0.4

    def draw(self, n_votes: int, seed: int) -> VoteRows:
        """Draw votes, block by block of voters."""
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
            prompt = n + np.arange(len(voter))
            if of_prompt is not None:
                prompt = rng.integers(self.prompts, size=len(voter))
                gap += of_prompt[prompt, a] - of_prompt[prompt, b]
            voter = self._who(voter, voters, rng)
            odds = gap + tastes[voter, a] - tastes[voter, b]
            score = (rng.random(len(voter)) < expit(odds)).astype(np.float64)
            np.add.at(wins, (a, b), score)
            np.add.at(wins, (b, a), 1 - score)
            columns.append((a, b, score, voter, prompt))
            n, voters = n + len(voter), voters + BLOCK
        a, b, score, voter, prompt = (np.concatenate(x) for x in zip(*columns, strict=True))
        names = tuple(f"m{i}" for i in range(k))
        rows = VoteRows.scored(names, a, b, score, voter)
        return replace(rows, groups={"voter": voter, "prompt": prompt})

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
