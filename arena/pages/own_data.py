"""Addresses at which people hide, erase or download what is theirs."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.domain.vote import Voter
from arena.errors import UnknownBattleError
from arena.guard.access import PERSONAL
from arena.pages.rendering import erase_page
from arena.pages.visit import READ, Visit
from arena.play.own_data import OwnData

PRIVATE = {"Cache-Control": "private, no-store"}
AS_FILE = PRIVATE | {"Content-Disposition": 'attachment; filename="my-battles.json"'}


def own_data_router(
    data: OwnData,
    voter_of: Callable[[Request], Voter | None],
    visit_of: Callable[[Request], Visit],
) -> APIRouter:
    """Routes of what belongs to whoever asks: of nobody else, and of nobody without a cookie."""
    router = APIRouter(include_in_schema=False, dependencies=[PERSONAL])

    def asking(request: Request) -> Voter:
        voter = voter_of(request)
        if voter is None:
            raise HTTPException(404)
        return voter

    @router.post("/votes/{battle_id}/hidden")
    def hide(request: Request, battle_id: str, hidden: Annotated[bool, Form()] = True) -> Response:
        voter = voter_of(request)
        if voter is None:
            raise UnknownBattleError
        data.hide(battle_id, voter, hidden=hidden)
        return RedirectResponse(f"/votes#{battle_id}", 303, PRIVATE)

    @router.api_route("/votes/erase", methods=READ)
    def before(request: Request) -> Response:
        page = erase_page(data.extent(asking(request)), visit_of(request), erased=False)
        return HTMLResponse(page, headers=PRIVATE)

    @router.post("/votes/erase")
    def erase(request: Request, sure: Annotated[bool, Form()] = False) -> Response:
        voter = asking(request)
        if not sure:
            return before(request)
        page = erase_page(data.erase(voter), visit_of(request), erased=True)
        return HTMLResponse(page, headers=PRIVATE)

    @router.api_route("/votes.json", methods=READ)
    def download(request: Request) -> Response:
        body = json.dumps(
            data.download(asking(request)), ensure_ascii=False, indent=1, default=_moment
        )
        return Response(body, media_type="application/json", headers=AS_FILE)

    return router


def _moment(value: object) -> str:
    assert isinstance(value, datetime), f"{value!r} is no value of JSON"
    return value.isoformat()
