"""The client of all endpoints: one connection pool, typed chunks, typed failures.

`reach` makes `Endpoints`, which ask every one of some models. Requests and responses are httpx2's;
aiohttp carries them, by `Connections`. `url_of` gives the address of an operation. A key is sent
to the endpoint of its model alone: redirects are failures.
"""

import asyncio
import json
import logging
import ssl
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from ipaddress import ip_address
from itertools import chain
from types import MappingProxyType
from typing import TypeVar
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from arena.domain.model import Model, Roster
from arena.domain.vote import Chunk, Completion, FailureClass
from arena.endpoints.chat import (
    Json,
    StreamedReply,
    Vector,
    embedding_body,
    label,
    likelihood_body,
    read_completion,
    read_embeddings,
    read_log_likelihood,
    request_body,
)
from arena.endpoints.failures import (
    from_exception,
    from_redirect,
    from_response,
    known_as,
    refused_by,
    without,
)
from arena.endpoints.local import SCHEME, LocalTransport
from arena.endpoints.offline import PocketTransport, RecordedTransport
from arena.endpoints.sse import (
    DEFAULT_BUDGETS,
    HEADER_BYTES,
    Budgets,
    Events,
    Patience,
    check_headers,
    read_json,
    read_whole,
)
from arena.errors import EndpointError, SettingsError
from judge.calls import Lessons
from judge.case import Message
from rating import __version__

# Connections

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

IN_HTTPX2: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx2.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.ClientSSLError, httpx2.ConnectError),
    (aiohttp.InvalidURL, httpx2.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx2.UnsupportedProtocol),
    (aiohttp.ClientError, httpx2.RemoteProtocolError),
)
"""What httpx2 calls the same: the first that fits."""


