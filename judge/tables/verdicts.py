"""Verdicts and marks of a judge: rows of a run's file and of a bench's, written and read back."""

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from judge.calls import Key
from judge.case import CaseId, Order, Reply
from judge.grammar import ARROWS, NOT_PLAYED, Items, Preference, Rating
from judge.ifeval import Checked
from judge.methods import FileMethod
from judge.methods.file import Checklists
from judge.tables.annotations import RESPONSES, STYLES, Annotations, style_of
from judge.tables.cases import NamedCase
from judge.tables.native import Columns, only
from judge.verdict import (
    PENDING,
    READ,
    SETTLED,
    Judged,
    PositionEffect,
    Run,
    preference_for_a,
    verdict_of,
)
from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables import duckdb_engine, formats
from rating.tables.columns import quoted_names
from rating.tables.vote_filter import BOTH

IFEVAL = "ifeval"
"""Checks without a model; as methods, these have a name only."""
_SIDES = tuple(column for name in STYLES for column in of_sides(name))
_ORDERS = ("winner", "preference", "status", "words")
"""What a row of a bench has of each order."""
_USED = ("tokens_in", "tokens_out", "cost", "latency")
COLUMNS = (
    "battle_id", "prompt_id", *of_sides("model"), "winner", "judge", "method",
    "order", "preference", "corrected", "status", "error", "cost", "latency", "template",
    "resolved_model", "system_fingerprint", "fallback_for", *_SIDES,
)  # fmt: skip
"""Of a file of verdicts: ``winner`` is null where there is no verdict, never a tie.

``preference`` is that for side A, from 0 to 1; with ``both`` the mean. ``corrected`` is that of a
case asked in one order, less what standing first is worth in the run; it may leave 0 to 1. Costs
(dollars) and latencies (seconds) stand with the orders that were asked, and not again with
``both``. ``error`` is what the endpoint said where it gave no reply. ``template`` is the hash of
what the method asks (`judge.protocol.Template`). ``resolved_model`` and ``system_fingerprint``
are what the endpoint said answered, several with commas, and `SETTLED` where nothing was asked.
``fallback_for`` is the judge in whose place ``judge`` was asked (`judge.runs`), else null.
Lengths in characters and counts of Markdown are of both responses, so that ``arena rate --style``
takes them.
"""

SINGLE = (
    "battle_id", "prompt_id", "session_id", "model", "score", "detail", "judge", "method",
    "status", "error", "cost", "latency", "template", "fallback_for", *STYLES,
)  # fmt: skip
"""Of a file of marks: ``score`` is null where there is no mark.

It is the mark, or the share of a checklist's items that are met, null where one of them has no
verdict (status `PARTLY`). ``detail`` is JSON: ``checklist``, or ``items`` with a verdict each.
"""

PAIRS = (
    "battle_id", "prompt_id", "category", "tags", "turn", *of_sides("model"), "winner",
    "judge", "method", "template", "order", "preference", "inconsistent",
    "status", "fallback_for",
    *(f"{name}_{order}" for name in _ORDERS for order in Order),
    *_USED, *_SIDES,
)  # fmt: skip
"""Of a bench's results of pairs: those of a file of votes, so that it can be rated.

Side A is the model, side B the baseline; ``winner_ab`` and its like are in these sides too,
whichever was shown first. ``words`` are the judge's; a verdict is null where none was read.
"""
MARKS = (
    "battle_id", "prompt_id", "category", "session_id", "tags", "turn", "model", "score",
    "detail", "judge", "method", "template", "status", "fallback_for", "words",
    *_USED, *STYLES,
)  # fmt: skip
"""Of a bench's results of single answers."""

