"""The arena on a free port of this machine, and a visitor who talks to it over HTTP."""

import atexit
import json
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import IO, Any, Self

import httpx2
from fastapi import routing
from fastapi._compat.v2 import ModelField
from sqlmodel import col, select, update

from arena.app import create_app
from arena.domain.battle import VOTE_WITHIN
from arena.domain.people import Invitation, Role
from arena.guard.access import new_token, token_hash
from arena.server import configured
from arena.settings import read_settings
from arena.store import people
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow
from tests.faulty_server import Behaviour, FaultyServer, PromptServer, faulty_server
from tests.process import Process, until
from tests.sqlite import new_sqlite


def _analyse_routes_once() -> None:
    """Let arenas of a process share the analysis of equal routes, and of equal parameters.

    It is half of what an arena takes to begin, and tests begin more than a thousand.
    """
    analyse, types = ModelField.__post_init__, dict[object, Any]()
    populate, routes = routing._populate_api_route_state, dict[object, dict[str, Any]]()

    def recall(field: ModelField) -> None:
        key = (field.field_info.annotation, repr(field.field_info), repr(field.config))
        if key not in types:
            analyse(field)
            types[key] = field._type_adapter
        field._type_adapter = types[key]

    def repeat(route: Any, path: str, endpoint: Any, **options: Any) -> None:
        provider, key = options.pop("dependency_overrides_provider", None), None
        if isinstance(route, routing.APIRoute) and isinstance(endpoint, FunctionType):
            written = repr((endpoint.__annotations__, endpoint.__defaults__, options))
            key = (path, endpoint.__code__, written)
        if key not in routes:
            populate(route, path, endpoint, dependency_overrides_provider=provider, **options)
            if not key or "<locals>" in repr(route.dependant.dependencies):  # of one arena
                return
            routes[key] = {**vars(route)}
        vars(route).update(routes[key])
        route.endpoint, route.dependency_overrides_provider = endpoint, provider
        route.dependant = replace(route.dependant, call=endpoint)

    ModelField.__post_init__ = recall  # type: ignore[assignment, method-assign]
    routing._populate_api_route_state = repeat


_analyse_routes_once()


@dataclass(frozen=True, slots=True)
class Served:
    """A running arena."""

    url: str
    database: str

    def visitor(self) -> "Visitor":
        """Let a new person come in."""
        return Visitor(client_of(self.url))


@dataclass(slots=True)
class Visitor:
    """A person with a browser's cookies; keeps every byte that the arena sent."""

    client: httpx2.Client
    received: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def post(self, path: str, **kwargs: Any) -> httpx2.Response:
        return self._keep(self.client.post(path, **kwargs))

    def get(self, path: str, **kwargs: Any) -> httpx2.Response:
        return self._keep(self.client.get(path, **kwargs))

    def open(self, prompt: str = "What does yield do?") -> str:
        answer = self.post("/api/v1/battles", json={"prompt": prompt})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["battle_id"])

    def look(self, battle_id: str) -> dict[str, Any]:
        body: dict[str, Any] = self.get(f"/api/v1/battles/{battle_id}").json()
        return body

    def follow(self, battle_id: str, last_event_id: str | None = None) -> "list[StreamEvent]":
        """Listen to a battle to the end of its stream."""
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        answer = self.get(f"/api/v1/battles/{battle_id}/events", headers=headers)
        assert answer.status_code == 200, answer.text
        return parse_events(answer.text)

    def play(self, prompt: str = "What does yield do?") -> str:
        """Open a battle and listen until it is ready."""
        battle_id = self.open(prompt)
        assert self.follow(battle_id)[-1].event == "ready"
        return battle_id

    def vote(self, battle_id: str, outcome: str, key: str | None = None) -> httpx2.Response:
        body = {"outcome": outcome, "key": key or str(uuid.uuid4())}
        return self.post(f"/api/v1/battles/{battle_id}/vote", json=body)

    def board(self, *, votes: int, within_s: float = 60) -> dict[str, Any]:
        """Read the leaderboard once it is of so many votes: it is made in the background."""
        deadline = time.monotonic() + within_s
        while True:
            body: dict[str, Any] = self.get("/api/v1/leaderboard").json()
            if body["votes"] == votes:
                return body
            assert time.monotonic() < deadline, f"a board of {body['votes']} votes, not {votes}"
            time.sleep(0.05)

    def _keep(self, answer: httpx2.Response) -> httpx2.Response:
        self.received.append(f"{answer.headers!r} {answer.text}")
        return answer


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream."""

    event: str
    data: Mapping[str, str]
    id: str


def parse_events(text: str) -> list[StreamEvent]:
    """Read a whole event stream, comments excluded."""
    blocks = [block.splitlines() for block in text.replace("\r\n", "\n").split("\n\n")]
    fields = [dict(line.split(": ", 1) for line in block if line[:1] != ":") for block in blocks]
    return [StreamEvent(f["event"], json.loads(f["data"]), f["id"]) for f in fields if f]


def invited(served: Served, role: Role, name: str = "Ada Lovelace", uses: int = 1) -> str:
    """Invite somebody; gives the path of the link."""
    token, now = new_token(), datetime.now(UTC)
    with closing(Store(served.database)) as store, store.writing() as session:
        invitation, expires = Invitation(role, name, uses), now + timedelta(days=1)
        people.invite(session, invitation, token_hash(token), expires, now, people.TERMINAL)
    return f"/join/{token}"


def let_expire(served: Served, battle_id: str) -> None:
    """Let the models of a battle have been asked so long ago that it takes no vote any more."""
    with closing(Store(served.database)) as store, store.writing() as session:
        battle = select(col(BattleRow.id)).where(col(BattleRow.public_id) == battle_id)
        asked = update(AnswerRow).where(col(AnswerRow.battle_id) == battle.scalar_subquery())
        session.exec(asked.values(created=datetime.now(UTC) - VOTE_WITHIN))


def side_text(events: Sequence[StreamEvent], side: str) -> str:
    """Put together what one side said."""
    return "".join(
        one.data["text"] for one in events if one.event == "delta" and one.data["side"] == side
    )


def client_of(url: str, *, timeout: float = 30, **options: Any) -> httpx2.Client:
    """Reach a server of this machine, without reading the certificates of others each time."""
    return httpx2.Client(base_url=url, timeout=timeout, verify=False, trust_env=False, **options)


def free_port() -> int:
    """Find a port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def serve(**settings: object) -> Iterator[Served]:
    """Serve the arena in a thread, without its page unless that is asked for."""
    read = read_settings(**{"page": False, "prior_delay_s": 0} | settings)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = PromptServer(configured(create_app(read), read))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", read.database)
        finally:
            server.should_exit = True
            thread.join(timeout=10)


