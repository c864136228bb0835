"""Bring a database to the schema of this version, or refuse it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from arena.errors import SchemaError, StoreError
from arena.store.engine import describe
from arena.store.tables import Table


def migrate(engine: Engine) -> None:
    """Run the migrations that the database lacks.

    Raises
    ------
    SchemaError
        If the database is newer than this version or holds something else.
    StoreError
        If it cannot be read or written.
    """
    try:
        with engine.begin() as connection:
            _upgrade(connection)
    except SQLAlchemyError as error:
        msg = f"Cannot use the database {_name(engine)}: {describe(error)}."
        raise StoreError(msg) from error


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    _refuse_unknown(connection, ScriptDirectory.from_config(config))
    command.upgrade(config, "head")


def _refuse_unknown(connection: Connection, script: ScriptDirectory) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {revision.revision for revision in script.walk_revisions()}
    name = _name(connection.engine)
    if current is None and set(inspect(connection).get_table_names()) & set(Table.metadata.tables):
        msg = f"The database {name} holds tables that this arena did not make. Name another one."
        raise SchemaError(msg)
    if current is not None and current not in known:
        msg = (
            f"The database {name} has schema {current!r}, which this version does not know: "
            "it was made by a newer arena. Update the arena, or name another database."
        )
        raise SchemaError(msg)


def _name(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
