"""Inspect's logs (``.eval``), by Inspect's own reader: an answer a row, and what it was marked."""

import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rating.errors import DataError
from rating.tables.bounds import BATCH, PARTS, in_mb, require_unpacked
from rating.tables.files import require_file
from rating.tables.peers import announce

NAME = "Inspect's log"
MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What Inspect takes its letters for: correct, partial, incorrect, no answer."""
HALTED = "halted by an error"
"""Reason of a sample that ended without an answer."""
SILENT = "without an answer"

Row = dict[str, Any]


def rows_in(path: Path) -> list[Row]:
    """Read the samples of a log, and announce which are left out.

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
    require_file(path)
    log = _read(path)
    samples = log.samples or []
    many = any(sample.epoch > 1 for sample in samples)
    left_out: dict[str, int] = {}
    rows = []
    for sample in samples:
        why = HALTED if sample.error else "" if sample.output.completion else SILENT
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        else:
            rows.append(_row(log.eval, sample, with_epoch=many))
    announce(str(path), NAME, left_out)
    return _with_one_score(rows)


def plain_log(path: Path) -> Row:
    """Read a log as plain data: ``eval``, ``plan``, and ``samples`` with the number of events.

    Raises
    ------
    DataError
        If Inspect is not installed, or cannot read the file.
    """
    require_file(path)
    log = _read(path)
    apart = {"events", "events_data", "timelines", "attachments"}
    samples = [
        sample.model_dump(exclude=apart) | {"events": len(sample.events)}
        for sample in log.samples or []
    ]
    return {"eval": log.eval.model_dump(), "plan": log.plan.model_dump(), "samples": samples}


def _read(path: Path) -> Any:
    try:
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
        n_bytes = sum(one.file_size for one in members)
        require_unpacked(str(path), n_bytes, path.stat().st_size)
        for one in members:
            if one.file_size > BATCH:
                msg = (
                    f"{str(path)!r} has {in_mb(one.file_size)} in {one.filename!r}: a run may "
                    f"have {in_mb(BATCH)}. Leave it out of the log."
                )
                raise DataError(msg)
            if one.file_size > PARTS:
                text = log.read(one)
                if (n := text.count(b"[") + text.count(b"{")) > PARTS:
                    msg = (
                        f"{str(path)!r} has {n:,} lists and objects in {one.filename!r}, more "
                        f"than {PARTS:,}: leave the run out of the log."
                    )
                    raise DataError(msg)


def _inspect() -> Any:
    try:
        import inspect_ai.log

        return inspect_ai.log
    except ImportError as error:
        msg = (
            f"Inspect is not installed ({error}). Install the arena with its extra 'inspect': "
            "pip install '.[inspect]'."
        )
        raise DataError(msg) from error


def _row(task: Any, sample: Any, *, with_epoch: bool) -> Row:
    name = f"{sample.id}"
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    row: Row = {
        "prompt": _prompt(sample.input),
        "response": sample.output.completion,
        "model": task.model,
        "id": f"{name} ({sample.epoch})" if with_epoch else name,
        "prompt_id": f"{task.task}: {name}",
        "task": task.task,
        "reference": targets[0] if len(targets) == 1 and targets[0] else None,
    }
    marks = marks_of({name: score.value for name, score in (sample.scores or {}).items()})
    return row | {mark: value for mark, value in marks if mark not in row}


def _prompt(asked: Any) -> str | list[Mapping[str, str]]:
    if isinstance(asked, str):
        return asked
    return [{"role": message.role, "content": message.text} for message in asked]


def marks_of(values: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Give the mark of each scorer by its name; None where its value is no number.

    >>> dict(marks_of({"match": "P", "graded": {"style": 4, "why": "dull"}}))
    {'match': 0.5, 'graded style': 4.0, 'graded why': None}
    """
    for scorer, value in values.items():
        if isinstance(value, Mapping):
            for name, part in value.items():
                yield f"{scorer} {name}", _number(part)
        else:
            yield scorer, _number(value)


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return MARKS.get(value)
    number = float(value) if isinstance(value, int | float) else math.nan
    return number if math.isfinite(number) else None


def _with_one_score(rows: list[Row]) -> list[Row]:
    """Name the marks ``score`` where one scorer gave all of them."""
    own = ("prompt", "response", "model", "id", "prompt_id", "task", "reference")
    names = {name for row in rows for name in row if name not in own}
    if len(names) != 1:
        return rows
    (name,) = names
    return [{**row, "score": row.get(name), "judge": name} for row in rows]
