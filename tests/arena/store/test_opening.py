"""A database is opened for safety, with our tables, or it is said why not."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from threading import Event

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Inspector, event, inspect, select, text

from arena.errors import SchemaError, StoreError
from arena.store.engine import migrate, opened, reading_existing
from arena.store.store import Store
from arena.store.tables import Table
from arena.store.verify import back_up, restore
from tests.postgresql import new_database
from tests.sqlite import bring_to_revision, bring_to_schema, new_sqlite

ASPECTS = (
    "columns", "pk_constraint", "foreign_keys", "unique_constraints", "check_constraints",
    "indexes", "table_options",
)  # fmt: skip
OBJECTS = {
    "sqlite": "SELECT type, name, CASE WHEN type <> 'table' THEN sql END FROM sqlite_master",
    "postgresql": """
        SELECT relkind::text, relname,
            CASE relkind WHEN 'i' THEN pg_get_indexdef(oid) WHEN 'v' THEN pg_get_viewdef(oid) END
        FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid)
        FROM pg_trigger WHERE NOT tgisinternal
    """,
}
"""Tables, sequences, indexes, views and triggers, the last three with their definitions."""

REVISION = text("SELECT version_num FROM alembic_version")

TRIGGER = {
    "sqlite": "BEGIN SELECT 1; END",
    "postgresql": "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
}


@pytest.fixture
def migrated(database_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database with the tables of 0.1.0 that passed through every migration."""
    sqlite = database_url.startswith("sqlite")
    old = nullcontext(f"sqlite:///{tmp_path}/old.db")
    with old if sqlite else new_database(request.getfixturevalue("postgresql")) as url:
        bring_to_revision(url, "0017")
        bring_to_schema(url)
        yield url


def contents(url: str) -> list[str]:
    """Describe everything that a database holds, but the order of columns."""
    with opened(url) as engine, engine.connect() as connection:
        return sorted([*schema(connection), *rows(connection)])


def schema(connection: Connection) -> Iterator[str]:
    yield from described(inspect(connection))
    for row in connection.exec_driver_sql(OBJECTS[connection.dialect.name]):
        yield str(row)


def described(schema: Inspector) -> Iterator[str]:
    for aspect in ASPECTS:
        for (_, table), entries in getattr(schema, f"get_multi_{aspect}")().items():
            for entry in [entries] if isinstance(entries, dict) else entries:
                if aspect == "foreign_keys" and schema.dialect.name == "sqlite":
                    entry["name"] = None  # that of one in its column's definition is not read
                if "dialect_options" in entry:  # objects, of which the text is in OBJECTS
                    entry["dialect_options"] = {
                        n: str(v) for n, v in entry["dialect_options"].items()
                    }
                yield f"{table}, {aspect}: {entry}"


def rows(connection: Connection) -> Iterator[str]:
    for table in Table.metadata.sorted_tables:
        for row in connection.execute(select(table)):
            yield f"{table}: {row}"
    yield f"revision: {connection.scalar(REVISION)}"


def test_a_new_database_is_like_one_that_passed_through_every_migration(
    database_url: str, migrated: str
) -> None:
    assert contents(database_url) == contents(migrated)
    with opened(migrated) as engine, engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []


def test_migrations_start_from_the_tables_that_0_1_0_made(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "arena_of_version_0_1_0.json"
    with closing(sqlite3.connect(tmp_path / "golden.db")) as connection:
        connection.executescript("\n".join(json.loads(golden.read_text())["sql"]))
    bring_to_revision(f"sqlite:///{tmp_path}/base.db", "0017")
    made = []
    for name in ("golden", "base"):
        with opened(f"sqlite:///{tmp_path}/{name}.db") as engine, engine.connect() as connection:
            made.append(sorted(schema(connection)))
    assert made[0] == made[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE flag ADD COLUMN extra VARCHAR",
        "ALTER TABLE flag DROP COLUMN score; ALTER TABLE flag ADD COLUMN score INTEGER",
        "ALTER TABLE battle DROP COLUMN repicks; "
        "ALTER TABLE battle ADD COLUMN repicks INTEGER DEFAULT 1 NOT NULL",
        "ALTER TABLE battle DROP COLUMN repicks; "
        "ALTER TABLE battle ADD COLUMN repicks INTEGER DEFAULT 0",
        "ALTER TABLE battle DROP COLUMN process; "
        "ALTER TABLE battle ADD COLUMN process BIGINT REFERENCES battle (id)",
        "DROP INDEX ix_vote_link",
        "DROP INDEX ix_vote_link; CREATE INDEX ix_vote_link ON vote (link)",
        "CREATE VIEW voters AS SELECT id FROM voter",
        "CREATE TRIGGER fixed BEFORE UPDATE ON vote {trigger}",
        "UPDATE vote_chain SET links = 1",
    ],
)
def test_a_planted_difference_is_seen(database_url: str, statements: str) -> None:
    before = contents(database_url)
    with opened(database_url) as engine, engine.begin() as connection:
        trigger = TRIGGER[connection.dialect.name]
        for statement in statements.split("; "):
            connection.exec_driver_sql(statement.format(trigger=trigger))
    assert contents(database_url) != before


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


