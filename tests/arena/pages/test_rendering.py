import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser

import pytest
from jinja2 import StrictUndefined, UndefinedError

from arena.domain.battle import Pacing
from arena.domain.board import Board, Health, PairCell, PastVote
from arena.domain.model import Kind
from arena.domain.vote import Choice
from arena.pages.rendering import (
    environment,
    error_page,
    leaderboard_page,
    method_page,
    votes_page,
)
from tests.arena.pages.conftest import NOW, MakeBoard, MakePastVote, MakeRow

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7*7 }}'


class Page(HTMLParser):
    """Tags and attributes of a page, and whether what was opened is closed."""

    VOID = frozenset({"meta", "link", "line", "rect", "path", "img"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def text(html: str) -> str:
    spaced = re.sub(r"</t[dh]>", " ", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", spaced))).strip()


def board_page(board: Board) -> str:
    return leaderboard_page(board, now=NOW, arena_name="Arena")


def past_page(past: Sequence[PastVote] | None) -> str:
    return votes_page(past, now=NOW, arena_name="Arena")


def summary(board: Board) -> str:
    found = re.search(r'<p class="summary">(.*?)</p>', board_page(board), re.DOTALL)
    assert found
    return text(found[1])


def every_page(make_board: MakeBoard, make_past_vote: MakePastVote) -> list[str]:
    return [
        board_page(make_board()),
        board_page(make_board(rows=(), waiting=(), pairs=(), health=(), votes=0, voters=0)),
        past_page([make_past_vote(choice) for choice in Choice]),
        past_page([]),
        past_page(None),
        *(method_page(make_board(), pacing=pacing, arena_name="Arena") for pacing in Pacing),
        error_page(404),
    ]


def test_one_sentence_says_what_the_board_is(make_board: MakeBoard) -> None:
    assert summary(make_board()) == (
        "2,184 votes by 56 people since 3 May. Ties count half. Intervals allow for voters who "
        "vote often. Policy default-v1 left out 31 votes (why). Updated 2 minutes ago."
    )


def test_a_single_voter_supports_no_claim_about_voters(make_board: MakeBoard) -> None:
    assert summary(make_board(votes=1, voters=1, left_out={})) == (
        "1 vote by 1 person since 3 May. Ties count half. All are from one person, so the "
        "intervals say nothing about others. Policy default-v1 left out no votes. "
        "Updated 2 minutes ago."
    )


def test_intervals_by_vote_are_not_said_to_allow_for_voters(make_board: MakeBoard) -> None:
    said = summary(make_board(by_voter=False))
    assert "Intervals do not allow for voters who vote often." in said
    assert "too narrow when few people give many" in text(board_page(make_board(by_voter=False)))


def test_nothing_is_said_of_intervals_where_there_are_none(make_board: MakeBoard) -> None:
    said = summary(make_board(rows=(), votes=3, voters=2, left_out={"skipped": 1, "never": 0}))
    assert said == (
        "3 votes by 2 people since 3 May. Ties count half. Policy default-v1 left out 1 vote "
        "(why). Updated 2 minutes ago."
    )


def test_an_empty_board_says_so_and_what_to_do(make_board: MakeBoard) -> None:
    board = make_board(
        rows=(), pairs=(), votes=0, voters=0, since=None, left_out={}, reason="Nobody voted yet."
    )
    page = board_page(board)
    assert summary(board).startswith("No votes yet. Policy default-v1 left out no votes.")
    assert "Nobody voted yet." in page
    assert "Start a battle" in page
    assert "not yet" in page
    assert "tuff-13b" in page
    assert "Who beats whom" not in page


def test_a_board_of_another_year_names_the_year(make_board: MakeBoard) -> None:
    assert "since 3 May 2025." in summary(make_board(since=datetime(2025, 5, 3, tzinfo=UTC)))


def test_a_row_shows_range_rating_interval_and_what_an_answer_takes(
    make_board: MakeBoard,
) -> None:
    row = re.search(r"<tbody>\s*<tr.*?</tr>", board_page(make_board()), re.DOTALL)
    assert row
    said = text(row[0]).replace("\N{NO-BREAK SPACE}", " ")
    for words in ("2–4", "quartz-8b Stone Works", "1,184 ± 12", "412", "71 %", "$0.41", "2.1 s"):
        assert words in said
    assert "quartz-8b: 1,184 points, 95 % interval 1,172 to 1,196" in said


def test_only_a_system_wears_a_badge(make_board: MakeBoard, make_row: MakeRow) -> None:
    assert 'class="badge"' not in board_page(make_board())
    system = replace(make_row(), kind=Kind.SYSTEM)
    assert board_page(make_board(rows=(system,))).count('class="badge"') == 1


def test_a_waiting_model_gets_a_reason_and_no_number(make_board: MakeBoard) -> None:
    row = re.search(
        r'<tr role="row" class="waiting">.*?</tr>', board_page(make_board()), re.DOTALL
    )
    assert row
    assert text(row[0]) == "– tuff-13b not yet 66 more votes needed 34"


def test_warnings_stand_above_the_table(make_board: MakeBoard) -> None:
    page = board_page(make_board(warnings=("Few voters: ranks are left out.",)))
    assert page.index("Few voters: ranks are left out.") < page.index("<table")


def test_every_figure_carries_n_policy_and_date(make_board: MakeBoard) -> None:
    page = board_page(make_board())
    captions = re.findall(r"<(?:fig)?caption[^>]*>(.*?)</(?:fig)?caption>", page, re.DOTALL)
    standings, pairs, health, _ = map(text, captions)
    for caption in (standings, pairs):
        assert "n = 2,184 votes, policy default-v1" in caption
    for caption in (standings, pairs, health):
        assert "14 June 2026, 14:18 UTC" in caption
    assert "Bradley-Terry, ties half" in standings
    assert "version 3f9a1c2e" in standings


def test_battles_without_a_vote_are_counted_by_model(make_board: MakeBoard) -> None:
    health = (
        Health(model="quartz-8b", battles=440, failed=14, abandoned=8),
        Health(model="retired", battles=0, failed=0, abandoned=0),
    )
    said = text(board_page(make_board(health=health))).replace("\N{NO-BREAK SPACE}", " ")
    assert "quartz-8b 440 14 8 5 %" in said
    assert "retired 0 0 0 –" in said


def test_votes_left_out_are_listed_by_reason(make_board: MakeBoard) -> None:
    said = text(board_page(make_board()))
    assert "given within a second 19" in said
    assert "the model named itself 12" in said


def test_a_cell_says_its_share_and_count_and_is_coloured(make_board: MakeBoard) -> None:
    page = board_page(make_board())
    assert re.search(r'class="over" style="--tone: 50%">0.75 <span class="n">40<', page)
    assert re.search(r'class="under" style="--tone: 50%">0.25 <span class="n">40<', page)


def test_past_votes_are_newest_first_with_both_names(make_past_vote: MakePastVote) -> None:
    old, new = make_past_vote(Choice.B, 90, "Old one"), make_past_vote(Choice.A, 3, "New one")
    page = past_page([old, new])
    assert page.index("New one") < page.index("Old one")
    assert "A was better A quartz-8b B chalk-3b 3 minutes ago" in text(page)
    assert 'class="side better">A <bdi>quartz-8b' in page
    assert 'class="side better">B <bdi>chalk-3b' in page


def test_a_skip_reveals_nothing(make_past_vote: MakePastVote) -> None:
    page = past_page([make_past_vote(Choice.SKIP), make_past_vote(Choice.TIE)])
    assert "1 vote and 1 skipped battle, newest first" in text(page)
    assert "You skipped it. The names stay hidden." in text(page)


def test_a_past_vote_opens_its_battle(make_past_vote: MakePastVote) -> None:
    vote = replace(make_past_vote(), battle_id='x&y="z')
    assert 'href="/?b=x%26y%3D%22z"' in past_page([vote])


def test_an_unknown_voter_is_told_of_the_cookie() -> None:
    assert "tied to a cookie of the browser" in past_page(None)
    assert "No votes yet" in past_page([])


@pytest.mark.parametrize("pacing", list(Pacing))
def test_the_method_page_tells_how_this_arena_paces(make_board: MakeBoard, pacing: Pacing) -> None:
    said = text(method_page(make_board(), pacing=pacing, arena_name="Arena"))
    assert ("at one common pace" in said) == (pacing is Pacing.PACED)
    assert ("appear together" in said) == (pacing is Pacing.BOTH_DONE)
    assert ("Speed can be seen" in said) == (pacing is Pacing.RAW)


def test_the_method_page_names_policy_rules_and_export(make_board: MakeBoard) -> None:
    said = text(method_page(make_board(), pacing=Pacing.PACED, arena_name="Arena"))
    assert "Votes by simulated voters are left out." in said
    assert "arena export votes" in said


@pytest.mark.parametrize("status", [403, 404, 405, 418, 429, 500, 503])
def test_a_failure_is_told_calmly(status: int) -> None:
    said = text(error_page(status))
    assert not re.search(r"error|oops|!|traceback", said, re.IGNORECASE)
    assert "To the battle page" in said


def test_advice_can_be_given_in_its_own_words() -> None:
    assert "The next is free at 14:20." in error_page(429, advice="The next is free at 14:20.")


def hostile_board(make_board: MakeBoard, make_row: MakeRow) -> Board:
    row = replace(make_row(HOSTILE), name=HOSTILE, organisation=HOSTILE)
    board = make_board(
        rows=(row, make_row("b", 900)),
        waiting=(),
        pairs=(PairCell(row=HOSTILE, column="b", share=1.0, n=9),),
        health=(Health(model=HOSTILE, battles=1, failed=0, abandoned=0),),
        warnings=(HOSTILE,),
        reason=HOSTILE,
        left_out={HOSTILE: 2},
        policy_rules=(HOSTILE,),
    )
    return replace(board, policy=HOSTILE, version=HOSTILE, method=HOSTILE)


def test_hostile_text_stays_text(
    make_board: MakeBoard, make_row: MakeRow, make_past_vote: MakePastVote
) -> None:
    board = hostile_board(make_board, make_row)
    vote = replace(make_past_vote(prompt=HOSTILE), model_a_name=HOSTILE, battle_id=HOSTILE)
    pages = [
        leaderboard_page(board, now=NOW, arena_name=HOSTILE),
        votes_page([vote], now=NOW, arena_name=HOSTILE),
        method_page(board, pacing=Pacing.PACED, arena_name=HOSTILE),
        error_page(404, advice=HOSTILE, arena_name=HOSTILE),
    ]
    for html in pages:
        page = Page(html)
        assert not page.all("script")
        assert not page.all("img")
        assert HOSTILE in unescape(html)


def test_pages_hold_no_script_and_no_handler(
    make_board: MakeBoard, make_past_vote: MakePastVote
) -> None:
    for html in every_page(make_board, make_past_vote):
        page = Page(html)
        assert not page.all("script")
        attributes = {name for _, found in page.tags for name in found}
        assert not [name for name in attributes if name.startswith("on")]
        assert "javascript:" not in html


def test_pages_are_well_formed_and_have_their_landmarks(
    make_board: MakeBoard, make_past_vote: MakePastVote
) -> None:
    for html in every_page(make_board, make_past_vote):
        page = Page(html)
        assert page.open == []
        assert page.all("html") == [{"lang": "en"}]
        assert [len(page.all(tag)) for tag in ("h1", "main", "header", "nav")] == [1, 1, 1, 1]
        assert page.all("a")[0] == {"class": "skip-link", "href": "#main"}
        ids = [found["id"] for _, found in page.tags if "id" in found]
        assert len(ids) == len(set(ids))


def test_every_table_has_a_name_and_every_heading_a_scope(make_board: MakeBoard) -> None:
    page = Page(board_page(make_board()))
    named = [table for table in page.all("table") if "aria-labelledby" in table]
    assert len(named) + len(page.all("caption")) == len(page.all("table")) == 4
    assert all("scope" in heading for heading in page.all("th"))


def test_the_present_page_is_marked_in_the_header(
    make_board: MakeBoard, make_past_vote: MakePastVote
) -> None:
    for html, here in (
        (board_page(make_board()), ["/leaderboard"]),
        (past_page([make_past_vote()]), ["/votes"]),
        (method_page(make_board(), pacing=Pacing.PACED, arena_name="Arena"), ["/method"]),
        (error_page(404), []),
    ):
        links = [a["href"] for a in Page(html).all("a") if "aria-current" in a]
        assert links == here


def test_only_our_own_files_are_loaded(make_board: MakeBoard) -> None:
    sources = [link["href"] for link in Page(board_page(make_board())).all("link")]
    assert sources == ["/look/tokens.css", "/look/pages.css"]


def test_a_name_that_a_template_misses_raises() -> None:
    assert environment().undefined is StrictUndefined
    with pytest.raises(UndefinedError):
        environment().get_template("error.html").render(title="x", arena_name="x")
