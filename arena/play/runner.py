"""Running battles: those of this process, and those of others that a reader follows here.

`Runner` runs each battle in a task of its own, from the first request to the last write. `Relay`
shows a battle in another process than the one that runs it. Between processes goes what a reader
may see and nothing else: never a model's name, nor more of an answer than the pace has released.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from arena.domain.battle import AnswerStatus, BattleState, Notice, Side, Snapshot
from arena.domain.model import Model
from arena.domain.vote import FailureClass
from arena.errors import StoreError, UnknownBattleError
from arena.play.live import (
    STILL_S,
    Ask,
    LiveAnswer,
    LiveBattle,
    answer_outcome,
    ended_snapshot,
    live_answer,
    lost_snapshot,
    outcome_of,
    released,
    running_snapshot,
    stored_snapshot,
)
from arena.play.matchmaking import INTERRUPTED, NOT_SAVED, STOPPED, TOO_LONG, Rules, failed_message
from arena.play.pace import Pacer, Paces
from arena.store.battles import runners
from arena.store.chain import AnswerKey, AnswerOutcome, StoredBattle, Took
from arena.store.engine import LONGEST
from arena.store.store import Store

# Battles of this process

T = TypeVar("T")
THREADS = 8
"""Of PostgreSQL's 15 connections that a process opens at most, these leave some to readers."""

logger = logging.getLogger(__name__)

Substitute = Callable[[str, Collection[str]], Model | None]
"""Draws a model for a prompt, other than those of the given ids; None when there is none."""


class Writers:
    """Runs what writes off the loop.

    Parameters
    ----------
    timeout_s : float
        Longest time that a visitor waits for other writers, including the wait for a thread.
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
                raise StoreError(f"The database kept writers waiting for {self._timeout_s:g} s.")
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
    def so_far(self) -> dict[AnswerKey, tuple[str, str]]:
        """What its models have written: text and reasoning."""
        answers = self.live.answers.items()
        return {self.key(side): (a.text, a.reasoning) for side, a in answers}

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
        played: tuple[Ask, Collection[str]] | None = None,
    ) -> Snapshot:
        """Let the answers that the latest turn lacks be written, and call ``ended`` after it.

        Parameters
        ----------
        played : tuple, optional
            Of recorded answers: what writes them, and the models by whose paces they are shown.
        """
        self._notice(Notice("asked", stored.public_id))
        tried = {model.id for model in models.values()}
        ask, as_if = played or (self._ask, tried)
        live = LiveBattle(
            answers={side: live_answer(stored, side, models[side]) for side in Side},
            pacer=Pacer(self._rules.pacing, self._paces.of(as_if)),
            rules=self._rules,
        )
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
                    model,
                    self._now(),
                )
            )
        except Exception:
            logger.exception("Battle %s could not get another model", battle_id)
            return None
        if not replaced:
            return None
        if failed.failure:
            self._notice(Notice("replaced", battle_id, failures=(failed.failure.failure,)))
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
                raise StoreError("The log waits for other answers than those that were written.")
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
        ends = outcomes.values()
        notice = Notice(
            "ended",
            battle_id,
            stands,
            tuple(FailureClass(one.error_class) for one in ends if one.error_class is not None),
            tuple(one.first_token_s for one in ends if one.first_token_s is not None),
        )
        self._notice(notice)

    def _let_go(self, battle_id: str, running: Running) -> None:
        """Leave a battle to the log, unless it has begun again here in the meantime."""
        if self._running.get(battle_id) is running:
            del self._running[battle_id]

    def _keep_on(self) -> None:
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Store the models' texts now and then, and the ends that are not stored yet."""
        written: dict[str, dict[AnswerKey, tuple[str, str]]] = {}
        while self._running or self._orphans:
            await asyncio.sleep(self._rules.checkpoint_s)
            battles = list(self._running.items())
            so_far = {id_: battle.so_far for id_, battle in battles if battle.final is None}
            more = {id_: texts for id_, texts in so_far.items() if texts != written.get(id_)}
            if more:
                try:
                    async with self._writing:
                        await self._writers.write(partial(self._store.checkpoint, more))
                except Exception:
                    logger.exception("%d battles could not be written while they run", len(more))
            written = so_far
            for battle_id, battle in battles:
                if battle.final is not None and await self._fail(battle_id):
                    self._let_go(battle_id, battle)
            for battle_id in tuple(self._orphans):
                if battle_id in self._running or await self._fail(battle_id):
                    self._orphans.discard(battle_id)

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


def _ending(live: LiveBattle) -> tuple[BattleState, str | None]:
    if (side := live.failed_side) is not None:
        failure = live.answers[side].failure
        too_long = failure is not None and failure.failure is FailureClass.CONTEXT_LENGTH
        return BattleState.FAILED, TOO_LONG if too_long else failed_message(side)
    if live.stopping and not all(live.shown(side) for side in Side):
        return BattleState.STOPPED, STOPPED
    return BattleState.READY, None


# Battles of other processes

