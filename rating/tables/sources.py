"""Where votes are read from: a file, or a table of any library that narwhals knows."""

import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from rating.tables.columns import COUNTS, KNOWN, quoted_names, require
from rating.tables.duckdb_engine import connected
from rating.tables.files import ENDINGS, Files, expanded, json_objects, kind_of
from rating.tables.plain import described, header, plain_cell, quoted, read_plain
from rating.typing import Floats, Integers

Frame = nw.LazyFrame[Any] | nw.DataFrame[Any]

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
    left_out: dict[str, int] | None = None,
) -> Iterator[Frame]:
    """Give a source as a narwhals frame: in memory as it came, everything else lazily.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        Files, folders or patterns of files that end in one of `ENDINGS`, read as one table; or a
        table that narwhals knows: of pandas, polars, pyarrow, duckdb, dask, pyspark.
    wanted : callable
        From the columns that are there to those that will be read: of files of text, only
        these are parsed.
    holds : str
        What should be in it, for errors.
    as_peers : bool
        Read a file of a format in `rating.tables.peers.FORMATS` as votes in our columns.
    left_out : dict, optional
        Takes how many rows are left out, by reason, instead of whoever is to notice it.

    Raises
    ------
    DataError
        If the file or the table cannot be read, now or while the frame is in use.
    """
    files = Files.of(source)
    try:
        if files is None:
            yield _frame(source)
        else:
            with _opened_files(files, wanted, holds, as_peers, left_out) as frame:
                yield frame
    except (duckdb.Error, nw.exceptions.NarwhalsError) as error:
        name = type(source).__name__ if files is None else repr(str(files))
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
def _opened_files(
    files: Files,
    wanted: Callable[[Sequence[str]], Sequence[str]],
    holds: str,
    as_peers: bool,
    left_out: dict[str, int] | None,
) -> Iterator[Frame]:
    paths = expanded(files.paths)
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        try:
            rows, n_chosen = chosen(_rows_of(connection, paths), files)
            theirs, known = rows.columns, None
            labelled = not {*winners(files)}.isdisjoint(theirs)  # else the format makes a winner
            rows = _labelled(rows, files) if labelled else rows
            if as_peers:
                rows, known = peers.as_votes(rows)
                _require_one_format(connection, paths, known)
            rows = _named(rows if labelled else _labelled(rows, files), files.columns)
            try:
                names = wanted(rows.columns)
            except DataError as error:
                why = peers.explained(str(files), theirs, error) if as_peers else error
                raise why from error.__cause__
            if kind_of(paths[0]) != "Parquet":
                rows = _as_parquet(connection, rows, names, Path(folder) / "votes.parquet")
        except (duckdb.Error, DataError) as error:
            reason = error.__cause__ if isinstance(error, DataError) else error
            if isinstance(reason, duckdb.Error):
                _explain(reason, paths)
            raise
        if left_out is not None:
            left_out |= n_chosen
        elif known is not None or n_chosen or len(paths) > 1:
            reasons = ({} if known is None else peers.left_out(rows)) | n_chosen
            peers.announce(str(files), known.name if known else holds, reasons, len(paths))
        yield nw.from_native(rows)


def chosen(
    rows: duckdb.DuckDBPyRelation, files: Files
) -> tuple[duckdb.DuckDBPyRelation, dict[str, int]]:
    """Give the rows of which the condition holds, and how many it leaves out.

    Raises
    ------
    DataError
        If the condition cannot be read or worked out, or holds of no row.
    """
    if files.where is None:
        return rows, {}
    try:
        fit = rows.filter(files.where)
        counts = f"count(*), count(*) FILTER (\n{files.where}\n)"
        n, n_fit = rows.aggregate(counts).fetchall()[0]
    except duckdb.Error as error:
        reason = str(error).splitlines()[0][:LONGEST]
        msg = f"Cannot choose rows of {str(files)!r} by where {files.where!r}: {reason}"
        raise DataError(msg) from error
    if n and not n_fit:
        msg = f"No row of {str(files)!r} fits where {files.where!r}: all {n:,} are left out."
        raise DataError(msg)
    return fit, {"by where": n - n_fit}


def winners(files: Files) -> tuple[str, ...]:
    """Name the columns that may hold the winner, the likeliest first."""
    named = dict(files.columns).get("winner", files.winner)
    return (*([named] if named else []), *KNOWN["winner"])


def label_column(files: Files, there: Sequence[str]) -> str:
    """Name the column whose labels are to be read as others; raises `DataError` without one."""
    name = next((name for name in winners(files) if name in there), None)
    if name is None:
        msg = f"There is no column of a winner in {str(files)!r} to read labels of; "
        raise DataError(f"{msg}there are {quoted_names(there)}.")
    return name


