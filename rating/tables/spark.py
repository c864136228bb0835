"""Votes that lie in a Spark cluster: counted there, and excluded voter by voter there.

The driver gets a row for each distinct (model, model, winner), and of the voters sums alone. Needs
the extra ``spark`` here and where the cluster runs Python.
"""

import io
import math
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from rating.comparisons import Comparisons, Sums
from rating.covariance import totals
from rating.errors import DataError
from rating.outcome import OUTCOMES
from rating.tables import peers
from rating.tables.coding import Table, coded_list
from rating.tables.columns import REQUIRED, N, Reading, order_columns, quoted_names
from rating.tables.files import ENDINGS, Files
from rating.tables.sources import LONGEST, ClusterTable, label_column, opened_table
from rating.tables.vote_filter import MOST_MODELS, ORDERS
from rating.typing import Bools, Integers

VOTES_A_PART = 5_000_000
"""Votes by voter that one process of the cluster holds at a time, about 100 bytes each."""
LEAST_PARTS = 4
ADDED_UP_HERE = 16
"""Parts beyond which the cluster adds most of them up itself."""
ROWS_A_BATCH = 20_000
MOST_CELLS = 4 * MOST_MODELS**2
"""Distinct (model, model, winner) that the driver takes."""

ANSWER_S = 5.0
"""How long a master may take to answer."""

NAMELESS = ("float", "double", "boolean", "date", "timestamp", "timestamp_ntz")
"""Types that no name has."""

_LOCAL = re.compile(r"spark://(local(?:-cluster)?(?:\[[\w*, ]*\])?)")
_NOT_BLANK = r"(?U)[^\s\x1c-\x1f]"
"""What Python does not strip; Java's classes lack four separators of Unicode's first block."""


@contextmanager
def connected(source: ClusterTable) -> Iterator[DataFrame]:
    """Give the rows of a table that are chosen, in the session that there is, or one for them.

    Raises
    ------
    DataError
        If the cluster does not answer, there is no such table, or its rows cannot be chosen.
    """
    name = source.name
    if "/" in name and name.endswith(ENDINGS) and not name.endswith(".parquet"):
        msg = (
            f"Spark reads a table of its catalog here, or Parquet files, and {name!r} is neither: "
            "write it to Parquet, or rate it without Spark."
        )
        raise DataError(msg)  # before Spark starts, which takes a while
    there = SparkSession.getActiveSession()
    session = session_at(str(source.chosen.paths[0]))
    try:
        yield _table(session, source)
    finally:
        if there is None:
            session.stop()


def session_at(address: str) -> SparkSession:
    """Give the session of a cluster, started unless it runs.

    Raises
    ------
    DataError
        If the cluster does not answer, or this process is at work in another.
    """
    local = _LOCAL.fullmatch(address)
    if local is None:
        _require_answer(address)
    master = local[1] if local else address
    if there := SparkSession.getActiveSession():
        if (other := there.sparkContext.master) != master:
            msg = f"Cannot read from {address!r}: a session of {other!r} is open. Stop it first."
            raise DataError(msg)
        return there
    builder = SparkSession.builder.appName("arena rate").master(master)
    settings = {
        "spark.ui.enabled": "false",  # it would listen on every address of this machine
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_A_BATCH),
    }
    if local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(LEAST_PARTS),
            "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/spark-warehouse",
        }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with explained(f"Cannot start Spark at {address!r}"):
        session = builder.getOrCreate()
    PySparkLogger.getLogger("DataFrameQueryContextLogger").disabled = True  # says it in a page
    if local:
        session.sparkContext.pythonExec = sys.executable
    return session


def _require_answer(address: str) -> None:
    """Raise `DataError` unless a master answers: Spark itself would try for a minute."""
    hosts = re.fullmatch(r"spark://((?:[^\s,/:]+:\d{1,5},?)+)", address)
    if hosts is None:
        msg = (
            f"{address!r} is no address of a Spark cluster: write spark://HOST:PORT of its master,"
            " or spark://local[2] for two processes on this machine."
        )
        raise DataError(msg)
    why = ""
    for one in hosts[1].rstrip(",").split(","):
        host, _, port = one.rpartition(":")
        try:
            socket.create_connection((host, int(port)), ANSWER_S).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    msg = f"No Spark master answers at {address!r}: {why}. Check the address, and that it runs."
    raise DataError(msg)


def _table(session: SparkSession, source: ClusterTable) -> DataFrame:
    files, name = source.chosen, source.name
    with explained(f"Cannot read the table {name!r} at {str(files)!r}"):
        if "/" in name or name.endswith(".parquet"):
            rows = session.read.parquet(name)
        elif session.catalog.tableExists(name):
            rows = session.table(name)
        else:
            msg = (
                f"There is no table {name!r} at {str(files)!r}: name one of its catalog, or the "
                "path of Parquet files, with a slash in it."
            )
            raise DataError(msg)
        if known := peers.recognised(rows.columns):
            msg = (
                f"The table {name!r} is in the format {known.name}, which is read from files: "
                "write it to Parquet, and rate that; or make columns model_a, model_b and winner."
            )
            raise DataError(msg)
    with explained(f"Cannot choose rows of {name!r} by where {files.where!r}"):
        rows = rows.where(files.where) if files.where is not None else rows
        return _labelled(rows, files) if files.labels else rows


