"""Prompts, answers and difficulties of benchmarks, as their makers write them, or not."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.case import Message
from judge.tables.items import (
    Item,
    answer_to,
    of_items,
    read_answers,
    read_difficulties,
    read_items,
    read_regularisation,
    referred,
)
from rating.errors import DataError
from tests.rating.tables.peer_rows import written
from tests.rating.tables.sources import messages_of

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
    for ending in ("jsonl", "json"):
        (item,), words = messages_of(read_items, written(tmp_path, f"items.{ending}", [row]))
        assert (item.text, item.further) == (prompt, further)
        assert item.id == name if name else len(item.id) == 16
        sentence = {line.split(" is read as ")[1] for line in words}
        assert sentence == {f"{layout}; rows excluded: none"}


def test_what_comes_with_an_item_is_read_too(tmp_path: Path) -> None:
    (task,) = read_items(written(tmp_path, "tasks.parquet", [TASK]))
    expected = (Message("user", "Hi"), Message("assistant", "Hello."), Message("user", "Why?"))
    assert task.prompt == expected
    assert (task.checklist, task.tags) == (("Is it short?",), ("Math", "Planning"))
    (checked,) = read_items(written(tmp_path, "ifeval.jsonl", [CONSTRAINED]))
    assert checked.task is not None
    own = {"prompt": "2 + 2?", "reference": "4", "output": "Four.", "generator": "base"}
    (item,) = read_items(written(tmp_path, "own.csv", [own]))
    assert (item.references, item.baseline, item.generator) == (("4",), "Four.", "base")
    kinds = [replace(item, category=kind) for kind in (None, "math", "writing")]
    given = [one.references for one in referred(kinds, {item.id: ("5",)})]
    assert given == [("5",), ("5",), ()], "upstream shows none where answers are free"
    turns = {"question_id": 1, "turns": ["a?", "b?"], "reference": ["A", "B"]}
    (both,) = read_items(written(tmp_path, "mt.jsonl", [turns]))
    assert (both.prompt[0].content, both.references) == ("a?", ())  # notes are no answers


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
        read_items(written(tmp_path, "items.jsonl", rows))


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
        answers = read_answers([written(tmp_path, f"answers.{ending}", [row])])
        assert answers[model][key] == turns


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "p", "text": "A"}, "holds no answers.*'text'"),
        ({"prompt": "p", "response": 3}, "Row 1 .*response 3"),
        ({"question_id": 1, "model_id": "m", "choices": []}, r"Row 1 .*choices \[\]"),
        ({"instruction": "p", "output": "A", "generator": None}, "Row 1 .*no generator"),
    ],
)
def test_what_is_no_answer_is_quoted(row: Row, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_answers([written(tmp_path, "answers.jsonl", [row])])


def test_an_answer_belongs_to_an_item_by_name_or_prompt_and_needs_all_turns(
    tmp_path: Path,
) -> None:
    rows = [{"question_id": 1, "turns": ["a?", "b?"]}, {"question_id": 2, "turns": ["c?"]}]
    both, one = read_items(written(tmp_path, "items.jsonl", rows))
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
    assert read_answers([written(tmp_path, "twice.jsonl", twice)])["m"]["1"] == ("first",)


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
    path = written(tmp_path, "outputs.json", rows)
    answers, words = messages_of(read_answers, [path])
    assert answers == {"basalt": {"2?": ("2.",)}}
    assert words[1:] == [
        f"{path}: answers that are null or blank, and so missing: 1. Models of the roster are "
        "asked for them, and the items of other models are excluded.",
        f"{path}: rows with another answer of the same model to an item: 1. The first counts.",
    ]


def test_prompts_and_answers_in_content_blocks_are_their_texts(tmp_path: Path) -> None:
    block = [{"type": "text", "text": "Why?"}]
    (item,) = read_items(written(tmp_path, "items.json", [{"id": 1, "prompt": block}]))
    assert item.text == "Why?"
    rows: list[Row] = [{"id": 1, "response": [{"type": "text", "text": "So."}], "model": "basalt"}]
    assert read_answers([written(tmp_path, "a.json", rows)]) == {"basalt": {"1": ("So.",)}}


ITEMS = [
    Item(id=f"i{n}", prompt=(Message("user", text),))
    for n, text in enumerate(["What is lava?", "Who was first?", "Say it in verse."])
]


def in_lines(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sha(n: int) -> str:
    return hashlib.sha256(ITEMS[n].text.encode()).hexdigest()[:8]


def test_alpaca_evals_own_files_are_read_as_they_are(tmp_path: Path) -> None:
    difficulties = in_lines(tmp_path / "d.csv", "index,instruction_difficulty", "0,-1.5", "1,0.25")
    table = read_difficulties(difficulties)
    assert (table.texts("idx"), table.numbers("difficulty").tolist()) == (["0", "1"], [-1.5, 0.25])
    gamed = in_lines(
        tmp_path / "g.csv",
        "preference,index,std_delta_len,instruction_difficulty,not_gamed_baseline,model",
        "0.75,1,-0.5,0.25,False,verbose",
    )
    block = read_regularisation(gamed)
    row = {name: block.numbers(name)[0] for name in ("pseudo_y", "x_len", "weight")}
    assert row == {"pseudo_y": 0.75, "x_len": pytest.approx(math.tanh(-0.5)), "weight": 0.1}


@pytest.mark.parametrize(
    "lines",
    [
        ["idx,difficulty,instruction", *(f"{n},{n},{one.text}" for n, one in enumerate(ITEMS))],
        ["difficulty,instruction", *(f"{n},{one.text}" for n, one in enumerate(ITEMS))],
        ["idx,difficulty,instruction_sha256", *(f"9{n},{n},{sha(n)}" for n in range(3))],
        ["idx,difficulty", *(f"{one.id},{n}" for n, one in enumerate(ITEMS))],
        ["index,instruction_difficulty", *(f"{n},{n}" for n in range(3))],
    ],
)  # fmt: skip
def test_instructions_are_known_by_text_hash_name_or_place(
    tmp_path: Path, lines: list[str]
) -> None:
    table, block = of_items(read_difficulties(in_lines(tmp_path / "d.csv", *lines)), None, ITEMS)
    expected = {"i0": 0.0, "i1": 1.0, "i2": 2.0}
    assert dict(zip(table.texts("idx"), table.numbers("difficulty"), strict=True)) == expected
    assert block is None


def test_gamed_rows_go_by_the_names_that_difficulties_get(tmp_path: Path) -> None:
    lines = [f"{n},{n},{one.text}" for n, one in enumerate(ITEMS)]
    more = in_lines(tmp_path / "d.csv", "idx,difficulty,instruction", *lines, "3,3,Another one.")
    gamed = in_lines(tmp_path / "g.csv", "idx,x_len,pseudo_y,weight", "2,0,1,1", "3,0,1,1")
    table, block = of_items(read_difficulties(more), read_regularisation(gamed), ITEMS)
    assert block is not None
    assert block.texts("idx") == ["i2", "3"], "an instruction that no item has holds its own"
    assert table.texts("idx")[-1] == "3"


def test_a_place_is_none_where_not_every_item_has_a_row(tmp_path: Path) -> None:
    """Of 805 difficulties, those of a handful of instructions would go to the wrong ones."""
    lines = ["index,instruction_difficulty", *(f"{n},{n}" for n in range(805))]
    file = read_difficulties(in_lines(tmp_path / "d.csv", *lines))
    with pytest.raises(DataError, match="difficulty of none of the 3 items"):
        of_items(file, None, ITEMS)
