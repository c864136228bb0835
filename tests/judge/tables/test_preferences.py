"""TRL's preferences as pairs, however they are written down, and whatever else stands there."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.tables.cases import read_cases, read_labels
from judge.tables.native import PREFERENCE, preference
from rating.errors import DataError
from rating.tables.columns import LEFT_OUT
from rating.tables.peers import noticing

TEXTS = st.text(min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def chosen_of(pair: dict[str, Any]) -> tuple[Any, Any]:
    """Give what was chosen and what was rejected, by the label."""
    a, b = pair["response_a"], pair["response_b"]
    return (a, b) if pair["label"] == "model_a" else (b, a)


@given(prompt=TEXTS, good=TEXTS, bad=TEXTS)
def test_texts_and_messages_with_and_without_a_prompt_mean_the_same(
    prompt: str, good: str, bad: str
) -> None:
    user, sides = message("user", prompt), [[message("assistant", text)] for text in (good, bad)]
    ways = [
        preference([user], *sides),
        preference(prompt, *sides),
        preference(None, [user, *sides[0]], [user, *sides[1]]),
    ]
    for pair in ways:
        assert chosen_of(pair) == (good, bad)
        assert pair["prompt"] == [user]
    plain = preference(prompt, good, bad)
    assert (plain["prompt"], chosen_of(plain)) == (prompt, (good, bad))


@given(row=st.tuples(JSON, JSON, JSON))
def test_anything_else_is_no_pair_and_no_error(row: tuple[Any, Any, Any]) -> None:
    pair = preference(*row)
    reason = pair.pop(LEFT_OUT)
    assert [*pair] == [*PREFERENCE]
    assert (pair["prompt"] is None) == (reason is not None)
    if reason:
        assert {*pair.values()} == {None}


def test_either_side_holds_about_half_of_what_was_chosen() -> None:
    labels = [preference(f"Question {n}?", "yes", "no")["label"] for n in range(400)]
    assert 160 <= labels.count("model_a") <= 240  # four standard deviations
    assert labels == [preference(f"Question {n}?", "yes", "no")["label"] for n in range(400)]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_that_tell_no_question_apart_are_left_out_and_counted(
    tmp_path: Path, ending: str
) -> None:
    talk = [message("user", "a"), message("assistant", "b"), message("user", "c")]
    rows: list[dict[str, Any]] = [
        {"prompt": [message("user", "2 + 2?")], "chosen": [message("assistant", "4")]},
        {"prompt": talk, "chosen": [message("assistant", "4")]},
        {"prompt": talk[:2], "chosen": [message("assistant", "4")]},
        {"prompt": [], "chosen": [message("user", "4")]},
    ]
    rows = [row | {"rejected": [message("assistant", "5")]} for row in rows]
    path = tmp_path / f"p.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        cells = [[json.dumps(row[n]) for n in ("prompt", "chosen", "rejected")] for row in rows]
        lines = (",".join('"' + one.replace('"', '""') + '"' for one in row) for row in cells)
        path.write_text("\n".join(["prompt,chosen,rejected", *lines]))
    words: list[str] = []
    with noticing(words.append):
        cases = read_cases([path])
    left_out = "2 without a question and an answer"
    assert words[0] == f"{path} is read as TRL preferences; rows left out: {left_out}"
    assert [len(case.case.prompt) for case in cases] == [1, 3]
    labels = read_labels(path)
    assert labels is not None
    for case, label in zip(cases, labels, strict=True):
        chosen = case.case.response_a if label > 0 else case.case.response_b
        assert chosen == "4"


def test_a_file_without_any_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"chosen": "Human: hi", "rejected": "Human: ho"}\n')
    with pytest.raises(DataError, match=r"TRL preferences.* 1 without a question and an answer"):
        read_cases([path])


HUMAN, ASSISTANT = "\n\nHuman: ", "\n\nAssistant: "


@pytest.mark.parametrize(
    ("prompt", "before", "turns"),
    [
        (None, f"{HUMAN}2 + 2?{ASSISTANT}", ["2 + 2?"]),
        (
            None,
            f"{HUMAN}Hi.{ASSISTANT}Hello.{HUMAN}2 + 2?{ASSISTANT}",
            ["Hi.", "Hello.", "2 + 2?"],
        ),
        (f"{HUMAN}2 + 2?{ASSISTANT}", "", ["2 + 2?"]),
    ],
)
def test_texts_of_hh_rlhf_are_split_at_the_last_answer_that_both_begin(
    prompt: str | None, before: str, turns: list[str]
) -> None:
    pair = preference(prompt, f"{before} It is 4.", f"{before} It is 5, a sum.")
    assert [one["content"] for one in pair["prompt"]] == turns
    assert chosen_of(pair) == ("It is 4.", "It is 5, a sum.")


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [
        (f"{HUMAN}Hi.{ASSISTANT}Yes.", f"{HUMAN}Ho.{ASSISTANT}No."),
        (f"{HUMAN}Hi.", f"{HUMAN}Hi."),
        (f"{HUMAN}a{ASSISTANT}b{HUMAN}c{ASSISTANT}d", f"{HUMAN}a{ASSISTANT}e"),
        ("Human: Hi. Assistant: Yes.", "Human: Hi. Assistant: No."),
    ],
)
def test_texts_without_a_question_that_both_answer_are_no_pair(chosen: str, rejected: str) -> None:
    pair = preference(None, chosen, rejected)
    assert pair["prompt"] is None
    assert pair[LEFT_OUT]


def test_a_prompt_that_both_conversations_repeat_is_shown_once() -> None:
    """UltraFeedback binarized: a text, and conversations that begin with it."""
    asked = message("user", "2 + 2?")
    good, bad = message("assistant", "4"), message("assistant", "5")
    pair = preference("2 + 2?", [asked, good], [asked, bad])
    assert (pair["prompt"], chosen_of(pair)) == ([asked], ("4", "5"))
    system = message("system", "Be short.")
    pair = preference([asked], [system, asked, good], [system, asked, bad])
    assert (pair["prompt"], chosen_of(pair)) == ([system, asked], ("4", "5"))
    later = [asked, good, message("user", "Plus 1?")]
    pair = preference("2 + 2?", [*later, message("assistant", "5")], [*later, good])
    assert (pair["prompt"], chosen_of(pair)) == (later, ("5", "4"))
    in_blocks = {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}
    assert preference(None, [in_blocks, good], [in_blocks, bad])["prompt"] == [asked]


def test_preferences_with_the_prompt_in_another_column_and_a_system_message(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orca.jsonl"
    row = {"system": "Be short.", "question": "2 + 2?", "chosen": "4", "rejected": "It is 5."}
    path.write_text("".join(json.dumps(one) + "\n" for one in (row, row | {"system": ""})))
    shown = [[(turn.role, turn.content) for turn in one.case.prompt] for one in read_cases([path])]
    assert shown == [[("system", "Be short."), ("user", "2 + 2?")], [("user", "2 + 2?")]]
