"""Server-sent events of a response: how long to wait for each, and how much may come."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import httpx2

from arena.domain.vote import FailureClass
from arena.errors import EndpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The most that one response may hold.

    Attributes
    ----------
    response_bytes : int
        Of an answer, streamed or whole, and of an error.
    numbers_bytes : int
        Of embeddings, and of an answer with log-probabilities.
    line_bytes : int
        Of one line, or one event, of a stream.
    header_bytes : int
        Of all headers together.
    reasoning_chars : int
        Of the reasoning in a streamed answer.
    """

    response_bytes: int = 4_194_304
    numbers_bytes: int = 67_108_864
    line_bytes: int = 262_144
    header_bytes: int = 65_536
    reasoning_chars: int = 200_000


HEADER_BYTES = "header_bytes"
"""Extension of a response that states how long all of its headers were."""

BYTES_A_VALUE = 20
"""A list or object in an answer takes more: the alternatives to a token, say."""

DEFAULT_BUDGETS = Budgets()


def check_headers(response: httpx2.Response, most: int) -> None:
    """Raise `EndpointError` if the headers are over budget, or the body is compressed."""
    size = response.extensions.get(HEADER_BYTES)
    if size is None:
        size = sum(len(name) + len(value) for name, value in response.headers.raw)
    if size > most:
        raise over(f"headers of more than {most:,} bytes")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise EndpointError(
            FailureClass.MALFORMED,
            f"the response is compressed ({encoding}), though it was asked for as it is",
        )


