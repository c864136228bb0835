"""What version 0.1.0 wrote: its database, its backup and its exports."""

import json
import lzma
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, func, insert, select, text

from arena.boards.leaderboard import Leaderboard
from arena.boards.record_file import verify_export
from arena.domain.vote import DEFAULT, Choice
from arena.errors import BrokenRecordError
from arena.store.engine import migrate, opened, reading_existing
from arena.store.store import Store
from arena.store.verify import restore, verify
from tests.arena.store.battles import NOW, ballot
from tests.command import Command
from tests.postgresql import new_database
from tests.sqlite import bring_to_revision

GOLDEN = Path(__file__).parents[2] / "golden" / "arena_of_version_0_1_0.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8")))


def unpacked(golden: dict[str, Any], name: str, folder: Path) -> Path:
    """Write a file as that version wrote it."""
    file = folder / f"{name}.db"
    file.write_bytes(lzma.decompress(b64decode("".join(golden[name]))))
    return file


def rows_on_postgresql(golden: dict[str, Any], folder: Path, url: str) -> None:
    """Make the tables of 0.1.0 on PostgreSQL, with the rows of its SQLite file."""
    bring_to_revision(url, "0017")
    file = written(golden, folder)
    theirs, ours = MetaData(), MetaData()
    with (
        opened(f"sqlite:///{file}") as source,
        opened(url) as target,
        source.connect() as read,
        target.begin() as write,
    ):
        theirs.reflect(read)
        ours.reflect(write)
        write.execute(text("SET LOCAL TIME ZONE 'UTC'"))
        write.execute(text("DELETE FROM vote_chain; DELETE FROM alembic_version"))
        for table in ours.sorted_tables:
            for row in read.execute(select(theirs.tables[table.name])).mappings():
                given = {name: value for name, value in row.items() if value is not None}
                write.execute(insert(table).values(given))
            if (key := table.autoincrement_column) is not None and key.server_default:
                end = func.coalesce(func.max(key), 0) + 1
                place = func.pg_get_serial_sequence(table.name, key.name)
                write.execute(select(func.setval(place, end, False)))


def written(golden: dict[str, Any], folder: Path) -> Path:
    """Write the SQLite database of 0.1.0."""
    with closing(sqlite3.connect(folder / "arena.db")) as connection:
        connection.executescript("\n".join(golden["sql"]))
    return folder / "arena.db"


@pytest.fixture(params=["in place", "in place on postgresql", "sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, golden: dict[str, Any], tmp_path: Path
) -> Iterator[Store]:
    """The database of 0.1.0, migrated in place, or its backup, restored into a database."""
    if "postgresql" in request.param:
        with new_database(request.getfixturevalue("postgresql")) as url:
            if "in place" in request.param:
                rows_on_postgresql(golden, tmp_path, url)
            else:
                restore(unpacked(golden, "backup", tmp_path), url, lambda _done, _total: None)
            with closing(Store(url)) as made:
                yield made
        return
    url = f"sqlite:///{tmp_path}/arena.db"
    if request.param == "in place":
        written(golden, tmp_path)
    else:
        restore(unpacked(golden, "backup", tmp_path), url, lambda _done, _total: None)
    with closing(Store(url)) as made:
        yield made


def test_an_arena_of_0_1_0_verifies_has_the_same_ratings_and_takes_a_vote(
    store: Store, golden: dict[str, Any]
) -> None:
    with store.reading() as session:
        verified = verify(session, golden["head"])
    assert (verified.problem, verified.counts, verified.noted) == (None, None, golden["links"])
    assert (verified.votes, verified.hashes_only, verified.deleted) == (17, 0, 1)
    assert (verified.erased, verified.taken_out) == (golden["erased"], golden["taken_out"])
    board = Leaderboard(store, DEFAULT, lambda: NOW + timedelta(hours=4)).refresh()
    assert (board.votes, dict(board.left_out)) == (golden["votes"], golden["left_out"])
    for row in board.rows:
        ours = {"rating": row.rating, "votes": row.votes, "rank": row.rank}
        assert ours == pytest.approx(golden["ratings"][row.model], rel=1e-9)
    waiting = f"{18:032x}"
    store.cast(ballot(waiting, Choice.B, voter=f"{3:032x}"))
    with store.reading() as session:
        verified = verify(session, golden["head"])
    assert (verified.problem, verified.votes, verified.links) == (None, 18, golden["links"] + 1)


def test_an_export_of_0_1_0_with_all_votes_verifies_and_is_rated_as_before(
    command: Command, golden: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "all.csv").write_text("\n".join([*golden["exports"]["all"], ""]))
    verified = verify_export(tmp_path / "all.csv", golden["head"])
    assert (verified.problem, verified.votes) == (None, 17)
    assert (verified.hashes_only, verified.deleted) == (0, 1)
    assert verified.scope is not None
    assert (verified.scope.all_votes, verified.scope.counted) == (None, golden["votes"])
    assert verified.scope.excluded == golden["left_out"]
    sentence = command("verify", "all.csv").stdout
    assert "Exported by version 0.1.0 with policy default-v2" in sentence
    rated = json.loads(command("rate", "all.csv", "--format", "json").stdout)["ratings"]
    for row in rated:
        assert row["rating"] == pytest.approx(golden["ratings"][row["model"]]["rating"], rel=1e-9)


@pytest.mark.parametrize(("name", "hidden"), [("default", 5), ("days", 5)])
def test_an_export_of_0_1_0_that_excludes_votes_has_to_be_exported_again(
    command: Command, golden: dict[str, Any], tmp_path: Path, name: str, hidden: int
) -> None:
    (tmp_path / "v.csv").write_text("\n".join([*golden["exports"][name], ""]))
    done = command("verify", "v.csv")
    assert done.returncode == 3
    assert f"{hidden} of 17 votes are hashes only" in done.stdout
    assert "Export the votes again with this version" in done.stdout
    assert command("rate", "v.csv").returncode == 0


def test_a_database_that_0_1_0_imported_is_rated_and_not_verified(
    golden: dict[str, Any], tmp_path: Path
) -> None:
    file = unpacked(golden, "imported", tmp_path)
    with pytest.raises(BrokenRecordError, match="The first 22 links came by an import"):
        restore(file, f"sqlite:///{tmp_path}/new.db", lambda _done, _total: None)
    url = f"sqlite:///{file}"
    with opened(url) as engine:
        migrate(engine)
    with closing(Store(url)) as store:
        assert Leaderboard(store, DEFAULT, lambda: NOW).refresh().votes == golden["votes"]
    with reading_existing(url) as session:
        verified = verify(session)
    assert (verified.votes, verified.hashes_only, verified.deleted) == (17, 5, 1)
    assert "and no link proves that: they cannot be verified. 5 of 17 votes are hashes only" in (
        verified.problem or ""
    )
