"""Family ``change_case``: words and whole responses in capital or lower-case letters."""

import re
from dataclasses import dataclass

from judge.methods.constraints.arguments import Relation
from judge.methods.constraints.detection import written_in

_WORD = re.compile(r"[^\W_]+(?:[-'’.&/][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class CapitalWordFrequency:
    """So many words all in capital letters, ``I`` and ``A`` included.

    A word is a run of letters and digits, with hyphens, apostrophes, full
    stops, ampersands and slashes inside. Upstream splits with nltk, where
    ``DON'T`` makes two words; here it is one.

    Examples
    --------
    >>> CapitalWordFrequency(3, Relation.AT_LEAST).follows("I DON'T care about COVID-19")
    True
    """

    capital_frequency: int
    capital_relation: Relation

    def __post_init__(self) -> None:
        self.capital_relation.refuse_below_zero("capital_frequency", self.capital_frequency)

    def follows(self, response: str) -> bool:
        """Count capitalised words."""
        found = sum(word.isupper() for word in _WORD.findall(response))
        return self.capital_relation.holds(found, self.capital_frequency)


@dataclass(frozen=True, slots=True)
class EnglishCapital:
    """English in capital letters; None where only the language is in doubt.

    The language by `written_in`; upstream asks langdetect and lets pass what
    that cannot tell.
    """

    def follows(self, response: str) -> bool | None:
        """Compare the case first: one small letter is enough to fail."""
        return written_in(response, "en") if response.isupper() else False


@dataclass(frozen=True, slots=True)
class EnglishLowercase:
    """English without capital letters; None where only the language is in doubt.

    The language by `written_in`; upstream asks langdetect and lets pass what
    that cannot tell.
    """

    def follows(self, response: str) -> bool | None:
        """Compare the case first: one capital letter is enough to fail."""
        return written_in(response, "en") if response.islower() else False
