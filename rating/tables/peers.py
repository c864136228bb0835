"""Files as other tools write them: each format is known by its columns, and read as votes."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rating.errors import DataError
from rating.tables.columns import LEFT_OUT, quoted_names
from rating.tables.files import quoted

if TYPE_CHECKING:
    import duckdb

NO_VERDICT = "no verdict"
"""Reason of a row in which a judge said nothing that can be read."""

CHOOSABLE = ("dedup_tag",)
"""Columns of theirs by which rows are excluded, unless ``--where`` names them."""

NESTED = ("STRUCT", "MAP", "LIST", "ARRAY", "UNION")


EACH = "__each"
"""Column of a member of a list; no file has one of this name."""


@dataclass(frozen=True, slots=True)
class Format:
    """What a tool writes.

    Attributes
    ----------
    name : str
    marks : str
        Columns of which at least one is there, and hardly in any other file, with spaces between.
    required : str
        Columns without which nothing can be read.
    columns : tuple of (str, str)
        A column of ours, and SQL for it. Theirs stand in double quotes and hold text, lists and
        objects as JSON. The first counts of which all columns are there.
    without : str
        Columns that no such file has.
    when : str
        SQL that holds in its first row, where columns do not tell two formats apart.
    each : str
        SQL of a list, of whose members each makes a row of its own, with it in the column `EACH`.
    read_by : str
        Of a format that holds no votes: what reads it instead.
    """

    name: str
    marks: str
    required: str
    columns: tuple[tuple[str, str], ...] = ()
    without: str = ""
    when: str = ""
    each: str = ""
    read_by: str = ""

    def touches(self, there: Sequence[str]) -> bool:
        """Whether a table has a column that marks this format."""
        absent = {*self.without.split()}.isdisjoint(there)
        return absent and not {*self.marks.split()}.isdisjoint(there)

    def missing(self, there: Sequence[str]) -> list[str]:
        """Name the required columns that a table does not have."""
        return [name for name in self.required.split() if name not in there]

    def chosen(self, there: Sequence[str]) -> dict[str, str]:
        """Give SQL for each column of ours that can be made of theirs."""
        known = {*there, EACH}
        return {ours: sql for ours, sql in reversed(self.columns) if _columns_in(sql) <= known}

    def columns_for(self, names: Sequence[str], there: Sequence[str]) -> list[str]:
        """Name the columns of a table that columns of ours and theirs are made of."""
        made = self.chosen(there)
        read = {one for name in names for one in _columns_in(made.get(name, f'"{name}"'))}
        read |= _columns_in(self.each)
        return [name for name in there if name in {*names} - {*made} | read]


def _columns_in(sql: str) -> set[str]:
    return set(re.findall(r'"(\w+)"', sql))


RANKED = "rankings"
"""Reason of a row of a study in which more than two answers were ranked."""


def _formats() -> Iterator[Format]:
    known = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
    parts = {"each": f'"{EACH}"', "no_verdict": NO_VERDICT, "ranked": RANKED}
    for name, sql in known["parts"].items():
        parts[name] = sql.format_map(parts)
    for one in known["format"]:
        columns = [*one.pop("columns", {}).items()]
        columns += known["shared"].get(one.pop("shared", None), {}).items()
        ways = [(ours, [sql] if isinstance(sql, str) else sql) for ours, sql in columns]
        columns = [(ours, sql.format_map(parts)) for ours, sqls in ways for sql in sqls]
        yield Format(**{k: v.format_map(parts) for k, v in one.items()}, columns=(*columns,))


FORMATS = (*_formats(),)
"""As ``formats.toml`` lists them; the first that fits counts."""


def recognised(
    columns: Sequence[str], holds: Callable[[str], bool] = lambda sql: False
) -> Format | None:
    """Name the format of a table with these columns; None where it is of none.

    Parameters
    ----------
    holds : callable
        Whether some SQL holds in the first row.
    """
    fits = (one for one in FORMATS if one.touches(columns) and not one.missing(columns))
    return next((one for one in fits if not one.when or holds(one.when)), None)


def as_votes(
    rows: "duckdb.DuckDBPyRelation", where: str | None = None
) -> tuple["duckdb.DuckDBPyRelation", Format | None]:
    """Give rows of a known format with our columns beside theirs, and the format.

    Rows of no known format, or of one that holds no votes (`Format.read_by`), stay as they are.

    Parameters
    ----------
    where : str or None
        Condition by which the rows were chosen: a column of `CHOOSABLE` in it excludes no row.
    """
    there = rows.columns
    likely = [one for one in FORMATS if one.touches(there) and not one.missing(there)]
    if not likely:
        return rows, None
    made = [sql for one in likely for sql in (one.each, *(sql for _, sql in one.columns))]
    read = {name for sql in made for name in _columns_in(sql)}
    types = dict(zip(there, map(str, rows.types), strict=True))
    texts = rows.project(", ".join(_as_text(name, types[name], name in read) for name in there))
    first = texts.limit(1)
    known = recognised(there, lambda sql: bool(first.filter(sql).limit(1).fetchall()))
    if known is None or not known.columns:
        return rows, known
    chosen_by = {name for name in CHOOSABLE if re.search(rf"\b{name}\b", where or "")}
    ours = known.chosen([name for name in there if name not in chosen_by])
    if known.each:
        texts = texts.project(f'*, unnest({known.each}) AS "{EACH}"')
    taken = {name.lower() for name in ours}
    theirs = [quoted(name) for name in there if name.lower() not in taken]
    made = [f'{sql} AS "{name}"' for name, sql in ours.items()]
    return texts.project(", ".join([*theirs, *made])), known


def _as_text(name: str, kind: str, read: bool) -> str:
    column = quoted(name)
    if not read or kind == "VARCHAR":
        return column
    nested = kind.startswith(NESTED) or kind.endswith("]")
    return f"CAST({f'to_json({column})' if nested else column} AS VARCHAR) AS {column}"


def no_votes(path: str, known: Format | None) -> DataError | None:
    """Name what reads a file of a format without votes."""
    if known is None or not known.read_by:
        return None
    return DataError(f"{path!r} is in the format {known.name}, no votes: {known.read_by}.")


def explained(path: str, columns: Sequence[str], error: DataError) -> DataError:
    """Say of a file that holds no votes what it is, or what it lacks to be of a known format."""
    if why := no_votes(path, recognised(columns)):
        return why
    near = nearly_in(columns)
    return DataError(f"{path!r}:{near} Or name our own columns with --column.") if near else error


def nearly_in(columns: Sequence[str]) -> str:
    """Name the columns that a table lacks to be of a format of which it has half."""
    shares = {
        one: 1 - len(one.missing(columns)) / len(one.required.split())
        for one in FORMATS
        if one.touches(columns) and not one.when
    }
    near = max(shares, key=shares.__getitem__, default=None)
    if near is None or not 0.5 <= shares[near] < 1:
        return ""
    missing = quoted_names(near.missing(columns))
    return f" It is nearly in the format {near.name}, but has no column {missing}."


_notice: ContextVar[Callable[[str], None] | None] = ContextVar("notice", default=None)


@contextmanager
def noticing(notice: Callable[[str], None]) -> Iterator[None]:
    """Call with a sentence for each file of a peer's format that is read meanwhile."""
    token = _notice.set(cache(notice))  # a file that is read twice is announced once
    try:
        yield
    finally:
        _notice.reset(token)


def announce(
    path: str, name: str, left_out: Mapping[str, int] | None = None, n_files: int = 1
) -> None:
    """Report the recognised format of a file, and its excluded rows by reason, to the caller."""
    reasons = ", ".join(f"{n:,} {why}" for why, n in sorted((left_out or {}).items()))
    many = f" ({n_files:,} files)" if n_files > 1 else ""
    mention(f"{path}{many} is read as {name}; rows excluded: {reasons or 'none'}")


def mention(words: str) -> None:
    """Report something about a file to the caller."""
    if notice := _notice.get():
        notice(words)


def left_out(rows: "duckdb.DuckDBPyRelation") -> dict[str, int]:
    """Count the rows that are excluded, by their reasons."""
    if LEFT_OUT not in rows.columns:
        return {}
    reasons = rows.filter(f"{LEFT_OUT} IS NOT NULL").aggregate(f"{LEFT_OUT}, count(*)")
    return dict(reasons.fetchall())
