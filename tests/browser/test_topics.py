"""The page of topics, on desktop and phone, in English and German."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from arena.store import log
from arena.store.store import Store
from judge.labels.material import Batches, Release, ShownTopic, State
from judge.labels.topics import Agreement
from tests.browser.person import person
from tests.browser.test_accessibility import assert_accessible
from tests.faulty_server import Behaviour
from tests.serving import Served, page_by

pytestmark = pytest.mark.browser

CODE = ShownTopic(("python", "function", "list", "string"), 1260, 0.94)
TABLES = ShownTopic(("sql", "query", "join", "table"), 415, 0.88)
WRITING = ShownTopic(("poem", "story", "rhyme", "haiku"), 505, 0.97)
SHOWN = (
    ShownTopic(("code", "error", "python", "query"), 1855, 0.99, (CODE, TABLES)),
    WRITING,
    ShownTopic(("Übersetzung", "Satz", "translate", "german"), 230, 0.71),
    ShownTopic(("rezept", "teig", "recipe", "dough"), 45, 0.62),
)
SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}


def release(*, private: bool) -> Release:
    return Release(private, 3120, Agreement(0.87, 0.81, 0.92), SHOWN)


@pytest.fixture(scope="module", params=[False, True], ids=["open", "private"])
def arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, bool]]:
    private, folder = request.param, tmp_path_factory.mktemp("topics")
    with page_by(
        {name: Behaviour(text=f"So says {name}.") for name in "xy"},
        folder,
        show_battles=not private,
    ) as served:
        state = State(b"", 1, Batches({})) if private else None
        made = datetime.now(UTC) - timedelta(days=2)
        with closing(Store(served.database)) as store, store.writing() as session:
            log.add(session, release(private=private), state, 1, made)
        yield served, private


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_of_topics(
    chromium: Browser, arena: tuple[Served, bool], screen: str, language: str, tmp_path: Path
) -> None:
    served, private = arena
    width, height = SCREENS[screen]
    look = {
        "viewport": {"width": width, "height": height},
        "color_scheme": "dark" if screen == "phone" else "light",
        "locale": language,
    }
    with person(chromium, served, **look) as ada:
        ada.page.goto(f"{served.url}/topics")
        heading = "What people ask" if language == "en" else "Wonach gefragt wird"
        expect(ada.page.locator("h1")).to_have_text(heading)
        rows = ada.page.locator(".topics tbody tr")
        expect(rows).to_have_count(6)
        expect(rows.first).to_contain_text("59%" if language == "en" else "59\xa0%")
        expect(rows.nth(1)).to_contain_text("0.94" if language == "en" else "0,94")
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
        if screen == "desktop":
            widths = [
                bar.bounding_box()["width"]  # type: ignore[index]
                for bar in ada.page.locator(".share rect").all()
            ]
            ratio = [w / widths[0] for w in widths]
            assert ratio == pytest.approx(
                [1, 1260 / 1855, 415 / 1855, 505 / 1855, 230 / 1855, 45 / 1855], abs=0.01
            )
        assert_accessible(ada.page)
        words = ada.page.locator("main").inner_text()
        if language == "en":
            assert ("at least 10 people" in words) == private
        ada.page.screenshot(
            path=tmp_path / f"topics-{screen}-{language}-{private}.png", full_page=True
        )
        ada.page.goto(f"{served.url}/method")
        ada.page.locator("a[href='/topics']").click()
        expect(ada.page.locator("h1")).to_have_text(heading)
