"""What endpoints and visitors send, as far as it can be logged and shown."""

import re

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
