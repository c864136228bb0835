"""`arena judge score`, as it is typed."""

import json
from pathlib import Path

import pytest

from tests.command import Command, examples, refused

ANNOTATIONS = """model,idx,preference,len_base,len_model
basalt,0,1.9,100,140
basalt,1,1.2,200,150
basalt,2,1.8,300,310
"""
VERDICTS = """prompt_id,model_a,model_b,winner
p1,basalt,flint,model_a
p2,basalt,flint,tie
p3,flint,basalt,
"""
SCORES = """model,session_id,score,tags
basalt,s1,8,Planning
flint,s1,,Planning
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the examples name."""
    for name, text in (("annotations", ANNOTATIONS), ("verdicts", VERDICTS), ("scores", SCORES)):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_examples_run_as_table_and_as_json(command: Command, folder: Path) -> None:
    table, in_json = [command(*words, COLUMNS="120") for words in examples("judge score")]
    assert (table.returncode, table.stderr) == (0, "")
    assert "63.33 ± 21.86" in table.stdout
    assert "! The length control has no difficulties" in table.stdout
    assert (in_json.returncode, in_json.stderr) == (0, "")
    result = json.loads(in_json.stdout)
    assert list(result) == ["method", "models", "warnings"]
    assert [row["win_rate"] for row in result["models"]] == [75, 25]
    assert result["warnings"] == ["1 of 3 rows have no verdict: excluded, not ties."]


def test_scores_go_to_a_file_and_what_is_undefined_is_no_number(
    command: Command, folder: Path
) -> None:
    done = command("judge", "score", "scores.csv", "--method", "wildbench", "--out", "scores.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    basalt, flint = json.loads((folder / "scores.json").read_text())["models"]
    assert (basalt["score"], basalt["adjusted"]) == (8, 6)
    assert (flint["n"], flint["score"]) == (0, None)
    words = ("judge", "score", "scores.csv", "--method", "wildbench")
    head, first, last = (
        [cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]]
        for line in command(*words, COLUMNS="120").stdout.splitlines()[1:5]
        if "━" not in line
    )
    assert head == ["Model", "Rows", "1–10 mean", "WB-Score", "Task macro"]
    assert first == ["basalt", "1", "8.00", "6.00", "–"]
    assert last == ["flint", "0", *"–––"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("verdicts.csv --method elo", "There is no method 'elo'"),
        ("verdicts.csv --method pairwise --format csv", '"csv" for --format'),
        ("verdicts.csv --method pairwise --format table --out x.txt", "'x.txt'"),
        ("verdicts.csv --method pairwise --order", "--order is for --method alpaca_eval"),
        ("verdicts.csv --method wildbench", "There is no column 'score'"),
        ("verdicts.csv --method pairwise --out no/x.json", "Cannot write 'no/x.json'"),
        ("nothing.csv --method pairwise", "'nothing.csv'"),
    ],
)
def test_what_cannot_be_scored_is_one_clear_line(
    command: Command, folder: Path, words: str, message: str
) -> None:
    refused(command("judge", "score", *words.split()), message)
