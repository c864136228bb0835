"""The script that keeps the newest backups."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, ENVIRONMENT, ROOT, assert_content, run
from tests.serving import Served

FAKE = """#!/usr/bin/env bash
set -eu
[ "$1 $2" = "backup --to" ]
printf 'some of %s' "$ARENA_DATABASE" > "$3"
{ending}
"""


def back_up(
    tmp_path: Path, *words: str, ending: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the script where `arena` writes a line and ends as it is told."""
    arena = tmp_path / "bin" / "arena"
    arena.parent.mkdir(exist_ok=True)
    arena.write_text(FAKE.format(ending=ending), encoding="utf-8")
    arena.chmod(0o755)
    environment = {"PATH": f"{arena.parent}:{ENVIRONMENT['PATH']}", "ARENA_DATABASE": "a url"}
    return run("bash", DEPLOY / "backup.sh", *words, **environment | env)


def test_the_scripts_are_sound_shell() -> None:
    for script in (DEPLOY / "backup.sh", ROOT / ".ci" / "run"):
        assert_content("bash", "-n", script)
        assert_content("shellcheck", script)
    assert os.access(DEPLOY / "backup.sh", os.X_OK)


def test_a_backup_keeps_the_newest_ones_and_touches_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    bystander = folder / "arena notes.txt"
    bystander.touch()
    printed = []
    for _ in range(4):
        done = back_up(tmp_path, str(folder), "2")
        assert done.returncode == 0, done.stdout
        printed.append(Path(done.stdout.strip()))
    assert sorted(folder.iterdir()) == sorted([bystander, *printed[-2:]])
    assert printed[-1].read_text("utf-8") == "some of a url"
    assert printed[-1].stat().st_mode & 0o077 == 0


def test_a_backup_that_fails_removes_no_older_one_and_leaves_no_half(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    assert back_up(tmp_path, str(folder), "1").returncode == 0
    before = sorted(folder.iterdir())
    assert back_up(tmp_path, str(folder), "1", ending="exit 3").returncode == 3
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_a_backup_taken_while_the_arena_runs_can_be_restored(
    quick: Served, tmp_path: Path
) -> None:
    with quick.visitor() as ada:
        assert ada.vote(ada.play(), "tie").status_code == 200
        folder = tmp_path / "backups"
        done = run("bash", DEPLOY / "backup.sh", folder, ARENA_DATABASE=quick.database)
    assert done.returncode == 0, done.stdout
    (file,) = folder.iterdir()
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert_content("arena", "restore", file, "--database", restored)
    votes = tmp_path / "votes.csv"
    assert_content("arena", "export", "votes", "--to", votes, "--database", restored)
    assert len(votes.read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize("words", [(), ("there", "0"), ("there", "-1"), ("there", "two")])
def test_a_backup_that_is_asked_for_wrongly_is_refused(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    given = [str(tmp_path / word) if word == "there" else word for word in words]
    assert back_up(tmp_path, *given).returncode == 2
    assert not (tmp_path / "there").exists()


def test_a_backup_of_no_named_database_is_refused(tmp_path: Path) -> None:
    done = back_up(tmp_path, str(tmp_path / "there"), ARENA_DATABASE="")
    assert done.returncode == 2
    assert "ARENA_DATABASE" in done.stdout
