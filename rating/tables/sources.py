"""Sources of votes: files, tables of any library with Arrow's stream, and logs.

`opened` makes one relation of duckdb of any source, and the rest is SQL; `opened_table` reads the
columns that a reading takes. `sampling_weights`, `decay` and `style_difference` compute weights
and style features of votes. `read_rankings` reads rankings, one per row, as in ``a > b = c``.

Files are read without pyarrow, and so is the stream of a frame (``__arrow_c_stream__``): duckdb
takes it as it is. Where pyarrow is installed, it holds what the stream gives, mostly without a
copy, and duckdb reads it there as often as it needs; without it duckdb copies the columns that are
read. To give a stream, pandas itself takes pyarrow.
"""

import importlib.util
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

import rating
from rating.errors import DataError, LayoutError
from rating.sentences import plural
from rating.tables import coding, peers
from rating.tables.coding import (
    MOMENTS,
    MOST_COLUMNS,
    NUMERIC,
    ROW,
    ROWS,
    LoggedVotes,
    Relation,
    Table,
    compact,
    fetch,
    kinds,
    layout_error,
    numbered,
    samples_of,
)
from rating.tables.columns import (
    COUNTS,
    JUDGES,
    KINDS,
    KNOWN,
    LEFT_OUT,
    LIKE_A_MODEL,
    LOG2,
    MACHINES,
    PEOPLE,
    REQUIRED,
    ROLES,
    Columns,
    N,
    Reading,
    like_voters,
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
from rating.tables.files import (
    ENDINGS,
    Files,
    all_quoted,
    expanded,
    json_objects,
    json_or_text,
    kind_of,
    literal,
    quoted,
    size_of,
)
from rating.tables.peers import RANKED
from rating.typing import Bools, Floats

# Weights and styles


DAY_S = 86_400.0
SECONDS = (1e8, 1e10)
"""Numbers that are seconds since 1970, from 1973 to 2286; years, days and milliseconds are not."""


def sampling_weights(probability: Floats) -> Floats:
    """Weigh a vote by one over the probability with which its pair was drawn.

    The ratings then aim at pairs drawn alike, whatever the sampler preferred.

    Raises
    ------
    DataError
        If a probability is missing, or not above 0 and at most 1.
    """
    _refuse(
        probability, ~((probability > 0) & (probability <= 1)), "pair probability", "in (0, 1]"
    )
    return 1 / probability


def given_weights(weight: Floats, column: str) -> Floats:
    """Give the weights of a column; raises `DataError` if one is negative or not finite."""
    _refuse(weight, ~(np.isfinite(weight) & (weight >= 0)), f"weight in {column!r}", "0 or more")
    return weight


def decay(seconds: Floats, half_life_days: float, now: float) -> Floats:
    """Weigh a vote by its age: 1 now, and half for every half-life that has passed.

    Parameters
    ----------
    seconds : ndarray of float64
        When each vote was cast, in seconds since 1970 UTC.
    now : float
        The moment at which a vote weighs 1; later votes weigh more.

    Raises
    ------
    DataError
        If the half-life is not a positive number of days.

    Examples
    --------
    >>> decay(np.array([0.0, 86_400.0]), half_life_days=1, now=86_400.0).tolist()
    [0.5, 1.0]
    """
    if not (np.isfinite(half_life_days) and half_life_days > 0):
        msg = f"A half-life of {half_life_days} days cannot be used; give a positive number."
        raise DataError(msg)
    return np.exp2((seconds - now) / (DAY_S * half_life_days))


def inside(seconds: Floats, since: datetime | None, until: datetime | None) -> Bools:
    """Tell which votes were cast from ``since`` on and before ``until``."""
    low = -np.inf if since is None else _utc_seconds(since)
    high = np.inf if until is None else _utc_seconds(until)
    return (seconds >= low) & (seconds < high)


def _utc_seconds(moment: datetime) -> float:
    """Give a moment in seconds since 1970; one without a zone is in UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_moment(text: str) -> float:
    """Read a moment: ISO 8601, in UTC unless it says otherwise, or seconds since 1970.

    Examples
    --------
    >>> parse_moment("1970-01-02T00:00:00Z"), parse_moment("1970-01-01 01:00:00+01:00")
    (86400.0, 0.0)
    >>> parse_moment("1690000000.5")
    1690000000.5
    """
    return _seconds(_moment(text))


def parse_moments(texts: Sequence[str]) -> Floats:
    """Read moments in seconds since 1970, as `parse_moment`; a blank one is NaN.

    Raises
    ------
    DataError
        If one cannot be read, or some say their zone and others do not.
    """
    read = [_moment(text) if text.strip() else np.nan for text in texts]
    dates = [(text, m) for text, m in zip(texts, read, strict=True) if isinstance(m, datetime)]
    bare = next((text for text, moment in dates if moment.tzinfo is None), None)
    zoned = next((text for text, moment in dates if moment.tzinfo is not None), None)
    if bare is not None and zoned is not None:
        msg = (
            f"Some times say their zone, such as {zoned!r}, and some do not, such as {bare!r}: "
            "write all of them like 2026-01-31T12:00:00Z."
        )
        raise DataError(msg)
    return np.array([_seconds(moment) for moment in read], dtype=np.float64)


def _seconds(moment: datetime | float) -> float:
    return _utc_seconds(moment) if isinstance(moment, datetime) else moment


def _moment(text: str) -> datetime | float:
    try:
        if SECONDS[0] <= float(text) < SECONDS[1]:
            return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        msg = (
            f"Cannot read the moment {text!r}: write it like 2026-01-31T12:00:00Z, or in seconds "
            "since 1970."
        )
        raise DataError(msg) from error


def _checked_seconds(seconds: Floats) -> Floats:
    """Give numbers of seconds since 1970; raises `DataError` if they count something else."""
    outside = (seconds < SECONDS[0]) | (seconds >= SECONDS[1])
    _refuse(seconds, outside, "time", "in seconds since 1970, or a date")
    return seconds


_CONSTANT = 1e-9
"""Differences of values, over the largest of them, that are the errors of arithmetic."""


def style_difference(a: Floats, b: Floats, column: str) -> Floats:
    """Compare a count on side A with side B: ``(a - b) / (a + b)``, and 0 where both are 0.

    As LMArena's style control does, from -1 to 1; or, for a column after `LOG2`, in doublings:
    ``log2(a / b)``, for what is always positive, such as a length.

    Raises
    ------
    DataError
        If a count is missing, negative or not finite; or 0, and doublings were asked for.

    Examples
    --------
    >>> style_difference(np.array([3.0, 0.0]), np.array([1.0, 0.0]), "lists").tolist()
    [0.5, 0.0]
    >>> style_difference(np.array([400.0, 50.0]), np.array([100.0, 50.0]), "log2:length").tolist()
    [2.0, 0.0]
    """
    doubled = column.startswith(LOG2)
    wanted = "above 0 to be doubled" if doubled else "0 or more"
    for side, values in (("a", a), ("b", b)):
        good = np.isfinite(values) & ((values > 0) if doubled else (values >= 0))
        _refuse(values, ~good, f"value in '{column.removeprefix(LOG2)}_{side}'", wanted)
    if doubled:
        return np.asarray(np.log2(a / b))
    both = a + b
    return np.divide(a - b, both, out=np.zeros_like(both), where=both > 0)


def given_difference(values: Floats, column: str) -> Floats:
    """Give differences from a column; raises `DataError` if one is not finite."""
    _refuse(values, ~np.isfinite(values), f"difference in {column!r}", "finite")
    return values


def standardised(columns: Sequence[Floats], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Divide each style by its standard deviation, which is given too; 1 for doublings.

    The mean stays: taken out, it would come back as an advantage of side A.

    Returns
    -------
    (ndarray of shape (n, n_styles), ndarray of shape (n_styles,))

    Raises
    ------
    DataError
        If a style is the same for all votes.
    """
    features, scale = np.empty((len(columns[0]), len(columns))), np.ones(len(columns))
    for i, (name, values) in enumerate(zip(names, columns, strict=True)):
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if not high - low > _CONSTANT * max(abs(low), abs(high)):
            # of equal differences, rounding leaves a standard deviation above 0
            raise DataError(f"The style {name!r} is the same for all votes; leave it out.")
        if not name.startswith(LOG2):
            scale[i] = values.std()
        np.divide(values, scale[i], out=features[:, i])
    return features, scale


def _refuse(values: NDArray[Any], bad: Bools, what: str, wanted: str) -> None:
    if bad.any():
        where = plural(int(bad.sum()), "row")
        raise DataError(f"A {what} is {values[bad][0]}, in {where}; it must be {wanted}.")


# Relations of a source


LONGEST = 300
"""Characters of an engine's own words that a sentence quotes."""
VOTERS_CHECKED = 10_000
"""The most voters whose names are compared with those of language models, evenly spaced."""

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
    once: bool = False,
    left_out: dict[str, int] | None = None,
    named: Columns = Columns(),  # noqa: B008 - it does not change
) -> Iterator[Relation]:
    """Give a source as a relation of duckdb, which can be read more than once.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        Files, folders or patterns of files that end in one of `ENDINGS`, read as one table; or
        what has ``__arrow_c_stream__``, as tables of pandas, Polars, pyarrow and duckdb have, or
        a lazy frame of Polars, which is collected.
    wanted : callable
        From the columns that are there to those that will be read: of frames and of files of
        text, only these are.
    holds : str
        What should be in it, for errors.
    as_peers : bool
        Read a file of a format in `rating.tables.peers.FORMATS` as votes in our columns.
    once : bool
        Give rows of a file that repeat an earlier vote a reason in ``left_out``.
    left_out : dict, optional
        Receives the number of excluded rows by reason, in place of the notice.
    named : Columns
        Names that were given: the dotted path of a member of a nested column becomes a column.

    Raises
    ------
    DataError
        If the file or the table cannot be read, now or while the relation is in use; a
        `LayoutError` if it has none of the columns of votes that are known.
    """
    files = Files.of(source)
    name = f"a {type(source).__name__}" if files is None else repr(str(files))
    try:
        if files is not None:
            with _opened_files(files, wanted, holds, as_peers, once, left_out, named) as rows:
                yield rows
        elif isinstance(source, Relation):
            yield source
        else:
            with connected() as connection:
                yield _streamed(connection, source, wanted, f"Cannot read the {holds} of {name}")
    except duckdb.Error as error:
        if why := too_long(error):
            raise DataError(why) from error
        msg = f"Cannot read the {holds} of {name}: {str(error).splitlines()[0][:LONGEST]}"
        raise DataError(msg) from error


