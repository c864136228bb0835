"""Fixtures that all houses share.

They import the arena where they need it: the process that starts the workers does without.
"""

import atexit
import gc
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.assertion import rewrite
from hypothesis import settings

from tests.memory import quickest

if TYPE_CHECKING:
    from tests.command import Command
    from tests.serving import Served

# The same examples on every run, and no clock on a busy machine.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
EXAMPLES = "_hypothesis_internal_use_settings"
LONG = Path(__file__).parent / "long.txt"
"""Files and tests that take half of the time: CI runs them, and `CI=1 make test`."""
LONGEST = ("tests/rating/test_studies.py", "tests/test_tutorials.py", "tests/test_release.py")
"""Files that take minutes on one worker: first, so that no worker ends with one alone."""


def pytest_configure() -> None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", quickest())


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARENA_") and "TESTS" not in name]:
        monkeypatch.delenv(name)


@pytest.fixture
def a_common_umask() -> Iterator[None]:
    """Everybody can read new files unless the program sets another mode."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def published_data() -> Path:
    """The folder of published votes, verdicts and outputs."""
    folder = os.environ.get("PUBLISHED_DATA")
    if not folder:
        pytest.skip("PUBLISHED_DATA does not name the folder of published data")
    return Path(folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of a real PostgreSQL; started by the first test that asks for it."""
    from tests.postgresql import postgresql_server

    with postgresql_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql: str) -> Iterator[str]:
    """Name of a database with the arena's tables, to copy."""
    from sqlalchemy.engine import make_url

    from tests.postgresql import new_database
    from tests.sqlite import bring_to_schema

    with new_database(postgresql) as url:
        bring_to_schema(url)
        yield str(make_url(url).database)


@pytest.fixture
def url(postgresql: str, postgresql_template: str) -> Iterator[str]:
    """URL of a database of PostgreSQL that nobody has used."""
    from tests.postgresql import new_database

    with new_database(postgresql, postgresql_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database that nobody has used: a test that asks for it runs on both kinds."""
    from tests.sqlite import new_sqlite

    if request.param == "sqlite":
        return new_sqlite(tmp_path)
    return str(request.getfixturevalue("url"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def either_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """URL of one database for all tests of a module, which run on both kinds."""
    from tests.postgresql import new_database
    from tests.sqlite import new_sqlite

    if request.param == "sqlite":
        yield new_sqlite(tmp_path_factory.mktemp("either"))
    else:
        server = request.getfixturevalue("postgresql")
        with new_database(server, request.getfixturevalue("postgresql_template")) as url:
            yield url


@pytest.fixture
def quick(tmp_path: Path) -> Iterator["Served"]:
    """An arena, without the page, of three models that answer at once."""
    from tests.serving import quick_arena

    with quick_arena(tmp_path) as served:
        yield served


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage while all is loaded, nor in that later, and seldom while tests run.

    It takes a fifth of the time of loading, and a tenth of that of the tests, otherwise. At the
    end of the process what was loaded may be garbage again: some libraries complain of what
    outlives them.
    """
    gc.disable()
    if "PYTEST_XDIST_WORKER" in os.environ and not sys.dont_write_bytecode:
        _compile_a_share(session.config)
    collected = yield
    gc.enable()
    gc.freeze()
    atexit.register(gc.unfreeze)
    gc.set_threshold(20_000, 20, 20)
    return collected


def _compile_a_share(config: pytest.Config) -> None:
    """Compile a share of the tests that no run has: each worker would compile all of them."""
    place = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in sorted(Path(__file__).parent.rglob("test_*.py"))[place::workers]:
        folder = rewrite.get_cache_dir(file)
        compiled = folder / f"{file.stem}{rewrite.PYC_TAIL}"
        if not compiled.exists() and rewrite.try_makedirs(folder):
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, compiled)


def _with_fewer_examples(items: list[pytest.Item]) -> None:
    """Let Hypothesis try an eighth of its examples, and at least five; it has no option."""
    for test in {item.function for item in items if isinstance(item, pytest.Function)}:
        chosen: settings | None = getattr(test, EXAMPLES, None)
        if chosen is not None:
            most = min(chosen.max_examples, max(5, chosen.max_examples // 8))
            setattr(test, EXAMPLES, settings(chosen, max_examples=most))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave some tests to `make slow` or CI, and mix files that wait with files that compute.

    They wait for a browser or a server, and no core is so idle while the others queue. What takes
    longest comes first, so that the last worker does not end alone.
    """
    for item in _repeated(items):
        item.add_marker("slow")
    long = set(LONG.read_text().split())
    for item in items:
        if not long.isdisjoint({item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]}):
            item.add_marker("long")
    if config.option.markexpr.startswith("not slow"):
        _with_fewer_examples(items)
    if "SIMULATION_RUNS" in os.environ:  # more runs than the limit of a test leaves time for
        for item in items:
            item.own_markers = [mark for mark in item.own_markers if mark.name != "timeout"]
    files = list(dict.fromkeys(item.path for item in items))
    waiting = sorted((file for file in files if _waits(file)), key=_waits, reverse=True)
    computing = [file for file in files if not _waits(file)]
    place = {file: i / len(waiting) * 0.75 for i, file in enumerate(waiting)}
    place |= {file: i / len(computing) for i, file in enumerate(computing)}
    items.sort(key=lambda item: (not item.nodeid.startswith(LONGEST), place[item.path]))


def _repeated(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Give what shows at length what other tests show.

    These are the API, pages and commands on PostgreSQL, as each test of the store runs on both
    kinds of database anyway, one of its cases on PostgreSQL; and of each test that is marked
    `sampled` all cases but one in so many.
    """
    cases: defaultdict[str, int] = defaultdict(int)
    on_postgresql: set[str] = set()
    arena = Path(__file__).parent / "arena"
    for item in items:
        test, _, case = item.nodeid.partition("[")
        both = item.path.parent == arena / "store" and test not in on_postgresql
        sampled = item.get_closest_marker("sampled")
        if "postgresql" in case and item.path.is_relative_to(arena):
            on_postgresql.add(test)
            if not both:
                yield item
        elif sampled:
            n, first = (*sampled.args, 0)[:2]
            if cases[test] % n != first:
                yield item
            cases[test] += 1


def _waits(file: Path) -> int:
    """Give how much a file's tests wait for other processes."""
    tests = Path(__file__).parent
    rooms = (
        tests / "arena" / "store",
        tests / "arena" / "api",
        tests / "arena",
        tests / "browser",
    )
    return rooms.index(file.parent) + 1 if file.parent in rooms else 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables that tests recorded a row of, whichever worker they ran on."""
    tables: dict[str, list[dict[str, object]]] = defaultdict(list)
    for report in [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]:
        for title, row in report.user_properties:
            tables[title].append(row)
    for title, rows in tables.items():
        terminalreporter.section(title)
        for line in (rows[0], *(row.values() for row in rows)):
            terminalreporter.write_line(" ".join(f"{cell!s:>12}" for cell in line))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a machine promises to skip nothing and yet something was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and "ARENA_TESTS_SKIP_NOTHING" in os.environ and reporter.stats.get("skipped"):
        reporter.write_line("Skipped, where nothing may be: see the reasons below.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Command":
    from tests.command import Command  # the whole program: most tests do without

    return Command(tmp_path, monkeypatch, capsys)
