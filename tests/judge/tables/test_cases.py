"""Cases, instructions to check and battles: what is read or refused, and what waits on disk."""

import csv
import gc
import json
import math
import tracemalloc
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.domain.battle import BattleState, Side
from arena.judging import battle_cases
from arena.store.chain import AnswerKey
from arena.store.store import Store
from judge.calls import Key
from judge.case import Case, FailureClass, Message, Reply, Request
from judge.grammar import Reading
from judge.ifeval import Checked, Task, check
from judge.methods import method
from judge.tables import annotations
from judge.tables.cases import (
    GoldPair,
    NamedCase,
    bare,
    each_pair,
    on_disk,
    read_cases,
    read_gold,
    read_instructed,
    read_labels,
    read_responses,
)
from judge.verdict import by_case
from rating import Outcome
from rating.errors import DataError, LayoutError
from rating.tables.files import Files
from rating.tables.peers import noticing
from tests.arena.store.battles import A1, B1, MODELS, NOW, complete, new_battle, ready
from tests.command import Command, refused
from tests.judge.runs import judge
from tests.judge.scripted import MemoryJournal, case, judged
from tests.judge.scripted import cases as some_cases
from tests.rating.tables.peer_rows import written
from tests.sqlite import new_sqlite

PAIR = {"prompt": "Why?", "response_a": "So.", "response_b": "Thus."}
CASE = Case((Message("user", "Why?"),), "So.", "Thus.")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_file_of_pairs_gives_cases_with_names_beside_them(tmp_path: Path, kind: str) -> None:
    names = {"model_a": "basalt", "model_b": "flint", "battle_id": "b1", "prompt_id": "p1"}
    cases = read_cases([written(tmp_path, f"pairs.{kind}", [PAIR | names])])
    assert cases == [NamedCase("b1", "p1", ("basalt", "flint"), CASE)]


def test_what_is_not_named_is_named_by_its_content_and_side(tmp_path: Path) -> None:
    rows = [{"instruction": "Why?", "output_1": "So.", "output_2": "Thus."}]
    (cases,) = read_cases([written(tmp_path, "pairs.jsonl", rows)])
    assert cases.case == CASE
    assert CASE.id.startswith(cases.battle_id)
    assert CASE.prompt_id.startswith(cases.prompt_id)
    assert cases.models == ("response_a", "response_b")


UNKNOWN: dict[str, dict[str, Any]] = {
    "sides": {
        "question": "Why?",
        "answer_1": "So.",
        "answer_2": "Thus.",
        "system_1": "basalt",
        "system_2": "flint",
    },
    "nested": {
        "input": {"instruction": "Why?"},
        "outputs": [{"model": "basalt", "text": "So."}, {"model": "flint", "text": "Thus."}],
    },
    "camel": {"userPrompt": "Why?", "leftText": "So.", "rightText": "Thus."},
}


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("layout", UNKNOWN)
def test_one_message_gives_the_options_that_read_cases_in_an_unknown_layout(
    layout: str, kind: str, tmp_path: Path
) -> None:
    row = UNKNOWN[layout]
    if kind == "csv":
        row = {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()}
    path = written(tmp_path, f"cases.{kind}", [row])
    with pytest.raises(LayoutError, match=r"The layout of .* is not known") as raised:
        read_cases([path])
    columns = tuple(word.partition("=")[::2] for word in raised.value.options[1::2])
    words: list[str] = []
    with noticing(words.append):
        (named,) = read_cases([Files((path,), columns)])
    assert named.case == CASE
    assert named.models in [("basalt", "flint"), ("response_a", "response_b")]
    assert words == []


def test_a_prompt_may_be_a_conversation(tmp_path: Path) -> None:
    turns = [("user", "Hi."), ("assistant", "Hello."), ("user", "Why?")]
    prompt = [{"role": role, "content": content} for role, content in turns]
    (cases,) = read_cases([written(tmp_path, "pairs.jsonl", [PAIR | {"prompt": prompt}])])
    assert [(turn.role, turn.content) for turn in cases.case.prompt] == turns