def _streamed(
    connection: duckdb.DuckDBPyConnection,
    frame: Any,
    wanted: Callable[[Sequence[str]], Sequence[str]],
    cannot: str,
) -> Relation:
    """Take in the columns of a frame that are wanted, by its Arrow stream.

    Parameters
    ----------
    cannot : str
        How an error begins.

    Raises
    ------
    DataError
        If it has no stream, or its library cannot make one of what is in it.
    """
    is_pandas = type(frame).__module__.startswith("pandas") and hasattr(frame, "columns")
    try:
        if is_pandas:  # which would convert the columns that nobody reads, too
            names = wanted([str(name) for name in frame.columns])
            frame = frame[[name for name in frame.columns if str(name) in names]]
            frame = frame.reset_index(drop=True)
        elif hasattr(frame, "collect_schema"):  # Polars
            frame = frame.select(wanted(frame.collect_schema().names()))
            frame = frame.collect() if hasattr(frame, "collect") else frame
        if not hasattr(frame, "__arrow_c_stream__"):
            msg = (
                f"{cannot}: give the path of a file that ends in {', '.join(ENDINGS)}, or a table "
                "with __arrow_c_stream__, as pandas, Polars, pyarrow and duckdb have. With dask, "
                "compute() it first, or write it to Parquet."
            )
            raise DataError(msg)
        if importlib.util.find_spec("pyarrow") is None:
            rows = connection.from_arrow(frame.__arrow_c_stream__())
            rows = rows.project(all_quoted(wanted(rows.columns))).materialize()
        else:
            from pyarrow import RecordBatchReader

            table = RecordBatchReader.from_stream(frame).read_all()
            rows = connection.from_arrow(table.select(wanted(table.column_names)))
    except (DataError, duckdb.Error):
        raise
    except Exception as error:  # whatever its library raises
        why = (is_pandas and _odd(frame)) or f"{error}".partition("\n")[0][:LONGEST]
        raise DataError(f"{cannot}: {why}") from error
    if objects := [name for name, kind in kinds(rows).items() if kind == "blob"]:
        msg = f"{cannot}: column {objects[0]!r} holds bytes or objects; make text of its values."
        raise DataError(msg)
    return rows


