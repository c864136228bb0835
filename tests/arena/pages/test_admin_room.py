"""The admin room over HTTP: who runs the arena sees how it does, and what was done."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arena.domain.people import Role
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import blocks, kept_boards, people, roster, voting
from arena.store.store import Store
from arena.store.voting import Grounds
from tests.arena.store.battles import MODELS, NOW, at_once, ballot, ready
from tests.command import Command
from tests.faulty_server import Behaviour, faulty_server
from tests.process import until
from tests.provider_errors import REFUSALS, SPENT
from tests.serving import Served, Visitor, invited, quick_arena, serve, served_by, write_roster
from tests.sqlite import new_sqlite

REFUSED = "Incorrect API key provided: <b>expired</b>"
Z_FAILS = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xy"}
Z_FAILS["z"] = Behaviour(status=401, error={"message": REFUSED})


def as_admin(served: Served) -> Visitor:
    """Let somebody in who runs the arena."""
    visitor = served.visitor()
    assert visitor.post(invited(served, Role.ADMIN)).status_code == 303
    return visitor


def text_of(page: str) -> str:
    """Give the words of a page, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", page)))


def test_nothing_of_the_room_stays_in_a_browser_or_is_shown_to_others(served: Served) -> None:
    with as_admin(served) as admin, served.visitor() as other:
        for path in (
            "/admin",
            "/admin/people",
            "/admin/voters",
            "/admin/battles",
            "/admin/policies",
            "/admin/log?before=x",
        ):
            answer = admin.get(path)
            assert answer.headers["cache-control"] == "private, no-store"
            assert "noindex" in answer.text
            assert other.get(path).status_code == 401
        other.post(invited(served, Role.RESEARCHER))
        assert other.get("/admin").status_code == 403


def test_the_overview_quotes_an_endpoint_that_failed_and_counts_the_day(tmp_path: Path) -> None:
    with (
        faulty_server(Z_FAILS) as server,
        served_by(server, tmp_path, secret_key="k" * 32, max_dollars_per_day=5) as served,
        as_admin(served) as admin,
        served.visitor() as other,
    ):
        for _ in range(12):
            other.play()
        other.vote(other.play(), "tie")
        page = admin.get("/admin").text
    assert "<b>expired" not in page
    words = text_of(page)
    assert "Battles in 24 hours 13" in words
    assert "Votes in 24 hours 1 " in words
    assert "of $5.00" in words
    assert re.search(r"Name z key refused \d+ times?, last just now status 401, Incorrect", words)
    assert REFUSED in words


def test_the_overview_says_that_an_account_is_spent_and_a_test_what_is_left_out(
    tmp_path: Path,
) -> None:
    behaviours = {name: Behaviour(text=f"So says {name}. " * 20) for name in "xyz"}
    spent, error = SPENT["openai"], REFUSALS["openai-unknown"]

    def fussy(body: Mapping[str, Any]) -> Behaviour:
        refused = Behaviour(status=error.status, stream=error.text)
        return refused if "stream_options" in body else Behaviour()

    with (
        faulty_server(behaviours) as server,
        served_by(server, tmp_path, secret_key="k" * 32) as served,
        as_admin(served) as admin,
        served.visitor() as other,
    ):
        server.behaviours["x"] = Behaviour(status=spent.status, stream=spent.text)
        words = "Its account has no credit"
        until(lambda: bool(other.play()) and words in admin.get("/admin/models").text)
        page = text_of(admin.get("/admin").text)
        assert "Name x account without credit" in page
        assert "the account has no credit left: status 429, You exceeded your current" in page
        assert "Add credit for an account at its provider" in page
        assert "Replace a refused key" not in page
        server.behaviours |= {"x": fussy, "y": Behaviour()}
        tested = text_of(admin.post("/admin/models/test").text)
        assert words not in admin.get("/admin/models").text
    assert tested.count("It answered within") == 3
    assert tested.count("Its endpoint refuses stream_options, which is not sent.") == 1


def test_the_overview_says_nothing_of_models_in_one_s_own_battle_before_the_vote(
    served: Served,
) -> None:
    with as_admin(served) as admin, served.visitor() as other:
        for _ in range(6):
            other.play()
        before = admin.get("/admin").text
        assert "These figures are live" in before
        battle_id = admin.play()
        count = "<dd>{}</dd>".format
        assert admin.get("/admin").text.replace(count(7), count(6)) == before
        admin.vote(battle_id, "tie")
        after = admin.get("/admin").text
        assert table_of(after) != table_of(before)


