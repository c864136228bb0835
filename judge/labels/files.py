"""Prompts of files: read in their order, and written again with a column a label."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.labels.overlap import Overlap, compared
from judge.labels.released import Asked
from judge.labels.taggers import FACETS, tag
from rating.errors import DataError, NotIdentifiedError
from rating.options import RateOptions
from rating.tables.coding import Frame
from rating.tables.columns import Columns, quoted_names, require
from rating.tables.counts import Groups, rate_source
from rating.tables.files import Files, json_or_text
from rating.tables.rewriting import require_target, write_beside
from rating.tables.sources import LoggedColumns, opened
from rating.tables.weights import parse_moments
from rating.typing import Bools, Floats

PROMPTS = ("prompt", "instruction", "question", "text", "turns", "conversation")
"""Columns of prompts, the first that is there."""

OVERLAP = "overlap"
"""Column by which votes are parted."""

STEP = 2_000
"""Rows between two looks at the progress."""

Progress = Callable[[int, int], None]


@contextmanager
def opened_prompts(source: Files, column: str | None) -> Iterator[tuple[Frame, list[list[str]]]]:
    """Open a table, and give the prompts of each row: one, or those of a conversation.

    Raises
    ------
    DataError
        If it cannot be read, has no column of prompts, or a row has none.
    """
    with opened(source, list, holds="prompts", as_peers=False) as frame:
        there = frame.collect_schema().names()
        name = require(column, there) if column else next((n for n in PROMPTS if n in there), None)
        if name is None:
            msg = (
                f"There is no column of prompts in {str(source)!r}, but {quoted_names(there)}: "
                "name it with --column."
            )
            raise DataError(msg)
        cells = frame.select(name).to_native().fetchnumpy()[name].tolist()
        yield frame, [_prompts(cell, row, source) for row, cell in enumerate(cells, 1)]


def label_file(
    source: Files, column: str | None, to: Path | None, progress: Progress
) -> Counter[tuple[str, str]]:
    """Label the prompts of a file, and count the labels by facet and value.

    Parameters
    ----------
    to : Path or None
        Where to write every row again, in its order, with a column of each of `FACETS`.

    Raises
    ------
    DataError
        If the file cannot be read, has a column of such a name, or cannot be written.
    """
    if to:
        require_target(to, source)
    with opened_prompts(source, column) as (frame, prompts):
        labels = {facet: np.empty(len(prompts), dtype=object) for facet in FACETS}
        for row, texts in enumerate(prompts):
            for facet, label in tag(texts).items():
                labels[facet][row] = label.value
            if row % STEP == 0:
                progress(row, len(prompts))
        if to:
            write_beside(frame.to_native(), labels, to)
    return Counter((facet, value) for facet, values in labels.items() for value in values.tolist())


def _prompts(cell: object, row: int, source: Files) -> list[str]:
    value = json_or_text(cell) if isinstance(cell, str) and cell[:1] == "[" else cell
    texts = _texts([*value] if isinstance(value, list | tuple | np.ndarray) else [value])
    if texts is None:
        texts = [cell] if isinstance(cell, str) else None
    if texts is None:
        msg = f"Row {row} of {str(source)!r} has no prompt: leave it out with --where."
        raise DataError(msg)
    return texts


def _texts(value: Sequence[Any]) -> list[str] | None:
    """Give the texts of a list, or what the user wrote of a list of messages."""
    if len(value) and all(isinstance(one, dict) and "content" in one for one in value):
        value = [one["content"] for one in value if one.get("role") in ("user", "human")]
    return [*value] if len(value) and all(isinstance(one, str) for one in value) else None


def prompts_of(source: Files, column: str | None) -> list[list[str]]:
    """Give the prompts of each row of a file; raises as `opened_prompts`."""
    with opened_prompts(source, column) as (_, prompts):
        return prompts


def timed_prompts(
    source: Files, column: str | None, time: str | None
) -> tuple[list[str], Floats | None]:
    """Give the prompts of a file, and when each was written, in seconds; None without a time.

    Raises
    ------
    DataError
        As `opened_prompts`, or if a moment cannot be read.
    """
    texts, values = _with_column(source, column, "time", time)
    if values is None:
        return texts, None
    if values.dtype.kind == "M":
        return texts, values.astype("datetime64[us]").astype(np.float64) / 1e6
    return texts, np.asarray(parse_moments([str(value) for value in values.tolist()]))


def asked_by(source: Files, column: str | None, voter: str | None) -> list[Asked]:
    """Give the prompts of a file with who wrote each; nobody can without a column of voters.

    Raises
    ------
    DataError
        As `opened_prompts`, or if there is no such column.
    """
    texts, people = _with_column(source, column, "voter", voter)
    if people is None:
        msg = f"There is no column of voters in {str(source)!r}: name it with --column voter=NAME."
        raise DataError(msg)
    rows = zip(people.tolist(), texts, strict=True)
    return [Asked(row, str(person), text) for row, (person, text) in enumerate(rows, 1)]


def _with_column(
    source: Files, column: str | None, role: str, named: str | None
) -> tuple[list[str], NDArray[Any] | None]:
    """Give the prompts of a file, and a column of it if it has such a one."""
    with opened_prompts(source, column) as (frame, prompts):
        there = frame.collect_schema().names()
        name = require(named, there) if named else Columns().find(role, there)
        texts = ["\n\n".join(part) for part in prompts]
        if name is None:
            return texts, None
        values: NDArray[Any] = frame.select(name).to_native().fetchnumpy()[name]
    return texts, values


def rated_apart(source: Files | LoggedColumns, overlaps: Bools, level: float) -> Overlap:
    """Rate votes on prompts that overlap with a benchmark, and the others, and compare.

    Parameters
    ----------
    overlaps : ndarray of bool, shape (n_rows,)

    Raises
    ------
    NotIdentifiedError
        If votes of one of the two kinds identify no rating.
    """
    options = RateOptions(by=OVERLAP, level=level)
    marks = np.where(overlaps, "yes", "no").astype(object)
    if isinstance(source, LoggedColumns):
        groups = rate_source(replace(source, labels={OVERLAP: marks.tolist()}), options)
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(source, list, as_peers=False) as frame,
        ):
            file = Path(folder) / "votes.parquet"
            write_beside(frame.to_native(), {OVERLAP: marks}, file)
            groups = rate_source(file, options)
    assert isinstance(groups, Groups)
    for kind, words in (("yes", "overlap with the benchmark"), ("no", "do not overlap")):
        if kind not in groups.reports:
            why = groups.not_rated.get(kind, "There are none.")
            msg = f"The votes on prompts that {words} identify no rating. {why}"
            raise NotIdentifiedError(msg)
    return compared(groups.reports["yes"], groups.reports["no"], level)
