r"""A text that is still being written, block by block: each is rendered as in the whole text.

A block is final once the next one has begun, or, if it is a fence, a heading, a rule or a formula,
once its last line is complete. What follows is the tail, which readers see as plain text. The
tail is parsed again only after a line that could begin a block, so that long paragraphs, lists
and code cost little; an open list is rendered anew each time it has grown by a half.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from judge.render.markdown import Environment, new_parser, render
from judge.render.maths import LONGEST_FORMULA
from rating.tables.escaping import LINES, visible

LIST_GROWTH = 1.5
"""How much longer an open list is, in characters, when it is rendered anew."""

TRIAL_GROWTH = 1.1
"""How much longer the tail is when it is parsed again after it held nothing final."""

_LISTS = {"bullet_list_open", "ordered_list_open"}
_COMPLETE = {"heading_open", "hr", "maths"}
_CONTINUED_BY = {
    "bullet_list_open": re.compile(r" {0,3}[-*+][ \t]| +\S"),
    "ordered_list_open": re.compile(r" {0,3}\d{1,9}[.)][ \t]| +\S"),
    "blockquote_open": re.compile(r" {0,3}>"),
    "table_open": re.compile(r".*\|"),
}
"""Lines that go on with an open block: nothing is lost by not looking for its end there."""

_BEGINS = re.compile(
    r" {0,3}(?:#{1,6}(?:[ \t]|$)|`{3}|~{3}|>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)|\$\$|\\\["
    r"|(?:[-_*][ \t]*){3,}$|=+[ \t]*$|[|:-][|: \t-]*$)"
)
"""Lines that may begin a block with no blank line before them, or turn one into another."""

_UNDECIDED = re.compile(r"\s*(?:$|[#`~>\-*+_=|\d$\\\[:])")
"""Beginnings of a line that do not tell yet what it begins."""

_OPEN_MATHS = re.compile(r"^[ \t>]*(?:\$\$|\\\[)", re.MULTILINE)
_CLOSED_MATHS = re.compile(r"\$\$|\\\]")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A rendered block.

    Attributes
    ----------
    index : int
        Its place among the blocks of the text; it replaces the one that stood there.
    html : str
    """

    index: int
    html: str


