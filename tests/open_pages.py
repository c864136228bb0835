"""Pages served by themselves, without an arena that decides who may ask for them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import httpx2
import uvicorn
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.staticfiles import StaticFiles

from arena.app import STATIC
from arena.domain.board_view import Board
from arena.domain.vote import DEFAULT, Voter
from arena.guard import access
from arena.pages.routes import pages_router
from arena.parts import Parts, build
from arena.settings import read_settings
from tests.sqlite import new_sqlite

EVERY = (access.VISITORS, access.PERSONAL, access.FRONT_PAGE, access.EVERYBODY)


@contextmanager
def parts_of(board: Board | None = None, **settings: object) -> Iterator[Parts]:
    """Build an arena's parts on a database of its own; its leaderboard is a board that is given.

    Battles behind the numbers are not shown, unless a setting says so.
    """
    with TemporaryDirectory() as folder:
        given = {"database": new_sqlite(Path(folder)), "show_battles": False} | settings
        parts = build(read_settings(**given))
        boards: Any = {DEFAULT.name: SimpleNamespace(read=lambda **_: board)}
        with closing(parts.store):
            yield replace(parts, boards=boards, labels={}) if board else parts


def open_pages(router: APIRouter) -> FastAPI:
    """Make an application of a router's pages, which everybody may ask for.

    Who asks is the voter whose id is in the cookie `voter`.
    """
    app = FastAPI()
    app.include_router(router)
    for declared in EVERY:
        assert declared.dependency
        app.dependency_overrides[declared.dependency] = _ask
    return app


async def _ask(request: Request) -> None:
    name = request.cookies.get("voter")
    request.state.voter = Voter(name) if name else None


@contextmanager
def served(app: FastAPI) -> Iterator[httpx2.Client]:
    """Serve on a free loopback port for as long as the block lasts."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = Thread(target=server.run)
    thread.start()
    give_up = monotonic() + 60
    while not server.started and monotonic() < give_up:
        sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def served_pages(board: Board, now: datetime, **changes: Any) -> Iterator[httpx2.Client]:
    """Serve the reading pages of a board, with the styles of the battle page."""
    with parts_of(board) as parts:
        app = open_pages(pages_router(replace(parts, now=lambda: now, **changes)))
        app.mount("/look", StaticFiles(directory=STATIC))
        with served(app) as client:
            yield client
