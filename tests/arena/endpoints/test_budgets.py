"""What an endpoint sends beyond all measure, from a real server: read to its budget, no more."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

import pytest

from arena.domain.model import Model
from arena.domain.vote import FailureClass, Finished
from arena.endpoints.client import Endpoints, Timeouts
from arena.endpoints.sse import Budgets, EventDecoder
from arena.endpoints.trial import Server, discover
from tests.arena.endpoints.asking import KEY, PROMPT, ask, failure, serve, visible, whole_failure
from tests.faulty_server import Behaviour, Fault, FaultyServer

SMALL = Budgets(
    response_bytes=100_000,
    numbers_bytes=300_000,
    line_bytes=5_000,
    header_bytes=4_000,
    reasoning_chars=2_000,
)


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    """A client that waits long: what ends early, a budget has ended."""
    client = Endpoints({"TEST_KEY": KEY}, timeouts=Timeouts(), budgets=SMALL)
    yield client
    await client.aclose()


ENDLESS = [
    (Fault.LINE, Behaviour(chunk_size=500), "a line or event of more than 5,000 bytes"),
    (Fault.THINKING, Behaviour(chunk_size=100), "reasoning of more than 2,000 characters"),
    (Fault.COMMENTS, Behaviour(chunk_size=100), "a response of more than 100,000 bytes"),
    (Fault.ENDLESS, Behaviour(), "a response of more than 100,000 bytes"),
    (Fault.ZIPPED, Behaviour(), "the response is compressed (gzip)"),
]


@pytest.mark.parametrize(
    ("fault", "behaviour", "expected"), ENDLESS, ids=[fault.name for fault, *_ in ENDLESS]
)
async def test_a_stream_without_end_is_refused_in_words_and_closed(
    server: FaultyServer, endpoints: Endpoints, fault: Fault, behaviour: Behaviour, expected: str
) -> None:
    model = serve(server, replace(behaviour, fault=fault))
    async with asyncio.timeout(60):
        error = await failure(endpoints, model)
    assert error.failure is FailureClass.MALFORMED
    assert expected in error.detail
    assert await server.saw_disconnect(model.id)


@pytest.mark.parametrize(
    ("fault", "expected"), [(fault, expected) for fault, _, expected in ENDLESS[-2:]]
)
async def test_a_whole_answer_without_end_is_refused_in_words_and_closed(
    server: FaultyServer, endpoints: Endpoints, fault: Fault, expected: str
) -> None:
    model = serve(server, Behaviour(fault=fault, chunk_size=1000))
    async with asyncio.timeout(60):
        error = await whole_failure(endpoints, model)
    assert error.failure is FailureClass.MALFORMED
    assert expected in error.detail
    assert await server.saw_disconnect(model.id)


async def test_a_body_that_drips_for_ever_is_a_timeout(server: FaultyServer) -> None:
    endpoints = Endpoints({"TEST_KEY": KEY}, timeouts=Timeouts(first_token_s=0.5, whole_s=0.5))
    drip = serve(server, Behaviour(fault=Fault.ENDLESS, chunk_size=1, delay_s=0.05))
    assert (await whole_failure(endpoints, drip)).failure is FailureClass.TIMEOUT
    comments = serve(server, Behaviour(fault=Fault.COMMENTS, chunk_size=1, delay_s=0.05))
    assert (await failure(endpoints, comments)).failure is FailureClass.TIMEOUT
    await endpoints.aclose()


async def test_an_error_without_end_is_refused_as_well(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(status=500, error={"message": "x" * 200_000}))
    assert "more than 100,000 bytes" in (await failure(endpoints, model)).detail


async def test_what_is_as_long_as_the_budget_is_read(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    behaviour = Behaviour(text="x" * 4_000, chunk_size=4_000, reasoning="y" * 2_000)
    model = serve(server, behaviour)
    assert visible(await ask(endpoints, model)) == "x" * 4_000
    assert (await endpoints.complete(model, PROMPT)).text == "x" * 4_000


async def test_lists_beyond_all_need_are_not_parsed(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(body={"choices": [], "x": [[]] * 20_000}))
    error = await whole_failure(endpoints, model)
    assert error.failure is FailureClass.MALFORMED
    assert "more than 5,000 lists and objects in one response" in error.detail


async def test_numbers_have_a_budget_of_their_own(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    vectors = [{"index": i, "embedding": [0.123456789] * 1000} for i in range(20)]
    model = serve(server, Behaviour(body={"data": vectors}))
    assert len(await endpoints.embed(model, ["text"] * 20)) == 20
    tokens = (("m", -0.1, {f"token {i}": -2.5 for i in range(20)}),) * 100
    model = serve(server, Behaviour(logprobs=tokens))
    wanted = {"logprobs": True, "top_logprobs": 20}
    assert (await endpoints.complete(model, PROMPT, decoding=wanted)).logprobs
    model = serve(server, Behaviour(text="x" * 400_000))
    error = await whole_failure(endpoints, model, top_logprobs=20)
    assert "more than 300,000 bytes" in error.detail


@pytest.mark.parametrize("status", [200, 500])
async def test_headers_of_a_megabyte_are_refused(
    server: FaultyServer, endpoints: Endpoints, status: int
) -> None:
    one = {"X-Padding": "x" * 1_000_000}
    error = await failure(endpoints, serve(server, Behaviour(status=status, headers=one)))
    assert error.failure is FailureClass.MALFORMED
    assert "a head that cannot be read" in error.detail
    many = {f"X-Padding-{n}": "x" * 8_000 for n in range(120)}
    error = await failure(endpoints, serve(server, Behaviour(status=status, headers=many)))
    assert error.failure is FailureClass.MALFORMED
    assert "headers of more than 4,000 bytes" in error.detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_in_words_and_never_followed(
    server: FaultyServer, endpoints: Endpoints, status: int
) -> None:
    elsewhere = serve(server, Behaviour())
    moved = Behaviour(status=status, headers={"Location": f"{server.url}/chat/completions"})
    model = serve(server, moved)
    seen = len(server.requests)
    error = await failure(endpoints, model)
    assert error.failure is FailureClass.NOT_FOUND
    assert f"status {status}, a redirect to '{elsewhere.endpoint}" in error.detail
    assert len(server.requests) == seen + 1


async def test_json_that_is_nested_too_deeply_is_malformed(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(first_event=f"data: {'[' * 4_000}\n\n"))
    error = await failure(endpoints, model)
    assert (error.failure, "nested too deeply" in error.detail) == (FailureClass.MALFORMED, True)


async def test_nothing_compressed_is_asked_for(server: FaultyServer, endpoints: Endpoints) -> None:
    await ask(endpoints, serve(server, Behaviour()))
    assert server.requests[-1].headers["accept-encoding"] == "identity"


async def test_an_answer_said_to_be_as_it_is_is_no_compressed_one(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(headers={"Content-Encoding": "identity"}))
    assert visible(await ask(endpoints, model)) == Behaviour().text


@contextmanager
def sending(head: bytes, piece: bytes) -> Iterator[str]:
    """A server that sends a head, and then a piece again and again; gives its address."""

    def answer() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            try:
                client.sendall(head)
                while True:
                    client.sendall(piece)
            except OSError:
                closed.set()

    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        assert closed.wait(60), "the request was not closed"
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (HEAD + b"\r\n", b'data: {"choices": []}\n\n' * 4000),
        (HEAD + b"\r\n", b"\n" * 90_000),
        (HEAD + b"\r\n", b"data: 1\n" * 9_000),
        (HEAD + b"\r\n", b":\r\n" * 30_000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n\n\r\n" * 15_000),
        (b"", INTERIM * 4000),
    ],
    ids=["events", "blank lines", "data lines", "comments", "chunks", "interim responses"],
)
async def test_others_have_their_turn_while_an_endpoint_floods_us(
    head: bytes, piece: bytes
) -> None:
    longest, stop = 0.0, asyncio.Event()

    async def look() -> None:
        nonlocal longest
        while not stop.is_set():
            began = time.thread_time()  # others may have the processor in the meantime
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - began)

    looking = asyncio.create_task(look())
    with sending(head, piece) as url:
        endpoints = Endpoints({}, budgets=Budgets(response_bytes=1_000_000))
        model = Model(id="m", name="m", endpoint=url, model="m")
        assert (await failure(endpoints, model)).failure is FailureClass.MALFORMED
        await endpoints.aclose()
    stop.set()
    await looking
    assert longest < 0.1


async def test_a_few_interim_responses_come_before_an_answer() -> None:
    event = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
    with sending(INTERIM * 3 + HEAD + b"\r\n" + event, b"data: [DONE]\n\n") as url:
        endpoints = Endpoints({})
        model = Model(id="m", name="m", endpoint=url, model="m")
        assert visible(await ask(endpoints, model)) == "Hi"
        await endpoints.aclose()


class Clocked(bytearray):
    """The beginning of a line whose clock ticks once for each byte that is added or read."""

    ticks = 0

    def __iadd__(self, more: bytes) -> Self:  # type: ignore[override,misc]
        self.ticks += len(more)
        return super().__iadd__(more)

    def __bytes__(self) -> bytes:
        self.ticks += len(self)
        return bytes(memoryview(self))


def test_a_line_in_ever_so_many_pieces_takes_time_that_grows_with_its_length() -> None:
    decoder = EventDecoder(most=10**9)
    decoder._begun = line = Clocked()
    for _ in range(10_000):
        assert list(decoder.read(b"x")) == []
    assert (decoder._begun is line, line.ticks) == (True, 10_000)
    decoder.read(b"\n")
    assert line.ticks == 20_002, "all of it is read once, when it ends"


async def test_a_list_of_models_without_end_or_compressed_is_none() -> None:
    body = b'{"data": [{"id": "m"}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    with sending(head + b"Content-Encoding: gzip\r\n\r\n", body) as url:
        assert await discover([Server("Odd", url)]) == ()
    with sending(head + b"\r\n", b" " * 65536) as url:
        assert await discover([Server("Odd", url)]) == ()


@pytest.mark.parametrize("tokens", [2**31, 2**63, 2**4000, -5, True])
async def test_counts_that_cannot_be_are_unknown(
    server: FaultyServer, endpoints: Endpoints, tokens: int
) -> None:
    model = serve(server, Behaviour(usage=(tokens, tokens)))
    (end,) = [c for c in await ask(endpoints, model) if isinstance(c, Finished)]
    assert (end.tokens_in, end.tokens_out) == (None, None)
    finished = (await endpoints.complete(model, PROMPT)).finished
    assert (finished.tokens_in, finished.tokens_out) == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud83d\ude00!", "😀!"),
        ("so \ud83d", "so \ufffd"),
        ("\ude00 so", "\ufffd so"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("a\x00b", "a\ufffdb"),
    ],
    ids=ascii,
)
async def test_an_emoji_cut_in_two_comes_whole_and_half_of_one_readable(
    server: FaultyServer, endpoints: Endpoints, text: str, expected: str
) -> None:
    behaviour = Behaviour(text=text, reasoning=text, chunk_size=1, escaped=True)
    model = serve(server, behaviour)
    chunks = await ask(endpoints, model)
    assert visible(chunks) == expected
    assert isinstance(chunks[-1], Finished)
    whole = await endpoints.complete(model, PROMPT)
    assert (whole.text, whole.reasoning) == (expected, expected)


async def test_ids_and_finish_reasons_are_one_short_line(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    odd = "stop\n\x1b[31m\x00\ud800" + "x" * 1000
    model = serve(server, Behaviour(finish_reason=odd, escaped=True))
    assert "stop \ufffd[31m\ufffd\ufffdx" in (await failure(endpoints, model)).detail
    model = serve(server, Behaviour(request_id=odd, escaped=True))
    for end in (
        (await ask(endpoints, model))[-1],
        (await endpoints.complete(model, PROMPT)).finished,
    ):
        assert isinstance(end, Finished)
        assert end.request_id.startswith("stop \ufffd[31m\ufffd\ufffdx")
        assert len(end.request_id) < 201
    model = serve(server, Behaviour(request_id="", headers={"X-Request-Id": "r" * 1000}))
    assert (await endpoints.complete(model, PROMPT)).finished.request_id == "r" * 200


async def test_an_error_s_text_is_one_line_without_control_characters(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(status=401, error={"message": "no\n\x1b]0;title\x07"}))
    assert (await failure(endpoints, model)).detail == "status 401, no \ufffd]0;title\ufffd"


@pytest.mark.parametrize(
    ("wait", "expected_s"),
    [
        ("1e308", 3600.0),
        ("Fri, 01 Jan 9999 00:00:00 GMT", 3600.0),
        ("Thu, 01 Jan 99999999999999999999 00:00:30 GMT", None),
    ],
)
async def test_an_absurd_wait_is_an_hour_or_none(
    server: FaultyServer, endpoints: Endpoints, wait: str, expected_s: float | None
) -> None:
    model = serve(server, Behaviour(status=429, headers={"Retry-After": wait}))
    assert (await failure(endpoints, model)).retry_after_s == expected_s
