"""Pages of studies over HTTP: who sees what, byte by byte."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import func, select
from sqlmodel import col

from arena.domain.people import Role
from arena.store import studies
from arena.store.store import Store
from arena.store.tables import StudyAssignmentRow, StudyItemRow, StudyRow
from tests.serving import Served, Visitor, client_of, invited, quick_arena
from tests.studies import planned, write_study


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("studies")) as served:
        yield served


def in_form(page: str, name: str) -> str:
    match = re.search(rf'name="{name}" value="([^"]+)"', page)
    return match[1] if match else ""


def rate_one(rater: Visitor, name: str, choice: str = "a") -> bool:
    """Rate what is next; False if nothing is."""
    page = rater.get(f"/studies/{name}/rate").text
    if not (token := in_form(page, "token")):
        return False
    body = {"token": token, "key": in_form(page, "key"), "choice": choice}
    answer = rater.post(f"/studies/{name}/rate", data=body)
    assert answer.status_code == 303, answer.text
    rater.get(answer.headers["location"])
    remarks = {"reasons-a": "useful", "reasons-b": "incorrect", "confidence": "9"}
    remarks |= {"comment": f"Said by {choice}"}
    assert rater.post(answer.headers["location"], data=remarks).status_code == 303
    return True


def researcher(arena: Served) -> Visitor:
    somebody = arena.visitor()
    somebody.post(invited(arena, Role.RESEARCHER))
    return somebody


def test_no_rater_is_sent_a_model_an_id_or_what_others_say(arena: Served) -> None:
    write_study(arena.database, "blind", planned(5, gold=2), repeats=0.2)
    with arena.visitor() as ada, arena.visitor() as bob:
        rates = True
        while rates:
            rates = rate_one(ada, "blind", "b")
            rate_one(bob, "blind", "a")
        ada.get("/studies/blind")
        ada.get("/studies")
        ada.get("/votes.json")
        assert ada.get("/studies/blind/results").status_code == 401
        every = "\n".join(ada.received)
        assert "Answer 1 to 4" in every
        for hidden in ("model-", '"i4"', ">i4<", "Said by a", "gold", "alpha", "r02"):
            assert hidden not in every, hidden
        with closing(Store(arena.database)) as store, store.reading() as session:
            tokens = [row["item"] for row in studies.rows(session, "blind")]
        assert len(tokens) > 10
        own = json.loads(ada.get("/votes.json").text)["ratings"]
        assert {one["choice"] for one in own} == {"b"}
        assert {one["comment"] for one in own} == {"Said by b"}
        assert own[0]["reasons"] == {"a": ["useful"], "b": ["incorrect"]}
        assert {one["confidence"] for one in own} == {None}, "no level that is offered"


def test_nobody_reads_what_others_rate_by_its_address(arena: Served) -> None:
    write_study(arena.database, "own", planned(2))
    with arena.visitor() as ada, arena.visitor() as bob:
        assert rate_one(ada, "own")
        page = bob.get("/studies/own/rate").text
        token = int(in_form(page, "token"))
        for other in (token - 1, token, 10**17):
            assert bob.get(f"/studies/own/rated/{other}").status_code == 404
        taken = {"token": str(token), "key": str(uuid.uuid4()), "choice": "a"}
        assert ada.post("/studies/own/rate", data=taken).status_code == 404


def test_figures_are_for_researchers_once_they_rate_nothing(arena: Served) -> None:
    write_study(arena.database, "figures", planned(2), raters_per_item=3)
    with arena.visitor() as ada, researcher(arena) as eve, researcher(arena) as bob:
        for _ in range(2):
            rate_one(ada, "figures")
        assert rate_one(eve, "figures")
        refused = eve.get("/studies/figures/results")
        assert refused.status_code == 403
        assert "after you finish" in refused.text
        assert rate_one(eve, "figures")
        shown = eve.get("/studies/figures/results").text
        assert "2 raters" in shown
        assert "i1" in shown
        assert "Krippendorff" in bob.get("/studies/figures/results").text
        late = bob.get("/studies/figures/rate", headers={"Accept": "text/html"})
        assert late.status_code == 409
        assert "seen the figures" in late.text
        assert ada.get("/studies/figures/results").status_code == 401
        link = 'href="/studies/figures/results"'
        pages = [one.get(x).text for one in (ada, eve) for x in ("/studies", "/studies/figures")]
        assert [link in page for page in pages] == [False, False, True, True]


def test_what_is_sent_twice_is_written_once_and_another_choice_is_refused(arena: Served) -> None:
    write_study(arena.database, "twice", planned(1))
    with arena.visitor() as ada:
        page = ada.get("/studies/twice/rate").text
        body = {"token": in_form(page, "token"), "key": in_form(page, "key"), "choice": "a"}
        assert [ada.post("/studies/twice/rate", data=body).status_code for _ in "ab"] == [303] * 2
        other = body | {"key": str(uuid.uuid4()), "choice": "b"}
        refused = ada.post("/studies/twice/rate", data=other)
        assert refused.status_code == 409
        assert "your first answer stands" in refused.text
        assert ada.post("/studies/twice/rate", data=body | {"token": "x"}).status_code == 404
        assert ada.post("/studies/none/rate", data=body).status_code == 404


@pytest.mark.parametrize("choice", ["", "model_a", "c", "a" * 10_000])
def test_a_choice_that_is_none_is_said_so_and_nothing_is_saved(arena: Served, choice: str) -> None:
    name = f"odd-{len(choice)}"
    write_study(arena.database, name, planned(1))
    with arena.visitor() as ada:
        page = ada.get(f"/studies/{name}/rate").text
        body = {"token": in_form(page, "token"), "key": in_form(page, "key"), "choice": choice}
        answer = ada.post(f"/studies/{name}/rate", data=body)
        assert answer.status_code == 422
        assert "Choose an answer first" in answer.text
        assert in_form(answer.text, "token") == body["token"]


def test_three_answers_are_ranked_by_places_that_may_be_shared(arena: Served) -> None:
    write_study(arena.database, "ranked", planned(1, answers=3))
    with arena.visitor() as ada:
        page = ada.get("/studies/ranked/rate").text
        shown = [*dict.fromkeys(re.findall(r"Answer (\d) to 0", page))]
        body = {"token": in_form(page, "token"), "key": in_form(page, "key")}
        places = {f"place-{at}": "2" if n == "1" else "3" for at, n in enumerate(shown)}
        refused = ada.post("/studies/ranked/rate", data=body | places | {"place-2": ""})
        assert refused.status_code == 422
        assert "Give every answer a place" in refused.text
        assert ada.post("/studies/ranked/rate", data=body | places).status_code == 303
    with closing(Store(arena.database)) as store, store.reading() as session:
        (row,) = studies.rows(session, "ranked")
    assert row["ranking"] == '[["model-1"], ["model-0", "model-2"]]'


def test_who_does_not_qualify_reads_so_and_rates_nothing(arena: Served) -> None:
    items = planned(1, qualification=1)
    write_study(arena.database, "fit", items, pass_share=1.0)
    with arena.visitor() as ada, arena.visitor() as bob:
        assert rate_one(ada, "fit", "a")
        assert "Thank you for trying" in ada.get("/studies/fit/rate").text
        assert rate_one(bob, "fit", "tie")
        assert rate_one(bob, "fit", "tie")
        assert "You have finished" in bob.get("/studies/fit/rate").text


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("behind")
    with quick_arena(folder, trusted_proxies="127.0.0.1") as served:
        yield served


def ask(client: httpx2.Client, name: str, address: str) -> httpx2.Response:
    """Ask for an item as somebody without a cookie, from an address."""
    client.cookies.clear()
    return client.get(f"/studies/{name}/rate", headers={"X-Forwarded-For": address})


def reserved(served: Served, name: str) -> int:
    """Count the places that are held in a study."""
    with closing(Store(served.database)) as store, store.reading() as session:
        held = select(func.count()).select_from(StudyAssignmentRow)
        of_study = held.join(StudyItemRow, col(StudyItemRow.id) == StudyAssignmentRow.item_id)
        named = of_study.join(StudyRow, col(StudyRow.id) == StudyItemRow.study_id)
        return session.scalars(named.where(col(StudyRow.name) == name)).one()


def test_one_network_cannot_take_a_whole_study(behind_proxy: Served) -> None:
    write_study(behind_proxy.database, "whole", planned(100), raters_per_item=3)
    with client_of(behind_proxy.url) as client:
        answers = [ask(client, "whole", "203.0.113.7") for _ in range(300)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert [answer.status_code for answer in answers[:30]] == [200] * 30, "a class at once"
        assert len(refused) == 260
        assert "Your network has reached 40 raters of this study at a time" in refused[-1].text
        assert refused[-1].headers["Retry-After"] == "60"
        assert reserved(behind_proxy, "whole") == 40
        for n in range(10):
            other = ask(client, "whole", f"198.51.100.{n}")
            assert other.status_code == 200
            assert in_form(other.text, "token")
        client.cookies.clear()
        german = {"X-Forwarded-For": "203.0.113.7", "Accept-Language": "de"}
        assert (
            "Aus deinem Netz bewerten schon 40"
            in client.get("/studies/whole/rate", headers=german).text
        )


def test_a_network_of_ipv6_has_four_times_the_places_of_one_address(tmp_path: Path) -> None:
    few = {"trusted_proxies": "127.0.0.1", "raters_per_address": 2}
    with quick_arena(tmp_path, **few) as served, client_of(served.url) as client:
        write_study(served.database, "six", planned(50), raters_per_item=3)
        codes = [
            ask(client, "six", f"2001:db8:1:{k}::{n}").status_code for k in range(6) for n in "123"
        ]
        assert codes == [200, 200, 429] * 4 + [429] * 6


def test_so_many_raters_of_one_network_begin_in_an_hour(tmp_path: Path) -> None:
    few = {"trusted_proxies": "127.0.0.1", "new_raters_per_address_hour": 3}
    here = {"X-Forwarded-For": "203.0.113.7"}
    with quick_arena(tmp_path, **few) as served:
        write_study(served.database, "hour", planned(50), raters_per_item=3)
        raters = [served.visitor() for _ in range(4)]
        for one in raters[:3]:
            assert one.get("/studies/hour/rate", headers=here).status_code == 200
            assert one.post("/studies/hour/leave", headers=here).status_code == 303
        refused = raters[3].get("/studies/hour/rate", headers=here)
        assert refused.status_code == 429
        assert "Your network has reached 3 new raters in an hour. The next is free" in refused.text
        assert 3000 < int(refused.headers["Retry-After"]) <= 3660
        assert raters[0].get("/studies/hour/rate", headers=here).status_code == 200
        with client_of(served.url) as client:
            assert ask(client, "hour", "203.0.113.8").status_code == 200


def test_places_are_free_once_a_rater_leaves_and_what_they_rated_is_kept(arena: Served) -> None:
    write_study(arena.database, "leave", planned(2), raters_per_item=1)
    german = {"Accept-Language": "de"}
    with arena.visitor() as ada, arena.visitor() as bob, arena.visitor() as eve:
        rate_one(ada, "leave")
        page = ada.get("/studies/leave/rate").text
        assert "Leave the study" in page
        full = bob.get("/studies/leave/rate")
        assert full.status_code == 503
        assert full.headers["Retry-After"] == "60"
        assert full.headers["Cache-Control"] == "private, no-store"
        assert "All places are taken at the moment" in full.text
        assert "sind alle Plätze belegt" in bob.get("/studies/leave/rate", headers=german).text
        assert "All places are taken" in bob.get("/studies/leave").text
        action = re.search(r'method="post" action="(/studies/leave/leave)"', page)
        assert action
        left = ada.post(action[1])
        assert (left.status_code, left.headers["location"]) == (303, "/studies/leave")
        assert "You have rated 1 so far" in ada.get("/studies/leave").text
        assert rate_one(bob, "leave")
        assert "You have finished" in ada.get("/studies/leave/rate").text
        complete = eve.get("/studies/leave/rate")
        assert complete.status_code == 200
        assert "This study is complete" in complete.text
        assert "ist abgeschlossen" in eve.get("/studies/leave", headers=german).text
        assert ada.post("/studies/leave/leave").status_code == 303
        assert ada.post("/studies/none/leave").status_code == 404
    with closing(Store(arena.database)) as store, store.reading() as session:
        assert {row["rater"] for row in studies.rows(session, "leave")} == {"r01", "r02"}


def test_nobody_leaves_a_study_for_somebody_else(arena: Served) -> None:
    write_study(arena.database, "stay", planned(1), raters_per_item=1)
    with arena.visitor() as ada, arena.visitor() as bob, arena.visitor() as nobody:
        ada.get("/studies/stay/rate")
        bob.get("/studies/stay/rate")
        assert bob.post("/studies/stay/leave").status_code == 303
        assert nobody.post("/studies/stay/leave").status_code == 403
        foreign = {"Origin": "https://evil.example"}
        assert ada.post("/studies/stay/leave", headers=foreign).status_code == 403
        assert bob.get("/studies/stay/rate").status_code == 503
        assert rate_one(ada, "stay")


def test_the_head_leads_to_studies_where_there_is_one(arena: Served, tmp_path: Path) -> None:
    for name in ("any", "newer"):
        write_study(arena.database, name, planned(1))
    with arena.visitor() as ada:
        assert 'href="/studies"' in ada.get("/method").text
        page = ada.get("/studies").text
        assert page.index(">newer</a>") < page.index(">any</a>")
        assert '>newer</a>\n<span class="aside">Not begun · about 1 to go</span>' in page
    with quick_arena(tmp_path) as other, other.visitor() as bob:
        assert 'href="/studies"' not in bob.get("/method").text
        assert "There is no study yet." in bob.get("/studies").text


def test_hostile_texts_of_an_item_do_not_run(arena: Served, tmp_path: Path) -> None:
    from tests.command import invoke

    bad = "<script>alert(1)</script>"
    row = {"item_id": bad, "prompt": bad, "model_a": bad, "response_a": bad, "model_b": "y"}
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps(row | {"response_b": f"[x](javascript:alert(1)) {bad}"}))
    guidelines = tmp_path / "bad.md"
    guidelines.write_text(bad)
    words = ["--items", str(file), "--raters-per-item", "1", "--guidelines", str(guidelines)]
    invoke(["study", "create", "bad", *words, "--database", arena.database])
    with arena.visitor() as ada, researcher(arena) as eve:
        rate_one(ada, "bad")
        ada.get("/studies/bad")
        eve.get("/studies/bad/results")
        for text in (*ada.received, *eve.received):
            assert "<script>alert" not in text
            assert 'href="javascript' not in text


def test_warnings_of_agreement_and_of_raters_are_in_the_language_of_the_page(
    arena: Served,
) -> None:
    write_study(arena.database, "warned", planned(24), repeats=0.2)
    with arena.visitor() as ada, researcher(arena) as eve:
        german = {"Accept-Language": "de"}
        before = eve.get("/studies/warned/results", headers=german).text
        assert "Noch hat kein Fall mit zwei Antworten Bewertungen von zwei Personen" in before
        while rate_one(ada, "warned", "a"):
            pass
        text = eve.get("/studies/warned/results", headers=german).text
        assert re.search(r"r01 entscheidet mehr nach der Seite .* fielen 100\s% \(\d+–100\)", text)
        assert re.search(r"\d Wiederholung(en)? kam(en)? nach weniger als 20 anderen", text)
        english = eve.get("/studies/warned/results", headers={"Accept-Language": "en"}).text
        assert "r01 chooses by side more than by answer" in english
