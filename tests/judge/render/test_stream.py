import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from judge.render import text as stream
from judge.render.text import Environment, Stream, render
from rating.tables.files import LINES, visible

PIECES = [
    "# Title", "para one\nline two", "foo\n---", "===", "- a\n- b\n  more",
    "1. x\n2. y\n\n3. z", "* x\n\n  y\n\n* z", "- [ ] t", "+ p", "  - nested", "- ", "* ", "-",
    "1.", "1) a", "> quote\nlazy", "> ```\n> x", "```python\nprint(1)\n\n# no\n```", "```\na",
    "~~~\ncode", "    indented", "\tfoo", "| a | b |\n|---|---|\n| 1 | 2 |",
    "a | b\n--|--\n1 | 2", "|", "***", "* * *", "---", "$$\nx\n- y\n$$", "$$ open\n- item",
    "$$a$$ b", "$$\n" + "x\n" * 30 + "- y\n$$", "\\[ a\n\\]", '[a]: http://x.example "t"',
    "[b]:\nhttp://y.example", "see [a] and [b]", "text $x$ `c` **b", "سلام", "\\", "<div>",
    "\u2028\x0b",
]  # fmt: skip
BREAKS = ["\n", "\n\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n  \n", " "]
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(BREAKS)), max_size=9).map(
    lambda pieces: "".join(piece + end for piece, end in pieces)
)


def streamed(text: str, sizes: random.Random) -> str:
    """Render a text as it comes in pieces, as a reader's page holds it in the end."""
    page: dict[int, str] = {}
    writing = Stream()
    at = 0
    while at < len(text):
        size = sizes.choice([1, 2, 3, 7, 20, 100])
        page |= {block.index: block.html for block in writing.feed(text[at : at + size])}
        at += size
    page |= {block.index: block.html for block in writing.close()}
    assert sorted(page) == list(range(len(page)))
    return "".join(page[index] for index in sorted(page))


@given(TEXTS, st.randoms(use_true_random=False))
def test_the_blocks_of_a_text_are_those_of_the_whole(text: str, sizes: random.Random) -> None:
    assert streamed(text, sizes) == render(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(300))
def test_a_long_text_in_random_pieces_is_rendered_as_a_whole(seed: int) -> None:
    pieces = random.Random(seed)
    text = "".join(pieces.choice(PIECES) + pieces.choice(BREAKS) for _ in range(30))
    assert streamed(text, pieces) == render(text)


@given(TEXTS)
def test_what_is_rendered_and_the_tail_are_all_of_the_text(text: str) -> None:
    writing = Stream()
    for character in text:
        writing.feed(character)
    written = visible(text, LINES).removesuffix("\r")
    assert written.replace("\r\n", "\n").replace("\r", "\n").endswith(writing.tail)


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("One.\n\nTw", "Tw"), ("# One\n", ""), ("One\n===\n", ""), ("```\none\n```\n", ""),
        ("$$\none\n$$\n", ""), ("One.\n\n---\n", ""), ("One.\n- ", "One.\n- "),
        ("One.\n- two\n", ""), ("> One\n\nTw", "Tw"), ("```\none\n\ntwo", "```\none\n\ntwo"),
        ("One.\n\n$$\ntwo\n- three\n", "One.\n\n$$\ntwo\n- three\n"),
        ("One.\r", "One."),
    ],
)  # fmt: skip
def test_a_block_is_rendered_as_soon_as_it_can_no_longer_change(text: str, tail: str) -> None:
    writing = Stream()
    for character in text:
        writing.feed(character)
    assert writing.tail == tail


@pytest.mark.parametrize("lines", range(1990, 2010, 3))
def test_a_formula_that_is_too_long_holds_nothing_back(lines: int) -> None:
    text = "$$\n" + "x\n" * lines + "- y\n$$\nend\n"
    assert streamed(text, random.Random(lines)) == render(text)


def test_a_link_defined_late_changes_the_blocks_before() -> None:
    writing = Stream()
    first = writing.feed("# See [a]\n\nMore.\n\n")
    later = writing.feed("[a]: http://x.example\n\n# End\n")
    assert [block.index for block in first] == [0]
    assert later[0].index == 0
    assert 'href="http://x.example"' in later[0].html


def test_a_list_is_rendered_while_it_grows() -> None:
    writing = Stream()
    blocks = [block for number in range(100) for block in writing.feed(f"- item {number}\n")]
    assert {block.index for block in blocks} == {0}
    assert 5 < len(blocks) < 20
    assert writing.tail.startswith("- item")


@pytest.mark.parametrize(
    "text",
    ["#x\n" * 3000, "- a\n" * 3000, "word " * 8000, "> x\n" * 3000, "```\n" + "x = 1\n" * 3000],
)
def test_a_long_block_is_parsed_few_times(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def counted(text: str, environment: Environment) -> list[Token]:
        parsed.append(len(text))
        return parse(text, environment)

    parse = stream._top_level
    monkeypatch.setattr(stream, "_top_level", counted)
    writing = Stream()
    for at in range(0, len(text), 20):
        writing.feed(text[at : at + 20])
    writing.close()
    assert sum(parsed) < 20 * len(text)
