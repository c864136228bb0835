"""The language of pages and refusals over HTTP: the visitor's choice, kept, and safely."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.serving import Served, client_of, quick_arena

ENGLISH = "There is no such battle, or it belongs to another visitor."
GERMAN = "Dieses Duell gibt es nicht, oder es gehört einer anderen Person."


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("languages")) as served:
        yield served


def heading(answer: httpx2.Response) -> str:
    return answer.text.partition("<h1>")[2].partition("</h1>")[0]


@pytest.mark.parametrize("path", ["/leaderboard", "/nowhere"])
def test_a_page_is_in_the_language_of_its_reader_and_says_so(arena: Served, path: str) -> None:
    with client_of(arena.url, headers={"Accept": "text/html"}) as client:
        english = client.get(path)
        german = client.get(path, headers={"Accept-Language": "de-AT, en;q=0.5"})
    for answer, language in ((english, "en"), (german, "de")):
        assert f'<html lang="{language}"' in answer.text
        assert answer.headers["Content-Language"] == language
        assert {"Accept-Language", "Cookie"} <= set(answer.headers["Vary"].split(", "))
    assert heading(german) != heading(english)
    assert german.headers.get("ETag", "de") != english.headers.get("ETag", "en")


def test_a_refusal_is_in_the_language_of_its_reader_and_a_program_reads_english(
    arena: Served,
) -> None:
    with arena.visitor() as ada:
        ada.get("/leaderboard")
        assert ada.get("/api/v1/battles/x").json()["detail"] == ENGLISH
        german = ada.get("/api/v1/battles/x", headers={"Accept-Language": "de"})
        assert (german.json()["detail"], german.headers["Content-Language"]) == (GERMAN, "de")
        assert ada.post("/language/de").status_code == 303
        assert ada.get("/api/v1/battles/x").json()["detail"] == GERMAN


def test_battles_votes_and_the_board_are_the_same_in_every_language(arena: Served) -> None:
    with arena.visitor() as ada, arena.visitor() as bea:
        bea.client.headers["Accept-Language"] = "de"
        receipts = [one.vote(one.play(), "both_bad").json() for one in (ada, bea)]
        boards = [one.get("/api/v1/leaderboard") for one in (ada, bea)]
    assert [receipt["outcome"] for receipt in receipts] == ["both_bad", "both_bad"]
    assert receipts[0].keys() == receipts[1].keys()
    assert boards[0].content == boards[1].content


def test_a_setting_names_the_language_of_who_asks_for_none(
    arena: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        quick_arena(tmp_path_factory.mktemp("german"), language="de") as german,
        german.visitor() as ada,
    ):
        assert heading(ada.get("/leaderboard")) == "Rangliste"
        assert heading(ada.get("/leaderboard", headers={"Accept-Language": "fr"})) == "Rangliste"
        assert heading(ada.get("/leaderboard", headers={"Accept-Language": "en"})) == "Leaderboard"
        assert ada.get("/api/v1/battles/x").json()["detail"] == ENGLISH


@pytest.mark.parametrize(
    ("cookie", "accepted"),
    [
        ("language=xx", "de"),
        ("language=../de", "de;q=1.000"),
        ("language=en; language=de", "de"),
        ('language="de"', "de," * 800 + "de"),
        ("language=" + "d" * 4000, "de;\tq=1"),
    ],
)
def test_what_is_no_language_is_passed_over(arena: Served, cookie: str, accepted: str) -> None:
    headers = {"Cookie": cookie, "Accept-Language": accepted}
    with client_of(arena.url) as client:
        answer = client.get("/leaderboard", headers=headers)
    assert (answer.status_code, heading(answer)) == (200, "Rangliste")


def test_a_choice_is_kept_and_shows_the_page_that_one_came_from(arena: Served) -> None:
    with arena.visitor() as ada:
        back = ada.post(
            "/language/de", headers={"Referer": f"{arena.url}/leaderboard?q=x&sort=name"}
        )
        assert (back.status_code, back.headers["Location"]) == (303, "/leaderboard?q=x&sort=name")
        cookie = back.headers["Set-Cookie"].lower()
        parts = ("language=de", "httponly", "samesite=lax", "path=/", "max-age=31536000")
        assert all(part in cookie for part in parts)
        answer = ada.get("/method", headers={"Accept-Language": "en"})
        assert heading(answer) == "Methode"
        assert ada.post("/language/fr").status_code == 404


@pytest.mark.parametrize(
    "referer",
    [
        "https://evil.example/leaderboard",
        "{}.evil.example/leaderboard",
        "{}@evil.example/",
        "{}//evil.example/x",
        "{}/\\evil.example/x",
        "{}/%0d%0aSet-Cookie:x",
        "javascript:alert(1)",
        "http://[::1",
        "",
    ],
)
def test_no_choice_leads_out_of_the_arena(arena: Served, referer: str) -> None:
    with arena.visitor() as ada:
        headers = {"Referer": referer.format(arena.url), "Origin": arena.url}
        answer = ada.post("/language/de", headers=headers)
    assert answer.status_code == 303
    target = answer.headers["Location"]
    assert httpx2.URL(arena.url).join(target).host == "127.0.0.1"
    assert target.startswith("/")
    assert target[1:2] not in ("/", "\\")


def test_the_head_counts_the_votes_of_the_visitor(arena: Served) -> None:
    def head(answer: httpx2.Response) -> str:
        return answer.text.partition('<a class="cast"')[2].partition("</a>")[0]

    with arena.visitor() as ada:
        assert " hidden" in head(ada.get("/method"))
        ada.vote(ada.play(), "tie")
        ada.vote(ada.play(), "skip")
        assert head(ada.get("/method")).endswith(">1 vote")
        german = ada.get("/method", headers={"Accept-Language": "de"})
        assert head(german).endswith(">1 Stimme")
        assert german.headers["Cache-Control"] == "private, no-cache"
