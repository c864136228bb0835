"""What every request passes, over real HTTP."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from arena.api.middleware import POLICY, Requests
from arena.app import create_app
from arena.settings import read_settings
from tests.serving import Served, client_of, quick_arena
from tests.sqlite import new_sqlite


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An arena in which nobody battles, so that its pages stay as they are."""
    with quick_arena(tmp_path_factory.mktemp("quiet")) as served:
        yield served


def test_no_script_in_a_page_runs_and_nothing_is_fetched_from_elsewhere() -> None:
    own = {f"{what}-src 'self'" for what in ("default", "script", "connect")}
    assert own | {"object-src 'none'", "base-uri 'self'"} < set(POLICY.split("; "))


@pytest.mark.parametrize(
    ("path", "read"), [("/api/v1/battles", 422), ("/api/v1/battles/none/vote", 404)]
)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_the_largest_body_is_read_and_one_byte_more_is_refused_whether_it_says_so_or_not(
    quick: Served, in_pieces: bool, path: str, read: int
) -> None:
    answers = []
    for size in (1_048_576, 1_048_577):
        body = b'{"prompt": "' + b"x" * (size - 14) + b'"}'
        assert len(body) == size
        pieces = (body[at : at + 1000] for at in range(0, size, 1000))
        with client_of(quick.url) as client:
            headers = {"content-type": "application/json"}
            content = pieces if in_pieces else body
            answers.append(client.post(path, content=content, headers=headers))
    statuses = [answer.status_code for answer in answers]
    assert statuses == [read, 413], "the first is read: its prompt is too long, or its battle none"
    assert answers[1].headers["content-type"] == "application/problem+json"
    assert "1,048,576 bytes" in answers[1].json()["detail"]
    assert "content-security-policy" in answers[1].headers


