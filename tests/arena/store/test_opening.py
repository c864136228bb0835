"""A database is opened for safety, with our tables, or it is said why not."""

import sqlite3
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from arena.errors import SchemaError, StoreError
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
