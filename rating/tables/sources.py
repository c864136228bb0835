"""Where votes are read from: a file, or a table of any library that narwhals knows."""

import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import narwhals._namespace as narwhals_namespace
import numpy as np
from numpy.typing import NDArray

from rating.counting import count_packed, fits, unpacked
from rating.errors import DataError
from rating.tables import peers
from rating.tables.coding import Coded, checked, coded
from rating.tables.columns import COUNTS
from rating.tables.duckdb_engine import connected
from rating.tables.files import json_objects, require_file
from rating.tables.plain import described, header, plain_cell, quoted, read_plain
from rating.typing import Floats, Integers

Frame = nw.LazyFrame[Any] | nw.DataFrame[Any]

PLAIN = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
ENDINGS = (".parquet", *PLAIN, *JSON)
N = "__n"
"""Column of a count; no table of votes has one of this name."""

NO_OBJECT = "json"
"""What duckdb names the one column of a file of JSON without an object."""

LONGEST = 300
"""Characters of an engine's own words that a sentence quotes."""

FEW = 10_000
"""Rows up to which the names of duckdb are coded here: to ask it to takes longer than to do it."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of votes as arrays: a row is a vote, or ``n`` votes that are alike.

    Attributes
    ----------
    texts : mapping of str to Coded
        By role: ``model_a``, ``model_b``, ``winner`` and what else was asked for.
    numbers : mapping of str to ndarray of float64
        By role; NaN where the value is missing.
    n : ndarray of int, or None
        Votes of each row; None for one each.
    first : callable
        Number of the first row of the source, from 1, that holds none or a blank in a role;
        None where the source has no order.
    """

    texts: Mapping[str, Coded]
    numbers: Mapping[str, Floats]
    n: Integers | None
    first: Callable[[str], int | None]

    def counted(self, codes: Sequence[Integers], n: Integers) -> "Table":
        """Return rows with these codes instead, each standing for ``n`` votes."""
        texts = {
            role: Coded(column.names, code)
            for (role, column), code in zip(self.texts.items(), codes, strict=True)
        }
        return Table(texts, {}, n, self.first)


@contextmanager
def opened(
    source: object,
    wanted: Callable[[Sequence[str]], Sequence[str]],
    *,
    holds: str = "votes",
    as_peers: bool = True,
) -> Iterator[Frame]:
    """Give a source as a narwhals frame: in memory as it came, everything else lazily.

    Parameters
    ----------
    source : path or table
        A file that ends in one of `ENDINGS`, or a table that narwhals knows: of pandas,
        polars, pyarrow, duckdb, dask, pyspark.
    wanted : callable
        From the columns that are there to those that will be read: of files of text, only
        these are parsed.
    holds : str
        What should be in it, for errors.
    as_peers : bool
        Read a file of a format in `rating.tables.peers.FORMATS` as votes in our columns.

    Raises
    ------
    DataError
        If the file or the table cannot be read, now or while the frame is in use.
    """
    try:
        if isinstance(source, str | Path):
            with _opened_file(Path(source), wanted, as_peers) as frame:
                yield frame
        else:
            yield _frame(source)
    except (duckdb.Error, nw.exceptions.NarwhalsError) as error:
        name = repr(str(source)) if isinstance(source, str | Path) else type(source).__name__
        msg = f"Cannot read the {holds} of {name}: {str(error).splitlines()[0][:LONGEST]}"
        raise DataError(msg) from error
    finally:
        _forget_engines()


def _forget_engines() -> None:
    """Empty what narwhals keeps on each engine for the life of the process; it fills again.

    What it keeps on duckdb holds types of duckdb's binding, which at the end of the process would
    print forty lines on leaks. The cache has no public name: one that is gone is passed over.
    """
    cache = getattr(narwhals_namespace, "_builtin_namespace", None)
    if cache is not None:
        cache.cache_clear()


def _frame(source: object) -> Frame:
    try:
        frame: Frame = nw.from_native(source)
    except TypeError as error:
        msg = (
            f"Cannot read votes from a {type(source).__name__}: give the path of a file that "
            f"ends in {', '.join(ENDINGS)}, or a table of pandas, polars, pyarrow or duckdb."
        )
        raise DataError(msg) from error
    return frame


