"""Parameters that an endpoint refuses by name: excluded at once, and from then on."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.model import OPTIONAL, Model
from arena.domain.vote import FailureClass
from arena.endpoints.client import Endpoints
from arena.endpoints.failures import known_as, refused_by, refused_in, without
from arena.errors import EndpointError
from arena.judging import EndpointJudge
from judge.calls import Lessons, Terms
from judge.case import CallError, Message, Parameters, Request
from judge.case import FailureClass as JudgeFailure
from tests.arena.endpoints.asking import KEY, PROMPT, ask, failure, serve, visible
from tests.faulty_server import Behaviour, FaultyServer
from tests.provider_errors import BLAMED, REFUSALS, ProviderError

EVERYTHING: dict[str, object] = {
    **{"temperature": 0.5, "top_p": 0.9, "top_k": 3, "max_tokens": 50, "seed": 7, "stop": ["x"]},
    **{"frequency_penalty": 0.1, "response_format": {"type": "text"}, "logprobs": True, "n": 1},
    **{"store": False, "top_logprobs": 2},
}
SYSTEM = "Be brief."
Body = Mapping[str, Any]


def has(body: Body, name: str) -> bool:
    if name == "system":
        return any(turn["role"] == "system" for turn in body.get("messages", ()))
    return name in body


def refusing(error: ProviderError) -> Callable[[Body], Behaviour]:
    """Refuse every request that has the parameter, as the provider does."""
    refused = Behaviour(status=error.status, stream=error.text, body=None)
    if error.status == 200:
        refused = Behaviour(stream=f"data: {error.text}\n\n", body=json.loads(error.text))
    return lambda body: refused if has(body, error.refuses) else Behaviour(text="All is well.")


def model_of(server: FaultyServer, behaviour: Any, **more: Any) -> Model:
    model = replace(serve(server, Behaviour()), **more)
    server.behaviours[model.model] = behaviour
    return model


def bodies(server: FaultyServer, model: Model) -> list[Body]:
    return [seen.body for seen in server.requests if seen.model == model.model]


@asynccontextmanager
async def learning(
    known: Mapping[str, Mapping[str, str]] | None = None,
) -> AsyncIterator[tuple[Endpoints, list[tuple[str, str, str]]]]:
    """A client, and what it learns."""
    learnt: list[tuple[str, str, str]] = []
    client = Endpoints(
        {"TEST_KEY": KEY}, known=known or {}, keep=lambda *lesson: learnt.append(lesson)
    )
    try:
        yield client, learnt
    finally:
        await client.aclose()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "streamed"),
    [
        (name, streamed)
        for name, error in REFUSALS.items()
        for streamed in ([True] if error.refuses == "stream_options" else [True, False])
    ],
)
async def test_a_refused_parameter_is_left_out_at_once_and_from_then_on(
    server: FaultyServer, name: str, streamed: bool
) -> None:
    error = REFUSALS[name]
    extra: dict[str, object] = dict(EVERYTHING)
    if error.refuses == "max_completion_tokens":
        extra["max_completion_tokens"] = extra.pop("max_tokens")
    model = model_of(server, refusing(error), decoding=extra, system_prompt=SYSTEM)
    async with learning() as (endpoints, learnt):
        for _ in range(2):
            if streamed:
                assert visible(await ask(endpoints, model)) == "All is well."
            else:
                assert (await endpoints.complete(model, PROMPT)).text == "All is well."
        assert endpoints.refused(model) == (error.refuses,)
    sent = bodies(server, model)
    assert [has(body, error.refuses) for body in sent] == [True, False, False]
    ((endpoint, refused, sentence),) = learnt
    assert (endpoint, refused) == (known_as(model), error.refuses)
    assert error.says in sentence
    lost = {error.refuses, *(["top_logprobs"] if error.refuses == "logprobs" else [])}
    renamed = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
    if other := renamed.get(error.refuses):
        assert sent[1][other] == 50
    assert {name for name in sent[0] if name not in sent[1]} == lost - {"system"}
    if error.refuses == "system":
        assert sent[1]["messages"] == [{"role": "user", "content": f"{SYSTEM}\n\nHow are you?"}]


@pytest.mark.parametrize("error", BLAMED.values(), ids=BLAMED)
async def test_an_error_of_something_else_is_asked_about_once_and_teaches_nothing(
    server: FaultyServer, error: ProviderError
) -> None:
    refused = Behaviour(status=error.status, stream=error.text)
    model = model_of(server, refused, decoding={**EVERYTHING, "metadata": {"a": "b"}})
    async with learning() as (endpoints, learnt):
        assert (await failure(endpoints, model)).failure is error.end
        assert learnt == []
    assert len(bodies(server, model)) == 1


async def test_what_is_refused_without_the_parameter_too_was_not_about_it(
    server: FaultyServer,
) -> None:
    """An endpoint may quote a prompt: nobody who writes one chooses what is sent."""
    quoting = Behaviour(status=400, error={"message": "bad prompt: Unknown 'temperature'"})
    model = model_of(server, quoting, decoding={"temperature": 0.5})
    async with learning() as (endpoints, learnt):
        assert (await failure(endpoints, model)).failure is FailureClass.BAD_REQUEST
        server.behaviours[model.model] = Behaviour()
        await ask(endpoints, model)
        assert learnt == []
    assert [has(body, "temperature") for body in bodies(server, model)] == [True, False, True]


async def test_an_endpoint_that_refuses_one_after_another_is_asked_once_for_each(
    server: FaultyServer,
) -> None:
    names = ["stream_options", "max_tokens", "max_completion_tokens", "temperature", "system"]

    def behaviour(body: Body) -> Behaviour:
        name = next((name for name in names if has(body, name)), None)
        if name == "system":
            return Behaviour(status=400, error={"message": "System role not supported"})
        if name:
            return Behaviour(status=422, error={"message": f"Unknown parameter: '{name}'."})
        return Behaviour(text="All is well.")

    model = model_of(
        server, behaviour, decoding={"max_tokens": 5, "temperature": 0.0}, system_prompt=SYSTEM
    )
    async with learning() as (endpoints, learnt):
        assert visible(await ask(endpoints, model)) == "All is well."
        assert [name for _, name, _ in learnt] == names
        assert visible(await ask(endpoints, model)) == "All is well."
    assert len(bodies(server, model)) == len(names) + 2


async def test_an_endpoint_that_refuses_whatever_it_is_sent_is_given_up(
    server: FaultyServer,
) -> None:
    def behaviour(body: Body) -> Behaviour:
        return Behaviour(status=400, error={"message": f"Unknown parameters: {[*body]}"})

    model = model_of(server, behaviour, decoding=EVERYTHING)
    async with learning() as (endpoints, learnt):
        assert (await failure(endpoints, model)).failure is FailureClass.BAD_REQUEST
        assert learnt == []
    names = [{*body} for body in bodies(server, model)]
    assert all(
        later < earlier or "max_completion_tokens" in later for earlier, later in pairwise(names)
    )
    assert len(names) <= len(EVERYTHING) + 3


async def test_what_was_learnt_before_is_not_sent_at_all(server: FaultyServer) -> None:
    model = model_of(server, refusing(REFUSALS["openai-unknown"]))
    async with learning({known_as(model): {"stream_options": "no", "thinking": "cut"}}) as (
        endpoints,
        learnt,
    ):
        assert visible(await ask(endpoints, model)) == "All is well."
    assert learnt == []
    assert [has(body, "stream_options") for body in bodies(server, model)] == [False]


async def test_a_lesson_is_of_one_model_at_one_address(server: FaultyServer) -> None:
    model = model_of(server, refusing(REFUSALS["openai-unknown"]))
    other = model_of(server, Behaviour())
    async with learning() as (endpoints, _):
        await ask(endpoints, model)
        await ask(endpoints, other)
    assert has(bodies(server, other)[0], "stream_options")


async def test_the_key_is_in_no_lesson(server: FaultyServer) -> None:
    error = REFUSALS["openai-unknown"]
    spoken = replace(error, body={"error": {"message": f"{KEY}: Unknown 'stream_options'"}})
    model = model_of(server, refusing(spoken))
    async with learning() as (endpoints, learnt):
        await ask(endpoints, model)
    assert "[key]: Unknown" in learnt[0][2]


@pytest.mark.parametrize(
    "message",
    [
        "dimensions is currently not supported",
        "This model does not support matryoshka representation, changing output dimensions will "
        "lead to poor results.",
        "Unknown parameter: 'dimensions'.",
    ],
)
async def test_embeddings_are_asked_for_without_the_dimensions_that_are_refused(
    server: FaultyServer, message: str
) -> None:
    """As vLLM says it: https://github.com/vllm-project/vllm/issues/15465 and /pull/16331."""
    rows = {"data": [{"index": 0, "embedding": [1.0, 0.5]}]}

    def behaviour(body: Body) -> Behaviour:
        refused = Behaviour(status=400, stream=json.dumps({"object": "error", "message": message}))
        return refused if "dimensions" in body else Behaviour(body=rows)

    model = model_of(server, behaviour, decoding={"dimensions": 2})
    async with learning() as (endpoints, learnt):
        assert await endpoints.embed(model, ["x"]) == ((1.0, 0.5),)
        assert [name for _, name, _ in learnt] == ["dimensions"]


