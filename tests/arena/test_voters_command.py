"""`arena voters`, as it is typed."""

import csv
import io
import json
import re
from dataclasses import fields
from pathlib import Path

import duckdb
import pytest

from rating.tables.voter_report import REASON, WEIGHT, CheckedVoter
from tests.command import Ran, invoke, refused, unexplained
from tests.rating.boards.test_voter_report import crowd, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with votes.parquet."""
    monkeypatch.chdir(tmp_path)
    source = write(crowd(), tmp_path / "votes.csv")
    duckdb.read_csv(source).write_parquet("votes.parquet")
    return tmp_path


def run(*words: str) -> Ran:
    return invoke(["voters", *words], columns=120)


def test_the_examples_run_and_the_second_one_weighs_the_votes(folder: Path) -> None:
    result = run("--help").stdout
    lines = re.findall(r"^\s*(arena voters .*?)\s*$", result, re.MULTILINE)
    for line in lines:
        report = run(*line.split()[2:])
        assert report.returncode == 0, report.stderr
        assert re.search(
            r"left +│ +200 │ +\d+\.\d │ +\d+ votes │ +yes │ +0 │ always-left", report.stdout
        )
        assert re.search(r"shill .* fan of slate", report.stdout)
        assert len(re.findall(r"│ +– │ +– │ +1 │", report.stdout)) == 10
        assert "Nothing is deleted" in report.stdout
    options = "--weights voter_weight --interval none --format json"
    rated = invoke(["rate", "weighted.parquet", *options.split()])
    assert json.loads(rated.stdout)["method"]["weights"] == "voter_weight"


def test_every_voter_is_in_the_file_in_every_format(folder: Path) -> None:
    ask = ("votes.parquet", "--alpha", "0.01", "--least", "10")
    assert run(*ask, "--out", "voters.json").returncode == 0
    plain = json.loads(Path("voters.json").read_text())
    assert plain["flagged"] == sum(voter["flagged"] for voter in plain["voters"]) >= 4
    assert (plain["method"]["alpha"], plain["method"]["least"]) == (0.01, 10)
    assert (len(plain["voters"]), plain["examined"]) == (35, 35)
    busy = json.loads(run("votes.parquet", "--least", "100", "--format", "json").stdout)
    examined = {one["voter"] for one in busy["voters"] if one["examined"]}
    assert examined == {"coin", "left", "inverted", "shill"}
    result = run(*ask, "--format", "csv").stdout
    assert [row["voter"] for row in csv.DictReader(io.StringIO(result))] == [
        voter["voter"] for voter in plain["voters"]
    ]
    assert run(*ask, "--out", "voters.parquet").returncode == 0
    table = duckdb.read_parquet("voters.parquet")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
    assert rows == plain["voters"]


def test_columns_of_other_names_are_named(folder: Path) -> None:
    renamed = [{("who" if k == "voter" else k): v for k, v in row.items()} for row in crowd()]
    write(renamed, Path("other.csv"))
    options = ("--column", "voter=who", "--weighted", "weighted.csv", "--format", "json")
    report = run("other.csv", *options)
    assert report.returncode == 0, report.stderr
    usual = json.loads(run("votes.parquet", "--format", "json").stdout)
    assert json.loads(report.stdout)["voters"] == usual["voters"]
    with Path("weighted.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["who"] for row in rows] == [row["who"] for row in renamed]
    assert {row["voter_weight"] for row in rows} == {"0.0", "1.0"}


def test_an_attack_is_the_one_that_was_asked_for(folder: Path) -> None:
    asked = {"strategy": "target", "accounts": 3, "votes": 7, "model": "slate", "runs": 2}
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    one, other = (
        json.loads(invoke(["attack", "votes.parquet", *words, *more, "--format", "json"]).stdout)
        for more in ([], ["--seed", "1"])
    )
    assert {name: one[name] for name in asked} == asked
    assert one["moved"]["off"] != other["moved"]["off"]
    shown = invoke(["attack", "votes.parquet", *words], columns=160).stdout
    assert shown.startswith(
        "Gain of slate by 3 accounts with 7 votes each (target), averaged over 2 runs:\n"
    )
    for which, gain in one["moved"].items():
        ends = f"{gain['points_low']:+z.0f} to {gain['points_high']:+z.0f}"
        row = f"│ {which} │ {gain['points']:+z.0f} │ {ends} │ {gain['ranks']:+z.1f} │"
        assert row in " ".join(shown.split())
    excluded = f"Excluded: {100 * one['left_out']:.0f}% of the attackers' votes, and "
    assert f"\n{excluded}{100 * one['honest_left_out']:.1f}% of the others.\n" in shown


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--format", "xml"), '"xml" for --format'),
        (("--out", "voters.txt"), "Cannot write voters as 'voters.txt'"),
        (("--format", "parquet"), "name a file with --out"),
        (("--format", "table", "--out", "voters.csv"), "A table is for a terminal"),
        (("--least", "0"), "--least 0"),
        (("--column", "who"), "--column: cannot read 'who'"),
        (("--column", "voter=who"), "'who'"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, words: tuple[str, ...], text: str) -> None:
    refused(run("votes.parquet", *words), text)


def test_every_column_is_explained() -> None:
    columns = [field.name for field in fields(CheckedVoter)]
    assert unexplained("Voters", columns, [WEIGHT, REASON]) == []
