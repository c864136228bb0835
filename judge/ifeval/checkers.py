"""IFEval's checkers: functions of a response that is not blank, and of IFEval's arguments."""

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NewType

from judge.ifeval.text import count_sentences, written_in

_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")
_WORD = re.compile(r"[^\W_]+(?:[-'’.&/][^\W_]+)*")
_ENDS_A_FIRST_WORD = re.compile(r"""[.,?!'"]""")

Letter = NewType("Letter", str)
"""One character."""
Language = NewType("Language", str)
"""A key of `judge.ifeval.text.SCRIPTS`."""


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


def existence(response: str, keywords: tuple[str, ...]) -> bool:
    """Every keyword appears, also inside longer words, whatever the case.

    Upstream takes a keyword for a regular expression; here it stands for itself.

    Examples
    --------
    >>> existence("Catalogues of dogs", ("cat", "dog"))
    True
    """
    return all(_occurrences(keyword, response) for keyword in keywords)


def frequency(response: str, keyword: str, frequency: int, relation: Relation) -> bool:
    """Count a keyword, also inside longer words, whatever the case.

    Upstream takes the keyword for a regular expression; here it stands for itself.
    """
    return relation.holds(_occurrences(keyword, response), frequency)


def _occurrences(keyword: str, response: str) -> int:
    return len(re.findall(re.escape(keyword), response, re.IGNORECASE))


def forbidden_words(response: str, forbidden_words: tuple[str, ...]) -> bool:
    r"""None of the words appears as a whole word, whatever the case.

    As upstream for words of letters and digits. A word such as ``C++`` is
    found here too: upstream puts ``\b`` around it, as a regular expression.

    Examples
    --------
    >>> forbidden_words("They rocked.", ("rock",))
    True
    """
    patterns = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in forbidden_words)
    return not any(re.search(each, response, re.IGNORECASE) for each in patterns)


def letter_frequency(
    response: str, letter: Letter, let_frequency: int, let_relation: Relation
) -> bool:
    """Count a character, whatever the case.

    Any one character, as IFEval's own data ask for ``#`` and ``!``; a copy of
    the checkers that wants a to z draws another letter at random instead.
    """
    return let_relation.holds(response.lower().count(letter.lower()), let_frequency)


def response_language(response: str, language: Language) -> bool | None:
    """Compare the language, an ISO 639-1 code of IFEval's thirty; None when in doubt.

    By `written_in`, which abstains where it is not sure. Upstream asks
    langdetect, which draws at random and always names a language, and lets
    pass what it fails on (no letters, for instance).
    """
    return written_in(response, language)


def number_sentences(response: str, num_sentences: int, relation: Relation) -> bool:
    """So many sentences by the rule of `count_sentences`.

    Upstream uses the trained Punkt model of nltk, which is not a dependency here.
    """
    return relation.holds(count_sentences(response), num_sentences)


def number_paragraphs(response: str, num_paragraphs: int) -> bool:
    r"""Exactly so many paragraphs between dividers ``***``.

    A divider may stand first or last; two with nothing between them fail.

    Examples
    --------
    >>> number_paragraphs("One.\n***\nTwo.", 2)
    True
    """
    parts = [part.strip() for part in response.split("***")]
    return all(parts[1:-1]) and sum(map(bool, parts)) == num_paragraphs


def number_words(response: str, num_words: int, relation: Relation) -> bool:
    """So many runs of letters, digits and underscores, as upstream.

    ``don't`` is two such runs. Vowel signs of Indic scripts are no letters to
    a regular expression, so words there count as several, also upstream.
    """
    return relation.holds(len(re.findall(r"\w+", response)), num_words)


