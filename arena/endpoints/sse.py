"""Server-sent events of a response, and how long to wait for each."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from typing import TypeVar

import httpx
import httpx_sse

from arena.domain.answer import FailureClass
from arena.errors import EndpointError

T = TypeVar("T")
DONE = "[DONE]"
_CLOSING_S = 0.2  # what a server gets to end its response after [DONE], so that we may reuse it


async def read_events(response: httpx.Response, patience: "Patience") -> AsyncGenerator[str]:
    """Yield the data of each event, up to and with ``[DONE]`` or to the response's end.

    Comments, which servers send to keep a connection open, are no events: they do not
    count against silence.
    """
    response.encoding = "utf-8"  # whatever the header says: the format knows no other
    async with aclosing(httpx_sse.EventSource(response).aiter_sse()) as events:
        while True:
            event = await patience.wait(anext(events, None))
            if event is None:
                return
            if event.data:
                yield event.data
            if event.data == DONE:
                break
        await _drain(events)


async def _drain(events: AsyncIterator[httpx_sse.ServerSentEvent]) -> None:
    try:
        async with asyncio.timeout(_CLOSING_S):
            await anext(events, None)
    except (TimeoutError, httpx.HTTPError):
        pass  # the answer is whole; only the connection is lost


class Patience:
    """How long to wait: for the first token as a whole, then between any two events.

    One timer serves all waits. It looks whether the time is up only when it goes off, for to
    set one at each event takes a third as long as to read it.

    Parameters
    ----------
    first_token_s : float
        Counted from the making of this object, connecting included.
    idle_s : float
        Counted from the beginning of each wait, so a slow reader loses nothing.
    """

    def __init__(self, first_token_s: float, idle_s: float) -> None:
        self._first_token_s = first_token_s
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + first_token_s
        self._timer: asyncio.TimerHandle | None = None
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
        if self._timer is not None and self._timer.when() > self._until:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self._is_up = True
            self._waiting.cancel()

    def _complaint(self) -> str:
        if self.has_token:
            return f"silent for {self._idle_s:g} s in the middle of its answer"
        return f"no answer within {self._first_token_s:g} s"
