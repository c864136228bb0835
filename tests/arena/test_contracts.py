"""The import contracts hold, and each one catches a violation planted for it."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import captured

ROOT = Path(__file__).parents[2]
PLANTED = {
    "Imports run from arena to judge to rating": ("rating/variants.py", "arena.domain.vote"),
    "Layers of arena": ("arena/store/chain.py", "arena.play.matchmaking"),
    "Layers of judge": ("judge/tables/cases.py", "judge.report.page"),
    "Layers of rating": ("rating/tables/columns.py", "rating.charts.drawing"),
    "The mathematics of ratings works on arrays alone": ("rating/variants.py", "pathlib"),
    "judge knows no web and no database": ("judge/__init__.py", "starlette"),
    "The domain is plain values": ("arena/domain/vote.py", "pathlib"),
    "Judges work without the web": ("arena/judging.py", "arena.api.middleware"),
    "No cycles": ("arena/domain/vote.py", "arena.errors"),
}
PLACES = "Each library is imported in one place"
OF_PAIRS = ("httpx2", "aiohttp", "fastapi", "structlog", "prometheus_client")
LIBRARIES = dict.fromkeys(OF_PAIRS, "arena/play/matchmaking.py") | {
    **dict.fromkeys(("gradio", "jinja2", "babel"), "arena/pages/rendering.py"),
    "authlib": "arena/pages/standings.py",
    "sqlalchemy": "arena/boards/export.py",
    "cyclopts": "arena/app.py",
    "uvicorn": "arena/cli.py",
    "duckdb": "arena/store/log.py",
    "pyspark": "rating/tables/sources.py",
    "inspect_ai": "judge/tables/native.py",
    "matplotlib": "arena/pages/value.py",
    "numba": "rating/variants.py",
    "markdown_it": "judge/report/cards.py",
}

CYCLE = "No cycles"
"""Planted apart: among other violations, another import may be named as the one of the cycle."""


def lint(folder: Path) -> str:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return captured(command, folder, os.environ | {"COLUMNS": "200"}, None).stdout


def broken(folder: Path) -> dict[str, str]:
    """Give what is written of each contract that does not hold."""
    details = lint(folder).partition("\nBroken contracts\n")[2]
    _, *parts = re.split(r"^(.+)\n-+\n", details, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for package in ("arena", "judge", "rating"):
        shutil.copytree(ROOT / package, folder / package)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "places.py", folder / "tests")
    return folder


@contextmanager
def with_lines(copy: Path, planted: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Plant imports at the ends of files, and take them out again."""
    before = dict[Path, str]()
    for name, module in planted:
        path = copy / name
        text = path.read_text(encoding="utf-8")
        before.setdefault(path, text)
        path.write_text(f"{text}\nimport {module}\n", encoding="utf-8")
    try:
        yield
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def caught(copy: Path) -> dict[str, str]:
    """What is written of each contract where all are violated."""
    together = [PLANTED[name] for name in PLANTED if name != CYCLE]
    with with_lines(copy, [*together, *((path, name) for name, path in LIBRARIES.items())]):
        errors = broken(copy)
    with with_lines(copy, [PLANTED[CYCLE]]):
        return errors | {CYCLE: broken(copy).get(CYCLE, "")}


def test_the_contracts_hold_and_each_has_a_planted_violation(copy: Path) -> None:
    verdicts = [line for line in lint(copy).splitlines() if line.endswith((" KEPT", " BROKEN"))]
    assert sorted(verdicts) == sorted(f"{name} KEPT" for name in [*PLANTED, PLACES])


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_caught(caught: dict[str, str], name: str) -> None:
    path, imported = PLANTED[name]
    importer = module_of(path)
    if name == CYCLE:  # any import of the cycle may be named
        assert {".domain", ".errors"} <= {*caught.get(name, "").split()}
        return
    assert f"{importer} -> {imported} (" in caught.get(name, "")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_imported_elsewhere_is_caught(caught: dict[str, str], library: str) -> None:
    assert f"- {module_of(LIBRARIES[library])} imports {library}\n" in caught[PLACES]


def test_a_place_that_no_longer_imports_its_library_is_caught(copy: Path) -> None:
    path = copy / "rating" / "kernels.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("from numba import njit", "njit = print"), encoding="utf-8")
    try:
        assert "rating.kernels imports none of numba" in broken(copy)[PLACES]
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_module_in_no_layer_is_caught(copy: Path) -> None:
    stray = copy / "arena" / "utils.py"
    stray.write_text('"""Odds and ends."""\n', encoding="utf-8")
    try:
        assert "- arena.utils" in broken(copy)["Layers of arena"]
    finally:
        stray.unlink()