def _odd(frame: Any) -> str:
    """Quote the first value of a pandas column that is of another type than the first one."""
    for name, column in frame.items():
        values = [*column.dropna().items()]
        for row, value in values:
            if type(value) is not type(values[0][1]):
                return (
                    f"column {name!r} holds {value!r} in row {row + 1}, and {values[0][1]!r} "
                    "before: make text or whole numbers of its values."
                )
    return ""


@contextmanager
def _opened_files(
    files: Files,
    wanted: Callable[[Sequence[str]], Sequence[str]],
    holds: str,
    as_peers: bool,
    once: bool,
    left_out: dict[str, int] | None,
    named: Columns,
) -> Iterator[Relation]:
    paths = expanded(files.paths)
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        try:
            rows, n_chosen = chosen(rows_of(connection, paths), files)
            theirs, known, raw = rows.columns, None, rows
            labelled = not {*_winners(files)}.isdisjoint(theirs)  # else the format makes a winner
            rows = _labelled(rows, files) if labelled else rows
            if as_peers:
                rows, known = peers.as_votes(rows, files.where)
                _require_one_format(connection, paths, known)
            unread = peers.no_votes(str(files), known)
            known = None if unread else known
            asked = (*(theirs for _, theirs in files.columns), *named.asked)
            rows = _with_members(rows, asked, str(files))
            rows = rows if labelled else _labelled(rows, files)
            there = rows.columns
            beside = {ours: quoted(require(theirs, there)) for ours, theirs in files.columns}
            rows = _replaced(rows, beside)
            try:
                names = wanted(rows.columns)
            except LayoutError as error:
                raise (unread or _unknown(raw, files, named)) if as_peers else error from None
            is_packed_text = paths[0].suffix in PACKED and kind_of(paths[0]) == "text"
            if is_packed_text and size_of(paths) < SMALL:  # to write all of it takes memory, too
                require_held(rows.project(all_quoted(names)), paths)
            ids = known.columns_for([coding.BATTLE], theirs) if known else []
            key = coding.key_of(rows.columns, files.where, ids) if once else []
            doubtful = coding.doubtful_key_of(rows.columns, files.where) if once else []
            renamed = coding.text_beside(rows.columns, names) if once else None
            if kind_of(paths[0]) != "Parquet":
                read = dict.fromkeys((*names, *key, *doubtful, *(renamed or ())))
                rows = as_parquet(connection, rows, [*read], Path(folder) / "votes.parquet")
            if paths[0].suffix in PACKED and names:
                if known is not None and kind_of(paths[0]) == "Parquet":
                    ours = [*names, *(column for _, column in files.columns)]
                    require_held(raw.project(all_quoted(known.columns_for(ours, theirs))), paths)
                else:
                    require_held(rows.project(all_quoted(names)), paths)
            n_renamed = coding.n_renamed(rows, renamed) if renamed else 0
            if n_repeated := coding.n_repeated(rows, key):
                same = coding.n_repeated(rows, [*key, "winner"]) if "winner" in names else None
                if same is not None and same < n_repeated:
                    peers.mention(
                        f"{files}: {n_repeated - same:,} of the repeated rows name another winner "
                        "than an earlier row with their battle_id. The first row counts."
                    )
                rows = coding.marked(rows, key)
                rows = as_parquet(connection, rows, names, Path(folder) / "once.parquet")
            n_doubtful = coding.n_repeated(rows, doubtful)
        except (duckdb.Error, DataError) as error:
            reason = error.__cause__ if isinstance(error, DataError) else error
            if isinstance(reason, duckdb.Error):
                explain(reason, paths)
            raise
        if left_out is not None:
            left_out |= n_chosen
        elif known is not None or n_chosen or n_repeated or len(paths) > 1:
            own = {coding.REPEATED: n_repeated} if n_repeated else {}
            reasons = (own if known is None else peers.left_out(rows)) | n_chosen
            peers.announce(str(files), known.name if known else holds, reasons, len(paths))
        if n_doubtful:
            peers.mention(coding.warning(str(files), paths, n_doubtful, doubtful))
        if renamed and n_renamed:
            peers.mention(coding.renamed_warning(str(files), n_renamed, renamed))
        yield rows


