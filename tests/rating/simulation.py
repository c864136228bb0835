"""Votes drawn from known strengths by voters with tastes of their own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rating import Comparisons
from rating.bradley_terry import solve

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """A board to simulate.

    ``heavy_tail`` is the sd of the log of the votes per voter, ``taste`` the
    sd in nats of a voter's own shift of every model, ``spread`` the strength
    of the best model in nats.
    """

    n_models: int = 10
    n_voters: int = 200
    log_votes: float = 1.7
    heavy_tail: float = 1.4
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

    def draw(self, rng: np.random.Generator) -> Comparisons:
        activity = np.ceil(rng.lognormal(self.log_votes, self.heavy_tail, self.n_voters))
        voter = np.repeat(np.arange(self.n_voters), activity.astype(int))
        a = rng.integers(self.n_models, size=len(voter))
        b = (a + rng.integers(1, self.n_models, size=len(voter))) % self.n_models
        taste = rng.normal(0, self.taste, (self.n_voters, self.n_models))
        liking = self.strengths + taste
        gap = liking[voter, a] - liking[voter, b]
        outcome = np.where(rng.random(len(voter)) < 1 / (1 + np.exp(-gap)), "model_a", "model_b")
        outcome = np.where(rng.random(len(voter)) < self.tie_rate, "tie", outcome)
        names = np.array([f"m{i:02}" for i in range(self.n_models)])
        return Comparisons.from_arrays(names[a], names[b], outcome, voter=voter)
