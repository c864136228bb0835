"""Keys and taps that nobody meant: sentences typed beside the prompt, double taps, held keys."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.person import Person, person
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, page_of, quick_arena, write_roster
from tests.studies import planned, write_study

pytestmark = pytest.mark.browser

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
SCREENS = pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["390", "1280"])
INTERVALS_S = (0.12, 0.2, 0.3, 0.5)
"""Between two taps of one finger."""
VOTES = ("model_a", "tie", "both_bad", "model_b")
SENTENCE = "explain that again"
QUICK = Behaviour(text="All is well, and it goes on for a while. " * 2)
LONG = Behaviour(text=QUICK.text * 400, delay_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server(dict.fromkeys("xy", QUICK)) as server:
        yield server


@pytest.fixture(autouse=True)
def well(server: FaultyServer) -> None:
    server.behaviours.update(dict.fromkeys("xy", QUICK))


@pytest.fixture(scope="module")
def arenas(
    server: FaultyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    """Two arenas: one asks for reasons after the names, one before them."""
    after, before = (tmp_path_factory.mktemp(when) for when in ("after", "before"))
    roster = write_roster(after / "roster.toml", server, "x", "y", characters_per_s=50_000)
    pace: dict[str, Any] = {"characters_per_s": 2000, "running_per_voter": 60}
    with (
        page_of(after, roster, **pace) as one,
        page_of(before, roster, reasons="before", **pace) as other,
    ):
        yield {"after": one, "before": other}


@pytest.fixture
def arena(arenas: dict[str, Served]) -> Served:
    return arenas["after"]


def stored(served: Served) -> dict[str, list[Any]]:
    """Give every battle, vote and remark that is in the database."""
    return {
        "battles": read(served, "SELECT public_id FROM battle ORDER BY id"),
        "votes": read(served, "SELECT outcome FROM vote ORDER BY battle_id"),
        "remarks": read(served, "SELECT * FROM vote_remark"),
    }


def read(served: Served, query: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        return connection.execute(query, values).fetchall()


def play(ada: Person) -> None:
    """Ask, and wait until a vote can be cast by hand."""
    ada.play()
    rested(ada)


def rested(ada: Person) -> None:
    """Wait until the controls react."""
    ada.page.locator("html:not([data-quiet])").wait_for(state="attached")


def middle(control: Locator, along: float = 0.5) -> tuple[float, float]:
    """Give the middle of a control, or a point at a share of its width."""
    box = control.bounding_box()
    assert box is not None
    return box["x"] + box["width"] * along, box["y"] + box["height"] / 2


def press_at(ada: Person, at: tuple[float, float], screen: dict[str, Any]) -> None:
    """Touch or click a point, whatever is there."""
    if screen is PHONE:
        ada.page.touchscreen.tap(*at)
    else:
        ada.page.mouse.click(*at)


@contextmanager
def standing(page: Page) -> Iterator[None]:
    """Let no time pass in the page but what the test lets pass, however busy the machine is."""
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 10)
    yield
    page.clock.resume()


def press_twice(
    ada: Person, control: str, interval_s: float, screen: dict[str, Any], along: float = 0.5
) -> None:
    at = middle(ada.page.locator(control), along)
    with standing(ada.page):
        press_at(ada, at, screen)
        ada.page.wait_for_timeout(1000 * interval_s)  # in which the arena may answer
        ada.page.clock.run_for(round(1000 * interval_s))
        press_at(ada, at, screen)


def press_twice_and_leave(
    ada: Person, control: str, interval_s: float, screen: dict[str, Any]
) -> None:
    """Press what leads to another page, so that the second may be on either."""
    at = middle(ada.page.locator(control))
    press_again = finger(ada.page) if screen is PHONE else ada.page.mouse.click
    press_at(ada, at, screen)
    ada.page.wait_for_timeout(1000 * interval_s)
    press_again(*at)


def finger(page: Page) -> Callable[[float, float], None]:
    """Touch without waiting for an answer: that of a page that is being left may never come."""
    browser = page.context.browser
    assert browser is not None
    target = page.context.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]
    session = browser.new_browser_cdp_session()
    attach = {"targetId": target["targetId"], "flatten": False}
    attached = session.send("Target.attachToTarget", attach)["sessionId"]

    def tap(x: float, y: float) -> None:
        for kind, points in ("touchStart", [{"x": x, "y": y}]), ("touchEnd", []):
            params = {"type": kind, "touchPoints": points}
            message = {"id": 1, "method": "Input.dispatchTouchEvent", "params": params}
            given = {"sessionId": attached, "message": json.dumps(message)}
            session.send("Target.sendMessageToTarget", given)

    return tap


def is_revealed(ada: Person) -> None:
    ada.wait_for("voted")
    rested(ada)
    assert ada.page.locator("html[data-state=voted]").count() == 1
    assert {ada.text("#name-a"), ada.text("#name-b")} == {"Name x", "Name y"}


@pytest.mark.sampled(2)
@SCREENS
def test_a_sentence_typed_after_the_vote_is_in_the_prompt_and_stores_nothing(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        ada.page.locator("#vote-model_a").click()
        ada.page.keyboard.type(SENTENCE)  # at once: the vote is under way
        is_revealed(ada)
        before = stored(arena)
        ada.page.keyboard.type(SENTENCE)
        ada.page.wait_for_timeout(300)  # what is sent by itself is sent
        assert stored(arena) == before
        assert before["battles"][-1] == (ada.battle_id,)
        assert ada.api()["remarks"] is None
        is_revealed(ada)
        if screen is DESKTOP:
            expect(ada.prompt).to_have_value(2 * SENTENCE)
        for place in ("body", "#panes", "#scroll-a", "#do-new", "#why summary"):
            types_beside(ada, place, "Explain that again, N or R or G? 1 2 3 4 7 8 9 y/x: why?")
        ada.page.wait_for_timeout(300)  # what is sent by itself is sent
        assert stored(arena) == before
        is_revealed(ada)
        expect(ada.page.locator("#why[open]")).to_have_count(0)


def types_beside(ada: Person, place: str, sentence: str) -> None:
    """Type while the focus is elsewhere: it is in the prompt, and no sheet has opened."""
    ada.prompt.fill("")
    ada.prompt.blur()
    ada.page.locator(place).focus()
    ada.page.keyboard.type(sentence)
    expect(ada.prompt).to_have_value(sentence)
    expect(ada.page.locator("dialog[open]")).to_have_count(0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("screen", "opened"),
    [(DESKTOP, "by key"), (PHONE, "by pointer"), (DESKTOP, "by pointer")],
    ids=["1280-by key", "390-by pointer", "1280-by pointer"],
)
def test_a_sentence_typed_in_why_is_the_comment_and_stores_no_reason(
    chromium: Browser, arena: Served, screen: dict[str, Any], opened: str
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        ada.vote("model_b")
        is_revealed(ada)
        if opened == "by key":
            ada.page.locator("#why summary").press("Enter")
            expect(ada.page.locator("[name=reasons_a][value=useful]")).to_be_focused()
        else:
            press_at(ada, middle(ada.page.locator("#why summary")), screen)
        expect(ada.page.locator("#why[open]")).to_have_count(1)
        ada.page.keyboard.type("quite wrong: 2 plus 2 is 4, 7 8 9")
        expect(ada.page.locator("#comment")).to_have_value("quite wrong: 2 plus 2 is 4, 7 8 9")
        expect(ada.page.locator("#remarks :checked")).to_have_count(0)
        ada.page.keyboard.press("Enter")
        expect(ada.page.locator("#live")).to_have_text("Remarks saved.")
        assert {name: one for name, one in ada.api()["remarks"].items() if one} == {
            "comment": "quite wrong: 2 plus 2 is 4, 7 8 9"
        }
        is_revealed(ada)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("when", ["before", "after"])
def test_reasons_are_pressed_and_no_letter_is_one(
    chromium: Browser, arenas: dict[str, Served], when: str
) -> None:
    with person(chromium, arenas[when], **DESKTOP) as ada:
        play(ada)
        ada.cast("model_b")
        ada.page.keyboard.type("qu")
        why, opened = ada.page.locator("#why summary"), ada.page.locator("#why[open]")
        if when == "before":
            expect(opened).to_have_count(1)
            why.click()
        expect(opened).to_have_count(0)
        rested(ada)
        why.press("Enter")
        rested(ada)
        expect(ada.page.locator("[name=reasons_a][value=useful]")).to_be_focused()
        ada.page.keyboard.press("Space")
        ada.page.locator("[name=reasons_b][value=creative]").click()
        expect(ada.prompt).to_be_focused()
        ada.page.keyboard.type(SENTENCE)
        expect(ada.page.locator(".reasons :checked")).to_have_count(2)
        why.focus()
        ada.page.keyboard.press("Tab")
        ada.page.keyboard.press("Escape")
        expect(opened).to_have_count(0)
        expect(why).to_be_focused()
        expect(ada.prompt).to_have_value("qu" + SENTENCE)


def test_the_vote_moves_the_focus_to_the_prompt_and_the_names_are_announced(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, **DESKTOP) as ada:
        for cast in ("click", "key", "skip"):
            play(ada)
            if cast == "key":
                ada.vote_by_key("1")
            else:
                ada.vote("skip" if cast == "skip" else "model_a")
            expect(ada.prompt).to_be_focused()
            ada.wait_for("skipped" if cast == "skip" else "voted")
            if cast != "skip":
                live = f"A is {ada.text('#name-a')}, B is {ada.text('#name-b')}."
                expect(ada.page.locator("#live")).to_contain_text("Saved. Your vote: ")
                expect(ada.page.locator("#live")).to_contain_text(live)
            expect(ada.prompt).to_be_focused()
            expect(ada.prompt).to_have_value("")


def test_a_touch_does_not_open_the_keyboard_over_the_names(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, **PHONE) as ada:
        play(ada)
        ada.page.locator("#vote-model_b").tap()
        is_revealed(ada)
        expect(ada.page.locator("#panes")).to_be_focused()
        expect(ada.page.locator("#live")).to_contain_text("A is Name ")


@pytest.mark.sampled(2, 1)
@SCREENS
def test_a_double_tap_on_a_vote_keeps_the_names(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    alongs = (0.1, 0.5, 0.9, 0.5) if screen is PHONE else (0.9, 0.1, 0.5, 0.9)
    with person(chromium, arena, **screen) as ada:
        for interval_s, outcome, along in zip(INTERVALS_S, VOTES, alongs, strict=True):
            play(ada)
            press_twice(ada, f"#vote-{outcome}", interval_s, screen, along)
            is_revealed(ada)
            assert ada.page.locator(".after [aria-pressed=true]").count() == 0
            assert ada.page.locator("[data-do=copy]").inner_text() == "Copy link"
            assert ada.api()["vote"]["outcome"] == outcome
            assert ada.api()["remarks"] is None
            assert stored(arena)["battles"][-1] == (ada.battle_id,)


@pytest.mark.sampled(2)
@SCREENS
def test_new_battle_is_where_no_vote_button_was(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        places = [ada.page.locator(f"#vote-{outcome}").bounding_box() for outcome in VOTES]
        ada.vote("model_a")
        is_revealed(ada)
        new = ada.page.get_by_role("button", name="New battle").bounding_box()
        assert new is not None
        for place in places:
            assert place is not None
            beside = (
                new["x"] >= place["x"] + place["width"] or place["x"] >= new["x"] + new["width"]
            )
            below = new["y"] >= place["y"] + place["height"]
            assert beside or below, (new, place)


@pytest.mark.slow
@pytest.mark.sampled(2, 1)
@SCREENS
def test_many_taps_and_a_long_press_after_the_vote_press_nothing(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        vote = middle(ada.page.locator("#vote-model_b"))
        with standing(ada.page):
            for _ in range(6):
                press_at(ada, vote, screen)
                ada.page.clock.run_for(200)
        is_revealed(ada)
        assert ada.page.locator("[data-do=go-on][aria-pressed=true]").count() == 0
        play(ada)
        vote, new = (middle(ada.page.locator(f"#{name}")) for name in ("vote-model_b", "do-new"))
        with standing(ada.page):
            press_at(ada, vote, screen)
            ada.page.mouse.move(*new)
            ada.page.mouse.down()
            ada.page.clock.run_for(900)  # held for longer than the controls rest
            ada.page.mouse.up()
        is_revealed(ada)


def test_a_key_that_is_held_or_pressed_twice_votes_and_does_nothing_else(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, **DESKTOP) as ada:
        for key, control in (("1", "#vote-tie"), ("Enter", "#vote-tie"), (" ", "#vote-tie")):
            play(ada)
            before = stored(arena)["battles"]
            ada.prompt.fill("a draft")
            ada.page.locator(control).focus()
            with standing(ada.page):
                ada.page.keyboard.down(key)
                for _ in range(8):
                    ada.page.clock.run_for(30)
                    ada.page.keyboard.down(key)  # repeats
                ada.page.keyboard.up(key)
                ada.wait_for("voted")
                ada.page.keyboard.press(key)
            is_revealed(ada)
            assert stored(arena)["battles"] == before
            expect(ada.prompt).to_be_focused()
            expect(ada.prompt).to_have_value("a draft")


@pytest.mark.sampled(2)
@SCREENS
def test_a_sentence_typed_beside_the_prompt_before_the_vote_is_in_the_prompt(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        before = stored(arena)
        for place in ("body", "#panes", "#scroll-b", "#do-new", "#do-skip"):
            for sentence in ("2 plus 2?", "no, why 4 or 3", "regenerate it", "/1?"):
                types_beside(ada, place, sentence)
        ada.page.wait_for_timeout(300)  # what is sent by itself is sent
        assert stored(arena) == before
        assert attempts(arena, ada.battle_id) == 1
        assert ada.page.locator("html[data-state=ready]").count() == 1


@pytest.mark.slow
@pytest.mark.sampled(2, 1)
@SCREENS
def test_slow_typing_beside_the_prompt_votes_no_more_than_quick_typing(
    chromium: Browser, arena: Served, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        before = stored(arena)
        press_at(ada, middle(ada.page.locator("#scroll-a")), screen)
        ada.page.keyboard.type("1 n", delay=900)
        expect(ada.prompt).to_have_value("1 n")
        assert stored(arena) == before


@pytest.mark.sampled(2)
@SCREENS
def test_a_pointer_leaves_no_focus_on_a_vote_button(
    chromium: Browser, arena: Served, server: FaultyServer, screen: dict[str, Any]
) -> None:
    server.behaviours.update(dict.fromkeys("xy", LONG))
    with person(chromium, arena, **screen) as ada:
        ada.arrive()
        ada.ask()
        ada.page.locator("html[data-a=writing][data-b=writing]").wait_for(state="attached")
        rested(ada)
        press_at(ada, middle(ada.page.locator("#vote-tie")), screen)  # too early
        expect(ada.page.locator("#note")).to_contain_text("Both are still writing.")
        ada.page.locator("#do-stop").click()
        ada.wait_for("ready")
        rested(ada)
        before = stored(arena)
        ada.page.mouse.move(*middle(ada.page.locator("#vote-tie")))
        ada.page.mouse.down()
        ada.page.mouse.move(*middle(ada.page.locator("#scroll-a")))
        ada.page.mouse.up()
        expect(ada.page.locator("#votes :focus")).to_have_count(0)
        ada.page.keyboard.type("2 plus 2 is 4")
        expect(ada.prompt).to_have_value("2 plus 2 is 4")
        assert stored(arena) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("key", "outcome"), list(zip("1234", VOTES, strict=True)))
def test_digits_vote_on_the_vote_buttons_where_keys_lead(
    chromium: Browser, arena: Served, key: str, outcome: str
) -> None:
    with person(chromium, arena, **DESKTOP) as ada:
        play(ada)
        if key in "12":
            ada.prompt.press("Shift+Tab")
            expect(ada.page.locator("#vote-model_b")).to_be_focused()
        else:
            ada.page.locator("#scroll-a").press("Escape")
            expect(ada.page.locator("#votes")).to_be_focused()
        for held in ("Control", "Alt", "Meta"):
            ada.page.keyboard.press(f"{held}+{key}")
        assert ada.page.locator("html[data-state=ready]").count() == 1
        ada.page.keyboard.press(key)
        is_revealed(ada)
        assert ada.api()["vote"]["outcome"] == outcome


def test_escape_that_comes_too_late_to_stop_the_answers_moves_no_focus(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, **DESKTOP) as ada:
        ada.arrive()
        ada.page.evaluate(ESCAPE_AT_ONCE)
        ada.ask(until="ready")
        expect(ada.page.locator("html[data-tried]")).to_be_attached()
        expect(ada.page.locator("#votes")).not_to_be_focused()


ESCAPE_AT_ONCE = """() => new MutationObserver((_, observer) => {
    if (document.documentElement.dataset.state !== "ready") return;
    observer.disconnect();
    queueMicrotask(() => {
        const key = { key: "Escape", code: "Escape", bubbles: true };
        document.getElementById("panes").dispatchEvent(new KeyboardEvent("keydown", key));
        document.documentElement.dataset.tried = "";
    });
}).observe(document.documentElement, { attributeFilter: ["data-state"] })"""
"""Have the page press Escape as soon as both answers have ended."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("screen", "interval_s"),
    [(PHONE, 0.12), (DESKTOP, 0.3), (PHONE, 0.5)],
    ids=["390-0.12", "1280-0.3", "390-0.5"],
)
def test_a_double_tap_on_any_other_control_does_one_thing(
    chromium: Browser, arena: Served, screen: dict[str, Any], interval_s: float
) -> None:
    with person(chromium, arena, **screen) as ada:
        play(ada)
        press_twice(ada, "#do-skip", interval_s, screen)
        ada.wait_for("skipped")
        rested(ada)
        assert ada.page.locator("html[data-state=skipped]").count() == 1

        before = stored(arena)
        press_twice(ada, "#do-new", interval_s, screen)
        ada.wait_for("empty")
        rested(ada)
        assert ada.page.locator("html[data-state=empty]").count() == 1
        assert stored(arena) == before

        ada.prompt.fill("And what about this?")
        press_twice(ada, "#send", interval_s, screen)
        ada.wait_for("ready")
        rested(ada)
        assert len(stored(arena)["battles"]) == len(before["battles"]) + 1
        assert stored(arena)["votes"] == before["votes"]

        press_twice(ada, "#do-regenerate", interval_s, screen)
        ada.wait_for("ready")
        rested(ada)
        assert attempts(arena, ada.battle_id) == 2
        assert stored(arena)["votes"] == before["votes"]