@contextmanager
def _opened_file(
    path: Path, wanted: Callable[[Sequence[str]], Sequence[str]], as_peers: bool
) -> Iterator[Frame]:
    ending = next((e for e in sorted(ENDINGS, key=len, reverse=True) if path.name.endswith(e)), "")
    if not ending:
        msg = f"Cannot read {str(path)!r}: name a file that ends in {', '.join(ENDINGS)}."
        raise DataError(msg)
    require_file(path)
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        try:
            rows = _rows_of(connection, path, ending)
            theirs, known = rows.columns, None
            if as_peers:
                rows, known = peers.as_votes(rows)
            try:
                names = wanted(rows.columns)
            except DataError as error:
                why = peers.explained(str(path), theirs, error) if as_peers else error
                raise why from error.__cause__
            if ending != ".parquet":
                rows = _as_parquet(connection, rows, names, Path(folder) / "votes.parquet")
        except duckdb.Error as error:
            _explain(error, path, ending)
            raise
        if known is not None:
            peers.announce(str(path), known.name, peers.left_out(rows))
        yield nw.from_native(rows)


def columns_in_file(path: Path) -> list[str]:
    """Name the columns of a CSV or a Parquet file in its own words.

    To duckdb ``m`` and ``M`` are one name: it makes ``M_1`` of the second.
    """
    if path.suffix != ".parquet":
        return header(path)[1]
    with connected() as connection:
        parts = connection.sql(
            "SELECT name, coalesce(num_children, 0) FROM parquet_schema(?)",
            params=[_literal(path)],
        ).fetchall()
    names, inside = [], 0
    for name, children in parts[1:]:  # each column is followed by what is in it
        if not inside:
            names.append(name)
        inside += children - bool(inside)
    return names


def _rows_of(
    connection: duckdb.DuckDBPyConnection, path: Path, ending: str
) -> duckdb.DuckDBPyRelation:
    """Give the rows of a file; of one of text all as text: 007 or 2024-01-01 stays what it is."""
    if ending == ".parquet":
        rows = connection.read_parquet(_literal(path))
        if any(name.endswith("_1") for name in rows.columns):  # as duckdb names a second one
            names = columns_in_file(path)
            if twice := next((name for name, n in Counter(names).items() if n > 1), None):
                msg = f"{str(path)!r} has two columns {twice!r}: rename one, or leave it out."
                raise DataError(msg)
        return rows
    if ending in PLAIN:
        rows = read_plain(connection, path, _literal(path))
        return rows.project(", ".join(map(plain_cell, rows.columns)))
    there = connection.read_json(_literal(path)).columns
    if there == [NO_OBJECT]:
        _require_rows(path)
    return connection.read_json(_literal(path), columns=dict.fromkeys(there, "VARCHAR"))


def _as_parquet(
    connection: duckdb.DuckDBPyConnection,
    rows: duckdb.DuckDBPyRelation,
    names: Sequence[str],
    target: Path,
) -> duckdb.DuckDBPyRelation:
    """Parse some columns of a file of text once."""
    reasons = {peers.LEFT_OUT} & {*rows.columns}
    rows.project(", ".join(map(quoted, dict.fromkeys([*names, *reasons])))).write_parquet(
        str(target)
    )
    return connection.read_parquet(str(target))


def _require_rows(path: Path) -> None:
    """Raise `DataError` if a file of JSON has no row, or one that is no object."""
    if not any(map(bool, json_objects(path))):
        msg = f"There is no row in {str(path)!r}: give one JSON object a row."
        raise DataError(msg)


def _explain(error: duckdb.Error, path: Path, ending: str) -> None:
    """Raise `DataError` with the line that is wrong, where it can be told."""
    if ending in JSON:
        deque(json_objects(path), maxlen=0)  # duckdb counts the lines of JSON from 2
    elif why := described(error, path):
        raise DataError(why) from error


def _literal(path: Path) -> str:
    """Give a path in which duckdb sees no pattern: it would read ``[a]``, ``?`` and ``*``."""
    return "".join(f"[{c}]" if c in "[?*" else c for c in str(path))


def fetch(
    frame: Frame, texts: Mapping[str, str], numbers: Mapping[str, str], *, group: bool
) -> Table:
    """Read columns by role.

    Parameters
    ----------
    texts, numbers : mapping of str to str
        From a role to the name of its column; the role ``n`` counts the votes of a row.
    group : bool
        Count rows that are alike where the table is, rather than read each of them.
    """
    if isinstance(frame, nw.DataFrame):
        return _fetch_eager(frame, texts, numbers)
    return _fetch_lazy(frame, texts, numbers, group=group)


