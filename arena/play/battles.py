"""Battles from the prompt to the reveal: the only way in for pages, API and simulations."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Self

from arena.domain.battle import (
    AnswerStatus,
    Followed,
    Mode,
    Notice,
    Remarks,
    Side,
    Snapshot,
    WhenAsked,
    Wins,
)
from arena.domain.model import Model, Roster
from arena.domain.vote import Choice, FailureClass, Receipt, Voter
from arena.errors import BadPromptError, ClosingError, NotReadyError, PlayError
from arena.play.live import Ask, blind_battle, stored_snapshot
from arena.play.matchmaking import (
    EMPTY_PROMPT,
    MODEL_GONE,
    NOT_ALL_YET,
    NOT_CHECKED_YET,
    NOT_RECORDED,
    ONE_TURN,
    REVEALED,
    VERSION,
    VOTE_FIRST,
    WHY_FIRST,
    Matchmaker,
    Rules,
    draw_one,
    too_long_message,
)
from arena.play.pace import Paces
from arena.play.runner import Relay, Relayed, Runner, Running, Writers
from arena.play.studies import GoldPairs, Instructed, is_owner
from arena.store import battles
from arena.store.chain import Ballot, NewBattle, StoredBattle
from arena.store.roster import prompt_id, prompt_secret
from arena.store.store import Store
from rating.tables.files import VISIBLE, storable

Hold = Callable[[Voter], AbstractContextManager[object]]
"""Gives a context manager for what a visitor asks for; raises a `PlayError` to refuse it."""

logger = logging.getLogger(__name__)

JUST = timedelta(seconds=20)
"""How long a model that failed is looked at: its answer is written down meanwhile."""
POLL_S = 0.5
"""How often a battle is looked up that runs, but not here, and cannot be relayed."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Who can answer, replaced as a whole while battles go on.

    Attributes
    ----------
    drawn : tuple of Model
        From whom new battles are drawn.
    known : mapping of str to Model
        Who can be asked again in a battle that has them, by id.
    recorded : mapping of str to frozenset of str
        Prompts that a model can answer, by model id; other models answer any.
    as_recorded : mapping of str to str
        Recorded prompts, by themselves without spaces at the ends.
    offered : tuple of str or None
        Prompts that can be answered, when only recordings battle; None when any can.
    """

    drawn: tuple[Model, ...]
    known: Mapping[str, Model]
    recorded: Mapping[str, frozenset[str]]
    as_recorded: Mapping[str, str]
    offered: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        drawn: Iterable[Model],
        recorded: Mapping[str, tuple[str, ...]],
        resting: Iterable[Model] = (),
    ) -> Self:
        """Put together whom new battles draw, and who rests but ends what they have begun."""
        models = tuple(drawn)
        return cls(
            drawn=models,
            known={model.id: model for model in (*resting, *models)},
            recorded={model: frozenset(prompts) for model, prompts in recorded.items()},
            as_recorded={p.strip(): p for prompts in recorded.values() for p in prompts},
            offered=_offered(models, recorded),
        )


class Battles:
    """Opens battles, shows them, and takes votes.

    Parameters
    ----------
    recorded : mapping of str to tuple of str
        Prompts that a model can answer, by model id; other models answer any.
    rng : random.Random
        Draws pairs and sides.
    wins : callable
        Gives the votes counted so far, for the samplers that go by them.
    admit : callable
        Entered, off the loop, around the writing of what asks the models; raises a
        `LimitError` to refuse it.
    running : callable
        Entered before that, and left when the models have answered; raises a `BusyError` or a
        `FullError` to refuse it.
    reading : callable
        What a reader of a running battle has to enter, and raises the same: `watch` itself
        cannot refuse before a stream has begun.
    notice : callable
        Called with what happens, for logs and figures.
    gold : GoldPairs, optional
        Of which some battles are made; their owners are known to the log.
    instructed : Instructed, optional
        Prompts whose instructions are checked after the vote.
    """

    def __init__(
        self,
        *,
        store: Store,
        ask: Ask,
        roster: Roster,
        rules: Rules,
        recorded: Mapping[str, tuple[str, ...]],
        rng: Random,
        now: Callable[[], datetime],
        wins: Callable[[], Wins] = dict,
        admit: Hold = nullcontext,
        running: Hold = nullcontext,
        reading: Hold = nullcontext,
        notice: Callable[[Notice], None] = lambda _notice: None,
        gold: GoldPairs | None = None,
        instructed: Instructed | None = None,
    ) -> None:
        self._store = store
        self._gold = gold or GoldPairs()
        self._instructed = instructed or Instructed()
        self._field = Field.of(roster, recorded)
        self._rules = rules
        self._rng = rng
        self._now = now
        self._prompt_secret = prompt_secret(store, now())
        self._admit = admit
        self._hold = running
        self.reading = reading
        self._notice = _quietly(notice)
        self._closing = False
        self._paused: dict[str, datetime] = {}
        self._failing: dict[str, datetime] = {}
        self._beginning: set[asyncio.Task[Snapshot]] = set()
        self.matchmaker = Matchmaker(
            roster,
            sampler=rules.sampler,
            exploration=rules.exploration,
            wins=wins,
            rng=rng,
            race=rules.race,
        )
        """Draws the pairs; the runner of the battles updates it with the votes."""
        self.paces = Paces(rules, [model.id for model in roster])
        """Chooses how fast they are shown; the runner of the battles loads earlier answers."""
        self._writers = Writers(store.lock_timeout_s)
        self._runner = Runner(
            store=store,
            writers=self._writers,
            ask=ask,
            rules=rules,
            paces=self.paces,
            substitute=self._substitute,
            now=now,
            notice=self._notice,
            failed=self._pause,
        )
        self.relay = Relay(store, self._runner, rules.tick_s)
        """Shows battles of other processes; the runner of the battles starts it."""

    @property
    def prompts(self) -> tuple[str, ...] | None:
        """Prompts that can be answered, when only recordings battle; None when any can."""
        return self._field.offered

    def offered(self) -> tuple[str, ...]:
        """Give prompts of files to try, which change now and then."""
        if self.prompts is not None:
            return ()
        return tuple(dict.fromkeys((*self._gold.offered(), *self._instructed.offered())))

    def use(self, field: Field) -> None:
        """Let others battle from here on, while running battles end as they began; may block."""
        self.matchmaker.use(field.drawn)
        self.paces.use([model.id for model in field.drawn])
        self._field = field

    async def open(self, voter: Voter, prompt: str) -> Snapshot:
        """Draw a pair, write the battle down, and let both models begin.

        Raises
        ------
        BadPromptError, LimitError, BusyError, FullError, ClosingError
            Before anything is written.
        """
        known = self._field.as_recorded.get(prompt.strip(), prompt)
        prompt = self._accepted(
            self._gold.untouched(known) or self._instructed.untouched(known) or known
        )
        able = self._awake(self.matchmaker.drawable(self._able(prompt)))
        if len(able) < 2:
            raise BadPromptError(NOT_RECORDED)
        name = prompt_id(self._prompt_secret, prompt)
        new = await self._gold_battle(voter, prompt, name)
        if new is None:
            draw = self.matchmaker.draw(able)
            recorded = not {draw.a.id, draw.b.id}.isdisjoint(self._field.recorded)
            new = blind_battle(
                voter,
                prompt,
                draw,
                self._rules,
                self._now(),
                sampler=self._rules.sampler,
                prompt_set="recorded" if recorded else None,
                prompt_id=name,
            )
        return await self._begin(voter, new.public_id, partial(self._store.open_battle, new))

    async def reply(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        """Ask the same two models the next thing, before the vote or after going on.

        Raises
        ------
        PlayError
            Nothing is written then.
        """
        prompt = self._accepted(prompt)
        stored = await asyncio.to_thread(self._store.battle, battle_id, voter.id)
        instead = self._instead(stored)
        if instead is None:
            self._partners(stored)
        write = partial(
            self._store.add_turn,
            battle_id,
            voter.id,
            prompt,
            self._now(),
            asked_since=self._asked_since(),
            instead=instead,
        )
        return await self._begin(voter, battle_id, write)

    async def regenerate(self, battle_id: str, voter: Voter) -> Snapshot:
        """Let both models answer the latest prompt again; a vote is on the newest attempts."""
        return await self._attempt(battle_id, voter, only_incomplete=False)

    async def retry(self, battle_id: str, voter: Voter) -> Snapshot:
        """Ask again for the answers that failed or were cut off in the latest turn."""
        return await self._attempt(battle_id, voter, only_incomplete=True)

    async def go_on(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        """Talk on with two revealed models: a battle of its own, which is not counted.

        Raises
        ------
        PlayError
            Nothing is written then.
        """
        prompt = self._accepted(prompt)
        stored = await asyncio.to_thread(self._store.battle, battle_id, voter.id)
        if stored.choice in (None, Choice.SKIP):
            raise NotReadyError(VOTE_FIRST)
        if stored.withheld:
            raise NotReadyError(WHY_FIRST)
        models = self._partners(stored)
        new = NewBattle(  # nothing was drawn for it
            owner=voter,
            mode=Mode.CONTINUED,
            prompt=prompt,
            turn=stored.turns[-1].turn + 1,
            continues=battle_id,
            a=models[Side.A],
            b=models[Side.B],
            sampler=Mode.CONTINUED,
            sampler_version=VERSION,
            pacing=self._rules.pacing,
            prompt_id=prompt_id(self._prompt_secret, prompt),
            created=self._now(),
        )
        return await self._begin(voter, new.public_id, partial(self._store.open_battle, new))

    async def look(self, battle_id: str, voter: Voter) -> Snapshot:
        """Show a battle to its owner as it stands.

        Raises
        ------
        UnknownBattleError
            If there is none, or it is another user's.
        """
        source = await self._source(battle_id, voter)
        return source if isinstance(source, Snapshot) else source.snapshot

    async def watch(self, battle_id: str, voter: Voter) -> AsyncGenerator[Snapshot]:
        """Show a battle until it has ended: whenever more of it may be seen, and now and then."""
        while True:
            source = await self._source(battle_id, voter)
            if isinstance(source, Snapshot):
                yield source
                if not source.state.running:
                    return
                await asyncio.sleep(POLL_S)
                continue
            changed, snapshot = source.changed, source.snapshot
            if isinstance(source, Running) or source.known:
                yield snapshot
            if not snapshot.state.running:
                return
            await changed.wait()
            ended = source.stored if isinstance(source, Running) else None
            if ended and self._runner.get(battle_id) is None:
                yield ended
                return

    async def _source(self, battle_id: str, voter: Voter) -> Running | Relayed | Snapshot:
        """Find what shows a battle to its owner: here, in another process, or from the log."""
        source = self._runner.get(battle_id) or self.relay.get(battle_id)
        if source is not None and source.owner == voter.id:
            return source
        stored = await asyncio.to_thread(self._store.battle, battle_id, voter.id)
        if source is not None:  # begun before its visitor signed in
            return source
        return await self.relay.join(stored) or stored_snapshot(stored, self._asked_since())

    async def stop(self, battle_id: str, voter: Voter) -> Snapshot:
        """End a running battle with what its reader has seen; an ended one stays as it is."""
        source = await self._source(battle_id, voter)
        if isinstance(source, Relayed):
            await self.relay.order(battle_id, source, "stop")
        elif isinstance(source, Running) and source.task is not None:
            source.live.stop()
            await asyncio.shield(source.task)
        return await self.look(battle_id, voter)

    async def show_rest(self, battle_id: str, voter: Voter) -> Snapshot:
        """Show the rest of both answers at once; an ended battle stays as it is.

        Raises
        ------
        NotReadyError
            If that has not been offered.
        """
        source = await self._source(battle_id, voter)
        snapshot = source if isinstance(source, Snapshot) else source.snapshot
        if not snapshot.state.running:
            return snapshot
        if not snapshot.rest_offered or isinstance(source, Snapshot):
            raise NotReadyError(NOT_ALL_YET)
        if isinstance(source, Relayed):
            await self.relay.order(battle_id, source, "rest")
        elif source.task is not None:
            source.live.show_rest()
            await asyncio.shield(source.task)
        return await self.look(battle_id, voter)

    async def vote(self, battle_id: str, voter: Voter, choice: Choice, key: str) -> Receipt:
        """Commit a vote, then reveal the models.

        The vote is committed before this returns, and no name is shown for a battle without
        one; where reasons are asked for before the names, `remark` reveals them. The same key
        with the same choice gives the same receipt again.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        StoreError
            The vote may not be committed: send it again with the same key.
        """
        ballot = Ballot(
            battle_id=battle_id,
            voter=voter.id,
            choice=choice,
            key=key,
            cast=self._now(),
            withhold=self._rules.reasons is WhenAsked.BEFORE,
            asked_since=self._asked_since(),
        )
        receipt, is_new = await self._writers.write(partial(self._store.cast, ballot))
        if is_new:
            self._notice(Notice("voted", battle_id, choice=choice))
        return receipt

    async def remark(self, battle_id: str, voter: Voter, remarks: Remarks) -> Snapshot:
        """Save what is remarked beside a vote, in the place of what was, and reveal the models.

        Raises
        ------
        UnknownBattleError, NotReadyError
            Nothing is written then. The vote stays as it is, whatever happens here.
        StoreError
            It may not be committed: send it again.
        """
        asked = self._rules.reasons is not WhenAsked.OFF
        write = partial(self._store.remark, battle_id, voter.id, remarks, self._now(), asked=asked)
        return stored_snapshot(await self._writers.write(write))

    async def followed(self, battle_id: str, voter: Voter) -> tuple[Followed, ...]:
        """Return which instructions of the prompt that was voted on each answer follows.

        Of a gold battle nothing: see `arena.play.studies`.

        Raises
        ------
        UnknownBattleError
        NotReadyError
            Before the vote, and while the names are withheld.
        """
        snapshot = await self.look(battle_id, voter)
        if snapshot.receipt is None or snapshot.receipt.reveal is None:
            raise NotReadyError(NOT_CHECKED_YET)
        if snapshot.receipt.gold:
            return ()
        last = snapshot.turns[-1]
        a, b = (
            one.text if one.status is AnswerStatus.COMPLETE else None for one in (last.a, last.b)
        )
        return await asyncio.to_thread(self._instructed.check, last.prompt, a, b)

    @property
    def closing(self) -> bool:
        """Whether no new battles are begun any more."""
        return self._closing

    async def drain(self, grace_s: float) -> None:
        """Begin no new battles, let the running ones end within the time, interrupt the rest."""
        self._closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while under_way := self._beginning | self._runner.tasks:
                    await asyncio.wait(under_way)
        await self._interrupt()

    async def close(self) -> None:
        """End all battles as interrupted, those too that are being written down just now."""
        await self._interrupt()
        await self.relay.close()
        await self._writers.close()

    async def _interrupt(self) -> None:
        while self._beginning:
            await asyncio.wait(self._beginning)
        await self._runner.close()

    def _asked_since(self) -> datetime:
        """Give the moment since which a battle's models were asked, or it has expired."""
        return self._now() - self._rules.vote_within

    async def _attempt(self, battle_id: str, voter: Voter, *, only_incomplete: bool) -> Snapshot:
        if self._closing:
            raise ClosingError
        stored = await asyncio.to_thread(self._store.battle, battle_id, voter.id)
        instead = None if only_incomplete else self._instead(stored)
        answers = (stored.turns[-1].a, stored.turns[-1].b)
        if any(one.error_class == FailureClass.REVEALED for one in answers):
            raise NotReadyError(REVEALED)
        if instead is None:
            self._models_of(stored)
        attempts = partial(
            self._store.add_attempts,
            battle_id,
            voter.id,
            self._now(),
            only_incomplete=only_incomplete,
            asked_since=self._asked_since(),
            instead=instead,
        )
        return await self._begin(voter, battle_id, attempts)

    async def _begin(
        self, voter: Voter, battle_id: str, write: Callable[[], StoredBattle]
    ) -> Snapshot:
        """Write and begin, both or neither, even if the visitor leaves in between."""

        def admit_and_write() -> StoredBattle:
            with self._admit(voter):
                return write()

        async def write_and_begin() -> Snapshot:
            with ExitStack() as place:
                place.enter_context(self._hold(voter))
                try:
                    stored = await self._writers.write(admit_and_write)
                except PlayError:
                    raise
                except Exception:
                    self._runner.disown(battle_id)  # it may be written, and be read as running
                    raise
                models, played = self._models_of(stored), self._played(stored)
                return self._runner.begin(stored, models, place.pop_all().close, played)

        beginning = asyncio.create_task(write_and_begin())
        self._beginning.add(beginning)
        beginning.add_done_callback(self._beginning.discard)
        return await asyncio.shield(beginning)

    def _substitute(self, prompt: str, tried: Collection[str]) -> Model | None:
        others = self._awake(
            [model for model in self._able(prompt) if model.id not in tried], fewest=1
        )
        return draw_one(others, self._rules.sampler, self._rng) if others else None

    def _partners(self, stored: StoredBattle) -> dict[Side, Model]:
        """Find the battle's models for one more turn, which recordings do not have."""
        if is_owner(stored.turns[-1].a.model_id):
            raise BadPromptError(ONE_TURN)
        models = self._models_of(stored)
        if any(model.id in self._field.recorded for model in models.values()):
            raise BadPromptError(ONE_TURN)
        return models

    def _models_of(self, stored: StoredBattle) -> dict[Side, Model]:
        """Find the battle's models in the roster, or among those who gave gold answers."""
        last = stored.turns[-1]
        ids = {Side.A: last.a.model_id, Side.B: last.b.model_id}
        if gold := self._gold.again(last.prompt, ids):
            return dict(gold.models)
        known = self._field.known
        if not set(ids.values()) <= known.keys():
            raise NotReadyError(MODEL_GONE)
        return {side: known[model_id] for side, model_id in ids.items()}

    async def _gold_battle(self, voter: Voter, prompt: str, name: str) -> NewBattle | None:
        """Draft a gold battle if it is the turn of one, and nobody has its prompt twice."""
        wanted = self._gold.untouched(prompt) is not None and not await asyncio.to_thread(
            self._store.read, battles.had_gold, voter.id, name
        )
        gold = self._gold.take(prompt, wanted=wanted)
        if gold is None:
            return None
        return blind_battle(
            voter,
            gold.prompt,
            gold.draw,
            self._rules,
            self._now(),
            sampler="gold",
            prompt_set=gold.prompt_set,
            prompt_id=name,
        )

    def _played(self, stored: StoredBattle) -> tuple[Ask, list[str]] | None:
        """Describe how the answers of a gold battle are written; None of any other."""
        last = stored.turns[-1]
        gold = self._gold.again(last.prompt, {Side.A: last.a.model_id, Side.B: last.b.model_id})
        if gold is None:
            return None
        as_if = self._stand_ins() or gold.models
        tempos = {
            side: self.paces.tempo_of(model.id, len(gold.texts[side]), self._rng)
            for side, model in as_if.items()
        }
        return gold.writer(tempos), [model.id for model in as_if.values()]

    def _instead(self, stored: StoredBattle) -> dict[Side, Model] | None:
        """Draw models that go on in the place of recorded answers, which do not; None of others.

        Nobody may learn before the vote that the answers are recorded.
        """
        if stored.choice is not None or not is_owner(stored.turns[-1].a.model_id):
            return None
        models = self._stand_ins()
        if models is None:
            raise BadPromptError(ONE_TURN)
        return models

    def _stand_ins(self) -> dict[Side, Model] | None:
        """Draw two models that answer any prompt; None if there are none."""
        field = self._field
        able = self._awake(
            self.matchmaker.drawable(m for m in field.drawn if m.id not in field.recorded)
        )
        if len(able) < 2:
            return None
        draw = self.matchmaker.draw(able)
        return {Side.A: draw.a, Side.B: draw.b}

    def _accepted(self, prompt: str) -> str:
        """Give a prompt as the log and both models have it."""
        if self._closing:
            raise ClosingError
        if not VISIBLE.search(prompt):
            raise BadPromptError(EMPTY_PROMPT)
        if len(prompt) > self._rules.max_prompt_chars:
            raise BadPromptError(too_long_message(len(prompt), self._rules.max_prompt_chars))
        return storable(prompt)

    def _pause(self, model: Model, failure: FailureClass) -> None:
        """Draw a model no more for a while if its account has no credit: it would fail again.

        The log does not name it, as it would tell who answers in a battle that may be retried.
        """
        now = self._now()
        self._failing[model.id] = now
        if failure is not FailureClass.NO_CREDIT or self._paused.get(model.id, now) > now:
            return
        logger.error(
            "A model is not drawn for %g minutes: its provider says that the account has no "
            "credit left. /admin and arena status show which model and what was said. Top the "
            "account up, or disable the model.",
            self._rules.paused_for.total_seconds() / 60,
        )
        self._paused[model.id] = now + self._rules.paused_for

    def failing(self) -> list[str]:
        """Give the models that have just failed here, by id: their answers are in the log soon."""
        since = self._now() - JUST
        return [model for model, when in [*self._failing.items()] if when > since]

    def resume(self, model_id: str) -> None:
        """Draw a model again that was paused, as it has answered."""
        self._paused.pop(model_id, None)

    def paused(self) -> Mapping[str, datetime]:
        """Give until when models are not drawn here, as their accounts have no credit, by id."""
        drawn = self._field.drawn
        awake = self._awake(drawn)
        return {model.id: self._paused[model.id] for model in drawn if model not in awake}

    def _awake(self, models: Sequence[Model], fewest: int = 2) -> Sequence[Model]:
        """Return the models without paused ones, if enough others remain."""
        now = self._now()
        awake = tuple(model for model in models if self._paused.get(model.id, now) <= now)
        return awake if len(awake) >= fewest else models

    def _able(self, prompt: str) -> list[Model]:
        field = self._field
        return [
            model
            for model in field.drawn
            if model.id not in field.recorded or prompt in field.recorded[model.id]
        ]


def _quietly(notice: Callable[[Notice], None]) -> Callable[[Notice], None]:
    """Log an exception of a notice: no battle and no vote depends on logs and figures."""

    def notify(what: Notice) -> None:
        try:
            notice(what)
        except Exception:
            logger.exception("%s could not be noted", what.event)

    return notify


def _offered(
    models: Sequence[Model], recorded: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Prompts for which two recordings have an answer, in the order of the first of them."""
    needed = 2 - sum(model.id not in recorded for model in models)
    if needed <= 0:
        return None
    counts = Counter(prompt for model in models for prompt in recorded.get(model.id, ()))
    return tuple(prompt for prompt, count in counts.items() if count >= needed)
