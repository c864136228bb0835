"""The reading pages beside the battle page, as people see them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from arena.domain.board_view import Board, PairCell
from tests.arena.pages.conftest import NOW, a_board, a_hold, a_row
from tests.browser.person import Person, person
from tests.faulty_server import Behaviour, faulty_server
from tests.open_pages import served_pages
from tests.serving import Served, page_of, write_roster

PAGES = ("/", "/leaderboard", "/value", "/votes", "/method", "/battles", "/no/such/page")
SLOW = pytest.mark.slow
PROMPT = '**Why** is <b>the sky</b> blue? "So" & so'


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("reading")
    with faulty_server({name: Behaviour(text=f"So says {name}.") for name in "xy"}) as server:
        roster = write_roster(folder / "roster.toml", server, "x", "y", characters_per_s=50_000)
        with page_of(folder, roster, characters_per_s=50_000) as served:
            yield served


def open_page(ada: Person, path: str) -> None:
    if path == "/":
        ada.arrive()
    else:
        ada.page.goto(ada.url + path)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, *(pytest.param(w, marks=SLOW) for w in (820, 1280))])
def test_the_navigation_stands_at_the_same_place_on_every_page(
    chromium: Browser, arena: Served, width: int
) -> None:
    places = {}
    with person(chromium, arena, viewport={"width": width, "height": 800}) as ada:
        for path in PAGES:
            open_page(ada, path)
            links = ada.page.locator(".site-head :is(.brand, nav a)")
            assert links.all_inner_texts()[1:] == ["Battle", "Leaderboard", "My battles", "Method"]
            places[path] = [link.bounding_box() for link in links.all()]
            assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(place == places["/"] for place in places.values()), places
    last = places["/"][-1]
    assert last is not None
    assert last["x"] + last["width"] <= width


@pytest.mark.slow
def test_a_battle_without_a_vote_is_taken_up_again(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.arrive()
        ada.ask(PROMPT)
        ada.wait_for("ready")
        battle_id = ada.battle_id
        ada.page.locator(".site-head a", has_text="My battles").click()
        expect(ada.page.locator("h1")).to_have_text("My battles")
        expect(ada.page.locator(".past .prompt")).to_have_text(PROMPT)
        expect(ada.page.locator(".past .choice")).to_contain_text("Not voted yet")
        ada.page.locator("a", has_text="Take it up again").click()
        ada.wait_for("ready")
        assert ada.battle_id == battle_id
        assert "So says" in ada.text("#answer-a")
        ada.page.wait_for_timeout(1500)  # the policy leaves quicker votes out
        ada.vote("tie")
        ada.wait_for("voted")
        ada.page.goto(f"{arena.url}/votes")
        ada.page.locator("a.prompt", has_text="the sky").click()
        expect(ada.page.locator(".answer > .rendered")).to_have_count(2)
        assert ada.page.url == f"{arena.url}/battles/{battle_id}"
        described = ada.page.locator('meta[property="og:description"]')
        expect(described).to_have_attribute("content", PROMPT)


@pytest.mark.slow
def test_the_preview_of_each_page_shows_our_picture(chromium: Browser, arena: Served) -> None:
    image = f"{arena.url}/look/preview.png"
    with person(chromium, arena) as ada:
        for path in PAGES:
            open_page(ada, path)
            shown = [
                ada.page.locator(f'meta[property="og:{name}"]').get_attribute("content")
                for name in ("title", "description", "image")
            ]
            assert all(shown)
            assert shown[-1] == image
            expect(ada.page.locator("link[rel=icon]")).to_have_attribute("href", "/favicon.ico")
        ada.page.goto(image)
        size = ada.page.locator("img").evaluate("i => [i.naturalWidth, i.naturalHeight]")
    assert size == [1200, 630]


@pytest.mark.slow
def test_the_battle_page_weighs_a_third_of_its_files(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.arrive()
        ada.page.wait_for_load_state("networkidle")
        sent = [response for response in ada.received if response.ok]
        weight = sum(response.request.sizes()["responseBodySize"] for response in sent)
        whole = sum(len(response.body()) for response in sent)
    assert weight < 400_000
    assert weight < whole / 2


@contextmanager
def browsing(chromium: Browser, board: Board, width: int) -> Iterator[Page]:
    """Look at the leaderboard of a board, with scripts off."""
    viewport = {"width": width, "height": 800}
    with served_pages(board, NOW) as client:
        context = chromium.new_context(viewport=viewport, java_script_enabled=False)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{client.base_url}/leaderboard")
        try:
            yield page
        finally:
            context.close()


def a_board_of(n: int) -> Board:
    rows = tuple(
        replace(
            a_row(f"m{k}", 1300.0 - 8 * k, 40.0),
            name=f"Basalt Large Instruct {k:02}",
            organisation="Open Geology Collective",
            votes=2000 + 7 * k % 13,
        )
        for k in range(n)
    )
    pairs = tuple(
        PairCell(row=a.model, column=b.model, n=40, share=0.6, expected=0.6, low=0.5, high=0.7)
        for place, a in enumerate(rows)
        for b in rows[place + 1 :]
    )
    holds = tuple(replace(a_hold(), above=a.model, below=b.model) for a, b in pairwise(rows[:5]))
    return a_board(rows=rows, pairs=pairs, holds=holds)


def box(within: Locator) -> FloatRect:
    place = within.bounding_box()
    assert place is not None
    return place


@pytest.mark.slow
def test_sixty_models_fit_on_a_screen_and_a_half(chromium: Browser) -> None:
    with browsing(chromium, a_board_of(60), 1280) as page:
        rows = page.locator(".standings tbody tr:not(.waiting)")
        expect(rows).to_have_count(60)
        top, last = box(page.locator(".standings thead")), box(rows.last)
        assert last["y"] + last["height"] - top["y"] <= 1200
        heights = [box(name)["height"] for name in page.locator(".standings .name").all()[::13]]
        assert max(heights) < 24, "a name stands on one line"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 1180, 1179, 1024, 800, 799, 390])
@pytest.mark.parametrize("n", [8, 30])
def test_the_leaderboard_fits_every_width(chromium: Browser, n: int, width: int) -> None:
    with browsing(chromium, a_board_of(n), width) as page:
        card = box(page.locator(".card").first)
        assert box(page.locator(".standings"))["width"] <= card["width"] <= width
        for section in page.locator("main, section").all():
            place = box(section)
            assert place["x"] + place["width"] <= width


def test_who_beats_whom_stands_beside_what_overturns_a_rank(chromium: Browser) -> None:
    for width, beside in ((1280, True), (820, False)):
        with browsing(chromium, a_board_of(8), width) as page:
            pairs = box(page.locator("section[aria-labelledby=pairs]"))
            overturn = box(page.locator("section[aria-labelledby=overturn]"))
            assert (pairs["y"] == overturn["y"]) is beside
            if beside:
                assert pairs["x"] + pairs["width"] < overturn["x"]
                assert overturn["x"] + overturn["width"] > width - 40


def test_the_standings_are_sorted_and_searched_without_a_script(chromium: Browser) -> None:
    with browsing(chromium, a_board_of(30), 1280) as page:
        names = page.locator("tr:not(.waiting) .name")
        page.locator(".sorts", has_text="Model").click()
        assert names.all_inner_texts() == sorted(names.all_inner_texts())
        page.locator(".sorts", has_text="Model").click()
        assert names.first.inner_text() == "Basalt Large Instruct 29"
        page.get_by_label("Search models").fill("instruct 1")
        page.get_by_label("Search models").press("Enter")
        expect(names).to_have_count(10)
        assert names.first.inner_text() == "Basalt Large Instruct 19", "it stays sorted"
        expect(page.locator(".filters .summary")).to_contain_text("10 of 31 models")
        page.get_by_label("Search models").fill("nobody's")
        page.get_by_label("Search models").press("Enter")
        expect(page.locator(".standings .none")).to_contain_text("“nobody's”")
        page.locator("a", has_text="Show all").click()
        expect(names).to_have_count(30)
        with page.expect_download() as begun:
            page.locator("a[download]", has_text="CSV").click()
        assert begun.value.suggested_filename == "leaderboard.csv"
