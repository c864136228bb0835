"""A study in browsers: by keys and taps, blind, left midway, and what researchers see of it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Browser, Page, expect

from arena.boards.evaluation import read_status
from arena.domain.people import Role
from arena.domain.study import RubricItem
from arena.store.store import Store
from judge.studies.raters import agreement_of
from judge.studies.rows import read_rows
from tests.browser.person import person
from tests.browser.test_accessibility import assert_accessible
from tests.command import invoke
from tests.serving import Served, invited, quick_arena
from tests.studies import planned, write_study

pytestmark = pytest.mark.browser

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "locale": "en-GB",
    "color_scheme": "dark",
    "has_touch": True,
}


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Served]:
    with quick_arena(tmp_path) as served:
        yield served


def export(served: Served, name: str, to: Path) -> list[dict[str, Any]]:
    invoke(["study", "export", name, "--to", str(to), "--database", served.database])
    relation = duckdb.read_parquet(str(to))
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def test_a_study_is_rated_by_keys_alone_and_nothing_names_a_model(
    chromium: Browser, arena: Served, tmp_path: Path
) -> None:
    rubric = (RubricItem("safe", "Is it safe?", ("yes", "no")),)
    write_study(arena.database, "keys", planned(6), guidelines="# Be kind", rubric=rubric)
    with person(chromium, arena, **DESKTOP) as ada:
        page = ada.page
        page.goto(f"{arena.url}/studies")
        page.get_by_role("link", name="keys").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Be kind")).to_be_visible()
        assert_accessible(page)
        page.get_by_role("link", name="Begin").focus()
        page.keyboard.press("Enter")
        for n, key in enumerate("123401"):
            expect(page.get_by_text(f"Number {n + 1} ")).to_be_visible()
            page.wait_for_load_state()
            assert "model-" not in page.content()
            if not n:
                assert_accessible(page)
            page.keyboard.press(key)
            expect(page.get_by_text("Skipped." if key == "0" else "Saved:")).to_be_visible()
            page.wait_for_load_state()  # the script is there
            if not n:
                for name in ("reasons-a", "reasons-b"):
                    reason = {"a": "useful", "b": "instructions_not_followed"}[name[-1]]
                    page.locator(f"[name={name}][value={reason}]").press("Space")
                page.locator("[name=confidence][value='3']").press("Space")
                page.get_by_label("yes").press("Space")
                page.keyboard.type("First 1, then 4")  # a comment, wherever the focus was
                assert_accessible(page)
                assert "model-" not in page.content()
                page.get_by_role("button", name="Next").focus()
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="You have finished")).to_be_visible()
        assert ada.complaints == []
    rows = export(arena, "keys", tmp_path / "keys.parquet")
    left = {"ab": ("model_a", "model_b"), "ba": ("model_b", "model_a")}
    wanted = [0, "tie", "both_bad", 1, "skip", 0]
    assert [row["choice"] for row in rows] == [
        left[row["sides"]][one] if isinstance(one, int) else one
        for one, row in zip(wanted, rows, strict=True)
    ]
    first = rows[0]
    a, b = first["sides"]
    assert json.loads(first["reasons"]) == {a: ["useful"], b: ["instructions_not_followed"]}
    assert (first["confidence"], first["comment"]) == (3, "First 1, then 4")
    assert json.loads(first["rubric"]) == {"safe": "yes"}
    assert first["seconds"] > 0


@pytest.mark.slow
def test_an_order_that_is_not_whole_says_so_in_sight_and_goes_on_by_taps(
    chromium: Browser, arena: Served
) -> None:
    write_study(arena.database, "part", planned(2, answers=3))
    with person(chromium, arena, **PHONE) as ada:
        page = ada.page
        page.goto(f"{arena.url}/studies/part/rate")
        page.locator("article[data-answer='1'] h2").tap()
        page.get_by_role("button", name="Save the order").tap()
        problem = page.get_by_text("Give every answer a place")
        expect(problem).to_be_in_viewport()
        for place in (2, 0, 1):
            page.locator(f"article[data-answer='{place}'] h2").tap()
        page.get_by_role("button", name="Save the order").tap()
        expect(page.get_by_text("Saved.")).to_be_visible()


@pytest.mark.slow
def test_more_than_two_answers_are_ordered_by_taps_on_a_phone_and_without_scripts(
    chromium: Browser, arena: Served, tmp_path: Path
) -> None:
    write_study(arena.database, "order", planned(2, answers=3))
    with person(chromium, arena, **PHONE) as ada:
        page = ada.page
        page.goto(f"{arena.url}/studies/order/rate")
        assert_accessible(page)
        for place in (2, 0, 1):
            page.locator(f"article[data-answer='{place}'] h2").tap()
        page.get_by_role("button", name="Save the order").tap()
        expect(page.get_by_text("Saved.")).to_be_visible()
    context = chromium.new_context(java_script_enabled=False, **PHONE)
    with context:
        page = context.new_page()
        page.goto(f"{arena.url}/studies/order/rate")
        page.locator("select").first.select_option("2")
        page.get_by_role("button", name="Save the order").click()
        expect(page.get_by_role("alert").first).to_contain_text("Give every answer a place")
        for answer, chosen in enumerate("211"):
            page.locator(f"select[name=place-{answer}]").select_option(chosen)
        page.get_by_role("button", name="Save the order").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        page.locator("input[name=confidence]").last.check()
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_text("Number 2")).to_be_visible()
    one, other = export(arena, "order", tmp_path / "order.parquet")
    assert [len(place) for place in json.loads(one["ranking"])] == [1, 1, 1]
    assert [len(place) for place in json.loads(other["ranking"])] == [2, 1]
    assert other["confidence"] == 3


def test_a_rating_that_is_not_saved_is_said_so_and_sent_again(
    chromium: Browser, arena: Served, tmp_path: Path
) -> None:
    write_study(arena.database, "away", planned(1))
    with person(chromium, arena, **DESKTOP) as ada:
        page = ada.page
        page.goto(f"{arena.url}/studies/away/rate")
        ada.context.set_offline(True)
        page.keyboard.press("1")
        expect(page.get_by_role("alert")).to_contain_text("Your rating is not saved yet")
        assert export(arena, "away", tmp_path / "none.parquet") == []
        ada.context.set_offline(False)
        page.keyboard.press("4")
        expect(page.get_by_text("Saved: B is better.")).to_be_visible()
    assert len(export(arena, "away", tmp_path / "one.parquet")) == 1


def rated_by(
    page: Page, served: Served, name: str, taste: Callable[[str, str], str], stop: int
) -> int:
    """Rate so many items as a program with a taste does; gives how many there were.

    What says how others chose is on no page of these.
    """
    page.goto(f"{served.url}/studies/{name}/rate")
    for n in range(stop):
        if page.get_by_role("heading", name="You have finished").count():
            return n
        assert not re.search(r"alpha|AC1|\br0[1-3]\b", without_texts(page))
        left, right = (one.inner_text() for one in page.locator("article").all())
        page.keyboard.press({"a": "1", "tie": "2", "b": "4"}[taste(left, right)])
        page.wait_for_url(re.compile(r"/rated/\d+$"))
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/rate$"))
        page.locator("h1").wait_for()
    return stop


def without_texts(page: Page) -> str:
    """Give the source of a page except what was asked and answered."""
    return re.sub(r"(?s)<main.*</article>", "", page.content())


def taste(seed: int) -> Callable[[str, str], str]:
    """Like the longer answer, mostly."""
    rng = Random(seed)

    def choose(left: str, right: str) -> str:
        if abs(len(left) - len(right)) < 40 or rng.random() < 0.1:
            return "tie"
        return "a" if (len(left) > len(right)) == (rng.random() < 0.8) else "b"

    return choose


@pytest.mark.slow
@pytest.mark.published
def test_a_whole_study_of_published_pairs_by_three_raters_one_of_whom_goes_on_by_phone(
    chromium: Browser, arena: Served, tmp_path: Path, published_data: Path
) -> None:
    folder = published_data / "votes" / "llmfao"
    relation = duckdb.sql(
        f"""
        WITH pairs AS (SELECT DISTINCT item_id, prompt_id, model_a, model_b
                       FROM '{folder}/votes.parquet' ORDER BY hash(item_id) LIMIT 60),
        texts AS (SELECT name, CAST(prompt AS VARCHAR) AS prompt_id, any_value(result) AS text
                  FROM read_json('{folder}/outputs.jsonl') GROUP BY ALL)
        SELECT CAST(item_id AS VARCHAR), pairs.prompt_id, p.text, model_a, a.text, model_b, b.text
        FROM pairs
        JOIN read_json('{folder}/prompts.jsonl') p ON CAST(p.id AS VARCHAR) = pairs.prompt_id
        JOIN texts a ON a.name = model_a AND a.prompt_id = pairs.prompt_id
        JOIN texts b ON b.name = model_b AND b.prompt_id = pairs.prompt_id
        """
    )
    assert relation is not None
    rows = relation.fetchall()
    names = ("item_id", "prompt_id", "prompt", "model_a", "response_a", "model_b", "response_b")
    items = tmp_path / "items.jsonl"
    items.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    words = ["--items", str(items), "--raters-per-item", "3", "--repeats", ".05"]
    done = invoke(["study", "create", "llmfao", *words, "--database", arena.database])
    assert done.stdout.startswith("The study 'llmfao' has 60 items"), done.stderr
    tastes = [taste(seed) for seed in range(3)]
    link = invited(arena, Role.VOTER)
    with person(chromium, arena, **DESKTOP) as ada:
        ada.page.goto(arena.url + link)
        ada.page.get_by_role("button", name="Come in").click()
        assert rated_by(ada.page, arena, "llmfao", tastes[0], 25) == 25
        ada.page.goto(f"{arena.url}/votes")
        ada.page.get_by_role("button", name="Use another device").click()
        device = ada.page.locator(".address code, code").first.inner_text()
        for seed in (1, 2):
            with person(chromium, arena, **DESKTOP) as other:
                assert rated_by(other.page, arena, "llmfao", tastes[seed], 99) >= 60
        with person(chromium, arena, **PHONE) as phone:
            phone.page.goto(device)
            phone.page.get_by_role("button", name="Come in").click()
            phone.page.goto(f"{arena.url}/studies/llmfao")
            expect(phone.page.get_by_text("You have rated 25 so far.")).to_be_visible()
            assert 35 <= rated_by(phone.page, arena, "llmfao", tastes[0], 99) <= 40
    to = tmp_path / "llmfao.parquet"
    ratings = export(arena, "llmfao", to)
    assert sorted({row["rater"] for row in ratings}) == ["r01", "r02", "r03"]
    first = [(row["item"], row["rater"]) for row in ratings if not row["repeat"]]
    assert len(first) == len(set(first)) == 180
    with person(chromium, arena, **DESKTOP) as researcher:
        page = researcher.page
        page.goto(arena.url + invited(arena, Role.RESEARCHER))
        page.get_by_role("button", name="Come in").click()
        page.goto(f"{arena.url}/studies/llmfao/results")
        assert_accessible(page)
        agreement = agreement_of(read_rows(to, unparsed=False))
        for name in ("alpha", "ac1"):
            cell = page.locator(f"#{name}")
            estimate = getattr(agreement, name)
            for part in ("value", "lower", "upper"):
                assert cell.get_attribute(f"data-{part}") == str(getattr(estimate, part))
    with closing(Store(arena.database)) as store:
        assert read_status(store, "llmfao").agreement == agreement
