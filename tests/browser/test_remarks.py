"""Reasons beside a vote, by tap and by key, in a real browser."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, FloatRect, expect

from tests.browser.person import Person, person
from tests.faulty_server import Behaviour, faulty_server
from tests.process import until
from tests.serving import Served, served_by

pytestmark = pytest.mark.browser

NAMES = ("zanzibar", "quagmire")


@pytest.fixture(scope="module")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """Two arenas: one asks after the names, one before them."""
    text = Behaviour(text="The first answer. " * 12)
    with faulty_server(dict.fromkeys(NAMES, text)) as server, ExitStack() as stack:
        served = {}
        for when in ("after", "before"):
            folder = tmp_path_factory.mktemp(when)
            page = served_by(server, folder, page=True, characters_per_s=5000, reasons=when)
            served[when] = stack.enter_context(page)
        yield served


def vote(ada: Person) -> None:
    ada.play()
    ada.vote_by_key("1")
    ada.wait_for("voted")


def open_why(ada: Person) -> None:
    """Open "Why?" by key: the focus is on its first reason then."""
    ada.page.locator("#why summary").focus()
    expect(ada.page.locator("html[data-quiet]")).to_have_count(0)
    ada.page.keyboard.press("Enter")


def press(ada: Person, selector: str) -> None:
    """Press a button by key, once it reacts."""
    expect(ada.page.locator("html[data-quiet]")).to_have_count(0)
    ada.page.locator(selector).press("Space")


def saved(ada: Person) -> dict[str, object]:
    """Give what is saved once all is sent."""
    expect(ada.page.locator("#live")).to_have_text("Remarks saved.")
    remarks: dict[str, object] = ada.api()["remarks"]
    return remarks


def test_reasons_confidence_and_intent_are_a_tap_or_a_key_each_and_a_comment_a_line(
    chromium: Browser, arenas: dict[str, Served]
) -> None:
    with person(chromium, arenas["after"]) as ada:
        vote(ada)
        expect(ada.page.locator("#name-a")).not_to_be_empty()
        open_why(ada)
        expect(ada.page.locator("[name=reasons_a][value=useful]")).to_be_focused()
        press(ada, ":focus")
        for _ in range(2):  # the next one, and taken back
            ada.page.keyboard.press("ArrowRight")
            press(ada, ":focus")
            press(ada, ":focus")
        press(ada, "[name=reasons_b][value=incorrect]")
        press(ada, "[name=reasons_b][value=superficial]")
        press(ada, "[name=confidence][value='3']")
        press(ada, "[name=intent][value=asking]")
        ada.page.keyboard.type("gnr 1234")
        ada.page.keyboard.press("Enter")
        expected = {
            "reasons_a": ["useful"],
            "reasons_b": ["incorrect", "superficial"],
            "comment": "gnr 1234",
            "confidence": 3,
            "intent": "asking",
            "before_reveal": False,
        }
        until(lambda: saved(ada) == expected)
        ada.arrive(f"?b={ada.battle_id}")
        ada.wait_for("voted")
        pressed = ada.page.locator("#remarks :checked")
        expect(pressed).to_have_count(5)
        expect(ada.page.locator("#comment")).to_have_value("gnr 1234")
        assert ada.complaints == []


@pytest.mark.sampled(7)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("size", [(360, 640), (390, 844), (820, 1180), (1280, 800)], ids=str)
def test_why_is_on_the_screen_as_a_whole_and_so_is_the_answer(
    chromium: Browser, arenas: dict[str, Served], size: tuple[int, int], language: str
) -> None:
    screen = {"viewport": {"width": size[0], "height": size[1]}, "locale": language}
    with person(chromium, arenas["after"], **screen) as ada:
        vote(ada)
        head, asked = box_of(ada, ".site-head"), box_of(ada, "#asked")
        assert asked["y"] - head["y"] - head["height"] >= 8
        open_why(ada)
        row = box_of(ada, "#why")
        assert row["x"] >= 0
        assert row["x"] + row["width"] <= size[0]
        for control in ada.page.locator(
            "#why :is(summary, fieldset, #comment):visible, .after > :is(button, a):visible"
        ).all():
            box = control.bounding_box()
            assert box is not None
            assert box["x"] >= row["x"]
            assert box["x"] + box["width"] <= row["x"] + row["width"]
        comment = box_of(ada, "#comment")
        assert comment["width"] >= 200
        assert row["y"] <= comment["y"]
        assert comment["y"] + comment["height"] <= row["y"] + row["height"]
        assert box_of(ada, "#scroll-a")["height"] >= 100
        assert ada.page.evaluate("document.documentElement.scrollWidth") == size[0]


def box_of(ada: Person, selector: str) -> FloatRect:
    box = ada.page.locator(selector).bounding_box()
    assert box is not None
    return box


def test_remarks_that_are_not_saved_are_an_error_and_can_be_sent_again(
    chromium: Browser, arenas: dict[str, Served]
) -> None:
    with person(chromium, arenas["after"]) as ada:
        vote(ada)
        open_why(ada)
        ada.page.route(re.compile("/remarks[?]"), lambda route: route.fulfill(status=503, json={}))
        press(ada, "[name=reasons_b][value=useful]")
        expect(ada.page.locator("#note")).to_contain_text("Your vote is saved, but your feedback")
        ada.page.unroute(re.compile("/remarks[?]"))
        assert ada.api()["remarks"] is None
        ada.page.get_by_role("button", name="Send again").click()
        expect(ada.page.locator("#note")).to_be_empty()
        assert saved(ada)["reasons_b"] == ["useful"]


@pytest.mark.slow
def test_where_reasons_come_first_a_reload_keeps_the_vote_and_enter_shows_the_names(
    chromium: Browser, arenas: dict[str, Served]
) -> None:
    with person(chromium, arenas["before"]) as ada:
        vote(ada)
        expect(ada.page.locator("#hint")).to_contain_text("A was better. Give reasons if you like")
        ada.page.reload()
        ada.wait_for("voted")
        expect(ada.page.locator("html[data-names=withheld]")).to_be_attached()
        assert not any(name in ada.page.content() for name in NAMES)
        expect(ada.page.locator("#why .intent")).to_be_hidden()
        press(ada, "[name=reasons_a][value=useful]")
        ada.page.locator(
            "label", has=ada.page.locator("[name=reasons_b][value=incorrect]")
        ).click()
        assert ada.api()["remarks"] is None
        ada.page.keyboard.press("Enter")
        expect(ada.page.locator("#name-a")).to_contain_text("Name ")
        expect(ada.page.locator(".reasons").first).to_be_hidden()
        press(ada, "[name=intent][value=quizzing]")
        remarks = saved(ada)
        assert (remarks["reasons_a"], remarks["reasons_b"]) == (["useful"], ["incorrect"])
        assert (remarks["intent"], remarks["before_reveal"]) == ("quizzing", True)
        assert ada.complaints == []


@pytest.mark.slow
def test_a_stranger_to_the_question_goes_on_without_a_word(
    chromium: Browser, arenas: dict[str, Served]
) -> None:
    with person(chromium, arenas["before"]) as ada:
        vote(ada)
        ada.page.get_by_role("button", name="Show the names").click()
        expect(ada.page.locator("#name-b")).to_contain_text("Name ")
        assert ada.api()["vote"]["models"]
        ada.page.locator("#do-new").click()
        ada.wait_for("empty")
