"""Who may read the files that the arena makes."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arena.store.backup import back_up, restore
from arena.store.store import Store


@pytest.fixture(autouse=True)
def a_common_umask() -> Iterator[None]:
    """Files are everybody's to read unless a program says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


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


def test_a_database_that_is_there_keeps_the_mode_that_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    file.touch()
    file.chmod(0o640)
    Store(f"sqlite:///{file}").close()
    assert file.stat().st_mode & 0o777 == 0o640
