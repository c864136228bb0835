"""The process that serves: its socket, the bounds of its connections, and how it ends.

`listen` takes the port before anything slow is done; `run` serves until a signal, and then until
the running battles have ended. `_BoundedProtocol` is HTTP with the bounds that uvicorn lacks:
seconds, bytes and connections.
"""

import asyncio
import gc
import logging
import resource
import socket
import sys
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from enum import Enum, auto
from types import FrameType
from typing import ClassVar

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from arena.api.middleware import refusal
from arena.errors import SettingsError
from arena.guard.access import Trust
from arena.guard.limits import network_of, place_of, shares
from arena.settings import Settings

# Bounds of connections

LINGER_S = 1.0
"""How long a connection stays after a refusal, for its client to read why."""


def shares_of(address: str, trust: Trust, per_address: int) -> dict[str, int]:
    """Give how many connections an address, and of IPv6 the network around it, may have.

    Those of a proxy are the connections of many: it has no bound of its own.
    """
    if trust.believes(address):
        return {}
    return shares(place_of(address), network_of(address), per_address)


class _Phase(Enum):
    """How far the latest request of a connection has come."""

    NONE = auto()
    HEADERS = auto()
    BODY = auto()
    WHOLE = auto()


class _BoundedProtocol(HttpToolsProtocol):
    """One connection.

    When there are too many, a new one takes the place of the one that has waited longest without
    a request that is whole. Where all are being answered, the new one is refused in words.
    """

    settings: ClassVar[Settings]
    trust: ClassVar[Trust]
    """States which addresses are proxies."""
    held: ClassVar[Counter[str]]
    """How many connections there are from each address and network that is no proxy's."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for a request, for so long only."""
        super().connection_made(transport)
        # Whatever is not taken at once starts the clock of `pause_writing`, also when the
        # connection is closed with the end of an answer still here.
        transport.set_write_buffer_limits(high=0)
        self._timer: TimerHandle | None = None
        self._unread: TimerHandle | None = None
        self._header_bytes = 0
        self._has_body = self._is_deaf = False
        self._running: RequestResponseCycle | None = None
        self._wait_in(_Phase.NONE, self.settings.header_timeout_s)
        address = self.client[0] if self.client else ""
        self._shares = shares_of(address, self.trust, self.settings.connections_per_address)
        self.held.update(self._shares.keys())
        self._unwelcome = self._refuse_or_make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        if self._unread:
            self._unread.cancel()
        for place in self._shares:
            self.held[place] -= 1
            if not self.held[place]:
                del self.held[place]
        super().connection_lost(exc)
        self._leave()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have become too long or nothing begins a request."""
        if self._is_deaf:
            return
        before, self._has_body = self._phase, False
        super().data_received(data)
        if self._phase is _Phase.NONE and self._timer is None:
            self._wait_in(_Phase.NONE, self.settings.header_timeout_s)
        elif before is self._phase in (_Phase.HEADERS, _Phase.BODY) and not self._has_body:
            self._header_bytes += len(data)  # those after a body count too
            if self._header_bytes > self.settings.max_header_bytes:
                self._end(431, self._too_long())

    def on_message_begin(self) -> None:
        """Give a new request its time."""
        super().on_message_begin()
        self._header_bytes = 0
        self._wait_in(_Phase.HEADERS, self.settings.header_timeout_s)

    def on_headers_complete(self) -> None:
        """Hand the request to the arena, or to what refuses it."""
        self._wait_in(_Phase.BODY, self.settings.body_timeout_s)
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.settings.max_header_bytes:
            self.app = refusal(431, self._too_long())
        elif self._unwelcome:
            self.app = refusal(503, self._unwelcome)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Hand on a piece of the body."""
        self._has_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Let the answer take as long as it takes, or wait for the next request if it is there."""
        self._stop_waiting()
        self._phase = _Phase.WHOLE
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_in(_Phase.NONE, self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn keeps a connection."""
        if self._phase is _Phase.WHOLE and not self.pipeline:
            self._phase, self._since = _Phase.NONE, self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Write no more until what is written has been taken, for so long only."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.settings.unread_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the arena's words."""
        self._end(400, "This is no request of HTTP. Mend the program that sent it.")

    def _unsupported_upgrade_warning(self) -> None:
        """Answer in plain HTTP and close: where what follows begins and ends, nobody knows."""
        self.cycle.keep_alive = False
        self._is_deaf = True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _leave(self) -> None:
        """Tell the request that is being answered that nobody reads; uvicorn tells the latest."""
        if self._running and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _wait_in(self, phase: _Phase, seconds: float) -> None:
        self._stop_waiting()
        self._phase, self._since = phase, self.loop.time()
        self._timer = self.loop.call_later(seconds, self._too_late, seconds)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is the arena that keeps the client waiting
            self._wait_in(self._phase, seconds)
        elif self._phase is _Phase.NONE:
            self.transport.close()
        else:
            self._end(408, f"The request was not whole after {seconds:g} s. Send it again.")

    def _end(self, status: int, detail: str) -> None:
        """Explain why, where that is the answer that the client waits for, and close."""
        if self._is_due():
            answer = refusal(status, detail)
            headers = b"".join(b"%b: %b\r\n" % header for header in answer.raw_headers)
            self.transport.write(STATUS_LINE[status] + headers + b"\r\n" + bytes(answer.body))
        self._leave()
        # What the client still sends is thrown away: closed over it, the words would be lost.
        self._is_deaf = True
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_S, self.transport.close)

    def _is_due(self) -> bool:
        """Whether the request that is coming in is the one to be answered next."""
        if self.pipeline or self.cycle is None:
            return not self.pipeline
        if self._phase is _Phase.BODY and self.cycle.scope is self.scope:
            return not self.cycle.response_started
        return self.cycle.response_complete

    def _refuse_or_make_room(self) -> str:
        """Give the words for a connection too many, or none where another makes room for it."""
        for place, most in self._shares.items():
            if self.held[place] > most:
                neighbours = (other for other in self._waiting() if place in other._shares)
                return "" if _let_go_oldest(neighbours) else _full("Your network", most)
        if len(self.connections) > (most := self.settings.connections):
            return "" if _let_go_oldest(self._waiting()) else _full("The arena", most)
        return ""

    def _waiting(self) -> "Iterator[_BoundedProtocol]":
        """Give the others without a whole request; a body has as long as headers have."""
        late = self.loop.time() - self.settings.header_timeout_s
        for other in self.connections:
            if not isinstance(other, _BoundedProtocol) or other is self:
                continue
            early = other._phase in (_Phase.NONE, _Phase.HEADERS)
            slow = other._phase is _Phase.BODY and other._since < late
            if (early or slow) and not other.transport.is_closing():
                yield other

    def _too_long(self) -> str:
        most = self.settings.max_header_bytes
        return f"A request's headers may have {most:,} bytes. Send fewer, or clear your cookies."


