"""Selection of the rows of a table that count as votes, with the number excluded for each reason.

`VoteFilter` checks rows and excludes or drops them. A case that a judge judged in both orders
counts once, by the row of both orders (`beside_both`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rating.counting import fits, narrowest, occurring, packed, spelling
from rating.errors import DataError, LayoutError
from rating.outcome import OUTCOMES, SHOWN_FIRST, Outcome, of_sides
from rating.rows import VoteRows
from rating.sentences import plural
from rating.tables import sources
from rating.tables.coding import Coded, Table, ranked, readings
from rating.tables.columns import UNLABELLED, Reading
from rating.tables.files import SHOWN
from rating.tables.peers import NO_VERDICT
from rating.typing import Bools, Floats, Integers

LABELS: Mapping[str, Outcome] = {
    **{outcome.value: outcome for outcome in OUTCOMES},
    "tie (bothbad)": Outcome.BOTH_BAD,
    "bothbad": Outcome.BOTH_BAD,
}
"""Spellings of an outcome: ours and Chatbot Arena's. Any other raises."""

SKIP = "skip"
NO_VOTE = "no vote"
"""Reason in ``left_out`` of a row that is there for its place in the chain alone."""

OUTSIDE = "outside the window"
REPLACED = "a model was replaced after the draw"

MOST_MODELS = 1_000
"""A board holds a number for each two models, and takes time by the cube of them: minutes."""


