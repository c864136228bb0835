"""The results file of a bench: a case a row, with all that is known of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from judge.calls import Key
from judge.case import CaseId
from judge.completion import Reply
from judge.ifeval import Checked
from judge.methods import FileMethod
from judge.tables.cases import NamedCase
from judge.tables.style import STYLES
from judge.tables.verdicts import constraint_rows, judged_rows, rated_rows
from judge.verdict import Judged, Run, verdict_of

ORDERS = ("ab", "ba")
_USED = {"tokens_in": "BIGINT", "tokens_out": "BIGINT", "cost": "DOUBLE", "latency": "DOUBLE"}
_OF_CASE = {"battle_id": "VARCHAR", "prompt_id": "VARCHAR", "category": "VARCHAR"}
_OF_ORDER = {
    "winner": "VARCHAR",
    "preference": "DOUBLE",
    "status": "VARCHAR",
    "words": "VARCHAR",
}
PAIRS = {
    **_OF_CASE,
    "turn": "BIGINT",
    "model_a": "VARCHAR",
    "model_b": "VARCHAR",
    "winner": "VARCHAR",
    "judge": "VARCHAR",
    "method": "VARCHAR",
    "template": "VARCHAR",
    "order": "VARCHAR",
    "preference": "DOUBLE",
    "inconsistent": "VARCHAR",
    "status": "VARCHAR",
    "fallback_for": "VARCHAR",
    **{f"{name}_{order}": kind for name, kind in _OF_ORDER.items() for order in ORDERS},
    **_USED,
    **{f"{name}_{side}": "BIGINT" for name in STYLES for side in "ab"},
}
"""Columns of pairs, and their types: those of a file of votes, so that it can be rated.

Side A is the model, side B the baseline; ``winner_ab`` and its like are in these sides too,
whoever was shown first. ``words`` are the judge's; a verdict is null where none was read.
"""
MARKS = {
    **_OF_CASE,
    "session_id": "VARCHAR",
    "tags": "VARCHAR",
    "turn": "BIGINT",
    "model": "VARCHAR",
    "score": "DOUBLE",
    "detail": "VARCHAR",
    "judge": "VARCHAR",
    "method": "VARCHAR",
    "template": "VARCHAR",
    "status": "VARCHAR",
    "fallback_for": "VARCHAR",
    "words": "VARCHAR",
    **_USED,
    **dict.fromkeys(STYLES, "BIGINT"),
}
"""Columns of single answers, and their types."""


@dataclass(frozen=True, slots=True)
class Benched:
    """A case of a bench, and what the results say of it beside the verdict: ``more``."""

    named: NamedCase
    more: Mapping[str, Any] = field(default_factory=dict)


def paired_results(
    cases: Sequence[Benched],
    run: Run,
    replies: Mapping[Key, Reply],
    judge: str,
    method: FileMethod,
) -> Iterator[dict[str, Any]]:
    """Give a row for each pair, both orders and their reconciliation in it."""
    named = [case.named for case in cases]
    rows = iter(judged_rows(named, run.judged, judge, method))
    orders = _orders(run.judged)
    for case in cases:
        case_id = case.named.case.id
        asked = orders[case_id]
        both = verdict_of(asked)
        *single, last = islice(rows, len(asked) + (both is not None))
        by_order = {row["order"]: row for row in [*single, last]}
        yield {
            **last,
            **case.more,
            **_used(asked, replies),
            "inconsistent": both and both.inconsistent,
            **{
                f"{name}_{one.order}": by_order[one.order.value][name]
                for one in asked
                for name in ("winner", "preference", "status")
            },
            **{f"words_{one.order}": _words(one, replies) for one in asked},
        }


def marked_results(
    cases: Sequence[Benched],
    run: Run,
    replies: Mapping[Key, Reply],
    judge: str,
    method: FileMethod,
) -> Iterator[dict[str, Any]]:
    """Give a row for each single answer."""
    named, orders = [case.named for case in cases], _orders(run.judged)
    rows = rated_rows(named, run.judged, judge, method, run.checklists)
    for case, row in zip(cases, rows, strict=True):
        asked = orders[case.named.case.id]
        yield {
            **row,
            **case.more,
            **_used(asked, replies),
            "words": _words(asked[0], replies),
        }


def checked_results(
    cases: Sequence[Benched], checked: Sequence[Checked]
) -> Iterator[dict[str, Any]]:
    """Give a row for each answer that was checked without a judge."""
    rows = constraint_rows([case.named for case in cases], checked)
    for case, row in zip(cases, rows, strict=True):
        yield {**row, **case.more}


def _orders(judged: Sequence[Judged]) -> dict[CaseId, list[Judged]]:
    orders: dict[CaseId, list[Judged]] = {}
    for row in judged:
        orders.setdefault(row.case_id, []).append(row)
    return orders


def _words(row: Judged, replies: Mapping[Key, Reply]) -> str | None:
    """Give what the judge said, all attempts and samples of it."""
    texts = [replies[key].text for key in row.keys if key in replies]
    return "\n\n".join(texts) if texts else None


def _used(rows: Sequence[Judged], replies: Mapping[Key, Reply]) -> dict[str, Any]:
    """Sum what both orders took; what nobody counted is null."""
    each = [replies[key] for row in rows for key in row.keys if key in replies]
    return {
        "tokens_in": total([reply.tokens_in for reply in each]),
        "tokens_out": total([reply.tokens_out for reply in each]),
        "cost": total([row.cost_usd for row in rows]),
        "latency": total([row.latency_s for row in rows]),
    }


def total(values: Sequence[float | None]) -> float | None:
    """Sum what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