async def test_a_likelihood_is_asked_for_without_what_is_refused_but_not_without_itself(
    server: FaultyServer,
) -> None:
    echoed = {"token_logprobs": [None, -1.0, -0.5], "text_offset": [0, 1, 2]}

    def behaviour(body: Body) -> Behaviour:
        if "temperature" in body:
            return Behaviour(status=400, error={"message": "Unknown parameter: 'temperature'."})
        return Behaviour(body={"choices": [{"index": 0, "logprobs": echoed}]})

    model = model_of(server, behaviour)
    async with learning() as (endpoints, learnt):
        assert await endpoints.log_likelihood(model, "ab") == -1.0
        server.behaviours[model.model] = Behaviour(
            status=400, error={"message": "Unknown parameter: 'logprobs'."}
        )
        with pytest.raises(EndpointError, match="logprobs"):
            await endpoints.log_likelihood(model, "ab")
    assert [name for _, name, _ in learnt] == ["temperature", "logprobs"]
    assert len(bodies(server, model)) == 3


async def test_a_judge_and_a_battle_learn_by_the_same_lessons(server: FaultyServer) -> None:
    model = model_of(server, refusing(REFUSALS["vllm-system"]))
    learnt: dict[str, str] = {}
    terms = Terms(keep=learnt.__setitem__)
    asked = Request(
        (Message("system", "Judge."), Message("user", "A or B?")),
        Parameters(max_tokens=3, temperature=0.0),
    )
    async with learning() as (endpoints, of_battles):
        reply = await EndpointJudge(endpoints, model, terms)(asked)
        assert reply.text == "All is well."
    assert (of_battles, [*learnt]) == ([], ["system"])
    assert "before the first message of the user" in terms.warnings(asked.parameters)[0]
    assert bodies(server, model)[1]["messages"] == [
        {"role": "user", "content": "Judge.\n\nA or B?"}
    ]
    async with learning({known_as(model): learnt}) as (endpoints, _):
        await ask(endpoints, replace(model, system_prompt=SYSTEM))
    assert len(bodies(server, model)) == 3


