"""Family ``keywords``: words and letters that must or must not appear."""

import re
from dataclasses import dataclass

from judge.methods.constraints.arguments import Relation
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Existence:
    """Every keyword appears, also inside longer words, whatever the case.

    Upstream takes a keyword for a regular expression; here it stands for itself.

    Examples
    --------
    >>> Existence(("cat", "dog")).follows("Catalogues of dogs")
    True
    """

    keywords: tuple[str, ...]

    def follows(self, response: str) -> bool:
        """Look for each keyword."""
        return all(_occurrences(keyword, response) for keyword in self.keywords)


@dataclass(frozen=True, slots=True)
class Frequency:
    """A keyword appears so often, also inside longer words, whatever the case.

    Upstream takes the keyword for a regular expression; here it stands for itself.
    """

    keyword: str
    frequency: int
    relation: Relation

    def __post_init__(self) -> None:
        self.relation.refuse_below_zero("frequency", self.frequency)

    def follows(self, response: str) -> bool:
        """Count the keyword."""
        return self.relation.holds(_occurrences(self.keyword, response), self.frequency)


@dataclass(frozen=True, slots=True)
class ForbiddenWords:
    r"""None of the words appears as a whole word, whatever the case.

    As upstream for words of letters and digits. A word such as ``C++`` is
    found here too: upstream puts ``\b`` around it, as a regular expression.

    Examples
    --------
    >>> ForbiddenWords(("rock",)).follows("They rocked.")
    True
    """

    forbidden_words: tuple[str, ...]

    def follows(self, response: str) -> bool:
        """Look for each word between what is no letter, digit or underscore."""
        patterns = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in self.forbidden_words)
        return not any(re.search(each, response, re.IGNORECASE) for each in patterns)


@dataclass(frozen=True, slots=True)
class LetterFrequency:
    """A character appears so often, whatever the case.

    Any one character, as IFEval's own data ask for ``#`` and ``!``; a copy of
    the checkers that wants a to z draws another letter at random instead.
    """

    letter: str
    let_frequency: int
    let_relation: Relation

    def __post_init__(self) -> None:
        if len(self.letter) != 1:
            raise DataError(f"letter is {self.letter!r}; give one character.")
        self.let_relation.refuse_below_zero("let_frequency", self.let_frequency)

    def follows(self, response: str) -> bool:
        """Count the character."""
        found = response.lower().count(self.letter.lower())
        return self.let_relation.holds(found, self.let_frequency)


def _occurrences(keyword: str, response: str) -> int:
    return len(re.findall(re.escape(keyword), response, re.IGNORECASE))