def _labelled(rows: duckdb.DuckDBPyRelation, files: Files) -> duckdb.DuckDBPyRelation:
    if not files.labels:
        return rows
    name = label_column(files, rows.columns)
    text = f"CAST({quoted(name)} AS VARCHAR)"
    whens = (f"WHEN {_in_sql(theirs)} THEN {_in_sql(ours)}" for theirs, ours in files.labels)
    return _replaced(rows, {name: f"CASE {text} {' '.join(whens)} ELSE {text} END"})


def _named(
    rows: duckdb.DuckDBPyRelation, columns: Sequence[tuple[str, str]]
) -> duckdb.DuckDBPyRelation:
    """Give columns of theirs under our names as well."""
    there = rows.columns
    return _replaced(rows, {ours: quoted(require(theirs, there)) for ours, theirs in columns})


def _replaced(
    rows: duckdb.DuckDBPyRelation, columns: Mapping[str, str]
) -> duckdb.DuckDBPyRelation:
    """Put columns in the place of those with the same name, or else behind all others."""
    if not columns:
        return rows
    sql = {name.lower(): f"{quoted(name)}" for name in rows.columns}
    sql |= {name.lower(): f"{made} AS {quoted(name)}" for name, made in columns.items()}
    return rows.project(", ".join(sql.values()))


def _in_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _require_one_format(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], known: peers.Format | None
) -> None:
    """Raise `DataError` unless each file is in the format of the first."""
    for path in paths[1:]:
        other = peers.as_votes(_rows(connection, path))[1]
        if other != known:
            names = [one.name if one else "none that is known" for one in (known, other)]
            msg = f"{str(paths[0])!r} is in the format {names[0]}, and {str(path)!r} in {names[1]}"
            raise DataError(f"{msg}: read each by itself.")


def shared(sources: Sequence[Files]) -> list[Files]:
    """Leave to each of several sources what it has of the columns, and of those in the condition.

    Raises
    ------
    DataError
        If no source has one of them.
    """
    if not any(files.columns or files.where for files in sources):
        return [*sources]
    return [_own(files, sources) for files in sources]


def _own(files: Files, sources: Sequence[Files]) -> Files:
    there = {other: _columns_of(other) for other in {files, *sources}}
    for _, theirs in files.columns:
        if not any(theirs in names for names in there.values()):
            require(theirs, there[files])
    columns = tuple(pair for pair in files.columns if pair[1] in there[files])
    fits = [_binds(files.where, names) for names in there.values()]
    where = files.where if _binds(files.where, there[files]) or not any(fits) else None
    return replace(files, columns=columns, where=where)


def _columns_of(files: Files) -> list[str]:
    """Name the columns that a source has, and those that are made of its format."""
    path = expanded(files.paths)[0]
    in_json = kind_of(path) == "JSON"
    names = [name for row in json_objects(path) for name in row] if in_json else None
    names = list(dict.fromkeys(names)) if names is not None else columns_in_file(path)
    known = peers.recognised(names)
    return [*names, *(known.chosen(names) if known else [])]


def _binds(where: str | None, names: Sequence[str]) -> bool:
    """Whether a condition names no other columns; one that cannot be read at all names none."""
    if where is None:
        return True
    with connected() as connection:
        nothing = ", ".join(f"NULL AS {quoted(name)}" for name in names)
        try:
            connection.sql(f"SELECT {nothing}").filter(where)
        except duckdb.BinderException as error:
            return "not found in FROM clause" not in str(error)
        except duckdb.Error:
            return True
    return True


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
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]
) -> duckdb.DuckDBPyRelation:
    """Give the rows of files one after the other, their columns united by name."""
    parts = [_rows(connection, path) for path in paths]
    names = parts[0].columns
    for path, part in zip(paths, parts, strict=True):
        require_alike(paths[0], names, path, part.columns)
    if len(parts) > 1 and kind_of(paths[0]) == "Parquet":
        return connection.read_parquet([*map(_literal, paths)], union_by_name=True)
    if len(parts) > 1:
        parts = [part.project(", ".join(map(quoted, names))) for part in parts]
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


def _rows(connection: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    """Give the rows of a file; of one of text all as text: 007 or 2024-01-01 stays what it is."""
    if kind_of(path) == "Parquet":
        rows = connection.read_parquet(_literal(path))
        if any(name.endswith("_1") for name in rows.columns):  # as duckdb names a second one
            names = columns_in_file(path)
            if twice := next((name for name, n in Counter(names).items() if n > 1), None):
                msg = f"{str(path)!r} has two columns {twice!r}: rename one, or leave it out."
                raise DataError(msg)
        return rows
    if kind_of(path) == "text":
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


def _explain(error: duckdb.Error, paths: Sequence[Path]) -> None:
    """Raise `DataError` with the line that is wrong, where it can be told."""
    if kind_of(paths[0]) == "JSON":
        for path in paths:
            deque(json_objects(path), maxlen=0)  # duckdb counts the lines of JSON from 2
        return
    named = (path for path in paths if f"file = {path}\n" in str(error))
    if why := described(error, next(named, paths[0])):
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
