"""The web application: the only place where its parts are put together."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from arena.api import problems
from arena.api.battle_routes import battles_router
from arena.api.middleware import (
    BodyLimit,
    Languages,
    OriginHeaders,
    Requests,
    SecurityHeaders,
    Visitors,
)
from arena.api.origins import Trust
from arena.api.public_routes import Recent, public_router
from arena.api.source_routes import embed_router, sources_router
from arena.boards import integrity, leaderboard
from arena.boards.evaluation import Evaluation
from arena.boards.integrity import Decided
from arena.boards.labelled import LabelBoards
from arena.boards.leaderboard import Leaderboard
from arena.boards.newcomers import read_newcomers
from arena.boards.page_export import make_file
from arena.boards.race import RaceWatch
from arena.boards.study import read_status
from arena.boards.value import Valuation
from arena.boards.voter_check import MOST_BUSY, MOST_SHOWN, VoterCheck
from arena.domain.battle import Notice, Sampler
from arena.domain.board_view import Board, ShownBattle, ShownVotes
from arena.domain.model import Entry, Model, Release, Roster, Standing
from arena.domain.people import Perishable, Retention
from arena.domain.room_view import Leaver, RosterView, Trial, VotersView
from arena.domain.vote import (
    APPLICATIONS,
    BEFORE_EXCLUSIONS,
    DEFAULT,
    POLICIES,
    SIMULATED,
    Days,
    Voter,
)
from arena.endpoints import trial
from arena.endpoints.client import Endpoints, Timeouts, reach
from arena.endpoints.offline import POCKET_MODELS, TOY_EXAMPLES, PocketTransport, load_recordings
from arena.errors import (
    ClosingError,
    RoomError,
    SettingsError,
    UnknownBattleError,
    UnknownPersonError,
)
from arena.guard.identity import Addresses, Identity
from arena.guard.limits import RUNNING, STREAMS, Allowance, Limits, Places, Share
from arena.guard.people import People
from arena.logs import log_notice
from arena.metrics import Metrics
from arena.pages.admin.room import Room, RosterDesk, admin_router
from arena.pages.rendering import Visit
from arena.pages.routes import Exhibits, missing, not_let_in, pages_router, visit_to
from arena.pages.sign_in import Doors, sign_in_router
from arena.pages.standings import Below, prepare
from arena.pages.studies import StudyDesk, studies_router
from arena.play import upkeep
from arena.play.battles import Battles, Field
from arena.play.gold import GoldPairs
from arena.play.instructions import Instructed
from arena.play.labels import keep_labelling
from arena.play.matchmaking import PairWins
from arena.play.own_data import OwnData
from arena.play.pace import MEMORY
from arena.play.roster import LiveRoster
from arena.play.rules import Rules
from arena.play.sources import Sources
from arena.play.studies import Studies
from arena.play.topics import keep_releasing
from arena.settings import (
    Keys,
    Settings,
    models_in,
    read_cards,
    read_keys,
    read_refusals,
    read_roster,
    read_statements,
)
from arena.store import (
    erasing,
    exclusions,
    last_day,
    log,
    people,
    retention,
    single_battles,
    studies,
    topics,
)
from arena.store import gold as gold_rows
from arena.store import roster as roster_rows
from arena.store.prompt_ids import prompt_secret
from arena.store.store import Store
from judge.studies.gold import accuracies
from judge.tables.cases import read_tasks
from judge.tables.gold import read_gold
from rating import __version__
from rating.errors import RatingError
from rating.sentences import Sentence
from rating.tables.escaping import storable

logger = logging.getLogger(__name__)

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
GIVEN = Sentence("This arena was started on models that it found: start it with a roster.")
EXAMPLES = (
    Sentence("Explain how vaccines work to a ten-year-old"),
    Sentence("Write a Python function that finds duplicate files"),
    Sentence("Plan three days in Lisbon with a toddler"),
    Sentence("What is the difference between TCP and UDP?"),
    Sentence("Suggest a kind way to decline an invitation"),
    Sentence("Prove that the square root of 2 is irrational"),
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application is made of, once the settings have been read."""

    store: Store
    race: RaceWatch | None
    endpoints: Endpoints
    battles: Battles
    sources: Sources
    verifier: upkeep.RecordVerifier
    boards: Mapping[str, Leaderboard]
    card: Evaluation
    people: People
    labels: Mapping[str, LabelBoards]
    valuation: Valuation
    addresses: Addresses
    metrics: Metrics
    stop_metrics: Callable[[], None]
    keys: Keys
    models: Roster
    roster: LiveRoster | None
    examples: Sequence[str]
    warm_up: Callable[[], Coroutine[None, None, None]]


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
        openapi_url="/api/openapi.json",
        lifespan=_lifespan(parts, settings),
    )
    app.add_middleware(GZipMiddleware, compresslevel=6, exclude_content_types=SENT_AS_IT_IS)
    app.add_middleware(BodyLimit, most=settings.max_body_bytes)
    app.add_middleware(
        Visitors,
        people=parts.people,
        addresses=parts.addresses,
        trust=Trust(
            settings.host,
            settings.host_names(),
            settings.proxy_networks(),
            settings.user_header.lower(),
            settings.members_only,
        ),
        not_let_in=not_let_in,
    )
    app.add_middleware(OriginHeaders)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Languages, default=settings.language)
    app.add_middleware(Requests, observe=parts.metrics.request)
    app.state.drain = partial(parts.battles.drain, settings.shutdown_grace_s)
    visit_of = partial(_visit, parts.store)
    problems.install(app, lambda request: missing(visit_of(request)))
    board = parts.boards[DEFAULT.name]
    provider = settings.provider()
    if provider is None:
        openid = None
    else:
        from arena.pages.oidc import OpenId  # what it is made of takes long to load

        openid = OpenId(provider, settings.named_roles())
    doors = Doors(parts.people, openid, settings.members_only)
    app.include_router(battles_router(parts.battles))
    app.include_router(sources_router(parts.sources))
    app.include_router(embed_router(parts.sources))
    check = partial(_check, parts, Recent(parts.store.check))
    app.include_router(public_router(board.read, check, parts.card.read))
    app.include_router(
        pages_router(
            board=board.read,
            my_battles=lambda voter: parts.store.read(single_battles.past_battles, voter.id),
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
            own_data=OwnData(parts.store, _now),
            can_sign_in=doors.openid is not None,
        )
    )
    desk = StudyDesk(Studies(parts.store, _now), partial(read_status, parts.store))
    app.include_router(studies_router(desk, _voter_of, visit_of))
    app.include_router(sign_in_router(doors))
    app.include_router(admin_router(_room(parts, settings), visit_of))
    app.get("/favicon.ico", include_in_schema=False)(_favicon)
    app.get("/embed.js", include_in_schema=False)(_embed_script)
    app.mount("/look", StaticFiles(directory=STATIC))
    return _with_page(app, parts, settings, visit_of) if settings.page else app


