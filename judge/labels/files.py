"""Prompts of files: read in their order, and written again with a column a label."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judge.labels.overlap import Overlap, compared
from judge.labels.taggers import FACETS, tag
from rating.errors import DataError, NotIdentifiedError
from rating.options import RateOptions
from rating.pooling.mix import Mix
from rating.tables.coding import Frame
from rating.tables.columns import Columns, quoted_names, require
from rating.tables.counts import Groups, rate_source
from rating.tables.files import Files, json_or_text
from rating.tables.mixes import read_mix
from rating.tables.rewriting import require_target, write_beside
from rating.tables.sources import LoggedColumns, opened
from rating.tables.weights import parse_moments
from rating.typing import Bools, Floats

PROMPTS = ("prompt", "instruction", "question", "text", "turns", "conversation")
"""Columns of prompts, the first that is there."""

TEXT = ".txt"

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


def mix_of(source: str, by: str) -> Mix:
    """Count one's own prompts by a column; without it by what the taggers say of them.

    Parameters
    ----------
    source : str
        A file of text, see `prompts_in`, or one that `rating.read_votes` reads.

    Raises
    ------
    DataError
        If the file cannot be read, or has neither the column nor prompts to label.
    """
    if Path(source).suffix.lower() == TEXT:
        prompts = prompts_in(_read_text(Path(source)))
    else:
        with opened(source, list, holds="prompts", as_peers=False) as frame:
            there = frame.collect_schema().names()
        if by not in FACETS or by in there or not {*PROMPTS} & {*there}:
            return read_mix(source, by)
        prompts = prompts_of(Files.of(source) or Files((source,)), None)
    return mix_of_prompts(prompts, by)


def mix_of_prompts(prompts: Iterable[Sequence[str]], by: str) -> Mix:
    """Label prompts, and count them by one of `FACETS`; raises `DataError` for another name."""
    if by not in FACETS:
        msg = f"Prompts as text have no {by!r}: they are labelled by {', '.join(FACETS)}."
        raise DataError(msg)
    return Mix.of_counts(Counter(tag(texts)[by].value for texts in prompts))


def prompts_in(text: str) -> list[list[str]]:
    """Give the prompts of a text: one a line, or a line of JSON each; empty lines are none.

    A line of JSON is a text, a list of texts or messages, or an object with one of `PROMPTS`.

    Examples
    --------
    >>> prompts_in('Why?' + chr(10) + chr(10) + '{"prompt": "Write a poem"}')
    [['Why?'], ['Write a poem']]
    """
    return [
        _of_line(line.strip(), row)
        for row, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


def _of_line(line: str, row: int) -> list[str]:
    value = json_or_text(line) if line[0] in '{["' else line
    if isinstance(value, dict):
        name = next((name for name in PROMPTS if name in value), None)
        value = value[name] if name else None
    texts = _texts(value if isinstance(value, list) else [value])
    if texts is None:
        msg = f"Line {row} has no prompt, but {line[:40]!r}: write it as text, or with 'prompt'."
        raise DataError(msg)
    return texts


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the prompts of {str(path)!r}: {error}") from error


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
    with opened_prompts(source, column) as (frame, prompts):
        there = frame.collect_schema().names()
        name = require(time, there) if time else Columns().find("time", there)
        texts = ["\n\n".join(part) for part in prompts]
        if name is None:
            return texts, None
        values = frame.select(name).to_native().fetchnumpy()[name]
    if values.dtype.kind == "M":
        return texts, values.astype("datetime64[us]").astype(np.float64) / 1e6
    return texts, np.asarray(parse_moments([str(value) for value in values.tolist()]))


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
