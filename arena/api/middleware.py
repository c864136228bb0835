"""What every request passes: who asks, what a browser may do with the answer, and the log."""

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from arena.api.origins import NO_COOKIES, SAFE, RequestFacts, Trust, decide, take_forwarded
from arena.api.problems import from_arena, from_http, language_of, reads_pages, too_large
from arena.domain.vote import Voter
from arena.domain.words import LANGUAGE_COOKIE, Language, chosen_language
from arena.errors import StoreError
from arena.guard.identity import Addresses, cookie_called, cookie_header, cookie_name
from arena.guard.people import Asker, People

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

BATTLES = "/api/v1/battles"
"""Below it every answer is for the one who asks."""

WORDED = ("text/html", "application/problem+json")
"""What is in the language of the visitor."""

logger = logging.getLogger(__name__)

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


class Visitors:
    """Lets in whom `decide` lets in, as ``request.state.voter``, with a new cookie at need.

    Whom the arena knows is ``request.state.person`` besides.
    """

    def __init__(
        self,
        app: ASGIApp,
        people: People,
        addresses: Addresses,
        trust: Trust,
        not_let_in: Callable[[Request, str], Response],
    ) -> None:
        self.app = app
        self.people = people
        self.addresses = addresses
        self.trust = trust
        self.not_let_in = not_let_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its voter, or answer why not."""
        if scope["type"] == "websocket":  # a way in on which nobody asks who comes stays shut
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            header = await self._let_in(scope)
        except HTTPException as refusal:
            await self._refused(refusal, Request(scope))(scope, receive, send)
            return
        except StoreError as error:  # who asks is not known: no handler of errors is this far out
            await from_arena(error, language_of(scope))(scope, receive, send)
            return

        async def greeting(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if header and (scope["method"] == "GET" or message["status"] == 201):
                    headers.append("set-cookie", header)
                _keep_private(scope["path"], headers)
            await send(message)

        await self.app(scope, receive, greeting)

    async def _let_in(self, scope: Scope) -> str | None:
        """Write down who asks; gives the header that sets the cookie of somebody new.

        Raises
        ------
        HTTPException
            If the request is refused.
        StoreError
            If the database cannot tell who asks.
        """
        asker = await self._asker(scope, take_forwarded(scope, self.trust))
        role = asker.person.role if asker.person else None
        facts = RequestFacts.of(scope, known=asker.voter is not None, role=role)
        decision = decide(facts, self.trust)
        if decision.refusal:
            raise decision.refusal
        header = None
        if decision.greets:
            cookie = self.people.identity.issue()
            claim = self.people.identity.read(cookie)
            asker = Asker(Voter(claim.voter) if claim else None)
            header = cookie_header(scope["scheme"], cookie)
        state = scope.setdefault("state", {})
        state["voter"], state["person"] = self._placed(asker.voter, scope), asker.person
        return header

    async def _asker(self, scope: Scope, user: str | None) -> Asker:
        """Find out who asks: by the proxy's word before the cookie's."""
        if scope["path"].startswith(NO_COOKIES):
            return Asker()
        cookies = Headers(scope=scope).getlist("cookie")
        cookie = cookie_called(cookie_name(scope["scheme"]), cookies)
        claim = self.people.identity.read(cookie) if cookie else None
        if user is None and (claim is None or self.people.is_held(claim)):
            return self.people.asker(user, claim)
        return await run_in_threadpool(self.people.asker, user, claim)

    def _refused(self, refusal: HTTPException, request: Request) -> Response:
        """Answer why somebody is not let in; who heads for a page is led to the way in."""
        status, scope = refusal.status_code, request.scope
        if status == 401 and reads_pages(request):
            query = f"?{q.decode()}" if (q := scope["query_string"]) else ""
            wanted = quote(scope["path"] + query)
            return RedirectResponse(f"/sign-in?to={wanted}", 303, {"Cache-Control": "no-store"})
        if status == 403 and request.method in SAFE and reads_pages(request):
            return self.not_let_in(request, refusal.detail)
        return from_http(refusal, language_of(scope))

    def _placed(self, voter: Voter | None, scope: Scope) -> Voter | None:
        """Note where a voter asks from."""
        if voter is None or not (client := scope.get("client")):
            return voter
        return replace(
            voter,
            address=self.addresses.pseudonym(client[0]),
            network=self.addresses.network_pseudonym(client[0]),
        )


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


def _keep_private(path: str, headers: MutableHeaders) -> None:
    """Keep from the caches of others what is meant for one visitor."""
    if path == "/":
        headers["cache-control"] = "private"
    elif path.startswith(BATTLES):
        headers.setdefault("cache-control", "private, no-store")


def _template(scope: Scope) -> str:
    """Give the path as the route spells it; what no route of ours knows has no name."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path else "other"


def _level(route: str, status: int) -> int:
    if status >= 500:
        return logging.ERROR
    return logging.INFO if route.startswith("/api/") else logging.DEBUG
