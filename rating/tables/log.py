"""The votes of an arena's log, as one source of votes among others."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import Any

import numpy as np

from rating.errors import DataError
from rating.outcome import of_sides
from rating.tables.coding import Coded, Table, coded_list, compact
from rating.tables.columns import SAMPLING, Columns, Reading
from rating.typing import Bools, Floats, Ints

SIDES = of_sides("model")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedVotes:
    """The votes of an arena's log as numbers, skips among them, in its order.

    Attributes
    ----------
    name : str
        What errors call the log.
    texts : mapping of str to Coded
        By role: `SIDES`, ``winner``, ``voter``, ``prompt`` and ``left_out``, which is why the
        policy leaves a vote out, and -1 where it counts. Where more than a board is made of
        them, also ``battle``.
    created : ndarray of int64
        Microseconds since 1970, UTC.
    numbers : mapping of str to ndarray
        ``weight``, the probability of the pair, and ``repicks``; nothing for a board.
    labels : mapping of str to sequence of str or None
        What was asked for, by the names by which votes can be parted.
    figures : mapping of str to sequence of float or None
        What was measured on the answers, such as ``cost_a``.
    """

    name: str = "the log"
    texts: Mapping[str, Coded]
    created: Ints
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    figures: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the name, as a file's path is its name."""
        return self.name

    def __len__(self) -> int:
        """Return how many votes there are."""
        return len(self.created)

    @property
    def counted(self) -> Bools:
        """Whether each vote counts."""
        return self.texts["left_out"].codes < 0

    def values(self, role: str) -> list[Any]:
        """Give each vote's name in a role; None where it is missing."""
        column = self.texts[role]
        return [column.names[code] if code >= 0 else None for code in column.codes.tolist()]

    def on(self, models: Set[str]) -> Bools:
        """Return which votes are on one of some models."""
        sides = [self.texts[side] for side in SIDES]
        marks = [np.array([*(n in models for n in s.names), False])[s.codes] for s in sides]
        return np.asarray(marks[0] | marks[1])

    def before(self, moment: datetime) -> "LoggedVotes":
        """Leave out what was cast at a moment, or later."""
        return self._only(self.created < microseconds(moment))

    def without(self, models: Set[str]) -> "LoggedVotes":
        """Leave out the battles of some models."""
        return self._only(~self.on(models))

    def _only(self, rows: Bools) -> "LoggedVotes":
        return replace(
            self,
            texts={role: Coded(c.names, c.codes[rows]) for role, c in self.texts.items()},
            created=self.created[rows],
            numbers={role: values[rows] for role, values in self.numbers.items()},
            labels={name: [*compress(each, rows)] for name, each in self.labels.items()},
            figures={name: [*compress(each, rows)] for name, each in self.figures.items()},
        )

    def require_own(self, columns: Columns) -> None:
        """Raise `DataError` if columns of the log are named, which has its own."""
        named = {one.name: getattr(columns, one.name) for one in fields(columns)}
        by = named.pop("by")
        if by is not None and by not in self.labels:
            known = ", ".join(self.labels) or "none"
            msg = (
                f"The log holds no column {by!r} to part the votes by, but {known}: export the "
                "votes, add the column, and rate the file."
            )
            raise DataError(msg)
        if by is not None and not any(self.labels[by]):
            msg = f"No vote of {self.name!r} has a {by}: label them first, arena label {self.name}"
            raise DataError(msg)
        for role, name in named.items():
            if name is not None:
                msg = (
                    f"The log has its own columns, and {role}={name} names another: drop --column."
                )
                raise DataError(msg)

    def in_order(self, roles: Sequence[str]) -> Table:
        """Return columns of names, and the number of each vote in the role ``row``."""
        numbers = {"row": np.arange(len(self), dtype=np.float64)}
        return Table({role: self.texts[role] for role in roles}, numbers, None, lambda _: None)

    def read(self, reading: Reading) -> Table:
        """Return the columns that a reading takes.

        Raises
        ------
        DataError
            If it names columns, or takes a style or weights that the log does not hold.
        """
        self.require_own(reading.columns)
        if reading.style or reading.weight not in (None, SAMPLING):
            msg = (
                "The log holds no styles, and no weights but 'sampling': export the votes, add "
                "the columns, and read the file."
            )
            raise DataError(msg)
        people = {"voter": reading.voters, "prompt": reading.prompts}
        roles = (*SIDES, "winner", *(role for role in people if people[role]), "left_out")
        texts = {role: self.texts[role] for role in roles}
        if (by := reading.columns.by) is not None:
            texts["by"] = coded_list(self.labels[by])
        beside = [name for name in reading.beside if name in self.labels]
        texts |= {name: coded_list(self.labels[name]) for name in beside}
        numbers = {**self.numbers} if reading.weight is not None else {}
        if reading.needs_time:
            numbers["time"] = self.created / 1e6
        figures = [column for name in reading.figures for column in of_sides(name)]
        there = [name for name in figures if name in self.figures]
        numbers |= {name: np.array(self.figures[name], dtype=np.float64) for name in there}
        return compact(Table(texts, numbers, None, lambda _: None))


def microseconds(moment: datetime) -> int:
    """Count the microseconds since 1970, without rounding.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, UTC))
    1000005
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)
