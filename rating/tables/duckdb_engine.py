"""DuckDB engine: rows of files, and rows written as files for other programs.

`connected` gives a connection to the one engine of the process, which is started once because that
takes longer than to read a small table. `rows_of` reads files; cells of CSV and TSV stay text, and
nothing about them is guessed. `write_rows` writes any number of rows, `write_beside` and
`write_relation` those of a file that was read. Import this module where a table is first read or
written: duckdb takes half a second to import.
"""

import csv
import io
import os
import re
import sys
import tempfile
from codecs import BOM_UTF8
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
from duckdb.sqltypes import DuckDBPyType
from numpy.typing import NDArray

from rating.errors import DataError
from rating.tables.columns import LEFT_OUT, quoted_names
from rating.tables.files import (
    BATCH,
    COLUMNS,
    LARGE,
    LARGE_VALUE,
    MB,
    SHOWN,
    VALUE,
    Files,
    all_quoted,
    expanded,
    from_csv,
    from_csv_sql,
    in_csv,
    in_csv_sql,
    json_objects,
    kind_of,
    literal,
    most_unpacked,
    quoted,
    raw_pieces,
    replacing,
    require_cells,
    require_unpacked,
    size_of,
)
from rating.tables.parquet import long_columns
from rating.typing import Ints

NO_OBJECT = "json"
"""What duckdb names the one column of a file of JSON without an object."""

MOST_HEADER = 1 << 20
"""Bytes in which the names of the columns have to end."""

SEPARATORS = (",", "\t", ";", "|")

NESTED = ("list", "struct", "map")
SHORT = 64
"""Bytes of a text up to which it takes about the memory of a number."""

SMALL = 4 * MB
"""Bytes of packed JSON of which each row is looked at before the engine sees it: it takes a
hundred megabytes for a row of ten, and a packed file of ten kilobytes may have such a row."""
ANY_TEXT = 512 * MB
"""Bytes of files from which on what their texts may take is more than a machine has."""

STRETCHES = 64
"""Parts of a file from which a sample is taken."""

_TOO_LONG = " bytes, and one may have "


# Engine


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


# Reading


