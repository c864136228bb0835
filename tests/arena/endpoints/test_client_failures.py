"""The client against a real server that fails in every way we know: each is a typed failure."""

import socket
import traceback

import pytest

from arena.domain.model import Model
from arena.domain.vote import Chunk, FailureClass, TextDelta
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError, SettingsError
from tests.arena.endpoints.asking import KEY, PROMPT, failure, serve, whole_failure
from tests.faulty_server import Behaviour, Fault, FaultyServer

BLAMED = "This model's maximum context length is 4096 tokens."


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (401, {"message": "no"}, FailureClass.AUTH),
        (402, {"message": "no"}, FailureClass.NO_CREDIT),
        (403, {"message": "no"}, FailureClass.AUTH),
        (404, {"message": "no such model"}, FailureClass.NOT_FOUND),
        (400, {"code": "context_length_exceeded"}, FailureClass.CONTEXT_LENGTH),
        (400, {"message": BLAMED, "code": 400}, FailureClass.CONTEXT_LENGTH),
        (400, {"code": "content_filter"}, FailureClass.CONTENT_FILTER),
        (400, {"message": "against our content policy"}, FailureClass.CONTENT_FILTER),
        (400, {"message": "temperature is too high"}, FailureClass.BAD_REQUEST),
        (422, {"message": "what is this"}, FailureClass.BAD_REQUEST),
        (429, {"message": "slow down"}, FailureClass.RATE_LIMIT),
        (500, {"message": "sorry"}, FailureClass.OVERLOADED),
        (503, {}, FailureClass.OVERLOADED),
        (529, {"type": "overloaded_error"}, FailureClass.OVERLOADED),
    ],
)
async def test_a_status_is_a_typed_failure_streamed_or_not(
    server: FaultyServer,
    endpoints: Endpoints,
    status: int,
    error: dict[str, object],
    expected: FailureClass,
) -> None:
    model = serve(server, Behaviour(status=status, error=error))
    assert (await failure(endpoints, model)).failure is expected
    assert (await whole_failure(endpoints, model)).failure is expected


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(
    server: FaultyServer, endpoints: Endpoints, headers: dict[str, str], expected_s: float | None
) -> None:
    error = await failure(endpoints, serve(server, Behaviour(status=429, headers=headers)))
    assert error.retry_after_s == expected_s


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(fault=Fault.DROP, fault_after=9), FailureClass.DROPPED),
        (Behaviour(fault=Fault.CUT, fault_after=9), FailureClass.DROPPED),
        (Behaviour(fault=Fault.MALFORMED, fault_after=9), FailureClass.MALFORMED),
        (Behaviour(first_event="data: [1]\n\n"), FailureClass.MALFORMED),
        (Behaviour(first_event='data: {"choices": 1}\n\n'), FailureClass.MALFORMED),
        (Behaviour(first_event='data: {"choices": [1]}\n\n'), FailureClass.MALFORMED),
        (
            Behaviour(headers={"content-type": "text/html"}, first_event="<!DOCTYPE html>\n"),
            FailureClass.MALFORMED,
        ),
        (Behaviour(fault=Fault.IDLE, fault_after=9), FailureClass.TIMEOUT),
        (Behaviour(first_token_s=9), FailureClass.TIMEOUT),
        (Behaviour(silent=True), FailureClass.TIMEOUT),
        (Behaviour(text=""), FailureClass.EMPTY),
        (Behaviour(text=" \n"), FailureClass.EMPTY),
        (Behaviour(text="\x01\u200b\u202e"), FailureClass.EMPTY),
        (Behaviour(text="", reasoning="Hm.", finish_reason="length"), FailureClass.EMPTY),
        (Behaviour(finish_reason="content_filter"), FailureClass.CONTENT_FILTER),
    ],
    ids=lambda value: str(value) if isinstance(value, FailureClass) else "",
)
async def test_a_stream_that_goes_wrong_is_a_typed_failure(
    server: FaultyServer,
    endpoints: Endpoints,
    impatient: Endpoints,
    behaviour: Behaviour,
    expected: FailureClass,
) -> None:
    client = impatient if expected is FailureClass.TIMEOUT else endpoints
    assert (await failure(client, serve(server, behaviour))).failure is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "gone", "code": 502}, FailureClass.OVERLOADED),
        ({"message": "slow down", "code": 429}, FailureClass.RATE_LIMIT),
        ({"message": "gone", "type": "rate_limit_error"}, FailureClass.RATE_LIMIT),
        ({"message": "filtered", "code": "content_filter"}, FailureClass.CONTENT_FILTER),
        ({"message": "gone"}, FailureClass.OVERLOADED),
    ],
)
async def test_an_error_inside_the_stream_is_read_like_a_status(
    server: FaultyServer, endpoints: Endpoints, error: dict[str, object], expected: FailureClass
) -> None:
    model = serve(server, Behaviour(fault=Fault.ERROR, fault_after=9, error=error))
    assert (await failure(endpoints, model)).failure is expected


