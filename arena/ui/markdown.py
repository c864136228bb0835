"""A model's text made fit for the page: it is hostile until it has been through here.

The page renders Markdown in the browser. Whatever there could fetch, cover the page or
show half-written marks is taken out here, on the server, and never inside code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

DISPLAY_MATHS = ("\ue000", "\ue001")
INLINE_MATHS = ("\ue002", "\ue003")
"""Marks between which the page sets maths: private characters, so that ``$$`` or ``\\(`` in
code never opens a formula. Models cannot write them: `tame` strips them first."""

MATHS_MARKS = {
    "$$": ("$$", DISPLAY_MATHS),
    "\\[": ("\\]", DISPLAY_MATHS),
    "\\(": ("\\)", INLINE_MATHS),
}
WORD_JOINER = "\u2060"
"""Invisible; between ``<`` and a name it leaves no tag, in any place of any text."""

LONGEST_FORMULA = 4000
LONGEST_HELD_CODE = 160
LONGEST_HELD_MATHS = 1500

_PRIVATE = re.compile("[\ue000-\ue003\x00]")
_FORMULA_OR_LINE_END = re.compile("\ue000[^\ue001]*\ue001|\ue002[^\ue003]*\ue003|\n")
_LINE_START = r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_OPENER = re.compile(
    rf"{_LINE_START}(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^`\n]*)(?P<rest>\n|\Z)"
    r"|(?P<ticks>`+)|(?P<maths>\$\$|\\\[|\\\()|\\.",
    re.MULTILINE,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_TAG = re.compile(r"<(?!https?://[^\s<>]*>)")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s[^()]*)?\)")
_FENCE_END_BEGUN = re.compile(r"\n[ \t>]*(?:`+|~+)\Z")
_RAW_TAILS = (
    re.compile(r"^[ \t>]*(?:[-*+_=#>|:`~]+|\d{1,4}[.)]?)[ \t]*\Z", re.MULTILINE),
    re.compile(r"(?<![*\w])\*{1,3}(?=[^\s*])[^*\n]{0,160}\*{0,2}\Z"),
    re.compile(r"!?\[[^\[\]\n]{0,200}(?:\]|\]\([^()\n]{0,300})?\Z"),
    re.compile(r"[\\$!*]\Z"),
)
"""Ends of a text that the next few characters turn into something else."""

_TABLE_HEAD = re.compile(r"^[ \t]*\|[^\n]*(?:\n[ \t|:-]*)?\Z", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|[ \t|:-]*-[ \t|:-]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of Markdown; ``maths`` comes with its private marks."""

    kind: Literal["prose", "code", "maths"]
    text: str


def tame(text: str, *, live: bool = False) -> str:
    r"""Turn an answer into Markdown that can neither fetch nor cover anything.

    Outside code, raw HTML shows as the characters it is made of, and an image as the words
    that describe it. Between ``$$``, ``\[ \]`` and ``\( \)`` stands maths; a single dollar
    is a price.

    Parameters
    ----------
    live : bool
        The text is still being written: hold back an end that would show as raw marks (a
        formula, a code span or emphasis not yet closed, a table's head before its rule).

    Examples
    --------
    >>> tame("![a cat](http://far.example/cat.png) costs $5")
    '(image not shown: a cat) costs $5'
    >>> tame("Take `heapq.nl", live=True)
    'Take '
    """
    pieces = list(_pieces(_PRIVATE.sub("", text), live=live))
    if live and pieces and pieces[-1].kind == "prose":
        pieces[-1] = Piece("prose", _settled(pieces[-1].text))
    return "".join(_tame_prose(p.text) if p.kind == "prose" else p.text for p in pieces)


def escape(text: str) -> str:
    """Make plain text that neither Markdown nor HTML reads: all but letters, digits and spaces.

    Line ends and a first space become references too, so the whole is one paragraph; the
    stylesheet sets it with ``white-space: pre-wrap``.

    Examples
    --------
    >>> escape("2 * <b>")
    '2 &#42; &#60;b&#62;'
    """
    return re.sub(r"[^\w ]|_|^ ", lambda match: f"&#{ord(match[0])};", _PRIVATE.sub("", text))


def quote(tamed: str) -> str:
    r"""Put tamed Markdown in a block quote, which ends whatever the text leaves open.

    A formula keeps its lines: the page takes it out before it reads Markdown.

    Examples
    --------
    >>> quote("```\nnever closed")
    '> ```\n> never closed'
    """
    lines = tamed.replace("\r\n", "\n").replace("\r", "\n")
    return "> " + _FORMULA_OR_LINE_END.sub(lambda m: "\n> " if m[0] == "\n" else m[0], lines)


def _pieces(text: str, *, live: bool) -> Iterator[Piece]:
    """Split into code, maths and prose; with ``live``, leave out an end still open."""
    start = at = 0
    while match := _OPENER.search(text, at):
        piece, end = _special(text, match)
        if piece is None:
            if live and _held(text, match):
                yield Piece("prose", text[start : match.start()])
                return
            at = match.end()
            continue
        yield Piece("prose", text[start : match.start()])
        if live and end == len(text):
            piece = Piece(piece.kind, _FENCE_END_BEGUN.sub("\n", piece.text))
        yield piece
        start = at = end
    yield Piece("prose", text[start:])


def _special(text: str, opener: re.Match[str]) -> tuple[Piece | None, int]:
    """Find the code or maths that an opener starts, and its end; None if it does not close."""
    if opener["fence"]:
        return _fenced(text, opener)
    if opener["ticks"]:
        close = re.compile(f"(?<!`){opener['ticks']}(?!`)")
        closing = close.search(text, opener.end(), _paragraph_end(text, opener.end()))
        return (
            (Piece("code", text[opener.start() : closing.end()]), closing.end())
            if closing
            else (None, 0)
        )
    if opener["maths"]:
        return _maths(text, opener)
    return None, 0


def _fenced(text: str, opener: re.Match[str]) -> tuple[Piece | None, int]:
    """Take a fenced block; one that is never closed is code to the end of the text."""
    if not opener["rest"]:
        return None, 0
    close = re.compile(rf"^[ \t>]*{opener['fence']}[`~]*[ \t]*$", re.MULTILINE)
    closing = close.search(text, opener.end())
    end = closing.end() if closing else len(text)
    block = text[opener.start() : end]
    if opener["info"].strip().lower().startswith("mermaid"):  # would be drawn as a picture
        block = block.replace(opener["info"], "", 1)
    return Piece("code", block), end


def _maths(text: str, opener: re.Match[str]) -> tuple[Piece | None, int]:
    """Take a formula within one paragraph, and put it between its private marks."""
    close, (left, right) = MATHS_MARKS[opener["maths"]]
    stop = min(_paragraph_end(text, opener.end()), opener.end() + LONGEST_FORMULA)
    closing = text.find(close, opener.end(), stop)
    if closing <= opener.end():
        return None, 0
    formula = text[opener.end() : closing]
    return Piece("maths", f"{left}{formula}{right}"), closing + len(close)


def _held(text: str, opener: re.Match[str]) -> bool:
    """Tell whether an opener that did not close may still do so in the text to come."""
    rest = len(text) - opener.start()
    if opener["fence"]:
        return True
    if opener["ticks"] or opener["maths"]:
        longest = LONGEST_HELD_CODE if opener["ticks"] else LONGEST_HELD_MATHS
        return rest <= longest and not _BLANK_LINE.search(text, opener.end())
    return False


def _paragraph_end(text: str, at: int) -> int:
    """Find where the paragraph ends that holds a position."""
    blank = _BLANK_LINE.search(text, at)
    return blank.start() if blank else len(text)


def _settled(prose: str) -> str:
    """Cut prose before an end that would show as raw marks."""
    for tail in _RAW_TAILS:
        if raw := tail.search(prose, max(0, len(prose) - 600)):
            prose = prose[: raw.start()]
    return prose[: _table_head(prose)]


def _table_head(prose: str) -> int:
    """Find where a table's head begins that still waits for its rule; else the length."""
    paragraph = prose.rfind("\n\n") + 1
    head = _TABLE_HEAD.search(prose, paragraph)
    return head.start() if head and not _TABLE_RULE.search(prose, paragraph) else len(prose)


def _tame_prose(prose: str) -> str:
    """Take images and tags out of prose."""
    prose = _IMAGE.sub(_described, prose).replace("![", f"!{WORD_JOINER}[")
    return _TAG.sub(f"<{WORD_JOINER}", prose)


def _described(image: re.Match[str]) -> str:
    """Put words in the place of an image."""
    words = image[1].strip()
    return f"(image not shown: {words})" if words else "(image not shown)"