def build(settings: Settings, given: Roster | None = None) -> Parts:
    """Open the database, and wire the live path, for a roster if not for the stored one."""
    store = Store(settings.database, settings.lock_timeout_s)
    try:
        return _built(settings, store, given)
    except BaseException:
        store.close()
        raise


def _built(settings: Settings, store: Store, given: Roster | None) -> Parts:
    entries = () if given else _stored_roster(settings, store)
    field = [one.public for one in entries if one.drawn]
    roster = given or Roster(tuple(field) or POCKET_MODELS)
    _check_weights(settings, roster)
    race = _race(settings, store, roster)
    recordings = load_recordings(roster)
    pocket = PocketTransport()
    timeouts = Timeouts(
        first_token_s=settings.first_token_timeout_s, idle_s=settings.idle_timeout_s
    )
    keys = _keys(settings, roster, stored=bool(entries))
    endpoints = reach(roster, keys, recordings, pocket, timeouts, settings.budgets())
    metrics = Metrics()
    for model_id in store.register(tuple(roster), _now()):
        logger.warning("Model %r changed since it was first logged: give it a new id", model_id)
    upkeep.pulse(store, looks=1)
    if settings.secret_key is None:
        logger.warning("ARENA_SECRET_KEY is not set: visitors are new people after a restart")
    battles = Battles(
        store=store,
        ask=endpoints.stream,
        roster=roster,
        rules=rules_of(settings),
        recorded={model_id: tuple(r) for model_id, r in recordings.items()},
        rng=secrets.SystemRandom(),
        now=_now,
        wins=PairWins(store, DEFAULT).read,
        admit=_limits(settings, store).admit,
        running=_running(settings).hold,
        reading=_streams(settings).hold,
        notice=partial(_tell, metrics),
        gold=_gold(settings, store),
        instructed=_instructed(settings),
    )
    battles.paces.recall(store.read(log.times, [model.id for model in roster], MEMORY))
    key = settings.signing_key()
    toys = [model for model in roster if model.endpoint.startswith("pocket://")]
    verifier = upkeep.RecordVerifier(store, _now)
    follow = partial(_follow, endpoints, battles)
    judged = read_newcomers(settings.newcomers) if settings.newcomers else ()
    boards = {
        p.name: Leaderboard(
            store,
            p,
            _now,
            record=lambda: verifier.check,
            key=key.encode(),
            enough=settings.listed_after,
            judged=judged if p.kinds == DEFAULT.kinds else (),
        )
        for p in POLICIES
    }
    card = Evaluation(
        store,
        DEFAULT,
        boards[DEFAULT.name].read,
        read_statements(settings.card),
        settings.call_limits(),
    )
    return Parts(
        race=race,
        keys=keys,
        models=roster,
        roster=None if given else LiveRoster(store, follow),
        store=store,
        endpoints=endpoints,
        battles=battles,
        sources=_sources(settings, store, metrics),
        verifier=verifier,
        boards=boards,
        card=card,
        people=People(store, Identity(key), settings.named_roles(), _now),
        labels={p.name: LabelBoards(store, p, _now) for p in (DEFAULT, SIMULATED)},
        valuation=Valuation(
            store, DEFAULT, _now, read_refusals(settings.safety) if settings.safety else None
        ),
        addresses=Addresses(key, _now),
        metrics=metrics,
        stop_metrics=_serve_metrics(metrics, settings),
        examples=TOY_EXAMPLES if len(toys) == len(roster) else EXAMPLES,
        warm_up=pocket.learn if toys else _nothing,
    )