def _let_go_oldest(waiting: Iterable[_BoundedProtocol]) -> bool:
    """Close the connection that has waited longest; tell whether there was one."""
    oldest = min(waiting, key=lambda one: one._since, default=None)
    if oldest is not None:
        oldest.transport.abort()
    return oldest is not None


def _full(who: str, most: int) -> str:
    return f"{who} has {most:,} connections and may have no more. Try again in a minute."


# Serving

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""How long an idle connection is kept: one that is let go while a vote comes in over it fails.

People vote some seconds after they have read, so uvicorn's 5 s would be about the worst.
"""
LAST_STREAMS_S = 2
"""How long open streams may go on once all battles have ended."""

SWITCH_S = 0.0001
"""How soon a thread that waits for the interpreter asks for it.

Reading what comes, the loop lets go of it for moments only. A thread that begins again to wait
with
each of them comes to ask seldom at Python's 5 ms: under floods from endpoints, requests that are
answered in a thread waited up to a second.
"""

NEW_OBJECTS = 10_000
"""Made and not gone, before Python looks for cycles among them; its own number is 700.

Many battles at once make that often, for a fifteenth of the processor's time. To look at this many
takes a millisecond or two.
"""

OTHER_FILES = 200
"""Files that a process opens beside its connections to clients and to endpoints."""

UNREADABLE = "Invalid HTTP request received."
"""What uvicorn logs of each, as often as anybody cares to send one."""

Drain = Callable[[], Coroutine[None, None, None]]


def listen(settings: Settings) -> socket.socket:
    """Take the port before anything slow is done, so that a taken one is said at once."""
    try:
        family, *_, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = family == socket.AF_INET6 and settings.host == "::"
        # Who comes before the rest is ready waits, and is not refused.
        return socket.create_server(address[:2], family=family, backlog=2048, dualstack_ipv6=both)
    except OSError as error:
        raise SettingsError(
            f"Cannot serve on {settings.host}:{settings.port}: {error.strerror}. "
            "Choose another port with --port, or ARENA_PORT."
        ) from error


def run(
    app: Callable[..., object], drain: Drain, settings: Settings, listener: socket.socket
) -> None:
    """Serve until a signal, and then until ``drain`` has let the running battles end."""
    from rating.tables.duckdb_engine import let_go  # a port in use is said without this wait

    allow_files(settings)
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != UNREADABLE)
    # Gradio looks for it at each update, in vain; and the page shows no plots of its own.
    sys.modules.setdefault("matplotlib", None)  # type: ignore[arg-type]
    gc.freeze()  # what is loaded stays: to look through it for garbage would stall everybody
    gc.enable()
    switch_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        with suppress(KeyboardInterrupt):  # uvicorn hands on the signal that it has obeyed
            _Server(configured(app, settings), drain).run(sockets=[listener])
    finally:
        sys.setswitchinterval(switch_s)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        let_go()


def allow_files(settings: Settings) -> None:
    """Raise this process's limit of open files to what its connections may need."""
    wanted = settings.connections + 2 * settings.running_battles + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not _reaches(soft, wanted) and _reaches(hard, wanted):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    elif not _reaches(soft, wanted):
        logger.warning(
            "This process may open %d files and may need %d: raise its limit (ulimit -n, "
            "LimitNOFILE), or lower ARENA_CONNECTIONS.",
            hard,
            wanted,
        )


def _reaches(limit: int, wanted: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= wanted


def configured(app: Callable[..., object], settings: Settings) -> uvicorn.Config:
    """Describe how to serve, with nothing logged."""
    trust = Trust(proxies=settings.proxy_networks())
    given = {"settings": settings, "trust": trust, "held": Counter[str]()}
    protocol = type("Protocol", (_BoundedProtocol,), given)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",  # nothing of the arena's is reached that way, and no bounds would hold there
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LAST_STREAMS_S,
        proxy_headers=False,  # whom to believe is decided with who may ask: in the application
    )


class _Server(uvicorn.Server):
    """Ends in two steps: no new battles first, and all else when the running ones have ended.

    A second signal skips what is left of the first step.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.started or self._draining:
            super().handle_exit(sig, frame)
        else:
            asyncio.get_running_loop().call_soon_threadsafe(self._begin_to_end, sig, frame)

    def _begin_to_end(self, sig: int, frame: FrameType | None) -> None:
        self._draining = asyncio.create_task(self._end(sig, frame))

    async def _end(self, sig: int, frame: FrameType | None) -> None:
        try:
            await self._drain()
        finally:
            super().handle_exit(sig, frame)