class Connections(httpx2.AsyncBaseTransport):
    """Carries requests over aiohttp, which takes a fraction of the time of httpx2's own transport.

    That one looks through all of its connections for each of them whenever a request begins or
    ends, and reads every piece of a stream through four layers of Python.

    Parameters
    ----------
    connect_s : float
        To wait for a free connection, and to connect.
    """

    def __init__(self, connect_s: float) -> None:
        self._verify = _trust()
        self._limits = aiohttp.ClientTimeout(total=None, connect=connect_s, sock_connect=connect_s)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its connection is free again when the response is read or closed."""
        return await self.send(
            request.method, str(request.url), dict(request.headers), request.content
        )

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> httpx2.Response:
        """Send what would be a request of httpx2, without making one."""
        with _as_httpx2_errors():
            if self._session is None:  # it belongs to the loop that runs with the first request
                self._session = aiohttp.ClientSession(
                    connector=_connector(self._verify),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                )
            answer = await self._session.request(
                method,
                _target(url),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                proxy=_proxy_of(url),
                timeout=self._limits,
            )
        # httpx2 decodes and folds each header: those that nobody looks at are left out
        wanted = READ_OF_FAILURES if answer.status >= 300 else READ_OF_ANSWERS
        headers_read = [one for one in answer.raw_headers if one[0].lower() in wanted]
        return httpx2.Response(
            answer.status,
            headers=headers_read,
            stream=_Body(answer),
            extensions={HEADER_BYTES: sum(len(n) + len(v) for n, v in answer.raw_headers)},
        )

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        if self._session is not None:
            await self._session.close()


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


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2_errors():
            async for piece in self._answer.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        """Give the connection back if all of it was read, and close it if not."""
        self._answer.close()


@lru_cache
def _target(url: str) -> URL:
    return URL(url, encoded=True)


@contextmanager
def _as_httpx2_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:
        detail = f"the proxy refused to connect: HTTP {error.status}"
        raise EndpointError(FailureClass.UNREACHABLE, detail) from error
    except aiohttp.ClientResponseError as error:
        detail = f"the endpoint sent a head that cannot be read: {error.message}"
        raise EndpointError(FailureClass.MALFORMED, detail) from error
    except aiohttp.ClientError as error:
        kind = next(theirs for ours, theirs in IN_HTTPX2 if isinstance(error, ours))
        raise kind(str(error) or type(error).__name__) from error


# Addresses

CHAT = "/chat/completions"
OPERATIONS = (CHAT, "/completions", "/embeddings")
"""Ends of an address that names an operation, in place of what stands before all of them."""


@lru_cache
def url_of(endpoint: str, path: str) -> str:
    """Give the URL under which an endpoint does something; a query stays behind the path.

    Parameters
    ----------
    endpoint : str
        Base URL, or the whole URL of its chat, completions or embeddings.
    path : str
        Such as ``/chat/completions``.

    Raises
    ------
    EndpointError
        If the endpoint has a fragment, which nothing is sent of.
    httpx2.InvalidURL
        If it is no URL.

    Examples
    --------
    >>> url_of("https://host/openai/deployments/d?api-version=2024-06-01", "/chat/completions")
    'https://host/openai/deployments/d/chat/completions?api-version=2024-06-01'
    >>> url_of("https://host/v1/chat/completions/", "/embeddings")
    'https://host/v1/embeddings'
    """
    if "#" in endpoint:
        detail = "the address has a fragment (#...), which is sent nowhere: take it out"
        raise EndpointError(FailureClass.UNREACHABLE, detail)
    base, mark, query = endpoint.partition("?")
    base = base.rstrip("/")
    done = next((end for end in OPERATIONS if base.endswith(end)), "")
    return str(httpx2.URL(f"{base.removesuffix(done).rstrip('/')}{path}{mark}{query}"))


def origin_of(endpoint: str) -> str:
    """Give scheme, host and port of an endpoint, read as for a request to it.

    Raises
    ------
    SettingsError
        If it cannot be read.

    Examples
    --------
    >>> origin_of("HTTPS://Api.Example.com/v1") == origin_of("https://api.example.com:443/")
    True
    >>> origin_of("http://api.example.com/v1")
    'http://api.example.com:80'
    """
    try:
        url = httpx2.URL(endpoint)
    except httpx2.InvalidURL as error:
        raise SettingsError(f"The endpoint {endpoint[:100]!r} cannot be read: {error}.") from error
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return f"{url.scheme}://{url.host.lower()}:{port}"


# Client

T = TypeVar("T")
Keep = Callable[[str, str, str], None]

HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"arena/{__version__}",
}
"""Of every request. Nothing is to be compressed: a megabyte could unpack into a gigabyte."""

CLOSES_ONLY = (
    "the model closed reasoning that it had not opened. From here on its answers are shown once "
    "they are complete; they stream if its server separates the reasoning (a reasoning parser)."
)
logger = logging.getLogger(__name__)
_DETAIL_CHARACTERS = 500  # of a provider's error text: enough to act on, and it may be a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait for an endpoint; how long an answer may take is the caller's to say.

    Attributes
    ----------
    connect_s : float
        To connect, to send, and for a free connection.
    first_token_s : float
        From the request to the first token, of reasoning or of text.
    idle_s : float
        Between two events, once there is a token.
    whole_s : float
        For a whole answer that is not streamed.
    """

    connect_s: float = 10.0
    first_token_s: float = 30.0
    idle_s: float = 30.0
    whole_s: float = 300.0


