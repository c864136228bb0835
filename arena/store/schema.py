"""Bring a database to the schema of this version, or refuse it."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from arena.errors import SchemaError, StoreError
from arena.store.engine import describe
from arena.store.tables import Table

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
