"""Rows of votes or of verdicts for a study, as arrays in the sides of their file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from arena.domain.policy import DEFAULT
from arena.publish.ordered import ROW, numbered
from arena.publish.study.markdown import ELEMENTS
from arena.store import log
from arena.store.existing import reading_existing
from rating import Outcome
from rating.errors import DataError
from rating.tables.coding import Coded, coded_list
from rating.tables.columns import Columns, require
from rating.tables.orders import one_row_a_case, order_columns
from rating.tables.sieve import OUTCOMES, Sieve
from rating.tables.sources import Table, fetch, opened
from rating.typing import Bools, Floats

UNREAD = "unread"
NAMED: Mapping[str, tuple[str, ...]] = {
    "item": ("item_id",),
    "battle": ("battle_id",),
    "voter": ("voter", "voter_id", "user", "user_id"),
    "judge": ("judge", "judge_id"),
    "method": ("method",),
    "template": ("template",),
    "order": ("order",),
}
"""Columns that a study reads beyond those of `rating.tables.columns.KNOWN`."""

NOT_KEPT = ("winner", "left_out", "status")
"""Roles that say whether and what a row counts, and nothing after that."""

LENGTHS = {"length_a": "len_a", "length_b": "len_b"}
TEXTS = {"a": ("response_a", "output_a"), "b": ("response_b", "output_b")}
SIGNS = np.array([{Outcome.A: 1, Outcome.B: -1}.get(outcome, 0) for outcome in OUTCOMES] + [0])
"""Label of each outcome, and 0 for what was not read: both kinds of tie are one."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that count, in their order in the source, and in its sides.

    Attributes
    ----------
    names : mapping of str to Coded
        By role: ``model_a`` and ``model_b``; ``item``, ``battle``, ``prompt``, ``voter``,
        ``judge``, ``method``, ``template``, ``order``, ``case`` and ``by`` where the source has
        them.
    numbers : mapping of str to ndarray of shape (n,)
        By role, NaN where missing: ``row`` of the source, ``preference`` for side A,
        ``length_a`` and ``length_b`` in characters, ``format_a`` and ``format_b`` in elements of
        markdown.
    label : ndarray of shape (n,), int8
        1 for side A, 0 for a tie, -1 for side B; 0 where it was not read.
    read : ndarray of shape (n,), bool
        Whether there is a label.
    dropped : dict of str to int
        Rows left out, by reason.
    """

    source: str
    names: Mapping[str, Coded]
    numbers: Mapping[str, Floats]
    label: NDArray[np.int8]
    read: Bools
    dropped: dict[str, int]

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.label)

    def only(self, rows: NDArray[Any]) -> "Rows":
        """Return some rows, by mask or by index."""
        return Rows(
            self.source,
            {role: Coded(column.names, column.codes[rows]) for role, column in self.names.items()},
            {role: values[rows] for role, values in self.numbers.items()},
            self.label[rows],
            self.read[rows],
            self.dropped,
        )


def read_rows(source: str, *, unread: bool, by: str | None = None) -> Rows:
    """Read the rows of a file, or the votes of a database that the default policy counts.

    Votes that are a judge's run count once a case (`rating.tables.orders`); verdicts stay apart.

    Parameters
    ----------
    unread : bool
        Keep rows without a winner, as unread verdicts; else they raise.
    by : str, optional
        Column to read beside the others, where it is there.

    Raises
    ------
    DataError
        If the source cannot be read, a label is unknown or missing, or no row counts.
    StoreError
        If the database cannot be read.
    """
    if "://" in source:
        return _sieved(_logged(source), source, unread=unread)
    with opened(Path(source), lambda there: _wanted(there, by)) as frame:
        there = frame.collect_schema().names()
        texts, numbers = _roles(there, by)
        rows = numbered(frame).project(_measured(there))
        numbers |= {"row": ROW, **{role: role for role in _formats(there)}}
        lazy: nw.LazyFrame[Any] = nw.from_native(rows)
        return _sieved(fetch(lazy, texts, numbers, group=False), source, unread=unread)


def _wanted(there: Sequence[str], by: str | None) -> list[str]:
    texts, numbers = _roles(there, by)
    found = {*texts.values(), *numbers.values(), *_text_columns(there).values()}
    return sorted(found & {*there})


def _roles(there: Sequence[str], by: str | None) -> tuple[dict[str, str], dict[str, str]]:
    columns = Columns()
    texts = {role: columns.need(role, there) for role in ("model_a", "model_b", "winner")}
    for role in ("prompt", "left_out"):
        if found := columns.find(role, there):
            texts[role] = found
    for role, names in NAMED.items():
        if name := next((name for name in names if name in there), None):
            texts[role] = name
    if by is not None and by in there:
        texts["by"] = require(by, there)
    if by != "order":
        texts |= order_columns(there)
    numbers = {"preference": "preference"} if "preference" in there else {}
    if {*LENGTHS.values()} <= {*there}:
        numbers |= LENGTHS
    elif _text_columns(there):
        numbers |= {role: role for role in LENGTHS}
    return texts, numbers


def _text_columns(there: Sequence[str]) -> dict[str, str]:
    """Find the columns of both responses, by side; none where one is missing."""
    found = {
        side: next((name for name in names if name in there), "") for side, names in TEXTS.items()
    }
    return found if all(found.values()) else {}


def _formats(there: Sequence[str]) -> list[str]:
    return [f"format_{side}" for side in _text_columns(there)]


def _measured(there: Sequence[str]) -> str:
    """Measure texts where they are: their length, and the elements of markdown in them."""
    parts = ["*"]
    for side, name in _text_columns(there).items():
        quoted = '"' + name.replace('"', '""') + '"'
        found = f"len(regexp_extract_all({quoted}, '{ELEMENTS}'))"
        parts.append(f"{found} AS format_{side}")
        if not {*LENGTHS.values()} <= {*there}:
            parts.append(f"length({quoted}) AS length_{side}")
    return ", ".join(parts)


def _logged(url: str) -> Table:
    with reading_existing(url) as session:
        votes = log.votes(session, DEFAULT.name)
    columns: dict[str, list[object]] = {
        "model_a": [vote.model_a for vote in votes],
        "model_b": [vote.model_b for vote in votes],
        "winner": [vote.outcome.value for vote in votes],
        "voter": [vote.voter for vote in votes],
        "battle": [vote.battle_id for vote in votes],
        "prompt": [vote.prompt_id or None for vote in votes],
        "left_out": [
            DEFAULT.why_not(vote.outcome, vote.voter_kind, vote.exclusions) for vote in votes
        ],
    }
    coded = {role: coded_list(role, values) for role, values in columns.items()}
    return Table(coded, {"row": np.arange(len(votes), dtype=np.float64)}, None, lambda _: None)


def _sieved(table: Table, source: str, *, unread: bool) -> Rows:
    sieve = Sieve.of(table)
    sieve.drop_left_out()
    if not unread:
        one_row_a_case(sieve)
    silent = blank(table.texts["winner"]) & sieve.live
    if unread:
        sieve.live &= ~silent
    outcome = sieve.outcomes()
    if unread:
        sieve.live |= silent
    _, a, b = sieve.models()
    same = sieve.live & (a == b)
    sieve.drop(same, "a model against itself")
    if not sieve.live.any():
        dropped = ", ".join(f"{n} {why}" for why, n in sieve.dropped.items())
        msg = f"No row of {source!r} counts" + (f"; left out: {dropped}." if dropped else ".")
        raise DataError(msg)
    order = np.argsort(table.numbers["row"], kind="stable")
    names = {r: c for r, c in table.texts.items() if r not in NOT_KEPT}
    label = SIGNS[outcome].astype(np.int8)
    left_out = dict(sorted(sieve.dropped.items()))
    every = Rows(source, names, table.numbers, label, ~silent, left_out)
    return every.only(order[sieve.live[order]])


def blank(column: Coded) -> Bools:
    """Tell which rows have no name, or one of spaces."""
    empty = np.array([*(not name.strip() for name in column.names), True])
    return np.asarray(empty[column.codes])
