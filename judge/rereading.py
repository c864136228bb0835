"""Reads kept replies again with another parser: no key is made, and nobody is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.case import Case, CaseId
from judge.errors import FailureClass
from judge.journal import Journal, Key
from judge.judged import Judged
from judge.method import Method
from judge.reading import Reading, noted, pooled

_BATCH = 1000


async def reread(
    judged: Sequence[Judged], cases: Mapping[CaseId, Case], method: Method, journal: Journal
) -> tuple[Judged, ...]:
    """Return the rows of an earlier run as the method reads them now, and note what it read.

    Rows without a reply (settled, pending, failed before there was one) come back as they are;
    so do rows of which the journal no longer holds every reply.

    Parameters
    ----------
    judged : sequence of Judged
        Rows of a run of the same method, by whatever version of its parser.
    cases : mapping
        The cases by id.
    """
    rows: list[Judged] = []
    for start in range(0, len(judged), _BATCH):
        batch = judged[start : start + _BATCH]
        replies = await journal.recall([key for row in batch for key in row.keys])
        said = {
            key: method.read(cases[row.case_id].shown(row.order), replies[key])
            for row in batch
            for key in row.keys
            if key in replies
        }
        notes = {key: noted(reading) for key, reading in said.items()}
        await journal.note(method.description.parser_name, notes)
        rows += [_as_read(row, said, method.description.samples) for row in batch]
    return tuple(rows)


def _as_read(row: Judged, said: Mapping[Key, Reading | FailureClass], samples: int) -> Judged:
    if not row.keys or not all(key in said for key in row.keys):
        return row
    found = [said[key] for key in row.keys]
    readings = [reading for reading in found if not isinstance(reading, FailureClass)]
    failures = [failure for failure in found if isinstance(failure, FailureClass)]
    if not readings:
        return replace(row, reading=None, failure=failures[-1])
    of_one = readings if samples > 1 else readings[:1]
    return replace(row, reading=pooled(of_one), failure=None, detail="")