async def test_a_judge_that_needs_log_probabilities_is_not_paid_for_a_reply_without(
    server: FaultyServer,
) -> None:
    model = model_of(server, refusing(REFUSALS["gemini"]))
    terms = Terms()
    asked = Request(PROMPT, Parameters(max_tokens=1, top_logprobs=5))
    async with learning() as (endpoints, _):
        with pytest.raises(CallError) as caught:
            await EndpointJudge(endpoints, model, terms)(asked)
        assert caught.value.failure is JudgeFailure.NO_LOGPROBS
        assert "Cannot find field" in caught.value.detail
        with pytest.raises(CallError):
            await EndpointJudge(endpoints, model, terms)(asked)
    assert len(bodies(server, model)) == 1


async def test_what_the_roster_says_is_never_sent(server: FaultyServer) -> None:
    model = model_of(
        server,
        Behaviour(),
        without=("stream_options", "system", "max_tokens"),
        system_prompt=SYSTEM,
        decoding={"temperature": 0.5},
    )
    async with learning() as (endpoints, learnt):
        await ask(endpoints, model)
        await EndpointJudge(endpoints, model)(Request(PROMPT, Parameters(max_tokens=3)))
    streamed, judged = bodies(server, model)
    assert streamed.keys() == {"model", "messages", "temperature", "stream"}
    assert streamed["messages"] == [{"role": "user", "content": f"{SYSTEM}\n\nHow are you?"}]
    assert (judged.get("max_tokens"), judged["max_completion_tokens"]) == (None, 3)
    assert learnt == []


