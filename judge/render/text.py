"""Untrusted text of models as safe HTML: Markdown, code, tables and formulas.

`render` takes a whole text, `Stream` one that is still being written, and `mathml` sets a formula.
The text may be hostile. Control characters and those that change the writing direction show as
U+FFFD, raw HTML as the characters it is made of, an image as the words that describe it, a formula
as MathML; nothing in it runs or is fetched, and what `markdown_it` writes goes through `nh3` once
more.

``python -m judge.render.text`` writes a font for formulas, without which browsers draw no roots,
to standard output (`maths_font`).
"""

import re
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from importlib.metadata import files
from io import BytesIO
from itertools import islice, pairwise, zip_longest
from typing import Any
from unicodedata import bidirectional
from xml.etree.ElementTree import Element, tostring

import nh3
from latex2mathml.commands import FUNCTIONS
from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name

from rating.tables.files import LINES, visible

# Formulas


LONGEST_FORMULA = 4000
DEEPEST_FORMULA = 30
LONGEST_SPACE_EM = 10

_TAGS = (
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none"
)
TAGS = frozenset(_TAGS.split())
_ATTRIBUTES = (
    "accent accentunder columnalign columnlines columnspacing depth display displaystyle "
    "fence form height largeop linethickness linebreak lspace mathvariant maxsize minsize "
    "movablelimits notation rowspacing rspace scriptlevel separator stretchy symmetric width"
)
ATTRIBUTES = frozenset(_ATTRIBUTES.split())

_LENGTHS = frozenset({"width", "height", "depth", "lspace", "rspace", "maxsize", "minsize"})
_LENGTH = re.compile(r"(-?(?:\d+(?:\.\d+)?|\.\d+))(em|ex|mu|pt|px|%)?")
_UNITS_PER_EM = {"em": 1, "ex": 2, "mu": 18, "pt": 10, "px": 16, "%": 100, None: 1}
_ENVIRONMENT = re.compile(
    r"\\(?P<edge>begin|end)\s*\{(?P<name>align|aligned|alignat|alignedat|flalign|eqnarray|split"
    r"|equation|gather|gathered|multline)\*?\}(?P<columns>\{\d+\})?"
)
_ALIGNED = {"align", "aligned", "alignat", "alignedat", "flalign", "eqnarray", "split"}
_UNSHOWN = re.compile(r"\\(?:label\{[^{}]*\}|nonumber\b|notag\b)")
_FUNCTION_NAMES = frozenset(name.removeprefix("\\") for name in FUNCTIONS)
_UNDER = {"lim", "liminf", "limsup", "max", "min", "sup", "inf", "argmax", "argmin"}
"""Functions whose subscript stands below them in a formula of its own."""
_ROWS = frozenset({"math", "mrow", "mstyle", "mtd", "mphantom", "msqrt"})
_SCRIPTS = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})


class _UntrustedFormulaError(ValueError):
    """MathML with names that are not known here, or that shows TeX which was not understood."""


def mathml(tex: str, *, display: bool) -> str | None:
    r"""Set a formula, or give None where it is empty, too large, or not understood whole.

    Parameters
    ----------
    tex : str
        Without its dollars or brackets.
    display : bool
        A formula of its own rather than one within a line.

    Examples
    --------
    >>> mathml("x^2", display=False)
    '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    >>> mathml(r"\unknown{x}", display=False)
    """
    if not tex.strip() or len(tex) > LONGEST_FORMULA or _depth(tex) > DEEPEST_FORMULA:
        return None
    shown_as = "block" if display else "inline"
    try:
        element = convert_to_element(_with_known_environments(tex), xmlns="", display=shown_as)
    except Exception:  # noqa: BLE001 - hostile TeX makes the library raise nearly anything
        return None
    try:
        safe = _copied(element)
    except _UntrustedFormulaError:
        return None
    safe.attrib = {"display": shown_as}
    if not "".join(safe.itertext()).strip():
        return None
    return tostring(safe, encoding="unicode", short_empty_elements=False)


