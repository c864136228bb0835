"""What a person sees where the arena refuses what the page asks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.person import person
from tests.faulty_server import Behaviour
from tests.serving import Served, page_by

pytestmark = pytest.mark.browser

SLOW = Behaviour(text="A sentence that goes on for a while. " * 80, chunk_size=12, delay_s=0.05)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("refusals")
    limits = {"streams_per_voter": 1, "max_prompt_chars": 100, "characters_per_s": 1000}
    with page_by({"x": SLOW, "y": SLOW}, folder, **limits) as served:
        yield served


@pytest.mark.slow
def test_a_prompt_that_is_too_long_stays_and_the_refusal_says_why(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena) as ada:
        ada.arrive()
        ada.prompt.fill("x" * 90)
        expect(ada.page.locator("#count")).to_have_text("90 of 100 characters")
        ada.ask("x" * 101)
        expect(ada.page.locator("#note")).to_contain_text("101")
        expect(ada.page.locator(".welcome p").first).to_be_hidden()
        ada.wait_for("empty")
        expect(ada.prompt).to_have_value("x" * 101)
        ada.ask("x" * 50, until="ready")
        expect(ada.page.locator("#note")).to_be_hidden()


@pytest.mark.slow
def test_who_follows_too_many_battles_is_shown_the_battle_once_there_is_a_place(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena) as ada:
        ada.play(until="streaming")
        second = ada.context.new_page()
        second.goto(f"{arena.url}/")
        second.locator("#first").wait_for(state="detached")
        second.locator("#prompt textarea").fill("And why is it red?")
        second.locator("#prompt textarea").press("Enter")
        expect(second.locator("#note")).to_contain_text("too many of your pages", timeout=20_000)
        second.locator("html[data-state=ready]").wait_for(state="attached", timeout=60_000)
        expect(second.locator("#answer-a")).to_have_text(SLOW.text.strip())
        expect(second.locator("#note")).to_be_hidden()


@pytest.mark.slow
def test_a_browser_that_keeps_no_cookie_is_asked_for_one(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.context.route(
            "**/api/v1/battles/**", lambda route: route.fulfill(status=404, body="{}")
        )
        ada.arrive()
        ada.ask()
        expect(ada.page.locator("#hint")).to_contain_text("The arena needs a cookie")
