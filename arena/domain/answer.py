"""What an endpoint says while it answers, how it can fail, and its words made fit to store."""

import re
from dataclasses import dataclass
from enum import StrEnum

from judge.completion import TokenLogprob


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A further piece of the model's reasoning: logged, never shown before the vote."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The regular end of an answer.

    Attributes
    ----------
    finish_reason : str
        As the endpoint gave it (``stop``, ``length``); empty when it gave none.
    tokens_in, tokens_out : int or None
        As the endpoint counted; None when it did not say.
    request_id : str
        The provider's name for the request; empty when it gave none.
    """

    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    request_id: str = ""


Chunk = TextDelta | ReasoningDelta | Finished


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer, asked for without streaming.

    Attributes
    ----------
    logprobs : tuple of TokenLogprob, or None
        None when the endpoint returned none: not the same as an empty answer.
    """

    text: str
    finished: Finished
    reasoning: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None


class FailureClass(StrEnum):
    """Why a model did not answer."""

    AUTH = "auth"
    BAD_REQUEST = "bad_request"
    CONTENT_FILTER = "content_filter"
    CONTEXT_LENGTH = "context_length"
    DROPPED = "dropped"
    EMPTY = "empty"
    INTERNAL = "internal"
    MALFORMED = "malformed"
    NOT_FOUND = "not_found"
    OVERLOADED = "overloaded"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"


UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MOST_COUNT = 2**31 - 1
"""Largest count that every database has a column for; no answer has as many tokens."""

LABEL_CHARACTERS = 200
"""Of an id or a finish reason: the longest of any provider has a quarter of that."""


def storable(text: str) -> str:
    """Give a text as a database has it: what none can hold becomes U+FFFD.

    PostgreSQL refuses the character NUL, and UTF-8 has no half of a surrogate pair.
    """
    return UNSTORABLE.sub("\ufffd", text)


def count(value: object) -> int | None:
    """Give a count as it was sent; None for what cannot be one.

    Examples
    --------
    >>> [count(value) for value in (7, -7, True, 2**31, "7", None)]
    [7, None, None, None, None, None]
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST_COUNT else None


def label(text: str, most: int = LABEL_CHARACTERS) -> str:
    r"""Give a text as one line of at most ``most`` characters, without control characters.

    Examples
    --------
    >>> label("stop\n\x1b[31m", 6)
    'stop \ufffd'
    """
    line = " ".join(text[:most].split())
    return "".join(c if c.isprintable() else "\ufffd" for c in line)


class Pieces:
    """Cleans a text that comes in pieces, and joins the surrogate pairs that are cut in two."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        r"""Give what a piece adds to the text; the first half of a pair waits for the second.

        Examples
        --------
        >>> pieces = Pieces()
        >>> pieces.add("So \ud83d"), pieces.add("\ude00!")
        ('So ', '\U0001f600!')
        """
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text[: len(text) - len(self._half)]
        return _paired(text) if UNSTORABLE.search(text) else text

    def end(self) -> str:
        """Give what is left at the end: U+FFFD for a half whose other half never came."""
        return storable(self._half)


def _paired(text: str) -> str:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return storable(joined)
