"""The import contracts hold, and each one catches a violation planted for it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = {
    "The three houses": ("rating/elo.py", "import arena.domain.vote"),
    "The rooms of the arena": ("arena/store/chain.py", "import arena.play.rules"),
    "The floors of rating": ("rating/tables/columns.py", "import rating.charts.picture"),
    "The mathematics of ratings knows no files": ("rating/elo.py", "import rating.tables.files"),
    "The mathematics of ratings is arrays": ("rating/elo.py", "import pathlib"),
    "The floors of judge": ("judge/tables/cases.py", "import judge.report.files"),
    "judge knows no web and no database": ("judge/__init__.py", "import starlette"),
    "The domain is plain values": ("arena/domain/vote.py", "import pathlib"),
    "What the web shows, it gets from play and boards": (
        "arena/api/public_routes.py",
        "import arena.store.log",
    ),
    "Judges work without the web": ("arena/judging.py", "import arena.api.problems"),
    "httpx lives with the endpoints": ("arena/play/rules.py", "import httpx"),
    "Providers of OpenID Connect are reached from one place": (
        "arena/pages/sign_in.py",
        "import authlib",
    ),
    "SQL lives in the store": ("arena/boards/export.py", "import sqlalchemy"),
    "Gradio lives in the battle page": ("arena/pages/filters.py", "import gradio"),
    "FastAPI lives where pages and routes are": ("arena/play/rules.py", "import fastapi"),
    "Jinja lives in the pages": ("arena/pages/rendering.py", "import jinja2"),
    "Babel lives in the catalogue": ("arena/pages/filters.py", "import babel"),
    "The command line lives with the commands": ("arena/app.py", "import cyclopts"),
    "uvicorn lives in the server": ("arena/cli.py", "import uvicorn"),
    "structlog lives in the logs": ("arena/play/rules.py", "import structlog"),
    "prometheus lives in the metrics": ("arena/play/rules.py", "import prometheus_client"),
    "duckdb lives with tables": ("arena/store/log.py", "import duckdb"),
    "Spark is optional, and in one place": ("rating/tables/sources.py", "import pyspark"),
    "Inspect is optional, and in one place": ("judge/tables/native.py", "import inspect_ai"),
    "Pictures that are files live in charts": ("arena/pages/geometry.py", "import matplotlib"),
    "Compiled loops are optional, and in one place": ("rating/elo.py", "import numba"),
    "Markdown lives in the renderer": ("judge/report/cards.py", "import markdown_it"),
    "No circles": ("arena/domain/vote.py", "import arena.errors"),
}


CIRCLE = "No circles"
"""Planted apart: among other violations, another import may be said to close the circle."""


def lint(folder: Path) -> str:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    env = os.environ | {"COLUMNS": "200"}
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return run.stdout


def broken(folder: Path) -> dict[str, str]:
    """Give what is written of each contract that does not hold."""
    details = lint(folder).partition("\nBroken contracts\n")[2]
    _, *parts = re.split(r"^(.+)\n-+\n", details, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for house in ("arena", "judge", "rating"):
        shutil.copytree(ROOT / house, folder / house)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@contextmanager
def with_lines(copy: Path, names: Iterable[str]) -> Iterator[None]:
    """Plant the violation of each contract, and take them out again."""
    paths = {name: copy / PLANTED[name][0] for name in names}
    before = {path: path.read_text(encoding="utf-8") for path in paths.values()}
    for name, path in paths.items():
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{PLANTED[name][1]}\n")
    try:
        yield
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def caught(copy: Path) -> dict[str, str]:
    """What is written of each contract where all are violated."""
    with with_lines(copy, [name for name in PLANTED if name != CIRCLE]):
        together = broken(copy)
    with with_lines(copy, [CIRCLE]):
        return together | {CIRCLE: broken(copy).get(CIRCLE, "")}


def test_the_contracts_hold_and_each_has_a_planted_violation(copy: Path) -> None:
    verdicts = [line for line in lint(copy).splitlines() if line.endswith((" KEPT", " BROKEN"))]
    assert verdicts == [f"{name} KEPT" for name in PLANTED]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_caught(caught: dict[str, str], name: str) -> None:
    path, line = PLANTED[name]
    importer = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    imported = line.removeprefix("import ")
    if name == CIRCLE:
        importer, imported = (f".{one.split('.')[1]}" for one in (importer, imported))
    assert f"{importer} -> {imported} (" in caught.get(name, "")


def test_a_module_that_belongs_to_no_room_is_caught(copy: Path) -> None:
    stray = copy / "arena" / "utils.py"
    stray.write_text('"""Odds and ends."""\n', encoding="utf-8")
    try:
        assert "- arena.utils" in broken(copy)["The rooms of the arena"]
    finally:
        stray.unlink()
