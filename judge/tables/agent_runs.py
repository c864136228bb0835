"""Recorded runs of agents, from files: one JSON object a run, paired by item."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NoReturn

from judge.case import KINDS, NO_TEXT, ROLES, AgentRun, Message, Step
from judge.tables import inspect_logs
from judge.tables.cases import Source
from judge.tables.inspect_logs import runs_of
from judge.tables.items import MOST_CHARACTERS, MOST_NAME, RatingItem, Response
from rating.errors import DataError
from rating.outcome import Outcome
from rating.tables.counts import JOINED
from rating.tables.files import (
    LARGE_VALUE,
    SHOWN,
    Files,
    expanded,
    json_entries,
    kind_of,
    storable,
)
from rating.tables.peers import announce, mention

MOST_STEPS = 500
MOST_IN_STEPS = 300_000
"""Characters in the steps of one run, which a page holds folded."""
UNFIT = "that cannot be used"
"""Reason of a sample of a log that is refused, where it would be the whole file elsewhere."""
ALONE = "without a run of another system"
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "message"}


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A run as its line has it."""

    where: str
    item: str
    prompt_id: str
    task: tuple[Message, ...]
    outcome: str
    run: AgentRun
    better: bool

    @property
    def system(self) -> str:
        model, scaffold = self.run.model, self.run.scaffold
        return model if scaffold is None else f"{model}{JOINED}{scaffold}"


def read_agent_runs(source: Source, *, gold: bool = False) -> list[RatingItem]:
    """Read runs and pair those of the same item, each two of them.

    Parameters
    ----------
    source : path, or Files
        JSON lines, or a JSON list. Each run has ``item`` and ``model``, perhaps ``scaffold``,
        ``prompt_id``, ``cost`` (US dollars), ``seconds`` and ``marks``; and either ``prompt`` (a
        text, or a list of ``{"role", "content"}``), ``outcome`` and ``steps``, a list of
        ``{"kind", "text", "name", "arguments", "cost", "seconds"}`` of kinds `KINDS`; or
        ``messages`` as chat endpoints of OpenAI's form take them, with ``tool_calls``: the last
        message of the assistant that calls no tool is the outcome, those before its first are the
        task, and system messages are steps. Or logs of Inspect, whose samples are runs; those
        that cannot be used or paired are announced, with what else is excluded.
    gold : bool
        Whether the right choice is known: one of the two runs of each item has ``better``, true.

    Raises
    ------
    DataError
        If the file cannot be read, or a run is none of this: quotes where and the value.
    """
    files = Files.of(source)
    assert files is not None
    paths = expanded(files.paths)
    if kind_of(paths[0]) != "Inspect":
        runs = [
            _recorded(where, one)
            for path in paths
            for where, one in json_entries(path, most=LARGE_VALUE)
        ]
        if not runs:
            raise DataError(f"There is no run in {str(files)!r}: give one JSON object a run.")
        return _paired(runs, gold=gold)
    if gold:
        msg = f"{str(files)!r} says of no run that it is the right choice: give JSON lines."
        raise DataError(msg)
    return runs_in_logs(str(files), [(path, inspect_logs.plain_log(path)) for path in paths])


