"""Rows as they come, any number of them, as a file that other programs read."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from rating.errors import DataError
from rating.tables.duckdb_engine import connected
from rating.tables.escaping import in_csv_sql, literal, quoted

FORMATS = {
    ".parquet": "FORMAT parquet, ROW_GROUP_SIZE 20480",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
}
"""How duckdb writes a file, by its ending."""
AT_ONCE = 4096
"""Rows that are held in memory."""
NUMPY = {"DOUBLE": "float64", "BIGINT": "int64"}

Row = Mapping[str, Any]


def require_writable(path: Path) -> None:
    """Raise `DataError` unless a file has an ending of `FORMATS`."""
    if path.suffix not in FORMATS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)


def write_rows(rows: Iterable[Row], kinds: Mapping[str, str], path: Path) -> None:
    """Write rows in the memory of a few thousand: they are put aside beside the file, and united.

    Parameters
    ----------
    rows : iterable of mapping
        What a row does not have is null.
    kinds : mapping of str to str
        SQL's type of each column. VARCHAR, DOUBLE, BIGINT, TIMESTAMP (aware, written in UTC); or
        one of structs and lists, for texts of JSON, which a CSV has as they are.
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    require_writable(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".export-") as folder:
            _unite(_put_aside(rows, kinds, Path(folder)), kinds, path)
    except (duckdb.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        msg = f"Cannot write {str(path)!r}: {reason}."
        raise DataError(msg) from error


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
    arrays = {name: _array(kind, [row.get(name) for row in rows]) for name, kind in kinds.items()}
    casts = (f"CAST({quoted(n)} AS {_plain(kind)}) AS {quoted(n)}" for n, kind in kinds.items())
    with connected() as connection:
        connection.register("part", arrays)
        connection.table("part").project(", ".join(casts)).write_parquet(part)


def _unite(parts: Sequence[str], kinds: Mapping[str, str], path: Path) -> None:
    is_csv = path.suffix == ".csv"
    columns = (f"{_final(n, kind, is_csv=is_csv)} AS {quoted(n)}" for n, kind in kinds.items())
    with connected() as connection:
        connection.execute("SET threads = 1")  # more hold rows back, to write them in their order
        rows = f"SELECT {', '.join(columns)} FROM read_parquet([{', '.join(map(literal, parts))}])"  # noqa: S608 - the names are ours
        connection.execute(f"COPY ({rows}) TO {literal(str(path))} ({FORMATS[path.suffix]})")


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
        return np.array([_moment(value) for value in values], dtype="datetime64[us]")
    if kind not in NUMPY:
        return np.array(values, dtype=object)
    absent = [value is None for value in values]
    filled = np.array([0 if value is None else value for value in values], dtype=NUMPY[kind])
    return np.ma.MaskedArray(filled, mask=absent)


def _moment(value: object) -> np.datetime64:
    if not isinstance(value, datetime):
        return np.datetime64("NaT", "us")
    return np.datetime64(value.astimezone(UTC).replace(tzinfo=None), "us")