def _labelled(rows: DataFrame, files: Files) -> DataFrame:
    winner = label_column(files, rows.columns)
    label = _column(winner).cast("string")
    ours = label
    for theirs, own in files.labels:
        ours = sql.when(label == sql.lit(theirs), sql.lit(own)).otherwise(ours)
    return rows.select(
        *(ours.alias(name) if name == winner else _column(name) for name in rows.columns)
    )


def _column(name: str) -> Column:
    """Give a column by its name, whatever dots and quotes are in it."""
    return sql.col("`" + name.replace("`", "``") + "`")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Make a `DataError` of what Spark raises, with the first line of its own words."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
            yield
    except (PySparkException, Py4JError) as error:
        lines = filter(None, map(str.strip, str(error).splitlines()))
        raise DataError(f"{what}: {next(lines, type(error).__name__)[:LONGEST]}") from error


def counted(frame: DataFrame, reading: Reading, *, by: bool) -> Table:
    """Count the votes of a frame of Spark in the cluster.

    Raises
    ------
    DataError
        If a column is not there or of a kind that holds no names, the reading takes what only
        single votes tell, or Spark fails.
    """
    _refuse(reading, by=by)
    with explained("Cannot read the votes from Spark"):
        texts, numbers = reading.roles(frame.columns, by=False)
        if numbers:  # it is counted already
            with opened_table(frame.toArrow(), reading, by=False) as table:
                return replace(table, first=lambda _: None)
        _refuse_prompts(reading, texts)
        types = dict(frame.dtypes)
        if bad := next((name for name in texts.values() if types[name] in NAMELESS), None):
            msg = f"Column {bad!r} is of {types[bad].upper()}; "
            raise DataError(f"{msg}make text or whole numbers of its values.")
        rows = frame.select(
            *(_column(name).cast("string").alias(role) for role, name in _own(texts).items())
        )
        keys = [_key(role).alias(role) for role in rows.columns]
        alike = rows.groupBy(*keys).agg(sql.count("*").alias(N))
        cells = alike.limit(MOST_CELLS + 1).toArrow()
    if len(cells) > MOST_CELLS:
        msg = (
            f"There are more than {MOST_CELLS:,} different combinations of model_a, model_b and "
            f"winner: check that {quoted_names(list(_own(texts).values()))} hold them."
        )
        raise DataError(msg)
    return _table_of(rows, cells)


def _refuse(reading: Reading, *, by: bool) -> None:
    unread = {
        "by": by,
        "style": bool(reading.style),
        "weights": reading.weight is not None,
        "half_life": reading.half_life_days is not None,
        "since and until": reading.needs_time,
    }
    if option := next((name for name, used in unread.items() if used), None):
        msg = (
            f"Votes in Spark are counted there, and {option} needs each of them here: choose rows "
            "by where, or write the votes to Parquet and rate that."
        )
        raise DataError(msg)


def _refuse_prompts(reading: Reading, texts: dict[str, str]) -> None:
    if reading.all_prompts or "prompt" in texts:
        column = f", as {texts['prompt']!r} names them," if "prompt" in texts else ""
        msg = (
            f"Votes in Spark are excluded by voter alone, and prompts{column} would be excluded "
            "as well: choose cluster voter (--cluster voter) or none, or write the votes to "
            "Parquet and rate that."
        )
        raise DataError(msg)


def _own(texts: dict[str, str]) -> dict[str, str]:
    """Exclude what tells a judge's cases apart: each would be a row on the driver."""
    cases = {*order_columns(list(texts.values()))} - {"order"}
    return {role: name for role, name in texts.items() if role not in cases}


def _key(role: str) -> Column:
    """Give what rows are counted by: of voters and orders only whether they are there."""
    column = sql.col(role)
    if role == "voter":
        # The first test is a hundred times as quick, and holds of nearly all.
        graphic = (column >= sql.lit("!")) & (column < sql.lit("\x7f"))
        return sql.when(graphic | column.rlike(_NOT_BLANK), sql.lit("somebody"))
    if role == "order":
        return sql.when(sql.trim(column).isin(*ORDERS), sql.lit("of a run")).otherwise(sql.lit(""))
    return column


def _table_of(rows: DataFrame, cells: pa.Table) -> Table:
    texts = {role: coded_list(cells[role].to_pylist()) for role in cells.column_names if role != N}
    order = texts.pop("order", None)
    if order is not None and {*order.names} == {"of a run"}:
        msg = (
            "The column 'order' holds a judge's orders, of which one row a case counts: write the "
            "table to Parquet, and rate that."
        )
        raise DataError(msg)

    def parts(
        models: Sequence[str], live: Bools, a: Integers, b: Integers, outcome: Integers
    ) -> _VotersInCluster:
        cell = (a.astype(np.int64) * len(models) + b) * len(OUTCOMES) + outcome
        return _VotersInCluster(rows, cells.filter(pa.array(live)), cell, tuple(models))

    n = np.asarray(cells[N].to_numpy(), dtype=np.int64)
    return Table(texts, {}, n, lambda _: None, parts)


