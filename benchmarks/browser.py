"""What a battle costs the browser: main-thread time, layout shift and page weight.

Starts the arena with two recorded models and lets headless Chromium read two battles: forty
thousand characters of paragraphs on each side, and one block of eighteen thousand characters of
code. ``--seconds`` is how long each takes to stream. ``make bench`` runs it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.live import ARENA

WORDS = "A sentence that is neither short nor long, and holds a `name` and a **word**. "
PARAGRAPHS = "".join(WORDS * 6 + "\n\n" for _ in range(90))[:40_000]
LINE = "def name_of(thing: int) -> str:  # says what it is called\n    return str(thing)\n\n\n"
CODE = f"```python\n{(LINE * 300)[:18_000]}\n```\n"
SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


@contextmanager
def arena(seconds: float) -> Iterator[str]:
    """Serve two models that answer each prompt with its text, in so many seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {"Paragraphs": PARAGRAPHS, "Code": CODE}
        lines = [json.dumps({"prompt": p, "response": text}) for p, text in texts.items()]
        (folder / "answers.jsonl").write_text("\n".join(lines))
        rate = len(PARAGRAPHS) / seconds
        models = [
            f'[[models]]\nid = "{m}"\nname = "{m}"\nendpoint = "recorded://f"\n'
            f'recording = "answers.jsonl"\ncharacters_per_s = {rate}'
            for m in ("one", "two")
        ]
        (folder / "roster.toml").write_text("\n".join(models))
        env = os.environ | {
            "ARENA_ROSTER": "roster.toml",
            "ARENA_PORT": "0",
            "ARENA_CHARACTERS_PER_S": str(rate),
            "ARENA_MAX_ANSWER_CHARS": "50000",
            "ARENA_LOG_LEVEL": "error",
        }
        with subprocess.Popen(
            [ARENA, "serve"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            url = re.search(r"http://\S+", process.stdout.readline())
            assert url is not None
            try:
                yield url.group()
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(30)


def main_thread_s(cdp: CDPSession) -> float:
    """Time that the browser's main thread has worked."""
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def load(page: Page, cdp: CDPSession, url: str) -> float:
    """Open the page; gives the kilobytes that came."""
    sizes: list[float] = []
    cdp.on("Network.loadingFinished", lambda done: sizes.append(done["encodedDataLength"]))
    page.goto(url)
    page.locator("#first").wait_for(state="detached")
    page.wait_for_load_state("networkidle")
    return sum(sizes) / 1000


def read(browser: Browser, url: str, prompt: str, seconds: float) -> str:
    """Read a battle, and make a row of the table."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(SHIFTS)
    cdp = page.context.new_cdp_session(page)
    for domain in ("Performance", "Network"):
        cdp.send(f"{domain}.enable")
    cold = load(page, cdp, url)
    warm = load(page, cdp, url)
    before = main_thread_s(cdp)
    page.wait_for_timeout(5000)
    rest = (main_thread_s(cdp) - before) / 5
    page.evaluate("window.shifts = 0")
    page.locator("#prompt textarea").fill(prompt)
    before = main_thread_s(cdp)
    page.locator("#prompt textarea").press("Enter")
    page.locator("html[data-state=ready]").wait_for(state="attached", timeout=3000 * seconds)
    busy, shifts = main_thread_s(cdp) - before, page.evaluate("window.shifts")
    page.close()
    return (
        f"| {prompt} | {busy:.2f} s | {shifts:.3f} | {rest:.1%} | {cold:.0f} kB | {warm:.0f} kB |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    columns = "main thread | layout shift | at rest | cold | warm |"
    print(f"| battle of {options.seconds:.0f} s | {columns}")
    print("|---|---|---|---|---|---|")
    with arena(options.seconds) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for prompt in ("Paragraphs", "Code"):
            print(read(browser, url, prompt, options.seconds), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
