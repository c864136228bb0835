"""Every route, for everybody, from everywhere: what the arena decides, over real HTTP."""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from arena.app import create_app
from arena.domain.people import Role
from arena.guard.access import ADMINS, NEEDS, SIGN_IN, VISITORS, Access, Trust
from arena.settings import read_settings
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, client_of, invited, page_of, serve, write_roster
from tests.sqlite import new_sqlite

WHO = ("nobody", "other visitor", "owner", "voter", "researcher", "admin")
ORIGINS = ("own page", "program", "sibling", "foreign")
LETTERS = {
    "in": "i",
    "in, with a cookie": "c",
    "no such battle": "-",
    "refused": "X",
    "not let in": "o",
    "no token": "t",
    "no page of a source": "n",
}

PROVIDER = {"oidc_issuer": "http://127.0.0.1:9", "oidc_client_id": "arena", "secret_key": "k" * 32}
"""Settings of a provider of OpenID Connect that is away: its routes decide all the same."""

# A line for each of WHO, in it a letter for each of ORIGINS.
READ = "iiii iiii iiii iiii iiii iiii"
START = "ccii iiii iiii iiii iiii iiii"
OPEN = "ccXX iiXX iiXX iiXX iiXX iiXX"
LOOK = "---- ---- iiii ---- ---- ----"
CHANGE = "--XX --XX iiXX --XX --XX --XX"
PAGE = "iiXX iiXX iiXX iiXX iiXX iiXX"
ROOM = "oooo oooo oooo oooo oooo iiii"
RUN = "ooXX ooXX ooXX ooXX ooXX iiXX"
FIGURES = "oooo oooo oooo oooo iiii iiii"
SENDER = "ttXX ttXX ttXX ttXX ttXX ttXX"
ASKER = "tttt tttt tttt tttt tttt tttt"
EMBEDDED = "nnnn nnnn nnnn nnnn nnnn nnnn"
OUT = "ccXX ccXX ccXX ccXX ccXX ccXX"

ROUTES = {
    READ: """
        GET /api/openapi.json /api/v1/evaluation /api/v1/leaderboard /evaluation /evaluation/
        GET /health/live /health/ready /leaderboard /leaderboard/ /leaderboard.csv
        GET /leaderboard.json /leaderboard.parquet /mix /mix/ /models /models/ /mix.json /votes
        GET /votes/ /votes/erase /votes.json /method /method/ /study /study/ /battles
        GET /battles/{battle_id} /cards /cards/ /topics /topics/ /value /value/ /look/tokens.css
        GET /look/pages.css /look/rendered.css /look/mix.js /look/study.js /look/exports.js
        GET /look/voters.js /look/preview.png /look/maths.woff2 /look/{file} /look/{version}/{file}
        GET /favicon.ico /embed.js /studies /studies/{name} /studies/{name}/rated/{token} /sign-in
        GET /sign-in/openid/back /join/{token} /theme.css /assets/{file}
        """,
    ROOM: """
        GET /admin /admin/battles /admin/exports /admin/log /admin/models /admin/people
        GET /admin/policies /admin/voters /admin/voters/erase
        """,
    RUN: """
        POST /admin/exclude /admin/exports /admin/models/add /admin/models/place
        POST /admin/models/release /admin/models/test /admin/models/weigh /admin/people/change
        POST /admin/people/invitation /admin/people/invite /admin/readmit /admin/voters/apply
        POST /admin/voters/erase /admin/voters/examine
        """,
    START: "GET / /studies/{name}/rate",
    FIGURES: "GET /studies/{name}/results",
    OPEN: "POST /api/v1/battles",
    PAGE: """
        POST /language/{language} /join/{token} /sign-in/openid /device /mix /mix.json
        POST /studies/{name}/leave /studies/{name}/rate /studies/{name}/rated/{token} /votes/erase
        """,
    OUT: "POST /sign-out",
    SENDER: "POST /api/v1/comparisons /api/v1/pairs",
    ASKER: "GET /api/v1/share",
    EMBEDDED: """
        GET /embed/pairs/{pair}
        OPTIONS /embed/pairs/{pair} /embed/pairs/{pair}/vote
        POST /embed/pairs/{pair}/vote
        """,
    LOOK: """
        GET /api/v1/battles/{battle_id} /api/v1/battles/{battle_id}/events
        GET /api/v1/battles/{battle_id}/instructions
        """,
    CHANGE: """
        POST /api/v1/battles/{battle_id}/turns /api/v1/battles/{battle_id}/regenerate
        POST /api/v1/battles/{battle_id}/retry /api/v1/battles/{battle_id}/continue
        POST /api/v1/battles/{battle_id}/rest /api/v1/battles/{battle_id}/stop
        POST /api/v1/battles/{battle_id}/vote /api/v1/battles/{battle_id}/remarks
        POST /votes/{battle_id}/hidden
        """,
}
FOLDERS = ("/assets", "/look/{version}", "/look")
TABLE = {
    f"{method} {path}": decisions
    for decisions, routes in ROUTES.items()
    for method, *paths in map(str.split, routes.strip().splitlines())
    for path in paths
}


