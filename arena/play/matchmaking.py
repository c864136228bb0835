"""Who meets whom: a pair, its exact probability, and the sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from arena.domain.battle import Sampler
from arena.domain.model import Model

VERSION = "1"
"""Logged with each battle; raise it when a sampler's probabilities change."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A pair of models on its sides.

    Attributes
    ----------
    pair_probability : float
        Chance of this unordered pair among the candidates, for inverse-probability weights.
    side_seed : int
        Seed from which `sides` puts the pair on its sides.
    """

    a: Model
    b: Model
    pair_probability: float
    side_seed: int


def draw_pair(candidates: Sequence[Model], sampler: Sampler, rng: Random) -> Draw:
    """Draw two different models and put them on sides by a logged seed.

    Raises
    ------
    ValueError
        If there are fewer than two candidates with a positive weight.
    """
    pairs = list(combinations(candidates, 2))
    weights = [_weight(sampler, *pair) for pair in pairs]
    if not any(weights):
        msg = f"A battle needs two models that may be drawn, got {len(candidates)}."
        raise ValueError(msg)
    chosen = rng.choices(range(len(pairs)), weights)[0]
    seed = rng.getrandbits(31)
    a, b = sides(pairs[chosen], seed)
    return Draw(a, b, weights[chosen] / sum(weights), seed)


def draw_one(candidates: Sequence[Model], sampler: Sampler, rng: Random) -> Model:
    """Draw a model to take the place of one that failed; zero weights come last."""
    weights = [1.0 if sampler is Sampler.UNIFORM else model.weight for model in candidates]
    return rng.choices(candidates, weights if any(weights) else None)[0]


def sides(pair: tuple[Model, Model], seed: int) -> tuple[Model, Model]:
    """Put a pair on sides A and B: the same seed gives the same sides."""
    first, second = sorted(pair, key=lambda model: model.id)
    return (first, second) if Random(seed).random() < 0.5 else (second, first)  # noqa: S311


def _weight(sampler: Sampler, first: Model, second: Model) -> float:
    return 1.0 if sampler is Sampler.UNIFORM else first.weight * second.weight
