"""A rule of a tagger: patterns, and what is quicker to look for and has to be there."""

import re
from collections.abc import Mapping
from typing import NamedTuple, Self


class Part(NamedTuple):
    """A pattern of a rule.

    Attributes
    ----------
    signs : tuple of str
        Parts of words: a text without any of them does not fit, and the pattern is not tried.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]


class Rule(NamedTuple):
    """Whether a text in small letters fits one of several patterns."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, patterns: Mapping[str, str]) -> Self:
        """Make a rule of patterns, each by its signs with a bar between them.

        >>> Rule.of({"cat|dog": "(?:hot )?dog"}).holds("a hot dog")
        True
        """
        return cls(
            tuple(
                Part(tuple(signs.split("|")), re.compile(pattern, re.MULTILINE))
                for signs, pattern in patterns.items()
            )
        )

    def holds(self, text: str) -> bool:
        """Say whether a text in small letters fits."""
        for signs, pattern in self.parts:
            for sign in signs:
                if sign in text:
                    if pattern.search(text) is not None:
                        return True
                    break
        return False
