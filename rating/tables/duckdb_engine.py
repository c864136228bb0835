"""The engine that reads and writes tables, and the rows of files as it reads them.

Files of text, CSV and TSV, are read to the letter: nothing about them is guessed.

The engine is started once, for that takes longer than to read a small table. Imported where a
table is first read or written: duckdb takes half a second to import.
"""

import csv
import gzip
import io
import re
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb

from rating.errors import DataError
from rating.tables.columns import LEFT_OUT, quoted_names
from rating.tables.escaping import all_quoted, from_csv, from_csv_sql
from rating.tables.files import SHOWN, json_objects, kind_of

NO_OBJECT = "json"
"""What duckdb names the one column of a file of JSON without an object."""

MOST_HEADER = 1 << 20
"""Bytes in which the names of the columns have to end."""

SEPARATORS = (",", "\t", ";", "|")


def connected() -> duckdb.DuckDBPyConnection:
    """Give a connection to the process's one engine: what it registers, no other one sees.

    Close it, as a context does; the engine stays. It keeps nothing of the files that it reads,
    which may be others under the same names a moment later.
    """
    return _started().cursor()


@cache
def _started() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"enable_external_file_cache": False})


def let_go() -> None:
    """Give duckdb up for good, at the end of a process that has served.

    Python clears what is left in an order of its own, and often too late: duckdb's binding then
    writes a hundred lines on leaks to stderr.
    """
    _started.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in {"duckdb", "_duckdb"}]:
        vars(sys.modules.pop(name)).clear()


def columns_in_file(path: Path) -> list[str]:
    """Name the columns of a CSV or a Parquet file in its own words.

    To duckdb ``m`` and ``M`` are one name: it makes ``M_1`` of the second.
    """
    _require_table(path)
    if path.suffix != ".parquet":
        return _header(path)[1]
    with connected() as connection:
        parts = connection.sql(
            "SELECT name, coalesce(num_children, 0) FROM parquet_schema(?)",
            params=[_exact(path)],
        ).fetchall()
    names, inside = [], 0
    for name, children in parts[1:]:  # each column is followed by what is in it
        if not inside:
            names.append(name)
        inside += children - bool(inside)
    return names


def _require_table(path: Path) -> None:
    if kind_of(path) == "Inspect":
        msg = f"{str(path)!r} is a log of Inspect, no votes: arena judge run takes its answers."
        raise DataError(msg)


def rows_in_parquet(paths: Sequence[Path]) -> int:
    """Count the rows of Parquet files, as their footers do; 0 where one cannot be read."""
    count = "SELECT coalesce(sum(num_rows), 0) FROM parquet_file_metadata(?)"
    with connected() as connection, suppress(duckdb.Error):
        return int(connection.sql(count, params=[[*map(_exact, paths)]]).fetchall()[0][0])
    return 0


def rows_of(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]
) -> duckdb.DuckDBPyRelation:
    """Give the rows of files one after the other, their columns united by name."""
    parts = [rows_in(connection, path) for path in paths]
    names = parts[0].columns
    for path, part in zip(paths, parts, strict=True):
        require_alike(paths[0], names, path, part.columns)
    if len(parts) > 1 and kind_of(paths[0]) == "Parquet":
        return connection.read_parquet([*map(_exact, paths)], union_by_name=True)
    if len(parts) > 1:
        parts = [part.project(all_quoted(names)) for part in parts]
    while len(parts) > 1:  # in pairs of pairs: the engine does not follow a long chain
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [pair[0].union(pair[1]) if pair[1:] else pair[0] for pair in pairs]
    return parts[0]


def require_alike(one: Path, names: Sequence[str], other: Path, others: Sequence[str]) -> None:
    """Raise `DataError` unless two files of one table have the same columns, in any order."""
    if {*names} == {*others}:
        return
    sides = {"lacks": (names, others), "has also": (others, names)}
    odd = {word: [name for name in a if name not in b] for word, (a, b) in sides.items()}
    words = " and ".join(f"{word} {quoted_names(some)}" for word, some in odd.items() if some)
    msg = f"{str(other)!r} {words}, unlike {str(one)!r}: "
    raise DataError(f"{msg}files that are read as one table have the same columns.")


