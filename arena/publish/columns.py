"""Which column of a table of votes says what: our own names and those of the public arenas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from arena.errors import DataError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "model_a": ("model_a",),
    "model_b": ("model_b",),
    "winner": ("winner", "outcome"),
    "voter": ("voter", "voter_id", "user", "user_id", "judge_hash", "judge"),
    "prompt": ("prompt_id", "question_id", "instruction_id", "prompt"),
    "time": ("ts", "tstamp", "timestamp", "created", "created_at"),
    "probability": ("pair_probability",),
    "left_out": ("left_out",),
}
"""Names by which a column is found, the first that is there; Chatbot Arena's are among them."""

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
        found = self.find(role, there)
        if found is None:
            names = " or ".join(map(repr, KNOWN.get(role, ()))) or "any"
            msg = (
                f"No column {names} for the {role}; there are {listed(there)}. "
                f"Name the one that holds the {role}."
            )
            raise DataError(msg)
        return found


def require(name: str, there: Sequence[str]) -> str:
    """Give back the name of a column that is there; raises `DataError` of any other."""
    if name not in there:
        msg = f"There is no column {name!r}; there are {listed(there)}."
        raise DataError(msg)
    return name


def holds_pairs(there: Sequence[str]) -> bool:
    """Whether the table has one row a pair, with counts of each outcome."""
    return {"n_model_a", "n_model_b", "n_tie"} <= set(there)


def listed(names: Sequence[str]) -> str:
    """Name columns in an error."""
    return ", ".join(map(repr, names)) or "none"
