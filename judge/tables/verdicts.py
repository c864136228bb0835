"""The verdicts and marks of a judge's run, as rows beside the votes."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, overload

import numpy as np

from judge.case import CaseId, Order
from judge.grammar import Items, Preference, Rating
from judge.ifeval import Checked
from judge.methods import FileMethod
from judge.methods.checklist import Checklists
from judge.tables.cases import NamedCase
from judge.tables.style import STYLES, style_of
from judge.verdict import (
    PENDING,
    READ,
    SETTLED,
    Judged,
    PositionEffect,
    preference_for_a,
    verdict_of,
)
from rating.errors import DataError
from rating.tables import formats
from rating.tables.vote_filter import BOTH
from rating.tables.writing import write_rows

IFEVAL = "ifeval"
"""Checks without a model; as methods, these have a name only."""
ENDINGS = (".parquet", ".csv", ".jsonl")
COLUMNS = (
    *("battle_id", "prompt_id", "model_a", "model_b", "winner", "judge", "method"),
    *("order", "preference", "corrected", "status", "error", "cost", "latency", "template"),
    *("resolved_model", "system_fingerprint", "fallback_for"),
    *(f"{name}_{side}" for name in STYLES for side in "ab"),
)
"""Of a file of verdicts: ``winner`` is null where there is no verdict, never a tie.

``preference`` is that for side A, from 0 to 1; with ``both`` the mean. ``corrected`` is that of a
case asked in one order, less what standing first is worth in the run; it may leave 0 to 1. Costs
(dollars) and latencies (seconds) stand with the orders that were asked, and not again with
``both``. ``error`` is what the endpoint said where it gave no reply. ``template`` is the hash of
what the method asks (`judge.protocol.Template`). ``resolved_model`` and ``system_fingerprint``
are what the endpoint said answered, several with commas, and `SETTLED` where nothing was asked.
``fallback_for`` is the judge in whose place ``judge`` was asked (`judge.fallback`), else null.
Lengths in characters and counts of Markdown are of both responses, so that ``arena rate --style``
takes them.
"""

SINGLE = (
    *("battle_id", "prompt_id", "session_id", "model", "score", "detail", "judge", "method"),
    *("status", "error", "cost", "latency", "template", "fallback_for"),
    *STYLES,
)
"""Of a file of marks: ``score`` is null where there is no mark.