def _with_members(rows: Relation, names: Sequence[str], source: str) -> Relation:
    """Make a column of each dotted path to a member of a nested column, as in ``data.model_id``.

    Raises
    ------
    DataError
        If no row has a value there.
    """
    there = rows.columns
    paths = [name for name in names if name not in there and name.partition(".")[0] in there]
    made = []
    for name in dict.fromkeys(paths):
        first, *parts = name.split(".")
        nested = quoted(first)
        if kinds(rows)[first] != "varchar":
            nested = f"CAST(to_json({nested}) AS VARCHAR)"
        keys = "".join(f"[{part}]" if part.isdigit() else f'."{part}"' for part in parts)
        value = f"json_extract_string(TRY_CAST({nested} AS JSON), {literal('$' + keys)})"
        made.append(f"{value} AS {quoted(name)}")
    if not made:
        return rows
    rows = rows.project(f"*, {', '.join(made)}")
    counts = rows.aggregate(", ".join(f"count({quoted(name)})" for name in paths)).fetchall()[0]
    if empty := next((name for name, n in zip(paths, counts, strict=True) if not n), None):
        known = ", ".join(
            map(repr, samples_of(_cells(rows.project(quoted(empty.partition(".")[0])))))
        )
        raise DataError(f"No row of {source!r} has a value in {empty!r}; there are {known}.")
    return rows


