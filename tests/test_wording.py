"""Texts use the field's own terms: the count of phrases that one replaces never rises."""

from pathlib import Path

import pytest

from benchmarks.wording import MOST_WORDS, main, phrases

PLANTED = [
    "It cannot be told who beats whom.",
    "Say whether the judge is as good as a person.",
    "The record is whole.",
    "One vote is set aside.",
    "Coverage is .948.",
    "This would overturn the rank.",
    "These votes speak against a ring.",
    "A newcomer has no rank ranges.",
    "The judge stands in for people with the same taste.",
    "Erase my words, and nothing is said of the rest.",
]
KINDS = {
    "pages": ("arena/locale/de.po", 'msgid "{}"\nmsgstr ""\n'),
    "code": ("rating/x.py", '"""{}"""\n'),
    "docs": ("docs/x.md", "{}\n"),
}


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A project without texts."""
    for path, _ in KINDS.values():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    (tmp_path / "docs/y.md").write_text("One sentence.\n")
    return tmp_path


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("sentence", PLANTED)
def test_a_planted_sentence_is_caught(empty: Path, source: str, sentence: str) -> None:
    path, text = KINDS[source]
    assert main([], empty) == 0
    (empty / path).write_text(text.format(sentence))
    assert main([], empty) == 1


def test_too_many_words_are_caught(empty: Path) -> None:
    (empty / "docs/x.md").write_text("word " * (MOST_WORDS + 1))
    assert main([], empty) == 1


@pytest.mark.parametrize(
    "text", ["Votes that are excluded.", "Coverage is 0.948.", "v0.1.0", "a.5b", r"\.5", ".0%"]
)
def test_standard_terms_and_numbers_pass(text: str) -> None:
    assert phrases(text) == []


def test_history_is_allowed_to_stay(empty: Path) -> None:
    history = "# Changelog\n\n## 0.1.0 - 2026-11-25\n\n" + PLANTED[0]
    (empty / "CHANGELOG.md").write_text(history)
    assert main([], empty) == 0


def test_names_of_data_are_not_read_as_words() -> None:
    assert phrases("The key `taste` of a ring.\n\n    rings : tuple of Ring\n    >>> rings\n") == [
        "ring"
    ]
