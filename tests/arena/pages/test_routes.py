import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import httpx2
import pytest

from arena.domain.vote import Voter
from arena.pages.routes import DOWNLOADS, pages_router
from judge.render.pages import SITE_HEAD
from judge.report.cards import ProbePage
from tests.arena.pages.conftest import NOW, MakeBoard
from tests.arena.store.battles import MODELS, new_battle
from tests.judge.report.test_files_of_cards import page as cards_page
from tests.open_pages import open_pages, parts_of, served


@pytest.fixture
def clock() -> list[timedelta]:
    return [timedelta(0)]


@pytest.fixture
def client(make_board: MakeBoard, clock: list[timedelta]) -> Iterator[httpx2.Client]:
    with parts_of(make_board()) as parts:
        parts.store.register(MODELS, NOW)
        parts.store.open_battle(replace(new_battle("b1", Voter("ann")), prompt="Asked by ann"))
        router = pages_router(replace(parts, now=lambda: NOW + clock[0]))
        with served(open_pages(router)) as client:
            yield client


@pytest.mark.parametrize("path", ["/leaderboard", "/value", "/votes", "/method"])
def test_each_page_is_served_as_html_and_a_trailing_slash_leads_to_it(
    client: httpx2.Client, path: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "· Arena</title>" in answer.text
    assert client.head(path).status_code == 200
    answer = client.get(path + "/")
    assert (answer.status_code, answer.headers["Location"]) == (308, path)


def test_the_stylesheet_is_served(client: httpx2.Client) -> None:
    answer = client.get("/look/pages.css")
    assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "prefers-color-scheme: dark" in answer.text
    assert "@media print" in answer.text


@pytest.mark.slow
def test_the_font_of_formulas_is_served_and_stays_a_day(client: httpx2.Client) -> None:
    answer = client.get("/look/maths.woff2", timeout=60)
    assert (answer.headers["Content-Type"], answer.content[:4]) == ("font/woff2", b"wOF2")
    assert "max-age=86400" in answer.headers["Cache-Control"]
    assert 'url("maths.woff2")' in client.get("/look/rendered.css").text


@pytest.mark.parametrize(
    "path", ["/leaderboard", "/value", "/method", "/look/pages.css", "/look/rendered.css"]
)
def test_an_unchanged_page_is_not_sent_twice(client: httpx2.Client, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    for_one = "" if path.startswith("/look/") else "private, "
    assert first.headers["Cache-Control"] == f"{for_one}no-cache"
    assert (again.status_code, again.content) == (304, b"")


def test_a_page_is_sent_anew_when_its_age_reads_otherwise(
    client: httpx2.Client, clock: list[timedelta]
) -> None:
    tag = client.get("/leaderboard").headers["ETag"]
    clock[0] = timedelta(minutes=3)
    answer = client.get("/leaderboard", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert "5 minutes ago" in answer.text


def test_ratings_are_downloaded_with_how_they_were_made(
    client: httpx2.Client, tmp_path: Path
) -> None:
    answers = {ending: client.get(f"/leaderboard.{ending}") for ending in DOWNLOADS}
    for ending, answer in answers.items():
        assert answer.headers["Content-Type"].partition(";")[0] == DOWNLOADS[ending]
        disposition = f'attachment; filename="leaderboard.{ending}"'
        assert answer.headers["Content-Disposition"] == disposition
        (tmp_path / f"board.{ending}").write_bytes(answer.content)
    body = answers["json"].json()
    method = {"policy": "default-v3", "version": "3f9a1c2e", "data_hash": "c0ffee"}
    assert body["method"].items() >= method.items()
    assert [row["rating"] for row in body["ratings"]] == [1184.0, 816.0]
    assert [entry["model"] for entry in body["waiting"]] == ["tuff-13b"]
    for ending in ("csv", "parquet"):
        table = duckdb.execute(f"FROM '{tmp_path}/board.{ending}'")
        names = [column[0] for column in table.description or ()]
        rows = table.fetchall()
        first = dict(zip(names, rows[0], strict=True))
        assert len(rows) == 2
        assert first.items() >= method.items()
        assert (first["model"], first["rating"], first["rank_low"]) == ("quartz-8b", 1184.0, 2)
        assert (first["price_per_1000"], first["board_votes"]) == (0.41, 2184)


def test_there_is_no_file_of_no_ratings(client: httpx2.Client) -> None:
    for address in (
        "/leaderboard.csv?policy=none",
        "/leaderboard.json?policy=%00",
        "/leaderboard.",
    ):
        assert client.get(address).status_code == 404


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["quartz-8b", "chalk-3b"]),
        ("sort=-rating", ["chalk-3b", "quartz-8b"]),
        ("sort=name", ["chalk-3b", "quartz-8b"]),
        ("sort=-name", ["quartz-8b", "chalk-3b"]),
        ("q=CHALK", ["chalk-3b"]),
        ("q=stone+works&sort=votes", ["quartz-8b", "chalk-3b"]),
        ("q=basalt", []),
        ("sort=__class__", ["quartz-8b", "chalk-3b"]),
        ("sort=--rating&sort=rating;drop", ["quartz-8b", "chalk-3b"]),
        ("q=%3Cscript%3Ealert(1)%3C/script%3E%22%20onfocus=%22", []),
        ("q=%ff%00%0d%0aSet-Cookie:x", []),
        ("q=" + "x" * 5000, []),
    ],
)
def test_standings_are_sorted_and_searched_by_address(
    client: httpx2.Client, query: str, names: list[str]
) -> None:
    answer = client.get(f"/leaderboard?{query}")
    standings = answer.text.partition("<tbody>")[2].partition("</tbody>")[0]
    assert answer.status_code == 200
    assert re.findall(r'<bdi class="name">(quartz-8b|chalk-3b)', standings) == names
    assert len(answer.text) < 40_000
    assert "<script" not in answer.text
    assert '" onfocus' not in answer.text
    assert "set-cookie" not in answer.headers


def test_the_battles_of_a_model_lead_to_the_report_that_the_roster_names_for_it() -> None:
    url = "https://rocks.example/report"
    with parts_of(show_battles=True) as parts:
        models = (replace(parts.models[0], contamination_report=url), parts.models[1])
        with served(open_pages(pages_router(replace(parts, models=models)))) as client:
            own, other = (client.get(f"/battles?model={one.id}") for one in models)
    assert (own.status_code, other.status_code) == (200, 200)
    assert (url in own.text, url in other.text) == (True, False)


def test_battles_are_shown_to_their_owner_and_kept_nowhere(client: httpx2.Client) -> None:
    mine = client.get("/votes", headers={"Cookie": "voter=ann"})
    assert "Asked by ann" in mine.text
    assert mine.headers["Cache-Control"] == "private, no-store"
    assert "ETag" not in mine.headers
    assert "Asked by" not in client.get("/votes").text


@pytest.mark.parametrize(
    ("cards", "status", "text"),
    [((cards_page(),), 200, "Fails: recovers"), ((), 404, "been probed")],
)
def test_cards_are_shown_below_the_head_of_all_pages(
    make_board: MakeBoard, cards: tuple[ProbePage, ...], status: int, text: str
) -> None:
    with (
        parts_of(make_board()) as parts,
        served(open_pages(pages_router(replace(parts, cards=cards)))) as client,
    ):
        answer = client.get("/cards")
        assert (answer.status_code, text in answer.text) == (status, True)
        assert answer.text.count('<header class="site-head">') == 1
        assert SITE_HEAD not in answer.text
        assert client.get("/cards/").headers["Location"] == "/cards"
