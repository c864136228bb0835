"""Connections to endpoints: requests and responses are httpx's, aiohttp carries them."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from arena.domain.answer import FailureClass
from arena.errors import EndpointError

MOST = 1000
"""Connections at a time; who comes later waits."""

KEEP_S = 5.0
"""How long a connection without a request is kept; servers close theirs soon after that."""

RECEIVED_AT_ONCE = 16_384
"""Bytes that wait to be read without a pause: in the system, where Linux doubles them, and here.

aiohttp waits also when they are in a sixteenth as many chunks, each of which takes microseconds.
Over TLS it waits as late as it likes to: uvloop loses what it holds of an answer whose server
closes the connection while nobody reads.
"""

MOST_INTERIM = 10
"""Responses with a status below 200 before the real one; most servers send none."""

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
        with _said_in_httpx(request):
            answer = await self._opened().request(
                request.method,
                _target(str(request.url)),
                headers=[(name.decode(), value.decode()) for name, value in request.headers.raw],
                data=request.content or None,
                allow_redirects=False,
                timeout=self._limits,
                read_bufsize=RECEIVED_AT_ONCE if request.url.scheme == "http" else None,
            )
        return httpx.Response(
            answer.status, headers=answer.raw_headers, stream=_Body(answer, request)
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
    connector = aiohttp.TCPConnector(
        limit=MOST, keepalive_timeout=KEEP_S, ssl=verify, socket_factory=_socket
    )
    protocol = partial(_Protocol, loop=asyncio.get_running_loop())
    connector._factory = protocol  # type: ignore[assignment]
    return connector


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_AT_ONCE)
    return opened


class _Protocol(ResponseHandler):
    """Ends a connection that brings interim responses without end: aiohttp waits for the last."""

    _interim = 0

    def feed_data(
        self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0
    ) -> None:
        self._interim = self._interim + 1 if data[0].code < 200 else 0
        if self._interim == MOST_INTERIM and self.transport is not None:
            self.set_exception(HttpProcessingError(message="interim responses without end"))
            self.transport.close()
        super().feed_data(data, size)


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse, request: httpx.Request) -> None:
        self._answer, self._request = answer, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _said_in_httpx(self._request):
            async for piece in self._answer.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        """Give the connection back if all of it was read, and close it if not."""
        self._answer.close()


@lru_cache
def _target(url: str) -> URL:
    return URL(url, encoded=True)


@contextmanager
def _said_in_httpx(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientResponseError as error:
        detail = f"the endpoint sent a head that cannot be read: {error.message}"
        raise EndpointError(FailureClass.MALFORMED, detail) from error
    except aiohttp.ClientError as error:
        kind = next(theirs for ours, theirs in IN_HTTPX if isinstance(error, ours))
        raise kind(str(error) or type(error).__name__, request=request) from error
