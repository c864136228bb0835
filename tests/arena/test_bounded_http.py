"""What a connection may cost: real sockets against a real arena."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arena import server
from arena.guard.access import Trust
from arena.server import configured, shares_of
from arena.settings import read_settings
from tests.faulty_server import Behaviour, PromptServer, faulty_server
from tests.serving import Served, Visitor, quick_arena, served_by

SHORT_S = 0.5
FIXED = 65536  # bytes of a socket's buffer: the system makes others larger while they are used
LARGE = 30_000_000
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /api/v1/battles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF = b"Content-Length: 100\r\n\r\n{"
"""Of a body: 99 bytes more are to come."""


TIMES = {"header_timeout_s": SHORT_S, "body_timeout_s": SHORT_S}
Endless = Callable[..., AbstractContextManager[Served]]
"""Serves battles that do not end."""


@contextmanager
def visited(
    folder: Path, model: Behaviour, **settings: object
) -> Iterator[tuple[Served, Visitor]]:
    """Serve two such models, and let somebody in."""
    with (
        faulty_server({"x": model, "y": model}) as models,
        served_by(models, folder, **settings) as served,
        served.visitor() as ada,
    ):
        yield served, ada


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("impatient")
    times = {"header_timeout_s": SHORT_S, "body_timeout_s": 2 * SHORT_S}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "KEEP_ALIVE_S", 4 * SHORT_S)
        with quick_arena(folder, max_header_bytes=5000, **times) as served:
            yield served


@contextmanager
def connection(served: Served, address: str = "127.0.0.1") -> Iterator[socket.socket]:
    """Come from one of this machine's many addresses."""
    to = ("127.0.0.1", httpx2.URL(served.url).port or 80)
    with closing(socket.create_connection(to, timeout=10, source_address=(address, 0))) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, FIXED)
        yield sock


