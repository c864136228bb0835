"""Votes to rate: made from a seed, and written as Parquet."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 2_000_000
OUTCOMES = ("model_a", "model_b", "tie")
STYLES = ("tokens", "headers", "lists", "bold")
STYLE_NATS = np.array([0.30, 0.10, 0.15, -0.05])
STRENGTH_SD = 0.6
TIE_NATS = 0.66
"""Rao-Kupper threshold at which about 30 % of the votes are ties."""
VOTES_PER_VOTER = 12


@dataclass(frozen=True, slots=True)
class Size:
    """How many votes on how many models; popularity spans a factor of ``exp(skew)``."""

    votes: int
    models: int
    skew: float = 4.0

    @property
    def voters(self) -> int:
        """Return how many people may vote."""
        return max(self.votes // VOTES_PER_VOTER, 10)


SIZES = {
    "tiny": Size(5_000, 100, skew=2.0),  # so that no model won, or lost, everything
    "a": Size(200_000, 100),
    "b": Size(2_000_000, 200),
    "c": Size(20_000_000, 300),
}


def made(folder: Path, name: str, seed: int) -> Path:
    """Write the votes of a size, unless they are there; return the file."""
    path = folder / f"votes-{name}-{seed}.parquet"
    if path.exists():
        return path
    parts = _tables(SIZES[name], np.random.default_rng(seed))
    first = next(parts)
    unfinished = path.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
    unfinished.rename(path)
    return path


def _tables(size: Size, rng: np.random.Generator) -> Iterator[pa.Table]:
    models = [f"vendor-{m % 17}/model-{m:03d}-instruct" for m in range(size.models)]
    voters = [f"{name:016x}" for name in rng.integers(2**63, size=size.voters)]
    strength = rng.normal(0, STRENGTH_SD, size.models)
    popular = rng.permutation(np.exp(-np.linspace(0, size.skew, size.models)))
    busy = rng.lognormal(0, 1.4, size.voters)
    for first in range(0, size.votes, CHUNK):
        n = min(CHUNK, size.votes - first)
        a, b = pairs_of(popular / popular.sum(), n, rng)
        styles = rng.normal(0, [1.0, 0.8, 0.9, 0.5], (n, len(STYLES)))
        outcome = outcomes_of(strength[a] - strength[b] + styles @ STYLE_NATS, rng)
        voter = _drawn(busy / busy.sum(), n, rng)
        columns = {
            "model_a": pa.DictionaryArray.from_arrays(pa.array(a), models).cast(pa.string()),
            "model_b": pa.DictionaryArray.from_arrays(pa.array(b), models).cast(pa.string()),
            "winner": pa.DictionaryArray.from_arrays(pa.array(outcome), OUTCOMES).cast(
                pa.string()
            ),
            "voter": pa.DictionaryArray.from_arrays(pa.array(voter), voters).cast(pa.string()),
        }
        yield pa.table(columns | dict(zip(STYLES, styles.T, strict=True)))


def _drawn(probabilities: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.searchsorted(np.cumsum(probabilities), rng.random(n) * (1 - 1e-12)).clip(
        max=len(probabilities) - 1
    )


def pairs_of(
    probabilities: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two models by popularity, the second among the others."""
    a, b = _drawn(probabilities, n, rng), _drawn(probabilities, n, rng)
    while (same := np.flatnonzero(a == b)).size:
        b[same] = _drawn(probabilities, len(same), rng)
    return a, b


def outcomes_of(gap: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw outcomes by Rao and Kupper: a gap below the threshold may go unseen."""
    draw = rng.random(len(gap))
    wins_a = 1 / (1 + np.exp(TIE_NATS - gap))
    wins_b = 1 / (1 + np.exp(TIE_NATS + gap))
    return np.where(draw < wins_a, 0, np.where(draw > 1 - wins_b, 1, 2))
