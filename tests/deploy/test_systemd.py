"""The unit passes systemd's own checks."""

import re
from pathlib import Path

import pytest

from tests.deploy.tools import ANALYZE, assert_content, needed_files, needs_systemd, read, run


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Copy the unit, with a program that is there on every machine."""
    text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", read("arena.service"))
    path = tmp_path / "arena.service"
    path.write_text(text, encoding="utf-8")
    return path


@needs_systemd
def test_systemd_accepts_the_unit(unit: Path) -> None:
    done = run(str(ANALYZE), "verify", "--man=no", unit)
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if unit.name in line] == []


@needs_systemd
def test_the_service_is_exposed_little(unit: Path) -> None:
    """On systemd's own scale, 0 to 100; a unit without any hardening scores 96."""
    assert_content(str(ANALYZE), "security", "--offline=true", "--threshold=20", unit)


def test_the_service_writes_only_where_its_database_is() -> None:
    unit_file = read("arena.service")
    for line in ("DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=arena"):
        assert re.search(rf"^{line}$", unit_file, re.MULTILINE), line
    assert "ARENA_DATABASE=sqlite:////var/lib/arena/" in unit_file
    assert "ReadWritePaths" not in unit_file


def test_the_service_has_bounds_on_files_tasks_and_memory() -> None:
    bounds = dict(
        re.findall(r"^(LimitNOFILE|TasksMax|MemoryMax)=(\w+)$", read("arena.service"), re.M)
    )
    assert int(bounds["LimitNOFILE"]) > needed_files()
    assert int(bounds["TasksMax"]) > 0
    assert bounds["MemoryMax"].endswith("G")
