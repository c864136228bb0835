"""Votes drawn from a likelihood itself, as arrays of codes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating import Comparisons
from rating.likelihood import LIKELIHOODS
from rating.outcome import Ties


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Columns for `Comparisons.from_codes`."""

    models: tuple[str, ...]
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    outcome: NDArray[np.int64]
    voter: NDArray[np.int64]
    prompt: NDArray[np.int64]
    features: NDArray[np.float64]

    def comparisons(self, **columns: Any) -> Comparisons:
        return Comparisons.from_codes(self.models, self.a, self.b, self.outcome, **columns)

    def taken(self, rows: NDArray[np.int64]) -> "Drawn":
        """Return some of the rows, in the order given, repeated where they are."""
        return Drawn(
            self.models,
            self.a[rows],
            self.b[rows],
            self.outcome[rows],
            self.voter[rows],
            self.prompt[rows],
            self.features[rows],
        )


def draw(
    rng: np.random.Generator,
    ties: Ties,
    *,
    n: int = 3000,
    theta: NDArray[np.float64] | None = None,
    tie: float = 0.5,
    order: float = 0.0,
    style: tuple[float, ...] = (),
    n_voters: int = 30,
    n_prompts: int = 40,
) -> Drawn:
    """Draw votes between random pairs; ``tie`` is the raw parameter of ties."""
    theta = np.linspace(-0.8, 0.8, 5) if theta is None else theta
    k = len(theta)
    a = rng.integers(k, size=n)
    b = (a + rng.integers(1, k, size=n)) % k
    features = rng.normal(0, 0.5, (n, len(style)))
    gap = theta[a] - theta[b] + order + features @ np.array(style)
    level = (theta[a] + theta[b]) / 2
    likelihood = LIKELIHOODS[ties]
    probabilities = [
        np.exp(-likelihood.loss(np.full(n, code), gap, tie, level).value)
        for code in likelihood.outcomes
    ]
    below = rng.random(n)[:, None] > np.cumsum(np.column_stack(probabilities), axis=1)[:, :-1]
    outcome = np.array(likelihood.outcomes)[below.sum(axis=1)]
    names = tuple(f"m{i}" for i in range(k))
    voter, prompt = rng.integers(n_voters, size=n), rng.integers(n_prompts, size=n)
    return Drawn(names, a, b, outcome, voter, prompt, features)
