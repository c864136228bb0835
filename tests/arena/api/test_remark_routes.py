"""What is remarked beside a vote, over real HTTP: it is safe apart, and never touches the vote."""

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from arena.store.store import Store
from arena.store.verify import verify
from tests.serving import Served, Visitor, quick_arena
from tests.sqlite import new_sqlite

NAMED = re.compile(r"(?:Name|id-)[ ]?[xyz]\b")
WHY: dict[str, Any] = {
    "reasons_a": ["useful", "clear_formatting"],
    "reasons_b": ["incorrect"],
    "comment": "B counts wrongly.",
    "confidence": 2,
    "intent": "quizzing",
}
NOTHING: dict[str, Any] = {
    "reasons_a": [],
    "reasons_b": [],
    "comment": "",
    "confidence": None,
    "intent": None,
}


@pytest.fixture(scope="module")
def after(either_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("after"), database=either_database) as served:
        yield served


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("before")
        yield stack.enter_context(quick_arena(folder, reasons="before"))


def remark(somebody: Visitor, battle_id: str, **values: Any) -> httpx2.Response:
    return somebody.post(f"/api/v1/battles/{battle_id}/remarks", json=values)


def votes_in(served: Served) -> list[tuple[Any, ...]]:
    with closing(Store(served.database)) as store, store.reading() as session:
        rows = session.connection().execute(text("SELECT * FROM vote ORDER BY id"))
        return [tuple(map(str, row)) for row in rows]


def test_remarks_are_saved_the_last_word_wins_and_the_vote_stays_as_it_was(after: Served) -> None:
    with after.visitor() as ada:
        battle_id = ada.play()
        receipt = ada.vote(battle_id, "model_a").json()
        assert ada.look(battle_id)["remarks"] is None
        votes = votes_in(after)
        first = remark(ada, battle_id, **WHY)
        assert first.status_code == 200
        assert first.json() == {"vote": receipt, "remarks": WHY | {"before_reveal": False}}
        assert remark(ada, battle_id, **WHY).content == first.content
        assert ada.look(battle_id)["remarks"] == first.json()["remarks"]
        last = remark(ada, battle_id, intent="playing").json()["remarks"]
        assert last == NOTHING | {"intent": "playing", "before_reveal": False}
        assert ada.look(battle_id)["remarks"] == last
        assert votes_in(after) == votes
    with closing(Store(after.database)) as store, store.reading() as session:
        assert verify(session).problem is None


def test_reasons_are_kept_in_one_order_each_once(after: Served) -> None:
    with after.visitor() as ada:
        battle_id = ada.play()
        ada.vote(battle_id, "tie")
        given = ["incorrect", "useful", "incorrect"]
        saved = remark(ada, battle_id, reasons_b=given, comment="  so \x00 so ").json()
        assert saved["remarks"]["reasons_b"] == ["useful", "incorrect"]
        assert saved["remarks"]["comment"] == "so \ufffd so"


def test_nothing_is_remarked_before_a_vote_beside_a_skip_or_by_anybody_else(after: Served) -> None:
    with after.visitor() as ada, after.visitor() as eve:
        battle_id = ada.play()
        early = remark(ada, battle_id, **WHY)
        assert (early.status_code, early.json()["detail"]) == (
            409,
            "Vote first. Then you can give reasons.",
        )
        assert ada.look(battle_id)["state"] == "ready"
        assert not NAMED.search("".join(ada.received))
        skipped = ada.play()
        ada.vote(skipped, "skip")
        assert remark(ada, skipped, **WHY).status_code == 409
        ada.vote(battle_id, "model_b")
        eve.open()
        assert remark(eve, battle_id, **WHY).status_code == 404
        assert ada.look(battle_id)["remarks"] is None


@pytest.mark.parametrize(
    "odd",
    [
        {"reasons_a": ["clever"]},
        {"reasons_a": ["useful"] * 8},
        {"comment": "x" * 1001},
        {"confidence": 4},
        {"confidence": 0},
        {"intent": "testing"},
    ],
)
def test_what_the_page_does_not_offer_is_refused(after: Served, odd: dict[str, Any]) -> None:
    with after.visitor() as ada:
        battle_id = ada.play()
        ada.vote(battle_id, "model_a")
        assert remark(ada, battle_id, **WHY | odd).status_code == 422
        assert ada.look(battle_id)["remarks"] is None


def test_the_longest_comment_is_kept_whole(after: Served) -> None:
    with after.visitor() as ada:
        battle_id = ada.play()
        ada.vote(battle_id, "model_a")
        assert remark(ada, battle_id, **WHY | {"comment": "x" * 1000}).status_code == 200
        assert ada.look(battle_id)["remarks"]["comment"] == "x" * 1000


