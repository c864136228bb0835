"""What cannot be read is said with its number: no vote is passed over."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rating.errors import DataError
from rating.tables.counts import read_votes
from tests.rating.tables.sources import PLAIN, ROWS, Source, broken, columns, each_source


@pytest.mark.parametrize("count", [-1, 1.5, None])
def test_counts_that_are_no_numbers_of_votes_are_refused(count: float | None) -> None:
    pair = {"model_a": ["x"], "model_b": ["y"], "n_model_a": [1.0], "n_model_b": [1.0]}
    with pytest.raises(DataError, match=f"A count is {np.nan if count is None else count}"):
        read_votes(pl.DataFrame({**pair, "n_tie": [count]}, strict=False))


@pytest.mark.sampled(2)
@each_source
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"winner": "Model_A"}, r"Unknown labels in the winner: 'Model_A' \(1 votes\)"),
        ({"winner": "tie (inconsistent)"}, r"'tie \(inconsistent\)' \(1 votes\)"),
        ({"winner": None}, "The winner is missing or blank in 1 votes"),
        ({"model_a": None}, "The model_a is missing or blank in 1 votes"),
        ({"model_b": " "}, "The model_b is missing or blank in 1 votes"),
        (
            {"model_a": "x "},
            r"only in case or spaces: 'x' \(7 votes\) and 'x ' \(1 votes\)",
        ),
        ({"model_b": "Z"}, r"'Z' \(1 votes\) and 'z' \(1 votes\)"),
        ({"voter": None}, "The voter is missing or blank in 1 votes"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_number(
    source: Source, changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_votes(source(broken(**changes), tmp_path))


@each_source
def test_the_first_row_of_a_missing_name_is_told(source: Source, tmp_path: Path) -> None:
    spaces = "".join(map(chr, filter(lambda code: chr(code).isspace(), range(0x10000))))
    for name in (None, spaces):
        with pytest.raises(DataError, match="missing or blank in 1 votes, first in row 3"):
            read_votes(source(broken(model_a=name), tmp_path), PLAIN)


@pytest.mark.parametrize("value", [float("nan"), None, pd.NA, pd.NaT])
def test_a_missing_outcome_is_no_outcome_however_it_is_missing(value: Any) -> None:
    frame = pd.DataFrame(columns(ROWS), dtype=object)
    frame.loc[1, "winner"] = value
    with pytest.raises(DataError, match="missing or blank in 1 votes, first in row 2"):
        read_votes(frame)


@pytest.mark.parametrize("value", [1.5, True, ("x",), 7])
def test_a_name_that_is_no_name_is_refused(value: Any) -> None:
    frame = pd.DataFrame(columns(ROWS), dtype=object)
    frame.at[1, "model_a"] = value
    message = (
        rf"column 'model_a' holds {re.escape(repr(value))} in row 2, and 'x' before: make text"
    )
    with pytest.raises(DataError, match=message):
        read_votes(frame)


@pytest.mark.usefixtures("as_many")
def test_names_may_be_whole_numbers_but_not_fractions() -> None:
    table = {"model_a": [1, 2], "model_b": [2, 10], "winner": ["model_a", "tie"]}
    for frame in (pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
        assert read_votes(frame).data.models == ("1", "10", "2")
    assert read_votes(duckdb.from_arrow(pa.table(table))).data.models == ("1", "10", "2")
    floats = pa.table({**table, "model_a": [1.0, 2.0]})
    for refused in (floats, duckdb.from_arrow(floats)):
        with pytest.raises(DataError, match="make text or whole numbers"):
            read_votes(refused)


@each_source
def test_no_votes_at_all_is_an_error(source: Source, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No votes to count: 1 read, 1 of a model against itself"):
        read_votes(source(ROWS[6:7], tmp_path))


@pytest.mark.usefixtures("as_many")
def test_an_empty_table_is_an_error() -> None:
    empty = pl.DataFrame({"model_a": [], "model_b": [], "winner": []})
    for source in (
        empty,
        empty.to_arrow(),
        empty.to_pandas(),
        duckdb.from_arrow(empty.to_arrow()),
    ):
        with pytest.raises(DataError, match="No votes to count: 0 read"):
            read_votes(source)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("pair_probability", 0.0, "A pair probability is 0.0, in 1 rows"),
        ("pair_probability", None, "A pair probability is nan, in 1 rows"),
        ("w", -1.0, "A weight in 'w' is -1.0, in 1 rows"),
        ("w", float("inf"), "A weight in 'w' is inf"),
    ],
)
@pytest.mark.usefixtures("as_many")
def test_a_weight_that_is_none_is_refused(column: str, value: float | None, message: str) -> None:
    table = pa.table(columns(ROWS) | {column: [value] + [1.0] * 7})
    weight = "sampling" if column == "pair_probability" else column
    for source in (table, duckdb.from_arrow(table), pl.DataFrame(table)):
        with pytest.raises(DataError, match=message):
            read_votes(source, replace(PLAIN, weight=weight))


def test_a_weight_that_is_text_is_quoted() -> None:
    table = columns(ROWS) | {"w": ["1", "heavy"] * 4}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        with pytest.raises(DataError, match="convert string 'heavy' to DOUBLE"):
            read_votes(frame, replace(PLAIN, weight="w"))


@pytest.mark.usefixtures("as_many")
def test_a_missing_moment_matters_only_where_time_does() -> None:
    table = pa.table(columns(broken(tstamp=None)))
    for source in (table, duckdb.from_arrow(table)):
        assert read_votes(source, PLAIN).data.n_votes == 7
        with pytest.raises(DataError, match="The time is missing in 1 votes"):
            read_votes(source, replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="Cannot read the moment 'noon'"):
        read_votes(pa.table(columns(broken(tstamp="noon"))), replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="A half-life of 0 days"):
        read_votes(pa.table(columns(ROWS)), replace(PLAIN, half_life_days=0))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("votes.xlsx", "name a file that ends in .parquet, .csv"),
        ("nowhere.csv", "there is no such file"),
        ("broken.parquet", "Cannot read .*broken.parquet"),
        ("broken.jsonl", "Line 1 of .* is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, name: str, message: str) -> None:
    for broken_file in ("votes.xlsx", "broken.parquet", "broken.jsonl"):
        (tmp_path / broken_file).write_text('{"model_a": [')
    with pytest.raises(DataError, match=message):
        read_votes(tmp_path / name)


def test_a_source_of_another_kind_is_refused() -> None:
    with pytest.raises(
        DataError, match="Cannot read the votes of a list: give the path of a file"
    ):
        read_votes([("x", "y", "model_a")])
