"""`arena judge score` without a method: what the file says, or what its columns tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, refused
from tests.sqlite import new_sqlite

ANSWERS = {"basalt": 12, "flint": 3, "quartz": 30}
SCORED = {
    "pairwise": ("pairwise", "win_rate"),
    "alpaca_eval_sampled": ("alpaca_eval", "win_rate"),
    "alpaca_eval_verbal": ("alpaca_eval", "win_rate"),
    "arena_hard": ("arena_hard", "score"),
    "wildbench_reward": ("wildbench_reward", "score"),
    "wildbench_score": ("wildbench", "score"),
    "rubric": ("marks", "score"),
    "checklist": ("marks", "score"),
}


REWARD = {"session_id": "s", "model_A": "x", "model_B": "y", "winner": "x", "extent": 2}
JUDGED: dict[str, Any] = {"user_prompt": "?", "judgment": "!", "judge": ["j", "single-v1"]}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with outputs of three models and a rubric."""
    new_sqlite(tmp_path)
    (tmp_path / "rubric.txt").write_text("10 is long.", encoding="utf-8")
    for model, words in ANSWERS.items():
        rows = [
            {"instruction": f"{n}?", "output": f"{n}: " + "word " * words, "generator": model}
            for n in range(4)
        ]
        write(tmp_path / f"{model}.jsonl", rows)
    return tmp_path


def run(command: Command, method: str, out: str, *cases: str) -> None:
    rubric = ("--rubric", "rubric.txt") if method == "rubric" else ()
    words = [word for case in cases for word in ("--cases", case)]
    judge = ("--judge", "pocket-judge", "--out", out)
    result = command("judge", "run", "--method", method, *judge, *words, *rubric)
    assert result.returncode == 0, result.stderr


def scored(command: Command, *words: str) -> dict[str, Any]:
    result = command("judge", "score", *words, "--format", "json")
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", SCORED)
def test_what_a_run_writes_is_scored_by_its_method(
    method: str, command: Command, folder: Path
) -> None:
    expected, value = SCORED[method]
    for file in ("out.csv", "out.parquet"):
        run(command, method, file, "quartz.jsonl", "flint.jsonl")
    report = scored(command, "out.csv")
    assert report["method"] == expected
    rows = {row["model"]: row for row in report["models"]}
    assert rows["quartz"][value] > (rows["flint"][value] if "flint" in rows else 0)
    assert rows["quartz"]["n"] in (4, 8)
    assert report == scored(command, "out.parquet", "--method", expected)
    assert "quartz" in command("judge", "score", "out.parquet", COLUMNS="200").stdout


def test_verdicts_of_a_run_have_the_lengths_that_the_length_control_takes(
    command: Command, folder: Path
) -> None:
    run(command, "alpaca_eval_sampled", "out.csv", "quartz.jsonl", "flint.jsonl")
    (row,) = scored(command, "out.csv")["models"]
    assert row["avg_length"] == len("1: " + "word " * 30)


def test_several_baselines_are_no_single_score_but_a_reward_each(
    command: Command, folder: Path
) -> None:
    cases = ("quartz.jsonl", "flint.jsonl", "basalt.jsonl")
    run(command, "arena_hard", "out.csv", *cases)
    refused(command("judge", "score", "out.csv"), "'basalt', 'flint'", "--method pairwise")
    assert scored(command, "out.csv", "--method", "pairwise")["method"] == "pairwise"
    run(command, "wildbench_reward", "rewards.csv", *cases)
    rewards = scored(command, "rewards.csv")["models"]
    pairs = [(row["model"], row["baseline"]) for row in rewards]
    assert pairs == [("quartz", "basalt"), ("quartz", "flint")]
    assert len({row["mix"] for row in rewards}) == 1
    assert all(-1 <= row["lower"] <= row["score"] <= row["upper"] <= 1 for row in rewards)


def test_another_method_than_the_file_s_and_several_at_once_are_refused(
    command: Command, folder: Path
) -> None:
    run(command, "arena_hard", "one.jsonl", "quartz.jsonl", "flint.jsonl")
    refused(
        command("judge", "score", "one.jsonl", "--method", "alpaca_eval"),
        "verdicts for arena_hard, not for 'alpaca_eval'",
    )
    run(command, "pairwise", "two.jsonl", "quartz.jsonl", "flint.jsonl")
    both = ("judge", "score", "one.jsonl", "two.jsonl")
    result = command(*both)
    assert result.returncode == 2
    assert "holds several methods ('arena_hard', 'pairwise')" in result.stderr
    chosen = scored(command, *both[2:], "--where", "method = 'pairwise'")
    assert chosen["method"] == "pairwise"


@pytest.mark.parametrize(
    ("row", "method"),
    [
        ({"model_a": "x", "model_b": "y", "winner": "tie"}, "pairwise"),
        ({"model": "x", "idx": 1, "preference": 1.5}, "alpaca_eval"),
        ({"model": "x", "session_id": "s", "score": 7}, "wildbench"),
        ({"model": "x", "score": 7}, "marks"),
        ({"llm": "x", "label": "1", "w_ab": "1", "w_ba": "2"}, "llmbar"),
        (REWARD, "wildbench_reward"),
        (JUDGED | {"question_id": 1, "model": "x", "turn": 2, "score": -1}, "marks"),
    ],
)
def test_other_files_are_known_by_their_columns(
    row: dict[str, Any], method: str, command: Command, folder: Path
) -> None:
    report = scored(command, write(folder / "rows.jsonl", [row]))
    assert report["method"] == method


def test_what_cannot_be_told_names_the_columns_and_the_methods(
    command: Command, folder: Path
) -> None:
    file = write(folder / "rows.jsonl", [{"colour": "red"}])
    refused(command("judge", "score", file), "'colour'", "--method", "wildbench_reward")


def test_marks_of_both_turns_are_averaged_by_turn_and_a_failed_one_is_no_mark(
    command: Command, folder: Path
) -> None:
    marks = {(1, 1): 8, (1, 2): 6, (2, 1): 4, (2, 2): -1}
    rows = [
        JUDGED | {"model": "x", "question_id": question, "turn": turn, "score": mark}
        for (question, turn), mark in marks.items()
    ]
    report = scored(command, write(folder / "rows.jsonl", rows))
    (row,) = report["models"]
    assert (row["n"], row["score"], row["turn_1"], row["turn_2"]) == (3, 6.0, 6.0, 6.0)
    assert "'x': 1 of 4 rows have no" in report["warnings"][0]