It is the mark, or the share of a checklist's items that are met, null where one of them has no
verdict (status `PARTLY`). ``detail`` is JSON: ``checklist``, or ``items`` with a verdict each.
"""
NUMBERS = {
    **dict.fromkeys(("preference", "corrected", "score", "cost", "latency"), "DOUBLE"),
    **dict.fromkeys((*STYLES, *(f"{name}_{side}" for name in STYLES for side in "ab")), "BIGINT"),
}
"""Types of the columns that hold numbers; every other one holds text."""
PARTLY = "partly_read"


class Rows(Sequence[dict[str, Any]]):
    """Rows that are made when they are looked at: a million of them take two gigabytes.

    Parameters
    ----------
    made : callable
        Makes all of them, one after the other.
    """

    def __init__(self, made: Callable[[], Iterator[dict[str, Any]]]) -> None:
        self._made, self._n = made, -1

    def __len__(self) -> int:
        """Count the rows: makes all of them, once."""
        if self._n < 0:
            self._n = sum(1 for _ in self)
        return self._n

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Make the rows."""
        return self._made()

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Make the row at a place, or those of a slice."""
        if isinstance(at, slice):
            return list(islice(self, *at.indices(len(self))))
        row = next(islice(self, at, None), None) if at >= 0 else None
        if row is None:
            raise IndexError(at)
        return row


def judged_rows(
    cases: Sequence[NamedCase],
    judged: Sequence[Judged],
    judge: str,
    method: FileMethod,
    position: PositionEffect | None = None,
) -> Rows:
    """Give a row for each case and order, and one for both where both were asked.

    Parameters
    ----------
    position : PositionEffect or None
        What the first place is worth, to correct the cases asked in one order.
    """
    places, by = _Places(judged), _by(judge, method)
    return Rows(
        lambda: (
            sides | row
            for named in cases
            for asked in [places.rows(named.case.id)]
            for sides in [_sides(named) | by | _whose_place(asked[0], judge)]
            for row in _rows(asked, position)
        )
    )


def rated_rows(
    cases: Sequence[NamedCase],
    judged: Sequence[Judged],
    judge: str,
    method: FileMethod,
    checklists: Checklists,
) -> Rows:
    """Give a row for each single response."""
    places, by = _Places(judged), _by(judge, method)
    return Rows(
        lambda: (
            _whose(named) | by | _whose_place(asked, judge) | _mark(asked, checklist)
            for named in cases
            for asked in places.rows(named.case.id)[-1:]
            for checklist in [checklists.get(named.case.prompt_id, ())]
        )
    )


class _Places:
    """Where the rows of each case stand, in 72 bytes a case."""

    def __init__(self, judged: Sequence[Judged]) -> None:
        starts, ids, before = array("I"), bytearray(), ""
        for at, row in enumerate(judged):
            if row.case_id != before:
                starts.append(at)
                ids += row.case_id.encode().ljust(_ID)
                before = row.case_id
        names = np.frombuffer(ids, f"S{_ID}")
        by_name = np.argsort(names, kind="stable")
        self._judged, self._names = judged, names[by_name]
        self._starts = np.asarray(starts)[by_name]

    def rows(self, case_id: CaseId) -> list[Judged]:
        """Give the rows of a case."""
        name = case_id.encode().ljust(_ID)
        first = int(self._starts[np.searchsorted(self._names, name)])
        rest = range(first, len(self._judged))
        own = takewhile(lambda row: row.case_id == case_id, (self._judged[at] for at in rest))
        return [*own]


_ID = 64
"""Characters of a case's id."""


def constraint_rows(
    cases: Sequence[NamedCase], checked: Sequence[Checked]
) -> list[dict[str, Any]]:
    """Give a row for each response checked without a model: 1 if all was strictly followed."""
    return [
        _whose(named) | {"method": IFEVAL} | _constraints(one)
        for named, one in zip(cases, checked, strict=True)
    ]


def require_writable(path: Path) -> None:
    """Raise `DataError` unless verdicts can be written there: better before they are paid for."""
    if path.suffix not in ENDINGS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(ENDINGS)}."
        raise DataError(msg)
    if not path.absolute().parent.is_dir():
        msg = f"Cannot write {str(path)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)


def kinds_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give SQL's types of the columns of verdicts, or of marks."""
    return {name: NUMBERS.get(name, "VARCHAR") for name in next(iter(rows), {})}


