"""Which column of a table of votes says what: our own names and those of the public arenas."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

from rating.errors import DataError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "model_a": ("model_a",),
    "model_b": ("model_b",),
    "winner": ("winner", "outcome"),
    "voter": ("voter", "voter_id", "user", "user_id", "judge_hash", "judge"),
    "prompt": ("prompt_id", "question_id", "instruction_id", "prompt"),
    "time": ("ts", "tstamp", "timestamp", "created", "created_at"),
    "probability": ("pair_probability",),
    "repicks": ("repicks",),
    "left_out": ("left_out",),
}
"""Names by which a column is found, the first that is there; Chatbot Arena's are among them."""

LOG2 = "log2:"
"""Before the name of a style that is measured in doublings."""

COUNTS = {
    "n_model_a": "model_a",
    "n_model_b": "model_b",
    "n_tie": "tie",
    "n_both_bad": "both_bad",
}
"""Columns of a table of pairs, and the outcome that each counts; the last may be missing."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns to read; None finds the column by its `KNOWN` names.

    Attributes
    ----------
    by : str or None
        Column whose values part the votes into groups; there is no known name for it.
    """

    model_a: str | None = None
    model_b: str | None = None
    winner: str | None = None
    voter: str | None = None
    prompt: str | None = None
    time: str | None = None
    probability: str | None = None
    by: str | None = None

    @classmethod
    def named(cls, names: Iterable[tuple[str, str]], by: str | None = None) -> Self:
        """Take the names of some roles.

        Raises
        ------
        DataError
            If there is no such role, or it is named twice.

        Examples
        --------
        >>> Columns.named([("voter", "who")]).voter
        'who'
        """
        named: dict[str, str] = {}
        for role, name in names:
            if role not in ROLES:
                msg = f"There is no role {role!r} of a column: choose one of {', '.join(ROLES)}."
                raise DataError(msg)
            if role in named:
                msg = f"The {role} is named twice, {named[role]!r} and {name!r}: drop one."
                raise DataError(msg)
            named[role] = name
        return cls(**named, by=by)

    def find(self, role: str, there: Sequence[str]) -> str | None:
        """Name the column of a role; None when there is none and none was asked for.

        Raises
        ------
        DataError
            If the column that was asked for is not there.
        """
        asked = {field.name: getattr(self, field.name) for field in fields(self)}.get(role)
        if asked is not None:
            return require(asked, there)
        return next((name for name in KNOWN.get(role, ()) if name in there), None)

    def need(self, role: str, there: Sequence[str]) -> str:
        """Name the column of a role that must be there; raises `DataError` otherwise."""
        name = self.find(role, there)
        if name is None:
            names = " or ".join(map(repr, KNOWN.get(role, ()))) or "any"
            msg = (
                f"No column {names} for the {role}; there are {quoted_names(there)}. "
                f"Name the one that holds the {role}, as in --column {role}=NAME."
            )
            raise DataError(msg)
        return name


ROLES = tuple(field.name for field in fields(Columns) if field.name != "by")
"""What a column can be named for."""


def require(name: str, there: Sequence[str]) -> str:
    """Give back the name of a column that is there; raises `DataError` of any other."""
    if name not in there:
        msg = f"There is no column {name!r}; there are {quoted_names(there)}."
        raise DataError(msg)
    return name


def holds_pairs(there: Sequence[str]) -> bool:
    """Whether the table has one row a pair, with counts of each outcome."""
    return {"n_model_a", "n_model_b", "n_tie"} <= set(there)


def quoted_names(names: Sequence[str]) -> str:
    """Name columns in an error."""
    return ", ".join(map(repr, names)) or "none"
