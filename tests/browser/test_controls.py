"""Every control, clicked in its middle, does what it says, at every width; and the way back."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.person import Person, person
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, page_of, write_roster

pytestmark = pytest.mark.browser

TEXT = "All is **well**, and it goes on for a while. " * 7
WIDTHS = [360, 600, 820, 960, 1280]
MORE_WIDTHS = [320, 390, 430, 700, 799, 800, 834, 900, 1600]


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("controls")
    with faulty_server({name: Behaviour(text=TEXT) for name in "xy"}) as server:
        roster = write_roster(folder / "roster.toml", server, "x", "y", characters_per_s=50_000)
        with page_of(folder, roster, characters_per_s=350) as served:
            yield served


def click_in_the_middle(control: Locator) -> None:
    """Click where the control is, whatever lies there."""
    box = control.bounding_box()
    assert box is not None
    assert box["width"] > 0
    assert box["height"] >= 32
    control.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def is_voted(outcome: str) -> Callable[[Person], None]:
    def check(ada: Person) -> None:
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == outcome

    return check


def is_regenerated(ada: Person) -> None:
    ada.wait_for("streaming")
    ada.wait_for("ready")
    assert len(ada.api()["turns"]) == 1


def is_skipped(ada: Person) -> None:
    ada.wait_for("skipped")
    assert ada.api()["vote"]["outcome"] == "skip"


def is_empty(ada: Person) -> None:
    ada.wait_for("empty")
    assert ada.battle_id == ""


def is_asked_a_second_thing(ada: Person) -> None:
    expect(ada.page.locator("#asked")).to_have_text("And then?")
    ada.wait_for("ready")
    assert len(ada.api()["turns"]) == 2


READY: dict[str, Callable[[Person], None]] = {
    "#vote-model_a": is_voted("model_a"),
    "#vote-tie": is_voted("tie"),
    "#vote-both_bad": is_voted("both_bad"),
    "#vote-model_b": is_voted("model_b"),
    "#do-regenerate": is_regenerated,
    "#do-skip": is_skipped,
    "#do-new": is_empty,
    "#send": is_asked_a_second_thing,
}


def every_control_does_what_it_says(chromium: Browser, arena: Served, width: int) -> None:
    size = {"width": width, "height": 800}
    with person(chromium, arena, viewport=size, permissions=["clipboard-read"]) as ada:
        for control, does in READY.items():
            ada.arrive()
            ada.ask()
            ada.wait_for("ready")
            if control == "#send":
                ada.prompt.fill("And then?")
            click_in_the_middle(ada.page.locator(control))
            does(ada)
        ada.arrive()
        ada.prompt.fill("Stop me")
        click_in_the_middle(ada.page.locator("#send"))
        ada.page.locator("html[data-a=writing][data-b=writing]").wait_for(state="attached")
        click_in_the_middle(ada.page.locator("#do-stop"))
        ada.wait_for("ready")
        ada.vote("model_b")
        ada.wait_for("voted")
        click_in_the_middle(ada.page.locator("[data-do=go-on]"))
        expect(ada.prompt).to_be_focused()
        click_in_the_middle(ada.page.locator("[data-do=copy]"))
        expect(ada.page.locator("[data-do=copy]")).to_have_text("Copied")
        assert ada.page.evaluate("navigator.clipboard.readText()") == ada.page.url
        click_in_the_middle(ada.page.locator(".after [data-do=new]"))
        is_empty(ada)
        click_in_the_middle(ada.page.locator(".welcome ~ .try [data-ask]").first)
        ada.wait_for("ready")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_control_does_what_it_says(chromium: Browser, arena: Served, width: int) -> None:
    every_control_does_what_it_says(chromium, arena, width)


@pytest.mark.slow
@pytest.mark.parametrize("width", MORE_WIDTHS)
def test_every_control_does_what_it_says_at_more_widths(
    chromium: Browser, arena: Served, width: int
) -> None:
    every_control_does_what_it_says(chromium, arena, width)


def test_back_and_forward_go_through_battles(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.arrive()
        ada.ask("The first")
        ada.wait_for("ready")
        first = ada.battle_id
        ada.vote("tie")
        ada.wait_for("voted")
        assert ada.page.url == f"{arena.url}/battles/{first}"
        ada.ask("The second")
        ada.wait_for("ready")
        second = ada.battle_id
        assert second != first
        ada.page.go_back()
        expect(ada.page.locator("#asked")).to_have_text("The first")
        ada.wait_for("voted")
        assert ada.text("#name-a").startswith("Name ")
        ada.page.go_back()
        ada.wait_for("empty")
        ada.page.go_forward()
        ada.page.go_forward()
        ada.wait_for("ready")
        expect(ada.page.locator("#asked")).to_have_text("The second")
        assert (ada.battle_id, ada.text("#name-a")) == (second, "")


def test_the_address_after_a_vote_is_for_everybody(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada, person(chromium, arena) as bob:
        ada.arrive()
        ada.ask("For everybody")
        ada.wait_for("ready")
        bob.page.goto(f"{arena.url}/battles/{ada.battle_id}")
        expect(bob.page.locator("main")).to_contain_text("once they were voted on")
        ada.page.wait_for_timeout(1200)  # what is voted on at once may not count
        ada.vote("model_a")
        ada.wait_for("voted")
        bob.page.goto(ada.page.url)
        expect(bob.page.locator("main")).to_contain_text("For everybody")
        assert bob.page.locator(".rendered strong").count() > 0


def test_the_arrows_go_along_the_vote_bar(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.arrive()
        ada.ask()
        ada.wait_for("ready")
        ada.page.locator("#vote-model_a").focus()
        for place in ("tie", "both_bad", "model_b"):
            ada.page.keyboard.press("ArrowRight")
            expect(ada.page.locator(f"#vote-{place}")).to_be_focused()
        ada.page.keyboard.press("ArrowLeft")
        ada.page.keyboard.press("Enter")
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "both_bad"
