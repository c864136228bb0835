"""Annotations drawn from a known logistic model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.scoring.length_control import Annotated, length_term

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Annotations of several models on the same instructions, model after model."""

    models: tuple[Annotated, ...]
    difficulty: Floats
    truth: Floats

    def stacked(self) -> tuple[Ints, Ints, Floats, Floats, Floats]:
        """Return model, instruction, share, length term and order of all rows."""
        sizes = [len(one.share) for one in self.models]
        orders = [one.order for one in self.models if one.order is not None]
        return (
            np.repeat(np.arange(len(sizes)), sizes),
            np.concatenate([one.instruction for one in self.models]),
            np.concatenate([one.share for one in self.models]),
            np.concatenate([length_term(one.length_gap) for one in self.models]),
            np.concatenate(orders),
        )


def leaderboard(
    rng: np.random.Generator,
    *,
    n_models: int = 6,
    n: int = 200,
    soft: bool = True,
    order_effect: float = 0.0,
) -> Leaderboard:
    """Draw a leaderboard; ``truth`` holds the length-controlled win rates in per cent."""
    difficulty = rng.normal(0, 1.3, n)
    order = rng.choice([-0.5, 0.5], n)
    strength = np.linspace(-1.5, 1, n_models)
    models, truth = [], []
    for theta in strength:
        gap = rng.normal(200, 800, n)
        logit = theta - 1.5 * length_term(gap) + 0.9 * difficulty + order_effect * order
        probability = 1 / (1 + np.exp(-logit))
        share = (
            rng.beta(8 * probability, 8 * (1 - probability))
            if soft
            else rng.binomial(1, probability) * 1.0
        )
        models.append(Annotated(share, gap, np.arange(n), order))
        flat = [theta + 0.9 * difficulty + order_effect * side for side in (0.5, -0.5)]
        truth.append(100 * np.mean(1 / (1 + np.exp(-np.array(flat)))))
    return Leaderboard(tuple(models), difficulty, np.array(truth))


def resampled(data: Annotated, at: Ints) -> Annotated:
    """Return the rows of some instructions, each drawn one being an instruction of its own."""
    order = None if data.order is None else data.order[at]
    return Annotated(data.share[at], data.length_gap[at], np.arange(len(at)), order)