def table_of(page: str) -> str:
    return page.partition("<table")[2].partition("</table>")[0]


def test_the_log_shows_who_did_what_page_by_page(served: Served) -> None:
    with closing(Store(served.database)) as store, store.writing() as session:
        for n in range(people.PAGE + 5):
            people.note(session, "terminal", "exclude", f"<i>voter{n}</i>", {"votes": n}, NOW)
    with as_admin(served) as admin:
        first = admin.get("/admin/log").text
        assert "<i>" not in first
        words = text_of(first)
        assert words.index("invited Ada Lovelace") < words.index(
            "excluded votes of <i>voter54</i>"
        )
        assert "<i>voter4</i>" not in words
        older = re.search(r'href="(/admin/log\?before=\d+)"', first)
        assert older
        second = text_of(admin.get(older[1]).text)
        assert all(f"<i>voter{n}</i>" in words + second for n in range(people.PAGE + 5))
        assert "<i>voter54</i>" not in second
        for place in ("-1", "1x", "9" * 19):
            answer = admin.get(f"/admin/log?before={place}")
            assert answer.status_code == 404
            assert "There is no such place in the log" in answer.text


def test_the_terminal_gives_the_figures_of_the_overview(command: Command, served: Served) -> None:
    with served.visitor() as visitor:
        for outcome in ("skip", "model_a", "model_a"):
            visitor.vote(visitor.play(), outcome)
        visitor.vote(voted := visitor.play(), "model_a")
        more = visitor.post(f"/api/v1/battles/{voted}/continue", json={"prompt": "More?"})
        visitor.follow(more.json()["battle_id"])  # a conversation that goes on has not begun
    day = json.loads(command("status", "--format", "json", "--database", served.database).stdout)
    assert (day["running"], day["battles"], day["votes"]) == (0, 4, 3)
    assert sum(model["answers"] for model in day["models"]) == 10
    assert all(model["first_token_p95_s"] >= 0 for model in day["models"])
    printed = text_of(command("status", "--database", served.database).stdout)
    assert "4 began, 3 votes were cast, and $0.00 was spent (no limit)" in printed
    with closing(Store(served.database)) as store:
        next_day = store.read(kept_boards.status, datetime.now(UTC) + timedelta(days=1), None)
    assert (next_day["battles"], next_day["votes"], next_day["models"]) == (0, 0, [])


