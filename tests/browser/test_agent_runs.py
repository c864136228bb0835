"""Recorded runs of agents in browsers: folded, side by side, by keys and taps, and blind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agent_runs import HOSTILE, SECRETS, SYSTEMS, recorded, write_runs
from tests.browser.person import person
from tests.browser.test_accessibility import assert_accessible
from tests.browser.test_studies import DESKTOP, PHONE, export
from tests.command import invoke
from tests.serving import Served, quick_arena

pytestmark = pytest.mark.browser


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Served]:
    """A study of three items, the hostile one first."""
    order = (f"task-{n}" for n in (HOSTILE, 0, 1))
    runs = [one for item in order for one in recorded() if one["item"] == item]
    with quick_arena(tmp_path) as served:
        file = str(write_runs(tmp_path / "runs.jsonl", runs))
        line = ["study", "create", "agents", "--runs", file, "--raters-per-item", "2", "--reveal"]
        invoke([*line, "--database", served.database])
        yield served


def assert_blind(page: Page) -> None:
    said_so = page.content()
    assert [word for word in SECRETS[:5] if word in said_so] == []


@pytest.mark.slow
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_runs_are_unfolded_compared_and_rated_by_keys(
    chromium: Browser, arena: Served, tmp_path: Path, screen: dict[str, Any]
) -> None:
    with person(chromium, arena, **screen) as ada:
        page = ada.page
        page.goto(f"{arena.url}/studies/agents/rate")
        for n, key in enumerate("142"):
            expect(page.get_by_text(f"Number {n + 1} ")).to_be_visible()
            page.wait_for_load_state()
            assert_blind(page)
            first = page.get_by_text("first difference")
            expect(first.first).to_be_hidden()
            page.keyboard.press("f")
            expect(first).to_have_count(2)
            for side in (0, 1):
                expect(first.nth(side)).to_be_visible()
            if not n:
                assert_hostile_steps_do_nothing(page)
                assert_accessible(page)
            page.keyboard.press("f")
            expect(first.first).to_be_hidden()
            page.keyboard.press(key)
            expect(page.get_by_text("Saved:")).to_be_visible()
            names = page.locator(".who bdi").all_inner_texts()
            assert {*names} <= {" · ".join(one) for one in SYSTEMS}
            assert len({*names}) == 2
            expect(page.locator(".who .aside").first).to_contain_text("$0.0")
            if not n:
                assert_accessible(page)
            page.wait_for_load_state()
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="You have finished")).to_be_visible()
        assert ada.complaints == []
    rows = export(arena, "agents", tmp_path / "agents.parquet")
    left = {"ab": ("model_a", "model_b"), "ba": ("model_b", "model_a")}
    wanted: list[int | str] = [0, 1, "tie"]
    assert [row["choice"] for row in rows] == [
        left[row["sides"]][one] if isinstance(one, int) else one
        for one, row in zip(wanted, rows, strict=True)
    ]


def assert_hostile_steps_do_nothing(page: Page) -> None:
    """Open all that is folded: nothing runs, and nothing is wider than the page."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    expect(page.get_by_text("Show the other").first).to_be_visible()
    assert page.title() != "taken"
    assert page.locator(".steps img, .steps script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_without_scripts_each_side_unfolds_by_itself(chromium: Browser, arena: Served) -> None:
    context = chromium.new_context(java_script_enabled=False, **PHONE)
    with context:
        page = context.new_page()
        page.goto(f"{arena.url}/studies/agents/rate")
        page.locator(".steps > summary").first.click()
        expect(page.get_by_text("first difference").first).to_be_visible()
        page.get_by_role("button", name="A is better").click()
        expect(page.locator(".who")).to_have_count(2)
