"""SQLite databases with the arena's tables, without running every migration for each."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from arena.store.engine import migrate, open_engine


def new_sqlite(folder: Path) -> str:
    """Make a database that nobody has used, unless the folder holds one; gives its URL."""
    file = folder / "arena.db"
    if not file.exists():
        shutil.copyfile(_template(), file)
    return f"sqlite:///{file}"


def bring_to_schema(url: str) -> None:
    """Make the arena's tables."""
    engine = open_engine(url)
    migrate(engine)
    engine.dispose()


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "template.db"
    bring_to_schema(f"sqlite:///{file}")
    return file
