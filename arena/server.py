"""The process that serves: its socket, and how it ends."""

import asyncio
import gc
import logging
import resource
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType

import uvicorn

from arena.bounded_http import BoundedProtocol, Bounds
from arena.errors import SettingsError
from arena.guard.access import Trust
from arena.settings import Settings

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""How long an idle connection is kept: one that is let go while a vote comes in over it fails.

People vote some seconds after they have read, so uvicorn's 5 s would be about the worst.
"""
LAST_STREAMS_S = 2
"""How long open streams may go on once all battles have ended."""

SWITCH_S = 0.0001
"""How soon a thread that waits for the interpreter asks for it.

Reading what comes, the loop lets go of it for moments only. A thread that begins anew to wait with
each of them comes to ask seldom at Python's 5 ms: under floods from endpoints, requests that are
answered in a thread waited up to a second.
"""

NEW_OBJECTS = 10_000
"""Made and not gone, before Python looks for cycles among them; its own number is 700.

Many battles at once make that often, for a fifteenth of the processor's time. To look at so many
takes a millisecond or two.
"""

OTHER_FILES = 200
"""Files that a process opens beside its connections to clients and to endpoints."""

UNREADABLE = "Invalid HTTP request received."
"""What uvicorn logs of each, as often as anybody cares to send one."""

Drain = Callable[[], Coroutine[None, None, None]]


def listen(settings: Settings) -> socket.socket:
    """Take the port before anything slow is done, so that a taken one is said at once."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)  # who comes before the rest is ready waits, and is not refused
    except OSError as error:
        listener.close()
        msg = (
            f"Cannot serve on {settings.host}:{settings.port}: {error.strerror}. "
            "Choose another port with --port, or ARENA_PORT."
        )
        raise SettingsError(msg) from error
    return listener


def run(
    app: Callable[..., object], drain: Drain, settings: Settings, listener: socket.socket
) -> None:
    """Serve until a signal, and then until ``drain`` has let the running battles end."""
    from rating.tables.duckdb_engine import let_go  # a port in use is said without this wait

    allow_files(settings)
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != UNREADABLE)
    # Gradio looks for it at each update, in vain; and the page shows no plots of its own.
    sys.modules.setdefault("matplotlib", None)  # type: ignore[arg-type]
    gc.collect()
    gc.freeze()  # what is loaded stays: to look through it for garbage would stall everybody
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
    """Say how to serve, with nothing logged."""
    bounds = Bounds(
        header_s=settings.header_timeout_s,
        body_s=settings.body_timeout_s,
        unread_s=settings.unread_timeout_s,
        header_bytes=settings.max_header_bytes,
        connections=settings.connections,
        connections_per_address=settings.connections_per_address,
        trust=Trust(proxies=settings.proxy_networks()),
    )
    protocol = type("Protocol", (BoundedProtocol,), {"bounds": bounds, "held": Counter()})
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
