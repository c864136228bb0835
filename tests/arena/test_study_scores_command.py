"""`arena study scores`, as it is typed."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.command import Command, examples, refused

N = 12
NAMES = [f"m{i:02}" for i in range(N)]


def votes(folder: Path, *, n: int = 1500) -> Path:
    """Write votes on twelve models, each a little better than the last."""
    path = folder / "votes.csv"
    path.write_text(_cast(n), encoding="utf-8")
    return path


@cache
def _cast(n: int) -> str:
    rng = np.random.default_rng(3)
    lines = ["model_a,model_b,winner,voter"]
    for vote in range(n):
        a, b = rng.choice(N, 2, replace=False).tolist()
        won = rng.random() < 1 / (1 + np.exp(-0.3 * (a - b)))
        winner = "model_a" if won else "model_b"
        lines.append(f"{NAMES[a]},{NAMES[b]},{winner},v{vote % 60}")
    return "\n".join(lines) + "\n"


def table(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def good(folder: Path) -> Path:
    rows = [
        f"{name},{40 + i + 3 * (i % 2)},{'' if i % 2 else i},-" for i, name in enumerate(NAMES)
    ]
    return table(folder, "\n".join(["model,MMLU,GPQA,Empty", *rows[:-1], "else,1,1,1"]) + "\n")


def message(command: Command, *words: object) -> dict[str, Any]:
    result = command("study", "scores", *map(str, words), "--format", "json", "--rounds", "200")
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_every_column_is_correlated_with_the_ratings_of_the_votes(
    command: Command, tmp_path: Path
) -> None:
    report = message(command, good(tmp_path), votes(tmp_path))
    rates = report["mean_win_rate"]
    assert "adding a copy of one" in rates["warning"]
    assert len(rates["models"]) == N
    assert list(report["columns"]) == ["MMLU", "GPQA", "Empty"]
    assert [one["n"] for one in report["columns"].values()] == [11, 6, 0]
    rated = command("rate", "votes.csv", "--format", "json")
    points = {row["model"]: row["rating"] for row in json.loads(rated.stdout)["ratings"]}
    scores = [40 + i + 3 * (i % 2) for i in range(N - 1)]
    want = spearmanr([points[name] for name in NAMES[:-1]], scores).statistic
    mmlu = report["columns"]["MMLU"]["spearman"]
    assert mmlu["value"] == pytest.approx(want)
    assert mmlu["lower"] <= mmlu["value"] <= mmlu["upper"]
    assert mmlu["other_models"]["lower"] < mmlu["lower"]


def test_what_is_missing_is_null_and_said_and_no_name_is_dropped_silently(
    command: Command, tmp_path: Path
) -> None:
    report = message(command, good(tmp_path), votes(tmp_path))
    assert report["unmatched"] == {"scores": ["else"], "board": [NAMES[-1]]}
    empty = report["columns"]["Empty"]["kendall"]
    ends = {"lower": None, "upper": None}
    assert empty == ends | {"value": None, "other_models": ends}
    warnings = " ".join(report["warnings"])
    assert "Empty: 0 models have a score and a rating" in warnings
    assert "GPQA: A correlation over 6 models says little" in warnings
    assert "they have scores but no rating: else." in warnings
    assert f"they have a rating but no scores: {NAMES[-1]}." in warnings


def test_a_board_that_was_written_gives_the_same_as_its_votes(
    command: Command, tmp_path: Path
) -> None:
    scores = good(tmp_path)
    of_votes = message(command, scores, votes(tmp_path))
    command("rate", "votes.csv", "--out", "board.json")
    assert message(command, scores, "board.json") == of_votes


def test_a_board_without_errors_gives_no_intervals_and_says_so(
    command: Command, tmp_path: Path
) -> None:
    scores = good(tmp_path)
    votes(tmp_path)
    command("rate", "votes.csv", "--out", "board.json")
    board = json.loads((tmp_path / "board.json").read_text())
    for row in board["ratings"]:
        row["quasi_se"] = None
    table(tmp_path, json.dumps(board), "no_quasi.json")
    report = message(command, scores, "no_quasi.json")
    assert "taken as independent" in " ".join(report["warnings"])
    assert report["columns"]["MMLU"]["spearman"]["lower"] is not None
    board["ratings"][0]["se"] = None
    table(tmp_path, json.dumps(board), "no_se.json")
    report = message(command, scores, "no_se.json")
    assert "no intervals for these models" in " ".join(report["warnings"])
    assert report["columns"]["MMLU"]["spearman"]["lower"] is None
    assert report["columns"]["MMLU"]["spearman"]["value"] is not None


def test_a_folder_holds_a_report_that_loads_nothing(command: Command, tmp_path: Path) -> None:
    good(tmp_path)
    votes(tmp_path)
    words = ("--seed", "7", "--rounds", "200")
    result = command("study", "scores", "scores.csv", "votes.csv", "--out", "study", *words)
    assert result.stdout == "The report is study/scores.html.\n"
    assert sorted(file.name for file in (tmp_path / "study").iterdir()) == [
        f"scores.{ending}" for ending in ("html", "json", "md", "parquet", "tex")
    ]
    page = (tmp_path / "study" / "scores.html").read_text()
    assert page.count("<svg") == 2  # none of the column without a score
    assert f"<title>{NAMES[0]}</title>" in page
    assert not re.search(r'(?:src|href)="(?!#)|url\(', page)
    assert "arena study scores scores.csv votes.csv --rounds 200 --seed 7 --out study" in page
    for wanted in ("Scores are taken as exact", "MMLU", "no rating: else."):
        assert wanted in page
        assert wanted in (tmp_path / "study" / "scores.md").read_text()


def test_a_column_of_something_else_is_left_out_and_named(
    command: Command, tmp_path: Path
) -> None:
    rows = [f"{name},{i},Stone Works" for i, name in enumerate(NAMES)]
    table(tmp_path, "\n".join(["model,MMLU,maker", *rows]))
    report = message(command, "scores.csv", votes(tmp_path))
    assert list(report["columns"]) == ["MMLU"]
    excluded = "'maker' is excluded: it holds 'Stone Works'"
    assert any(excluded in message for message in report["warnings"])


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("model,MMLU\nm00,1\nm00,2\n", (), "Row 2 of 'scores.csv' has model 'm00' again"),
        ("model,maker\nm00,x\n", (), "no column of numbers"),
        ("name,MMLU\nm00,1\n", (), "no column 'model'"),
        ("model,MMLU\nM-0,1\nM-1,2\n", (), "No model of 'scores.csv' is on the board"),
        ("model,MMLU\nM-0,1\n", (), "and 7 more."),
        ("model,MMLU\nm00,1\n", ("--rounds", "1"), "--rounds 1 is too few"),
        ("model,MMLU\nm00,1\n", ("--level", "95"), "--level 95 is no level"),
        ("model,MMLU\nm00,1\n", ("--format", "pdf"), '"pdf" for --format'),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name(
    command: Command, tmp_path: Path, text: str, words: tuple[str, ...], wanted: str
) -> None:
    table(tmp_path, text)
    votes(tmp_path, n=300)
    refused(command("study", "scores", "scores.csv", "votes.csv", *words), wanted)


def test_the_examples_of_its_help_can_be_typed(command: Command, tmp_path: Path) -> None:
    good(tmp_path).rename(tmp_path / "benchmarks.csv")
    votes(tmp_path)
    rows = [f"{name},{1000 + i},{i}" for i, name in enumerate(NAMES)]
    table(tmp_path, "\n".join(["model,elo,other", *rows]) + "\n", "published.csv")
    for words in examples("study scores"):
        assert command(*words).returncode == 0, words


def test_two_tables_are_compared_with_their_intervals(command: Command, tmp_path: Path) -> None:
    rows = [f"{name},{i},{i - 0.4},{i + 0.4},{i % 5}" for i, name in enumerate(NAMES)]
    table(tmp_path, "\n".join(["model,MMLU,MMLU_lower,MMLU_upper,GPQA", *rows]) + "\n")
    reference = [f"{name},{1000 + i},{995 + i},{1005 + i}" for i, name in enumerate(NAMES)]
    table(tmp_path, "\n".join(["model,elo,elo_lower,elo_upper", *reference]) + "\n", "b.csv")
    report = message(command, "scores.csv", "--with", "b.csv", "--top", "4")
    assert report["top"] == 4
    mmlu = report["columns"]["MMLU"]
    assert mmlu["pearson_top"] == pytest.approx(1)
    pairs = mmlu["separability"]
    assert (pairs["n"], pairs["overlap"]["separated"]) == (N, 1)
    assert pairs["overlap"]["agreement_over_all"] == pytest.approx(1 / 66)  # gaps above 10
    assert pairs["pairwise"]["separated_by_reference"] == pytest.approx(10 / 66)  # above 7.07
    assert len(pairs["overlap"]["left_out"]) == 65
    assert report["columns"]["GPQA"]["separability"]["overlap"]["separated"] is None
    words = ("scores.csv", "--with", "b.csv", "--rounds", "100", "--out", "study")
    assert command("study", "scores", *words).returncode == 0
    page = (tmp_path / "study" / "scores.html").read_text("utf-8")
    assert "arena study scores scores.csv --with b.csv --against elo" in page
    assert "Separated by the ratings" in page
    assert "MMLU: 65 pairs that the ratings do not separate are excluded" in page
    assert f"count 0 over all pairs: {NAMES[0]} and {NAMES[1]}, " in page
    assert "adding a copy of one changes the others" in page


def test_opposite_orders_of_which_both_are_sure_are_named(
    command: Command, tmp_path: Path
) -> None:
    table(tmp_path, "model,p,p_se\nx,3,.1\ny,2,.1\nz,1,.1\n")
    table(tmp_path, "model,q,q_se\nx,30,1\ny,10,1\nz,20,1\n", "b.csv")
    pairs = message(command, "scores.csv", "--with", "b.csv")["columns"]["p"]["separability"]
    assert pairs["overlap"]["opposite"] == [["z", "y"]]
    words = ("scores.csv", "--with", "b.csv", "--rounds", "100", "--format", "md")
    shown = command("study", "scores", *words).stdout
    assert ("order 1 pair in significantly opposite ways, the first being") in shown
    assert "ahead by the ratings: z and y" in shown


@pytest.mark.parametrize("words", [(), ("votes.csv", "--with", "scores.csv")])
def test_a_board_or_a_table_is_named_and_not_both(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    good(tmp_path)
    votes(tmp_path, n=300)
    refused(command("study", "scores", "scores.csv", *words), "not both")
