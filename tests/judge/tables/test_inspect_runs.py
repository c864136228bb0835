"""Samples of Inspect's logs as runs of agents, from plain data: what becomes of each part."""

from pathlib import Path
from typing import Any

import pytest

from judge.labels.accuracy import names_in_runs
from judge.tables.agent_runs import runs_in_logs
from judge.tables.inspect_logs import LoggedRuns, runs_of
from judge.tables.items import RatingItem
from rating.errors import DataError
from tests.inspect_samples import HOSTILE, SYSTEM, call, log, message, sample
from tests.rating.tables.sources import messages_of


def read(*logs: dict[str, Any]) -> LoggedRuns:
    return runs_of([(Path(f"{n}.eval"), one) for n, one in enumerate(logs)])


def runs(*logs: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for _, entry in read(*logs).entries]


def test_a_sample_is_a_run_with_its_steps_outcome_cost_time_and_marks() -> None:
    (one,) = runs(log("lab/one", [sample(6, "It is 42.")]))
    assert (one["item"], one["model"], one["scaffold"]) == ("q6", "lab/one", "react")
    assert one["prompt"] == [{"role": "user", "content": "What is 6 times 7?"}]
    assert one["outcome"] == "It is 42."
    assert (one["cost"], one["seconds"], one["marks"]) == (0.75, 12.5, {"match": 1.0})
    assert one["steps"] == [
        {"kind": "system", "text": SYSTEM},
        {"kind": "message", "text": "I multiply.\n(not shown: image)"},
        {"kind": "tool_call", "name": "web_search", "arguments": '{"query": "seven"}'},
        {"kind": "tool_result", "name": "web_search", "text": HOSTILE},
        {"kind": "tool_call", "name": "times", "arguments": {"a": 6, "b": 7}},
        {"kind": "tool_result", "name": "times", "text": "42"},
        {"kind": "tool_call", "name": "save", "arguments": {"value": 42}},
        {"kind": "error", "name": "save", "text": "It is locked."},
        {"kind": "user", "text": "Go on."},
    ]


def test_what_a_run_has_no_place_for_is_counted() -> None:
    more: dict[str, Any] = {"store": {"k": 1}, "files": ["a"], "scores": {"s": {"value": "dull"}}}
    result = read(log("m", [sample(1, "7", **more), sample(2, "14")]))
    assert +result.uncarried == {
        "events": 6,
        "files": 1,
        "image": 2,
        "marks that are no number": 1,
        "reasoning": 2,
        "store": 1,
        "target": 2,
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"error": {"message": "out"}}, "halted by an error"),
        ({"invalidation": {"reason": "wrong"}}, "invalidated"),
        ({"input": [message("tool", "7")]}, "given results of tools with the task"),
    ],
)
def test_a_sample_that_is_no_run_is_counted_with_its_reason(
    change: dict[str, Any], why: str
) -> None:
    result = read(log("m", [sample(1, "7", **change), sample(2, "14")]))
    assert result.left_out == {why: 1}
    assert [entry["item"] for _, entry in result.entries] == ["q2"]


def test_a_sample_that_a_second_try_took_over_is_read_once() -> None:
    first = log("m", [sample(1, "7", uuid="u")])
    again = log("m", [sample(1, "7", uuid="u"), sample(2, "14", uuid="v")])
    result = read(first, again)
    assert result.left_out == {"in two logs": 1}
    assert [where for where, _ in result.entries] == [
        "Sample 'q1' (epoch 1) of '0.eval'",
        "Sample 'q2' (epoch 1) of '1.eval'",
    ]


def test_a_run_that_a_limit_ends_in_a_call_has_no_outcome_and_no_amount() -> None:
    limit = {"type": "cost", "limit": 0.5, "reason": "Cost limit exceeded: 0.5"}
    (one,) = runs(log("m", [sample(1, "I save it.", [], limit=limit, calls=[call("save")])]))
    assert one["outcome"] == ""
    assert one["steps"][1:] == [
        {"kind": "message", "text": "I save it."},
        {"kind": "tool_call", "name": "save", "arguments": {}},
        {"kind": "error", "text": "Stopped by a limit: cost."},
    ]
    (one,) = runs(log("m", [sample(1, "It is 7.", [], limit=limit)]))
    assert one["outcome"] == "It is 7."


def test_a_submitted_answer_is_the_outcome_and_its_call_a_step() -> None:
    submitted = sample(1, "", [message("assistant", "", tool_calls=[call("submit", answer="7")])])
    submitted["messages"][-1] = message("tool", "7", function="submit", error=None)
    submitted["output"] = {"completion": "7", "choices": [{"message": submitted["messages"][-2]}]}
    (one,) = runs(log("m", [submitted]))
    assert one["outcome"] == "7"
    assert [(step["kind"], step.get("name")) for step in one["steps"][1:]] == [
        ("tool_call", "submit"),
        ("tool_result", "submit"),
    ]


def test_a_task_of_messages_stays_whole_and_what_a_solver_made_of_it_is_a_step() -> None:
    task = [message("system", "Be brief."), message("user", "7?"), message("assistant", "Yes?")]
    task += [message("user", [{"type": "text", "text": "Twice."}])]
    one = sample(1, "14", [], input=task)
    one["messages"][2] = message("user", "Think first. 7?")
    (run,) = runs(log("m", [one]))
    expected = [("system", "Be brief."), ("user", "7?"), ("assistant", "Yes?"), ("user", "Twice.")]
    assert [(part["role"], part["content"]) for part in run["prompt"]] == expected
    assert run["steps"][1:] == [{"kind": "user", "text": "Think first. 7?"}]