def _cells(rows: Relation) -> dict[str, list[str | None]]:
    """Give the first rows of a table as text, lists and objects as JSON."""
    parts = []
    for name, kind in list(kinds(rows).items())[:MOST_COLUMNS]:
        nested = kind in ("struct", "list", "map", "array", "union", "variant")
        value = f"to_json({quoted(name)})" if nested else quoted(name)
        parts.append(f"CAST({value} AS VARCHAR) AS {quoted(name)}")
    cells = rows.limit(ROWS).project(", ".join(parts)).fetchall()
    names = rows.columns[: len(parts)]
    return {name: [row[i] for row in cells] for i, name in enumerate(names)}


def _unknown(rows: Relation, files: Files, columns: Columns) -> LayoutError:
    ours = {name: role for role, names in KNOWN.items() for name in names}
    named = {ours[name]: theirs for name, theirs in files.columns if name in ours}
    named |= {role: name for role in ROLES if (name := getattr(columns, role))}
    cells = _cells(rows)
    inner = [
        f" It has one entry. If its {name!r} are the votes, save that list as a file of its own."
        for name, values in cells.items()
        if [str(value)[:2] for value in values] == ["[{"]
    ]
    return layout_error(
        str(files),
        samples_of(cells),
        named,
        known={role: names for role, names in KNOWN.items() if role != LEFT_OUT},
        required=REQUIRED,
        labels=[theirs for theirs, _ in files.labels],
        also=peers.nearly_in(rows.columns) + "".join(inner[:1]),
    )


