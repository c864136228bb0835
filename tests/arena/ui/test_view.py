import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from arena.domain.battle import AnswerStatus, BattleState, ShownAnswer, ShownTurn, Snapshot
from arena.domain.vote import Choice, Receipt, Reveal, RevealedModel
from arena.domain.voter import Voter
from arena.errors import BadPromptError, UnknownBattleError
from arena.ui import fixed
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


class Scripted:
    """Battles that say what they are told to."""

    prompts: tuple[str, ...] | None = None

    def __init__(self, *snapshots: Snapshot, error: Exception | None = None) -> None:
        self.snapshots = snapshots
        self.error = error

    async def open(self, voter: Voter, prompt: str) -> Snapshot:
        if self.error:
            raise self.error
        return OPENED

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


def test_a_view_tells_the_state_and_how_far_each_side_is() -> None:
    assert read(view_of(OPENED)) == {
        "battle": "b1",
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
    secret = RevealedModel("secret-id", "secret-name", latency_s=0.7, tokens=321, cost=0.01)
    voted = replace(
        ENDED,
        state=BattleState.VOTED,
        receipt=Receipt(Choice.A, Reveal(a=secret, b=secret)),
    )
    assert "secret" not in repr(view_of(voted))
    assert "321" not in repr(view_of(voted))


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
        fixed.prompts_to_try(hostile, None),
        fixed.prompts_to_try((), hostile),
        fixed.prompt_sheet(hostile),
        fixed.prompt_sheet(None),
    ):
        assert not re.search(r"\n\s*\n|<script", block.strip())


def test_the_empty_page_offers_six_prompts() -> None:
    many = tuple(f"prompt {n}" for n in range(9))
    assert fixed.prompts_to_try(many, None).count("data-ask") == 6
    recorded = fixed.prompts_to_try(("never shown",), many)
    assert recorded.count("data-ask") == 6
    assert "never shown" not in recorded
    assert fixed.prompt_sheet(many).count("data-ask") == 9
