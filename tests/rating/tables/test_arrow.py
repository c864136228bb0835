"""Tables of any library come in and go out by Arrow's stream."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rating
from judge.face import Verdicts
from judge.tables.verdicts import COLUMNS, NUMBERS
from rating.errors import DataError
from rating.tables.duckdb_engine import frame_of

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
VOTES = st.lists(
    st.tuples(
        st.sampled_from([("x", "y"), ("y", "z"), ("z", "x")]),
        st.sampled_from(["model_a", "model_b", "tie", "both_bad"]),
        st.sampled_from(["ada", "bob", 'c"\n', "d\u202e"]),
    ),
    min_size=1,
)


class Stream:
    """A table that is known by nothing but Arrow's stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@settings(max_examples=15, deadline=None)
@given(votes=VOTES)
def test_votes_are_the_same_from_every_library(votes: list[Any]) -> None:
    rows = [
        {"model_a": a, "model_b": b, "winner": winner, "voter": voter}
        for (a, b), winner, voter in votes
    ]
    table = pa.Table.from_pylist(rows)
    sources = [pd.DataFrame(rows), pl.DataFrame(rows), table, duckdb.from_arrow(table)]
    known = [rating.read_votes(one) for one in [*sources, Stream(table)]]
    assert len({one.data_hash for one in known}) == 1
    assert {one.voters for one in known} == {known[0].voters}


ROWS = {
    "model_a": ["x", "y"] * 3,
    "model_b": ["y", "x"] * 3,
    "winner": ["model_a", "tie", "model_b"] * 2,
    "voter": ["ada", "bob"] * 3,
}


def test_columns_that_nobody_reads_may_hold_anything() -> None:
    want = rating.read_votes(pa.table(ROWS)).data_hash
    junk = pd.DataFrame(ROWS | {"junk": ["a", 1, (), None, object(), 2.5]})
    twice = pd.concat([pd.DataFrame(ROWS), junk["junk"], junk["junk"]], axis=1)
    in_polars = pl.DataFrame(ROWS)
    objects = in_polars.with_columns(pl.Series("junk", [object()] * 6, dtype=pl.Object))
    failing = in_polars.lazy().with_columns(junk=pl.col("voter").cast(pl.Int64))
    spelled = pa.table({"Winner": [1] * 6, "VOTER": [2] * 6} | ROWS)
    for frame in (junk, twice, objects, failing, spelled, spelled.to_pandas()):
        assert rating.read_votes(frame).data_hash == want


def test_columns_that_are_read_hold_text_or_numbers_once() -> None:
    in_polars = pl.DataFrame(ROWS)
    objects = in_polars.with_columns(pl.Series("voter", [object()] * 6, dtype=pl.Object))
    table, in_pandas = pa.table(ROWS), pd.DataFrame(ROWS)
    for frame in (objects, pd.DataFrame(ROWS | {"voter": [b"ada", b"bob"] * 3})):
        with pytest.raises(DataError, match="column 'voter' holds bytes or objects; make text"):
            rating.read_votes(frame)
    for frame in (
        table.append_column("voter", table["voter"]),
        pd.concat([in_pandas, in_pandas["voter"]], axis=1),
    ):
        with pytest.raises(DataError, match=r"Cannot read the votes of a .*(exists 2|Duplicate)"):
            rating.read_votes(frame)
    failing = in_polars.lazy().with_columns(voter=pl.col("voter").cast(pl.Int64))
    with pytest.raises(DataError, match="votes of a LazyFrame: conversion from `str` to `i64`"):
        rating.read_votes(failing)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import duckdb, pandas, polars, rating
rows = {rows}
frame = polars.DataFrame(rows)
frame.write_csv("votes.csv")
frame.write_parquet("votes.parquet")
sources = ["votes.csv", "votes.parquet", frame, frame.lazy(), frame.cast(polars.Categorical())]
print({{rating.read_votes(one).data_hash for one in [*sources, duckdb.read_csv("votes.csv")]}})
try:
    rating.read_votes(pandas.DataFrame(rows))
except rating.DataError as error:
    print(error)
"""


def test_only_pandas_takes_pyarrow(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PYARROW.format(rows=ROWS)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    hashes, refusal = run.stdout.splitlines()
    assert hashes == repr({rating.read_votes(pa.table(ROWS)).data_hash})
    assert "Cannot read the votes of a DataFrame: `Import pyarrow` failed" in refusal


def board() -> rating.Report:
    outcomes = [("x", "y", "model_a"), ("y", "z", "model_a"), ("z", "x", "model_a")] * 4
    rows = [dict(zip(("model_a", "model_b", "winner"), row, strict=True)) for row in outcomes]
    rows += [{"model_a": "x", "model_b": "z", "winner": "tie"}]
    return rating.rate(rating.read_votes(pd.DataFrame(rows)))


def test_a_board_is_a_table_to_every_library() -> None:
    made = board()
    expected = made.to_dict()["ratings"]
    assert pa.table(made).to_pylist() == expected
    assert pl.DataFrame(made).to_dicts() == expected
    assert duckdb.from_arrow(made).project("model, votes").fetchall() == [
        (row["model"], row["votes"]) for row in expected
    ]


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "battle_id": NAMES,
                "winner": st.none() | st.sampled_from(["model_a", "tie"]),
                "preference": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                "length_a": st.none() | st.integers(0, 2**53),
            }
        ),
        min_size=1,
    )
)
def test_verdicts_come_back_from_arrow_value_by_value(rows: list[dict[str, Any]]) -> None:
    assert pa.table(Verdicts(rows)).to_pylist() == rows
    kinds = {name: NUMBERS.get(name, "VARCHAR") for name in rows[0]}
    assert {*kinds} <= {*COLUMNS}
    assert pa.table(frame_of(rows, kinds)).to_pylist() == rows


def test_a_thing_that_is_no_table_is_refused_in_words() -> None:
    with pytest.raises(DataError, match="Cannot read the votes of a int: give the path of a file"):
        rating.read_votes(3)


def test_a_board_goes_through_a_file_of_arrow(tmp_path: Path) -> None:
    made = board()
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink:
        table = pa.table(made)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with pa.memory_map(str(tmp_path / "b.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().to_pylist() == made.to_dict()["ratings"]
