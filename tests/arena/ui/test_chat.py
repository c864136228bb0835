"""The Gradio chat over real HTTP: what it sends, whom it answers, and what of Gradio is closed."""

import json
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import gradio as gr
import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

import arena
from arena.domain.people import Role
from arena.errors import SettingsError
from arena.settings import read_settings
from arena.ui.chat import BEGUN, OPEN, UNMOUNTED, Chat
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.open_pages import served as serving
from tests.process import until
from tests.serving import Served, client_of, invited, serve, write_roster
from tests.sqlite import new_sqlite

TEXT = "All is **well**. " * 12 + "Yes."
QUICK = Behaviour(text=TEXT)
SLOW = Behaviour(text="A sentence that goes on. " * 400, chunk_size=12, delay_s=0.05)
NAMES = ("zanzibar", "quagmire")
QUEUE = "gradio_api/queue"


@dataclass
class Guest:
    """A page of the chat in a browser; keeps every byte that came."""

    client: httpx2.Client
    session: str = field(default_factory=lambda: uuid.uuid4().hex[:11])
    received: list[str] = field(default_factory=list)
    battle: str = ""
    running: str = ""
    called: int = 0
    shown: dict[str, Any] = field(default_factory=dict)

    def get(self, path: str, **kwargs: Any) -> httpx2.Response:
        answer = self.client.get(path, **kwargs)
        self.received.append(f"{answer.headers!r} {answer.text}")
        return answer

    @cached_property
    def config(self) -> Mapping[str, Any]:
        self.get("./")
        config: dict[str, Any] = self.get("config").json()
        return config

    def component(self, elem_id: str) -> int:
        (one,) = (c for c in self.config["components"] if c["props"].get("elem_id") == elem_id)
        return int(one["id"])

    def join(self, elem_id: str, prompt: object = "", **body: Any) -> httpx2.Response:
        """Send what the page sends when a button is pressed, or a prompt."""
        event = "submit" if elem_id == "prompt" else "click"
        target = [self.component(elem_id), event]
        (call,) = (one for one in self.config["dependencies"] if target in one["targets"])
        return self._call(call, [prompt, self.battle][: len(call["inputs"])], **body)

    def _call(self, call: Mapping[str, Any], data: list[Any], **body: Any) -> httpx2.Response:
        self.called = call["id"]
        asked = {"fn_index": self.called, "session_hash": self.session, "data": data}
        return self.client.post(f"{QUEUE}/join", json=asked | body)

    def events(self) -> Iterator[dict[str, Any]]:
        """Give what is sent, and send what the page sends by itself once that is done."""
        address = f"{QUEUE}/data?session_hash={self.session}"
        with self.client.stream("GET", address) as stream:
            assert stream.status_code == 200
            success = False
            for line in stream.iter_lines():
                self.received.append(line)
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    if event["msg"] == "process_completed":
                        success = event["success"]
                        self.shown |= self._values(event["output"].get("data", []))
                        self.running = self.shown.get("running", self.running)
                    yield event
        for call in self.config["dependencies"] if success else ():
            if call["trigger_after"] == self.called:
                assert self._call(call, [self.running]).status_code == 200
                yield from self.events()
                return

    def press(self, elem_id: str, prompt: str = "") -> dict[str, Any]:
        """Press a button, and give the last values of all components, by their ids in the page."""
        self.shown = {}
        assert self.join(elem_id, prompt).status_code == 200
        for event in self.events():
            assert event.get("success", True), event
        self.battle = self.shown.get("battle", self.battle)
        return self.shown

    def ask(self, prompt: str = "Why is the sky blue?") -> dict[str, Any]:
        return self.press("prompt", prompt)

    def _values(self, data: list[Any]) -> dict[str, Any]:
        ids = self.config["dependencies"][self.called]["outputs"]
        by_id = {one["id"]: one["props"].get("elem_id") for one in self.config["components"]}
        shown = {}
        for component, value in zip(ids[: len(data)], data, strict=True):
            changed = isinstance(value, dict) and value.get("__type__") == "update"
            if not changed or "value" in value or "interactive" in value:
                shown[by_id[component]] = value
        return shown


