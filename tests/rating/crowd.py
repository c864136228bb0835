"""Voters with tastes, honest and not, and a Bradley-Terry fit of their own to test with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rating.rows import VoteRows

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Kind = Literal["honest", "coin", "half coin", "always-left", "always-right", "inverted", "shill"]


def win_probabilities(theta: Floats) -> Floats:
    """Chance that row beats column."""
    return np.asarray(1 / (1 + np.exp(theta[None, :] - theta[:, None])))


def information(theta: Floats, wins: Floats, ridge: float = 0.0) -> Floats:
    probability = win_probabilities(theta)
    met = (wins + wins.T) * probability * probability.T
    return np.asarray(np.diag(met.sum(axis=1) + ridge) - met)


def strengths(wins: Floats, *, start: Floats | None = None, ridge: float = 0.0) -> Floats:
    """Bradley-Terry by Newton's method, no step longer than one nat."""
    n_models = len(wins)
    theta = np.zeros(n_models) if start is None else start
    for _ in range(100):
        slope = (wins - (wins + wins.T) * win_probabilities(theta)).sum(axis=1) - ridge * theta
        if np.abs(slope).max() <= 1e-9 * wins.sum():
            return np.asarray(theta - theta.mean())
        step = np.linalg.solve(information(theta, wins, ridge) + 1 / n_models, slope)
        theta = theta + step / max(1.0, np.abs(step).max())
    raise AssertionError("The test's own fit did not converge.")


@dataclass(frozen=True, slots=True)
class Ballot:
    """Votes as `rating.voters` takes them."""

    left: Codes
    right: Codes
    score: Floats
    voter: Codes

    def rows(self, models: Sequence[str]) -> VoteRows:
        return VoteRows.scored(tuple(models), self.left, self.right, self.score, self.voter)

    def wins(self, n_models: int) -> Floats:
        table = np.zeros((n_models, n_models))
        np.add.at(table, (self.left, self.right), self.score)
        np.add.at(table, (self.right, self.left), 1 - self.score)
        return table


@dataclass(frozen=True, slots=True)
class Crowd:
    """Models ``spread`` apart from best to average, voters of taste sd ``taste``, in nats.

    All that are honest lean to the left side by ``lean``.
    """

    n_models: int = 12
    taste: float = 0.6
    spread: float = 1.0
    lean: float = 0.0

    @property
    def theta(self) -> Floats:
        return np.linspace(self.spread, -self.spread, self.n_models)

    def draw(
        self, rng: np.random.Generator, n_voters: int, n_votes: int, kind: Kind = "honest"
    ) -> Ballot:
        """Voters of one kind; a shill votes for the weakest model, and else as an honest one."""
        voter = np.repeat(np.arange(n_voters), n_votes)
        left = rng.integers(self.n_models, size=len(voter))
        right = (left + rng.integers(1, self.n_models, size=len(voter))) % self.n_models
        liking = self.theta + rng.normal(0, self.taste, (n_voters, self.n_models))
        lead = liking[voter, left] - liking[voter, right]
        probability = self._probability(kind, lead, left, right, rng)
        return Ballot(left, right, (rng.random(len(voter)) < probability).astype(float), voter)

    def _probability(
        self, kind: Kind, lead: Floats, left: Codes, right: Codes, rng: np.random.Generator
    ) -> Floats:
        honest, inverted = (1 / (1 + np.exp(-self.lean - gap)) for gap in (lead, -lead))
        weakest = self.n_models - 1
        return {
            "honest": honest,
            "coin": np.full(len(honest), 0.5),
            "half coin": np.where(rng.random(len(honest)) < 0.5, 0.5, honest),
            "always-left": np.ones(len(honest)),
            "always-right": np.zeros(len(honest)),
            "inverted": inverted,
            "shill": np.select([left == weakest, right == weakest], [1.0, 0.0], honest),
        }[kind]