@dataclass(slots=True)
class VoteFilter:
    """Rows of a table that still count, and what became of the others.

    Attributes
    ----------
    n : ndarray of int64
        Votes of each row.
    live : ndarray of bool
        Rows that still count.
    names : tuple of str
        Of the models, once rows are settled: ``a`` and ``b`` hold positions in them.
    moments : ndarray of float64, or None
        When each vote was cast, where the reading needs it.
    """

    table: Table
    n: Integers
    live: Bools
    self_battles: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    names: tuple[str, ...] = ()
    a: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    b: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    outcome: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    moments: Floats | None = None

    @classmethod
    def of(cls, table: Table, *, unparsed: bool = False) -> "VoteFilter":
        """Begin with the rows that its own columns say count, one a case.

        Parameters
        ----------
        unparsed : bool
            Keep rows that hold no verdict, and single orders beside the row of both.
        """
        n_rows = len(table.texts["winner"].codes)
        n = np.ones(n_rows, dtype=np.int64) if table.n is None else table.n
        rows = cls(table, n, n > 0)
        rows._drop_left_out(NO_VERDICT if unparsed else None)
        if not unparsed:
            _one_row_a_case(rows)
        return rows

    @classmethod
    def settled(cls, table: Table, reading: Reading) -> "VoteFilter":
        """Settle which rows count for a reading, with which models and outcome.

        Raises
        ------
        DataError
            For labels that are unknown or missing; names that are missing, or differ only in case
            or spaces; and times that are missing where they matter.
        """
        rows = cls.of(table)
        rows.outcome = rows.outcomes()
        rows.names, rows.a, rows.b = rows.models()
        if reading.needs_time and not reading.ordered:
            rows.moments = table.numbers["time"]
            missing = rows.live & ~np.isfinite(rows.moments)
            if missing.any():
                msg = (
                    f"The time is missing in {plural(int(rows.n[missing].sum()), 'vote')}. "
                    "Leave them out, or read without a window and a half-life."
                )
                raise DataError(msg)
            rows.drop(~sources.inside(rows.moments, reading.since, reading.until), OUTSIDE)
        if "repicks" in table.numbers:
            rows.drop(table.numbers["repicks"] > 0, REPLACED)
        rows.settle_both_bad(rows.outcome, reading.both_bad)
        own = rows.live & (rows.a == rows.b)
        rows.self_battles = int(rows.n[own].sum())
        rows.live &= ~own
        return rows

    def vote_rows(self, reading: Reading, numbers: Mapping[str, Floats]) -> VoteRows:
        """Give the rows that are settled to count, with some numbers of each row of the table.

        Where votes are read in order, they come in that of their time, then of the number ``row``.
        """
        live, texts = self.live, self.table.texts
        people, _ = self.groups(all_prompts=reading.all_prompts)
        columns = {role: column for role, column in people.items() if column}
        if "by" in texts:
            columns["by"] = _with_rest(texts["by"], UNLABELLED)
        columns |= {name: _with_rest(texts[name], "") for name in {*reading.beside} & {*texts}}
        groups = {
            # In order of time, voters stay in that in which they came: figures are summed in it.
            role: (column.names, column.codes[live]) if reading.ordered else ranked(column, live)
            for role, column in columns.items()
        }
        models, a, b = occurring(self.names, self.a[live], self.b[live])
        rows = VoteRows(
            models,
            a.astype(np.int64),
            b.astype(np.int64),
            self.outcome[live].astype(np.int64),
            self.n[live].astype(np.int64),
            {role: codes.astype(np.int64) for role, (_, codes) in groups.items()},
            {role: names for role, (names, _) in groups.items()},
            {role: values[live] for role, values in numbers.items()},
            dict(sorted(self.dropped.items())),
            self.self_battles,
        )
        if not reading.ordered:
            return rows
        times = [rows.numbers["time"]] if "time" in numbers else []
        return rows.taken(np.lexsort([self.table.numbers["row"][live], *times]))

    def drop(self, rows: Bools, reason: str) -> None:
        """Exclude rows, and count their votes under a reason."""
        rows = rows & self.live
        votes = int(self.n[rows].sum())
        if votes:
            self.dropped[reason] += votes
            self.live &= ~rows

    def _drop_left_out(self, but: str | None) -> None:
        """Drop what an export of ours, or a peer's file, says does not count, by its reasons."""
        column = self.table.texts.get("left_out")
        for code, reason in enumerate(column.names if column else ()):
            if column is None or not reason or reason == but:
                continue
            rows = column.codes == code
            if reason == NO_VOTE:
                self.n = np.where(rows, 0, self.n)
                self.live &= ~rows
            else:
                self.drop(rows, reason)

    def outcomes(self) -> Integers:
        """Read the labels, or the names of the models that won; a skip is dropped.

        Raises
        ------
        DataError
            If a label is missing, or is none of `LABELS` and no model of its row; or if winners
            are names, and a model has the name of a label.
        """
        column = self.table.texts["winner"]
        self.drop(_holds(column, lambda label: label == SKIP), "skipped")
        places = [
            OUTCOMES.index(LABELS[label]) if label in LABELS else -1 for label in column.names
        ]
        outcome = np.array([*places, -1], dtype=np.int8)[column.codes]
        self._refuse_missing("winner")
        if (self.live & (outcome < 0)).any() and self.table.parts is None:
            self._by_name(outcome)
        bad = self.live & (outcome < 0)
        if bad.any():
            counts = np.bincount(column.codes[bad], self.n[bad], len(column.names))
            labels = ", ".join(
                f"{column.names[code]!r} ({plural(int(counts[code]), 'vote')})"
                for code in np.flatnonzero(counts)
            )
            a, b = (
                texts.names[code] if (code := texts.codes[bad.argmax()]) >= 0 else ""
                for texts in self._sides
            )
            msg = (
                f"Unknown labels in the winner: {labels}, one of them of {a!r} and {b!r}. "
                f"Known are {', '.join(map(repr, [*LABELS, SKIP]))}, and the names of the row's "
                f"two models: read others as these, as in --label left={Outcome.A}, or exclude "
                "them with --where."
            )
            ways = readings([name for name in column.names if name.strip()])
            pairs = [[f"{theirs}={ours}" for theirs, ours in way.items()] for way in ways]
            each = [tuple(w for pair in way for w in ("--label", pair)) for way in pairs]
            raise LayoutError(msg, *each) if each else DataError(msg)
        return outcome

    def _by_name(self, outcome: Integers) -> None:
        """Give the side to each winner that is the name of a model of its row."""
        place: dict[str, int] = {}
        winner, *sides = (
            np.array([*(place.setdefault(name, len(place)) for name in column.names), -1])[
                column.codes
            ]
            for column in (self.table.texts["winner"], *self._sides)
        )
        unknown = self.live & (outcome < 0)
        for side, code in reversed([*zip(sides, (Outcome.A, Outcome.B), strict=True)]):
            outcome[unknown & (side == winner)] = OUTCOMES.index(code)
        models = set[str]().union(*map(self._used, self._sides))
        if (unknown & (outcome >= 0)).any() and (both := sorted(models & {*LABELS, SKIP})):
            msg = (
                f"Winners are names of models, and a model is called {both[0]!r}, as a label is: "
                "rename the model, or make labels of the winners."
            )
            raise DataError(msg)

    def settle_both_bad(self, outcome: Integers, counts_as: str) -> None:
        """Count votes for neither as asked: dropped, as ties, or as an outcome of their own.

        Parameters
        ----------
        outcome : ndarray of shape (n_rows,)
            From `outcomes`; changed in place.
        counts_as : {"drop", "tie", "outcome"}
        """
        both_bad = outcome == OUTCOMES.index(Outcome.BOTH_BAD)
        if counts_as == "drop":
            self.drop(both_bad, "both bad")
        elif counts_as == "tie":
            outcome[both_bad] = OUTCOMES.index(Outcome.TIE)

    def models(self) -> tuple[tuple[str, ...], Integers, Integers]:
        """Read the names of both sides: all of them, sorted, and their positions.

        Raises
        ------
        DataError
            If a name is missing or blank, two are one by `rating.counting.spelling`, or there
            are more than `MOST_MODELS`.
        """
        sides = self._sides
        for role in of_sides("model"):
            self._refuse_missing(role)
        names = tuple(sorted(self._used(sides[0]) | self._used(sides[1])))
        refuse_many(names)
        self._refuse_twins(names, sides)
        place = {name: position for position, name in enumerate(names)}
        a, b = (_placed(column, place) for column in sides)
        return names, a, b

    def groups(self, *, all_prompts: bool) -> tuple[dict[str, Coded | None], int]:
        """Read who voted on which prompts, and count the votes without one where others have it.

        Parameters
        ----------
        all_prompts : bool
            Refuse such votes; else no prompt is read if there are any.

        Raises
        ------
        DataError
            If some rows have a voter, or with ``all_prompts`` a prompt, and others do not.
        """
        unprompted = 0
        if not all_prompts and "prompt" in self.table.texts:
            missing = self._missing("prompt")
            unprompted = 0 if (missing == self.live).all() else int(self.n[missing].sum())
        voters = self.people("voter")
        prompts = None if unprompted else self.people("prompt")
        return {"voter": voters, "prompt": prompts}, unprompted

    def people(self, role: str) -> Coded | None:
        """Read who voted, or on which prompt; None when no row says so.

        Raises
        ------
        DataError
            If some rows say so and others do not.
        """
        column = self.table.texts.get(role)
        if column is None:
            return None
        missing = self._missing(role)
        if (missing == self.live).all():
            return None
        self._refuse_missing(role)
        return column

    @property
    def _sides(self) -> list[Coded]:
        return [self.table.texts[role] for role in of_sides("model")]

    def _used(self, column: Coded) -> set[str]:
        counts = np.bincount(column.codes[self.live], minlength=len(column.names))
        return {column.names[code] for code in np.flatnonzero(counts)}

    def _missing(self, role: str) -> Bools:
        return self.live & blank(self.table.texts[role])

    def _refuse_missing(self, role: str) -> None:
        missing = self._missing(role)
        if not missing.any():
            return
        row = self.table.first(role)
        where = f", first in row {row}" if row else ""
        means = " Where a blank is a tie, --label =tie reads it as one." * (role == "winner")
        votes = plural(int(self.n[missing].sum()), "vote")
        msg = (
            f"The {role} is missing or blank in {votes}{where}. "
            f"Fill it in, or exclude these votes: --where \"{role} <> ''\", with the column's "
            f"name in the file.{means}"
        )
        raise DataError(msg)

    def _refuse_twins(self, names: Sequence[str], sides: Sequence[Coded]) -> None:
        spellings = defaultdict(list)
        for name in names:
            spellings[spelling(name)].append(name)
        twins = [spelled for spelled in spellings.values() if len(spelled) > 1]
        if twins:
            text = "; ".join(
                " and ".join(f"{name!a} ({self._votes_of(name, sides)})" for name in spelled)
                for spelled in twins
            )
            msg = (
                f"Names that differ only in case, spaces or characters that look alike: {text}. "
                "Give each model one spelling."
            )
            raise DataError(msg)

    def _votes_of(self, name: str, sides: Sequence[Coded]) -> str:
        takes_part = [_holds(column, lambda other: other == name) for column in sides]
        return plural(int(self.n[self.live & (takes_part[0] | takes_part[1])].sum()), "vote")


