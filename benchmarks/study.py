"""How long a study of a judge takes: a million verdicts, twenty thousand prompts, 100 models."""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

SEED = 20_240_607
OUTCOMES = np.array(["model_a", "tie", "model_b"], dtype=object)


def main() -> None:
    """Make the files, study them, and print the seconds of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--votes", type=int, default=300_000)
    parser.add_argument("--prompts", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        votes, verdicts = Path(folder) / "votes.parquet", Path(folder) / "verdicts.parquet"
        make(asked, votes, verdicts)
        report(str(votes), str(verdicts), asked.rounds)


def report(votes: str, verdicts: str, rounds: int) -> None:
    """Study two files part by part."""
    from judge.studies.one_judge import study_judges
    from judge.studies.options import StudyOptions

    began = last = now()
    part = ""

    def progress(done: int, of: int, so_far: str = "") -> None:
        nonlocal last, part
        if part:
            show(part, last)
        last, part = now(), so_far.removeprefix(", ")

    study_judges(votes, verdicts, StudyOptions(rounds=rounds), progress)
    progress(0, 0)
    show("in all", began)


def now() -> tuple[float, float]:
    """Give the seconds on the clock, and those that this process computed."""
    return time.perf_counter(), time.process_time()


def show(part: str, since: tuple[float, float]) -> None:
    """Print the seconds of a part."""
    clock, computed = (new - old for new, old in zip(now(), since, strict=True))
    print(f"{part:<40}{clock:8.2f} s, computing {computed:6.2f} s", flush=True)


def make(asked: argparse.Namespace, votes: Path, verdicts: Path) -> None:
    """Write verdicts on items drawn at random, and votes of people on the first of them."""
    rng = np.random.default_rng(SEED)
    n, models = asked.verdicts, asked.models
    strength = rng.normal(0, 1, models)
    a = rng.integers(models, size=n)
    b = (a + rng.integers(1, models, size=n)) % models
    prompt = rng.integers(asked.prompts, size=n)
    hard = rng.normal(0, 0.7, (asked.prompts, 2))
    len_a, len_b = (np.exp(rng.normal(6, 0.7, n)).astype(np.int64) + 1 for _ in "ab")
    gap = strength[a] - strength[b] + hard[prompt] @ [1.0, -1.0]
    length = np.log2(len_a / len_b)
    columns = {
        "prompt_id": np.char.add("p", prompt.astype(str)).astype(object),
        "model_a": np.char.add("m", a.astype(str)).astype(object),
        "model_b": np.char.add("m", b.astype(str)).astype(object),
        "len_a": len_a,
        "len_b": len_b,
    }
    winner = outcomes_of(rng, gap + 0.3 * length + 0.2)
    write({**columns, "winner": winner, "judge": np.full(n, "judge", dtype=object)}, verdicts)
    voted = np.repeat(np.arange(asked.votes // 2), 2)
    voter = np.char.add("v", (rng.pareto(1.3, len(voted)) * 40).astype(int).astype(str))
    people = {name: values[voted] for name, values in columns.items() if name[:3] != "len"}
    winner = outcomes_of(rng, gap[voted])
    write({**people, "winner": winner, "voter": voter.astype(object)}, votes)


def outcomes_of(rng: np.random.Generator, gap: NDArray[np.float64]) -> NDArray[Any]:
    """Draw an outcome a row, one in six a tie."""
    wins = rng.random(len(gap)) < 1 / (1 + np.exp(-gap))
    return OUTCOMES[np.where(rng.random(len(gap)) < 1 / 6, 1, np.where(wins, 0, 2))]


def write(columns: dict[str, NDArray[Any]], path: Path) -> None:
    """Write a table of Parquet."""
    with duckdb.connect() as connection:
        connection.register("made", columns)
        connection.execute(f"COPY (SELECT * FROM made) TO '{path}' (FORMAT parquet)")


if __name__ == "__main__":
    main()
