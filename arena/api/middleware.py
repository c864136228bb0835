"""What every request passes: errors as answers, security headers, languages and logs.

`TABLE` is the one place where errors of the arena become statuses, and `_problem` the only one
where an error is put into a language: errors are answered as RFC 9457 problem documents. The
classes at the end are the layers of ASGI.
"""

import logging
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from arena.catalogue import LANGUAGE_COOKIE, Language, chosen_language, words_in
from arena.errors import (
    AlreadyVotedError,
    ArenaError,
    BadComparisonError,
    BadPromptError,
    BusyError,
    ClosingError,
    FullError,
    LimitError,
    NotReadyError,
    PausedSourceError,
    PlayError,
    PoolingError,
    RatingRefusedError,
    SentBeforeError,
    StoreError,
    UnknownBattleError,
    UnknownSourceError,
    UnknownStudyError,
)
from arena.guard.access import SAFE, UNPRINTABLE, NotLetInError, Trust, take_forwarded
from arena.guard.limits import cookie_called
from rating.sentences import Sentence

# Errors

logger = logging.getLogger(__name__)

TABLE: dict[type[ArenaError], tuple[int, str]] = {
    BadPromptError: (422, Sentence("The prompt cannot be answered")),
    UnknownBattleError: (404, Sentence("No such battle")),
    NotReadyError: (409, Sentence("Not ready for a vote")),
    AlreadyVotedError: (409, Sentence("Already voted")),
    UnknownStudyError: (404, Sentence("No such study")),
    RatingRefusedError: (409, Sentence("Not rated")),
    UnknownSourceError: (401, Sentence("Not a source")),
    PausedSourceError: (403, Sentence("Paused")),
    BadComparisonError: (422, Sentence("No comparison")),
    SentBeforeError: (409, Sentence("Sent before")),
    LimitError: (429, Sentence("Too many battles")),
    BusyError: (429, Sentence("Too many at a time")),
    FullError: (503, Sentence("Full")),
    ClosingError: (503, Sentence("Restarting")),
    StoreError: (503, Sentence("Not saved")),
}
"""Status and title of each error that a visitor can meet."""

NOT_SAVED = Sentence(
    "Nothing was saved: the database does not answer. Send the same request again."
)
FAULT = Sentence("Something went wrong on our side. Nothing was counted.")
OURS = Sentence("A fault of ours")
UNREADABLE = Sentence("The request cannot be read")


class Plain(BaseModel):
    """A body of an answer, read from the plain values of the arena by their names."""

    model_config = ConfigDict(from_attributes=True)


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Already voted",
                "status": 409,
                "detail": "You have already voted on this battle: A was better.",
            }
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe problem answers for a route's documentation."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"model": Problem, "content": content, "description": "Problem"}
        for status in statuses
    }


def install(
    app: FastAPI,
    missing: Callable[[Request], Response],
    not_let_in: Callable[[Request, str], Response],
) -> None:
    """Answer every error with a problem document, and some of a browser with a page.

    The handlers are async so that no refusal takes a thread. The page for an unknown address
    takes one, because it reads the database.

    Parameters
    ----------
    missing : callable
        Page for a browser at an address without one, or that takes a form alone.
    not_let_in : callable
        Page for a visitor without the required role, with the reason.
    """

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path, accepts = request.url.path, request.headers.get("accept", "")
        is_page = "text/html" in accepts and not path.startswith(("/api/", "/health/"))
        is_act = path.startswith("/admin/") and request.method in SAFE
        if is_page and is_act and error.status_code == 405:
            panel = path.rpartition("/")[0]
            return RedirectResponse(panel if panel != "/admin" else "/admin/voters", 303)
        if is_page and error.status_code in (404, 405):
            return await run_in_threadpool(missing, request)
        if is_page and isinstance(error, NotLetInError):
            if error.status_code == 401:
                query = f"?{request.url.query}" if request.url.query else ""
                wanted = quote(request.url.path + query)
                return RedirectResponse(f"/sign-in?to={wanted}", 303)
            if request.method in SAFE:
                return not_let_in(request, error.detail)
        if error.status_code == 204:
            return Response(status_code=204)
        return _from_http(error, language_of(request.scope))

    app.add_exception_handler(ArenaError, _arena_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, _fault)


def _too_large(most: int) -> HTTPException:
    """Refuse a request's body of more than ``most`` bytes."""
    detail = Sentence("A request may have %(n)s bytes. Shorten the prompt.", n=most)
    return HTTPException(413, detail)


def language_of(scope: Scope) -> Language:
    """Give the language that a request asks for; a program that asks for none reads English."""
    language: Language = scope.get("state", {}).get("language", Language.EN)
    return language


def _from_http(error: HTTPException, language: Language = Language.EN) -> JSONResponse:
    """Answer what the web framework refused."""
    phrase = HTTPStatus(error.status_code).phrase
    answer = _problem(error.status_code, phrase, error.detail, language)
    answer.headers.update(error.headers or {})
    return answer


