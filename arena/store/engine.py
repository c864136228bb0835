"""How a database is opened: SQLite or PostgreSQL, by its URL, and the file behind SQLite."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from arena.errors import StoreError

EXAMPLES = "sqlite:///arena.db or postgresql://user@host/name"

POSTGRESQL = {
    "connect_timeout": 15,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""How soon a server that no longer answers is given up: after 15 or 25 seconds, not in hours."""

READ_ONLY = "arena_read_only"
"""Execution option of a transaction that will not write."""

WAIT_S = "arena_wait_s"
"""Execution option of a transaction on SQLite: how long it waits for the write lock."""

LOCK_TIMEOUT_S = 15.0
"""How long a statement waits for a lock that somebody else holds."""


def open_engine(url: str, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Engine:
    """Connect to a database; a new SQLite file is its owner's alone to read.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or ``postgresql://user@host/name``.

    Raises
    ------
    StoreError
        If the URL cannot be read or the database cannot be reached.
    """
    parsed = _parse(url)
    match parsed.get_backend_name():
        case "sqlite":
            return _open_sqlite(parsed, lock_timeout_s)
        case "postgresql":
            return _open_postgresql(parsed, lock_timeout_s)
        case other:
            msg = f"Cannot use a {other!r} database: write the URL like {EXAMPLES}."
            raise StoreError(msg)


def snapshot(engine: Engine) -> Engine:
    """Give the same database for transactions that only read, each at one moment in time."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ")
    return engine.execution_options(**{READ_ONLY: True})


def sqlite_file(url: URL) -> Path:
    """File of a SQLite database."""
    return Path((url.database or "").removeprefix("file:").partition("?")[0])


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        msg = f"Cannot read the database URL {url!r}: write it like {EXAMPLES}."
        raise StoreError(msg) from error


def _open_postgresql(url: URL, lock_timeout_s: float) -> Engine:
    try:
        engine = create_engine(
            url, pool_pre_ping=True, pool_timeout=lock_timeout_s, connect_args=POSTGRESQL
        )
    except (NoSuchModuleError, ImportError) as error:
        reason = str(error).splitlines()[0]
        msg = (
            f"Cannot use a {url.drivername!r} database: {reason}. Install the arena with its "
            "extra 'postgres': pip install '.[postgres]'."
        )
        raise StoreError(msg) from error
    event.listen(engine, "connect", partial(_prepare_postgresql, lock_timeout_s))
    return engine


def _prepare_postgresql(lock_timeout_s: float, connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {1000 * lock_timeout_s:.0f}")
    connection.commit()


def _open_sqlite(url: URL, lock_timeout_s: float) -> Engine:
    path = sqlite_file(url)
    if not path.absolute().parent.is_dir():
        msg = f"Cannot open {str(path)!r}: its folder does not exist. Make the folder first."
        raise StoreError(msg)
    engine = create_engine(url, connect_args={"timeout": lock_timeout_s})
    event.listen(engine, "do_connect", partial(_make_private, url))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", partial(_begin_sqlite, lock_timeout_s))
    return engine


def _make_private(url: URL, *_: object) -> None:
    """Make a new file before SQLite does, which would let everybody read it.

    A file that is there is not opened: closing it again would drop SQLite's locks on it.
    """
    if "mode=" in str(url):  # the URL says itself whether a file may be made
        return
    with suppress(OSError):  # it is there, or SQLite will say why it cannot be
        os.close(os.open(sqlite_file(url), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: see _begin_sqlite
    _keep_wal(connection)
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _keep_wal(connection: Any) -> None:
    """Turn a new file to write-ahead logging; SQLite does not wait for others who do the same."""
    for pause_s in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            time.sleep(pause_s)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(lock_timeout_s: float, connection: Connection) -> None:
    """Take the write lock at once, so that two writers queue rather than fail halfway."""
    options = connection.get_execution_options()
    if options.get(READ_ONLY, False):
        connection.exec_driver_sql("BEGIN")
        return
    wait_s = options.get(WAIT_S, lock_timeout_s)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * wait_s:.0f}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def describe(error: SQLAlchemyError) -> str:
    """Give the database's own words in one line, without the statement or its values."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]


class OpenFile:
    """The file as it was opened, and the turn of the one thread that writes to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._opened = self._identity()

    @contextmanager
    def alone(self, wait_s: float) -> Iterator[float]:
        """Let one thread write at a time; gives the seconds that are left to wait for others.

        SQLite has one writer: here the threads queue, where the file's own lock would let them
        sleep and try again.

        Raises
        ------
        StoreError
            If it is not this thread's turn in time, or the file is no longer where it was: what
            is written then would be lost.
        """
        began = time.monotonic()
        if self._identity() != self._opened:
            msg = (
                f"The database {str(self._path)!r} was moved or deleted while it was in use. "
                "Stop the arena, put the file back, and start it again."
            )
            raise StoreError(msg)
        if not self._turn.acquire(timeout=wait_s):
            msg = f"The database {str(self._path)!r} was locked by others for {wait_s:g} s."
            raise StoreError(msg)
        try:
            yield max(0.0, began + wait_s - time.monotonic())
        finally:
            self._turn.release()

    def _identity(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino
