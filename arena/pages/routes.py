"""Addresses of the reading pages, and what a browser may keep of them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.domain.battle import Pacing
from arena.domain.board import Board, PastVote
from arena.domain.voter import Voter
from arena.pages.rendering import error_page, leaderboard_page, method_page, votes_page

STYLESHEET = Path(__file__).parent / "static" / "pages.css"
READ = ["GET", "HEAD"]
NO_POLICY = "There is no board of that policy. Open the leaderboard without one."


def utc_now() -> datetime:
    """Time now, in UTC."""
    return datetime.now(UTC)


def revalidated(request: Request, body: str, media_type: str = "text/html") -> Response:
    """Response that a browser may keep but asks about each time: 304 while it is the same.

    The tag is the hash of the body, so it also changes when "2 minutes ago" does.
    """
    tag = f'W/"{sha256(body.encode()).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def pages_router(
    *,
    board: Callable[[], Board],
    my_votes: Callable[[Voter], Sequence[PastVote]],
    voter_of: Callable[[Request], Voter | None],
    others: Mapping[str, Callable[[], Board]] = MappingProxyType({}),
    arena_name: str = "Arena",
    pacing: Pacing = Pacing.PACED,
    now: Callable[[], datetime] = utc_now,
) -> APIRouter:
    """Routes of the reading pages and of their stylesheet, ``/look/pages.css``.

    Parameters
    ----------
    board : callable
        The leaderboard as it stands; called for each page view, so it should be kept ready.
    my_votes : callable
        Votes of a voter, in any order.
    voter_of : callable
        Who asks, or None for a browser without a pseudonym.
    others : mapping of str to callable
        Boards that are shown only when asked for, by the name of their policy.
    pacing : Pacing
        How battles release their answers, for the method page.
    """
    router = APIRouter(include_in_schema=False)

    @router.api_route("/leaderboard", methods=READ)
    def leaderboard(request: Request, policy: str | None = None) -> Response:
        chosen = board if policy is None else others.get(policy)
        if chosen is None:
            page = error_page(404, advice=NO_POLICY, arena_name=arena_name)
            return HTMLResponse(page, status_code=404)
        page = leaderboard_page(chosen(), now=now(), arena_name=arena_name)
        return revalidated(request, page)

    @router.api_route("/votes", methods=READ)
    def votes(request: Request) -> Response:
        voter = voter_of(request)
        past = my_votes(voter) if voter else None
        page = votes_page(past, now=now(), arena_name=arena_name)
        return HTMLResponse(page, headers={"Cache-Control": "no-store, private"})

    @router.api_route("/method", methods=READ)
    def method(request: Request) -> Response:
        return revalidated(request, method_page(board(), pacing=pacing, arena_name=arena_name))

    @router.api_route("/look/pages.css", methods=READ)
    def stylesheet(request: Request) -> Response:
        return revalidated(request, STYLESHEET.read_text(encoding="utf-8"), "text/css")

    @router.api_route("/leaderboard/", methods=READ)
    @router.api_route("/votes/", methods=READ)
    @router.api_route("/method/", methods=READ)
    def without_slash(request: Request) -> Response:
        return RedirectResponse(request.url.path.rstrip("/"), status_code=308)

    return router
