"""What a judge's run found, as rows beside the votes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arena.errors import DataError
from arena.publish import formats
from arena.publish.cases import NamedCase
from judge.case import CaseId
from judge.judged import PENDING, READ, Judged, verdicts
from judge.reading import Preference
from judge.verdict import Verdict, preference_for_a

BOTH = "both"
ENDINGS = (".parquet", ".csv", ".jsonl")
COLUMNS = (
    *("battle_id", "prompt_id", "model_a", "model_b", "winner", "judge"),
    *("order", "preference", "status", "cost", "latency"),
)
"""Of a file of verdicts: ``winner`` is null where there is no verdict, never a tie.

``preference`` is that for side A, from 0 to 1; with ``both`` the mean. Costs (dollars) and
latencies (seconds) stand with the orders that were asked, and not again with ``both``.
"""


def judged_rows(
    cases: Sequence[NamedCase], judged: Sequence[Judged], judge: str
) -> list[dict[str, Any]]:
    """Give a row for each case and order, and one for both where both were asked."""
    asked: dict[CaseId, list[Judged]] = {}
    for row in judged:
        asked.setdefault(row.case_id, []).append(row)
    over_both = verdicts(judged)
    return [
        _sides(named, judge) | row
        for named in cases
        for row in _rows(asked[named.case.id], over_both.get(named.case.id))
    ]


def require_writable(path: Path) -> None:
    """Raise `DataError` unless verdicts can be written there: better before they are paid for."""
    if path.suffix not in ENDINGS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(ENDINGS)}."
        raise DataError(msg)
    if not path.absolute().parent.is_dir():
        msg = f"Cannot write {str(path)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)


def write_judged(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write verdicts in the format that the file's ending names."""
    if path.suffix == ".parquet":
        formats.write_parquet(rows, path)
    elif path.suffix == ".csv":
        formats.write_text(formats.as_csv(rows), path)
    else:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        formats.write_text("".join(lines), path)


def _sides(named: NamedCase, judge: str) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys(COLUMNS)
    return blank | {
        "battle_id": named.battle_id,
        "prompt_id": named.prompt_id,
        "model_a": named.model_a,
        "model_b": named.model_b,
        "judge": judge,
    }


def _rows(orders: Sequence[Judged], both: Verdict | None) -> Iterator[dict[str, Any]]:
    for row in orders:
        yield _row(row)
    if both is not None:
        outcome = both.outcome
        yield {
            "winner": None if outcome is None else outcome.value,
            "order": BOTH,
            "preference": _mean(orders),
            "status": READ if outcome is not None else _why_not(orders),
        }


def _row(row: Judged) -> dict[str, Any]:
    preference = row.for_a
    return {
        "winner": None if preference is None else preference.outcome.value,
        "order": row.order.value,
        "preference": None if preference is None else preference.first,
        "status": row.status,
        "cost": row.cost_usd,
        "latency": row.latency_s,
    }


def _mean(orders: Sequence[Judged]) -> float | None:
    as_is, swapped = (row.reading for row in orders)
    if not isinstance(as_is, Preference) or not isinstance(swapped, Preference):
        return None
    return preference_for_a(as_is, swapped)


def _why_not(orders: Sequence[Judged]) -> str:
    """Name what is in the way of a verdict; pending before a failure, for it may still pass."""
    unread = [row.status for row in orders if row.outcome is None]
    return PENDING if PENDING in unread else unread[0]