def refuse_many(names: Sequence[str]) -> None:
    """Raise `DataError` for more names of models than `MOST_MODELS`."""
    if len(names) > MOST_MODELS:
        some = ", ".join(repr(name[:SHOWN]) for name in names[:3])
        msg = (
            f"The votes are on {len(names):,} models, {some} and so on, and {MOST_MODELS:,} are "
            "the most: a rating compares each with each. Check that the columns hold models, or "
            "rate fewer."
        )
        raise DataError(msg)


def _with_rest(column: Coded, rest: str) -> Coded:
    names = [name.strip() or rest for name in column.names]
    return Coded((*names, rest), np.where(column.codes < 0, len(names), column.codes))


def blank(column: Coded) -> Bools:
    """Return which rows have no name, or one of spaces."""
    # Of many voters each name is looked at: hence no function of ours for every one of them.
    blank = ~np.fromiter(map(bool, map(str.strip, column.names)), bool, len(column.names))
    return np.append(blank, True)[column.codes]


def _holds(column: Coded, test: Any) -> Bools:
    places = np.array([*map(test, column.names), False], dtype=bool)
    return places[column.codes]


def _placed(column: Coded, place: Mapping[str, int]) -> Integers:
    places = [place.get(name, -1) for name in column.names]
    if places == [*range(len(places))]:
        return column.codes
    return np.array([*places, -1], dtype=narrowest(len(place)))[column.codes]


