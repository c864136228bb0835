"""A pair of an application in a page of its own, on another origin, in a real browser."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import APIResponse, Browser, Page, Request, Response, Route, expect

from arena.domain.vote import APPLICATIONS
from arena.store import blocks
from arena.store.store import Store
from arena.store.verify import verify
from tests.serving import Served, quick_arena
from tests.sources import Application, registered

pytestmark = pytest.mark.browser

SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}
LONG = (
    "Your parcel left the depot on Tuesday.\n\n1. Open **Orders**.\n2. Choose the parcel.\n\n"
    "```python\nprint(parcel.where())\n```\n\n| day | place |\n|---|---|\n| Tue | depot |\n"
)
HOSTILE = (
    "<img src=x onerror='window.struck = 1'><script>window.struck = 1</script>"
    "[go](javascript:window.struck=1) ![x](http://far.example/x.png) </div></template>"
)


class Host(BaseHTTPRequestHandler):
    """The application's server: a page with the script, and a pair that the query names."""

    arena: ClassVar[str] = ""
    pair: ClassVar[dict[str, str]] = {}
    policy: ClassVar[str] = ""
    language: ClassVar[str] = "en"

    def do_GET(self) -> None:
        pair = f'<arena-pair pair="{self.pair["pair"]}" key="{self.pair["key"]}"></arena-pair>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", self.policy)
        self.end_headers()
        page = (
            f'<!doctype html><html lang="{self.language}">'
            '<meta name="viewport" content="width=device-width">'
            "<title>Support</title>"
            "<style>:root { color-scheme: light dark; } div { color: red; }</style>"
            f"<main><h1>Support</h1><p>Where is my parcel?</p>{pair}</main>"
            f'<script src="{self.arena}/embed.js" defer></script>'
        )
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Site:
    """An arena, and an application whose pages are of another origin."""

    served: Served
    application: Application
    port: int

    def show(self, page: Page, name: str = "localhost", **changes: Any) -> str:
        """Open a page of the application with a new pair; gives the pair's id."""
        made = self.application.open_pair(**changes)
        assert made.status_code == 201, made.text
        Host.pair = made.json()
        page.goto(f"http://{name}:{self.port}/")
        return str(made.json()["pair"])

    def votes(self) -> dict[str, str]:
        """Read the votes in the log, by battle; one twice would be two rows."""
        with closing(Store(self.served.database)) as store:
            assert store.read(verify).problem is None
            columns = store.read(blocks.columns, APPLICATIONS)
        assert len(set(columns.values("battle"))) == len(columns.values("battle"))
        return dict(zip(columns.values("battle"), columns.values("winner"), strict=True))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        quick_arena(tmp_path_factory.mktemp("embed")) as served,
        ThreadingHTTPServer(("127.0.0.1", 0), Host) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Host.arena, port = served.url, server.server_port
        arena = served.url
        Host.policy = (
            f"default-src 'none'; style-src 'unsafe-inline' {arena}; script-src {arena}; "
            f"connect-src {arena}"
        )
        application = registered(served, origins=[f"http://localhost:{port}"], per_hour=10_000)
        yield Site(served, application, port)
        server.shutdown()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def buttons(page: Page) -> list[str]:
    return page.locator("arena-pair button").all_inner_texts()


def test_a_pair_is_shown_blind_voted_on_once_and_named_after_it(site: Site, page: Page) -> None:
    received: list[Response] = []
    page.on("response", lambda response: received.append(response))
    page.add_init_script(
        "addEventListener('arena-voted', (event) => { window.voted = event.detail; });"
    )
    pair = site.show(page)
    expect(page.get_by_role("group", name="Which answer is better?")).to_be_visible()
    assert buttons(page) == ["A is better", "Tie", "Both are bad", "B is better", "Skip"]
    seen = "".join(one.text() for one in received if one.url.endswith(pair))
    assert "on its way" in seen
    assert not [word for word in ("v7", "v8", "support~") if word in seen]
    page.get_by_role("button", name="A is better").dblclick()
    page.get_by_text("Saved. Your vote:").wait_for()
    names = page.locator("arena-pair .name").all_inner_texts()
    assert sorted(name.partition(": ")[2] for name in names) == ["v7", "v8"]
    assert page.evaluate("window.voted.outcome") == "model_a"
    assert site.votes()[pair] == "model_a"
    page.reload()
    expect(page.get_by_text("Saved. Your vote:")).to_be_visible()
    assert page.locator("arena-pair .name").all_inner_texts() == names
    assert page.context.cookies() == []


def test_a_page_of_another_origin_gets_nothing(site: Site, page: Page) -> None:
    answers: list[tuple[str, int]] = []
    page.on("response", lambda r: answers.append((r.url, r.status)))
    with page.expect_event("console", lambda line: "CORS" in line.text):
        pair = site.show(page, "127.0.0.1")
    expect(page.locator("arena-pair")).to_be_hidden()
    assert page.locator("arena-pair button").count() == 0
    body = page.evaluate(
        """async ([url, key]) => {
            const ask = (mode) => fetch(url, {method: "POST", mode, body: '{"outcome":"tie"}',
                credentials: "include", headers: mode === "cors" ? {authorization: key} : {}})
                .then((answer) => answer.status, () => "blocked");
            return [await ask("cors"), await ask("no-cors")];
        }""",
        [f"{site.served.url}/embed/pairs/{pair}/vote", f"Bearer {Host.pair['key']}"],
    )
    assert body == ["blocked", 0]
    assert pair not in site.votes()