def note(shown: Mapping[str, Any]) -> str:
    return str(shown["note"])


def states(served: Served) -> list[str]:
    """Read from the log how each battle stands."""
    with closing(sqlite3.connect(served.database.removeprefix("sqlite:///"))) as connection:
        return [state for (state,) in connection.execute("SELECT state FROM battle ORDER BY id")]


@contextmanager
def models(folder: Path, *behaviours: Behaviour) -> Iterator[tuple[FaultyServer, Path]]:
    with faulty_server(dict(zip(NAMES, behaviours or (QUICK, QUICK), strict=True))) as server:
        yield server, write_roster(folder / "roster.toml", server, *NAMES)


@contextmanager
def mounted(folder: Path, *behaviours: Behaviour, **settings: object) -> Iterator[Served]:
    """Serve an arena with the chat beside it."""
    given = {"database": new_sqlite(folder), "chat": "/chat", "characters_per_s": 5000}
    with (
        models(folder, *behaviours) as (_, roster),
        serve(roster=roster, **given | settings) as served,
    ):
        yield served


@contextmanager
def guest(served: Served | str, **options: Any) -> Iterator[Guest]:
    url = served if isinstance(served, str) else f"{served.url}/chat"
    with client_of(url, **options) as client:
        yield Guest(client)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with mounted(tmp_path_factory.mktemp("beside")) as served:
        yield served


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a chat in an application of somebody else's."""
    folder = tmp_path_factory.mktemp("alone")
    with models(folder) as (_, roster):
        chat = arena.chat(roster=roster, database=new_sqlite(folder), characters_per_s=5000)
        app = gr.mount_gradio_app(FastAPI(), chat, "/chat", **chat.options)
        with serving(app) as client:
            yield str(client.base_url.join("/chat"))


@pytest.fixture(params=["beside", "alone"])
def url(request: pytest.FixtureRequest) -> str:
    served = request.getfixturevalue(request.param)
    return served if isinstance(served, str) else f"{served.url}/chat"


def test_a_battle_is_voted_on_and_only_then_reveals_who_answered(url: str) -> None:
    with guest(url) as ada:
        shown = ada.ask()
        assert [m["content"][0]["text"] for m in shown["answer-a"]][-1] == TEXT
        assert note(shown) == "Both finished. You can vote."
        before = "".join(ada.received).casefold()
        assert [name for name in NAMES if name in before] == []
        assert "http://127.0.0.1" not in before.replace(url.partition("/chat")[0], "")
        shown = ada.press("vote-model_a")
        assert note(shown).startswith("Saved. Your vote: A was better. A is **Name ")
        assert {name for name in NAMES if f"**Name {name}**" in note(shown)} == set(NAMES)
        assert shown["vote-model_a"]["interactive"] is False


def test_a_skip_reveals_nothing_and_a_second_vote_is_refused(beside: Served) -> None:
    with guest(beside) as ada:
        ada.ask()
        battle = ada.battle
        assert "names stay hidden" in note(ada.press("do-skip"))
        assert [name for name in NAMES if name in "".join(ada.received).casefold()] == []
        ada.battle = battle
        assert "already voted on this battle: you skipped it" in note(ada.press("vote-model_a"))
        ada.battle = ""
        ada.ask()
        battle = ada.battle
        ada.press("vote-tie")
        ada.battle = battle
        assert note(ada.press("vote-tie")).startswith("Saved. Your vote: a tie.")
        ada.battle = battle  # a prompt that is sent before the page has the vote
        assert note(ada.ask()) == "Both finished. You can vote."
        assert ada.battle not in ("", battle)