@dataclass(frozen=True, slots=True)
class Scene:
    """An arena, the cookies of who may ask, and the owner's battle."""

    served: Served
    cookies: Mapping[str, Mapping[str, str]]
    battle_id: str
    client: httpx2.Client

    def headers(self, origin: str) -> dict[str, str]:
        """What a browser, or a program, says of where a request comes from."""
        port = self.served.url.rpartition(":")[2]
        return {
            "own page": {"Origin": self.served.url, "Sec-Fetch-Site": "same-origin"},
            "program": {},
            "sibling": {
                "Origin": f"http://127.0.0.1:{int(port) + 1}",
                "Sec-Fetch-Site": "same-site",
            },
            "foreign": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        }[origin]

    def decision(self, route: str, who: str, origin: str) -> str:
        method, path = route.split(" ")
        path = re.sub(r"\{[^}]+\}", "x", path.replace("{battle_id}", self.battle_id))
        body: dict[str, Any] = {"prompt": "Hi"}
        if path.endswith("/vote"):
            body = {"outcome": "tie", "key": str(uuid.uuid4())}
        self.client.cookies = httpx2.Cookies(dict(self.cookies[who]))
        headers = self.headers(origin)
        sent = body if method == "POST" else None
        with self.client.stream(method, path, headers=headers, json=sent) as answer:
            return decided(answer)


def decided(answer: httpx2.Response) -> str:
    """Read what was decided from an answer, of which the body may have no end."""
    assert answer.status_code < 500, answer.read()
    assert [name for name in answer.headers if name.startswith("access-control")] == []
    if answer.headers.get("content-type") == "application/problem+json":
        detail = str(answer.read() and answer.json()["detail"])
        if detail in (SIGN_IN, NEEDS[Role.ADMIN], NEEDS[Role.RESEARCHER]):
            return "not let in"
        if detail.startswith("No source has this token"):
            return "no token"
        if detail.startswith("Pages that show this pair are registered"):
            return "no page of a source"
        if answer.status_code == 403:
            assert detail.startswith("Only the arena's own page at "), detail
            return "refused"
        if detail.startswith("There is no such battle, or it belongs to another visitor"):
            return "no such battle"
    return "in, with a cookie" if "set-cookie" in answer.headers else "in"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("table")
    with faulty_server({name: Behaviour(text=f"So says {name}.") for name in "xy"}) as server:
        roster = write_roster(folder / "roster.toml", server, "x", "y", characters_per_s=50_000)
        with (
            page_of(folder, roster, characters_per_s=50_000, **PROVIDER) as served,
            served.visitor() as ada,
            served.visitor() as bob,
            client_of(served.url) as client,
        ):
            battle_id = ada.play()
            ada.vote(battle_id, "tie")
            bob.get("/")
            cookies = {"nobody": {}, "other visitor": bob.client.cookies}
            cookies["owner"] = ada.client.cookies
            jars = {who: dict(jar) for who, jar in cookies.items()}
            yield Scene(served, jars | _known(served), battle_id, client)