async def test_text_before_a_failure_was_yielded(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(text="All is well.", fault=Fault.DROP, fault_after=6))
    chunks: list[Chunk] = []

    async def listen() -> None:
        async for chunk in endpoints.stream(model, PROMPT):
            chunks.append(chunk)

    with pytest.raises(EndpointError):
        await listen()
    assert chunks == [TextDelta("All is")]


async def test_comments_do_not_count_against_silence(
    server: FaultyServer, impatient: Endpoints
) -> None:
    model = serve(server, Behaviour(first_event=": still here\n\n", first_token_s=9))
    assert (await failure(impatient, model)).failure is FailureClass.TIMEOUT


async def test_nobody_listening_is_unreachable(endpoints: Endpoints) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = Model(id="m", name="m", endpoint=f"http://127.0.0.1:{port}/v1", model="m")
    assert (await failure(endpoints, model)).failure is FailureClass.UNREACHABLE


@pytest.mark.parametrize("endpoint", ["", "ftp://host/v1", "http://[::1", "http://host:port/v1"])
async def test_an_endpoint_that_is_no_address_is_unreachable(
    endpoints: Endpoints, endpoint: str
) -> None:
    model = Model(id="m", name="m", endpoint=endpoint, model="m")
    assert (await failure(endpoints, model)).failure is FailureClass.UNREACHABLE


async def test_a_timeout_closes_the_request(server: FaultyServer, impatient: Endpoints) -> None:
    model = serve(server, Behaviour(fault=Fault.IDLE))
    await failure(impatient, model)
    assert await server.saw_disconnect(model.id)


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(status=401, error={"message": f"Incorrect API key provided: {KEY}"}),
        Behaviour(status=401, error={"message": "x" * 490 + KEY}),
        Behaviour(fault=Fault.ERROR, error={"message": f"{KEY} is out of credit"}),
        Behaviour(first_event=f"data: {KEY}\n\n"),
        Behaviour(first_event=f"data: {'x' * 488}{KEY}\n\n"),
    ],
)
async def test_the_key_is_in_no_text_of_an_error(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour
) -> None:
    error = await failure(endpoints, serve(server, behaviour))
    text = "".join(traceback.format_exception(error)) + repr(error) + error.detail
    assert KEY[:8] not in text


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY}\r\nX: y", f"{KEY}é"])
def test_a_key_that_cannot_be_sent_is_refused_at_once_and_unquoted(key: str) -> None:
    with pytest.raises(SettingsError, match="TEST_KEY") as caught:
        Endpoints({"TEST_KEY": key})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("keys", [{}, {"TEST_KEY": ""}])
async def test_a_missing_key_is_named_and_nothing_is_sent(
    server: FaultyServer, keys: dict[str, str]
) -> None:
    model = serve(server, Behaviour())
    endpoints = Endpoints(keys)
    error = await failure(endpoints, model)
    await endpoints.aclose()
    assert (error.failure, error.detail) == (FailureClass.AUTH, "TEST_KEY is not set")
    assert model.id not in [seen.model for seen in server.requests]


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(text=""), FailureClass.EMPTY),
        (Behaviour(finish_reason="content_filter"), FailureClass.CONTENT_FILTER),
        (Behaviour(silent=True), FailureClass.TIMEOUT),
    ],
)
async def test_a_whole_answer_fails_by_the_same_classes(
    server: FaultyServer,
    endpoints: Endpoints,
    impatient: Endpoints,
    behaviour: Behaviour,
    expected: FailureClass,
) -> None:
    client = impatient if expected is FailureClass.TIMEOUT else endpoints
    assert (await whole_failure(client, serve(server, behaviour))).failure is expected
