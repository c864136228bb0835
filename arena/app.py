"""The web application: what its routes and pages are given, and what runs beside them.

What may be done in the admin room, wired to the parts of the application.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from arena.api import middleware
from arena.api.battles import battles_router
from arena.api.middleware import (
    BodyLimit,
    Entrance,
    Languages,
    Requests,
    SecurityHeaders,
)
from arena.api.routes import Recent, embed_router, public_router, sources_router
from arena.boards import integrity, leaderboard
from arena.boards.evaluation import read_status
from arena.boards.integrity import MOST_BUSY, MOST_SHOWN, Decided, VoterCheck
from arena.boards.leaderboard import make_file
from arena.domain.battle import Sampler
from arena.domain.board_view import Board, ShownBattle, ShownVotes
from arena.domain.model import Model, Release, Roster, Standing
from arena.domain.people import Perishable, Retention
from arena.domain.room_view import Leaver, RosterView, Trial, VotersView
from arena.domain.vote import APPLICATIONS, BEFORE_EXCLUSIONS, DEFAULT, POLICIES, Days, Voter
from arena.endpoints import trial
from arena.endpoints.client import origin_of
from arena.endpoints.local import SCHEME, local_model
from arena.endpoints.offline import load_recordings
from arena.errors import (
    ClosingError,
    RoomError,
    SettingsError,
    UnknownBattleError,
    UnknownPersonError,
)
from arena.guard.access import EVERYBODY, VISITORS, Access, Trust
from arena.guard.limits import Raters
from arena.pages.admin import Room, RosterDesk, admin_router
from arena.pages.rendering import Visit, visit_to
from arena.pages.routes import Exhibits, missing, not_let_in, pages_router
from arena.pages.sign_in import Doors, sign_in_router
from arena.pages.standings import Below, prepare
from arena.pages.studies import StudyDesk, studies_router
from arena.parts import Parts, build
from arena.play import upkeep
from arena.play.studies import Studies
from arena.play.topics import keep_releasing
from arena.play.upkeep import OwnData, keep_labelling
from arena.settings import Settings, models_in, read_cards
from arena.store import battles, erasing, kept_boards, log, people, studies, voting
from arena.store import roster as roster_rows
from arena.store import studies as gold_rows
from arena.store.store import Store
from judge.studies.gold import accuracies
from rating import __version__
from rating.sentences import Sentence
from rating.tables.files import storable

GIVEN = Sentence("This arena was started on models that it found: start it with a roster.")


def _room(parts: Parts, settings: Settings) -> Room:
    """Wire the admin room."""
    store, check = parts.store, VoterCheck(parts.store, parts.now)
    policy = DEFAULT.name

    def voters() -> VotersView:
        left_out = store.read(voting.left_out, policy, MOST_SHOWN)
        busiest = store.read(voting.busiest, MOST_BUSY)
        suspects = check.newest.suspects if check.newest else ()
        ids = {one.voter for one in left_out} | {one.voter for one in suspects}
        right = accuracies(store.read(gold_rows.votes))[:MOST_SHOWN]
        known = ids | {one.voter for one in busiest} | {one.voter for one in right}
        return VotersView(
            check.newest,
            check.examining,
            check.problem,
            left_out,
            busiest,
            store.read(people.names, known),
            right,
        )

    def decided(decide: Callable[..., Decided]) -> Callable[[str, str, str], int]:
        return lambda target, reason, by: decide(store, target, reason, by, parts.now()).changed

    def export(what: str, ending: str, days: Days, by: str) -> Path:
        file = make_file(settings.database, what, ending, days, settings.vote_within())
        bounds = {"since": days.since, "until": days.until} if what != "ratings" else {}
        detail = {name: day.date().isoformat() for name, day in bounds.items() if day}
        try:
            with store.writing() as session:
                people.note(session, by, "export", what, {"as": ending, **detail}, parts.now())
        except BaseException:
            rmtree(file.parent)
            raise
        return file

    return Room(
        status=lambda viewer: store.read(
            kept_boards.status, parts.now(), settings.max_dollars_per_day, viewer
        ),
        race=lambda: parts.race.read() if parts.race else None,
        acts=partial(store.read, people.acts),
        voters=voters,
        flagged=partial(store.read, voting.flagged, policy, MOST_SHOWN),
        boards=lambda: [board.read() for board in parts.boards.values()],
        held=partial(store.read, voting.held),
        exclude=decided(integrity.exclude),
        readmit=decided(integrity.readmit),
        examine=check.begin,
        leaver=lambda voter: _leaver(store, voter)[0],
        erase=partial(_erase, parts),
        roster=_desk(parts, settings),
        export=export,
        apply=lambda by: sum(done.votes for done in check.apply(by) if not done.held),
    )


def _leaver(store: Store, voter: str) -> tuple[Leaver, list[str], list[str]]:
    """Measure what there is to erase of a voter, by their id or how it begins.

    Gives the ids of all their devices, and the hashes of the judgements that quote them, too.
    """
    with store.reading() as session:
        try:
            voters = erasing.voters_of(session, storable(voter))
            judgements, extent = erasing.extent(session, voters)
        except UnknownPersonError:
            msg = Sentence(
                "%(id)s is not the id of one voter: give all of it, or its first 8 characters.",
                id=repr(voter[:100]),
            )
            raise RoomError(msg) from None
        owner = voters[0]
        name = people.names(session, [owner]).get(owner)
    return Leaver(owner, name, len(voters), extent), voters, judgements


def _erase(parts: Parts, voter: str, tombstone: bool, by: str) -> Leaver:
    """Erase the words of a voter and who they are; the files are written again by upkeep."""
    leaver, voters, judgements = _leaver(parts.store, voter)
    with parts.store.writing() as session:
        gone = erasing.erase(
            session, voters, judgements, by, parts.now(), forget=True, tombstone=tombstone
        )
    return replace(leaver, extent=gone)


def _desk(parts: Parts, settings: Settings) -> RosterDesk:
    """Wire what the admin room does to the roster."""
    store, keys = parts.store, parts.keys

    def view() -> RosterView:
        entries = store.read(roster_rows.entries) if parts.roster else ()
        needing = {one.model.id: one.model.api_key_env for one in entries}
        keyless = {model for model, name in needing.items() if name and not keys.get(name)}
        problems = store.read(roster_rows.unusable) if parts.roster else {}
        return RosterView(entries, frozenset(keyless), problems, parts.battles.paused())

    def change(model: str, by: str, **what: Any) -> None:
        weighted = settings.sampler is Sampler.WEIGHTED
        with store.writing() as session:
            roster_rows.change(session, model, by, parts.now(), weighted=weighted, **what)
        _look(parts)

    def release(model: str, to: Release, by: str) -> None:
        with store.writing() as session:
            roster_rows.release(session, model, to, by, parts.now())
        _look(parts)

    def add(text: str, by: str) -> None:
        if parts.roster is None:
            raise RoomError(GIVEN)
        origins: dict[str, set[str]] = {}
        for one in store.read(roster_rows.entries):
            if one.model.api_key_env:
                sent_to = origins.setdefault(one.model.api_key_env, set())
                with suppress(SettingsError):  # nothing can be sent there
                    sent_to.add(origin_of(one.model.endpoint))
        models = _pasted(text, origins)
        with store.writing() as session:
            roster_rows.add(session, models, by, parts.now())
        _look(parts)

    async def try_all() -> Mapping[str, Trial]:
        entries = (await asyncio.to_thread(view)).entries
        asked = [one.model for one in entries if one.standing is not Standing.RETIRED]
        try:
            recordings = await asyncio.to_thread(load_recordings, asked)
        except SettingsError as error:
            raise RoomError(str(error)) from None
        prompts = {model_id: tuple(recorded) for model_id, recorded in recordings.items()}
        trials = await trial.try_all(parts.endpoints, asked, prompts)
        for model_id, tried in trials.items():
            if tried.seconds is not None:
                parts.battles.resume(model_id)
        return trials

    return RosterDesk(
        view=view,
        place=lambda model, standing, by: change(model, by, standing=standing),
        weigh=lambda model, weight, by: change(model, by, weight=weight),
        release=release,
        add=add,
        try_all=try_all,
    )


def _look(parts: Parts) -> None:
    """Let this process battle by the changed roster at once."""
    if parts.roster:
        parts.roster.look()


def _pasted(text: str, origins: Mapping[str, Collection[str]]) -> tuple[Model, ...]:
    """Read a roster that came over the network: it names no files, and sends no key elsewhere.

    Whoever may use the page need not be who may read the server's files and environment.

    Parameters
    ----------
    origins : mapping
        By the name of each key that a model has, the schemes, hosts and ports it is sent to.
    """
    try:
        models = models_in(text, Path("roster"))
        for model in models:
            _require_ours(model, origins)
    except SettingsError as error:
        raise RoomError(str(error)) from None
    return models


def _require_ours(model: Model, origins: Mapping[str, Collection[str]]) -> None:
    if model.recording:
        raise RoomError(Sentence("A recording is a file: add it by arena models add."))
    if model.api_key_env is None:
        return
    sent_to, origin = origins.get(model.api_key_env), origin_of(model.endpoint)
    if not sent_to:
        msg = Sentence(
            "No model has the key %(name)s yet, so it is sent nowhere: add the first model with "
            "it by arena models add.",
            name=repr(model.api_key_env[:100]),
        )
        raise RoomError(msg)
    if origin not in sent_to:
        msg = Sentence(
            "The key %(name)s is sent to %(origins)s alone: add a model at %(origin)s with it by "
            "arena models add.",
            name=repr(model.api_key_env[:100]),
            origins=", ".join(sorted(sent_to)),
            origin=origin[:100],
        )
        raise RoomError(msg)


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
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Languages, default=settings.language)
    app.add_middleware(Requests, observe=parts.metrics.request)
    app.state.drain = partial(parts.battles.drain, settings.shutdown_grace_s)
    visit_of = partial(_visit, parts.store)
    middleware.install(app, lambda request: missing(visit_of(request)), not_let_in)
    app.router.default = _unknown(app.router.default)
    board = parts.boards[DEFAULT.name]
    provider = settings.provider()
    if provider is None:
        openid = None
    else:
        from arena.pages.sign_in import OpenId  # what it is made of takes long to load

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
                battles.past_battles, voter.id, parts.now() - settings.vote_within()
            ),
            voter_of=_voter_of,
            visit_of=visit_of,
            labels=parts.labels,
            others={name: o.read for name, o in parts.boards.items() if name != DEFAULT.name},
            cards=read_cards(settings.cards) if settings.cards else (),
            exhibits=_exhibits(parts.store, parts.models) if settings.show_battles else None,
            study=settings.study,
            topics=partial(parts.store.read, log.newest_topics, private=not settings.show_battles),
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
    _add(app, admin_router(_room(parts, settings), visit_of))
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

    small = any(model.endpoint.startswith(SCHEME) for model in parts.models)
    router = page_router(
        parts.examples,
        parts.battles.prompts,
        offered=parts.battles.offered,
        visit_of=visit_of,
        readable=settings.show_battles,
        longest=settings.max_prompt_chars,
        reasons=settings.reasons,
        instructed=settings.instructions is not None,
        remark=(lambda: local_model().state) if small else None,
    )
    _add(app, router)
    add_assets(app)
    return app


def _voter_of(request: Request) -> Voter | None:
    voter: Voter | None = request.state.voter
    return voter


def _visit(store: Store, request: Request) -> Visit:
    """Describe what a page takes from who asks for it; it reads, and so blocks."""
    voter = _voter_of(request)
    with store.reading() as session:
        votes = battles.votes_of(session, voter.id) if voter else 0
        return visit_to(request, votes, studies=studies.is_any(session))


def _retention(store: Store, days: Mapping[Perishable, int | None]) -> dict[Perishable, Retention]:
    gone = store.read(erasing.gone)
    return {kind: Retention(most, *gone.get(kind, ())) for kind, most in days.items()}


def _exhibits(store: Store, roster: Roster) -> Exhibits:
    policies = {policy.name: policy for policy in POLICIES if policy is not APPLICATIONS}

    def votes(policy: str, models: Sequence[str], before: int | None) -> ShownVotes | None:
        if policy not in policies:
            return None
        return store.read(battles.counted, policies[policy], models=models, before=before)

    def battle(battle_id: str) -> ShownBattle | None:
        shown = (store.read(battles.battle, p, battle_id) for p in policies.values())
        return next(filter(None, shown), None)

    def owned(battle_id: str, voter: Voter) -> bool:
        try:
            return bool(store.read(battles.stored_battle, battle_id, voter.id))
        except UnknownBattleError:
            return False

    def withheld(battle_id: str, voter: Voter) -> bool:
        return store.read(battles.is_withheld, battle_id, voter.id)

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
