"""What holds for every page: hostile text stays text, and the markup serves every reader."""

from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from jinja2 import StrictUndefined, UndefinedError

from arena.domain.battle import Pacing
from arena.domain.board_view import Board, FitCheck, Health, Misfit, Moment, PastRating
from arena.domain.vote import Choice
from arena.pages.rendering import (
    battle_page,
    battles_page,
    environment,
    error_page,
    even,
    leaderboard_page,
    method_page,
    votes_page,
)
from tests.arena.pages.conftest import (
    NOW,
    MakeBoard,
    MakePastVote,
    MakeRow,
    a_hold,
    a_pair,
    shown_battle,
    shown_votes,
)
from tests.arena.pages.page import NOTHING, Page, board_page, past_page, with_a_past

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7*7 }}'


def every_page(make_board: MakeBoard, make_past_vote: MakePastVote) -> list[str]:
    return [
        board_page(make_board()),
        board_page(with_a_past(make_board())),
        board_page(make_board(**NOTHING)),
        past_page([make_past_vote(choice) for choice in Choice]),
        past_page([]),
        past_page(None),
        *(
            method_page(make_board(), pacing=pacing, linked=True, arena_name="Arena")
            for pacing in Pacing
        ),
        error_page(404),
        battles_page(shown_votes(), newest=True, now=NOW, arena_name="Arena"),
        battles_page(replace(shown_votes(), votes=()), newest=False, now=NOW, arena_name="Arena"),
        battle_page(shown_battle(), now=NOW, arena_name="Arena"),
    ]


def hostile_board(make_board: MakeBoard, make_row: MakeRow) -> Board:
    row = replace(make_row(HOSTILE), name=HOSTILE, organisation=HOSTILE)
    board = make_board(
        rows=(row, make_row("b", 900)),
        waiting=(),
        pairs=(replace(a_pair(), row=HOSTILE, column="b"),),
        holds=(replace(a_hold(), above=HOSTILE, below="b"),),
        fit_check=FitCheck(
            pairs=9,
            far=1,
            by_chance=0.4,
            p=0.5,
            left_out=0,
            worst=(Misfit(row=HOSTILE, column="b", share=1.0, expected=0.5, n=9),),
        ),
        history=(
            Moment(
                when=NOW - timedelta(days=4),
                votes=3,
                ratings=(PastRating(model=HOSTILE, rating=1000.0, lower=0.0, upper=2000.0),),
            ),
        ),
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
        leaderboard_page(board, linked=True, now=NOW, arena_name=HOSTILE),
        votes_page([vote], now=NOW, arena_name=HOSTILE),
        method_page(board, pacing=Pacing.PACED, linked=True, arena_name=HOSTILE),
        error_page(404, advice=HOSTILE, arena_name=HOSTILE),
        battles_page(shown_votes(HOSTILE, HOSTILE), newest=True, now=NOW, arena_name=HOSTILE),
        battle_page(shown_battle(HOSTILE, HOSTILE), now=NOW, arena_name=HOSTILE),
    ]
    for html in pages:
        page = Page(html)
        assert not page.all("script")
        assert not page.all("img")
        assert HOSTILE in unescape(html)


def test_an_answer_is_formatted_and_cannot_turn_the_writing() -> None:
    html = battle_page(shown_battle("**so** \u202eabc"), now=NOW, arena_name="Arena")
    assert '<p dir="auto"><strong>so</strong> \ufffdabc</p>' in html
    assert '<p class="asked" dir="auto">**so** \ufffdabc</p>' in html


def test_pages_hold_no_script_and_no_handler(
    make_board: MakeBoard, make_past_vote: MakePastVote
) -> None:
    for html in every_page(make_board, make_past_vote):
        page = Page(html)
        assert not page.all("script")
        attributes = {name for _, values in page.tags for name in values}
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
        ids = [values["id"] for _, values in page.tags if "id" in values]
        assert len(ids) == len(set(ids))


def test_every_table_has_a_name_and_every_heading_a_scope(make_board: MakeBoard) -> None:
    page = Page(board_page(make_board()))
    named = [table for table in page.all("table") if "aria-labelledby" in table]
    assert len(named) + len(page.all("caption")) == len(page.all("table")) == 5
    assert all("scope" in heading for heading in page.all("th"))


def test_the_present_page_is_marked_in_the_header(
    make_board: MakeBoard, make_past_vote: MakePastVote
) -> None:
    for html, here in (
        (board_page(make_board()), ["/leaderboard"]),
        (past_page([make_past_vote()]), ["/votes"]),
        (
            method_page(make_board(), pacing=Pacing.PACED, linked=True, arena_name="Arena"),
            ["/method"],
        ),
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


def test_models_that_change_place_or_leave_their_interval_are_named(
    make_board: MakeBoard, make_row: MakeRow
) -> None:
    steady = replace(make_row("a", 1100, 30), voter_rating=1110.0)
    placed = replace(make_row("b", 1000, 30), voter_rating=995.0, voter_rank=2)
    outside = replace(make_row("c", 900, 30), voter_rating=931.0)
    comparison = even(make_board(rows=(steady, placed, outside)))
    assert comparison is not None
    assert [row.model for row in comparison.moved] == ["b", "c"]
    assert comparison.furthest.model == "c"


def test_one_voter_has_nothing_to_be_compared_with(make_board: MakeBoard) -> None:
    assert even(make_board(voters=1)) is None
    assert even(make_board(rows=())) is None
