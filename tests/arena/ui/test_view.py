import json
import re
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from arena.domain.battle import AnswerStatus, BattleState, ShownAnswer, ShownTurn, Snapshot
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel, Voter
from arena.errors import BadPromptError, NotReadyError, UnknownBattleError
from arena.ui import fixed
from arena.ui.markdown import escape
from arena.ui.view import TROUBLE, PageView, ask, attach, empty_view, notice, view_of

VOTER = Voter("v")
OPENED = Snapshot(
    battle_id="b1",
    state=BattleState.CREATED,
    created=datetime(2026, 1, 1, tzinfo=UTC),
    turns=(
        ShownTurn(
            1,
            "2 * <b>",
            ShownAnswer("", AnswerStatus.STREAMING),
            ShownAnswer("Use `he", AnswerStatus.STREAMING),
        ),
    ),
)
ENDED = replace(
    OPENED,
    state=BattleState.READY,
    turns=(
        ShownTurn(
            1,
            "2 * <b>",
            ShownAnswer("An answer", AnswerStatus.COMPLETE),
            ShownAnswer("Use `heapq`", AnswerStatus.COMPLETE),
        ),
    ),
)


SECRET = RevealedModel("secret-id", "secret-name", latency_s=0.7, tokens=321, cost=0.01)
MARKS = st.text(alphabet="ab `~$\\()[]!<>*_|#-=\n\r1.:/\t&;+", max_size=80)


