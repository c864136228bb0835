"""`arena study truth`, as it is typed: the keys of its JSON are explained."""

import json

import pytest

from tests.command import Command, examples, refused, unexplained


@pytest.fixture
def files(command: Command) -> Command:
    """The pairs of the documented example, with their verdicts in both orders."""
    labels = ["A>B", "B>A"] * 15
    same = {"response_a": "a", "response_b": "b", "source": "x"}
    pairs = [
        same | {"prompt": f"Question {i}?", "battle_id": f"b{i}", "label": label}
        for i, label in enumerate(labels)
    ]
    rows = ["battle_id,judge,order,winner"]
    for i, label in enumerate(labels):
        right = "model_a" if label == "A>B" else "model_b"
        for order, first in (("ab", "model_a"), ("ba", "model_b")):
            rows += [f"b{i},owl,{order},{right}", f"b{i},crow,{order},{first}"]
    (command.folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), "utf-8")
    (command.folder / "verdicts.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return command


def test_the_examples_say_how_often_a_judge_is_right(files: Command) -> None:
    table, in_json = [files(*words, COLUMNS="160") for words in examples("study truth")]
    assert (table.returncode, table.stderr) == (0, "")
    text = " ".join(table.stdout.split())
    assert "owl: The judge names the right side in 100% (89–100) of its verdicts" in text
    assert "crow minus owl" in text
    assert "nothing here describes people" in text
    report = json.loads(in_json.stdout)
    keys = [key for key in report["judges"][0] if key not in ("judge", "part")]
    assert unexplained("Accuracy against labels", report, keys, report["pairs"][0]) == []


def test_the_report_leads_to_its_command(files: Command) -> None:
    words = ("study", "truth", "verdicts.csv", "--truth", "pairs.jsonl", "--by", "source")
    assert files(*words, "--out", "report").returncode == 0
    html = (files.folder / "report" / "truth.html").read_text("utf-8")
    assert "arena study truth verdicts.csv --truth pairs.jsonl --by source --out report" in html
    assert (files.folder / "report" / "truth.parquet").exists()


def test_columns_of_either_file_are_renamed(files: Command) -> None:
    path = files.folder / "pairs.jsonl"
    path.write_text(path.read_text("utf-8").replace('"label"', '"gold"'), "utf-8")
    words = ("study", "truth", "verdicts.csv", "--truth", "pairs.jsonl", "--format", "json")
    refused(files(*words), "no column 'label'")
    report = json.loads(files(*words, "--column", "label=gold").stdout)
    assert report["cases"] == 30


def test_what_cannot_be_studied_is_one_clear_line(files: Command) -> None:
    refused(files("study", "truth", "verdicts.csv"), "no column 'label'")
    refused(files("study", "truth", "pairs.jsonl", "--truth", "pairs.jsonl"), "battle_id")
