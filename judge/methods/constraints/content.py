"""Family ``detectable_content``: placeholders and a postscript."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}


@dataclass(frozen=True, slots=True)
class NumberOfPlaceholders:
    """At least so many texts in square brackets, each within a line.

    Examples
    --------
    >>> NumberOfPlaceholders(2).follows("Dear [name], see [address].")
    True
    """

    num_placeholders: int

    def follows(self, response: str) -> bool:
        """Count brackets that open and close."""
        found = sum(1 for line in response.split("\n") for _ in _brackets(line))
        return found >= self.num_placeholders


@dataclass(frozen=True, slots=True)
class Postscript:
    """The marker of a postscript appears, wherever it stands, whatever the case.

    As upstream, ``P.S.`` and ``P.P.S`` may have a space between their parts.
    Another marker stands for itself (upstream: a regular expression).
    """

    postscript_marker: str

    def follows(self, response: str) -> bool:
        """Look for the marker."""
        marker = self.postscript_marker
        pattern = _POSTSCRIPTS.get(marker) or re.escape(marker.lower())
        return re.search(pattern, response.lower()) is not None


def _brackets(line: str) -> Iterator[int]:
    """Yield where each pair of brackets opens, from the left, none within another."""
    start = line.find("[")
    while start >= 0 and (end := line.find("]", start)) >= 0:
        yield start
        start = line.find("[", end)