BATTLES = "/api/v1/battles"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An arena that believes what it is asked over https."""
    with quick_arena(tmp_path_factory.mktemp("proxied"), trusted_proxies="127.0.0.1") as served:
        yield served


def opened(served: Served, scheme: str, *cookies: str) -> httpx2.Response:
    """Open a battle with cookies, as a browser sends them."""
    headers = {"X-Forwarded-Proto": scheme, "Cookie": "; ".join(cookies)}
    with client_of(served.url, headers=headers) as client:
        answer = client.post(BATTLES, json={"prompt": "Hi"})
    assert answer.status_code == 201
    return answer


def sees(served: Served, battle: httpx2.Response, scheme: str, *cookies: str) -> bool:
    """Whether who has these cookies is the owner of a battle."""
    headers = {"X-Forwarded-Proto": scheme, "Cookie": "; ".join(cookies)}
    with client_of(served.url, headers=headers) as client:
        return client.get(f"{BATTLES}/{battle.json()['battle_id']}").is_success


def cookie_in(answer: httpx2.Response) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def test_over_https_a_cookie_counts_that_only_the_arena_itself_can_set(proxied: Served) -> None:
    battle = opened(proxied, "https")
    header, mine = battle.headers["set-cookie"], cookie_in(battle)
    assert header.startswith("__Host-arena_voter=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(header.split("; "))
    assert ("Domain" in header, "Max-Age=31536000" in header) == (False, True)
    laid = cookie_in(opened(proxied, "http"))
    assert laid.startswith("arena_voter=")
    assert sees(proxied, battle, "https", laid, mine)
    assert "set-cookie" not in opened(proxied, "https", laid, mine).headers
    assert "set-cookie" in opened(proxied, "https", laid).headers


def test_over_http_who_comes_with_two_cookies_is_neither_of_the_two(proxied: Served) -> None:
    battle = opened(proxied, "http")
    mine, laid = cookie_in(battle), cookie_in(opened(proxied, "http"))
    assert sees(proxied, battle, "http", mine)
    assert sees(proxied, battle, "http", mine, "other=1", mine)
    assert not sees(proxied, battle, "http", mine, laid)
    assert not sees(proxied, battle, "http", laid, mine)
    assert cookie_in(opened(proxied, "http", laid, mine)) not in (laid, mine)


def test_nobody_comes_in_by_a_websocket(tmp_path: Path) -> None:
    app = create_app(read_settings(database=new_sqlite(tmp_path), page=True))
    with (
        TestClient(app) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/api/v1/battles", headers={"Host": "localhost"}),
    ):
        pass


@pytest.mark.parametrize(
    "path", ["/leaderboard", "/value", "/method", "/look/pages.css", "/look/page.js"]
)
def test_pages_styles_and_scripts_are_compressed_and_not_sent_twice(
    quick: Served, path: str
) -> None:
    with client_of(quick.url) as client:
        packed = client.get(path)
        plain = client.get(path, headers={"Accept-Encoding": "identity"})
        again = client.get(path, headers={"If-None-Match": packed.headers["etag"]})
    assert packed.headers["content-encoding"] == "gzip"
    of_visitor = "" if path.startswith("/look/") else "Accept-Language, Cookie"
    assert set(packed.headers["vary"].split(", ")) == {
        *filter(None, of_visitor.split(", ")),
        "Accept-Encoding",
    }
    assert again.headers.get("vary", "") == of_visitor
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert (again.status_code, again.content) == (304, b"")


def test_events_and_what_programs_read_are_sent_as_they_are(proxied: Served) -> None:
    with proxied.visitor() as ada:
        battle_id = ada.play()
        for path in (f"{BATTLES}/{battle_id}/events?html=1", f"{BATTLES}/{battle_id}"):
            answer = ada.get(path)
            assert len(answer.content) > 500
            assert "content-encoding" not in answer.headers


PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PROGRAM = {"Accept": "*/*"}


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/no/such/page", PERSON, "text/html; charset=utf-8"),
        ("/look/nothing.css", PERSON, "text/html; charset=utf-8"),
        ("/battles/%3Cscript%3E", PERSON, "text/html; charset=utf-8"),
        ("/no/such/page", PROGRAM, "application/problem+json"),
        ("/api/v1/nothing", PERSON, "application/problem+json"),
        (f"{BATTLES}/nothing", PERSON, "application/problem+json"),
        ("/health/nothing", PERSON, "application/problem+json"),
    ],
)
def test_an_unknown_path_is_a_page_for_people_and_a_problem_for_programs(
    quick: Served, path: str, headers: dict[str, str], kind: str
) -> None:
    with client_of(quick.url) as client:
        answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (404, kind)
    assert ("To the battle page" in answer.text) == (kind != "application/problem+json")
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    ("forwarded", "origin"),
    [
        ({}, "http://127.0.0.1"),
        ({"X-Forwarded-Proto": "https", "X-Forwarded-Host": "localhost"}, "https://localhost/"),
    ],
)
def test_the_picture_of_previews_is_addressed_as_the_visitor_reaches_us(
    proxied: Served, forwarded: dict[str, str], origin: str
) -> None:
    with client_of(proxied.url) as client:
        for path in ("/leaderboard", "/nothing", "/votes"):
            page = client.get(path, headers=PERSON | forwarded).text
            assert f'<meta property="og:image" content="{origin}' in page
        picture = client.get("/look/preview.png")
    assert (picture.headers["content-type"], picture.content[1:4]) == ("image/png", b"PNG")


def test_who_is_not_trusted_names_no_origin(quick: Served) -> None:
    forged = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    with client_of(quick.url) as client:
        assert "evil.example" not in client.get("/leaderboard", headers=forged).text
        for path in ("/leaderboard", "/admin/", "/api/v1/leaderboard/"):
            assert client.get(path, headers={"Host": "evil.example"}).status_code == 421


async def test_a_client_that_left_unanswered_is_told_apart_from_a_fault_of_ours() -> None:
    statuses: list[int] = []

    async def leaves(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer nothing, as a file does whose reader has gone."""

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    async def unsent(message: Message) -> None:
        raise AssertionError(message)

    for app in (leaves, fails):
        requests = Requests(app, lambda route, status, seconds: statuses.append(status))
        with suppress(ZeroDivisionError):
            await requests({"type": "http", "method": "GET", "path": "/"}, nothing, unsent)
    assert statuses == [499, 500]
