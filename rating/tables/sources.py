"""Where votes are read from: files, a table of any library that narwhals knows, or a log."""

import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import compress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import duckdb
import narwhals as nw
import narwhals._namespace as narwhals_namespace
import numpy as np

from rating.errors import DataError
from rating.tables import peers, weights
from rating.tables.bounds import size_of
from rating.tables.coding import (
    Coded,
    Frame,
    Table,
    coded_list,
    compact,
    fetch,
    one_row_an_outcome,
)
from rating.tables.columns import (
    COUNTS,
    KNOWN,
    SAMPLING,
    Columns,
    N,
    Reading,
    order_columns,
    quoted_names,
    require,
)
from rating.tables.duckdb_engine import (
    SMALL,
    as_parquet,
    columns_in_file,
    connected,
    explain,
    require_held,
    rows_in,
    rows_of,
    too_long,
)
from rating.tables.escaping import all_quoted, literal, quoted
from rating.tables.files import ENDINGS, Files, expanded, json_objects, kind_of
from rating.typing import Bools, Ints

LONGEST = 300
"""Characters of an engine's own words that a sentence quotes."""

PACKED = (".parquet", ".gz")
"""Endings of files that may be far smaller than what they hold."""


@dataclass(frozen=True, slots=True)
class ClusterTable:
    """A table that a Spark cluster reads.

    Attributes
    ----------
    name : str
        In its catalog; or the path of Parquet files, with a slash in it or that ending.
    chosen : Files
        The address of the cluster, such as ``spark://host:7077`` or ``spark://local[2]``, in place
        of a path; and what of the table is read.
    """

    name: str
    chosen: Files


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
        if isinstance(error, duckdb.Error) and (why := too_long(error)):
            raise DataError(why) from error
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
        if hasattr(source, "__arrow_c_stream__"):
            return nw.from_native(_streamed(source))
        msg = (
            f"Cannot read votes from a {type(source).__name__}: give the path of a file that "
            f"ends in {', '.join(ENDINGS)}, or a table of pandas, polars, pyarrow or duckdb, or "
            "anything else with __arrow_c_stream__."
        )
        raise DataError(msg) from error
    return frame


def _streamed(source: object) -> duckdb.DuckDBPyRelation:
    """Take in what gives Arrow's stream, once: some give it only once."""
    connection = connected()
    connection.register("stream", source)
    connection.execute("CREATE TEMP TABLE streamed AS FROM stream")
    return connection.table("streamed")


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
            rows, n_chosen = chosen(rows_of(connection, paths), files)
            theirs, known, raw = rows.columns, None, rows
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
            is_packed_text = paths[0].suffix in PACKED and kind_of(paths[0]) == "text"
            if is_packed_text and size_of(paths) < SMALL:  # to write all of it takes memory, too
                require_held(rows.project(all_quoted(names)), paths)
            if kind_of(paths[0]) != "Parquet":
                rows = as_parquet(connection, rows, names, Path(folder) / "votes.parquet")
            if paths[0].suffix in PACKED and names:
                if known is not None and kind_of(paths[0]) == "Parquet":
                    named = [*names, *(column for _, column in files.columns)]
                    require_held(raw.project(all_quoted(known.columns_for(named, theirs))), paths)
                else:
                    require_held(rows.project(all_quoted(names)), paths)
        except (duckdb.Error, DataError) as error:
            reason = error.__cause__ if isinstance(error, DataError) else error
            if isinstance(reason, duckdb.Error):
                explain(reason, paths)
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
    whens = (f"WHEN {literal(theirs)} THEN {literal(ours)}" for theirs, ours in files.labels)
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


def _require_one_format(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], known: peers.Format | None
) -> None:
    """Raise `DataError` unless each file is in the format of the first."""
    for path in paths[1:]:
        other = peers.as_votes(rows_in(connection, path))[1]
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
    there = {other: columns_of(other) for other in {files, *sources}}
    for _, theirs in files.columns:
        if not any(theirs in names for names in there.values()):
            require(theirs, there[files])
    columns = tuple(pair for pair in files.columns if pair[1] in there[files])
    fits = [_binds(files.where, names) for names in there.values()]
    where = files.where if _binds(files.where, there[files]) or not any(fits) else None
    return replace(files, columns=columns, where=where)


def columns_of(files: Files) -> list[str]:
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


