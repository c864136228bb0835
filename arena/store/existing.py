"""Read a database that is there, and leave it as it is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from arena.errors import SchemaError, StoreError
from arena.store.engine import describe, open_engine, snapshot, sqlite_file
from arena.store.schema import newest, revision, shown
from rating.tables.files import require_file


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
    found = revision(session.connection())
    if found is None:
        msg = f"The database {name} holds no arena. Name the one that the arena was served with."
        raise SchemaError(msg)
    if found != newest():
        msg = (
            f"The database {name} has schema {found!r}, and this version reads {newest()!r}. "
            "Start this version's arena on it once, or read it with the version that wrote it."
        )
        raise SchemaError(msg)