def chosen(rows: Relation, files: Files) -> tuple[Relation, dict[str, int]]:
    """Give the rows of which the condition holds, and how many it excludes.

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
        msg = f"No row of {str(files)!r} fits where {files.where!r}: all {n:,} are excluded."
        raise DataError(msg)
    return fit, {"by where": n - n_fit}


def _winners(files: Files) -> tuple[str, ...]:
    """Name the columns that may hold the winner, the likeliest first."""
    named = dict(files.columns).get("winner", files.winner)
    return (*([named] if named else []), *KNOWN["winner"])


def label_column(files: Files, there: Sequence[str]) -> str:
    """Name the column whose labels are to be read as others; raises `DataError` without one."""
    name = next((name for name in _winners(files) if name in there), None)
    if name is None:
        msg = f"There is no column of a winner in {str(files)!r} to read labels of; "
        raise DataError(f"{msg}there are {quoted_names(there)}.")
    return name


def _labelled(rows: Relation, files: Files) -> Relation:
    if not files.labels:
        return rows
    name = label_column(files, rows.columns)
    text = f"CAST({quoted(name)} AS VARCHAR)"
    if "" in dict(files.labels):  # a blank is missing in CSV, and none in JSON
        text = f"trim(coalesce({text}, ''))"
    whens = (f"WHEN {literal(theirs)} THEN {literal(ours)}" for theirs, ours in files.labels)
    return _replaced(rows, {name: f"CASE {text} {' '.join(whens)} ELSE {text} END"})


def _replaced(rows: Relation, columns: Mapping[str, str]) -> Relation:
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
    heads = [
        theirs if theirs in there[files] else theirs.partition(".")[0]
        for _, theirs in files.columns
    ]
    for head in heads:
        if not any(head in names for names in there.values()):
            require(head, there[files])
    pairs = zip(files.columns, heads, strict=True)
    columns = tuple(pair for pair, head in pairs if head in there[files])
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
    if isinstance(source, LoggedVotes):
        yield source.read(reading)
        return
    if type(source).__module__.startswith("pyspark.sql."):
        yield spark_engine().counted(source, reading, by=by)
        return

    maybe_voters: list[str] = []

    def wanted(there: Sequence[str]) -> list[str]:
        texts, numbers = reading.roles(there, by=by)
        is_known = peers.recognised(there, bool)  # a known format names its voters, or has none
        if reading.voters and not is_known and not {"voter", "n"} & {*texts, *numbers} - {*JUDGES}:
            maybe_voters.extend(like_voters(there))
        pairs = [name for name in COUNTS if name in there] if "n" in numbers else []
        own = {*texts.values(), *numbers.values(), *pairs, *JUDGES, *KINDS}
        return [name for name in there if name in own]

    with opened(source, wanted, once=True, named=reading.columns) as rows:
        name = str(Files.of(source) or "the table")
        judges = require_one_kind(rows, name, reading.columns.asked)
        names = (reading.columns.voter, *KNOWN["voter"])
        voter = next((one for one in names if one in rows.columns), None)
        is_named = f"CAST({quoted(voter or '')} AS VARCHAR) <> ''"
        if len(judges) > 1 and not (voter and rows.filter(is_named).limit(1).fetchall()):
            column = next(column for column in JUDGES if column in rows.columns)
            some = ", ".join(map(repr, judges[:3])) + (", …" if len(judges) > 3 else "")
            peers.mention(
                f"{name}: verdicts of several judges ({some}) are rated together. Rate each by "
                f"itself with --by {column}. If they are people, add --column voter={column}."
            )
        texts, numbers = reading.roles(rows.columns, by=by)
        if "n" in numbers:
            others = {*texts.values(), *numbers.values()} - {"winner", N}
            rows = _one_row_an_outcome(rows, sorted(others))
        types = kinds(rows)
        if "time" in numbers and types[numbers["time"]] not in MOMENTS | NUMERIC:
            texts["time"] = numbers.pop("time")
        table = fetch(rows, only_of_text(rows, texts), numbers)
        if maybe_voters:
            peers.mention(
                f"{name}: voters are not known. If {maybe_voters[0]!r} names them, add --column "
                f"voter={maybe_voters[0]}."
            )
        by_name = "voter" in table.texts and reading.columns.voter is None
        voters = table.texts["voter"].names if by_name else ()
        sampled = voters[:: 1 + len(voters) // (VOTERS_CHECKED + 1)]
        if machines := [one for one in sampled if LIKE_A_MODEL.fullmatch(one)]:
            n_checked = (
                f"{len(sampled):,} {'sampled ' if len(sampled) < len(voters) else ''}voters"
            )
            peers.mention(
                f"{name}: {len(machines):,} of {n_checked} are called like language models, such "
                f"as {machines[0]!r}. Rate people and judges apart, with --where."
            )
        if "time" in numbers and types[numbers["time"]] in NUMERIC:
            _checked_seconds(table.numbers["time"])
        yield _timed(compact(table))


def require_one_kind(rows: Relation, source: str, asked: Collection[str | None]) -> list[str]:
    """Refuse votes of people and verdicts of language models in one table; name the judges.

    Parameters
    ----------
    asked : collection of str
        Columns that were named, as those of voters or of groups: they mix nothing.

    Raises
    ------
    DataError
        If some rows name a judge and others do not, or a column holds both kinds.
    """
    live = rows.filter(f"coalesce({LEFT_OUT}, '') = ''") if LEFT_OUT in rows.columns else rows
    named: list[str] = []
    for name in (name for name in (*JUDGES, *KINDS) if name in {*rows.columns} - {*asked}):
        text = f"trim(coalesce(CAST({quoted(name)} AS VARCHAR), ''))"
        lower, blank = f"lower({text})", f"{text} = ''"
        is_people = f"{lower} IN {PEOPLE}"
        tests = f"({blank} OR {is_people})", f"NOT ({blank} OR {is_people})"
        if name in KINDS:
            tests = is_people, f"regexp_full_match({lower}, {literal(MACHINES)})"
        sums = ", ".join(f"count(*) FILTER ({test})" for test in tests)
        n, n_judged = live.aggregate(sums).fetchall()[0]
        if not n_judged or (name in KINDS and not n):
            continue
        values = [
            live.filter(test).project(text).distinct().limit(100).fetchall() for test in tests
        ]
        people, judges = (sorted(value for (value,) in some) for some in values)
        some = ", ".join(map(repr, judges[:3])) + (", …" if len(judges) > 3 else "")
        if n:
            ways = [f"coalesce({name}, '') = ''", f"{name} <> ''"]
            if name in KINDS or people != [""]:
                ways = [f"{name} IN ({', '.join(map(literal, x))})" for x in (people, judges)]
                ways[0] = ways[0].replace(name, f"coalesce(CAST({name} AS VARCHAR), '')", 1)
            safe = (shlex.quote(x) if {*x} & {*'"$`!\\'} else f'"{x}"' for x in ways)
            raise DataError(
                f"{source!r} mixes votes of people ({plural(n, 'row')}) and verdicts of language "
                f"models ({plural(n_judged, 'row')}: {some}), by its column {name!r}. Rate them "
                "apart: --where "
                f"{' or --where '.join(safe)}."
            )
        if name in JUDGES:
            named = judges
    return named


def _one_row_an_outcome(rows: Relation, keep: Sequence[str]) -> Relation:
    """Turn a row with counts of each outcome into a row an outcome, counted in ``n``."""
    there = [(name, outcome) for name, outcome in COUNTS.items() if name in rows.columns]
    parts = [
        rows.project(
            f"{all_quoted(keep)}, {literal(outcome)} AS winner, CAST({name} AS DOUBLE) AS {N}"
        )
        for name, outcome in there
    ]
    return reduce(Relation.union, parts)


def spark_engine() -> ModuleType:
    """Load what reads from Spark; raises `DataError` where it is not installed."""
    try:
        return importlib.import_module("rating.tables.spark")
    except ImportError as error:
        msg = (
            f"Spark is not installed ({error}). Install the arena with its extra 'spark': "
            "pip install 'blind-arena[spark]'."
        )
        raise DataError(msg) from error


def only_of_text(rows: Relation, texts: dict[str, str]) -> dict[str, str]:
    """Exclude what a judge's run would say of orders where ``order`` holds anything but text.

    Parameters
    ----------
    texts : dict of str to str
        Columns to read, by role.
    """
    if "order" not in texts or kinds(rows)[texts["order"]] == "varchar":
        return texts
    orders = order_columns(list(texts.values()))
    return {role: name for role, name in texts.items() if role not in orders}


def _timed(table: Table) -> Table:
    """Read the moments of a column of text; raises `DataError` if one is not a moment."""
    column = table.texts.get("time")
    if column is None:
        return table
    moments = np.append(parse_moments(column.names), np.nan)[column.codes]
    texts = {role: texts for role, texts in table.texts.items() if role != "time"}
    return replace(table, texts=texts, numbers={**table.numbers, "time": moments})


# Rankings


COLUMN = "ranking"
BETTER, EVEN = " > ", " = "
MARKS = {">", "<", "="}
"""No name begins or ends with one."""


def read_rankings(source: object, columns: Columns = Columns()) -> "rating.Rankings":  # noqa: B008
    """Read rankings from files or a table, one per row, with voter and prompt if known.

    The column ``ranking`` holds them as `parsed` takes them, or lists of Parquet; rows without
    one are excluded, and of a study's export second showings and those not of its items.

    Raises
    ------
    DataError
        If there is no such column, or a ranking cannot be read.
    """

    def texts(there: Sequence[str]) -> dict[str, str]:
        roles = {role: columns.find(role, there) for role in ("voter", "prompt")}
        optional = {**roles, LEFT_OUT: LEFT_OUT}
        known = {role: name for role, name in optional.items() if name and name in there}
        return {"ranking": require(COLUMN, there), **known}

    with opened(source, lambda there: [*texts(there).values()]) as rows_there:
        if kinds(rows_there)[COLUMN] == "list":
            rows_there = rows_there.project(
                f"* REPLACE (CAST(to_json({COLUMN}) AS VARCHAR) AS {COLUMN})"
            )
        table = fetch(numbered(rows_there), texts(rows_there.columns), {"row": ROW})
    ranking, voters = table.texts["ranking"], table.texts.get("voter")
    counts = ranking.codes >= 0
    if (reasons := table.texts.get(LEFT_OUT)) is not None:  # rows of a study are excluded as ranks
        known = [reason == RANKED or not reason for reason in reasons.names]
        counts &= np.array([*known, True])[reasons.codes]
    rows = [i for i in np.flatnonzero(counts) if ranking.names[ranking.codes[i]].strip()]
    if not rows:
        raise DataError(f"No row of {str(source)!r} has a {COLUMN}.")
    read = [parsed(text) if text.strip() else [] for text in ranking.names]
    odd = sorted(name for places in read for place in places for name in place if ">" in name)
    if odd and (tight := [text for text in ranking.names if ">" in text and _is_tight(text)]):
        raise DataError(
            f"Cannot read the ranking {tight[0]!r}: a model is called {odd[0]!r}, so write ' > ' "
            "with spaces between the models."
        )
    named = [read[ranking.codes[i]] for i in rows]
    prompts = None
    if (asked := table.texts.get("prompt")) is not None:
        prompts = [asked.names[asked.codes[i]] if asked.codes[i] >= 0 else "" for i in rows]
    if voters is None:
        return rating.Rankings.of(named, prompts=prompts)
    if blank := sum(voters.codes[i] < 0 for i in rows):
        raise DataError(
            f"{blank} of {len(rows)} rankings of {str(source)!r} do not name their voters: name "
            "the voter in each row, or leave the column out."
        )
    return rating.Rankings.of(named, [voters.names[voters.codes[i]] for i in rows], prompts)


def parsed(text: str) -> list[list[str]]:
    """Read one ranking: in words, as a list of names, or as a list of lists where some are even.

    Marks without spaces part names where ``>`` is the only one.

    Raises
    ------
    DataError
        If a name is empty, or in words begins or ends with one of `MARKS`.

    Examples
    --------
    >>> parsed("gpt-4 > claude-1 = llama-13b")
    [['gpt-4'], ['claude-1', 'llama-13b']]
    >>> parsed("gpt-4>claude-1")
    [['gpt-4'], ['claude-1']]
    >>> parsed('["gpt-4", ["claude-1", "llama-13b"]]')
    [['gpt-4'], ['claude-1', 'llama-13b']]
    """
    if isinstance(value := json_or_text(text), list):
        places = [[place] if isinstance(place, str) else place for place in value]
        if not all(
            isinstance(place, list) and place and all(isinstance(x, str) and x for x in place)
            for place in places
        ):
            raise DataError(
                f"Cannot read the ranking {text!r}: give a list of names from the best on, such "
                'as ["x", "y", "z"], with a list in place of a name where some are even: '
                '["x", ["y", "z"]].'
            )
        return places
    marks = MARKS & {*text}
    better = ">" if _is_tight(text) and marks == {">"} else BETTER
    ranking = [[name.strip() for name in place.split(EVEN)] for place in text.split(better)]
    odd = any(not name or {name[0], name[-1]} & MARKS for place in ranking for name in place)
    if odd or (marks and _is_tight(text) and better == BETTER):
        raise DataError(
            f"Cannot read the ranking {text!r}: write the models from the best on, with ' > ' "
            "between them, and ' = ' between those that are even, as in 'x > y = z'."
        )
    return ranking


def _is_tight(text: str) -> bool:
    """Whether no mark has spaces around it."""
    return BETTER not in text and EVEN not in text