def _stored_roster(settings: Settings, store: Store) -> tuple[Entry, ...]:
    """Give the roster in the database, after it has taken over what is new in the file."""
    models = tuple(read_roster(settings.roster)) if settings.roster else ()
    entries = store.read(roster_rows.entries)
    if models and not entries:
        read_keys(models, settings.keys)
    if roster_rows.news(models, entries):
        try:
            with store.writing() as session:
                roster_rows.take_over(session, models, _now())
        except RoomError as error:
            msg = f"ARENA_ROSTER: {error}"
            raise SettingsError(msg) from error
        entries = store.read(roster_rows.entries)
    named = {model.id for model in models}
    battling = {one.model.id for one in entries if one.drawn}
    if models and (beside := battling - named):
        logger.info(
            "Beside those of %s these models battle: %s. arena models retire ends that.",
            settings.roster,
            ", ".join(map(repr, sorted(beside))),
        )
    return entries


def _keys(settings: Settings, roster: Roster, *, stored: bool) -> Keys:
    """Read the keys; without its own a model of a stored roster fails, and no more."""
    if not stored:
        return read_keys(roster, settings.keys)
    keys = Keys((model.api_key_env for model in roster if model.api_key_env), settings.keys)
    for model in roster:
        if model.api_key_env and not keys.get(model.api_key_env):
            logger.warning("Model %r has no key: %s is not set", model.id, model.api_key_env)
    return keys


def _follow(endpoints: Endpoints, battles: Battles, entries: Sequence[Entry]) -> None:
    """Let the enabled battle from here on; the disabled go on with what they have begun."""
    if not entries:
        return
    drawn = [one.public for one in entries if one.drawn]
    resting = [one.public for one in entries if one.standing is Standing.DISABLED]
    recordings = load_recordings((*resting, *drawn))
    endpoints.replay(recordings, {m.id: m.characters_per_s for m in (*resting, *drawn)})
    recorded = {model_id: tuple(prompts) for model_id, prompts in recordings.items()}
    battles.use(Field.of(drawn, recorded, resting))


