"""Every page of the arena on a phone, as each role: the page, or why not, in words."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from arena.app import create_app
from arena.domain.people import Role
from arena.settings import read_settings
from arena.store import log
from arena.store.store import Store
from tests.arena.api.test_who_may_ask import PROVIDER, routes_of
from tests.browser.person import Person, person
from tests.browser.test_accessibility import assert_accessible
from tests.browser.test_topics import release
from tests.faulty_server import Behaviour
from tests.serving import Served, Visitor, invited, page_by
from tests.sqlite import new_sqlite
from tests.studies import planned, write_study

pytestmark = pytest.mark.browser

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "locale": "en-GB"}
WHO = ("nobody", *Role)
PROMPT = "Why is basalt black?"

MISSING, SIGN_IN, NOT_YOURS = "There is no such page", "Sign in", "You may not see this page"
PAGES = {
    "/": "Which answer is better?",
    "/leaderboard": "Leaderboard",
    "/mix": "My mix",
    "/votes": "My battles",
    "/votes/erase": "Delete my prompts and answers",
    "/method": "Method",
    "/evaluation": "Evaluation card",
    "/models": "Added and retired models",
    "/study": MISSING,  # nobody has made a study of this one, nor cards
    "/cards": MISSING,
    "/studies": "Studies",
    "/studies/{name}": "Study look",
    "/studies/{name}/rate": "Which answer is better?",
    "/studies/{name}/rated/{token}": MISSING,  # what somebody else has rated
    "/studies/{name}/results": "Figures of look",
    "/battles": "Battles: Every model",
    "/battles/{battle_id}": "A was better",
    "/topics": "What people ask",
    "/value": "Quality versus cost",
    "/sign-in": SIGN_IN,
    "/sign-in/openid/back": SIGN_IN,  # where nobody comes who was not sent to the provider
    "/join/{token}": "You are invited",
    "/admin": "Overview",
    "/admin/models": "Models",
    "/admin/people": "People",
    "/admin/voters": "Voters",
    "/admin/voters/erase": "Delete a user's prompts and answers",
    "/admin/battles": "Flagged battles",
    "/admin/policies": "Policies",
    "/admin/exports": "Exports",
    "/admin/log": "Log",
}
"""Heading of each page, by its address, for those who may see it."""

NO_PAGES = re.compile(
    r"/api/.*|/health/.*|/embed/.*|/look/.*|/assets/.*|.+\.(json|csv|parquet|css|js|ico)|/.+/"
)
"""Addresses of what is no page: for programs, parts of pages, files, and spellings of others."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An arena in which somebody has voted, and what stands for the parts of addresses."""

    served: Served
    parts: Mapping[str, str]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("roles")
    with page_by(
        {name: Behaviour(text=f"So says {name}. " * 20) for name in "xy"}, folder, **PROVIDER
    ) as served:
        with served.visitor() as visitor:
            battle = visitor.play(PROMPT)
            visitor.vote(battle, "model_a")
        with closing(Store(served.database)) as store, store.writing() as session:
            log.add(session, release(private=False), None, 1, datetime.now(UTC))
        write_study(served.database, "look", planned(1), raters_per_item=9)
        token = invited(served, Role.VOTER).rpartition("/")[2]
        yield Scene(served, {"battle_id": battle, "token": token, "name": "look"})


def expected(path: str, who: str) -> tuple[int, str]:
    """Give the status and heading that a page has for somebody."""
    if path.startswith("/admin") and who != Role.ADMIN:
        return (200, SIGN_IN) if who == "nobody" else (403, NOT_YOURS)
    if path.endswith("/results") and who in ("nobody", Role.VOTER):
        return (200, SIGN_IN) if who == "nobody" else (403, NOT_YOURS)
    if path.endswith("/results"):
        return 403, "Studies"  # an item waits for who asks
    if path.endswith("/back"):
        return 403, SIGN_IN
    return (404 if PAGES[path] == MISSING else 200), PAGES[path]


def seen(somebody: Person, address: str) -> tuple[int, str]:
    """Open a page; gives its status and heading, and holds that nothing is amiss with it."""
    page, before = somebody.page, len(somebody.complaints)
    answer = page.goto(somebody.url + address)
    assert answer is not None
    if address == "/":
        page.locator("#first").wait_for(state="detached")
    heading = page.locator("h1:visible").first.inner_text()
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0, f"{address} scrolls sideways"
    complaints = somebody.complaints[before:]
    of_status = f"the server responded with a status of {answer.status}"
    odd = [one for one in complaints if answer.ok or of_status not in one]
    assert odd == [], f"{address}: {odd}"
    return answer.status, heading


