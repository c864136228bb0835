"""The client against a real server that fails in every way we know."""

import asyncio
import socket
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from arena.domain.answer import (
    Chunk,
    Completion,
    FailureClass,
    Finished,
    Message,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
)
from arena.domain.model import Model
from arena.endpoints.client import Endpoints, Timeouts
from arena.errors import EndpointError, SettingsError
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server

KEY = "sk-sentinel-4711"
PROMPT = (Message("user", "How are you?"),)
IMPATIENT = Timeouts(first_token_s=0.5, idle_s=0.3, whole_s=0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with faulty_server({}) as running:
        yield running


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    client = Endpoints({"TEST_KEY": KEY}, timeouts=IMPATIENT)
    yield client
    await client.aclose()


def serve(server: FaultyServer, behaviour: Behaviour) -> Model:
    """Let the server behave so under a fresh model name, and give that model."""
    name = f"model-{len(server.behaviours)}"
    server.behaviours[name] = behaviour
    return Model(id=name, name=name, endpoint=server.url, model=name, api_key_env="TEST_KEY")


async def ask(endpoints: Endpoints, model: Model) -> list[Chunk]:
    return [chunk async for chunk in endpoints.stream(model, PROMPT)]


def visible(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


async def failure(endpoints: Endpoints, model: Model) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        await ask(endpoints, model)
    return caught.value


async def test_an_answer_comes_in_pieces_and_ends_once(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(text="All is well.", chunk_size=5))
    assert await ask(endpoints, model) == [
        TextDelta("All i"),
        TextDelta("s wel"),
        TextDelta("l."),
        Finished("stop", tokens_in=7, tokens_out=11, request_id="chatcmpl-1"),
    ]


async def test_the_request_carries_decoding_system_prompt_and_key(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    plain = serve(server, Behaviour())
    model = replace(plain, system_prompt="Be brief.", decoding={"temperature": 0.5, "top_k": 3})
    await ask(endpoints, model)
    request = server.requests[-1]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": model.model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How are you?"},
        ],
        "temperature": 0.5,
        "top_k": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_model_without_a_key_sends_none(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    await ask(endpoints, replace(serve(server, Behaviour()), api_key_env=None))
    assert "authorization" not in server.requests[-1].headers


async def test_the_header_names_the_request_when_the_body_does_not(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(request_id="", headers={"x-request-id": "req-9"}))
    assert (await ask(endpoints, model))[-1] == Finished("stop", 7, 11, "req-9")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_kept_apart_from_text(
    server: FaultyServer, endpoints: Endpoints, field: str
) -> None:
    behaviour = Behaviour(reasoning="Hm.", reasoning_field=field, text="Yes.")
    chunks = await ask(endpoints, serve(server, behaviour))
    assert chunks[:2] == [ReasoningDelta("Hm."), TextDelta("Yes.")]


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(finish_reason="length"), Finished("length", 7, 11, "chatcmpl-1")),
        (Behaviour(usage=None), Finished("stop", None, None, "chatcmpl-1")),
        (Behaviour(done=False), Finished("stop", 7, 11, "chatcmpl-1")),
        (Behaviour(finish_reason=None), Finished("", 7, 11, "chatcmpl-1")),
        (Behaviour(first_event=": keep-alive\n\n"), Finished("stop", 7, 11, "chatcmpl-1")),
        (Behaviour(first_event="\ufeff"), Finished("stop", 7, 11, "chatcmpl-1")),
    ],
)
async def test_every_regular_end_is_one_finished(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: Finished
) -> None:
    chunks = await ask(endpoints, serve(server, behaviour))
    assert visible(chunks) == behaviour.text
    assert chunks[-1] == expected


@pytest.mark.parametrize("write_bytes", [1, 2, 3, 7])
async def test_characters_split_across_writes_come_out_whole(
    server: FaultyServer, endpoints: Endpoints, write_bytes: int
) -> None:
    text = "Größe 漢字 👩‍👩‍👧 𝔘\u2028naïve\r\n"
    model = serve(server, Behaviour(text=text, chunk_size=2, write_bytes=write_bytes))
    assert visible(await ask(endpoints, model)) == text


BLAMED = "This model's maximum context length is 4096 tokens."


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (401, {"message": "no"}, FailureClass.AUTH),
        (402, {"message": "no credit"}, FailureClass.AUTH),
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
    with pytest.raises(EndpointError) as caught:
        await endpoints.complete(model, PROMPT)
    assert caught.value.failure is expected


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
    server: FaultyServer,
    endpoints: Endpoints,
    headers: dict[str, str],
    expected_s: float | None,
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
        (Behaviour(headers={"content-type": "text/html"}), FailureClass.MALFORMED),
        (Behaviour(fault=Fault.IDLE, fault_after=9), FailureClass.TIMEOUT),
        (Behaviour(first_token_s=9), FailureClass.TIMEOUT),
        (Behaviour(silent=True), FailureClass.TIMEOUT),
        (Behaviour(text=""), FailureClass.EMPTY),
        (Behaviour(text=" \n"), FailureClass.EMPTY),
        (Behaviour(text="", reasoning="Hm.", finish_reason="length"), FailureClass.EMPTY),
        (Behaviour(finish_reason="content_filter"), FailureClass.CONTENT_FILTER),
    ],
    ids=lambda value: str(value) if isinstance(value, FailureClass) else "",
)
async def test_a_stream_that_goes_wrong_is_a_typed_failure(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: FailureClass
) -> None:
    assert (await failure(endpoints, serve(server, behaviour))).failure is expected


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
    server: FaultyServer,
    endpoints: Endpoints,
    error: dict[str, object],
    expected: FailureClass,
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
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(first_event=": still here\n\n", first_token_s=9))
    assert (await failure(endpoints, model)).failure is FailureClass.TIMEOUT


