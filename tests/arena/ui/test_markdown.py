import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.ui.markdown import DISPLAY_MATHS, INLINE_MATHS, WORD_JOINER, escape, tame

MARKS = st.text(alphabet="ab `~$\\()[]!<>*_|#-=\n1.:/\t", max_size=120)


def test_a_remote_image_becomes_words() -> None:
    assert (
        tame("see ![a cat](http://far.example/c.png) here") == "see (image not shown: a cat) here"
    )
    assert tame("![](http://far.example/c.png)") == "(image not shown)"
    assert tame('![x](http://far.example/a(b).png "title")') == "(image not shown: x)"


def test_an_image_by_reference_becomes_a_link_at_most() -> None:
    assert "![" not in tame("![cat][far]\n\n[far]: http://far.example/c.png")


@pytest.mark.parametrize(
    "tag", ["<img src=x onerror=alert(1)>", "<div style='position:fixed'>", "</div>", "<!-- x -->"]
)
def test_raw_html_shows_as_its_characters(tag: str) -> None:
    assert tame(f"a {tag} b") == f"a <{WORD_JOINER}{tag[1:]} b"


def test_links_in_angle_brackets_stay_links() -> None:
    assert tame("<https://example.org/a?b=1>") == "<https://example.org/a?b=1>"


def test_code_is_left_as_it_is() -> None:
    code = "```html\n<img src=x>\n![a](http://x)\n\tcost $$ \\(\n```\nand `<b>![a](x)</b>` too"
    assert tame(code) == code


def test_code_that_is_never_closed_is_code_to_the_end() -> None:
    text = "```\n<b>bold</b>\n"
    assert tame(text) == text
    assert tame(text, live=True) == text


def test_diagrams_are_shown_as_code() -> None:
    assert tame("```mermaid\ngraph LR\n```") == "```\ngraph LR\n```"


def test_maths_is_set_between_private_marks() -> None:
    display, inline = DISPLAY_MATHS, INLINE_MATHS
    assert tame("$$x<y$$") == f"{display[0]}x<y{display[1]}"
    assert tame("\\[\nx\n\\]") == f"{display[0]}\nx\n{display[1]}"
    assert tame("for \\(k\\) and") == f"for {inline[0]}k{inline[1]} and"


def test_a_single_dollar_is_a_price() -> None:
    assert tame("between $5 and $10") == "between $5 and $10"


def test_dollars_in_code_never_open_a_formula() -> None:
    text = "```sh\necho $$\n```\nthen\n```sh\nkill $$\n```"
    assert tame(text) == text


def test_models_cannot_write_the_private_marks() -> None:
    assert tame("".join(DISPLAY_MATHS + INLINE_MATHS) + "x\x00") == "x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The cost is $$O(n \\log", "The cost is "),
        ("The cost is \\(O(n", "The cost is "),
        ("Use `heapq.nl", "Use "),
        ("Think about **how man", "Think about "),
        ("see [the docs](https://exam", "see "),
        ("Words\n-", "Words\n"),
        ("Words\n\n##", "Words\n\n"),
        ("Words\n\n12.", "Words\n\n"),
        ("Words\n\n``", "Words\n\n"),
        ("Words\n\n```py", "Words\n\n"),
        ("```\ncode\n``", "```\ncode\n"),
        ("Words\n\n| n | k |", "Words\n\n"),
        ("Words\n\n| n | k |\n|--", "Words\n\n"),
    ],
)
def test_an_end_that_would_show_raw_marks_is_held_back(text: str, shown: str) -> None:
    assert tame(text, live=True) == shown


@pytest.mark.parametrize(
    "text",
    [
        "| n | k |\n|---|---|\n",
        "| n | k |\n|---|---|\n| 1",
        "5 * 3 is 15",
        "a **bold** word",
        "* an item",
        "snake_case_name",
        "```py\nx = [",
    ],
)
def test_what_reads_well_already_is_not_held_back(text: str) -> None:
    assert tame(text, live=True) == text


def test_marks_that_stay_open_for_long_are_shown_in_the_end() -> None:
    text = "a lone ` mark " + "word " * 100
    assert tame(text, live=True) == text
    assert tame("broken $$ maths") == "broken $$ maths"


@given(MARKS)
def test_no_tag_and_no_image_outside_code(text: str) -> None:
    outside = re.sub(r"(`+|~{3,}).*", "", tame(text), flags=re.DOTALL)
    assert not re.search(r"<(?!https?://)[A-Za-z/!?]", outside)
    assert "![" not in outside


@given(MARKS)
def test_a_live_text_never_shows_what_the_finished_one_does_not(text: str) -> None:
    plain = re.sub(r"[`~$\\()\[\]!<>*_|#]", "", text)
    assert plain.startswith(tame(plain, live=True))


@given(st.text(max_size=200))
def test_an_escaped_prompt_reads_as_it_was_written(text: str) -> None:
    escaped = escape(text)
    assert not re.search(r"[^\w &#;]|_", escaped)
    if not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\ufdd0-\ufdef]|[\ufffe\uffff]", text):
        assert html.unescape(escaped) == text


@pytest.mark.parametrize("mark", ["`", "``` ", "\\(", "$$", "![", "<", "**", "|", "[", "`` ` "])
@pytest.mark.timeout(20)
def test_a_hostile_text_does_not_hold_up_the_page(mark: str) -> None:
    text = mark * (40_000 // len(mark))
    assert len(tame(text, live=True)) <= 10 * len(text)
