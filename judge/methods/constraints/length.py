"""Family ``length_constraints``: how many words, sentences and paragraphs."""

import re
from dataclasses import dataclass

from judge.methods.constraints.arguments import Relation
from judge.methods.constraints.text import count_sentences
from rating.errors import DataError

_ENDS_A_FIRST_WORD = re.compile(r"""[.,?!'"]""")


@dataclass(frozen=True, slots=True)
class NumberOfWords:
    """So many runs of letters, digits and underscores, as upstream.

    ``don't`` is two such runs. Vowel signs of Indic scripts are no letters to
    a regular expression, so words there count as several, also upstream.
    """

    num_words: int
    relation: Relation

    def __post_init__(self) -> None:
        self.relation.refuse_below_zero("num_words", self.num_words)

    def follows(self, response: str) -> bool:
        """Count words."""
        return self.relation.holds(len(re.findall(r"\w+", response)), self.num_words)


@dataclass(frozen=True, slots=True)
class NumberOfSentences:
    """So many sentences by the rule of `count_sentences`.

    Upstream uses the trained Punkt model of nltk, which is not a dependency here.
    """

    num_sentences: int
    relation: Relation

    def __post_init__(self) -> None:
        self.relation.refuse_below_zero("num_sentences", self.num_sentences)

    def follows(self, response: str) -> bool:
        """Count sentences."""
        return self.relation.holds(count_sentences(response), self.num_sentences)


@dataclass(frozen=True, slots=True)
class NumberOfParagraphs:
    r"""Exactly so many paragraphs between dividers ``***``.

    A divider may stand first or last; two with nothing between them fail.

    Examples
    --------
    >>> NumberOfParagraphs(2).follows("One.\n***\nTwo.")
    True
    """

    num_paragraphs: int

    def follows(self, response: str) -> bool:
        """Count what stands between dividers."""
        parts = [part.strip() for part in response.split("***")]
        if not all(parts[1:-1]):
            return False
        return sum(map(bool, parts)) == self.num_paragraphs


@dataclass(frozen=True, slots=True)
class NthParagraphFirstWord:
    r"""Exactly so many paragraphs between blank lines, one of them beginning with a word.

    As upstream, a paragraph's number counts blank ones before it, the total
    does not; so four line breaks where two belong fail from there on.
    Upstream draws another paragraph at random when the number is impossible.

    Examples
    --------
    >>> NthParagraphFirstWord(2, 2, "second").follows("First.\n\n'Second, of two.'")
    True
    """

    num_paragraphs: int
    nth_paragraph: int
    first_word: str

    def __post_init__(self) -> None:
        if not 1 <= self.nth_paragraph <= self.num_paragraphs:
            raise DataError(
                f"nth_paragraph is {self.nth_paragraph}; with num_paragraphs "
                f"{self.num_paragraphs}, give a number from 1 to that."
            )

    def follows(self, response: str) -> bool:
        """Count paragraphs, and read the first word of one."""
        parts = [part.strip() for part in response.split("\n\n")]
        if sum(map(bool, parts)) != self.num_paragraphs:
            return False
        words = parts[self.nth_paragraph - 1].split(maxsplit=1)
        return bool(words) and _bare(words[0]) == self.first_word.lower()


def _bare(word: str) -> str:
    """Drop quotation marks before a word, and what follows from the first punctuation on."""
    return _ENDS_A_FIRST_WORD.split(word.lstrip("'").lstrip('"'))[0].lower()