def rest(sock: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    pieces = []
    while piece := sock.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def answer_to(served: Served, sent: bytes) -> bytes:
    """Send something on a connection of its own, and read until the server closes it."""
    with connection(served) as sock:
        sock.sendall(sent)
        return rest(sock)


def some(sock: socket.socket) -> bytes:
    piece = sock.recv(65536)
    assert piece, "the connection was closed"
    return piece


def one_answer(sock: socket.socket) -> bytes:
    """Read one answer of a known length, and leave the connection open."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += some(sock)
    head, _, body = read.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: ([0-9]+)", head)
    assert length is not None, head
    while len(body) < int(length[1]):
        body += some(sock)
    return head + b"\r\n\r\n" + body


def following(visitor: Visitor, battle_id: str) -> bytes:
    """Write the request of a visitor who follows their battle."""
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.client.cookies.items())
    head = f"GET /api/v1/battles/{battle_id}/events HTTP/1.1\r\nHost: localhost\r\n"
    return f"{head}Cookie: {cookie}\r\n\r\n".encode()


def refusal(answer: bytes) -> tuple[int, str]:
    """Give the status of a refusal, and its words."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"close" in head
    problem = json.loads(body)
    assert head.startswith(b"HTTP/1.1 %d " % problem["status"])
    return problem["status"], problem["detail"]


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /health/live HTTP/1.1\r\nHost: "])
def test_who_sends_half_a_request_and_waits_is_let_go(impatient: Served, sent: bytes) -> None:
    began = time.monotonic()
    answer = answer_to(impatient, sent)
    assert SHORT_S * 0.8 < time.monotonic() - began < SHORT_S + 5
    if b"GET" in sent:
        assert refusal(answer) == (408, "The request was not whole after 0.5 s. Send it again.")
    else:
        assert answer == b""


def test_headers_that_drip_are_let_go_too(impatient: Served) -> None:
    with connection(impatient) as sock:
        began = time.monotonic()
        sock.sendall(b"GET / HTTP/1.1\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - began < SHORT_S + 5:
                sock.sendall(b"X: y\r\n")
                time.sleep(SHORT_S / 10)
        assert time.monotonic() - began < SHORT_S + 5


def test_a_blank_line_between_requests_keeps_no_connection_for_ever(impatient: Served) -> None:
    with connection(impatient) as sock:
        sock.sendall(LIVE)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        sock.sendall(b"\r\n")
        assert rest(sock) == b""


def test_a_body_that_comes_too_slowly_is_refused(impatient: Served) -> None:
    began = time.monotonic()
    answer = answer_to(impatient, POST + HALF)
    assert refusal(answer) == (408, "The request was not whole after 1 s. Send it again.")
    assert time.monotonic() - began < 2 * SHORT_S + 5


REFUSED = POST.replace(b" HTTP", b"%00 HTTP", 1) + HALF
"""A path with a control character is refused before the body is read."""


@pytest.mark.parametrize("body", [b"", b"x" * 99])
def test_who_was_refused_before_the_body_came_hears_no_second_answer_and_is_let_go(
    impatient: Served, body: bytes
) -> None:
    with connection(impatient) as sock:
        sock.sendall(REFUSED)
        assert one_answer(sock).startswith(b"HTTP/1.1 400")
        sock.sendall(body)
        assert rest(sock) == b""


def test_after_the_body_of_what_was_refused_the_next_request_is_answered(
    impatient: Served,
) -> None:
    with connection(impatient) as sock:
        sock.sendall(REFUSED)
        one_answer(sock)
        sock.sendall(b"x" * 99 + LIVE)
        assert one_answer(sock).startswith(b"HTTP/1.1 200")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "more",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x00\xff\r\n",
        b"GET http://[bad HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST + b"Content-Length: 9\r\n\r\n{",
    ],
)
def test_nothing_is_written_into_an_answer_that_is_under_way(tmp_path: Path, more: bytes) -> None:
    model = Behaviour(text="So it goes on. " * 10, delay_s=0.2)
    with visited(tmp_path, model, **TIMES) as (served, ada):
        asked = following(ada, ada.open())
        with connection(served) as sock:
            sock.sendall(asked)
            read = sock.recv(65536)
            sock.sendall(more)
            with suppress(ConnectionError):
                read += rest(sock)
        assert read.startswith(b"HTTP/1.1 200")
        assert read.count(b"HTTP/1.1 ") == 1 or b"0\r\n\r\nHTTP/1.1 408" in read


def test_what_is_not_http_is_refused_in_words(impatient: Served) -> None:
    assert refusal(answer_to(impatient, b"\x00\xff\r\n\r\n"))[0] == 400
    with connection(impatient) as sock:
        sock.sendall(LIVE)
        assert one_answer(sock).startswith(b"HTTP/1.1 200")
        sock.sendall(b"GET http://[bad HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert refusal(rest(sock))[0] == 400


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_nobody_leaves_http_and_what_follows_the_attempt_is_no_request(
    impatient: Served, protocol: bytes
) -> None:
    """Where its body ends, the parser does not say: the rest could be another's answer."""
    upgrade = b"Connection: Upgrade\r\nUpgrade: %b\r\nContent-Length: 60\r\n\r\n" % protocol
    with connection(impatient) as sock:
        sock.sendall(LIVE[:-2] + upgrade)
        answer = one_answer(sock)
        with suppress(ConnectionError):
            sock.sendall(LIVE)
            answer += rest(sock)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


def test_headers_after_a_body_have_the_same_bound(impatient: Served) -> None:
    with connection(impatient) as sock:
        sock.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ")
        for _ in range(20):
            sock.sendall(b"y" * 1000)
            time.sleep(0.001)
        assert refusal(rest(sock))[0] == 431


def test_a_long_body_in_many_pieces_is_no_header(impatient: Served) -> None:
    body = b'{"prompt": "' + b"x" * 10_000 + b'"}'
    with connection(impatient) as sock:
        sock.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(body), 100):
            piece = body[start : start + 100]
            sock.sendall(b"%x\r\n" % len(piece))
            sock.sendall(piece + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        assert one_answer(sock).startswith(b"HTTP/1.1 201")


def test_who_asked_for_more_while_reading_and_has_gone_holds_no_stream(tmp_path: Path) -> None:
    silent = Behaviour(first_token_s=25.0)
    with visited(tmp_path, silent, streams_per_voter=1) as (served, ada):
        battle = ada.open()
        with connection(served) as sock:
            sock.sendall(following(ada, battle) + LIVE)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        events = f"/api/v1/battles/{battle}/events"
        for _ in range(100):
            with ada.client.stream("GET", events) as answer:
                if answer.status_code == 200:
                    return
            time.sleep(0.1)
        pytest.fail("the stream is held for nobody")


def test_a_network_of_ipv6_has_four_times_what_an_address_has() -> None:
    proxies = (ip_network("10.0.0.0/8"),)
    trust = Trust(proxies=proxies)

    def of(address: str) -> dict[str, int]:
        return shares_of(address, trust, 5)

    assert of("2001:db8:1:2::3") == {"2001:db8:1:2::/64": 5, "2001:db8:1::/48": 20}
    assert of("203.0.113.1") == of("::ffff:203.0.113.1")
    assert of("203.0.113.1") == {"203.0.113.1": 5}
    assert of("10.1.2.3") == {}


def test_an_answer_may_take_longer_than_a_request(tmp_path: Path) -> None:
    model = Behaviour(text="So it goes on. " * 3, delay_s=0.2)
    with visited(tmp_path, model, **TIMES) as (_, ada):
        battle = ada.open()
        began = time.monotonic()
        assert ada.follow(battle)[-1].event == "ready"
        assert time.monotonic() - began > 2 * SHORT_S


@contextmanager
def large_answers(**settings: object) -> Iterator[Served]:
    """Serve, as the arena is served, answers that may be more than a socket's buffers hold."""

    def answer(request: Request) -> Response:
        return Response(b"x" * int(request.query_params.get("size", LARGE)))

    app = Starlette(routes=[Route("/", answer)])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FIXED)
        server = PromptServer(configured(app, read_settings(**settings)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", "")
        server.should_exit = True
        thread.join(timeout=10)


def test_who_asks_and_does_not_read_is_let_go() -> None:
    """Else a thousand such connections would be the arena's last."""
    with large_answers(unread_timeout_s=SHORT_S) as served, connection(served) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(4 * SHORT_S)
        assert len(rest(sock)) < LARGE


def test_who_leaves_the_end_of_an_answer_unread_is_let_go_too() -> None:
    """What is left of a closed connection would stay, however little it is."""
    with large_answers(unread_timeout_s=SHORT_S) as served, connection(served) as sock:
        held = buffered(served)
        ask = f"GET /?size={held + 20_000} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        sock.sendall(f"{ask}\r\n".encode())
        time.sleep(4 * SHORT_S)
        assert len(rest(sock)) < held + 20_000


def buffered(served: Served) -> int:
    """Measure what the system holds of an answer that nobody reads."""
    with connection(served) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(4 * SHORT_S)
        return len(rest(sock))


@pytest.mark.parametrize("size", [6000, 2_000_000])
def test_headers_that_are_too_long_are_refused_in_words(impatient: Served, size: int) -> None:
    with connection(impatient) as sock:
        sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ")
        for _ in range(size // 1000):
            sock.sendall(b"y" * 1000)
        sock.sendall(b"\r\n\r\n")
        status, words = refusal(rest(sock))
    assert status == 431
    assert words.startswith("A request's headers may have 5,000 bytes.")


def test_a_new_connection_takes_the_place_of_one_that_waits(tmp_path: Path) -> None:
    with quick_arena(tmp_path, connections=3) as served, ExitStack() as stack:
        waiting = [stack.enter_context(connection(served)) for _ in range(3)]
        for sock in waiting:
            sock.sendall(b"GET /health/live HTTP/1.1\r\n")
            time.sleep(0.3)
        assert httpx2.get(f"{served.url}/health/live").json() == {"status": "live"}
        assert waiting[0].recv(1) == b""


def test_a_body_that_comes_slowly_makes_room_once_headers_would_have_to(tmp_path: Path) -> None:
    with (
        quick_arena(tmp_path, connections=2, header_timeout_s=2 * SHORT_S) as served,
        connection(served) as first,
        connection(served) as second,
    ):
        for sock in (first, second):
            sock.sendall(POST + HALF)
            time.sleep(SHORT_S / 5)
        with connection(served) as sock:
            sock.sendall(LIVE)
            assert refusal(rest(sock))[0] == 503
        time.sleep(2 * SHORT_S)
        assert httpx2.get(f"{served.url}/health/live").is_success
        assert first.recv(1) == b""
        second.sendall(b"x" * 99)
        assert one_answer(second).startswith(b"HTTP/1.1 422")


@pytest.fixture
def on_and_on(tmp_path: Path) -> Iterator[Endless]:
    """Serve battles that do not end."""
    slow = Behaviour(text="On and on. " * 500, delay_s=0.1)
    with faulty_server({"x": slow, "y": slow}) as models:
        yield partial(served_by, models, tmp_path)


@contextmanager
def streaming(served: Served, number: int, address: str = "127.0.0.1") -> Iterator[None]:
    """Follow a battle on so many connections from an address."""
    with served.visitor() as ada, ExitStack() as stack:
        asked = following(ada, ada.open())
        ada.client.close()
        for _ in range(number):
            sock = stack.enter_context(connection(served, address))
            sock.sendall(asked)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        yield


def test_who_finds_all_connections_being_answered_is_told_so_at_once(on_and_on: Endless) -> None:
    with on_and_on(connections=2) as served:
        with streaming(served, 2):
            began = time.monotonic()
            with connection(served) as sock:
                sock.sendall(LIVE)
                status, words = refusal(rest(sock))
            assert time.monotonic() - began < 5
            assert status == 503
            assert words.startswith("The arena has 2 connections and may have no more. Try again")
        deadline = time.monotonic() + 60  # until it has seen that the streams are closed
        while not httpx2.get(f"{served.url}/health/live").is_success:
            assert time.monotonic() < deadline


def test_only_the_connection_that_is_too_many_is_refused(on_and_on: Endless) -> None:
    with on_and_on(connections=3) as served, connection(served) as here, streaming(served, 2):
        here.sendall(LIVE[:20])
        with connection(served) as late:
            assert here.recv(1) == b""  # it waited, and made room
            late.sendall(POST + HALF)
            time.sleep(2 * SHORT_S)
            with connection(served) as too_many:
                time.sleep(SHORT_S)
                late.sendall(b"x" * 99)
                assert one_answer(late).startswith(b"HTTP/1.1 422")
                late.sendall(LIVE)
                assert one_answer(late).startswith(b"HTTP/1.1 200")
                too_many.sendall(LIVE)
                assert refusal(rest(too_many))[0] == 503


def test_one_address_takes_its_share_of_the_connections_and_no_more(on_and_on: Endless) -> None:
    with on_and_on(connections=10, connections_per_address=2) as served:
        with streaming(served, 2, "127.0.0.2"):
            with connection(served, "127.0.0.2") as sock:
                sock.sendall(LIVE)
                status, words = refusal(rest(sock))
            assert status == 503
            assert words.startswith("Your network has 2 connections and may have no more.")
            assert httpx2.get(f"{served.url}/health/live").is_success
        with ExitStack() as stack:
            socks = [stack.enter_context(connection(served, "127.0.0.3")) for _ in "12"]
            for sock in socks:
                sock.sendall(LIVE)
                assert one_answer(sock).startswith(b"HTTP/1.1 200")
                time.sleep(SHORT_S / 5)
            newcomer = stack.enter_context(connection(served, "127.0.0.3"))
            for sock in (newcomer, socks[1]):
                sock.sendall(LIVE)
                assert one_answer(sock).startswith(b"HTTP/1.1 200")
            assert socks[0].recv(1) == b""


def test_a_trusted_proxy_may_have_all_connections(on_and_on: Endless) -> None:
    with (
        on_and_on(connections_per_address=1, trusted_proxies="127.0.0.3") as served,
        streaming(served, 3, "127.0.0.3"),
        connection(served, "127.0.0.3") as sock,
    ):
        sock.sendall(LIVE)
        assert one_answer(sock).startswith(b"HTTP/1.1 200")