@contextmanager
def running(folder: Path, *words: str, **env: str) -> Iterator[str]:
    """Run a serving command in a process of its own; gives its address."""
    with logging_to(None, folder, words, env) as url:
        yield url


@contextmanager
def logging_to(
    log: IO[str] | None, folder: Path, words: Sequence[str], env: Mapping[str, str]
) -> Iterator[str]:
    """Run a serving command whose log goes to a file; gives its address."""
    with Process(words, folder, {"ARENA_SHUTDOWN_GRACE_S": "0"} | dict(env), log) as process:
        try:
            yield process.url()
        finally:
            process.send(signal.SIGINT)
            process.wait()


def page_of(folder: Path, roster: Path, **settings: object) -> AbstractContextManager[Served]:
    """Serve the arena with its page."""
    return serve(database=new_sqlite(folder), roster=roster, page=True, **settings)


@contextmanager
def served_by(server: FaultyServer, folder: Path, **settings: object) -> Iterator[Served]:
    """Serve the arena with the server's behaviours as its models."""
    defaults = {
        "database": new_sqlite(folder),
        "roster": write_roster(folder / "roster.toml", server, *server.behaviours),
        "characters_per_s": 50_000,
    }
    with serve(**defaults | settings) as served:
        yield served


@contextmanager
def page_by(
    behaviours: Mapping[str, Behaviour], folder: Path, **settings: object
) -> Iterator[Served]:
    """Serve the arena with its page, and with models that behave so."""
    with (
        faulty_server(behaviours) as server,
        served_by(server, folder, page=True, **settings) as served,
    ):
        yield served


@contextmanager
def quick_arena(folder: Path, **settings: object) -> Iterator[Served]:
    """Serve the arena, without the page, with three models that answer at once."""
    with served_by(_quick_models(), folder, **settings) as served:
        yield served


@cache
def _quick_models() -> FaultyServer:
    """Start, once and until the tests end, what answers for every quick arena."""
    behaviours = {name: Behaviour(text=f"So says {n}. " * 20) for n, name in enumerate("xyz")}
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(faulty_server(behaviours))


def write_roster(path: Path, server: FaultyServer, *names: str, **extra: object) -> Path:
    """Write a roster whose models are the server's behaviours."""
    tables = [
        "\n".join(
            (
                "[[models]]",
                f"id = {json.dumps(f'id-{name}')}",
                f"name = {json.dumps(f'Name {name}')}",
                f"endpoint = {json.dumps(server.url)}",
                f"model = {json.dumps(name)}",
                *(f"{key} = {json.dumps(value)}" for key, value in extra.items()),
            )
        )
        for name in names
    ]
    path.write_text("\n\n".join(tables), encoding="utf-8")
    return path
