"""A second judge, for the cases on which the first cannot be asked or will not answer."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from judge.errors import FailureClass
from judge.tables.cases import NamedCase
from judge.tables.verdicts import total
from judge.verdict import PENDING, Judged, Run, Stop, by_case

HANDED_OVER = frozenset(
    {
        FailureClass.RATE_LIMIT,
        FailureClass.OVERLOADED,
        FailureClass.TRANSPORT,
        FailureClass.TOO_LONG,
        FailureClass.REJECTED,
        FailureClass.DENIED,
        FailureClass.REFUSAL,
    }
)
"""Failures of which a case goes to the second judge: no reply for good, or a refusal.

A reply in which no verdict can be read stands: the case was judged, and badly.
"""
OUT = frozenset({Stop.ALIKE, Stop.DENIED})
"""Ends of a run that say that its endpoint is out: what is pending goes to the second judge."""


def handed_over(cases: Iterable[NamedCase], first: Run) -> list[NamedCase]:
    """Give the cases for the second judge, whole: a verdict is of one judge in both orders.

    None where the first run stopped at its budget: the same call takes it up.
    """
    out = first.stopped in OUT
    if first.stopped is not None and not out:
        return []
    theirs = {row.case_id for row in first.judged if _is_handed_over(row, out=out)}
    return [_with_checklist(named, first) for named in cases if named.case.id in theirs]


def reasons(first: Run) -> Mapping[str, int]:
    """Count the cases that are handed over, by what became of the first of their orders that was.

    Those that an endpoint which is out was not asked any more are `PENDING`.
    """
    out = first.stopped in OUT
    whole = (
        [row.status for row in rows if _is_handed_over(row, out=out)]
        for rows in by_case(first.judged)
    )
    return dict(Counter(statuses[0] for statuses in whole if statuses))


def together(first: Run, second: Run, judge: str) -> Run:
    """Return both runs as one: rows of the second, by name, for the cases that it was given.

    What the first judge took for a case that it then would not answer counts in the costs.
    """
    before = {(row.case_id, row.order): row for row in first.judged}
    theirs = {row.case_id for row in second.judged}
    return replace(
        second.after(first),
        judged=[
            *(row for row in first.judged if row.case_id not in theirs),
            *(_named(row, before.get((row.case_id, row.order)), judge) for row in second.judged),
        ],
        checklists={**second.checklists, **first.checklists},
    )


def _is_handed_over(row: Judged, *, out: bool) -> bool:
    return row.failure in HANDED_OVER or (out and row.status == PENDING)


def _with_checklist(named: NamedCase, first: Run) -> NamedCase:
    """Give a case with the checklist that the first judge wrote for its prompt, if it did."""
    return replace(named, checklist=first.checklists.get(named.case.prompt_id, named.checklist))


def _named(row: Judged, before: Judged | None, judge: str) -> Judged:
    paid = None if before is None else before.cost_usd
    return replace(row, judge=judge, cost_usd=total([row.cost_usd, paid]))