@pytest.mark.parametrize("usage", [{}, {"m": {"total_cost": 1.0}, "n": {"total_cost": None}}])
def test_a_cost_that_is_not_known_in_full_is_none(usage: dict[str, Any]) -> None:
    (one,) = runs(log("m", [sample(1, "7", model_usage=usage)]))
    assert one["cost"] is None


def test_items_have_the_epoch_and_the_task_where_there_are_several() -> None:
    epochs = [sample(1, "7", epoch=epoch) for epoch in (1, 2)]
    assert [(one["item"], one["prompt_id"]) for one in runs(log("m", epochs))] == [
        ("q1 (1)", "q1"),
        ("q1 (2)", "q1"),
    ]
    tasks = [log("m", [sample(1, "7")], task=task) for task in ("sums", "more")]
    assert [one["item"] for one in runs(*tasks)] == ["sums: q1", "more: q1"]


@pytest.mark.parametrize(
    ("more", "scaffold"),
    [
        ({"solver": "inspect_ai/react"}, "react"), ({"solver": "swe/agent"}, "swe/agent"),
        ({"steps": [{"solver": "generate"}]}, None), ({"steps": []}, None),
        ({"steps": [{"solver": "use_tools"}, {"solver": "loop"}]}, "use_tools + loop"),
    ],
)  # fmt: skip
def test_a_scaffold_is_what_the_log_has_of_solvers(
    more: dict[str, Any], scaffold: str | None
) -> None:
    (one,) = runs(log("m", [sample(1, "7")], **more))
    assert one["scaffold"] == scaffold


def test_systems_of_one_name_are_told_apart_by_what_they_set_differently() -> None:
    one = log("m", [sample(1, "7")], task_args_passed={"attempts": 1, "same": 2})
    other = log("m", [sample(1, "7")], task_args_passed={"attempts": 3, "same": 2})
    other["plan"]["config"] = {"temperature": 0.5, "max_connections": 3}
    long = log("m", [sample(1, "7")], task_args_passed={"attempts": 1, "same": 2, "say": "x" * 99})
    assert [(one["model"], one["scaffold"]) for one in runs(one, other, long)] == [
        ("m (temperature=null)", "react (attempts=1, say=null)"),
        ("m (temperature=0.5)", "react (attempts=3, say=null)"),
        ("m (temperature=null)", "react (attempts=1, say=3d2838ac)"),
    ]


def test_scaffolds_are_named_alike_whichever_model_is_in_them() -> None:
    logs = [
        log(model, [sample(1, "7")], task_args_passed={"attempts": n})
        for model in ("m", "n")
        for n in (1, 3)
    ]
    assert [(one["model"], one["scaffold"]) for one in runs(*logs)] == [
        ("m", "react (attempts=1)"), ("m", "react (attempts=3)"), ("n", "react (attempts=1)"),
        ("n", "react (attempts=3)"),
    ]  # fmt: skip


def test_an_endpoints_error_and_a_result_beside_an_error_are_steps() -> None:
    both = message("tool", "half", function="t", error={"message": "cut"})
    one = sample(1, "", [both])
    one["output"]["error"] = "refused"
    (run,) = runs(log("m", [one]))
    assert run["steps"][1:] == [
        {"kind": "error", "name": "t", "text": "cut"},
        {"kind": "tool_result", "name": "t", "text": "half"},
        {"kind": "error", "text": "refused"},
    ]


def pairs(*logs: dict[str, Any]) -> tuple[list[RatingItem], list[str]]:
    return messages_of(
        runs_in_logs, "logs", [(Path(f"{n}.eval"), one) for n, one in enumerate(logs)]
    )


def test_samples_of_two_logs_are_paired_and_the_rest_is_counted() -> None:
    long = [message("assistant", "I look.")] * 501
    items, words = pairs(
        log("one", [sample(1, "7"), sample(2, "14", long), sample(3, "21"), sample(4, "28")]),
        log("two", [sample(1, "7"), sample(2, "14"), sample(3, "21", error={"message": "out"})]),
    )
    (item,) = items
    assert (item.item, item.prompt_id) == ("q1", "q1")
    assert [one.model for one in item.responses] == ["one · react", "two · react"]
    run = item.responses[0].run
    assert run is not None
    assert (run.cost, run.seconds, run.marks) == (0.75, 12.5, {"match": 1.0})
    assert words[0].startswith("Sample 'q2' (epoch 1) of '0.eval' has steps '502 steps'")
    left_out = "1 halted by an error, 1 that cannot be used, 3 without a run of another system"
    assert (
        words[1] == f"logs (2 files) is read as runs of Inspect's log; rows excluded: {left_out}"
    )
    assert words[2] == (
        "logs holds more than a run, which is not carried over: events 18, image 5, reasoning 5, "
        "target 6"
    )


def test_logs_without_a_pair_of_samples_are_refused() -> None:
    with pytest.raises(DataError, match="name the logs of several systems"):
        pairs(log("one", [sample(1, "7")]), log("two", [sample(2, "14")]))
    with pytest.raises(DataError, match="one run of each system an item: sample 'q1'"):
        pairs(log("one", [sample(1, "7")]), log("one", [sample(1, "8")]))


def test_names_in_the_steps_of_a_log_are_flagged() -> None:
    steps = [
        message("assistant", "As Claude, I look.", tool_calls=[call("openai_search", q="x")]),
        message("tool", "by ONE", function="t", error=None),
        message("tool", "", function="t", error={"message": "Anthropic: overloaded"}),
    ]
    items, _ = pairs(log("lab/one", [sample(1, "7", steps)]), log("lab/two", [sample(1, "7")]))
    assert {(one.place, one.words) for one in names_in_runs(items)} == {
        ("step 2, message", "Claude"), ("step 3, name of a tool", "openai"),
        ("step 4, tool result", "ONE"), ("step 5, error", "Anthropic"),
    }  # fmt: skip