def test_a_vote_whose_answer_is_lost_is_sent_again_and_counts_once(site: Site, page: Page) -> None:
    sent: list[Request] = []

    def lose(route: Route, request: Request) -> None:
        """Let the first vote through, and lose the answer to it."""
        if request.method != "POST":
            route.continue_()
            return
        sent.append(request)
        if len(sent) == 1:
            route.fetch()
            route.abort()
        elif len(sent) <= 3:
            route.fulfill(status=503 if len(sent) == 2 else 429, body="{}")
        else:
            route.continue_()

    page.route("**/vote", lose)
    pair = site.show(page)
    page.get_by_role("button", name="Tie").click()
    expect(page.get_by_text("We are trying again.")).to_be_visible()
    assert site.votes()[pair] == "tie"
    page.get_by_text("Saved. Your vote: a tie.").wait_for(timeout=10_000)
    assert len({(one.post_data, one.headers["authorization"]) for one in sent}) == 1
    assert site.votes()[pair] == "tie"


def vote_unsaved(site: Site, page: Page, button: str) -> str:
    """Vote while no vote reaches the arena, and leave the page; gives the pair's id."""
    page.route("**/vote", lambda route: route.abort())
    pair = site.show(page)
    page.get_by_role("button", name=button).click()
    expect(page.get_by_text("We are trying again.")).to_be_visible()
    page.goto("about:blank")  # it tries again no more
    page.unroute("**/vote")
    return pair


def test_a_vote_outlives_a_reload_before_it_was_saved(site: Site, page: Page) -> None:
    pair = vote_unsaved(site, page, "Both are bad")
    page.go_back()
    expect(page.get_by_text("Saved. Your vote: both were bad.")).to_be_visible()
    assert site.votes()[pair] == "both_bad"
    assert page.evaluate("localStorage.getItem('arena.pairs')") == "{}"


def test_a_vote_that_is_saved_while_its_pair_comes_is_shown(site: Site, page: Page) -> None:
    pair = vote_unsaved(site, page, "Tie")
    votes: list[Route] = []
    pairs: list[tuple[Route, APIResponse]] = []
    page.route("**/vote", lambda route: votes.append(route))  # one that it can mark
    page.route(f"**/embed/pairs/{pair}", lambda route: pairs.append((route, route.fetch())))
    page.go_back()
    while not (votes and pairs):
        page.wait_for_timeout(10)
    page.unroute("**/vote")
    with page.expect_response("**/vote") as answer:
        votes[0].continue_()
    assert answer.value.ok
    ((route, before),) = pairs
    assert before.json()["vote"] is None
    route.fulfill(response=before)
    expect(page.get_by_text("Saved. Your vote: a tie.")).to_be_visible()
    assert site.votes()[pair] == "tie"
    assert page.evaluate("localStorage.getItem('arena.pairs')") == "{}"


def test_a_vote_of_a_page_that_was_left_is_sent_by_the_next_one(site: Site, page: Page) -> None:
    left = vote_unsaved(site, page, "Tie")
    with page.expect_response(f"**/{left}/vote") as answer:
        site.show(page)
    assert answer.value.ok
    assert site.votes()[left] == "tie"


def test_keys_alone_are_enough(site: Site, page: Page) -> None:
    pair = site.show(page)
    page.get_by_role("button", name="Skip").wait_for()
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.querySelector('arena-pair').shadowRoot.activeElement?.innerText"
            )
        )
    assert [text for text in seen if text in ("A is better", "B is better")] == [
        "A is better",
        "B is better",
    ]
    page.keyboard.press("Enter")
    page.get_by_text("Saved. Your vote:").wait_for()
    assert site.votes()[pair] == "model_b"
    assert (
        page.evaluate("document.querySelector('arena-pair').shadowRoot.activeElement.className")
        == "note"
    )


def test_nothing_that_an_answer_writes_runs_or_is_fetched(site: Site, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    answers = {"version": "v7", "text": HOSTILE}, {"version": "v8", "text": HOSTILE * 2}
    site.show(page, champion=answers[0], challenger=answers[1])
    page.get_by_role("button", name="Tie").click()
    page.get_by_text("Saved.").wait_for()
    assert page.evaluate("window.struck") is None
    assert not [url for url in asked if "far.example" in url]


def test_it_speaks_the_language_of_the_page(site: Site, page: Page) -> None:
    Host.language = "de"
    site.show(page)
    Host.language = "en"
    expect(page.get_by_role("button", name="A ist besser")).to_be_visible()
    page.get_by_role("button", name="Gleich gut").click()
    expect(page.get_by_text("Gespeichert.")).to_be_visible()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_it_is_accessible_and_as_wide_as_its_place(
    chromium: Browser, site: Site, screen: str, scheme: Any, tmp_path: Path
) -> None:
    width, height = SCREENS[screen]
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    champion = {"version": "v7", "text": LONG}
    site.show(page, champion=champion)
    page.get_by_role("button", name="Skip").wait_for()
    for state in ("ready", "voted"):
        violations = Axe().run(page).response["violations"]
        assert [one["id"] for one in violations] == [], json.dumps(violations)[:2000]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=tmp_path / f"{screen}-{scheme}-{state}.png", full_page=True)
        if state == "ready":
            page.get_by_role("button", name="B is better").click()
            page.get_by_text("Saved. Your vote:").wait_for()
    context.close()
