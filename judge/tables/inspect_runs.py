"""Samples of Inspect's logs as runs of agents, in the form that a file of runs has."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from judge.agent_run import NO_TEXT
from judge.tables.inspect_logs import HALTED, marks_of

Plain = Mapping[str, Any]
INVALID = "invalidated"
TWICE = "in two logs"
OF_TOOLS = "given results of tools with the task"
GENERATE = "generate"
"""The solver that asks a model once: no scaffold."""
UNCARRIED = ("choices", "error_retries", "files", "metadata", "store", "target")
"""Fields of a sample that a run has no place for; `events` are counted one by one."""
UNSEEN = ("reasoning", "data")
"""Parts of messages that vendors show or hide each in their own way: they are no step."""
ANSWERING = (
    *("effort", "max_tokens", "reasoning_effort", "reasoning_tokens"),
    *("temperature", "top_k", "top_p", "verbosity"),
)
"""What of a model's configuration makes other answers of it."""
LONGEST_SETTING = 40
_KINDS = {"assistant": "message", "user": "user", "system": "system"}


@dataclass(frozen=True, slots=True)
class LoggedRuns:
    """What logs hold.

    Attributes
    ----------
    entries : list of (str, dict)
        Where a run stands, and the run as a line of a file of runs has it.
    left_out : Counter
        Samples that are no runs, by reason.
    uncarried : Counter
        What of the others a run has no place for, by its name.
    """

    entries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    uncarried: Counter[str] = field(default_factory=Counter)


def runs_of(logs: Sequence[tuple[Path, Plain]]) -> LoggedRuns:
    """Make runs of the samples of logs.

    Parameters
    ----------
    logs : sequence of (path, mapping)
        Each as `judge.tables.inspect_logs.plain_log` gives it. An item is a sample's id, with the
        task where there are several and the epoch where there are several; a system is the log's
        model in its solvers.
    """
    result, seen = LoggedRuns(), set[str]()
    several_tasks = len({log["eval"]["task"] for _, log in logs}) > 1
    several_epochs = any(sample["epoch"] > 1 for _, log in logs for sample in log["samples"])
    systems = _systems([log for _, log in logs])
    for (path, log), system in zip(logs, systems, strict=True):
        for sample in log["samples"]:
            if why := _left_out(sample, seen):
                result.left_out[why] += 1
                continue
            name, epoch = f"{sample['id']}", sample["epoch"]
            prompt_id = f"{log['eval']['task']}: {name}" if several_tasks else name
            entry = {
                "item": f"{prompt_id} ({epoch})" if several_epochs else prompt_id,
                "prompt_id": prompt_id,
                **system,
                **_run(sample, result.uncarried),
            }
            where = f"Sample {name!r} (epoch {epoch}) of {str(path)!r}"
            result.entries.append((where, entry))
    return result


def _left_out(sample: Plain, seen: set[str]) -> str:
    """Say why a sample is no run; empty of one that is; ``seen`` holds what was read before."""
    if sample.get("error"):
        return HALTED
    if sample.get("invalidation"):
        return INVALID
    if not isinstance(sample["input"], str) and any(m["role"] == "tool" for m in sample["input"]):
        return OF_TOOLS
    uuid = sample.get("uuid")
    if uuid in seen:  # a log of a second try takes over what the first had done
        return TWICE
    if uuid:
        seen.add(uuid)
    return ""


def _run(sample: Plain, uncarried: Counter[str]) -> dict[str, Any]:
    """Give the parts of a run that are of one sample alone."""
    task = sample["input"]
    asked = [{"role": "user", "content": task}] if isinstance(task, str) else task
    prompt = [{"role": one["role"], "content": _text(_parts(one), uncarried)} for one in asked]
    outcome = _outcome(sample)
    steps = [*_steps(sample["messages"], prompt, uncarried)]
    if steps and steps[-1]["kind"] == "message" and steps[-1]["text"].strip() == outcome.strip():
        steps.pop()
    marks = dict(marks_of({name: one["value"] for name, one in (sample["scores"] or {}).items()}))
    uncarried["events"] += sample.get("events") or 0
    uncarried["marks that are no number"] += sum(value is None for value in marks.values())
    uncarried.update(name for name in UNCARRIED if sample.get(name))
    return {
        "prompt": prompt,
        "outcome": outcome,
        "steps": [*steps, *_ends(sample)],
        "cost": _cost(sample["model_usage"]),
        "seconds": sample.get("total_time"),
        "marks": {name: value for name, value in marks.items() if value is not None},
    }


def _outcome(sample: Plain) -> str:
    """Give the answer: none of a run that a limit ended in the middle of a call."""
    output = sample["output"]
    calls = any(one["message"].get("tool_calls") for one in output["choices"][:1])
    return "" if sample.get("limit") and calls else output["completion"]


def _ends(sample: Plain) -> Iterator[dict[str, Any]]:
    """Give what ended a run, but for its own answer: no amount, which may be of money or time."""
    if error := sample["output"].get("error"):
        yield {"kind": "error", "text": error}
    if limit := sample.get("limit"):
        yield {"kind": "error", "text": f"Stopped by a limit: {limit['type']}."}


