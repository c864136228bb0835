"""What a judge sees: a prompt and one or two responses, and no name anywhere."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NewType

from rating.errors import DataError

CaseId = NewType("CaseId", str)
"""SHA-256 of a case's content, in hexadecimal."""


class Order(StrEnum):
    """Which response stands first in what the judge reads: A (``ab``) or B (``ba``)."""

    AB = "ab"
    BA = "ba"

    @property
    def other(self) -> "Order":
        """The opposite order."""
        return Order.BA if self is Order.AB else Order.AB


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and one or two responses to its last turn.

    There is no field for a name, an id or a source, so whatever is made of a case is blind. Who
    wrote which response is known to the caller alone, by `id`.

    Attributes
    ----------
    prompt : tuple of Message
        The conversation so far; the last turn is the user's.
    response_a : str
        The response on side A, or the only one.
    response_b : str or None
        None where a single response is judged.

    Raises
    ------
    DataError
        If the prompt is empty, has an unknown role, or does not end with the user.

    Examples
    --------
    >>> case = Case((Message("user", "2 + 2?"),), "4", "5")
    >>> case.id[:12]
    '4edd9b113e3a'
    >>> case.swapped().response_a
    '5'
    """

    prompt: tuple[Message, ...]
    response_a: str
    response_b: str | None = None

    def __post_init__(self) -> None:
        bad = [turn.role for turn in self.prompt if turn.role not in ROLES]
        if bad:
            raise DataError(f"Unknown role {bad[0]!r}; use one of {', '.join(ROLES)}.")
        if not self.prompt or self.prompt[-1].role != "user":
            last = self.prompt[-1].role if self.prompt else "nothing"
            raise DataError(f"A prompt ends with a turn of the user, not with {last}.")

    @property
    def id(self) -> CaseId:
        """The case's content as a hash: equal content has an equal id, in every process."""
        return CaseId(_digest([self._turns(), self.response_a, self.response_b]))

    @property
    def prompt_id(self) -> str:
        """The prompt's content as a hash, whatever the responses."""
        return _digest(self._turns())

    def swapped(self) -> "Case":
        """Return the same case with the sides exchanged."""
        if self.response_b is None:
            raise DataError(f"Case {self.id[:12]} has one response: there is nothing to swap.")
        return Case(self.prompt, self.response_b, self.response_a)

    def shown(self, order: Order) -> "Case":
        """Return the case as the judge sees it: the response that comes first on side A."""
        return self if order is Order.AB else self.swapped()

    def _turns(self) -> list[list[str]]:
        return [[turn.role, turn.content] for turn in self.prompt]


ROLES = ("system", "user", "assistant")
_canonical = json.JSONEncoder(separators=(",", ":")).encode


def _digest(value: object) -> str:
    """Hash of canonical JSON, escaped to ASCII so that a lone surrogate has a hash too."""
    return hashlib.sha256(_canonical(value).encode()).hexdigest()
