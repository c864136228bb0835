"""A rule of a tagger: a pattern, and what is quicker to look for and has to be there."""

import re
from typing import NamedTuple, Self


class Rule(NamedTuple):
    """Whether a text in small letters fits a pattern.

    Attributes
    ----------
    signs : tuple of str
        Parts of words: a text without any of them does not fit, and the pattern is not tried.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, signs: str, pattern: str) -> Self:
        """Make a rule of signs with a bar between them, and of a pattern.

        >>> Rule.of("cat|dog", "(?:hot )?dog").holds("a hot dog")
        True
        """
        return cls(tuple(signs.split("|")), re.compile(pattern, re.MULTILINE))

    def holds(self, text: str) -> bool:
        """Say whether a text in small letters fits."""
        return any(sign in text for sign in self.signs) and self.pattern.search(text) is not None
