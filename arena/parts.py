"""What the application is made of: the parts that the settings and the database ask for."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from arena.boards.evaluation import Evaluation
from arena.boards.fitted import RaceWatch, Valuation
from arena.boards.labelled import LabelBoards
from arena.boards.leaderboard import Leaderboard, read_newcomers
from arena.domain.battle import Notice, Sampler
from arena.domain.model import Entry, Roster, Standing
from arena.domain.vote import DEFAULT, POLICIES, SIMULATED, attributes
from arena.endpoints.client import Endpoints, Timeouts, reach
from arena.endpoints.failures import known_as
from arena.endpoints.local import EXAMPLES as SMALL_EXAMPLES
from arena.endpoints.local import SCHEME
from arena.endpoints.offline import POCKET_MODELS, TOY_EXAMPLES, PocketTransport, load_recordings
from arena.errors import RoomError, SettingsError, StoreError
from arena.guard.access import People, Trust
from arena.guard.limits import RUNNING, STREAMS, Addresses, Identity, Limits, Places, Raters
from arena.logs import Metrics, Telemetry, log_notice
from arena.play import upkeep
from arena.play.battles import Battles, Field
from arena.play.matchmaking import PairWins, Rules
from arena.play.pace import MEMORY
from arena.play.studies import GoldPairs, Instructed
from arena.play.upkeep import LiveRoster, Sources
from arena.settings import (
    Keys,
    Settings,
    read_cards,
    read_keys,
    read_refusals,
    read_roster,
    read_statements,
)
from arena.store import judgements, log
from arena.store import roster as roster_rows
from arena.store.roster import prompt_secret
from arena.store.store import Store
from judge.report.cards import ProbePage
from judge.tables.cases import read_gold, read_tasks
from rating.errors import RatingError
from rating.sentences import Sentence

logger = logging.getLogger(__name__)

REST_S, REST_BESIDE_S = 5.0, 15.0
"""The default board is made at most that often, and each beside it."""

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

    settings: Settings
    now: Callable[[], datetime]
    store: Store
    race: RaceWatch | None
    endpoints: Endpoints
    battles: Battles
    sources: Sources
    verifier: upkeep.RecordVerifier
    boards: Mapping[str, Leaderboard]
    card: Evaluation
    cards: Sequence[ProbePage]
    people: People
    trust: Trust
    labels: Mapping[str, LabelBoards]
    valuation: Valuation
    addresses: Addresses
    raters: Raters
    metrics: Metrics
    stop_metrics: Callable[[], None] | None
    events: Telemetry | None
    keys: Keys
    models: Roster
    roster: LiveRoster | None
    examples: Sequence[str]
    warm_up: Callable[[], Coroutine[None, None, None]] | None


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
    first, idle = settings.first_token_timeout_s, settings.idle_timeout_s
    keys = _keys(settings, roster, stored=bool(entries))
    known = store.read(judgements.lessons, _now())
    for model in roster:
        for name in known.get(known_as(model), ()):
            logger.info("Model %r is asked without %s: its endpoint refuses it", model.id, name)
    timeouts, keep = Timeouts(first_token_s=first, idle_s=idle), partial(_keep_lesson, store)
    endpoints = reach(roster, keys, recordings, pocket, timeouts, settings.budgets(), known, keep)
    metrics = Metrics()
    events = Telemetry() if settings.otel else None
    for model_id in store.register(tuple(roster), _now()):
        logger.warning("Model %r changed since it was first logged: give it a new id", model_id)
    upkeep.pulse(store, looks=1)
    if settings.secret_key is None:
        logger.warning("ARENA_SECRET_KEY is not set: visitors count as new voters after a restart")
    if not settings.members_only and (settings.oidc_groups or settings.oidc_domains):
        logger.warning(
            "Anybody may vote without sign-in: to limit it, set ARENA_MEMBERS_ONLY=true"
        )
    limits = Limits(
        per_voter=settings.battles_per_voter_hour,
        per_address=settings.battles_per_address_hour,
        dollars_a_day=settings.max_dollars_per_day,
        prompts_of=lambda voter, since: store.read(log.prompts_of, voter, since),
        dollars_per_voter_day=settings.cost_per_voter_day,
        spent=lambda since, voter: store.read(log.spent, since, voter),
        now=_now,
    )
    battles = Battles(
        store=store,
        ask=endpoints.stream,
        roster=roster,
        rules=rules_of(settings),
        recorded={model_id: tuple(r) for model_id, r in recordings.items()},
        rng=secrets.SystemRandom(),
        now=_now,
        wins=PairWins(store, DEFAULT).read,
        admit=limits.admit,
        running=Places(
            RUNNING,
            per_voter=settings.running_per_voter,
            per_address=settings.running_per_address,
            in_all=settings.running_battles,
        ).hold,
        reading=Places(
            STREAMS,
            per_voter=settings.streams_per_voter,
            per_address=settings.streams_per_address,
            in_all=settings.streams,
        ).hold,
        notice=partial(_tell, metrics, events),
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
            vote_within=settings.vote_within(),
            judged=judged if p.kinds == DEFAULT.kinds else (),
            rest_s=REST_S if p is DEFAULT else REST_BESIDE_S,
        )
        for p in POLICIES
    }
    card = Evaluation(
        store,
        DEFAULT,
        partial(boards[DEFAULT.name].read, waits=True),
        read_statements(settings.card),
        settings.call_limits(),
        _now,
        settings.vote_within(),
    )
    port = settings.metrics_port
    stop_metrics = None if port is None else metrics.serve(settings.metrics_host, port)
    return Parts(
        settings=settings,
        now=_now,
        race=race,
        keys=keys,
        models=roster,
        roster=None if given else LiveRoster(store, follow, battles.failing, _now),
        store=store,
        endpoints=endpoints,
        battles=battles,
        sources=Sources(
            store=store,
            secret=prompt_secret(store, _now()),
            longest_prompt=settings.max_prompt_chars,
            longest_answer=settings.max_answer_chars,
            rng=secrets.SystemRandom(),
            vote_within=settings.vote_within(),
            now=_now,
            notice=partial(_tell, metrics, events),
        ),
        verifier=verifier,
        boards=boards,
        card=card,
        cards=read_cards(settings.cards) if settings.cards else (),
        people=People(
            store,
            Identity(key),
            settings.named_roles(),
            _now,
            timedelta(days=settings.session_days),
        ),
        trust=Trust(
            settings.host,
            settings.host_names(),
            settings.proxy_networks(),
            settings.user_header.lower(),
            settings.members_only,
        ),
        labels={p.name: LabelBoards(store, p, _now) for p in (DEFAULT, SIMULATED)},
        valuation=Valuation(
            store, DEFAULT, _now, read_refusals(settings.safety) if settings.safety else None
        ),
        addresses=Addresses(key, _now),
        raters=Raters(settings.raters_per_address, settings.new_raters_per_address_hour, _now),
        metrics=metrics,
        stop_metrics=stop_metrics,
        events=events,
        examples=_examples(roster),
        # The first page has the processor before them.
        warm_up=partial(pocket.learn, [model.model for model in toys], 2.0) if toys else None,
    )


def _examples(roster: Roster) -> Sequence[str]:
    """Give prompts to try that the models can answer."""
    if any(model.endpoint.startswith(SCHEME) for model in roster):
        return SMALL_EXAMPLES
    toys = all(model.endpoint.startswith("pocket://") for model in roster)
    return TOY_EXAMPLES if toys else EXAMPLES


def _stored_roster(settings: Settings, store: Store) -> tuple[Entry, ...]:
    """Give the roster in the database, after it has taken over what is new in the file."""
    models = tuple(read_roster(settings.roster)) if settings.roster else ()
    entries = store.read(roster_rows.entries)
    if models and not entries:
        read_keys(models, settings.keys)
    if roster_rows.news(models, entries):
        try:
            store.write(roster_rows.take_over, models, _now())
        except RoomError as error:
            raise SettingsError(f"ARENA_ROSTER: {error}") from error
        entries = store.read(roster_rows.entries)
    problems = store.read(roster_rows.unusable)
    if problems and sum(one.drawn for one in entries) < 2:
        msg = f"The stored roster has fewer than two models to draw. {' '.join(problems.values())}"
        raise SettingsError(msg)
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


def _keep_lesson(store: Store, endpoint: str, name: str, sentence: str) -> None:
    """Write down what an endpoint refuses, beside the battle in which it said so.

    The log names no model: it would tell who answers just now.
    """
    logger.warning("An endpoint refuses %s: it is asked without from here on", name)

    def write() -> None:
        try:
            store.write(judgements.keep_lesson, endpoint, name, sentence, _now())
        except StoreError as error:
            logger.warning("What an endpoint refuses could not be kept: %s", error)

    asyncio.get_running_loop().run_in_executor(None, write)


def _check_weights(settings: Settings, roster: Roster) -> None:
    drawable = sum(model.weight > 0 for model in roster)
    if settings.sampler is Sampler.WEIGHTED and drawable < 2:
        raise SettingsError(
            f"ARENA_SAMPLER=weighted needs two models of weight above 0, and the roster has "
            f"{drawable}. Raise a weight, or draw with ARENA_SAMPLER=uniform."
        )


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
        **attributes(settings, "pacing", "pace_pool", "prior_delay_s", "prior_characters_per_s"),
        **attributes(settings, "sampler", "exploration", "characters_per_s", "reasons"),
        **attributes(settings, "max_prompt_chars", "max_answer_chars", "answer_timeout_s"),
        race=settings.between(),
        vote_within=settings.vote_within(),
    )


def _gold(settings: Settings, store: Store) -> GoldPairs:
    """Read the gold pairs, and note in the log who answered."""
    if settings.gold is None:
        return GoldPairs()
    try:
        pairs, left_out = read_gold(settings.gold)
    except RatingError as error:
        raise SettingsError(f"ARENA_GOLD: {error}") from error
    most, longest = settings.max_prompt_chars, settings.max_answer_chars
    fit = [
        pair
        for pair in pairs
        if len(pair.prompt) <= most and max(map(len, pair.responses)) <= longest
    ]
    if not fit:
        raise SettingsError(
            f"ARENA_GOLD={str(settings.gold)!r}: every pair is longer than a prompt or an answer "
            "may be here (ARENA_MAX_PROMPT_CHARS, ARENA_MAX_ANSWER_CHARS)."
        )
    left_out["longer than allowed"] = len(pairs) - len(fit)
    for reason, n in left_out.items():
        if n:
            logger.warning("ARENA_GOLD: %d pairs are excluded: %s", n, reason)
    gold = GoldPairs(fit, settings.gold_share, secrets.SystemRandom())
    store.register(gold.models, _now())
    return gold


def _instructed(settings: Settings) -> Instructed:
    """Read the prompts whose instructions can be checked."""
    if settings.instructions is None:
        return Instructed()
    try:
        tasks = read_tasks(settings.instructions)
    except RatingError as error:
        raise SettingsError(f"ARENA_INSTRUCTIONS: {error}") from error
    fit = [task for task in tasks if len(task.prompt) <= settings.max_prompt_chars]
    if len(fit) < len(tasks):
        logger.warning(
            "ARENA_INSTRUCTIONS: %d prompts are longer than ARENA_MAX_PROMPT_CHARS and excluded",
            len(tasks) - len(fit),
        )
    return Instructed(fit, secrets.SystemRandom())


def _tell(metrics: Metrics, events: Telemetry | None, notice: Notice) -> None:
    log_notice(notice)
    metrics.take(notice)
    if events is not None:
        events.take(notice)


def _now() -> datetime:
    return datetime.now(UTC)
