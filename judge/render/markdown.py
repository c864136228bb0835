r"""A model's text as HTML that may stand in any page: Markdown, code, tables and formulas.

The text is hostile. Control characters and what turns the writing show as U+FFFD, raw HTML as
the characters it is made of, an image as the words that describe it, a formula as MathML; nothing
in it runs or is fetched, and what `markdown_it` writes goes through `nh3` once more. `render`
takes a whole text; `judge.render.stream` one that is still being written.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from html import escape
from itertools import islice
from typing import Any
from unicodedata import bidirectional

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name

from judge.render import maths
from rating.tables.escaping import LINES, visible

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
    **{tag: set(maths.ATTRIBUTES) for tag in maths.TAGS},
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
    *["br", "em", "figcaption", "figure", "hr", "s", "strong", "table", "tbody", "thead", "tr"],
}
_CLEANER = nh3.Cleaner(
    tags=_ALLOWED_TAGS,
    attributes=_ALLOWED_ATTRIBUTES,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)
_DIRECTIONS = {"L": "ltr", "R": "rtl", "AL": "rtl"}
_ALIGNED = re.compile(r"text-align:(\w+)")
_FORMATTER = HtmlFormatter(nowrap=True)
_LINK = re.compile(r"(?:https?:|mailto:)", re.IGNORECASE)
_UNESCAPED_DOLLAR = re.compile(r"(?<!\\)\$")
_CLOSING = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}


def render(text: str, environment: Environment | None = None) -> str:
    r"""Write a text as HTML.

    Parameters
    ----------
    text : str
        Markdown: CommonMark with tables, task lists and strikethrough; formulas between ``$``,
        ``$$``, ``\( \)`` and ``\[ \]``.
    environment : mapping
        Links that other blocks of the same text define; those defined here are added.

    Examples
    --------
    >>> render("![a cat](http://far.example/cat.png) costs $5")
    '<p dir="auto">(image not shown: a cat) costs $5</p>\n'
    """
    html = _parser().render(visible(text, LINES), {} if environment is None else environment)
    return _CLEANER.clean(html)


def new_parser() -> MarkdownIt:
    """Make a parser of the Markdown that is shown."""
    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign]
    parser.block.ruler.before(
        "fence", "maths", _maths_block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.inline.ruler.before("escape", "maths", _maths_inline)
    return parser


@cache
def _parser() -> MarkdownIt:
    parser = new_parser()
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
    if aligned := _ALIGNED.search(str(token.attrGet("style") or "")):
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
    formula = maths.mathml(token.content, display=display)
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
        if state.bMarks[last] - first - 2 >= maths.LONGEST_FORMULA:
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
    stop = min(state.posMax, start + maths.LONGEST_FORMULA)
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
