"""Worlds of known strengths and costs, and votes in them."""

from dataclasses import dataclass

import numpy as np

from rating import Comparisons, Votes
from rating.elo import POINTS_PER_NAT
from rating.typing import Floats
from rating.value.figures import Figures


@dataclass(frozen=True, slots=True)
class World:
    """Models with ratings in points and mean dollars an answer, and who votes on them.

    ``prompt_sd`` and ``own_sd`` are of the logarithm of a cost: what a prompt asks for, and what
    is left. A voter's prompts are alike: ``voter_sd`` is of that voter's own mean of either.
    """

    points: tuple[float, ...]
    cost: tuple[float, ...]
    n_voters: int = 200
    each: int = 20
    prompt_sd: float = 0.9
    own_sd: float = 0.5
    voter_sd: float = 0.2

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"m{i}" for i in range(len(self.points)))

    def draw(self, rng: np.random.Generator) -> tuple[Votes, Figures]:
        k, n = len(self.points), self.n_voters * self.each
        voter = np.repeat(np.arange(self.n_voters), self.each)
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        pairs = np.column_stack([a, b])
        theta = np.array(self.points) / POINTS_PER_NAT
        won = rng.random(n) < 1 / (1 + np.exp(theta[b] - theta[a]))
        values = {"cost": self._costs(rng, voter, pairs)}
        outcome = np.where(won, 0, 1)  # in the order of OUTCOMES: model_a, model_b
        data = Comparisons.from_codes(self.models, a, b, outcome, voter=voter)
        return Votes(data), Figures(self.models, pairs, voter, values)

    def _costs(self, rng: np.random.Generator, voter: np.ndarray, pairs: np.ndarray) -> Floats:
        """Costs whose mean over prompts and voters is that of each model."""
        k, n = len(self.points), len(pairs)
        prompt = rng.normal(0, self.prompt_sd, n)
        taste = rng.normal(0, self.voter_sd, (self.n_voters, k))
        own = rng.normal(0, self.own_sd, (n, 2))
        variance = self.prompt_sd**2 + self.voter_sd**2 + self.own_sd**2
        mean = np.log(self.cost)[pairs] - variance / 2
        return np.asarray(np.exp(mean + prompt[:, None] + taste[voter[:, None], pairs] + own))


TEN = World(
    points=(1150, 1120, 1090, 1060, 1030, 1000, 970, 1000, 960, 930),
    cost=(0.020, 0.012, 0.008, 0.005, 0.003, 0.0018, 0.001, 0.010, 0.006, 0.002),
)
"""The last three are worse and dearer than another; the others are not."""
