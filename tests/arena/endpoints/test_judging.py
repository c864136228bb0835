"""A judge over a real server: what is a reply, and what is a call that failed."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from arena.domain.model import Model
from arena.endpoints.chat import read_completion, read_embeddings
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from arena.judging import EndpointJudge, ModelEndpoint
from judge.calls import Options, Terms
from judge.case import (
    FILTERED,
    CallError,
    FailureClass,
    Message,
    Parameters,
    Reply,
    Request,
    TokenLogprob,
)
from judge.methods import method as named
from judge.runs import run
from tests.arena.endpoints.asking import KEY, serve
from tests.faulty_server import Behaviour, Fault, FaultyServer, last_message
from tests.judge.scripted import MemoryJournal, cases

ASKED = Request(
    (Message("system", "Judge."), Message("user", "A or B?")), Parameters(max_tokens=3)
)


OVERLOADED = {
    "https://platform.openai.com/docs/guides/error-codes": (
        503,
        {"message": "The engine is currently overloaded, please try again later"},
    ),
    "https://api-docs.deepseek.com/quick_start/error_codes": (503, {"message": "Overloaded"}),
    "https://docs.anthropic.com/en/api/errors": (
        529,
        {"type": "overloaded_error", "message": "Overloaded"},
    ),
    "https://openrouter.ai/docs/api-reference/errors": (
        502,
        {"code": 502, "message": "Provider returned error"},
    ),
}
"""What is asked again for half a minute (`judge.asking.PATIENCE_S`)."""


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        *((*one, FailureClass.OVERLOADED) for one in OVERLOADED.values()),
        (401, {"message": "no"}, FailureClass.DENIED),
        (404, {"message": "no such model"}, FailureClass.DENIED),
        (400, {"message": "temperature is too high"}, FailureClass.REJECTED),
        (400, {"code": "context_length_exceeded"}, FailureClass.TOO_LONG),
        (500, {"message": "sorry"}, FailureClass.OVERLOADED),
    ],
)
async def test_a_status_is_a_failure_of_the_judge_s_classes(
    server: FaultyServer,
    endpoints: Endpoints,
    status: int,
    error: dict[str, object],
    expected: FailureClass,
) -> None:
    model = serve(server, Behaviour(status=status, error=error))
    with pytest.raises(CallError) as caught:
        await EndpointJudge(endpoints, model)(ASKED)
    assert caught.value.failure is expected
    assert str(error.get("message", "")) in caught.value.detail


async def test_a_rate_limit_carries_its_wait(server: FaultyServer, endpoints: Endpoints) -> None:
    model = serve(server, Behaviour(status=429, headers={"Retry-After": "3"}))
    with pytest.raises(CallError) as caught:
        await EndpointJudge(endpoints, model)(ASKED)
    assert (caught.value.failure, caught.value.retry_after_s) == (FailureClass.RATE_LIMIT, 3.0)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(fault=Fault.ZIPPED), FailureClass.TRANSPORT),
        (Behaviour(fault=Fault.ENDLESS, chunk_size=2**16), FailureClass.TRANSPORT),
        (Behaviour(headers={"X-Padding": "x" * 1_000_000}), FailureClass.TRANSPORT),
        (Behaviour(status=302, headers={"Location": "https://x.example"}), FailureClass.DENIED),
    ],
    ids=["compressed", "without end", "headers of a megabyte", "redirect"],
)
async def test_a_judge_that_sends_what_nobody_asked_for_has_failed(
    server: FaultyServer, behaviour: Behaviour, expected: FailureClass
) -> None:
    endpoints = Endpoints({"TEST_KEY": KEY})  # it waits five minutes: what ends is a budget
    async with asyncio.timeout(60):
        with pytest.raises(CallError) as caught:
            await EndpointJudge(endpoints, serve(server, behaviour))(ASKED)
    assert caught.value.failure is expected
    await endpoints.aclose()


async def test_a_server_that_says_nothing_is_a_transport_failure(
    server: FaultyServer, impatient: Endpoints
) -> None:
    with pytest.raises(CallError) as caught:
        await EndpointJudge(impatient, serve(server, Behaviour(silent=True)))(ASKED)
    assert caught.value.failure is FailureClass.TRANSPORT


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (
            Behaviour(text="half", finish_reason=FILTERED),
            Reply(text="half", finish_reason=FILTERED, tokens_in=7, tokens_out=11),
        ),
        (
            Behaviour(text="", finish_reason="length", usage=None),
            Reply(text="", finish_reason="length"),
        ),
        (
            Behaviour(status=400, error={"code": "content_filter"}),
            Reply(text="", finish_reason=FILTERED),
        ),
    ],
)
async def test_a_refusal_and_a_blank_answer_are_replies(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: Reply
) -> None:
    assert await EndpointJudge(endpoints, serve(server, behaviour))(ASKED) == expected


async def test_parameters_are_sent_and_log_probabilities_come_back(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    logprobs = (("m", -0.25, {"m": -0.25, "M": -1.5}),)
    model = serve(server, Behaviour(text="m", logprobs=logprobs))
    sent = Parameters(max_tokens=1, temperature=0.0, top_logprobs=2, json_object=True)
    reply = await EndpointJudge(endpoints, model)(Request(ASKED.messages, sent))
    assert reply.logprobs == (TokenLogprob("m", -0.25, {"m": -0.25, "M": -1.5}),)
    body = server.requests[-1].body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    expected = {"max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": 2}
    assert {name: body[name] for name in expected} == expected
    assert body["response_format"] == {"type": "json_object"}
    await EndpointJudge(endpoints, model)(ASKED)
    assert not {"temperature", "logprobs", "response_format"} & server.requests[-1].body.keys()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"model": "owl-2026-05-13", "system_fingerprint": "fp_1"}, ("owl-2026-05-13", "fp_1")),
        ({"model": 7, "system_fingerprint": None}, ("", "")),
        ({"model": "owl\n\x1b[31m"}, ("owl \ufffd[31m", "")),
    ],
)
def test_an_endpoint_says_what_answered(
    names: dict[str, object], expected: tuple[str, str]
) -> None:
    completion = read_completion(json.dumps({"choices": [{"message": {"content": "m"}}], **names}))
    assert (completion.model, completion.fingerprint) == expected


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"completion_tokens": 100}, (100, None)),
        ({"completion_tokens": 100, "thought": 80}, (100, 80)),
        ({"completion_tokens": 100, "thought": 80, "total_tokens": 110}, (100, 80)),
        ({"completion_tokens": 100, "thought": 80, "total_tokens": 190}, (180, 80)),
        ({"completion_tokens": 20, "thought": 80}, (100, 80)),
    ],
)
def test_tokens_of_thoughts_are_counted_once_whether_or_not_they_are_among_the_others(
    usage: dict[str, int], tokens: tuple[int, int | None]
) -> None:
    thought = {"completion_tokens_details": {"reasoning_tokens": usage.get("thought")}}
    counted = {"prompt_tokens": 10, **usage, **thought}
    body = {"choices": [{"message": {"content": "m"}}], "usage": counted}
    end = read_completion(json.dumps(body)).finished
    assert (end.tokens_in, end.tokens_out, end.tokens_thinking) == (10, *tokens)


async def test_an_alternative_of_probability_zero_is_left_out() -> None:
    """Some servers write what is no JSON, and a reply is kept as JSON: absence says the same."""
    token = {"token": "m", "logprob": 0.0, "top_logprobs": [{"token": "M", "logprob": -math.inf}]}
    choice = {"message": {"content": "m"}, "logprobs": {"content": [token]}}
    body = json.dumps({"choices": [choice]})
    assert "-Infinity" in body
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=body))
    endpoints = Endpoints({}, transports={"odd://": transport})
    model = Model(id="odd", name="Odd", endpoint="odd://here/v1", model="odd")
    reply = await EndpointJudge(endpoints, model)(ASKED)
    assert reply.logprobs == (TokenLogprob("m", 0.0, {}),)
    await endpoints.aclose()


def row(index: int, *vector: object) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": list(vector)}


async def test_vectors_come_in_the_order_of_the_texts(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(body={"data": [row(1, 0.5, 2), row(0, 1, 0.25)]}))
    vectors = await EndpointJudge(endpoints, model).embed(["first", "sécond\ud800"])
    assert vectors == ((1.0, 0.25), (0.5, 2.0))
    sent = server.requests[-1]
    assert sent.body == {"model": model.model, "input": ["first", "sécond\ud800"]}
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(status=401, error={"message": KEY}), FailureClass.DENIED),
        (Behaviour(status=429), FailureClass.RATE_LIMIT),
        (Behaviour(status=400, error={"code": "content_filter"}), FailureClass.REJECTED),
        (Behaviour(), FailureClass.TRANSPORT),
    ],
)
async def test_what_is_no_embedding_is_a_failed_call_without_the_key(
    server: FaultyServer, endpoints: Endpoints, behaviour: Behaviour, expected: FailureClass
) -> None:
    with pytest.raises(CallError) as caught:
        await EndpointJudge(endpoints, serve(server, behaviour)).embed(["one"])
    assert caught.value.failure is expected
    assert KEY not in str(caught.value)


async def test_a_silent_server_of_embeddings_is_a_transport_failure(
    server: FaultyServer, impatient: Endpoints
) -> None:
    with pytest.raises(CallError) as caught:
        await EndpointJudge(impatient, serve(server, Behaviour(silent=True))).embed(["one"])
    assert caught.value.failure is FailureClass.TRANSPORT


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        '[{"index": 0, "embedding": [1]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["x"]}]',
        '[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [NaN]}]',
        '"text"',
    ],
)
def test_a_text_without_its_vector_is_no_reply(data: str) -> None:
    with pytest.raises(EndpointError, match="2 texts, and not one vector of numbers for each"):
        read_embeddings(f'{{"data": {data}}}', 2)


async def test_requests_that_hang_cost_as_long_as_a_slow_reply_and_no_minutes(
    server: FaultyServer,
) -> None:
    """One in twenty hangs; the time-out is what it would be, except the twenty seconds."""
    asked = Counter[str]()

    def one_in_twenty(body: Mapping[str, Any]) -> Behaviour:
        prompt = last_message(body)
        asked[prompt] += 1
        return Behaviour(text="[[A]]", silent=asked[prompt] == 1 and len(asked) % 20 == 0)

    server.behaviours["hangs"] = one_in_twenty
    model = Model(id="hangs", name="Hangs", endpoint=server.url, model="hangs")
    terms = Terms(least_s=0.3)
    options = Options(judge="hangs", seed="a secret", concurrency=32, terms=terms)
    began = time.monotonic()
    async with ModelEndpoint(model).opened(terms) as judge:
        outcome = await run(cases(100), named("pairwise"), judge, MemoryJournal(), options)
    assert outcome.by_status == {"read": 200}
    assert outcome.faults == {FailureClass.TRANSPORT: 10}
    assert time.monotonic() - began < 20