def count_alike(frame: nw.LazyFrame[Any], keys: Sequence[str]) -> nw.LazyFrame[Any]:
    """Count the rows of each combination of keys, in whatever engine holds the frame."""
    return frame.group_by(*keys).agg(nw.len().alias(N))


def one_row_an_outcome(frame: Frame, keep: Sequence[str]) -> Frame:
    """Turn a row with counts of each outcome into a row an outcome, counted in ``n``."""
    there = frame.collect_schema().names()
    parts = [
        frame.select(
            *keep, nw.lit(outcome).alias("winner"), nw.col(name).cast(nw.Float64()).alias(N)
        )
        for name, outcome in COUNTS.items()
        if name in there
    ]
    together: Frame = nw.concat(parts)  # type: ignore[type-var]
    return together


def _fetch_eager(
    frame: nw.DataFrame[Any], texts: Mapping[str, str], numbers: Mapping[str, str]
) -> Table:
    with ThreadPoolExecutor() as pool:  # what codes text leaves Python to its other threads
        coding = pool.map(coded, [frame[name] for name in texts.values()])
        columns = dict(zip(texts, coding, strict=True))
    arrays = {role: _floats(frame[name]) for role, name in numbers.items()}
    return _table(columns, arrays, lambda role: _first_blank(columns[role]))


def _table(
    texts: Mapping[str, Coded],
    numbers: dict[str, Floats],
    first: Callable[[str], int | None],
) -> Table:
    n = numbers.pop("n", None)
    if n is None:
        return Table(texts, numbers, None, first)
    bad = n[~(np.isfinite(n) & (n >= 0) & (n == np.rint(n)))]
    if bad.size:
        msg = f"A count is {bad[0]}; counts of votes are whole numbers from 0."
        raise DataError(msg)
    return Table(texts, numbers, n.astype(np.int64), first)


def _first_blank(column: Coded) -> int | None:
    blank = [code for code, name in enumerate(column.names) if not name.strip()]
    rows = np.flatnonzero(np.isin(column.codes, [-1, *blank]))
    return int(rows[0]) + 1 if rows.size else None


def _floats(column: "nw.Series[Any]") -> Floats:
    if column.dtype in (nw.Datetime, nw.Date):
        # Microseconds of UTC, as seconds; a missing moment must not become a number.
        moments = column if column.dtype == nw.Datetime else column.cast(nw.Datetime("us"))
        seconds = moments.dt.timestamp("us").cast(nw.Float64()) / 1e6
        return np.where(column.is_null().to_numpy(), np.nan, seconds.to_numpy())
    return np.asarray(column.cast(nw.Float64()).to_numpy(), dtype=np.float64)


def _fetch_lazy(
    frame: nw.LazyFrame[Any],
    texts: Mapping[str, str],
    numbers: Mapping[str, str],
    *,
    group: bool,
) -> Table:
    schema = frame.collect_schema()
    base = frame.select(
        *(_text(schema, name).alias(role) for role, name in texts.items()),
        *(_number(schema, name).alias(role) for role, name in numbers.items()),
    )

    def first(role: str) -> int | None:
        return _first_blank_lazy(frame, texts[role])

    few = _few(base.to_native())
    if few is not None:
        coded_few = {role: _coded(name, few[role].tolist()) for role, name in texts.items()}
        return _table(coded_few, {role: _filled(few[role]) for role in numbers}, first)
    rows = base
    names: dict[str, list[Any]] = {}
    # People first: rows counted in this order are in that of the cells they will be.
    for role in sorted(texts, key=lambda role: role not in ("voter", "prompt")):
        # Grouped, for narwhals makes a window of `unique`, which takes ten times as long.
        values = count_alike(base.filter(~nw.col(role).is_null()), [role]).select(role)
        index = values.with_row_index(f"{role}_code", order_by=role)
        names[role] = list(_arrays(index.sort(f"{role}_code"))[role])
        rows = rows.join(index, on=role, how="left").drop(role)
    sizes = {f"{role}_code": len(values) for role, values in names.items()}
    if not numbers and fits([*sizes.values()]):
        codes, n = _counted(rows, sizes, group=group)
        return Table(_columns(texts, names, codes), {}, n, first)
    arrays = _arrays(rows.select(*(nw.col(key).cast(nw.Int32()) for key in sizes), *numbers))
    columns = _columns(texts, names, [_codes(arrays[key]) for key in sizes])
    return _table(columns, {role: _filled(arrays[role]) for role in numbers}, first)


