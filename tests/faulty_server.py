"""A real HTTP server that speaks OpenAI's chat format and fails in it as it is told."""

import asyncio
import itertools
import json
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

JSON = "application/json"
ZIPPED = {"Content-Encoding": "gzip"}


class Fault(Enum):
    """What goes wrong once ``fault_after`` characters of the text are out."""

    NONE = auto()
    DROP = auto()  # close the socket
    CUT = auto()  # end the response in good order, but without the end of the answer
    MALFORMED = auto()  # send an event that is no JSON
    ERROR = auto()  # send the error object
    IDLE = auto()  # fall silent
    ENDLESS = auto()  # begin again
    LINE = auto()  # write a line without end
    THINKING = auto()  # reason without end
    COMMENTS = auto()  # keep the connection open without end
    ZIPPED = auto()  # send gzip of zeros, a kilobyte for each megabyte, without end


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How the server answers one model name.

    Attributes
    ----------
    chunk_size : int
        Characters of an event.
    delay_s, first_token_s : float
        Before each event; before the first, on top.
    silent : bool
        Send nothing at all, not even the status.
    status : int
        Anything but 200 answers with the error object and no stream.
    key : str
        Who brings another one is answered so with the status 401; empty asks for none.
    error : mapping
        The inside of ``{"error": ...}``.
    write_bytes : int or None
        Size of each write to the network; None writes an event at a time.
    body : mapping or None
        The answer to a request that is not streamed, in place of a completion.
    first_event : str
        Sent as it stands before everything else, such as a comment that keeps alive.
    escaped : bool
        Write what is outside ASCII as JSON's escapes, halves of surrogate pairs too.
    stream : str or None
        The body of a streamed answer, or of one with another status, as it stands, in place of
        all of these.
    """

    text: str = "All is well. Thank you for asking."
    chunk_size: int = 8
    delay_s: float = 0.0
    first_token_s: float = 0.0
    silent: bool = False
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    finish_reason: str | None = "stop"
    usage: tuple[int, int] | None = (7, 11)
    done: bool = True
    request_id: str = "chatcmpl-1"
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    key: str = ""
    error: Mapping[str, object] = field(default_factory=dict)
    fault: Fault = Fault.NONE
    fault_after: int = 0
    write_bytes: int | None = None
    first_event: str = ""
    logprobs: tuple[tuple[str, float, Mapping[str, float]], ...] | None = None
    body: Mapping[str, object] | None = None
    escaped: bool = False
    stream: str | None = None


Chosen = Callable[[Mapping[str, Any]], Behaviour]
"""Chooses how to answer a request by its body."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the server saw it.

    Attributes
    ----------
    port : int
        The client's, which tells connections apart.
    target : str
        Path and query.
    """

    model: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    port: int
    target: str = ""


@dataclass(slots=True)
class FaultyServer:
    """The running server; behaviours may be added while it runs.

    Attributes
    ----------
    url : str
        Base URL for `Model.endpoint`, with ``/v1``.
    requests : list of Seen
        In order of arrival.
    model_lists : list of str
        URLs under which the models were asked for.
    disconnects : list of str
        Model names whose streams the client left before their end.
    answered : Counter
        Whole answers that were given, by the last message of the request.
    under_way : int
        Requests whose answer is still to be given.
    flowing : Event
        While it is cleared, no stream goes beyond its third write.
    """

    url: str
    behaviours: dict[str, Behaviour | Chosen]
    requests: list[Seen] = field(default_factory=list)
    model_lists: list[str] = field(default_factory=list)
    disconnects: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    flowing: threading.Event = field(default_factory=threading.Event)

    async def saw_disconnect(self, model: str, within_s: float = 60.0) -> bool:
        """Whether the client leaves a stream of this model in time."""
        deadline = time.monotonic() + within_s
        while model not in self.disconnects and time.monotonic() < deadline:  # noqa: ASYNC110 - two loops
            await asyncio.sleep(0.01)
        return model in self.disconnects

    async def chat(self, request: Request) -> Response:
        """Answer a request as the behaviour of its model says."""
        body = await request.json()
        name = body["model"]
        port = request.client.port if request.client else 0
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.requests.append(Seen(name, dict(request.headers), body, port, target))
        behaviour = self.behaviours.get(name)
        if callable(behaviour):
            behaviour = behaviour(body)
        if behaviour is None:
            return JSONResponse({"error": {"message": f"no model {name}"}}, 404)
        if behaviour.key and request.headers.get("authorization") != f"Bearer {behaviour.key}":
            behaviour = replace(behaviour, status=401)
        if behaviour.silent:
            await self._until_left(request, name)
        if behaviour.status != 200 and behaviour.stream is not None:
            return Response(behaviour.stream, behaviour.status, dict(behaviour.headers))
        if behaviour.status != 200:
            error = {"error": dict(behaviour.error)}
            return JSONResponse(error, behaviour.status, dict(behaviour.headers))
        if behaviour.fault is Fault.ZIPPED:
            zipped = self._watched(name, _zipped())
            kind = "text/event-stream" if body.get("stream") else JSON
            return StreamingResponse(zipped, headers=ZIPPED, media_type=kind)
        if not body.get("stream"):
            return await self._at_once(name, behaviour, body)
        stream = self._watched(name, _writes(behaviour))
        return StreamingResponse(
            stream, headers=dict(behaviour.headers), media_type="text/event-stream"
        )

    async def models(self, request: Request) -> Response:
        """List the model names."""
        self.model_lists.append(str(request.url))
        return JSONResponse({"object": "list", "data": [{"id": m} for m in self.behaviours]})

    async def _at_once(self, name: str, behaviour: Behaviour, body: Mapping[str, Any]) -> Response:
        """Give a whole answer, or break off in the middle of it, or never end it."""
        self.under_way += 1
        await asyncio.sleep(behaviour.first_token_s)
        self.under_way -= 1
        whole = _whole(behaviour) if behaviour.body is None else behaviour.body
        data, headers = json.dumps(whole).encode(), dict(behaviour.headers)
        if behaviour.fault is Fault.DROP:
            headers["Content-Length"] = str(len(data))
            return StreamingResponse(_half(data), headers=headers, media_type=JSON)
        if behaviour.fault is Fault.CUT:
            return Response(data[: len(data) // 2], headers=headers, media_type=JSON)
        if behaviour.fault is Fault.ENDLESS:
            spaces = self._watched(name, _spaces(behaviour.chunk_size, behaviour.delay_s))
            return StreamingResponse(spaces, headers=headers, media_type=JSON)
        if "messages" in body:
            self.answered[last_message(body)] += 1
        return Response(data, headers=headers, media_type=JSON)

    async def _until_left(self, request: Request, name: str) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.disconnects.append(name)

    async def _watched(self, name: str, writes: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            for written in itertools.count():
                while written > 2 and not self.flowing.is_set():  # noqa: ASYNC110 - two loops
                    await asyncio.sleep(0.01)
                yield await anext(writes)
        except StopAsyncIteration:
            pass
        except asyncio.CancelledError:
            self.disconnects.append(name)
            raise


@contextmanager
def faulty_server(behaviours: Mapping[str, Behaviour | Chosen]) -> Iterator[FaultyServer]:
    """Run a server on a free port of this machine, in a thread of its own.

    Examples
    --------
    >>> with faulty_server({"quick": Behaviour(text="Done.")}) as server:
    ...     list(server.behaviours)
    ['quick']
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        faulty = FaultyServer(url, dict(behaviours))
        faulty.flowing.set()
        routes = [
            Route("/{base:path}/chat/completions", faulty.chat, methods=["POST"]),
            Route("/{base:path}/embeddings", faulty.chat, methods=["POST"]),
            Route("/{base:path}/completions", faulty.chat, methods=["POST"]),
            Route("/{base:path}/models", faulty.models),
        ]
        app = Starlette(routes=routes)
        server = PromptServer(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield faulty
        finally:
            server.should_exit = server.force_exit = True  # an endless answer has to end too
            thread.join(timeout=5)


class PromptServer(uvicorn.Server):
    """A server that looks ten times as often whether it should end."""

    async def main_loop(self) -> None:
        ticks = itertools.count()
        while not await self.on_tick(next(ticks)):  # noqa: ASYNC110 - as the original does
            await asyncio.sleep(0.01)


class DroppedError(Exception):
    """Raised in the middle of a response, it makes the server close the socket."""


async def _writes(behaviour: Behaviour) -> AsyncIterator[bytes]:
    if behaviour.stream is not None:
        whole, size = behaviour.stream.encode(), behaviour.write_bytes or len(behaviour.stream)
        for begin in range(0, len(whole), max(size, 1)):
            yield whole[begin : begin + size]
            await asyncio.sleep(0)
        return
    pending = b""
    async for event in _events(behaviour):
        pending += event.encode()
        size = behaviour.write_bytes or len(pending)
        while len(pending) >= size > 0:
            yield pending[:size]
            pending = pending[size:]
            await asyncio.sleep(0)
    yield pending


async def _events(behaviour: Behaviour) -> AsyncIterator[str]:
    yield behaviour.first_event
    await asyncio.sleep(behaviour.first_token_s)
    for delta in _deltas(behaviour):
        await asyncio.sleep(behaviour.delay_s)
        yield _event(behaviour, choices=[{"index": 0, "delta": delta, "finish_reason": None}])
    async for event in _fault(behaviour):
        yield event
    if behaviour.fault is Fault.CUT:
        return
    end = {"index": 0, "delta": {}, "finish_reason": behaviour.finish_reason}
    yield _event(behaviour, choices=[end])
    if behaviour.usage:
        yield _event(behaviour, choices=[], usage=_usage(behaviour))
    if behaviour.done:
        yield "data: [DONE]\n\n"


def _deltas(behaviour: Behaviour) -> Iterator[dict[str, str]]:
    yield {"role": "assistant", "content": ""}
    for piece in _cut(behaviour.reasoning, behaviour.chunk_size):
        yield {behaviour.reasoning_field: piece}
    healthy = behaviour.fault is Fault.NONE
    text = behaviour.text if healthy else behaviour.text[: behaviour.fault_after]
    for piece in _cut(text, behaviour.chunk_size):
        yield {"content": piece}


async def _fault(behaviour: Behaviour) -> AsyncIterator[str]:
    match behaviour.fault:
        case Fault.DROP:
            raise DroppedError
        case Fault.MALFORMED:
            yield 'data: {"choices": [\n\n'
        case Fault.ERROR:
            yield f"data: {json.dumps({'error': dict(behaviour.error)})}\n\n"
        case Fault.IDLE:
            await asyncio.sleep(3600)
        case Fault.ENDLESS:
            while True:
                for piece in _cut(behaviour.text, behaviour.chunk_size):
                    await asyncio.sleep(behaviour.delay_s)
                    yield _event(behaviour, choices=[{"index": 0, "delta": {"content": piece}}])

        case Fault.LINE:
            yield "data: "
            while True:
                await asyncio.sleep(behaviour.delay_s)
                yield "x" * behaviour.chunk_size
        case Fault.THINKING:
            while True:
                await asyncio.sleep(behaviour.delay_s)
                thought = {behaviour.reasoning_field: "?" * behaviour.chunk_size}
                yield _event(behaviour, choices=[{"index": 0, "delta": thought}])
        case Fault.COMMENTS:
            while True:
                await asyncio.sleep(behaviour.delay_s)
                yield ": still here\n\n" * behaviour.chunk_size


async def _spaces(size: int, delay_s: float) -> AsyncIterator[bytes]:
    while True:
        await asyncio.sleep(delay_s)
        yield b" " * size


async def _zipped() -> AsyncIterator[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    while True:
        await asyncio.sleep(0)
        yield again * 64


def last_message(body: Mapping[str, Any]) -> str:
    """Last message of a request."""
    return str(body["messages"][-1]["content"])


async def _half(data: bytes) -> AsyncIterator[bytes]:
    yield data[: len(data) // 2]
    raise DroppedError


def _whole(behaviour: Behaviour) -> dict[str, object]:
    message = {"role": "assistant", "content": behaviour.text}
    if behaviour.reasoning:
        message[behaviour.reasoning_field] = behaviour.reasoning
    choice: dict[str, object] = {"index": 0, "message": message}
    choice["finish_reason"] = behaviour.finish_reason
    if behaviour.logprobs is not None:
        choice["logprobs"] = {"content": [_token(*token) for token in behaviour.logprobs]}
    usage = _usage(behaviour) if behaviour.usage else None
    return {"id": behaviour.request_id, "choices": [choice], "usage": usage}


def _token(token: str, logprob: float, top: Mapping[str, float]) -> dict[str, object]:
    alternatives = [{"token": t, "logprob": value} for t, value in top.items()]
    return {"token": token, "logprob": logprob, "top_logprobs": alternatives}


def _event(behaviour: Behaviour, **fields: object) -> str:
    chunk = {"id": behaviour.request_id, "object": "chat.completion.chunk", **fields}
    return f"data: {json.dumps(chunk, ensure_ascii=behaviour.escaped)}\n\n"


def _usage(behaviour: Behaviour) -> dict[str, int]:
    tokens_in, tokens_out = behaviour.usage or (0, 0)
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}


def _cut(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