def test_a_battle_goes_on_with_further_turns_and_attempts_until_the_vote(beside: Served) -> None:
    with guest(beside) as ada:
        ada.ask()
        battle = ada.battle
        ada.ask("And at night?")
        shown = ada.press("do-regenerate")
        assert ada.battle == battle
        prompts = [m["content"][0]["text"] for m in shown["answer-b"]][::2]
        assert prompts == ["Why is the sky blue?", "And at night?"]
        assert ada.press("do-new")["answer-a"] == []
        ada.ask()
        assert ada.battle not in ("", battle)


def test_the_voter_and_the_names_are_those_of_the_battle_page(beside: Served) -> None:
    with guest(beside) as ada:
        ada.ask()
        address = f"{beside.url}/api/v1/battles/{ada.battle}"
        assert ada.client.get(address).status_code == 200
        message = note(ada.press("vote-tie"))
        models = ada.client.get(address).json()["models"]
        a, b = (models[side]["name"] for side in "ab")
        assert message.endswith(f"A is **{a}**, B is **{b}**.")


@pytest.mark.sampled(2)
def test_nobody_else_votes_on_a_battle_reads_it_or_answers_for_its_page(url: str) -> None:
    with guest(url) as ada, guest(url) as bob, guest(url) as stranger:
        ada.ask()
        for other in (bob, stranger):
            assert other.config
            if other is stranger:
                other.client.cookies.clear()
            other.battle = ada.battle
            for button in ("vote-model_a", "do-skip", "do-stop", "do-regenerate", "prompt"):
                shown = other.press(button, "What else?")
                assert "no such battle, or it belongs to another visitor" in note(shown)
            assert other.get(f"{QUEUE}/data?session_hash={ada.session}").status_code == 404
            other.session = ada.session
            assert other.join("vote-model_a").status_code == 200
            assert other.get(f"{QUEUE}/data?session_hash={ada.session}").status_code == 404
            assert "All is" not in "".join(other.received)
        assert note(ada.press("vote-model_b")).startswith("Saved. Your vote: B was better.")


@pytest.mark.sampled(2)
def test_who_keeps_no_cookie_is_one_voter_while_the_page_is_open(url: str) -> None:
    with guest(url) as ada, guest(url) as bob:
        for one in (ada, bob):
            assert one.config
            one.client.cookies.clear()
            one.ask()
        mine, ada.battle = ada.battle, bob.battle
        assert "no such battle" in note(ada.press("vote-model_b"))
        ada.battle = mine
        assert note(ada.press("vote-model_b")).startswith("Saved.")


def test_of_gradio_only_what_the_page_asks_for_is_open(url: str) -> None:
    with gr.Blocks() as any_blocks:
        pass
    served = {
        f"{method} {re.sub('{[^}]+}', 'x', str(context.path))}"
        for context in iter_route_contexts(any_blocks.app.routes)
        for method in context.methods or {"GET"}
    }
    assert len(served) > 50
    queue = ("POST /queue/join", "GET /queue/data")
    assert {one for one in served if OPEN.fullmatch(one)} == {
        "GET /", "HEAD /", "GET /config", "GET /theme.css", "GET /assets/x", "GET /static/x",
        *(one.replace(" ", " /gradio_api") for one in queue),
    }  # fmt: skip
    closed = {one for one in served if not OPEN.fullmatch(one)}
    assert {"POST /gradio_api/upload", "GET /gradio_api/info", BEGUN} <= closed
    with guest(url) as ada:
        visible = {one["api_visibility"] for one in ada.config["dependencies"]}
        assert visible == {"private"}
        for method, path in map(str.split, (*closed, "GET /gradio_api/file=/etc/passwd")):
            assert ada.client.request(method, f".{path}").status_code == 404, (method, path)


