"""A study and cards in a real browser: as files by themselves, and as pages of an arena."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks import study_demo
from judge.report.page import Figure, Section, as_html
from judge.report.page import Page as Report
from judge.report.plots import Mark, scatter
from judge.report.studies import write_report
from judge.studies.one_judge import study_judges
from judge.studies.options import StudyOptions
from rating.charts.drawing import Scale
from tests.arena.boards.published import STATEMENTS, fill, publish_into
from tests.browser.person import Person, person
from tests.browser.test_accessibility import assert_accessible
from tests.judge.probe.test_prompts import probed, results_file
from tests.judge.report.hostile import EXAMPLES, hostile_study
from tests.judge.report.test_cards import board
from tests.serving import Served, quick_arena
from tests.sqlite import new_sqlite

pytestmark = pytest.mark.browser
SLOW = pytest.mark.slow

MADE = date(2026, 5, 3)
PHONES = (360, 390)
WATCH = "window.alert = () => { document.title = 'executed' }"
OVERFLOWS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDE = """() => [...document.querySelectorAll(".wide")].map((box) => {
    box.scrollLeft = 40;
    const name = box.querySelector("tbody th");
    return [
        box.scrollWidth > box.clientWidth,
        name ? name.getBoundingClientRect().left - box.getBoundingClientRect().left : 0,
        getComputedStyle(box).backgroundImage.includes("radial-gradient"),
    ];
})"""
HEAD = """() => [...document.querySelectorAll(".site-head a")].map((link) => {
    const box = link.getBoundingClientRect();
    return [link.textContent, link.getAttribute("href"), box.left, box.top, box.width, box.height];
})"""
LOOK = """() => ["background-color", "color", "font-family", "font-size"].map(
    (name) => getComputedStyle(document.body).getPropertyValue(name))"""
BOXES = """() => {
    const box = (node) => {
        const {left, top, right, bottom} = node.getBoundingClientRect();
        return [left, top, right, bottom];
    };
    const svg = document.querySelector("svg:has(.name)");
    const lines = [...svg.querySelectorAll(".grid, .axis")].map(box);
    const ends = [Math.min, Math.min, Math.max, Math.max].map(
        (end, i) => end(...lines.map((line) => line[i])));
    return {frame: ends, labels: [...svg.querySelectorAll(".name")].map(box)};
}"""


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports as files, and the arena that shows one of them and cards."""

    real: Path
    hostile: Path
    served: Served


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reports]:
    folder = tmp_path_factory.mktemp("reports")
    votes, verdicts = folder / "votes.parquet", folder / "verdicts.parquet"
    study_demo.make(np.random.default_rng(study_demo.SEED), votes, verdicts)
    study = study_judges(str(votes), str(verdicts), StudyOptions(rounds=100, by="category"))
    real = write_report(study, folder / "real", MADE)
    hostile = write_report(hostile_study(folder), folder / "hostile", MADE)
    cards = folder / "cards"
    cards.mkdir()
    prompts = probed(folder, results_file(folder, interaction=3))
    made = {"version": "1", "made": MADE.isoformat()}
    for name, card in {"board": board(validity=False), "prompts": prompts | made}.items():
        (cards / f"{name}.json").write_text(json.dumps(card), encoding="utf-8")
    with quick_arena(folder, study=real, cards=cards) as served:
        yield Reports(real, hostile, served)


def overflow(page: Page) -> int:
    return int(page.evaluate(OVERFLOWS))


def opened(ada: Person, file: Path) -> Page:
    """Open a file, and note what runs and what is asked for from then on."""
    ada.page.add_init_script(WATCH)
    ada.page.goto(file.as_uri())
    return ada.page


def test_a_hostile_study_neither_runs_nor_fetches(chromium: Browser, reports: Reports) -> None:
    with person(chromium, reports.served) as ada:
        page = opened(ada, reports.hostile)
        for summary in page.locator("article summary").all():
            summary.click()
        for link in page.locator(".text a").all():
            link.hover(force=True)
        page.wait_for_load_state("networkidle")
        assert "executed" not in page.title()
        assert page.locator("article.example").count() == EXAMPLES
        outside = [one for one in ada.asked if not one.startswith("data:font/woff2")]
        assert outside == [reports.hostile.as_uri()]
        assert ada.complaints == []
        texts = page.locator(".rendered")
        assert texts.locator("img, script, iframe, svg, style, form, object, video").count() == 0
        for tag in ("table", "pre", "math", "strong"):
            assert texts.locator(tag).count() > 0
        assert page.evaluate("[...document.fonts].map((font) => font.status)") == ["loaded"]


@pytest.mark.slow
@pytest.mark.parametrize("width", PHONES)
@pytest.mark.parametrize("name", ["real", "hostile"])
def test_a_phone_scrolls_wide_tables_in_themselves(
    chromium: Browser, reports: Reports, name: str, width: int
) -> None:
    with person(chromium, reports.served, viewport={"width": width, "height": 800}) as ada:
        page = opened(ada, getattr(reports, name))
        for summary in page.locator("summary").all():
            summary.click()
        assert overflow(page) == 0
        rows = page.evaluate(WIDE)
        assert len(rows) > 10
        scrolled = [left for scrolls, left, cue in rows if scrolls and cue]
        assert len(scrolled) > 3 or name == "hostile"
        assert all(cue for _, _, cue in rows)
        assert all(-1 <= left <= 1 for left in scrolled)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/study", "/cards"])
