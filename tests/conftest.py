"""Fixtures that all houses share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, served_by

# The same examples on every run, and no clock on a busy machine.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARENA_") and "TESTS" not in name]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def published_data() -> Path:
    """The folder of published votes, verdicts and outputs."""
    folder = os.environ.get("PUBLISHED_DATA")
    if not folder:
        pytest.skip("PUBLISHED_DATA does not name the folder of published data")
    return Path(folder)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Served]:
    """An arena, without the page, of three models that answer at once."""
    behaviours = {name: Behaviour(text=f"So says {n}. " * 20) for n, name in enumerate("xyz")}
    with faulty_server(behaviours) as server, served_by(server, tmp_path) as served:
        yield served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what takes longest first, so that the last worker does not end alone."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a machine promises to skip nothing and yet something was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and "ARENA_TESTS_SKIP_NOTHING" in os.environ and reporter.stats.get("skipped"):
        reporter.write_line("Skipped, where nothing may be: see the reasons below.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