@cache
def _trust() -> ssl.SSLContext:
    """Read the certificates to trust, once: those of SSL_CERT_FILE or SSL_CERT_DIR if set."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        msg = f"SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error.strerror}. Correct it."
        raise SettingsError(msg) from error


@lru_cache
def _proxy_of(url: str) -> str | None:
    """Name the proxy of HTTPS_PROXY or HTTP_PROXY; NO_PROXY and this machine are asked without."""
    there = _target(url)
    host = there.host or ""
    with suppress(ValueError):
        if ip_address(host).is_loopback:
            return None
    proxy = getproxies().get(there.scheme)
    if not proxy or host == "localhost" or proxy_bypass(host):
        return None
    scheme, separator, _ = proxy.partition("://")
    if separator and scheme not in ("http", "https"):
        detail = f"{there.scheme.upper()}_PROXY is of the scheme {scheme!r}: name an HTTP proxy"
        raise EndpointError(FailureClass.UNREACHABLE, detail)
    return proxy if separator else f"http://{proxy}"


class Endpoints:
    """Every model's endpoint, behind one connection pool.

    Parameters
    ----------
    keys : mapping
        Secret by the name that `Model.api_key_env` gives, looked up for each request.
    transports : mapping
        What answers a scheme of our own, such as ``{"pocket://": PocketTransport()}``.
    networked : bool
        Whether any model answers over HTTP: it takes certificates, and time to read them.
    timeouts : Timeouts
        See there.
    budgets : Budgets
        See there.
    known : mapping
        What endpoints refuse, as far as it is known: sentence by parameter, by `known_as`.
    keep : callable
        Takes what is learnt of that now: the endpoint, the parameter and the sentence.

    Raises
    ------
    SettingsError
        If a key cannot be sent: it is not plain printable ASCII.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        *,
        transports: Mapping[str, httpx2.AsyncBaseTransport] | None = None,
        networked: bool = True,
        timeouts: Timeouts = Timeouts(),
        budgets: Budgets = DEFAULT_BUDGETS,
        known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        keep: Keep = lambda endpoint, name, sentence: None,
    ) -> None:
        for name, key in keys.items():
            _require_sendable(name, key)
        self._keys = keys
        self._timeouts = timeouts
        self._budgets = budgets
        self._known, self._keep = known, keep
        self._lessons: dict[str, Lessons] = {}
        self._turn = asyncio.Lock()
        self._held: set[tuple[str, str]] = set()
        self._transports = dict(transports or {})
        self._network = Connections(timeouts.connect_s) if networked else None

    async def aclose(self) -> None:
        """Close every connection; requests that are under way fail."""
        for transport in (*self._transports.values(), self._network):
            if transport is not None:
                await transport.aclose()

    def refused(self, model: Model) -> tuple[str, ...]:
        """Name the parameters that a model is asked without, as its endpoint refuses them."""
        return tuple(self._lessons_of(model))

    def replay(
        self, recordings: Mapping[str, Mapping[str, str]], paces: Mapping[str, float]
    ) -> None:
        """Answer ``recorded://`` by these recordings from here on: see `RecordedTransport`."""
        self._transports["recorded://"] = RecordedTransport(recordings, paces)

    async def stream(self, model: Model, messages: Sequence[Message]) -> AsyncGenerator[Chunk]:
        """Ask a model, and yield its answer as it comes.

        Parameters
        ----------
        messages : sequence of Message
            The conversation; the model's own system prompt is put before it.

        Yields
        ------
        Chunk
            `TextDelta` and `ReasoningDelta` in order; then exactly one `Finished`.

        Raises
        ------
        EndpointError
            With the `FailureClass`; text that was yielded before is no answer.

        Notes
        -----
        Closing the generator early closes the request: wrap it in ``aclosing``.
        """
        lessons, address = self._lessons_of(model), (model.endpoint, model.model)
        options = {"stream": True, "stream_options": {"include_usage": True}}
        refused: dict[str, str] = {}
        while True:
            body = request_body(model, messages, options, {*lessons, *refused})
            patience = Patience(self._timeouts.first_token_s, self._timeouts.idle_s)
            reply = StreamedReply(self._budgets.reasoning_chars, holds=address in self._held)
            try:
                with self._typed_failures(model):
                    async with self._reply(model, body, patience) as response:
                        events = Events(response, self._budgets, self._turn)
                        while batch := await patience.wait(events.next()):
                            for delta in chain.from_iterable(map(reply.read, batch)):
                                if not patience.has_token:
                                    _learn(refused, lessons)
                                patience.has_token = True
                                yield delta
                            patience.has_token = reply.has_begun
                    for chunk in reply.end(_request_id(response)):
                        yield chunk
            except EndpointError as error:
                name = refused_by(error.refuses, body)
                if name is None or reply.has_begun:
                    raise
                refused[name] = error.detail
            else:
                _learn(refused, lessons)
                return
            finally:
                if reply.retracted and address not in self._held:
                    self._held.add(address)
                    logger.warning("%s: %s", model.id, CLOSES_ONLY)
                elif reply.closed_nothing:
                    self._held.discard(address)

    async def complete(
        self,
        model: Model,
        messages: Sequence[Message],
        *,
        decoding: Mapping[str, object] = MappingProxyType({}),
        as_it_is: bool = False,
        within_s: Callable[[], float] | None = None,
        lessons: Lessons | None = None,
    ) -> Completion:
        """Ask a model for a whole answer.

        Parameters
        ----------
        decoding : mapping
            Sent in place of what the model's own decoding says of the same; None takes it out.
        as_it_is : bool
            Whether an answer that was filtered or is blank counts as one: it was paid for.
        within_s : callable or None
            Gives the seconds to wait, `Timeouts.whole_s` at most, and may give others while they
            pass.
        lessons : Lessons or None
            What its endpoint has taught, and where more is put; None takes those of all requests.

        Raises
        ------
        EndpointError
            As `stream` does; a blank answer that came with log-probabilities is none. Also if
            ``decoding`` asks for log-probabilities and the endpoint refuses to give any.
        """
        whole_s, budgets = self._timeouts.whole_s, self._budgets
        asks = bool(decoding.get("logprobs"))
        return await self._read(
            model,
            CHAT,
            partial(request_body, model, messages, {"stream": False, **decoding}),
            partial(read_completion, as_it_is=as_it_is),
            most=budgets.numbers_bytes if asks else budgets.response_bytes,
            within_s=whole_s if within_s is None else lambda: min(within_s(), whole_s),
            lessons=lessons,
            needed="logprobs" if asks else "",
        )

    async def embed(
        self, model: Model, texts: Sequence[str], lessons: Lessons | None = None
    ) -> tuple[Vector, ...]:
        """Ask a model for embeddings, one a text, in their order.

        Raises
        ------
        EndpointError
            With the `FailureClass`; also if it does not return one vector for each text.
        """
        return await self._read(
            model,
            "/embeddings",
            partial(embedding_body, model, texts),
            lambda text, _request_id: read_embeddings(text, len(texts)),
            most=self._budgets.numbers_bytes,
            within_s=self._timeouts.whole_s,
            lessons=lessons,
        )

    async def log_likelihood(
        self, model: Model, text: str, lessons: Lessons | None = None
    ) -> float:
        """Ask how likely a text is to a model, in nats.

        Raises
        ------
        EndpointError
            With the `FailureClass`; also if it does not give the log-probabilities of a prompt.
        """
        return await self._read(
            model,
            "/completions",
            partial(without, likelihood_body(model, text)),
            lambda answer, _request_id: read_log_likelihood(answer, text),
            most=self._budgets.numbers_bytes,
            within_s=self._timeouts.whole_s,
            lessons=lessons,
            needed="logprobs",
        )

    async def _read(
        self,
        model: Model,
        path: str,
        body_without: Callable[[Collection[str]], Json],
        read: Callable[[str, str], T],
        *,
        most: int,
        within_s: Callable[[], float] | float,
        lessons: Lessons | None,
        needed: str = "",
    ) -> T:
        """Ask for a whole reply, and again without each optional parameter that is refused.

        A parameter is learnt to be refused once the request without it is answered; the one that
        is needed, at once.
        """
        lessons = self._lessons_of(model) if lessons is None else lessons
        refused: dict[str, str] = {}
        while True:
            body = body_without({*lessons, *refused})
            patience = Patience(within_s, self._timeouts.idle_s)
            try:
                with self._typed_failures(model):
                    async with self._reply(model, body, patience, path=path) as response:
                        text = await patience.wait(read_json(response, most))
                        answer = read(text, _request_id(response))
            except EndpointError as error:
                name = refused_by(error.refuses, body)
                if name is None:
                    raise
                refused[name] = error.detail
                if name == needed:
                    _learn(refused, lessons)
                    raise
            else:
                _learn(refused, lessons)
                return answer

    def _lessons_of(self, model: Model) -> Lessons:
        name = known_as(model)
        if name not in self._lessons:
            self._lessons[name] = Lessons(self._known.get(name, {}), partial(self._keep, name))
        return self._lessons[name]

    @asynccontextmanager
    async def _reply(
        self, model: Model, body: Json, patience: Patience, *, path: str = CHAT
    ) -> AsyncIterator[httpx2.Response]:
        """Give the response to a request, if its status is a success; close it at the end."""
        data = json.dumps(body).encode()  # ASCII: a lone surrogate in a prompt arrives as it is
        response = await patience.wait(self._sent(model, path, data))
        try:
            check_headers(response, self._budgets.header_bytes)
            if response.has_redirect_location:
                raise from_redirect(response)
            if not response.is_success:
                most = self._budgets.response_bytes
                text = await patience.wait(read_whole(response, most))
                raise from_response(response, text, datetime.now(UTC))
            yield response
        finally:
            await response.aclose()

    def _sent(self, model: Model, path: str, body: bytes) -> Awaitable[httpx2.Response]:
        url, headers = url_of(model.endpoint, path), self._headers(model)
        transport = self._transport(model.endpoint)
        if isinstance(transport, Connections):
            return transport.send("POST", url, headers, body)
        request = httpx2.Request("POST", url, content=body, headers=headers)
        return transport.handle_async_request(request)

    def _transport(self, endpoint: str) -> httpx2.AsyncBaseTransport:
        for prefix, transport in self._transports.items():
            if endpoint.startswith(prefix):
                return transport
        if self._network is None:  # the first model behind a network came while this runs
            self._network = Connections(self._timeouts.connect_s)
        return self._network

    def _headers(self, model: Model) -> dict[str, str]:
        headers = {**HEADERS}
        if model.api_key_env is not None:
            named, key = model.api_key_header, self._key(model)
            headers |= {named: key} if named else {"Authorization": f"Bearer {key}"}
        return headers

    def _key(self, model: Model) -> str:
        key = self._keys.get(model.api_key_env or "")
        if not key:
            raise EndpointError(FailureClass.AUTH, f"{model.api_key_env} is not set")
        try:
            _require_sendable(model.api_key_env or "", key)
        except SettingsError as error:
            raise EndpointError(FailureClass.AUTH, str(error)) from None
        return key

    @contextmanager
    def _typed_failures(self, model: Model) -> Iterator[None]:
        """Raise every failure as `EndpointError`, and without the key in its text."""
        try:
            yield
        except EndpointError as error:
            raise self._presentable(error, model) from None
        except RecursionError:
            detail = "the endpoint sent JSON that is nested too deeply"
            raise EndpointError(FailureClass.MALFORMED, detail) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._presentable(from_exception(error), model) from None

    def _presentable(self, error: EndpointError, model: Model) -> EndpointError:
        key = self._keys.get(model.api_key_env or "")
        detail = error.detail.replace(key, "[key]") if key else error.detail
        return EndpointError(
            error.failure,
            label(detail, _DETAIL_CHARACTERS),
            retry_after_s=error.retry_after_s,
            refuses=error.refuses,
            counted=error.counted,
        )


