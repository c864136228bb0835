"""Recorded runs of agents from files: both forms, pairs, and what is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.case import Step, first_difference
from judge.labels.accuracy import names_in_runs, tools_of_one
from judge.tables.agent_runs import read_agent_runs
from rating.errors import DataError
from tests.agent_runs import ITEMS, recorded, run, write_runs

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Use tools."},
    {"role": "user", "content": "What is 6 times 7?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "function": {"name": "times", "arguments": '{"a": 6, "b": 7}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "42"}]},
    {"role": "assistant", "content": "Is it urgent?"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]},
    {"role": "assistant", "content": "It is **42**."},
]


def in_chat(model: str, messages: object = MESSAGES) -> dict[str, Any]:
    return {"item": "t", "model": model, "messages": messages}


def test_twenty_pairs_are_read_with_their_systems_as_models(tmp_path: Path) -> None:
    items = read_agent_runs(write_runs(tmp_path / "runs.jsonl"))
    assert len(items) == ITEMS
    first = items[0]
    assert (first.item, first.prompt_id) == ("task-0", "task-0")
    assert [one.model for one in first.responses] == [
        "basalt-large · loopback",
        "basalt-large · outliner",
    ]
    a = first.responses[0].run
    assert a is not None
    assert (a.model, a.scaffold, a.cost, a.seconds) == ("basalt-large", "loopback", 0.0417, 83.25)
    assert a.steps[1] == Step(
        "tool_call", name="read_file", arguments='{\n "path": "orders.py"\n}', seconds=0.4
    )


def test_messages_of_a_chat_become_task_steps_and_outcome(tmp_path: Path) -> None:
    runs = [in_chat("m"), in_chat("n")]
    (item,) = read_agent_runs(write_runs(tmp_path / "chat.jsonl", runs))
    assert [one.content for one in item.messages] == ["What is 6 times 7?"]
    assert item.responses[0].turns[0].content == "It is **42**."
    read = item.responses[0].run
    assert read is not None
    assert read.scaffold is None
    assert [(one.kind, one.name, one.text) for one in read.steps] == [
        ("system", "", "Use tools."), ("tool_call", "times", ""),
        ("tool_result", "times", "42"), ("message", "", "Is it urgent?"),
        ("user", "", "(not shown: image_url)"),
    ]  # fmt: skip
    assert json.loads(read.steps[1].arguments) == {"a": 6, "b": 7}


def test_a_chat_that_ends_with_a_tool_has_an_empty_outcome(tmp_path: Path) -> None:
    runs = [in_chat("m", MESSAGES[:4]), in_chat("n")]
    (item,) = read_agent_runs(write_runs(tmp_path / "chat.jsonl", runs))
    assert item.responses[0].turns[0].content == ""


def test_three_runs_of_an_item_make_three_pairs_on_one_prompt(tmp_path: Path) -> None:
    runs = [in_chat(model) for model in "nom"]
    items = read_agent_runs(write_runs(tmp_path / "three.jsonl", runs))
    assert [one.item for one in items] == ["t: m / n", "t: m / o", "t: n / o"]
    assert {one.prompt_id for one in items} == {"t"}


def test_a_task_of_several_messages_its_prompt_and_marks_are_read(tmp_path: Path) -> None:
    task = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "6 · 7?"}]
    more = {"prompt": task, "prompt_id": "p", "marks": {"match": -1}}
    runs = [run(0, model, "loopback") | more for model in ("m", "n")]
    (item,) = read_agent_runs(write_runs(tmp_path / "task.jsonl", runs))
    assert (item.item, item.prompt_id) == ("task-0", "p")
    assert [(one.role, one.content) for one in item.messages] == [
        ("system", "Be brief."),
        ("user", "6 · 7?"),
    ]
    assert [one.run.marks for one in item.responses if one.run] == [{"match": -1.0}] * 2


def test_runs_may_lie_in_several_files_of_a_folder(tmp_path: Path) -> None:
    for model in "mn":
        write_runs(tmp_path / f"{model}.jsonl", [run(0, model, "loopback")])
    (item,) = read_agent_runs(tmp_path)
    assert [one.model for one in item.responses] == ["m · loopback", "n · loopback"]


def test_gold_is_the_run_that_is_better(tmp_path: Path) -> None:
    runs = [in_chat("m"), in_chat("n") | {"better": True}]
    (item,) = read_agent_runs(write_runs(tmp_path / "gold.jsonl", runs), gold=True)
    assert item.gold == "model_b"
    with pytest.raises(DataError, match="one of them with better: true"):
        read_agent_runs(
            write_runs(tmp_path / "gold.jsonl", [in_chat("m"), in_chat("n")]), gold=True
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": ""}, "model ''"), ({"model": None}, "model None"),
        ({"outcome": None}, "outcome None"), ({"prompt": "  "}, "the task"),
        ({"prompt": "another"}, "the task that the item 'task-0' has in line 1"),
        ({"steps": "x"}, "steps 'x'"), ({"steps": [1]}, "step 1, is 1"),
        ({"steps": [{"kind": "thought"}]}, "step 1, has kind 'thought'"),
        ({"steps": [{"kind": "message", "text": 3}]}, "text 3"),
        ({"steps": [{"kind": "message", "text": "x", "cost": -1}]}, "cost -1"),
        ({"steps": [{"kind": "message", "text": "x" * 300_001}]}, "300,001 characters"),
        ({"steps": [{"kind": "message", "text": "x"}] * 501}, "501 steps"),
        ({"outcome": "x" * 100_001}, "characters with the task"),
        ({"cost": "1 $"}, "cost '1 $'"), ({"cost": 10**400}, "cost 1000"),
        ({"prompt": [{"role": "tool", "content": "x"}]}, "the task: a text, or a list"),
        ({"prompt": [{"role": "user", "content": " "}]}, "the task"),
        ({"prompt_id": ""}, "prompt_id ''"),
        ({"marks": [1]}, "an object of numbers by the names of scorers"),
        ({"marks": {"match": "C"}}, "the mark 'match' 'C'"),
        ({"seconds": float("nan")}, "seconds nan"), ({"seconds": True}, "seconds True"),
        ({"better": 1}, "better 1"),
        ({"item": "other"}, "an item of two runs or more: it has one"),
        ({"model": "basalt-large"}, "one run of each system an item"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_used_is_refused_with_its_line_and_value(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    runs = [run(0, "basalt-large", "loopback"), run(0, "quartz-8b", "loopback") | change]
    with pytest.raises(DataError) as refused:
        read_agent_runs(write_runs(tmp_path / "Runs.jsonl", runs))
    assert words in str(refused.value)
    assert "Runs.jsonl" in str(refused.value)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("x", "messages 'x'"),
        ([], "the user's task"),
        ([{"role": "assistant", "content": "x"}], "the user's task"),
        ([MESSAGES[1], {"role": "critic", "content": "x"}, MESSAGES[-1]], "role 'critic'"),
        ([MESSAGES[1], {"role": [], "content": "x"}, MESSAGES[-1]], "role []"),
        ([MESSAGES[1], {"role": "assistant", "tool_calls": [{"id": "c"}]}], "tool_calls"),
        ([MESSAGES[1], {"role": "assistant", "content": 3}], "content 3"),
    ],
)
def test_a_chat_that_cannot_be_used_is_refused(
    tmp_path: Path, messages: object, words: str
) -> None:
    with pytest.raises(DataError, match="Line 1 of") as refused:
        read_agent_runs(write_runs(tmp_path / "chat.jsonl", [in_chat("m", messages)]))
    assert words in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("item", "model", "scaffold", "prompt", "outcome", "steps", "messages"), JSON
        ),
    )
)
def test_whatever_a_line_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, entry: dict[str, Any]
) -> None:
    path = write_runs(tmp_path_factory.mktemp("any") / "any.jsonl", [entry])
    with pytest.raises(DataError):  # a single run has no pair
        read_agent_runs(path)


def test_the_first_difference_is_where_runs_part_or_one_ends() -> None:
    one = {"kind": "message", "name": "", "text": "a ", "arguments": "", "cost": 1}
    same, other = one | {"text": "a", "cost": 2}, one | {"text": "b"}
    assert first_difference([[one], [same]]) is None
    assert first_difference([[one, other], [same, same]]) == 1
    assert first_difference([[one], [same, same]]) == 1
    assert first_difference([[], []]) is None


def names(tmp_path: Path, *steps: dict[str, Any], outcome: str = "Done.") -> list[tuple[str, str]]:
    first = run(0, "quartz-8b", "loopback") | {"steps": list(steps), "outcome": outcome}
    second = run(0, "basalt-large", "outliner") | {"steps": [], "outcome": "Done."}
    items = read_agent_runs(write_runs(tmp_path / "names.jsonl", [first, second]))
    return [(one.place, one.words) for one in names_in_runs(items)]


@pytest.mark.parametrize(
    ("step", "flagged"),
    [
        ({"kind": "tool_call", "name": "openai_search"}, ("name of a tool", "openai")),
        ({"kind": "tool_call", "name": "GoogleSearch"}, ("name of a tool", "Google")),
        (
            {"kind": "tool_call", "name": "text_editor_20250124"},
            ("name of a tool", "text_editor_20250124"),
        ),
        (
            {"kind": "tool_call", "name": "web_search_preview"},
            ("name of a tool", "web_search_preview"),
        ),
        ({"kind": "tool_call", "name": "ask_loopback"}, ("name of a tool", "loopback")),
        (
            {"kind": "tool_call", "name": "run", "arguments": {"model": "gpt-4o"}},
            ("arguments", "gpt-4o"),
        ),
        ({"kind": "message", "text": "As Claude, I look."}, ("message", "Claude")),
        ({"kind": "system", "text": "You are Gemini."}, ("system", "Gemini")),
        ({"kind": "error", "text": "OpenAI: rate limit"}, ("error", "OpenAI")),
        ({"kind": "tool_result", "text": "by QUARTZ-8B"}, ("tool result", "QUARTZ-8B")),
        ({"kind": "tool_result", "text": "toolu_01AbCdEf"}, ("tool result", "toolu_01AbCdEf")),
    ],
)
def test_a_step_that_names_a_model_a_scaffold_or_a_vendor_is_flagged(
    tmp_path: Path, step: dict[str, Any], flagged: tuple[str, str]
) -> None:
    assert (f"step 1, {flagged[0]}", flagged[1]) in names(tmp_path, step)


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "tool_call", "name": "search", "arguments": {"q": "pi to ten digits"}},
        {"kind": "message", "text": "I search Google for a nova of the phi scale."},
        {"kind": "tool_result", "text": "OpenAI and Anthropic published figures."},
        {"kind": "message", "text": "The loop runs back."},
    ],
)
def test_what_is_of_the_world_is_not_flagged(tmp_path: Path, step: dict[str, Any]) -> None:
    assert names(tmp_path, step) == []


def test_names_are_known_without_an_organisation_and_without_settings(tmp_path: Path) -> None:
    names = ("lab/quartz-8b (temperature=0.5)", "swe/loopback (attempts=3)")
    texts = ["quartz-8b", "LOOPBACK", "lab", "attempts", "temperature"]
    steps = [{"kind": "tool_result", "text": text} for text in texts]
    runs = [
        run(0, model, scaffold) | {"steps": steps, "outcome": ""}
        for model, scaffold in (names, ("m", "react"))
    ]
    items = read_agent_runs(write_runs(tmp_path / "runs.jsonl", runs))
    assert {one.words for one in names_in_runs(items)} == {"quartz-8b", "LOOPBACK"}


def test_inspects_own_solvers_are_words_of_the_world(tmp_path: Path) -> None:
    runs = [
        run(0, model, "react") | {"outcome": "Chemicals react.", "steps": []} for model in "xy"
    ]
    items = read_agent_runs(write_runs(tmp_path / "runs.jsonl", runs))
    assert names_in_runs(items) == []


def test_names_in_the_outcome_are_flagged_and_names_in_the_task_are_not(tmp_path: Path) -> None:
    assert names(tmp_path, outcome="I am quartz-8b.") == [("outcome", "quartz-8b")]
    items = read_agent_runs(
        write_runs(
            tmp_path / "task.jsonl",
            [
                run(0, model, "loopback") | {"prompt": "Compare Claude with others.", "outcome": x}
                for model, x in (("quartz-8b", "Claude is one of many."), ("basalt-large", "No."))
            ],
        )
    )
    assert names_in_runs(items) == []


def test_a_name_in_both_runs_is_listed_for_each(tmp_path: Path) -> None:
    runs = [run(0, model, "loopback") | {"steps": [], "outcome": "As Claude."} for model in "xy"]
    items = read_agent_runs(write_runs(tmp_path / "runs.jsonl", runs))
    assert [one.system for one in names_in_runs(items)] == ["x · loopback", "y · loopback"]


def test_the_recorded_runs_name_nobody_and_tools_of_one_system_are_listed(tmp_path: Path) -> None:
    items = read_agent_runs(write_runs(tmp_path / "runs.jsonl", recorded()))
    assert names_in_runs(items) == []
    assert tools_of_one(items) == {}
    runs = [run(0, "quartz-8b", "loopback"), run(0, "basalt-large", "loopback")]
    items = read_agent_runs(write_runs(tmp_path / "two.jsonl", runs))
    assert tools_of_one(items) == {"run_tests": "basalt-large · loopback"}