class Stream:
    r"""Renders a text as it comes.

    Examples
    --------
    >>> stream = Stream()
    >>> stream.feed("# Cats\nThey ")
    [Block(index=0, html='<h3 dir="auto" class="level-1">Cats</h3>\n')]
    >>> stream.tail
    'They '
    >>> stream.close()
    [Block(index=1, html='<p dir="auto">They</p>\n')]
    """

    def __init__(self) -> None:
        self._tail = ""
        """What follows the final blocks."""
        self._examined = 0
        """Up to where complete lines of the tail were looked at."""
        self._shown = 0
        """Up to where the tail is rendered: the lines of an open list may be."""
        self._carriage_return = ""
        self._after_blank = True
        self._line_begun = False
        """Whether the line that is being written was looked at."""
        self._due = False
        self._tried = 0
        """How long the tail was when it was parsed last."""
        self._open: Token | None = None
        """What the tail begins with, as of the last parse."""
        self._environment: Environment = {}
        self._sources: list[str] = []
        self._blocks: list[str] = []

    @property
    def tail(self) -> str:
        """What is not rendered yet."""
        return self._tail[self._shown :]

    def feed(self, more: str) -> list[Block]:
        """Take the next characters, and give the blocks that are new or have changed."""
        more = self._carriage_return + visible(more, LINES)
        self._carriage_return = "\r" if more.endswith("\r") else ""
        self._tail += more.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")
        self._examine()
        changed: list[Block] = []
        if self._due and len(self._tail) >= TRIAL_GROWTH * self._tried:
            changed = self._take_final()
        return changed + self._grow_list()

    def close(self) -> list[Block]:
        """Render what is left: the text ends here."""
        self._tail += self._carriage_return.replace("\r", "\n")
        self._carriage_return = ""
        return self._take(_top_level(self._tail, self._environment), len(self._tail))

    def _examine(self) -> None:
        """Look at the new lines for one that may begin a block."""
        *lines, last = self._tail[self._examined :].split("\n")
        for line in lines:
            self._due |= self._may_begin_a_block(line)
            self._after_blank = not line.strip()
            self._examined += len(line) + 1
            self._line_begun = False
        if not self._line_begun and not _UNDECIDED.match(last):
            self._line_begun = True
            self._due |= self._may_begin_a_block(last)

    def _may_begin_a_block(self, line: str) -> bool:
        if not line.strip():
            return False
        if self._open is not None:
            if self._open.type == "fence":
                return _closes(line, self._open)
            continued = _CONTINUED_BY.get(self._open.type)
            if continued is not None and continued.match(line):
                return False
        return self._after_blank or bool(_BEGINS.match(line))

    def _take_final(self) -> list[Block]:
        """Parse the tail, and render the blocks of it that can no longer change."""
        text = self._tail if self._line_begun else self._tail[: self._examined]
        if _is_held(text):
            return []
        self._due, self._tried = False, len(self._tail)
        tokens = _top_level(text, self._environment)
        if not tokens:
            return []
        lines = _LINE.findall(text)
        last = tokens[-1]
        if _is_complete(last, lines):
            self._open = None
            return self._take(tokens, _offset(lines, _lines(last)[1]))
        self._open = last
        return self._take(tokens[:-1], _offset(lines, _lines(last)[0]))

    def _take(self, tokens: Sequence[Token], end: int) -> list[Block]:
        """Render the tail up to an offset, a block a token."""
        if end == 0:
            return []
        text, self._tail = self._tail[:end], self._tail[end:]
        self._examined, self._shown, self._tried = max(0, self._examined - end), 0, 0
        lines = _LINE.findall(text)
        starts = [_offset(lines, _lines(token)[0]) for token in tokens[1:]]
        defined = len(self._environment.get("references", ()))
        first = len(self._blocks)
        for start, stop in pairwise([0, *starts, end]):
            self._sources.append(text[start:stop])
            self._blocks.append(render(text[start:stop], self._environment))
        changed = list(range(first, len(self._blocks)))
        if len(self._environment.get("references", ())) > defined:
            changed = [*self._linked_anew(), *changed]
        return [Block(index, self._blocks[index]) for index in changed]

    def _linked_anew(self) -> Iterator[int]:
        """Render the blocks anew that a definition which came later may have changed."""
        for index, source in enumerate(self._sources):
            if (
                "[" in source
                and (html := render(source, self._environment)) != self._blocks[index]
            ):
                self._blocks[index] = html
                yield index

    def _grow_list(self) -> list[Block]:
        """Render the complete lines of an open list, if it has grown enough."""
        if self._open is None or self._open.type not in _LISTS:
            return []
        if self._examined <= LIST_GROWTH * self._shown:
            return []
        self._shown = self._examined
        html = render(self._tail[: self._shown], _copy(self._environment))
        return [Block(len(self._blocks), html)]


def _top_level(text: str, environment: Environment) -> list[Token]:
    """Parse a text into its blocks, without what is in them."""
    tokens = _structure().parse(text, _copy(environment))
    return [token for token in tokens if token.level == 0 and token.nesting >= 0]


@cache
def _structure() -> MarkdownIt:
    parser = new_parser()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _copy(environment: Environment) -> Environment:
    return {"references": dict(environment.get("references", ()))}


def _lines(token: Token) -> list[int]:
    """Give the first line of a block, and the one after its last."""
    if token.map is None:
        raise ValueError(f"a block without lines: {token.type}")
    return token.map


def _offset(lines: Sequence[str], line: int) -> int:
    return sum(map(len, lines[:line]))


def _is_complete(token: Token, lines: Sequence[str]) -> bool:
    """Tell whether nothing that follows can change a block."""
    start, end = _lines(token)
    if end > len(lines) or not lines[end - 1].endswith("\n"):
        return False
    if token.type == "fence":
        return end - start > 1 and _closes(lines[end - 1].rstrip("\n"), token)
    return token.type in _COMPLETE


def _closes(line: str, fence: Token) -> bool:
    mark = re.escape(fence.markup[0])
    return re.fullmatch(rf" {{0,3}}{mark}{{{len(fence.markup)},}}[ \t]*", line) is not None


def _is_held(text: str) -> bool:
    """Tell whether a formula is open that would take all that follows into itself."""
    *_, paragraph = _BLANK_LINE.split(text)
    last_line = paragraph.rfind("\n") + 1
    opening = _OPEN_MATHS.search(paragraph)
    while opening:
        closing = _CLOSED_MATHS.search(paragraph, opening.end())
        if closing is None:
            return last_line - opening.end() < LONGEST_FORMULA
        opening = _OPEN_MATHS.search(paragraph, closing.end())
    return False