RENEW_S = 1.0
"""How often a reader's process asks again, and looks whether the battle still runs."""
FORGET_S = 5.0
"""For how long what was asked for is sent, unless it is asked for again."""
FIRST_S = 1.0
"""How long a look at a battle waits for the process that runs it."""
ORDER_S = 20.0
"""How long a stop, or the rest, is asked for: nobody waits for ever for what cannot be reached."""
WAIT_S = 0.25
"""How long a thread waits for messages at a time: so long the end of a process may wait for it."""
PIECE = (LONGEST - 300) // (2 * len("\\ud83d\\ude00"))
"""Characters of each side in a message, were all of them as long as JSON can make them."""


class Reached(NamedTuple):
    """How far a reader's process has come."""

    turn: int
    attempt: int
    a: int = 0
    b: int = 0
    rest: bool = False


@dataclass(slots=True, eq=False, weakref_slot=True)
class Relayed:
    """A battle that another process runs, as far as it has been shown here.

    Attributes
    ----------
    begun : Snapshot
        As the log has it.
    known : bool
        Whether the process that runs it has answered.
    over : asyncio.Event
        Set once that runs it no longer: then the log states how it ended.
    changed : asyncio.Event
        Set, and replaced, whenever more is shown, and now and then when nothing is.
    """

    owner: str
    process: int
    begun: Snapshot
    reached: Reached
    a: str = ""
    b: str = ""
    known: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    announced: float = field(default_factory=time.monotonic)

    @property
    def snapshot(self) -> Snapshot:
        """What the owner may see of the battle now."""
        reached = self.reached
        return released(self.begun, self.a, self.b, reached.attempt, rest=reached.rest)

    def take(self, at: Reached, a: str, b: str) -> bool:
        """Take in what is shown from a place on; whether nothing is missing before it."""
        before = self.reached
        if at.attempt < before.attempt:
            return True  # of an attempt that was replaced meanwhile
        if at.attempt > before.attempt:
            self.a = self.b = ""
        if at.a > len(self.a) or at.b > len(self.b):
            return False
        self.a += a[len(self.a) - at.a :]
        self.b += b[len(self.b) - at.b :]
        rest = at.rest or (before.rest and at.attempt == before.attempt)
        self.reached = at._replace(a=len(self.a), b=len(self.b), rest=rest)
        if not self.known or self.reached != before:
            self.known = True
            self.announce()
        return True

    def end(self) -> None:
        """Leave the battle to the log."""
        self.over.set()
        self.announce()

    def announce(self) -> None:
        """Wake all who wait for a change."""
        self.announced = time.monotonic()
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(slots=True)
class _Follower:
    """A process that shows a battle of this one."""

    reached: Reached
    until: float
    answered: bool = False


