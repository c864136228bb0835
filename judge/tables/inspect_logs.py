"""Inspect's logs (``.eval``), by Inspect's own reader: answers with marks, and runs of agents."""

import hashlib
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from judge.case import NO_TEXT
from rating.errors import DataError
from rating.tables.files import (
    BATCH,
    PARTS,
    SHOWN,
    in_mb,
    json_objects,
    kind_of,
    parsed,
    require_file,
    require_unpacked,
)
from rating.tables.peers import announce, mention

NAME = "Inspect's log"
MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What Inspect takes its letters for: correct, partial, incorrect, no answer."""
HALTED = "halted by an error"
"""Reason of a sample that ended without an answer."""
SILENT = "without an answer"
OWN = ("prompt", "response", "model", "id", "prompt_id", "task", "reference")
"""Columns of an answer beside those of its marks."""

Row = dict[str, Any]


def rows_in(path: Path) -> list[Row]:
    """Read the samples of a log, and announce which are excluded.

    Returns
    -------
    list of dict
        ``prompt`` (a text, or messages), ``response``, ``model``, ``id``, ``prompt_id`` (of the
        task and the sample), ``task``, ``reference`` where there is one target, and each scorer's
        mark under its name: a number, or None for anything else. Where a log has one scorer, also
        ``score`` and ``judge``, its name. ``id`` has the epoch where there are several.

    Raises
    ------
    DataError
        If Inspect is not installed, or cannot read the file.
    """
    log = _read(path)
    samples = log.samples or []
    many = any(sample.epoch > 1 for sample in samples)
    left_out: Counter[str] = Counter()
    rows = []
    for sample in samples:
        if sample.error or not sample.output.completion:
            left_out[HALTED if sample.error else SILENT] += 1
        else:
            rows.append(_row(log.eval, sample, with_epoch=many))
    announce(str(path), NAME, left_out)
    names = {name for row in rows for name in row if name not in OWN}
    if len(names) != 1:
        return rows
    (name,) = names  # the one scorer
    return [{**row, "score": row.get(name), "judge": name} for row in rows]


def scores_in(path: Path) -> list[Row]:
    """Read the scores of a log's samples, with Inspect only if Python cannot unpack it.

    Returns
    -------
    list of dict
        ``item`` (of the task and the sample), ``model``, ``repeat`` (the epoch), and each scorer's
        mark under its name: a number, or what else its value is. Where there is one scorer, also
        ``score`` and ``metric``, its name. ``error`` is why a sample has no marks: it was halted
        or invalidated.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    require_file(path)
    try:
        rows = [*_scored(path)]
    except DataError:
        raise
    except Exception as error:  # of an archive that is damaged it raises any kind
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise DataError(f"Cannot read the log of Inspect {str(path)!r}: {reason}.") from error
    if n := sum(row["error"] is not None for row in rows):
        mention(f"{path}: {n:,} of {len(rows):,} samples failed, and have no score")
    own = ("item", "model", "repeat", "error")
    names = {name for row in rows for name in row if name not in own}
    if len(names) > 1:
        return rows
    scorer = next(iter(names), "")  # none of a log whose samples all failed
    return [{**row, "score": row.get(scorer), "metric": scorer or None} for row in rows]


def _scored(path: Path) -> Iterator[Row]:
    parts = _header_and_samples(path)
    header = _object(next(parts), f"The header of {str(path)!r}", "eval")
    task = _object(header["eval"], f"'eval' in {str(path)!r}", "task", "model")
    for number, part in enumerate(parts, 1):
        where = f"Sample {number:,} of {str(path)!r}"
        sample = _object(part, where, "id", "epoch")
        error = sample.get("error") or (INVALID if sample.get("invalidation") else None)
        scores = {} if error else _object(sample.get("scores") or {}, f"'scores' of s{where[1:]}")
        values = {
            name: _object(score, f"Score {name!r} of s{where[1:]}", "value")["value"]
            for name, score in scores.items()
        }
        yield dict(_marks_of(values, lambda value: MARKS.get(str(value), value))) | {
            "item": f"{task['task']}: {sample['id']}",
            "model": task["model"],
            "repeat": sample["epoch"],
            "error": error.get("message", HALTED) if isinstance(error, Mapping) else error,
        }


