"""Votes of a file, a table or a log, one by one: for what goes by single votes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from rating.diagnosis.remarks import GIVEN, INTENT, RemarkReport, reasons_of, report_remarks
from rating.errors import DataError
from rating.rows import VoteRows
from rating.tables import weights
from rating.tables.coding import (
    MOMENTS,
    NUMERIC,
    ROW,
    Table,
    fetch,
    kinds,
    numbered,
)
from rating.tables.columns import JUDGES, KINDS, REQUIRED, Columns, Reading
from rating.tables.files import Files
from rating.tables.log import LoggedVotes
from rating.tables.sources import (
    only_of_text,
    opened,
    opened_table,
    require_one_kind,
)
from rating.tables.vote_filter import VoteFilter
from rating.typing import Floats


def read_rows(source: object, reading: Reading) -> VoteRows:
    """Read the votes that count.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedVotes
        As `rating.tables.counts.read_votes` takes it.
    reading : Reading
        Of which weights and styles are not used, nor a window of votes in order. ``columns.by`` is
        the role ``by``.

    Raises
    ------
    DataError
        As `rating.tables.counts.read_votes`; and of votes in order, if they do not say who cast
        them.
    """
    by = reading.columns.by is not None
    how = _in_order(source, reading) if reading.ordered else opened_table(source, reading, by=by)
    with how as table:
        numbers = {"trait": _traits(table), "time": _moments(table)} if reading.ordered else {}
        known = {role: values for role, values in numbers.items() if values is not None}
        rows = VoteFilter.settled(table, reading).vote_rows(reading, known)
    if not rows.n:
        is_named = isinstance(source, LoggedVotes) or Files.of(source) is not None
        where = f" in {str(source)!r}" if is_named else ""
        why = ", ".join(f"{n} {why}" for why, n in rows.dropped.items()) or "there are none"
        raise DataError(f"No votes to count{where}: {why}.")
    if reading.ordered and reading.voters and "voter" not in rows.groups:
        msg = f"The votes of {str(source)!r} do not say who cast them: no voter can be examined."
        raise DataError(msg)
    return rows


def report_source(
    source: object,
    columns: Columns,
    *,
    first: str = "quizzing",
    second: str = "asking",
    level: float = 0.95,
) -> RemarkReport:
    """Read remarks and say what they say: see `rating.diagnosis.remarks.report_remarks`.

    Raises
    ------
    DataError
        As `read_rows`; and if there is no column of remarks, nothing in them, or no voter.
    """
    columns_of_text = (*GIVEN, INTENT)
    rows = read_rows(
        source, Reading(columns, prompts=True, both_bad="tie", beside=columns_of_text)
    )
    if rows.groups.keys().isdisjoint(columns_of_text):
        msg = (
            f"{str(source)!r} holds no remarks: the columns {', '.join(GIVEN)} or {INTENT} are "
            "needed, as arena export votes writes them."
        )
        raise DataError(msg)
    if "voter" not in rows.groups:
        msg = f"{str(source)!r} does not say who voted: name the column with --column voter=NAME."
        raise DataError(msg)
    if not reasons_of(rows) and not any(rows.names.get(INTENT, ())):
        raise DataError(f"Nothing was remarked beside the {rows.n_votes} votes of {source!s}.")
    return report_remarks(rows, first=first, second=second, level=level)


@contextmanager
def _in_order(source: object, reading: Reading) -> Iterator[Table]:
    """Read every vote as a row, with its number, and its time and trait where they are known.

    A log has its order and no traits; no time is read of it.
    """
    if isinstance(source, LoggedVotes):
        source.require_own(reading.columns)
        prompt = ("prompt",) if reading.prompts else ()
        yield source.in_order((*REQUIRED, "voter", *prompt, "left_out"))
        return

    def roles(there: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        texts, _ = reading.roles(there, by=False)
        must = ("winner", "voter") if reading.voters else ("winner",)
        needed = {role: reading.columns.need(role, there) for role in must}
        optional = {role: reading.columns.find(role, there) for role in ("time", "trait")}
        return texts | needed, {role: name for role, name in optional.items() if name is not None}

    def wanted(there: Sequence[str]) -> list[str]:
        own = {name for named in roles(there) for name in named.values()}
        return [name for name in there if name in {*own, *JUDGES, *KINDS}]

    with opened(source, wanted, once=True, named=reading.columns) as rows:
        texts, numbers = roles(rows.columns)
        require_one_kind(rows, str(source), reading.columns.asked)
        types = kinds(rows)
        for role, beside in (("time", MOMENTS), ("trait", {"boolean"})):
            if role in numbers and types[numbers[role]] not in beside | NUMERIC:
                texts[role] = numbers.pop(role)
        yield fetch(numbered(rows), only_of_text(rows, texts), {**numbers, "row": ROW})


def _moments(table: Table) -> Floats | None:
    """When each vote was cast, in seconds since 1970 UTC; None unless all votes say so."""
    moments = table.numbers.get("time")
    if column := table.texts.get("time"):
        parsed = [weights.parse_moment(text) if text.strip() else np.nan for text in column.names]
        moments = np.array([*parsed, np.nan])[column.codes]
    return moments if moments is not None and np.isfinite(moments).all() else None


def _traits(table: Table) -> Floats | None:
    """Whether each vote has the trait, 0 or 1; a missing value is none.

    Raises
    ------
    DataError
        If a text is neither true nor false.
    """
    values = table.numbers.get("trait")
    if column := table.texts.get("trait"):
        known = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0, "": 0.0}
        if odd := [text for text in column.names if text.strip().lower() not in known]:
            msg = f"A column of a trait holds {odd[0]!r}: it takes true, false, 1 or 0."
            raise DataError(msg)
        each = [known[text.strip().lower()] for text in column.names]
        values = np.array([*each, 0.0])[column.codes]
    return None if values is None else (np.nan_to_num(values) != 0).astype(np.float64)