def write_judged(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write verdicts in the format that the file's ending names."""
    if path.suffix == ".parquet":
        write_rows(rows, kinds_of(rows), path)
    elif path.suffix == ".csv":
        formats.write_pieces(formats.csv_lines(rows), path)
    else:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        formats.write_pieces(lines, path)


def _sides(named: NamedCase) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys(COLUMNS)
    return blank | {
        "battle_id": named.battle_id,
        "prompt_id": named.prompt_id,
        "model_a": named.model_a,
        "model_b": named.model_b,
        **styles_of(named),
    }


def styles_of(named: NamedCase) -> dict[str, int]:
    """Count what both responses look like, by `STYLES` and side."""
    texts = {"a": named.case.response_a, "b": named.case.response_b or ""}
    counts = {side: style_of(text) for side, text in texts.items()}
    return {f"{name}_{side}": counts[side][name] for name in STYLES for side in "ab"}


def _by(judge: str, method: FileMethod) -> dict[str, Any]:
    return {"judge": judge, "method": method.name, "template": method.template.hash}


def _whose_place(row: Judged, judge: str) -> dict[str, str]:
    """Name a judge who was asked in the place of another."""
    return {"judge": row.judge, "fallback_for": judge} if row.judge else {}


def _whose(named: NamedCase) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys(SINGLE)
    return blank | {
        "battle_id": named.battle_id,
        "prompt_id": named.prompt_id,
        "session_id": named.session_id,
        "model": named.model_a,
        **style_of(named.case.response_a),
    }


def _mark(row: Judged, checklist: Sequence[str]) -> dict[str, Any]:
    detail: dict[str, Any] = {"checklist": list(checklist)} if checklist else {}
    score, status = None, row.status
    if isinstance(row.reading, Rating):
        score = float(row.reading.score)
    elif isinstance(row.reading, Items):
        pairs = zip(checklist, row.reading.met, strict=True)
        detail = {"items": [{"item": item, "met": met} for item, met in pairs]}
        score = row.reading.share()
        status = PARTLY if score is None else status
    return {
        "score": score,
        "detail": json.dumps(detail, ensure_ascii=False) if detail else None,
        "status": status,
        "error": row.detail or None,
        "cost": row.cost_usd,
        "latency": row.latency_s,
    }


def _constraints(checked: Checked) -> dict[str, Any]:
    items = [
        {"id": id, "strict": strict, "loose": loose}
        for id, strict, loose in zip(checked.ids, checked.strict, checked.loose, strict=True)
    ]
    unread = None in checked.strict
    return {
        "score": None if unread else float(all(checked.strict)),
        "detail": json.dumps({"items": items}, ensure_ascii=False),
        "status": PARTLY if unread else READ,
    }


def _rows(orders: Sequence[Judged], position: PositionEffect | None) -> Iterator[dict[str, Any]]:
    both = verdict_of(orders)
    for row in orders:
        yield _row(row, None if both else position)
    if both is not None:
        outcome = both.outcome
        yield {
            "winner": None if outcome is None else outcome.value,
            "order": BOTH,
            "preference": _mean(orders),
            "status": READ if outcome is not None else _why_not(orders),
            **_answered(*orders),
        }


def _row(row: Judged, position: PositionEffect | None) -> dict[str, Any]:
    preference, status, corrected = row.for_a, row.status, None
    if position and status == READ and isinstance(row.reading, Preference):
        corrected = position.corrected(row.reading, row.order)
    return {
        "winner": None if preference is None else preference.outcome.value,
        "order": row.order.value,
        "preference": None if preference is None else preference.first,
        "corrected": corrected,
        "status": status,
        "error": row.detail or None,
        "cost": row.cost_usd,
        "latency": row.latency_s,
        **_answered(row),
    }


def _answered(*orders: Judged) -> dict[str, str | None]:
    """Name what answered; nothing where the endpoint gave no name, or nothing was read."""
    if all(row.status == SETTLED for row in orders):
        return {"resolved_model": SETTLED, "system_fingerprint": SETTLED}
    models = frozenset[str]().union(*(row.models for row in orders))
    fingerprints = frozenset[str]().union(*(row.fingerprints for row in orders))
    return {
        "resolved_model": ", ".join(sorted(models)).strip(", ") or None,
        "system_fingerprint": ", ".join(sorted(fingerprints)).strip(", ") or None,
    }


def _mean(orders: Sequence[Judged]) -> float | None:
    """Average the preferences for side A, whichever order was asked first."""
    shown = {row.order: row.reading for row in orders if isinstance(row.reading, Preference)}
    return preference_for_a(shown.get(Order.AB), shown.get(Order.BA))


def _why_not(orders: Sequence[Judged]) -> str:
    """Name what is in the way of a verdict; pending before a failure, for it may still pass."""
    unread = [row.status for row in orders if row.outcome is None]
    return PENDING if PENDING in unread else unread[0]
