"""Connections to endpoints, kept for the next request: one small pool for each of them."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

MOST = 1000
"""Connections at a time; who comes later waits."""

KEEP_S = 5.0
"""How long a connection without a request is kept; servers close theirs soon after that."""

Origin = tuple[str, str, int | None]


@dataclass(frozen=True, slots=True)
class _Idle:
    since: float
    transport: httpx.AsyncHTTPTransport


class Connections(httpx.AsyncBaseTransport):
    """Gives every request a connection of its own, the one used last if there is one.

    The library's own pool looks through all of its connections for each of them whenever a
    request begins or ends: at 128 requests at a time that took ten times as long as the requests,
    and with more than its hundred connections to keep, it kept none. Here each connection is a
    pool of one.
    """

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._idle: dict[Origin, deque[_Idle]] = {}
        self._busy: set[httpx.AsyncHTTPTransport] = set()
        self._places = asyncio.Semaphore(MOST)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its connection is free again when the response is closed."""
        origin = (request.url.scheme, request.url.host, request.url.port)
        await self._places.acquire()
        transport = self._taken(origin)
        try:
            response = await transport.handle_async_request(request)
        except BaseException:
            await self._let_go(transport)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Lent(response.stream, self, origin, transport)
        return response

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        idle = [one.transport for kept in self._idle.values() for one in kept]
        self._idle.clear()
        for transport in [*idle, *self._busy]:
            await transport.aclose()

    async def give_back(self, origin: Origin, transport: httpx.AsyncHTTPTransport) -> None:
        """Keep a connection for the next request, and close those that waited too long for one."""
        self._busy.discard(transport)
        self._places.release()
        now = time.monotonic()
        kept = self._idle.setdefault(origin, deque())
        kept.append(_Idle(now, transport))
        while now - kept[0].since > KEEP_S:
            await kept.popleft().transport.aclose()

    def _taken(self, origin: Origin) -> httpx.AsyncHTTPTransport:
        kept = self._idle.get(origin)
        transport = kept.pop().transport if kept else self._new()
        self._busy.add(transport)
        return transport

    def _new(self) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(max_connections=1, keepalive_expiry=KEEP_S)
        return httpx.AsyncHTTPTransport(verify=self._verify, trust_env=False, limits=limits)

    async def _let_go(self, transport: httpx.AsyncHTTPTransport) -> None:
        self._busy.discard(transport)
        self._places.release()
        await transport.aclose()


class _Lent(httpx.AsyncByteStream):
    """The body of a response, and the connection that it comes on."""

    def __init__(
        self,
        body: httpx.AsyncByteStream,
        connections: Connections,
        origin: Origin,
        transport: httpx.AsyncHTTPTransport,
    ) -> None:
        self._body, self._connections = body, connections
        self._origin, self._transport = origin, transport
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            yield part

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await self._body.aclose()
        finally:
            await self._connections.give_back(self._origin, self._transport)
