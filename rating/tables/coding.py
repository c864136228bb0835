"""Columns of any library's table as whole numbers: the names that occur, and who has which."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rating.comparisons import Parts
from rating.counting import count_packed, fits, packed
from rating.errors import DataError
from rating.tables.columns import COUNTS, N
from rating.tables.escaping import quoted
from rating.typing import Bools, Floats, Integers

Frame = nw.LazyFrame[Any] | nw.DataFrame[Any]

ROW = "__row"
"""Column of a row's number; no table of votes has one of this name."""

FEW = 10_000
"""Rows up to which the names of duckdb are coded here: to ask it to takes longer than to do it."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names.

    Attributes
    ----------
    names : tuple of str
        In no order; a name may occur twice where a dictionary held it twice.
    codes : ndarray of int
        Position in ``names``; -1 where the value is missing.
    """

    names: tuple[str, ...]
    codes: Integers


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
    parts : callable or None
        Where the rows count others that lie elsewhere, with one name or none in place of each
        voter: gives those by voter. Takes the models, the rows that count, and of each of these
        the models on side A and side B and the outcome.
    """

    texts: Mapping[str, Coded]
    numbers: Mapping[str, Floats]
    n: Integers | None
    first: Callable[[str], int | None]
    parts: Callable[[Sequence[str], Bools, Integers, Integers, Integers], Parts] | None = None


def coded(column: "nw.Series[Any]") -> Coded:
    """Code a column of a frame in memory; categories and dictionaries keep their codes."""
    if column.implementation.is_pandas_like():
        names, codes = _pandas(column)
    elif column.implementation.is_polars():
        names, codes = _polars(column)
    elif column.implementation.is_pyarrow():
        names, codes = _arrow(column)
    else:
        names, codes = _any(column)
    return checked(column.name, names, codes)


def checked(column: str, names: list[Any], codes: Integers) -> Coded:
    """Make text of names; missing ones among them become -1.

    Raises
    ------
    DataError
        If a name is neither text nor a whole number.
    """
    if set(map(type, names)) == {str}:  # as good as always; a look at each name takes far longer
        return Coded(tuple(names), codes)
    missing = [position for position, name in enumerate(names) if _is_missing(name)]
    if missing:
        codes = np.where(np.isin(codes, missing), -1, codes)
        names = ["" if _is_missing(name) else name for name in names]
    for name in names:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            msg = f"Column {column!r} holds {name!r}; make text or whole numbers of its values."
            raise DataError(msg)
    return Coded(tuple(map(str, names)), codes)


def _is_missing(name: object) -> bool:
    # pandas.NA compares to NA, which is neither true nor false: hence its type's name.
    is_nan = isinstance(name, float) and math.isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType")


def _pandas(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    native = column.to_native()
    if column.dtype in (nw.Categorical, nw.Enum):
        return native.cat.categories.tolist(), native.cat.codes.to_numpy()
    if _holds_arrow(native):
        return _dictionary(native.array.__arrow_array__())
    codes, names = native.factorize()
    return names.tolist(), codes


def _holds_arrow(native: Any) -> bool:
    # Both of pandas' types of text that Arrow stores; the third stores Python's strings.
    in_arrow = getattr(native.dtype, "storage", "pyarrow") == "pyarrow"
    return in_arrow and hasattr(native.array, "__arrow_array__")


def _polars(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    if column.dtype not in (nw.Categorical, nw.Enum):
        if column.dtype != nw.String:
            return _any(column)
        column = column.cast(nw.Categorical())
    native = column.to_native()
    names = native.unique().drop_nulls()
    physical = names.to_physical().to_numpy()
    low = int(physical.min()) if len(physical) else 0
    place = np.full(int(physical.max()) - low + 2 if len(physical) else 1, -1, dtype=np.int32)
    place[physical.astype(np.int64) - low] = np.arange(len(physical))
    # The last place, never a name's, is where the missing values look.
    rows = native.to_physical().cast(int).fill_null(low + len(place) - 1).to_numpy()
    return names.to_list(), place[rows - low]


def _arrow(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    return _dictionary(column.to_native())


def _dictionary(column: Any) -> tuple[list[Any], Integers]:
    """Take the dictionary of an Arrow column; make one, where it has none."""
    if not hasattr(column.type, "index_type"):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return [], np.zeros(0, dtype=np.int32)
    parts = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
    names = chunks[0].dictionary.to_numpy(zero_copy_only=False).tolist()
    return names, parts[0] if len(parts) == 1 else np.concatenate(parts)


def _any(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    return _coded_list(column.to_list())


def coded_list(column: str, values: Iterable[object]) -> Coded:
    """Code a list of names."""
    return checked(column, *_coded_list(values))


def _coded_list(values: Iterable[Any]) -> tuple[list[Any], Integers]:
    place: dict[Any, int] = {}
    codes = [-1 if _is_missing(v) else place.setdefault(v, len(place)) for v in values]
    return list(place), np.array(codes, dtype=np.int64)


def compact(table: Table) -> Table:
    """Count the rows that are alike, unless numbers tell them apart."""
    columns = table.texts.values()
    sizes = [len(column.names) for column in columns]
    if table.numbers or table.n is not None or not fits(sizes):
        return table
    codes, n = count_packed(packed([column.codes for column in columns], sizes), sizes)
    texts = {
        role: Coded(column.names, code)
        for (role, column), code in zip(table.texts.items(), codes, strict=True)
    }
    return Table(texts, {}, n, table.first)


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
        *(name_of(schema, name).alias(role) for role, name in texts.items()),
        *(_number(schema, name).alias(role) for role, name in numbers.items()),
    )

    def first(role: str) -> int | None:
        return first_blank(frame, texts[role])

    few = _few(base.to_native())
    if few is not None:
        coded_few = {role: _coded(name, few[role].tolist()) for role, name in texts.items()}
        return _table(coded_few, {role: _filled(few[role]) for role in numbers}, first)
    if group:
        alike = _arrays(count_alike(base, [*texts]))
        columns = {role: _coded(name, alike[role].tolist()) for role, name in texts.items()}
        return Table(columns, {}, alike[N].astype(np.int64), first)
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
        codes, n = _counted(rows, sizes)
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


def _counted(rows: nw.LazyFrame[Any], sizes: Mapping[str, int]) -> tuple[list[Integers], Integers]:
    """Count the rows with the same codes; an engine hands them over sooner than it counts them."""
    key = nw.lit(0)
    for name, size in sizes.items():
        key = key * (size + 1) + nw.col(name).cast(nw.Int64()).fill_null(-1) + 1
    keys = np.require(_arrays(rows.select(key.alias("key")))["key"], requirements="W")
    return count_packed(keys, [*sizes.values()])


def name_of(schema: nw.Schema, name: str) -> nw.Expr:
    """Give a column of names as text.

    Raises
    ------
    DataError
        If it is of a kind whose values have more than one text.
    """
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


def first_blank(frame: nw.LazyFrame[Any], name: str) -> int | None:
    """Return the number of the first row of duckdb, from 1, with none or a blank in a column."""
    native = frame.to_native()
    if not isinstance(native, duckdb.DuckDBPyRelation):
        return None
    numbered = f"SELECT row_number() OVER () AS row, {quoted(name)} AS name FROM votes"  # noqa: S608
    blank = "name IS NULL OR trim(CAST(name AS VARCHAR)) = ''"
    query = f"SELECT min(row) AS row FROM ({numbered}) WHERE {blank}"  # noqa: S608
    first = native.query("votes", query).fetchnumpy()["row"]  # type: ignore[union-attr]
    return None if np.ma.is_masked(first) else int(first[0])


def numbered(frame: Frame) -> duckdb.DuckDBPyRelation:
    """Give the rows of a file with their numbers, from 1, in the column `ROW`."""
    rows: duckdb.DuckDBPyRelation = frame.to_native()
    return rows.project(f"*, row_number() OVER () AS {ROW}")
