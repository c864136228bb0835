"""Trials of models, and the model servers that run on this machine.

`try_all` sends a tiny request to each model: does it answer, and what does its endpoint say if
not. `discover` lists what the model servers on this machine offer.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import httpx2

from arena.domain.model import Model
from arena.domain.room_view import Trial
from arena.domain.vote import FailureClass
from arena.endpoints.client import Connections, Endpoints, url_of
from arena.endpoints.sse import DEFAULT_BUDGETS, check_headers, read_whole
from arena.errors import EndpointError
from judge.case import Message

# Trials

PROMPT = "Say hello in one word."
WHOLE_S = 60.0
"""Longest that anybody waits for all models."""
NO_ANSWER = f"no whole answer within {WHOLE_S:g} s"


async def try_all(
    endpoints: Endpoints, models: Iterable[Model], recorded: Mapping[str, Sequence[str]]
) -> Mapping[str, Trial]:
    """Ask all models at once; gives what became of it by id. It may cost money.

    Parameters
    ----------
    recorded : mapping
        Prompts of those that answer from recordings.
    """
    asked = list(models)
    prompts = [next(iter(recorded.get(model.id, ())), PROMPT) for model in asked]
    trials = await asyncio.gather(
        *(_try(endpoints, model, prompt) for model, prompt in zip(asked, prompts, strict=True))
    )
    return {model.id: trial for model, trial in zip(asked, trials, strict=True)}


async def _try(endpoints: Endpoints, model: Model, prompt: str) -> Trial:
    began = time.monotonic()
    first_s = None
    try:
        async with asyncio.timeout(WHOLE_S):
            async with aclosing(endpoints.stream(model, [Message("user", prompt)])) as answer:
                async for _chunk in answer:
                    first_s = first_s or time.monotonic() - began
    except TimeoutError:
        return Trial(None, failure=FailureClass.TIMEOUT, sentence=NO_ANSWER)
    except EndpointError as error:
        return Trial(None, failure=error.failure, sentence=error.detail)
    return Trial(time.monotonic() - began, first_s, without=endpoints.refused(model))


# Servers

TIMEOUT_S = 3.0
CONNECT_S = 0.5

NO_CHAT = re.compile(
    "embed|rerank|whisper|tts|audio|realtime|transcribe|dall-e|image|sora|moderation"
    "|babbage|davinci|instruct-0914",
    re.IGNORECASE,
)
"""Names of models that are listed beside the others, but answer no chat."""

UNUSUAL = re.compile(r"[^\w.:/@+ ()-]")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that speaks OpenAI's format.

    Attributes
    ----------
    url : str
        Base URL, with ``/v1``.
    key_env : str or None
        Name of the environment variable with its key; None sends no key.
    """

    name: str
    url: str
    key_env: str | None = None
    key: str | None = field(default=None, repr=False)


LOCAL = (
    Server("Ollama", "http://127.0.0.1:11434/v1"),
    Server("llama.cpp", "http://127.0.0.1:8080/v1"),
    Server("vLLM", "http://127.0.0.1:8000/v1"),
    Server("LM Studio", "http://127.0.0.1:1234/v1"),
)

PROVIDERS = {
    "openai": Server("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Server("Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "openrouter": Server("OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Server("Ollama", "http://127.0.0.1:11434/v1"),
}
"""By what stands before the first slash of a model's name, where no roster has it."""


async def discover(servers: Sequence[Server]) -> tuple[Model, ...]:
    """Ask servers for their models, all at once; one that does not list any has none."""
    timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_S)
    network = Connections(CONNECT_S)
    async with httpx2.AsyncClient(timeout=timeout, transport=network) as client:
        by_server = await asyncio.gather(*(_models_of(client, server) for server in servers))
    return tuple(model for models in by_server for model in models)


async def _models_of(client: httpx2.AsyncClient, server: Server) -> list[Model]:
    key = {"Authorization": f"Bearer {server.key}"} if server.key else {}
    headers = {"Accept-Encoding": "identity", **key}
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            client.stream("GET", url_of(server.url, "/models"), headers=headers) as answer,
        ):
            check_headers(answer.raise_for_status(), DEFAULT_BUDGETS.header_bytes)
            text = await read_whole(answer, DEFAULT_BUDGETS.response_bytes)
        names = _names(json.loads(text))
    except (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        EndpointError,
        ValueError,
        RecursionError,
        TimeoutError,
    ):
        return []
    return [entry_of(server, name) for name in names if not NO_CHAT.search(name)]


def _names(body: object) -> list[str]:
    """Read the names of a list of models, each once; anything else holds none."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        return []
    names = [entry.get("id") for entry in data if isinstance(entry, dict)]
    return sorted({name for name in names if isinstance(name, str) and name.strip()})


def entry_of(server: Server, name: str, id: str = "") -> Model:
    """Make the entry of a model of a server, under an id of its own if one is given."""
    return Model(
        id=UNUSUAL.sub("-", id or f"{server.name}/{name}"),
        name=f"{name} ({server.name})",
        endpoint=server.url,
        model=name,
        organisation=server.name,
        api_key_env=server.key_env,
    )
