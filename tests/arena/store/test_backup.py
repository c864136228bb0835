import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlmodel import Session

from arena.domain.vote import DEFAULT, Choice
from arena.errors import SchemaError, StoreError
from arena.store import blocks
from arena.store.store import Store
from arena.store.tables import Table
from arena.store.verify import back_up, restore, verify
from tests.arena.store.battles import MODELS, NOW, ballot, new_battle, ready
from tests.postgresql import new_database
from tests.sqlite import new_sqlite


def quiet(done: int, total: int) -> None:
    assert 0 < done <= total


@pytest.fixture
def played(database_url: str) -> Iterator[Store]:
    """A database with two votes, one of them a skip, and a battle that this process runs."""
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    store.cast(ballot(ready(store, "b1"), Choice.BOTH_BAD))
    store.cast(ballot(ready(store, "b2"), Choice.SKIP))
    store.open_battle(new_battle("b3"))
    yield store
    store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a second empty database, of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/other.db"
    else:
        with new_database(request.getfixturevalue("postgresql")) as url:
            yield url


def url_of(store: Store) -> str:
    return store.engine.url.render_as_string(hide_password=False)


def rows(store: Store) -> dict[str, list[object]]:
    with store.engine.connect() as connection:
        return {
            table.name: [
                dict(row)
                for row in connection.execute(select(table).order_by(*table.primary_key))
                .mappings()
                .all()
            ]
            for table in Table.metadata.sorted_tables
        }


@pytest.mark.sampled(3)
def test_a_backup_restores_every_row_into_either_kind(
    played: Store, other_url: str, tmp_path: Path
) -> None:
    made = back_up(url_of(played), tmp_path / "b.db", quiet)
    restored = restore(tmp_path / "b.db", other_url, quiet)
    other = Store(other_url)
    assert made == restored
    assert (made[1], len(made[2])) == (2, 64)
    assert rows(other) == rows(played)
    with other.reading() as session:
        assert verify(session).problem is None
        assert blocks.columns(session, DEFAULT).values("winner") == [Choice.BOTH_BAD, Choice.SKIP]
    other.close()


@pytest.mark.sampled(3)
def test_an_arena_goes_on_where_the_backup_ended(
    played: Store, other_url: str, tmp_path: Path
) -> None:
    back_up(url_of(played), tmp_path / "b.db", quiet)
    Store(other_url).close()
    restore(tmp_path / "b.db", other_url, quiet)
    other = Store(other_url)
    other.register(MODELS, NOW)
    assert other.interrupt_running("-") == 1, "nobody holds the lease of the process there"
    other.cast(ballot(ready(other, "b4")))
    with other.reading() as session:
        assert verify(session).problem is None
        assert len(blocks.columns(session, DEFAULT).values("battle")) == 3
    other.close()


def test_a_backup_of_a_database_in_use_is_one_moment(played: Store, tmp_path: Path) -> None:
    halt = threading.Event()

    def play() -> None:
        n = 100
        while not halt.is_set():
            played.cast(ballot(ready(played, f"b{n}")))
            n += 1

    writer = threading.Thread(target=play)
    writer.start()
    try:
        made = [back_up(url_of(played), tmp_path / f"{n}.db", quiet) for n in range(4)]
    finally:
        halt.set()
        writer.join()
    assert len({votes for _, votes, _ in made}) > 1, "nobody played meanwhile"
    for n, copied in enumerate(made):
        with closing(sqlite3.connect(tmp_path / f"{n}.db")) as file:
            voted = file.execute("SELECT count(*) FROM battle WHERE state = 'voted'").fetchone()
            votes = file.execute("SELECT count(*) FROM vote WHERE outcome != 'skip'").fetchone()
        assert voted == votes
        assert copied[1] == votes[0] + 1


