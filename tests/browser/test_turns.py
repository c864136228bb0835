"""Several turns, other answers, and going on after the vote, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.person import Person, person
from tests.browser.test_battle_page import recordings
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.serving import Served, served_by

pytestmark = pytest.mark.browser

FIRST = Behaviour(text="The first answer. " * 12)
SECOND = Behaviour(text="The second answer. " * 12)
SLOW = Behaviour(text="A sentence that goes on for a while. " * 30, chunk_size=12, delay_s=0.05)
BROKEN = Behaviour(fault=Fault.DROP, fault_after=8)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({"zanzibar": FIRST, "quagmire": FIRST}) as server:
        yield server


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("arena")
    with served_by(server, folder, page=True, characters_per_s=2000) as served:
        yield served


@pytest.fixture(autouse=True)
def well(server: FaultyServer) -> None:
    behave(server, FIRST)


def behave(server: FaultyServer, *behaviours: Behaviour) -> None:
    """Let the models answer so: both alike, or each in its way."""
    server.behaviours.update({"zanzibar": behaviours[0], "quagmire": behaviours[-1]})


def shows_first_then_second(ada: Person) -> None:
    for side in ("a", "b"):
        history = ada.page.locator(f"#history-{side}")
        expect(history.locator(".asked")).to_have_text("Why is the sky blue?")
        expect(history.locator(".rendered")).to_have_text(FIRST.text.strip())
        expect(ada.page.locator("#asked")).to_contain_text("And at night?")
        expect(ada.page.locator(f"#answer-{side}")).to_have_text(SECOND.text.strip())


def test_two_turns_then_a_vote(chromium: Browser, arena: Served, server: FaultyServer) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        battle_id = ada.battle_id
        expect(ada.prompt).to_have_attribute("placeholder", "Ask these two more, or vote…")
        behave(server, SECOND)
        ada.ask("And at night?")
        expect(ada.page.locator("#asked")).to_contain_text("And at night?")
        expect(ada.prompt).to_have_value("")
        ada.wait_for("ready")
        shows_first_then_second(ada)
        assert ada.battle_id == battle_id
        written = ada.page.content()
        assert not any(word in written for word in ("Name ", "zanzibar", "quagmire"))
        ada.cast("model_b")
        assert {ada.text("#name-a"), ada.text("#name-b")} == {"Name zanzibar", "Name quagmire"}
        assert [turn["prompt"] for turn in ada.api()["turns"]] == [
            "Why is the sky blue?",
            "And at night?",
        ]
        assert ada.complaints == []


@pytest.mark.slow
def test_both_answer_anew_then_a_vote(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        battle_id = ada.battle_id
        behave(server, SECOND)
        ada.page.locator("#do-regenerate").click()
        expect(ada.page.locator("#answer-a")).to_have_text(SECOND.text.strip())
        expect(ada.page.locator("#answer-b")).to_have_text(SECOND.text.strip())
        ada.wait_for("ready")
        assert ada.battle_id == battle_id
        assert ada.page.locator("#history-a > *").count() == 0
        ada.vote_by_key("4")
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "model_b"


@pytest.mark.slow
def test_a_failed_second_turn_is_tried_again_where_it_stands(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        battle_id = ada.battle_id
        behave(server, SECOND, BROKEN)
        ada.ask("And at night?", until="failed")
        assert " stopped answering. Nothing was counted." in ada.text("#hint")
        behave(server, SECOND)
        ada.page.locator("[data-do=again]").click()
        ada.wait_for("ready")
        shows_first_then_second(ada)
        assert ada.battle_id == battle_id
        ada.cast("tie")


@pytest.mark.slow
def test_going_on_after_the_reveal_keeps_the_names_and_takes_no_vote(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.cast("model_a")
        names = ada.text("#name-a"), ada.text("#name-b")
        voted_id = ada.battle_id
        behave(server, SECOND)
        ada.page.locator("[data-do=go-on]").click()
        expect(ada.prompt).to_be_focused()
        invitation = f"Ask {names[0]} and {names[1]}…"
        expect(ada.prompt).to_have_attribute("placeholder", invitation)
        ada.ask("And at night?", until="ready")
        shows_first_then_second(ada)
        assert ada.battle_id != voted_id
        assert (ada.text("#name-a"), ada.text("#name-b")) == names
        assert ada.text("#hint") == "Not counted: you know who they are."
        expect(ada.page.locator("#votes")).to_be_hidden()
        ada.page.keyboard.press("1")
        ada.page.wait_for_timeout(300)
        assert ada.api()["vote"] is None
        behave(server, SLOW)
        ada.ask("And in space?", until="streaming")
        ada.page.reload()
        ada.wait_for("streaming")
        expect(ada.page.locator("#name-a")).to_have_text(names[0])
        assert ada.page.locator("html[data-state=streaming]").count() == 1, "not only at the end"
        ada.wait_for("ready")
        assert len(ada.api()["turns"]) == 3
        behave(server, FIRST)
        expect(ada.page.locator("#votes")).to_be_hidden()
        ada.page.locator("#do-new").click()
        ada.wait_for("empty")
        assert ada.text("#name-a") == ""
        ada.ask("Something new", until="ready")
        assert ada.api()["models"] is None
        expect(ada.page.locator("#history-a > *")).to_have_count(0)
        expect(ada.page.locator("#votes")).to_be_visible()


@pytest.mark.slow
def test_a_reload_in_the_second_turn_goes_on_and_shows_both(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        behave(server, SLOW)
        ada.ask("And at night?", until="streaming")
        ada.page.reload()
        ada.wait_for("streaming")
        expect(ada.page.locator("#history-a .asked")).to_have_text("Why is the sky blue?")
        ada.wait_for("ready")
        expect(ada.page.locator("#asked")).to_contain_text("And at night?")
        expect(ada.page.locator("#answer-b")).to_have_text(SLOW.text.strip())


def test_a_new_battle_keeps_what_is_written(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        first = ada.battle_id
        ada.prompt.fill("Another matter")
        ada.page.locator("#do-new").click()
        ada.wait_for("empty")
        expect(ada.prompt).to_have_value("Another matter")
        ada.prompt.press("Enter")
        ada.wait_for("ready")
        assert ada.battle_id != first
        assert len(ada.api()["turns"]) == 1


@pytest.mark.slow
def test_recordings_refuse_a_second_turn_in_words(chromium: Browser, tmp_path: Path) -> None:
    with recordings(tmp_path) as served, person(chromium, served) as ada:
        ada.play("Say yes")
        ada.ask("Say yes")
        expect(ada.page.locator("#note")).to_contain_text("answer one prompt only")
        ada.wait_for("ready")
        assert {ada.text("#answer-a"), ada.text("#answer-b")} == {"Yes.", "Yes, sir."}
        ada.cast("tie")
        expect(ada.page.locator("[data-do=go-on]")).to_be_hidden()
