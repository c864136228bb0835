"""What every request passes: its form, what a browser may do with the response, and the log."""

import logging
import time
import uuid
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from arena.api.problems import from_http, language_of, too_large
from arena.domain.words import LANGUAGE_COOKIE, Language, chosen_language
from arena.guard.access import UNPRINTABLE, Trust, take_forwarded
from arena.guard.identity import cookie_called
from rating.sentences import Sentence

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)
"""Nothing outside is fetched, whatever a model writes; inline is what Gradio itself needs."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}

ALLOWED_ORIGIN = "allowed_origin"
"""Where a route writes, in the state of a request, whose pages may read its answer."""

WORDED = ("text/html", "application/problem+json")
"""What is in the language of the visitor."""

logger = logging.getLogger(__name__)

CONTROL_CHARACTER = Sentence("The address contains a control character. Remove it.")

LEFT = 499
"""Status, in logs and figures, of a request whose client left before it was answered."""
Observe = Callable[[str, int, float], None]
"""Takes path template, status and seconds."""


class SecurityHeaders:
    """Adds the content security policy and its companions to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and guard its answer."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, guarded)


class OriginHeaders:
    """Lets pages of an origin read an answer, without cookies, where its route allows that."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and name in its answer whose pages may read it."""

        async def allowing(message: Message) -> None:
            origin = scope.get("state", {}).get(ALLOWED_ORIGIN)
            if origin and message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["access-control-allow-origin"] = origin
                headers.add_vary_header("Origin")
            await send(message)

        await self.app(scope, receive, allowing)


class BodyLimit:
    """Refuses bodies that are too large, by what they say and by what comes."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it says that it is too large."""
        length = Headers(scope=scope).get("content-length", "") if scope["type"] == "http" else ""
        if length.isdigit() and int(length) > self.most:
            await from_http(too_large(self.most), language_of(scope))(scope, receive, send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.most:
                raise too_large(self.most)
            return message

        await self.app(scope, counted, send)


class Entrance:
    """Refuses malformed paths, reads what a proxy forwards, and sets the cookie and caching.

    Who may ask for a route is declared there: see `arena.guard.access`.
    """

    def __init__(self, app: ASGIApp, trust: Trust) -> None:
        self.app = app
        self.trust = trust

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer why not."""
        if scope["type"] == "websocket":  # no route is a websocket, and none may become one
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state |= {"voter": None, "person": None, "private": False, "greeting": None}
        try:
            if UNPRINTABLE.search(scope["path"]):
                raise HTTPException(400, CONTROL_CHARACTER)
            state["proxy_user"] = take_forwarded(scope, self.trust)
        except HTTPException as refusal:
            await from_http(refusal, language_of(scope))(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                greeting = state["greeting"]
                if greeting and (scope["method"] == "GET" or message["status"] == 201):
                    headers.append("set-cookie", greeting)
                if state["private"]:
                    headers["cache-control"] = "private, no-store"
            await send(message)

        await self.app(scope, receive, marked)


class Languages:
    """Chooses the language of what people read, as ``request.state.language``."""

    def __init__(self, app: ASGIApp, default: Language) -> None:
        self.app = app
        self.default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its language, and say of the answer what it depends on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        language = scope.setdefault("state", {})["language"] = self._choice(scope)

        async def naming(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                same = message["status"] == 304 and not scope["path"].startswith("/look/")
                if same or headers.get("content-type", "").startswith(WORDED):
                    headers.add_vary_header("Accept-Language, Cookie")
                    headers["content-language"] = language
            await send(message)

        await self.app(scope, receive, naming)

    def _choice(self, scope: Scope) -> Language:
        headers = Headers(scope=scope)
        cookie = cookie_called(LANGUAGE_COOKIE, headers.getlist("cookie"))
        accepted = ",".join(headers.getlist("accept-language"))
        is_program = scope["path"].startswith("/api/") and not accepted
        return chosen_language(cookie, accepted, Language.EN if is_program else self.default)


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
        request_id, status, began = uuid.uuid4().hex, LEFT, time.monotonic()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        with bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, noting)
            except Exception:
                status = 500 if status == LEFT else status
                raise
            finally:
                self._note(scope, status, time.monotonic() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = _template(scope)
        self.observe(route, status, seconds)
        fields: dict[str, object] = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 4),
        }
        if battle := scope.get("path_params", {}).get("battle_id"):
            fields["battle"] = battle
        logger.log(_level(route, status), "Request", extra=fields)


def _template(scope: Scope) -> str:
    """Give the path as the route spells it; what no route of ours knows has no name."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path else "other"


def _level(route: str, status: int) -> int:
    if status == 503:  # full, or restarting: the visitor is told when to try again
        return logging.WARNING
    if status >= 500:
        return logging.ERROR
    return logging.INFO if route.startswith("/api/") else logging.DEBUG
