import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.render.text import LANGUAGES, LONGEST_HIGHLIGHTED, render

GOLDEN = Path(__file__).parents[2] / "golden" / "render"
MARKS = st.text(alphabet="ab `~$\\()[]!<>*_|#-=\n1.:/\t&;'\"", max_size=160)

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>", "<a href='javascript:alert(1)'>x</a>",
    "<div style='position:fixed;inset:0'>cover</div>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=//far.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//far.example'>",
    "<form action=//far.example><input name=p></form>",
    "<base href=//far.example>", "<object data=//far.example></object>",
    "<embed src=//far.example>", "<video src=//far.example autoplay></video>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!-- --><script>alert(1)</script>", "<![CDATA[<script>alert(1)</script>]]>",
    "<?php alert(1) ?>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))", "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox(1))", "[x](file:///etc/passwd)",
    "[x](//far.example 'onmouseover=alert(1)')",
    '[x](http://a.example "\\" onclick=\\"alert(1)")',
    "<javascript:alert(1)>", "[x]: javascript:alert(1)\n\n[x]",
    "![x](http://far.example/track.png)", "![x](javascript:alert(1))",
    "![x][y]\n\n[y]: http://far.example/track.png",
    "[![x](http://far.example/track.png)](http://a.example)",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```', "```python onload=alert(1)\nx\n```",
    "~~~x' onfocus='alert(1)\nx\n~~~", "`</code><script>alert(1)</script>`",
    "$\\text{<img src=x onerror=alert(1)>}$", "$$\\href{javascript:alert(1)}{x}$$",
    "\\(\\style{position:fixed;inset:0}{x}\\)",
    '| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <script>alert(1)</script> | `"` |',
    '- [ ] " autofocus onfocus=alert(1) x="',
]  # fmt: skip


FORBIDDEN = {"script", "img", "svg", "iframe", "style", "link", "meta", "form", "base", "object"}
FORBIDDEN |= {"embed", "video", "noscript"}


class Elements(HTMLParser):
    """The tags and attributes of a page, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)


def assert_harmless(html: str) -> None:
    page = Elements(html)
    assert not page.tags & FORBIDDEN
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in {"style", "src", "id", "action", "srcdoc"}
        if name == "href":
            assert re.match(r"https?:|mailto:", str(value)), value


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_neither_runs_nor_fetches(text: str) -> None:
    html = render(text)
    assert_harmless(html)
    assert Elements(html).tags


@given(MARKS)
def test_no_text_runs_or_fetches(text: str) -> None:
    assert_harmless(render(text))


@given(st.text(max_size=200))
def test_words_are_not_lost(text: str) -> None:
    words = re.sub(r"[^a-z ]", "", text)
    assert words.split() == re.sub(r"<[^>]*>", "", render(words)).split()


@pytest.mark.parametrize("mark", ["- ", "1. ", "> "])
def test_deep_nesting_drops_no_text(mark: str) -> None:
    shown = render(f"{mark * 30}deep\n\n- next\n\nend")
    assert re.findall("deep|next|end", shown) == ["deep", "next", "end"]


@pytest.mark.parametrize("name", ["everything", "scripts", "maths"])
def test_a_sample_looks_as_it_did(name: str) -> None:
    text = (GOLDEN / f"{name}.md").read_text(encoding="utf-8")
    assert render(text) == (GOLDEN / f"{name}.html").read_text(encoding="utf-8")


def test_raw_html_shows_as_its_characters() -> None:
    assert render("a <b>c</b>") == '<p dir="auto">a &lt;b&gt;c&lt;/b&gt;</p>\n'


def test_an_image_shows_as_the_words_that_describe_it() -> None:
    assert render("![](http://far.example/c.png)") == '<p dir="auto">(image not shown)</p>\n'
    assert "(image not shown: a &lt;cat)" in render("![a <cat](http://far.example/c.png)")


def test_a_link_opens_elsewhere_and_says_nothing_of_us() -> None:
    link = '<a href="http://a.example" target="_blank" rel="noopener noreferrer nofollow">'
    assert link in render("[x](http://a.example)")
    assert 'href="mailto:a@b.example"' in render("[x](mailto:a@b.example)")


@pytest.mark.parametrize(
    "text", ["$5 and $10", "$HOME/$USER", "a$x$b", "$ x$", "$x $", "it costs $5", "$x$1", "`$x$`"]
)
def test_prices_and_variables_are_no_formulas(text: str) -> None:
    assert "<math" not in render(text)


@pytest.mark.parametrize("text", ["$x$", "($x$)", "$$x$$", r"\(x\)", r"\[x\]", "so $x$, $y$."])
def test_four_notations_are_formulas(text: str) -> None:
    assert "<math" in render(text)


@pytest.mark.parametrize(
    "text",
    ["$$\nx\n- y\n$$", "words\n$$\nx\n$$", "> \\[\n> x\n> \\]", "- $$\n  x\n  $$", "$$x\n$$"],
)
def test_a_formula_of_its_own_may_take_several_lines(text: str) -> None:
    html = render(text)
    assert (html.count('<math display="block">'), "$" in html) == (1, False)


@pytest.mark.parametrize(
    "text", ["$$\nx\n\ny\n$$", "$$x$$ and more", "$$\n\n$$", "    $$\n    x\n    $$"]
)
def test_what_is_no_formula_of_its_own_stays_text(text: str) -> None:
    assert '<div class="wide maths"' not in render(text)


def test_a_formula_that_is_not_understood_shows_as_it_was_written() -> None:
    assert "<code>\\(\\unknown{x}\\)</code>" in render(r"\(\unknown{x}\)")


def test_every_language_that_is_coloured_is_known() -> None:
    for language in LANGUAGES:
        assert "<figure>" in render(f"```{language}\nx = 1\n```")


def test_code_is_coloured_unless_it_is_long() -> None:
    assert '<span class="mi">1</span>' in render("```python\nx = 1\n```")
    assert "<span" not in render(f"```python\n{'x = 1' * LONGEST_HIGHLIGHTED}\n```")


def test_code_keeps_its_empty_lines() -> None:
    assert "<code>\n\n<span" in render("```python\n\n\nx\n\n```")


def test_a_heading_stays_below_those_of_the_page() -> None:
    assert render("# Title") == '<h3 dir="auto" class="level-1">Title</h3>\n'


def test_each_block_runs_the_way_of_its_own_text() -> None:
    html = render("سلام\n\n- שלום\n\n| سلام |\n|---|\n| a |\n\n> x\n\n1. 2")
    assert re.findall(r'<(\w+) dir="(\w+)"', html) == [
        ("p", "auto"), ("ul", "rtl"), ("table", "rtl"), ("th", "auto"), ("td", "auto"),
        ("blockquote", "ltr"), ("p", "auto"), ("ol", "ltr"),
    ]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "mark",
    [
        "[", "`", "$", "\\(", "\\[", "$$\n", "![[", "*a ", "_a", "> ", "- ", "<", "&", "|a",
        "[a](b ",
    ],
)  # fmt: skip
@pytest.mark.timeout(30)
def test_a_hostile_text_does_not_hold_up_the_page(mark: str) -> None:
    begun = time.process_time()
    render(mark * (20_000 // len(mark)))
    assert time.process_time() - begun < 15


def test_lines_of_a_poem_stay_lines_and_those_of_guidelines_are_joined() -> None:
    poem = "The sea is wide,\nthe moon is *bright*.  \nThe end."
    assert [render(poem, breaks=breaks).count("<br>") for breaks in (True, False)] == [2, 1]
