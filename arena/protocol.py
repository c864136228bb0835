"""HTTP with the bounds that uvicorn lacks: seconds, bytes and connections."""

from asyncio import BaseTransport, TimerHandle
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from arena.api.problems import refusal


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
    connections : int
        At a time, in one process.
    """

    header_s: float
    body_s: float
    unread_s: float
    header_bytes: int
    connections: int


class Phase(Enum):
    """How far the latest request of a connection has come."""

    NONE = auto()
    HEADERS = auto()
    BODY = auto()
    WHOLE = auto()


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    When there are too many, a new one takes the place of the one that has waited longest without
    headers that are whole. Where all are being answered, the new one is refused in words.
    """

    bounds: ClassVar[Bounds]

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for a request, for so long only."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._timer: TimerHandle | None = None
        self._unread: TimerHandle | None = None
        self._header_bytes = 0
        self._wait_in(Phase.NONE, self.bounds.header_s)
        if len(self.connections) > self.bounds.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        if self._unread:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have become too long or nothing begins a request."""
        before = self._phase
        super().data_received(data)
        if self._phase is Phase.NONE and self._timer is None:
            self._wait_in(Phase.NONE, self.bounds.header_s)
        elif before is self._phase is Phase.HEADERS:
            self._header_bytes += len(data)
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
        most = self.bounds.connections
        if size > self.bounds.header_bytes:
            self.app = refusal(431, self._too_long())
        elif len(self.connections) > most:
            self.app = refusal(
                503,
                f"The arena has {most:,} connections and takes no more. Try again in a minute.",
            )
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Let the answer take as long as it takes."""
        self._stop_waiting()
        self._phase = Phase.WHOLE
        super().on_message_complete()

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
        """Say why, unless an answer is under way, and close the connection."""
        answering = self.cycle is not None and self.cycle.response_started
        if not answering or self.cycle.response_complete:
            answer = refusal(status, detail)
            headers = b"".join(b"%b: %b\r\n" % header for header in answer.raw_headers)
            self.transport.write(STATUS_LINE[status] + headers + b"\r\n" + bytes(answer.body))
        self.transport.close()

    def _make_room(self) -> None:
        waiting = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol)
            and other is not self
            and other._phase in (Phase.NONE, Phase.HEADERS)
        ]
        if waiting:
            oldest = min(waiting, key=lambda other: other._since)
            self.connections.discard(oldest)
            oldest.transport.close()

    def _too_long(self) -> str:
        most = self.bounds.header_bytes
        return f"A request's headers may have {most:,} bytes. Send fewer, or clear your cookies."