class Scripted:
    """Battles that say what they are told to, and remember what they were asked."""

    prompts: tuple[str, ...] | None = None

    def __init__(self, *snapshots: Snapshot, error: Exception | None = None) -> None:
        self.snapshots = snapshots
        self.error = error
        self.asked: list[tuple[str, ...]] = []

    async def open(self, voter: Voter, prompt: str) -> Snapshot:
        return self._take("open", prompt)

    async def reply(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        return self._take("reply", battle_id, prompt)

    async def go_on(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        return self._take("go_on", battle_id, prompt)

    def _take(self, *asked: str) -> Snapshot:
        if self.error:
            raise self.error
        self.asked.append(asked)
        return OPENED

    def reading(self, _voter: Voter) -> AbstractContextManager[None]:
        return nullcontext()

    async def watch(self, battle_id: str, voter: Voter) -> AsyncGenerator[Snapshot]:
        for snapshot in self.snapshots:
            yield snapshot
        if self.error:
            raise self.error


def who() -> Voter:
    return VOTER


def read(view: PageView) -> dict[str, object]:
    assert view.news.startswith("`")
    assert view.news.endswith("`")
    assert "`" not in view.news[1:-1]
    news: dict[str, object] = json.loads(view.news[1:-1])
    return news


async def collect(views: AsyncGenerator[PageView]) -> list[PageView]:
    return [view async for view in views]


def talk(*turns: tuple[str, str]) -> Snapshot:
    """A battle whose side A gave these answers to these prompts."""
    shown = tuple(
        ShownTurn(
            number,
            prompt,
            ShownAnswer(answer, AnswerStatus.COMPLETE),
            ShownAnswer("Yes", AnswerStatus.COMPLETE),
        )
        for number, (prompt, answer) in enumerate(turns, 1)
    )
    return replace(ENDED, turns=shown)


def blocks(markdown: str | None) -> list[SyntaxTreeNode]:
    """The outermost blocks that a reader of CommonMark finds, raw HTML allowed."""
    assert markdown is not None
    return SyntaxTreeNode(MarkdownIt("commonmark").parse(markdown)).children


def test_a_view_tells_the_state_and_how_far_each_side_is() -> None:
    assert read(view_of(OPENED)) == {
        "battle": "b1",
        "turn": 1,
        "attempt": 1,
        "counted": True,
        "state": "created",
        "message": None,
        "a": {"status": "streaming", "length": 0},
        "b": {"status": "streaming", "length": 7},
    }


def test_the_prompt_is_escaped_for_markdown_and_html() -> None:
    assert view_of(OPENED).asked == "2 &#42; &#60;b&#62;"


def test_only_a_complete_answer_is_shown_to_its_last_character() -> None:
    assert view_of(OPENED).answer_b == "Use "
    assert view_of(ENDED).answer_b == "Use `heapq`"


def test_a_stopped_answer_stays_as_its_reader_saw_it() -> None:
    turn = replace(OPENED.turns[0], b=ShownAnswer("Use `he", AnswerStatus.STOPPED))
    stopped = replace(OPENED, state=BattleState.READY, turns=(turn,))
    assert view_of(stopped).answer_b == "Use "


def test_a_view_never_names_a_model_even_after_the_vote() -> None:
    reveal = Reveal(a=SECRET, b=SECRET)
    voted = replace(
        ENDED, state=BattleState.VOTED, receipt=Receipt(Choice.A, reveal), models=reveal
    )
    for known in (voted, replace(ENDED, models=reveal)):
        assert "secret" not in repr(view_of(known))
        assert "321" not in repr(view_of(known))


def test_a_battle_counts_unless_its_models_were_known_before_the_vote() -> None:
    reveal = Reveal(a=SECRET, b=SECRET)
    voted = replace(ENDED, receipt=Receipt(Choice.A, reveal), models=reveal)
    assert read(view_of(ENDED))["counted"] is True
    assert read(view_of(voted))["counted"] is True
    assert read(view_of(replace(ENDED, models=reveal)))["counted"] is False


def test_finished_turns_are_history_and_the_latest_one_is_not() -> None:
    view = view_of(talk(("Why?", "Because."), ("Who?", "Me."), ("When?", "Now.")))
    assert view.history_a == "Why&#63;\n\n> Because.\n\nWho&#63;\n\n> Me."
    assert view.history_b == "Why&#63;\n\n> Yes\n\nWho&#63;\n\n> Yes"
    assert (view.asked, view.answer_a) == ("When&#63;", "Now.")
    assert view_of(ENDED).history_a == ""


@given(st.lists(st.tuples(st.one_of(MARKS, st.text(max_size=40)), MARKS), min_size=1, max_size=3))
def test_no_prompt_and_no_answer_gets_out_of_its_place(turns: list[tuple[str, str]]) -> None:
    turns = [(f"{prompt}x", answer) for prompt, answer in turns]
    history = view_of(talk(*turns, ("last", ""))).history_a
    assert [block.type for block in blocks(history)] == ["paragraph", "blockquote"] * len(turns)


@given(MARKS)
def test_a_prompt_in_the_history_is_the_text_that_was_written(prompt: str) -> None:
    paragraph = blocks(view_of(talk((f"{prompt}x", "Yes"), ("last", ""))).history_a)[0]
    (inline,) = paragraph.children
    assert {part.type for part in inline.children} == {"text"}
    assert "".join(part.content for part in inline.children) == f"{prompt}x"


@pytest.mark.parametrize("open_end", ["```\ncode", "~~~ a`b\ncode", "- ```\n  code", "<pre>\n"])
def test_what_an_answer_leaves_open_ends_with_it(open_end: str) -> None:
    history = view_of(talk(("Why?", open_end), ("Who?", "Me."), ("last", ""))).history_a
    assert [block.type for block in blocks(history)] == ["paragraph", "blockquote"] * 2


def test_a_formula_of_several_lines_stays_one_in_the_history() -> None:
    history = view_of(talk(("Why?", "So:\n$$\na\n$$\nend"), ("last", ""))).history_a
    assert history == "Why&#63;\n\n> So:\n> \ue000\na\n\ue001\n> end"


def test_a_prompt_that_begins_with_spaces_is_no_code() -> None:
    assert escape("    x") == "&#32;   x"


async def test_the_history_is_written_once_a_turn() -> None:
    two = talk(("Why?", "Because."), ("Who?", "Me."))
    three = talk(("Why?", "Because."), ("Who?", "Me."), ("When?", "Now."))
    views = await collect(attach(Scripted(two, two, three, three), who, "b1"))
    assert [view.history_a is not None for view in views] == [True, False, True, False]


def test_two_equal_notices_differ_so_that_the_page_sees_both() -> None:
    assert notice("No.") != notice("No.")


def test_a_missing_battle_says_why() -> None:
    assert read(empty_view("No such.")) == {
        "battle": None,
        "state": "missing",
        "message": "No such.",
    }
    assert read(empty_view())["state"] == "empty"


async def test_a_battle_is_shown_from_its_opening_to_its_end() -> None:
    views = await collect(ask(Scripted(ENDED), who, "hello"))
    assert [read(view)["state"] for view in views] == ["created", "ready"]


@pytest.mark.parametrize(
    ("intent", "asked"),
    [
        ("new", ("open", "hello")),
        ("turn", ("reply", "b7", "hello")),
        ("continue", ("go_on", "b7", "hello")),
        ("anything else", ("open", "hello")),
        ("", ("open", "hello")),
    ],
)
async def test_a_prompt_goes_where_it_is_meant_to(intent: str, asked: tuple[str, ...]) -> None:
    battles = Scripted(ENDED)
    views = await collect(ask(battles, who, "hello", intent, "b7"))
    assert battles.asked == [asked]
    assert [read(view)["state"] for view in views] == ["created", "ready"]


async def test_a_refused_turn_is_told_in_words() -> None:
    refused = Scripted(error=NotReadyError("Not now."))
    (view,) = await collect(ask(refused, who, "hello", "turn", "b7"))
    assert read(view)["notice"] == "Not now."
    assert view.history_a is None


async def test_a_refused_prompt_is_told_in_its_own_words_and_changes_nothing_else() -> None:
    refused = Scripted(error=BadPromptError("Write a prompt first."))
    (view,) = await collect(ask(refused, who, ""))
    assert read(view)["notice"] == "Write a prompt first."
    assert (view.asked, view.answer_a, view.answer_b) == (None, None, None)


async def test_trouble_of_ours_shows_no_detail() -> None:
    broken = Scripted(ENDED, error=RuntimeError("secret detail"))
    for views in (ask(broken, who, "hello"), attach(broken, who, "b1")):
        assert read((await collect(views))[-1])["notice"] == TROUBLE


async def test_somebody_elses_battle_is_not_there() -> None:
    (view,) = await collect(attach(Scripted(error=UnknownBattleError()), who, "b1"))
    assert read(view)["state"] == "missing"


@given(st.text(max_size=80))
def test_news_is_one_code_span_whatever_it_says(words: str) -> None:
    assert read(notice(words))["notice"] == words


def test_fixed_html_is_one_block_of_markdown() -> None:
    hostile = ("first\n\nline <script>", "`second` & *third*")
    for block in (
        fixed.TOP,
        fixed.TABS,
        fixed.BAR,
        fixed.HELP,
        fixed.SKELETON,
        fixed.pane_head("a"),
        fixed.prompts_to_try(hostile, None, readable=True),
        fixed.prompts_to_try((), hostile, readable=True),
        fixed.prompt_sheet(hostile),
        fixed.prompt_sheet(None),
    ):
        assert not re.search(r"\n\s*\n|<script", block.strip())


def test_the_empty_page_offers_six_prompts() -> None:
    many = tuple(f"prompt {n}" for n in range(9))
    assert fixed.prompts_to_try(many, None, readable=False).count("data-ask") == 6
    recorded = fixed.prompts_to_try(("never shown",), many, readable=True)
    assert recorded.count("data-ask") == 6
    assert "never shown" not in recorded
    assert fixed.prompt_sheet(many).count("data-ask") == 9
