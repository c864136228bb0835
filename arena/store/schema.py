"""A database of this version's schema: upgraded, refused, or read and left as it is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from arena.errors import SchemaError, StoreError
from arena.store.engine import describe, open_engine, snapshot, sqlite_file
from arena.store.tables import Table
from rating.tables.files import require_file

STARTING = 0x6172656E61
"""PostgreSQL advisory lock of a process that begins: the letters of "arena"."""


def migrate(engine: Engine, name: str | None = None) -> None:
    """Run the migrations that the database lacks.

    Parameters
    ----------
    name : str or None
        What to call the database in an error; None calls it by its URL.

    Raises
    ------
    SchemaError
        If the database is newer than this version or holds something else.
    StoreError
        If it cannot be read or written.
    """
    try:
        with engine.begin() as connection:
            alone(connection)
            _upgrade(connection, name or shown(engine))
    except SQLAlchemyError as error:
        msg = f"Cannot use the database {name or shown(engine)}: {describe(error)}."
        raise StoreError(msg) from error


def alone(connection: Connection) -> None:
    """Let one process at a time go on from here to its commit; on SQLite every writer is alone.

    It waits as long as the others take: a migration may be long.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(select(func.pg_advisory_xact_lock(STARTING)))


def revision(connection: Connection) -> str | None:
    """Revision of the database's schema; None where no arena has been."""
    return MigrationContext.configure(connection).get_current_revision()


def newest() -> str | None:
    """Revision of this version's schema."""
    return _script().get_current_head()


def shown(engine: Engine) -> str:
    """Give the database's URL without its password."""
    return engine.url.render_as_string(hide_password=True)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


@cache
def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _upgrade(connection: Connection, name: str) -> None:
    current = revision(connection)
    _refuse_unknown(connection, current, name)
    if current != newest():
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _refuse_unknown(connection: Connection, current: str | None, name: str) -> None:
    known = {step.revision for step in _script().walk_revisions()}
    if current is None and set(inspect(connection).get_table_names()) & set(Table.metadata.tables):
        msg = f"The database {name} holds tables that this arena did not make. Name another one."
        raise SchemaError(msg)
    if current is not None and current not in known:
        msg = (
            f"The database {name} has schema {current!r}, which this version does not know: "
            "it was made by a newer arena. Update the arena, or name another database."
        )
        raise SchemaError(msg)


@contextmanager
def reading_existing(url: str) -> Iterator[Session]:
    """Give a transaction that only reads, as of one moment; nothing is made and nothing migrated.

    Raises
    ------
    SchemaError
        If the database has not the schema of this version.
    StoreError
        If there is no such database, or it cannot be read.
    """
    engine = open_engine(url)
    try:
        file = sqlite_file(engine.url)
        if engine.dialect.name == "sqlite" and not file.is_file():
            msg = f"Cannot read {str(file)!r}: there is no such database. Name one that is there."
            raise StoreError(msg)
        with Session(snapshot(engine)) as session:
            _require_schema(session, shown(engine))
            yield session
    except SQLAlchemyError as error:
        msg = f"Cannot read the database {shown(engine)}: {describe(error)}."
        raise StoreError(msg) from error
    finally:
        engine.dispose()


@contextmanager
def reading_backup(file: Path) -> Iterator[Session]:
    """Give `reading_existing` of a file, which is left as it is: opening it may write to it.

    A file that is in use, by the log beside it, is read in its place.
    """
    require_file(file, StoreError)
    if file.with_name(f"{file.name}-wal").exists():
        with reading_existing(f"sqlite:///{file}") as session:
            yield session
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        shutil.copyfile(file, copy)
        with reading_existing(f"sqlite:///{copy}") as session:
            yield session


def _require_schema(session: Session, name: str) -> None:
    current = revision(session.connection())
    if current is None:
        msg = f"The database {name} holds no arena. Name the one that the arena was served with."
        raise SchemaError(msg)
    if current != newest():
        msg = (
            f"The database {name} has schema {current!r}, and this version reads {newest()!r}. "
            "Start this version's arena on it once, or read it with the version that wrote it."
        )
        raise SchemaError(msg)