def columns_in_file(path: Path) -> list[str]:
    """Name the columns of a CSV or a Parquet file in its own words.

    To duckdb ``m`` and ``M`` are one name: it makes ``M_1`` of the second.
    """
    _require_table(path)
    if path.suffix != ".parquet":
        return _header(path)[1]
    long_columns(path)  # or the engine would unpack a footer of any size
    with connected() as connection:
        parts = connection.sql(
            "SELECT name, coalesce(num_children, 0) FROM parquet_schema(?)", params=[_exact(path)]
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


def sampled_sizes(paths: Sequence[Path], column: str, most: int) -> Ints:
    """Count how often each value of a column of Parquet files occurs in a sample of the rows.

    The rows are stretches spread evenly over each file: what is between them is not unpacked.
    Empty where the column cannot be read.
    """
    n_rows, n = rows_in_parquet(paths) // len(paths), most // len(paths) // STRETCHES
    starts = [i * n_rows // STRETCHES for i in range(STRETCHES)]
    chosen = " OR ".join(f"file_row_number BETWEEN {at} AND {at + n - 1}" for at in starts)
    with connected() as connection, suppress(duckdb.Error):
        rows = connection.read_parquet(
            [*map(_exact, paths)], file_row_number=True, union_by_name=True
        )
        some = rows.filter(f"({chosen}) AND {quoted(column)} IS NOT NULL")
        sizes = some.aggregate("count(*) AS n", f"hash({quoted(column)})").fetchnumpy()["n"]
        return np.asarray(sizes, dtype=np.int64)
    return np.empty(0, dtype=np.int64)


def rows_of(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]
) -> duckdb.DuckDBPyRelation:
    """Give the rows of files one after the other, their columns united by name."""
    parts = [rows_in(connection, path) for path in paths]
    names = parts[0].columns
    for path, part in zip(paths, parts, strict=True):
        require_alike(paths[0], names, path, part.columns)
    if len(parts) > 1 and kind_of(paths[0]) == "Parquet":
        rows = connection.read_parquet([*map(_exact, paths)], union_by_name=True)
        long = {name for path in paths for name in long_columns(path)}
        return _with_short_values(rows, f"{paths[0]} and {len(paths) - 1} more", long)
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
        long = long_columns(path)
        rows = connection.read_parquet(_exact(path))
        if any(name.endswith("_1") for name in rows.columns):  # as duckdb names a second one
            names = columns_in_file(path)
            if twice := next((name for name, n in Counter(names).items() if n > 1), None):
                msg = f"{str(path)!r} has two columns {twice!r}: rename one, or leave it out."
                raise DataError(msg)
        return _with_short_values(rows, str(path), long)
    if kind == "text":
        return _read_plain(connection, path)
    _require_table(path)
    if path.suffix == ".gz":  # which the engine would unpack without end
        is_small = size_of([path]) < SMALL
        deque(json_objects(path) if is_small else raw_pieces(path), maxlen=0)
    head = next(raw_pieces(path), b"")
    is_list = head.startswith(BOM_UTF8) and head.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
    form: Literal["array", "auto"] = (
        "array" if is_list else "auto"
    )  # behind a mark the engine does not see the list
    there = connection.read_json(_exact(path), format=form).columns
    if there == [NO_OBJECT] and not any(map(bool, json_objects(path))):
        raise DataError(f"There is no row in {str(path)!r}: give one JSON object a row.")
    texts = dict.fromkeys(there, "VARCHAR")
    rows = connection.read_json(_exact(path), format=form, columns=texts)
    return _with_short_values(rows, str(path), there)


def _with_short_values(
    rows: duckdb.DuckDBPyRelation, name: str, columns: Collection[str]
) -> duckdb.DuckDBPyRelation:
    """Have the engine raise an error, as `too_long` knows it, for a value that is too long.

    Once it reads it: what is in a column that nobody reads does not matter.
    """
    if not columns:
        return rows
    parts = []
    for column, kind in zip(rows.columns, rows.types, strict=True):
        if column not in columns or kind.id not in ("varchar", "blob"):
            parts.append(quoted(column))
            continue
        most = LARGE_VALUE if column in LARGE else VALUE
        before, after = f"Column {column!r} of {name!r} has a value of ", f"{_TOO_LONG}{most:,}: "
        n_bytes = _bytes_in(quoted(column), kind)
        why = (
            f"{literal(before)} || format('{{:,}}', {n_bytes}) || "
            f"{literal(after + 'shorten it, or leave its row out.')}"
        )
        parts.append(
            f"CASE WHEN {n_bytes} > {most} THEN error({why}) ELSE {quoted(column)} END "
            f"AS {quoted(column)}"
        )
    return rows.project(", ".join(parts))


def too_long(error: duckdb.Error) -> str | None:
    """Give the sentence of an error for a value that is too long; None of another error."""
    message = str(error)
    return message.partition(": ")[2] if _TOO_LONG in message else None


def require_held(rows: duckdb.DuckDBPyRelation, paths: Sequence[Path]) -> None:
    """Raise `DataError` if rows of files take more memory than the size of the files allows.

    In a small file many rows may share a long text, or be many: the reader would hold each.
    """
    size, name = size_of(paths), str(Files((*paths,)))
    if name.endswith(".gz"):  # two threads would hold what is unpacked twice
        with duckdb.connect(config={"threads": 1}) as alone:
            query = f"SELECT count(*) FROM ({rows.sql_query()})"  # noqa: S608 - our own query
            n = alone.execute(query).fetchall()[0][0]
    else:
        n = rows.aggregate("count(*)").fetchall()[0][0]
    require_cells(name, n * len(rows.columns), size)
    columns = [(quoted(name), kind) for name, kind in zip(rows.columns, rows.types, strict=True)]
    lists = [sql for one in columns if one[1].id in NESTED and (sql := _bytes_in(*one))]
    if lists:
        _require_lists(rows, lists, name, size)
    if n * len(columns) * VALUE <= BATCH or size > ANY_TEXT:
        return
    texts = [_bytes_in(*one) for one in columns if one[1].id not in NESTED]
    long = [f"coalesce(sum({own}) FILTER ({own} > {SHORT}), 0)" for own in texts if own]
    if long:
        n_bytes = rows.aggregate(f"CAST({' + '.join(long)} AS BIGINT)").fetchall()[0][0]
        require_unpacked(name, n_bytes, size)


def _require_lists(
    rows: duckdb.DuckDBPyRelation, lists: Sequence[str], name: str, size: int
) -> None:
    """Look at lists and objects in an engine of their own, which has no more memory than fits.

    To read a list of texts copies each of them, however often it is the same.
    """
    most = most_unpacked(size)
    sums = ", ".join(f"coalesce(sum({sql}), 0)::BIGINT, max({sql})" for sql in lists)
    config: dict[str, str | bool | int | float | list[str]]
    config = {"memory_limit": f"{most + 2 * BATCH}B", "threads": 1, "temp_directory": ""}
    try:
        with duckdb.connect(config=config) as bounded:
            query = f"SELECT {sums} FROM ({rows.sql_query()})"  # noqa: S608 - our own query
            sizes = bounded.execute(query).fetchall()[0]
    except duckdb.OutOfMemoryException:
        require_unpacked(name, most + 1, size)
        raise
    require_unpacked(name, sum(sizes[::2]), size)
    if (longest := max(filter(None, sizes[1::2]), default=0)) > LARGE_VALUE:
        msg = f"{name!r} has a list or an object of {longest:,}{_TOO_LONG}{LARGE_VALUE:,}: "
        raise DataError(f"{msg}shorten it, or leave its row out.")


def _bytes_in(column: str, kind: DuckDBPyType) -> str | None:
    """Give SQL for the bytes of a column's texts; None of a column that has none.

    Where the values are lists, for all of one list, and 8 for each of its members.
    """
    match kind.id:
        case "varchar":
            return f"strlen({column})"
        case "blob":
            return f"octet_length({column})"
        case "struct":
            inner = (
                _bytes_in(f"struct_extract({column}, {literal(name)})", part)
                for name, part in _parts_of(kind)
            )
            sizes = [f"coalesce({size}, 0)" for size in inner if size]
            return f"({' + '.join(sizes)})" if sizes else None
        case "list":
            size = _bytes_in("x", _parts_of(kind)[0][1]) or "0"
            each = f"list_transform({column}, lambda x: 8 + coalesce({size}, 0))"
            return f"list_sum({each})::BIGINT"
        case "map":
            sides = [
                _bytes_in(f"map_{name}s({column})", duckdb.list_type(part))
                for name, part in _parts_of(kind)
            ]
            return " + ".join(f"coalesce({size}, 0)" for size in sides)
    return None


def _parts_of(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    return [(name, part) for name, part in kind.children if isinstance(part, DuckDBPyType)]


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


# CSV and TSV


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
    rows = rows.project(from_csv_sql(rows.columns))
    return _with_short_values(rows, str(path), rows.columns)


def _described(error: duckdb.Error, path: Path) -> str | None:
    """Find what is wrong with a file of text, and in which line; None if it is something else."""
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
    head = _head(path)
    try:
        text = head.decode("utf-8-sig", "ignore" if len(head) == MOST_HEADER else "strict")
        csv.field_size_limit(MOST_HEADER)  # the whole line, where another separator parts it
        rows = [
            (separator, next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), []))
            for separator in (("\t",) if ".tsv" in path.suffixes else SEPARATORS)
        ]
    except csv.Error as error:
        raise DataError(f"Cannot read {str(path)!r}: {error}.") from error
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        msg = f"Line {line} of {str(path)!r} is not UTF-8: save the file as UTF-8."
        raise DataError(msg) from error
    separator, row = next((one for one in rows if len(one[1]) > 1), rows[0])
    if not row:
        raise DataError(f"{str(path)!r} is empty: its first line should name the columns.")
    if len(row) > COLUMNS:
        msg = f"{str(path)!r} has {len(row):,} columns: {COLUMNS:,} are read. Leave some out."
        raise DataError(msg)
    return separator, [name or f"column{place}" for place, name in enumerate(from_csv(row))]


