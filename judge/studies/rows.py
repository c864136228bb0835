"""Rows of votes and verdicts as arrays, and items with the labels that raters give them.

`read_rows` reads a file or a log into `Rows`, in the sides of the file. `Items` and `Labels` are
what studies compute with: each label is in the sides of its item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.case import Order
from judge.tables.annotations import ELEMENTS, LIST
from rating import Outcome
from rating.errors import DataError
from rating.outcome import OUTCOMES, of_sides
from rating.tables.coding import ROW, Coded, LoggedVotes, Table, coded_list, fetch, numbered
from rating.tables.columns import KINDS, REQUIRED, Columns, order_columns, require
from rating.tables.files import Files
from rating.tables.sources import opened, require_one_kind
from rating.tables.vote_filter import VoteFilter, blank
from rating.typing import Bools, Floats, Ints

NAMED: Mapping[str, tuple[str, ...]] = {
    "item": ("item_id",),
    "question": ("question_id",),
    "battle": ("battle_id",),
    "voter_kind": ("voter_kind",),
    "voter": ("person", "voter", "voter_id", "user", "user_id"),
    "judge": ("judge", "judge_id"),
    "method": ("method",),
    "template": ("template",),
    "resolved": ("resolved_model",),
    "fingerprint": ("system_fingerprint",),
    "order": ("order",),
    "run": ("run",),
}
"""Columns that a study reads beyond those of `rating.tables.columns.KNOWN`."""


# Rows of a source


MARKS = ("score_a", "score_b", "confidence", "vote_cost")
"""Numbers beside a verdict that are read where they are asked for: what a judge may give, and
what one vote of a person would cost."""

COST, LATENCY = "cost", "latency"
_SPENT = {COST: "dollars_paid", LATENCY: "seconds_taken"}
"""What each verdict of a run cost and took, as `judge.tables.verdicts` writes it, and as it is
read."""

DONE_WITH = ("winner", "left_out", "status")
"""Roles that decide whether a row counts and its label, and are not needed afterwards."""

REPEATED = "a second verdict of one judge on one case (the first counts)"
VOTED_AGAIN = "the same vote by one voter on one battle (the first counts)"
ITEM = ("battle", "item", "prompt", "question", *of_sides("model"))
ONCE = (*ITEM, "voter", "judge", "method", "template", "order", "run", "by")
"""Roles by which a verdict is told from another; a vote also by its winner."""

LENGTHS = {"length_a": "len_a", "length_b": "len_b"}
REFUSALS = {"refusal_a": "refused_a", "refusal_b": "refused_b"}
TEXTS = {"a": ("response_a", "output_a"), "b": ("response_b", "output_b")}
SIGNS = np.array([{Outcome.A: 1, Outcome.B: -1}.get(outcome, 0) for outcome in OUTCOMES] + [0])
"""Label of each outcome, and 0 for what was not read: both kinds of tie are one."""


Source = str | Path | Files | LoggedVotes
"""Files, or the votes of an arena's log."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that count, in their order in the source, and in its sides.

    Attributes
    ----------
    names : mapping of str to Coded
        By role: ``model_a`` and ``model_b``; ``item``, ``battle``, ``prompt``, ``question``,
        ``voter``, ``voter_kind``, ``judge``, ``method``, ``template``, ``resolved``,
        ``fingerprint``, ``order``, ``run``, ``case`` and ``by`` where the source has them.
    numbers : mapping of str to ndarray of shape (n,)
        By role, NaN where missing: ``row`` of the source, ``preference`` for side A,
        ``length_a`` and ``length_b`` in characters, ``format_a`` and ``format_b`` in elements of
        markdown, ``refusal_a`` and ``refusal_b``, ``list_a`` and ``list_b`` of 0 or 1; ``cost``
        of verdicts, in dollars, and ``latency``, in seconds; `MARKS` where they were asked for.
    label : ndarray of shape (n,), int8
        1 for side A, 0 for a tie, -1 for side B; 0 where it was not read.
    read : ndarray of shape (n,), bool
        Whether there is a label.
    dropped : dict of str to int
        Rows excluded, by reason.
    notes : tuple of str
        Warnings on rows that count.
    texts : Source or None
        Where the texts of prompts are; None for rows of several sources.
    """

    source: str
    names: Mapping[str, Coded]
    numbers: Mapping[str, Floats]
    label: NDArray[np.int8]
    read: Bools
    dropped: dict[str, int]
    notes: tuple[str, ...] = ()
    texts: Source | None = None

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.label)

    def named(self, role: str) -> NDArray[np.object_]:
        """Give the name that each row has in a role; None where it has none."""
        column = self.names.get(role, Coded((), np.full(self.n, -1)))
        return np.array([*column.names, None], dtype=np.object_)[column.codes]

    def used(self, role: str) -> tuple[str, ...]:
        """Give the names of a role that rows have, sorted."""
        column = self.names.get(role, Coded((), np.full(self.n, -1)))
        there = {column.names[code] for code in np.unique(column.codes) if code >= 0}
        return tuple(sorted(name for name in there if name.strip()))

    def only(self, rows: NDArray[Any]) -> "Rows":
        """Return some rows, by mask or by index."""
        names = {role: Coded(c.names, c.codes[rows]) for role, c in self.names.items()}
        numbers = {role: values[rows] for role, values in self.numbers.items()}
        label, read = self.label[rows], self.read[rows]
        return replace(self, names=names, numbers=numbers, label=label, read=read)


def read_rows(
    source: Source, *, unparsed: bool, by: str | None = None, marks: bool = False
) -> Rows:
    """Read the rows of a file, or the votes of a log that its policy counts.

    Votes that are a judge's run count once a case (`rating.tables.vote_filter`); verdicts stay
    apart.

    Parameters
    ----------
    unparsed : bool
        Keep rows without a winner, as unparsed verdicts; else they raise.
    by : str, optional
        Column to read beside the others, where it is there.
    marks : bool
        Read `MARKS` too, where they are there.

    Raises
    ------
    DataError
        If the source cannot be read, a label is unknown or missing, or no row counts.
    """
    if isinstance(source, LoggedVotes):
        table = source.in_order([*source.texts])
        prompt = coded_list([prompt or None for prompt in source.values("prompt")])
        table = replace(table, texts={**table.texts, "prompt": prompt})
        return _counted(table, source.name, unparsed=unparsed)
    also = (*(MARKS if marks else ()), *((COST, LATENCY) if unparsed else ()))

    def wanted(there: Sequence[str]) -> list[str]:
        texts, numbers = _roles(there, by)
        own = {*texts.values(), *numbers.values(), *_text_columns(there).values(), *also}
        return [name for name in there if name in own or (not unparsed and name in KINDS)]

    with opened(source, wanted, holds="verdicts" if unparsed else "votes") as rows:
        there = rows.columns
        if not unparsed:
            require_one_kind(rows, str(source), [by])
        texts, numbers = _roles(there, by)
        numbers |= {name: name for name in MARKS if marks and name in there}
        numbers |= {name: read for name, read in _SPENT.items() if name in there}
        texts_of = [
            f"{name}_{side}" for name in ("format", "list") for side in _text_columns(there)
        ]
        formats = dict(zip(texts_of, texts_of, strict=True))
        numbers |= {"row": ROW, **formats}
        table = fetch(numbered(rows).project(_measured(there)), texts, numbers)
        return replace(_counted(table, str(source), unparsed=unparsed), texts=source)


def rows_from(
    names: Mapping[str, Sequence[object]], source: str, label: Sequence[int] | None = None
) -> Rows:
    """Make rows of the names that they have in some roles, and of their labels."""
    n = len(next(iter(names.values())))
    texts = {role: coded_list([*map(_name, column)]) for role, column in names.items()}
    labels = np.array([0] * n if label is None else label, dtype=np.int8)
    row = np.arange(n, dtype=np.float64)
    return Rows(source, texts, {"row": row}, labels, np.ones(n, dtype=bool), {})


def _name(value: object) -> str | None:
    if isinstance(value, float):  # a table with gaps made floats of whole numbers
        value = None if np.isnan(value) else int(value) if value.is_integer() else value
    return None if value is None else str(value).strip() or None


def _roles(there: Sequence[str], by: str | None) -> tuple[dict[str, str], dict[str, str]]:
    columns = Columns()
    texts = {role: columns.need(role, there) for role in REQUIRED}
    for role in ("prompt", "left_out"):
        if column := columns.find(role, there):
            texts[role] = column
    for role, names in NAMED.items():
        name = next((name for name in names if name in there), None)
        if name and name != texts.get("prompt"):
            texts[role] = name
    if by is not None and by in there:
        texts["by"] = require(by, there)
    if by != "order":
        texts |= order_columns(there)
    numbers = {"preference": "preference"} if "preference" in there else {}
    if {*REFUSALS.values()} <= {*there}:
        numbers |= REFUSALS
    if {*LENGTHS.values()} <= {*there}:
        numbers |= LENGTHS
    elif _text_columns(there):
        numbers |= {role: role for role in LENGTHS}
    return texts, numbers


def _text_columns(there: Sequence[str]) -> dict[str, str]:
    """Find the columns of both responses, by side; none where one is missing."""
    columns = {
        side: next((name for name in names if name in there), "") for side, names in TEXTS.items()
    }
    return columns if all(columns.values()) else {}


def _measured(there: Sequence[str]) -> str:
    """Measure texts where they are: their length, and the elements of markdown in them."""
    parts = ["*"]
    parts += [
        f'TRY_CAST("{name}" AS DOUBLE) AS {read}' for name, read in _SPENT.items() if name in there
    ]
    for side, name in _text_columns(there).items():
        quoted = '"' + name.replace('"', '""') + '"'
        elements_in = f"len(regexp_extract_all({quoted}, '{ELEMENTS}'))"
        parts.append(f"{elements_in} AS format_{side}")
        parts.append(f"regexp_matches({quoted}, '{LIST}')::DOUBLE AS list_{side}")
        if not {*LENGTHS.values()} <= {*there}:
            parts.append(f"length({quoted}) AS length_{side}")
    return ", ".join(parts)


def _counted(table: Table, source: str, *, unparsed: bool) -> Rows:
    rows = VoteFilter.of(table, unparsed=unparsed)
    silent = blank(table.texts["winner"]) & rows.live
    if unparsed:
        rows.live &= ~silent
    outcome = rows.outcomes()
    if unparsed:
        rows.live |= silent
    _, a, b = rows.models()
    rows.drop(rows.live & (a == b), "a model against itself")
    note = _once(rows, unparsed=unparsed)
    if not rows.live.any():
        dropped = ", ".join(f"{n} {why}" for why, n in rows.dropped.items())
        msg = f"No row of {source!r} counts" + (f"; excluded: {dropped}." if dropped else ".")
        raise DataError(msg)
    order = np.argsort(table.numbers["row"], kind="stable")
    names = {r: c for r, c in table.texts.items() if r not in DONE_WITH}
    label = SIGNS[outcome].astype(np.int8)
    left_out = dict(sorted(rows.dropped.items()))
    every = Rows(source, names, table.numbers, label, ~silent, left_out, note)
    return every.only(order[rows.live[order]])


def _once(rows: VoteFilter, *, unparsed: bool) -> tuple[str, ...]:
    """Drop rows that repeat an earlier one on a battle or a judged case; warn of other verdicts.

    Votes without a voter do not repeat each other.
    """
    texts, n_rows = rows.table.texts, len(rows.live)
    roles = [role for role in (ONCE if unparsed else (*ONCE, "winner")) if role in texts]
    codes = {role: np.where(blank(texts[role]), -1, texts[role].codes) for role in roles}
    nothing = np.full(n_rows, -1)
    at = np.flatnonzero(rows.live & (unparsed | (codes.get("voter", nothing) >= 0)))
    if unparsed and "order" in codes:  # of a case with its sides exchanged: which model was first
        (_, *sides), order = rows.models(), np.array([*texts["order"].names, ""])[codes["order"]]
        codes |= zip(of_sides("model"), (np.minimum(*sides), np.maximum(*sides)), strict=True)
        codes["order"] = np.select([order == one for one in Order], sides, -2 - codes["order"])

    def repeated(codes: Sequence[Ints]) -> Bools:
        order = at[np.lexsort([rows.table.numbers["row"][at], *(code[at] for code in codes)])]
        again = np.zeros(n_rows, dtype=bool)
        alike = [code[order[1:]] == code[order[:-1]] for code in codes]
        again[order[1:][np.all(alike, axis=0)]] = True
        return again

    ids = [codes.get(role, nothing) >= 0 for role in ("battle", "item", "prompt", "question")]
    sure = ids[0] | (unparsed & ids[1])
    twice = repeated([*codes.values()]) & sure
    rows.drop(twice, REPEATED if unparsed else VOTED_AGAIN)
    again = repeated([code for role, code in codes.items() if role != "run"])
    n = int((again & ~twice & np.any(ids, axis=0)).sum()) if unparsed else 0
    note = f"Repeated verdicts of one judge on the same item, counted: {n:,}."
    return (note,) if n else ()


NAMES = {
    "text_a": TEXTS["a"],
    "text_b": TEXTS["b"],
    "prompt": ("prompt", "instruction", "question"),
    "reason": ("reason", "explanation", "reasoning", "judgment", "raw"),
    "checklist": ("checklist",),
}


@dataclass(frozen=True, slots=True)
class RowTexts:
    """Texts of a row; None where the source has none. ``model`` is that of side A."""

    model: str
    text_a: str | None
    text_b: str | None
    prompt: str | None
    reason: str | None
    checklist: str | None


def read_texts(source: Source, rows: Sequence[int]) -> dict[int, RowTexts]:
    """Read the texts of some rows of a file, by row; a log has none to give.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    if isinstance(source, LoggedVotes) or not rows:
        return {}
    with opened(source, lambda there: [*there]) as rows_there:
        there = rows_there.columns
        there_as = {
            role: next((name for name in names if name in there), None)
            for role, names in NAMES.items()
        }
        if not any(there_as.values()):
            return {}
        columns = [
            f'CAST("{name}" AS VARCHAR) AS {role}' if name else f"NULL AS {role}"
            for role, name in [("model", of_sides("model")[0]), *there_as.items()]
        ]
        wanted = ", ".join(str(int(row)) for row in rows)
        chosen = numbered(rows_there).filter(f"{ROW} IN ({wanted})")
        fetched = chosen.project(", ".join([ROW, *columns])).fetchall()
    return {int(row): RowTexts(*texts) for row, *texts in fetched}


