"""IFEval: 25 verifiable instructions, their checkers, and the four scores with intervals.

`read_task` reads a row of IFEval's data, `check` checks a response against its instructions, and
`accuracy` scores checked responses; `share` allows for prompts with several instructions.
`language_of` names the language of a text by its script and its commonest words. A checker is a
function of a response that is not blank, and of IFEval's arguments.
"""

import json
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from inspect import signature
from itertools import pairwise
from typing import Any, NewType

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.leave_out import influence_factor, influence_variance, quantile
from rating.typing import Floats

# Language of a text


_MAIN_SHARE = 2 / 3
_SURE_OF_CHINESE = 20
_KANA_SHARE = 0.1
_LEAST_EVIDENCE = 2.0
_LEAST_SHARE = 0.1
_LEAST_OF_PROMPTS = 0.75
_LEAD = 2.0
_WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~«»“”„‘’…—–।،؛؟。、]+")


def written_in(text: str, language: str) -> bool | None:
    """Return whether most of a text is in a language; None when there is doubt.

    Letters decide first: unless two thirds are of one script there is doubt,
    and another script than the language's is a no, so a romanised text is not
    in its language. Where a script serves several languages, common words
    decide: each counts one over the number of languages that have it. A
    language is named with at least 2 such points, a tenth of all words common
    in it, and twice the points of any other.

    Parameters
    ----------
    language : str
        One of `SCRIPTS`.

    Notes
    -----
    Thresholds were set on the tests' texts in every language. A script with a
    single language of IFEval's stands for that language: Assamese passes as
    Bengali and Yiddish as Hebrew.

    Examples
    --------
    >>> written_in("The cat sat on the mat because it was warm there.", "en")
    True
    >>> written_in("Die Katze lag auf der Matte, weil es dort warm war.", "en")
    False
    >>> written_in("Okay!", "en") is None
    True
    """
    script = main_script(text)
    if script is None:
        return None
    if script != SCRIPTS[language]:
        return False
    if script not in common_words():
        return True
    words = Counter(_WORD.findall(text.lower()))
    points = dict.fromkeys(common_words()[script], 0.0)
    for word, names in _languages_by_word(script).items():
        for name in names:
            points[name] += words[word] / len(names)
    own = points.pop(language)
    rival = max(points, key=points.__getitem__)
    if _is_sure(words, script, language, own) and own >= _LEAD * points[rival]:
        return True
    if _is_sure(words, script, rival, points[rival]) and points[rival] >= _LEAD * own:
        return False
    return None


def language_of(text: str) -> str | None:
    """Name the language that most of a text is in, by the rules of `written_in`; None in doubt.

    Common words are of more languages than IFEval asks for. Of Chinese characters without kana
    a few are enough here: a text that may be Japanese rarely has none.

    Examples
    --------
    >>> language_of("Wie wird das Wetter in der Stadt?"), language_of("Ok")
    ('de', None)
    """
    script = "LATIN" if text.isascii() else _most_used_script(text)
    if script in common_words():
        weights, words = _weights(script), _WORD.findall(text.lower())
        points: dict[str, float] = defaultdict(float)
        for word in words:
            for name, weight in weights.get(word, ()):
                points[name] += weight
        best = max(points, key=points.__getitem__, default="")
        most = points.pop(best, 0.0)
        sure = most >= _LEAST_OF_PROMPTS and most >= _LEAST_SHARE * len(words) / 2
        return best if sure and most >= _LEAD * max(points.values(), default=0.0) else None
    return _OF_SCRIPT.get(script)


def main_script(text: str) -> str | None:
    """Return the script of two thirds of the letters, as Unicode names it; None without one.

    Chinese characters beside kana are ``KANA``; so few without kana that they
    may be either Chinese or Japanese give None.

    Examples
    --------
    >>> main_script("Привет, мир"), main_script("123") is None
    ('CYRILLIC', True)
    """
    letters = _letters(text)
    if not letters:
        return None
    script, count = letters.most_common(1)[0]
    unsure = script == "CJK" and (count < _SURE_OF_CHINESE or "KANA" in letters)
    return None if unsure or count < _MAIN_SHARE * letters.total() else script


