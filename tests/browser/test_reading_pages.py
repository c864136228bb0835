"""The reading pages beside the battle page, as people see them."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from itertools import cycle
from math import exp
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from arena.boards.leaderboard import Leaderboard
from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.board_view import Board
from arena.domain.vote import BEFORE_EXCLUSIONS, DEFAULT, Choice, Voter
from arena.pages.standings import VIEWS
from arena.store.store import Store
from tests.arena.store.battles import A1, B1, MODELS, ballot, complete, exclude, new_battle
from tests.browser.person import NARROW_TO_WIDE, Person, covered, person
from tests.faulty_server import Behaviour
from tests.open_pages import served_pages
from tests.serving import Served, page_by
from tests.sqlite import new_sqlite

PAGES = ("/", "/leaderboard", "/value", "/votes", "/method", "/battles", "/no/such/page")
SLOW = pytest.mark.slow
BEGAN, NOW = datetime(2026, 11, 15, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)
PROMPT = '**Why** is <b>the sky</b> blue? "So" & so'


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("reading")
    with page_by({name: Behaviour(text=f"So says {name}.") for name in "xy"}, folder) as served:
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
        ada.play(PROMPT)
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
        ada.cast("tie")
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


@cache
def boards_of(n: int) -> dict[str, Board]:
    """Rate the votes of an arena of so many models, of which some are excluded."""
    rng, style = Random(n), Random(n)
    models = [
        replace(MODELS[0], id=f"m{k:02}", name=f"Basalt Large Instruct {k:02}", organisation=by)
        for k, by in zip(range(n), cycle(("Open Geology Collective", "Rocks", "")), strict=False)
    ]
    with TemporaryDirectory() as folder, closing(Store(new_sqlite(Path(folder)))) as store:
        store.hold_lease()
        store.register(models, BEGAN)
        for i in range(max(60, 12 * n)):
            a, b = (i, (i + 1) % n) if i < n else rng.sample(range(n), 2)
            owner, when = Voter(f"v{rng.randrange(30)}"), BEGAN + timedelta(minutes=8 * i)
            new = replace(new_battle(f"b{i}", owner), prompt_id=f"p{i}", created=when)
            store.open_battle(replace(new, a=models[a], b=models[b]))
            broken = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
            fails = i >= n and i % 40 == 0
            short, long = "So. " * style.randint(1, 30), "- **So**, " * style.randint(1, 20)
            answers = {A1: broken if fails else complete(short), B1: complete(long)}
            state = BattleState.FAILED if fails else BattleState.READY
            store.close_answers(f"b{i}", state, answers, message=None, now=when)
            if not fails:
                won = Choice.A if rng.random() < 1 / (1 + exp((a - b) / n)) else Choice.B
                choice = Choice.TIE if rng.random() < 0.2 else won
                cast = ballot(f"b{i}", choice, voter=owner.id)
                store.cast(replace(cast, cast=when + timedelta(seconds=20)))
            if not fails and i % 50 == 49:
                exclude(store, f"b{i}", DEFAULT, "a known bot")
        policies = (DEFAULT, BEFORE_EXCLUSIONS)
        return {one.name: Leaderboard(store, one, lambda: NOW).refresh() for one in policies}


@contextmanager
def browsing(
    chromium: Browser, n: int, width: int, height: int = 800, *, view: str = "", **more: object
) -> Iterator[Page]:
    """Look at the leaderboard of so many models, with scripts off."""
    boards = {
        policy: SimpleNamespace(read=lambda board=board, **_: board)
        for policy, board in boards_of(n).items()
    }
    with served_pages(boards_of(n)[DEFAULT.name], NOW, boards=boards, **more) as client:
        size = {"width": width, "height": height}
        context = chromium.new_context(viewport=size, java_script_enabled=False)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{client.base_url}/leaderboard?view={view}")
        try:
            yield page
        finally:
            context.close()


def box(within: Locator) -> FloatRect:
    place = within.bounding_box()
    assert place is not None
    return place


EVERY_SIZE = pytest.mark.parametrize("n", [25, *(pytest.param(n, marks=SLOW) for n in (2, 6, 60))])
ON = pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])


@pytest.mark.parametrize("width", [360, *(pytest.param(w, marks=SLOW) for w in NARROW_TO_WIDE)])
def test_every_control_of_a_page_is_clickable_in_its_middle(
    chromium: Browser, arena: Served, width: int
) -> None:
    for view in VIEWS:
        with browsing(chromium, 6, width, view=view) as page:
            assert covered(page) == []
    with person(chromium, arena, viewport={"width": width, "height": 800}) as ada:
        ada.play()
        ada.cast("tie")
        for path in PAGES[1:]:
            open_page(ada, path)
            assert covered(ada.page) == []


@pytest.mark.sampled(5)
@ON
@EVERY_SIZE
def test_a_model_and_one_line_of_notes_are_on_the_first_screen(
    chromium: Browser, n: int, width: int, height: int
) -> None:
    with browsing(chromium, n, width, height) as page:
        rows = page.locator(".standings tbody tr")
        expect(rows).to_have_count(n)
        first = box(rows.first)
        assert first["y"] + first["height"] <= height
        notes = page.locator(".notes > summary")
        assert box(notes)["height"] < 30, "it stands on one line"
        assert not re.search(r"\bm\d\d\b", page.locator(".notes").inner_text()), "names, not ids"
        notes.click()
        expect(page.locator(".notes > .summary")).to_contain_text("Ties count half")
        for row in rows.all():
            around = box(row)
            for badge in row.locator(".badge").all():
                inside = box(badge)
                assert around["y"] <= inside["y"]
                assert inside["y"] + inside["height"] <= around["y"] + around["height"]


@EVERY_SIZE
def test_each_tab_fits_its_width_and_25_models_two_screens_and_a_half(
    chromium: Browser, n: int
) -> None:
    for width in (1280, 390):
        with browsing(chromium, n, width) as page:
            for tab in ("Board", "Style-adjusted", "Head-to-head", "Robustness", "Data"):
                page.locator(".tabs a", has_text=tab).click()
                expect(page.locator(".tabs [aria-current]")).to_have_text(tab)
                page.wait_for_load_state()  # and so of the style, without which it is wider
                html = page.locator("html")
                assert html.evaluate("e => e.scrollWidth") <= width
                if width == 1280:
                    assert n > 25 or html.evaluate("e => e.scrollHeight") <= 2000
                    tables = page.locator(".scroll:not(:has(.pairs))")
                    assert not tables.evaluate_all(
                        "a => a.some(e => e.scrollWidth > e.clientWidth)"
                    )


@EVERY_SIZE
def test_rows_that_say_nothing_are_not_shown(chromium: Browser, n: int) -> None:
    with browsing(chromium, n, 1280, view="robustness") as page:
        assert "over 100 times as many" not in page.content()
        page.locator(".tabs a", has_text="Data").click()
        for row in page.locator("[aria-labelledby=excluded] tbody tr").all():
            _, without, with_them, change = row.locator("td, th").all_inner_texts()
            assert without != with_them, change
        for row in page.locator("[aria-labelledby=health] tbody tr").all():
            _, _, failed, left, _ = row.locator("td, th").all_inner_texts()
            assert (failed, left) != ("0", "0")


@pytest.mark.sampled(5)
@ON
@EVERY_SIZE
def test_head_to_head_cells_are_tinted_and_scroll_beside_the_names(
    chromium: Browser, n: int, width: int, height: int
) -> None:
    with browsing(chromium, n, width, height, view="head-to-head") as page:
        tints = page.locator(".pairs :is(.over, .under)").evaluate_all(
            "all => all.map(e => getComputedStyle(e).backgroundColor)"
        )
        assert len({*tints}) > 1
        scroll, name = page.locator(".scroll:has(.pairs)"), page.locator(".pairs tbody th").first
        overflow = scroll.evaluate("e => e.scrollWidth - e.clientWidth")
        assert (overflow > 0) == (n >= 25 or (n == 6 and width == 390))
        before = box(name)["x"]
        assert _is_shaded(scroll) == (overflow > 0)
        scroll.evaluate("e => { e.scrollLeft = e.scrollWidth }")
        assert box(name)["x"] == pytest.approx(before, abs=3)
        assert not _is_shaded(scroll), "nothing is left to scroll to"


def test_head_to_head_shows_whole_names_and_its_intervals_without_a_pointer(
    chromium: Browser,
) -> None:
    with browsing(chromium, 6, 390, view="head-to-head") as page:
        assert not page.locator(".pairs th bdi").evaluate_all(
            "all => all.filter(e => e.scrollHeight > e.clientHeight + 1).map(e => e.textContent)"
        )
        interval = page.locator(".pairs .within").first
        expect(interval).to_be_hidden()
        page.get_by_label("Show 95% intervals").press("Space")
        expect(interval).to_have_text(re.compile(r"^0\.\d\d–[01]\.\d\d$"))
        expect(interval).to_be_visible()
        expect(page.locator(".pairs .within + .n").first).to_be_hidden()


def _is_shaded(scroll: Locator) -> bool:
    """Tell whether the last pixels of the first line are darker than those before them."""
    picture = Image.open(BytesIO(scroll.screenshot())).convert("L")
    line = [picture.getpixel((picture.width - x, 3)) for x in (3, 60)]
    return line[0] < line[1] - 10  # type: ignore[operator]


@pytest.mark.slow
def test_sixty_models_fit_on_a_screen_and_a_half(chromium: Browser) -> None:
    with browsing(chromium, 60, 1280) as page:
        rows = page.locator(".standings tbody tr:not(.waiting)")
        expect(rows).to_have_count(60)
        top, last = box(page.locator(".standings thead")), box(rows.last)
        assert last["y"] + last["height"] - top["y"] <= 1200
        heights = [box(name)["height"] for name in page.locator(".standings .name").all()[::13]]
        assert max(heights) < 24, "a name stands on one line"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 1180, 1179, 1024, 800, 799, 390])
@pytest.mark.parametrize("n", [6, 25])
def test_the_leaderboard_fits_every_width(chromium: Browser, n: int, width: int) -> None:
    with browsing(chromium, n, width) as page:
        card = box(page.locator(".card").first)
        assert box(page.locator(".standings"))["width"] <= card["width"] <= width
        for section in page.locator("main, section").all():
            place = box(section)
            assert place["x"] + place["width"] <= width


def test_the_standings_are_sorted_and_searched_without_a_script(chromium: Browser) -> None:
    with browsing(chromium, 25, 1280) as page:
        names = page.locator("tr:not(.waiting) .name")
        page.locator(".sorts", has_text="Model").click()
        expect(names).to_have_text([f"Basalt Large Instruct {n:02}" for n in range(25)])
        page.locator(".sorts", has_text="Model").click()
        expect(names.first).to_have_text("Basalt Large Instruct 24")
        page.get_by_label("Search models").fill("instruct 1")
        page.get_by_label("Search models").press("Enter")
        expect(names).to_have_count(10)
        expect(names.first, "it stays sorted").to_have_text("Basalt Large Instruct 19")
        expect(page.locator(".filters .summary")).to_contain_text("10 of 25 models")
        page.get_by_label("Search models").fill("nobody's")
        page.get_by_label("Search models").press("Enter")
        expect(page.locator(".standings .none")).to_contain_text("“nobody's”")
        page.locator("a", has_text="Show all").click()
        expect(names).to_have_count(25)
        with page.expect_download() as begun:
            page.locator("a[download]", has_text="CSV").click()
        assert begun.value.suggested_filename == "leaderboard.csv"