def test_where_reasons_come_first_no_byte_names_a_model_until_they_were_asked_for(
    before: Served,
) -> None:
    with before.visitor() as ada:
        battle_id, key = ada.play(), str(uuid.uuid4())
        receipt = ada.vote(battle_id, "model_a", key)
        assert receipt.json() == {"outcome": "model_a", "models": None, "gold": False}
        assert ada.vote(battle_id, "model_a", key).content == receipt.content
        shown = ada.look(battle_id)
        assert (shown["state"], shown["vote"], shown["models"]) == ("voted", receipt.json(), None)
        onward = ada.post(f"/api/v1/battles/{battle_id}/continue", json={"prompt": "And?"})
        assert onward.status_code == 409
        there = ada.get(f"/battles/{battle_id}")
        assert (there.status_code, there.headers["location"]) == (303, f"/?b={battle_id}")
        ada.get("/votes")
        ada.get("/votes.json")
        assert not NAMED.search("".join(ada.received))
        named = remark(ada, battle_id, **WHY | {"intent": None}).json()
        assert named["vote"]["models"]["a"]["name"].startswith("Name ")
        assert named["remarks"]["before_reveal"] is True
        assert ada.look(battle_id)["models"] == named["vote"]["models"]
        assert ada.vote(battle_id, "model_a", key).json() == named["vote"]
        assert ada.get(f"/battles/{battle_id}").status_code == 200


def test_reasons_count_as_given_before_the_names_until_they_change_after_them(
    before: Served,
) -> None:
    with before.visitor() as ada:
        battle_id = ada.play()
        ada.vote(battle_id, "both_bad")
        steps = (
            ({"reasons_a": ["superficial"]}, True),
            ({"reasons_a": ["superficial"]}, True),  # sent again, for its answer was lost
            ({"reasons_a": ["superficial"], "intent": "asking"}, True),
            ({"reasons_a": ["useful"], "intent": "asking"}, False),
            ({"reasons_a": ["superficial"], "intent": "asking"}, False),
        )
        for why, expected in steps:
            saved = remark(ada, battle_id, **why).json()["remarks"]
            assert saved["before_reveal"] is expected, why


def test_a_skip_reveals_nothing_and_waits_for_nothing(before: Served) -> None:
    with before.visitor() as ada:
        battle_id = ada.play()
        assert ada.vote(battle_id, "skip").json() == {
            "outcome": "skip",
            "models": None,
            "gold": False,
        }
        assert remark(ada, battle_id).status_code == 409


def test_an_arena_that_does_not_ask_takes_no_remarks_but_shows_names_that_wait(
    tmp_path: Path,
) -> None:
    url = new_sqlite(tmp_path)
    secret = {"database": url, "secret_key": "s"}
    with quick_arena(tmp_path, reasons="before", **secret) as asking, asking.visitor() as ada:
        waiting = ada.play()
        ada.vote(waiting, "model_a")
        cookies = dict(ada.client.cookies)
    with quick_arena(tmp_path, reasons="off", **secret) as served, served.visitor() as ada:
        ada.client.cookies.update(cookies)
        assert ada.look(waiting)["models"] is None
        assert remark(ada, waiting).json()["vote"]["models"]["a"]["name"]
        battle_id = ada.play()
        assert ada.vote(battle_id, "model_a").json()["models"]
        refused = remark(ada, battle_id, **WHY)
        assert (refused.status_code, refused.json()["detail"]) == (
            409,
            "This arena does not ask for reasons.",
        )


@pytest.mark.parametrize("choice", ["model_a", "skip"])
def test_html_for_the_page_names_the_models_once_they_are_revealed(
    after: Served, before: Served, choice: str
) -> None:
    for served in (after, before):
        with served.visitor() as ada:
            path = f"/api/v1/battles/{ada.play()}"
            shown = ada.client.get(path, params={"html": 1}).json()["html"]
            assert 'data-state="ready" data-choice="none" data-known="false"' in shown
            ballot = {"outcome": choice, "key": uuid.uuid4().hex}
            voted = ada.client.post(f"{path}/vote", params={"html": 1}, json=ballot).json()
            known = served is after and choice != "skip"
            assert (voted["models"] is not None) == known
            assert bool(NAMED.search(voted["html"])) == known
            assert (f'data-known="{str(known).lower()}"') in voted["html"]
            assert "html" not in ada.client.post(f"{path}/vote", json=ballot).json()
            if served is before and choice != "skip":
                remarked = ada.client.post(f"{path}/remarks", params={"html": 1}, json={}).json()
                assert NAMED.search(remarked["vote"]["html"])
