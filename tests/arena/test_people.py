"""People whom the arena knows: how they come in, what they may do, and that they are one voter."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from threading import Thread

import httpx
import oidc_provider_mock  # type: ignore[import-untyped]
import pytest
from oidc_provider_mock import User
from werkzeug.serving import make_server

from arena.domain.vote import DEFAULT
from arena.errors import SettingsError
from arena.pages.sign_in import inside
from arena.settings import read_settings
from arena.store import log, people
from arena.store.store import Store
from arena.store.verify import verify
from tests.command import Command, refused
from tests.serving import Served, Visitor, quick_arena
from tests.sqlite import new_sqlite

PAGE = {"Accept": "text/html"}


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    with quick_arena(tmp_path, database=database_url, secret_key="k" * 32) as served:
        yield served


def link_of(command: Command, served: Served, name: str, *words: str) -> str:
    """Invite somebody; gives the path of the link."""
    printed = command("people", "invite", name, *words, "--database", served.database).stdout
    link = printed.split()[0]
    return link.removeprefix("http://localhost:7860")


def come_in(visitor: Visitor, path: str) -> httpx.Response:
    """Open a link, and press the button."""
    assert visitor.get(path).status_code == 200
    return visitor.post(path)


def voters(served: Served) -> list[str]:
    """Whose each vote is on the board."""
    with closing(Store(served.database)) as store:
        return list(store.read(log.columns, DEFAULT).voter)


def test_who_is_invited_is_one_voter_on_all_devices(command: Command, served: Served) -> None:
    with served.visitor() as laptop, served.visitor() as phone, served.visitor() as other:
        for device in (laptop, phone, other):
            device.vote(device.play(), "model_a")
        assert len(set(voters(served))) == 3
        come_in(laptop, link_of(command, served, "Ada"))
        link = re.search(r"<code>(\S+?)</code>", laptop.post("/device").text)
        assert link
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


def test_a_link_lets_in_as_often_as_it_says_and_no_longer(
    command: Command, served: Served
) -> None:
    path = link_of(command, served, "Course", "--uses", "2")
    names = []
    for _ in range(2):
        with served.visitor() as visitor:
            come_in(visitor, path)
            names.append(re.search("Signed in as ([^<]*)", visitor.get("/votes").text)[1])  # type: ignore[index]
    assert names == ["Course 1.", "Course 2."]
    with served.visitor() as late:
        assert late.get(path).status_code == 404
        answer = late.post(path)
        assert answer.status_code == 404
        assert "lets nobody in" in answer.text
        assert "set-cookie" not in answer.headers
        assert late.get("/join/guessed").status_code == 404


def test_looking_at_a_link_uses_nothing_up(command: Command, served: Served) -> None:
    path = link_of(command, served, "Ada")
    with served.visitor() as preview, served.visitor() as ada:
        for _ in range(3):
            preview.get(path)
        assert come_in(ada, path).status_code == 303


def test_another_site_cannot_let_somebody_in_as_somebody_else(
    command: Command, served: Served
) -> None:
    path = link_of(command, served, "Mallory")
    with served.visitor() as ada:
        answer = ada.post(path, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403


def test_a_change_of_a_role_holds_for_the_next_request(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.people.HOLD_S", 0)
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


def test_signing_out_everywhere_ends_the_other_devices_too(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.guard.people.HOLD_S", 0)
    with served.visitor() as laptop, served.visitor() as phone:
        come_in(laptop, link_of(command, served, "Ada"))
        link = re.search(r"/join/[\w-]+", laptop.post("/device").text)
        assert link
        come_in(phone, link[0])
        assert "Signed in" in phone.get("/votes").text
        laptop.post("/sign-out")
        assert "Signed in" not in laptop.get("/votes").text
        assert "Signed in" in phone.get("/votes").text
        phone.post("/sign-out", data={"everywhere": "true"})
        assert "Signed in" not in phone.get("/votes").text


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
        acts = people.acts(session).acts
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
    refused(command(*change, "Ada", "--block", *at), "2 people fit 'Ada'")
    refused(command(*change, "Eve", "--block", *at), "Nobody has the name 'Eve'")
    refused(command(*change, "Ada", *at), "Say what to change")
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


def test_a_trusted_proxy_says_who_has_logged_in(tmp_path: Path) -> None:
    settings = {"user_header": "Remote-User", "secret_key": "k" * 32, "admins": "Ada@firm.example"}
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
            twice = [("Remote-User", "ada@firm.example"), ("Remote-User", "bob")]
            assert httpx.get(f"{served.url}/admin", headers=twice).status_code == 400


def test_nobody_else_says_who_has_logged_in(tmp_path: Path) -> None:
    settings = {"user_header": "Remote-User", "secret_key": "k" * 32, "admins": "ada"}
    with (
        quick_arena(tmp_path, trusted_proxies="192.0.2.1", **settings) as served,
        served.visitor() as mallory,
    ):
        answer = mallory.get("/admin", headers={"Remote-User": "ada"})
        assert answer.status_code == 401


@pytest.fixture
def provider() -> Iterator[str]:
    """A real provider of OpenID Connect, on a port of this machine."""
    mail = {"email": "ada@firm.example"}
    known = (
        User(sub="ada", claims=mail | {"email_verified": True}),
        User(sub="eve", claims=mail | {"email_verified": False}),
    )
    app = oidc_provider_mock.app(user_claims=known, require_nonce=True)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def with_provider(provider: str, tmp_path: Path) -> Iterator[Served]:
    settings = {
        "oidc_issuer": provider,
        "oidc_client_id": "arena",
        "oidc_client_secret": "s" * 32,
        "oidc_name": "the firm",
        "admins": "ada@firm.example",
        "secret_key": "k" * 32,
    }
    with quick_arena(tmp_path, **settings) as served:
        yield served


def sign_in(visitor: Visitor, subject: str, to: str = "/votes") -> httpx.Response:
    """Sign in at the provider as somebody, and come back."""
    leaving = visitor.get("/sign-in/openid", params={"to": to})
    assert leaving.status_code == 303
    with httpx.Client() as browser:
        there = browser.post(leaving.headers["location"], data={"sub": subject})
    back = httpx.URL(there.headers["location"])
    return visitor.get(back.raw_path.decode())


def test_people_sign_in_at_a_provider(with_provider: Served) -> None:
    with with_provider.visitor() as laptop, with_provider.visitor() as phone:
        laptop.vote(laptop.play(), "tie")
        for device in (laptop, phone):
            assert "Sign in with the firm" in device.get("/sign-in").text
            back = sign_in(device, "ada")
            assert (back.status_code, back.headers["location"]) == (303, "/votes")
            assert "Signed in as ada@firm.example" in device.get("/votes").text
            assert device.get("/admin").status_code == 404, "let in, and nothing there"
            device.vote(device.play(), "tie")
    assert len(voters(with_provider)) == 3
    assert len(set(voters(with_provider))) == 1


def test_a_mail_that_nobody_verified_gives_no_role(with_provider: Served) -> None:
    with with_provider.visitor() as eve:
        sign_in(eve, "eve")
        assert "Signed in as eve" in eve.get("/votes").text
        assert eve.get("/admin").status_code == 403


def test_what_comes_back_without_having_been_sent_lets_nobody_in(with_provider: Served) -> None:
    with with_provider.visitor() as ada, with_provider.visitor() as mallory:
        refused = ada.get("/sign-in/openid/back", params={"code": "c", "state": "s"})
        assert refused.status_code == 403
        assert "Begin again" in refused.text
        leaving = mallory.get("/sign-in/openid")
        with httpx.Client() as browser:
            there = browser.post(leaving.headers["location"], data={"sub": "eve"})
        stolen = httpx.URL(there.headers["location"]).raw_path.decode()
        ada.get("/sign-in/openid")
        assert ada.get(stolen).status_code == 403
        assert "Signed in" not in ada.get("/votes").text


def test_a_provider_that_refuses_or_is_away_is_quoted(
    with_provider: Served, tmp_path: Path
) -> None:
    with with_provider.visitor() as ada:
        leaving = ada.get("/sign-in/openid")
        state = httpx.URL(leaving.headers["location"]).params["state"]
        asked = {"error": "access_denied", "error_description": "<b>No</b>", "state": state}
        answer = ada.get("/sign-in/openid/back", params=asked)
        assert answer.status_code == 403
        assert "the firm did not let you in" in answer.text
        assert "<b>No</b>" not in answer.text
        assert "<b>No</b>" in unescape(answer.text)
    settings = {"oidc_issuer": "http://127.0.0.1:9", "oidc_client_id": "a", "secret_key": "k"}
    (tmp_path / "away").mkdir()
    with quick_arena(tmp_path / "away", **settings) as served, served.visitor() as ada:
        assert ada.get("/sign-in/openid").status_code == 403


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil", "/a\nb", ""])
def test_nobody_is_led_elsewhere_after_signing_in(to: str) -> None:
    assert inside(to) == "/"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"user_header": "Remote-User"}, "name yours in ARENA_TRUSTED_PROXIES"),
        ({"user_header": "Remote-User", "trusted_proxies": "10.0.0.1"}, "ARENA_SECRET_KEY"),
        ({"oidc_issuer": "https://id.example"}, "ARENA_OIDC_CLIENT_ID belong together"),
        (
            {"oidc_issuer": "https://id.example", "oidc_client_id": "arena"},
            "ARENA_SECRET_KEY",
        ),
    ],
)
def test_ways_in_that_could_not_work_are_refused(
    settings: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(database=new_sqlite(tmp_path), **settings)