def _letters(text: str) -> Counter[str]:
    """Count letters by script."""
    counts: Counter[str] = Counter()
    for character, times in Counter(text).items():
        if character.isalpha():
            counts[_script(character)] += times
    if counts["KANA"] and counts["KANA"] >= _KANA_SHARE * (counts["CJK"] + counts["KANA"]):
        counts["KANA"] += counts.pop("CJK", 0)
    return +counts


@cache
def _script(character: str) -> str:
    first = re.split("[ -]", unicodedata.name(character, "UNNAMED"), maxsplit=1)[0]
    return "KANA" if first in ("HIRAGANA", "KATAKANA") else first


def _most_used_script(text: str) -> str:
    letters = _letters(text)
    script, count = letters.most_common(1)[0] if letters else ("", 0)
    return script if count >= _MAIN_SHARE * letters.total() else ""


@cache
def _weights(script: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return what each word says for which language: one over those that have it, or 1."""
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    for word, names in _languages_by_word(script).items():
        weights[word] = dict.fromkeys(names, 1 / len(names))
    for name in _LANGUAGES["prompts"].keys() & common_words()[script].keys():
        for word in _LANGUAGES["prompts"][name].split():
            weights[word][name] = weights[word].get(name, 0.0) + 1
    return {word: tuple(by_name.items()) for word, by_name in weights.items()}


def _is_sure(words: Counter[str], script: str, language: str, points: float) -> bool:
    common = sum(words[word] for word in common_words()[script][language])
    return points >= _LEAST_EVIDENCE and common >= _LEAST_SHARE * words.total()


@cache
def _languages_by_word(script: str) -> dict[str, tuple[str, ...]]:
    """Return which languages have each common word."""
    tables = common_words()[script]
    every = sorted(set().union(*tables.values()))
    return {word: tuple(name for name in tables if word in tables[name]) for word in every}


_LANGUAGES = tomllib.loads((files("judge.ifeval") / "languages.toml").read_text("utf-8"))
SCRIPTS: Mapping[str, str] = {
    language: script
    for script, names in _LANGUAGES["scripts"].items()
    for language in names.split()
}
"""Script of each language (ISO 639-1), by the first word of its letters' Unicode names."""

_OF_SCRIPT: Mapping[str, str] = _LANGUAGES["others"] | {
    script: names for script, names in _LANGUAGES["scripts"].items() if " " not in names
}
"""Language of each script that serves one, or one in nearly every text."""


@cache
def common_words() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Read common words by script and language; scripts of a single language have none."""
    text = (files("judge.ifeval") / "common_words.toml").read_text("utf-8")
    return {
        script: {language: frozenset(words.split()) for language, words in tables.items()}
        for script, tables in tomllib.loads(text).items()
    }


# Sentences


_CLOSING = "\"'”’»)]}*_`"
_OPENING = "\"'“‘«([{*_`"
_FULL_STOP_IN_A_RUN = re.compile("([。！？।॥؟۔])")
_STOPS = (".", "!", "?", "…", "。", "！", "？", "।", "॥", "؟", "۔")
_BEFORE_A_NAME = re.compile(
    "mrs?|ms|dr|prof|st|rev|hon|gen|col|capt|lt|sgt|sen|rep|gov|pres|mt|fig|vs|cf|al"
)
_MAY_END = re.compile(r"etc|inc|ltd|co|corp|[js]r|bros|ph\.d|u\.[sk]|[ap]\.m")


def count_sentences(text: str) -> int:
    r"""Count sentences.

    A sentence ends where a word ends in ``.``, ``!``, ``?`` or their kin in
    other scripts, with quotation marks, brackets and markdown after it set
    aside. A single full stop does not end one after a title or initial
    (``Dr.``, ``J.``) or within a dotted abbreviation (``e.g.``); after an
    ellipsis, or one of a few abbreviations that may close a sentence
    (``etc.``), it does so before a capital letter. What is left at the end
    counts as one. As in the trained Punkt model that IFEval uses, line breaks
    end nothing and the number of a list's item is a sentence; that model
    knows more abbreviations.

    Examples
    --------
    >>> count_sentences("Dr. J. Smith paid $3.50, e.g. in cash. Why? He had to")
    3
    >>> count_sentences("1. Wash.\n2. Dry.")
    4
    """
    text = _FULL_STOP_IN_A_RUN.sub(r"\1 ", text)
    words = [word for word in text.split() if word.strip(_CLOSING + _OPENING)]
    ends = (_ends_sentence(word, after) for word, after in pairwise(words))
    return sum(ends) + bool(words)


def _ends_sentence(word: str, after: str) -> bool:
    core = word.rstrip(_CLOSING)
    if not core.endswith(_STOPS):
        return False
    if not core.endswith((".", "…")):
        return True
    before = core.rstrip(".…").lstrip(_OPENING).lower()
    if core.endswith(("..", "…")) or _MAY_END.fullmatch(before):
        return after.lstrip(_OPENING)[:1].isupper()
    initial = len(before) == 1 and before.isalpha() and before != "i"
    return not (initial or _is_dotted(before) or _BEFORE_A_NAME.fullmatch(before))


def _is_dotted(word: str) -> bool:
    """Tell ``e.g`` and ``u.s.a`` from a word or an address."""
    return "." in word and all(len(part) == 1 and part.isalpha() for part in word.split("."))


# Checkers


_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")
_CHECKERS_WORD = re.compile(r"[^\W_]+(?:[-'’.&/][^\W_]+)*")
_ENDS_A_FIRST_WORD = re.compile(r"""[.,?!'"]""")

Letter = NewType("Letter", str)
"""One character."""
Language = NewType("Language", str)
"""A key of `SCRIPTS`."""


class _Relation(StrEnum):
    """How a count relates to its threshold.

    Examples
    --------
    >>> _Relation.LESS_THAN.holds(3, 3), _Relation.AT_LEAST.holds(3, 3)
    (False, True)
    """

    LESS_THAN = "less than"
    AT_LEAST = "at least"

    def holds(self, count: int, threshold: int) -> bool:
        """Compare a count with the threshold."""
        return count < threshold if self is _Relation.LESS_THAN else count >= threshold


def _existence(response: str, keywords: tuple[str, ...]) -> bool:
    """Every keyword appears, also inside longer words, whatever the case.

    Upstream takes a keyword for a regular expression; here it stands for itself.

    Examples
    --------
    >>> _existence("Catalogues of dogs", ("cat", "dog"))
    True
    """
    return all(_occurrences(keyword, response) for keyword in keywords)


def _frequency(response: str, keyword: str, frequency: int, relation: _Relation) -> bool:
    """Count a keyword, also inside longer words, whatever the case.

    Upstream takes the keyword for a regular expression; here it stands for itself.
    """
    return relation.holds(_occurrences(keyword, response), frequency)


def _occurrences(keyword: str, response: str) -> int:
    return len(re.findall(re.escape(keyword), response, re.IGNORECASE))


def _forbidden_words(response: str, forbidden_words: tuple[str, ...]) -> bool:
    r"""None of the words appears as a whole word, whatever the case.

    As upstream for words of letters and digits. A word such as ``C++`` is
    found here too: upstream puts ``\b`` around it, as a regular expression.

    Examples
    --------
    >>> _forbidden_words("They rocked.", ("rock",))
    True
    """
    patterns = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in forbidden_words)
    return not any(re.search(each, response, re.IGNORECASE) for each in patterns)


def _letter_frequency(
    response: str, letter: Letter, let_frequency: int, let_relation: _Relation
) -> bool:
    """Count a character, whatever the case.

    Any one character, as IFEval's own data ask for ``#`` and ``!``; a copy of
    the checkers that wants a to z draws another letter at random instead.
    """
    return let_relation.holds(response.lower().count(letter.lower()), let_frequency)


def _response_language(response: str, language: Language) -> bool | None:
    """Compare the language, an ISO 639-1 code of IFEval's thirty; None when in doubt.

    By `written_in`, which abstains where it is not sure. Upstream asks
    langdetect, which draws at random and always names a language, and lets
    pass what it fails on (no letters, for instance).
    """
    return written_in(response, language)


def _number_sentences(response: str, num_sentences: int, relation: _Relation) -> bool:
    """Count the sentences by the rule of `count_sentences`.

    Upstream uses the trained Punkt model of nltk, which is not a dependency here.
    """
    return relation.holds(count_sentences(response), num_sentences)


def _number_paragraphs(response: str, num_paragraphs: int) -> bool:
    r"""Exactly this many paragraphs between dividers ``***``.

    A divider may stand first or last; two with nothing between them fail.

    Examples
    --------
    >>> _number_paragraphs("One.\n***\nTwo.", 2)
    True
    """
    parts = [part.strip() for part in response.split("***")]
    return all(parts[1:-1]) and sum(map(bool, parts)) == num_paragraphs


def _number_words(response: str, num_words: int, relation: _Relation) -> bool:
    """Count the runs of letters, digits and underscores, as upstream.

    ``don't`` is two such runs. Vowel signs of Indic scripts are no letters to
    a regular expression, so words there count as several, also upstream.
    """
    return relation.holds(len(re.findall(r"\w+", response)), num_words)


def _nth_paragraph_first_word(
    response: str, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    r"""Exactly this many paragraphs between blank lines, one of them beginning with a word.

    As upstream, a paragraph's number counts blank ones before it, the total
    does not; so four line breaks where two belong fail from there on.
    Upstream draws another paragraph at random when the number is impossible.

    Examples
    --------
    >>> _nth_paragraph_first_word("First.\n\n'Second, of two.'", 2, 2, "second")
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


def _number_placeholders(response: str, num_placeholders: int) -> bool:
    """At least this many texts in square brackets, each within a line.

    Examples
    --------
    >>> _number_placeholders("Dear [name], see [address].", 2)
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


def _postscript(response: str, postscript_marker: str) -> bool:
    """Look for the marker of a postscript, wherever it stands, whatever the case.

    As upstream, ``P.S.`` and ``P.P.S`` may have a space between their parts.
    Another marker stands for itself (upstream: a regular expression).
    """
    pattern = _POSTSCRIPTS.get(postscript_marker) or re.escape(postscript_marker.lower())
    return re.search(pattern, response.lower()) is not None


def _number_bullet_lists(response: str, num_bullets: int) -> bool:
    """Exactly this many lines that begin with ``-`` or with one ``*``.

    As upstream, a rule ``---`` counts and a line in bold does not. Upstream
    takes an asterisk alone on its line for a point as well.
    """
    return sum(map(_is_point, response.split("\n"))) == num_bullets


def _is_point(line: str) -> bool:
    text = line.lstrip()
    return text.startswith("-") or (text.startswith("*") and text[1:2] not in ("", "*"))


def _constrained_response(response: str) -> bool:
    """One of IFEval's three answers appears: "My answer is yes.", "no." or "maybe."."""
    return any(answer in response for answer in _ANSWERS)


def _number_highlighted_sections(response: str, num_highlights: int) -> bool:
    """At least this many texts that are not blank between ``*`` or ``**``, each within a line.

    As upstream, one between ``***`` counts twice.

    Examples
    --------
    >>> _number_highlighted_sections("*one* and **two**", 2)
    True
    """
    marked = (r"\*[^\n*]*\*", r"\*\*[^\n*]*\*\*")
    highlights = [each for pattern in marked for each in re.findall(pattern, response)]
    return sum(bool(each.strip("*").strip()) for each in highlights) >= num_highlights


def _multiple_sections(response: str, section_spliter: str, num_sections: int) -> bool:
    """At least this many headings: the word, perhaps a space, a number; case included.

    Upstream takes the word for a regular expression; here it stands for itself.
    """
    return len(re.findall(re.escape(section_spliter) + r"\s?\d+", response)) >= num_sections


def _json_format(response: str) -> bool | None:
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


def _title(response: str) -> bool:
    """Look for a title that is not blank between ``<<`` and ``>>`` within a line."""
    return any(map(_has_title, response.split("\n")))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end and bool(line[start:end].lstrip("<").rstrip(">").strip())


def _two_responses(response: str) -> bool:
    r"""Exactly two different texts, separated by ``******``, which may also stand first or last.

    Examples
    --------
    >>> _two_responses("Yes.\n******\nNo."), _two_responses("Yes.******Yes.")
    (True, False)
    """
    parts = [part.strip() for part in response.split("******")]
    texts = [part for part in parts if part]
    return all(parts[1:-1]) and len(texts) == 2 and texts[0] != texts[1]


def _repeat_prompt(response: str, prompt_to_repeat: str) -> bool:
    """Compare the beginning with the request, whatever the case."""
    return response.strip().lower().startswith(prompt_to_repeat.lower())


def _end_checker(response: str, end_phrase: str) -> bool:
    """Compare the end with the phrase, whatever the case; ``"`` after it is ignored."""
    return response.strip().strip('"').lower().endswith(end_phrase.lower())


def _quotation(response: str) -> bool:
    """Compare both ends with a straight double quotation mark.

    Examples
    --------
    >>> _quotation('"Yes."'), _quotation('"')
    (True, False)
    """
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _capital_word_frequency(
    response: str, capital_frequency: int, capital_relation: _Relation
) -> bool:
    """Count the words all in capital letters, ``I`` and ``A`` included.

    A word is a run of letters and digits, with hyphens, apostrophes, full
    stops, ampersands and slashes inside. Upstream splits with nltk, where
    ``DON'T`` makes two words; here it is one.

    Examples
    --------
    >>> _capital_word_frequency("I DON'T care about COVID-19", 3, _Relation.AT_LEAST)
    True
    """
    n = sum(word.isupper() for word in _CHECKERS_WORD.findall(response))
    return capital_relation.holds(n, capital_frequency)


def _english_capital(response: str) -> bool | None:
    """English in capital letters; None where only the language is in doubt.

    The language by `written_in`; upstream asks langdetect and lets pass what
    that cannot tell. One small letter is enough to fail.
    """
    return written_in(response, "en") if response.isupper() else False


def _english_lowercase(response: str) -> bool | None:
    """English without capital letters; None where only the language is in doubt.

    The language as in `_english_capital`. One capital letter is enough to fail.
    """
    return written_in(response, "en") if response.islower() else False


def _no_comma(response: str) -> bool:
    """No ``,`` appears; commas of other scripts are not looked for, as upstream."""
    return "," not in response


# Arguments of checkers


Checker = Callable[..., bool | None]
"""Whether a response that is not blank follows, given IFEval's arguments; None if in doubt."""


def parameters_of(checker: Checker) -> dict[str, Any]:
    """Return the types of a checker's arguments by name, without the response."""
    _, *arguments = signature(checker).parameters.values()
    return {each.name: each.annotation for each in arguments}


def _arguments(checker: Checker, given: Mapping[str, object]) -> dict[str, Any]:
    """Read arguments as they stand in a data file.

    Entries that are None count as absent, as in the copies of IFEval that
    give every instruction every key; zero is a value and stays.

    Raises
    ------
    DataError
        For an argument that is missing, unknown or impossible.
    """
    wanted = parameters_of(checker)
    present = {name: value for name, value in given.items() if value is not None}
    for name, value in present.items():
        if name not in wanted:
            raise DataError(f"{name} is {value!r}, but it takes {_joined(list(wanted))}.")
    for name in wanted:
        if name not in present:
            raise DataError(f"{name} is missing; it takes {_joined(list(wanted))}.")
    arguments = {name: _READERS[kind](name, present[name]) for name, kind in wanted.items()}
    _refuse_impossible(arguments)
    return arguments


def _refuse_impossible(arguments: Mapping[str, Any]) -> None:
    """Raise `DataError` for a bound that no count meets, or a paragraph that is not there."""
    if _Relation.LESS_THAN in arguments.values():
        for name, value in arguments.items():
            if value == 0:
                raise DataError(f"{name} is 0 and the relation 'less than'; no count is below 0.")
    if "nth_paragraph" in arguments:
        n, nth = arguments["num_paragraphs"], arguments["nth_paragraph"]
        if not 1 <= nth <= n:
            msg = f"nth_paragraph is {nth}; with num_paragraphs {n}, give a number from 1 to that."
            raise DataError(msg)


def _joined(names: list[str]) -> str:
    return ", ".join(names) if names else "no arguments"


def _count(name: str, value: object) -> int:
    """Return a whole number, also when a table made it a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"{name} is {value!r}; give a whole number, 0 or more.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r}; give a text that is not blank.")
    return value.strip()


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{name} is {value!r}; give a list of texts with at least one.")
    return tuple(_text(name, each) for each in value)


def _relation(name: str, value: object) -> _Relation:
    if value not in list(_Relation):
        raise DataError(f"{name} is {value!r}; give 'less than' or 'at least'.")
    return _Relation(str(value))


def _letter(name: str, value: object) -> str:
    text = _text(name, value)
    if len(text) != 1:
        raise DataError(f"{name} is {text!r}; give one character.")
    return text


def _language(name: str, value: object) -> str:
    text = _text(name, value)
    if text not in SCRIPTS:
        raise DataError(f"{name} is {text!r}; give one of {', '.join(SCRIPTS)}.")
    return text


_READERS: Mapping[object, Callable[[str, object], object]] = {
    int: _count,
    str: _text,
    tuple[str, ...]: _texts,
    _Relation: _relation,
    Letter: _letter,
    Language: _language,
}


CHECKERS: Mapping[str, Checker] = {
    "keywords:existence": _existence,
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _response_language,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_words": _number_words,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph_first_word,
    "detectable_content:number_placeholders": _number_placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _number_bullet_lists,
    "detectable_format:constrained_response": _constrained_response,
    "detectable_format:number_highlighted_sections": _number_highlighted_sections,
    "detectable_format:multiple_sections": _multiple_sections,
    "detectable_format:json_format": _json_format,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end_checker,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": _capital_word_frequency,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "punctuation:no_comma": _no_comma,
}


# Tasks


@dataclass(frozen=True, slots=True)
class Instruction:
    """One verifiable instruction.

    Attributes
    ----------
    id : str
        Family and name, a key of `CHECKERS`.
    arguments : mapping
        Of its checker, by name.
    """

    id: str
    arguments: Mapping[str, Any]

    @property
    def family(self) -> str:
        """What stands before the colon of the id."""
        return self.id.split(":")[0]

    def follows(self, response: str) -> bool | None:
        """Return whether a response follows; None when that is unknown. A blank one does not."""
        return CHECKERS[self.id](response, **self.arguments) if response.strip() else False


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt and the verifiable instructions in it, at least one."""

    prompt: str
    instructions: tuple[Instruction, ...]


def _read_instruction(id: str, kwargs: Mapping[str, object]) -> Instruction:  # IFEval's word
    """Read an id with its arguments; those that are None count as absent, zeros as given.

    Raises
    ------
    DataError
        For an unknown id, or arguments that are missing, unknown or
        impossible. IFEval's own code draws such arguments at random.

    Examples
    --------
    >>> _read_instruction("length_constraints:number_paragraphs", {"num_paragraphs": 2}).family
    'length_constraints'
    """
    if id not in CHECKERS:
        raise DataError(f"Unknown instruction {id!r}; give one of {', '.join(CHECKERS)}.")
    try:
        return Instruction(id, _arguments(CHECKERS[id], kwargs))
    except DataError as error:
        raise DataError(f"{id}: {error}") from None


def read_task(row: Mapping[str, object]) -> Task:
    """Read a row of IFEval's ``input_data.jsonl``.

    Parameters
    ----------
    row : mapping
        ``prompt``, ``instruction_id_list`` and ``kwargs``, one mapping (or
        None) for each id. Other keys are ignored.

    Raises
    ------
    DataError
        For a row of another form, and as `_read_instruction`.
    """
    prompt, ids, kwargs = (row.get(name) for name in ("prompt", "instruction_id_list", "kwargs"))
    if not isinstance(prompt, str):
        raise DataError(f"prompt is {prompt!r}; give the text of the prompt.")
    if not isinstance(ids, list | tuple) or not ids:
        raise DataError(f"instruction_id_list is {ids!r}; give a list with at least one id.")
    if not isinstance(kwargs, list | tuple) or len(kwargs) != len(ids):
        raise DataError(f"kwargs is {kwargs!r}; give one mapping for each of the {len(ids)} ids.")
    pairs = zip(ids, kwargs, strict=True)
    return Task(
        prompt, tuple(_read_instruction(str(id), _mapping(id, given)) for id, given in pairs)
    )


def _mapping(id: object, given: object) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DataError(f"{id}: kwargs is {given!r}; give a mapping from argument to value.")
    return given


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check.

    Attributes
    ----------
    prompt : str
    ids : tuple of str
        Ids of the instructions, in the order of the task.
    strict, loose : tuple of bool or None
        Whether each was followed, in the response as it is and in any of its
        `loosened` versions; None where that is unknown.
    """

    prompt: str
    ids: tuple[str, ...]
    strict: tuple[bool | None, ...]
    loose: tuple[bool | None, ...]

    @property
    def all_strict(self) -> bool | None:
        """Whether all were followed; None where those that are known were."""
        if False in self.strict:
            return False
        return None if None in self.strict else True


def check(task: Task, response: str) -> Checked:
    r"""Check a response against every instruction of its prompt.

    A blank response follows nothing. What passes strictly passes loosely; the
    loose score is an upper bound: without its first or last line, a response
    may also lose the very violation that it is searched for.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.

    Examples
    --------
    >>> from judge.ifeval import read_task
    >>> task = read_task(
    ...     {"prompt": "Hi", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    ... )
    >>> checked = check(task, "Sure, here:\nhello world")
    >>> checked.strict, checked.loose
    ((False,), (True,))
    """
    rules, versions = task.instructions, loosened(response)
    return Checked(
        prompt=task.prompt,
        ids=tuple(each.id for each in rules),
        strict=tuple(each.follows(response) for each in rules),
        loose=tuple(_any(each.follows(text) for text in versions) for each in rules),
    )


def loosened(response: str) -> tuple[str, ...]:
    r"""Return the versions of a response of which one has to pass for the loose score.

    As it is, without its first line, without its last, without both; each as
    it is and without asterisks, as in the paper that `check` names. Equal versions are given once.

    Examples
    --------
    >>> loosened("Sure:\n*yes*")
    ('Sure:\n*yes*', 'Sure:\nyes', '*yes*', 'yes', 'Sure:', '')
    """
    lines = response.split("\n")
    shorter = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    texts = (response, *shorter)
    return tuple(dict.fromkeys(each for text in texts for each in (text, text.replace("*", ""))))


def _any(results: Iterable[bool | None]) -> bool | None:
    """Return True if one is; otherwise None if one is unknown."""
    unknown = False
    for result in results:
        if result:
            return True
        unknown |= result is None
    return None if unknown else False


# Scores


@dataclass(frozen=True, slots=True)
class Share:
    """How much of what could be checked was followed.

    Attributes
    ----------
    rate, low, high : float
        From 0 to 1, with an interval; NaN, 0 and 1 if nothing could be checked.
    n : int
        Instructions or prompts behind it.
    n_unread : int
        Those excluded, because it is unknown whether they were followed.
    """

    rate: float
    low: float
    high: float
    n: int
    n_unread: int

    def to_dict(self) -> dict[str, float | None]:
        """Return the rate and its interval for JSON: None where nothing is known."""
        ends = {"rate": self.rate, "lower": self.low, "upper": self.high}
        return {name: value if self.n else None for name, value in ends.items()}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The four scores of IFEval; a prompt counts when all its instructions are followed."""

    prompt_strict: Share
    prompt_loose: Share
    instruction_strict: Share
    instruction_loose: Share


def accuracy(checked: Sequence[Checked], *, level: float = 0.95) -> Accuracy:
    """Score checked responses.

    A prompt with an instruction that could not be checked is excluded from the
    prompt-level scores whole, even where another one failed: otherwise such
    prompts would enter only as failures. Instructions of one prompt, and
    several responses to it, stand and fall together, so prompts are the
    clusters of every interval (see `share`).

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.
    """

    def over(column: str, *, prompts: bool) -> Share:
        rows = [(one.prompt, getattr(one, column)) for one in checked]
        if prompts:
            rows = [(name, [None if None in each else all(each)]) for name, each in rows]
        return share(((name, one) for name, each in rows for one in each), level=level)

    return Accuracy(
        prompt_strict=over("strict", prompts=True),
        prompt_loose=over("loose", prompts=True),
        instruction_strict=over("strict", prompts=False),
        instruction_loose=over("loose", prompts=False),
    )


def share(
    results: Iterable[tuple[str, float | None]], *, level: float = 0.95, exact: bool = False
) -> Share:
    """Return the share of True among results that may be correlated within a cluster.

    Wilson's interval for as many independent results as give the variance of
    the clustered share (Korn and Graubard's effective size, with their factor
    for few clusters): with one result a cluster it is Wilson's interval
    itself. The effective size is never above the number of results; where the
    variance says nothing, because all results agree or there is one cluster,
    it is the number of clusters.

    Parameters
    ----------
    results : iterable of (str, bool or None)
        Cluster and result of each, which may also be a number from 0 to 1; None is excluded and
        counted.
    exact : bool
        Take Clopper and Pearson's interval in place of Wilson's: no end of it errs more often
        than it may, whatever the share. Near 0 and 1 one end of Wilson's does.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and
       statistical inference", JASA 22(158), 1927, pp. 209-212.
    .. [2] E. L. Korn and B. I. Graubard, "Confidence intervals for proportions
       with small expected number of positive counts estimated from survey
       data", Survey Methodology 24(2), 1998, pp. 193-201.

    Examples
    --------
    >>> strict = share([("p", True), ("q", True), ("q", None), ("r", False)])
    >>> strict.n, strict.n_unread, round(strict.rate, 3)
    (3, 1, 0.667)
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    pairs = list(results)
    known = [(cluster, float(result)) for cluster, result in pairs if result is not None]
    n_unread = len(pairs) - len(known)
    if not known:
        return Share(float("nan"), 0.0, 1.0, 0, n_unread)
    _, codes = np.unique([cluster for cluster, _ in known], return_inverse=True)
    followed = np.array([result for _, result in known], dtype=np.float64)
    rate = float(followed.mean())
    n = _effective_size(followed, codes, level)
    low, high = _clopper_pearson(rate, n, level) if exact else wilson(rate, n, level)
    return Share(rate, low, high, len(known), n_unread)


def _effective_size(followed: Floats, codes: NDArray[np.intp], level: float) -> float:
    n, n_clusters = len(followed), int(codes.max()) + 1
    rate = float(followed.mean())
    if n_clusters == 1 or rate in (0, 1):
        return n_clusters
    totals = np.bincount(codes, followed - rate)
    clustered = float(influence_variance(np.asarray(totals, dtype=np.float64)))
    independent = n * rate * (1 - rate) * influence_factor(n)
    few = quantile(level, n - 1) / quantile(level, n_clusters - 1)
    return n * independent / max(clustered, independent) * few**2


def wilson(rate: float, n: float, level: float, df: float = np.inf) -> tuple[float, float]:
    """Return Wilson's interval for a rate of ``n`` results, with Student's quantile for ``df``."""
    z2 = quantile(level, df) ** 2
    middle = (n * rate + z2 / 2) / (n + z2)
    reach = np.sqrt(z2 * (n * rate * (1 - rate) + z2 / 4)) / (n + z2)
    return min(rate, max(0.0, float(middle - reach))), max(rate, min(1.0, float(middle + reach)))


def _clopper_pearson(rate: float, n: float, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a rate of ``n`` results, whole or effective.

    Examples
    --------
    >>> low, high = _clopper_pearson(0.9, 10, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.555, 0.9975)
    """
    from scipy.special import betaincinv  # most who ask for a share can do without

    tail, won = (1 - level) / 2, rate * n
    low = betaincinv(won, n - won + 1, tail) if rate > 0 else 0.0
    high = betaincinv(won + 1, n - won, 1 - tail) if rate < 1 else 1.0
    return float(low), float(high)