def rows_in(connection: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    """Give the rows of a file; of one of text all as text: 007 or 2024-01-01 stays what it is."""
    kind = kind_of(path)
    if kind == "Parquet":
        rows = connection.read_parquet(_exact(path))
        if any(name.endswith("_1") for name in rows.columns):  # as duckdb names a second one
            names = columns_in_file(path)
            if twice := next((name for name, n in Counter(names).items() if n > 1), None):
                msg = f"{str(path)!r} has two columns {twice!r}: rename one, or leave it out."
                raise DataError(msg)
        return rows
    if kind == "text":
        return _read_plain(connection, path)
    _require_table(path)
    there = connection.read_json(_exact(path)).columns
    if there == [NO_OBJECT]:
        _require_rows(path)
    return connection.read_json(_exact(path), columns=dict.fromkeys(there, "VARCHAR"))


def as_parquet(
    connection: duckdb.DuckDBPyConnection,
    rows: duckdb.DuckDBPyRelation,
    names: Sequence[str],
    target: Path,
) -> duckdb.DuckDBPyRelation:
    """Parse some columns of a file of text once."""
    reasons = {LEFT_OUT} & {*rows.columns}
    rows.project(all_quoted(dict.fromkeys([*names, *reasons]))).write_parquet(str(target))
    return connection.read_parquet(str(target))


def _require_rows(path: Path) -> None:
    """Raise `DataError` if a file of JSON has no row, or one that is no object."""
    if not any(map(bool, json_objects(path))):
        msg = f"There is no row in {str(path)!r}: give one JSON object a row."
        raise DataError(msg)


def explain(error: duckdb.Error, paths: Sequence[Path]) -> None:
    """Raise `DataError` with the line that is wrong, if that is known."""
    if kind_of(paths[0]) == "JSON":
        for path in paths:
            deque(json_objects(path), maxlen=0)  # duckdb counts the lines of JSON from 2
        return
    named = (path for path in paths if f"file = {path}\n" in str(error))
    if why := _described(error, next(named, paths[0])):
        raise DataError(why) from error


def _exact(path: Path) -> str:
    """Give a path in which duckdb sees no pattern: it would read ``[a]``, ``?`` and ``*``."""
    return "".join(f"[{c}]" if c in "[?*" else c for c in str(path))


def _read_plain(connection: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    """Give the rows of a CSV or a TSV, as they were before `in_csv`, every cell as text.

    Raises
    ------
    DataError
        If it has no first row, names a column twice, or holds a NUL.
    """
    separator, names = _header(path)
    rows = connection.read_csv(
        _exact(path),
        header=True,
        auto_detect=False,
        columns=dict.fromkeys(_distinct(path, names), "VARCHAR"),
        delimiter=separator,
        quotechar='"',
        escapechar='"',
    )
    return rows.project(from_csv_sql(rows.columns))


def _described(error: duckdb.Error, path: Path) -> str | None:
    """Say what is wrong with a file of text, and in which line; None if it is something else."""
    message = str(error)
    line = re.search(r"CSV Error on Line: (\d+)\n(?:Original Line: (.*))?", message)
    if line is None:
        return None
    where, text = f"Line {line[1]} of {str(path)!r}", f": {(line[2] or '')[:SHOWN]!r}"
    if cells := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return (
            f"{where} has {cells[2]} cells, and the first line has {cells[1]}{text}. Give every "
            "row as many, with quotes around one that holds a separator."
        )
    if "unicode" in message:
        return f"{where} is not UTF-8{text}. Save the file as UTF-8."
    if "unterminated quote" in message:
        return f"{where} has a quote that does not end{text}. Write a quote in a cell twice."
    if "Maximum line size" in message:
        return f"{where} is longer than 2 MiB{text}. Shorten it, or write the file as Parquet."
    return f"{where} cannot be read{text}. Mend it, or leave it out."


def _header(path: Path) -> tuple[str, list[str]]:
    """Give the separator, which is the first that parts the first line, and the names."""
    try:
        text = _decoded(path, _head(path))
        rows = [(separator, _first_row(text, separator)) for separator in _separators(path)]
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        msg = f"Cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}."
        raise DataError(msg) from error
    separator, row = next((one for one in rows if len(one[1]) > 1), rows[0])
    if not row:
        msg = f"{str(path)!r} is empty: its first line should name the columns."
        raise DataError(msg)
    return separator, [name or f"column{place}" for place, name in enumerate(from_csv(row))]


def _head(path: Path) -> bytes:
    """Give the beginning of a file; raises `DataError` if there is a NUL byte anywhere in it."""
    head, line = b"", 1
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while part := file.read(MOST_HEADER):
            if (place := part.find(b"\0")) >= 0:
                line += part.count(b"\n", 0, place)
                msg = (
                    f"Line {line} of {str(path)!r} holds a NUL byte: it is no text, or in another "
                    "encoding. Save the file as UTF-8."
                )
                raise DataError(msg)
            head, line = head or part, line + part.count(b"\n")
    return head


def _decoded(path: Path, head: bytes) -> str:
    try:
        return head.decode("utf-8-sig", errors="ignore" if len(head) == MOST_HEADER else "strict")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        msg = f"Line {line} of {str(path)!r} is not UTF-8: save the file as UTF-8."
        raise DataError(msg) from error


def _separators(path: Path) -> Sequence[str]:
    return ("\t",) if ".tsv" in path.suffixes else SEPARATORS


def _first_row(text: str, separator: str) -> list[str]:
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])


def _distinct(path: Path, names: Sequence[str]) -> Iterator[str]:
    """Tell names apart as duckdb does, to which ``m`` and ``M`` are one: ``M_1``."""
    taken: set[str] = set()
    for place, name in enumerate(names):
        if name in names[:place]:
            msg = f"{str(path)!r} has two columns {name!r}: rename one, or leave it out."
            raise DataError(msg)
        distinct = name if name.lower() not in taken else f"{name}_1"
        taken.add(distinct.lower())
        yield distinct
