"""The pages of one's own votes, of the method, and of failures."""

import re
from dataclasses import replace

import pytest

from arena.domain.battle import Pacing
from arena.domain.vote import Choice
from arena.pages.rendering import method_page, missing_page
from tests.arena.pages.conftest import MakeBoard, MakePastVote
from tests.arena.pages.page import past_page, text


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
    shown = text(method_page(make_board(), pacing=pacing, linked=True))
    assert ("at one common pace" in shown) == (pacing is Pacing.PACED)
    assert ("appear together" in shown) == (pacing is Pacing.BOTH_DONE)
    assert ("Speed can be seen" in shown) == (pacing is Pacing.RAW)


def test_the_method_page_names_policy_rules_and_export(make_board: MakeBoard) -> None:
    shown = text(method_page(make_board(), pacing=Pacing.PACED, linked=True))
    assert "Votes by simulated voters are left out." in shown
    assert "arena export votes" in shown


def test_what_is_missing_is_told_calmly() -> None:
    shown = text(missing_page("The next is free at 14:20."))
    assert not re.search(r"error|oops|!|traceback", shown, re.IGNORECASE)
    assert "The next is free at 14:20." in shown
    assert "To the battle page" in shown
