"""Prompts and answers of benchmarks, as their makers write them; and what is neither."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from judge.case import Message
from judge.tables.items import answer_to, read_answers, read_items
from rating.errors import DataError
from rating.tables.peers import noticing

Row = dict[str, Any]
TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Why?"},
]
TASK = {
    "id": 3,
    "session_id": "s1",
    "conversation_input": TALK,
    "checklist": ["Is it short?"],
    "primary_tag": "Math",
    "secondary_tags": ["Planning"],
}
CONSTRAINED = {
    "key": 1000,
    "prompt": "No commas.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
}


def write(path: Path, rows: list[Row]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
        return path
    lines = path.with_suffix(".jsonl")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if path.suffix != ".jsonl":
        duckdb.execute(f"COPY (FROM '{lines}') TO '{path}'")
    return path


@pytest.mark.parametrize(
    ("row", "layout", "name", "prompt", "further"),
    [
        ({"instruction": "Why?"}, "instructions of AlpacaEval", None, "Why?", ()),
        (TASK, "tasks of WildBench", "s1", "Why?", ()),
        (CONSTRAINED, "prompts of IFEval", "1000", "No commas.", ()),
        (
            {"question_id": 81, "category": "math", "turns": ["One?", "Two?"]},
            "questions of MT-bench or Arena-Hard",
            "81",
            "One?",
            ("Two?",),
        ),
        (
            {"question_id": "a1", "turns": [{"content": "Sort."}]},
            "questions of MT-bench or Arena-Hard",
            "a1",
            "Sort.",
            (),
        ),
        ({"uid": "u", "prompt": "Sort."}, "questions of Arena-Hard v2", "u", "Sort.", ()),
        ({"prompt": "[1, 2] is what?"}, "items", None, "[1, 2] is what?", ()),
        ({"prompt": "[1, 2]", "id": "x"}, "items", "x", "[1, 2]", ()),
        ({"prompt": TALK, "id": 7}, "items", "7", "Why?", ()),
    ],
)
def test_items_are_read_as_their_makers_write_them(
    row: Row, layout: str, name: str | None, prompt: str, further: tuple[str, ...], tmp_path: Path
) -> None:
    words: list[str] = []
    for ending in ("jsonl", "json"):
        with noticing(words.append):
            (item,) = read_items(write(tmp_path / f"items.{ending}", [row]))
        assert (item.text, item.further) == (prompt, further)
        assert item.id == name if name else len(item.id) == 16
    assert {line.split(" is read as ")[1] for line in words} == {f"{layout}; rows left out: none"}


def test_what_comes_with_an_item_is_read_too(tmp_path: Path) -> None:
    (task,) = read_items(write(tmp_path / "tasks.parquet", [TASK]))
    assert task.prompt == (
        Message("user", "Hi"),
        Message("assistant", "Hello."),
        Message("user", "Why?"),
    )
    assert (task.checklist, task.tags) == (("Is it short?",), ("Math", "Planning"))
    (checked,) = read_items(write(tmp_path / "ifeval.jsonl", [CONSTRAINED]))
    assert checked.task is not None
    own = {"prompt": "2 + 2?", "reference": "4", "output": "Four.", "generator": "base"}
    (item,) = read_items(write(tmp_path / "own.csv", [own]))
    assert (item.references, item.baseline, item.generator) == (("4",), "Four.", "base")
    turns = {"question_id": 1, "turns": ["a?", "b?"], "reference": ["A", "B"]}
    (both,) = read_items(write(tmp_path / "mt.jsonl", [turns]))
    assert both.references == ("A", "B")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"question": "Why?"}], "no column 'prompt'.*'question'"),
        ([{"prompt": " "}], "Row 1 .*prompt ' '"),
        ([{"prompt": 3}], "Row 1 .*prompt 3"),
        ([{"prompt": [{"role": "assistant", "content": "x"}]}], "Row 1 .*'assistant'"),
        ([{"question_id": 1, "turns": []}], r"Row 1 .*turns \[\]"),
        ([{"question_id": 1, "turns": [{"text": "x"}]}], "Row 1 .*turns"),
        ([{"prompt": "a", "id": 1}, {"prompt": "b", "id": 1}], "Rows 1 and 2 .*both '1'"),
        ([{"prompt": "a"}, {"prompt": "a"}], "Rows 1 and 2"),
        ([{"prompt": "a", "reference": [1]}], r"reference \[1\]"),
        ([{"prompt": "a", "checklist": 3}], "checklist 3"),
        ([{**CONSTRAINED, "instruction_id_list": ["no:such"]}], "no:such"),
    ],
)
def test_what_is_no_item_is_quoted(rows: list[Row], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_items(write(tmp_path / "items.jsonl", rows))


MESSAGES = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": {"answer": "An answer."}},
]


@pytest.mark.parametrize(
    ("row", "model", "key", "turns"),
    [
        ({"instruction": "q", "output": "[1]", "generator": "m"}, "m", "q", ("[1]",)),
        ({"session_id": "s", "output": ["A."], "generator": "m"}, "m", "s", ("A.",)),
        (
            {"question_id": 1, "model_id": "m", "choices": [{"index": 0, "turns": ["A", "B"]}]},
            "m",
            "1",
            ("A", "B"),
        ),
        (
            {"question_id": 1, "model_id": "m", "choices": [{"turns": [{"content": "A"}]}]},
            "m",
            "1",
            ("A",),
        ),
        ({"uid": "u", "model": "m", "messages": MESSAGES}, "m", "u", ("An answer.",)),
        ({"id": 4, "response": "A", "model": "m"}, "m", "4", ("A",)),
        ({"id": 4, "response": "A", "model": "m", "prompt": "p"}, "m", "p", ("A",)),
        ({"prompt": "p", "response": "A"}, "answers", "p", ("A",)),
        ({"prompt": "p", "response": ["A", "B"]}, "answers", "p", ("A", "B")),
        ({"prompt": TALK, "response": "A"}, "answers", "Why?", ("A",)),
    ],
)
def test_answers_are_read_as_their_makers_write_them(
    row: Row, model: str, key: str, turns: tuple[str, ...], tmp_path: Path
) -> None:
    for ending in ("jsonl",) if "messages" in row else ("jsonl", "parquet"):
        answers = read_answers([write(tmp_path / f"answers.{ending}", [row])])
        assert answers[model][key] == turns


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "p", "text": "A"}, "holds no answers.*'text'"),
        ({"prompt": "p", "response": 3}, "Row 1 .*response 3"),
        ({"question_id": 1, "model_id": "m", "choices": []}, r"Row 1 .*choices \[\]"),
        ({"instruction": "p", "output": "A", "generator": None}, "Row 1 .*generator None"),
    ],
)
def test_what_is_no_answer_is_quoted(row: Row, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_answers([write(tmp_path / "answers.jsonl", [row])])


def test_an_answer_belongs_to_an_item_by_name_or_prompt_and_needs_all_turns(
    tmp_path: Path,
) -> None:
    rows = [{"question_id": 1, "turns": ["a?", "b?"]}, {"question_id": 2, "turns": ["c?"]}]
    both, one = read_items(write(tmp_path / "items.jsonl", rows))
    assert answer_to(both, {"1": ("A",)}) is None
    assert answer_to(both, {"1": ("A", "B")}) == ("A", "B")
    assert answer_to(one, {"c?": ("C",)}) == ("C",)
    assert answer_to(one, {"3": ("C",)}) is None


def test_published_outputs_and_the_first_answer_of_two_are_read(
    published_data: Path, tmp_path: Path
) -> None:
    answers = read_answers([published_data / "native" / "alpaca_eval_outputs.json"])
    assert {model: len(own) for model, own in answers.items()} == {"alpaca-7b": 60}
    items = read_items(published_data / "native" / "alpaca_eval_outputs.json")
    assert all(answer_to(item, answers["alpaca-7b"]) for item in items)
    twice = [{"id": 1, "response": text, "model": "m"} for text in ("first", "second")]
    assert read_answers([write(tmp_path / "twice.jsonl", twice)])["m"]["1"] == ("first",)


@pytest.mark.parametrize("blank", [None, "", " \n", [None], ["x", ""]])
def test_answers_that_are_null_or_blank_are_missing_and_counted(
    blank: object, tmp_path: Path
) -> None:
    rows: list[Row] = [
        {"instruction": "1?", "output": blank, "generator": "basalt"},
        {"instruction": "2?", "output": "2.", "generator": "basalt"},
        {"instruction": "2?", "output": "two", "generator": "basalt"},
        {"instruction": "2?", "output": "2.", "generator": "basalt"},
    ]
    path, words = write(tmp_path / "outputs.json", rows), list[str]()
    with noticing(words.append):
        assert read_answers([path]) == {"basalt": {"2?": ("2.",)}}
    assert words[1:] == [
        f"{path}: 1 answers are null or blank. They count as missing: models of the roster are "
        "asked for them, and the items of other models are excluded.",
        f"{path}: 1 rows answer an item again, with another answer of the same model. The first "
        "counts.",
    ]


def test_prompts_and_answers_in_content_blocks_are_their_texts(tmp_path: Path) -> None:
    block = [{"type": "text", "text": "Why?"}]
    (item,) = read_items(write(tmp_path / "items.json", [{"id": 1, "prompt": block}]))
    assert item.text == "Why?"
    rows: list[Row] = [{"id": 1, "response": [{"type": "text", "text": "So."}], "model": "basalt"}]
    assert read_answers([write(tmp_path / "a.json", rows)]) == {"basalt": {"1": ("So.",)}}
