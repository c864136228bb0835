"""The battles that this process runs: a task each, from the first request to the last write."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from arena.domain.answer import FailureClass
from arena.domain.battle import (
    AnswerStatus,
    Asked,
    BattleState,
    Ended,
    Notice,
    Replaced,
    Side,
    Snapshot,
)
from arena.domain.model import Model
from arena.errors import StoreError, UnknownBattleError
from arena.play.live import Ask, LiveAnswer, LiveBattle
from arena.play.pace import Pacer, Paces
from arena.play.rules import INTERRUPTED, NOT_SAVED, STOPPED, Rules, failed_message
from arena.play.snapshots import (
    answer_outcome,
    ended_snapshot,
    live_answer,
    lost_snapshot,
    new_answer,
    outcome_of,
    running_snapshot,
    stored_snapshot,
)
from arena.store.records import AnswerKey, AnswerOutcome, SoFar, StoredBattle, Took
from arena.store.store import Store

T = TypeVar("T")
THREADS = 8
"""Of PostgreSQL's 15 connections that a process opens at most, these leave some to readers."""

logger = logging.getLogger(__name__)

Substitute = Callable[[str, Collection[str]], Model | None]
"""Draws a model for a prompt, other than those of the given ids; None when there is none."""


@dataclass(frozen=True, slots=True)
class Played:
    """Recorded answers: what writes them, and the models by whose paces they are shown."""

    ask: Ask
    as_if: Collection[str]


class Writers:
    """Runs what writes off the loop.

    Parameters
    ----------
    timeout_s : float
        How long somebody may wait for others who write, their turn for a thread included.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS, "writer")

    async def write(self, act: Callable[[], T]) -> T:
        """Run it in a thread.

        Raises
        ------
        StoreError
            If no thread was free in time; nothing was written then.
        """
        latest = time.monotonic() + self._timeout_s

        def act_in_time() -> T:
            if time.monotonic() > latest:
                msg = f"The database kept writers waiting for {self._timeout_s:g} s."
                raise StoreError(msg)
            return act()

        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._threads, run, act_in_time)

    async def close(self) -> None:
        """Wait for the writes that are under way."""
        await asyncio.to_thread(self._threads.shutdown)


@dataclass(slots=True)
class Running:
    """A battle that this process runs.

    Attributes
    ----------
    begun : Snapshot
        The battle as it stood when this process took it up.
    tried : set of str
        Ids of the models that were asked in it.
    ask : callable
        How they are asked.
    final : Snapshot or None
        An end that could not be stored: that it failed is written later.
    stored : Snapshot or None
        The end as it is in the log, for those who read on: they need not look there.
    """

    owner: str
    begun: Snapshot
    live: LiveBattle
    tried: set[str]
    ask: Ask
    task: asyncio.Task[None] | None = None
    final: Snapshot | None = None
    stored: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What the owner may see of the battle now."""
        return self.final or running_snapshot(self.begun, self.live)

    @property
    def changed(self) -> asyncio.Event:
        """Set whenever more is shown, and now and then when nothing is."""
        return self.live.changed

    @property
    def so_far(self) -> dict[AnswerKey, SoFar]:
        """What its models have written."""
        answers = self.live.answers.items()
        return {self.key(side): SoFar(a.text, a.reasoning) for side, a in answers}

    def key(self, side: Side) -> AnswerKey:
        """Name a side's answer in the log."""
        return AnswerKey(self.begun.turns[-1].turn, side, self.live.answers[side].attempt)


