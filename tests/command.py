"""The command: in this process, which is quick and leaves it as it was, or in one of its own."""

import csv
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from arena.cli import application, main

ARENA = str(Path(sys.executable).parent / "arena")
Ran = subprocess.CompletedProcess[str]

GOOD = "\n".join(
    f'[[models]]\nid = "{id}"\nname = "{id.upper()}"\nendpoint = "pocket://local/v1"\n'
    f'model = "{model}"\n'
    for id, model in (("x", "unigram"), ("y", "bigram"))
)


class Command:
    """Runs the command in a folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._patch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str, **env: str) -> Ran:
        """Call the command in this process."""
        self._capsys.readouterr()
        with self._patch.context() as patch, _own_logs():
            patch.chdir(self.folder)
            for name, value in {"ARENA_PAGE": "0", **env}.items():
                patch.setenv(name, value)
            code = _exit_code(words)
        written = self._capsys.readouterr()
        return subprocess.CompletedProcess(words, code, written.out, written.err)


def invoke(words: Sequence[str], columns: int = 80) -> Ran:
    """Call the command in this process and folder, on a terminal of some width."""
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
        _own_logs(),
    ):
        patch.setenv("COLUMNS", str(columns))
        code = _exit_code(words)
    return subprocess.CompletedProcess(list(words), code, out.getvalue(), err.getvalue())


def captured(
    words: Sequence[str | Path],
    folder: Path,
    env: Mapping[str, str] | None = None,
    seconds: float | None = 300,
) -> Ran:
    """Run a program in a folder, and give what it wrote and how it ended."""
    return subprocess.run(
        words, cwd=folder, env=env, timeout=seconds, capture_output=True, text=True, check=False
    )


def run(folder: Path, *words: str, **env: str) -> Ran:
    """Run the command in a process of its own, as a person does."""
    return captured([ARENA, *words], folder, os.environ | {"ARENA_PAGE": "0"} | env, 60)


def refused(result: Ran, *words: str) -> None:
    """Check that a command ended in one clear line."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("arena: ")]
    assert result.returncode == 2, result.stderr
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert [word for word in words if word not in lines[0]] == [], lines[0]


def report(ran: Ran) -> dict[str, Any]:
    """Give what a command printed as JSON."""
    outcome: dict[str, Any] = json.loads(ran.stdout)
    return outcome


def roster(folder: Path, text: str = GOOD) -> str:
    path = folder / "roster.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


MODEL = """
[[models]]
id = "{name}"
name = "{name}"
endpoint = "{url}"
model = "{name}"
price = {{ input = 1.0, output = 2.0, date = 2026-01-01 }}
"""


def endpoint_roster(folder: Path, url: str, *names: str, more: str = "") -> None:
    """Write roster.toml with models of an endpoint, for 1 and 2 dollars per million tokens."""
    tables = (MODEL.format(name=name, url=url) + more for name in names)
    (folder / "roster.toml").write_text("".join(tables), encoding="utf-8")


def csv_rows(folder: Path, name: str = "found.csv") -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def json_lines(path: Path, rows: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def examples(name: str) -> list[list[str]]:
    """Give the examples at the end of a command's help, in words."""
    app = application([*name.split(), "--help"])
    for word in name.split():
        app = app[word]
    return [line.split() for line in re.findall(r"`\s*arena (.+?)\s*`", str(app.help_epilogue))]


def _exit_code(words: Sequence[str]) -> int:
    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@contextmanager
def _own_logs() -> Iterator[None]:
    """Let a command set up logs for itself, and put back those of the process."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)


def options_of(name: str) -> set[str]:
    """Give the options that the help of a command names before its examples."""
    shown = invoke([*name.split(), "--help"], columns=200).stdout.split("Examples")[0]
    return {*re.findall(r"--[a-z-]+", shown)} - {"--help"}


def unexplained(heading: str, *objects: Iterable[str]) -> list[str]:
    """List the keys that are not in a section of the reference of JSON output."""
    page = (Path(__file__).parents[1] / "docs/reference/json.md").read_text("utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [key for one in objects for key in one if f"`{key}`" not in section]
