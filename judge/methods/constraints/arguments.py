"""Arguments of instructions: read by the types of a checker's fields, or refused."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from enum import StrEnum
from typing import Any, Protocol

from rating.errors import DataError


class Checker(Protocol):
    """One instruction: a frozen dataclass whose fields are IFEval's arguments."""

    def follows(self, response: str) -> bool | None:
        """Say whether a response that is not blank follows; None when that cannot be told."""
        ...


class Relation(StrEnum):
    """How a count relates to its threshold.

    Examples
    --------
    >>> Relation.LESS_THAN.holds(3, 3), Relation.AT_LEAST.holds(3, 3)
    (False, True)
    """

    LESS_THAN = "less than"
    AT_LEAST = "at least"

    def holds(self, count: int, threshold: int) -> bool:
        """Compare a count with the threshold."""
        return count < threshold if self is Relation.LESS_THAN else count >= threshold

    def refuse_below_zero(self, name: str, threshold: int) -> None:
        """Raise `DataError` for a bound that no count meets."""
        if self is Relation.LESS_THAN and threshold == 0:
            raise DataError(f"{name} is 0 and the relation 'less than'; no count is below 0.")


def build(kind: type[Checker], given: Mapping[str, object]) -> Checker:
    """Make a checker from arguments as they stand in a data file.

    Entries that are None count as absent, as in the copies of IFEval that
    give every instruction every key; zero is a value and stays.

    Raises
    ------
    DataError
        For an argument that is missing, unknown or impossible.
    """
    wanted: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # checkers are dataclasses
    present = {name: value for name, value in given.items() if value is not None}
    for name, value in present.items():
        if name not in wanted:
            raise DataError(f"{name} is {value!r}, but it takes {_listed(list(wanted))}.")
    for name in wanted:
        if name not in present:
            raise DataError(f"{name} is missing; it takes {_listed(list(wanted))}.")
    return kind(
        **{name: _READERS[field.type](name, present[name]) for name, field in wanted.items()}
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "no arguments"


def _count(name: str, value: object) -> int:
    """Return a whole number, also when a table made it a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"{name} is {value!r}; give a whole number, 0 or more.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r}; give a text that is not blank.")
    return value.strip()


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{name} is {value!r}; give a list of texts with at least one.")
    return tuple(_text(name, each) for each in value)


def _relation(name: str, value: object) -> Relation:
    if value not in list(Relation):
        raise DataError(f"{name} is {value!r}; give 'less than' or 'at least'.")
    return Relation(str(value))


_READERS: Mapping[object, Callable[[str, object], object]] = {
    int: _count,
    str: _text,
    tuple[str, ...]: _texts,
    Relation: _relation,
}
