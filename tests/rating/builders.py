"""Comparisons written down in a test."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rating import Comparisons, Fit

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return read


def votes(rows: Sequence[Sequence[str]]) -> Comparisons:
    """Comparisons from (model_a, model_b, outcome) or (model_a, model_b, outcome, voter)."""
    if not rows:
        return Comparisons.from_arrays([], [], [])
    columns = list(zip(*rows, strict=True))
    voter = columns[3] if len(columns) == 4 else None
    return Comparisons.from_arrays(columns[0], columns[1], columns[2], voter=voter)


def wins(counts: Iterable[tuple[str, str, int]]) -> Comparisons:
    """Comparisons from (winner, loser, times)."""
    return votes([(w, loser, "model_a") for w, loser, times in counts for _ in range(times)])


def random_votes(
    rng: np.random.Generator, *, n: int = 400, n_models: int = 5, n_voters: int = 20
) -> list[tuple[str, str, str, str]]:
    """Votes of every outcome among equal models: identified, as every pair meets often."""
    a = rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    outcome = rng.choice(["model_a", "model_b", "tie", "both_bad"], size=n, p=[0.5, 0.3, 0.1, 0.1])
    voter = rng.integers(n_voters, size=n)
    return [
        (f"m{i}", f"m{j}", str(o), f"v{v}")
        for i, j, o, v in zip(a, b, outcome, voter, strict=True)
    ]


def strength(fit: Fit) -> dict[str, float]:
    return dict(zip(fit.models, fit.theta.tolist(), strict=True))
