"""The client against a real server: what is sent, what comes, and when the request is closed."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import httpx2
import pytest

from arena.domain.model import Model
from arena.domain.vote import Chunk, Completion, Finished, ReasoningDelta, TextDelta
from arena.endpoints.client import Endpoints
from judge.case import Message, TokenLogprob
from tests.arena.endpoints.asking import KEY, PROMPT, ask, logprobs, serve, visible
from tests.faulty_server import Behaviour, Fault, FaultyServer


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
    async with asyncio.timeout(60):
        while model.id not in {seen.model for seen in server.requests}:  # noqa: ASYNC110 - the server has a loop of its own
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
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


async def test_a_whole_answer_brings_its_log_probabilities(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    behaviour = Behaviour(
        text="m", reasoning="Hm.", logprobs=(("m", -0.1, {"m": -0.1, "M": -2.4}),)
    )
    model = serve(server, behaviour)
    assert await endpoints.complete(model, PROMPT, decoding=logprobs(2)) == Completion(
        text="m",
        finished=Finished("stop", 7, 11, "chatcmpl-1"),
        reasoning="Hm.",
        logprobs=(TokenLogprob("m", -0.1, {"m": -0.1, "M": -2.4}),),
    )
    sent = server.requests[-1].body
    assert (sent["stream"], sent["logprobs"], sent["top_logprobs"]) == (False, True, 2)


async def test_a_whole_answer_is_utf_8_whatever_the_header_says() -> None:
    body = '{"choices": [{"message": {"content": "Größe"}}]}'.encode()
    latin = {"content-type": "application/json; charset=iso-8859-1"}
    speaker = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=latin, content=body))
    endpoints = Endpoints({}, transports={"said://": speaker})
    model = Model(id="m", name="M", endpoint="said://here", model="m")
    assert (await endpoints.complete(model, PROMPT)).text == "Größe"


async def test_no_log_probabilities_are_asked_for_unless_wanted(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    assert (await endpoints.complete(serve(server, Behaviour()), PROMPT)).logprobs is None
    assert "logprobs" not in server.requests[-1].body


async def test_a_blank_token_with_its_log_probabilities_is_an_answer(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(text="\n", logprobs=(("\n", -0.5, {"m": -1.0}),)))
    completion = await endpoints.complete(model, PROMPT, decoding=logprobs(1))
    assert completion.logprobs == (TokenLogprob("\n", -0.5, {"m": -1.0}),)


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
