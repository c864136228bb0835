from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from arena.domain.policy import DEFAULT
from arena.domain.vote import Choice
from arena.errors import DataError
from arena.publish.dataset import COLUMNS, export_votes
from tests.arena.publish.log import NOW, vote

VOTES = [
    replace(vote("m0", 'm"1', Choice.A), voter="ada, the first"),
    vote("m0", "m2", Choice.BOTH_BAD),
    vote("m0", "m2", Choice.SKIP),
]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_an_export_reads_back_the_same(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"votes.{ending}"
    assert export_votes(VOTES, DEFAULT, path) == 2
    with duckdb.connect() as connection:
        read = connection.execute(f"SELECT * FROM '{path}'")
        assert [column[0] for column in read.description or ()] == list(COLUMNS)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in read.fetchall()]
    assert [row["winner"] for row in rows] == ["model_a", "both_bad"]
    assert rows[0]["model_b"] == 'm"1'
    assert rows[0]["voter"] == "ada, the first"
    assert str(rows[0]["ts"])[:10] == "2026-11-19"
    assert rows[0]["pair_probability"] == 1.0


def test_everything_holds_also_what_is_left_out_and_why(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    assert export_votes(VOTES, DEFAULT, path, everything=True) == 3
    rows = duckdb.read_parquet(str(path)).select("winner", "left_out").fetchall()
    assert rows == [("model_a", None), ("both_bad", None), ("skip", "skipped")]


def test_an_export_of_no_votes_still_has_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    assert export_votes([], DEFAULT, path) == 0
    assert duckdb.read_parquet(str(path)).columns == list(COLUMNS)


@pytest.mark.parametrize("name", ["votes.xlsx", "votes", "no/such/folder/votes.csv"])
def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="Cannot write"):
        export_votes(VOTES, DEFAULT, tmp_path / name)


def test_the_moment_of_a_vote_is_written_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    export_votes(VOTES, DEFAULT, path)
    assert NOW.strftime("2026-11-19 00:00:00") in path.read_text()
