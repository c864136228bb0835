"""What pages of others can do, in a real browser, in the name of the arena's visitor: nothing."""

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from arena.guard.limits import COOKIE
from tests.browser.person import Person, person
from tests.faulty_server import Behaviour
from tests.serving import Served, page_by

pytestmark = pytest.mark.browser

NAME = "play.arena.localhost"
"""Chromium takes every name below localhost to this machine."""
SIBLING = pytest.param(NAME, "other.arena.localhost", id="sibling")
ANOTHER_PORT = pytest.param("127.0.0.1", "127.0.0.1", id="another port")

ASK = """async ({url, body}) => {
    const send = (mode, type) => fetch(url, {
        method: "POST", mode, credentials: "include", headers: {"content-type": type}, body,
    }).then((answer) => answer.status, () => "blocked");
    return [await send("cors", "application/json"), await send("no-cors", "text/plain")];
}"""
POST_FORM = """(url) => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: url, enctype: "text/plain"});
    document.body.append(form);
    form.submit();
}"""


class Blank(BaseHTTPRequestHandler):
    """Answers everything with an empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Another page</title><body>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def other_port() -> Iterator[int]:
    """Port of a site that is not the arena."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("others")
    with page_by(
        dict.fromkeys("xy", Behaviour(text="All is well. ")), folder, hosts=NAME
    ) as served:
        yield served


def called(arena: Served, name: str) -> Served:
    """The arena under another name."""
    return Served(arena.url.replace("127.0.0.1", name), arena.database)


def other_page(ada: Person, name: str, port: int) -> Page:
    page = ada.context.new_page()
    page.goto(f"http://{name}:{port}/")
    return page


def ask(page: Page, url: str, body: dict[str, Any]) -> list[int | str]:
    """Let a page post, as a call and as what needs no permission; gives what it learns."""
    statuses: list[int | str] = page.evaluate(ASK, {"url": url, "body": json.dumps(body)})
    return statuses


def count(arena: Served, table: str) -> int:
    with closing(sqlite3.connect(arena.database.removeprefix("sqlite:///"))) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def attempts(battle_id: str) -> dict[str, dict[str, Any]]:
    return {
        "/api/v1/battles": {"prompt": "Hi"},
        f"/api/v1/battles/{battle_id}/vote": {"outcome": "tie", "key": str(uuid.uuid4())},
        f"/api/v1/battles/{battle_id}/stop": {},
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "other"), [SIBLING, ANOTHER_PORT])
def test_another_page_neither_opens_a_battle_nor_votes(
    chromium: Browser, arena: Served, other_port: int, name: str, other: str
) -> None:
    with person(chromium, called(arena, name)) as ada:
        ada.play()
        battles, votes = count(arena, "battle"), count(arena, "vote")
        elsewhere = other_page(ada, other, other_port)
        tried = attempts(ada.battle_id).items()
        learnt = [ask(elsewhere, ada.url + path, body) for path, body in tried]
        assert ask(ada.page, f"{ada.url}/api/v1/battles", {"prompt": "Hi"})[0] == 201
        assert (count(arena, "battle"), count(arena, "vote")) == (battles + 1, votes)
        assert learnt == [["blocked", 0]] * len(tried)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [NAME, "127.0.0.1"])
def test_the_arena_s_own_page_does_what_another_page_cannot(
    chromium: Browser, arena: Served, name: str
) -> None:
    with person(chromium, called(arena, name)) as ada:
        ada.play()
        tried = attempts(ada.battle_id).items()
        statuses = [ask(ada.page, ada.url + path, body)[0] for path, body in tried]
    assert statuses == [201, 200, 200]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["/mix", "/api/v1/battles"])
def test_a_form_of_a_foreign_page_leaves_the_cookie_as_it_was(
    chromium: Browser, arena: Served, other_port: int, path: str
) -> None:
    with person(chromium, called(arena, NAME)) as ada:
        ada.arrive()
        before = ada.context.cookies(ada.url)
        assert [cookie["name"] for cookie in before] == [COOKIE]
        foreign = other_page(ada, "127.0.0.1", other_port)
        with foreign.expect_navigation(url=f"{ada.url}{path}"):
            foreign.evaluate(POST_FORM, ada.url + path)
        assert ada.context.cookies(ada.url) == before
        assert "Only the arena's own page" in foreign.locator("body").inner_text()


@pytest.mark.slow
def test_who_follows_a_link_of_a_foreign_page_can_battle(
    chromium: Browser, arena: Served, other_port: int
) -> None:
    with person(chromium, called(arena, NAME)) as ada:
        ada.page.goto(f"http://127.0.0.1:{other_port}/")
        ada.page.evaluate("(url) => { location.href = url }", f"{ada.url}/")
        ada.page.locator("#first").wait_for(state="detached")
        ada.ask(until="ready")
