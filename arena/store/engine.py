"""How a database is opened: SQLite or PostgreSQL, by its URL."""

import sqlite3
import time
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


def open_engine(url: str) -> Engine:
    """Connect to a database.

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
            return _open_sqlite(parsed)
        case "postgresql":
            return _open_postgresql(parsed)
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


def _open_postgresql(url: URL) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=POSTGRESQL)
    except (NoSuchModuleError, ImportError) as error:
        reason = str(error).splitlines()[0]
        msg = (
            f"Cannot use a {url.drivername!r} database: {reason}. Install the arena with its "
            "extra 'postgres': pip install '.[postgres]'."
        )
        raise StoreError(msg) from error


def _open_sqlite(url: URL) -> Engine:
    path = sqlite_file(url)
    if not path.resolve().parent.is_dir():
        msg = f"Cannot open {str(path)!r}: its folder does not exist. Make the folder first."
        raise StoreError(msg)
    engine = create_engine(url, connect_args={"timeout": 15})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


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


def _begin_sqlite(connection: Connection) -> None:
    """Take the write lock at once, so that two writers queue rather than fail halfway."""
    reading = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def describe(error: SQLAlchemyError) -> str:
    """Give the database's own words in one line, without the statement or its values."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]