def test_votes_are_left_out_and_taken_in_again_with_a_reason_and_who_did_is_logged(
    served: Served,
) -> None:
    with as_admin(served) as admin, served.visitor() as visitor:
        visitor.vote(visitor.play(), "model_a")
        visitor.vote(visitor.play(), "model_b")
        with closing(Store(served.database)) as store:
            voter = store.read(blocks.columns, DEFAULT).values("voter")[0]
        form = {"target": voter, "reason": "<u>paid</u>"}
        answer = admin.post("/admin/exclude", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/voters?out=2")
        page = text_of(admin.get(answer.headers["location"]).text)
        assert "2 votes are excluded from here on." in page
        assert f"{voter[:12]} 2 votes: <u>paid</u> by hand" in page
        answer = admin.post("/admin/readmit", data=form | {"panel": "https://evil.example"})
        assert answer.headers["location"] == "/admin/voters?in=2"
        assert "No votes are excluded" in admin.get("/admin/voters").text
        page = text_of(admin.get("/admin/log").text)
        assert page.index("Ada Lovelace reinstated votes of") < page.index(
            f"Ada Lovelace excluded votes of {voter}"
        )
        german = text_of(admin.get("/admin/log", headers={"Accept-Language": "de"}).text)
        assert "Grund: <u>paid</u> , Regelwerk: default-v3 , Stimmen: 2" in german


def test_several_are_decided_with_one_reason_by_name_or_short_id_or_none_is(
    served: Served,
) -> None:
    with (
        as_admin(served) as admin,
        served.visitor() as ada,
        served.visitor() as bob,
        served.visitor() as eve,
    ):
        page = admin.post("/admin/people/invite", data={"name": "Grace Hopper", "role": "voter"})
        link = re.search(r"<code>http://[^<]+(/join/[^<]+)</code>", page.text)
        assert link
        assert ada.post(link[1]).status_code == 303
        for visitor in (ada, bob, eve):
            visitor.vote(visitor.play(), "model_a")
        with closing(Store(served.database)) as store:
            everybody = store.read(blocks.columns, DEFAULT).values("voter")
            named = next(p for p, *_ in store.read(people.matching, "") if p.role is Role.VOTER)
        others = [voter for voter in dict.fromkeys(everybody) if voter != named.id]
        shown = admin.get("/admin/voters").text
        for voter in (named.id, *others):
            assert f'form="busiest" name="target" value="{voter}"' in shown
        form = {"reason": "a test", "target": [named.name, others[0][:8], "nobody"]}
        refused = admin.post("/admin/exclude", data=form)
        assert "'nobody' is neither a voter" in text_of(refused.text)
        assert "No votes are excluded" in admin.get("/admin/voters").text, "all or none"
        answer = admin.post("/admin/exclude", data=form | {"target": form["target"][:2]})
        assert answer.headers["location"] == "/admin/voters?out=2"
        words = text_of(admin.get("/admin/voters").text)
        assert words.count("1 vote: a test by hand") == 2
        assert f"{named.name} {named.id[:12]} 1 vote: a test" in words
        acts = text_of(admin.get("/admin/log").text)
        assert acts.count("reason: a test") == 2
        both = {"reason": "they are honest", "target": [named.id, others[0]]}
        answer = admin.post("/admin/readmit", data=both)
        assert answer.headers["location"] == "/admin/voters?in=2"


def test_a_name_that_two_users_have_is_not_guessed(served: Served) -> None:
    with as_admin(served) as admin, as_admin(served) as other:
        other.vote(other.play(), "tie")
        form = {"target": "Ada Lovelace", "reason": "a test"}
        words = text_of(admin.post("/admin/exclude", data=form).text)
        assert "2 users have the name 'Ada Lovelace': take the id of one, such as" in words
        page = admin.post("/admin/exclude", data=form | {"form": "named"}).text
        assert page.count('value="a test"') == 1, "what was typed stays, in its form"
        assert 'name="target" value="Ada Lovelace"' in page


def test_people_are_invited_and_changed_on_their_page(served: Served) -> None:
    with as_admin(served) as admin, served.visitor() as bob:
        page = admin.post("/admin/people/invite", data={"name": "Bob <b>", "role": "voter"})
        link = re.search(r"<code>http://[^<]+(/join/[^<]+)</code>", page.text)
        assert link
        assert "<b>" not in page.text
        words = text_of(admin.get("/admin/people").text)
        assert re.search(
            r"Bob <b> voter invited just now, valid until \d+ \w+ \d{4}, \d\d:\d\d UTC", words
        )
        assert link[1] not in admin.get("/admin/people").text, "it is shown once"
        number = re.search(r'name="invitation" value="(\d+)"', admin.get("/admin/people").text)
        assert number
        at = {"invitation": number[1], "act": "role", "role": "researcher"}
        assert admin.post("/admin/people/invitation", data=at).status_code == 303
        assert bob.post(link[1]).status_code == 303
        words = text_of(admin.get("/admin/people").text)
        assert "No invitation is pending." in words
        assert re.search(r"Bob <b> \w{8} researcher 0 votes, since .*, by an invitation", words)
        with closing(Store(served.database)) as store:
            person = next(p for p, *_ in store.read(people.matching, "") if p.name == "Bob <b>")
        for act, badge in (("block", "researcher blocked"), ("unblock", "researcher 0 votes")):
            form = {"person": person.id, "act": act}
            assert admin.post("/admin/people/change", data=form).status_code == 303
            assert badge in text_of(admin.get("/admin/people").text)
        form = {"person": person.id, "act": "role", "role": "admin"}
        assert admin.post("/admin/people/change", data=form).status_code == 303
        acts = text_of(admin.get("/admin/log").text)
        assert acts.count("changed a person Bob <b>") == 3
        assert "blocked: no → yes" in acts
        assert "role: researcher → admin" in acts
        invitation = r"the role in the invitation of Bob <b> [^<]+ previously: voter , now: resear"
        assert re.search(invitation, acts)
        assert person.id not in acts
        assert bob.post("/device").status_code == 200
        assert "Bob <b> a further device invited" in text_of(admin.get("/admin/people").text)
        assert f"device of: {person.id}" in text_of(admin.get("/admin/log").text)


def test_an_invitation_is_made_once_however_often_its_form_is_sent(served: Served) -> None:
    with as_admin(served) as admin, served.visitor() as bob:
        once = re.search(r'name="once" value="([^"]+)"', admin.get("/admin/people").text)
        assert once
        form = {"name": "Bob", "role": "voter", "once": once[1]}
        pages = [""] * 8

        def send(n: int) -> None:
            pages[n] = admin.post("/admin/people/invite", data=form).text

        at_once(8, send)
        first, *others = (re.search(r"<code>http://[^<]+(/join/[^<]+)</code>", x) for x in pages)
        assert first
        assert {other and other[1] for other in others} == {first[1]}
        assert {text_of(page).count("Bob voter invited") for page in pages} == {1}
        assert "/language/de" not in pages[1], "another language would lose the link"
        assert "/language/de" in admin.get("/admin/people").text
        admin.post("/admin/people/invite", data=form | {"name": "Eve"})
        assert "Eve voter invited" in text_of(admin.get("/admin/people").text)
        assert bob.post(first[1]).status_code == 303
        used = admin.post("/admin/people/invite", data=form)
        assert "there is no such user or pending invitation any more" in text_of(used.text)


@pytest.mark.parametrize(
    ("path", "panel"),
    [
        ("people/invite", "people"),
        ("models/add", "models"),
        ("models/test", "models"),
        ("exclude", "voters"),
        ("models/place", "models"),
    ],
)
def test_the_address_of_a_form_leads_to_its_panel(quiet: Served, path: str, panel: str) -> None:
    with as_admin(quiet) as admin:
        answer = admin.get(f"/admin/{path}", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/admin/{panel}")


def test_an_invitation_that_is_revoked_lets_nobody_in(served: Served, command: Command) -> None:
    link = invited(served, Role.ADMIN)
    at = ("--database", served.database)
    with as_admin(served) as admin, served.visitor() as eve:
        number = re.search(r'name="invitation" value="(\d+)"', admin.get("/admin/people").text)
        assert number
        revoke = {"invitation": number[1], "act": "revoke"}
        assert admin.post("/admin/people/invitation", data=revoke).status_code == 303
        assert eve.post(link).status_code == 404
        assert "revoked the invitation of Ada Lovelace" in text_of(admin.get("/admin/log").text)
        gone = admin.post("/admin/people/invitation", data=revoke)
        assert "there is no such user or pending invitation" in text_of(gone.text)
    given = ("--role", "voter", "--uses", "3", "--days", "2", "--url", "https://a.example/")
    made = command("people", "invite", "Grace", *given, *at).stdout
    assert made.startswith("https://a.example/join/")
    assert "It lets in 'Grace' as voter, 3 times, until" in made
    users = json.loads(command("people", "list", "--format", "json", *at).stdout)
    (one,) = users["invitations"]
    assert (one["name"], one["role"], one["used"], one["uses"]) == ("Grace", "voter", 0, 3)
    created, expires = (datetime.fromisoformat(one[key]) for key in ("created", "expires"))
    assert expires - created == timedelta(days=2)
    shown = command("people", "list", *at, COLUMNS="200").stdout
    assert re.search(rf"Grace .* invited until {expires:%Y-%m-%d} .* 0 of 3 joined", shown)
    changed = command("people", "change", "Grace", "--role", "researcher", *at).stdout
    assert "gives the role researcher" in changed
    assert "lets nobody in" in command("people", "change", one["id"], "--block", *at).stdout
    users = json.loads(command("people", "list", "--format", "json", *at).stdout)
    assert users["invitations"] == []
    unknown = command("people", "change", "Grace", "--block", *at)
    assert unknown.returncode == 2
    assert "No user has the name 'Grace'" in unknown.stderr


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("change", {"person": "x", "act": "block"}, "there is no such user"),
        ("change", {"person": "x", "act": "role", "role": "king"}, "choose what is to become"),
        ("invitation", {"invitation": "x", "act": "revoke"}, "choose what is to become"),
        ("invitation", {"invitation": "99", "act": "role"}, "choose what is to become"),
        ("invite", {"name": " ", "role": "voter"}, "Give a name of up to 200 characters"),
        ("invite", {"name": "x" * 201, "role": "voter"}, "Give a name of up to 200 characters"),
    ],
)
def test_what_cannot_be_done_to_people_is_said(
    quiet: Served, path: str, form: dict[str, str], words: str
) -> None:
    refused(quiet, f"/admin/people/{path}", form, words)