def test_other_sites_cannot_act_for_a_visitor_or_read_what_they_see(url: str) -> None:
    with guest(url) as ada:
        assert ada.config
        ada.client.headers["Origin"] = "https://evil.example"
        assert ada.join("prompt", "Hello").status_code == 403
        assert ada.get("config").status_code == 403
        del ada.client.headers["Origin"]
        assert ada.get("config", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.sampled(2)
def test_a_cookie_comes_with_the_page_alone_which_no_cache_stores(url: str) -> None:
    with client_of(url) as client:
        page = client.get("./")
        assert page.headers["cache-control"] == "private, no-store"
        assert "arena_voter" in page.headers["set-cookie"]
        client.cookies.clear()
        for path in ("config", "theme.css", "static/img/logo.svg"):
            answer = client.get(path)
            assert (answer.status_code, "set-cookie" in answer.headers) == (200, False), path


def test_the_page_loads_nothing_from_elsewhere_whatever_a_model_writes(
    beside: Served, alone: str
) -> None:
    for chat, frames in ((f"{beside.url}/chat", True), (alone, False)):
        with guest(chat) as ada:
            policy = ada.get("./").headers["content-security-policy"]
        assert "default-src 'self'; script-src 'self' 'unsafe-inline'" in policy
        assert "img-src 'self' data: blob:" in policy
        assert "form-action 'self'" in policy
        assert ("frame-ancestors 'self'" in policy) is frames
    assert (
        "unsafe-inline'; style"
        not in httpx2.get(f"{beside.url}/leaderboard").headers["content-security-policy"]
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"battles_per_voter_hour": 1}, "Your limit is 1 battle per hour."),
        ({"battles_per_address_hour": 1}, "Your network's limit is 1 battle per hour."),
        ({"max_prompt_chars": 25}, "The prompt has 26 characters; up to 25 can be sent."),
    ],
    ids=["voter", "address", "length"],
)
def test_limits_hold_as_on_the_page(
    tmp_path: Path, settings: Mapping[str, object], words: str
) -> None:
    with mounted(tmp_path, **settings) as served, guest(served) as ada:
        if "battles_per_address_hour" in settings:
            assert ada.config
            ada.client.cookies.clear()
        ada.ask()
        ada.press("vote-tie")
        shown = ada.ask("x" * 26)
        assert words in note(shown)
        assert {"answer-a", "answer-b"}.isdisjoint(shown)  # both answers stay
        assert ada.battle == ""


def test_a_cost_cap_ends_new_battles(tmp_path: Path) -> None:
    paid = replace(QUICK, usage=(10, 1_000_000))
    price = {"input": 1.0, "output": 1.0}
    with models(tmp_path, paid, paid) as (server, _):
        roster = [
            {
                "id": f"id-{name}",
                "name": name,
                "endpoint": server.url,
                "model": name,
                "price": price | {"date": "2026-11-01"},
            }
            for name in NAMES
        ]
        chat = arena.chat(roster, database=new_sqlite(tmp_path), max_dollars_per_day=0.01)
        app = gr.mount_gradio_app(FastAPI(), chat, "/", **chat.options)
        with serving(app) as client, guest(str(client.base_url)) as ada:
            ada.ask()
            ada.press("vote-tie")
            assert "has reached its cost limit for a day" in note(ada.ask())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("behaviour", "sign", "end"),
    [(SLOW, "A sentence", "ready"), (replace(SLOW, first_token_s=20.0), "process_gen", "stopped")],
    ids=["while it is written", "before the first word"],
)
def test_a_page_that_is_closed_ends_its_battle_and_frees_its_place(
    tmp_path: Path, behaviour: Behaviour, sign: str, end: str
) -> None:
    with (
        mounted(tmp_path, behaviour, behaviour, running_per_voter=1) as served,
        guest(served) as ada,
    ):
        assert ada.join("prompt", "Why is the sky blue?").status_code == 200
        for seen in ada.events():
            if sign in json.dumps(seen):
                break
        until(lambda: states(served) == [end])
        assert ada.join("prompt", "And now?").status_code == 200
        first = next(one for one in ada.events() if one["msg"] == "process_completed")
        assert "answered at a time" not in json.dumps(first)


