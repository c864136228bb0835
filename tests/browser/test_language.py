"""A visitor who reads German sees German everywhere, and a choice is kept."""

from collections.abc import Iterator

import pytest
from babel.messages.pofile import read_po
from playwright.sync_api import Browser, expect

from arena.catalogue import FOLDER
from tests.browser.person import Person, person
from tests.browser.test_accessibility import assert_accessible
from tests.faulty_server import Behaviour
from tests.serving import Served, page_by

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "de-DE"}
TEXTS = """() => [document.title, document.body.innerText,
  ...Array.from(document.querySelectorAll("[title], [aria-label], [placeholder]")).flatMap(
    (e) => [e.title, e.getAttribute("aria-label") || "", e.placeholder || ""]),
  ...Array.from(document.querySelectorAll(".cast, .facts")).map((e) => e.textContent)
  ].join("\\n")"""


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("language")
    texts = {name: Behaviour(text="42.\n\n```python\n1 + 1\n```", usage=(1, 7)) for name in "xy"}
    with page_by(texts, folder, max_prompt_chars=60) as served:
        yield served


@pytest.fixture(scope="module")
def english() -> frozenset[str]:
    """English messages that are not words of German too, nor parts of longer ones."""
    with (FOLDER / "de.po").open("rb") as file:
        messages = [m.id for m in read_po(file, locale="de") if isinstance(m.id, str) and m.id]
    messages.remove("Organisation")
    return frozenset(m for m in messages if len(m) >= 8 and "%(" not in m and "<" not in m)


def assert_german(ada: Person, english: frozenset[str]) -> None:
    text = ada.page.evaluate(TEXTS)
    assert [message for message in english if message in text] == []
    assert ada.page.evaluate("document.documentElement.lang") == "de"
    assert ada.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    clipped = """() => Array.from(document.querySelectorAll("#arena button, .site-head a, h1"))
      .filter((e) => e.offsetParent && !e.matches(".chips button")
        && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"""
    assert ada.page.evaluate(clipped) == []


@pytest.mark.slow
def test_every_state_of_a_battle_is_german_on_a_phone(
    chromium: Browser, arena: Served, english: frozenset[str]
) -> None:
    with person(chromium, arena, **PHONE) as ada:
        ada.arrive()
        assert_german(ada, english)
        expect(ada.page.locator("h1")).to_have_text("Welche Antwort ist besser?")
        ada.ask("x" * 61)
        expect(ada.page.locator("#note")).to_have_text(
            "Der Prompt hat 61 Zeichen; bis zu 60 können gesendet werden. Kürze ihn."
        )
        assert ada.text("#count") == "61 von 60 Zeichen"
        assert_german(ada, english)
        ada.ask("Was ist 6 mal 7?", until="ready")
        assert ada.text("#hint") == "Beide sind fertig. Du kannst abstimmen."
        expect(ada.page.locator("figcaption button").first).to_have_text("Kopieren")
        assert_german(ada, english)
        assert_accessible(ada.page)
        expect(ada.page.locator("#do-help")).to_have_text("Tasten")
        ada.page.locator("#do-help").dispatch_event("click")  # hidden where there is little room
        assert_german(ada, english)
        ada.page.keyboard.press("Escape")
        ada.cast("model_a")
        expect(ada.page.locator("#hint")).to_contain_text("Gespeichert. Deine Stimme: ")
        assert_german(ada, english)
        assert_accessible(ada.page)
        ada.page.locator("#do-new").click()
        ada.ask("Und 7 mal 6?", until="ready")
        ada.cast("skip")
        assert_german(ada, english)
        for path in ("/leaderboard", "/value", "/votes", "/method", "/battles", "/nowhere"):
            ada.page.goto(ada.url + path)
            assert_german(ada, english)


@pytest.mark.slow
def test_a_choice_outlives_a_vote_and_a_reload(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena, locale="de-DE") as ada:
        ada.play("Was ist 6 mal 7?")
        battle_id = ada.battle_id
        ada.page.get_by_role("button", name="English").click()
        ada.wait_for("ready")
        assert ada.battle_id == battle_id
        expect(ada.page.locator("#vote-tie")).to_have_text("Tie")
        expect(ada.page.locator(".cast")).to_be_hidden()
        ada.cast("tie")
        expect(ada.page.locator("#hint")).to_have_text("Saved. Your vote: a tie.")
        expect(ada.page.locator(".cast")).to_have_text("1 vote")
        ada.page.reload()
        expect(ada.page.locator("h1")).to_have_text("A tie")
        expect(ada.page.locator(".cast")).to_have_text("1 vote")
        ada.page.locator(".cast").click()
        expect(ada.page.locator("h1")).to_have_text("My battles")
        ada.page.get_by_role("button", name="Deutsch").click()
        expect(ada.page.locator("h1")).to_have_text("Meine Duelle")
        expect(ada.page.locator(".past .choice span").first).to_have_text("Gleich gut")


def test_the_language_is_chosen_without_a_script(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena, java_script_enabled=False) as ada:
        ada.page.goto(f"{ada.url}/leaderboard?sort=name")
        ada.page.get_by_role("button", name="Deutsch").click()
        expect(ada.page.locator("h1")).to_have_text("Rangliste")
        assert ada.page.url.endswith("/leaderboard?sort=name")
