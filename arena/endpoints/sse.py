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
        self._first_token_by = asyncio.get_running_loop().time() + first_token_s
        self.has_token = False

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Await something; raise `EndpointError` (timeout) when it takes too long."""
        try:
            async with asyncio.timeout_at(self._deadline()):
                return await awaited
        except TimeoutError:
            raise EndpointError(FailureClass.TIMEOUT, self._complaint()) from None

    def _deadline(self) -> float:
        if self.has_token:
            return asyncio.get_running_loop().time() + self._idle_s
        return self._first_token_by

    def _complaint(self) -> str:
        if self.has_token:
            return f"silent for {self._idle_s:g} s in the middle of its answer"
        return f"no answer within {self._first_token_s:g} s"
