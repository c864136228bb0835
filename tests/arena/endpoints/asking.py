"""Questions to a server that behaves as a test wants it."""

import pytest

from arena.domain.model import Model
from arena.domain.vote import Chunk, ReasoningDelta, TextDelta
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge.case import Message
from tests.faulty_server import Behaviour, FaultyServer

KEY = "sk-sentinel-4711"
PROMPT = (Message("user", "How are you?"),)


def serve(server: FaultyServer, behaviour: Behaviour) -> Model:
    """Let the server behave so under a fresh model name, and give that model."""
    name = f"model-{len(server.behaviours)}"
    server.behaviours[name] = behaviour
    return Model(id=name, name=name, endpoint=server.url, model=name, api_key_env="TEST_KEY")


def logprobs(top: int | None) -> dict[str, object]:
    """Give the decoding that asks for log-probabilities."""
    return {} if top is None else {"logprobs": True, "top_logprobs": top}


async def ask(endpoints: Endpoints, model: Model) -> list[Chunk]:
    return [chunk async for chunk in endpoints.stream(model, PROMPT)]


def visible(chunks: list[Chunk]) -> str:
    """Give the answer, without what turned out to be reasoning."""
    retracted = [
        n for n, one in enumerate(chunks) if isinstance(one, ReasoningDelta) and one.retracts
    ]
    rest = chunks[max(retracted, default=-1) + 1 :]
    return "".join(chunk.text for chunk in rest if isinstance(chunk, TextDelta))


def reasoning(chunks: list[Chunk]) -> str:
    """Give the reasoning, with what was taken for the answer at first."""
    text = answer = ""
    for chunk in chunks:
        match chunk:
            case TextDelta(piece):
                answer += piece
            case ReasoningDelta(piece, retracts):
                text += (answer if retracts else "") + piece
                answer = "" if retracts else answer
    return text


async def whole_failure(
    endpoints: Endpoints, model: Model, top_logprobs: int | None = None
) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        await endpoints.complete(model, PROMPT, decoding=logprobs(top_logprobs))
    return caught.value


async def failure(endpoints: Endpoints, model: Model) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        await ask(endpoints, model)
    return caught.value
