"""A battle while it runs: two answers arrive, and are shown at one pace."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from arena.domain.answer import Chunk, FailureClass, Finished, ReasoningDelta, TextDelta
from arena.domain.battle import Pacing, Side
from arena.domain.model import Model
from arena.errors import EndpointError
from arena.play.rules import Rules
from judge.case import Message

logger = logging.getLogger(__name__)

Ask = Callable[[Model, Sequence[Message]], AsyncGenerator[Chunk]]
"""How a model is asked: `arena.endpoints.client.Endpoints.stream`."""

RETRIED = {
    FailureClass.DROPPED,
    FailureClass.OVERLOADED,
    FailureClass.RATE_LIMIT,
    FailureClass.UNREACHABLE,
}
"""Failures that may pass by themselves: asked again, as long as nothing has been written."""

STILL_S = 15.0
"""Longest silence towards a reader: a proxy may close a connection after a longer one."""

LONGEST_PAUSE_S = 5.0
"""A visitor does not wait longer than this for an endpoint to take a request again."""


class Progress(NamedTuple):
    """How far the two models have written, and whether each has ended."""

    written_a: int
    written_b: int
    ended_a: bool
    ended_b: bool

    @property
    def both_ended(self) -> bool:
        """Whether nothing more comes from either side."""
        return self.ended_a and self.ended_b

    @property
    def both_begun(self) -> bool:
        """Whether each side has text, or has ended without any more to come."""
        return (self.written_a > 0 or self.ended_a) and (self.written_b > 0 or self.ended_b)


@dataclass(slots=True)
class Pacer:
    """Decides, tick by tick, how many characters of each answer are shown.

    In mode ``paced`` both sides start together and show the same number of characters, at most
    ``rate`` a second and never more than the slower model has written; a side whose model has
    ended lets the other go on at no more than the same rate; once both have ended the rest is
    released ``hurry`` times faster, to both alike. ``both-done`` shows nothing before both have
    ended, then all. ``raw`` shows what has been written: each model's own rhythm.

    Attributes
    ----------
    rate : float
        Characters a second.
    hurry : float
        Factor on the rate once both models have ended.
    """

    mode: Pacing
    rate: float
    hurry: float = 4.0
    shown_a: int = 0
    shown_b: int = 0
    _allowed: float = 0.0

    def advance(self, progress: Progress, elapsed_s: float) -> bool:
        """Release what ``elapsed_s`` more seconds allow; returns whether more is shown."""
        before = (self.shown_a, self.shown_b)
        self.shown_a, self.shown_b = self._release(progress, elapsed_s)
        return (self.shown_a, self.shown_b) != before

    def all_shown(self, progress: Progress) -> bool:
        """Whether both models have ended and the reader has seen all of it."""
        return progress.both_ended and (self.shown_a, self.shown_b) == (
            progress.written_a,
            progress.written_b,
        )

    def _release(self, progress: Progress, elapsed_s: float) -> tuple[int, int]:
        whole = (progress.written_a, progress.written_b)
        if self.mode is Pacing.RAW:
            return whole
        if self.mode is Pacing.BOTH_DONE:
            return whole if progress.both_ended else (0, 0)
        return self._release_paced(progress, elapsed_s)

    def _release_paced(self, progress: Progress, elapsed_s: float) -> tuple[int, int]:
        if progress.both_begun:
            self._allowed += elapsed_s * self.rate * (self.hurry if progress.both_ended else 1.0)
        ceiling = self._ceiling(progress)
        self._allowed = min(self._allowed, float(ceiling))
        level = int(self._allowed)
        return (
            max(self.shown_a, min(level, progress.written_a)),
            max(self.shown_b, min(level, progress.written_b)),
        )

    @staticmethod
    def _ceiling(progress: Progress) -> int:
        """Length that the sides may reach: what every model still writing has written."""
        if progress.ended_a == progress.ended_b:
            both = (progress.written_a, progress.written_b)
            return max(both) if progress.both_ended else min(both)
        return progress.written_b if progress.ended_a else progress.written_a


@dataclass(slots=True)
class LiveAnswer:
    """One side's answer as it arrives.

    Attributes
    ----------
    messages : sequence of Message
        The conversation that the model answers.
    first_token_s : float or None
        From the request that was answered.
    duration_s : float or None
        From the first request to the end, pauses between requests included.
    attempt : int
        Its number in the turn, as the log has it.
    """

    model: Model
    messages: Sequence[Message] = ()
    text: str = ""
    reasoning: str = ""
    finished: Finished | None = None
    failure: EndpointError | None = None
    first_token_s: float | None = None
    duration_s: float | None = None
    attempt: int = 1

    @property
    def ended(self) -> bool:
        """Whether the model will say no more."""
        return self.finished is not None or self.failure is not None


Replace = Callable[[Side, LiveAnswer], Awaitable[LiveAnswer | None]]
"""Finds another model for a side that failed before its text was shown, or None."""


@dataclass(slots=True)
class LiveBattle:
    """Both answers of a running battle, what its reader may see, and who waits for more.

    Attributes
    ----------
    stopping : bool
        Whether the reader wants no more.
    changed : asyncio.Event
        Set, and replaced, whenever more is shown, and now and then when nothing is.
    """

    answers: dict[Side, LiveAnswer]
    pacer: Pacer
    rules: Rules
    stopping: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, ask: Ask, replace: Replace) -> None:
        """Ask both models and release their text until all is shown, one fails, or a stop."""
        tasks = {
            side: asyncio.create_task(self._listen(answer, ask))
            for side, answer in self.answers.items()
            if not answer.ended
        }
        try:
            await self._release_all()
            while not self.stopping and (side := self._failed_unseen()) is not None:
                fresh = await replace(side, self.answers[side])
                if fresh is None:
                    return
                self.answers[side] = fresh
                tasks[side] = asyncio.create_task(self._listen(fresh, ask))
                await self._release_all()
        finally:
            await _end(tuple(tasks.values()))

    def stop(self) -> None:
        """Ask the battle to end with what has been shown."""
        self.stopping = True

    def shown(self, side: Side) -> str:
        """Text of one side that the reader may see."""
        length = self.pacer.shown_a if side is Side.A else self.pacer.shown_b
        return self.answers[side].text[:length]

    @property
    def failed_side(self) -> Side | None:
        """The first side whose model did not answer, if any."""
        return next((s for s, answer in self.answers.items() if answer.failure), None)

    def shown_whole(self, side: Side) -> bool:
        """Whether the reader has seen an answer to its end."""
        answer = self.answers[side]
        return answer.finished is not None and len(self.shown(side)) == len(answer.text)

    def _failed_unseen(self) -> Side | None:
        side = self.failed_side
        return side if side is not None and not self.shown(side) else None

    def announce(self) -> None:
        """Wake all who wait for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def _release_all(self) -> None:
        last = announced = time.monotonic()
        while not self.stopping and self.failed_side is None:
            now = time.monotonic()
            progress = self._progress()
            if self.pacer.advance(progress, now - last) or now - announced >= STILL_S:
                self.announce()
                announced = now
            if self.pacer.all_shown(progress):
                return
            last = now
            await asyncio.sleep(self.rules.tick_s)

    def _progress(self) -> Progress:
        a, b = self.answers[Side.A], self.answers[Side.B]
        return Progress(len(a.text), len(b.text), a.ended, b.ended)

    async def _listen(self, answer: LiveAnswer, ask: Ask) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.rules.answer_timeout_s):
                await self._take_patiently(answer, ask)
        except EndpointError as error:
            answer.failure = error
        except TimeoutError:
            detail = f"no end after {self.rules.answer_timeout_s:g} s"
            answer.failure = EndpointError(FailureClass.TIMEOUT, detail)
        except Exception:
            logger.exception("An answer ended in a fault of ours")
            answer.failure = EndpointError(FailureClass.INTERNAL, "see the log")
        finally:
            answer.duration_s = time.monotonic() - began

    async def _take_patiently(self, answer: LiveAnswer, ask: Ask) -> None:
        """Take an answer; ask again after a failure that may pass, before the first token."""
        for pause_s in (*self.rules.retry_pauses_s, None):
            try:
                return await self._take(answer, ask)
            except EndpointError as error:
                if answer.text or answer.reasoning or error.failure not in RETRIED:
                    raise
                if pause_s is None or (error.retry_after_s or 0) > LONGEST_PAUSE_S:
                    raise
                await asyncio.sleep(max(pause_s, error.retry_after_s or 0))

    async def _take(self, answer: LiveAnswer, ask: Ask) -> None:
        began = time.monotonic()
        async with aclosing(ask(answer.model, answer.messages)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextDelta(text):
                        if answer.first_token_s is None:
                            answer.first_token_s = time.monotonic() - began
                        answer.text += text
                    case ReasoningDelta(text):
                        answer.reasoning += text
                    case Finished():
                        answer.finished = chunk
                if len(answer.text) >= self.rules.max_answer_chars:
                    answer.text = answer.text[: self.rules.max_answer_chars]
                    answer.finished = Finished(finish_reason="max_answer_chars")
                    return


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