def _depth(tex: str) -> int:
    """Count how many groups lie in each other at most."""
    depth = deepest = 0
    for mark in re.findall(r"\\.|[{}]|\\(?:begin|end|left|right)\b", tex):
        depth += (mark == "{") - (mark == "}")
        deepest = max(deepest, depth)
    return deepest


def _with_known_environments(tex: str) -> str:
    """Write the environments of amsmath with the ones that latex2mathml sets."""

    def known(match: re.Match[str]) -> str:
        return f"\\{match['edge']}{{{'align*' if match['name'] in _ALIGNED else 'matrix'}}}"

    return _ENVIRONMENT.sub(known, _UNSHOWN.sub("", tex))


def _copied(element: Element) -> Element:
    """Copy an element with what is known of it; `_UntrustedFormulaError` if that is not all."""
    if element.tag not in TAGS:
        raise _UntrustedFormulaError(element.tag)
    copy = Element(element.tag, {k: v for k, v in element.attrib.items() if _is_safe(k, v)})
    copy.text = unescape(element.text or "")
    if "\\" in copy.text or (copy.text == "&" and element.tag == "mi"):
        raise _UntrustedFormulaError(copy.text)
    children = [_copied(child) for child in element]
    if element.tag == "msub" and children[0].text in _UNDER:
        copy.tag = "munder"
        children[0].set("movablelimits", "true")
    copy.extend(list(_spaced(children)) if element.tag in _ROWS else children)
    return copy


def _is_safe(name: str, value: str) -> bool:
    """Tell whether an attribute may stay; `_UntrustedFormulaError` for a space out of bounds."""
    if name not in _LENGTHS:
        return name in ATTRIBUTES
    length = _LENGTH.fullmatch(value.strip().removeprefix("+"))
    if length is None:
        return False
    if abs(float(length[1])) / _UNITS_PER_EM[length[2]] > LONGEST_SPACE_EM:
        raise _UntrustedFormulaError(value)
    return True


def _spaced(children: Sequence[Element]) -> Iterator[Element]:
    """Put a thin space between a function's name and its argument, as TeX does."""
    for child, following in zip_longest(children, children[1:]):
        yield child
        if following is None or {child.tag, following.tag} & {"mo", "mspace"}:
            continue
        if _is_function(child) or _is_function(following):
            yield Element("mspace", {"width": "0.167em"})


def _is_function(element: Element) -> bool:
    if element.tag in _SCRIPTS:
        return _is_function(element[0])
    return element.tag in {"mi", "mo"} and element.text in _FUNCTION_NAMES


# Whole texts


Environment = MutableMapping[str, Any]
"""What the blocks of one text share: the links it defines."""

LONGEST_HIGHLIGHTED = 20_000
"""Characters of code beyond which it is shown in one colour."""

_LANGUAGES = (
    "bash c c++ console cpp cs csharp css diff docker dockerfile go haskell html http ini "
    "java javascript js json julia jsx kotlin latex lua make makefile matlab nginx "
    "objective-c perl php powershell py pycon python python3 r rb ruby rust scala sh shell "
    "sql swift tex toml ts tsx typescript xml yaml yml zsh"
)
LANGUAGES = frozenset(_LANGUAGES.split())
"""What is coloured: every lexer has regular expressions of its own, and the text is hostile."""

_TEXT_BLOCKS = ["p", "h3", "ul", "ol", "li", "blockquote", "table", "th", "td"]
_LEAVES = ("paragraph_open", "heading_open", "th_open", "td_open")
_CONTAINERS = ("bullet_list_open", "ordered_list_open", "blockquote_open", "table_open")
_ALLOWED_ATTRIBUTES = {
    **{tag: set(ATTRIBUTES) for tag in TAGS},
    **{tag: {"dir", "class", "start"} for tag in _TEXT_BLOCKS},
    "a": {"href", "title"},
    "div": {"class", "tabindex"},
    "pre": {"class", "dir", "tabindex"},
    "code": {"class"},
    "span": {"class"},
    "input": {"type", "disabled", "checked", "aria-label"},
}
_ALLOWED_TAGS = {
    *_ALLOWED_ATTRIBUTES,
    "br", "em", "figcaption", "figure", "hr", "s", "strong", "table", "tbody", "thead", "tr",
}  # fmt: skip
_CLEANER = nh3.Cleaner(
    tags=_ALLOWED_TAGS,
    attributes=_ALLOWED_ATTRIBUTES,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)
