"""Users: how they come in, what they may do, and that they are one voter."""

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import httpx2
import oidc_provider_mock  # type: ignore[import-untyped]
import pytest
from httpcore2 import default_ssl_context
from oidc_provider_mock import User
from sqlalchemy import event
from werkzeug.serving import make_server

from arena.domain.people import PROXY, Entrance, Known, Role
from arena.domain.vote import DEFAULT, Voter
from arena.errors import SettingsError
from arena.guard.access import People
from arena.guard.limits import Claim, Identity
from arena.pages.sign_in import inside
from arena.settings import read_settings
from arena.store import blocks, people
from arena.store.store import Store
from arena.store.verify import verify
from tests.arena.api.test_health import locked
from tests.arena.store.battles import at_once
from tests.command import Command, refused
from tests.serving import Served, Visitor, client_of, invited, quick_arena
from tests.sqlite import new_sqlite

PAGE = {"Accept": "text/html"}


def link_of(command: Command, served: Served, name: str, *words: str) -> str:
    """Invite somebody; gives the path of the link."""
    printed = command("people", "invite", name, *words, "--database", served.database).stdout
    link = printed.split()[0]
    return link.removeprefix("http://localhost:7860")


def come_in(visitor: Visitor, path: str) -> httpx2.Response:
    """Open a link, and press the button."""
    assert visitor.get(path).status_code == 200
    return visitor.post(path)


def voters(served: Served) -> list[str]:
    """Whose each vote is on the board."""
    with closing(Store(served.database)) as store:
        return list(store.read(blocks.columns, DEFAULT).values("voter"))


def test_who_is_invited_is_one_voter_on_all_devices(command: Command, served: Served) -> None:
    with served.visitor() as laptop, served.visitor() as phone, served.visitor() as other:
        for device in (laptop, phone, other):
            device.vote(device.play(), "model_a")
        assert len(set(voters(served))) == 3
        come_in(laptop, link_of(command, served, "Ada"))
        link = re.search(r"<code>(\S+?)</code>", laptop.post("/device").text)
        assert link
        users = command("people", "list", "--format", "json", "--database", served.database)
        (one,) = json.loads(users.stdout)["invitations"]
        made, ends = (datetime.fromisoformat(one[key]) for key in ("created", "expires"))
        assert (one["uses"], ends - made) == (1, timedelta(minutes=15))
        shown = command("people", "list", "--database", served.database, COLUMNS="200").stdout
        assert re.search(rf"{one['id']} +│ Ada +│ a further device │ invited until ", shown)
        come_in(phone, link[1].removeprefix(served.url))
        phone.vote(phone.play("Another."), "model_b")
        assert len(voters(served)) == 4
        assert len(set(voters(served))) == 2, "Ada, and the other"
        for device in (laptop, phone):
            assert device.get("/votes").text.count('class="prompt"') == 3
        assert other.get("/votes").text.count('class="prompt"') == 1
    with closing(Store(served.database)) as store:
        assert store.read(verify).problem is None


