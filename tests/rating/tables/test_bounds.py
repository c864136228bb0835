"""What of a file may be held at a time: values, rows, lists and depth, of each kind of file."""

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rating import read_votes
from rating.errors import DataError
from rating.tables.files import (
    CELLS,
    DEPTH,
    LARGE_VALUE,
    MB,
    PIECE,
    VALUE,
    json_entries,
    json_objects,
    parsed,
    parsed_toml,
    read_text,
)
from rating.tables.parquet import long_columns
from rating.tables.sources import opened
from tests.file_bombs import parquet

ROW = {"model_a": "x", "model_b": "y", "winner": "model_a"}


def table_of(path: Path) -> list[tuple[Any, ...]]:
    with opened(path, list) as rows:
        return rows.fetchall()


def write(path: Path, **cells: object) -> Path:
    row = ROW | cells
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif path.suffix == ".csv":
        path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    else:
        path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_value_of_one_megabyte_is_read_and_a_longer_one_is_refused(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"f.{ending}"
    [row] = table_of(write(path, prompt="x" * VALUE))
    assert "x" * VALUE in row
    write(path, prompt="x" * (VALUE + 1))
    with pytest.raises(DataError) as refused:
        table_of(path)
    name = repr(str(path))
    assert str(refused.value) == (
        f"Line 1 of {name} has a value of 1,048,577 bytes in 'prompt': one may have 1,048,576. "
        "Shorten it, or leave the row out."
        if ending == "jsonl"
        else f"Column 'prompt' of {name} has a value of 1,048,577 bytes, and one may have "
        "1,048,576: shorten it, or leave its row out."
    )


def test_an_image_may_have_ten_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    [row] = table_of(write(path, image="x" * LARGE_VALUE))
    assert "x" * LARGE_VALUE in row
    write(path, image="x" * (LARGE_VALUE + 1))
    with pytest.raises(DataError, match=r"10,485,761 bytes.* one may have 10,485,760"):
        table_of(path)


def test_a_long_value_in_a_column_that_nobody_reads_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    rows = [ROW | {"prompt": "x" * 3 * MB}, ROW | {"winner": "model_b", "prompt": "y"}]
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert long_columns(path) == ["prompt"]
    assert int(read_votes(path).data.votes.sum()) == 2


@pytest.mark.parametrize("name", ["prompt", "images"])
def test_entries_of_json_have_the_same_bounds(tmp_path: Path, name: str) -> None:
    most = {"prompt": VALUE, "images": LARGE_VALUE}[name]
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps({"id": 1, name: ["x" * most]}))
    [[_, entry]] = json_entries(path)
    assert entry[name] == ["x" * most]
    path.write_text(json.dumps({"id": 1, name: ["x" * (most + 1)]}))
    with pytest.raises(DataError, match=rf"Line 1 of .* in '{name}': one may have {most:,}"):
        [*json_entries(path)]


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


