"""Events read from a response, however the network cuts it, and how long each is waited for."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise

import httpx2
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.vote import FailureClass, TextDelta
from arena.endpoints.chat import StreamedReply
from arena.endpoints.sse import DONE, Budgets, Events, Patience, check_headers, read_whole
from arena.errors import EndpointError
from rating.tables.files import storable


def response(chunks: list[bytes]) -> httpx2.Response:
    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())


async def events(answer: httpx2.Response) -> list[str]:
    reading, read = Events(answer, Budgets(), asyncio.Lock()), []
    while batch := await reading.next():
        read += batch
    return read


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(
    pieces=st.lists(
        st.text(st.characters(exclude_characters="<[◁"), min_size=1), min_size=1, max_size=6
    ),
    places=st.lists(st.integers(min_value=0), max_size=12),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
)
async def test_text_survives_every_cut(pieces: list[str], places: list[int], newline: str) -> None:
    lines = [
        "data: " + json.dumps({"choices": [{"delta": {"content": piece}}]}, ensure_ascii=False)
        for piece in [*pieces, "."]
    ]
    body = "".join(f"{line}{newline}{newline}" for line in [*lines, f"data: {DONE}"])
    reply, text = StreamedReply(1000), ""
    for data in await events(response(cut(body.encode("utf-8", "surrogatepass"), places))):
        text += "".join(d.text for d in reply.read(data) if isinstance(d, TextDelta))
    text += "".join(d.text for d in reply.end() if isinstance(d, TextDelta))
    assert text == storable("".join(pieces)) + "."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("data: a\n\n: comment\n\ndata: b\n\n", ["a", "b"]),
        ("data:a\n\n", ["a"]),
        ("event: delta\nid: 1\nretry: 5\ndata: a\n\n", ["a"]),
        ("data: a\ndata: b\n\n", ["a\nb"]),
        (f"data: {DONE}\n\ndata: after\n\n", [DONE]),
        ('data: whole\n\ndata: {"half": ', ["whole"]),
        ('data: whole\n\ndata: {"last": 1}', ["whole", '{"last": 1}']),
        ('data: whole\n\ndata: {"last": 1}\r', ["whole", '{"last": 1}']),
        (f"data: whole\n\ndata: {DONE}\n", ["whole", DONE]),
        ("id: 1\n\n", []),
        ("", []),
    ],
)
async def test_events_are_read_as_the_format_says(body: str, expected: list[str]) -> None:
    assert await events(response([body.encode()])) == expected


async def test_the_format_is_utf_8_whatever_the_header_says() -> None:
    answer = response(["data: Größe\n\n".encode()])
    answer.headers["content-type"] = "text/event-stream; charset=iso-8859-1"
    assert await events(answer) == ["Größe"]


async def test_silence_is_waited_for_as_long_as_between_events_once_there_is_a_token() -> None:
    patience = Patience(first_token_s=3600.0, idle_s=0.01)
    await patience.wait(asyncio.sleep(0))
    patience.has_token = True
    async with asyncio.timeout(60):
        with pytest.raises(EndpointError, match=r"silent for 0\.01 s") as caught:
            await patience.wait(asyncio.Event().wait())
    assert caught.value.failure is FailureClass.TIMEOUT


async def test_time_that_is_up_while_nobody_waits_is_not_held_against_the_next_wait() -> None:
    patience = Patience(first_token_s=0.01, idle_s=3600.0)
    await patience.wait(asyncio.sleep(0))
    patience.has_token = True
    await asyncio.sleep(0.03)
    assert await patience.wait(asyncio.sleep(0.03, "here")) == "here"


def test_a_wait_that_begins_too_late_is_a_timeout_on_the_loop_that_serves_too() -> None:
    async def at_once() -> None:
        """Come without a turn of the loop."""

    async def late() -> None:
        patience = Patience(first_token_s=0.0, idle_s=1.0)
        await patience.wait(at_once())
        with pytest.raises(EndpointError, match="no answer within 0 s"):
            await patience.wait(asyncio.sleep(60))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(late())


async def test_to_be_cancelled_while_waiting_is_no_timeout() -> None:
    patience = Patience(first_token_s=3600.0, idle_s=3600.0)
    waiting = asyncio.create_task(patience.wait(asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_response_at_its_budget_is_read_and_one_byte_more_is_refused() -> None:
    async def event(size: int) -> list[str]:
        line = b"data: " + b"x" * (size - 6)
        reading = Events(response([line + b"\n\n"]), Budgets(line_bytes=20), asyncio.Lock())
        return list(await reading.next())

    assert await event(20) == ["x" * 14]
    with pytest.raises(EndpointError, match="line or event of more than 20 bytes"):
        await event(21)
    assert await read_whole(response([b"x" * 12, b"x" * 8]), 20) == "x" * 20
    with pytest.raises(EndpointError, match="response of more than 20 bytes"):
        await read_whole(response([b"x" * 12, b"x" * 9]), 20)
    headers = httpx2.Response(200, headers={"name": "value"})
    check_headers(headers, len("name") + len("value"))
    with pytest.raises(EndpointError, match="headers of more than 8 bytes"):
        check_headers(headers, len("name") + len("value") - 1)
