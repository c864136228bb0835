"""Every tutorial's commands run, one after the other, and print what its page says."""

import re
import shlex
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest

from arena.domain.vote import Voter
from arena.endpoints.local import JUDGE
from arena.store import studies
from arena.store.store import Store
from tests.command import Command

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
FILE = re.compile(r"`([\w.]+)`[^`]*:\n\n```(?:csv|toml)\n(.*?)```", re.DOTALL)
TRANSCRIPT = re.compile(r"```text\n(\$ arena .*?)```", re.DOTALL)
SETTING = re.compile(r"^export (\w+)=(\S+)", re.MULTILINE)
MASKS = {
    r"\b[0-9a-f]{12,}\b": "a hash",
    r"/join/\S+": "/join/a token",
    r"\d{4}-\d\d-\d\d \d\d:\d\d": "a moment",
    r"\d+\.\d+ m?s\b": "a while",
    r"about [\d,]+ tokens in": "about so many tokens in",
    r"schema \d+": "a schema",
    r"\d+ rows, among": "rows, among",
}
"""What is drawn at random or measured: another one each time."""


def masked(text: str) -> str:
    for pattern, words in MASKS.items():
        text = re.sub(pattern, words, text)
    return text


def nothing(folder: Path) -> None:
    """Leave the folder as it is."""


def rate_four(folder: Path) -> None:
    """Let three people rate four items; they differ on the second and on the fourth."""
    right = ("It holds", "Argon", "56", "Gute N")
    others = {("ada", 3): "tie", ("eve", 1): "both_bad"}
    with closing(Store(f"sqlite:///{folder / 'arena.db'}")) as store:
        for who in ("ada", "bob", "eve"):
            for n in range(4):
                with store.writing() as session:
                    _, shown = studies.give(session, "four", Voter(who), datetime.now(UTC))
                    assert shown is not None
                    is_right = shown.answers[0][0]["content"].startswith(right)
                    choice = "b" if is_right == ((who, n) == ("bob", 3)) else "a"
                    choice = others.get((who, n), choice)
                    key = f"{who}-rates-{n}"
                    studies.rate(session, "four", who, shown.token, key, choice, datetime.now(UTC))


WHOLE = "judge.md whole"
WAITING = ("vote.md", "administer.md", WHOLE)
"""Tutorials in which models answer at their own pace, or play many battles."""
LONG = ("smollm2-pairs.csv", "forty.csv")
"""The small model takes minutes for the one, and the other comes of it: slow tests run them."""
MEANWHILE: dict[str, Callable[[Path], None]] = {"study create": rate_four}
"""What people do after a command."""


PAGES = [
    pytest.param(
        page, marks=(pytest.mark.slow, pytest.mark.timeout(3600)) if page in WAITING else ()
    )
    for page in [*sorted(path.name for path in TUTORIALS.glob("*.md")), WHOLE]
]


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_s_commands_print_what_the_page_says(
    page: str, tmp_path: Path, command: Command
) -> None:
    skipped = () if page == WHOLE else LONG
    whole = (TUTORIALS / page.removesuffix(" whole")).read_text(encoding="utf-8")
    if JUDGE.id in whole and find_spec("xllamacpp") is None:
        pytest.skip("the small model is not installed")
    for name, content in FILE.findall(whole):
        (tmp_path / name).write_text(content, encoding="utf-8")
    for table in TUTORIALS.glob("*.csv"):
        copy(table, tmp_path)
    settings = dict(SETTING.findall(whole))
    examples = [e for block in TRANSCRIPT.findall(whole) for e in block.split("$ arena ")[1:]]
    assert examples
    for example in examples:
        line, expected = example.split("\n", 1)
        if any(name in line for name in skipped):
            continue
        done = command(*shlex.split(line), COLUMNS="80", **settings)
        text = done.stderr + done.stdout
        # Processors round differently, so some replies of the small model differ.
        differs = LONG[0] in line and re.match(r"forty\.csv: \d+ verdicts parsed", text)
        assert differs or masked(text) == masked(expected), line
        MEANWHILE.get(" ".join(line.split()[:2]), nothing)(tmp_path)


def test_a_changed_figure_in_a_transcript_is_seen() -> None:
    assert masked("basalt 1101 (1006 to 1208)") != masked("basalt 1102 (1006 to 1208)")
