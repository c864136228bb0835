"""Votes one by one, in the order in which they were cast: for what goes by a voter's history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from rating.errors import DataError
from rating.outcome import OUTCOMES
from rating.tables import weights
from rating.tables.coding import MOMENTS, NUMERIC, ROW, Relation, Table, fetch, kinds, numbered
from rating.tables.columns import Columns, order_columns
from rating.tables.files import Files
from rating.tables.sources import LoggedColumns, only_of_text, opened
from rating.tables.vote_filter import VoteFilter
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.race import RaceVotes

NEEDED = ("model_a", "model_b", "winner", "voter")

SCORES = np.array([outcome.score_a for outcome in OUTCOMES])


@dataclass(frozen=True, slots=True, eq=False)
class OrderedVotes:
    """Votes that count, each voter's in the order in which they were cast.

    Attributes
    ----------
    models, voters : tuple of str
        Names; the arrays hold positions in them. Not every one has a vote.
    left, right, voter : ndarray of shape (n_votes,), int64
    score : ndarray of shape (n_votes,)
        Score of the left side.
    by_time : bool
        Whether the order is that of a column of times; else, that of the source.
    trait : ndarray of shape (n_voters,), bool, or None
        Voters of whose votes more than half have the trait; None where no column says so.
    dropped : dict of str to int
        Votes left out, by reason.
    """

    models: tuple[str, ...]
    voters: tuple[str, ...]
    left: Ints
    right: Ints
    score: Floats
    voter: Ints
    by_time: bool
    self_battles: int
    dropped: dict[str, int]
    trait: Bools | None = None

    def of(self, rows: Bools) -> Self:
        """Give some of the votes."""
        columns = {name: getattr(self, name)[rows] for name in ("left", "right", "score", "voter")}
        return replace(self, **columns)

    def raced(self) -> RaceVotes:
        """Give the votes to a race; no judge helps."""
        none = np.empty(0)
        score = self.score.astype(np.float64)
        return RaceVotes(self.models, self.left, self.right, score, self.voter, none, none)


def read_ordered(source: str | Path | Files | LoggedColumns, columns: Columns) -> OrderedVotes:
    """Read the votes of a file or of a log, those that count.

    Of a judge's run each case counts once (`rating.tables.vote_filter`).

    Raises
    ------
    DataError
        As `rating.tables.counts.read_votes`, if the votes do not say who cast them, and if
        columns are named of a log, which has its own.
    """
    if isinstance(source, LoggedColumns):
        source.require_own(columns)
        return _counting(_logged(source), source.name)
    with opened(source, partial(_wanted, columns)) as rows:
        return _counting(_fetched(rows, columns), str(source))


def _wanted(columns: Columns, there: Sequence[str]) -> list[str]:
    needed = [columns.need(role, there) for role in NEEDED]
    optional = [columns.find(role, there) for role in ("time", "left_out", "trait")]
    known = [name for name in optional if name is not None]
    return sorted({*needed, *known, *order_columns(there).values()})


def _fetched(rows: Relation, columns: Columns) -> Table:
    there, types = rows.columns, kinds(rows)
    texts = {role: columns.need(role, there) for role in NEEDED}
    texts |= order_columns(there)
    if (left_out := columns.find("left_out", there)) is not None:
        texts["left_out"] = left_out
    numbers = {"row": ROW}
    if (time := columns.find("time", there)) is not None:
        (numbers if types[time] in MOMENTS | NUMERIC else texts)["time"] = time
    if (trait := columns.find("trait", there)) is not None:
        (numbers if types[trait] in {"boolean"} | NUMERIC else texts)["trait"] = trait
    return fetch(numbered(rows), only_of_text(rows, texts), numbers)


def _logged(log: LoggedColumns) -> Table:
    table = log.table(("model_a", "model_b", "winner", "voter", "left_out"))
    return replace(table, numbers={"row": np.arange(len(log.voter), dtype=np.float64)})


def _counting(table: Table, source: str) -> OrderedVotes:
    rows = VoteFilter.of(table)
    outcome = rows.outcomes()
    models, left, right = rows.models()
    rows.set_aside_self_battles(left, right)
    voter = rows.people("voter")
    if not rows.live.any():
        dropped = ", ".join(f"{n} {why}" for why, n in rows.dropped.items())
        msg = f"No votes to count in {source!r}" + (f"; left out: {dropped}." if dropped else ".")
        raise DataError(msg)
    if voter is None:
        msg = f"The votes of {source!r} do not say who cast them: no voter can be examined."
        raise DataError(msg)
    moments = _moments(table)
    order = np.lexsort((table.numbers["row"], *([] if moments is None else [moments])))
    order = order[rows.live[order]]
    codes = voter.codes[order].astype(np.int64)
    return OrderedVotes(
        models=models,
        voters=voter.names,
        left=left[order].astype(np.int64),
        right=right[order].astype(np.int64),
        score=SCORES[outcome[order]],
        voter=codes,
        by_time=moments is not None,
        self_battles=rows.self_battles,
        dropped=dict(sorted(rows.dropped.items())),
        trait=_trait(table, order, codes, len(voter.names)),
    )


def _trait(table: Table, order: Ints, voter: Ints, n_voters: int) -> Bools | None:
    """Return who has the trait in more than half of the votes; a missing value is none.

    Raises
    ------
    DataError
        If a text is neither true nor false.
    """
    values = table.numbers.get("trait")
    if column := table.texts.get("trait"):
        values = np.array([*map(_truth, column.names), 0.0])[column.codes]
    if values is None:
        return None
    has = np.nan_to_num(values[order]) != 0
    times = np.bincount(voter[has], minlength=n_voters)
    return np.asarray(2 * times > np.bincount(voter, minlength=n_voters))


def _truth(text: str) -> float:
    known = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0, "": 0.0}
    try:
        return known[text.strip().lower()]
    except KeyError:
        msg = f"A column of a trait holds {text!r}: it takes true, false, 1 or 0."
        raise DataError(msg) from None


def _moments(table: Table) -> Floats | None:
    """When each vote was cast, in seconds since 1970 UTC; None unless all votes say so."""
    moments = table.numbers.get("time")
    if column := table.texts.get("time"):
        parsed = [weights.parse_moment(text) if text.strip() else np.nan for text in column.names]
        moments = np.array([*parsed, np.nan])[column.codes]
    return moments if moments is not None and np.isfinite(moments).all() else None
