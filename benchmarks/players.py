"""Visitors who read battles and vote, over HTTP, as a page does: what is cut is asked for again.

They count what they saw: how long each thing took, what was refused, and which votes were
acknowledged.
"""

import asyncio
import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from arena.guard.limits import COOKIE, Identity
from tests.kills import SETTINGS

TICK_S = 0.1
AGAIN_S = 0.2
"""How soon what failed is tried again."""
OUTCOMES = ("model_a", "model_b", "tie", "both_bad")
UNANSWERED = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(slots=True)
class Seen:
    """What all players together saw.

    Attributes
    ----------
    took : mapping of str to list of float
        Seconds, by what was done.
    errors : Counter
        Requests that were refused or broken, by what was done and how it ended.
    acknowledged : mapping of str to str
        Outcome by battle, of every vote that was answered with its receipt.
    voted_at : list of float
        When each of them was.
    read : list of (float, float)
        When each battle that was read whole had begun, and when it had ended.
    wrong : int
        Battles whose texts did not arrive whole, each character once.
    failed : int
        Battles that ended without a vote, and said so.
    """

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, str] = field(default_factory=dict)
    voted_at: list[float] = field(default_factory=list)
    read: list[tuple[float, float]] = field(default_factory=list)
    wrong: int = 0
    failed: int = 0


class Player:
    """A visitor with a cookie of their own.

    Parameters
    ----------
    text : str
        What both sides answer.
    cookie : str or None
        Of somebody who has been here before; None makes a new visitor.
    """

    def __init__(
        self, http: aiohttp.ClientSession, seen: Seen, text: str, cookie: str | None = None
    ) -> None:
        self._http, self._seen, self._text = http, seen, text
        self._headers = {"Cookie": f"{COOKIE}={cookie or new_cookie()}"}

    async def read_on(self, until: float) -> None:
        """Read battles and vote on them, one after another."""
        number = 0
        while time.monotonic() < until:
            began = time.monotonic()
            battle_id = await self.open()
            if battle_id is not None and await self.follow(battle_id, began):
                self._seen.read.append((began, time.monotonic()))
                await self.vote(battle_id, OUTCOMES[number % len(OUTCOMES)])
            number += 1

    async def open(self) -> str | None:
        """Begin a battle; None if that was refused."""
        opened = await self._post("open", "/api/v1/battles", {"prompt": "Go"})
        if opened is None:
            await asyncio.sleep(AGAIN_S)
        return None if opened is None else str(opened["battle_id"])

    async def follow(self, battle_id: str, began: float) -> bool:
        """Read a battle to its end, on as many streams as it takes; whether it can be voted on."""
        reading = _Reading(began)
        while not reading.end:
            headers = self._headers | {"Last-Event-ID": reading.last}
            path = f"/api/v1/battles/{battle_id}/events"
            try:
                async with self._http.get(path, headers=headers) as answer:
                    if answer.status == 204:
                        break
                    if answer.status == 200:
                        async for line in answer.content:
                            reading.take(line)
                        how = "cut"
                    else:
                        how = str(answer.status)
            except UNANSWERED as error:
                how = type(error).__name__
            if not reading.end:
                self._seen.errors[f"stream {how}"] += 1
                await asyncio.sleep(AGAIN_S)
        self._seen.took["first text"] += reading.first_s
        self._seen.took["lag"] += reading.lags_s
        if reading.end != "ready":
            self._seen.failed += 1
            return False
        self._seen.wrong += reading.texts != {"a": self._text, "b": self._text}
        return True

    async def vote(self, battle_id: str, outcome: str) -> None:
        """Vote, again and again until that is acknowledged, with one key."""
        body = {"outcome": outcome, "key": str(uuid.uuid4())}
        began = time.monotonic()
        while True:
            receipt = await self._post(
                "vote", f"/api/v1/battles/{battle_id}/vote", body, timed=False
            )
            if receipt is not None:
                self._seen.took["vote"].append(time.monotonic() - began)
                self._seen.acknowledged[battle_id] = receipt["outcome"]
                self._seen.voted_at.append(time.monotonic())
                return
            await asyncio.sleep(AGAIN_S)

    async def _post(
        self, what: str, path: str, body: dict[str, str], *, timed: bool = True
    ) -> dict[str, Any] | None:
        """Send, and give the answer; None, and counted, if there is none or it is a refusal."""
        began = time.monotonic()
        try:
            async with self._http.post(path, json=body, headers=self._headers) as answer:
                if answer.status < 300:
                    taken: dict[str, Any] = await answer.json()
                    if timed:
                        self._seen.took[what].append(time.monotonic() - began)
                    return taken
                how = str(answer.status)
        except UNANSWERED as error:
            how = type(error).__name__
        self._seen.errors[f"{what} {how}"] += 1
        return None


class _Reading:
    """A battle as far as its events have come."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.last = ""
        self.end = ""
        self.texts = {"a": "", "b": ""}
        self.first_s: list[float] = []
        self.lags_s: list[float] = []
        self._name = ""
        self._at = 0.0

    def take(self, line: bytes) -> None:
        if line.startswith(b"id: "):
            self.last = line[4:].decode().strip()
        elif line.startswith(b"event: "):
            self._name = line[7:].decode().strip()
            if self._name in ("ready", "failed"):
                self.end = self._name
        elif line.startswith(b"data: ") and self._name == "delta":
            data = json.loads(line[6:])
            self.texts[data["side"]] += data["text"]
            if data["side"] == "a":
                self._note()

    def _note(self) -> None:
        now = time.monotonic()
        if self._at:
            self.lags_s.append(max(0.0, now - self._at - TICK_S))
        else:
            self.first_s.append(now - self.began)
        self._at = now


def new_cookie() -> str:
    """Make a cookie as the arena would."""
    return Identity(SETTINGS["ARENA_SECRET_KEY"]).issue()


@asynccontextmanager
async def connected(url: str, timeout_s: float = 120) -> AsyncIterator[aiohttp.ClientSession]:
    """Reach the arena, on as many connections as it takes."""
    async with aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as http:
        yield http


async def vote_at(
    rate: float, battles: Sequence[tuple[str, str]], http: aiohttp.ClientSession, seen: Seen
) -> None:
    """Vote on battles that are ready, so many a second, whatever becomes of those before.

    Parameters
    ----------
    battles : sequence of (str, str)
        Ids, and the cookies of their owners.
    """
    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number, (battle_id, cookie) in enumerate(battles):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            player = Player(http, seen, "", cookie)
            tasks.create_task(player.vote(battle_id, OUTCOMES[number % len(OUTCOMES)]))