# Items and labels


A, TIE, B = 1, 0, -1
"""Labels: the side that is better. Both kinds of tie are one."""


@dataclass(frozen=True, slots=True)
class Items:
    """The things that were compared: a prompt with two models' responses.

    Attributes
    ----------
    models : tuple of str, length n_models
        Names; a model's index is its position here.
    pairs : ndarray of shape (n_items, 2), int64
        Indices of the models on side A and on side B of an item.
    prompt : ndarray of shape (n_items,), int64
        Number of the prompt, from 0: what intervals resample.
    gaps : mapping of str to ndarray of shape (n_items,), float64
        Differences of a feature of the responses, side A's minus side B's, such as ``length``
        in doublings; NaN where unknown. Empty where nothing is known of the responses.
    """

    models: tuple[str, ...]
    pairs: Ints
    prompt: Ints
    gaps: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many items."""
        return len(self.prompt)

    @property
    def n_prompts(self) -> int:
        """How many prompts."""
        return int(self.prompt.max(initial=-1)) + 1

    def only(self, rows: Bools | Ints) -> "Items":
        """Return some items; models and prompts keep their numbers."""
        gaps = {name: gap[rows] for name, gap in self.gaps.items()}
        return Items(self.models, self.pairs[rows], self.prompt[rows], gaps)


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that raters give items, in the items' sides: votes of people, or a judge's verdicts.

    Attributes
    ----------
    item : ndarray of shape (n,), int64
        Index of the item.
    rater : ndarray of shape (n,), int64
        Number of the voter, or of the repetition of a judge.
    label : ndarray of shape (n,), int8
        1 for side A, 0 for a tie, -1 for side B. What was not read is not here.
    first : ndarray of shape (n,), int8
        1 where side A was shown first (on the left), -1 where side B was, 0 where it is unknown
        or both orders were asked.
    probability : ndarray of shape (n,), float64
        Probability that the rater gave to side A, a tie counting as half; NaN where it gave none.
    """

    item: Ints
    rater: Ints
    label: NDArray[np.int8]
    first: NDArray[np.int8]
    probability: Floats

    def __post_init__(self) -> None:
        """Raise `DataError` for columns of different lengths or unknown labels."""
        lengths = {len(getattr(self, field.name)) for field in fields(self)}
        if len(lengths) > 1:
            raise DataError(f"The columns of what was said have {sorted(lengths)} rows.")
        if len(self.label) and not np.isin(self.label, (A, TIE, B)).all():
            raise DataError(f"Labels are 1, 0 and -1, not {sorted(set(self.label.tolist()))}.")

    @classmethod
    def of_one_rater(cls, item: Ints, label: NDArray[Any]) -> "Labels":
        """Return labels by one rater, who was shown no order and gave no probabilities."""
        n = len(item)
        return cls(
            item=item,
            rater=np.zeros(n, dtype=np.int64),
            label=label.astype(np.int8),
            first=np.zeros(n, dtype=np.int8),
            probability=np.full(n, np.nan),
        )

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.item)

    def only(self, rows: NDArray[Any]) -> "Labels":
        """Return some rows, by mask or by index."""
        return Labels(*(getattr(self, field.name)[rows] for field in fields(self)))

    def mean(self, value: Floats, n_items: int) -> Floats:
        """Average a value over the labels of each item; NaN where there is none."""
        n = np.bincount(self.item, minlength=n_items)
        total = np.bincount(self.item, value, n_items)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)