def _few(rows: object) -> Mapping[str, NDArray[Any]] | None:
    """Fetch rows of duckdb as they are, if they are few."""
    if not isinstance(rows, duckdb.DuckDBPyRelation):
        return None
    arrays: Mapping[str, NDArray[Any]] = rows.limit(FEW + 1).fetchnumpy()
    return None if any(len(values) > FEW for values in arrays.values()) else arrays


def _coded(column: str, values: list[str | None]) -> Coded:
    """Code names in their own order, as the engine does: that of the rows leaves no trace."""
    names = sorted({value for value in values if value is not None})
    place: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    place[None] = -1
    return checked(column, names, np.array([place[value] for value in values], dtype=np.int32))


def _columns(
    texts: Mapping[str, str], names: Mapping[str, list[Any]], codes: Sequence[Integers]
) -> dict[str, Coded]:
    return {
        role: checked(texts[role], held, code)
        for (role, held), code in zip(names.items(), codes, strict=True)
    }


def _counted(
    rows: nw.LazyFrame[Any], sizes: Mapping[str, int], *, group: bool
) -> tuple[list[Integers], Integers]:
    """Count the rows with the same codes; duckdb hands them over sooner than it counts them."""
    key = nw.lit(0)
    for name, size in sizes.items():
        key = key * (size + 1) + nw.col(name).cast(nw.Int64()).fill_null(-1) + 1
    keys = rows.select(key.alias("key"))
    if group and not isinstance(rows.to_native(), duckdb.DuckDBPyRelation):
        alike = _arrays(count_alike(keys, ["key"]))
        return unpacked(alike["key"], [*sizes.values()]), alike[N].astype(np.int64)
    return count_packed(np.require(_arrays(keys)["key"], requirements="W"), [*sizes.values()])


def _text(schema: nw.Schema, name: str) -> nw.Expr:
    kind = schema[name]
    if kind.is_float() or kind.is_temporal() or kind == nw.Boolean:
        msg = f"Column {name!r} is of {kind}; make text or whole numbers of its values."
        raise DataError(msg)
    return nw.col(name).cast(nw.String())


def _number(schema: nw.Schema, name: str) -> nw.Expr:
    column = nw.col(name)
    return column if schema[name].is_temporal() else column.cast(nw.Float64())


def _arrays(frame: Frame) -> Mapping[str, NDArray[Any]]:
    native = frame.to_native()
    if isinstance(native, duckdb.DuckDBPyRelation):
        arrays: Mapping[str, NDArray[Any]] = native.fetchnumpy()
        return arrays
    rows = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return {
        name: _floats(rows[name]) if rows[name].dtype.is_temporal() else rows[name].to_numpy()
        for name in rows.columns
    }


def _codes(values: NDArray[Any]) -> Integers:
    if isinstance(values, np.ma.MaskedArray):
        values = values.filled(-1)
    if values.dtype.kind == "f":  # an engine that has no integers with gaps
        values = np.where(np.isnan(values), -1, values)
    return np.asarray(values, dtype=np.int32)


def _filled(values: NDArray[Any]) -> Floats:
    missing = np.ma.getmaskarray(values)
    values = np.ma.getdata(values)
    if values.dtype.kind == "M":
        missing = missing | np.isnat(values)
        values = values.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(missing, np.nan, values.astype(np.float64))


def _first_blank_lazy(frame: nw.LazyFrame[Any], name: str) -> int | None:
    native = frame.to_native()
    if not isinstance(native, duckdb.DuckDBPyRelation):
        return None
    column = '"' + name.replace('"', '""') + '"'
    numbered = f"SELECT row_number() OVER () AS row, {column} AS name FROM votes"  # noqa: S608
    blank = "name IS NULL OR trim(CAST(name AS VARCHAR)) = ''"
    query = f"SELECT min(row) AS row FROM ({numbered}) WHERE {blank}"  # noqa: S608
    first = native.query("votes", query).fetchnumpy()["row"]  # type: ignore[union-attr]
    return None if np.ma.is_masked(first) else int(first[0])