@dataclass(frozen=True, eq=False)
class _VotersInCluster:
    """Votes by voter in a cluster: `rating.comparisons.Parts`.

    Attributes
    ----------
    rows : DataFrame
        The votes by role, all of them.
    known : pyarrow.Table
        The rows that count, each once, and how many votes are alike.
    cell : ndarray of shape (n_known,), int64
        Models and outcome of each as one number.
    models : tuple of str
    """

    rows: DataFrame
    known: pa.Table
    cell: Integers
    models: tuple[str, ...]
    _results: dict[str, tuple[Callable[..., Sums], list[Sums]]] = field(default_factory=dict)

    @cached_property
    def _votes(self) -> DataFrame:
        """The votes that count, each a voter and a cell, every voter in one partition."""
        # Of the rows that count none lacks these, and all or none have a voter.
        sure = [*REQUIRED]
        keys = [*sure, *({*self.known.column_names} - {*sure, "voter", N})]
        places = [f"key{place}" for place in range(len(keys))]
        columns = [*(self.known[name] for name in keys), pa.array(self.cell)]
        table = pa.table(columns, names=[*places, "cell"])
        codes = self.rows.sparkSession.createDataFrame(table).hint("broadcast")
        alike = [
            _key(name) == sql.col(place) if name in sure else _key(name).eqNullSafe(sql.col(place))
            for name, place in zip(keys, places, strict=True)
        ]
        votes = self.rows.join(codes, reduce(Column.__and__, alike)).select("voter", "cell")
        return votes.repartition(self._n_parts, "voter")

    @property
    def _n_parts(self) -> int:
        n: int = sum(self.known[N].to_pylist())
        return max(LEAST_PARTS, math.ceil(n / VOTES_A_PART))

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> list[Sums]:
        """Add up in the cluster what the work makes of the votes of some voters at a time."""
        before = self._results.get(str(name))
        if before is not None and _is_same(before[0], work):
            return before[1]
        with explained("Cannot omit voters in Spark"):
            parts = self._votes.mapInArrow(
                partial(_work_on, work, self.models), "number int, sums binary"
            )
            rows = sorted(_fewer(parts, self._n_parts).collect(), key=lambda row: row["number"])
        sums = [_read(row["sums"]) for row in rows]
        if name is not None:
            self._results[name] = work, sums
        return sums


def _is_same(one: Callable[..., object], other: Callable[..., object]) -> bool:
    """Whether two pieces of work are the same function of the same fit."""
    if not (isinstance(one, partial) and isinstance(other, partial)):
        return one is other
    alike = all(other.keywords.get(name) is value for name, value in one.keywords.items())
    return one.func is other.func and alike


def _work_on(
    work: Callable[[Comparisons], Sums], models: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do the work on the voters of one partition; runs in the cluster."""
    votes = [*batches]
    if votes:
        number = TaskContext.get().partitionId()  # type: ignore[union-attr]
        yield _written(number, work(_comparisons(pa.Table.from_batches(votes), models)))


def _fewer(parts: DataFrame, n: int) -> DataFrame:
    """Let the cluster add up what would be too many arrays for the driver."""
    if n <= ADDED_UP_HERE:
        return parts
    return parts.repartition(math.isqrt(n)).mapInArrow(_added, parts.schema)


def _added(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up what the work made of some partitions; runs in the cluster."""
    rows = sorted((row["number"], row["sums"]) for one in batches for row in one.to_pylist())
    if rows:
        yield _written(rows[0][0], totals(_read(sums) for _, sums in rows))


def _written(number: int, sums: Sums) -> pa.RecordBatch:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **dict(sums))
    columns = [pa.array([number], pa.int32()), pa.array([file.getvalue()], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["number", "sums"])


def _read(sums: bytes) -> Sums:
    with np.load(io.BytesIO(sums), allow_pickle=False) as arrays:
        return dict(arrays)


def _comparisons(votes: pa.Table, models: tuple[str, ...]) -> Comparisons:
    """Count votes by voter, whose numbers are in the order of their names."""
    coded = votes["voter"].dictionary_encode().unify_dictionaries().chunks
    names = coded[0].dictionary
    place = np.empty(len(names), dtype=np.int64)
    place[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
    voter = place[np.concatenate([chunk.indices.to_numpy() for chunk in coded])]
    k, m = len(models), len(OUTCOMES)
    key = voter * (k * k * m) + votes["cell"].to_numpy()
    key, n = np.unique(key, return_counts=True)
    rest, outcome = np.divmod(key, m)
    rest, b = np.divmod(rest, k)
    voter, a = np.divmod(rest, k)
    weight = n.astype(np.float64)
    return Comparisons(
        models=models,
        pairs=np.column_stack([a, b]),
        outcome=outcome,
        votes=n,
        weight=weight,
        weight_sq=weight,
        voter=voter,
        n_voters=len(names),
        n_self=0,
    )
