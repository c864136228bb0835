"""IFEval's checkers by family: content, format, keywords, letter case, length, punctuation."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from judge.ifeval.language import written_in
from judge.ifeval.text import count_sentences
from rating.errors import DataError

_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}


_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


_WORD = re.compile(r"[^\W_]+(?:[-'’.&/][^\W_]+)*")


_ENDS_A_FIRST_WORD = re.compile(r"""[.,?!'"]""")


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


@dataclass(frozen=True, slots=True)
class TwoResponses:
    r"""Exactly two different texts, separated by ``******``, which may also stand first or last.

    Examples
    --------
    >>> TwoResponses().follows("Yes.\n******\nNo."), TwoResponses().follows("Yes.******Yes.")
    (True, False)
    """

    def follows(self, response: str) -> bool:
        """Count what stands between separators."""
        parts = [part.strip() for part in response.split("******")]
        texts = [part for part in parts if part]
        return all(parts[1:-1]) and len(texts) == 2 and texts[0] != texts[1]


@dataclass(frozen=True, slots=True)
class RepeatPrompt:
    """The response begins with the request, whatever the case."""

    prompt_to_repeat: str

    def follows(self, response: str) -> bool:
        """Compare the beginning."""
        return response.strip().lower().startswith(self.prompt_to_repeat.lower())


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
        n = sum(1 for line in response.split("\n") for _ in _brackets(line))
        return n >= self.num_placeholders


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


@dataclass(frozen=True, slots=True)
class NumberOfBulletLists:
    """Exactly so many lines that begin with ``-`` or with one ``*``.

    As upstream, a rule ``---`` counts and a line in bold does not. Upstream
    takes an asterisk alone on its line for a point as well.
    """

    num_bullets: int

    def follows(self, response: str) -> bool:
        """Count points."""
        return sum(map(_is_point, response.split("\n"))) == self.num_bullets


@dataclass(frozen=True, slots=True)
class ConstrainedResponse:
    """One of IFEval's three answers appears: "My answer is yes.", "no." or "maybe."."""

    def follows(self, response: str) -> bool:
        """Look for each answer, case included."""
        return any(answer in response for answer in _ANSWERS)


@dataclass(frozen=True, slots=True)
class NumberOfHighlightedSections:
    """At least so many texts between ``*`` or ``**``, each within a line.

    As upstream, one between ``***`` counts twice.

    Examples
    --------
    >>> NumberOfHighlightedSections(2).follows("*one* and **two**")
    True
    """

    num_highlights: int

    def follows(self, response: str) -> bool:
        """Count highlights that are not blank."""
        marked = (r"\*[^\n*]*\*", r"\*\*[^\n*]*\*\*")
        highlights = [each for pattern in marked for each in re.findall(pattern, response)]
        return sum(bool(each.strip("*").strip()) for each in highlights) >= self.num_highlights


@dataclass(frozen=True, slots=True)
class MultipleSections:
    """At least so many headings: the word, perhaps a space, a number; case included.

    Upstream takes the word for a regular expression; here it stands for itself.
    """

    section_spliter: str
    num_sections: int

    def follows(self, response: str) -> bool:
        """Count headings."""
        sections = re.findall(re.escape(self.section_spliter) + r"\s?\d+", response)
        return len(sections) >= self.num_sections


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The whole response is JSON, perhaps in a markdown fence."""

    def follows(self, response: str) -> bool | None:
        """Parse it; None when it is nested too deeply to be parsed."""
        text = response.strip()
        for fence in _FENCES:
            text = text.removeprefix(fence)
        try:
            json.loads(text.removesuffix("```").strip(), parse_int=str)
        except ValueError:
            return False
        except RecursionError:
            return None
        return True


@dataclass(frozen=True, slots=True)
class Title:
    """A title that is not blank stands between ``<<`` and ``>>`` within a line."""

    def follows(self, response: str) -> bool:
        """Look for a title in each line."""
        return any(map(_has_title, response.split("\n")))


def _is_point(line: str) -> bool:
    text = line.lstrip()
    return text.startswith("-") or (text.startswith("*") and text[1:2] not in ("", "*"))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end and bool(line[start:end].lstrip("<").rstrip(">").strip())


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
        n = response.lower().count(self.letter.lower())
        return self.let_relation.holds(n, self.let_frequency)


def _occurrences(keyword: str, response: str) -> int:
    return len(re.findall(re.escape(keyword), response, re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class NoComma:
    """No ``,`` appears; commas of other scripts are not looked for, as upstream."""

    def follows(self, response: str) -> bool:
        """Look for a comma."""
        return "," not in response


@dataclass(frozen=True, slots=True)
class EndChecker:
    """The response ends with the phrase, whatever the case; ``"`` after it is ignored."""

    end_phrase: str

    def follows(self, response: str) -> bool:
        """Compare the end."""
        return response.strip().strip('"').lower().endswith(self.end_phrase.lower())


@dataclass(frozen=True, slots=True)
class Quotation:
    """The response stands in straight double quotation marks.

    Examples
    --------
    >>> Quotation().follows('"Yes."'), Quotation().follows('"')
    (True, False)
    """

    def follows(self, response: str) -> bool:
        """Compare both ends."""
        text = response.strip()
        return len(text) > 1 and text[0] == text[-1] == '"'


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
        n = sum(word.isupper() for word in _WORD.findall(response))
        return self.capital_relation.holds(n, self.capital_frequency)


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