def test_two_files_of_outputs_are_matched_by_their_instructions(tmp_path: Path) -> None:
    def outputs(name: str, *asked: str) -> Path:
        rows = [{"instruction": q, "output": f"{name}: {q}", "generator": name} for q in asked]
        return written(tmp_path, f"{name}.json", rows)

    cases = read_cases([outputs("basalt", "1?", "2?", "3?"), outputs("flint", "3?", "1?")])
    assert [c.models for c in cases] == [("basalt", "flint")] * 2
    assert [(c.case.response_a, c.case.response_b) for c in cases] == [
        ("basalt: 1?", "flint: 1?"),
        ("basalt: 3?", "flint: 3?"),
    ]
    with pytest.raises(DataError, match="no prompt in common"):
        read_cases([outputs("basalt", "1?"), outputs("flint", "2?")])


def outputs(path: Path, *rows: tuple[str, str | None]) -> Path:
    """Write answers to prompts as AlpacaEval does; the file names the model."""
    named = [{"instruction": q, "output": text, "generator": path.stem} for q, text in rows]
    return written(path.parent, path.name, named)


def said_of(paths: list[Path]) -> tuple[list[NamedCase], list[str]]:
    words: list[str] = []
    with noticing(words.append):
        return read_cases(paths), words


def test_outputs_without_a_partner_are_counted_on_each_side_and_named(tmp_path: Path) -> None:
    a = outputs(tmp_path / "basalt.jsonl", *((f"{n}?", f"{n}.") for n in range(12)))
    b = outputs(tmp_path / "flint.jsonl", *((f"{n}?", f"{n}!") for n in range(8, 14)))
    cases, words = said_of([a, b])
    assert len(cases) == 4
    assert words == [
        f"8 prompts of '{a}' have no answer in '{b}', the first is '0?'; 2 prompts of '{b}' have "
        f"no answer in '{a}', the first is '12?'. They are excluded."
    ]
    with pytest.raises(DataError, match=r"no prompt in common: 8 .*'0\?'; 1 .*'13\?'"):
        read_cases(
            [
                outputs(tmp_path / "c.jsonl", *((f"{n}?", "c") for n in range(8))),
                outputs(tmp_path / "d.jsonl", ("13?", "d")),
            ]
        )


@pytest.mark.parametrize(
    "other", ["Why\u00a0is  it so\u00e9?", "Why is it soe\u0301?", "Why is\u200b it so\u00e9?\n"]
)
def test_prompts_that_look_alike_are_not_matched_and_it_is_said(
    tmp_path: Path, other: str
) -> None:
    a = outputs(tmp_path / "basalt.jsonl", ("Why is it so\u00e9?", "So."), ("2?", "2."))
    b = outputs(tmp_path / "flint.jsonl", (other, "Thus."), ("2?", "Two."))
    cases, words = said_of([a, b])
    assert [named.case.response_b for named in cases] == ["Two."]
    assert "1 of them differ from one of the other file only in white space" in words[0]


def test_of_prompts_that_come_twice_the_first_answer_counts_and_it_is_said(tmp_path: Path) -> None:
    a = outputs(tmp_path / "basalt.jsonl", ("1?", "1."), ("2?", "2."), ("2?", "two"), ("1?", "1."))
    of_another = {"instruction": "1?", "output": "1.", "generator": "slate"}
    a.write_text(f"{a.read_text()}{json.dumps(of_another)}\n")
    b = outputs(tmp_path / "flint.jsonl", ("1?", "One."), ("2?", "Two."))
    cases, words = said_of([a, b])
    assert [named.case.response_a for named in cases] == ["1.", "2."]
    assert words == [
        f"{a}: 2 rows answer a prompt again, with another answer or by another model, the first "
        "is '2?'. The first counts: choose one answer to each prompt with --where."
    ]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_rows_without_an_answer_are_excluded_and_counted(tmp_path: Path, kind: str) -> None:
    rows: list[dict[str, Any]] = [
        PAIR,
        PAIR | {"response_a": None},
        PAIR | {"response_b": " "},
        PAIR,
    ]
    path = written(tmp_path, f"pairs.{kind}", rows)
    cases, words = said_of([path])
    assert [named.case for named in cases] == [CASE, CASE]
    assert words == [
        f"{path}: no answer on a side (null or blank) in 2 of 4 rows, which are excluded: "
        "ask the models again, or choose others by --where."
    ]
    singles: list[str] = []
    with noticing(singles.append):
        assert len(read_responses([path])) == 6
    assert singles[0].startswith(f"{path}: no answer (null or blank) in 2 of 4 rows")