@contextmanager
def opened_table(source: object, reading: Reading, *, by: bool) -> Iterator[Table]:
    """Read the columns that a reading takes, from a log, one row a vote or one row a pair.

    The source stays open, so that an error can say in which row of it something is missing.
    """
    if isinstance(source, LoggedColumns | CodedLog):
        yield source.read(reading)
        return

    def wanted(there: Sequence[str]) -> list[str]:
        texts, numbers = reading.roles(there, by=by)
        pairs = [name for name in COUNTS if name in there] if "n" in numbers else []
        own = {name for name in (*texts.values(), *numbers.values(), *pairs) if name in there}
        return sorted(own)

    with opened(source, wanted) as frame:
        if _is_of_spark(frame):
            yield spark_engine().counted(frame, reading, by=by)
            return
        texts, numbers = reading.roles(frame.collect_schema().names(), by=by)
        if "n" in numbers:
            others = {*texts.values(), *numbers.values()} - {"winner", N}
            frame = one_row_an_outcome(frame, sorted(others))
        if "time" in numbers and not _is_moment(frame, numbers["time"]):
            texts["time"] = numbers.pop("time")
        texts = only_of_text(frame, texts)
        few = {"model_a", "model_b", "winner", "left_out", "by"}
        table = fetch(frame, texts, numbers, group=not numbers and set(texts) <= few)
        if "time" in numbers and frame.collect_schema()[numbers["time"]].is_numeric():
            weights.checked_seconds(table.numbers["time"])
        yield _timed(compact(table))


def spark_engine() -> ModuleType:
    """Load what reads from Spark; raises `DataError` where it is not installed."""
    try:
        return importlib.import_module("rating.tables.spark")
    except ImportError as error:
        msg = (
            f"Spark is not installed ({error}). Install the arena with its extra 'spark': "
            "pip install '.[spark]'."
        )
        raise DataError(msg) from error


def _is_of_spark(frame: Frame) -> TypeGuard[nw.LazyFrame[Any]]:
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def only_of_text(frame: Frame, texts: dict[str, str]) -> dict[str, str]:
    """Leave out what a judge's run would say of orders where ``order`` holds anything but text.

    Parameters
    ----------
    texts : dict of str to str
        Columns to read, by role.
    """
    if "order" not in texts or frame.collect_schema()[texts["order"]] == nw.String:
        return texts
    orders = order_columns(list(texts.values()))
    return {role: name for role, name in texts.items() if role not in orders}


def _is_moment(frame: Frame, name: str) -> bool:
    kind = frame.collect_schema()[name]
    return kind.is_temporal() or kind.is_numeric()


def _timed(table: Table) -> Table:
    """Read the moments of a column of text; raises `DataError` if one is not a moment."""
    column = table.texts.get("time")
    if column is None:
        return table
    moments = np.append(weights.parse_moments(column.names), np.nan)[column.codes]
    texts = {role: texts for role, texts in table.texts.items() if role != "time"}
    return replace(table, texts=texts, numbers={**table.numbers, "time": moments})


