"""A file that an export wrote, read row by row: each value of its column's kind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from rating.errors import DataError
from rating.tables.duckdb_engine import columns_in_file, connected
from rating.tables.escaping import UNSTORABLE, literal, quoted
from rating.tables.files import SHOWN, kind_of, require_file
from rating.tables.sources import opened

LATER = (
    *("reasons_a", "reasons_b", "confidence", "voter_intent", "before_reveal"),
    "remarked",
    *("since", "until", "all_votes", "excluded_vote", "transcript"),
)
"""Columns that exports of earlier versions do not have: nothing is in them."""
ODD = "__odd"
"""The first value of a row that is not spelled as an export does: a rating may read others."""
AT_ONCE = 2048
"""Rows that are held in memory."""
MOST_CHARACTERS = 1000
"""Of a name or an id."""
MOST = 2**31 - 1
"""The largest whole number that a database holds."""
_PLAIN = ("VARCHAR", "BIGINT", "DOUBLE", "TIMESTAMP")

Row = Mapping[str, Any]
Relation = duckdb.DuckDBPyRelation


@contextmanager
def reading(path: Path, columns: Mapping[str, str], task: str, command: str) -> Iterator[Relation]:
    """Open a file that has these columns and no others; raises `DataError` if it has not.

    Parameters
    ----------
    task : str
        What it is opened for, for errors: ``verify``.
    command : str
        What writes such a file, likewise.
    """

    def require(there: Sequence[str]) -> Sequence[str]:
        lacking = (name for name in columns if name not in there and name not in LATER)
        odd = [*lacking, *({*there} - {*columns})]
        if not odd:
            return there
        has = "has no column" if odd[0] in columns else "has a column"
        msg = (
            f"Cannot {task} {str(path)!r}: it {has} {odd[0][:SHOWN]!r}. Give a file as "
            f"`{command}` of this version wrote it."
        )
        raise DataError(msg)

    require_file(path)
    if kind_of(path) == "text":
        require(columns_in_file(path))  # before the engine reads any number of columns
    with ExitStack() as stack:
        try:
            there = stack.enter_context(opened(path, require, holds="rows", as_peers=False))
            rows = _with_later(there, columns)
        except (RuntimeError, UnicodeError) as error:  # names of columns that are no text
            msg = f"Cannot {task} {str(path)!r}: it is damaged ({error}). Take a whole copy."
            raise DataError(msg) from error
        yield rows


def _with_later(rows: Relation, columns: Mapping[str, str]) -> Relation:
    absent = [name for name in LATER if name in columns and name not in rows.columns]
    return rows.project(
        ", ".join(["*", *(f"CAST(NULL AS {columns[name]}) AS {name}" for name in absent)])
    )


def typed(rows: Relation, columns: Mapping[str, str]) -> Relation:
    """Give the values of columns by their kinds, and beside them `ODD`."""
    values = [f"{_value(rows, name, kind)} AS {quoted(name)}" for name, kind in columns.items()]
    cases = (
        f"WHEN NOT ({_is_exact(name, kind)}) THEN "
        f"concat({literal(name)}, ' ', left(CAST({quoted(name)} AS VARCHAR), {SHOWN}))"
        for name, kind in columns.items()
        if kind in _PLAIN
    )
    return rows.project(", ".join([*values, f"CASE {' '.join(cases)} END AS {ODD}"]))


def streamed(rows: Relation) -> Iterator[tuple[Any, ...]]:
    """Give rows some at a time; the relation's own methods would read all of them into memory."""
    with connected() as connection:
        connection.execute("SET threads = 1")  # more read ahead, and hold what they read
        result = connection.execute(rows.sql_query())
        while some := result.fetchmany(AT_ONCE):
            yield from some


def fits(kind: str, value: Any) -> bool:
    """Say whether a value can be one that an export has in a column of a kind."""
    match kind:
        case "BIGINT":
            return is_whole(value, 0)
        case "DOUBLE":
            return isinstance(value, float) and isfinite(value)
        case "TIMESTAMP":
            return isinstance(value, datetime)
    is_short = isinstance(value, str) and len(value) <= MOST_CHARACTERS
    return is_short and is_storable(value)


def is_whole(value: Any, least: int) -> bool:
    """Say whether a value is a whole number that a database holds."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def is_storable(text: str) -> bool:
    """Say whether every database can hold a text."""
    return UNSTORABLE.search(text) is None


def _value(rows: Relation, name: str, kind: str) -> str:
    if kind in _PLAIN:
        return f"TRY_CAST({quoted(name)} AS {kind})"
    is_text = dict(zip(rows.columns, map(str, rows.types), strict=True))[name] == "VARCHAR"
    return quoted(name) if is_text else f"CAST(to_json({quoted(name)}) AS VARCHAR)"


def _is_exact(name: str, kind: str) -> str:
    """Give the expression of SQL for whether a value is of its column's kind, and nothing more."""
    back = f"CAST(TRY_CAST({quoted(name)} AS {kind}) AS VARCHAR)"
    if kind == "DOUBLE":  # which has many spellings, and one value
        return f"(TRY_CAST({quoted(name)} AS DOUBLE) IS NULL) = ({quoted(name)} IS NULL)"
    return f"{back} IS NOT DISTINCT FROM CAST({quoted(name)} AS VARCHAR)"
