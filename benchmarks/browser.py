"""What a battle costs the browser: main-thread time, layout shift, page weight, and waiting.

Starts the arena with two recorded models and lets headless Chromium read two battles: forty
thousand characters of paragraphs on each side, and one block of eighteen thousand characters of
code. ``--seconds`` is how long each takes to stream. A page is usable once its prompt takes text
and buttons react. ``make bench`` runs it.
"""

import argparse
import shutil

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.recordings import serving_recordings

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


def main_thread_s(cdp: CDPSession) -> float:
    """Time that the browser's main thread has worked."""
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def load(page: Page, cdp: CDPSession, url: str) -> str:
    """Open the page; gives the kilobytes that came, and after how many seconds it was usable."""
    sizes: list[float] = []
    cdp.on("Network.loadingFinished", lambda done: sizes.append(done["encodedDataLength"]))
    page.goto(url)
    page.locator("#first").wait_for(state="detached")
    usable = page.evaluate("performance.now()") / 1000
    page.wait_for_load_state("networkidle")
    return f"{sum(sizes) / 1000:.0f} kB, {usable:.2f} s"


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
    return f"| {prompt} | {busy:.2f} s | {shifts:.3f} | {rest:.1%} | {cold} | {warm} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    programs = ("chromium-headless-shell", "chromium", "chromium-browser")
    path = next(filter(None, map(shutil.which, programs)), None)
    columns = "main thread | layout shift | at rest | cold | warm |"
    print(f"| battle of {options.seconds:.0f} s | {columns}")
    print("|---|---|---|---|---|---|")
    answers, rate = {"Paragraphs": PARAGRAPHS, "Code": CODE}, len(PARAGRAPHS) / options.seconds
    with (
        serving_recordings(answers, rate, ARENA_MAX_ANSWER_CHARS="50000") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for prompt in answers:
            print(read(browser, server.url, prompt, options.seconds), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