def _pieces_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Give the body as it comes, without the layers for bodies that are compressed."""
    assert isinstance(response.stream, httpx2.AsyncByteStream), "responses are read on the loop"
    return aiter(response.stream)


async def read_whole(response: httpx2.Response, most: int) -> str:
    """Read a body to its end, as UTF-8 whatever the header says.

    Raises
    ------
    EndpointError
        If it has more bytes than ``most``.
    """
    body = bytearray()
    async for piece in _pieces_of(response):
        body += piece
        if len(body) > most:
            raise over(f"a response of more than {most:,} bytes")
    return body.decode(errors="replace")


async def read_json(response: httpx2.Response, most: int) -> str:
    """Read a body that is to be JSON; raises also if it has lists and objects beyond all need.

    To parse 4 MB of empty lists takes half a second, in which nothing else is done.
    """
    text = await read_whole(response, most)
    if text.count("[") + text.count("{") > (values := most // BYTES_A_VALUE):
        raise over(f"more than {values:,} lists and objects in one response")
    return text


def over(sent: str) -> EndpointError:
    """Describe what an endpoint sent too much of."""
    return EndpointError(FailureClass.MALFORMED, f"the endpoint sent {sent}; the rest is not read")


T = TypeVar("T")
DONE = "[DONE]"
STREAM = (b"data:", b"event:", b"id:", b"retry:", b":")
"""Beginnings of an event stream, by which it is known under another media type."""
QUOTED = 200
"""Characters of a body that is no event stream, in the error that refuses it."""
_CLOSING_S = 0.2  # what a server gets to end its response after [DONE], so that we may reuse it

_AT_ONCE = 1024
"""Bytes of events that are read before others have their turn: milliseconds, if each is tiny."""


class Events:
    """The events of a response, up to and with ``[DONE]`` or to its end.

    Comments, which servers send to keep a connection open, are no events: they do not
    count against silence. Whatever the media type, the first bytes decide: an event stream is read
    as such; one JSON object, or one on each line, is read once it is there as a whole.

    Parameters
    ----------
    turn : asyncio.Lock
        Shared by all responses: of all that came in floods, one reads on at a time.
    """

    def __init__(self, response: httpx2.Response, budgets: Budgets, turn: asyncio.Lock) -> None:
        self._kind = response.headers.get("content-type", "")
        self._is_recognised = False
        self._pieces = _pieces_of(response)
        self._decoder = EventDecoder(budgets.line_bytes)
        self._most = self._left = budgets.response_bytes
        self._turn = turn
        self._piece, self._read = b"", 0
        self._done = False

    async def next(self) -> list[str]:
        """Give the data of the next events, some at a time; nothing at the end.

        Raises
        ------
        EndpointError
            If the response is over budget, or is neither an event stream nor JSON.
        """
        if not self._is_recognised and (objects := await self._recognise()):
            return objects
        while not self._done:
            if self._read >= len(self._piece):
                if not await self._receive():
                    break
            else:
                async with self._turn:
                    await asyncio.sleep(0)
            part = self._piece[self._read : self._read + _AT_ONCE]
            self._read += _AT_ONCE
            if data := self._decoder.read(part):
                self._done = DONE in data
                return data[: data.index(DONE) + 1] if self._done else data
        if self._done:
            try:
                async with asyncio.timeout(_CLOSING_S):
                    while await self._receive():
                        pass
            except (TimeoutError, httpx2.HTTPError, EndpointError):
                pass  # the answer is whole; only the connection is lost
            return []
        self._done = True
        return self._decoder.end()

    async def _recognise(self) -> list[str]:
        """Find out what comes; gives all of it if it is JSON, nothing if it is a stream."""
        self._is_recognised, begun = True, b""
        while len(begun.lstrip()) < len(BOM) + max(map(len, STREAM)) and await self._receive():
            begun += self._piece
        start = begun.lstrip().removeprefix(BOM)
        is_called_one = "text/event-stream" in self._kind.lower()
        if start.startswith(STREAM) or (is_called_one and not start.startswith((b"{", b"<"))):
            self._piece, self._read = begun, 0
            return []
        while start.startswith(b"{") and await self._receive():
            begun += self._piece
        self._done = True
        text = begun.decode(errors="replace")
        objects = _objects(text) if start.startswith(b"{") else []
        if not objects:
            detail = f"{self._kind!r} in place of an event stream: {text.strip()[:QUOTED]!r}"
            raise EndpointError(FailureClass.MALFORMED, detail)
        return objects

    async def _receive(self) -> bool:
        """Wait for the next piece; tell whether there was one."""
        if self._left < 0:
            raise over(f"a response of more than {self._most:,} bytes")
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            return False
        self._piece, self._read = piece[: self._left], 0
        self._left -= len(piece)
        return True


def _objects(text: str) -> list[str]:
    r"""Give the JSON objects in a text, one in all or one on each line; nothing if it has others.

    Examples
    --------
    >>> _objects('{"a": 1}\n{"b": 2}\n'), _objects("{sorry}")
    (['{"a": 1}', '{"b": 2}'], [])
    """
    for parts in ([text], text.splitlines()):
        try:
            objects = [part for part in parts if part.strip() and json.loads(part) is not None]
        except ValueError:
            continue
        return objects
    return []


BOM = b"\xef\xbb\xbf"


class EventDecoder:
    """Reads events from the pieces of a stream, in time that grows with their bytes alone.

    What a server sends as an error, in an event of this name or a line ``error:``, becomes an
    object with the field ``error``, whatever it holds.

    Parameters
    ----------
    most : int
        Bytes of a line, and of the lines of an event together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first = True
        self._is_error = False

    def read(self, piece: bytes) -> list[str]:
        """Give the data of the events that end in a piece; those without data are excluded.

        Raises
        ------
        EndpointError
            If a line, or the data of an event, is over budget.
        """
        if self._is_one_event(piece):
            return [_done_or(piece[6:-2].decode(errors="replace"))]
        ended = []
        for line in self._lines(piece):
            if self._is_first:
                line, self._is_first = line.removeprefix(BOM), False
            if line.startswith(b"data"):
                field, _, value = line.partition(b":")
                if field == b"data":
                    self._size += len(line)
                    self._check(0)
                    self._data.append(value.removeprefix(b" "))
            elif line.startswith(b"event"):
                self._is_error = line.partition(b":")[2].strip() == b"error"
            elif line.startswith(b"error:"):
                ended.append(_error(line[6:].decode(errors="replace")))
            elif not line:
                if data := b"\n".join(self._data).decode(errors="replace"):
                    ended.append(_error(data) if self._is_error else _done_or(data))
                self._data, self._size, self._is_error = [], 0, False
        return ended

    def end(self) -> list[str]:
        """Give the last event of a stream whose blank line never came, if it is there whole.

        The standard drops it, but servers send it; half an event is no JSON object.
        """
        rest = self.read(b"\n\n") if self._begun or self._data else []
        return [data for data in rest if data == DONE or _objects(data)]

    def _is_one_event(self, piece: bytes) -> bool:
        """Tell whether a piece is one whole event of one line: nearly all are."""
        return (
            piece.startswith(b"data: ")
            and 8 < piece.find(b"\n") + 2 == len(piece) <= self._most
            and piece.endswith(b"\n\n")
            and b"\r" not in piece
            and not (self._begun or self._data or self._after_return or self._is_error)
        )

    def _lines(self, piece: bytes) -> list[bytes]:
        """Split off the lines that end in a piece; what is left over begins the next."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        self._begun += piece
        rest = len(piece) - 1 - max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        if rest == len(piece):
            self._check(len(self._begun))
            return []
        self._after_return = piece.endswith(b"\r")
        lines = bytes(self._begun).splitlines()
        self._begun = bytearray(lines.pop() if rest else b"")
        return lines

    def _check(self, begun: int) -> None:
        if self._size + begun > self._most:
            raise over(f"a line or event of more than {self._most:,} bytes")


def _done_or(data: str) -> str:
    """Give the data of an event; some servers write the last one with spaces or in quotes."""
    is_done = len(data) < 2 * len(DONE) and data.strip().strip('"').upper() == DONE
    return DONE if is_done else data


def _error(data: str) -> str:
    """Write what a server sent as an error as an object with the field ``error``."""
    try:
        error = json.loads(data)
    except ValueError:
        error = data
    inside = error.get("error", error) if isinstance(error, dict) else error
    return json.dumps({"error": inside or "an error without words"})


LOOKS_S = 2.0
"""Time between two looks at a limit that changes."""


class Patience:
    """How long to wait: for the first token as a whole, then between any two events.

    One timer serves all waits. It looks whether the time is up only when it goes off, for to
    set one at each event takes a third as long as to read it.

    Parameters
    ----------
    first_token_s : float, or callable
        Counted from the making of this object, connecting included. One that can be called is
        asked again every `LOOKS_S`, for it may learn meanwhile how long others took.
    idle_s : float
        Counted from the beginning of each wait, so a slow reader loses nothing.
    """

    def __init__(self, first_token_s: float | Callable[[], float], idle_s: float) -> None:
        self._first_token_s = first_token_s
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._until = self._began + self._first_s()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._waiting: asyncio.Task[object] | None = None
        self._is_up = False
        self.has_token = False

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Await something; raise `EndpointError` (timeout) when it takes too long."""
        task = asyncio.current_task()
        assert task is not None, "the arena awaits in tasks"
        cancelled = task.cancelling()
        self._waiting, self._is_up = task, False
        self._set_timer()
        try:
            return await awaited
        except asyncio.CancelledError:
            if self._is_up and task.uncancel() <= cancelled:
                raise EndpointError(FailureClass.TIMEOUT, self._complaint()) from None
            raise
        finally:
            self._waiting = None

    def _set_timer(self) -> None:
        """Let the timer go off when the time is up, or before that: it sets itself again."""
        if self.has_token:
            self._until = self._loop.time() + self._idle_s
        if self._timer is not None and self._due > self._until:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._look_at(self._next_look())

    def _first_s(self) -> float:
        return self._first_token_s() if callable(self._first_token_s) else self._first_token_s

    def _next_look(self) -> float:
        asks = callable(self._first_token_s) and not self.has_token
        return min(self._until, self._loop.time() + LOOKS_S) if asks else self._until

    def _look_at(self, due: float) -> None:
        """Set the timer; uvloop's handle of a moment that has passed does not say when."""
        self._timer, self._due = self._loop.call_at(due, self._look), due

    def _look(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        if not self.has_token:
            self._until = self._began + self._first_s()
        if self._loop.time() < self._until:
            self._look_at(self._next_look())
        else:
            self._is_up = True
            self._waiting.cancel()

    def _complaint(self) -> str:
        if self.has_token:
            return f"silent for {self._idle_s:g} s in the middle of its answer"
        return f"no answer within {self._until - self._began:.3g} s"