def test_a_backup_is_one_file_that_restoring_leaves_alone(played: Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    back_up(url_of(played), folder / "b.db", quiet)
    before = (folder / "b.db").read_bytes()
    restore(folder / "b.db", f"sqlite:///{tmp_path}/other.db", quiet)
    assert [path.name for path in folder.iterdir()] == ["b.db"]
    assert (folder / "b.db").read_bytes() == before


@pytest.mark.sampled(3)
def test_a_database_in_which_somebody_played_is_not_restored_into(
    played: Store, other_url: str, tmp_path: Path
) -> None:
    back_up(url_of(played), tmp_path / "b.db", quiet)
    other = Store(other_url)
    other.register(MODELS, NOW)
    ready(other, "mine")
    before = rows(other)
    with pytest.raises(
        StoreError, match=r"is in use: it holds 1 already in the table 'voter'.*new data"
    ):
        restore(tmp_path / "b.db", other_url, quiet)
    assert rows(other) == before
    other.close()


@pytest.mark.sampled(3)
def test_a_restore_that_fails_halfway_leaves_nothing(
    played: Store, other_url: str, tmp_path: Path
) -> None:
    back_up(url_of(played), tmp_path / "b.db", quiet)

    def pull_the_plug(done: int, total: int) -> None:
        if done > total / 2:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        restore(tmp_path / "b.db", other_url, pull_the_plug)
    other = Store(other_url)
    assert {name for name, held in rows(other).items() if held} == {"vote_chain"}
    other.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good backup of thirty votes."""
    folder = tmp_path_factory.mktemp("good")
    store = Store(url := new_sqlite(folder))
    store.register(MODELS, NOW)
    for n in range(30):
        store.cast(ballot(ready(store, f"b{n}")))
    store.close()
    back_up(url, folder / "b.db", quiet)
    return (folder / "b.db").read_bytes()


@pytest.fixture
def file(good: bytes, tmp_path: Path) -> Path:
    """A good backup, to be spoilt."""
    (tmp_path / "b.db").write_bytes(good)
    return tmp_path / "b.db"


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE vote SET outcome = 'tie' WHERE id = 3",
            "the vote on battle 'b2', is not as it was",
        ),
        ("DELETE FROM vote WHERE id = 30", "ends at link 29 and should end at 30"),
        ("DELETE FROM vote WHERE id = 5", "Link 5 of the chain is missing"),
        ("DELETE FROM voter", "foreign_key_check says"),
        ("UPDATE alembic_version SET version_num = '9999'", "'9999'.*newer arena"),
        (
            "UPDATE alembic_version SET version_num = '0016'",
            r"'0016'.*Start arena 0\.1\.0 on it once",
        ),
        ("DROP TABLE alembic_version", "no backup of an arena"),
    ],
)
def test_a_backup_that_was_changed_is_refused(
    file: Path, tmp_path: Path, statement: str, words: str
) -> None:
    change(file, statement)
    with pytest.raises(StoreError, match=words) as refused:
        restore(file, f"sqlite:///{tmp_path}/other.db", quiet)
    assert repr(str(file)) in str(refused.value)
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("cut", [0, 100, 20_000, -4096])
def test_a_backup_that_was_cut_off_is_refused(file: Path, tmp_path: Path, cut: int) -> None:
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(StoreError, match=r"b\.db"):
        restore(file, f"sqlite:///{tmp_path}/other.db", quiet)


def test_a_backup_with_damaged_pages_is_refused(file: Path, tmp_path: Path) -> None:
    content = bytearray(file.read_bytes())
    for start in range(40_000, len(content), 8_192):
        content[start : start + 64] = b"\xaa" * 64
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"b\.db"):
        restore(file, f"sqlite:///{tmp_path}/other.db", quiet)


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Dear diary" * 1000)
    with pytest.raises(StoreError, match=r"notes.txt.*not a database"):
        restore(tmp_path / "notes.txt", f"sqlite:///{tmp_path}/other.db", quiet)
    with pytest.raises(StoreError, match=r"gone.db.*no such file"):
        restore(tmp_path / "gone.db", f"sqlite:///{tmp_path}/other.db", quiet)


def test_a_backup_overwrites_nothing_and_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no database.*gone.db"):
        back_up(f"sqlite:///{tmp_path}/gone.db", tmp_path / "b.db", quiet)
    assert list(tmp_path.iterdir()) == []
    url = new_sqlite(tmp_path)
    (tmp_path / "b.db").write_text("precious")
    with pytest.raises(StoreError, match=r"b\.db' exists already"):
        back_up(url, tmp_path / "b.db", quiet)
    with pytest.raises(StoreError, match="No such file"):
        back_up(url, tmp_path / "no" / "b.db", quiet)


def test_a_database_of_another_schema_is_not_backed_up(database_url: str, tmp_path: Path) -> None:
    store = Store(database_url)
    with store.writing() as session:
        execute(session, "UPDATE alembic_version SET version_num = '0017'")
    with pytest.raises(SchemaError, match=r"has schema '0017'.*the version that serves it"):
        back_up(database_url, tmp_path / "b.db", quiet)
    store.close()


def test_a_broken_chain_is_backed_up_and_said(played: Store, tmp_path: Path) -> None:
    with played.writing() as session:
        execute(session, "UPDATE vote SET outcome = 'tie' WHERE outcome = 'both_bad'")
    with pytest.raises(StoreError, match=r"was written, but a restore .* 'b1', is not"):
        back_up(url_of(played), tmp_path / "b.db", quiet)
    with closing(sqlite3.connect(tmp_path / "b.db")) as backup:
        assert backup.execute("SELECT count(*) FROM vote").fetchone() == (2,)


def test_an_empty_database_can_be_backed_up(tmp_path: Path) -> None:
    copied = back_up(new_sqlite(tmp_path), tmp_path / "b.db", quiet)
    assert copied == (1, 0, "")


def execute(session: Session, statement: str) -> None:
    session.connection().exec_driver_sql(statement)
