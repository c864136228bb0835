"""The battle page as a person uses it, in a real browser."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.person import person
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import Served, page_of, served_by

pytestmark = pytest.mark.browser

QUICK = Behaviour(text="All is **well**. " * 12)
SLOW = Behaviour(text="A sentence that goes on for a while. " * 30, chunk_size=12, delay_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({"zanzibar": QUICK, "quagmire": QUICK}) as server:
        yield server


@pytest.fixture(scope="module")
def arena(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("arena")
    with served_by(server, folder, page=True, characters_per_s=1000) as served:
        yield served


@pytest.fixture(autouse=True)
def well(server: FaultyServer) -> None:
    behave(server, QUICK, QUICK)


def behave(server: FaultyServer, one: Behaviour, other: Behaviour) -> None:
    server.behaviours.update({"zanzibar": one, "quagmire": other})


def votes(served: Served, battle_id: str) -> int:
    query = "SELECT count(*) FROM vote JOIN battle ON battle.id = battle_id WHERE public_id = ?"
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        return int(connection.execute(query, (battle_id,)).fetchone()[0])


def test_a_battle_is_voted_by_mouse_and_revealed(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        assert "All is well." in ada.text("#answer-a")
        assert "All is well." in ada.text("#answer-b")
        assert ada.text("#name-a") == ada.text("#name-b") == ""
        ada.cast("model_b")
        assert {ada.text("#name-a"), ada.text("#name-b")} == {"Name zanzibar", "Name quagmire"}
        facts = [ada.text(f"#facts-{side}") for side in "ab"]
        assert all(one.endswith(" s to first token · 11 tokens") for one in facts)
        assert ada.text("#hint") == f"Saved. Your vote: {ada.text('#name-b')} was better."
        assert ada.api()["vote"]["outcome"] == "model_b"
        ada.page.goto(f"{arena.url}/votes")
        assert "B was better" in ada.text("main")
        assert ada.complaints == []


def test_a_tie_is_marked_as_a_choice_of_both(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.cast("tie")
        for side in "ab":
            expect(ada.page.locator(f"#pane-{side} .chosen")).to_have_text("✓ a tie")
            expect(ada.page.locator(f"#pane-{side}")).to_have_css("outline-style", "solid")


def test_an_answer_is_copied_as_it_was_written_and_shown_in_full_width(
    chromium: Browser, arena: Served
) -> None:
    with person(chromium, arena, permissions=["clipboard-read"]) as ada:
        ada.play()
        ada.page.locator("html:not([data-quiet])").wait_for(state="attached")
        ada.page.get_by_role("button", name="Copy answer B").click()
        expect(ada.page.locator("#live")).to_have_text("Copied")
        assert ada.page.evaluate("navigator.clipboard.readText()") == QUICK.text
        wide = ada.page.get_by_role("button", name="Wide view of B")
        wide.click()
        expect(ada.page.locator("#pane-a")).to_be_hidden()
        expect(wide).to_have_attribute("aria-pressed", "true")
        wide.click()
        expect(ada.page.locator("#pane-a")).to_be_visible()


def test_keys_vote_on_the_vote_buttons_alone(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.prompt.focus()
        ada.prompt.press("1")
        ada.page.wait_for_timeout(300)
        assert ada.prompt.input_value() == "1"
        assert ada.page.locator("html[data-state=ready]").count() == 1
        assert votes(arena, ada.battle_id) == 0
        ada.prompt.press("Shift+Tab")
        expect(ada.page.locator("#vote-model_b")).to_be_focused()
        ada.page.keyboard.press("2")
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "tie"


@pytest.mark.slow
def test_the_other_keys_do_what_the_sheet_says(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    endless = replace(SLOW, text=20 * SLOW.text)
    behave(server, endless, endless)
    with person(chromium, arena) as ada:
        ada.arrive()
        expect(ada.prompt).to_be_focused()
        ada.ask()
        ada.page.locator("html[data-a=writing][data-b=writing]").wait_for(state="attached")
        ada.page.get_by_role("button", name="Keys").click()
        expect(ada.page.locator("#help")).to_be_visible()
        ada.page.keyboard.press("Escape")
        expect(ada.page.locator("#help")).not_to_be_visible()
        ada.vote_by_key("1")
        expect(ada.page.locator("#note")).to_contain_text("Press Esc to stop them, then vote")
        ada.page.keyboard.press("Escape")
        ada.wait_for("ready")
        assert "Stopped" in ada.text("#hint")
        ada.page.locator("html:not([data-quiet])").wait_for(state="attached")
        ada.page.locator("#scroll-a").focus()
        ada.page.keyboard.press("Escape")
        expect(ada.page.locator("#votes")).to_be_focused()
        ada.page.keyboard.press("3")
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "both_bad"


@pytest.mark.slow
def test_a_reload_mid_stream_goes_on_and_finishes(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    behave(server, SLOW, SLOW)
    with person(chromium, arena) as ada:
        ada.play(until="streaming")
        battle_id = ada.battle_id
        ada.page.reload()
        ada.wait_for("streaming")
        assert ada.battle_id == battle_id
        ada.wait_for("ready")
        assert ada.text("#answer-a").strip() == SLOW.text.strip()
        assert ada.text("#answer-b").strip() == SLOW.text.strip()
        assert "Why is the sky blue?" in ada.text("#asked")
        ada.cast("model_a")
        ada.page.reload()
        expect(ada.page.locator("body")).to_contain_text("Name zanzibar")
        expect(ada.page.locator("body")).to_contain_text("Name quagmire")


def test_a_second_vote_is_refused(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        twin = ada.context.new_page()
        twin.goto(ada.page.url)
        twin.locator("html[data-state=ready]").wait_for(state="attached")
        expect(twin.locator("#answer-a")).to_contain_text("All is well.")
        twin.locator("#first").wait_for(state="detached")
        ada.cast("model_a")
        twin.locator("#vote-model_b").click()
        expect(twin.locator("#note")).to_contain_text("already voted on this battle: A was better")
        twin.locator("html[data-state=voted]").wait_for(state="attached")
        assert twin.locator("html[data-choice=model_a]").count() == 1
        assert votes(arena, ada.battle_id) == 1
        assert ada.api()["vote"]["outcome"] == "model_a"


def test_two_browsers_cannot_see_each_other_s_battle(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada, person(chromium, arena) as bob:
        ada.play("Ada asks this")
        bob.arrive(f"?b={ada.battle_id}")
        bob.wait_for("missing")
        assert "no such battle" in bob.text("#hint")
        assert "Ada asks this" not in bob.page.content()
        assert "All is" not in bob.text("#panes")


def test_a_vote_without_a_network_is_kept_and_saved_once(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.page.wait_for_timeout(800)
        ada.context.set_offline(True)
        ada.vote("model_a")
        ada.wait_for("saving")
        expect(ada.page.locator("#note")).to_have_text(
            "Your vote is not saved yet. We are trying again."
        )
        assert votes(arena, ada.battle_id) == 0
        ada.context.set_offline(False)
        ada.wait_for("voted")
        assert votes(arena, ada.battle_id) == 1
        assert ada.text("#name-a").startswith("Name ")


@pytest.mark.parametrize("status", [200, 403, 401, 408])
def test_a_vote_that_a_proxy_answered_is_kept_and_saved(
    chromium: Browser, arena: Served, status: int
) -> None:
    body, proxied = "{}" if status in (401, 408) else "<p>Sign in", iter([True])

    def by_proxy_once(route: Route) -> None:
        route.fulfill(status=status, body=body) if next(proxied, False) else route.continue_()

    with person(chromium, arena) as ada:
        ada.play()
        ada.context.route(re.compile("/vote[?]"), by_proxy_once)
        ada.cast("model_a")
        assert votes(arena, ada.battle_id) == 1


def test_a_vote_that_was_not_saved_survives_a_reload(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.context.route(re.compile("/vote[?]"), lambda route: route.abort())
        ada.vote("both_bad")
        ada.wait_for("saving")
        ada.context.unroute(re.compile("/vote[?]"))
        ada.page.reload()
        ada.wait_for("voted")
        assert ada.api()["vote"]["outcome"] == "both_bad"
        assert votes(arena, ada.battle_id) == 1


def test_a_skip_reveals_nothing(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena) as ada:
        ada.play()
        ada.cast("skip")
        assert ada.text("#name-a") == ada.text("#name-b") == ""
        assert "Name " not in ada.page.content()


def test_a_stream_lost_on_the_way_is_mended_from_the_api(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    behave(server, SLOW, SLOW)
    with person(chromium, arena) as ada:
        ada.play(until="streaming")
        ada.context.set_offline(True)
        expect(ada.page.locator("#note")).to_contain_text("cannot reach")
        ada.context.set_offline(False)
        ada.wait_for("ready")
        expect(ada.page.locator("#answer-a")).to_have_text(SLOW.text.strip())
        expect(ada.page.locator("#answer-b")).to_have_text(SLOW.text.strip())


def test_what_a_model_writes_fetches_nothing_and_runs_nothing(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    hostile = Behaviour(
        text=(
            "![x](http://evil.example/a.png) "
            "<img src='http://evil.example/b.png' onerror='window.bad=1'>"
            '<script>window.bad=1</script><b style="background:url(http://evil.example/c)">b</b>'
            "<iframe src='http://evil.example/d'></iframe> [link](javascript:window.bad=1) "
            "<style>body{background:url(http://evil.example/e)}</style> done"
        )
    )
    behave(server, hostile, hostile)
    with person(chromium, arena) as ada:
        ada.play("<img src=http://evil.example/f onerror='window.bad=1'> **bold** `code`")
        ada.page.wait_for_timeout(500)
        assert "done" in ada.text("#answer-a")
        assert "<img src=http://evil.example/f" in ada.text("#asked")
        assert [
            url for url in ada.asked if not url.startswith((arena.url, "data:", "blob:"))
        ] == []
        assert ada.page.locator("html[data-bad]").count() == 0
        assert (
            ada.page.locator("#panes img, #panes iframe, #panes script, #panes style").count() == 0
        )


def test_the_page_asks_for_nothing_outside_and_keeps_still(
    chromium: Browser, arena: Served, server: FaultyServer
) -> None:
    behave(server, SLOW, SLOW)
    with person(chromium, arena, viewport={"width": 1280, "height": 800}) as ada:
        ada.play(until="streaming")
        votes, panes = ada.page.locator("#votes"), ada.page.locator("#panes")
        before = votes.bounding_box(), panes.bounding_box()
        ada.wait_for("ready")
        assert (votes.bounding_box(), panes.bounding_box()) == before
        ada.cast("tie")
        assert panes.bounding_box() == before[1]
        assert all(url.startswith((arena.url, "data:", "blob:")) for url in ada.asked)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["/", "/leaderboard", "/value", "/votes", "/method", "/nothing"])
def test_a_script_written_into_a_page_does_not_run(
    chromium: Browser, arena: Served, path: str
) -> None:
    with person(chromium, arena) as ada:
        answer = ada.page.goto(arena.url + path)
        assert answer is not None
        policy = answer.headers["content-security-policy"].split("; ")
        assert "script-src 'self'" in policy
        if path == "/":
            ada.prompt.wait_for()
        refused = ada.page.evaluate(
            """async () => {
                const refused = new Promise((resolve) => {
                    document.addEventListener("securitypolicyviolation", resolve);
                });
                const script = document.createElement("script");
                script.textContent = "window.bad = 1";
                document.body.append(script);
                const { violatedDirective, blockedURI } = await refused;
                return [violatedDirective, blockedURI, window.bad === undefined];
            }"""
        )
        assert refused == ["script-src-elem", "inline", True]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["/leaderboard", "/value", "/votes", "/method"])
def test_reading_pages_need_no_script(chromium: Browser, arena: Served, path: str) -> None:
    with person(chromium, arena, java_script_enabled=False) as ada:
        ada.page.goto(arena.url + path)
        assert ada.page.locator("h1").count() == 1
        links = ada.page.locator(".site-head nav a")
        assert links.all_inner_texts() == ["Battle", "Leaderboard", "My battles", "Method"]


def test_on_a_phone_the_panes_are_tabs(chromium: Browser, arena: Served) -> None:
    with person(chromium, arena, viewport={"width": 390, "height": 844}) as ada:
        ada.play()
        width = ada.page.evaluate_handle("document.documentElement").evaluate("e => e.scrollWidth")
        assert width == 390, "nothing makes the page scroll sideways"
        ada.page.locator("#tab-b").click()
        expect(ada.page.locator("#tab-b")).to_have_attribute("aria-selected", "true")
        ada.cast("model_a")
        assert "Name " in ada.text("#tab-a")


def test_recordings_offer_their_prompts_and_refuse_others(
    chromium: Browser, tmp_path: Path
) -> None:
    with recordings(tmp_path) as served, person(chromium, served) as ada:
        ada.arrive()
        ada.ask("Something else")
        expect(ada.page.locator("#note")).to_contain_text("Only recorded prompts")
        assert ada.battle_id == ""
        ada.page.locator("[data-ask]", has_text="Say yes").first.click()
        ada.wait_for("ready")
        assert {ada.text("#answer-a"), ada.text("#answer-b")} == {"Yes.", "Yes, sir."}


def recordings(folder: Path) -> AbstractContextManager[Served]:
    tables = []
    for name, answer in (("one", "Yes."), ("two", "Yes, sir.")):
        lines = [f'{{"prompt": "Say yes", "response": "{answer}"}}']
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
        tables.append(
            f'[[models]]\nid = "{name}"\nname = "{name}"\n'
            f'endpoint = "recorded://f"\nrecording = "{name}.jsonl"'
        )
    (folder / "roster.toml").write_text("\n".join(tables))
    return page_of(folder, folder / "roster.toml")
