"""Boards by label and one's own mix, as people see and move them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.arena.boards.kinds import arena_of_kinds
from tests.browser.person import Person, person
from tests.browser.test_accessibility import assert_accessible
from tests.serving import Served

pytestmark = pytest.mark.browser

SCREENS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
ADDRESSES = (
    "/leaderboard",
    "/leaderboard?category=code&language=fr",
    "/leaderboard?category=code&language=en",
    "/leaderboard?refusal=none",
    "/mix",
    "/mix?translation=1&prompts=3",
    "/mix?code=x",
)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with arena_of_kinds(tmp_path_factory.mktemp("kinds"), 240, *ADDRESSES) as served:
        yield served


@pytest.fixture(params=SCREENS)
def ada(request: pytest.FixtureRequest, chromium: Browser, arena: Served) -> Iterator[Person]:
    with person(chromium, arena, **SCREENS[request.param]) as one:
        yield one


@pytest.mark.sampled(15)
@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize(
    ("ada", "language"),
    [
        ("desktop", "en"),
        ("phone", "de"),
        pytest.param("desktop", "de", marks=pytest.mark.slow),
        pytest.param("phone", "en", marks=pytest.mark.slow),
    ],
    indirect=["ada"],
)
def test_pages_fit_and_are_accessible(ada: Person, path: str, language: str) -> None:
    ada.context.set_extra_http_headers({"Accept-Language": language})
    ada.page.goto(f"{ada.url}{path}")
    width = ada.page.viewport_size
    assert width is not None
    assert ada.page.evaluate("document.documentElement.scrollWidth") <= width["width"]
    more = ada.page.locator(".more summary")
    if more.count():
        more.click()
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width["width"]
    assert_accessible(ada.page)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/leaderboard", "/leaderboard?category=code"])
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [820, 1180])
def test_boards_with_all_their_columns_fit_their_card(
    chromium: Browser, arena: Served, path: str, language: str, width: int
) -> None:
    with person(chromium, arena, viewport={"width": width, "height": 1180}) as ada:
        ada.context.set_extra_http_headers({"Accept-Language": language})
        ada.page.goto(f"{ada.url}{path}")
        expect(ada.page.locator(".standings tbody .rating")).not_to_have_count(0)
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
        table, card = (
            ada.page.locator(name).bounding_box() for name in (".standings", ".card >> nth=0")
        )
        assert table is not None
        assert card is not None
        assert table["width"] <= card["width"]


@pytest.mark.sampled(2)
def test_a_person_comes_from_the_leaderboard_to_a_language_and_back(ada: Person) -> None:
    ada.page.goto(f"{ada.url}/leaderboard")
    ada.page.locator(".more summary").click()
    ada.page.locator(".chip", has_text="French").click()
    expect(ada.page.locator("h1")).to_have_text("Leaderboard: French")
    expect(ada.page.locator(".chip[aria-current]").first).to_contain_text("French")
    expect(ada.page.locator(".standings tbody tr")).to_have_count(5)
    ada.page.locator(".chip", has_text="All prompts").click()
    expect(ada.page.locator("h1")).to_have_text("Leaderboard")


def slide(ada: Person, name: str, value: int) -> None:
    """Move a slider as a hand does: its value changes, and the page hears of it."""
    ada.page.locator(f"#share-{name}").fill(str(value))


@pytest.mark.sampled(2)
def test_the_board_follows_the_sliders_and_the_address_keeps_the_mix(ada: Person) -> None:
    ada.page.goto(f"{ada.url}/mix")
    expect(ada.page.locator("#sliders .button")).to_be_hidden()
    for name in ("creative", "translation", "other"):
        slide(ada, name, 0)
    slide(ada, "code", 50)
    expect(ada.page.locator("output[for=share-code]")).to_have_text("100%")
    expect(ada.page.locator(".standings .name").first).to_have_text("Quartz 8B")
    expect(ada.page).to_have_url(re.compile("code=50"))
    best = ada.page.locator(".standings .rating").nth(1).inner_text()
    address = ada.page.url
    ada.page.goto(f"{ada.url}/leaderboard")
    ada.page.goto(address)
    assert ada.page.locator(".standings .rating").nth(1).inner_text() == best
    slide(ada, "code", 0)
    slide(ada, "creative", 80)
    expect(ada.page.locator(".standings .name").first).not_to_have_text("Quartz 8B")
    slide(ada, "creative", 0)
    slide(ada, "translation", 10)
    expect(ada.page.locator("#result.hint")).to_contain_text("only a hint, shown in grey")
    assert ada.complaints == []


@pytest.mark.slow
def test_two_models_are_compared_as_they_are_chosen(ada: Person) -> None:
    ada.page.goto(f"{ada.url}/mix?code=1")
    ada.page.locator("#model-a").select_option("Mica 2")
    ada.page.locator("#model-b").select_option("Quartz 8B")
    expect(ada.page.locator(".preferred")).to_contain_text("Mica 2 is preferred to Quartz 8B")
    assert float(ada.page.locator(".figure").inner_text()[:4]) < 0.5
    expect(ada.page).to_have_url(re.compile("a=mica-2"))


@pytest.mark.sampled(2)
def test_own_prompts_of_a_file_are_counted(ada: Person, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("Write a Python function\nWrite a poem about rain\n", encoding="utf-8")
    ada.page.goto(f"{ada.url}/mix")
    ada.page.locator("#own input[type=file]").set_input_files(str(file))
    expect(ada.page.locator("#own-text")).to_have_value(re.compile("poem about rain"))
    ada.page.locator("#own .button").click()
    expect(ada.page.locator(".behind")).to_contain_text("counted from 2 prompts")
    expect(ada.page).to_have_url(re.compile(r"code=1&creative=1&prompts=2"))
    assert ada.page.locator("#share-code").input_value() == "50"


@pytest.mark.slow
def test_without_a_script_the_sliders_are_a_form(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena, java_script_enabled=False) as ada:
        ada.page.goto(f"{ada.url}/mix?creative=1")
        assert ada.page.locator("#own .file").is_hidden()
        ada.page.locator("#share-code").focus()
        ada.page.keyboard.press("End")
        ada.page.locator("#sliders .button").click()
        expect(ada.page.locator("output[for=share-code]")).to_have_text("50%")
        ada.page.locator("#own-text").fill("Write a Python function")
        ada.page.locator("#own .button").click()
        expect(ada.page.locator(".behind")).to_contain_text("counted from 1 prompt;")
