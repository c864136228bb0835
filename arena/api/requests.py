"""Every request in the log and in the figures, by the template of its path."""

import logging
import time
import uuid
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

logger = logging.getLogger(__name__)

Observe = Callable[[str, int, float], None]
"""Takes path template, status and seconds."""


class Requests:
    """Gives each request an id, and notes how it was answered.

    Of the address only the template is kept: ids, queries and session hashes are not.
    """

    def __init__(self, app: ASGIApp, observe: Observe) -> None:
        self.app = app
        self.observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, status, began = uuid.uuid4().hex, 500, time.monotonic()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        with bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, noting)
            finally:
                self._note(scope, status, time.monotonic() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = _template(scope)
        self.observe(route, status, seconds)
        said: dict[str, object] = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 4),
        }
        if battle := scope.get("path_params", {}).get("battle_id"):
            said["battle"] = battle
        logger.log(_level(route, status), "Request", extra=said)


def _template(scope: Scope) -> str:
    """Give the path as the route spells it; what no route of ours knows has no name."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path else "other"


def _level(route: str, status: int) -> int:
    if status >= 500:
        return logging.ERROR
    return logging.INFO if route.startswith("/api/") else logging.DEBUG
