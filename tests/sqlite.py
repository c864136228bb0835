"""Databases with the arena's tables, and SQLite's as copies of one."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from arena.store import migrations
from arena.store.engine import migrate, opened


def _compile_statements_once() -> None:
    """Let all databases of a kind share what a process has compiled of SQL.

    Each begins without, and compiling takes a third of what an arena takes to begin.
    """
    compiled: LRUCache[object, object] = LRUCache(2_000)
    shared = property(lambda _: compiled, lambda _, own: None)
    Engine._compiled_cache = shared  # type: ignore[assignment]
    DefaultDialect.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda one: hash(type(one))  # type: ignore[method-assign, assignment]


_compile_statements_once()


def new_sqlite(folder: Path) -> str:
    """Make a database that nobody has used, unless the folder holds one; gives its URL."""
    file = folder / "arena.db"
    if not file.exists():
        shutil.copyfile(_template(), file)
    return f"sqlite:///{file}"


def bring_to_schema(url: str) -> None:
    """Make the arena's tables."""
    with opened(url) as engine:
        migrate(engine)


def bring_to_revision(url: str, revision: str) -> None:
    """Make the tables that the arena had at a revision, by the migrations up to it."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with opened(url) as engine, engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "template.db"
    bring_to_schema(f"sqlite:///{file}")
    return file
