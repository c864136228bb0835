"""How votes are read: the columns that this takes of a file, a table or an arena's log."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import compress
from typing import Literal

import numpy as np

from rating.errors import DataError
from rating.options import RateOptions
from rating.tables import weights
from rating.tables.coding import coded_list
from rating.tables.columns import COUNTS, LOG2, Columns, holds_pairs, require
from rating.tables.sources import Frame, N, Table, fetch, one_row_an_outcome, opened
from rating.tables.vote_filter import compact, only_of_text, order_columns

BothBad = Literal["outcome", "tie", "drop"]
SAMPLING = "sampling"


@dataclass(frozen=True, slots=True)
class Reading:
    """How votes are read.

    Attributes
    ----------
    columns : Columns
        Which column says what, where the names are not the known ones.
    voters, prompts : bool
        Keep who voted, and on what; cells are then counted apart.
    all_prompts : bool
        Refuse votes of which some have no prompt; otherwise prompts are then not known.
    both_bad : {"outcome", "tie", "drop"}
        Both bad as an outcome of its own, as a tie, or left out and counted.
    weight : str or None
        ``sampling`` for one over the column ``pair_probability``, or the name of a column. With
        ``sampling``, votes whose column ``repicks`` is above 0 are dropped: a model was replaced
        after the draw, and the probability is not that of the pair voted on.
    style : tuple of str
        ``X`` for the columns ``X_a`` and ``X_b``, compared by
        `rating.tables.weights.style_difference`, or for a column ``X`` that is a difference;
        ``log2:X`` for how many times ``X_a`` is ``X_b`` doubled.
    since, until : datetime or None
        The votes cast from ``since`` on and before ``until``.
    half_life_days : float or None
        Votes weigh half for every half-life of age; the newest vote that is used weighs 1.
    """

    columns: Columns = field(default_factory=Columns)
    voters: bool = True
    prompts: bool = False
    all_prompts: bool = False
    both_bad: BothBad = "outcome"
    weight: str | None = None
    style: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    half_life_days: float | None = None

    @classmethod
    def of(cls, options: RateOptions) -> "Reading":
        """Say how votes are read for a rating with these options."""
        needed = options.cluster in ("prompt", "both")
        return cls(
            columns=Columns.named(options.columns, by=options.by),
            prompts=needed or (options.cluster is None and options.interval == "sandwich"),
            all_prompts=needed,
            both_bad=options.both_bad,
            weight=options.weights,
            style=options.style,
            since=options.since,
            until=options.until,
            half_life_days=options.half_life,
        )

    @property
    def needs_time(self) -> bool:
        """Whether it matters when a vote was cast."""
        return any(x is not None for x in (self.since, self.until, self.half_life_days))


@contextmanager
def opened_table(source: object, reading: Reading, *, by: bool) -> Iterator[Table]:
    """Read the columns that a reading takes, from one row a vote or one row a pair.

    The source stays open, so that an error can say in which row of it something is missing.
    """

    def wanted(there: Sequence[str]) -> list[str]:
        texts, numbers = _roles(there, reading, by=by)
        pairs = [name for name in COUNTS if name in there] if "n" in numbers else []
        own = {name for name in (*texts.values(), *numbers.values(), *pairs) if name in there}
        return sorted(own)

    with opened(source, wanted) as frame:
        texts, numbers = _roles(frame.collect_schema().names(), reading, by=by)
        if "n" in numbers:
            others = {*texts.values(), *numbers.values()} - {"winner", N}
            frame = one_row_an_outcome(frame, sorted(others))
        if "time" in numbers and not _is_moment(frame, numbers["time"]):
            texts["time"] = numbers.pop("time")
        texts = only_of_text(frame, texts)
        few = {"model_a", "model_b", "winner", "left_out", "by"}
        table = fetch(frame, texts, numbers, group=not numbers and set(texts) <= few)
        if "time" in numbers and frame.collect_schema()[numbers["time"]].is_numeric():
            weights.checked_seconds(table.numbers["time"])
        yield _timed(compact(table))


def _is_pairs(there: Sequence[str], reading: Reading) -> bool:
    return reading.columns.find("winner", there) is None and holds_pairs(there)


def _is_moment(frame: Frame, name: str) -> bool:
    kind = frame.collect_schema()[name]
    return kind.is_temporal() or kind.is_numeric()


def _roles(
    there: Sequence[str], reading: Reading, *, by: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Find the columns to read: those of names and those of numbers, by role."""
    columns = reading.columns
    pairs = _is_pairs(there, reading)
    texts = {role: columns.need(role, there) for role in ("model_a", "model_b")}
    texts["winner"] = "winner" if pairs else columns.need("winner", there)
    optional = [("voter", reading.voters), ("prompt", reading.prompts), ("left_out", True)]
    for role in [role for role, keep in optional if keep]:
        if column := columns.find(role, there):
            texts[role] = column
    if by:
        texts["by"] = columns.need("by", there)
    if not pairs and columns.by != "order":
        texts |= order_columns(there)
    numbers = {"n": N} if pairs else {}
    if reading.weight is not None:
        sampling = reading.weight == SAMPLING
        name = columns.need("probability", there) if sampling else require(reading.weight, there)
        numbers["weight"] = name
        if sampling and (column := columns.find("repicks", there)):
            numbers["repicks"] = column
    if reading.needs_time:
        numbers["time"] = columns.need("time", there)
    for name in reading.style:
        numbers |= _style_columns(name, there)
    return texts, numbers


