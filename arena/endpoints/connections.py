"""Connections to endpoints: requests and responses are httpx's, aiohttp carries them."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from arena.domain.answer import FailureClass
from arena.endpoints.sse import HEADER_BYTES
from arena.errors import EndpointError

MOST = 1000
"""Connections at a time; who comes later waits."""

KEEP_S = 5.0
"""How long a connection without a request is kept; servers close theirs soon after that."""

PARSED_AT_ONCE = 4096
"""Bytes of a connection that are parsed before others have their turn.

They may be chunks of one byte, each of which takes aiohttp microseconds.
"""

MOST_WAITING = 2**19
"""Bytes of a connection that wait to be parsed before it is read no further.

Over TLS that costs the end of an answer whose server closes the connection meanwhile, because
uvloop loses what it holds then.
"""

MOST_INTERIM = 10
"""Responses with a status below 200 before the real one; most servers send none."""

READ_OF_ANSWERS = frozenset({b"content-type", b"content-encoding", b"x-request-id"})
READ_OF_FAILURES = READ_OF_ANSWERS | {b"location", b"retry-after", b"date"}
"""Headers of a response that anybody here reads."""

IN_HTTPX: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientSSLError, httpx.ConnectError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
)
"""What httpx calls the same: the first that fits."""


class Connections(httpx.AsyncBaseTransport):
    """Carries requests over aiohttp, which takes a fraction of the time of httpx's own transport.

    That one looks through all of its connections for each of them whenever a request begins or
    ends, and reads every piece of a stream through four layers of Python.

    Parameters
    ----------
    verify : SSLContext
        Certificates to trust.
    connect_s : float
        To wait for a free connection, and to connect.
    """

    def __init__(self, verify: ssl.SSLContext, connect_s: float) -> None:
        self._verify = verify
        self._limits = aiohttp.ClientTimeout(total=None, connect=connect_s, sock_connect=connect_s)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its connection is free again when the response is read or closed."""
        return await self.send(
            request.method, str(request.url), dict(request.headers), request.content
        )

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        """Send what would be a request of httpx, without making one: that takes .1 ms."""
        with _as_httpx_errors():
            answer = await self._opened().request(
                method,
                _target(url),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                timeout=self._limits,
            )
        return httpx.Response(
            answer.status,
            headers=_wanted(answer.raw_headers, failed=answer.status >= 300),
            stream=_Body(answer),
            extensions={HEADER_BYTES: sum(len(n) + len(v) for n, v in answer.raw_headers)},
        )

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Open the session with the first request: it belongs to the loop that runs then."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_connector(self._verify),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


def _connector(verify: ssl.SSLContext) -> aiohttp.TCPConnector:
    connector = aiohttp.TCPConnector(limit=MOST, keepalive_timeout=KEEP_S, ssl=verify)
    protocol = partial(_Protocol, _Turns(asyncio.get_running_loop()))
    connector._factory = protocol  # type: ignore[assignment]
    return connector


class _Turns:
    """Lets one connection parse in each turn of the loop, of all that have more than a little."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[_Protocol] = deque()

    def wait(self, connection: "_Protocol") -> None:
        """Call a connection's ``parse`` when it is its turn."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        connection = self._waiting.popleft()
        if self._waiting:
            self.loop.call_soon(self._next)
        connection.parse()


class _Protocol(ResponseHandler):
    """Parses a little at a time, and bears no interim responses without end.

    aiohttp parses at once what there is, and waits for the last of the interim responses.
    """

    def __init__(self, turns: _Turns) -> None:
        super().__init__(turns.loop)
        self._turns = turns
        self._interim = 0
        self._waiting = bytearray()
        self._has_turn = False
        self._is_lost = False
        self._error: BaseException | None = None

    @property
    def should_close(self) -> bool:
        return super().should_close or bool(self._waiting)

    def data_received(self, data: bytes) -> None:
        if not data or self._parser is None:
            super().data_received(data)
            return
        self._waiting += data
        if len(self._waiting) <= PARSED_AT_ONCE and not self._has_turn:
            self.parse()
        else:
            self._go_on()
        if len(self._waiting) > MOST_WAITING and not self._buffer_paused:
            self._pause_reading_for_buffer()

    def parse(self) -> None:
        """Parse a little of what waits."""
        self._has_turn = False
        if self._waiting and not self._reading_paused:
            piece = bytes(self._waiting[:PARSED_AT_ONCE])
            del self._waiting[:PARSED_AT_ONCE]
            super().data_received(piece)
        if self.exception() is not None:
            self._waiting.clear()
            if self.transport is not None:
                self.transport.abort()
        if self._buffer_paused and len(self._waiting) <= MOST_WAITING // 2:
            self._resume_reading_for_buffer()
        self._go_on()

    def _go_on(self) -> None:
        """Wait for a turn to parse the rest; when nothing is left, the connection may be lost."""
        if self._reading_paused or self._has_turn:
            return
        if self._waiting:
            self._has_turn = True
            self._turns.wait(self)
        elif self._is_lost:
            self._is_lost = False
            super().connection_lost(self._error)

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:  # aiohttp asks for every chunk, and that would cost as much
            super().resume_reading(resume_parser)
            self._go_on()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_lost, self._error = True, exc
        self._go_on()

    def close(self) -> None:
        """Hang up: before it closes, uvloop reads over TLS all that a flood still holds."""
        self.abort()

    def abort(self) -> None:
        self._waiting.clear()
        self._reading_paused = False
        super().abort()
        self._go_on()

    def feed_data(
        self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0
    ) -> None:
        self._interim = self._interim + 1 if data[0].code < 200 else 0
        if self._interim == MOST_INTERIM and self.transport is not None:
            self.set_exception(HttpProcessingError(message="interim responses without end"))
            self.transport.abort()
        super().feed_data(data, size)


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for piece in self._answer.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        """Give the connection back if all of it was read, and close it if not."""
        self._answer.close()


def _wanted(
    headers: tuple[tuple[bytes, bytes], ...], *, failed: bool
) -> list[tuple[bytes, bytes]]:
    """Leave out the headers that nobody looks at: httpx takes long over each of them."""
    wanted = READ_OF_FAILURES if failed else READ_OF_ANSWERS
    return [(name, value) for name, value in headers if name.lower() in wanted]


@lru_cache
def _target(url: str) -> URL:
    return URL(url, encoded=True)


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientResponseError as error:
        detail = f"the endpoint sent a head that cannot be read: {error.message}"
        raise EndpointError(FailureClass.MALFORMED, detail) from error
    except aiohttp.ClientError as error:
        kind = next(theirs for ours, theirs in IN_HTTPX if isinstance(error, ours))
        raise kind(str(error) or type(error).__name__) from error
