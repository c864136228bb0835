"""`arena export`, `arena backup` and `arena restore`, as they are typed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.command import Command, examples, refused, roster
from tests.serving import Served, quick_arena, serve
from tests.sqlite import new_sqlite


@pytest.fixture
def played(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """An arena on either kind of database, with a vote and a skip."""
    with quick_arena(tmp_path, database=database_url) as served:
        with served.visitor() as ada:
            ada.vote(ada.play(), "model_a")
            ada.vote(ada.play(), "skip")
        yield served


def test_a_backup_of_a_running_arena_is_restored_and_served(
    command: Command, tmp_path: Path, played: Served
) -> None:
    result = command("backup", "--database", played.database, "--to", "b.db")
    assert re.fullmatch(
        r"b\.db: 23 rows, among them 2 votes, the newest with hash [0-9a-f]{16}\.\n", result.stdout
    )
    again = command("restore", "b.db", "--database", "sqlite:///other.db")
    assert again.stdout == result.stdout.replace("b.db:", "b.db: restored")
    with serve(database=f"sqlite:///{tmp_path}/other.db", roster=roster(tmp_path)) as served:
        assert httpx2.get(f"{served.url}/api/v1/leaderboard").json()["votes"] == 1
    refused(
        command("restore", "b.db", "--database", "sqlite:///other.db"),
        "sqlite:///other.db is in use",
        "new database",
    )
    refused(command("backup", "--database", played.database, "--to", "b.db"), "'b.db' exists")


def test_what_cannot_be_backed_up_or_restored_is_one_clear_line(
    command: Command, tmp_path: Path
) -> None:
    refused(command("backup", "--to", "b.db"), "no database 'arena.db'", "--database")
    refused(command("restore", "b.db"), "'b.db'", "no such file")
    (tmp_path / "b.db").write_text("Dear diary" * 1000)
    refused(command("restore", "b.db"), "'b.db'", "not a database")
    assert [path.name for path in tmp_path.iterdir()] == ["b.db"]


def test_an_export_says_how_much_it_wrote(
    command: Command, tmp_path: Path, played: Served
) -> None:
    result = command("export", "votes", "--to", "v.csv", "--database", played.database)
    assert result.stdout == (
        "v.csv: 1 of 2 logged votes, policy default-v3. Not counted: 1 "
        "skipped.\nv.csv.card.md: the content of the export, exclusions and reasons.\n"
    )
    rows = (tmp_path / "v.csv").read_text().splitlines()
    assert len(rows) == 3, "of the skip the hashes are there"
    assert ",skipped," in rows[2]
    refused(
        command("export", "votes", "--to", "v.doc", "--database", played.database),
        "'v.doc'",
        ".parquet",
    )


def test_the_examples_of_export_backup_and_restore_run(command: Command, tmp_path: Path) -> None:
    new_sqlite(tmp_path)
    shutil.copy(tmp_path / "arena.db", tmp_path / "arena-demo.db")
    for name in ("export votes", "backup", "restore"):
        for words in examples(name):
            result = command(*words)
            assert (result.returncode, result.stderr) == (0, ""), words
