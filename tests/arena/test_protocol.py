"""What a connection may cost: real sockets against a real arena."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from arena.server import configured
from arena.settings import read_settings
from tests.faulty_server import Behaviour, PromptServer, faulty_server
from tests.serving import Served, quick_arena, served_by

SHORT_S = 0.5
LARGE = 30_000_000
POST = b"POST /api/v1/battles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("impatient")
    times = {"header_timeout_s": SHORT_S, "body_timeout_s": 2 * SHORT_S}
    with quick_arena(folder, max_header_bytes=5000, **times) as served:
        yield served


@contextmanager
def connection(served: Served) -> Iterator[socket.socket]:
    url = httpx.URL(served.url)
    with closing(socket.create_connection((url.host, url.port or 80), timeout=10)) as sock:
        yield sock


def rest(sock: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    pieces = []
    while piece := sock.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


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
    with connection(impatient) as sock:
        began = time.monotonic()
        sock.sendall(sent)
        answer = rest(sock)
        assert SHORT_S * 0.8 < time.monotonic() - began < SHORT_S + 2
    if b"GET" in sent:
        assert refusal(answer) == (408, "The request was not whole after 0.5 s. Send it again.")
    else:
        assert answer == b""


def test_headers_that_drip_are_let_go_too(impatient: Served) -> None:
    with connection(impatient) as sock:
        began = time.monotonic()
        sock.sendall(b"GET / HTTP/1.1\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - began < SHORT_S + 2:
                sock.sendall(b"X: y\r\n")
                time.sleep(SHORT_S / 10)
        assert time.monotonic() - began < SHORT_S + 2


def test_a_blank_line_between_requests_keeps_no_connection_for_ever(impatient: Served) -> None:
    with connection(impatient) as sock:
        sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        sock.sendall(b"\r\n")
        assert rest(sock) == b""


def test_a_body_that_comes_too_slowly_is_refused(impatient: Served) -> None:
    with connection(impatient) as sock:
        sock.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        began = time.monotonic()
        assert refusal(rest(sock)) == (
            408,
            "The request was not whole after 1 s. Send it again.",
        )
        assert time.monotonic() - began < 2 * SHORT_S + 2


def test_an_answer_may_take_longer_than_a_request(tmp_path: Path) -> None:
    model = Behaviour(text="So it goes on. " * 3, delay_s=0.2)
    times = {"header_timeout_s": SHORT_S, "body_timeout_s": SHORT_S}
    with (
        faulty_server({"x": model, "y": model}) as models,
        served_by(models, tmp_path, **times) as served,
        served.visitor() as ada,
    ):
        battle = ada.open()
        began = time.monotonic()
        assert ada.follow(battle)[-1].event == "ready"
        assert time.monotonic() - began > 2 * SHORT_S


@contextmanager
def large_answers(**settings: object) -> Iterator[Served]:
    """Serve, as the arena is served, an answer that no socket's buffers hold."""
    app = Starlette(routes=[Route("/", lambda _request: Response(b"x" * LARGE))])
    with socket.create_server(("127.0.0.1", 0)) as listener:
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


@pytest.mark.parametrize("size", [6000, 2_000_000])
def test_headers_that_are_too_long_are_refused_in_words(impatient: Served, size: int) -> None:
    with connection(impatient) as sock:
        sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ")
        try:
            for _ in range(size // 1000):
                sock.sendall(b"y" * 1000)
            sock.sendall(b"\r\n\r\n")
            status, words = refusal(rest(sock))
        except ConnectionError:
            assert size > 1_000_000  # it was closed while more came
        else:
            assert status == 431
            assert words.startswith("A request's headers may have 5,000 bytes.")


def test_a_new_connection_takes_the_place_of_one_that_waits(tmp_path: Path) -> None:
    with quick_arena(tmp_path, connections=3) as served, ExitStack() as stack:
        waiting = [stack.enter_context(connection(served)) for _ in range(3)]
        for sock in waiting:
            sock.sendall(b"GET /health/live HTTP/1.1\r\n")
            time.sleep(0.1)
        assert httpx.get(f"{served.url}/health/live").json() == {"status": "live"}
        assert waiting[0].recv(1) == b""


def test_who_finds_all_connections_being_answered_is_told_so_at_once(tmp_path: Path) -> None:
    slow = Behaviour(text="On and on. " * 500, delay_s=0.1)
    with (
        faulty_server({"x": slow, "y": slow}) as models,
        served_by(models, tmp_path, connections=2) as served,
        served.visitor() as ada,
    ):
        events = f"/api/v1/battles/{ada.open()}/events"
        with ada.client.stream("GET", events), ada.client.stream("GET", events):
            began = time.monotonic()
            with connection(served) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                status, words = refusal(rest(sock))
            assert time.monotonic() - began < 1
            assert status == 503
            assert words.startswith("The arena has 2 connections and takes no more. Try again")
        assert httpx.get(f"{served.url}/health/live").is_success
