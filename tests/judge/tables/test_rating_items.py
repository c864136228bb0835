"""Public files of conversations as items for people to rate, turn by turn."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from judge.tables.cases import read_cases
from judge.tables.rating_items import RatingItem, read_rating_items
from rating.errors import DataError
from rating.tables.peers import noticing
from tests.command import Command
from tests.judge.tables.lmarena import KINDS, lmarena_rows
from tests.sqlite import new_sqlite


def lmarena(folder: Path) -> Path:
    file = folder / "lmarena.json"
    file.write_text(json.dumps(lmarena_rows(5 * len(KINDS))), encoding="utf-8")
    duckdb.execute(f"COPY (FROM '{file}') TO '{folder}/lmarena.parquet'")
    return folder / "lmarena.parquet"


def said(*texts: str | None) -> list[dict[str, str | None]]:
    roles = ("user", "assistant") * len(texts)
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]


def chatbot_arena(folder: Path) -> Path:
    known = {"model_a": "flint", "model_b": "slate", "winner": "tie", "anony": True, "judge": "x"}
    talks = [
        (said("Hi?", "Yes."), said("Hi?", "No.")),
        (said("Hi?", "Yes.", "And?", "So."), said("Hi?", "No.", "And?", "Well.")),
        (said("Hi?", None), said("Hi?", "No.")),
    ]
    rows = [known | {"conversation_a": a, "conversation_b": b} for a, b in talks]
    file = folder / "arena.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def kaggle(folder: Path) -> Path:
    talks = [
        (["Hi?"], ["Yes."], ["No."]),
        (["Hi?", "And?"], ["Yes.", "So."], ["No.", "Well."]),
        (["Hi?"], [None], ["No."]),
    ]
    won = dict(zip(("winner_model_a", "winner_model_b", "winner_tie"), (0, 0, 1), strict=True))
    names = ("prompt", "response_a", "response_b")
    rows = [
        {"id": n, "model_a": "flint", "model_b": "slate"}
        | dict(zip(names, map(json.dumps, talk), strict=True))
        | won
        for n, talk in enumerate(talks)
    ]
    with (folder / "kaggle.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder / "kaggle.csv"


def texts(item: RatingItem) -> list[list[str]]:
    return [[turn.content for turn in one.turns] for one in item.responses]


@pytest.mark.parametrize("written", [chatbot_arena, kaggle])
def test_conversations_are_items_turn_by_turn_and_a_null_answer_is_excluded_and_counted(
    tmp_path: Path, written: Callable[[Path], Path]
) -> None:
    words: list[str] = []
    with noticing(words.append):
        one, several = items = read_rating_items(written(tmp_path))
    assert words[0].endswith("rows left out: 1 without an answer")
    assert [[turn.content for turn in item.messages] for item in items] == [["Hi?"], ["Hi?"]]
    assert [response.model for response in one.responses] == ["flint", "slate"]
    assert texts(one) == [["Yes."], ["No."]]
    assert texts(several) == [["Yes.", "And?", "So."], ["No.", "And?", "Well."]]


def test_content_blocks_are_read_and_an_item_has_the_id_that_a_judge_s_run_gives_it(
    tmp_path: Path,
) -> None:
    path, words = lmarena(tmp_path), list[str]()
    with noticing(words.append):
        items = read_rating_items(path)
    assert "5 in which the user's turns differ" in words[0]
    assert words[0].endswith("5 without an answer")
    assert words[1].endswith("no items to rate: 5 with an image, and raters are shown text alone")
    assert texts(items[0])[1] == ["Answer 0.0b,\n\nin two parts."]
    assert texts(items[1])[0][:2] == ["Answer 1.0a,\n\nin two parts.", "Question 1.1?"]
    cases = [named for named in read_cases([path]) if not named.case.images]
    ids = [(named.battle_id, named.prompt_id) for named in cases]
    assert [(item.item, item.prompt_id) for item in items] == ids


def test_a_study_is_made_of_a_public_file_and_says_what_is_excluded(command: Command) -> None:
    new_sqlite(command.folder)
    path = lmarena(command.folder)
    done = command("study", "create", "s", "--items", path.name, "--raters-per-item", "1")
    assert done.returncode == 0, done.stderr
    assert "5 without an answer" in done.stderr
    assert "5 with an image, and raters are shown text alone" in done.stderr
    status = json.loads(command("study", "status", "s", "--format", "json").stdout)
    assert status["items"] == 10


def test_rows_that_nobody_can_rate_are_counted_by_reason(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": "Hi?", "chosen": "a" * n, "rejected": "no"} for n in (1, 1, 100_001)
    ]
    file, words = tmp_path / "preferences.json", list[str]()
    file.write_text(json.dumps(rows), encoding="utf-8")
    with noticing(words.append):
        assert len(read_rating_items(file)) == 1
    reasons = "1 of more than 100,000 characters, 1 with the id of an earlier row"
    assert words[-1].endswith(reasons)
    file.write_text(json.dumps(rows[2:]), encoding="utf-8")
    with pytest.raises(DataError, match=r"No row of .* can be rated by people: 1 of more than"):
        read_rating_items(file)
