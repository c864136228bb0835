"""Who may read a battle: everybody once its vote counts, nobody else before."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from arena.domain.vote import Choice
from tests.serving import Served, quick_arena


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("exhibits")) as served:
        yield served


def test_a_battle_is_read_by_others_only_once_its_vote_is_saved(arena: Served) -> None:
    with arena.visitor() as ada, arena.visitor() as bob:
        battle = ada.play("Which way is up?")
        assert bob.get(f"/battles/{battle}").status_code == 404
        assert "Which way is up?" not in bob.get("/battles").text
        ada.vote(battle, "model_b")
        page = bob.get(f"/battles/{battle}")
        assert page.status_code == 200
        shown = ("Which way is up?", "B was better", "Name ", "So says ")
        assert [text for text in shown if text not in page.text] == []
        assert f"/battles/{battle}" in bob.get("/battles").text


def test_a_skipped_battle_stays_between_the_arena_and_its_voter(arena: Served) -> None:
    with arena.visitor() as ada, arena.visitor() as bob:
        battle = ada.play("Between us")
        ada.vote(battle, Choice.SKIP)
        assert bob.get(f"/battles/{battle}").status_code == 404
        assert ada.get(f"/battles/{battle}").headers["Location"] == f"/?b={battle}"
        assert "Between us" not in ada.get("/battles").text


def test_nothing_tells_who_voted(arena: Served) -> None:
    with arena.visitor() as ada, arena.visitor() as bob:
        battle = ada.play("Who am I?")
        ada.vote(battle, "tie")
        pseudonym = ada.client.cookies["arena_voter"].split(".")[0]
        for path in ("/battles", f"/battles/{battle}"):
            assert pseudonym not in bob.get(path).text


def test_every_number_of_the_board_opens_its_battles(tmp_path: Path) -> None:
    with quick_arena(tmp_path) as served, served.visitor() as ada:
        for _ in range(3):
            ada.vote(ada.play(), "model_a")
        ada.board(votes=3)
        board = ada.get("/leaderboard").text + ada.get("/leaderboard?view=head-to-head").text
        addresses = {unescape(a) for a in re.findall(r'href="(/battles[^"]*)"', board)}
        assert {"model=" in a for a in addresses} == {True, False}
        assert any("against=" in a for a in addresses)
        for address in addresses:
            page = ada.get(address)
            assert page.status_code == 200
            assert 'href="/battles/' in page.text


@pytest.mark.parametrize(
    "query", ["model=granite", "policy=none", "before=x", "before=-1", f"before={'9' * 19}"]
)
def test_a_list_that_there_is_not_is_refused_in_words(arena: Served, query: str) -> None:
    with arena.visitor() as ada:
        page = ada.get(f"/battles?{query}")
    assert page.status_code == 404
    assert "Open the leaderboard" in page.text


def test_an_arena_that_shows_no_battles_has_neither_pages_nor_links(tmp_path: Path) -> None:
    with quick_arena(tmp_path, show_battles=False) as served, served.visitor() as ada:
        battle = ada.play()
        ada.vote(battle, "model_a")
        assert ada.get("/battles").status_code == 404
        assert ada.get(f"/battles/{battle}").status_code == 404
        assert "/battles" not in ada.get("/leaderboard").text
        assert "can read the battle" not in ada.get("/method").text
