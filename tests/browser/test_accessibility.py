"""What axe-core says of every page and state: nothing."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from arena.domain.board_view import OrganisationShare
from arena.domain.model import Stage
from arena.domain.people import Role
from arena.domain.vote import DEFAULT
from arena.pages.standings import VIEWS
from arena.store import voting
from arena.store.store import Store
from arena.store.voting import Grounds
from tests.arena.pages.conftest import a_board, a_row, adjusted_of
from tests.arena.pages.page import board_page
from tests.browser.person import Person, person
from tests.browser.test_permalink import TEXT
from tests.faulty_server import Behaviour, Fault
from tests.judge.render.test_markdown import GOLDEN
from tests.serving import Served, invited, page_by, quick_arena

pytestmark = pytest.mark.browser

ANSWER = TEXT + "\n\n" + (GOLDEN / "maths.md").read_text()
PROVIDER = {"oidc_issuer": "http://127.0.0.1:9", "oidc_client_id": "arena", "secret_key": "k" * 32}
SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("axe")
    with page_by({name: Behaviour(text=ANSWER) for name in "xy"}, folder, **PROVIDER) as served:
        yield served


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("axe-failing")
    broken = Behaviour(text=ANSWER, fault=Fault.DROP, fault_after=40)
    with page_by(dict.fromkeys("xy", broken), folder) as served:
        yield served


def assert_accessible(page: Page) -> None:
    page.wait_for_timeout(400)  # a colour that is still fading in has too little contrast
    violations = Axe().run(page).response["violations"]
    assert [
        (violation["id"], [node["target"] for node in violation["nodes"]][:3])
        for violation in violations
    ] == []


def screen_named(name: str) -> dict[str, object]:
    width, height = SCREENS[name]
    scheme = "dark" if name == "phone" else "light"
    return {"viewport": {"width": width, "height": height}, "color_scheme": scheme}


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> dict[str, object]:
    return screen_named(request.param)


@pytest.fixture(scope="module", params=SCREENS)
def voter(request: pytest.FixtureRequest, chromium: Browser, arena: Served) -> Iterator[Person]:
    """Somebody who has voted on a battle, and reads."""
    with person(chromium, arena, **screen_named(request.param)) as ada:
        ada.play()
        ada.cast("model_a")
        yield ada


@pytest.mark.sampled(2)
def test_a_battle_in_every_state(
    chromium: Browser, arena: Served, screen: dict[str, object]
) -> None:
    with person(chromium, arena, **screen) as ada:
        ada.arrive()
        assert_accessible(ada.page)
        ada.ask(until="ready")
        assert_accessible(ada.page)
        ada.ask("And then?", until="ready")
        assert_accessible(ada.page)
        ada.cast("model_a")
        assert_accessible(ada.page)
        ada.page.locator("#do-help").dispatch_event("click")  # hidden where there is little room
        assert_accessible(ada.page)


@pytest.mark.slow
def test_a_battle_that_failed(
    chromium: Browser, failing: Served, screen: dict[str, object]
) -> None:
    with person(chromium, failing, **screen) as ada:
        ada.play(until="failed")
        assert_accessible(ada.page)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "path",
    [
        *(f"/leaderboard?view={view}" for view in VIEWS),
        "/value", "/votes", "/method", "/evaluation", "/battles", "/models",
        "/nowhere", "/sign-in", "/join/nowhere",
    ],
)  # fmt: skip
def test_a_reading_page(voter: Person, path: str) -> None:
    voter.page.goto(f"{voter.url}{path}")
    assert_accessible(voter.page)


@pytest.mark.slow
def test_the_pages_of_a_person_who_was_invited(
    chromium: Browser, arena: Served, screen: dict[str, object]
) -> None:
    with person(chromium, arena, **screen) as ada:
        ada.page.goto(f"{ada.url}{invited(arena, Role.ADMIN)}")
        assert_accessible(ada.page)
        ada.page.get_by_role("button", name="Come in").click()
        ada.page.goto(f"{ada.url}/votes")
        assert_accessible(ada.page)
        ada.page.get_by_role("button", name="Use another device").click()
        ada.page.get_by_text("/join/").wait_for()
        assert_accessible(ada.page)


@pytest.mark.slow
def test_a_battle_at_its_address(voter: Person) -> None:
    voter.page.goto(f"{voter.url}/votes")
    voter.page.locator("a.prompt").click()
    voter.page.wait_for_url("**/battles/*")
    assert_accessible(voter.page)


@pytest.mark.slow
def test_a_leaderboard_of_models_in_every_stage(
    chromium: Browser, arena: Served, screen: dict[str, object]
) -> None:
    rows = tuple(
        replace(
            a_row(f"m{n}", 1100 - 50 * n),
            stage=stage,
            family="quartz",
            variants=4,
            best_of=1080.0 if n == 0 else None,
            otherwise=n,
        )
        for n, stage in enumerate(Stage)
    )
    shares = (OrganisationShare(organisation="Stone Works", models=4, votes=90, share=1.0),)
    adjusted = adjusted_of(*rows)
    board = a_board(rows=rows, holds=(), pairs=(), shares=shares, gini=0.0, adjusted=adjusted)
    with chromium.new_context(**screen) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{arena.url}/leaderboard")
        for view in VIEWS:
            page.set_content(board_page(board, view))
            assert page.get_by_text("Variants of one family").count() == (view == "robustness")
            assert_accessible(page)


@pytest.mark.slow
def test_the_leaderboard_with_and_without_the_votes_left_out(
    chromium: Browser, tmp_path: Path, screen: dict[str, object]
) -> None:
    with quick_arena(tmp_path) as served:
        battles = []
        for choice in ("tie", "tie", "model_a"):
            with served.visitor() as visitor:
                battles.append(visitor.play())
                visitor.vote(battles[-1], choice)
        with closing(Store(served.database)) as store, store.writing() as session:
            why = Grounds("by hand", "1", "a test of ours")
            voting.exclude_votes(session, DEFAULT.name, battles[-1:], why, datetime.now(UTC))
        with chromium.new_context(**screen) as context:  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(f"{served.url}/leaderboard?view=data")
            heading = page.get_by_role("heading", name="With the votes excluded")
            deadline = time.monotonic() + 60  # both boards are made in the background
            while not heading.count() and time.monotonic() < deadline:
                page.wait_for_timeout(500)
                page.reload()
            heading.wait_for()
            assert_accessible(page)
            page.get_by_role("link", name="See the leaderboard with them").click()
            page.get_by_text("This view includes votes that the leaderboard excludes").wait_for()
            assert_accessible(page)