def test_labels_stay_beside_their_cases_where_rows_are_excluded(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        PAIR | {"response_a": None, "label": "tie"},
        PAIR | {"label": "model_b"},
    ]
    path = written(tmp_path, "pairs.jsonl", rows)
    labels = read_labels(path)
    assert labels is not None
    assert labels.tolist() == [-1.0]


def test_a_label_is_that_of_judgebench_of_llmbar_or_of_a_winner(tmp_path: Path) -> None:
    sides = {"A>B": 1.0, "1": 1, "A": 1, "model_a": 1}
    sides |= {"B>A": -1, "2": -1, "B": -1, "model_b": -1}
    sides |= {"A=B": 0, "tie": 0, "both_bad": 0, "skip": math.nan, "": math.nan}
    labels = read_labels(written(tmp_path, "p.jsonl", [PAIR | {"label": one} for one in sides]))
    assert labels is not None
    assert labels.tolist() == pytest.approx([*sides.values()], nan_ok=True)


def test_gold_pairs_come_once_with_the_right_side_and_what_is_left_out_is_counted(
    tmp_path: Path,
) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    named = PAIR | {"model_a": "basalt", "model_b": "flint"}
    rows: list[dict[str, Any]] = [
        named | {"gold": "B>A"},
        PAIR | {"model_a": "flint", "model_b": "basalt", "gold": "A>B"},
        named | {"prompt": "Who?", "gold": "1"},
        named | {"prompt": "When?", "gold": ""},
        named | {"prompt": [*talk, talk[0]], "gold": "1"},
    ]
    pairs, left_out = read_gold(written(tmp_path, "gold.jsonl", rows))
    sides = ("basalt", "flint"), ("So.", "Thus.")
    assert pairs == [
        GoldPair("Why?", *sides, right=Outcome.B),
        GoldPair("Who?", *sides, right=Outcome.A),
    ]
    assert left_out == {
        "no right answer": 1,
        "several turns, or an empty answer": 1,
        "the same prompt and models again": 1,
    }