@pytest.mark.parametrize("width", [360, *(pytest.param(w, marks=SLOW) for w in (390, 820, 1280))])
def test_pages_of_reports_look_like_the_others(
    chromium: Browser, reports: Reports, path: str, width: int
) -> None:
    with person(chromium, reports.served, viewport={"width": width, "height": 800}) as ada:
        ada.page.goto(f"{ada.url}/method")
        head, look = ada.page.evaluate(HEAD), ada.page.evaluate(LOOK)
        assert "/leaderboard" in [address for _, address, *_ in head]
        ada.page.goto(ada.url + path)
        assert ada.page.evaluate(HEAD) == head
        assert ada.page.evaluate(LOOK) == look
        assert overflow(ada.page) == 0
        assert ada.complaints == []
        for summary in ada.page.locator("main summary:not(.contents summary)").all():
            summary.click()
        assert_accessible(ada.page)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "beside"), [(390, False), (820, False), (1280, True)])
def test_the_contents_lead_to_a_section_without_script(
    chromium: Browser, reports: Reports, width: int, beside: bool
) -> None:
    options = {"viewport": {"width": width, "height": 800}, "java_script_enabled": False}
    with person(chromium, reports.served, **options) as ada:
        ada.page.goto(f"{ada.url}/study")
        link = ada.page.get_by_role("link", name="Limits")
        if not beside:
            expect(link).to_be_hidden()
            ada.page.locator(".contents summary").click()
        link.click()
        assert ada.page.url == f"{ada.url}/study#limits"
        expect(ada.page.get_by_role("heading", name="Limits")).to_be_in_viewport()
        if beside:
            expect(link).to_be_in_viewport()


@pytest.mark.slow
def test_labels_of_forty_models_do_not_overlap(
    chromium: Browser, reports: Reports, tmp_path: Path
) -> None:
    rng = np.random.default_rng(7)
    names = [
        f"{name}-{n}-Instruct" for n in range(10) for name in ("WOMBAT", "mica", "玄武", "gpt")
    ]
    points = [
        (name, Mark("people", 1000 + x), Mark("judge", 1000 + y))
        for name, (x, y) in zip(names, rng.normal(0, 1, (40, 2)).tolist(), strict=True)
    ]
    axis = Scale(900, 1100, "points", lambda x: f"{x:g}")
    figure = Figure(scatter(points, axis, axis, title="Ratings"), "Ratings")
    section = Section("Ratings", figures=(figure,))
    file = tmp_path / "labels.html"
    file.write_text(as_html(Report("Labels", "", {}, (), section, (), MADE, "1.2.3")))
    with person(chromium, reports.served) as ada:
        boxes = opened(ada, file).evaluate(BOXES)
    left, top, right, bottom = boxes["frame"]
    assert len(boxes["labels"]) == 40
    for one in boxes["labels"]:
        assert left <= one[0] < one[2] <= right
        assert top <= one[1] < one[3] <= bottom
    for one, other in combinations(boxes["labels"], 2):
        across, down = (min(one[i + 2], other[i + 2]) - max(one[i], other[i]) for i in (0, 1))
        assert across <= 0 or down <= 0, (one, other)


@pytest.mark.slow
@pytest.mark.parametrize("width", [*PHONES, 820, 1280])
def test_pictures_of_cards_are_as_wide_as_their_card(
    chromium: Browser, reports: Reports, width: int
) -> None:
    with person(chromium, reports.served, viewport={"width": width, "height": 800}) as ada:
        ada.page.goto(f"{ada.url}/cards")
        pictures = ada.page.locator(".seen svg")
        assert pictures.count() == 2
        for one in pictures.all():
            box = one.bounding_box()
            assert box is not None
            assert 240 <= box["width"] <= 420
            drawn = one.evaluate("svg => svg.getBBox().x + svg.getBBox().width")
            assert drawn <= 301
            assert one.evaluate("svg => svg.getBBox().x") >= -1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_published_board_is_a_page_by_itself(
    chromium: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    url = new_sqlite(tmp_path)
    fill(url)
    hostile = "<script>alert(1)</script> " + "W" * 300
    publish_into(url, tmp_path / "board", replace(STATEMENTS, who_voted=hostile))
    asked: list[str] = []
    screen = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    with chromium.new_context(**screen) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.add_init_script(WATCH)
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "board" / "index.html").as_uri())
        expect(page.get_by_text("<script>alert(1)</script>")).to_be_visible()
        assert page.evaluate(OVERFLOWS) <= 0
        assert page.title() == "Leaderboard · Arena"
        assert_accessible(page)
    assert asked == [(tmp_path / "board" / "index.html").as_uri()]