@pytest.mark.parametrize(
    ("messages", "folded"),
    [
        (
            [("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V")],
            [("user", "S\n\nU"), ("assistant", "A"), ("user", "V")],
        ),
        ([("system", "S"), ("system", "T"), ("user", "U")], [("user", "S\n\nT\n\nU")]),
        ([("system", "S"), ("assistant", "A")], [("user", "S"), ("assistant", "A")]),
        (
            [("system", "S"), ("user", [{"type": "image_url"}])],
            [("user", [{"type": "text", "text": "S"}, {"type": "image_url"}])],
        ),
        ([("user", "U")], [("user", "U")]),
    ],
)
def test_the_text_of_the_system_goes_before_the_first_message_of_the_user(
    messages: Sequence[tuple[str, object]], folded: Sequence[tuple[str, object]]
) -> None:
    turns = [{"role": role, "content": content} for role, content in messages]
    left = without({"messages": turns}, ["system"])["messages"]
    assert [(turn["role"], turn["content"]) for turn in left] == list(folded)


NAMES = st.sets(st.sampled_from(sorted(OPTIONAL)))
BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.just([{"role": "system", "content": "S"}])},
    optional={name: st.integers() for name in sorted(OPTIONAL - {"system"})},
)


@given(body=BODIES, refused=NAMES)
def test_a_request_without_what_is_refused_has_nothing_of_it_and_all_else(
    body: dict[str, Any], refused: set[str]
) -> None:
    left = without(body, refused)
    assert refused_by(sorted(refused), left) is None
    assert without(left, refused) == left
    others = body.keys() - refused - {"top_logprobs", "max_tokens", "max_completion_tokens"}
    assert all(left[name] == body[name] for name in others - {"messages"})
    assert body["messages"] == [{"role": "system", "content": "S"}], "the request is not changed"


@given(message=st.text(), code=st.none() | st.text(), param=st.none() | st.text())
def test_any_sentence_names_optional_parameters_alone(
    message: str, code: str | None, param: str | None
) -> None:
    assert {*refused_in({"code": code, "param": param}, message)} <= OPTIONAL


@given(name=st.sampled_from(sorted(OPTIONAL - {"system"})), noise=st.text(alphabet="abc .,"))
def test_a_quoted_name_is_found_in_a_refusal_and_not_in_one_of_its_value(
    name: str, noise: str
) -> None:
    assert refused_in({}, f"{noise} Unsupported parameter: '{name}'. {noise}") == (name,)
    assert refused_in({}, f"Unsupported: '{name}' is too large. {noise}") == ()


def test_lessons_are_learnt_once() -> None:
    learnt: list[tuple[str, str]] = []
    lessons = Lessons({"seed": "no"}, lambda *lesson: learnt.append(lesson))
    for name in ("seed", "stop", "stop"):
        lessons.learn(name, "never")
    assert (learnt, dict(lessons)) == ([("stop", "never")], {"seed": "no", "stop": "never"})
