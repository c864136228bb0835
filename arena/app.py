"""The web application: what its routes and pages are given, and what runs beside them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from arena.admin import room
from arena.api import problems
from arena.api.battle_routes import battles_router
from arena.api.middleware import (
    BodyLimit,
    Entrance,
    Languages,
    OriginHeaders,
    Requests,
    SecurityHeaders,
)
from arena.api.public_routes import Recent, public_router
from arena.api.source_routes import embed_router, sources_router
from arena.boards import leaderboard
from arena.boards.study import read_status
from arena.domain.board_view import Board, ShownBattle, ShownVotes
from arena.domain.model import Roster
from arena.domain.people import Perishable, Retention
from arena.domain.vote import APPLICATIONS, BEFORE_EXCLUSIONS, DEFAULT, POLICIES, Voter
from arena.errors import ClosingError, UnknownBattleError
from arena.guard.access import EVERYBODY, VISITORS, Access, Trust
from arena.guard.limits import Raters
from arena.pages.admin.room import admin_router
from arena.pages.routes import Exhibits, missing, not_let_in, pages_router
from arena.pages.sign_in import Doors, sign_in_router
from arena.pages.standings import Below, prepare
from arena.pages.studies import StudyDesk, studies_router
from arena.pages.visit import Visit, visit_to
from arena.parts import Parts, build
from arena.play import upkeep
from arena.play.labels import keep_labelling
from arena.play.own_data import OwnData
from arena.play.studies import Studies
from arena.play.topics import keep_releasing
from arena.settings import Settings, read_cards
from arena.store import retention, single_battles, studies, topics
from arena.store import roster as roster_rows
from arena.store.store import Store
from rating import __version__

FIRST_BOARD_S = 2.0
"""How long an arena that begins waits for its leaderboards before it serves without them."""

STATIC = Path(__file__).parent / "ui" / "static"

SENT_AS_IT_IS = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/json",
    "application/problem+json",
    "application/vnd.apache.parquet",
)
"""What is not compressed: pages, styles and scripts are, which hold no secret to be guessed by
the length of an answer. Events are sent as they come, and what the API answers is short."""


def create_app(settings: Settings, roster: Roster | None = None) -> FastAPI:
    """Make the arena's ASGI application, for a roster if not for the settings' own.

    Raises
    ------
    SettingsError, StoreError
        If it cannot be served as asked.
    """
    parts = build(settings, roster)
    app = FastAPI(
        title="Arena",
        version=__version__,
        description="Blind battles between two language models, votes, and ratings.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan(parts, settings),
    )
    trust = Trust(
        settings.host,
        settings.host_names(),
        settings.proxy_networks(),
        settings.user_header.lower(),
        settings.members_only,
    )
    app.state.people, app.state.addresses, app.state.trust = parts.people, parts.addresses, trust
    app.add_middleware(GZipMiddleware, compresslevel=6, exclude_content_types=SENT_AS_IT_IS)
    app.add_middleware(BodyLimit, most=settings.max_body_bytes)
    app.add_middleware(Entrance, trust=trust)
    app.add_middleware(OriginHeaders)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Languages, default=settings.language)
    app.add_middleware(Requests, observe=parts.metrics.request)
    app.state.drain = partial(parts.battles.drain, settings.shutdown_grace_s)
    visit_of = partial(_visit, parts.store)
    problems.install(app, lambda request: missing(visit_of(request)), not_let_in)
    app.router.default = _unknown(app.router.default)
    board = parts.boards[DEFAULT.name]
    provider = settings.provider()
    if provider is None:
        openid = None
    else:
        from arena.pages.oidc import OpenId  # what it is made of takes long to load

        openid = OpenId(provider, settings.named_roles())
    doors = Doors(parts.people, openid, settings.members_only)
    _add(app, battles_router(parts.battles))
    _add(app, sources_router(parts.sources))
    _add(app, embed_router(parts.sources))
    check = partial(_check, parts, Recent(parts.store.check))
    _add(app, public_router(board.read, check, parts.card.read))
    _add(
        app,
        pages_router(
            board=board.read,
            my_battles=lambda voter: parts.store.read(
                single_battles.past_battles, voter.id, parts.now() - settings.vote_within()
            ),
            voter_of=_voter_of,
            visit_of=visit_of,
            labels=parts.labels,
            others={name: o.read for name, o in parts.boards.items() if name != DEFAULT.name},
            cards=read_cards(settings.cards) if settings.cards else (),
            exhibits=_exhibits(parts.store, parts.models) if settings.show_battles else None,
            study=settings.study,
            topics=partial(parts.store.read, topics.newest, private=not settings.show_battles),
            value=parts.valuation.read,
            card=parts.card.read,
            pacing=settings.pacing,
            entrants=partial(parts.store.read, roster_rows.history),
            retention=partial(_retention, parts.store, settings.retention_days()),
            own_data=OwnData(parts.store, parts.now),
            can_sign_in=doors.openid is not None,
        ),
    )
    raters = Raters(settings.raters_per_address, settings.new_raters_per_address_hour, parts.now)
    desk = StudyDesk(Studies(parts.store, parts.now, raters), partial(read_status, parts.store))
    _add(app, studies_router(desk, _voter_of, visit_of))
    _add(app, sign_in_router(doors))
    _add(app, admin_router(room(parts, settings), visit_of))
    static = APIRouter(include_in_schema=False, dependencies=[EVERYBODY])
    static.get("/favicon.ico")(_favicon)
    static.get("/embed.js")(_embed_script)
    _add(app, static)
    schema = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    schema.get("/api/openapi.json")(partial(_schema, app))
    _add(app, schema)
    app.mount("/look", StaticFiles(directory=STATIC))
    return _with_page(app, parts, settings, visit_of) if settings.page else app


def _add(app: FastAPI, router: APIRouter) -> None:
    """Serve a router's routes as the application's own.

    Those of an included one are analysed once more when the first request comes, which takes a
    fifth of what an arena takes to begin, and are looked for in two steps from then on.
    """
    app.router.routes.extend(router.routes)


async def _check(parts: Parts, store: Recent) -> None:
    if parts.battles.closing:
        raise ClosingError
    await store.check()


def _prepare(parts: Parts, settings: Settings, board: Board) -> None:
    """Write what takes long of a page before anybody asks for it."""
    of_label = parts.labels.get(board.policy)
    latest = of_label.latest if of_label else None
    is_default = board.policy == DEFAULT.name
    whole = parts.boards[BEFORE_EXCLUSIONS.name].read() if is_default and board.excluded else None
    labels = latest.labels if latest else None
    linked = settings.show_battles and board.policy != APPLICATIONS.name
    prepare(Below(board, labels, whole, linked), parts.now())


def _lifespan(
    parts: Parts, settings: Settings
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        keeping = asyncio.create_task(upkeep.keep_up(parts.store))
        parts.battles.relay.start()
        made = asyncio.Event()
        tasks = [asyncio.create_task(one) for one in _beside(parts, settings, made)]
        with suppress(TimeoutError):
            await asyncio.wait_for(made.wait(), FIRST_BOARD_S)
        yield
        for task in tasks:
            task.cancel()
        for board in parts.boards.values():
            board.close()
        parts.verifier.close()
        for boards in parts.labels.values():
            await asyncio.to_thread(boards.close)
        await parts.battles.close()
        keeping.cancel()
        await parts.endpoints.aclose()
        # What a cancelled task had begun in a thread ends before the database goes.
        await asyncio.get_running_loop().shutdown_default_executor()
        parts.store.close()
        parts.stop_metrics()

    return lifespan


def _beside(
    parts: Parts, settings: Settings, made: asyncio.Event
) -> Iterator[Coroutine[None, None, None]]:
    """Give what runs beside requests; ``made`` is set once each board has been looked at."""
    store, now = parts.store, parts.now
    yield parts.warm_up()
    if parts.roster:
        yield parts.roster.keep_up()
    yield parts.battles.matchmaker.keep_up()
    yield parts.verifier.keep_on()
    yield parts.valuation.keep_on()
    yield parts.card.keep_on()
    if parts.race:
        yield parts.race.keep_on()
    yield keep_labelling(store, now)
    yield upkeep.keep_clear(store, settings.retention_days(), now)
    yield keep_releasing(store, settings.database, now, private=not settings.show_battles)
    yield leaderboard.keep_up([*parts.boards.values()], partial(_prepare, parts, settings), made)


def _with_page(
    app: FastAPI, parts: Parts, settings: Settings, visit_of: Callable[[Request], Visit]
) -> FastAPI:
    from arena.ui.battle_page import add_assets, page_router

    router = page_router(
        parts.examples,
        parts.battles.prompts,
        offered=parts.battles.offered,
        visit_of=visit_of,
        readable=settings.show_battles,
        longest=settings.max_prompt_chars,
        reasons=settings.reasons,
        instructed=settings.instructions is not None,
    )
    _add(app, router)
    add_assets(app)
    return app


def _voter_of(request: Request) -> Voter | None:
    voter: Voter | None = request.state.voter
    return voter


def _visit(store: Store, request: Request) -> Visit:
    """Say what a page takes from who asks for it; it reads, and so blocks."""
    voter = _voter_of(request)
    with store.reading() as session:
        votes = single_battles.votes_of(session, voter.id) if voter else 0
        return visit_to(request, votes, studies=studies.is_any(session))


def _retention(store: Store, days: Mapping[Perishable, int | None]) -> dict[Perishable, Retention]:
    gone = store.read(retention.gone)
    return {kind: Retention(most, gone.get(kind)) for kind, most in days.items()}


def _exhibits(store: Store, roster: Roster) -> Exhibits:
    policies = {policy.name: policy for policy in POLICIES if policy is not APPLICATIONS}

    def votes(policy: str, models: Sequence[str], before: int | None) -> ShownVotes | None:
        if policy not in policies:
            return None
        return store.read(single_battles.counted, policies[policy], models=models, before=before)

    def battle(battle_id: str) -> ShownBattle | None:
        shown = (store.read(single_battles.battle, p, battle_id) for p in policies.values())
        return next(filter(None, shown), None)

    def owned(battle_id: str, voter: Voter) -> bool:
        try:
            return bool(store.read(single_battles.stored_battle, battle_id, voter.id))
        except UnknownBattleError:
            return False

    def withheld(battle_id: str, voter: Voter) -> bool:
        return store.read(single_battles.is_withheld, battle_id, voter.id)

    reports = {model.id: model.contamination_report for model in roster}
    shown = {name: url for name, url in reports.items() if url}
    return Exhibits(votes, battle, owned, withheld, shown)


def _unknown(not_found: ASGIApp) -> ASGIApp:
    """Answer for an address that no route knows, to whoever may ask for a page."""

    async def unknown(scope: Scope, receive: Receive, send: Send) -> None:
        await Access()(Request(scope))
        await not_found(scope, receive, send)

    return unknown


async def _schema(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


async def _favicon() -> FileResponse:
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")


async def _embed_script() -> FileResponse:
    """Give the script that pages of others load; it holds nothing of anybody's."""
    headers = {
        "Cache-Control": "public, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return FileResponse(STATIC / "embed.js", media_type="text/javascript", headers=headers)
