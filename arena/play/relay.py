"""Battles that other processes run, shown here as they are shown there.

Whoever reads a battle asks the process that runs it for what its reader may see, and gets that,
piece by piece: never a model's name, nor more of an answer than the pace has released. What is
asked for is asked again every second with what has come, so nothing depends on a message.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from arena.domain.battle import Snapshot
from arena.errors import StoreError
from arena.play.live import STILL_S
from arena.play.runner import Runner
from arena.play.snapshots import released, stored_snapshot
from arena.store.notifications import LONGEST
from arena.store.records import StoredBattle
from arena.store.single_battles import runners
from arena.store.store import Store

logger = logging.getLogger(__name__)

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
        Set once that runs it no longer: then the log says how it ended.
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
class Follower:
    """A process that shows a battle of this one."""

    reached: Reached
    until: float
    answered: bool = False


class Relay:
    """Shows battles of other processes here, and battles of this one there.

    On SQLite, where one process serves, it has nothing to do.
    """

    def __init__(self, store: Store, runner: Runner, tick_s: float) -> None:
        self._store = store
        self._runner = runner
        self._tick_s = tick_s
        self._notifications = store.notifications()
        self._relayed = WeakValueDictionary[str, Relayed]()
        self._followers: dict[tuple[str, int], Follower] = {}
        self._due: list[tuple[int, str]] = []
        self._wake = asyncio.Event()
        self._ears = ThreadPoolExecutor(1, "relay")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen; somebody else's battles are asked for from here on."""
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
        """Find a running battle that somebody reads here."""
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
                follower = Follower(Reached(*more["at"]), time.monotonic() + FORGET_S)
                self._followers[battle, more["asker"]] = follower
                self._wake.set()
            case "stop" | "rest" if running is not None:
                if running.begun.turns[-1].turn == more["turn"]:  # not one begun since
                    (running.live.stop if deed == "stop" else running.live.show_rest)()
            case "show" if relayed is not None:
                self._show(battle, relayed, Reached(*more["at"]), more["a"], more["b"])
            case "end" if relayed is not None:
                relayed.end()

    def _show(self, battle_id: str, relayed: Relayed, at: Reached, a: str, b: str) -> None:
        if at.turn != relayed.reached.turn:
            relayed.end()  # it ended, and has begun again: the log knows more
        elif not relayed.take(at, a, b):
            self._follow(battle_id, relayed)

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


def _pieces(snapshot: Snapshot, follower: Follower) -> Iterator[dict[str, object]]:
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