NUMBERS = {
    **dict.fromkeys(("corrected", "score", "cost", "latency"), "DOUBLE"),
    **dict.fromkeys(("preference", *(f"preference_{order}" for order in Order)), "DOUBLE"),
    **dict.fromkeys((*STYLES, *_SIDES, "turn", "tokens_in", "tokens_out"), "BIGINT"),
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

    def __getitem__(self, at: Any) -> Any:
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
    places = _Places(judged)
    return Rows(
        lambda: (
            row
            for named in cases
            for row in _of_case(named, places.rows(named.case.id), judge, method, position)
        )
    )


def _of_case(
    named: NamedCase,
    asked: Sequence[Judged],
    judge: str,
    method: FileMethod,
    position: PositionEffect | None = None,
) -> Iterator[dict[str, Any]]:
    """Give the rows of a case: of each order, and of both."""
    texts = named.case.response_a, named.case.response_b or ""
    counts = dict(zip(RESPONSES, map(style_of, texts), strict=True))
    sides: dict[str, Any] = dict.fromkeys(COLUMNS) | {
        "battle_id": named.battle_id,
        "prompt_id": named.prompt_id,
        **dict(zip(of_sides("model"), named.models, strict=True)),
        **{f"{name}_{side}": counts[side][name] for name in STYLES for side in RESPONSES},
        **_by(judge, method, asked[0]),
    }
    both = verdict_of(asked)
    for row in asked:
        yield sides | _row(row, None if both else position)
    if both is not None:
        shown = {row.order: row.reading for row in asked if isinstance(row.reading, Preference)}
        unread = [row.status for row in asked if row.outcome is None]
        why = PENDING if PENDING in unread else next(iter(unread), READ)  # for it may still pass
        yield sides | {
            "winner": None if both.outcome is None else both.outcome.value,
            "order": BOTH,
            "preference": preference_for_a(shown.get(Order.AB), shown.get(Order.BA)),
            "status": READ if both.outcome is not None else why,
            **_answered(*asked),
        }


def rated_rows(
    cases: Sequence[NamedCase],
    judged: Sequence[Judged],
    judge: str,
    method: FileMethod,
    checklists: Checklists,
) -> Rows:
    """Give a row for each single response."""
    places = _Places(judged)
    return Rows(
        lambda: (
            _marked(named, asked, judge, method, checklists.get(named.case.prompt_id, ()))
            for named in cases
            for asked in places.rows(named.case.id)[-1:]
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
        return [*takewhile(lambda row: row.case_id == case_id, (self._judged[at] for at in rest))]


_ID = 64
"""Characters of a case's id."""


def constraint_rows(
    cases: Sequence[NamedCase], checked: Sequence[Checked]
) -> list[dict[str, Any]]:
    """Give a row for each response checked without a model: 1 if all was strictly followed."""
    rows = []
    for named, one in zip(cases, checked, strict=True):
        each = zip(one.ids, one.strict, one.loose, strict=True)
        items = [{"id": id, "strict": strict, "loose": loose} for id, strict, loose in each]
        unread = None in one.strict
        result = {
            "method": IFEVAL,
            "score": None if unread else float(all(one.strict)),
            "detail": json.dumps({"items": items}, ensure_ascii=False),
            "status": PARTLY if unread else READ,
        }
        rows.append(_whose(named) | result)
    return rows


def require_writable(path: Path) -> None:
    """Raise `DataError` unless verdicts can be written there: better before they are paid for."""
    duckdb_engine.require_writable(path)
    if not path.absolute().parent.is_dir():
        msg = f"Cannot write {str(path)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)


def kinds_of(names: Iterable[str]) -> dict[str, str]:
    """Give SQL's types of columns of verdicts, of marks, or of a bench's results."""
    return {name: NUMBERS.get(name, "VARCHAR") for name in names}


def write_judged(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write verdicts in the format that the file's ending names."""
    if path.suffix == ".parquet":
        duckdb_engine.write_rows(rows, kinds_of(next(iter(rows), ())), path)
        return
    of_json = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    formats.write_pieces(formats.csv_lines(rows) if path.suffix == ".csv" else of_json, path)


def _by(judge: str, method: FileMethod, row: Judged) -> dict[str, Any]:
    """Name who judged, also in the place of whom, and by what."""
    place = {"judge": row.judge, "fallback_for": judge} if row.judge else {"judge": judge}
    return {**place, "method": method.name, "template": method.template.hash}


def _whose(named: NamedCase) -> dict[str, Any]:
    own = (named.battle_id, named.prompt_id, named.session_id, named.models[0])
    ids = dict(zip(("battle_id", "prompt_id", "session_id", "model"), own, strict=True))
    return {**dict.fromkeys(SINGLE), **ids, **style_of(named.case.response_a)}


def _marked(
    named: NamedCase, row: Judged, judge: str, method: FileMethod, checklist: Sequence[str]
) -> dict[str, Any]:
    """Give the row of a single response."""
    detail: dict[str, Any] = {"checklist": list(checklist)} if checklist else {}
    result = _whose(named) | _by(judge, method, row) | _asked(row)
    if isinstance(row.reading, Rating):
        result["score"] = float(row.reading.score)
    elif isinstance(row.reading, Items):
        pairs = zip(checklist, row.reading.met, strict=True)
        detail = {"items": [{"item": item, "met": met} for item, met in pairs]}
        result["score"] = row.reading.share()
        result["status"] = PARTLY if result["score"] is None else row.status
    return result | {"detail": json.dumps(detail, ensure_ascii=False) if detail else None}


def _asked(row: Judged) -> dict[str, Any]:
    """Give what became of a question."""
    paid = {"cost": row.cost_usd, "latency": row.latency_s}
    return {"status": row.status, "error": row.detail or None, **paid}


def _row(row: Judged, position: PositionEffect | None) -> dict[str, Any]:
    preference, corrected = row.for_a, None
    if position and row.status == READ and isinstance(row.reading, Preference):
        corrected = position.corrected(row.reading, row.order)
    return {
        "winner": None if preference is None else preference.outcome.value,
        "order": row.order.value,
        "preference": None if preference is None else preference.first,
        "corrected": corrected,
        **_asked(row),
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


@dataclass(frozen=True, slots=True)
class Benched:
    """A case of a bench, and what the results say of it beside the verdict: ``more``."""

    named: NamedCase
    more: Mapping[str, Any] = field(default_factory=dict)


def bench_results(
    cases: Sequence[Benched],
    run: Run,
    replies: Mapping[Key, Reply],
    judge: str,
    method: FileMethod,
) -> Iterator[dict[str, Any]]:
    """Give a row for each single answer, or each pair: both orders and the verdict of both."""
    places = _Places(run.judged)
    for case in cases:
        asked = places.rows(case.named.case.id)
        each = [replies[key] for row in asked for key in row.keys if key in replies]
        more = {
            **case.more,
            "tokens_in": total([reply.tokens_in for reply in each]),
            "tokens_out": total([reply.tokens_out for reply in each]),
            "cost": total([row.cost_usd for row in asked]),
            "latency": total([row.latency_s for row in asked]),
        }
        if not method.pairwise:
            checklist = run.checklists.get(case.named.case.prompt_id, ())
            row = _marked(case.named, asked[-1], judge, method, checklist)
            yield {**row, **more, "words": _words(asked[0], replies)}
            continue
        rows = [*_of_case(case.named, asked, judge, method)]
        both = verdict_of(asked)
        more |= {"inconsistent": both and both.inconsistent}
        for one, row in zip(asked, rows, strict=False):
            more |= {f"{name}_{one.order}": row[name] for name in _ORDERS[:3]}
        yield {**rows[-1], **more, **{f"words_{o.order}": _words(o, replies) for o in asked}}


def _words(row: Judged, replies: Mapping[Key, Reply]) -> str | None:
    """Give what the judge said, all attempts and samples of it."""
    texts = [replies[key].text for key in row.keys if key in replies]
    return "\n\n".join(texts) if texts else None


def total(values: Sequence[float | None]) -> float | None:
    """Sum what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


SCORED_AS = {
    "alpaca_eval": "alpaca_eval",
    "alpaca_eval_sampled": "alpaca_eval",
    "alpaca_eval_verbal": "alpaca_eval",
    "arena_hard": "arena_hard",
    "wildbench_score": "wildbench",
    "wildbench_reward": "wildbench_reward",
    **dict.fromkeys(("pairwise", "mt_bench_pairs"), "pairwise"),
    **dict.fromkeys(("rubric", "checklist", "mt_bench"), "marks"),
    IFEVAL: IFEVAL,
}
"""By the method of a run: how its file is scored; others by pairs, or by the mean of marks."""


def own_method(data: Annotations) -> str | None:
    """Name how a file of ours is scored; None of a file that no run and no bench wrote.

    Raises
    ------
    DataError
        If it holds several methods, which are scored each by its own rule.
    """
    if not data.has("method", "status") or not (data.has("winner") or data.has("score")):
        return None
    methods = sorted(set(data.texts("method")))
    pairs = data.has("winner")
    scored = {SCORED_AS.get(name, "pairwise" if pairs else "marks") for name in methods}
    if len(scored) > 1:
        raise DataError(
            f"{data.source!r} holds several methods ({quoted_names(methods)}): choose one with "
            f"--where \"method = '{methods[0]}'\"."
        )
    return scored.pop()


def asked_judges(data: Annotations) -> list[str]:
    """Return the judge that was to be asked for each row, even if another replaced it."""
    judges = data.texts("judge")
    if not data.has("fallback_for"):
        return judges
    places = data.columns["fallback_for"]
    return [str(place or judge) for place, judge in zip(places, judges, strict=True)]


def for_own_score(data: Annotations, scored: str) -> Annotations:
    """Give a file of ours as a method of `arena judge score` takes it.

    Raises
    ------
    DataError
        If the verdicts are not against one baseline, where the method needs it.
    """
    if scored not in ("alpaca_eval", "arena_hard", "wildbench_reward"):
        return data
    orders = _orders_of(data)
    cases = data.taken(np.array([row for row, _, _ in orders], dtype=np.int64))

    def names(*columns: str) -> list[str]:
        cells = ([cases.cell(name, row) for name in columns] for row in range(cases.n))
        return [str(next(filter(None, values), "")) for values in cells]

    (model, baseline), prompt = map(names, of_sides("model")), names("prompt_id")
    if scored == "wildbench_reward":
        levels = [(row, level) for row, one in enumerate(orders) for level in _levels(*one[1:])]
        rewards: Columns = {
            "model": [model[row] for row, _ in levels],
            "baseline": [baseline[row] for row, _ in levels],
            "prompt_id": [prompt[row] for row, _ in levels],
            "level": [2 * level - 1 for _, level in levels],
        }
        if data.has("tags"):
            tags = cases.lists("tags")
            rewards["tags"] = [tags[row] for row, _ in levels]
        return only(data, rewards)
    if len(several := sorted({*baseline})) > 1:
        raise DataError(
            f"{data.source!r} holds several models on side B ({quoted_names(several)}), and "
            f"{scored} is a score against one baseline: choose one with --where, or score by "
            "--method pairwise."
        )
    columns: Columns = {"model": model}
    if scored == "alpaca_eval":
        columns |= {"idx": prompt, "preference": [1 + np.mean(_levels(*o[1:])) for o in orders]}
        if data.has("length_a", "length_b"):
            columns |= {
                "len_model": cases.numbers("length_a"),
                "len_base": cases.numbers("length_b"),
            }
    else:
        games = [_games(*one[1:]) for one in orders]
        columns |= {f"game_{n + 1}": [both[n] for both in games] for n in (0, 1)}
        columns |= {"prompt_id": prompt, "baseline": baseline}
        columns |= {name: cases.columns[name] for name in _SIDES if data.has(name)}
    return only(data, columns | {"judge": names("fallback_for", "judge")})


Asked = tuple[int, Mapping[str, float], int]
"""A row of a case, the preference for side A by order, NaN without a verdict, and how many orders
were asked: none where only the reconciled verdict is known."""


def _orders_of(data: Annotations) -> list[Asked]:
    """Give the cases of a file of verdicts, whether each order has a row or they share one."""
    if data.has(*(f"preference_{order}" for order in Order)):
        shown = {order: data.numbers(f"preference_{order}").tolist() for order in Order}
        status = [name for order in Order if data.has(name := f"status_{order}")]
        asked = [
            sum(data.cell(name, row) not in (None, "") for name in status) for row in range(data.n)
        ]
        return [
            (row, {order: shown[order][row] for order in Order}, asked[row] if status else 2)
            for row in range(data.n)
        ]
    cases: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    names = [data.texts(name) for name in ("battle_id", *of_sides("model"), "judge")]
    for row, (*key, order) in enumerate(zip(*names, data.texts("order"), strict=True)):
        cases[tuple(key)][order] = row
    preference = data.numbers("preference").tolist()
    by_order = [
        {o: preference[row] for o, row in one.items() if o != BOTH} for one in cases.values()
    ]
    rows = (next(iter(one.values())) for one in cases.values())
    return [(row, one, len(one)) for row, one in zip(rows, by_order, strict=True)]


def _levels(shown: Mapping[str, float], asked: int) -> list[float]:
    """Give the preferences in the orders that were asked, NaN where one has no verdict."""
    known = [shown[order] for order in Order if not np.isnan(shown.get(order, np.nan))]
    return known + [float("nan")] * (max(asked, 1) - len(known))


def _games(shown: Mapping[str, float], asked: int) -> tuple[str | None, str | None]:
    """Give both games of a prompt as Arena-Hard does; one not asked for is no missing verdict."""
    names = {level.first: name for name, level in ARROWS.items()}
    firsts = 1 - shown.get(Order.BA, np.nan), shown.get(Order.AB, np.nan)
    if strange := [one for one in firsts if not np.isnan(one) and one not in names]:
        levels = ", ".join(map(str, names))
        raise DataError(f"A preference is {strange[0]}, and arena_hard has five levels: {levels}.")
    first, second = (names.get(one) for one in firsts)
    if asked > 1 or first == second is None:
        return first, second
    return first or NOT_PLAYED, second or NOT_PLAYED