def test_a_battle_that_was_begun_before_signing_in_takes_its_vote(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada, served.visitor() as bob:
        battle = ada.play()
        path = link_of(command, served, "Ada")
        come_in(ada, path)
        assert ada.look(battle)["state"] == "ready"
        assert bob.vote(battle, "tie").status_code == 404
        assert ada.vote(battle, "model_a").status_code == 200
        more = ada.post(f"/api/v1/battles/{battle}/continue", json={"prompt": "On."})
        assert more.status_code == 201
    with closing(Store(served.database)) as store:
        assert store.read(verify).problem is None


def test_a_cookie_from_before_signing_in_says_nothing_afterwards(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada, served.visitor() as thief:
        battle = ada.play()
        thief.client.cookies.update(ada.client.cookies)
        assert thief.look(battle)["state"] == "ready"
        come_in(ada, link_of(command, served, "Ada"))
        assert thief.get(f"/api/v1/battles/{battle}").status_code == 404
        assert thief.vote(battle, "model_b").status_code == 404
        assert thief.get("/votes").text.count('class="prompt"') == 0
        thief.vote(thief.play("Mine."), "model_b")
        assert thief.get("/votes").text.count('class="prompt"') == 1
        assert ada.vote(battle, "model_a").status_code == 200
        assert ada.get("/votes").text.count('class="prompt"') == 1
    assert len(set(voters(served))) == 2


def test_a_link_lets_in_as_often_as_it_says_and_no_longer(
    command: Command, served: Served
) -> None:
    path = link_of(command, served, "Course", "--uses", "2")
    shown = command("people", "list", "--format", "json", "--database", served.database)
    (one,) = json.loads(shown.stdout)["invitations"]
    created, expires = (datetime.fromisoformat(one[key]) for key in ("created", "expires"))
    assert (one["used"], one["uses"], expires - created) == (0, 2, timedelta(days=7))
    names: list[str] = []
    for _ in range(2):
        with served.visitor() as visitor, served.visitor() as preview:
            page = preview.get(path).text
            assert "vote as a user of this arena" in page, "to look uses nothing up"
            assert ("works in no other browser" in page) is (len(names) == 1), "one use is left"
            assert come_in(visitor, path).status_code == 303
            names.append(re.search("Signed in as ([^<]*)", visitor.get("/votes").text)[1])  # type: ignore[index]
    assert names == ["Course 1.", "Course 2."]
    with served.visitor() as late:
        assert late.get(path).status_code == 404
        answer = late.post(path)
        assert answer.status_code == 404
        assert "This link was used, or it has expired." in answer.text
        assert "set-cookie" not in answer.headers
        assert late.get("/join/guessed").status_code == 404


def test_a_class_behind_one_address_is_limited_by_person(tmp_path: Path) -> None:
    """Who has no account shares what the address may ask for in an hour."""
    with quick_arena(tmp_path, battles_per_address_hour=2, session_days=2) as served:
        path = invited(served, Role.VOTER, "Class", uses=4)
        for _ in range(4):
            with served.visitor() as pupil:
                assert "Max-Age=172800;" in come_in(pupil, path).headers["set-cookie"]
                pupil.play()
        with served.visitor() as stranger:
            stranger.play()
            stranger.play()
            refused = stranger.post("/api/v1/battles", json={"prompt": "Hi"})
    assert refused.status_code == 429


def test_a_change_of_a_role_holds_for_the_next_request(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.access.HOLD_S", 0)
    with served.visitor() as ada:
        come_in(ada, link_of(command, served, "Ada"))
        change = ("people", "change", "Ada", "--database", served.database)
        assert ada.get("/admin").status_code == 403
        assert command(*change, "--role", "admin").stdout.endswith("admin, let in.\n")
        assert ada.get("/admin").status_code == 200
        command(*change, "--block")
        assert ada.get("/admin").status_code == 401
        assert "Signed in" not in ada.get("/votes").text
        command(*change, "--unblock")
        assert "Signed in" in ada.get("/votes").text
        command(*change, "--sign-out")
        assert "Signed in" not in ada.get("/votes").text


def test_a_role_is_that_of_a_name_and_is_lost_where_the_issuer_knows_every_admin() -> None:
    known = read_settings(admins="Ada, Eve", researchers="Bob, ada").named_roles()
    voter, researcher, admin = Role
    assert [known.role(name) for name in ("ADA", "bob", "Zoe")] == [admin, researcher, voter]
    for gives, decides, before, after in (
        (voter, False, admin, admin),
        (voter, True, admin, voter),
        (researcher, True, admin, researcher),
        (voter, True, researcher, researcher),
        (researcher, False, voter, researcher),
    ):
        entrance = Entrance(PROXY, "s", "Ada", gives, decides)
        assert entrance.after(before) is after


def test_a_session_ends_after_the_days_of_the_setting(served: Served) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    with closing(Store(served.database)) as store:
        here = People(store, Identity("k"), Known(), lambda: now[0], timedelta(days=2))
        person = here.enter(PROXY, "ada", "Ada", Role.ADMIN, None)
        claim = here.identity.read(here.identity.issue_to(person, now[0]))
        of_version_0_1 = Claim(person.id, person.sessions)
        assert here.of_claim(claim) == person
        now[0] += timedelta(days=2)
        assert here.of_claim(claim) is None
        assert here.of_claim(of_version_0_1) == person


def test_signing_out_ends_copies_of_its_cookie_and_everywhere_the_other_devices_too(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.access.HOLD_S", 0)
    with served.visitor() as laptop, served.visitor() as phone, served.visitor() as thief:
        come_in(laptop, link_of(command, served, "Ada"))
        come_in(phone, device_link(laptop))
        thief.client.cookies.update(laptop.client.cookies)
        assert "Signed in" in thief.get("/votes").text
        assert laptop.post("/sign-out").headers["location"] == "/"
        assert "Signed in" not in laptop.get("/votes").text + thief.get("/votes").text
        assert "Signed in" in phone.get("/votes").text
        phone.post("/sign-out", data={"everywhere": "true"})
        assert "Signed in" not in phone.get("/votes").text


def device_link(visitor: Visitor) -> str:
    link = re.search(r"/join/[\w-]+", visitor.post("/device").text)
    assert link
    return link[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["everywhere", "--sign-out", "--block"])
def test_a_link_for_a_device_ends_with_the_devices(
    command: Command, served: Served, how: str
) -> None:
    with served.visitor() as ada, served.visitor() as thief:
        come_in(ada, link_of(command, served, "Ada"))
        link, others = device_link(ada), link_of(command, served, "Bob")
        if how == "everywhere":
            ada.post("/sign-out", data={"everywhere": "true"})
        else:
            change = ("people", "change", "Ada", "--database", served.database)
            assert command(*change, how).returncode == 0
            command(*change, "--unblock")
        assert thief.get(link).status_code == 404
        assert thief.post(link).status_code == 404
        assert come_in(thief, others).status_code == 303


def test_who_was_signed_out_a_moment_ago_gets_no_link_for_a_device(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.access.HOLD_S", 600)
    with served.visitor() as thief:
        come_in(thief, link_of(command, served, "Ada"))
        thief.get("/votes")
        command("people", "change", "Ada", "--sign-out", "--database", served.database)
        assert "Signed in" in thief.get("/votes").text, "held, as on another replica"
        answer = thief.post("/device")
        assert answer.status_code == 401
        assert "/join/" not in answer.text


def test_who_lost_their_last_device_comes_back_as_themself(
    command: Command, served: Served
) -> None:
    at = ("--database", served.database)
    with served.visitor() as ada, served.visitor() as again:
        link = link_of(command, served, "Ada", "--role", "admin")
        assert "You can run this arena" in ada.get(link).text
        come_in(ada, link)
        ada.vote(ada.play(), "tie")
        ada.post("/sign-out")
        printed = command("people", "invite", "--for", "Ada", *at).stdout
        assert "It lets in 'Ada' as admin, once, until" in printed
        come_in(again, printed.split()[0].removeprefix("http://localhost:7860"))
        assert again.get("/votes").text.count('class="prompt"') == 1
        assert again.get("/admin").status_code == 200
    people = json.loads(command("people", "list", "--format", "json", *at).stdout)["people"]
    assert len(people) == 1
    invite = ("people", "invite", "--for", "Ada", *at)
    refused(command("people", "invite", "Bob", "--for", "Ada", *at), "omit the name")
    refused(command(*invite, "--role", "voter"), "omit the name and --role")
    refused(command("people", "invite", "--for", "Eve", *at), "No user has the name 'Eve'")
    command("people", "change", "Ada", "--block", *at)
    assert "admin, blocked" in command("people", "list", *at, COLUMNS="200").stdout
    refused(command(*invite), "'Ada' is blocked")
    change = ("people", "change", "Ada", "--role", "voter", *at)
    assert command(*change).stdout.endswith("): voter, kept out.\n")


def test_who_runs_the_arena_sees_who_is_known_and_what_was_done(
    command: Command, served: Served
) -> None:
    with served.visitor() as ada:
        come_in(ada, link_of(command, served, "Ada", "--role", "admin"))
        ada.vote(ada.play(), "tie")
    printed = command("people", "list", "--format", "json", "--database", served.database).stdout
    (person,) = json.loads(printed)["people"]
    assert (person["name"], person["role"], person["votes"]) == ("Ada", "admin", 1)
    assert "Ada" in command("people", "list", "--database", served.database).stdout
    command("people", "change", person["id"][:6], "--role", "voter", "--database", served.database)
    with closing(Store(served.database)) as store, store.reading() as session:
        acts = people.acts(session)[0]
    assert [(act.by, act.act) for act in acts] == [
        ("terminal", "change person"),
        ("terminal", "invite"),
    ]
    assert acts[0].detail["before"]["role"] == "admin"
    assert acts[0].detail["after"]["role"] == "voter"


def test_a_name_that_fits_nobody_or_several_is_refused(command: Command, served: Served) -> None:
    at = ("--database", served.database)
    for _ in range(2):
        with served.visitor() as visitor:
            come_in(visitor, link_of(command, served, "Ada"))
    change = ("people", "change")
    refused(command(*change, "Ada", "--block", *at), "2 users match 'Ada'")
    refused(command(*change, "Eve", "--block", *at), "No user has the name 'Eve'")
    refused(command(*change, "Ada", *at), "Name a change")
    refused(command("people", "invite", " ", *at), "A name has 1 to 200")


def test_where_only_members_come_in_the_others_are_led_to_the_door(
    command: Command, tmp_path: Path
) -> None:
    with (
        quick_arena(tmp_path, members_only=True, secret_key="k" * 32) as served,
        served.visitor() as ada,
    ):
        answer = ada.get("/leaderboard?sort=name", headers=PAGE)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?to=/leaderboard%3Fsort%3Dname"
        assert ada.get(answer.headers["location"]).status_code == 200
        for path in ("/api/v1/leaderboard", "/leaderboard.csv", "/battles", "/api/openapi.json"):
            assert ada.get(path).status_code == 401
        assert ada.post("/api/v1/battles", json={"prompt": "Hi"}).status_code == 401
        assert ada.get("/health/ready").status_code == 200
        assert ada.get("/look/pages.css").status_code == 200
        come_in(ada, link_of(command, served, "Ada"))
        assert ada.vote(ada.play(), "tie").status_code == 200
        assert ada.get("/leaderboard").status_code == 200
        assert ada.post("/sign-out").headers["location"] == "/sign-in"


def test_a_trusted_proxy_says_who_has_logged_in(tmp_path: Path) -> None:
    settings = {"user_header": "Remote-User", "admins": "Ada@firm.example, Zoë"}
    settings |= {"researchers": "BOB", "secret_key": "k" * 32}
    with quick_arena(tmp_path, trusted_proxies="127.0.0.1", **settings) as served:
        as_ada, as_bob = {"Remote-User": "ada@firm.example"}, {"Remote-User": "bob"}
        with served.visitor() as laptop, served.visitor() as phone:
            laptop.vote(laptop.play(), "tie")
            for device in (laptop, phone):
                device.client.headers.update(as_ada)
                assert device.get("/admin").status_code == 200
                device.vote(device.play(), "tie")
            assert len(voters(served)) == 3
            assert len(set(voters(served))) == 1
            phone.client.headers.update(as_bob)
            assert phone.get("/admin").status_code == 403
            figures = "/studies/none/results"
            assert phone.get(figures).status_code == 404, "a researcher may ask"
            assert phone.get(figures, headers={"Remote-User": "eve"}).status_code == 403
            for zoe in ("Zoë".encode(), "Zoë".encode("latin1")):
                assert phone.get("/admin", headers={b"Remote-User": zoe}).status_code == 200
            twice = [("Remote-User", "ada@firm.example"), ("Remote-User", "bob")]
            assert httpx2.get(f"{served.url}/admin", headers=twice).status_code == 400


def test_nobody_else_says_who_has_logged_in(tmp_path: Path) -> None:
    settings = {"user_header": "Remote-User", "secret_key": "k" * 32, "admins": "ada"}
    with (
        quick_arena(tmp_path, trusted_proxies="192.0.2.1", **settings) as served,
        served.visitor() as mallory,
    ):
        answer = mallory.get("/admin", headers={"Remote-User": "ada"})
        assert answer.status_code == 401


def test_behind_a_proxy_who_only_reads_waits_for_nobody_who_writes(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.access.HOLD_S", 0)
    settings = {"user_header": "Remote-User", "trusted_proxies": "127.0.0.1", "secret_key": "k"}
    with (
        quick_arena(tmp_path, database=database_url, lock_timeout_s=0.5, **settings) as served,
        client_of(served.url) as client,
    ):
        assert client.get("/leaderboard", headers={"Remote-User": "ada"}).status_code == 200
        with locked(database_url):
            assert client.get("/leaderboard", headers={"Remote-User": "ada"}).status_code == 200
            new = client.get("/leaderboard", headers={"Remote-User": "bob"})
            assert new.status_code == 503
            assert new.headers["content-type"] == "application/problem+json"
            assert "Send the same request again" in new.json()["detail"]
            assert client.get("/health/live", headers={"Remote-User": "bob"}).is_success
        assert client.get("/leaderboard", headers={"Remote-User": "bob"}).status_code == 200


def test_first_sign_ins_that_race_are_of_one_person(database_url: str) -> None:
    with closing(Store(database_url)) as store:
        known = Known(admins=frozenset({"ada"}))
        entered = []

        def enter(_: int) -> None:
            here = People(store, Identity("k"), known, lambda: datetime.now(UTC))
            entered.append(here.enter(PROXY, "ada", "Ada", Role.ADMIN, None))

        for _ in range(5):
            at_once(8, enter)
        assert len({person.id for person in entered}) == 1
        assert len(store.read(people.matching, "")) == 1


def test_where_nobody_is_known_strangers_are_let_in_without_a_look_at_the_database(
    database_url: str,
) -> None:
    identity, seen = Identity("k"), []
    claims = [claim for _ in range(5) if (claim := identity.read(identity.issue()))]
    with closing(Store(database_url)) as store:
        event.listen(store.engine, "before_cursor_execute", lambda *what: seen.append(what[2]))
        here = People(store, identity, Known(), lambda: datetime.now(UTC))
        assert not any(map(here.is_held, claims))
        askers = [here.asker(None, claim) for claim in claims]
        assert [voter for voter, _ in askers] == [Voter(claim.voter) for claim in claims]
        assert len([one for one in seen if "FROM person" in one]) == 2
        here.enter(PROXY, "ada", "Ada", Role.VOTER, None)
        assert not here.is_held(claims[-1]), "the next might be somebody"


def of_provider(issuer: str) -> dict[str, str]:
    """Settings of an arena whose people sign in there."""
    return {
        "oidc_issuer": issuer,
        "oidc_client_id": "arena",
        "oidc_client_secret": "s" * 32,
        "oidc_name": "the firm",
        "admins": "ada@firm.example",
        "secret_key": "k" * 32,
    }


@contextmanager
def providing(app: Any) -> Iterator[str]:
    """Serve a provider on a port of this machine."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(path: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> Any:
    """A real provider, except what it answers at one path."""
    sound = oidc_provider_mock.app(user_claims=(User(sub="ada"),))

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != path:
            return sound(environ, start)  # type: ignore[no-any-return]
        start("200 OK", [("Content-Type", "application/json"), *headers])
        return [body]

    return app


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """A real provider of OpenID Connect, on a port of this machine."""
    mail = {"email": "ada@firm.example"}
    known = (
        User(sub="ada", claims=mail | {"email_verified": True}),
        User(sub="eve", claims=mail | {"email_verified": "false"}),  # some write it as text
    )
    with providing(oidc_provider_mock.app(user_claims=known, require_nonce=True)) as url:
        yield url


@pytest.fixture(scope="module")
def with_provider(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quick_arena(tmp_path_factory.mktemp("provider"), **of_provider(provider)) as served:
        yield served


def sign_in(visitor: Visitor, subject: str, to: str = "/votes") -> httpx2.Response:
    """Sign in at the provider as somebody, and come back."""
    leaving = visitor.post("/sign-in/openid", data={"to": to})
    assert leaving.status_code == 303
    return visitor.get(way_back(leaving, subject))


def way_back(leaving: httpx2.Response, subject: str) -> str:
    """Sign in where one was sent to; gives the path to come back to."""
    with httpx2.Client() as browser:
        there = browser.post(leaving.headers["location"], data={"sub": subject})
    return httpx2.URL(there.headers["location"]).raw_path.decode()


def test_people_sign_in_at_a_provider(with_provider: Served) -> None:
    with with_provider.visitor() as laptop, with_provider.visitor() as phone:
        laptop.vote(laptop.play(), "tie")
        assert "Sign in to have your battles on all your devices" in laptop.get("/votes").text
        for device in (laptop, phone):
            assert "Sign in with the firm" in device.get("/sign-in").text
            back = sign_in(device, "ada")
            assert (back.status_code, back.headers["location"]) == (303, "/votes")
            assert "Signed in as ada@firm.example" in device.get("/votes").text
            assert device.get("/admin").status_code == 200
            device.vote(device.play(), "tie")
    assert len(voters(with_provider)) == 3
    assert len(set(voters(with_provider))) == 1


def test_a_mail_that_nobody_verified_gives_no_role_and_the_log_says_why(
    with_provider: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with with_provider.visitor() as eve:
        sign_in(eve, "eve")
        assert "Signed in as eve" in eve.get("/votes").text
        assert eve.get("/admin").status_code == 403
    assert "set ARENA_OIDC_TRUST_MAIL=true" in caplog.text


ACCOUNTS = {
    "entra": {"preferred_username": "Ada@firm.example", "email": "Ada@firm.example"},
    "entra-role": {"preferred_username": "bob@firm.example", "roles": ["Arena.Admin"]},
    "entra-many": {"email": "may@firm.example", "_claim_names": {"groups": "src1"}},
    "keycloak": {"email": "kim@firm.example", "email_verified": True, "groups": ["/staff"]},
    "guest": {"email": "gus@firm.example", "email_verified": True, "groups": ["/guests"]},
    "no-mail": {"preferred_username": "ada@firm.example", "email": "", "email_verified": True},
    "google": {"email": "eve@mail.example", "email_verified": True, "hd": "mail.example"},
    "okta": {"email": "ola@firm.example", "email_verified": True, "groups": "Staff"},
}
"""Claims as providers of OpenID Connect document them."""
BY_MAIL = {
    "members_only": True,
    "oidc_trust_mail": True,
    "oidc_domains": "Firm.example",
    "oidc_admin_groups": "arena.admin",
}
BY_GROUP = {"oidc_groups": "/staff, staff"}
BY_ADMINS = {"oidc_admin_groups": "arena.admin"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "admins", "others"),
    [
        (BY_MAIL, ("entra", "entra-role", "no-mail"), ("entra-many", "keycloak", "guest", "okta")),
        (BY_GROUP, (), ("keycloak", "okta")),
        (BY_GROUP | BY_ADMINS, ("entra-role",), ("keycloak", "okta")),
        ({}, (), tuple(ACCOUNTS)),
        (BY_MAIL | {"oidc_trust_mail": False}, (), ("keycloak", "guest", "okta")),
    ],
    ids=["by address", "by group", "by either group", "anybody", "by verified address"],
)
def test_accounts_of_a_provider_enter_by_domain_and_group(
    settings: dict[str, Any],
    admins: tuple[str, ...],
    others: tuple[str, ...],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    accounts = [User(sub=sub, claims=claims) for sub, claims in ACCOUNTS.items()]
    caplog.set_level("INFO", "arena.pages.sign_in")
    with (
        providing(oidc_provider_mock.app(user_claims=accounts)) as url,
        quick_arena(tmp_path, **of_provider(url) | settings) as served,
    ):
        for sub in ACCOUNTS:
            with served.visitor() as visitor:
                back = sign_in(visitor, sub)
                assert back.status_code == (303 if sub in (*admins, *others) else 403), sub
                assert (visitor.get("/admin").status_code == 200) is (sub in admins), sub
    assert len(ACCOUNTS) - len(admins + others) == caplog.text.count("may not enter")
    assert "omits the groups of account 'entra-many'" in caplog.text
    assert ("set ARENA_MEMBERS_ONLY=true" in caplog.text) is ("oidc_groups" in settings)
    logged = [one.getMessage() for one in caplog.records if one.name == "arena.pages.sign_in"]
    assert "firm.example" not in str(logged)


def test_who_leaves_the_groups_of_admins_is_none_from_the_next_sign_in(
    command: Command, tmp_path: Path
) -> None:
    bob = User(sub="bob", claims={"email": "bob@firm.example"})
    with (
        providing(oidc_provider_mock.app(user_claims=[bob])) as url,
        quick_arena(tmp_path, **of_provider(url) | BY_MAIL) as served,
        served.visitor() as visitor,
    ):
        for roles, status in (("Arena.Admin", 200), ("Arena.Reader", 403), ("Arena.Admin", 200)):
            bob.claims["roles"] = [roles]
            sign_in(visitor, "bob")
            assert visitor.get("/admin").status_code == status
        bob.claims.update(roles=[], _claim_names={"groups": "src1"})
        sign_in(visitor, "bob")
        assert visitor.get("/admin").status_code == 200, "groups that are omitted end no role"
        at = ("--database", served.database)
        assert command("people", "change", "bob@firm.example", "--block", *at).returncode == 0
        with served.visitor() as again:
            page = sign_in(again, "bob")
            assert (page.status_code, "You are blocked from" in page.text) == (403, True)


def test_what_comes_back_without_having_been_sent_lets_nobody_in(with_provider: Served) -> None:
    with with_provider.visitor() as ada, with_provider.visitor() as mallory:
        refused = ada.get("/sign-in/openid/back", params={"code": "c", "state": "s"})
        assert refused.status_code == 403
        assert "Begin again" in refused.text
        stolen = way_back(mallory.post("/sign-in/openid"), "eve")
        ada.post("/sign-in/openid")
        assert ada.get(stolen).status_code == 403
        assert "Signed in" not in ada.get("/votes").text


def test_a_state_that_a_sibling_host_laid_takes_nobody_s_battles(with_provider: Served) -> None:
    with with_provider.visitor() as ada, with_provider.visitor() as mallory:
        ada.vote(ada.play(), "tie")
        stolen = way_back(mallory.post("/sign-in/openid"), "eve")
        ada.client.cookies.set("arena_sign_in", mallory.client.cookies["arena_sign_in"])
        answer = ada.get(stolen)
        assert answer.status_code == 403
        assert "begun in another browser" in answer.text
        assert "Signed in" not in ada.get("/votes").text
        assert mallory.get(stolen).status_code == 303, "in their own browser it holds"
        assert 'class="prompt"' not in mallory.get("/votes").text


def test_a_sign_in_that_another_browser_began_lets_in_nobody_without_a_cookie(
    with_provider: Served,
) -> None:
    with with_provider.visitor() as ada, with_provider.visitor() as mallory:
        stolen = way_back(mallory.post("/sign-in/openid"), "eve")
        state = mallory.client.cookies["arena_sign_in"]
        ada.client.cookies.set("arena_sign_in", state)
        answer = ada.get(stolen)
        assert answer.status_code == 403
        assert "begun in another browser" in answer.text
        assert "arena_voter" not in ada.client.cookies
        ada.post("/sign-in/openid")
        ada.client.cookies.set("arena_sign_in", state)
        assert ada.get(stolen).status_code == 403, "her own value is another one"
        assert mallory.get(stolen).status_code == 303, "in their own browser it holds"


def test_each_sign_in_begins_with_a_random_value_that_scripts_cannot_read_and_ends_it(
    with_provider: Served,
) -> None:
    with with_provider.visitor() as ada:
        begun = [ada.post("/sign-in/openid") for _ in range(2)]
        named = "arena_sign_in_browser="
        cookies = [one for b in begun for one in b.headers.get_list("set-cookie") if named in one]
        assert len({one.partition(";")[0] for one in cookies}) == 2
        assert httpx2.URL(begun[0].headers["location"]).params["scope"] == "openid profile email"
        for one in cookies:
            assert "HttpOnly" in one
            assert "SameSite=Lax" in one
            assert "Max-Age=600" in one
        assert sign_in(ada, "ada").status_code == 303
        assert not [name for name in ada.client.cookies if name.startswith("arena_sign_in")]


def test_over_https_only_the_arena_itself_remembers_who_is_at_the_provider(
    provider: str, tmp_path: Path
) -> None:
    settings = of_provider(provider) | {"trusted_proxies": "127.0.0.1"}
    with (
        quick_arena(tmp_path, **settings) as served,
        client_of(served.url, headers={"X-Forwarded-Proto": "https"}) as browser,
    ):
        leaving = browser.post("/sign-in/openid")
        mine = [one.partition(";")[0] for one in leaving.headers.get_list("set-cookie")]
        names = ["__Host-arena_sign_in", "__Host-arena_sign_in_browser"]
        assert [one.partition("=")[0] for one in mine] == names
        both = "; ".join(mine)
        back = way_back(leaving, "ada")
        twice = (f"{both}; {name}=x" for name in names)
        for laid in (both.replace("__Host-", ""), mine[0], *twice):
            assert browser.get(back, headers={"Cookie": laid}).status_code == 403
        assert browser.get(back, headers={"Cookie": both}).status_code == 303


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "cannot be read as OpenID Connect"),
        (b"null", "cannot be read as OpenID Connect"),
        (b'{"authorization_endpoint": [1]}', "cannot be read as OpenID Connect"),
        (b"{}", "authorize_url"),
        (b"{" + b" " * 1_000_000 + b"}", "more than 1,000,000 bytes"),
    ],
)
def test_a_provider_that_describes_itself_badly_is_refused(
    body: bytes, words: str, tmp_path: Path
) -> None:
    with (
        providing(answering("/.well-known/openid-configuration", body)) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as ada,
    ):
        answer = ada.post("/sign-in/openid")
    assert answer.status_code == 403
    assert words in answer.text


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("body", "headers", "words"),
    [
        (b"[1]", (), "cannot be read as OpenID Connect"),
        (b"null", (), "cannot be read as OpenID Connect"),
        (b" " * 1_000_001, (), "more than 1,000,000 bytes"),
        (gzip.compress(b"{}"), [("Content-Encoding", "gzip")], "packed by"),
    ],
    ids=["a list", "null", "too much", "packed"],
)
def test_a_provider_that_says_badly_who_came_is_refused(
    body: bytes, headers: Iterable[tuple[str, str]], words: str, tmp_path: Path
) -> None:
    with (
        providing(answering("/userinfo", body, headers)) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as ada,
    ):
        answer = sign_in(ada, "ada")
        assert "Signed in" not in ada.get("/votes").text
    assert answer.status_code == 403
    assert words in answer.text


def test_what_a_provider_says_of_another_account_is_not_taken(tmp_path: Path) -> None:
    other = b'{"sub": "eve", "email": "ada@firm.example", "email_verified": true}'
    with (
        providing(answering("/userinfo", other)) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as eve,
    ):
        sign_in(eve, "ada")
        assert eve.get("/admin").status_code == 403


@pytest.mark.parametrize(
    ("limit", "seconds", "words"),
    [
        ("ALL_S", 0.3, "took longer than 0.3 s"),
        ("TIMEOUT_S", 0.05, "did not answer within 0.05 s"),
    ],
)
def test_a_provider_that_sends_for_ever_is_waited_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, seconds: float, words: str
) -> None:
    monkeypatch.setattr(f"arena.pages.sign_in.{limit}", seconds)
    with (
        providing(dripping) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as ada,
    ):
        answer = ada.post("/sign-in/openid")
    assert answer.status_code == 403
    assert words in answer.text


def test_keys_that_a_provider_replaced_are_read_again(tmp_path: Path) -> None:
    """Its tokens name no key, so only their signatures show it."""
    apps = [oidc_provider_mock.app(user_claims=(User(sub="ada"),)) for _ in range(2)]
    with (
        providing(lambda *given: apps[-1](*given)) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as ada,
    ):
        assert sign_in(ada, "ada").status_code == 303
        apps.pop()
        assert "bad_signature" in sign_in(ada, "ada").text
        assert sign_in(ada, "ada").status_code == 303


def dripping(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
    """A provider that sends a byte now and then: its silence never lasts long."""
    start("200 OK", [])
    for _ in range(20):
        time.sleep(0.1)
        yield b" "


def test_certificates_are_read_once_and_not_at_each_sign_in(
    with_provider: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take a fifth of a second, in which no other visitor would be answered."""
    read = []

    def noted(**given: Any) -> Any:
        read.append(threading.current_thread() is threading.main_thread())  # the browser's own
        return default_ssl_context(**given)

    monkeypatch.setattr("httpcore2.default_ssl_context", noted)
    with with_provider.visitor() as ada:
        assert sign_in(ada, "ada").headers["location"] == "/votes"
    assert all(read)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ahead_s", [-60, 60])
def test_a_provider_whose_clock_is_a_minute_off_lets_people_in(
    with_provider: Served, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    clock = SimpleNamespace(time=lambda: time.time() + ahead_s)
    monkeypatch.setattr("authlib.oidc.core.grants.util.time", clock)
    with with_provider.visitor() as ada:
        assert sign_in(ada, "ada").headers["location"] == "/votes"


def test_a_sign_in_that_begins_at_one_replica_ends_at_another(
    with_provider: Served, provider: str, tmp_path: Path
) -> None:
    other = quick_arena(tmp_path, database=with_provider.database, **of_provider(provider))
    with with_provider.visitor() as ada, other as replica:
        back = way_back(ada.post("/sign-in/openid", data={"to": "/votes"}), "ada")
        with client_of(replica.url, cookies=ada.client.cookies) as client:
            assert client.get(back).headers["location"] == "/votes"


def test_a_sign_in_that_was_begun_again_in_another_tab_says_so(with_provider: Served) -> None:
    with with_provider.visitor() as ada:
        first, second = (ada.post("/sign-in/openid") for _ in range(2))
        answer = ada.get(way_back(first, "ada"))
        assert answer.status_code == 403
        assert "it was asked again in another tab since. Begin again." in answer.text
        assert ada.get(way_back(second, "ada")).status_code == 303


@pytest.mark.sampled(2, 1)
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_secret_is_sent_as_the_provider_takes_it(tmp_path: Path, method: str) -> None:
    """By a provider that names the way, and refuses the other."""
    sound = oidc_provider_mock.app(user_claims=(User(sub="ada"),))
    takes = json.dumps({"token_endpoint_auth_methods_supported": [method]}).encode()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        in_a_header = "HTTP_AUTHORIZATION" in environ
        asks = environ["PATH_INFO"] == "/oauth2/token"
        if asks and in_a_header is not (method == "client_secret_basic"):
            start("401 Unauthorized", [("Content-Type", "application/json")])
            return [b'{"error": "invalid_client"}']
        if not environ["PATH_INFO"].endswith("/openid-configuration"):
            return sound(environ, start)  # type: ignore[no-any-return]
        start("200 OK", [("Content-Type", "application/json")])
        answer = b"".join(sound(environ, lambda *_: None))
        return [answer.strip()[:-1] + b", " + takes[1:]]

    with (
        providing(app) as url,
        quick_arena(tmp_path, **of_provider(url)) as served,
        served.visitor() as ada,
    ):
        assert sign_in(ada, "ada").headers["location"] == "/votes"


def test_a_provider_that_refuses_or_is_away_is_quoted_and_logged(
    with_provider: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with with_provider.visitor() as ada:
        leaving = ada.post("/sign-in/openid")
        state = httpx2.URL(leaving.headers["location"]).params["state"]
        asked = {"error": "access_denied", "error_description": "<b>No</b>", "state": state}
        answer = ada.get("/sign-in/openid/back", params=asked)
        assert answer.status_code == 403
        assert "the firm did not let you in" in answer.text
        assert "<b>No</b>" not in answer.text
        assert "<b>No</b>" in unescape(answer.text)
    assert "failed: 'access_denied'" in caplog.text
    assert "<b>No</b>" not in caplog.text, "it may name a person"
    settings = {"oidc_issuer": "http://127.0.0.1:9", "oidc_client_id": "a", "secret_key": "k"}
    (tmp_path / "away").mkdir()
    with quick_arena(tmp_path / "away", **settings) as served, served.visitor() as ada:
        assert ada.post("/sign-in/openid").status_code == 403
    assert "Sign-in at http://127.0.0.1:9 failed: 'ConnectError: " in caplog.text


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil", "/a\nb", ""])
def test_nobody_is_led_elsewhere_after_signing_in(to: str) -> None:
    assert inside(to) == "/"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"user_header": "Remote-User"}, "name yours in ARENA_TRUSTED_PROXIES"),
        ({"user_header": "Remote-User", "trusted_proxies": "10.0.0.1"}, "ARENA_SECRET_KEY"),
        *(
            (
                {"user_header": "Remote-User", "trusted_proxies": some, "secret_key": "k"},
                "has every address",
            )
            for some in ("0.0.0.0/0", "10.0.0.1,::/0")
        ),
        ({"oidc_issuer": "https://id.example"}, "ARENA_OIDC_CLIENT_ID belong together"),
        ({"oidc_issuer": "https://id.example", "oidc_client_id": "arena"}, "ARENA_SECRET_KEY"),
    ],
)
def test_ways_in_that_could_not_work_are_refused(
    settings: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(database=new_sqlite(tmp_path), **settings)