def _cost(usage: Mapping[str, Plain]) -> float | None:
    """Give US dollars, where the price of every model that was asked is known."""
    costs = [float(cost) for one in usage.values() if (cost := one.get("total_cost")) is not None]
    return sum(costs) if costs and len(costs) == len(usage) else None


def _steps(
    messages: Sequence[Plain], prompt: Sequence[Plain], uncarried: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Give messages as steps, without those of the task as they were given."""
    given = list(prompt)
    for one in messages:
        same = {"role": one["role"], "content": _text(_parts(one), Counter())}
        if same in given:
            given.remove(same)
        elif one["role"] == "tool":
            yield from _given(one.get("function") or "", one, uncarried)
        else:
            yield from _written(one, uncarried)


def _given(tool: str, message: Plain, uncarried: Counter[str]) -> Iterator[dict[str, Any]]:
    """Give what a tool gave: an error, a result, or both."""
    text, error = _text(_parts(message), uncarried), message.get("error")
    if error:
        yield {"kind": "error", "name": tool, "text": error["message"]}
    if text or not error:
        yield {"kind": "tool_result", "name": tool, "text": text}


def _written(message: Plain, uncarried: Counter[str]) -> Iterator[dict[str, Any]]:
    """Give what somebody wrote, and the tools that were called; an endpoint's own among them."""
    for of_endpoint, parts in groupby(_parts(message), lambda part: part["type"] == "tool_use"):
        if of_endpoint:
            for part in parts:
                yield _call(part["name"], part["arguments"])
                kind = "error" if part.get("error") else "tool_result"
                text = part.get("error") or part["result"]
                yield {"kind": kind, "name": part["name"], "text": text}
        elif (text := _text([*parts], uncarried)).strip():
            yield {"kind": _KINDS[message["role"]], "text": text}
    for call in message.get("tool_calls") or ():
        yield _call(call["function"], call["arguments"])


def _call(tool: str, arguments: object) -> dict[str, Any]:
    return {"kind": "tool_call", "name": tool, "arguments": arguments}


def _parts(message: Plain) -> Sequence[Plain]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(parts: Sequence[Plain], uncarried: Counter[str]) -> str:
    """Give the text of parts; what is no text is named in its place, unless it is `UNSEEN`."""
    texts = []
    for part in parts:
        if part["type"] == "text":
            texts.append(part["text"])
            continue
        if part["type"] != "tool_use":
            uncarried[part["type"]] += 1
        if part["type"] not in (*UNSEEN, "tool_use"):
            texts.append(NO_TEXT.format(part["type"]))
    return "\n".join(texts)


def _systems(logs: Sequence[Plain]) -> list[dict[str, str | None]]:
    """Name the model and the scaffold of each log."""
    tasks = [log["eval"]["task"] for log in logs]
    models = [log["eval"]["model"] for log in logs]
    models = _told_apart(models, tasks, [_of_model(log) for log in logs])
    solvers = [_solvers(log) for log in logs]
    solvers = _told_apart(solvers, tasks, [_of_solvers(log) for log in logs])
    return [
        {"model": model, "scaffold": None if solver == GENERATE else solver}
        for model, solver in zip(models, solvers, strict=True)
    ]


def _solvers(log: Plain) -> str:
    """Name the solvers that a log was made with, those of Inspect without its name."""
    one = log["eval"].get("solver")
    names = [one] if one else [step["solver"] for step in log["plan"]["steps"]]
    return " + ".join(name.removeprefix("inspect_ai/") for name in names) or GENERATE


def _of_model(log: Plain) -> dict[str, Any]:
    configured = {**log["plan"]["config"], **(log["eval"].get("model_generate_config") or {})}
    answering = {name: configured[name] for name in ANSWERING if configured.get(name) is not None}
    return {**(log["eval"].get("model_args") or {}), **answering}


def _of_solvers(log: Plain) -> dict[str, Any]:
    task, solver = (log["eval"].get(f"{of}_args_passed") or {} for of in ("task", "solver"))
    if log["eval"].get("solver"):
        return {**task, **solver}
    steps = log["plan"]["steps"]
    several = len(steps) > 1
    return task | {
        f"{step['solver']}.{name}" if several else name: value
        for step in steps
        for name, value in (step.get("params_passed") or {}).items()
    }


def _told_apart(
    names: Sequence[str], tasks: Sequence[str], settings: Sequence[Plain]
) -> list[str]:
    """Add to a name that logs of a task share what they set differently.

    >>> _told_apart(["react", "react"], ["sums"] * 2, [{"attempts": 3}, {}])
    ['react (attempts=3)', 'react (attempts=null)']
    """
    labels = []
    for name, task, own in zip(names, tasks, settings, strict=True):
        alike = [
            other
            for its, of, other in zip(names, tasks, settings, strict=True)
            if (its, of) == (name, task)
        ]
        differ = [
            f"{key}={_brief(own.get(key))}"
            for key in sorted({key for other in alike for key in other})
            if any(other.get(key) != own.get(key) for other in alike)
        ]
        labels.append(f"{name} ({', '.join(differ)})" if differ else name)
    return labels


def _brief(value: object) -> str:
    """Give a setting as JSON, and a long one as the start of its SHA-256."""
    text = json.dumps(value, default=str, sort_keys=True)
    short = len(text) <= LONGEST_SETTING
    return text if short else hashlib.sha256(text.encode()).hexdigest()[:8]
