"""Grammars of a judge's reply: closed forms that find a verdict that was offered, or nothing.

One rule for all: the last thing that has the shape of a verdict counts, and only if it is one of
those offered. Whatever else the text holds is noise. A judge that thinks aloud names several
verdicts and means the last; one that ends on a verdict which was not offered has given none, even
if it named a valid one on the way.

Each grammar, such as `bracketed` or `keyed`, returns a `Reading` or None. `sides`, `marks` and
`shaped` find verdicts in brackets, however models decorate them. Both the grammars and
`judge.protocol.neutralised`, which defuses such shapes in texts of others, use them: neither knows
a form that the other does not.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.case import FailureClass, TokenLogprob
from rating import Outcome
from rating.errors import DataError

_FORMS: dict[int, str] = {
    **{0xFF01 + place: chr(0x21 + place) for place in range(94)},  # full-width forms of ASCII
    **{0x3010: "[", 0x3011: "]"},
    **dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F, 0x3000), " "),
}
"""Each to one character: places in the text stay what they are."""


# Verdicts in brackets


_DOUBLE = re.compile(r"\\?\[\\?\[([^\[\]]{1,60}?)\\?\]\\?\]")
_ITEM = re.compile(rf"(\d{{1,3}})[ *_`]{{0,9}}[.:)]?[ *_`]{{0,9}}{_DOUBLE.pattern}")
_LETTER = re.compile(r"(?<![\\\[A-Za-z0-9_])\[([A-Z](?: ?[<>=≪≫]+ ?[A-Z])?)\](?![\]\[(\w:])")
_NUMBER = re.compile(
    r"(?<![\\\[A-Za-z0-9_])\[(\d{1,3}(?:\.\d{1,4})?(?: ?/ ?\d{1,3})?)\](?![\]\[(\w:])"
)
_DRESS = r"[ \t*_`]*"
_NAMED = (
    r"(?:(?:my|the|final|overall|own)\s+)*(?:verdict|judge?ment|decision|conclusion|rating|score|"
    r"mark|grade|choice|winner|preference|answer|(?:better|best)(?:\s\w+)?)"
    rf"{_DRESS}(?:[:=]|\bis\b ?:?){_DRESS}"
)
_BEFORE = re.compile(rf"{_DRESS}#*{_DRESS}({_NAMED})?", re.IGNORECASE)
_BEHIND = re.compile(r"[ \t*_`.!]*(?:\n|\Z)")
_NAME = re.compile(rf"{_NAMED}\Z", re.IGNORECASE)
_LONGEST = 80
"""Characters of what names a verdict, at most: before brackets on their line, or in them."""

_PREFIX = re.compile(
    r"(?:(?:the|my|final|overall)\s+)*(?:verdict|rating|score|mark|grade|choice|winner|answer|"
    r"assistant|response|reply|model|option)\b\s*(is\b|[:=])?\s*(?=\S)",
    re.IGNORECASE,
)
_AROUND = " \t\r\n*_`'\"“”‘’"
_OPERATOR = re.compile(r"\s*([<>=+]+)\s*")
_TIE = re.compile(r"(?:a )?(?:tie|draw|both|neither|equal|none)\b", re.IGNORECASE)
_SIDE = re.compile(r"[^\W\d_](?:[<>=+].*|/.*| (?:is|wins|was)\b.*)?", re.DOTALL)
_MARK = re.compile(r"[-+.]?\d(?:\S*|[\d.]* ?(?:/|(?:out )?of) ?\d\S*)", re.IGNORECASE)
_WORD = re.compile(r"[\w<>=+.]{1,8}")
_LETTERED = re.compile(r"[^\W\d_]")
_UNSEEN = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff]")


def regular(text: str) -> str:
    r"""Return a text with full-width letters, digits, signs and brackets in their plain forms.

    Examples
    --------
    >>> regular("［［７］］ 【A】")
    '[[7]] [A]'
    """
    return text if text.isascii() else text.translate(_FORMS)


def plain(words: str) -> str:
    r"""Return what is in brackets, or under a key, without what is around the verdict itself.

    Examples
    --------
    >>> plain(" **Assistant A** "), plain("A \\> B"), plain("A&gt;&gt;B"), plain("Rating: 7")
    ('A', 'A>B', 'A>>B', '7')
    """
    return _plain(words)[0]


def _plain(words: str) -> tuple[str, bool]:
    """Return the verdict itself, and whether words before it say that it is one."""
    if len(words) > _LONGEST:
        return words, False
    words = _UNSEEN.sub("", regular(words)).replace("≫", ">>").replace("≪", "<<")
    words = words.replace("\\", "")
    words = words.replace("&gt;", ">").replace("&lt;", "<").strip(_AROUND)
    named = False
    while prefix := _PREFIX.match(words):
        named, words = named or bool(prefix[1]), words[prefix.end() :].strip(_AROUND)
    return _OPERATOR.sub(r"\1", words), named


def sides(text: str) -> list[str]:
    """Return what has the shape of a verdict on two responses in double brackets, in order.

    Also what nobody offers, such as ``[[A/B]]``, ``[[Tie]]`` or, on a line of its own,
    ``[[I cannot decide]]``: a reply that ends on it has given no other.
    """
    return [words for words, named in _doubles(regular(text)) if named or _is_side(words)]


def marks(text: str) -> list[str]:
    """Return what has the shape of a mark in double brackets, in order; otherwise as `sides`."""
    doubles = _doubles(regular(text))
    return [words for words, named in doubles if named or _MARK.fullmatch(words)]


def _lone_side(text: str) -> str | None:
    r"""Return the verdict in single brackets that a text ends on, if there is no doubt of it.

    It is alone on its line, or only named there as in ``Verdict: [A]``; none in single brackets
    comes after it, and none that is another is alone on its line.

    Examples
    --------
    >>> _lone_side("Assistant [B] is wrong.\nVerdict: [A]"), _lone_side("I prefer [A] to [B]")
    ('A', None)
    """
    text = regular(text)
    matches = [*_LETTER.finditer(text)]
    return _settled(matches, [match for match in matches if _is_alone(text, match)])


def _lone_mark(text: str) -> str | None:
    r"""Return the mark in single brackets that a text ends on, as `_lone_side`.

    It is named, or all that the text says: a number in brackets may be a footnote's.

    Examples
    --------
    >>> _lone_mark("As [1] says.\nRating: [7]"), _lone_mark("It is as in\n[7]")
    ('7', None)
    """
    text = regular(text).strip()
    matches, whole = [*_NUMBER.finditer(text)], text.strip(_AROUND)
    alone = [
        match
        for match in matches
        if (line := _is_alone(text, match)) and (line[1] or match[0] == whole)
    ]
    return _settled(matches, alone)


def shaped(text: str) -> Iterator[int]:
    """Give the places of a text behind each bracket that opens what a judge's verdict looks like.

    A space there takes the shape from it: see `judge.protocol.neutralised`.
    """
    text = regular(text)
    for match in _DOUBLE.finditer(text):
        words, named = _plain(match[1])
        looks = _is_side(words) or _MARK.fullmatch(words) or _WORD.fullmatch(match[1].strip())
        if named or looks:
            yield text.index("[", match.start()) + 1
    for match in _LETTER.finditer(text):
        yield match.start() + 1
    whole = text.strip(f"{_AROUND}.!")
    for match in _NUMBER.finditer(text):
        before = text[max(match.start() - _LONGEST, 0) : match.start()].rstrip(" \t*_`")
        ends = before.endswith((":", "=", "s", "S"))  # much sooner seen than the name
        if (ends and _NAME.search(before)) or match[0] == whole:
            yield match.start() + 1


def _doubles(text: str) -> Iterator[tuple[str, bool]]:
    """Give the words in double brackets, and whether they are named a verdict.

    Words that are alone on their line are, as if they were named.
    """
    for match in _DOUBLE.finditer(text):
        words, named = _plain(match[1])
        is_alone = _LETTERED.search(words) and _is_alone(text, match) is not None
        yield words, named or bool(is_alone)


def _is_side(words: str) -> bool:
    return bool(_SIDE.fullmatch(words) or _TIE.match(words))


def _settled(matches: Sequence[re.Match[str]], alone: Sequence[re.Match[str]]) -> str | None:
    """Return the verdict of those that are alone, if it is one and the last of all."""
    verdicts = {plain(match[1]) for match in alone}
    return verdicts.pop() if len(verdicts) == 1 and alone[-1] is matches[-1] else None


def _is_alone(text: str, match: re.Match[str]) -> re.Match[str] | None:
    """Match what is before brackets on their line, if it and what is behind are no more."""
    begin = text.rfind("\n", 0, match.start()) + 1
    if match.start() - begin > _LONGEST or not _BEHIND.match(text, match.end()):
        return None
    return _BEFORE.fullmatch(text, begin, match.start())


# Readings


@dataclass(frozen=True, slots=True)
class Preference:
    """How far the response shown first is preferred over the one shown second.

    Attributes
    ----------
    first : float
        From 0 to 1: the probability that the first is preferred, or the place on a scale of
        levels; 1/2 is a tie.

    Examples
    --------
    >>> Preference(0.75).swapped()
    Preference(first=0.25)
    >>> Preference(0.75).outcome
    <Outcome.A: 'model_a'>
    """

    first: float

    def __post_init__(self) -> None:
        if not 0 <= self.first <= 1:
            raise DataError(f"A preference lies between 0 and 1, not at {self.first}.")

    @property
    def outcome(self) -> Outcome:
        """The result in the sides as shown: A is the response shown first."""
        if self.first == 0.5:
            return Outcome.TIE
        return Outcome.A if self.first > 0.5 else Outcome.B

    def swapped(self) -> "Preference":
        """Return the same preference with the responses named the other way round."""
        return Preference(1 - self.first)


@dataclass(frozen=True, slots=True)
class Rating:
    """A mark for one response, on the scale of its method; whole unless that has fractions."""

    score: float


@dataclass(frozen=True, slots=True)
class Items:
    """Which items of a checklist one response meets.

    Attributes
    ----------
    met : tuple of bool or None
        One entry an item; None where the judge gave no verdict.
    """

    met: tuple[bool | None, ...]

    def share(self) -> float | None:
        """Return the share of items met; None while any item is without a verdict.

        Examples
        --------
        >>> Items((True, False)).share(), Items((True, None)).share()
        (0.5, None)
        """
        return None if None in self.met else sum(map(bool, self.met)) / len(self.met)


@dataclass(frozen=True, slots=True)
class Questions:
    """A checklist that a model wrote for a prompt: each item can be answered yes or no."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tags:
    """What a model says a prompt asks for; the values offered are those of `judge.labels.files`.

    Attributes
    ----------
    criteria : tuple of str
        Those of a hard prompt that it meets.
    """

    category: str
    language: str
    intent: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to a prompt, which is a verdict on nothing."""

    text: str


Reading = Preference | Rating | Items | Questions | Tags | Answer


def noted(reading: Reading | FailureClass) -> dict[str, Any]:
    """Return a reading, or why there is none, as plain values for the journal.

    Examples
    --------
    >>> noted(Preference(1.0)), noted(FailureClass.UNPARSED)
    ({'first': 1.0}, {'failure': 'unparsed'})
    """
    if isinstance(reading, FailureClass):
        return {"failure": reading.value}
    if isinstance(reading, Answer):  # its text stands in the reply
        return {"length": len(reading.text)}
    values = ((name, getattr(reading, name)) for name in reading.__slots__)
    return {name: [*one] if isinstance(one, tuple) else one for name, one in values}


def pooled(readings: list[Reading]) -> Reading:
    """Combine the readings of several samples of one question into one.

    Preferences are averaged: the share of samples in which the first was preferred.

    Raises
    ------
    DataError
        If there are none, or several which are no preferences.
    """
    if len(readings) == 1:
        return readings[0]
    shares = [reading.first for reading in readings if isinstance(reading, Preference)]
    if not shares or len(shares) < len(readings):
        raise DataError(f"Only preferences can be averaged, not {readings[:2]}.")
    return Preference(sum(shares) / len(shares))


# Grammars


SIDES = {"A": Preference(1.0), "B": Preference(0.0), "C": Preference(0.5)}
"""Preference by plain verdict; C is a tie."""

_LEVELS = [*map(Preference, (1.0, 0.75, 0.5, 0.25, 0.0))]
ARROWS = dict(zip(("A>>B", "A>B", "A=B", "B>A", "B>>A"), _LEVELS, strict=True))
"""Preference by five-level verdict in brackets."""
NOT_PLAYED = "not played"
"""In place of such a verdict, where one order was not asked: no verdict is missing."""

PLUSES = dict(zip(("A++", "A+", "A=B", "B+", "B++"), _LEVELS, strict=True))
"""Preference by five-level choice in JSON."""

_GRAMMAR_NUMBER = re.compile(
    r"([0-9]{1,3})(\.[0-9]{1,6})?(?: ?(?:/|(?:out )?of) ?([0-9]{1,3})(?:\.[0]{1,6})?)?"
)
_BULLET = re.compile(r"^ *[-*] +(\S[^\n]*\?) *$", re.MULTILINE)
_GRAMMAR_AROUND = " \t\r\n.\"'`*[]()"


def label_probability(
    tokens: Sequence[TokenLogprob], labels: tuple[str, str] = ("m", "M")
) -> float | None:
    """Return the probability of the first label against the second, at the first token.

    ``P = e^lp_1 / (e^lp_1 + e^lp_2)``, a label that is not among the alternatives having
    probability 0. A label with white space around it is the same label, and its mass is added.

    Returns
    -------
    float or None
        None if neither label is among the alternatives: the judge did not answer the question.

    References
    ----------
    .. [1] Y. Dubois et al., "Length-Controlled AlpacaEval", 2024, and the parser of weighted
       annotators in its code. There white space makes another token, which is dropped.

    Examples
    --------
    >>> top = {"m": math.log(0.6), "M": math.log(0.2), "x": math.log(0.1)}
    >>> round(label_probability([TokenLogprob("m", math.log(0.6), top)]), 12)
    0.75
    >>> label_probability([TokenLogprob("x", -0.1, {"y": -2.0})]) is None
    True
    """
    if not tokens:
        return None
    seen = {tokens[0].token: tokens[0].logprob} | dict(tokens[0].top)
    first, second = (_mass(seen, label) for label in labels)
    peak = max(first, second)
    if not math.isfinite(peak):
        return None
    first, second = math.exp(first - peak), math.exp(second - peak)
    return first / (first + second)


def lone_label(text: str, labels: tuple[str, str] = ("m", "M")) -> Preference | None:
    """Return the preference if the text is one of the labels and nothing else.

    Quotation marks, brackets and a full stop around it are no more than dress.

    Examples
    --------
    >>> lone_label('"M".'), lone_label("I prefer m") is None
    (Preference(first=0.0), True)
    """
    offered = {labels[0]: Preference(1.0), labels[1]: Preference(0.0)}
    return offered.get(text.strip(_GRAMMAR_AROUND))


def bracketed(text: str, offered: Mapping[str, Preference]) -> Preference | None:
    r"""Return the preference of the last verdict such as ``[[A]]`` or ``[[A>>B]]``.

    Upper and lower case are one, and so is every dress (`sides`): spaces, emphasis,
    full-width forms, escapes, and a word that names the verdict or the response. Brackets around
    anything without the shape of a verdict, such as a footnote's number, are noise. Single
    brackets count where there are no double ones, and where there is no doubt of them.

    Examples
    --------
    >>> bracketed("At first [[B]], but on reflection [[A]] (see [[1]]).", SIDES)
    Preference(first=1.0)
    >>> bracketed("[[A]]? No: [[D]].", SIDES) is None
    True
    >>> bracketed("Verdict: **\\[\\[Assistant B\\]\\]**", SIDES)
    Preference(first=0.0)
    """
    verdicts = sides(text)
    verdict = verdicts[-1] if verdicts else _lone_side(text)
    return None if verdict is None else offered.get(verdict.upper())


def keyed(text: str, key: str, offered: Mapping[str, Preference]) -> Preference | None:
    """Return the preference of the last ``"key": "verdict"`` of JSON, wherever it stands.

    The object around it may be fenced, preceded by prose or broken. A quoted key inside another
    string is escaped there, and does not match.

    Examples
    --------
    >>> keyed('Here: {"reason": "...", "choice": "A+"}', "choice", PLUSES)
    Preference(first=0.75)
    >>> keyed('{"choice": "A+++"}', "choice", PLUSES) is None
    True
    """
    verdicts = re.findall(rf'"{re.escape(key)}" *: *"([^"\n]*)"', text)
    return offered.get(plain(verdicts[-1])) if verdicts else None


def keyed_mark(
    text: str, key: str, low: int, high: int, *, fractions: bool = False
) -> float | None:
    """Return the last mark of JSON, as in ``"score": 7``, ``"score": "7"`` or ``"7/10"``.

    A mark off the scale or of another one, a word, and a fraction unless there are
    ``fractions``, were not offered; ``7.0`` is a whole mark.

    Examples
    --------
    >>> keyed_mark('{"strengths": "...", "score": "8"}', "score", 1, 10)
    8
    >>> keyed_mark('{"score": 11}', "score", 1, 10) is None
    True
    >>> keyed_mark('{"score": "7/10"}', "score", 1, 10)
    7
    """
    values = re.findall(rf'"{re.escape(key)}" *: *(?:"([^"\n]*)|([^"\s,}}\]]*))', text)
    return _mark("".join(values[-1]), low, high, fractions=fractions) if values else None


def bracketed_mark(text: str, low: int, high: int, *, fractions: bool = False) -> float | None:
    """Return the last mark in double brackets, as in ``[[7]]`` or ``[[Rating: 7/10]]``.

    Of marks and of dress as `keyed_mark` and `bracketed`.

    Examples
    --------
    >>> bracketed_mark("Not [[5]] but [[7]], all told [[ok]].", 1, 10)
    7
    >>> bracketed_mark("[[7]], or rather [[7.5]]", 1, 10) is None
    True
    >>> bracketed_mark("[[7.5]]", 1, 10, fractions=True)
    7.5
    """
    bracketed_marks = marks(text)
    mark = bracketed_marks[-1] if bracketed_marks else _lone_mark(text)
    return None if mark is None else _mark(mark, low, high, fractions=fractions)


def answers(text: str, n_items: int) -> tuple[bool | None, ...]:
    r"""Return yes or no by item, from ``3: [[yes]]``; the last verdict on an item counts.

    Items are numbered from 1. None where there is no verdict, or one that was not offered.

    Examples
    --------
    >>> answers("1: [[yes]]\n2: [[no]]\n2: [[maybe]]\n4: [[yes]]", 3)
    (True, None, None)
    """
    given = _ITEM.finditer(regular(text))
    verdicts = {int(one[1]): plain(one[2]).lower() for one in given}
    return tuple(
        {"yes": True, "no": False}.get(verdicts.get(i, "")) for i in range(1, n_items + 1)
    )


def questions(text: str, low: int, high: int) -> tuple[str, ...] | None:
    r"""Return the bullets that end in a question mark, if there are as many as were asked for.

    Examples
    --------
    >>> questions("Here:\n- Is it short?\n- Is it kind?\nGood luck", 2, 5)
    ('Is it short?', 'Is it kind?')
    >>> questions("- Is it short?", 2, 5) is None
    True
    """
    bullets = tuple(dict.fromkeys(_BULLET.findall(text)))
    return bullets if low <= len(bullets) <= high else None


def _mass(seen: Mapping[str, float], label: str) -> float:
    """Log of the probability of all spellings of a label; minus infinity if there is none."""
    spelt = [value for token, value in seen.items() if token.strip() == label]
    peak = max(spelt, default=-math.inf)
    if not math.isfinite(peak):
        return -math.inf
    return peak + math.log(sum(math.exp(value - peak) for value in spelt))


def _mark(text: str, low: int, high: int, *, fractions: bool) -> float | None:
    """Read a number in ASCII digits within bounds, alone or out of the highest mark."""
    match = _GRAMMAR_NUMBER.fullmatch(plain(text))
    if match is None or match[3] not in (None, str(high)):
        return None
    mark: float = float(match[1] + match[2]) if float(match[2] or 0) else int(match[1])
    return mark if low <= mark <= high and (fractions or mark == int(mark)) else None
