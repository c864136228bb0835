"""Backup and restore: one file for both kinds of database.

A backup is a SQLite file with the schema of the version that made it, so any SQLite can read it.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, Engine, FromClause, delete, func, insert, select, text
from sqlmodel import Session

from arena.errors import BrokenRecordError, SchemaError, StoreError
from arena.store import chain
from arena.store.engine import (
    migrate,
    named,
    newest,
    opened,
    revision,
    shown,
    snapshot,
    sqlite_file,
)
from arena.store.tables import DERIVED, Table
from arena.store.verify import verify
from rating.tables.files import require_file

Progress = Callable[[int, int], None]
"""Called with the rows copied so far and the rows in all."""

TABLES = [table for table in Table.metadata.sorted_tables if table.name not in DERIVED]
"""Each after those that it refers to; what can be made again is left where it is."""

FIRST_START = {
    "model",
    "model_event",
    "prompt_secret",
    "roster_entry",
    "roster_version",
    "vote_chain",
}
"""Tables that a first start fills, before anybody played: a restore writes over them."""

BATCH = 500


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup or a restore copied; ``head`` is the hash of the newest vote."""

    rows: int
    votes: int
    head: str


def back_up(url: str, to: Path, progress: Progress) -> Copied:
    """Copy a database, as it is at one moment, into a new file; it may be in use meanwhile.

    Raises
    ------
    SchemaError
        If the database has not the schema of this version.
    StoreError
        If the file exists or cannot be written, or the database cannot be read.
    BrokenRecordError
        Once the file is written: the vote log cannot be verified.
    """
    if to.exists():
        msg = f"{str(to)!r} exists already: name a new file."
        raise StoreError(msg)
    with opened(url) as source, _files_named(f"back up {shown(source)}"):
        _require_file(source)
        with TemporaryDirectory(dir=to.parent) as folder:
            file = Path(folder) / "backup.db"
            copied, problem = _write_file(source, file, progress)
            file.replace(to)
    if problem:
        msg = f"{str(to)!r} was written, but a restore will refuse it. {problem}"
        raise BrokenRecordError(msg)
    return copied


def restore(file: Path, url: str, progress: Progress) -> Copied:
    """Copy a backup into a database in which nobody has played yet, all or nothing.

    Raises
    ------
    SchemaError
        If a newer version made the backup, or one before 0.1.0.
    StoreError
        If the file is no backup or is damaged, or the database is in use or cannot be written.
    """
    require_file(file, StoreError)
    with TemporaryDirectory() as folder, _files_named(f"restore {str(file)!r}"):
        copy = Path(folder) / "backup.db"
        shutil.copyfile(file, copy)  # opening a file may write to it
        with opened(f"sqlite:///{copy}") as source, opened(url) as target:
            _require_backup(source, file)
            migrate(target)
            with snapshot(source).connect() as read, target.begin() as write:
                copied = _copy(read, write, progress)
                _number_on(write)
    return copied


def _write_file(source: Engine, file: Path, progress: Progress) -> tuple[Copied, str | None]:
    with snapshot(source).connect() as read, opened(f"sqlite:///{file}") as target:
        _require_newest(read)
        migrate(target)
        with target.begin() as write:
            copied = _copy(read, write, progress)
        problem = _problem(target)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # no second file beside it
    return copied, problem


def _copy(read: Connection, write: Connection, progress: Progress) -> Copied:
    _empty(write)
    total = sum(_count(read, table) for table in TABLES)
    rows = 0
    for table in TABLES:
        query = select(table).order_by(*table.primary_key).execution_options(yield_per=BATCH)
        for batch in read.execute(query).mappings().partitions():
            write.execute(insert(table), [dict(row) for row in batch])
            rows += len(batch)
            progress(rows, total)
    with Session(write) as session:
        return Copied(rows, _count(write, Table.metadata.tables["vote"]), chain.head(session))


def _count(connection: Connection, table: FromClause) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _empty(write: Connection) -> None:
    """Make room for rows from elsewhere; raises `StoreError` if somebody has played here."""
    for table in TABLES:
        if table.name not in FIRST_START and (rows := _count(write, table)):
            msg = (
                f"The database {shown(write.engine)} is in use: it holds {rows:,} already in the "
                f"table {table.name!r}. Restore into a new database."
            )
            raise StoreError(msg)
    for table in reversed(Table.metadata.sorted_tables):
        write.execute(delete(table))


def _number_on(write: Connection) -> None:
    """Let PostgreSQL give the next row the number after the last; SQLite does so by itself."""
    if write.dialect.name != "postgresql":
        return
    for table in TABLES:
        if (key := table.autoincrement_column) is not None:
            write.execute(
                select(
                    func.setval(
                        func.pg_get_serial_sequence(table.name, key.name),
                        func.coalesce(func.max(key), 0) + 1,
                        False,
                    )
                )
            )


def _problem(engine: Engine) -> str | None:
    """Say what is wrong with the file or with its chain of votes, if anything."""
    with snapshot(engine).connect() as connection:
        for check in ("integrity_check(1)", "foreign_key_check"):
            row = connection.execute(text(f"PRAGMA {check}")).first()
            if row is not None and row[0] != "ok":
                return f"The file is damaged: {check.partition('(')[0]} says {row[0]!r}."
        with Session(connection) as session:
            return verify(session).problem


@contextmanager
def _files_named(task: str) -> Iterator[None]:
    """Raise a `StoreError` that says what could not be done with a database or a file."""
    try:
        with named(task):
            yield
    except OSError as error:
        msg = f"Cannot {task}: {error.strerror}, {str(error.filename)!r}."
        raise StoreError(msg) from error


def _require_file(source: Engine) -> None:
    """Refuse to make a new database by looking for one."""
    if source.dialect.name == "sqlite" and not (file := sqlite_file(source.url)).is_file():
        msg = f"There is no database {str(file)!r}: name the one to back up with --database."
        raise StoreError(msg)


def _require_newest(read: Connection) -> None:
    if (current := revision(read)) != newest():
        msg = (
            f"The database {shown(read.engine)} has schema {current!r}, and this version backs up "
            f"schema {newest()!r} only: use the version that serves it."
        )
        raise SchemaError(msg)


def _require_backup(copy: Engine, file: Path) -> None:
    with snapshot(copy).connect() as read:
        if revision(read, repr(str(file))) is None:
            msg = f"{str(file)!r} is no backup of an arena: name a file made by arena backup."
            raise StoreError(msg)
    migrate(copy, repr(str(file)))
    if problem := _problem(copy):
        msg = f"Cannot restore {str(file)!r}. {problem} Take an older backup."
        raise BrokenRecordError(msg)