def test_a_page_that_is_new_is_seen_by_each_role(tmp_path: Path) -> None:
    app = create_app(read_settings(database=new_sqlite(tmp_path), page=True, **PROVIDER))
    routes = [one.split(" ") for one in routes_of(app.routes)]
    pages = {path for method, path in routes if method == "GET" and not NO_PAGES.fullmatch(path)}
    assert pages == set(PAGES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("who", WHO)
def test_each_page_is_there_for_whom_it_is_or_says_why_not(
    chromium: Browser, scene: Scene, who: str
) -> None:
    with person(chromium, scene.served, **PHONE) as somebody:
        if who != "nobody":
            somebody.page.goto(scene.served.url + invited(scene.served, Role(who)))
            somebody.page.get_by_role("button", name="Come in").click()
        result = {path: seen(somebody, path.format(**scene.parts)) for path in PAGES}
        assert result == {path: expected(path, who) for path in PAGES}
        outside = [one for one in somebody.asked if not one.startswith((somebody.url, "data:"))]
        assert outside == []
        assert [one.url for one in somebody.received if one.status >= 500] == []


def with_cookie_of(visitor: Visitor, context: BrowserContext) -> Page:
    """Let a browser go on as somebody who has asked and voted so far."""
    jar = visitor.client.cookies.jar
    url = str(visitor.client.base_url)
    context.add_cookies([{"name": c.name, "value": c.value or "", "url": url} for c in jar])
    return context.new_page()


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_what_is_ones_own_is_hidden_shown_again_downloaded_and_erased(
    chromium: Browser, scene: Scene, scripts: bool
) -> None:
    url = scene.served.url
    context = chromium.new_context(base_url=url, java_script_enabled=scripts, **PHONE)
    with scene.served.visitor() as ada, scene.served.visitor() as other, context:
        battle = ada.play(PROMPT)
        ada.vote(battle, "model_b")
        page = with_cookie_of(ada, context)
        page.goto("/votes")
        page.get_by_role("button", name="Hide from the public").click()
        expect(page.get_by_text("Only you can read it")).to_be_visible()
        assert other.get(f"/battles/{battle}").status_code == 404
        if scripts:
            assert_accessible(page)
        page.get_by_role("button", name="Show to the public").click()
        expect(page.get_by_role("button", name="Hide from the public")).to_be_visible()
        assert other.get(f"/battles/{battle}").status_code == 200

        with page.expect_download() as download:
            page.get_by_role("link", name="Download my data").click()
        assert PROMPT in json.dumps(json.loads(download.value.path().read_text()))

        page.get_by_role("link", name="Delete my prompts and answers").click()
        expect(page.get_by_text("3 prompts and answers in 1 battle")).to_be_visible()
        if scripts:
            assert_accessible(page)
        page.get_by_role("link", name="Keep them").click()
        expect(page.get_by_role("link", name=PROMPT)).to_be_visible()
        page.get_by_role("link", name="Delete my prompts and answers").click()
        page.get_by_role("button", name="Delete my prompts and answers permanently").click()
        expect(page.get_by_role("heading", name="answers are deleted")).to_be_visible()
        if scripts:
            assert_accessible(page)
        page.get_by_role("link", name="Back to my battles").click()
        expect(page.get_by_text("The texts of this battle are deleted")).to_be_visible()
        assert other.get(f"/battles/{battle}").status_code == 404


def test_who_may_not_see_a_page_reads_why_on_one(chromium: Browser, scene: Scene) -> None:
    with person(chromium, scene.served, **PHONE) as somebody:
        page = somebody.page
        page.goto(scene.served.url + invited(scene.served, Role.RESEARCHER))
        page.get_by_role("button", name="Come in").click()
        page.goto(f"{scene.served.url}/admin")
        expect(page.get_by_text("This page is for administrators only.")).to_be_visible()
        assert_accessible(page)
        page.goto(f"{scene.served.url}/device")  # which takes a form alone
        expect(page.get_by_role("heading", name=MISSING)).to_be_visible()


def test_who_runs_the_arena_is_led_to_its_room(chromium: Browser, scene: Scene) -> None:
    with person(chromium, scene.served, locale="en-GB") as somebody:
        page = somebody.page
        page.goto(scene.served.url + invited(scene.served, Role.ADMIN))
        page.get_by_role("button", name="Come in").click()
        page.get_by_role("navigation").get_by_role("link", name="Admin").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.set_viewport_size(PHONE["viewport"])
        page.goto(f"{scene.served.url}/votes")
        page.get_by_role("main").get_by_role("link", name="Admin").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
