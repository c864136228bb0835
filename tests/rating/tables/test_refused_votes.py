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

from rating.counting import check_names
from rating.errors import DataError
from rating.tables.counts import read_votes
from rating.tables.files import Files
from tests.rating.tables.sources import PLAIN, ROWS, Source, broken, cells, columns, each_source


@pytest.mark.parametrize("count", [-1, 1.5, None])
def test_counts_that_are_no_numbers_of_votes_are_refused(count: float | None) -> None:
    pair = {"model_a": ["x"], "model_b": ["y"], "n_model_a": [1.0], "n_model_b": [1.0]}
    with pytest.raises(DataError, match=f"A count is {np.nan if count is None else count}"):
        read_votes(pl.DataFrame({**pair, "n_tie": [count]}, strict=False))


@pytest.mark.sampled(4)
@each_source
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"winner": "Model_A"}, r"Unknown labels in the winner: 'Model_A' \(1 vote\)"),
        ({"winner": "tie (inconsistent)"}, r"'tie \(inconsistent\)' \(1 vote\)"),
        ({"winner": None}, "The winner is missing or blank in 1 vote"),
        ({"model_a": None}, "The model_a is missing or blank in 1 vote"),
        ({"model_b": " "}, "The model_b is missing or blank in 1 vote"),
        ({"model_a": "x "}, r"characters that look alike: 'x' \(7 votes\) and 'x ' \(1 vote\)"),
        ({"model_a": "x\u200b"}, r"'x' \(7 votes\) and 'x\\u200b' \(1 vote\)"),
        ({"model_b": "Z"}, r"'Z' \(1 vote\) and 'z' \(1 vote\)"),
        ({"voter": None}, "The voter is missing or blank in 1 vote"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_number(
    source: Source, changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_votes(source(broken(**changes), tmp_path))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("café", "cafe\u0301"), ("gpt-4", "gpt\u20114"), ("gpt-4", "gpt\u22124"),
        ("big model", "big\u00a0model"), ("gpt-4", "\ufeffgpt-4"),
        ("gpt-4", "GPT\u20134\u200d"),
    ],
)  # fmt: skip
def test_names_that_look_alike_are_refused_and_shown_by_their_codes(name: str, other: str) -> None:
    frame = pd.DataFrame(
        {"model_a": [name, other], "model_b": ["x", "x"], "winner": ["tie", "model_a"]}
    )
    names = " and ".join(rf"{one!a} \(1 vote\)" for one in sorted((name, other)))
    message = names.replace("\\u", r"\\u").replace("\\x", r"\\x")
    with pytest.raises(DataError, match=message):
        read_votes(frame)
    with pytest.raises(DataError, match="characters that look alike"):
        check_names([name, other, "x"])


@pytest.mark.parametrize(("name", "other"), [("m2", "m²"), ("gpt-4", "gpt4"), ("a b", "a-b")])
def test_names_that_look_different_are_two_models(name: str, other: str) -> None:
    frame = pd.DataFrame({"model_a": [name], "model_b": [other], "winner": ["tie"]})
    assert {*read_votes(frame).data.models} == {name, other}


def test_a_blank_winner_is_excluded_or_read_as_its_label_says(tmp_path: Path) -> None:
    rows = broken(winner=None)
    for ending in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"votes.{ending}"
        frame = pd.DataFrame(columns(rows))
        if ending == "csv":
            frame.to_csv(path, index=False)
        elif ending == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True)
        with pytest.raises(DataError, match=r"--where \"winner <> ''\".*--label =tie"):
            read_votes(path, PLAIN)
        assert read_votes(Files((path,), where="winner <> ''"), PLAIN).data.n_votes == 6
        votes = read_votes(Files((path,), labels=(("", "tie"),)), PLAIN)
        assert votes.data.n_votes == 7
        blank_row = next(row for row in rows if row["winner"] is None)
        assert cells(votes)[blank_row["model_a"], blank_row["model_b"], "tie"] >= 1


@pytest.mark.sampled(2)
@each_source
def test_a_winner_may_be_the_name_of_a_model_of_its_row(source: Source, tmp_path: Path) -> None:
    sides = {"model_a", "model_b"}
    named = [{**row, "winner": row.get(row["winner"], row["winner"])} for row in ROWS]
    assert any(row["winner"] in sides for row in ROWS)
    assert not any(row["winner"] in sides for row in named)
    assert cells(read_votes(source(named, tmp_path), PLAIN)) == cells(
        read_votes(source(ROWS, tmp_path), PLAIN)
    )


def test_a_winner_that_is_no_model_of_its_row_is_quoted_with_the_row() -> None:
    frame = pd.DataFrame(
        {"model_a": ["x", "x"], "model_b": ["y", "y"], "winner": ["x", "z"], "voter": ["u", "v"]}
    )
    with pytest.raises(DataError, match=r"'z' \(1 vote\), one of them of 'x' and 'y'"):
        read_votes(frame)


def test_a_model_called_as_a_label_is_refused_where_winners_are_names() -> None:
    frame = pd.DataFrame({"model_a": ["x", "tie"], "model_b": ["y", "y"], "winner": ["x", "tie"]})
    with pytest.raises(DataError, match="a model is called 'tie'"):
        read_votes(frame)


@pytest.mark.sampled(2, 1)
@each_source
def test_the_first_row_of_a_missing_name_is_told(source: Source, tmp_path: Path) -> None:
    spaces = "".join(map(chr, filter(lambda code: chr(code).isspace(), range(0x10000))))
    for name in (None, spaces):
        with pytest.raises(DataError, match="missing or blank in 1 vote, first in row 3"):
            read_votes(source(broken(model_a=name), tmp_path), PLAIN)


@pytest.mark.parametrize("value", [float("nan"), None, pd.NA, pd.NaT])
def test_a_missing_outcome_is_no_outcome_however_it_is_missing(value: Any) -> None:
    frame = pd.DataFrame(columns(ROWS), dtype=object)
    frame.loc[1, "winner"] = value
    with pytest.raises(DataError, match="missing or blank in 1 vote, first in row 2"):
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
    sources = (empty, empty.to_arrow(), empty.to_pandas(), duckdb.from_arrow(empty.to_arrow()))
    for source in sources:
        with pytest.raises(DataError, match="No votes to count: 0 read"):
            read_votes(source)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("pair_probability", 0.0, "A pair probability is 0.0, in 1 row"),
        ("pair_probability", None, "A pair probability is nan, in 1 row"),
        ("w", -1.0, "A weight in 'w' is -1.0, in 1 row"),
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
        with pytest.raises(DataError, match="The time is missing in 1 vote"):
            read_votes(source, replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="Cannot read the moment 'noon'"):
        read_votes(pa.table(columns(broken(tstamp="noon"))), replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="A half-life of 0 days"):
        read_votes(pa.table(columns(ROWS)), replace(PLAIN, half_life_days=0))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("votes.xlsx", "name a file that ends in .parquet, .csv"),
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
