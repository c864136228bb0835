"""The Gradio chat in a real browser: a battle and a vote, and what hostile answers can do."""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

import arena
from tests.deploy.tools import ROOT, TOOLS
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.serving import free_port, page_of, write_roster
from tests.sqlite import new_sqlite

pytestmark = pytest.mark.browser

QUICK = Behaviour(text="All is **well**. " * 12)
WIDE = f"""{QUICK.text}\n\n{"|column" * 30}|\n{"|---" * 30}|\n{"|value" * 30}|

```python
{"x = 1 + " * 100}1
```

{"w" * 600}
"""
COVERED = """(names) => names.filter((name) => {
  const box = document.querySelector(name).getBoundingClientRect();
  const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return !seen?.closest(name);
})"""
SLOW = Behaviour(text="A sentence that goes on for a while. " * 100, chunk_size=12, delay_s=0.05)
HOSTILE = """Look.

![a picture](OUTSIDE/1.png) <img src="OUTSIDE/2.png" onerror="document.title='taken'">

<style>@import url(OUTSIDE/3.css); #votes { display: none }</style>
<script>document.title = "taken"</script>
<div style="position: fixed; inset: 0; z-index: 999999; background: white url(OUTSIDE/4.png)">
<form action="OUTSIDE/5"><button>A is better</button></form></div>
<svg onload="document.title='taken'"></svg><iframe src="OUTSIDE/6"></iframe>
<a href="javascript:document.title='taken'">A link</a>
<video src="OUTSIDE/7.mp4" autoplay poster="OUTSIDE/8.png"></video>

$$\\href{javascript:document.title='taken'}{x} \\includegraphics{OUTSIDE/9.png}$$

```mermaid
graph LR; a["<img src='OUTSIDE/10.png' onerror='document.title=1'>"] --> b
```

The end of it.
"""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({"zanzibar": QUICK, "quagmire": QUICK}) as server:
        yield server


@pytest.fixture(autouse=True)
def well(server: FaultyServer) -> None:
    server.behaviours.update(dict.fromkeys(server.behaviours, QUICK))