def nth_paragraph_first_word(
    response: str, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    r"""Exactly so many paragraphs between blank lines, one of them beginning with a word.

    As upstream, a paragraph's number counts blank ones before it, the total
    does not; so four line breaks where two belong fail from there on.
    Upstream draws another paragraph at random when the number is impossible.

    Examples
    --------
    >>> nth_paragraph_first_word("First.\n\n'Second, of two.'", 2, 2, "second")
    True
    """
    parts = [part.strip() for part in response.split("\n\n")]
    if sum(map(bool, parts)) != num_paragraphs:
        return False
    words = parts[nth_paragraph - 1].split(maxsplit=1)
    return bool(words) and _bare(words[0]) == first_word.lower()


def _bare(word: str) -> str:
    """Drop quotation marks before a word, and what follows from the first punctuation on."""
    return _ENDS_A_FIRST_WORD.split(word.lstrip("'").lstrip('"'))[0].lower()


def number_placeholders(response: str, num_placeholders: int) -> bool:
    """At least so many texts in square brackets, each within a line.

    Examples
    --------
    >>> number_placeholders("Dear [name], see [address].", 2)
    True
    """
    n = sum(1 for line in response.split("\n") for _ in _brackets(line))
    return n >= num_placeholders


def _brackets(line: str) -> Iterator[int]:
    """Yield where each pair of brackets opens, from the left, none within another."""
    start = line.find("[")
    while start >= 0 and (end := line.find("]", start)) >= 0:
        yield start
        start = line.find("[", end)


def postscript(response: str, postscript_marker: str) -> bool:
    """Look for the marker of a postscript, wherever it stands, whatever the case.

    As upstream, ``P.S.`` and ``P.P.S`` may have a space between their parts.
    Another marker stands for itself (upstream: a regular expression).
    """
    pattern = _POSTSCRIPTS.get(postscript_marker) or re.escape(postscript_marker.lower())
    return re.search(pattern, response.lower()) is not None


def number_bullet_lists(response: str, num_bullets: int) -> bool:
    """Exactly so many lines that begin with ``-`` or with one ``*``.

    As upstream, a rule ``---`` counts and a line in bold does not. Upstream
    takes an asterisk alone on its line for a point as well.
    """
    return sum(map(_is_point, response.split("\n"))) == num_bullets


def _is_point(line: str) -> bool:
    text = line.lstrip()
    return text.startswith("-") or (text.startswith("*") and text[1:2] not in ("", "*"))


def constrained_response(response: str) -> bool:
    """One of IFEval's three answers appears: "My answer is yes.", "no." or "maybe."."""
    return any(answer in response for answer in _ANSWERS)


def number_highlighted_sections(response: str, num_highlights: int) -> bool:
    """At least so many texts that are not blank between ``*`` or ``**``, each within a line.

    As upstream, one between ``***`` counts twice.

    Examples
    --------
    >>> number_highlighted_sections("*one* and **two**", 2)
    True
    """
    marked = (r"\*[^\n*]*\*", r"\*\*[^\n*]*\*\*")
    highlights = [each for pattern in marked for each in re.findall(pattern, response)]
    return sum(bool(each.strip("*").strip()) for each in highlights) >= num_highlights


def multiple_sections(response: str, section_spliter: str, num_sections: int) -> bool:
    """At least so many headings: the word, perhaps a space, a number; case included.

    Upstream takes the word for a regular expression; here it stands for itself.
    """
    return len(re.findall(re.escape(section_spliter) + r"\s?\d+", response)) >= num_sections


def json_format(response: str) -> bool | None:
    """Parse the response as JSON, perhaps in a markdown fence; None if it is nested too deep."""
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


def title(response: str) -> bool:
    """Look for a title that is not blank between ``<<`` and ``>>`` within a line."""
    return any(map(_has_title, response.split("\n")))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end and bool(line[start:end].lstrip("<").rstrip(">").strip())


def two_responses(response: str) -> bool:
    r"""Exactly two different texts, separated by ``******``, which may also stand first or last.

    Examples
    --------
    >>> two_responses("Yes.\n******\nNo."), two_responses("Yes.******Yes.")
    (True, False)
    """
    parts = [part.strip() for part in response.split("******")]
    texts = [part for part in parts if part]
    return all(parts[1:-1]) and len(texts) == 2 and texts[0] != texts[1]


def repeat_prompt(response: str, prompt_to_repeat: str) -> bool:
    """Compare the beginning with the request, whatever the case."""
    return response.strip().lower().startswith(prompt_to_repeat.lower())


def end_checker(response: str, end_phrase: str) -> bool:
    """Compare the end with the phrase, whatever the case; ``"`` after it is ignored."""
    return response.strip().strip('"').lower().endswith(end_phrase.lower())


def quotation(response: str) -> bool:
    """Compare both ends with a straight double quotation mark.

    Examples
    --------
    >>> quotation('"Yes."'), quotation('"')
    (True, False)
    """
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def capital_word_frequency(
    response: str, capital_frequency: int, capital_relation: Relation
) -> bool:
    """So many words all in capital letters, ``I`` and ``A`` included.

    A word is a run of letters and digits, with hyphens, apostrophes, full
    stops, ampersands and slashes inside. Upstream splits with nltk, where
    ``DON'T`` makes two words; here it is one.

    Examples
    --------
    >>> capital_word_frequency("I DON'T care about COVID-19", 3, Relation.AT_LEAST)
    True
    """
    n = sum(word.isupper() for word in _WORD.findall(response))
    return capital_relation.holds(n, capital_frequency)


def english_capital(response: str) -> bool | None:
    """English in capital letters; None where only the language is in doubt.

    The language by `written_in`; upstream asks langdetect and lets pass what
    that cannot tell. One small letter is enough to fail.
    """
    return written_in(response, "en") if response.isupper() else False


def english_lowercase(response: str) -> bool | None:
    """English without capital letters; None where only the language is in doubt.

    The language as in `english_capital`. One capital letter is enough to fail.
    """
    return written_in(response, "en") if response.islower() else False


def no_comma(response: str) -> bool:
    """No ``,`` appears; commas of other scripts are not looked for, as upstream."""
    return "," not in response
