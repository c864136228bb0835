"""How a database is opened: SQLite or PostgreSQL, by its URL."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from arena.errors import StoreError

READ_ONLY = "arena_read_only"
"""Execution option of a transaction that will not write."""


def open_engine(url: str) -> Engine:
    """Connect to a database.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or another SQLAlchemy URL.

    Raises
    ------
    StoreError
        If the URL cannot be read or the database cannot be reached.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed)
    try:
        return create_engine(parsed, pool_pre_ping=True)
    except (NoSuchModuleError, ImportError) as error:
        msg = f"Cannot use a {parsed.drivername!r} database: {error}. Use sqlite:///FILE."
        raise StoreError(msg) from error


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        msg = f"Cannot read the database URL {url!r}: write it like sqlite:///arena.db."
        raise StoreError(msg) from error


def _open_sqlite(url: URL) -> Engine:
    path = (url.database or "").removeprefix("file:").partition("?")[0]
    if not Path(path).resolve().parent.is_dir():
        msg = f"Cannot open {path!r}: its folder does not exist. Make the folder first."
        raise StoreError(msg)
    engine = create_engine(url, connect_args={"timeout": 15})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: see _begin_sqlite
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Take the write lock at once, so that two writers queue rather than fail halfway."""
    reading = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def describe(error: SQLAlchemyError) -> str:
    """Give the database's own words in one line, without the statement or its values."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]
