"""What every request passes: who asks, and what a browser may do with the answer."""

from http.cookies import SimpleCookie

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arena.guard.identity import COOKIE, MAX_AGE_S, Identity

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

FIRST_CONTACT = {("GET", "/"), ("POST", "/api/v1/battles")}
"""Where a visitor without a cookie is given one; the reading pages stay cacheable."""


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


class Visitors:
    """Puts the voter of a request into ``request.state.voter``, with a new cookie at need."""

    def __init__(self, app: ASGIApp, identity: Identity) -> None:
        self.app = app
        self.identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its voter."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cookie = HTTPConnection(scope).cookies.get(COOKIE)
        voter = self.identity.read(cookie)
        header = None
        if voter is None and (scope["method"], scope["path"]) in FIRST_CONTACT:
            cookie = self.identity.issue()
            voter = self.identity.read(cookie)
            header = _set_cookie(cookie, secure=scope["scheme"] == "https")
        scope.setdefault("state", {})["voter"] = voter

        async def greeting(message: Message) -> None:
            if header and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", header)
            await send(message)

        await self.app(scope, receive, greeting)


def _set_cookie(value: str, *, secure: bool) -> str:
    cookie: SimpleCookie = SimpleCookie({COOKIE: value})
    morsel = cookie[COOKIE]
    morsel["path"] = "/"
    morsel["max-age"] = MAX_AGE_S
    morsel["httponly"] = True
    morsel["samesite"] = "Lax"
    morsel["secure"] = secure
    return morsel.OutputString()