def _check_weights(settings: Settings, roster: Roster) -> None:
    drawable = sum(model.weight > 0 for model in roster)
    if settings.sampler is Sampler.WEIGHTED and drawable < 2:
        msg = (
            f"ARENA_SAMPLER=weighted needs two models of weight above 0, and the roster has "
            f"{drawable}. Raise a weight, or draw with ARENA_SAMPLER=uniform."
        )
        raise SettingsError(msg)


def _race(settings: Settings, store: Store, roster: Roster) -> RaceWatch | None:
    between = settings.between()
    known = {model.id for model in roster}
    for name in between or ():
        if name not in known:
            some = ", ".join(map(repr, sorted(known)[:5]))
            msg = f"ARENA_RACE: no model {name!r} battles here; {some} do. Write ids."
            raise SettingsError(msg)
    return RaceWatch(store, between) if between else None


def rules_of(settings: Settings) -> Rules:
    """Give the rules that the settings make."""
    return Rules(
        pacing=settings.pacing,
        sampler=settings.sampler,
        exploration=settings.exploration,
        race=settings.between(),
        characters_per_s=settings.characters_per_s,
        pace_pool=settings.pace_pool,
        prior_delay_s=settings.prior_delay_s,
        prior_characters_per_s=settings.prior_characters_per_s,
        max_prompt_chars=settings.max_prompt_chars,
        max_answer_chars=settings.max_answer_chars,
        answer_timeout_s=settings.answer_timeout_s,
        reasons=settings.reasons,
    )


def _gold(settings: Settings, store: Store) -> GoldPairs:
    """Read the gold pairs, and note in the log who answered."""
    if settings.gold is None:
        return GoldPairs()
    try:
        read = read_gold(settings.gold)
    except RatingError as error:
        msg = f"ARENA_GOLD: {error}"
        raise SettingsError(msg) from error
    most, longest = settings.max_prompt_chars, settings.max_answer_chars
    fit = [
        pair
        for pair in read.pairs
        if len(pair.prompt) <= most and max(len(pair.response_a), len(pair.response_b)) <= longest
    ]
    if not fit:
        msg = (
            f"ARENA_GOLD={str(settings.gold)!r}: every pair is longer than a prompt or an answer "
            "may be here (ARENA_MAX_PROMPT_CHARS, ARENA_MAX_ANSWER_CHARS)."
        )
        raise SettingsError(msg)
    left_out = read.left_out | {"longer than allowed": len(read.pairs) - len(fit)}
    for reason, n in left_out.items():
        if n:
            logger.warning("ARENA_GOLD: %d pairs are left out: %s", n, reason)
    gold = GoldPairs(fit, settings.gold_share, secrets.SystemRandom())
    store.register(gold.models, _now())
    return gold


def _sources(settings: Settings, store: Store, metrics: Metrics) -> Sources:
    return Sources(
        store=store,
        secret=prompt_secret(store, _now()),
        longest_prompt=settings.max_prompt_chars,
        longest_answer=settings.max_answer_chars,
        rng=secrets.SystemRandom(),
        now=_now,
        notice=partial(_tell, metrics),
    )


def _instructed(settings: Settings) -> Instructed:
    """Read the prompts whose instructions can be checked."""
    if settings.instructions is None:
        return Instructed()
    try:
        tasks = read_tasks(settings.instructions)
    except RatingError as error:
        msg = f"ARENA_INSTRUCTIONS: {error}"
        raise SettingsError(msg) from error
    fit = [task for task in tasks if len(task.prompt) <= settings.max_prompt_chars]
    if len(fit) < len(tasks):
        logger.warning(
            "ARENA_INSTRUCTIONS: %d prompts are longer than ARENA_MAX_PROMPT_CHARS and left out",
            len(tasks) - len(fit),
        )
    return Instructed(fit, secrets.SystemRandom())


def _limits(settings: Settings, store: Store) -> Limits:
    allowance = Allowance(
        per_voter=settings.battles_per_voter_hour,
        per_address=settings.battles_per_address_hour,
        dollars_a_day=settings.max_dollars_per_day,
    )
    return Limits(
        allowance,
        prompts_of=lambda voter, since: store.read(log.prompts_of, voter, since),
        spent=lambda since: store.read(log.spent, since),
        now=_now,
    )


def _running(settings: Settings) -> Places:
    share = Share(
        settings.running_per_voter, settings.running_per_address, settings.running_battles
    )
    return Places(RUNNING, share)


