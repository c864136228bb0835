"""What a person sees, in a real browser, when a model does not answer."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.arena.api.test_faults import WORDS
from tests.browser.person import Person, person
from tests.browser.test_battle_page import votes
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.serving import Served, served_by

pytestmark = pytest.mark.browser

PROVIDER = "vermilion"
REFUSAL = {"message": f"{PROVIDER} says no"}
WELL = Behaviour(text="All is well. " * 12)
FAULTS = {
    "rate limited": Behaviour(status=429, error=REFUSAL, headers={"Retry-After": "3600"}),
    "overloaded": Behaviour(status=503, error=REFUSAL),
    "no first token": Behaviour(first_token_s=60, headers={"x-provider": PROVIDER}),
    "dropped": Behaviour(
        text=f"{PROVIDER} goes on. " * 9, delay_s=0.1, fault=Fault.DROP, fault_after=80
    ),
    "wrong key": Behaviour(status=401, error=REFUSAL),
}


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({"zanzibar": WELL, "quagmire": WELL}) as server:
        yield server


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("faults")
    with served_by(server, folder, page=True, characters_per_s=1000, answer_timeout_s=3) as served:
        yield served


@pytest.fixture
def ada(chromium: Browser, arena: Served) -> Iterator[Person]:
    """A person whose browser asks for nothing outside."""
    with person(chromium, arena) as somebody:
        somebody.arrive()
        yield somebody
        assert all(url.startswith((arena.url, "data:", "blob:")) for url in somebody.asked)


def behave(server: FaultyServer, one: Behaviour, other: Behaviour) -> None:
    server.behaviours.update({"zanzibar": one, "quagmire": other})


def fails(ada: Person) -> None:
    """Ask, and be told in words which side failed, and nothing else."""
    ada.ask(until="failed")
    turn = ada.api()["turns"][0]
    (side,) = [side for side in ("a", "b") if turn[side]["status"] == "failed"]
    assert ada.text("#hint") == WORDS[side]
    page = ada.page.content().casefold()
    assert [word for word in (PROVIDER, "zanzibar", "quagmire") if word in page] == []


def takes_no_vote(ada: Person, arena: Served) -> None:
    for button in ada.page.locator("#votes button").all():
        expect(button).to_have_attribute("aria-disabled", "true")
        button.dispatch_event("click")
    for key in "1234":
        ada.page.keyboard.press(key)
    ada.page.wait_for_timeout(100)
    assert ada.page.locator("html[data-state=failed]").count() == 1
    assert not any("/vote?" in url for url in ada.asked)
    assert votes(arena, ada.battle_id) == 0


def can_be_voted_on(ada: Person, arena: Served) -> None:
    ada.wait_for("ready")
    assert "Why is the sky blue?" in ada.text("#asked")
    assert ada.text("#answer-a") == ada.text("#answer-b") == WELL.text.strip()
    ada.cast("tie")
    assert votes(arena, ada.battle_id) == 1


@pytest.mark.sampled(6)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_said_in_words_and_trying_again_mends_it(
    ada: Person, arena: Served, server: FaultyServer, fault: str
) -> None:
    behave(server, WELL, FAULTS[fault])
    fails(ada)
    takes_no_vote(ada, arena)
    failed_id = ada.battle_id
    behave(server, WELL, WELL)
    ada.page.locator("[data-do=again]").click()
    can_be_voted_on(ada, arena)
    assert ada.battle_id != failed_id
    assert votes(arena, failed_id) == 0


@pytest.mark.slow
def test_a_new_battle_after_a_fault_begins_with_nothing_of_the_old_one(
    ada: Person, arena: Served, server: FaultyServer
) -> None:
    behave(server, WELL, FAULTS["wrong key"])
    fails(ada)
    behave(server, WELL, WELL)
    ada.page.locator("#do-new").click()
    ada.wait_for("empty")
    assert ada.battle_id == ""
    expect(ada.page.locator(".welcome")).to_be_visible()
    ada.ask()
    can_be_voted_on(ada, arena)