@pytest.fixture(scope="module")
def launched(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a chat that was launched as in a notebook."""
    models = [
        {"id": f"id-{name}", "name": f"Name {name}", "endpoint": server.url, "model": name}
        for name in server.behaviours
    ]
    folder = tmp_path_factory.mktemp("chat")
    given: Any = {"database": new_sqlite(folder), "characters_per_s": 2000, "prior_delay_s": 0}
    chat = arena.chat(models, **given)
    _, url, _ = chat.launch(prevent_thread_lock=True, server_port=free_port(), quiet=True)
    yield str(url)
    chat.close()


@contextmanager
def page_at(browser: Browser, url: str, **context: Any) -> Iterator[tuple[Page, list[str]]]:
    """Open a page; gives it, and all that it asks for."""
    opened = browser.new_context(**context)
    page, asked = opened.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(url)
        yield page, asked
    finally:
        opened.close()


@contextmanager
def program(words: Sequence[str | Path], folder: Path, **env: str) -> Iterator[str]:
    """Run a program that launches a chat in a folder; gives its address."""
    url = f"http://127.0.0.1:{(port := free_port())}/"
    known = {key: text for key, text in os.environ.items() if str(ROOT) not in text}
    given = {"GRADIO_SERVER_PORT": str(port), "ARENA_PRIOR_DELAY_S": "0", "PYTHONUNBUFFERED": "1"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            words, cwd=folder, env=known | given | env, stdout=log, stderr=log
        ) as process,
    ):
        try:
            for _ in range(600):
                assert process.poll() is None, (folder / "log").read_text()
                with suppress(httpx2.TransportError):
                    httpx2.get(url, trust_env=False)
                    break
                time.sleep(0.1)
            yield url
        finally:
            process.kill()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    tools = ("--require-hashes", "--build-constraints", ROOT / "deploy" / "build.lock")
    words = (TOOLS / "uv", "build", "-q", *tools, "--wheel", "--out-dir", folder, ROOT)
    subprocess.run(words, check=True)
    (built,) = folder.glob("*.whl")
    return built


def ask(page: Page, prompt: str = "Why is the sky blue?") -> None:
    box = page.locator("#prompt textarea")
    box.fill(prompt)
    box.press("Enter")


def play(page: Page) -> None:
    ask(page)
    expect(page.locator("#vote-model_a")).to_be_enabled(timeout=60_000)
    expect(page.locator("#answer-a")).to_contain_text("All is well.")
    assert "Name " not in page.content()
    page.locator("#vote-model_a").click()
    expect(page.locator("#note")).to_contain_text("Your vote: A was better. A is Name")
    expect(page.locator("#vote-model_a")).to_be_disabled()


def test_a_battle_is_voted_on_in_a_chat_that_was_launched(
    chromium: Browser, launched: str, server: FaultyServer
) -> None:
    with page_at(chromium, launched) as (page, asked):
        play(page)
        page.locator("#do-new").click()
        expect(page.locator("#answer-a")).to_be_hidden()
        page.get_by_text("What is the difference between TCP").click()
        expect(page.locator("#vote-tie")).to_be_enabled(timeout=60_000)
        expect(page.locator("#answer-b")).to_contain_text("TCP and UDP?")
        page.locator("#do-skip").click()
        expect(page.locator("#note")).to_contain_text("the names stay hidden")
        assert [url for url in asked if not url.startswith((launched, "data:", "blob:"))] == []


def test_a_battle_is_stopped_and_voted_on(
    chromium: Browser, launched: str, server: FaultyServer
) -> None:
    server.behaviours.update(dict.fromkeys(server.behaviours, SLOW))
    with page_at(chromium, launched) as (page, _):
        ask(page)
        for side in "ab":
            expect(page.locator(f"#answer-{side}")).to_contain_text("A sentence")
        page.locator("#do-stop").click()
        expect(page.locator("#note")).to_contain_text("Stopped. You can vote on what you see.")
        page.locator("#vote-both_bad").click()
        expect(page.locator("#note")).to_contain_text("Your vote: both were bad.")


def test_what_is_sent_while_models_answer_is_refused_and_the_battle_goes_on(
    chromium: Browser, launched: str, server: FaultyServer
) -> None:
    some = Behaviour(text=SLOW.text[:900], chunk_size=12, delay_s=0.05)
    server.behaviours.update(dict.fromkeys(server.behaviours, some))
    with page_at(chromium, launched) as (page, _):
        ask(page)
        expect(page.locator("#answer-a")).to_contain_text("A sentence")
        ask(page, "And now?")
        expect(page.locator("#note")).to_contain_text("Wait until both answers")
        expect(page.locator("#note")).to_contain_text("You can vote.", timeout=60_000)
        page.locator("#vote-tie").click()
        expect(page.locator("#note")).to_contain_text("Your vote: a tie.")


def test_a_hostile_answer_runs_nothing_loads_nothing_and_covers_nothing(
    chromium: Browser, launched: str, server: FaultyServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.setblocking(False)
        hostile = HOSTILE.replace("OUTSIDE", f"http://127.0.0.1:{outside.getsockname()[1]}")
        server.behaviours.update(dict.fromkeys(server.behaviours, Behaviour(text=hostile)))
        with page_at(chromium, launched) as (page, _):
            ask(page, hostile)
            expect(page.locator("#vote-tie")).to_be_enabled(timeout=60_000)
            expect(page.locator("#answer-a")).to_contain_text("The end of it.")
            page.wait_for_timeout(1000)
            seen = ["h1", "#answer-a", "#answer-b"]
            assert page.evaluate(COVERED, seen) == []
            assert page.title() == "Arena"
            for fake in page.locator("#answers").get_by_text("A is better").all():
                expect(fake).to_be_hidden()
            page.locator("#vote-tie").click()
            expect(page.locator("#note")).to_contain_text("Your vote: a tie.")
        with pytest.raises(BlockingIOError):
            outside.accept()


def test_it_fits_a_german_phone_whatever_is_answered_and_no_button_deletes_an_answer(
    chromium: Browser, launched: str, server: FaultyServer
) -> None:
    server.behaviours.update(dict.fromkeys(server.behaviours, Behaviour(text=WIDE)))
    phone: Any = {"viewport": {"width": 390, "height": 844}, "locale": "de-DE"}
    with page_at(chromium, launched, **phone) as (page, _):
        play(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.documentElement.lang") == "en"
        expect(page.get_by_role("link", name="Leaderboard")).to_have_count(0)
        buttons = page.locator("#answers button:visible")
        buttons.evaluate_all("(all) => all.forEach((one) => one.click())")
        for side in "ab":
            expect(page.locator(f"#answer-{side}")).to_contain_text("All is well.")


@pytest.mark.parametrize(("prompt", "note"), [("", "Write a"), ("x" * 20_001, "up to 20,000")])
def test_a_refused_prompt_leaves_the_answers(
    chromium: Browser, launched: str, server: FaultyServer, prompt: str, note: str
) -> None:
    with page_at(chromium, launched) as (page, _):
        play(page)
        ask(page, prompt)
        expect(page.locator("#note")).to_contain_text(note)
        page.wait_for_timeout(1000)
        for side in "ab":
            expect(page.locator(f"#answer-{side}")).to_contain_text("All is well.")


@pytest.mark.slow
def test_the_space_serves_the_models_of_its_roster(
    chromium: Browser, server: FaultyServer, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "deploy/space/app.py", tmp_path)
    write_roster(tmp_path / "roster.toml", server, *server.behaviours)
    with (
        program([sys.executable, "app.py"], tmp_path, PYTHONPATH=str(ROOT)) as url,
        page_at(chromium, url) as (page, _),
    ):
        play(page)


@pytest.mark.slow
def test_a_battle_is_voted_on_in_a_clean_environment(
    chromium: Browser, server: FaultyServer, wheel: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    (packages,) = environment.glob("lib/*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    here = sysconfig.get_path("purelib")  # the libraries, of which none is of this project
    (packages / "libraries.pth").write_text(f"import sys; sys.path.append({here!r})\n")
    code = "import arena; print(arena.__file__); arena.chat(roster='roster.toml').launch()"
    write_roster(tmp_path / "roster.toml", server, *server.behaviours)
    with (
        program([environment / "bin" / "python", "-c", code], tmp_path) as url,
        page_at(chromium, url) as (page, _),
    ):
        play(page)
    assert (tmp_path / "log").read_text().startswith(str(packages))


def test_it_is_served_beside_the_page(
    chromium: Browser, server: FaultyServer, tmp_path: Path
) -> None:
    roster = write_roster(tmp_path / "roster.toml", server, *server.behaviours)
    with (
        page_of(tmp_path, roster, characters_per_s=2000, chat="/chat") as served,
        page_at(chromium, f"{served.url}/chat") as (page, asked),
    ):
        play(page)
        with page.expect_popup() as opened:
            page.get_by_role("link", name="My battles").click()
        expect(opened.value.locator("main")).to_contain_text("A was better")
        assert [url for url in asked if not url.startswith((served.url, "data:", "blob:"))] == []