def refused(quiet: Served, path: str, form: dict[str, str], words: str) -> str:
    """Send a form that an administrator's page refuses in these words; gives the page."""
    with as_admin(quiet) as admin:
        answer = admin.post(path, data=form)
    assert answer.status_code == 422
    assert words in text_of(answer.text)
    return answer.text


def test_nobody_takes_their_own_role_away(quiet: Served) -> None:
    with as_admin(quiet) as admin, closing(Store(quiet.database)) as store:
        own = [p.id for p, *_ in store.read(people.matching, "")][-1]
        for form in ({"act": "role", "role": "voter"}, {"act": "block"}):
            answer = admin.post("/admin/people/change", data=form | {"person": own})
            assert "another admin can change your role" in text_of(answer.text)


def test_what_cannot_be_decided_is_said_on_the_page(served: Served) -> None:
    with as_admin(served) as admin:
        for form, words in (
            ({"target": "<i>", "reason": "x"}, "'<i>' is neither a voter with votes"),
            ({"target": "x", "reason": " "}, "Give a reason"),
            ({}, "Give a reason"),
        ):
            for act in ("exclude", "readmit"):
                answer = admin.post(f"/admin/{act}", data=form)
                assert answer.status_code == 422
                assert words in text_of(answer.text)
        answer = admin.post("/admin/voters/apply")
        assert answer.status_code == 422
        assert "Examine the voters first" in answer.text


