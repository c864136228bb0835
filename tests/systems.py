"""Simulated votes on systems of a model in a scaffold, by people with tastes."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rating import Comparisons, Outcome
from rating.outcome import OUTCOMES
from rating.typing import Floats

MODELS = {"m1": 0.6, "m2": 0.1, "m3": -0.7}
SCAFFOLDS = {"plain": -0.3, "tools": 0.3}
SYSTEMS = [*product(MODELS, SCAFFOLDS)]
NAMES = [" · ".join(one) for one in SYSTEMS]
LEVELS = {
    kind: dict(zip(NAMES, levels, strict=True))
    for kind, levels in zip(("model", "scaffold"), zip(*SYSTEMS, strict=True), strict=True)
}


@dataclass(frozen=True, slots=True)
class World:
    """Strengths that add up, except what ``m1`` and ``tools`` have of each other.

    Attributes
    ----------
    taste : float
        Standard deviation of a voter's own strengths of systems, in nats.
    """

    voters: int = 60
    votes: int = 12
    taste: float = 0.0
    together: float = 0.0
    ties: float = 0.1

    @property
    def strengths(self) -> Floats:
        theta = np.array([MODELS[m] + SCAFFOLDS[s] for m, s in SYSTEMS])
        theta[SYSTEMS.index(("m1", "tools"))] += self.together
        return theta

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        n, k = self.voters * self.votes, len(SYSTEMS)
        voter = np.repeat(np.arange(self.voters), self.votes)
        theta = self.strengths + rng.normal(0, self.taste, (self.voters, k))
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        gap = theta[voter, a] - theta[voter, b]
        wins = rng.random(n) < 1 / (1 + np.exp(-gap))
        outcome = np.where(rng.random(n) < self.ties, "tie", np.where(wins, "model_a", "model_b"))
        return {
            "model_a": [NAMES[i] for i in a],
            "model_b": [NAMES[i] for i in b],
            "outcome": outcome.tolist(),
            "voter": [f"v{i}" for i in voter],
        }

    def expected(self) -> Comparisons:
        """Give all pairs with the outcomes that voters together are expected to say."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        a, b = np.array([(i, j) for i in range(len(NAMES)) for j in range(len(NAMES)) if i != j]).T
        gap = (self.strengths[a] - self.strengths[b])[:, None]
        wins = 1 / (1 + np.exp(-(gap + np.sqrt(2) * self.taste * nodes)))
        wins = (1 - self.ties) * (wins @ weights / weights.sum()) + self.ties / 2
        both = np.r_[np.zeros(len(a), int), np.ones(len(a), int)]
        first, second = OUTCOMES.index(Outcome.A), OUTCOMES.index(Outcome.B)
        outcome, weight = np.where(both, second, first), np.r_[wins, 1 - wins]
        return Comparisons.from_codes(NAMES, np.r_[a, a], np.r_[b, b], outcome, weight=weight)

    def votes_of(self, rng: np.random.Generator) -> Comparisons:
        return Comparisons.from_arrays(**self.draw(rng))
