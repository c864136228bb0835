"""A database is opened for safety, with our tables, or it is said why not."""

import os
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event

from arena.errors import SchemaError, StoreError
from arena.store.backup import back_up, restore
from arena.store.store import Store
from arena.store.tables import Table


def test_the_migrations_make_exactly_the_tables(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []


def test_sqlite_is_opened_for_safety(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    with store.engine.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    store.close()
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/arena.db"
    Store(url).close()
    with sqlite3.connect(tmp_path / "arena.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(SchemaError, match=r"'9999'.*newer"):
        Store(url)


def test_somebody_else_s_tables_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE vote (id INTEGER)")
    connection.close()
    with pytest.raises(SchemaError, match="did not make"):
        Store(f"sqlite:///{tmp_path}/other.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("arena.db", "Cannot read the database URL 'arena.db'"),
        ("sqlite:////no/such/folder/arena.db", "folder does not exist"),
        ("nonsense://x/y", "nonsense"),
        ("postgres://x/y", "'postgres'.*postgresql://user@host/name"),
        ("postgresql://x@127.0.0.1:1/y", "Cannot use the database .*refused"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        Store(url)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"'postgresql'.*psycopg.*pip install '.\[postgres\]'"):
        Store("postgresql://x/y")


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("Dear diary" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store(f"sqlite:///{tmp_path}/notes.db")


def test_closing_waits_for_the_threads_that_write_or_read(store: Store) -> None:
    """Else their connections would be open with nobody to close them."""
    connections: set[object] = set()
    event.listen(store.engine, "connect", lambda opened, _: connections.add(opened))
    event.listen(store.engine, "close", lambda opened, _: connections.discard(opened))
    begun, end = (Event(), Event()), Event()

    def write() -> None:
        with store.writing():
            begun[0].set()
            end.wait(10)

    def read() -> None:
        with store.reading() as session:
            session.connection()
            begun[1].set()
            end.wait(10)

    with ThreadPoolExecutor(3) as pool:
        acting = [pool.submit(write), pool.submit(read)]
        assert all(each.wait(10) for each in begun)
        closing = pool.submit(store.close)
        with pytest.raises(TimeoutError):
            closing.result(timeout=0.1)
        end.set()
    for done in (*acting, closing):
        done.result()
    assert connections == set()


def test_a_thread_that_is_late_does_not_open_the_database_again(store: Store) -> None:
    store.close()
    with pytest.raises(StoreError, match="was closed"), store.writing():
        pass
    with pytest.raises(StoreError, match="was closed"):
        store.battle("b1", "ada")
    assert store.engine.pool.status().count("Connections in pool: 0") == 1


@pytest.fixture
def a_common_umask() -> Iterator[None]:
    """Files are everybody's to read unless a program says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("a_common_umask")
def test_a_new_database_its_journal_and_its_backups_are_their_owner_s_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "arena.db"
    with closing(Store(f"sqlite:///{file}")) as store:
        store.hold_lease()
        store.check()
        back_up(f"sqlite:///{file}", tmp_path / "backup.db", lambda _done, _of: None)
        restored = f"sqlite:///{tmp_path}/restored.db"
        restore(tmp_path / "backup.db", restored, lambda _done, _of: None)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"arena.db", "arena.db-wal", "arena.db-shm", "backup.db", "restored.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


@pytest.mark.usefixtures("a_common_umask")
def test_a_database_that_is_there_keeps_the_mode_that_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    file.touch()
    file.chmod(0o640)
    Store(f"sqlite:///{file}").close()
    assert file.stat().st_mode & 0o777 == 0o640