def _head(path: Path) -> bytes:
    """Give the beginning of a file; raises `DataError` if there is a NUL byte anywhere in it."""
    head, line = b"", 1
    for part in raw_pieces(path):
        if (place := part.find(b"\0")) >= 0:
            line += part.count(b"\n", 0, place)
            msg = (
                f"Line {line} of {str(path)!r} holds a NUL byte: it is no text, or in another "
                "encoding. Save the file as UTF-8."
            )
            raise DataError(msg)
        head += part if len(head) < MOST_HEADER else b""
        line += part.count(b"\n")
    return head[:MOST_HEADER]


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


# Writing


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
        raise DataError(f"Cannot write {str(path)!r}: {reason}.") from error


def require_writable(path: Path) -> None:
    """Raise `DataError` unless a file has an ending of `FORMATS`."""
    if path.suffix not in FORMATS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)


def write_rows(
    rows: Iterable[Row], kinds: Mapping[str, str], path: Path, *, shard_bytes: int = SHARD_BYTES
) -> None:
    """Write rows in the memory of a few thousand: they are put aside beside the file, and united.

    Parameters
    ----------
    rows : iterable of mapping
        What a row does not have is null.
    kinds : mapping of str to str
        SQL's type of each column. VARCHAR, DOUBLE, BIGINT, BOOLEAN, TIMESTAMP (aware, written in
        UTC); or one of structs and lists, for texts of JSON, which a CSV has as they are.
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
    while (some := list(islice(left, AT_ONCE))) or not parts:
        parts.append(str(folder / f"{len(parts):08}.parquet"))
        with connected() as connection:
            _relation(connection, some, kinds).write_parquet(parts[-1])
    return parts


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
    return kind if kind in (*NUMPY, "TIMESTAMP", "BOOLEAN") else "VARCHAR"


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
        raise DataError(f"Cannot write {str(path)!r}: name a file that ends in .parquet or .csv.")
    files = Files.of(source)
    if files and os.path.realpath(path) in map(os.path.realpath, expanded(files.paths)):
        raise DataError(f"{str(source)!r} cannot be read and written at once: name another file.")


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
        raise DataError(f"There is a column {min(taken)!r} already: rename it.")
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
