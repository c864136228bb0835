"""Personal data in texts by rules of our own: mail, phone numbers, keys, addresses of IP.

Names of people are left as they are: what tells them from other names is a model of a language,
which errs in others, and none is small enough to be brought along.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from typing import NamedTuple

from judge.labels.accuracy import Accuracy, in_words

VERSION = "1"
"""Of these rules; another one finds other pieces."""
KINDS = ("key", "mail", "address", "phone")
"""What is looked for, and in this order: what is one kind is no other."""

_MAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_KEYS = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.{0,10000}?-----END [A-Z ]{0,30}PRIVATE KEY-----",
        re.DOTALL,
    ),
    re.compile(
        r"\b(?:sk-[\w-]{20,200}|gh[pousr]_\w{30,255}|github_pat_\w{30,255}|glpat-[\w-]{20,100}|"
        r"hf_[A-Za-z0-9]{30,100}|xox[abeoprs]-[\w-]{10,200}|(?:AKIA|ASIA)[A-Z0-9]{16}|"
        r"AIza[\w-]{35}|eyJ[\w-]{10,2000}\.eyJ[\w-]{5,4000}\.[\w-]{10,1000})(?![\w-])"
    ),
    re.compile(r"(?i)\bbearer\s{1,3}(?P<it>[\w.~+/=-]{20,500})"),
    re.compile(r"\b[a-z][a-z0-9+]{1,20}://[^\s:/@]{0,100}:(?P<it>[^\s/@]{1,200})@"),
    re.compile(
        r"(?i)(?:api[_-]?key|secret|token|passw(?:or)?d|passwort|kennwort|mot de passe)"
        r"[\"']?\s{0,3}(?:[:=]|is|ist|lautet)\s{0,3}[\"']?(?P<it>[^\s\"']{8,200})"
    ),
)
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\w)|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
    r"(?![\w:]))(?!\.\d)"
)
_BEFORE_VERSION = re.compile(r"(?i)(?:\bv|version|release|section|chapter)\s?$")
_PHONE = re.compile(r"(?<![\w.,+/-])(?:\+|\(?\d)[\d ()/.-]{5,22}\d(?![\w-]|[.,/]\d)")
_INTERNATIONAL = re.compile(r"(?:\+|00)[1-9]")
_NATIONAL = re.compile(r"\(?0[1-9]\d{0,4}\)?[ /-]{1,3}\d|0[1-9]\d{8,10}$")
_AMERICAN = re.compile(r"(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[.-]\d{4}$")
_DATE = re.compile(r"\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\b\d{4}-\d{1,2}-\d{1,2}\b")
_CUE = re.compile(
    r"(?i)\b(?:tel|phone|cell|call|dial|mobile?|handy|telefon|whatsapp)\W*(?:\w+\W+)?$"
)
_CALLED = 24
"""Characters before a number in which a word says that it can be called."""
_DIGITS = range(7, 16)
"""Of a phone number, the longest of ITU-T E.164."""


class Piece(NamedTuple):
    """Where in a text something personal is, and of which kind."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A text without what is personal in it, and how many pieces of each kind there were."""

    text: str
    counts: Mapping[str, int]


def scrub(text: str) -> Scrubbed:
    """Put the kind of each personal piece into its place.

    Examples
    --------
    >>> scrub("Write to ada@example.com or call +49 30 1234567.")
    Scrubbed(text='Write to [mail] or call [phone].', counts={'mail': 1, 'phone': 1})
    """
    pieces = personal(text)
    parts, end = [], 0
    for piece in pieces:
        parts += [text[end : piece.start], f"[{piece.kind}]"]
        end = piece.end
    return Scrubbed("".join([*parts, text[end:]]), dict(Counter(piece.kind for piece in pieces)))


def personal(text: str) -> list[Piece]:
    """Find what is personal in a text, from its beginning to its end; no two pieces overlap."""
    pieces: list[Piece] = []
    taken = bytearray(len(text))
    for kind in KINDS:
        for start, end in _FINDERS[kind](text):
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                pieces.append(Piece(kind, start, end))
    return sorted(pieces, key=lambda piece: piece.start)


Spans = Iterator[tuple[int, int]]


def _keys(text: str) -> Spans:
    for rule in _KEYS:
        for match in rule.finditer(text):
            group = "it" if "it" in rule.groupindex else 0
            if group == 0 or _is_secret(match):
                yield match.span(group)


def _is_secret(match: re.Match[str]) -> bool:
    """Whether a value is one, and no word or piece of code."""
    value = match["it"]
    by_name = "://" not in match[0] and "bearer" not in match[0].lower()
    has_odd = any(not c.isalpha() for c in value.rstrip(".,;:!?)"))
    return not by_name or (has_odd and not re.search(r"[(\[{<]|^\W*$", value))


def _mails(text: str) -> Spans:
    if "@" in text:
        yield from (match.span() for match in _MAIL.finditer(text))


def _addresses(text: str) -> Spans:
    for match in _ADDRESS.finditer(text):
        if _is_of_somebody(match[0]) and not _BEFORE_VERSION.search(_before(text, match)):
            yield match.span()


def _is_of_somebody(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _phones(text: str) -> Spans:
    for match in _PHONE.finditer(text):
        digits = sum(c.isdigit() for c in match[0])
        if digits in _DIGITS and not _DATE.search(match[0]) and _can_be_called(text, match):
            yield match.span()


def _can_be_called(text: str, match: re.Match[str]) -> bool:
    forms = (_INTERNATIONAL, _NATIONAL, _AMERICAN)
    return any(form.match(match[0]) for form in forms) or bool(_CUE.search(_before(text, match)))


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _CALLED) : match.start()]


_FINDERS: Mapping[str, Callable[[str], Spans]] = {
    "key": _keys,
    "mail": _mails,
    "address": _addresses,
    "phone": _phones,
}

_MARKED = re.compile(r"\{\{(\w+)\|(.*?)\}\}", re.DOTALL)


def examples() -> list[tuple[str, list[Piece]]]:
    """Give the written examples, with the pieces that a person marked in them."""
    lines = (files("judge.labels") / "personal.tsv").read_text("utf-8").splitlines()[1:]
    return [_unmarked(line.replace("\\n", "\n")) for line in lines]


def _unmarked(line: str) -> tuple[str, list[Piece]]:
    text, pieces, end = "", [], 0
    for match in _MARKED.finditer(line):
        text += line[end : match.start()]
        pieces.append(Piece(match[1], len(text), len(text) + len(match[2])))
        text, end = text + match[2], match.end()
    return text + line[end:], pieces


@cache
def accuracies() -> Mapping[str, Accuracy]:
    """Hold the rules against the examples, by kind: a piece is right if both its ends are.

    Examples without a piece of a kind, marked or found, are the true negatives.
    """
    counts = {kind: Counter[str]() for kind in KINDS}
    for text, marked in examples():
        by_rule = personal(text)
        for kind in KINDS:
            a, b = ({piece for piece in some if piece.kind == kind} for some in (marked, by_rule))
            counts[kind].update(
                tp=len(a & b), fp=len(b - a), fn=len(a - b), tn=int(not a and not b)
            )
    return {kind: Accuracy(kind, n["tp"], n["fp"], n["fn"], n["tn"]) for kind, n in counts.items()}


def table() -> list[tuple[str, ...]]:
    """Lay out every kind: pieces in the examples, precision and recall with Wilson's intervals."""
    return [
        (
            kind,
            str(one.true_positives + one.false_negatives),
            in_words(one.precision),
            in_words(one.recall),
        )
        for kind, one in accuracies().items()
    ]
