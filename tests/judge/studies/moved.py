"""Votes and verdicts on the same items, moved by planted positions, lengths and favours."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judge.studies.rows import Items, Labels

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mover:
    """What moves one source, in nats; ``scale`` stretches the strengths.

    ``favours`` is the sd of a liking of its own for each model, drawn again for every study.
    """

    position: float = 0.0
    length: float = 0.0
    favour: float = 0.0
    scale: float = 1.0
    favours: float = 0.0


@dataclass(frozen=True, slots=True)
class MovedStudy:
    """A study whose judge and people are moved as planted; the last model is the judge's own."""

    people: Mover = Mover()
    judge: Mover = Mover()
    n_models: int = 8
    n_prompts: int = 100
    n: int = 2000
    tie_rate: float = 0.2
    shared: float = 0.5

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"m{i}" for i in range(self.n_models))

    @property
    def strengths(self) -> Floats:
        return np.linspace(-0.8, 0.8, self.n_models)

    def draw(self, rng: np.random.Generator) -> tuple[Items, Labels, Labels]:
        a = rng.integers(self.n_models, size=self.n)
        b = (a + rng.integers(1, self.n_models, size=self.n)) % self.n_models
        pairs = np.sort(np.column_stack([a, b]), axis=1)
        prompt = rng.integers(self.n_prompts, size=self.n)
        gap = rng.normal(size=self.n)
        liking = self.shared * rng.normal(size=(self.n_prompts, self.n_models))
        items = Items(self.models, pairs, prompt, {"length": gap})
        suits = liking[prompt, pairs[:, 0]] - liking[prompt, pairs[:, 1]]
        drawn = [self._labels(rng, items, suits, mover) for mover in (self.people, self.judge)]
        return items, drawn[0], drawn[1]

    def _labels(self, rng: np.random.Generator, items: Items, suits: Floats, by: Mover) -> Labels:
        first = rng.choice(np.array([-1, 1], dtype=np.int8), self.n)
        theta = by.scale * self.strengths
        theta[-1] += by.favour
        if by.favours:
            theta += rng.normal(0, by.favours, self.n_models)
        logit = theta[items.pairs[:, 0]] - theta[items.pairs[:, 1]] + suits
        logit = logit + by.position * first + by.length * items.gaps["length"]
        label = np.where(rng.random(self.n) < 1 / (1 + np.exp(-logit)), 1, -1)
        label[rng.random(self.n) < self.tie_rate] = 0
        return replace(Labels.of_one_rater(np.arange(self.n), label), first=first)