def refusal(status: int, detail: str) -> JSONResponse:
    """Refuse a request that the arena does not look at, and its connection with it."""
    return _from_http(HTTPException(status, detail, {"Connection": "close"}))


def _problem(status: int, title: str, detail: str, language: Language) -> JSONResponse:
    """Write a problem document: the only place where an error is put into a language."""
    words = words_in(language)
    body = Problem(title=words(title), status=status, detail=words(detail))
    return JSONResponse(body.model_dump(), status, media_type="application/problem+json")


async def _arena_error(request: Request, error: Exception) -> JSONResponse:
    """Answer what the arena itself refused, or failed at."""
    language = language_of(request.scope)
    status, title = next(
        (row for kind, row in TABLE.items() if isinstance(error, kind)), (500, OURS)
    )
    if isinstance(error, PlayError):
        answer = _problem(status, title, error.args[0], language)
        if isinstance(error, LimitError):
            answer.headers["Retry-After"] = str(error.wait_s(datetime.now(UTC)))
        return answer
    logger.error("%s", error)
    if isinstance(error, PoolingError):  # of readiness: whoever deploys the arena reads it
        return _problem(status, title, str(error), language)
    return _problem(status, title, NOT_SAVED if status == 503 else FAULT, language)


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return _problem(422, UNREADABLE, f"{where}: {first['msg']}.", language_of(request.scope))


async def _fault(request: Request, error: Exception) -> JSONResponse:
    logger.error("A fault of ours", exc_info=error)
    return _problem(500, OURS, FAULT, language_of(request.scope))


# Layers

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)
"""Nothing outside is fetched and no script in a page runs, whatever a model writes; inline styles
are what Gradio needs."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}

ALLOWED_ORIGIN = "allowed_origin"
"""Where a route writes, in the state of a request, whose pages may read its answer."""

WORDED = ("text/html", "application/problem+json")
"""What is in the language of the visitor."""


CONTROL_CHARACTER = Sentence("The address contains a control character. Remove it.")

LEFT = 499
"""Status, in logs and figures, of a request whose client left before it was answered."""
Observe = Callable[[str, int, float], None]
"""Takes path template, status and seconds."""


def _edited(send: Send, edit: Callable[[int, MutableHeaders], None]) -> Send:
    """Give what sends an answer once its headers were changed, by its status."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            edit(message["status"], MutableHeaders(scope=message))
        await send(message)

    return sending


class SecurityHeaders:
    """Adds the content security policy and its companions to every answer.

    It also lets pages of an origin read an answer, without cookies, where its route allows that,
    and names the version of the battle page, so that one that was loaded before an update sees it.
    """

    def __init__(self, app: ASGIApp, version: str = "") -> None:
        self.app = app
        self.headers = HEADERS | ({"x-arena-page": version} if version else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, guard its answer, and name whose pages may read it."""

        def guard(_status: int, headers: MutableHeaders) -> None:
            if origin := scope.get("state", {}).get(ALLOWED_ORIGIN):
                headers["access-control-allow-origin"] = origin
                headers.add_vary_header("Origin")
            for name, value in self.headers.items():
                headers.setdefault(name, value)

        await self.app(scope, receive, _edited(send, guard))


class BodyLimit:
    """Refuses bodies that are too large, by what they say and by what comes."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it says that it is too large."""
        length = Headers(scope=scope).get("content-length", "") if scope["type"] == "http" else ""
        if length.isdigit() and int(length) > self.most:
            await _from_http(_too_large(self.most), language_of(scope))(scope, receive, send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.most:
                raise _too_large(self.most)
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
            await _from_http(refusal, language_of(scope))(scope, receive, send)
            return

        def mark(status: int, headers: MutableHeaders) -> None:
            greeting = state["greeting"]
            if greeting and (scope["method"] == "GET" or status == 201):
                headers.append("set-cookie", greeting)
            if state["private"]:
                headers["cache-control"] = "private, no-store"

        await self.app(scope, receive, _edited(send, mark))


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

        def name(status: int, headers: MutableHeaders) -> None:
            same = status == 304 and not scope["path"].startswith("/look/")
            if same or headers.get("content-type", "").startswith(WORDED):
                headers.add_vary_header("Accept-Language, Cookie")
                headers["content-language"] = language

        await self.app(scope, receive, _edited(send, name))

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

        def note(sent: int, headers: MutableHeaders) -> None:
            nonlocal status
            status, headers["x-request-id"] = sent, request_id

        with bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, _edited(send, note))
            except Exception:
                status = 500 if status == LEFT else status
                raise
            finally:
                seconds = time.monotonic() - began
                path = getattr(scope.get("route"), "path", None)
                route = str(path) if path else "other"
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


def _level(route: str, status: int) -> int:
    if status == 503:  # full, or restarting: the visitor is told when to try again
        return logging.WARNING
    if status >= 500:
        return logging.ERROR
    return logging.INFO if route.startswith("/api/") else logging.DEBUG