_DIRECTIONS = {"L": "ltr", "R": "rtl", "AL": "rtl"}
_MARKDOWN_ALIGNED = re.compile(r"text-align:(\w+)")
_FORMATTER = HtmlFormatter(nowrap=True)
_LINK = re.compile(r"(?:https?:|mailto:)", re.IGNORECASE)
_UNESCAPED_DOLLAR = re.compile(r"(?<!\\)\$")
_CLOSING = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}


def render(text: str, environment: Environment | None = None, *, breaks: bool = True) -> str:
    r"""Write a text as HTML.

    Parameters
    ----------
    text : str
        Markdown: CommonMark with tables, task lists and strikethrough; formulas between ``$``,
        ``$$``, ``\( \)`` and ``\[ \]``.
    environment : mapping
        Links that other blocks of the same text define; those defined here are added.
    breaks : bool
        Whether a line break in a paragraph is one, as in what models write, or a space.

    Examples
    --------
    >>> render("![a cat](http://far.example/cat.png) costs $5")
    '<p dir="auto">(image not shown: a cat) costs $5</p>\n'
    """
    html = _parser(breaks).render(visible(text, LINES), {} if environment is None else environment)
    return _CLEANER.clean(html)


def _new_parser() -> MarkdownIt:
    """Make a parser of the Markdown that is shown."""
    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign]
    parser.block.ruler.before(
        "fence", "maths", _maths_block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    # The parser drops what is at level 20, and all that follows a list there; a list takes two.
    rules = parser.block.ruler
    rules.before("blockquote", "deep", lambda s, *at: s.level >= 18 and paragraph(s, *at))
    parser.inline.ruler.before("escape", "maths", _maths_inline)
    return parser


@cache
def _parser(breaks: bool) -> MarkdownIt:
    parser = _new_parser()
    parser.options["breaks"] = breaks
    for opening in _LEAVES + _CONTAINERS:
        parser.add_render_rule(opening, _opened)
    parser.add_render_rule("heading_close", lambda *_: "</h3>\n")
    parser.add_render_rule("list_item_open", _list_item)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    parser.add_render_rule("image", _described)
    parser.add_render_rule("maths", _formula)
    return parser


def _opened(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Environment
) -> str:
    """Open a block whose text decides which way it runs; a heading stays below the page's own."""
    token = tokens[at]
    token.attrSet("dir", "auto" if token.type in _LEAVES else _direction(tokens, at))
    if token.type == "heading_open":
        token.attrSet("class", f"level-{token.tag[1:]}")
        token.tag = "h3"
    if aligned := _MARKDOWN_ALIGNED.search(str(token.attrGet("style") or "")):
        token.attrSet("class", aligned[1])
    opened = self.renderToken(tokens, at, options, env)
    return f'<div class="wide" tabindex="0">{opened}' if token.tag == "table" else opened


def _direction(tokens: Sequence[Token], at: int) -> str:
    """Find which way a block with other blocks in it runs: that of its first letter."""
    for token in islice(tokens, at + 1, None):
        if token.level == tokens[at].level:
            break
        for character in token.content if token.type == "inline" else "":
            if (direction := bidirectional(character)) in _DIRECTIONS:
                return _DIRECTIONS[direction]
    return "ltr"


def _list_item(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Environment
) -> str:
    """Open an item; that of a task list has a box, named by the item's first words."""
    opened = self.renderToken(tokens, at, options, env)
    if "checked" not in tokens[at].meta:
        return opened
    content = (token.content for token in islice(tokens, at, None) if token.type == "inline")
    label = escape(next(content, "").partition("\n")[0][:80]) or "task"
    checked = ' checked=""' if tokens[at].meta["checked"] else ""
    return f'{opened}<input type="checkbox" disabled=""{checked} aria-label="{label}"> '


def _code(_self: RendererHTML, tokens: Sequence[Token], at: int, *_: object) -> str:
    """Show code in colours where its language is known."""
    token = tokens[at]
    language = token.info.split()[0] if token.info.split() else ""
    code = _coloured(token.content, language.lower())
    caption = f"<figcaption>{escape(language[:40])}</figcaption>"
    return f'<figure>{caption}<pre dir="ltr" tabindex="0"><code>{code}</code></pre></figure>\n'


def _coloured(code: str, language: str) -> str:
    if language not in LANGUAGES or len(code) > LONGEST_HIGHLIGHTED:
        return escape(code)
    lexer = _lexer_class(language)(stripnl=False, ensurenl=False)  # some remember what they read
    return str(highlight(code, lexer, _FORMATTER))


@cache
def _lexer_class(language: str) -> type[Lexer]:
    named: type[Lexer] = find_lexer_class_by_name(language)
    return named


def _described(_self: RendererHTML, tokens: Sequence[Token], at: int, *_: object) -> str:
    """Put words in the place of an image."""
    words = tokens[at].content.strip()
    return escape(f"(image not shown: {words})" if words else "(image not shown)")


def _formula(_self: RendererHTML, tokens: Sequence[Token], at: int, *_: object) -> str:
    """Set a formula; one that is not understood shows as it was written."""
    token = tokens[at]
    display = token.markup in {"$$", "\\["}
    formula = mathml(token.content, display=display)
    if formula is None:
        written = f"{token.markup}{token.content}{_CLOSING.get(token.markup, '$')}"
        formula = f"<code>{escape(written)}</code>"
    if not display:
        return formula
    if not token.block:
        return f'<span class="maths">{formula}</span>'
    return f'<div class="wide maths" tabindex="0">{formula}</div>\n'


def _maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Take ``$$`` or ``\[`` at a line's start up to its closing at a line's end."""
    if state.is_code_block(start):
        return False
    first = state.bMarks[start] + state.tShift[start]
    opening = state.src[first : first + 2]
    if opening not in {"$$", "\\["}:
        return False
    lines = [state.src[first + 2 : state.eMarks[start]]]
    last = start
    while _CLOSING[opening] not in lines[-1]:
        last += 1
        if last >= end or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            return False
        if state.bMarks[last] - first - 2 >= LONGEST_FORMULA:
            return False
        lines.append(state.src[state.bMarks[last] + state.tShift[last] : state.eMarks[last]])
    formula, _, after = "\n".join(lines).partition(_CLOSING[opening])
    if after.strip() or not formula.strip():
        return False
    if not silent:
        state.line = last + 1
        token = state.push("maths", "", 0)
        token.block, token.markup, token.content = True, opening, formula.strip()
        token.map = [start, state.line]
    return True


def _maths_inline(state: StateInline, silent: bool) -> bool:
    r"""Take ``\(..\)``, ``\[..\]``, ``$$..$$`` and, by pandoc's rule, ``$..$``.

    Pandoc's rule: no space within beside either dollar; here also no word character outside
    beside them, so that prices and ``$HOME/$USER`` stay text.
    """
    opening = state.src[state.pos : state.pos + 2]
    if opening not in _CLOSING:
        opening = opening[:1]
        if opening != "$":
            return False
    start = state.pos + len(opening)
    stop = min(state.posMax, start + LONGEST_FORMULA)
    end = (
        _dollar(state, start, stop)
        if opening == "$"
        else state.src.find(_CLOSING[opening], start, stop)
    )
    if end <= start or not state.src[start:end].strip():
        return False
    if not silent:
        token = state.push("maths", "", 0)
        token.markup, token.content = opening, state.src[start:end].strip()
    state.pos = end + len(opening)
    return True


def _dollar(state: StateInline, start: int, stop: int) -> int:
    """Find the dollar that closes a formula; -1 if the opening one is none."""
    if state.src[start : start + 1].isspace() or _is_word(state.src, start - 2):
        return -1
    closing = _UNESCAPED_DOLLAR.search(state.src, start, stop)
    if closing is None or state.src[closing.start() - 1].isspace():
        return -1
    return -1 if _is_word(state.src, closing.end()) else closing.start()


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


# Texts that come in pieces


LIST_GROWTH = 1.5
"""How much longer an open list is, in characters, when it is rendered again."""

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
        *lines, last = self._tail[self._examined :].split("\n")
        for line in lines:
            self._due |= self._may_begin_a_block(line)
            self._after_blank = not line.strip()
            self._examined += len(line) + 1
            self._line_begun = False
        if not self._line_begun and not _UNDECIDED.match(last):
            self._line_begun = True
            self._due |= self._may_begin_a_block(last)
        changed: list[Block] = []
        if self._due and len(self._tail) >= TRIAL_GROWTH * self._tried:
            changed = self._take_final()
        return changed + self._grow_list()

    def close(self) -> list[Block]:
        """Render what is left: the text ends here."""
        self._tail += self._carriage_return.replace("\r", "\n")
        self._carriage_return = ""
        return self._take(_top_level(self._tail, self._environment), len(self._tail))

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
        """Render the blocks again that a definition which came later may have changed."""
        for index, source in enumerate(self._sources):
            if (
                "[" in source
                and (html := render(source, self._environment)) != self._blocks[index]
            ):
                self._blocks[index] = html
                yield index

    def _grow_list(self) -> list[Block]:
        """Render the complete lines of an open list, if it has grown enough."""
        grown = self._examined > LIST_GROWTH * self._shown
        if not grown or self._open is None or self._open.type not in _LISTS:
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
    parser = _new_parser()
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


# Font for formulas


CHARACTERS = (
    (0x20, 0x7F),  # Latin
    (0xA0, 0x100),
    (0x391, 0x3D7),  # Greek
    (0x2010, 0x2058),  # punctuation, primes
    (0x20D0, 0x20E2),  # accents
    (0x2100, 0x2150),  # letters like ℝ
    (0x2190, 0x2300),  # arrows, operators
    (0x2308, 0x230C),  # floor, ceiling
    (0x23B0, 0x23E2),  # braces
    (0x25A0, 0x2600),  # shapes
    (0x27C0, 0x2800),
    (0x2900, 0x2B00),
    (0x1D400, 0x1D800),  # mathematical alphabets
)
"""Ranges of code points that formulas are made of, each without its end."""

UNWRITTEN = ((0x210E, 0x210F), (0x221A, 0x221B), (0x1D434, 0x1D468), (0x1D6E2, 0x1D71C))
"""What browsers draw of themselves: roots, and a single letter of a formula in italics."""


def maths_font(formulas: str | None = None) -> bytes:
    """Make the font, as WOFF2; it takes seconds.

    Parameters
    ----------
    formulas : str, optional
        What the font has to have, and no more than that.

    Raises
    ------
    FileNotFoundError
        If the package that brings the font came without it.
    """
    from fontTools.subset import Options, Subsetter, load_font, save_font  # takes 0.2 s

    paths = [path for path in files("ziamath") or () if path.name == "STIXTwoMath-Regular.ttf"]
    if not paths:
        raise FileNotFoundError("ziamath is installed without STIXTwoMath-Regular.ttf")
    options = Options(flavor="woff2", hinting=False, notdef_outline=True, name_IDs=[])
    options.layout_features = ["ssty", "dtls", "flac", "ccmp", "locl", "mark", "mkmk"]
    subsetter = Subsetter(options)
    ranges = CHARACTERS if formulas is None else UNWRITTEN
    points = {point for start, end in ranges for point in range(start, end)}
    subsetter.populate(unicodes=points | set(map(ord, formulas or "")))
    written = BytesIO()
    with load_font(str(paths[0].locate()), options) as font:
        subsetter.subset(font)
        save_font(font, written, options)
    return written.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(maths_font())