def attempts(served: Served, battle_id: str) -> int:
    """Count how often side A was asked."""
    query = (
        "SELECT count(*) FROM answer JOIN battle ON battle.id = battle_id "
        "WHERE public_id = ? AND side = 'a'"
    )
    return int(read(served, query, battle_id)[0][0])


@pytest.mark.sampled(2, 1)
@SCREENS
def test_a_double_tap_on_stop_asks_nobody_again(
    chromium: Browser, arena: Served, server: FaultyServer, screen: dict[str, Any]
) -> None:
    server.behaviours.update(dict.fromkeys("xy", LONG))
    with person(chromium, arena, **screen) as ada:
        for interval_s in (0.12, 0.5) if screen is PHONE else (0.2, 0.3):
            ada.arrive()
            ada.ask()
            ada.page.locator("html[data-a=writing][data-b=writing]").wait_for(state="attached")
            rested(ada)
            press_twice(ada, "#do-stop", interval_s, screen)
            ada.wait_for("ready")
            rested(ada)
            assert ada.page.locator("html[data-state=ready]").count() == 1
            assert attempts(arena, ada.battle_id) == 1


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("study")) as served:
        write_study(served.database, "pairs", planned(40), raters_per_item=9)
        yield served


def ratings(served: Served) -> list[Any]:
    return read(served, "SELECT choice, ranking, reasons, confidence, comment FROM study_rating")