def test_a_wrong_row_behind_an_excluded_one_keeps_its_number(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [PAIR | {"response_a": None}, PAIR, PAIR | {"response_a": 4}]
    with pytest.raises(DataError, match=r"Row 3 of .* has response_a 4"):
        read_cases([written(tmp_path, "pairs.jsonl", rows)])


def test_a_file_without_any_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no answer on a side .null or blank. in 1 of 1 rows"):
        read_cases([written(tmp_path, "pairs.jsonl", [PAIR | {"response_a": None}])])
    a = outputs(tmp_path / "a.jsonl", ("1?", None))
    with pytest.raises(DataError, match=r"no answer .null or blank. in 1 of 1 rows"):
        read_cases([a, outputs(tmp_path / "b.jsonl", ("1?", "One."))])


def test_the_first_of_several_files_of_outputs_meets_each_of_the_others(tmp_path: Path) -> None:
    def outputs(name: str, *asked: str) -> Path:
        rows = [{"instruction": q, "output": f"{name}: {q}", "generator": name} for q in asked]
        return written(tmp_path, f"{name}.jsonl", rows)

    files = [outputs("basalt", "1?", "2?"), outputs("flint", "2?"), outputs("slate", "1?", "2?")]
    cases = [(c.models[1], c.case.response_a, c.case.response_b) for c in read_cases(files)]
    assert cases == [
        ("flint", "basalt: 2?", "flint: 2?"),
        ("slate", "basalt: 1?", "slate: 1?"),
        ("slate", "basalt: 2?", "slate: 2?"),
    ]


def test_a_baseline_may_be_named_beside_the_model(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        PAIR | {"model": "basalt", "baseline": name} for name in ("flint", "slate")
    ]
    cases = read_cases([written(tmp_path, "pairs.jsonl", rows)])
    assert [c.models for c in cases] == [("basalt", "flint"), ("basalt", "slate")]


def test_single_responses_come_from_either_kind_of_file(tmp_path: Path) -> None:
    own = {"prompt": "Why?", "response": "So.", "model": "basalt", "session_id": "s1"}
    theirs = {"instruction": "Why?", "output": "Thus.", "generator": "flint"}
    files = [written(tmp_path, "own.jsonl", [own]), written(tmp_path, "theirs.jsonl", [theirs])]
    one, other = read_responses(files)
    assert (one.models, one.session_id, one.case.response_a) == (("basalt",), "s1", "So.")
    assert (other.models[0], other.case.response_b, other.session_id) == ("flint", None, None)
    pairs = written(tmp_path, "pairs.jsonl", [PAIR | {"battle_id": "b1", "model_a": "basalt"}])
    cases = [(c.battle_id, c.models[0], c.case.response_a) for c in read_responses([pairs])]
    assert cases == [("b1", "basalt", "So."), ("b1", "response_b", "Thus.")]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_checklist_is_read_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    items = ["Is it short?", "Does it say: yes; no?"]
    rows: list[dict[str, Any]] = [PAIR | {"checklist": items}, PAIR]
    if kind == "csv":
        rows = [PAIR | {"checklist": json.dumps(items)}, PAIR | {"checklist": " "}]
    cases = read_cases([written(tmp_path, f"pairs.{kind}", rows)])
    assert [named.checklist for named in cases] == [tuple(items), ()]


@pytest.mark.parametrize("bad", [5, [1], [""], {"a": "Is it?"}])
def test_what_is_no_checklist_is_quoted(tmp_path: Path, bad: object) -> None:
    with pytest.raises(DataError, match=r"Row 1 .* has checklist .*: give a list of questions"):
        read_cases([written(tmp_path, "pairs.jsonl", [PAIR | {"checklist": bad}])])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "Why?", "response_a": "So."}, "No column is taken for response_b"),
        (PAIR | {"response_a": 4}, "Row 1 .* has response_a 4: give a text"),
        (PAIR | {"prompt": []}, "Row 1 .* ends with the user"),
        (PAIR | {"prompt": [{"role": "user"}]}, "Row 1 .* ends with the user"),
        (PAIR | {"prompt": [{"role": "boss", "content": "Go."}]}, "Row 1 .* has prompt"),
        (PAIR | {"battle_id": None}, "Row 1 .* has no battle_id"),
    ],
)
def test_what_is_no_case_is_quoted(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_cases([written(tmp_path, "pairs.jsonl", [row])])


TURNS = {
    "prompt": ["2 + 2?", "Plus 1?"],
    "response_a": ["Four.", "Five."],
    "response_b": ["4.", "6."],
    "reference": ["4", "5"],
}
TALK = Case(
    (Message("user", "2 + 2?"), Message("user", "Plus 1?")),
    "Five.", "6.", ("Four.",), ("4.",), "4\n\n5",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_each_side_may_have_turns_of_its_own(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, f"pairs.{kind}", [TURNS])
    (named,) = read_cases([path])
    assert named.case == TALK
    assert [one.case.earlier_a for one in read_responses([path])] == [("Four.",), ("4.",)]
    blank = written(tmp_path, f"blank.{kind}", [TURNS | {"response_b": [" ", "6."]}])
    assert [one.case.response_a for one in read_responses([blank])] == ["Five."]
    apart = [
        written(tmp_path, f"{side}.{kind}", [{"prompt": TURNS["prompt"], "response": TURNS[side]}])
        for side in ("response_a", "response_b")
    ]
    assert read_cases(apart)[0].case == replace(TALK, reference=None)
    assert named.case.swapped().swapped() == TALK
    assert len({TALK.id, TALK.swapped().id, Case(TALK.prompt, "Five.", "6.").id}) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"response_b": ["6."]}, "Row 1 of .*With 1 and 0 earlier responses"),
        ({"prompt": "2 + 2?"}, "this one has 0"),
        ({"response_a": ["Four.", 5]}, "Row 1 .* has response_a .*a list of one for each turn"),
        ({"response_a": []}, "Row 1 .* has response_a"),
        ({"reference": 4}, "Row 1 .* has reference 4: give a text"),
        ({"prompt": ["2 + 2?", 1]}, "Row 1 .* has prompt .*the list of the user's turns"),
    ],
)
def test_turns_that_do_not_fit_are_quoted(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_cases([written(tmp_path, "pairs.jsonl", [TURNS | change])])


def test_a_column_that_nobody_reads_is_mentioned(tmp_path: Path) -> None:
    words: list[str] = []
    path = written(tmp_path, "pairs.jsonl", [PAIR | {"id": 7, "sesion_id": "s1", "winner": "tie"}])
    with noticing(words.append):
        read_cases([path])
    assert words == [
        f"{path} has 'sesion_id', which no judge is shown: rename what is misspelt (--column)."
    ]
    renamed = Files((str(path),), (("session_id", "sesion_id"),))
    with noticing(words.append):
        assert read_cases([renamed])[0].session_id == "s1"
    assert len(words) == 1
    assert read_cases([Files((str(path),), (("battle_id", "id"),))])[0].battle_id == "7"


def test_several_files_of_pairs_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "pairs.jsonl", [PAIR])
    with pytest.raises(DataError, match="no column 'output'"):
        read_cases([path] * 3)


