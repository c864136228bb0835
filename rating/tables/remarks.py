"""Remarks beside votes, of a file, a table or a log: in columns that an arena exports."""

import numpy as np

from rating.diagnosis.remarks import RemarkedVotes, RemarkReport, report_remarks
from rating.errors import DataError
from rating.outcome import Outcome
from rating.rows import VoteRows
from rating.tables.columns import UNLABELLED, Columns, Reading
from rating.tables.rows import read_rows
from rating.typing import Bools, Ints

GIVEN = ("reasons_a", "reasons_b")
"""Columns of the reasons for each side: names with commas between."""
INTENT = "voter_intent"
"""Column of what the voter wanted; `rating.tables.columns` knows no other name for it."""
MOST_REASONS = 50


def read_remarked(source: object, columns: Columns) -> RemarkedVotes:
    """Read the votes that count, with what was remarked beside them.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedColumns
        As `rating.tables.counts.read_votes` takes it.

    Raises
    ------
    DataError
        As `rating.tables.rows.read_rows`; and if there is no column of remarks, nothing in them,
        or no voter.
    """
    reading = Reading(columns, both_bad="tie", beside=(*GIVEN, INTENT))
    rows = read_rows(source, reading).apart()
    if not {*GIVEN, INTENT} & {*rows.groups}:
        msg = (
            f"{str(source)!r} holds no remarks: the columns {', '.join(GIVEN)} or {INTENT} are "
            "needed, as arena export votes writes them."
        )
        raise DataError(msg)
    if "voter" not in rows.groups:
        msg = f"{str(source)!r} does not say who voted: name the column with --column voter=NAME."
        raise DataError(msg)
    reasons = _reasons(rows)
    given_a, given_b = (_given(rows, name, reasons) for name in GIVEN)
    intents, intent = _intents(rows)
    if not reasons and not intents:
        raise DataError(f"Nothing was remarked beside the {rows.n_votes} votes of {source!s}.")
    outcome = np.array([one.score_a for one in Outcome])
    return RemarkedVotes(
        models=rows.models,
        a=rows.a,
        b=rows.b,
        score=outcome[rows.outcome],
        voter=rows.groups["voter"],
        reasons=reasons,
        given_a=given_a,
        given_b=given_b,
        intents=intents,
        intent=intent,
    )


def report_source(
    source: object,
    columns: Columns,
    *,
    first: str = "quizzing",
    second: str = "asking",
    level: float = 0.95,
) -> RemarkReport:
    """Read remarks and say what they say: see `rating.diagnosis.remarks.report_remarks`."""
    votes = read_remarked(source, columns)
    return report_remarks(votes, first=first, second=second, level=level)


def _named(text: str) -> tuple[str, ...]:
    return () if text == UNLABELLED else tuple(filter(None, map(str.strip, text.split(","))))


def _reasons(rows: VoteRows) -> tuple[str, ...]:
    names = sorted(
        {one for name in GIVEN for text in rows.names.get(name, ()) for one in _named(text)}
    )
    if len(names) > MOST_REASONS:
        msg = (
            f"There are {len(names)} different reasons, such as {names[0][:40]!r}, and up to "
            f"{MOST_REASONS} are compared: are they texts?"
        )
        raise DataError(msg)
    return tuple(names)


def _given(rows: VoteRows, name: str, reasons: tuple[str, ...]) -> Bools:
    if name not in rows.groups:
        return np.zeros((rows.n, len(reasons)), dtype=bool)
    each = [[reason in _named(text) for reason in reasons] for text in rows.names[name]]
    table = np.array(each, dtype=bool).reshape(len(each), len(reasons))
    return np.asarray(table[rows.groups[name]])


def _intents(rows: VoteRows) -> tuple[tuple[str, ...], Ints]:
    if INTENT not in rows.groups:
        return (), np.full(rows.n, -1)
    names = rows.names[INTENT]
    known = tuple(name for name in names if name != UNLABELLED)
    place = np.array([-1 if name == UNLABELLED else known.index(name) for name in names])
    return known, place[rows.groups[INTENT]].astype(np.int64)