def _streams(settings: Settings) -> Places:
    share = Share(settings.streams_per_voter, settings.streams_per_address, settings.streams)
    return Places(STREAMS, share)


def _tell(metrics: Metrics, notice: Notice) -> None:
    log_notice(notice)
    metrics.take(notice)


def _serve_metrics(metrics: Metrics, settings: Settings) -> Callable[[], None]:
    if settings.metrics_port is None:
        return lambda: None
    return metrics.serve(settings.metrics_host, settings.metrics_port)


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
    labels, reach = (latest.labels, latest.reach) if latest else (None, {})
    linked = settings.show_battles and board.policy != APPLICATIONS.name
    prepare(Below(board, labels, whole, linked, reach), _now())
    if is_default:
        parts.card.look()


def _lifespan(
    parts: Parts, settings: Settings
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        learning = asyncio.create_task(parts.warm_up())
        keeping = asyncio.create_task(upkeep.keep_up(parts.store))
        parts.battles.relay.start()
        following = asyncio.create_task(parts.roster.keep_up() if parts.roster else _nothing())
        matching = asyncio.create_task(parts.battles.matchmaker.keep_up())
        verifying = asyncio.create_task(parts.verifier.keep_on())
        valuing = asyncio.create_task(parts.valuation.keep_on())
        racing = asyncio.create_task(parts.race.keep_on() if parts.race else _nothing())
        labelling = asyncio.create_task(keep_labelling(parts.store, _now))
        clearing = asyncio.create_task(
            upkeep.keep_clear(parts.store, settings.retention_days(), _now)
        )
        releasing = asyncio.create_task(
            keep_releasing(parts.store, settings.database, _now, private=not settings.show_battles)
        )
        made = asyncio.Event()
        shown = partial(_prepare, parts, settings)
        refreshing = asyncio.create_task(
            leaderboard.keep_up([*parts.boards.values()], shown, made)
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(made.wait(), FIRST_BOARD_S)
        yield
        learning.cancel()
        matching.cancel()
        following.cancel()
        verifying.cancel()
        valuing.cancel()
        racing.cancel()
        labelling.cancel()
        clearing.cancel()
        releasing.cancel()
        refreshing.cancel()
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
    app.include_router(router)
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


def _room(parts: Parts, settings: Settings) -> Room:
    """Wire the admin room."""
    store, check = parts.store, VoterCheck(parts.store, _now)
    policy = DEFAULT.name

    def voters() -> VotersView:
        left_out = store.read(exclusions.left_out, policy, MOST_SHOWN)
        busiest = store.read(exclusions.busiest, MOST_BUSY)
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
        return lambda target, reason, by: decide(store, target, reason, by, _now()).changed

    def export(what: str, ending: str, days: Days, by: str) -> Path:
        file = make_file(settings.database, what, ending, days)
        bounds = {"since": days.since, "until": days.until} if what != "ratings" else {}
        detail = {name: day.date().isoformat() for name, day in bounds.items() if day}
        try:
            with store.writing() as session:
                people.note(session, by, "export", what, {"as": ending, **detail}, _now())
        except BaseException:
            rmtree(file.parent)
            raise
        return file

    return Room(
        status=lambda: store.read(last_day.status, _now(), settings.max_dollars_per_day),
        race=lambda: parts.race.read() if parts.race else None,
        acts=partial(store.read, people.acts),
        voters=voters,
        flagged=partial(store.read, exclusions.flagged, policy, MOST_SHOWN),
        boards=lambda: [board.read() for board in parts.boards.values()],
        held=partial(store.read, exclusions.held),
        exclude=decided(integrity.exclude),
        readmit=decided(integrity.readmit),
        examine=check.begin,
        leaver=lambda voter: _leaver(store, voter)[0],
        erase=partial(_erase, store),
        roster=_desk(parts, settings),
        export=export,
        apply=lambda by: sum(done.votes for done in check.apply(by) if not done.held),
    )


def _leaver(store: Store, voter: str) -> tuple[Leaver, erasing.Extent]:
    """Measure what there is to erase of a voter, by their id or how it begins."""
    with store.reading() as session:
        try:
            there = erasing.extent(session, erasing.voters_of(session, storable(voter)))
        except UnknownPersonError:
            msg = Sentence(
                "%(id)s is not the id of one voter: give all of it, or its first 8 characters.",
                id=repr(voter[:100]),
            )
            raise RoomError(msg) from None
        owner = there.voters[0]
        name = people.names(session, [owner]).get(owner)
    return Leaver(owner, name, len(there.voters), there.of), there


def _erase(store: Store, voter: str, tombstone: bool, by: str) -> Leaver:
    """Erase the words of a voter and who they are; the files are written anew by upkeep."""
    leaver, there = _leaver(store, voter)
    with store.writing() as session:
        gone = erasing.erase(session, there, by, _now(), forget=True, tombstone=tombstone)
    return replace(leaver, extent=gone)


def _desk(parts: Parts, settings: Settings) -> RosterDesk:
    """Wire what the admin room does to the roster."""
    store, keys = parts.store, parts.keys

    def view() -> RosterView:
        entries = store.read(roster_rows.entries) if parts.roster else ()
        needing = {one.model.id: one.model.api_key_env for one in entries}
        keyless = {model for model, name in needing.items() if name and not keys.get(name)}
        return RosterView(entries, frozenset(keyless))

    def change(model: str, by: str, **what: Any) -> None:
        weighted = settings.sampler is Sampler.WEIGHTED
        with store.writing() as session:
            roster_rows.change(session, model, by, _now(), weighted=weighted, **what)
        _look(parts)

    def release(model: str, to: Release, by: str) -> None:
        with store.writing() as session:
            roster_rows.release(session, model, to, by, _now())
        _look(parts)

    def add(text: str, by: str) -> None:
        if parts.roster is None:
            raise RoomError(GIVEN)
        hosts: dict[str, set[str]] = {name: set() for name in keys.of_file}
        for one in store.read(roster_rows.entries):
            if one.model.api_key_env:
                hosts.setdefault(one.model.api_key_env, set()).add(_host(one.model))
        models = _pasted(text, hosts)
        with store.writing() as session:
            roster_rows.add(session, models, by, _now())
        _look(parts)

    async def try_all() -> Mapping[str, Trial]:
        entries = (await run_in_threadpool(view)).entries
        asked = [one.model for one in entries if one.standing is not Standing.RETIRED]
        recordings = await run_in_threadpool(load_recordings, asked)
        prompts = {model_id: tuple(recorded) for model_id, recorded in recordings.items()}
        return await trial.try_all(parts.endpoints, asked, prompts)

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


def _host(model: Model) -> str:
    return urlsplit(model.endpoint).netloc.lower()


def _pasted(text: str, hosts: Mapping[str, Collection[str]]) -> tuple[Model, ...]:
    """Read a roster that came over the network: it names no files, and sends no key elsewhere.

    Whoever may use the page need not be who may read the server's files and environment.

    Parameters
    ----------
    hosts : mapping
        By the name of each key that may be used, where it is sent by now.
    """
    try:
        models = models_in(text, Path("roster"))
    except SettingsError as error:
        raise RoomError(str(error)) from None
    for model in models:
        if model.recording:
            raise RoomError(Sentence("A recording is a file: add it by arena models add."))
        if model.api_key_env and model.api_key_env not in hosts:
            msg = Sentence(
                "There is no key %(name)s in the file that ARENA_KEYS names, and no model has it "
                "yet: put it there first.",
                name=repr(model.api_key_env[:100]),
            )
            raise RoomError(msg)
        sent_to = hosts.get(model.api_key_env or "")
        if sent_to and _host(model) not in sent_to:
            msg = Sentence(
                "The key %(name)s is sent to %(hosts)s so far: add a model of %(host)s with it by "
                "arena models add.",
                name=repr((model.api_key_env or "")[:100]),
                hosts=", ".join(sorted(sent_to)),
                host=_host(model)[:100],
            )
            raise RoomError(msg)
    return models


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


async def _nothing() -> None:
    """Nothing has to be learnt where no toy plays."""


async def _favicon() -> FileResponse:
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")


async def _embed_script() -> FileResponse:
    """Give the script that pages of others load; it holds nothing of anybody's."""
    headers = {
        "Cache-Control": "public, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return FileResponse(STATIC / "embed.js", media_type="text/javascript", headers=headers)


def _now() -> datetime:
    return datetime.now(UTC)