def reach(
    models: Roster | Sequence[Model],
    keys: Mapping[str, str],
    recordings: Mapping[str, Mapping[str, str]],
    pocket: PocketTransport,
    timeouts: Timeouts | None = None,
    budgets: Budgets = DEFAULT_BUDGETS,
    known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    keep: Keep = lambda endpoint, name, sentence: None,
) -> Endpoints:
    """Make the client that reaches every one of some models.

    Parameters
    ----------
    keys : mapping
        API keys by the names that the models give them.
    recordings : mapping
        Responses by prompt, by `Model.id`.
    known, keep
        As `Endpoints` takes them.
    """
    paces = {model.id: model.characters_per_s for model in models}
    transports = {
        "pocket://": pocket,
        "recorded://": RecordedTransport(recordings, paces),
        SCHEME: LocalTransport(),
    }
    return Endpoints(
        keys,
        transports=transports,
        networked=not all(model.endpoint.startswith(tuple(transports)) for model in models),
        timeouts=timeouts or Timeouts(),
        budgets=budgets,
        known=known,
        keep=keep,
    )


def _require_sendable(name: str, key: str) -> None:
    if key.isascii() and key.isprintable() and key == key.strip():
        return
    raise SettingsError(
        f"The key in {name} cannot be sent: it holds a space at an end, a line break or a "
        "character outside ASCII. Set it again, without what was pasted along with it."
    )


def _learn(refused: Mapping[str, str], lessons: Lessons) -> None:
    for name, sentence in refused.items():
        lessons.learn(name, sentence)


def _request_id(response: httpx2.Response) -> str:
    return str(response.headers.get("x-request-id", ""))
