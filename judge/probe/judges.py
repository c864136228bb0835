"""The audit of judges by files of verdicts: runs of the same cases, in one order or both."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judge.case import Order
from judge.probe.audit import Audit
from judge.probe.verdicts import Verdicts, audit_verdicts
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError, RatingError
from rating.tables.files import Files
from rating.tables.vote_filter import BOTH, LABELS
from rating.typing import Floats

Case = tuple[str, ...]
Labels = dict[Case, float]

UNNAMED = "judge"
CASE = ("battle_id", "item_id", "turn")
"""Columns that tell cases of one prompt and pair apart, where they are there."""
ORDERS = {Order.AB.value: "A first", Order.BA.value: "B first"}
OTHER = {order.value: order.other.value for order in Order}
SHOWN = (BOTH, Order.AB.value, "", Order.BA.value)
"""Which order's verdict counts as that of a run: the first of these that there is."""


@dataclass(frozen=True, slots=True)
class JudgeProbe:
    """The audit of each judge.

    Attributes
    ----------
    about : dict
        Files, and for each judge the runs, the cases, and those read throughout.
    """

    about: dict[str, Any]
    audits: tuple[Audit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"about": self.about, "audits": [one.to_dict() for one in self.audits]}


@dataclass(frozen=True, slots=True)
class _Row:
    """One verdict: ``label`` is 1 for side A of the case, NaN where unread."""

    judge: str
    run: str
    order: str
    case: Case
    label: float


def probe_judges(files: Sequence[str | Path | Files], *, seed: int) -> JudgeProbe:
    """Audit judges by their verdicts.

    A file is a run, unless it has a column ``run``. Verdicts of one judge on the same case
    (prompt, pair of models, and what of battle_id, item_id and turn all files have) are compared.

    Raises
    ------
    DataError
        If a file cannot be read, a case comes twice in a run and an order, or a judge has no case
        that was read throughout.
    """
    tables = [read_annotations(file, peers=True) for file in files]
    extra = tuple(name for name in CASE if all(table.has(name) for table in tables))
    if len({str(file) for file in files}) < len(files):
        msg = f"A file is named twice: {', '.join(map(str, files))}. Name each run's own file."
        raise DataError(msg)
    known: set[Case] = set()
    rows = [
        row for table in tables for row in _rows(table, extra, _run_name(table, len(files)), known)
    ]
    judges = list(dict.fromkeys(row.judge for row in rows))
    audits, counts = [], {}
    for judge in judges:
        verdicts = _verdicts([row for row in rows if row.judge == judge])
        counts[judge] = {
            "runs": list(verdicts.runs),
            "orders": list(verdicts.orders),
            "cases": len(verdicts.prompt),
            "read_throughout": len(verdicts.read_by_all().prompt),
            "models": len(verdicts.models),
        }
        try:
            audited = audit_verdicts(judge, verdicts, rng=np.random.default_rng(seed))
        except RatingError as error:
            msg = f"Of {judge!r}: {error}"
            raise DataError(msg) from error
        audits.append(audited)
    names = [Path(str(file)).name for file in files]
    about = {"files": names, "judges": counts, "seed": seed}
    return JudgeProbe(about, tuple(audits))


def _run_name(table: Annotations, n_files: int) -> str:
    return Path(table.source).name if n_files > 1 else "run 1"


def _rows(table: Annotations, extra: Sequence[str], run: str, known: set[Case]) -> Iterator[_Row]:
    """Read verdicts; a case with its sides exchanged is put into those it was first met in."""
    columns = [table.texts(name) for name in ("prompt_id", "model_a", "model_b", *extra)]
    winner = table.need("winner")
    judges = table.texts("judge") if table.has("judge") else [UNNAMED] * table.n
    runs = table.texts("run") if table.has("run") else [run] * table.n
    orders = table.need("order") if table.has("order") else [None] * table.n
    for i, (prompt, a, b, *more) in enumerate(zip(*columns, strict=True)):
        case, turned = (prompt, a, b, *more), (prompt, b, a, *more)
        exchanged = turned in known
        known.add(turned if exchanged else case)
        label = _label(table, i, winner[i])
        order = str(orders[i] or "")
        yield _Row(
            judges[i],
            runs[i],
            OTHER.get(order, order) if exchanged else order,
            turned if exchanged else case,
            -label if exchanged else label,
        )


def _label(table: Annotations, row: int, value: object) -> float:
    """Return 1, 0 or -1 for side A, a tie, side B; NaN where there is no verdict."""
    if value is None or not str(value).strip():
        return float("nan")
    if str(value) not in LABELS:
        raise table.wrong("winner", row + 1, value, f"one of {', '.join(LABELS)}, or nothing")
    return 2 * LABELS[str(value)].score_a - 1


def _verdicts(rows: Sequence[_Row]) -> Verdicts:
    twice = [key for key, n in Counter((r.run, r.order, r.case) for r in rows).items() if n > 1]
    if twice:
        run, order, case = twice[0]
        where = f"{run!r}, order {order!r}" if order else f"{run!r}"
        msg = (
            f"The case {' / '.join(case)} comes twice in {where}: name each run's file, or add a "
            "column that tells cases apart, one of "
        )
        raise DataError(msg + f"run, {', '.join(CASE)}.")
    cases = list(dict.fromkeys(row.case for row in rows))
    labels: dict[str, dict[str, Labels]] = {}
    for row in rows:
        labels.setdefault(row.run, {}).setdefault(row.order, {})[row.case] = row.label
    models = tuple(sorted({name for case in cases for name in case[1:3]}))
    place = {name: i for i, name in enumerate(models)}
    prompts = {name: i for i, name in enumerate(dict.fromkeys(case[0] for case in cases))}
    both = next((one for one in labels.values() if all(x in one for x in ORDERS)), {})
    return Verdicts(
        models=models,
        pairs=np.array([[place[case[1]], place[case[2]]] for case in cases], dtype=np.int64),
        prompt=np.array([prompts[case[0]] for case in cases], dtype=np.int64),
        runs={run: _column(cases, _shown(by_order)) for run, by_order in labels.items()},
        orders={name: _column(cases, both[order]) for order, name in ORDERS.items() if both},
    )


def _shown(by_order: Mapping[str, Labels]) -> Labels:
    order = next((one for one in SHOWN if one in by_order), None)
    if order is None:
        known = ", ".join(repr(one) for one in SHOWN if one)
        msg = f"There is no order {next(iter(by_order))!r}: the column order holds {known}."
        raise DataError(msg)
    return by_order[order]


def _column(cases: Sequence[Case], labels: Labels) -> Floats:
    return np.array([labels.get(case, np.nan) for case in cases])
