"""Columns of a relation as whole numbers: the names that occur, and which row has which."""

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from rating.comparisons import Parts
from rating.counting import count_packed, fits, narrowest, packed, unpacked
from rating.errors import DataError
from rating.tables.columns import LEFT_OUT, REQUIRED
from rating.tables.escaping import all_quoted, literal, quoted
from rating.typing import Bools, Floats, Integers

Relation = duckdb.DuckDBPyRelation

ROW = "__row"
"""Column of a row's number; no table of votes has one of this name."""

BLANK = r"[\t-\r\x1c-\x20\x85\p{Z}]*"
"""What Python strips of a text, for duckdb."""

FEW = 10_000
"""Rows up to which names are coded in Python: to ask the engine to takes longer than to do it."""

GROUPED = {*REQUIRED, LEFT_OUT, "by"}
"""Roles of few names: rows that are alike in them are counted before they are read."""

MOMENTS = {
    "date",
    "timestamp",
    "timestamp_s",
    "timestamp_ms",
    "timestamp_ns",
    "timestamp with time zone",
}
NUMERIC = {
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "float", "double", "decimal"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
}
NAMELESS = {*MOMENTS, "time", "time with time zone", "interval", "float", "double", "boolean"}
"""Types of SQL, as `kinds` gives them: of moments, of numbers, and those that no name has."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names.

    Attributes
    ----------
    names : tuple of str
        In no order; a name may occur twice.
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


def coded_list(values: Iterable[str | None]) -> Coded:
    """Code a list of names, in the order in which they occur."""
    place: dict[str, int] = {}
    codes = [-1 if v is None else place.setdefault(v, len(place)) for v in values]
    return Coded(tuple(place), np.array(codes, dtype=np.int64))


def ranked(column: Coded, live: Bools) -> tuple[tuple[str, ...], Integers]:
    """Give the names that the live rows hold, sorted, and for each live row its position.

    >>> ranked(Coded(("y", "x", "z"), np.array([0, 1, 2])), np.array([True, True, False]))
    (('x', 'y'), array([1, 0], dtype=int8))
    """
    codes = column.codes if live.all() else column.codes[live]
    there = np.zeros(len(column.names), dtype=bool)
    there[codes] = True
    order = sorted(np.flatnonzero(there).tolist(), key=column.names.__getitem__)
    names = [column.names[code] for code in order]
    if order == [*range(len(column.names))] and all(map(operator.lt, names, names[1:])):
        return tuple(names), codes
    new = np.fromiter(map(operator.ne, names, [None, *names[:-1]]), dtype=bool, count=len(names))
    places = np.zeros(len(column.names), dtype=narrowest(len(names)))
    places[order] = np.cumsum(new) - 1
    return tuple(itertools.compress(names, new)), places[codes]


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


def kinds(rows: Relation) -> dict[str, str]:
    """Name the type of each column, in lower case and without what it consists of."""
    return {name: kind.id for name, kind in zip(rows.columns, rows.types, strict=True)}


def numbered(rows: Relation) -> Relation:
    """Give rows with their numbers, from 1, in the column `ROW`."""
    return rows.project(f"*, row_number() OVER () AS {ROW}")


def as_name(rows: Relation, name: str) -> str:
    """Give the expression of SQL for a column of names as text.

    Raises
    ------
    DataError
        If it is of a type whose values have more than one text.
    """
    kind = kinds(rows)[name]
    if kind in NAMELESS:
        msg = f"Column {name!r} is of {kind.upper()}; make text or whole numbers of its values."
        raise DataError(msg)
    return f"CAST({quoted(name)} AS VARCHAR)"


def fetch(rows: Relation, texts: Mapping[str, str], numbers: Mapping[str, str]) -> Table:
    """Read columns by role: rows in their order, or counted where no number tells them apart.

    Parameters
    ----------
    texts, numbers : mapping of str to str
        From a role to the name of its column; the role ``n`` counts the votes of a row. Of a
        number that is a moment, the seconds since 1970.

    Raises
    ------
    DataError
        If a column holds no names, or a count is no whole number from 0.
    """
    types = kinds(rows)
    exprs = {role: as_name(rows, name) for role, name in texts.items()}
    for role, name in numbers.items():
        is_moment = types[name] in MOMENTS
        number = f"epoch_us({quoted(name)}) / 1e6" if is_moment else f"{quoted(name)}::DOUBLE"
        exprs[role] = f"coalesce({number}, 'NaN'::DOUBLE)"
    base = rows.project(", ".join(f"{expr} AS {quoted(role)}" for role, expr in exprs.items()))

    n: Integers | None = None
    fetched = base.limit(FEW + 1).fetchnumpy()
    are_many = any(len(values) > FEW for values in fetched.values())
    if are_many and not numbers and {*texts} <= GROUPED:
        fetched = base.aggregate(f"{all_quoted(texts)}, count(*) AS n").fetchnumpy()
        n, are_many = fetched["n"], False
    if are_many:
        columns, arrays, n = _coded_there(base, texts, numbers)
    else:
        columns = {role: _coded(fetched[role].tolist()) for role in texts}
        arrays = {role: fetched[role] for role in numbers}
    counted = arrays.pop("n", None)
    if counted is not None:
        bad = counted[~(np.isfinite(counted) & (counted >= 0) & (counted == np.rint(counted)))]
        if bad.size:
            msg = f"A count is {bad[0]}; counts of votes are whole numbers from 0."
            raise DataError(msg)
        n = counted.astype(np.int64)
    return Table(columns, arrays, n, lambda role: first_blank(rows, texts[role]))


def _coded(values: Sequence[str | None]) -> Coded:
    """Code names in their own order, as the engine does: that of the rows leaves no trace."""
    names = sorted({value for value in values if value is not None})
    place: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    place[None] = -1
    return Coded(tuple(names), np.array([place[value] for value in values], dtype=np.int32))


def _coded_there(
    base: Relation, texts: Iterable[str], numbers: Iterable[str]
) -> tuple[dict[str, Coded], dict[str, Floats], Integers | None]:
    """Let the engine code the names of each role, and count the rows unless numbers part them."""
    rows = numbered(base).set_alias("votes")
    names: dict[str, tuple[str, ...]] = {}
    codes: dict[str, str] = {}
    # People first: rows counted in this order are in that of the cells they will be.
    for role in sorted(texts, key=lambda role: role not in ("voter", "prompt")):
        place, column = f"names{len(names)}", f"votes.{quoted(role)}"
        query = (
            f"SELECT {column} AS name, row_number() OVER (ORDER BY {column}) - 1 AS code "  # noqa: S608
            f"FROM votes WHERE {column} IS NOT NULL GROUP BY {column}"
        )
        distinct = base.query("votes", query).materialize().set_alias(place)  # type: ignore[union-attr]
        names[role] = tuple(distinct.order("code").fetchnumpy()["name"].tolist())
        rows = rows.join(distinct, f"{column} = {place}.name", how="left")
        codes[role] = f"coalesce({place}.code, -1)"
    sizes = [len(held) for held in names.values()]
    if is_one := fits(sizes):
        key = "0"
        for code, size in zip(codes.values(), sizes, strict=True):
            key = f"({key} * {size + 1} + {code} + 1)"
        codes = {"key": key}
    columns = [f"CAST({code} AS BIGINT) AS {quoted(role)}" for role, code in codes.items()]
    if is_one and not numbers:
        keys = rows.project(", ".join(columns)).fetchnumpy()["key"]
        coded, n = count_packed(np.require(keys, requirements="W"), sizes)
        return _columns(names, coded), {}, n
    columns += [f"votes.{quoted(role)}" for role in (*numbers, ROW)]
    fetched = rows.project(", ".join(columns)).fetchnumpy()
    order = np.argsort(fetched.pop(ROW), kind="stable")  # a join need not keep it
    fetched = {role: fetched.pop(role)[order] for role in [*fetched]}
    coded = unpacked(fetched["key"], sizes) if is_one else [fetched[role] for role in names]
    return _columns(names, coded), {role: fetched[role] for role in numbers}, None


def _columns(names: Mapping[str, tuple[str, ...]], codes: Sequence[Integers]) -> dict[str, Coded]:
    return {role: Coded(held, c) for (role, held), c in zip(names.items(), codes, strict=True)}


def first_blank(rows: Relation, name: str) -> int | None:
    """Return the number of the first row, from 1, with none or a blank in a column."""
    is_blank = f"regexp_full_match(CAST({quoted(name)} AS VARCHAR), {literal(BLANK)})"
    blank = numbered(rows).filter(f"coalesce({is_blank}, true)")
    first: int | None = blank.aggregate(f"min({ROW})").fetchall()[0][0]
    return first
