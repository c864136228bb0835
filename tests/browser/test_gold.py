"""Gold battles and instructions in a browser: prompts to try, and what is said after the vote."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from arena.domain.people import Role
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, invited, page_by, page_of, write_roster

pytestmark = pytest.mark.browser

PROMPT = "How much is three <plus> four?\nSay it in words, & show how."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gold")
    gold = folder / "gold.jsonl"
    pair = {"prompt": PROMPT, "response_a": "Seven.", "response_b": "Eight.", "gold": "A>B"}
    gold.write_text(json.dumps(pair | {"model_a": "granite", "model_b": "marble"}))
    settings = {"gold": gold, "gold_share": 0.05, "running_per_voter": 60}
    models = {n: Behaviour(text=f"So says {n}. ") for n in "xy"}
    with page_by(models, folder, **settings, secret_key="k" * 32) as served:
        with served.visitor() as visitor:
            for _ in range(19):
                visitor.open()
        yield served


def test_an_offered_prompt_is_a_gold_battle_which_the_page_says_after_the_vote(
    served: Served, chromium: Browser
) -> None:
    page = chromium.new_context(base_url=served.url, locale="en-GB").new_page()
    page.goto("/")
    chips = page.locator("#arena .chips button")
    expect(chips).to_have_count(6)
    chips.filter(has_text="three <plus> four").click()
    expect(page.locator("html[data-state='ready']")).to_be_attached()
    expect(page.locator("#asked")).to_have_text(PROMPT)
    assert not re.search("gold~|granite|marble", page.content())
    page.locator("#vote-model_a").click()
    expect(page.locator("#hint")).to_contain_text("counts for no rank")
    names = {page.locator(f"#name-{side}").text_content() for side in "ab"}
    assert names == {"granite", "marble"}
    expect(page.locator("[data-do=go-on]")).to_be_hidden()
    page.reload()
    expect(page.locator("#hint")).to_contain_text("counts for no rank")
    page.goto(invited(served, Role.ADMIN))
    page.get_by_role("main").get_by_role("button").click()
    page.goto("/admin/voters")
    expect(page.get_by_role("heading", name="Gold battles")).to_be_visible()
    expect(page.get_by_text(re.compile("[01] of 1 right"))).to_be_visible()
    assert Axe().run(page).response["violations"] == []


ASKED = "Name two fruits. No commas, at least 3 words."
TASK = {
    "prompt": ASKED,
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{}, {"num_words": 3, "relation": "at least"}],
}


@pytest.mark.slow
def test_what_answers_follow_stands_below_them_after_the_vote(
    tmp_path: Path, chromium: Browser
) -> None:
    tasks = tmp_path / "input_data.jsonl"
    tasks.write_text(json.dumps(TASK))
    texts = {"x": "Apples, and pears.", "y": "Apples."}
    with faulty_server({n: Behaviour(text=text) for n, text in texts.items()}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, *texts)
        settings = {"instructions": tasks, "characters_per_s": 50_000}
        with page_of(tmp_path, roster, **settings) as served:
            page = chromium.new_context(base_url=served.url, locale="en-GB").new_page()
            page.goto("/")
            page.locator("#arena .chips button").filter(has_text="two fruits").click()
            expect(page.locator("html[data-state='ready']")).to_be_attached()
            expect(page.locator(".followed li")).to_have_count(0)
            page.locator("#vote-model_a").click()
            expect(page.locator(".followed li")).to_have_count(4)
            side = {str(page.locator(f"#name-{s}").text_content())[-1]: s for s in "ab"}
            chips = {n: page.locator(f"#followed-{side[n]} li").all_text_contents() for n in "xy"}
            assert chips == {
                "x": ["✗ not followed: no comma", "✓ followed: number of words"],
                "y": ["✓ followed: no comma", "✗ not followed: number of words"],
            }
            assert Axe().run(page).response["violations"] == []
            page.goto(f"/?b={page.url.rpartition('/')[2]}")
            expect(page.locator(".followed li")).to_have_count(4)
            page.locator("#do-new").click()
            expect(page.locator(".followed li")).to_have_count(0)
