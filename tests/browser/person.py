"""A person at a browser, who asks, reads and votes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Response

from tests.serving import Served


@dataclass(slots=True)
class Person:
    """A browser of one's own, with one page open.

    Attributes
    ----------
    received : list of Response
        Everything that the arena answered.
    asked : list of str
        Addresses of every request that the page made.
    complaints : list of str
        What the page wrote to the console as an error.
    """

    context: BrowserContext
    page: Page
    url: str
    received: list[Response] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def arrive(self, query: str = "") -> None:
        self.page.goto(f"{self.url}/{query}")
        self.prompt.wait_for()
        self.page.locator("#first").wait_for(state="detached")

    @property
    def prompt(self) -> Locator:
        return self.page.locator("#prompt textarea")

    def ask(self, prompt: str = "Why is the sky blue?", *, until: str = "") -> None:
        """Ask, and wait until the page is in a state, if one is named."""
        self.prompt.fill(prompt)
        self.prompt.press("Enter")
        if until:
            self.wait_for(until)

    def wait_for(self, state: str, timeout_s: float = 60) -> None:
        """Wait until the page is in a state, such as ready or voted."""
        self.page.locator(f"html[data-state={state}]").wait_for(
            state="attached", timeout=1000 * timeout_s
        )

    def play(self, prompt: str = "Why is the sky blue?", *, until: str = "ready") -> None:
        """Arrive, ask, and wait until the page is in a state."""
        self.arrive()
        self.ask(prompt, until=until)

    @property
    def battle_id(self) -> str:
        """Id of the battle in the address; empty where there is none."""
        match = re.search(r"(?:/\?b=|/battles/)(\w+)$", self.page.url)
        return match[1] if match else ""

    def vote(self, outcome: str) -> None:
        self.page.locator("#do-skip" if outcome == "skip" else f"#vote-{outcome}").click()

    def cast(self, outcome: str) -> None:
        """Vote, or skip, and wait until that is saved."""
        self.vote(outcome)
        self.wait_for("skipped" if outcome == "skip" else "voted")

    def vote_by_key(self, key: str) -> None:
        """Press a key on the vote buttons, which are before the prompt."""
        self.prompt.press("Shift+Tab")
        self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def api(self, path: str = "") -> dict[str, Any]:
        """Read the battle on the page through the API, with this browser's cookie."""
        answer = self.context.request.get(f"{self.url}/api/v1/battles/{self.battle_id}{path}")
        body: dict[str, Any] = answer.json()
        return body


NARROW_TO_WIDE = (390, 600, 820, 1280)
"""Widths, beside that of a small phone."""

_COVERED = """async () => {
  // What has just come does not react at once.
  await Promise.all(document.getAnimations().map((animation) => animation.finished));
  const written = "input:not([type=hidden]), select, textarea";
  const controls = `a[href]:not(.skip-link), button, summary, ${written}`;
  return [...document.querySelectorAll(controls)].filter((control) => {
    if (!control.checkVisibility({ visibilityProperty: true })) return false;
    control.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const [box] = control.getClientRects();
    if (!box || box.width <= 1 || box.height <= 1) return false;
    const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return !there || !control.contains(there);
  }).map((control) => control.outerHTML.slice(0, 200));
}"""


def covered(page: Page) -> list[str]:
    """Give the visible controls of a page that a click in their middle would not reach."""
    controls: list[str] = page.evaluate(_COVERED)
    return controls


@contextmanager
def person(browser: Browser, served: Served, **context: Any) -> Iterator[Person]:
    """Let somebody come with a fresh browser."""
    opened = browser.new_context(**context)
    page = opened.new_page()
    somebody = Person(opened, page, served.url)
    page.on("request", lambda request: somebody.asked.append(request.url))
    page.on("response", lambda response: somebody.received.append(response))
    page.on(
        "console",
        lambda line: somebody.complaints.append(line.text) if line.type == "error" else None,
    )
    try:
        yield somebody
    finally:
        opened.close()
