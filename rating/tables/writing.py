"""Rows as files that other programs read: as they come, any number, or with columns beside."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.tables.duckdb_engine import connected
from rating.tables.escaping import in_csv, in_csv_sql, literal, quoted
from rating.tables.files import Files, expanded, replacing

FORMATS = {
    ".parquet": "FORMAT parquet, ROW_GROUP_SIZE 20480",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
}
"""How duckdb writes a file, by its ending."""
AT_ONCE = 4096
"""Rows that are held in memory."""
SHARD_BYTES = 256 * 2**20
"""About the size of a shard."""
FEATURES = {
    "VARCHAR": "string",
    "BIGINT": "int64",
    "DOUBLE": "float64",
    "BOOLEAN": "bool",
    "TIMESTAMP": "timestamp[us]",
}
"""What Hugging Face calls a type of SQL."""
NUMPY = {"DOUBLE": "float64", "BIGINT": "int64"}

Row = Mapping[str, Any]


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Raise `DataError` where a file cannot be written."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        msg = f"Cannot write {str(path)!r}: {reason}."
        raise DataError(msg) from error


def require_writable(path: Path) -> None:
    """Raise `DataError` unless a file has an ending of `FORMATS`."""
    if path.suffix not in FORMATS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)


def write_rows(
    rows: Iterable[Row],
    kinds: Mapping[str, str],
    path: Path,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write rows in the memory of a few thousand: they are put aside beside the file, and united.

    Parameters
    ----------
    rows : iterable of mapping
        What a row does not have is null.
    kinds : mapping of str to str
        SQL's type of each column. VARCHAR, DOUBLE, BIGINT, TIMESTAMP (aware, written in UTC); or
        one of structs and lists, for texts of JSON, which a CSV has as they are.
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``; or a folder that is there and empty, for
        Parquet in shards as Hugging Face names them: ``train-00000-of-00002.parquet``.
    shard_bytes : int
        Most bytes of a shard, or else a few thousand rows.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    is_folder = path.is_dir()
    if not is_folder:
        require_writable(path)
    parent = path.absolute().parent
    with telling(path), tempfile.TemporaryDirectory(dir=parent, prefix=".export-") as folder:
        parts = _put_aside(rows, kinds, Path(folder))
        if not is_folder:
            _unite(parts, kinds, path)
            return
        shards = _in_shards(parts, shard_bytes)
        for number, some in enumerate(shards):
            _unite(some, kinds, path / f"train-{number:05}-of-{len(shards):05}.parquet")


def _in_shards(parts: Sequence[str], most: int) -> list[list[str]]:
    """Take files together that stand one after the other, each shard of the bytes or fewer."""
    shards: list[list[str]] = [[]]
    size = 0
    for part in parts:
        size += (own := Path(part).stat().st_size)
        if shards[-1] and size > most:
            shards.append([])
            size = own
        shards[-1].append(part)
    return shards


def described(files: Sequence[Path]) -> dict[str, Any]:
    """Describe shards that were written here as Hugging Face's cards do: features and sizes."""
    names = [*map(str, files)]
    with connected() as connection:
        rows = connection.read_parquet(names)
        columns = _features(zip(rows.columns, map(str, rows.types), strict=True))
        unpacked = "SELECT sum(total_uncompressed_size)::BIGINT FROM parquet_metadata(?)"
        n_bytes = connection.execute(unpacked, [names]).fetchall()[0][0] or 0
        n_rows = rows.aggregate("count(*)").fetchall()[0][0]
    return {
        "features": columns,
        "splits": [{"name": "train", "num_bytes": n_bytes, "num_examples": n_rows}],
        "download_size": sum(file.stat().st_size for file in files),
        "dataset_size": n_bytes,
    }


