"""Two studies of judges on published votes, or one on a simulated arena. `make study-demo`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from arena.cli import main as arena
from benchmarks.study import write

FOLDER = Path("study-demo")
SEED = 20_241_121
MODELS = ("basalt", "flint", "granite", "marl", "obsidian", "quartz", "slate", "umber")
VOTERS = 40
PROMPTS, ITEMS, VOTES = 150, 6, 3
SIDES = np.array(["model_a", "tie", "model_b"], dtype=object)
OPENINGS = ("It depends.", "In short: yes.", "There are two sides.", "Hardly.", "As a rule, no.")


def main() -> None:
    """Study what there is, and say where the reports are."""
    named = os.environ.get("PUBLISHED_DATA")
    votes = Path(named) / "votes" if named else None
    if votes is not None and votes.is_dir():
        published(votes)
    else:
        simulated()


def published(votes: Path) -> None:
    """Study the judges of LLMFAO and of MT-bench."""
    crowd, experts = votes / "llmfao", votes / "mtbench"
    texts = ["--outputs", f"{crowd}/outputs.jsonl", "--prompts", f"{crowd}/prompts.jsonl"]
    study(crowd / "votes.parquet", crowd / "judgments.parquet", "llmfao", *texts)
    asked = ["--by", "turn", "--voters", "expert_*"]
    asked += ["--prompts", f"{experts}/mt_bench_questions.jsonl"]
    study(experts / "votes.parquet", experts / "judgments.parquet", "mtbench", *asked)


def simulated() -> None:
    """Study four judges of known kinds on votes that are drawn from known strengths."""
    FOLDER.mkdir(exist_ok=True)
    votes, verdicts = FOLDER / "votes.parquet", FOLDER / "verdicts.parquet"
    make(np.random.default_rng(SEED), votes, verdicts)
    study(votes, verdicts, "simulated", "--by", "category")


def study(votes: Path, verdicts: Path, name: str, *words: object) -> None:
    """Run the command as it would be typed."""
    arguments = ["study", "judge", votes, verdicts, "--out", FOLDER / name, *words]
    arena([str(word) for word in arguments])


def make(rng: np.random.Generator, votes: Path, verdicts: Path) -> None:
    """Draw items, what people say of them, and what judges do."""
    n = PROMPTS * ITEMS
    prompt = np.repeat(np.arange(PROMPTS), ITEMS)
    pairs = np.array([(a, b) for a in range(len(MODELS)) for b in range(a)])
    drawn_pairs = [rng.choice(len(pairs), ITEMS, replace=False) for _ in range(PROMPTS)]
    a, b = rng.permuted(pairs[np.concatenate(drawn_pairs)], axis=1).T
    words = [np.clip(rng.normal(4.3, 0.6, n), 2.5, 6) for _ in "ab"]
    sizes = [np.exp(x).astype(int) for x in words]
    strength = np.linspace(-1.2, 1.2, len(MODELS))
    gap = strength[a] - strength[b] + rng.normal(0, 1.2, n)
    responses = [texts(rng, size) for size in sizes]
    long_a, long_b = ([len(text) for text in side] for side in responses)
    length = np.log2(np.array(long_a) / np.array(long_b))
    names = np.array(MODELS, dtype=object)
    columns: dict[str, Any] = {
        "prompt_id": np.array([f"p{number:03}" for number in prompt], dtype=object),
        "prompt": np.array([f"Question {number}: is it so?" for number in prompt], dtype=object),
        "category": np.array(["facts", "advice", "code"], dtype=object)[prompt % 3],
        "model_a": names[a],
        "model_b": names[b],
        "response_a": responses[0],
        "response_b": responses[1],
    }
    rows = np.repeat(np.arange(n), VOTES)
    taste = rng.normal(0, 0.3, (VOTERS, len(MODELS)))
    voter = rng.integers(VOTERS, size=len(rows))
    felt = gap[rows] + 0.2 * length[rows] + taste[voter, a[rows]] - taste[voter, b[rows]]
    winner = drawn(rng, felt, 0.35)
    people = {name: values[rows] for name, values in columns.items()}
    names_of = np.array([f"voter-{v:02}" for v in voter], dtype=object)
    write({**people, "winner": winner, "voter": names_of}, votes)
    judges: dict[str, Callable[[float], Any]] = {
        "careful": lambda first: gap + 0.2 * length,
        "wordy": lambda first: gap + 1.4 * length + 0.1 * first,
        "hasty": lambda first: 0.6 * gap + 0.9 * first,
        "longest": lambda first: 1000 * np.sign(length),
    }
    orders = [("ab", 1.0), ("ba", -1.0)]
    parts = [
        {
            **columns,
            "winner": drawn(rng, felt_by(first), 0.2),
            "judge": np.full(n, name, dtype=object),
            "order": np.full(n, order, dtype=object),
        }
        for name, felt_by in judges.items()
        for order, first in orders
    ]
    write({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, verdicts)


def texts(rng: np.random.Generator, sizes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Write something of so many words, some of it in bold."""
    answers = np.empty(len(sizes), dtype=object)
    for row, size in enumerate(sizes.tolist()):
        opening = OPENINGS[int(rng.integers(len(OPENINGS)))]
        bold = "**Note.** " if rng.random() < 0.3 else ""
        answers[row] = f"{opening} {bold}" + "word " * size
    return answers


def drawn(rng: np.random.Generator, gap: np.ndarray[Any, Any], tie: float) -> np.ndarray[Any, Any]:
    """Draw an outcome a row; what is felt as nearly equal is a tie."""
    felt = gap + rng.logistic(0, 1, len(gap))
    return SIDES[np.where(np.abs(felt) < tie, 1, np.where(felt > 0, 0, 2))]


if __name__ == "__main__":
    main()
