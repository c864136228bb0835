"""Quality against price and time, as people see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.arena.pages.conftest import NOW, a_board
from tests.arena.pages.valued import SAFETY, valued
from tests.browser.test_accessibility import SCREENS, assert_accessible
from tests.open_pages import served_pages

pytestmark = pytest.mark.browser


@contextmanager
def looking(chromium: Browser, screen: str, **context: object) -> Iterator[Page]:
    width, height = SCREENS[screen]
    scheme = "dark" if screen == "phone" else "light"
    value: Any = SimpleNamespace(read=lambda: valued(safety=SAFETY))
    with served_pages(a_board(), NOW, valuation=value) as client:
        opened = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            **context,  # type: ignore[arg-type]
        )
        page = opened.new_page()
        page.goto(f"{client.base_url}/value")
        try:
            yield page
        finally:
            opened.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_is_accessible_and_no_wider_than_the_screen(
    chromium: Browser, screen: str
) -> None:
    with looking(chromium, screen) as page:
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0]


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS)
def test_names_beside_a_picture_stay_inside_it(chromium: Browser, screen: str) -> None:
    with looking(chromium, screen) as page:
        for figure in page.locator(".scatter").all():
            card = figure.bounding_box()
            assert card is not None
            for name in figure.locator(".names bdi").all():
                box = name.bounding_box()
                assert box is not None
                assert box["x"] + box["width"] <= card["x"] + card["width"]
