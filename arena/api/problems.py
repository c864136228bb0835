"""Errors as answers: one table from what the arena raises to RFC 9457 problem documents."""

import logging
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
from starlette.exceptions import HTTPException
from starlette.types import Scope

from arena.catalogue import words_in
from arena.domain.words import Language
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
    RatingRefusedError,
    SentBeforeError,
    StoreError,
    UnknownBattleError,
    UnknownSourceError,
    UnknownStudyError,
)
from arena.guard.access import SAFE, NotLetInError
from rating.sentences import Sentence

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
        Page for a user whose role is not enough, with the reason.
    """

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        is_page = reads_pages(request)
        if is_page and error.status_code in (404, 405):
            return await run_in_threadpool(missing, request)
        if is_page and isinstance(error, NotLetInError):
            if error.status_code == 401:
                query = f"?{request.url.query}" if request.url.query else ""
                wanted = quote(request.url.path + query)
                return RedirectResponse(f"/sign-in?to={wanted}", 303)
            if request.method in SAFE:
                return not_let_in(request, error.detail)
        return _http_error(error, language_of(request.scope))

    app.add_exception_handler(ArenaError, _arena_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, _fault)


def too_large(most: int) -> HTTPException:
    """Refuse a request's body of more than ``most`` bytes."""
    detail = Sentence("A request may have %(n)s bytes. Shorten the prompt.", n=most)
    return HTTPException(413, detail)


def language_of(scope: Scope) -> Language:
    """Give the language that a request asks for; a program that asks for none reads English."""
    language: Language = scope.get("state", {}).get("language", Language.EN)
    return language


def from_http(error: HTTPException, language: Language = Language.EN) -> JSONResponse:
    """Answer what the web framework refused."""
    phrase = HTTPStatus(error.status_code).phrase
    answer = _problem(error.status_code, phrase, error.detail, language)
    answer.headers.update(error.headers or {})
    return answer


def refusal(status: int, detail: str) -> JSONResponse:
    """Refuse a request that the arena does not look at, and its connection with it."""
    return from_http(HTTPException(status, detail, {"Connection": "close"}))


def _problem(status: int, title: str, detail: str, language: Language) -> JSONResponse:
    """Write a problem document: the only place where an error is put into a language."""
    words = words_in(language)
    body = Problem(title=words(title), status=status, detail=words(detail))
    return JSONResponse(body.model_dump(), status, media_type="application/problem+json")


async def _arena_error(request: Request, error: Exception) -> JSONResponse:
    return from_arena(error, language_of(request.scope))


def from_arena(error: Exception, language: Language) -> JSONResponse:
    """Answer what the arena itself refused, or failed at."""
    status, title = next(
        (row for kind, row in TABLE.items() if isinstance(error, kind)), (500, OURS)
    )
    if isinstance(error, PlayError):
        answer = _problem(status, title, error.args[0], language)
        answer.headers.update(_when_to_retry(error))
        return answer
    logger.error("%s", error)
    return _problem(status, title, NOT_SAVED if status == 503 else FAULT, language)


def _when_to_retry(error: PlayError) -> dict[str, str]:
    if not isinstance(error, LimitError):
        return {}
    return {"Retry-After": str(error.wait_s(datetime.now(UTC)))}


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return _problem(422, UNREADABLE, f"{where}: {first['msg']}.", language_of(request.scope))


def reads_pages(request: Request) -> bool:
    """Tell a browser on its way to a page from a program, and from a part of a page."""
    is_page = not request.url.path.startswith(("/api/", "/health/"))
    return is_page and "text/html" in request.headers.get("accept", "")


def _http_error(error: HTTPException, language: Language) -> Response:
    if error.status_code == 204:
        return Response(status_code=204)
    return from_http(error, language)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    logger.error("A fault of ours", exc_info=error)
    return _problem(500, OURS, FAULT, language_of(request.scope))