def test_battles_of_one_turn_with_two_whole_answers_are_cases(tmp_path: Path) -> None:
    store = Store(new_sqlite(tmp_path))
    store.register(MODELS, NOW)
    with pytest.raises(DataError, match="let people play first"):
        battle_cases(store)
    ready(store, "several turns")
    store.add_turn("several turns", "ada", "And then?", NOW)
    later = {AnswerKey(2, side, 1): complete() for side in Side}
    store.close_answers("several turns", BattleState.READY, later, message=None, now=NOW)
    store.open_battle(new_battle("running"))
    store.open_battle(new_battle("b1"))
    ends = {A1: complete("Blue is scattered more."), B1: complete()}
    store.close_answers("b1", BattleState.READY, ends, message=None, now=NOW)
    prompt = (Message("user", "Why is the sky blue?"),)
    case = Case(prompt, "Blue is scattered more.", "Scattering.")
    assert battle_cases(store) == [NamedCase("b1", "p1", ("basalt", "quartz"), case)]
    store.add_attempts("b1", "ada", NOW, only_incomplete=False)
    with pytest.raises(DataError, match="let people play first"):
        battle_cases(store)
    store.close()


TASKS: list[dict[str, Any]] = [
    {
        "key": 1,
        "prompt": "Name two fruits. No commas, at least 3 words.",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"num_words": 3, "relation": "at least"}],
    },
    {
        "key": 2,
        "prompt": "Use moon.",
        "instruction_id_list": ["keywords:existence"],
        "kwargs": [{"keywords": ["moon"]}],
    },
]
ANSWERS = ["Sure, gladly:\napple and pear", "The moon."]
RESPONSES = [
    {"prompt": task["prompt"], "response": answer, "model": "basalt"}
    for task, answer in zip(TASKS, ANSWERS, strict=True)
]
BOTH = [task | response for task, response in zip(TASKS, RESPONSES, strict=True)]


