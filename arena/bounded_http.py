"""HTTP with the bounds that uvicorn lacks: seconds, bytes and connections."""

from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from arena.api.problems import refusal
from arena.guard.access import Trust
from arena.guard.identity import network_of, place_of
from arena.guard.limits import shares

LINGER_S = 1.0
"""How long a connection stays after a refusal, for its client to read why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients are given.

    Attributes
    ----------
    header_s, body_s : float
        For the whole of a request's headers, and for the whole of its body.
    unread_s : float
        To take more of an answer, once it is written faster than it is read.
    header_bytes : int
        Of a request's address and headers.
    connections, connections_per_address : int
        At a time, in one process: of all, and of one address.
    trust : Trust
        Says which addresses are proxies, whose connections are those of many.
    """

    header_s: float
    body_s: float
    unread_s: float
    header_bytes: int
    connections: int
    connections_per_address: int
    trust: Trust

    def shares(self, address: str) -> dict[str, int]:
        """Give what an address, and of IPv6 the larger network around it, may have."""
        if self.trust.believes(address):
            return {}
        return shares(place_of(address), network_of(address), self.connections_per_address)


class Phase(Enum):
    """How far the latest request of a connection has come."""

    NONE = auto()
    HEADERS = auto()
    BODY = auto()
    WHOLE = auto()


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    When there are too many, a new one takes the place of the one that has waited longest without
    a request that is whole. Where all are being answered, the new one is refused in words.
    """

    bounds: ClassVar[Bounds]
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
        self._wait_in(Phase.NONE, self.bounds.header_s)
        self._shares = self.bounds.shares(self.client[0] if self.client else "")
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
        if self._phase is Phase.NONE and self._timer is None:
            self._wait_in(Phase.NONE, self.bounds.header_s)
        elif before is self._phase in (Phase.HEADERS, Phase.BODY) and not self._has_body:
            self._header_bytes += len(data)  # those after a body count too
            if self._header_bytes > self.bounds.header_bytes:
                self._end(431, self._too_long())

    def on_message_begin(self) -> None:
        """Give a new request its time."""
        super().on_message_begin()
        self._header_bytes = 0
        self._wait_in(Phase.HEADERS, self.bounds.header_s)

    def on_headers_complete(self) -> None:
        """Hand the request to the arena, or to what refuses it."""
        self._wait_in(Phase.BODY, self.bounds.body_s)
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.bounds.header_bytes:
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
        self._phase = Phase.WHOLE
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_in(Phase.NONE, self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn keeps a connection."""
        if self._phase is Phase.WHOLE and not self.pipeline:
            self._phase, self._since = Phase.NONE, self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Write no more until what is written has been taken, for so long only."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.bounds.unread_s, self.transport.abort)

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

    def _wait_in(self, phase: Phase, seconds: float) -> None:
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
        elif self._phase is Phase.NONE:
            self.transport.close()
        else:
            self._end(408, f"The request was not whole after {seconds:g} s. Send it again.")

    def _end(self, status: int, detail: str) -> None:
        """Say why, where that is the answer that the client waits for, and close."""
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
        if self._phase is Phase.BODY and self.cycle.scope is self.scope:
            return not self.cycle.response_started
        return self.cycle.response_complete

    def _refuse_or_make_room(self) -> str:
        """Give the words for a connection too many, or none where another makes room for it."""
        for place, most in self._shares.items():
            if self.held[place] > most:
                neighbours = (other for other in self._waiting() if place in other._shares)
                return "" if _let_go_oldest(neighbours) else _full("Your network", most)
        if len(self.connections) > (most := self.bounds.connections):
            return "" if _let_go_oldest(self._waiting()) else _full("The arena", most)
        return ""

    def _waiting(self) -> "Iterator[BoundedProtocol]":
        """Give the others without a whole request; a body has as long as headers have."""
        late = self.loop.time() - self.bounds.header_s
        for other in self.connections:
            if not isinstance(other, BoundedProtocol) or other is self:
                continue
            early = other._phase in (Phase.NONE, Phase.HEADERS)
            slow = other._phase is Phase.BODY and other._since < late
            if (early or slow) and not other.transport.is_closing():
                yield other

    def _too_long(self) -> str:
        most = self.bounds.header_bytes
        return f"A request's headers may have {most:,} bytes. Send fewer, or clear your cookies."


def _let_go_oldest(waiting: Iterable[BoundedProtocol]) -> bool:
    """Close the connection that has waited longest; tell whether there was one."""
    oldest = min(waiting, key=lambda one: one._since, default=None)
    if oldest is not None:
        oldest.transport.abort()
    return oldest is not None


def _full(who: str, most: int) -> str:
    return f"{who} has {most:,} connections and may have no more. Try again in a minute."