def stop_clock(page: Page) -> None:
    """Let the time in which a page does not react end when the test says so, however busy."""
    page.clock.install(time=0)
    page.clock.pause_at(60_000)


def let_react(page: Page, control: str, *, scripts: bool = True) -> None:
    page.wait_for_load_state()
    if scripts:
        page.clock.run_for(1000)
    page.locator(control).click(trial=True)


@pytest.mark.sampled(4)
@SCREENS
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_double_tap_in_a_study_rates_no_item_unseen(
    chromium: Browser, study: Served, screen: dict[str, Any], scripts: bool
) -> None:
    with person(chromium, study, java_script_enabled=scripts, **screen) as ada:
        page = ada.page
        if scripts:
            stop_clock(page)
        page.goto(f"{study.url}/studies/pairs/rate")
        for n, interval_s in enumerate((0.12, 0.5) if screen is PHONE else (0.2, 0.3), 1):
            before = ratings(study)
            expect(page.get_by_text(f"Number {n} ")).to_be_visible()
            let_react(page, ".choice-b", scripts=scripts)
            press_twice_and_leave(ada, ".choice-b", interval_s, screen)
            expect(page.locator("#next")).to_be_visible()
            let_react(page, "#next", scripts=scripts)
            expect(page.get_by_text("Saved: B is better.")).to_be_visible()
            expect(page.locator("input:checked")).to_have_count(0)
            after = ratings(study)
            assert len(after) == len(before) + 1
            assert after[-1][2:4] == (None, None), "nothing is remarked"
            press_twice_and_leave(ada, "#next", interval_s, screen)
            expect(page.get_by_text(f"Number {n + 1} ")).to_be_visible()
            let_react(page, ".choice-b", scripts=scripts)
            assert ratings(study) == after