def runs_in_logs(name: str, logs: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[RatingItem]:
    """Pair the samples of Inspect's logs, and announce what is excluded: nobody can mend a log.

    Parameters
    ----------
    name : str
        What the logs are called together.
    logs : sequence of (path, mapping)
        Each as `judge.tables.inspect_logs.plain_log` gives it.

    Raises
    ------
    DataError
        If no two runs make a pair, or two of one sample have other tasks or the same system.
    """
    logged = runs_of(logs)
    runs: list[_Recorded] = []
    for where, entry in logged.entries:
        try:
            runs.append(_recorded(where, entry))
        except DataError as error:
            if UNFIT not in logged.left_out:
                mention(f"{error} The run is excluded.")
            logged.left_out[UNFIT] += 1
    n = Counter(one.item for one in runs)
    paired = [one for one in runs if n[one.item] > 1]
    logged.left_out[ALONE] += len(runs) - len(paired)
    announce(name, f"runs of {inspect_logs.NAME}", +logged.left_out, len(logs))
    if uncarried := +logged.uncarried:
        words = ", ".join(f"{what} {n:,}" for what, n in sorted(uncarried.items()))
        mention(f"{name} holds more than a run, which is not carried over: {words}")
    if not paired:
        msg = f"No two runs in {name!r} are of one sample: name the logs of several systems."
        raise DataError(msg)
    return _paired(paired, gold=False)


def _paired(runs: Sequence[_Recorded], *, gold: bool) -> list[RatingItem]:
    by_item: dict[str, list[_Recorded]] = defaultdict(list)
    for one in runs:
        by_item[one.item].append(one)
    return [pair for several in by_item.values() for pair in _pairs(several, gold=gold)]


def _pairs(runs: Sequence[_Recorded], *, gold: bool) -> Iterator[RatingItem]:
    """Pair the runs of an item."""
    first = runs[0]
    if len(runs) < 2:
        _refuse(first.where, "item", first.item, "an item of two runs or more: it has one")
    for one in runs[1:]:
        if one.task != first.task:
            wanted = f"the task that the item {one.item!r} has in {_inside(first.where)}"
            _refuse(one.where, "prompt", one.task[-1].content, wanted)
    by_system: dict[str, _Recorded] = {}
    for one in runs:
        if (before := by_system.setdefault(one.system, one)) is not one:
            wanted = f"one run of each system an item: {_inside(before.where)} is of it, too"
            _refuse(one.where, "model", one.system, wanted)
    ordered = [by_system[system] for system in sorted(by_system)]
    if gold and (len(ordered) > 2 or sum(one.better for one in ordered) != 1):
        _refuse(first.where, "item", first.item, "two runs, one of them with better: true")
    for a, b in combinations(ordered, 2):
        name = first.item if len(ordered) == 2 else f"{first.item}: {a.system} / {b.system}"
        right = (Outcome.A if a.better else Outcome.B).value if gold else None
        answers = ((one.system, (Message("assistant", one.outcome),), one.run) for one in (a, b))
        responses = tuple(Response(*answer) for answer in answers)
        yield RatingItem(name, first.prompt_id, first.task, responses, right)


def _recorded(where: str, entry: Any) -> _Recorded:
    if not isinstance(entry, dict):
        raise DataError(f"{where} is {repr(entry)[:SHOWN]}: give one JSON object a run.")
    if "steps" in entry:
        if not isinstance(entry["steps"], list):
            _refuse(where, "steps", entry["steps"], "a list")
        outcome = _text(where, "outcome", entry.get("outcome"))
        task = _task(where, entry.get("prompt"))
        steps = [_step(where, n, one) for n, one in enumerate(entry["steps"], 1)]
    elif "messages" in entry:
        task, steps, outcome = _of_messages(where, entry)
    else:
        _refuse(where, "steps", None, "the steps of the run, or messages")
    size = sum(len(one.content) for one in task) + len(outcome)
    if size > MOST_CHARACTERS:
        _refuse(where, "outcome", f"{size:,} characters with the task", f"{MOST_CHARACTERS:,}")
    if len(steps) > MOST_STEPS:
        _refuse(where, "steps", f"{len(steps):,} steps", f"{MOST_STEPS} at the most")
    in_steps = sum(len(one.text) + len(one.arguments) for one in steps)
    if in_steps > MOST_IN_STEPS:
        _refuse(where, "steps", f"{in_steps:,} characters", f"{MOST_IN_STEPS:,} at the most")
    scaffold = None if entry.get("scaffold") is None else _name(where, entry, "scaffold")
    better = entry.get("better", False)
    if not isinstance(better, bool):
        _refuse(where, "better", better, "true or false")
    cost, seconds = (_number(where, entry, name) for name in ("cost", "seconds"))
    model, marks = _name(where, entry, "model"), _marks(where, entry.get("marks"))
    run = AgentRun(model, scaffold, tuple(steps), cost, seconds, marks)
    item = _name(where, entry, "item")
    prompt_id = item if entry.get("prompt_id") is None else _name(where, entry, "prompt_id")
    return _Recorded(where, item, prompt_id, task, outcome, run, better)


def _task(where: str, prompt: Any) -> tuple[Message, ...]:
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(given, list) or not all(
        isinstance(one, dict) and one.get("role") in ROLES for one in given
    ):
        _refuse(where, "prompt", prompt, 'the task: a text, or a list of {"role", "content"}')
    task = tuple(Message(one["role"], _content(where, one)) for one in given)
    if not any(one.content.strip() for one in task):
        _refuse(where, "prompt", prompt, "the task")
    return task


def _step(where: str, number: int, one: Any) -> Step:
    where = f"{where}, step {number},"
    if not isinstance(one, dict):
        raise DataError(f"{where} is {repr(one)[:SHOWN]}: give an object with kind and text.")
    kind = one.get("kind")
    if kind not in KINDS:
        _refuse(where, "kind", kind, f"one of {', '.join(KINDS)}")
    return Step(
        kind,
        _text(where, "text", one.get("text", "")),
        _text(where, "name", one.get("name", ""))[:MOST_NAME],
        _arguments(one.get("arguments")),
        _number(where, one, "cost"),
        _number(where, one, "seconds"),
    )


def _of_messages(
    where: str, entry: Mapping[str, Any]
) -> tuple[tuple[Message, ...], list[Step], str]:
    """Give the task, the steps and the outcome."""
    messages = entry["messages"]
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        _refuse(where, "messages", messages, 'a list of {"role", "content"}')
    n = next((k for k, one in enumerate(messages) if one.get("role") == "assistant"), 0)
    task = [one for one in messages[:n] if one.get("role") == "user"]
    if not task:
        _refuse(
            where, "messages", messages, "the user's task before the assistant's first message"
        )
    ends = messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")
    outcome = _content(where, messages[-1]) if ends else ""
    tools: dict[str, str] = {}
    steps = [
        step
        for one in messages[: len(messages) - ends]
        if not any(one is asked for asked in task)
        for step in _steps_of(where, one, tools)
    ]
    return tuple(Message("user", _content(where, one)) for one in task), steps, outcome


def _steps_of(where: str, message: Mapping[str, Any], tools: dict[str, str]) -> Iterator[Step]:
    """Give the steps that a message is; ``tools`` holds what tool was called by which id."""
    role, text = message.get("role"), _content(where, message)
    if role == "tool":
        name = message.get("name") or tools.get(str(message.get("tool_call_id")), "")
        yield Step("tool_result", text, _text(where, "name", name)[:MOST_NAME])
        return
    if not isinstance(role, str) or role not in _ROLES:
        _refuse(where, "role", role, f"one of {', '.join([*_ROLES, 'tool'])}")
    if text.strip():
        yield Step(_ROLES[role], text)  # type: ignore[arg-type]
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            _refuse(
                where, "tool_calls", call, 'a list of {"id", "function": {"name", "arguments"}}'
            )
        name = storable(function["name"])[:MOST_NAME]
        tools[str(call.get("id"))] = name
        yield Step("tool_call", "", name, _arguments(function.get("arguments")))


def _content(where: str, message: Mapping[str, Any]) -> str:
    """Read the text of a message; what is no text is named in its place."""
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else {"text": part} for part in content]
        content = "\n".join(
            part["text"] if isinstance(part.get("text"), str) else NO_TEXT.format(part.get("type"))
            for part in parts
        )
    return _text(where, "content", content)


