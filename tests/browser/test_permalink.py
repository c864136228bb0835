"""A battle at its address, whose answers are rendered, in a real browser."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.person import Person, person
from tests.faulty_server import Behaviour
from tests.judge.render.test_markdown import GOLDEN, HOSTILE
from tests.serving import Served, page_by

pytestmark = pytest.mark.browser

TEXT = "\n\n".join((GOLDEN / f"{name}.md").read_text() for name in ("everything", "scripts"))
MATHS = (GOLDEN / "maths.md").read_text()
ATTACK = "\n\n".join(HOSTILE)
WATCH = "window.alert = () => { document.title = 'executed' }"


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("permalink")
    texts = {"x": f"{TEXT}\n\n{MATHS}", "y": ATTACK}
    with page_by({name: Behaviour(text=text) for name, text in texts.items()}, folder) as served:
        yield served


def read_a_battle(ada: Person) -> None:
    """Ask, vote after a while, and open the battle's address."""
    ada.play("**What** is all this?")
    time.sleep(1.5)  # the policy leaves quicker votes out
    ada.cast("tie")
    battle_id = ada.battle_id
    ada.page.add_init_script(WATCH)
    ada.asked.clear()
    ada.page.goto(f"{ada.url}/battles/{battle_id}")
    expect(ada.page.locator(".answer")).to_have_count(2)


def test_answers_are_formatted_and_nothing_in_them_acts(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        read_a_battle(ada)
        answers = ada.page.locator(".answer > .rendered")
        for tag in ("table", "pre", "li > input[type=checkbox]", "math", "blockquote", "strong"):
            expect(answers.locator(tag).first).to_be_visible()
        expect(answers.locator('p[dir="auto"]').first).to_be_attached()
        expect(ada.page.locator(".asked")).to_have_text("**What** is all this?")
        ada.page.wait_for_load_state("networkidle")
        assert ada.page.title() != "executed"
        assert answers.locator("img, script, iframe, svg, style, form, object").count() == 0
        assert {address.removeprefix(arena.url).partition("?")[0] for address in ada.asked} == {
            ada.page.url.removeprefix(arena.url),
            "/look/tokens.css", "/look/pages.css", "/look/rendered.css", "/look/maths.woff2",
        }  # fmt: skip


@pytest.mark.slow
def test_a_phone_scrolls_wide_tables_and_code_in_themselves(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, viewport={"width": 390, "height": 844}) as ada:
        read_a_battle(ada)
        assert ada.page.evaluate("document.documentElement.scrollWidth") == 390
