"""The client of all endpoints: one connection pool, typed chunks, typed failures."""

import asyncio
import json
import logging
import ssl
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
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from types import MappingProxyType
from typing import TypeVar

import httpx

from arena.domain.answer import Chunk, Completion, FailureClass
from arena.domain.model import Model, Roster
from arena.endpoints.address import CHAT, url_of
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
from arena.endpoints.connections import Connections
from arena.endpoints.dialect import known_as, refused_by, without
from arena.endpoints.failures import from_exception, from_redirect, from_response
from arena.endpoints.offline import PocketTransport, RecordedTransport
from arena.endpoints.sse import (
    DEFAULT_BUDGETS,
    Budgets,
    Events,
    Patience,
    check_headers,
    read_json,
    read_whole,
)
from arena.errors import EndpointError, SettingsError
from judge.case import Message
from judge.profile import Lessons
from rating import __version__

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
    """Read the certificates to trust, once: it takes a twentieth of a second."""
    return httpx.create_ssl_context(trust_env=False)


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
        transports: Mapping[str, httpx.AsyncBaseTransport] | None = None,
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
        self._network = Connections(_trust(), timeouts.connect_s) if networked else None

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
    ) -> AsyncIterator[httpx.Response]:
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

    def _sent(self, model: Model, path: str, body: bytes) -> Awaitable[httpx.Response]:
        url, headers = url_of(model.endpoint, path), self._headers(model)
        transport = self._transport(model.endpoint)
        if isinstance(transport, Connections):
            return transport.send("POST", url, headers, body)
        request = httpx.Request("POST", url, content=body, headers=headers)
        return transport.handle_async_request(request)

    def _transport(self, endpoint: str) -> httpx.AsyncBaseTransport:
        for prefix, transport in self._transports.items():
            if endpoint.startswith(prefix):
                return transport
        if self._network is None:  # the first model behind a network came while this runs
            self._network = Connections(_trust(), self._timeouts.connect_s)
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
        except (httpx.HTTPError, httpx.InvalidURL) as error:
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
    transports = {"pocket://": pocket, "recorded://": RecordedTransport(recordings, paces)}
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


def _request_id(response: httpx.Response) -> str:
    return str(response.headers.get("x-request-id", ""))