def _style_columns(name: str, there: Sequence[str]) -> dict[str, str]:
    """Find the columns of a style, by role: those of its two sides, or of a difference."""
    stem = name.removeprefix(LOG2)
    sides = {f"{name}_{side}": f"{stem}_{side}" for side in "ab"}
    if name.startswith(LOG2) or set(sides.values()) <= set(there):
        return {role: require(column, there) for role, column in sides.items()}
    return {name: require(name, there)}


def _timed(table: Table) -> Table:
    """Read the moments of a column of text; raises `DataError` if one is not a moment."""
    column = table.texts.get("time")
    if column is None:
        return table
    moments = np.append(weights.parse_moments(column.names), np.nan)[column.codes]
    texts = {role: texts for role, texts in table.texts.items() if role != "time"}
    return replace(table, texts=texts, numbers={**table.numbers, "time": moments})


TEXTS = {
    "model_a": "model_a",
    "model_b": "model_b",
    "winner": "outcome",
    "voter": "voter",
    "prompt": "prompt",
    "battle": "battle",
    "left_out": "left_out",
}
NUMBERS = {"weight": "pair_probability", "repicks": "repicks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedColumns:
    """The votes of an arena's log in columns, skips among them, in its order.

    Attributes
    ----------
    name : str
        What errors call the log.
    left_out : list of str or None
        Why the policy leaves the vote out; None where it counts.
    """

    name: str
    battle: list[str]
    model_a: list[str]
    model_b: list[str]
    outcome: list[str]
    voter: list[str]
    prompt: list[str | None]
    created: list[datetime]
    pair_probability: list[float]
    repicks: list[int]
    left_out: list[str | None]

    def __str__(self) -> str:
        """Return the name, as a file's path is its name."""
        return self.name

    def without(self, models: Set[str]) -> "LoggedColumns":
        """Leave out the battles of some models."""
        stays = [not {a, b} & models for a, b in zip(self.model_a, self.model_b, strict=True)]
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        name = columns.pop("name")
        left = {role: list(compress(values, stays)) for role, values in columns.items()}
        return LoggedColumns(name=name, **left)

    def require_own(self, columns: Columns) -> None:
        """Raise `DataError` if columns of the log are named, which has its own."""
        named = {field.name: getattr(columns, field.name) for field in fields(columns)}
        if named.pop("by") is not None:
            msg = (
                f"The log holds no column {columns.by!r} to part the votes by: export the votes, "
                "add the column, and rate the file."
            )
            raise DataError(msg)
        for role, name in named.items():
            if name is not None:
                msg = (
                    f"The log has its own columns, and {role}={name} names another: drop --column."
                )
                raise DataError(msg)

    def table(self, texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
        """Return columns by role, every vote a row: those of `TEXTS` and `NUMBERS`, and time."""
        coded = {role: coded_list(role, getattr(self, TEXTS[role])) for role in texts}
        arrays = {
            role: np.array(getattr(self, NUMBERS[role]), dtype=np.float64)
            for role in numbers
            if role != "time"
        }
        if "time" in numbers:
            arrays["time"] = np.array([moment.timestamp() for moment in self.created], dtype=float)
        return Table(coded, arrays, None, lambda _: None)
