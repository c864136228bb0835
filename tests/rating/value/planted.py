"""Simulated worlds of known strengths and costs, and votes in them."""

from dataclasses import dataclass, replace

import numpy as np

from rating import Comparisons, Votes
from rating.rows import VoteRows
from rating.typing import Floats, Ints

PER_NAT = 400 / np.log(10)


def priced(votes: VoteRows, cost: Floats, seconds: Floats | None = None) -> VoteRows:
    """Give votes other costs of both answers, and times."""
    known = {"cost": cost} if seconds is None else {"cost": cost, "seconds": seconds}
    columns = {f"{name}_{s}": x[:, i] for name, x in known.items() for i, s in enumerate("ab")}
    return replace(votes, numbers=columns)


@dataclass(frozen=True, slots=True)
class World:
    """Models with ratings in points and mean dollars an answer, and who votes on them.

    ``prompt_sd`` and ``own_sd`` are of the logarithm of a cost: what a prompt asks for, and what
    is left. A voter's prompts are alike: ``voter_sd`` is of that voter's own mean of either.
    With ``n_prompts`` all battles share these prompts; ``suits_sd`` is of the logarithm of a
    model's cost on a prompt, and ``likes_sd`` of its strength there, in nats.
    """

    points: tuple[float, ...]
    cost: tuple[float, ...]
    n_voters: int = 200
    each: int = 20
    prompt_sd: float = 0.9
    own_sd: float = 0.5
    voter_sd: float = 0.2
    n_prompts: int | None = None
    suits_sd: float = 0.0
    likes_sd: float = 0.0

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"m{i}" for i in range(len(self.points)))

    def draw(self, rng: np.random.Generator) -> tuple[Votes, VoteRows]:
        k, n = len(self.points), self.n_voters * self.each
        voter = np.repeat(np.arange(self.n_voters), self.each)
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        pairs = np.column_stack([a, b])
        prompt = np.arange(n) if self.n_prompts is None else rng.integers(self.n_prompts, size=n)
        likes = (
            rng.normal(0, self.likes_sd, (prompt.max() + 1, k)) + np.array(self.points) / PER_NAT
        )
        won = rng.random(n) < 1 / (1 + np.exp(likes[prompt, b] - likes[prompt, a]))
        cost_a, cost_b = self._costs(rng, voter, prompt, pairs).T
        outcome = np.where(won, 0, 1)  # in the order of OUTCOMES: model_a, model_b
        data = Comparisons.from_codes(self.models, a, b, outcome, voter=voter, prompt=prompt)
        groups, numbers = {"voter": voter, "prompt": prompt}, {"cost_a": cost_a, "cost_b": cost_b}
        once = np.ones(n, dtype=np.int64)
        return Votes(data), VoteRows(self.models, a, b, outcome, once, groups, numbers=numbers)

    def _costs(self, rng: np.random.Generator, voter: Ints, prompt: Ints, pairs: Ints) -> Floats:
        """Costs whose mean over prompts and voters is that of each model."""
        k, n = len(self.points), len(pairs)
        asked = rng.normal(0, self.prompt_sd, prompt.max() + 1)[prompt]
        suits = rng.normal(0, self.suits_sd, (prompt.max() + 1, k))[prompt[:, None], pairs]
        taste = rng.normal(0, self.voter_sd, (self.n_voters, k))[voter[:, None], pairs]
        own = rng.normal(0, self.own_sd, (n, 2))
        sds = self.prompt_sd, self.suits_sd, self.voter_sd, self.own_sd
        mean = np.log(self.cost)[pairs] - sum(sd**2 for sd in sds) / 2
        return np.asarray(np.exp(mean + asked[:, None] + suits + taste + own))


TEN = World(
    points=(1150, 1120, 1090, 1060, 1030, 1000, 970, 1000, 960, 930),
    cost=(0.020, 0.012, 0.008, 0.005, 0.003, 0.0018, 0.001, 0.010, 0.006, 0.002),
)
"""The last three are worse and dearer than another; the others are not."""