def test_voters_are_examined_while_nobody_waits_and_the_rules_are_applied(served: Served) -> None:
    with closing(Store(served.database)) as store:
        store.hold_lease()  # else the arena beside it ends these battles as nobody's
        store.register(MODELS, NOW)
        honest = [(f"v{n % 10}", Choice.B if (n // 10) % 2 else Choice.A) for n in range(220)]
        for place, (voter, choice) in enumerate(honest + [("bot", Choice.A)] * 54):
            ready(store, f"b{place}", Voter(voter))
            store.cast(ballot(f"b{place}", choice, voter=voter))
    with as_admin(served) as admin:
        assert admin.post("/admin/voters/examine").status_code == 303
        until(lambda: "are being examined" not in admin.get("/admin/voters").text)
        words = text_of(admin.get("/admin/voters").text)
        assert "(votes: 274, voters: 11)" in words
        assert "bot votes for one model wherever it appears ( basalt ) evidence 4.1 nats" in words
        answer = admin.post("/admin/voters/apply")
        assert answer.headers["location"] == "/admin/voters?out=0", "too little for a rule"
        assert "applied the rule voters" in text_of(admin.get("/admin/log").text)


def test_flagged_battles_and_held_rules_stand_in_the_room(served: Served) -> None:
    with served.visitor() as visitor:
        battle = visitor.play()
        visitor.vote(battle, "tie")
    with closing(Store(served.database)) as store, store.writing() as session:
        grounds = Grounds("self-naming", "1", "a model named itself")
        voting.flag(session, grounds, NOW, battle=1)
        voting.flag(session, Grounds("rings", "1", voting.HELD), NOW, score=0.34)
    with as_admin(served) as admin:
        page = admin.get("/admin/battles").text
        assert f'href="/battles/{battle}"' in page
        assert "a model named itself" in page
        form = {"target": battle, "reason": "it did", "panel": "battles"}
        answer = admin.post("/admin/exclude", data=form)
        assert answer.headers["location"] == "/admin/battles?out=1"
        page = admin.get("/admin/battles").text
        assert f'href="/battles/{battle}"' not in page
        assert "Reinstate" in page
        words = text_of(admin.get("/admin/policies").text)
        assert "Rule rings is suspended: it would exclude 34% of the votes" in words
        assert "default-v3" in words


def test_a_file_is_made_of_the_days_that_are_asked_for_and_it_is_logged(served: Served) -> None:
    now = datetime.now(UTC)
    before, after, later = (f"{now + timedelta(days=n):%Y-%m-%d}" for n in (-1, 1, 2))
    with as_admin(served) as admin:
        admin.vote(admin.play(), "model_a")
        page = admin.get("/admin/exports").text
        following = (now.replace(day=28) + timedelta(days=4)).replace(day=1)
        for name, day in (("since", now.replace(day=1)), ("until", following)):
            assert f'name="{name}" value="{day:%Y-%m-%d}"' in page
        form = {"what": "battles", "ending": "csv", "since": before, "until": after}
        made = admin.post("/admin/exports", data=form)
        assert made.headers["content-disposition"] == 'attachment; filename="battles.csv"'
        assert made.text.count(",voted,") == 1
        none = admin.post("/admin/exports", data=form | {"since": after, "until": later})
        assert none.text.count(",voted,") == 0
        for wrong, why in (({"until": before}, "Nothing lies between"), ({"what": "x"}, "Choose")):
            answer = admin.post("/admin/exports", data=form | wrong)
            assert (answer.status_code, why in answer.text) == (422, True)
        acts = text_of(admin.get("/admin/log").text)
    assert acts.count("Ada Lovelace exported battles") == 2
    assert f"from: {before}" in acts


NEW = """[[models]]
id = "w"
name = "Name w"
endpoint = "pocket://local/v1"
model = "trigram"
"""


def test_models_are_placed_weighed_added_and_tested_on_the_page(tmp_path: Path) -> None:
    with (
        faulty_server(Z_FAILS) as server,
        served_by(server, tmp_path, secret_key="k" * 32) as served,
        as_admin(served) as admin,
    ):
        words = text_of(admin.post("/admin/models/test").text)
        assert words.count("It answered within") == 2, words
        assert f"It did not answer: status 401, {REFUSED}" in words
        place = {"model": "id-z", "standing": "disabled"}
        assert admin.post("/admin/models/place", data=place).status_code == 303
        assert "Name z id-z disabled" in text_of(admin.get("/admin/models").text)
        turns = f"/api/v1/battles/{(begun := admin.play())}/turns"
        answer = admin.post("/admin/models/place", data=place | {"model": "id-x"})
        assert answer.status_code == 422
        assert "A battle needs two models, and this would leave 1" in answer.text
        assert admin.post("/admin/models/add", data={"roster": NEW}).status_code == 303
        assert admin.post("/admin/models/place", data=place | {"model": "id-x"}).status_code == 303
        models = admin.vote(admin.play(), "tie").json()["models"]
        assert {models[side]["name"] for side in "ab"} == {"Name y", "Name w"}, "at once"
        assert admin.post(turns, json={"prompt": "And x, which rests?"}).status_code == 201
        assert admin.follow(begun)[-1].event == "ready"
        weigh = {"model": "id-y", "weight": "2.5"}
        assert admin.post("/admin/models/weigh", data=weigh).status_code == 303
        assert 'value="2.5"' in admin.get("/admin/models").text
        for standing in ("enabled", "retired"):
            place = {"model": "id-x", "standing": standing}
            assert admin.post("/admin/models/place", data=place).status_code == 303
        assert admin.post(turns, json={"prompt": "And x, which left?"}).status_code == 409
        happened = re.findall(r"Name \w (?!prov)([a-z ]+) \d", text_of(admin.get("/models").text))
        weighed = "drawn more or less often"
        assert happened[:4] == ["retired", "enabled", weighed, "disabled"], "the newest first"
        hidden = NEW.replace('"w"', '"maple"').replace("Name w", "Veiled") + 'release = "hidden"'
        assert admin.post("/admin/models/add", data={"roster": hidden}).status_code == 303
        assert "maple enabled hidden" in text_of(admin.get("/admin/models").text)
        release = {"model": "maple", "release": "pre-release"}
        assert admin.post("/admin/models/release", data=release).status_code == 303
        assert "maple enabled pre-release" in text_of(admin.get("/admin/models").text)
        acts = text_of(admin.get("/admin/log").text)
    done = ["retired the model id-x", "enabled the model id-x", "changed the weight of id-y"]
    done += ["disabled the model id-x", "added the model w"]
    assert "Ada Lovelace let battle unnamed the model maple" in acts
    assert re.search("the weight of id-y [^<]+ UTC previously: 1.0 , now: 2.5 Ada", acts)
    assert [acts.index(f"Ada Lovelace {one}") for one in done] == sorted(
        acts.index(f"Ada Lovelace {one}") for one in done
    )


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("place", {"model": "id-x", "standing": "gone"}, "Choose what is to become"),
        ("place", {"model": "<b>", "standing": "retired"}, "The roster has no model '<b>'"),
        *(
            (
                "weigh",
                {"model": "id-x", "weight": weight},
                "A weight is a number from 0 to 1,000,000",
            )
            for weight in ("much", "inf", "nan", "-1", "1e7", "1e999", "9" * 400)
        ),
        ("weigh", {"model": "x", "weight": "abc"}, "from 0 to 1,000,000, not 'abc'."),
        ("release", {"model": "id-x", "release": "soon"}, "Choose what is to become"),
        ("release", {"model": "id-x", "release": "released"}, "'id-x' is released already"),
        ("add", {"roster": "models = 1"}, " must be [[models]] tables, got 1"),
        ("add", {"roster": "<i>"}, "not TOML"),
        *(
            ("add", {"roster": NEW + line}, f"key {key!r}{words}")
            for line, key, words in (
                ("weight = inf", "weight", " must be a number from 0 to 1,000,000, got inf"),
                ("weight = nan", "weight", " must be a number from 0 to 1,000,000, got nan"),
                ("weight = 1e300", "weight", " must be a number from 0 to 1,000,000, got 1e+300"),
                ("characters_per_s = inf", "characters_per_s", " must be a number from 0.1"),
                ("decoding = { temperature = inf }", "decoding.temperature", " must be a number"),
                ("decoding = { temperature = nan }", "decoding.temperature", " must be a number"),
                ("decoding = { top_p = 2 }", "decoding.top_p", " must be a number from 0 to 1"),
                (f"decoding = {{ seed = {2**80} }}", "decoding.seed", " must be a number from -9"),
                ("decoding = { x = { y = [-inf] } }", "decoding.x.y", " must be a number from"),
                ("decoding = { x = 2026-01-01 }", "decoding.x", " must be a value of JSON"),
                ("judging = { temperature = inf }", "judging", ": temperature is a number from"),
                (
                    "price = { input = 1e300, output = 1, date = 2026-01-01 }",
                    "price",
                    ": A price is at most",
                ),
                ('system_prompt = "\\u0000"', "system_prompt", " must be a text without"),
                (
                    'api_key_env = "ARENA_SECRET_KEY"',
                    "api_key_env",
                    " must be the name of a model",
                ),
            )
        ),
        (
            "add",
            {"roster": NEW.replace("pocket://local/v1", "recorded://x") + 'recording = "/etc/x"'},
            "A recording is a file",
        ),
    ],
)
def test_what_cannot_be_done_to_the_roster_is_said_and_nothing_is_done(
    quiet: Served, path: str, form: dict[str, str], words: str
) -> None:
    page = refused(quiet, f"/admin/models/{path}", form, words)
    if path == "add":
        assert form["roster"] in unescape(page), "to be mended"
        beside = page.partition("<textarea")[0].partition('action="/admin/models/add"')[2]
        assert words in text_of(beside), "beside the text"
        assert 'aria-invalid="true" aria-describedby="wrong"' in page
    with closing(Store(quiet.database)) as store:
        assert [one.standing for one in store.read(roster.entries)] == ["enabled"] * 3
        assert {one.act for one in store.read(people.acts)[0]} == {"invite"}


def test_a_key_is_sent_to_no_other_scheme_host_or_port_and_an_unused_one_nowhere(
    tmp_path: Path,
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("SHARED=sk-1\nUNUSED=sk-2\n")
    keys.chmod(0o600)
    behaviours = {name: Behaviour(text=f"So says {name}.") for name in "xy"}
    with faulty_server(behaviours) as server:
        file = write_roster(tmp_path / "roster.toml", server, "x", "y", api_key_env="SHARED")
        place = server.url.removeprefix("http://").removesuffix("/v1")
        host, _, port = place.partition(":")
        settings = {"database": new_sqlite(tmp_path), "roster": file, "keys": keys}
        with serve(secret_key="k" * 32, **settings) as served, as_admin(served) as admin:

            def add(name: str, endpoint: str, key: str = "SHARED") -> httpx2.Response:
                at = NEW.replace("pocket://local/v1", endpoint).replace('w"', f'{name}"')
                return admin.post(
                    "/admin/models/add", data={"roster": f'{at}api_key_env = "{key}"'}
                )

            assert add("one", server.url).status_code == 303
            assert add("two", f"http://{place}/other/v1").status_code == 303
            for n, elsewhere in enumerate(
                (
                    f"https://{place}/v1",
                    f"http://{host}:{int(port) + 1}/v1",
                    f"http://{host}/v1",
                    f"http://{host}.evil.example:{port}/v1",
                    "http://models.example/v1",
                )
            ):
                for name in ("id-x", f"new-{n}"):  # an edit of one that is there, and a new one
                    answer = add(name, elsewhere)
                    assert answer.status_code == 422
                    words = text_of(answer.text)
                    assert f"The key 'SHARED' is sent to http://{place} alone" in words
            for hidden in (f"http://{place}@evil.example/v1", f"http://evil.example\\\\@{place}"):
                assert "without a user or a password" in text_of(add("three", hidden).text)
            for endpoint in (server.url, "http://models.example/v1"):
                answer = add("four", endpoint, "UNUSED")
                assert answer.status_code == 422
                assert "No model has the key 'UNUSED' yet" in text_of(answer.text)
            with closing(Store(served.database)) as store:
                stored = store.read(roster.entries)
            assert {one.model.id for one in stored} == {"id-x", "id-y", "one", "two"}
            assert {one.model.endpoint for one in stored[:2]} == {server.url}


def test_a_model_that_fails_ten_times_in_a_row_is_paused_until_somebody_resumes_it(
    tmp_path: Path, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        faulty_server(Z_FAILS) as server,
        served_by(server, tmp_path, secret_key="k" * 32) as served,
        as_admin(served) as admin,
        served.visitor() as other,
    ):

        def asked() -> int:
            return sum(one.model == "z" for one in server.requests)

        deadline = time.monotonic() + 120
        while asked() < 9:
            other.play()
            assert time.monotonic() < deadline
        time.sleep(3)
        assert "is paused" not in text_of(admin.get("/admin").text), "nine are not ten"
        while "is paused" not in (page := admin.get("/admin").text):
            other.play()
            assert time.monotonic() < deadline
        words = text_of(page)
        assert "Name z is paused: its last 10 answers failed ( key refused ), just now." in (
            words.replace("(key refused)", "( key refused )")
        )
        assert words.index("Name z is paused") < words.index("What failed")
        assert words.index("What failed") < words.index("Models in the last 24 hours")
        seen = asked()
        for _ in range(6):
            other.play()
        assert asked() == seen, "it is drawn no more"
        printed = command("status", "--database", served.database, COLUMNS="500").stdout
        assert "id-z is paused since" in printed
        assert re.search(
            r"id-z: key refused, \d+ times, last at .*: status 401, Incorrect", printed
        )
        assert "Replace a refused key in the file that ARENA_KEYS names" in printed
        assert "Add credit" not in printed
        status = command("status", "--format", "json", "--database", served.database).stdout
        (one,) = json.loads(status)["paused"]
        assert (one["model"], one["failure"]) == ("id-z", "auth")
        models = text_of(admin.get("/admin/models").text)
        assert models.index("Name z") < models.index("Name x")
        assert "arena paused the model id-z" in text_of(admin.get("/admin/log").text)
        assert not any("id-z" in record.getMessage() for record in caplog.records)
        place = {"model": "id-z", "standing": "enabled"}
        assert admin.post("/admin/models/place", data=place).status_code == 303
        assert "is paused" not in text_of(admin.get("/admin").text)
        while asked() == seen:
            other.play()
            assert time.monotonic() < deadline
        assert "is paused" not in text_of(admin.get("/admin").text), "the count begins again"


def test_recorded_models_are_asked_what_they_have_recorded(tmp_path: Path) -> None:
    tables = []
    for name in ("one", "two"):
        row = {"prompt": "Why?", "response": f"So says {name}."}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
        at = NEW.replace("pocket://local/v1", "recorded://f").replace('w"', f'{name}"')
        tables.append(at.replace('model = "trigram"', f'recording = "{name}.jsonl"'))
    roster = tmp_path / "roster.toml"
    roster.write_text("\n".join(tables))
    with (
        serve(database=new_sqlite(tmp_path), roster=roster, secret_key="k" * 32) as served,
        as_admin(served) as admin,
    ):
        words = text_of(admin.post("/admin/models/test").text)
        (tmp_path / "one.jsonl").unlink()
        gone = admin.post("/admin/models/test")
    assert words.count("It answered within") == 2, words
    assert gone.status_code == 422
    assert "The recording of model 'one' cannot be used" in text_of(gone.text)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("quiet")
    with quick_arena(folder, secret_key="k" * 32) as served:
        yield served
