"""Tables of any library come in and go out by Arrow's stream."""

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
from rating.tables.writing import frame_of

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
    with pytest.raises(DataError, match="Cannot read votes from a int"):
        rating.read_votes(3)


def test_a_board_goes_through_a_file_of_arrow(tmp_path: Path) -> None:
    made = board()
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink:
        table = pa.table(made)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with pa.memory_map(str(tmp_path / "b.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().to_pylist() == made.to_dict()["ratings"]