def test_a_stop_ends_both_answers_which_take_a_vote_then(tmp_path: Path) -> None:
    with mounted(tmp_path, SLOW, SLOW) as served, guest(served) as ada:
        assert ada.join("prompt", "Why is the sky blue?").status_code == 200
        other = Guest(ada.client)
        for seen in ada.events():
            if "A sentence that" in json.dumps(seen) and not other.battle:
                assert ada.shown["do-stop"]["interactive"] is True
                other.battle = ada.battle = ada.shown["battle"]
                other.press("do-stop")
        assert note(ada.shown) == "Stopped. You can vote on what you see."
        assert note(ada.press("vote-both_bad")).startswith("Saved.")


def test_where_the_page_would_ask_why_before_the_names_they_follow_the_vote(
    tmp_path: Path,
) -> None:
    with mounted(tmp_path, reasons="before") as served, guest(served) as ada:
        ada.ask()
        assert "A is **Name " in note(ada.press("vote-model_a"))


def test_members_alone_come_in_where_the_arena_is_theirs(tmp_path: Path) -> None:
    key = "k" * 32
    with mounted(tmp_path, members_only=True, secret_key=key) as served, guest(served) as ada:
        page = ada.client.get("./", headers={"Accept": "text/html"}, follow_redirects=False)
        assert page.headers["location"] == "/sign-in?to=/chat/"
        assert ada.client.get("config").status_code == 401
        ada.client.post(f"{served.url}{invited(served, Role.VOTER)}")
        ada.ask()
        assert note(ada.press("vote-tie")).startswith("Saved.")


def test_a_failed_answer_is_not_told_from_its_reason(tmp_path: Path) -> None:
    broken = replace(QUICK, status=401, error={"message": "Pay for zanzibar first."})
    with mounted(tmp_path, broken, broken) as served, guest(served) as ada:
        shown = ada.ask()
        assert "stopped answering. Nothing was counted." in note(shown)
        assert "Pay" not in "".join(ada.received)
        assert shown["vote-tie"]["interactive"] is False
        assert shown["do-regenerate"]["interactive"] is True


def test_a_chat_that_is_mounted_without_its_guard_plays_no_battle(tmp_path: Path) -> None:
    toys = [
        {"id": name, "name": name, "endpoint": "pocket://local/v1", "model": "bigram"}
        for name in NAMES
    ]
    chat = arena.chat(toys, database=new_sqlite(tmp_path))
    app = gr.mount_gradio_app(FastAPI(), chat, "/")
    with serving(app) as client, guest(str(client.base_url)) as ada:
        assert ada.join("prompt", "Hello").status_code == 200
        *_, last = (one for one in ada.events() if one["msg"] == "process_completed")
        assert last["output"]["error"] == UNMOUNTED
    chat.parts.store.close()


def test_the_documented_chat_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "embed.md").read_text("utf-8")
    example = guide.split("\n## Gradio chat\n")[1].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(example, names)
    assert isinstance(names["chat"], Chat)
    assert {"launch", "options"} <= {*dir(names["chat"])}
    names["chat"].parts.store.close()
    assert (tmp_path / "team.db").exists()


def test_a_battle_needs_two_models_and_the_keys_of_a_roster() -> None:
    one = {"id": "a", "name": "A", "endpoint": "http://127.0.0.1:9/v1", "model": "a"}
    with pytest.raises(SettingsError, match="A battle needs two models, got 1"):
        arena.chat([one])
    with pytest.raises(SettingsError, match="key 'endpoint' is missing"):
        arena.chat([{"id": "a", "name": "A", "model": "a"}])
    with pytest.raises(SettingsError, match="chat"):
        read_settings(chat="no path")
