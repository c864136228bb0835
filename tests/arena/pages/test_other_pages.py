"""The pages of one's own battles, of the method, and of failures."""

import re
from dataclasses import replace

import pytest

from arena.domain.battle import BattleState, Mode, Pacing
from arena.domain.vote import Choice
from arena.pages.rendering import WITHOUT_VOTE, method_page, missing_page
from tests.arena.pages.conftest import MakeBoard, MakePastBattle
from tests.arena.pages.page import past_page, text


def test_past_battles_are_newest_first_with_both_names(make_past_battle: MakePastBattle) -> None:
    old, new = make_past_battle(Choice.B, 90, "Old one"), make_past_battle(Choice.A, 3, "New one")
    page = past_page([old, new])
    assert page.index("New one") < page.index("Old one")
    assert "A was better A quartz-8b B chalk-3b 3 minutes ago" in text(page)
    assert 'class="side better">A <bdi>quartz-8b' in page
    assert 'class="side better">B <bdi>chalk-3b' in page


def test_a_skip_reveals_nothing(make_past_battle: MakePastBattle) -> None:
    page = past_page([make_past_battle(Choice.SKIP), make_past_battle(Choice.TIE)])
    assert "2 battles with 1 vote and 1 skip, newest first" in text(page)
    assert "You skipped it. The names stay hidden." in text(page)


@pytest.mark.parametrize("state", sorted(WITHOUT_VOTE.keys() - {BattleState.EXPIRED}))
def test_a_battle_without_a_vote_can_be_taken_up_again(
    make_past_battle: MakePastBattle, state: BattleState
) -> None:
    battle = replace(make_past_battle(None, prompt="Left"), state=state)
    page = past_page([battle])
    assert "1 battle with 0 votes, newest first" in text(page)
    assert f"Left {WITHOUT_VOTE[state]} Take it up again 5 minutes ago" in text(page)
    assert page.count('href="/?b=b5"') == 2


def test_a_battle_that_expired_is_shown_as_closed(make_past_battle: MakePastBattle) -> None:
    page = past_page([replace(make_past_battle(None), state=BattleState.EXPIRED)])
    assert "Closed without a vote 5 minutes ago" in text(page)
    assert "Take it up again" not in page
    assert page.count('href="/?b=b5"') == 1, "what was said can still be read"


def test_every_battle_has_a_vote_or_words_on_why_not() -> None:
    assert set(BattleState) - set(WITHOUT_VOTE) == {BattleState.VOTED, BattleState.SKIPPED}


def test_a_battle_between_known_models_takes_no_vote(make_past_battle: MakePastBattle) -> None:
    page = text(past_page([replace(make_past_battle(None), mode=Mode.CONTINUED)]))
    assert "takes no vote itself" in page
    assert "Take it up again" not in page


def test_a_battle_opens_where_it_can_be_read(make_past_battle: MakePastBattle) -> None:
    battle = replace(make_past_battle(), battle_id='x&y="z')
    assert 'href="/battles/x%26y%3D%22z"' in past_page([battle])
    assert 'href="/?b=x%26y%3D%22z"' in past_page([battle], linked=False)
    assert 'href="/?b=b5"' in past_page([make_past_battle(Choice.SKIP)])


def test_a_prompt_is_plain_text_that_runs_its_own_way(make_past_battle: MakePastBattle) -> None:
    page = past_page([make_past_battle(prompt="**bold** <b>x</b>")])
    assert '<bdi dir="auto">**bold** &lt;b&gt;x&lt;/b&gt;</bdi>' in page


def test_an_unknown_voter_is_told_of_the_cookie() -> None:
    assert "tied to a cookie of the browser" in past_page(None)
    assert "No battles yet" in past_page([])


@pytest.mark.parametrize("pacing", list(Pacing))
def test_the_method_page_tells_how_this_arena_paces(make_board: MakeBoard, pacing: Pacing) -> None:
    shown = text(method_page(make_board(), pacing=pacing, linked=True))
    assert ("releases both answers at the same pace" in shown) == (pacing is Pacing.PACED)
    assert ("appear together" in shown) == (pacing is Pacing.BOTH_DONE)
    assert ("Speed is visible" in shown) == (pacing is Pacing.RAW)


def test_the_method_page_names_policy_rules_and_export(make_board: MakeBoard) -> None:
    shown = text(method_page(make_board(), pacing=Pacing.PACED, linked=True))
    assert "Votes by simulated voters are excluded." in shown
    assert "arena export votes" in shown


def test_what_is_missing_is_told_calmly() -> None:
    shown = text(missing_page("The next is free at 14:20."))
    assert not re.search(r"error|oops|!|traceback", shown, re.IGNORECASE)
    assert "The next is free at 14:20." in shown
    assert "To the battle page" in shown
