"""Texts use the field's own terms: the count of phrases that one replaces never rises."""

from pathlib import Path

import pytest

from benchmarks.wording import LIMITS, main, phrases

PLANTED = "It cannot be told who beats whom.\n\n"


def test_the_texts_are_within_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("source", LIMITS)
def test_a_planted_sentence_is_caught(tmp_path: Path, source: str) -> None:
    paths = {"pages": "arena/locale/de.po", "code": "rating/x.py", "docs": "docs/x.md"}
    for path in paths.values():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    (tmp_path / "docs/y.md").write_text("One sentence.\n")
    times = LIMITS[source] // 2 + 1
    kinds = {
        "pages": "".join(f'msgid "{n} {PLANTED.strip()}"\nmsgstr ""\n\n' for n in range(times)),
        "code": f'"""{PLANTED * times}"""\n',
        "docs": PLANTED * times,
    }
    assert main([], tmp_path) == 0
    (tmp_path / paths[source]).write_text(kinds[source])
    assert main([], tmp_path) == 1


@pytest.mark.parametrize(
    "text", ["Votes that are excluded.", "Coverage is 0.948.", "v0.1.0", "a.5b"]
)
def test_standard_terms_and_numbers_pass(text: str) -> None:
    assert phrases(text) == []


def test_history_is_allowed_to_stay(tmp_path: Path) -> None:
    (tmp_path / "arena/locale").mkdir(parents=True)
    (tmp_path / "arena/locale/de.po").touch()
    limit = LIMITS["docs"]
    history = "# Changelog\n\n## 0.1.0 - 2026-11-25\n\n" + PLANTED * (limit + 1)
    (tmp_path / "CHANGELOG.md").write_text(history)
    assert main([], tmp_path) == 0
