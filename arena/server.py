"""The process that serves: its socket, and how it ends."""

import asyncio
import socket
import sys
from collections.abc import Callable, Coroutine
from types import FrameType

import uvicorn

from arena.errors import SettingsError
from arena.settings import Settings

KEEP_ALIVE_S = 75
"""How long an idle connection is kept: one that is let go while a vote comes in over it fails.

People vote some seconds after they have read, so uvicorn's 5 s would be about the worst.
"""
LAST_STREAMS_S = 2
"""How long open streams may go on once all battles have ended."""

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
            "Choose another port with --port."
        )
        raise SettingsError(msg) from error
    return listener


def run(
    app: Callable[..., object], drain: Drain, settings: Settings, listener: socket.socket
) -> None:
    """Serve until a signal, and then until ``drain`` has let the running battles end."""
    # Gradio looks for it at each update, in vain; and the page shows no plots of its own.
    sys.modules.setdefault("matplotlib", None)  # type: ignore[arg-type]
    _Server(configured(app, settings), drain).run(sockets=[listener])


def configured(app: Callable[..., object], settings: Settings) -> uvicorn.Config:
    """Say how to serve, with nothing logged."""
    return uvicorn.Config(
        app,
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