async def test_a_slow_answer_that_keeps_coming_is_no_timeout(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(text="slow" * 8, chunk_size=4, delay_s=0.05))
    assert visible(await ask(endpoints, model)) == "slow" * 8


async def test_a_slow_reader_is_no_timeout(server: FaultyServer, endpoints: Endpoints) -> None:
    model = serve(server, Behaviour(text="ab", chunk_size=1))
    chunks: list[Chunk] = []
    async for chunk in endpoints.stream(model, PROMPT):
        await asyncio.sleep(0.35)
        chunks.append(chunk)
    assert visible(chunks) == "ab"


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


async def test_closing_the_stream_closes_the_request(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(fault=Fault.ENDLESS, delay_s=0.01))
    async with aclosing(endpoints.stream(model, PROMPT)) as stream:
        assert isinstance(await anext(stream), TextDelta)
    assert await server.saw_disconnect(model.id)


async def test_cancelling_the_reader_closes_the_request(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(fault=Fault.ENDLESS, delay_s=0.01))
    task = asyncio.create_task(ask(endpoints, model))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await server.saw_disconnect(model.id)


async def test_a_timeout_closes_the_request(server: FaultyServer, endpoints: Endpoints) -> None:
    model = serve(server, Behaviour(fault=Fault.IDLE))
    await failure(endpoints, model)
    assert await server.saw_disconnect(model.id)


async def test_an_answer_read_to_its_end_leaves_the_connection_for_the_next(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour())
    await ask(endpoints, model)
    await ask(endpoints, model)
    assert model.id not in server.disconnects
    first, second = (seen.port for seen in server.requests[-2:])
    assert first == second


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
    told = "".join(traceback.format_exception(error)) + repr(error) + error.detail
    assert KEY[:8] not in told


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


async def test_a_whole_answer_brings_its_log_probabilities(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    behaviour = Behaviour(
        text="m", reasoning="Hm.", logprobs=(("m", -0.1, {"m": -0.1, "M": -2.4}),)
    )
    model = serve(server, behaviour)
    assert await endpoints.complete(model, PROMPT, top_logprobs=2) == Completion(
        text="m",
        finished=Finished("stop", 7, 11, "chatcmpl-1"),
        reasoning="Hm.",
        logprobs=(TokenLogprob("m", -0.1, {"m": -0.1, "M": -2.4}),),
    )
    sent = server.requests[-1].body
    assert (sent["stream"], sent["logprobs"], sent["top_logprobs"]) == (False, True, 2)


async def test_no_log_probabilities_are_asked_for_unless_wanted(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour())
    assert (await endpoints.complete(model, PROMPT)).logprobs is None
    assert "logprobs" not in server.requests[-1].body


async def test_a_blank_token_with_its_log_probabilities_is_an_answer(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(text="\n", logprobs=(("\n", -0.5, {"m": -1.0}),)))
    completion = await endpoints.complete(model, PROMPT, top_logprobs=1)
    assert completion.logprobs == (TokenLogprob("\n", -0.5, {"m": -1.0}),)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(text=""), FailureClass.EMPTY),
        (Behaviour(finish_reason="content_filter"), FailureClass.CONTENT_FILTER),
        (Behaviour(silent=True), FailureClass.TIMEOUT),
    ],
)
async def test_a_whole_answer_fails_by_the_same_classes(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: FailureClass
) -> None:
    with pytest.raises(EndpointError) as caught:
        await endpoints.complete(serve(server, behaviour), PROMPT)
    assert caught.value.failure is expected


async def test_a_lone_surrogate_in_a_prompt_does_not_break_the_request(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour())
    await endpoints.complete(model, (Message("user", "half \ud83d"),))
    assert server.requests[-1].body["messages"][0]["content"] == "half \ud83d"


async def test_many_answers_stream_at_once(server: FaultyServer) -> None:
    endpoints = Endpoints({"TEST_KEY": KEY})
    model = serve(server, Behaviour(delay_s=0.01))
    answers = await asyncio.gather(*(ask(endpoints, model) for _ in range(50)))
    await endpoints.aclose()
    assert {visible(chunks) for chunks in answers} == {Behaviour().text}
