"""The votes of an arena's log: one more source of votes, beside files and tables."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import compress

import numpy as np

from rating.errors import DataError
from rating.tables.coding import coded_list
from rating.tables.columns import Columns
from rating.tables.sources import Table

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