def _known(served: Served) -> dict[str, dict[str, str]]:
    """Let somebody of each role in; gives the cookies of each."""
    jars = {}
    for role in Role:
        with served.visitor() as visitor:
            visitor.post(invited(served, role))
            jars[str(role)] = dict(visitor.client.cookies)
    return jars


@pytest.mark.parametrize("route", TABLE)
def test_a_route_decides_by_who_asks_and_from_where(scene: Scene, route: str) -> None:
    decisions = [[scene.decision(route, who, origin) for origin in ORIGINS] for who in WHO]
    letters = " ".join("".join(LETTERS[one] for one in line) for line in decisions)
    assert letters == TABLE[route]


def test_every_route_stands_in_the_table(tmp_path: Path) -> None:
    app = create_app(read_settings(database=new_sqlite(tmp_path), page=True, **PROVIDER))
    assert set(routes_of(app.routes)) == set(TABLE)


def test_every_route_declares_who_may_ask_exactly_once(tmp_path: Path) -> None:
    app = create_app(read_settings(database=new_sqlite(tmp_path), page=True, **PROVIDER))
    assert undeclared(app.routes) == []


@pytest.mark.parametrize(
    "planted",
    [
        APIRoute("/planted", lambda: None),
        APIRoute("/planted", lambda: None, dependencies=[VISITORS, ADMINS]),
        Route("/planted", lambda _: Response()),
        Mount("/planted", Starlette()),
        Mount("/planted", StaticFiles(directory=Path(__file__).parent)),
    ],
    ids=["none", "two", "of Starlette", "an application", "a folder"],
)
def test_a_planted_route_without_a_declared_role_is_found(planted: BaseRoute) -> None:
    assert undeclared([planted]) == ["/planted"]


def undeclared(routes: Sequence[BaseRoute]) -> list[str]:
    """Give the paths of routes that do not declare exactly once who may ask.

    Folders of styles and scripts are for everybody.
    """
    paths = []
    for context in iter_route_contexts(routes):
        route = context.original_route
        path = str(getattr(route, "path", route))
        if isinstance(route, Mount) and isinstance(route.app, StaticFiles):
            if path not in FOLDERS:
                paths.append(path)
        elif len([one for one in _calls(route) if isinstance(one, Access)]) != 1:
            paths.append(path)
    return paths


def _calls(route: BaseRoute) -> list[object]:
    dependant = getattr(route, "dependant", None)
    return [one.call for one in dependant.dependencies] if dependant else []


VARIANTS = {
    "newline": "{path}%0A",
    "carriage return": "{path}%0D",
    "null": "{path}%00",
    "slash": "{path}/",
    "two slashes": "{path}//",
    "parameter": "{path};x",
    "dot": "{path}%2e",
    "upper case": None,
    "HEAD": "{path}",
    "OPTIONS": "{path}",
}
CONTROL = ("newline", "carriage return", "null")
AS_IT_IS = "as it is"


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_variant_of_an_address_or_method_opens_a_route(scene: Scene, variant: str) -> None:
    """Nobody gets in by a variant who is refused at the route; control characters never pass."""
    opened, passed = [], []
    with client_of(scene.served.url) as client:
        for route, letters in TABLE.items():
            lines = dict(zip(WHO, letters.split(), strict=True))
            program = ORIGINS.index("program")
            refused = [who for who, line in lines.items() if line[program] not in "ic"]
            for who in {"nobody", *refused[-1:]}:
                answer = varied(client, scene, who, route, variant)
                if answer.is_success and who in refused and not route.startswith("OPTIONS "):
                    opened.append((who, route))
                if variant in CONTROL and answer.status_code != 400:
                    passed.append((who, route, answer.status_code))
    assert (opened, passed) == ([], [])