def _object(value: Any, where: str, *names: str) -> Row:
    """Return an object that has some names; raises `DataError` for anything else."""
    if isinstance(value, dict) and all(name in value for name in names):
        return value
    has = f" with {', '.join(names)}" if names else ""
    shown = f"{where} is {json.dumps(value, default=str)[:SHOWN]}: it should be an object{has}."
    raise DataError(f"{shown} Write the log again with Inspect, or delete the sample.")


def _header_and_samples(path: Path) -> Iterator[Any]:
    if kind_of(path) == "JSON":
        (whole,) = json_objects(path)
        yield whole
        yield from whole.get("samples") or ()
        return
    _require_bounded(path)
    with zipfile.ZipFile(path) as log:

        def member(name: str) -> Any:
            return parsed(_member(log, name).decode("utf-8"), f"{name!r} in {str(path)!r}")

        names = log.namelist()
        yield member("header.json" if "header.json" in names else "_journal/start.json")
        if "summaries.json" in names:
            yield from member("summaries.json")
        else:
            yield from (member(name) for name in names if name.startswith("samples/"))


def plain_log(path: Path) -> Row:
    """Read a log as plain data: ``eval``, ``plan``, and ``samples`` with the number of events.

    Raises
    ------
    DataError
        If Inspect is not installed, or cannot read the file.
    """
    log = _read(path)
    apart = {"events", "events_data", "timelines", "attachments"}
    samples = [
        sample.model_dump(exclude=apart) | {"events": len(sample.events)}
        for sample in log.samples or []
    ]
    return {"eval": log.eval.model_dump(), "plan": log.plan.model_dump(), "samples": samples}


def _read(path: Path) -> Any:
    require_file(path)
    try:
        if kind_of(path) != "JSON":
            _require_bounded(path)
        return _inspect().read_eval_log(str(path), resolve_attachments=True)
    except DataError:
        raise
    except Exception as error:  # of an archive that is damaged it raises any kind
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise DataError(f"Inspect cannot read its log {str(path)!r}: {reason}.") from error


def _require_bounded(path: Path) -> None:
    """Raise `DataError` for an archive that unpacks to more than a log of its size holds."""
    with zipfile.ZipFile(path) as log:
        members = log.infolist()
        require_unpacked(str(path), sum(one.file_size for one in members), path.stat().st_size)
        for one in members:
            if one.file_size > BATCH:
                raise DataError(
                    f"{str(path)!r} has {in_mb(one.file_size)} in {one.filename!r}: a run may "
                    f"have {in_mb(BATCH)}. Leave it out of the log."
                )
            if one.file_size > PARTS:
                text = _member(log, one.filename)
                if (n := text.count(b"[") + text.count(b"{")) > PARTS:
                    raise DataError(
                        f"{str(path)!r} has {n:,} lists and objects in {one.filename!r}, more "
                        f"than {PARTS:,}: leave the run out of the log."
                    )


def _member(log: zipfile.ZipFile, name: str) -> bytes:
    try:
        return log.read(name)
    except NotImplementedError:  # Zstandard, which Inspect adds to Python before 3.14
        _inspect()
        return log.read(name)


def _inspect() -> Any:
    try:
        import inspect_ai.log

        return inspect_ai.log
    except ImportError as error:
        raise DataError(
            f"Inspect is not installed ({error}). Install the arena with its extra 'inspect': "
            "pip install 'blind-arena[inspect]'."
        ) from error


def _row(task: Any, sample: Any, *, with_epoch: bool) -> Row:
    name, asked = f"{sample.id}", sample.input
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    if not isinstance(asked, str):
        asked = [{"role": message.role, "content": message.text} for message in asked]
    row: Row = {
        "prompt": asked,
        "response": sample.output.completion,
        "model": task.model,
        "id": f"{name} ({sample.epoch})" if with_epoch else name,
        "prompt_id": f"{task.task}: {name}",
        "task": task.task,
        "reference": targets[0] if len(targets) == 1 and targets[0] else None,
    }
    marks = _marks_of(
        {name: score.value for name, score in (sample.scores or {}).items()}, _number
    )
    return row | {mark: value for mark, value in marks if mark not in row}


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return MARKS.get(value)
    number = float(value) if isinstance(value, int | float) else math.nan
    return number if math.isfinite(number) else None