@pytest.mark.parametrize("old", ["0001", "0016"])
def test_a_schema_from_before_0_1_0_is_refused_and_left_as_it_is(
    database_url: str, tmp_path: Path, old: str
) -> None:
    with opened(database_url) as engine, engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{old}'")
        connection.exec_driver_sql("INSERT INTO voter VALUES ('ada', '-', NULL, '2026-11-20')")
    before, files = contents(database_url), sorted(tmp_path.iterdir())

    def bring_up() -> None:
        with opened(database_url) as engine:
            migrate(engine)

    def read() -> None:
        with reading_existing(database_url):
            raise AssertionError

    for use in (
        lambda: Store(database_url),
        bring_up,
        read,
        lambda: back_up(database_url, tmp_path / "b.db", lambda _done, _of: None),
    ):
        with pytest.raises(SchemaError, match=rf"has schema '{old}'.*Start arena 0\.1\.0 on it"):
            use()
    assert (contents(database_url), sorted(tmp_path.iterdir())) == (before, files)


def test_somebody_else_s_tables_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE vote (id INTEGER)")
    connection.close()
    with pytest.raises(SchemaError, match="did not make"):
        Store(f"sqlite:///{tmp_path}/other.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("arena.db", "Cannot read the database URL. Write it like sqlite:///arena.db or"),
        ("sqlite://arena.db", "Cannot read the database URL. A file takes three slashes"),
        ("postgresql://me:hu@sh@there/db", "special characters of the password as %40"),
        ("postgresql://me:h@hush/x@there/db", "special characters of the password as %40"),
        ("postgresql://me:h@sh?hush@there/db?a=b", "special characters of the password as %40"),
        ("postgresql://me:hush:there/db", "Cannot read the database URL. Write it like"),
        ("sqlite:////no/such/folder/arena.db", "folder does not exist"),
        ("nonsense://x/y", "nonsense"),
        ("mysql://x/y", "'mysql'.*postgresql://user@host/name"),
        ("postgres://x@127.0.0.1:1/y", "Cannot use the database .*refused"),
        ("postgresql://x@127.0.0.1:1/y", "Cannot use the database .*refused"),
        ("postgresql://x@127.0.0.1:1/y?password=hush&sslmode=disable", r"=\*\*\*&ssl.*refused"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words) as raised:
        Store(url)
    assert not any(part in str(raised.value) for part in ("hu@sh", "hush"))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_all_texts_is_refused(postgresql: str, encoding: str) -> None:
    with (
        new_database(postgresql, f"template0 ENCODING '{encoding}' LOCALE 'C'") as url,
        pytest.raises(StoreError, match=f"the encoding {encoding}; it must be UTF8"),
    ):
        Store(url)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    install = r"'postgresql'.*psycopg.*pip install 'blind-arena\[postgres\]'"
    with pytest.raises(StoreError, match=install):
        Store("postgresql://x/y")


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("Dear diary" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store(f"sqlite:///{tmp_path}/notes.db")


@pytest.mark.parametrize("part", [b"CREATE TABLE voter", b"TABLE voter"])
def test_a_damaged_file_is_said(part: bytes, tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    file = tmp_path / "arena.db"
    file.write_bytes(file.read_bytes().replace(part, b"\xaa" * len(part)))
    with pytest.raises(StoreError, match="malformed database schema"):
        Store(url)


def test_closing_waits_for_the_threads_that_write_or_read(store: Store) -> None:
    """Else their connections would be open with nobody to close them."""
    connections: set[object] = set()
    event.listen(store.engine, "connect", lambda opened, _: connections.add(opened))
    event.listen(store.engine, "close", lambda opened, _: connections.discard(opened))
    begun, end = (Event(), Event()), Event()

    def write() -> None:
        with store.writing():
            begun[0].set()
            end.wait(60)

    def read() -> None:
        with store.reading() as session:
            session.connection()
            begun[1].set()
            end.wait(60)

    with ThreadPoolExecutor(3) as pool:
        acting = [pool.submit(write), pool.submit(read)]
        assert all(each.wait(60) for each in begun)
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