def varied(
    client: httpx2.Client, scene: Scene, who: str, route: str, variant: str
) -> httpx2.Response:
    """Ask for a variant of a route, without following where it leads."""
    client.cookies = httpx2.Cookies(dict(scene.cookies[who]))  # signing out would clear them
    method, path = route.split(" ")
    path = re.sub(r"\{[^}]+\}", "x", path.replace("{battle_id}", scene.battle_id))
    template = VARIANTS.get(variant, "{path}")
    raw = path.upper() if template is None else template.format(path=path)
    method = variant if variant in ("HEAD", "OPTIONS") else method
    body = {"prompt": "Hi"} if method == "POST" else None
    request = client.build_request(method, "/", json=body)
    request.url = request.url.copy_with(raw_path=raw.encode())
    answer = client.send(request, stream=True)
    if variant != "HEAD" and not answer.headers.get("content-type", "").startswith("text/event"):
        answer.read()
    answer.close()
    assert answer.status_code < 500, (route, answer.status_code)
    return answer


@pytest.mark.parametrize("who", ["nobody", "owner", "researcher", "admin"])
def test_no_cache_stores_a_response_that_is_not_public(scene: Scene, who: str) -> None:
    app = create_app(read_settings(database=scene.served.database, page=True, **PROVIDER))
    cacheable = []
    with client_of(scene.served.url) as client:
        for context in iter_route_contexts(app.routes):
            access = [a for a in _calls(context.original_route) if isinstance(a, Access)]
            if not access or not access[0].is_private(Trust()):
                continue
            for method in context.methods or ():
                answer = varied(client, scene, who, f"{method} {context.path}", AS_IT_IS)
                directives = {*answer.headers.get("cache-control", "").split(", ")}
                if directives != {"private", "no-store"}:
                    cacheable.append((method, context.path, answer.status_code))
    assert cacheable == []


def test_where_only_members_come_in_no_cache_stores_a_page(tmp_path: Path) -> None:
    with (
        serve(database=new_sqlite(tmp_path), page=True, members_only=True) as served,
        served.visitor() as ada,
        served.visitor() as nobody,
    ):
        ada.post(invited(served, Role.VOTER))
        for path in ("/", "/leaderboard", "/mix", "/nowhere"):
            for visitor in (ada, nobody):
                assert visitor.get(path).headers["cache-control"] == "private, no-store"


def routes_of(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Give method and path of all that is served; HEAD is GET without a body."""
    for context in iter_route_contexts(routes):
        route = context.original_route
        if isinstance(route, Mount):
            assert route.path in FOLDERS, "who may ask what is mounted there?"
            assert isinstance(route.app, StaticFiles)
            yield f"GET {route.path}/{{file}}"
            continue
        assert context.methods, f"{route!r} is neither a page nor a call: who may ask it?"
        for method in {"GET" if method == "HEAD" else method for method in context.methods}:
            yield f"{method} {context.path}"


@pytest.mark.parametrize("path", ["/", "/api/v1/battles"])
@pytest.mark.parametrize("origin", ORIGINS)
def test_no_preflight_gives_anybody_a_right(scene: Scene, path: str, origin: str) -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    with client_of(scene.served.url) as client:
        answer = client.options(path, headers=scene.headers(origin) | asked)
    assert [name for name in answer.headers if name.startswith("access-control")] == []
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("destination", ["image", "iframe", "document"])
def test_only_a_person_who_follows_a_link_gets_a_cookie_from_elsewhere(
    scene: Scene, destination: str
) -> None:
    mode = "no-cors" if destination == "image" else "navigate"
    asked = {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
    with client_of(scene.served.url) as client:
        answer = client.get("/", headers=scene.headers("foreign") | asked)
    assert ("set-cookie" in answer.headers) is (destination == "document")


def test_a_battle_that_is_not_opened_gives_no_cookie(scene: Scene) -> None:
    with client_of(scene.served.url) as client:
        answer = client.post("/api/v1/battles", json={"prompt": " "})
    assert answer.status_code == 422
    assert "set-cookie" not in answer.headers


def test_what_is_for_one_visitor_is_kept_by_no_shared_cache(scene: Scene) -> None:
    with client_of(scene.served.url, cookies=dict(scene.cookies["owner"])) as client:
        page = client.get("/").headers["cache-control"]
        battle = client.get(f"/api/v1/battles/{scene.battle_id}").headers["cache-control"]
    assert (page, battle) == ("private", "private, no-store")
