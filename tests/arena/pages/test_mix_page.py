"""The page of one's own mix: sliders as a form, own prompts, the board, and its JSON."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import text as sql

from arena.catalogue import Language
from arena.pages.rendering import MOST_CHARACTERS, MOST_PROMPTS, pair_among
from arena.pages.routes import counted
from arena.store.store import Store
from tests.arena.boards.kinds import MODELS, arena_of_kinds, until_made
from tests.arena.pages.page import Page, text
from tests.serving import Served, Visitor

OWN = """Write a Python function that adds two numbers
Write a Python class for a queue

{"prompt": "Translate into German: good morning"}
"""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with arena_of_kinds(tmp_path_factory.mktemp("mix"), 240, "/mix") as served:
        yield served


@pytest.fixture
def ada(arena: Served) -> Iterator[Visitor]:
    with arena.visitor() as visitor:
        yield visitor


def test_without_a_mix_it_is_that_of_the_votes(ada: Visitor) -> None:
    page = Page(ada.get("/mix").text)
    sliders = {one["name"]: one for one in page.all("input") if one.get("type") == "range"}
    assert {*sliders} == {"code", "creative", "translation", "other"}
    assert 98 <= sum(int(one["value"] or 0) for one in sliders.values()) <= 102
    labels = {one.get("for") for one in page.all("label")}
    assert {one["id"] for one in sliders.values()} <= labels
    assert ada.get("/mix.json").json()["n_effective"] == pytest.approx(240)
    assert page.open == []


def test_the_form_s_answer_is_the_board_on_that_mix(ada: Visitor) -> None:
    answer = ada.get("/mix?code=30&creative=10&translation=0")
    words = text(answer.text)
    assert answer.status_code == 200
    assert "Code 75%" in words
    assert "Creative writing 25%" in words
    assert "effective votes." in words
    assert "The address of this page keeps the mix." in words
    body = ada.get("/mix.json?code=30&creative=10").json()
    assert f"{body['ratings'][0]['rating']:,.0f}" in words
    pair = body["pairs"][0]
    assert f"{pair['preferred']:.2f} {pair['lower']:.2f} to {pair['upper']:.2f}" in words


def test_the_json_is_that_of_the_command(ada: Visitor) -> None:
    body = ada.get("/mix.json?code=3&creative=1").json()
    assert body["mix"] == pytest.approx({"code": 0.75, "creative": 0.25})
    assert len(body["pairs"]) == len(MODELS) * (len(MODELS) - 1) / 2
    assert (body["policy"], body["n_prompts"], body["left_out"]) == ("default-v3", None, {})


def test_two_models_of_one_s_choice_are_compared(ada: Visitor) -> None:
    body = ada.get("/mix.json?code=1").json()
    below, above = body["ratings"][3]["model"], body["ratings"][1]["model"]
    words = text(ada.get(f"/mix?code=1&a={below}&b={above}").text)
    pair = next(one for one in body["pairs"] if (one["a"], one["b"]) == (above, below))
    mirrored = [f"{1 - pair[name]:.2f}" for name in ("preferred", "upper", "lower")]
    assert "{} {} to {}".format(*mirrored) in words
    order = ["x", "y", "z"]
    assert pair_among(order, "", "") == ("x", "y")
    assert pair_among(order, "y", "y") == ("y", "x")
    assert pair_among(order, "z", "?") == ("z", "x")


def test_a_mix_on_few_votes_is_grey_and_says_so(ada: Visitor) -> None:
    few = ada.get("/mix?translation=1")
    assert {"id": "result", "class": "hint"} in Page(few.text).all("div")
    assert "Under 30, it is only a hint, shown in grey." in text(few.text)
    assert {"id": "result"} in Page(ada.get("/mix?code=1").text).all("div")


def test_own_prompts_are_labelled_and_lead_to_an_address_that_keeps_the_mix(
    ada: Visitor, arena: Served
) -> None:
    answer = ada.post("/mix", data={"text": OWN})
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["Location"]).query) == {
        "code": ["2"],
        "translation": ["1"],
        "prompts": ["3"],
    }
    page = ada.get(answer.headers["Location"])
    assert "It was counted from 3 prompts" in text(page.text)
    assert "Python" not in answer.headers["Location"] + page.text
    same = ada.post("/mix.json", content=OWN.encode(), headers={"Content-Type": "text/plain"})
    assert same.json()["mix"] == pytest.approx({"code": 2 / 3, "translation": 1 / 3})
    assert same.json()["n_prompts"] == 3


def test_nothing_of_own_prompts_is_stored(ada: Visitor, arena: Served) -> None:
    secret = "Write a poem about the xylophone of Ouagadougou"
    assert ada.post("/mix", data={"text": secret}).status_code == 303
    store = Store(arena.database)
    with store.reading() as session:
        connection = session.connection()
        tables = connection.execute(sql("SELECT name FROM sqlite_master WHERE type = 'table'"))
        for (name,) in tables.all():
            rows = connection.execute(sql(f'SELECT * FROM "{name}"')).all()
            assert "Ouagadougou" not in repr(rows)
    store.close()


def test_counted_prompts_widen_the_interval_of_a_preference(ada: Visitor) -> None:
    few, given = (
        ada.get(f"/mix.json?code=1&creative=1{prompts}").json()["pairs"][0]
        for prompts in ("&prompts=2", "")
    )
    assert few["preferred"] == given["preferred"]
    assert few["upper"] - few["lower"] > given["upper"] - given["lower"]


def test_kinds_without_a_vote_are_left_out_and_named(ada: Visitor) -> None:
    words = text(ada.get("/mix?code=3&roleplay=1&prompts=4").text)
    assert "No vote is on prompts of the kind Role play: it is excluded." in words
    assert "counted from 3 prompts" in words
    assert ada.get("/mix.json?code=3&roleplay=1").json()["left_out"] == {"roleplay": 1.0}


@pytest.mark.parametrize(
    "query",
    [
        "code=x",
        "code=-1",
        "code=nan",
        "code=inf",
        "code=0",
        "code=1&prompts=0",
        f"code=1&prompts={10**400}",
        "roleplay=1",
    ],
)
def test_what_is_no_mix_is_refused_in_words_and_the_votes_mix_is_shown(
    ada: Visitor, query: str
) -> None:
    page = ada.get(f"/mix?{query}")
    assert page.status_code == 422
    assert "Shown is the mix of all votes." in text(page.text)
    answer = ada.get(f"/mix.json?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(("Shares of a mix", "No vote is on"))


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ("", 422, "There is no prompt in what you sent."),
        ("Hi\n" * (MOST_PROMPTS + 1), 413, "1,000 prompts and 200,000 characters at most"),
        ("x" * (MOST_CHARACTERS + 1), 413, "1,000 prompts and 200,000 characters at most"),
        ('{"words": 3}', 422, "Line 1 has no prompt"),
    ],
)
def test_prompts_that_are_not_taken_are_refused_in_words(
    ada: Visitor, sent: str, status: int, words: str
) -> None:
    page = ada.post("/mix", data={"text": sent})
    assert page.status_code == status
    assert words in text(page.text)
    plain = ada.post("/mix.json", content=sent.encode(), headers={"Content-Type": "text/plain"})
    assert plain.status_code == status
    assert words in plain.json()["detail"]


def test_bytes_that_are_no_text_are_refused(ada: Visitor) -> None:
    for headers in (FORM, {"Content-Type": "text/plain"}):
        assert ada.post("/mix", content=b"text=\xff\xfe", headers=headers).status_code == 422


def test_another_site_cannot_have_prompts_counted(ada: Visitor) -> None:
    answer = ada.post("/mix", data={"text": "Hi"}, headers={"Origin": "https://example.org"})
    assert answer.status_code == 403


def test_as_many_prompts_as_are_taken_are_counted_in_seconds() -> None:
    mix = counted("Write a Python function that adds\n" * MOST_PROMPTS)
    assert mix.prompts == MOST_PROMPTS
    assert mix.shares == {"code": 1.0}


def test_models_and_policies_that_are_not_there(ada: Visitor) -> None:
    assert ada.get("/mix?policy=nobody").status_code == 404
    named, default = (ada.get(f"/leaderboard.csv{of}") for of in ("?policy=default-v3", ""))
    assert (named.status_code, named.text) == (200, default.text)
    assert ada.get("/mix.json?policy=nobody").status_code == 404
    assert ada.post("/mix?policy=nobody", data={"text": "Hi"}).status_code == 404
    assert ada.get("/mix/").status_code == 308


def test_an_arena_without_labels_says_why_there_is_no_mix(ada: Visitor) -> None:
    page = until_made(ada, "/mix?policy=simulated-v1")
    assert "No counted vote has a label yet" in text(page.text)
    answer = ada.get("/mix.json?policy=simulated-v1")
    assert answer.status_code == 422
    assert "No counted vote has a label yet" in json.dumps(answer.json())


def test_the_page_speaks_german(ada: Visitor) -> None:
    page = ada.get("/mix?code=1", headers={"Accept-Language": Language.DE.value})
    assert "Meine Mischung" in page.text
    assert "Stimmen stehen hinter dieser Mischung" in text(page.text) or "stehen effektiv" in text(
        page.text
    )


def test_the_script_is_served(ada: Visitor) -> None:
    answer = ada.get("/look/mix.js")
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert "history.replaceState" in answer.text