@pytest.mark.parametrize("laid_out", ["{}", "[{}]", '{{"a": 1}}\n{}'])
def test_json_is_read_up_to_a_hundred_levels(tmp_path: Path, laid_out: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(laid_out.format(f'{{"a": {nested(DEPTH - 1)}}}'))
    assert [*json_objects(path)][-1]["a"] == json.loads(nested(DEPTH - 1))
    path.write_text(laid_out.format(f'{{"a": {nested(DEPTH)}}}'))
    with pytest.raises(DataError, match=r"is nested more than 100 levels deep\. Flatten it\."):
        [*json_objects(path)]


@pytest.mark.parametrize("depth", [DEPTH + 1, 900, 100_000])
def test_json_and_toml_that_are_deeper_are_refused(depth: int) -> None:
    for text in (nested(depth), '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(DataError, match=r"^It is nested more than 100 levels deep"):
            parsed(text, "It")
    for text in (f"a = {nested(depth)}", "a" + ".a" * depth + " = 1", "a = " + "{a=" * depth):
        with pytest.raises(DataError, match=r"^It is (nested more than|not TOML)"):
            parsed_toml(text, "It")
    assert parsed_toml("a.b = [[1]]", "It") == {"a": {"b": [[1]]}}


@pytest.mark.parametrize("part", ["b", '"', "a ", "a. ", "a.\n"])
def test_toml_of_one_long_line_is_refused_without_looking_at_it_again_and_again(part: str) -> None:
    """A test that hangs here takes quadratic time: 10^11 steps for 300,000 characters."""
    with pytest.raises(DataError, match=r"^It is (not TOML|nested more than 100 levels deep)"):
        parsed_toml(part * (300_000 // len(part)), "It")


def test_four_hundred_thousand_parts_are_read_and_two_million_refused() -> None:
    assert len(parsed("[" + "[]," * 400_000 + "[]]", "It")) == 400_001
    for parse in (parsed, parsed_toml):
        with pytest.raises(DataError, match=r"It has 2,000,00. lists and objects, more than"):
            parse("[" * 2 + "[]," * 2_000_000 + "]", "It")


@pytest.mark.parametrize("blank", ["", "\n", " \r\n\t"])
def test_a_long_json_list_is_read_entry_by_entry_as_python_reads_it(
    tmp_path: Path, blank: str
) -> None:
    rng = np.random.default_rng(1)
    values: list[object] = [12345678, -1.5e-7, None, True, "", 'Ünï\\"[}{,', {}, []]
    entries = [values[i] for i in rng.integers(0, len(values), 20_000)]
    entries += [{"text": "ö" * int(n), "of": [1, {"b": "]"}]} for n in rng.integers(0, PIECE, 40)]
    rng.shuffle(entries)
    text = (
        blank + json.dumps(entries, ensure_ascii=False).replace(", ", f"{blank},{blank}") + blank
    )
    path = tmp_path / "f.json"
    path.write_text(text, encoding="utf-8", newline="")
    assert [entry for _, entry in json_entries(path)] == json.loads(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2", "What follows entry 2 of .* is not JSON"),
        ("[1 2]", "What follows entry 1 of .* is not JSON"),
        ("[1, ]", "Entry 2 of .* is not JSON"),
        ('[1, {"a": 2', "Entry 2 of .* is not JSON"),
        ("[1, 2] 3", "What follows entry 2 of .* is not JSON: Extra data"),
        ("[", "Entry 1 of .* is not JSON"),
        ("[1, " + "9" * 5_000 + "]", "Entry 2 of .* is not JSON: Exceeds the limit"),
    ],
)
def test_a_json_list_that_is_broken_is_refused_where_it_breaks(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        [*json_entries(path)]
    path.write_text("[]")
    assert [*json_entries(path)] == []


def test_a_line_and_a_file_that_is_read_whole_have_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b" " * 33 * MB + b"\n")
    with pytest.raises(DataError, match=r"Line 2 of .* is longer than 16 MB"):
        [*json_entries(path)]
    with pytest.raises(DataError, match="has more than 8 MB, and is read as a whole"):
        read_text(path, most=8 * MB)


@pytest.mark.parametrize("read", [read_text, lambda path: [*json_entries(path)], table_of])
def test_gzip_may_unpack_to_fifty_times_its_size(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "f.jsonl.gz"
    line = json.dumps(ROW | {"prompt": "x" * 10_000}).encode() + b"\n"
    path.write_bytes(gzip.compress(line * 100))  # a hundred times, and a megabyte
    read(path)
    path.write_bytes(gzip.compress(line * 3_500))
    with pytest.raises(DataError, match="32 MB"):
        read(path)


def test_rows_may_be_many_where_the_file_is_large_enough_to_hold_them(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    names = ("model_a", "model_b", "winner")
    parquet(CELLS // 3, names=names)(path)
    with opened(path, list) as rows:
        assert rows.aggregate("count(*)").fetchall() == [(CELLS // 3,)]
    parquet(CELLS, names=names)(path)
    with pytest.raises(DataError, match=r"6,000,000 cells or more: a table may have 2,000,000"):
        table_of(path)
    rng = np.random.default_rng(1)  # as many rows that differ
    models = np.array(["x", "y", "z"])
    outcomes = np.array(["model_a", "model_b", "tie"])[rng.integers(0, 3, CELLS)]
    sides = (models[rng.integers(0, 3, CELLS)] for _ in range(2))
    table = dict(zip(names, (*sides, outcomes), strict=True))
    pq.write_table(pa.table(table), path)
    assert int(read_votes(path).data.votes.sum()) > CELLS / 2


WRITERS: dict[str, dict[str, Any]] = {
    "pages of the first version": {"data_page_version": "1.0"},
    "pages of the second version": {"data_page_version": "2.0"},
    "without dictionaries": {"use_dictionary": False},
    "several groups": {"row_group_size": 100},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "no compression": {"compression": "none"},
    "small pages": {"data_page_size": 100},
    "with an index": {"write_page_index": True, "write_page_checksum": True},
    "lengths as differences": {
        "use_dictionary": False,
        "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED"},
    },
}


@pytest.mark.parametrize("how", WRITERS)
def test_the_headers_of_every_writer_are_followed(tmp_path: Path, how: str) -> None:
    path, rows = tmp_path / "f.parquet", 1000
    columns = {
        "text": [f"text {n}" for n in range(rows)],
        "long": ["x" * 2 * MB if n == rows - 1 else None for n in range(rows)],
        "n": [*range(rows)],
        "lists": [[{"role": "user", "content": f"{n}"}] * (n % 3) for n in range(rows)],
        "long_lists": [["y" * 2 * MB] if n == 0 else [] for n in range(rows)],
        "kinds": [{"a": {"b": n}} for n in range(rows)],
    }
    table = pa.table(columns, metadata={"about": "x" * 5000})
    options = WRITERS[how]
    if "column_encoding" in options:
        table = table.select(["text", "n"])
    pq.write_table(table, path, **options)
    own = {"long", "long_lists"} & {*table.column_names}
    assert {*long_columns(path)} == own


def test_the_headers_of_duckdb_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    query = "SELECT range AS n, repeat('ab' || range, 90) AS t, [range, 2] AS l FROM range(130000)"
    for version in ("V1", "V2"):
        duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, PARQUET_VERSION {version})")
        assert {*long_columns(path)} >= {"t"}


def test_texts_that_begin_as_the_one_before_are_counted_as_if_all_were_as_long(
    tmp_path: Path,
) -> None:
    """Three bytes each make the whole text again."""
    path = tmp_path / "f.parquet"
    table = pa.table({"prompt": ["x" * 50_000] * 3000})
    encoding = {"prompt": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    assert path.stat().st_size < 2 * MB
    with pytest.raises(DataError, match=r"would take .* at a time"):
        table_of(path)


@pytest.mark.parametrize("place", range(4, 400, 13))
def test_headers_that_are_damaged_are_refused_or_read(tmp_path: Path, place: int) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist([ROW] * 20), path)
    whole = bytearray(path.read_bytes())
    whole[-place - 4 : -place] = b"\xff\x7f\xff\x7f"
    path.write_bytes(whole)
    with suppress(DataError):
        table_of(path)


def test_lists_and_objects_are_measured_at_any_depth(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    kind = pa.map_(pa.string(), pa.list_(pa.struct({"texts": pa.list_(pa.list_(pa.string()))})))

    def cell(text: str) -> dict[str, object]:
        return {"cells": [("a", [{"texts": [[text, "b"], None, []]}, None]), ("c", None)]}

    schema = pa.schema({"cells": kind})
    pq.write_table(pa.Table.from_pylist([cell("x" * 2 * MB), {"cells": None}], schema), path)
    assert len(table_of(path)) == 2
    pq.write_table(pa.Table.from_pylist([cell("x" * 11 * MB)], schema), path)
    with pytest.raises(DataError, match=r"a list or an object of 11,534,427 bytes"):
        table_of(path)
