"""Votes in categories, drawn from known strengths, and the published ones by category."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from rating import Comparisons, Votes, read_groups
from rating.tables.columns import Columns, Reading

Floats = NDArray[np.float64]
SHARES = (0.30, 0.20, 0.15, 0.10, 0.10, 0.07, 0.05, 0.03)
NAMES = tuple("abcdefgh")


@dataclass(frozen=True)
class World:
    """Strengths by category (nats, each summing to zero) and votes drawn from them."""

    strengths: Floats
    groups: dict[str, Votes]


def planted(
    rng: np.random.Generator,
    tau: float | Floats,
    *,
    n_models: int = 12,
    n_votes: int = 3000,
    n_voters: int = 300,
    taste: float = 0.4,
    shares: tuple[float, ...] = SHARES,
    n_prompts: int = 0,
    suit: float = 0.0,
) -> World:
    """Draw categories again, each with its share of the votes; pairs are uniform.

    Each category has so many prompts, if any, that ``suit`` each model by nats more or less.
    """
    theta = np.linspace(-0.8, 0.8, n_models)
    deviation = rng.normal(0, np.reshape(tau, (-1, 1)), (len(shares), n_models))
    liking = theta + rng.normal(0, taste, (n_voters, n_models))
    category = rng.choice(len(shares), n_votes, p=np.array(shares) / sum(shares))
    voter = rng.integers(n_voters, size=n_votes)
    a = rng.integers(n_models, size=n_votes)
    b = (a + rng.integers(1, n_models, size=n_votes)) % n_models
    gap = liking[voter, a] - liking[voter, b]
    gap += deviation[category, a] - deviation[category, b]
    prompt = rng.integers(n_prompts, size=n_votes) if n_prompts else np.zeros(n_votes, dtype=int)
    if n_prompts:
        suits = rng.normal(0, suit, (len(shares), n_prompts, n_models))
        gap += suits[category, prompt, a] - suits[category, prompt, b]
    outcome = np.where(rng.random(n_votes) < 1 / (1 + np.exp(-gap)), 0, 1)
    models = [f"m{i:02}" for i in range(n_models)]
    people = [f"v{i:03}" for i in range(n_voters)]
    groups = {}
    for number, name in enumerate(NAMES[: len(shares)]):
        own = category == number
        used, index = np.unique(voter[own], return_inverse=True)
        asked = prompt[own] if n_prompts else None
        data = Comparisons.from_codes(
            models, a[own], b[own], outcome[own], voter=index, prompt=asked
        )
        groups[name] = Votes(data, voters=tuple(people[i] for i in used), read=int(own.sum()))
    strengths = theta + deviation
    return World(strengths - strengths.mean(axis=1, keepdims=True), groups)


def mtbench(published: Path, target: Path) -> Path:
    """Write the votes of MT-bench with the category of each prompt."""
    folder = published / "votes" / "mtbench"
    duckdb.execute(
        "copy (select votes.*, q.category from read_parquet($votes) votes"
        " join read_json($questions) q on votes.prompt_id = cast(q.question_id as varchar))"
        " to $target (format parquet)",
        {
            "votes": str(folder / "votes.parquet"),
            "questions": str(folder / "mt_bench_questions.jsonl"),
            "target": str(target),
        },
    )
    return target


def read(file: Path) -> dict[str, Votes]:
    """Read votes by category, with prompts."""
    return read_groups(file, Reading(columns=Columns(by="category"), prompts=True, both_bad="tie"))
