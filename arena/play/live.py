"""A battle while it runs: two answers arrive, and are shown at one pace."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from arena.domain.answer import Chunk, FailureClass, Finished, ReasoningDelta, TextDelta
from arena.domain.battle import Side
from arena.domain.ending import MAX_CHARACTERS
from arena.domain.model import Model
from arena.errors import EndpointError
from arena.play.pace import Pacer, Progress
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
    pieces : list of (float, int)
        Time of each piece of its text and characters before it, and last of its end: see
        `arena.play.pace.needs`.
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
    pieces: list[tuple[float, int]] = field(default_factory=list)
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

    def show_rest(self) -> None:
        """Show both answers to their ends, if that has been offered."""
        self.pacer.rest_wanted = self.pacer.rest_offered

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
                        answer.pieces.append((time.monotonic(), len(answer.text)))
                        answer.text += text
                    case ReasoningDelta(text, retracts):
                        if retracts:
                            self._retract(answer)
                        answer.reasoning += text
                    case Finished():
                        answer.finished = chunk
                        answer.pieces.append((time.monotonic(), len(answer.text)))
                if len(answer.text) >= self.rules.max_answer_chars:
                    answer.text = answer.text[: self.rules.max_answer_chars]
                    answer.finished = Finished(finish_reason=MAX_CHARACTERS)
                    answer.pieces.append((time.monotonic(), len(answer.text)))
                    return

    def _retract(self, answer: LiveAnswer) -> None:
        """Move what was taken for an answer to its reasoning; fails if some of it was shown."""
        sides = [side for side, one in self.answers.items() if one is answer]
        shown = max((len(self.shown(side)) for side in sides), default=0)
        answer.reasoning += answer.text[shown:]
        answer.text, answer.first_token_s = answer.text[:shown], None
        answer.pieces.clear()
        if shown:
            detail = (
                "what was shown as the answer was reasoning: have the model's server separate "
                "it (a reasoning parser)"
            )
            raise EndpointError(FailureClass.REVEALED, detail)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
