"""Cards read back from a folder: as they were written, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from arena.errors import SettingsError
from arena.settings import read_cards, read_refusals
from judge.report.cards import page_of
from tests.judge.report.test_cards import board
from tests.open_pages import parts_of


def test_cards_come_by_name_of_their_files_and_others_are_passed_over(tmp_path: Path) -> None:
    for name, content in (("b", board(validity=False)), ("a", board())):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "a.html").write_text("a page", encoding="utf-8")
    assert read_cards(tmp_path) == (page_of(board()), page_of(board(validity=False)))
    with parts_of(cards=tmp_path) as parts:
        assert parts.cards == read_cards(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[]", '{"audits": []}', '{"cards": [1], "about": {}}'])
def test_a_file_that_holds_no_cards_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"x\.json' holds no cards"):
        read_cards(tmp_path)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is no folder"):
        read_cards(tmp_path / "none")


def test_what_models_refuse_is_read_at_the_start_or_refused_by_the_name_of_its_setting(
    tmp_path: Path,
) -> None:
    file = tmp_path / "safety.json"
    ends = {"lower": 0.1, "upper": 0.3, "corrected": None}
    ends |= {"corrected_lower": None, "corrected_upper": None}
    rate = {"model": "owl", "category": "all", "what": "refusal", "mode": "does", "n": 120}
    file.write_text(json.dumps({"rates": [rate | {"rate": 0.2} | ends]}))
    assert {*read_refusals(file).rates} == {*read_refusals(tmp_path).rates} == {"owl"}
    with parts_of(safety=file) as parts:
        parts.valuation.look()
        valued: Any = parts.valuation.read()
    assert {*valued.safety.rates} == {"owl"}
    file.write_text(json.dumps({"rates": [rate | {"rate": 2} | ends]}))
    with pytest.raises(SettingsError, match=r"^ARENA_SAFETY: .*2 is no share"):
        read_refusals(tmp_path)
    with pytest.raises(SettingsError, match=r"^ARENA_SAFETY: .*none"):
        read_refusals(tmp_path / "none")