class Relay:
    """Shows battles of other processes here, and battles of this one there.

    A reader's process asks the one that runs a battle for what may be shown, and gets it piece by
    piece. It asks again every second with what has come, so nothing depends on a message.
    On SQLite, where one process serves, it has nothing to do.
    """

    def __init__(self, store: Store, runner: Runner, tick_s: float) -> None:
        self._store = store
        self._runner = runner
        self._tick_s = tick_s
        self._notifications = store.notifications()
        self._relayed = WeakValueDictionary[str, Relayed]()
        self._followers: dict[tuple[str, int], _Follower] = {}
        self._due: list[tuple[int, str]] = []
        self._wake = asyncio.Event()
        self._ears = ThreadPoolExecutor(1, "relay")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen; another user's battles are asked for from here on."""
        if self._notifications is not None:
            self._task = asyncio.create_task(self._keep_on())

    async def close(self) -> None:
        """Listen no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._ears.shutdown)
        if self._notifications is not None:
            self._notifications.close()

    def get(self, battle_id: str) -> Relayed | None:
        """Find a running battle that a visitor reads here."""
        relayed = self._relayed.get(battle_id)
        return None if relayed is None or relayed.over.is_set() else relayed

    async def join(self, stored: StoredBattle) -> Relayed | None:
        """Show a battle of another process, from the moment on that this has answered.

        Returns
        -------
        Relayed or None
            None if it does not run, or not in another process. After a second one of which
            nothing is known yet.
        """
        elsewhere = stored.process not in (None, self._store.process)
        if self._task is None or not elsewhere or not stored.state.running:
            return None
        assert stored.process is not None, "no process runs it"
        relayed = self.get(stored.public_id)
        if relayed is None:
            begun = stored_snapshot(stored)
            last = begun.turns[-1]
            reached = Reached(last.turn, last.attempt)
            relayed = Relayed(stored.owner, stored.process, begun, reached)
            self._relayed[stored.public_id] = relayed
            self._follow(stored.public_id, relayed)
        if not relayed.known:
            await _passed(relayed.changed, FIRST_S)
        return None if relayed.over.is_set() else relayed

    async def order(self, battle_id: str, relayed: Relayed, deed: str) -> None:
        """Have the process that runs a battle ``stop`` it or show the ``rest``, and wait for that.

        It is asked again and again; the battle is over, too, when that process has died. After
        `ORDER_S` it cannot be reached, and the battle goes on as it will.
        """
        for _ in range(round(ORDER_S / RENEW_S)):
            if relayed.over.is_set():
                return
            self._post(relayed.process, deed, battle_id, turn=relayed.reached.turn)
            await _passed(relayed.over, RENEW_S)

    async def _keep_on(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for work in (self._receive, self._send, self._renew):
                tasks.create_task(_again(work))

    async def _receive(self) -> None:
        assert self._notifications is not None
        loop = asyncio.get_running_loop()
        receive = partial(self._notifications.receive, WAIT_S)
        while True:
            for message in await loop.run_in_executor(self._ears, receive):
                try:
                    self._take(**json.loads(message))
                except (TypeError, ValueError, KeyError):
                    logger.warning("Another process sent what this version cannot read")

    async def _send(self) -> None:
        """Send what is due, and what this process's battles show elsewhere, tick by tick."""
        assert self._notifications is not None
        while True:
            if not self._followers:
                await self._wake.wait()
            self._wake.clear()
            due, self._due = self._due, []
            due += self._news()
            if due:
                await asyncio.to_thread(self._notifications.send, due)
            await asyncio.sleep(self._tick_s)

    async def _renew(self) -> None:
        """Ask again for what is read here, and find out what has ended without a word."""
        while True:
            await asyncio.sleep(RENEW_S)
            read = dict(self._relayed)
            if not read:
                continue
            running = await asyncio.to_thread(self._store.read, runners, read)
            for battle_id, relayed in read.items():
                if running.get(battle_id) != relayed.process:
                    relayed.end()
                else:
                    self._follow(battle_id, relayed)
                if time.monotonic() - relayed.announced > STILL_S:
                    relayed.announce()

    def _follow(self, battle_id: str, relayed: Relayed) -> None:
        asker = self._store.process
        self._post(relayed.process, "follow", battle_id, asker=asker, at=relayed.reached)

    def _post(self, process: int, deed: str, battle_id: str, **more: Any) -> None:
        self._due.append((process, json.dumps({"deed": deed, "battle": battle_id} | more)))
        self._wake.set()

    def _take(self, deed: str, battle: str, **more: Any) -> None:
        """Do as a message says."""
        running, relayed = self._runner.get(battle), self.get(battle)
        match deed:
            case "follow" if running is not None:
                follower = _Follower(Reached(*more["at"]), time.monotonic() + FORGET_S)
                self._followers[battle, more["asker"]] = follower
                self._wake.set()
            case "stop" | "rest" if running is not None:
                if running.begun.turns[-1].turn == more["turn"]:  # not one begun since
                    (running.live.stop if deed == "stop" else running.live.show_rest)()
            case "show" if relayed is not None:
                at = Reached(*more["at"])
                if at.turn != relayed.reached.turn:
                    relayed.end()  # it ended, and has begun again: the log knows more
                elif not relayed.take(at, more["a"], more["b"]):
                    self._follow(battle, relayed)
            case "end" if relayed is not None:
                relayed.end()

    def _news(self) -> Iterator[tuple[int, str]]:
        """Give what other processes lack of the battles that they show."""
        now = time.monotonic()
        for (battle_id, process), follower in list(self._followers.items()):
            running = self._runner.get(battle_id)
            if running is None or running.final is not None or now > follower.until:
                del self._followers[battle_id, process]
                if running is None:
                    yield process, json.dumps({"deed": "end", "battle": battle_id})
                continue
            for news in _pieces(running.snapshot, follower):
                yield process, json.dumps(news | {"deed": "show", "battle": battle_id})


def _pieces(snapshot: Snapshot, follower: _Follower) -> Iterator[dict[str, object]]:
    """Give what a process lacks of a battle, in pieces that a message holds."""
    last = snapshot.turns[-1]
    before = follower.reached
    if (before.turn, before.attempt) != (last.turn, last.attempt):
        before = Reached(last.turn, last.attempt)
    whole = Reached(
        last.turn, last.attempt, len(last.a.text), len(last.b.text), snapshot.rest_offered
    )
    while not follower.answered or before != whole:
        a = last.a.text[before.a : before.a + PIECE]
        b = last.b.text[before.b : before.b + PIECE]
        yield {"at": before._replace(rest=whole.rest), "a": a, "b": b}
        before = whole._replace(a=min(whole.a, before.a + PIECE), b=min(whole.b, before.b + PIECE))
        follower.answered = True
    follower.reached = before


async def _again(work: Callable[[], Awaitable[None]]) -> None:
    """Go on with what the database, or a fault of ours, broke off."""
    while True:
        try:
            await work()
        except StoreError as error:
            logger.warning("%s", error)
        except Exception:
            logger.exception("The relay of battles broke off in a fault of ours")
        await asyncio.sleep(RENEW_S)


async def _passed(event: asyncio.Event, most_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(most_s):
            await event.wait()
