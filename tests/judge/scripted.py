"""A judge that follows a script, a journal in memory, and a clock that jumps."""

import asyncio
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judge.calls import Key, Options
from judge.case import Case, FailureClass, Message, Reply, Request, TokenLogprob
from judge.grammar import Reading
from judge.protocol import Method
from judge.runs import Progress, run
from judge.verdict import Run

Script = Callable[[Request, int], Reply | Exception]
"""From a request, and how often it came before, to what happens."""


def case(number: int = 0, a: str | None = None, b: str | None = "") -> Case:
    b = f"The {number}th dull answer." if b == "" else b
    return Case((Message("user", f"Question {number}?"),), a or f"The {number}th good answer.", b)


def cases(n: int) -> list[Case]:
    return [case(number) for number in range(n)]


def shown(request: Request) -> list[str]:
    """The answers in a request, in the order in which they are shown."""
    text = request.messages[-1].content
    fenced = r"\[begin (?:answer|reply)[^\]]*\]\n(.*?)\n\[end (?:answer|reply)[^\]]*[0-9a-f]{16}\]"
    return re.findall(fenced, text, re.DOTALL)


def fence(request: Request) -> str:
    match = re.search(r"\[begin \w+ (?:\w )?([0-9a-f]{16})\]", request.messages[-1].content)
    assert match
    return match[1]


def label_reply(p: float, **fields: Any) -> Reply:
    """A reply of one token that prefers the first answer with probability p."""
    top = {"m": math.log(p), "M": math.log1p(-p)}
    return Reply(text="m", logprobs=(TokenLogprob("m", top["m"], top),), **fields)


def prefer(good: Callable[[str], bool]) -> Script:
    """Script of a plain pairwise judge who prefers the answer of which ``good`` holds."""

    def script(request: Request, before: int) -> Reply:
        first, second = (good(answer) for answer in shown(request))
        verdict = "C" if first == second else "A" if first else "B"
        return Reply(text=f"Compared. [[{verdict}]]", tokens_in=100, tokens_out=10)

    return script


def honest(text: str) -> bool:
    return "good answer" in text


class Clock:
    """Time that passes only when everybody waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = itertools.count()
        self._driver: asyncio.Task[None] | None = None

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, next(self._number), woken))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive())
        await woken

    async def _drive(self) -> None:
        while self._sleepers:
            for _ in range(20):
                await asyncio.sleep(0)
            self.time, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


@dataclass
class ScriptedJudge:
    """Answers by script, and counts.

    Attributes
    ----------
    asked, answered : Counter
        By the text of the user's message; ``answered`` are the ones paid for.
    """

    script: Script
    clock: Clock
    latency_s: float = 1.0
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, request: Request) -> Reply:
        text = request.messages[-1].content
        before = self.asked[text]
        self.asked[text] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.clock.sleep(self.latency_s)
        finally:
            self.at_once -= 1
        result = self.script(request, before)
        if isinstance(result, Exception):
            raise result
        self.answered[text] += 1
        return result


@dataclass
class Memory:
    """What several journals share."""

    replies: dict[Key, Reply] = field(default_factory=dict)
    holders: dict[Key, str] = field(default_factory=dict)
    notes: dict[tuple[str, Key], Reading | FailureClass] = field(default_factory=dict)
    lessons: dict[tuple[str, str], str] = field(default_factory=dict)

    def bury(self, holder: str) -> None:
        self.holders = {key: who for key, who in self.holders.items() if who != holder}


@dataclass
class MemoryJournal:
    memory: Memory = field(default_factory=Memory)
    holder: str = "one"

    def alive(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def lessons(self, endpoint: str) -> Mapping[str, str]:
        return {name: text for (of, name), text in self.memory.lessons.items() if of == endpoint}

    def learn(self, endpoint: str, name: str, sentence: str) -> None:
        self.memory.lessons[endpoint, name] = sentence

    async def recall(self, keys: Collection[Key]) -> Mapping[Key, Reply]:
        await asyncio.sleep(0)
        return {key: self.memory.replies[key] for key in keys if key in self.memory.replies}

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        await asyncio.sleep(0)
        taken = self.memory.replies.keys() | self.memory.holders.keys()
        ours = frozenset(keys) - taken
        self.memory.holders |= dict.fromkeys(ours, self.holder)
        return ours

    async def keep(self, key: Key, request: Request, reply: Reply) -> None:
        await asyncio.sleep(0)
        self.memory.replies.setdefault(key, reply)
        self.memory.holders.pop(key, None)

    async def release(self, keys: Collection[Key]) -> None:
        await asyncio.sleep(0)
        assert not self.memory.replies.keys() & set(keys), "an answered key is held no longer"
        for key in keys:
            self.memory.holders.pop(key, None)

    async def note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        await asyncio.sleep(0)
        self.memory.notes |= {(parser, key): reading for key, reading in readings.items()}


OPTIONS = Options(judge="judge-1", seed="a secret", concurrency=4)


async def judged(
    asked: Collection[Case],
    method: Method,
    judge: ScriptedJudge,
    journal: MemoryJournal,
    options: Options = OPTIONS,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Run:
    clock = judge.clock
    rng = np.random.default_rng(1)
    return await run(
        asked,
        method,
        judge,
        journal,
        options,
        now=clock.now,
        sleep=clock.sleep,
        rng=rng,
        progress=progress,
    )


def longer(request: Request, before: int) -> Reply:
    """Prefer the longer answer, and read nothing of either."""
    first, second = map(len, shown(request))
    return Reply(text="[[C]]" if first == second else "[[A]]" if first > second else "[[B]]")