def _arguments(value: Any) -> str:
    """Lay arguments out as JSON, one a line; a text that is no JSON stays as it is."""
    if value is None:
        return ""
    try:
        value = json.loads(value) if isinstance(value, str) else value
        return storable(json.dumps(value, ensure_ascii=False, indent=1))
    except (ValueError, RecursionError):  # no JSON, or nested deeper than Python follows
        return storable(value if isinstance(value, str) else repr(value))


def _marks(where: str, marks: Any) -> dict[str, float]:
    """Read what scorers gave a run: numbers by name."""
    if marks is None:
        return {}
    if not isinstance(marks, dict):
        _refuse(where, "marks", marks, "an object of numbers by the names of scorers")
    numbers = {}
    for name, value in marks.items():
        if (number := _finite(value)) is None:
            _refuse(where, f"the mark {name[:MOST_NAME]!r}", value, "a number")
        numbers[storable(name)[:MOST_NAME]] = number
    return numbers


def _name(where: str, entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    text = storable(str(value).strip()) if isinstance(value, str | int) else ""
    if not text or len(text) > MOST_NAME or isinstance(value, bool):
        _refuse(where, name, value, f"1 to {MOST_NAME} characters")
    return text


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        _refuse(where, name, value, "a text")
    return storable(value)


def _number(where: str, entry: Mapping[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if value is None:
        return None
    if (number := _finite(value)) is None or number < 0:
        _refuse(where, name, value, "a number from 0")
    return number


def _finite(value: Any) -> float | None:
    """Give a number; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _inside(where: str) -> str:
    """Say where something is, inside a sentence."""
    return where[:1].lower() + where[1:]


def _refuse(where: str, name: str, value: object, wanted: str) -> NoReturn:
    brief = repr(value) if len(repr(value)) <= SHOWN else repr(value)[:SHOWN] + "…"
    raise DataError(f"{where} has {name} {brief}: give {wanted}.")