class Runner:
    """Runs battles, each in a task of its own, and keeps what their owners may see.

    Parameters
    ----------
    substitute : callable
        Finds another model when one failed before anything of it was seen.
    notice : callable
        Called with what happens, for logs and figures.
    failed : callable
        Called with each model that did not answer, and why.
    """

    def __init__(
        self,
        *,
        store: Store,
        writers: Writers,
        ask: Ask,
        rules: Rules,
        paces: Paces,
        substitute: Substitute,
        now: Callable[[], datetime],
        notice: Callable[[Notice], None],
        failed: Callable[[Model, FailureClass], None],
    ) -> None:
        self._failed = failed
        self._store = store
        self._writers = writers
        self._ask = ask
        self._rules = rules
        self._paces = paces
        self._substitute = substitute
        self._now = now
        self._notice = notice
        self._running: dict[str, Running] = {}
        self._orphans: set[str] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def get(self, battle_id: str) -> Running | None:
        """Find a battle that runs here."""
        return self._running.get(battle_id)

    def begin(
        self,
        stored: StoredBattle,
        models: Mapping[Side, Model],
        ended: Callable[[], None],
        played: Played | None = None,
    ) -> Snapshot:
        """Let the answers that the latest turn lacks be written, and call ``ended`` after it."""
        self._notice(Asked(stored.public_id))
        tried = {model.id for model in models.values()}
        live = LiveBattle(
            answers={side: live_answer(stored, side, models[side]) for side in Side},
            pacer=Pacer(self._rules.pacing, self._paces.of(played.as_if if played else tried)),
            rules=self._rules,
        )
        ask = played.ask if played else self._ask
        running = Running(stored.owner, stored_snapshot(stored), live, tried, ask)
        self._running[stored.public_id] = running
        running.task = asyncio.create_task(self._run(stored.public_id, running))
        running.task.add_done_callback(lambda _task: ended())
        self._keep_on()
        return running.snapshot

    def disown(self, battle_id: str) -> None:
        """Let a battle fail that may be written as running, though nothing runs it."""
        self._orphans.add(battle_id)
        self._keep_on()

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """What runs them; done when a battle has ended and that is written."""
        return {b.task for b in self._running.values() if b.task and not b.task.done()}

    async def close(self) -> None:
        """End all running battles as interrupted."""
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._keeper is not None:
            async with self._writing:  # else the thread would write on, and nobody wait for it
                self._keeper.cancel()

    async def _run(self, battle_id: str, running: Running) -> None:
        live = running.live
        replace = partial(self._replace, battle_id, running)
        try:
            await live.run(running.ask, replace)
            state, message = _ending(live)
        except asyncio.CancelledError:
            state, message = BattleState.INTERRUPTED, INTERRUPTED
        except Exception:
            logger.exception("Battle %s ended in a fault of ours", battle_id)
            state, message = BattleState.INTERRUPTED, INTERRUPTED
        await self._finish(battle_id, running, state, message)

    async def _replace(
        self, battle_id: str, running: Running, side: Side, failed: LiveAnswer
    ) -> LiveAnswer | None:
        """Let another model take a side of which nothing was seen, in the first turn only."""
        if failed.failure:
            self._failed(failed.model, failed.failure.failure)
        turn = running.begun.turns[-1]
        if turn.turn > 1 or len(running.tried) - 2 >= self._rules.most_repicks:
            return None
        model = self._substitute(turn.prompt, running.tried)
        if model is None:
            return None
        outcome = outcome_of(failed, AnswerStatus.FAILED, failed.text)
        try:
            replaced = await self._writers.write(
                partial(
                    self._store.replace_answer,
                    battle_id,
                    running.key(side),
                    outcome,
                    new_answer(model),
                    self._now(),
                )
            )
        except Exception:
            logger.exception("Battle %s could not get another model", battle_id)
            return None
        if not replaced:
            return None
        if failed.failure:
            self._notice(Replaced(battle_id, failed.failure.failure))
        running.tried.add(model.id)
        other = next(a.model.id for s, a in running.live.answers.items() if s is not side)
        running.live.pacer.pace = self._paces.of((model.id, other))
        return LiveAnswer(model, failed.messages, attempt=failed.attempt + 1)

    async def _finish(
        self, battle_id: str, running: Running, state: BattleState, message: str | None
    ) -> None:
        """Write down how a battle ended, and end it for its readers whatever is raised."""
        outcomes: dict[AnswerKey, AnswerOutcome] = {}
        try:
            for side, answer in running.live.answers.items():
                outcome = answer_outcome(running.live, side, state)
                outcomes[running.key(side)] = outcome
                if answer.failure:
                    self._failed(answer.model, answer.failure.failure)
                if outcome.needs is not None:
                    took = Took(outcome.needs, outcome.duration_s or 0.0, len(outcome.text))
                    self._paces.learn(answer.model.id, took)
            close = partial(self._store.close_answers, message=message, now=self._now())
            stands = await self._writers.write(partial(close, battle_id, state, outcomes))
            if stands.running and self.get(battle_id) is running:
                msg = "The log waits for other answers than those that were written."
                raise StoreError(msg)
            if stands is state and running.begun.models is None:
                by_side = {key.side: outcome for key, outcome in outcomes.items()}
                running.stored = ended_snapshot(running.begun, by_side, state, message)
        except Exception:
            logger.exception("Battle %s ended, but could not be written", battle_id)
            running.final = lost_snapshot(running.begun)
            stands = running.final.state
        finally:
            if running.final is None:
                self._let_go(battle_id, running)
            running.live.announce()
        self._notice(_ended(battle_id, stands, outcomes.values()))

    def _let_go(self, battle_id: str, running: Running) -> None:
        """Leave a battle to the log, unless it has begun again here in the meantime."""
        if self._running.get(battle_id) is running:
            del self._running[battle_id]

    def _keep_on(self) -> None:
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Store the models' texts now and then, and the ends that are not stored yet."""
        written: dict[str, dict[AnswerKey, SoFar]] = {}
        while self._running or self._orphans:
            await asyncio.sleep(self._rules.checkpoint_s)
            battles = list(self._running.items())
            so_far = {id_: battle.so_far for id_, battle in battles if battle.final is None}
            more = {id_: texts for id_, texts in so_far.items() if texts != written.get(id_)}
            if more:
                await self._checkpoint(more)
            written = so_far
            for battle_id, battle in battles:
                if battle.final is not None and await self._fail(battle_id):
                    self._let_go(battle_id, battle)
            for battle_id in tuple(self._orphans):
                if battle_id in self._running or await self._fail(battle_id):
                    self._orphans.discard(battle_id)

    async def _checkpoint(self, so_far: Mapping[str, Mapping[AnswerKey, SoFar]]) -> None:
        try:
            async with self._writing:
                await self._writers.write(partial(self._store.checkpoint, so_far))
        except Exception:
            logger.exception("%d battles could not be written while they run", len(so_far))

    async def _fail(self, battle_id: str) -> bool:
        """Write down that a battle failed, unless it is not written at all; tell if that went."""
        try:
            async with self._writing:
                await self._writers.write(partial(self._store.fail, battle_id, NOT_SAVED))
        except UnknownBattleError:
            return True
        except Exception:
            logger.exception("Battle %s is still not written", battle_id)
            return False
        return True


def _ended(battle_id: str, state: BattleState, answers: Collection[AnswerOutcome]) -> Ended:
    return Ended(
        battle_id,
        state,
        failures=tuple(FailureClass(a.error_class) for a in answers if a.error_class is not None),
        first_tokens_s=tuple(a.first_token_s for a in answers if a.first_token_s is not None),
    )


def _ending(live: LiveBattle) -> tuple[BattleState, str | None]:
    if (side := live.failed_side) is not None:
        return BattleState.FAILED, failed_message(side)
    if live.stopping and not all(live.shown(side) for side in Side):
        return BattleState.STOPPED, STOPPED
    return BattleState.READY, None