BOTH = "both"
"""Value of the column ``order`` in the row that reconciles both orders."""
ORDERS = frozenset({*SHOWN_FIRST, BOTH})
IN_BOTH = "one order of a case judged in both"

CASE = (*of_sides("model"), "case", "judge", "method")
"""Roles that tell cases apart."""


def warning(dropped: int) -> str:
    """Say that rows were excluded for standing beside those of both orders."""
    return (
        f"{plural(dropped, 'row of a single order is', 'rows of single orders are')} excluded: "
        "the row 'both' of the same case counts instead."
    )


def _one_row_a_case(rows: VoteFilter) -> None:
    """Drop single orders beside the row of both, and rows that hold no verdict.

    Of a case that was asked in one order only, that row stays. Without a column ``battle_id`` it
    is unknown which rows are of one case: only those of both orders stay, if there are any. A
    table whose ``order`` holds anything else than a run writes is left as it is.
    """
    order = rows.table.texts.get("order")
    if order is None or not {name.strip() for name in order.names} <= ORDERS:
        return
    if (order.codes < 0).any():
        return
    rows.drop(beside_both(rows.table.texts), IN_BOTH)
    if (status := rows.table.texts.get("status")) is not None:
        unsaid = blank(rows.table.texts["winner"])
        for code, why in enumerate(status.names):
            if why.strip():
                rows.drop(unsaid & (status.codes == code), f"{NO_VERDICT}: {why}")


def beside_both(texts: Mapping[str, Coded]) -> Bools:
    """Tell which rows are of a single order while the row of both stands for their case.

    Parameters
    ----------
    texts : mapping of str to Coded
        By the roles of `rating.tables.columns.order_columns`; ``order`` is among them and holds no
        missing value.
    """
    order = texts["order"]
    both = np.array([name.strip() == BOTH for name in order.names], dtype=bool)[order.codes]
    if "case" not in texts:  # nothing tells cases apart
        return ~both & both.any()
    roles = [role for role in CASE if role in texts]
    codes, sizes = [texts[role].codes for role in roles], [len(texts[r].names) for r in roles]
    if fits(sizes):
        cases = packed(codes, sizes)
    else:
        cases = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    return ~both & np.isin(cases, cases[both])