def _features(columns: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Describe columns by SQL's types.

    Examples
    --------
    >>> _features([("ts", "TIMESTAMP"), ("chosen", "STRUCT(role VARCHAR, content VARCHAR)[]")])[1]
    {'name': 'chosen', 'list': [{'name': 'role', 'dtype': 'string'}, \
{'name': 'content', 'dtype': 'string'}]}
    """
    return [
        {"name": name, "dtype": FEATURES[kind]}
        if kind in FEATURES
        else {"name": name, "list": _features(re.findall(r"\"?(\w+)\"? (\w+)[,)]", kind))}
        for name, kind in columns
    ]


def _put_aside(rows: Iterable[Row], kinds: Mapping[str, str], folder: Path) -> list[str]:
    parts: list[str] = []
    left = iter(rows)
    while some := list(islice(left, AT_ONCE)):
        parts.append(str(folder / f"{len(parts):08}.parquet"))
        _write_part(some, kinds, parts[-1])
    if not parts:
        parts.append(str(folder / "none.parquet"))
        _write_part((), kinds, parts[0])
    return parts


def _write_part(rows: Sequence[Row], kinds: Mapping[str, str], part: str) -> None:
    with connected() as connection:
        _relation(connection, rows, kinds).write_parquet(part)


def frame_of(rows: Sequence[Row], kinds: Mapping[str, str]) -> duckdb.DuckDBPyRelation:
    """Give rows as a table with ``__arrow_c_stream__``, by which any library takes it.

    Parameters
    ----------
    rows, kinds
        As of `write_rows`; of no structs and lists.
    """
    return _relation(connected(), rows, kinds)


def _relation(
    connection: duckdb.DuckDBPyConnection, rows: Sequence[Row], kinds: Mapping[str, str]
) -> duckdb.DuckDBPyRelation:
    arrays = {name: _array(kind, [row.get(name) for row in rows]) for name, kind in kinds.items()}
    casts = (f"CAST({quoted(n)} AS {_plain(kind)}) AS {quoted(n)}" for n, kind in kinds.items())
    connection.register("part", arrays)
    return connection.table("part").project(", ".join(casts))


def _unite(parts: Sequence[str], kinds: Mapping[str, str], path: Path) -> None:
    is_csv = path.suffix == ".csv"
    columns = (f"{_final(n, kind, is_csv=is_csv)} AS {quoted(n)}" for n, kind in kinds.items())
    with replacing(path) as made, connected() as connection:
        connection.execute("SET threads = 1")  # more hold rows back, to write them in their order
        rows = f"SELECT {', '.join(columns)} FROM read_parquet([{', '.join(map(literal, parts))}])"  # noqa: S608 - the names are ours
        connection.execute(f"COPY ({rows}) TO {literal(str(made))} ({FORMATS[path.suffix]})")


def _plain(kind: str) -> str:
    return kind if kind in (*NUMPY, "TIMESTAMP") else "VARCHAR"


def _final(name: str, kind: str, *, is_csv: bool) -> str:
    column = quoted(name)
    if _plain(kind) != "VARCHAR":
        return column
    if is_csv:
        return in_csv_sql(column)
    return column if kind == "VARCHAR" else f"CAST(CAST({column} AS JSON) AS {kind})"


def _array(kind: str, values: Sequence[object]) -> object:
    if kind == "TIMESTAMP":
        moments = (
            value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else "NaT"
            for value in values
        )
        return np.array([np.datetime64(one, "us") for one in moments], dtype="datetime64[us]")
    if kind not in NUMPY:
        return np.array(values, dtype=object)
    absent = [value is None for value in values]
    filled = np.array([0 if value is None else value for value in values], dtype=NUMPY[kind])
    return np.ma.MaskedArray(filled, mask=absent)


def require_target(path: Path, source: object) -> None:
    """Raise `DataError` unless a file can be written to that is not one of those that are read."""
    if path.suffix not in (".parquet", ".csv"):
        msg = f"Cannot write {str(path)!r}: name a file that ends in .parquet or .csv."
        raise DataError(msg)
    files = Files.of(source)
    if files and os.path.realpath(path) in map(os.path.realpath, expanded(files.paths)):
        msg = f"{str(source)!r} cannot be read and written at once: name another file."
        raise DataError(msg)


def write_beside(
    rows: duckdb.DuckDBPyRelation, columns: Mapping[str, NDArray[np.object_]], path: Path
) -> None:
    """Write rows in their order, with columns of text beside them, shape (n_rows,) each.

    Raises
    ------
    DataError
        If there is such a column already, or the file cannot be written.
    """
    if taken := {*rows.columns} & {*columns}:
        msg = f"There is a column {min(taken)!r} already: rename it."
        raise DataError(msg)
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        file = str(Path(folder) / "beside.parquet")
        connection.register("beside", dict(columns))
        connection.table("beside").write_parquet(file)
        query = f"SELECT * FROM rows POSITIONAL JOIN read_parquet({literal(file)})"  # noqa: S608
        joined = rows.query("rows", query)
        assert joined is not None  # a SELECT has rows
        write_relation(joined, path)


def write_relation(rows: duckdb.DuckDBPyRelation, path: Path) -> None:
    """Write rows as CSV, in which no text is a formula, or as Parquet.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    with telling(path), replacing(path) as made:
        if path.suffix != ".csv":
            rows.write_parquet(str(made))
            return
        columns = (
            f"{in_csv_sql(quoted(name)) if kind == 'VARCHAR' else quoted(name)} "
            f"AS {quoted(str(in_csv(name)))}"
            for name, kind in zip(rows.columns, rows.types, strict=True)
        )
        rows.project(", ".join(columns)).write_csv(str(made), header=True)