def checked(instructed: list[tuple[NamedCase, Task]]) -> list[Checked]:
    return [check(task, named.case.response_a) for named, task in instructed]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_instructions_are_read_beside_the_responses(tmp_path: Path, kind: str) -> None:
    rows = BOTH
    if kind == "csv":
        as_json = {"instruction_id_list", "kwargs"}
        rows = [row | {name: json.dumps(row[name]) for name in as_json} for row in BOTH]
    outcome = checked(read_instructed([written(tmp_path, f"both.{kind}", rows)]))
    assert [(one.strict, one.loose) for one in outcome] == [
        ((False, True), (True, True)),
        ((True,), (True,)),
    ]


def test_instructions_are_matched_to_responses_by_their_prompt(tmp_path: Path) -> None:
    tasks = written(tmp_path, "input_data.jsonl", TASKS)
    instructed = read_instructed([tasks, written(tmp_path, "responses.jsonl", RESPONSES[::-1])])
    assert [task.prompt for _, task in instructed] == [task["prompt"] for task in TASKS[::-1]]
    assert checked(instructed)[0].strict == (True,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (RESPONSES, "No file holds instructions .* for the prompt 'Name two fruits"),
        (TASKS, "There is no response in "),
        ([BOTH[0] | {"kwargs": [{}]}], "Row 1 of .*one mapping for each of the 2 ids"),
        ([BOTH[0] | {"instruction_id_list": "no_comma"}], "Row 1 of .*'no_comma'"),
        ([RESPONSES[0] | {"instruction_id_list": ["x:y"]}], "no column 'kwargs'"),
    ],
)
def test_what_cannot_be_checked_is_quoted(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_instructed([written(tmp_path, "rows.jsonl", rows)])


def test_the_command_checks_without_a_judge_and_without_a_database(
    command: Command, tmp_path: Path
) -> None:
    written(tmp_path, "both.jsonl", BOTH)
    words = ("judge", "run", "--method", "ifeval", "--cases", "both.jsonl")
    done = command(*words, "--out", "found.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "basalt: prompt strict 50%" in done.stdout
    assert not (tmp_path / "arena.db").exists()
    with (tmp_path / "found.csv").open(encoding="utf-8") as lines:
        first, second = csv.DictReader(lines)
    assert (first["model"], first["score"], first["status"]) == ("basalt", "0.0", "read")
    assert json.loads(first["detail"])["items"] == [
        {"id": "punctuation:no_comma", "strict": False, "loose": True},
        {"id": "length_constraints:number_words", "strict": True, "loose": True},
    ]
    assert second["score"] == "1.0"
    shares = json.loads(command(*words, "--out", "found.csv", "--format", "json").stdout)
    (row,) = shares["models"]
    rates = [row[name]["rate"] for name in ("prompt_strict", "prompt_loose", "instruction_strict")]
    assert rates == [0.5, 1.0, pytest.approx(2 / 3)]
    refused(command(*words, "--judge", "x", "--out", "found.csv"), "omit --judge x")
    refused(command(*words, "--dry-run"), "name the file to write with --out")


def test_a_response_that_is_null_is_no_failure_but_excluded_and_counted(tmp_path: Path) -> None:
    row = TASKS[0] | {"response": "a"}
    path, words = written(tmp_path, "both.jsonl", [row | {"response": None}, row]), list[str]()
    with noticing(words.append):
        assert len(read_instructed([path])) == 1
    assert words[0].startswith(f"{path}: null responses, excluded: 1 of 2.")


def test_a_response_that_is_blank_follows_nothing_and_counts(tmp_path: Path) -> None:
    rows = [TASKS[0] | {"response": text} for text in ("", " ", "a")]
    assert len(instructed := read_instructed([written(tmp_path, "both.jsonl", rows)])) == 3
    assert [one.all_strict for one in checked(instructed)][:2] == [False, False]


TEXT = st.text()
DRAWN = st.builds(
    Case,
    st.lists(st.builds(Message, st.sampled_from(["system", "assistant"]), TEXT), max_size=2).map(
        lambda turns: (*turns, Message("user", "?"))
    ),
    TEXT,
    st.none() | TEXT,
    reference=st.none() | TEXT,
)
NAMED = st.builds(
    NamedCase,
    TEXT,
    TEXT,
    st.tuples(TEXT) | st.tuples(TEXT, TEXT),
    DRAWN,
    st.none() | TEXT,
    st.lists(TEXT).map(tuple),
)


class Forgetful(MemoryJournal):
    """A journal that keeps nothing, so that what a run holds is the run's own."""

    async def keep(self, key: Key, request: Request, reply: Reply) -> None:
        await self.release([key])

    async def note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        pass

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        return frozenset(keys)


@given(st.lists(NAMED, max_size=5))
@settings(deadline=None)
def test_cases_come_back_from_disk_as_they_were(some: list[NamedCase]) -> None:
    stored = on_disk(iter(some))
    assert [*stored] == some
    assert [*bare(stored)] == [named.case for named in some]
    assert stored[-2:] == some[-2:]
    assert [stored[-1 - at] for at in range(len(some))] == some[::-1]


def pairs_file(folder: Path, n: int, ending: str, *last: dict[str, object]) -> Path:
    rows = [{"prompt": f"{i}?", "response_a": f"{i}.", "response_b": "No."} for i in range(n)]
    return written(folder, f"pairs.{ending}", [*rows, *last])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_gives_the_same_cases_in_pieces_and_names_the_row_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = pairs_file(tmp_path, 7, ending)
    whole = read_cases([path])
    monkeypatch.setattr(annotations, "PIECE", 3)
    in_pieces = [*each_pair([path])]
    assert in_pieces == whole
    assert [one.case.response_a for one in in_pieces] == [f"{i}." for i in range(7)]


def test_a_value_in_a_later_piece_is_quoted_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotations, "PIECE", 3)
    bad: dict[str, object] = {"prompt": "x?", "response_a": 5, "response_b": "No."}
    path = pairs_file(tmp_path, 7, "jsonl", bad)
    with pytest.raises(DataError, match=r"Row 8 of .* has response_a 5: give a text"):
        [*each_pair([path])]
    path.write_text('{"prompt": "a?", "response_a": "b"}\n{"prompt"', encoding="utf-8")
    with pytest.raises(DataError, match="Line 2"):
        [*each_pair([path])]
    path.write_bytes(b'{"prompt": "a?"}\n{"prompt": "\xff"}\n')
    with pytest.raises(DataError, match=r"Line 2 .* is not UTF-8 \(byte 0xff\)"):
        [*each_pair([path])]


async def held(n: int) -> int:
    stored = on_disk(NamedCase("b", "p", ("basalt", "flint"), one) for one in some_cases(n))
    tracemalloc.start()
    run = await judged(
        bare(stored),
        method("pairwise"),
        judge(latency_s=0.001),
        Forgetful(),
        progress=lambda _: None,
    )
    gc.collect()  # cycles go by themselves, 50,000 objects at a time
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(run.judged) == 2 * n
    assert {row.status for row in run.judged} == {"read"}
    assert all(len(row.keys) == 1 for row in run.judged)
    return size


@pytest.mark.slow
async def test_what_a_run_holds_grows_by_a_hundred_bytes_a_call() -> None:
    await held(50)  # what is loaded at the first
    few, many = await held(200), await held(1200)
    assert (many - few) / 2000 < 150


async def test_a_case_that_comes_twice_is_asked_once_and_stands_in_both_rows() -> None:
    asked = [case(1), case(2), case(1)]
    run = await judged(asked, method("pairwise"), judge(), MemoryJournal())
    assert [len(rows) for rows in by_case(run.judged)] == [2, 2]
    assert run.judged[-1] == run.judged[3]
    with pytest.raises(IndexError):
        run.judged[4]
