r"""Verdicts in brackets, in whatever dress models put them: where they are, and what they say.

The grammars of `judge.grammar` read by this module, and `judge.protocol.neutralised` takes the
shape from what others wrote by it: one definition, so that neither knows a form that the other
does not.
"""

import re
from collections.abc import Iterator, Sequence

_FORMS: dict[int, str] = {
    **{0xFF01 + place: chr(0x21 + place) for place in range(94)},  # full-width forms of ASCII
    **{0x3010: "[", 0x3011: "]"},
    **dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F, 0x3000), " "),
}
"""Each to one character: places in the text stay what they are."""

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


def items(text: str) -> Iterator[tuple[int, str]]:
    """Give the verdicts on numbered items, as in ``3: [[yes]]``, in order."""
    matches = _ITEM.finditer(regular(text))
    return ((int(match[1]), plain(match[2])) for match in matches)


def lone_side(text: str) -> str | None:
    r"""Return the verdict in single brackets that a text ends on, if there is no doubt of it.

    It is alone on its line, or only named there as in ``Verdict: [A]``; none in single brackets
    comes after it, and none that is another is alone on its line.

    Examples
    --------
    >>> lone_side("Assistant [B] is wrong.\nVerdict: [A]"), lone_side("I prefer [A] to [B]")
    ('A', None)
    """
    text = regular(text)
    matches = [*_LETTER.finditer(text)]
    return _settled(matches, [match for match in matches if _is_alone(text, match)])


def lone_mark(text: str) -> str | None:
    r"""Return the mark in single brackets that a text ends on, as `lone_side`.

    It is named, or all that the text says: a number in brackets may be a footnote's.

    Examples
    --------
    >>> lone_mark("As [1] says.\nRating: [7]"), lone_mark("It is as in\n[7]")
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