def test_a_key_of_a_study_pressed_twice_or_held_is_one_key(
    chromium: Browser, study: Served
) -> None:
    with person(chromium, study, **DESKTOP) as ada:
        page = ada.page
        stop_clock(page)
        page.goto(f"{study.url}/studies/pairs/rate")
        for n, key in enumerate(("1", "3", "Enter"), 1):
            expect(page.get_by_text(f"Number {n} ")).to_be_visible()
            let_react(page, ".choice-a")
            page.locator(".choice-a").focus()
            page.keyboard.down(key)
            page.keyboard.down(key)
            expect(page.get_by_text("Saved: ")).to_be_visible()
            page.wait_for_load_state()
            for _ in range(5):
                page.keyboard.down(key)
            page.keyboard.up(key)
            page.keyboard.press(key)
            let_react(page, "#next")
            expect(page.get_by_text("Saved: ")).to_be_visible()
            expect(page.locator("input:checked")).to_have_count(0)
            page.locator("#next").click()


@pytest.mark.sampled(2)
@SCREENS
def test_a_sentence_typed_after_a_choice_in_a_study_is_the_comment(
    chromium: Browser, study: Served, screen: dict[str, Any]
) -> None:
    sentence = "quite wrong: 2 plus 2 is 4, so 3 is fun"
    with person(chromium, study, **screen) as ada:
        page = ada.page
        page.goto(f"{study.url}/studies/pairs/rate")
        places = ("#next", "body") if screen is PHONE else ("#next", "[name=reasons-a]")
        for place in places:
            page.locator(".choice-b").click()
            expect(page.get_by_text("Saved: ")).to_be_visible()
            page.wait_for_load_state()  # its script runs
            page.locator("html:not([data-quiet])").wait_for(state="attached")
            page.locator(place).first.focus()
            page.keyboard.type(sentence)
            expect(page.locator("#comment")).to_have_value(sentence)
            expect(page.locator("input:checked")).to_have_count(0)
            page.locator("#next").click()
            expect(page.locator("#choose")).to_be_visible()
            assert ratings(study)[-1][2:] == (None, None, sentence)


def test_a_double_tap_on_my_battles_hides_a_battle_for_good(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, **PHONE) as ada:
        play(ada)
        ada.vote("tie")
        is_revealed(ada)
        ada.page.goto(f"{arena.url}/votes")
        ada.page.get_by_role("button", name="Hide from the public").click(trial=True)
        press_twice_and_leave(ada, ".hide button", 0.3, PHONE)
        show = ada.page.get_by_role("button", name="Show to the public")
        show.click(trial=True)
        expect(show).to_be_visible()
        press_twice_and_leave(ada, ".language button", 0.3, PHONE)
        ada.page.locator(".language button").click(trial=True)
        expect(ada.page.locator("html")).to_have_attribute("lang", "de")
