"""Responses with the instructions that they can be checked against, as IFEval writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.publish.cases import OUTPUTS, NamedCase, plain, responses_of
from judge.methods.constraints import Checked, Task, check, read_task
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError, RatingError
from rating.tables.files import json_or_text

IDS, KWARGS = "instruction_id_list", "kwargs"


@dataclass(frozen=True, slots=True)
class Instructed:
    """A response, and what its prompt asks for."""

    named: NamedCase
    task: Task


def read_instructed(paths: Sequence[Path]) -> list[Instructed]:
    """Read responses and their instructions.

    Parameters
    ----------
    paths : sequence of Path
        Files of responses (`arena.publish.cases.read_responses`) with the columns
        ``instruction_id_list`` and ``kwargs`` of IFEval's ``input_data.jsonl``; or that file, and
        files of responses without them, which are matched by their prompts.

    Raises
    ------
    DataError
        If no file holds a response, an instruction cannot be read, or a response has none.
    """
    tables = [read_annotations(path, "responses") for path in paths]
    by_prompt = {task.prompt: task for table in tables for task in _tasks(table)}
    found = [one for table in tables if _answers(table) for one in _matched(table, by_prompt)]
    if not found:
        names = ", ".join(repr(table.source) for table in tables)
        msg = f"There is no response in {names}: give a column 'response' or 'output'."
        raise DataError(msg)
    return found


def checked(instructed: Sequence[Instructed]) -> list[Checked]:
    """Check every response against the instructions of its prompt."""
    return [check(one.task, one.named.case.response_a) for one in instructed]


def _answers(table: Annotations) -> bool:
    return any(map(table.has, OUTPUTS))


def _matched(table: Annotations, by_prompt: dict[str, Task]) -> list[Instructed]:
    """Give each response the instructions of its row, or those of its prompt."""
    own = _tasks(table)
    rows = []
    for number, named in enumerate(responses_of(table)):
        prompt = named.case.prompt[-1].content
        task = own[number] if own else by_prompt.get(prompt)
        if task is None:
            msg = f"No file holds instructions ({IDS}) for the prompt {prompt[:60]!r}."
            raise DataError(msg)
        rows.append(Instructed(named, task))
    return rows


def _tasks(table: Annotations) -> list[Task]:
    if not table.has(IDS):
        return []
    prompts, ids, kwargs = (table.need(name) for name in ("prompt", IDS, KWARGS))
    rows = zip(prompts, ids, kwargs, strict=True)
    return [_task(table, number, *row) for number, row in enumerate(rows, start=1)]


def _task(table: Annotations, number: int, prompt: object, ids: object, kwargs: object) -> Task:
    row = {"prompt": prompt, IDS: _listed(ids), KWARGS: _listed(kwargs)}
    try:
        return read_task(row)
    except RatingError as error:
        msg = f"Row {number} of {table.source!r}: {error}"
        raise DataError(msg) from error


def _listed(value: Any) -> Any:
    """Make a list of what a file holds as an array, or as JSON text."""
    return json_or_text(value) if isinstance(value, str) else plain(value)