def _marks_of(values: Mapping[str, Any], read: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    """Give the mark of each scorer by its name, as it is read.

    >>> dict(_marks_of({"match": "P", "graded": {"style": 4, "why": "dull"}}, _number))
    {'match': 0.5, 'graded style': 4.0, 'graded why': None}
    """
    for scorer, value in values.items():
        if isinstance(value, Mapping):
            for name, part in value.items():
                yield f"{scorer} {name}", read(part)
        else:
            yield scorer, read(value)


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
    "effort", "max_tokens", "reasoning_effort", "reasoning_tokens",
    "temperature", "top_k", "top_p", "verbosity",
)  # fmt: skip
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
        Each as `plain_log` gives it. An item is a sample's id, with the
        task where there are several and the epoch where there are several; a system is the log's
        model in its solvers.
    """
    result, seen = LoggedRuns(), set[str]()
    several_tasks = len({log["eval"]["task"] for _, log in logs}) > 1
    several_epochs = any(sample["epoch"] > 1 for _, log in logs for sample in log["samples"])
    for (path, log), system in zip(logs, _systems([log for _, log in logs]), strict=True):
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
    """Explain why a sample is no run; empty if it is one; ``seen`` holds what was read before."""
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
    output = sample["output"]
    calls = any(one["message"].get("tool_calls") for one in output["choices"][:1])
    ended = sample.get("limit") and calls  # by a limit in the middle of a call: without an answer
    outcome = "" if ended else output["completion"]
    steps = [*_steps(sample["messages"], prompt, uncarried)]
    if steps and steps[-1]["kind"] == "message" and steps[-1]["text"].strip() == outcome.strip():
        steps.pop()
    # What ended a run, except its own answer: no amount, which may be of money or time.
    if error := output.get("error"):
        steps.append({"kind": "error", "text": error})
    if limit := sample.get("limit"):
        steps.append({"kind": "error", "text": f"Stopped by a limit: {limit['type']}."})
    marks = dict(
        _marks_of({name: one["value"] for name, one in (sample["scores"] or {}).items()}, _number)
    )
    usage = sample["model_usage"].values()  # US dollars, where every model's price is known
    costs = [float(cost) for one in usage if (cost := one.get("total_cost")) is not None]
    uncarried["events"] += sample.get("events") or 0
    uncarried["marks that are no number"] += sum(value is None for value in marks.values())
    uncarried.update(name for name in UNCARRIED if sample.get(name))
    return {
        "prompt": prompt,
        "outcome": outcome,
        "steps": steps,
        "cost": sum(costs) if costs and len(costs) == len(usage) else None,
        "seconds": sample.get("total_time"),
        "marks": {name: value for name, value in marks.items() if value is not None},
    }


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
            tool, error = one.get("function") or "", one.get("error")
            text = _text(_parts(one), uncarried)
            if error:
                yield {"kind": "error", "name": tool, "text": error["message"]}
            if text or not error:
                yield {"kind": "tool_result", "name": tool, "text": text}
        else:
            yield from _written(one, uncarried)


def _written(message: Plain, uncarried: Counter[str]) -> Iterator[dict[str, Any]]:
    """Give the text of a message, and the tools that were called; an endpoint's own among them."""
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
    """Name the model and the scaffold of each log: its solvers, Inspect's own without its name."""
    tasks = [log["eval"]["task"] for log in logs]
    models = [log["eval"]["model"] for log in logs]
    models = _told_apart(models, tasks, [_of_model(log) for log in logs])
    named = [
        [one]
        if (one := log["eval"].get("solver"))
        else [step["solver"] for step in log["plan"]["steps"]]
        for log in logs
    ]
    solvers = [
        " + ".join(name.removeprefix("inspect_ai/") for name in names) or GENERATE
        for names in named
    ]
    solvers = _told_apart(solvers, tasks, [_of_solvers(log) for log in logs])
    return [
        {"model": model, "scaffold": None if solver == GENERATE else solver}
        for model, solver in zip(models, solvers, strict=True)
    ]


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
