"""A SQLite file of mode 0444 in a folder of mode 0555, for commands that read and that write."""

import ctypes
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests.command import Ran, refused
from tests.process import Process
from tests.serving import quick_arena
from tests.sqlite import new_sqlite

CAPABILITIES = struct.pack("=II", 0x20080522, 0)
"""What capset(2) is told first: version 3, and this thread."""


def obey_modes() -> None:
    """Let the modes of files hold in this process, though root runs it."""
    assert ctypes.CDLL(None, use_errno=True).capset(CAPABILITIES, bytes(24)) == 0


def run(folder: Path, *words: str) -> Ran:
    """Run the command as somebody for whom modes hold, in a folder that can be written to."""
    env = {"ARENA_DATABASE": f"sqlite:///{folder}/kept/arena.db"}
    with TemporaryFile("w+") as errors, Process(words, folder, env, errors, obey_modes) as process:
        printed = process.stdout.read()
        code = process.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(list(words), code, printed, errors.read())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Holds a folder for the database, which can be written to again at the end."""
    place = tmp_path / "kept"
    place.mkdir()
    yield tmp_path
    place.chmod(0o755)


def close(folder: Path) -> str:
    """Let nobody write to the database of a folder; gives its URL."""
    file = folder / "kept" / "arena.db"
    file.chmod(0o444)
    file.parent.chmod(0o555)
    return f"sqlite:///{file}"


def vote(folder: Path) -> None:
    with quick_arena(folder / "kept") as served, served.visitor() as ada:
        ada.vote(ada.play(), "model_a")


def test_a_read_only_database_is_verified_and_rated_and_nothing_is_made_beside_it(
    folder: Path,
) -> None:
    vote(folder)
    url = close(folder)
    before = sorted((folder / "kept").iterdir())
    assert "vote log verified, 1 link" in run(folder, "verify", url).stdout
    rated = run(folder, "rate", url, "--ridge", "1", "--format", "csv")
    assert rated.returncode == 0, rated.stderr
    assert sorted((folder / "kept").iterdir()) == before


@pytest.mark.slow
def test_every_other_command_that_only_reads_does_so(folder: Path) -> None:
    vote(folder)
    url = close(folder)
    for words in (
        ("voters", url),
        ("status",),
        ("people", "list"),
        ("migrate",),
        ("export", "votes", "--to", "votes.csv"),
        ("backup", "--to", "backup.db"),
    ):
        done = run(folder, *words)
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("people", "invite", "Ada")])
def test_what_writes_to_a_read_only_database_says_that_it_is_one(
    folder: Path, words: tuple[str, ...]
) -> None:
    new_sqlite(folder / "kept")
    close(folder)
    refused(run(folder, *words), "kept/arena.db' is read-only", "or write to a copy")


def test_no_database_is_made_in_a_read_only_folder(folder: Path) -> None:
    (folder / "kept").chmod(0o555)
    done = run(folder, "serve", "--port", "0")
    refused(done, "Cannot make", "kept/arena.db': Permission denied")


def test_votes_that_are_in_the_log_of_a_served_file_alone_are_read(folder: Path) -> None:
    with quick_arena(folder / "kept") as served, served.visitor() as ada:
        ada.vote(ada.play(), "model_a")
        url = close(folder)
        assert "vote log verified, 1 link" in run(folder, "verify", url).stdout