TEXTS = {
    "model_a": "model_a",
    "model_b": "model_b",
    "winner": "outcome",
    "voter": "voter",
    "prompt": "prompt",
    "battle": "battle",
    "left_out": "left_out",
}
NUMBERS = {"weight": "pair_probability", "repicks": "repicks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedColumns:
    """The votes of an arena's log in columns, skips among them, in its order.

    Attributes
    ----------
    name : str
        What errors call the log.
    left_out : list of str or None
        Why the policy leaves the vote out; None where it counts.
    labels : mapping of str to list of str or None
        What was asked for, by the names by which votes can be parted.
    figures : mapping of str to list of float or None
        What was measured on the answers, such as ``cost_a``.
    """

    name: str
    battle: list[str]
    model_a: list[str]
    model_b: list[str]
    outcome: list[str]
    voter: list[str]
    prompt: list[str | None]
    created: list[datetime]
    pair_probability: list[float]
    repicks: list[int]
    left_out: list[str | None]
    labels: Mapping[str, list[str | None]] = field(default_factory=dict)
    figures: Mapping[str, list[float | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the name, as a file's path is its name."""
        return self.name

    def without(self, models: Set[str]) -> "LoggedColumns":
        """Leave out the battles of some models."""
        stays = [not {a, b} & models for a, b in zip(self.model_a, self.model_b, strict=True)]
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        name, *more = (columns.pop(one) for one in ("name", "labels", "figures"))
        left = {role: list(compress(values, stays)) for role, values in columns.items()}
        labels, figures = (
            {key: list(compress(values, stays)) for key, values in one.items()} for one in more
        )
        return LoggedColumns(name=name, labels=labels, figures=figures, **left)

    def require_own(self, columns: Columns) -> None:
        """Raise `DataError` if columns of the log are named, which has its own."""
        named = {one.name: getattr(columns, one.name) for one in fields(columns)}
        by = named.pop("by")
        if by is not None and by not in self.labels:
            known = ", ".join(self.labels) or "none"
            msg = (
                f"The log holds no column {by!r} to part the votes by, but {known}: export the "
                "votes, add the column, and rate the file."
            )
            raise DataError(msg)
        if by is not None and not any(self.labels[by]):
            msg = f"No vote of {self.name!r} has a {by}: label them first, arena label {self.name}"
            raise DataError(msg)
        for role, name in named.items():
            if name is not None:
                msg = (
                    f"The log has its own columns, and {role}={name} names another: drop --column."
                )
                raise DataError(msg)

    def table(
        self, texts: Sequence[str], numbers: Sequence[str] = (), by: str | None = None
    ) -> Table:
        """Return columns by role, every vote a row: those of `TEXTS` and `NUMBERS`, and time.

        Parameters
        ----------
        by : str or None
            Label in the role of the column that parts the votes.
        """
        coded = {role: coded_list(role, getattr(self, TEXTS[role])) for role in texts}
        if by is not None:
            coded["by"] = coded_list("by", self.labels[by])
        arrays = {
            role: np.array(self._numbers(role), dtype=np.float64)
            for role in numbers
            if role != "time"
        }
        if "time" in numbers:
            arrays["time"] = np.array([moment.timestamp() for moment in self.created], dtype=float)
        return Table(coded, arrays, None, lambda _: None)

    def _numbers(self, role: str) -> list[float | None]:
        return getattr(self, NUMBERS[role]) if role in NUMBERS else self.figures[role]

    def read(self, reading: Reading) -> Table:
        """Return the columns that a reading takes.

        Raises
        ------
        DataError
            If it names columns, or takes a style or weights that the log does not hold.
        """
        self.require_own(reading.columns)
        if reading.style or reading.weight not in (None, SAMPLING):
            msg = (
                "The log holds no styles, and no weights but 'sampling': export the votes, add "
                "the columns, and read the file."
            )
            raise DataError(msg)
        people = {"voter": reading.voters, "prompt": reading.prompts}
        texts = ["model_a", "model_b", "winner", *(role for role in people if people[role])]
        numbers = ["weight", "repicks"] if reading.weight is not None else []
        numbers += ["time"] if reading.needs_time else []
        figures = [f"{name}_{side}" for name in reading.figures for side in "ab"]
        numbers += [name for name in figures if name in self.figures]
        table = self.table([*texts, "left_out"], numbers, reading.columns.by)
        there = [name for name in reading.beside if name in self.labels]
        beside = {name: coded_list(name, self.labels[name]) for name in there}
        return compact(replace(table, texts={**table.texts, **beside}))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedLog:
    """The votes of an arena's log as numbers, skips among them, in its order.

    What a board of many votes is made of, where `LoggedColumns` would hold an object for each
    value.

    Attributes
    ----------
    left_out : Coded
        Why the policy leaves the vote out; -1 where it counts.
    created : ndarray of int64
        Microseconds since 1970, UTC.
    """

    model_a: Coded
    model_b: Coded
    winner: Coded
    voter: Coded
    prompt: Coded
    left_out: Coded
    created: Ints

    @property
    def counted(self) -> Bools:
        """Whether each vote counts."""
        return self.left_out.codes < 0

    def before(self, moment: datetime) -> "CodedLog":
        """Leave out what was cast at a moment, or later."""
        return self._rows(self.created < microseconds(moment))

    def without(self, models: Set[str]) -> "CodedLog":
        """Leave out the battles of some models."""
        sides = (self.model_a, self.model_b)
        gone = [np.array([*(name in models for name in s.names), False])[s.codes] for s in sides]
        return self._rows(~(gone[0] | gone[1]))

    def read(self, reading: Reading) -> Table:
        """Return the columns that a reading without weights, styles and a window takes."""
        people = {"voter": reading.voters, "prompt": reading.prompts}
        roles = ["model_a", "model_b", "winner", *(role for role in people if people[role])]
        texts = {role: getattr(self, role) for role in (*roles, "left_out")}
        return compact(Table(texts, {}, None, lambda _: None))

    def _rows(self, rows: Bools) -> "CodedLog":
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        created = columns.pop("created")[rows]
        texts = {role: Coded(column.names, column.codes[rows]) for role, column in columns.items()}
        return CodedLog(created=created, **texts)


def microseconds(moment: datetime) -> int:
    """Count the microseconds since 1970, without rounding.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, UTC))
    1000005
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
