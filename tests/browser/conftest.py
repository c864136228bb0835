"""Chromium, headless, and pages in it that fail a test when something outside is asked for."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first one that is there is taken: without windows it needs a third of the processor."""
GIVES_UP_MS = 60_000
"""As long as any other wait: a slow machine is no fault."""
SET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
FLAGS = SET.split()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a module: its loop must not outlive them."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        expect.set_options(timeout=GIVES_UP_MS)
        browser.on("context", lambda context: context.set_default_timeout(GIVES_UP_MS))
        yield browser
        browser.close()
