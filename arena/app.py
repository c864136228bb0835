"""The web application: its routes and pages, and what runs beside them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from arena.api import middleware
from arena.api.battles import battles_router
from arena.api.middleware import BodyLimit, Entrance, Languages, Requests, SecurityHeaders
from arena.api.routes import embed_router, public_router, sources_router
from arena.boards import leaderboard
from arena.catalogue import Language
from arena.domain.board_view import Board
from arena.domain.model import Roster
from arena.domain.vote import APPLICATIONS, BEFORE_EXCLUSIONS, DEFAULT
from arena.endpoints.local import small_models
from arena.endpoints.offline import POCKET_MODELS
from arena.errors import SettingsError
from arena.guard.access import EVERYBODY, VISITORS, Access
from arena.pages.admin import admin_router
from arena.pages.routes import missing, not_let_in, pages_router
from arena.pages.sign_in import sign_in_router
from arena.pages.standings import VIEWS, Selection, below_summary
from arena.pages.studies import studies_router
from arena.parts import Parts, build
from arena.play import upkeep
from arena.play.topics import keep_releasing
from arena.play.upkeep import keep_labelling
from arena.settings import Settings, demo_settings, models_of, read_settings
from arena.ui.battle_page import VERSION, add_assets, battle_view, page_router
from rating import __version__

if TYPE_CHECKING:
    from arena.ui.chat import Chat

logger = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "ui" / "static"

SENT_AS_IT_IS = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/json",
    "application/problem+json",
    "application/vnd.apache.parquet",
)
"""What is not compressed: pages, styles and scripts are, which hold no secret to be guessed by
the length of an answer. Events are sent as they come, and what the API answers is short."""


ROUTERS = (
    sources_router,
    embed_router,
    public_router,
    pages_router,
    studies_router,
    sign_in_router,
    admin_router,
)


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
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(parts),
    )
    _know_visitors(app, parts)
    app.add_middleware(GZipMiddleware, compresslevel=6, exclude_content_types=SENT_AS_IT_IS)
    app.add_middleware(BodyLimit, most=settings.max_body_bytes)
    app.add_middleware(Entrance, trust=parts.trust)
    app.add_middleware(SecurityHeaders, version=VERSION)
    app.add_middleware(Languages, default=settings.language)
    app.add_middleware(Requests, observe=parts.metrics.request)
    app.state.drain = partial(parts.battles.drain, settings.shutdown_grace_s)
    middleware.install(app, partial(missing, parts), not_let_in)
    _add(app, battles_router(parts, partial(battle_view, parts)))
    for router_of in ROUTERS:
        _add(app, router_of(parts))
    static = APIRouter(include_in_schema=False, dependencies=[EVERYBODY])
    static.get("/favicon.ico")(_favicon)
    static.get("/embed.js")(_embed_script)
    _add(app, static)
    schema = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    schema.get("/api/openapi.json")(partial(_schema, app))
    _add(app, schema)
    app.mount("/look", StaticFiles(directory=STATIC))
    if settings.page:
        _add(app, page_router(parts))
        add_assets(app)
    if settings.chat:
        from arena.ui.chat import add_chat  # Gradio takes seconds to load

        add_chat(app, parts, settings.chat)
    # A redirect to the address without its last slash names the host: that is checked first.
    app.router.default = _unknown(Router(app.routes, default=app.router.default))
    return app


def chat(models: Iterable[Mapping[str, object]] | None = None, /, **settings: object) -> "Chat":
    """Make a Gradio chat in which people compare two anonymous models and vote.

    Call ``launch()`` of what it returns in a notebook or a Hugging Face Space, or mount it in an
    application of your own with `gradio.mount_gradio_app`, with its ``options``.

    Parameters
    ----------
    models : iterable of mapping, optional
        Models, each with the keys of a table of the roster, such as ``id``, ``name``,
        ``endpoint`` and ``model``. Without them, and without the setting ``roster``, those of
        ``arena demo`` are used: the small model if it is installed, else toys.
    **settings
        Settings in lower case without ``ARENA_``, such as ``roster``, ``database`` and
        ``max_dollars_per_day``. They override the environment.

    Raises
    ------
    SettingsError, StoreError
        If it cannot be served as asked.

    Examples
    --------
    >>> import arena
    >>> arena.chat(roster="roster.toml", max_dollars_per_day=5).launch()  # doctest: +SKIP
    """
    from arena.ui.chat import Chat  # Gradio takes seconds to load

    read, roster = read_settings(**settings), None
    if models is not None:
        roster = Roster(models_of(models, Path("models")))
        if len(roster) < 2:
            raise SettingsError(f"A battle needs two models, got {len(roster)}. Add one.")
    elif read.roster is None:
        read = demo_settings(**settings)
        try:
            roster = small_models()
        except SettingsError as error:
            logger.warning("%s The toy models battle instead.", error)
            roster = Roster(POCKET_MODELS)
    parts = build(read, roster)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _know_visitors(app, parts)
        async with _lifespan(parts)(app):
            yield

    return Chat(parts, lifespan)


def _know_visitors(app: FastAPI, parts: Parts) -> None:
    """Let routes find out who asks: see `arena.guard.access.Access`."""
    app.state.people, app.state.addresses = parts.people, parts.addresses
    app.state.trust = parts.trust


def _add(app: FastAPI, router: APIRouter) -> None:
    """Serve a router's routes as the application's own.

    Those of an included one are analysed once more when the first request comes, which takes a
    fifth of what an arena takes to begin, and are looked for in two steps from then on.
    """
    app.router.routes.extend(router.routes)


def _prepare(parts: Parts, board: Board) -> None:
    """Write what takes long of a page before anybody asks for it."""
    of_label = parts.labels.get(board.policy)
    latest = of_label.latest if of_label else None
    is_default = board.policy == DEFAULT.name
    whole = parts.boards[BEFORE_EXCLUSIONS.name].read() if is_default and board.excluded else None
    labels = latest.labels if latest else None
    linked = parts.settings.show_battles and board.policy != APPLICATIONS.name
    for language, view in product(Language, VIEWS):
        selection = Selection(view=view)
        below_summary(board, labels, whole, selection, parts.now(), language, linked=linked)


def _lifespan(parts: Parts) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        keeping = asyncio.create_task(upkeep.keep_up(parts.store))
        parts.battles.relay.start()
        tasks = [asyncio.create_task(one) for one in _beside(parts)]
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
        if parts.stop_metrics:
            parts.stop_metrics()
        if parts.events:
            parts.events.close()

    return lifespan


def _beside(parts: Parts) -> Iterator[Coroutine[None, None, None]]:
    """Give what runs beside requests."""
    settings, store, now = parts.settings, parts.store, parts.now
    if parts.warm_up:
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
    yield leaderboard.keep_up([*parts.boards.values()], partial(_prepare, parts))


def _unknown(not_found: ASGIApp) -> ASGIApp:
    """Answer for an address that no route knows."""

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
