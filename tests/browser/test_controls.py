"""Every control, clicked in its middle, does what it says, at every width; and the way back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.person import Person, person
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, page_of, served_by, write_roster

pytestmark = pytest.mark.browser

TEXT = "All is **well**, and it goes on for a while. "
QUICK = Behaviour(text=TEXT * 2)
LONG = Behaviour(text=TEXT * 400, delay_s=0.05)
SLOW = pytest.mark.slow
MORE_WIDTHS = [320, 390, 430, 600, 700, 799, 800, 820, 834, 900, 960, 1280, 1600]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server(dict.fromkeys("xy", QUICK)) as server:
        yield server


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("controls")
    with served_by(server, folder, page=True, characters_per_s=350) as served:
        yield served


def click_in_the_middle(control: Locator) -> None:
    """Click where the control is, whatever lies there, once controls react."""
    control.wait_for(state="visible")
    control.page.locator("html:not([data-quiet])").wait_for(state="attached")
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


def every_control_does_what_it_says(
    chromium: Browser, arena: Served, server: FaultyServer, width: int
) -> None:
    size = {"width": width, "height": 800}
    with person(chromium, arena, viewport=size, permissions=["clipboard-read"]) as ada:
        for control, does in READY.items():
            ada.play()
            if control == "#send":
                ada.prompt.fill("And then?")
            asked = len(server.requests)
            click_in_the_middle(ada.page.locator(control))
            while control == "#do-regenerate" and len(server.requests) < asked + 2:
                ada.page.wait_for_timeout(20)  # both answer again, sooner than a state can be seen
            does(ada)
        ada.arrive()
        server.behaviours.update(dict.fromkeys("xy", LONG))
        ada.prompt.fill("Stop me")
        click_in_the_middle(ada.page.locator("#send"))
        ada.page.locator("html[data-a=writing][data-b=writing]").wait_for(state="attached")
        click_in_the_middle(ada.page.locator("#do-stop"))
        ada.wait_for("ready")
        server.behaviours.update(dict.fromkeys("xy", QUICK))
        ada.cast("model_b")
        click_in_the_middle(ada.page.locator("[data-do=go-on]"))
        expect(ada.prompt).to_be_focused()
        click_in_the_middle(ada.page.locator("[data-do=copy]"))
        expect(ada.page.locator("[data-do=copy]")).to_have_text("Copied")
        assert ada.page.evaluate("navigator.clipboard.readText()") == ada.page.url
        click_in_the_middle(ada.page.locator("#do-new"))
        is_empty(ada)
        click_in_the_middle(ada.page.locator(".welcome ~ .try [data-ask]").first)
        ada.wait_for("ready")


@pytest.mark.parametrize("width", [360, *(pytest.param(w, marks=SLOW) for w in MORE_WIDTHS)])
def test_every_control_does_what_it_says(
    chromium: Browser, arena: Served, server: FaultyServer, width: int
) -> None:
    every_control_does_what_it_says(chromium, arena, server, width)


@pytest.mark.slow
def test_back_and_forward_go_through_battles(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play("The first")
        first = ada.battle_id
        ada.cast("tie")
        assert ada.page.url == f"{arena.url}/battles/{first}"
        ada.ask("The second", until="ready")
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
        ada.play("For everybody")
        bob.page.goto(f"{arena.url}/battles/{ada.battle_id}")
        expect(bob.page.locator("main")).to_contain_text("once they were voted on")
        ada.page.wait_for_timeout(1200)  # what is voted on at once may not count
        ada.cast("model_a")
        bob.page.goto(ada.page.url)
        expect(bob.page.locator("main")).to_contain_text("For everybody")
        expect(bob.page.locator(".rendered strong").first).to_be_visible()


@pytest.mark.slow
def test_the_arrows_go_along_the_vote_bar(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.page.locator("#vote-model_a").focus()
        for place in ("tie", "both_bad", "model_b"):
            ada.page.keyboard.press("ArrowRight")
            expect(ada.page.locator(f"#vote-{place}")).to_be_focused()
        ada.page.keyboard.press("ArrowLeft")
        ada.page.locator("html:not([data-quiet])").wait_for(state="attached")
        ada.page.keyboard.press("Enter")
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "both_bad"


@pytest.mark.slow
def test_the_rest_of_both_answers_comes_at_once_if_one_wants_it(
    chromium: Browser, tmp_path: Path
) -> None:
    long = Behaviour(text="It goes on and on. " * 300)
    with faulty_server(dict.fromkeys("xy", long)) as quick:
        roster = write_roster(tmp_path / "roster.toml", quick, "x", "y")
        pace = {"characters_per_s": 200, "prior_delay_s": 0.1, "prior_characters_per_s": 1500}
        with page_of(tmp_path, roster, **pace) as served, person(chromium, served) as ada:
            ada.arrive()
            ada.ask()
            expect(ada.page.locator("#do-rest")).to_be_visible(timeout=15_000)
            click_in_the_middle(ada.page.locator("#do-rest"))
            ada.wait_for("ready", timeout_s=5)
            expect(ada.page.locator("#answer-a")).to_have_text(long.text.strip())
            expect(ada.page.locator("#do-rest")).to_be_hidden()
