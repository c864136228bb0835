"""A battle while it runs: two answers arrive and are shown at one pace; and its snapshots.

`LiveBattle.run` asks both models until all is shown, one fails, or the reader stops. The functions
after it turn a running or stored battle into a `Snapshot`: all that its owner may see.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from arena.domain.battle import (
    AnswerStatus,
    BattleState,
    Mode,
    ShownAnswer,
    ShownTurn,
    Side,
    Snapshot,
    current_state,
)
from arena.domain.model import Model, is_gold
from arena.domain.vote import (
    MAX_CHARACTERS,
    Chunk,
    FailureClass,
    Finished,
    ReasoningDelta,
    Receipt,
    Reveal,
    RevealedModel,
    TextDelta,
    Voter,
    cut_of,
)
from arena.errors import EXPIRED, EndpointError
from arena.play.matchmaking import NOT_SAVED, VERSION, Draw, Rules
from arena.play.pace import Pacer, Progress, needs
from arena.store.chain import AnswerOutcome, NewBattle, StoredAnswer, StoredBattle, StoredTurn
from judge.case import Message

# Running battles

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

STILL_S = 4.0
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
            a, b = self.answers[Side.A], self.answers[Side.B]
            progress = Progress(len(a.text), len(b.text), a.ended, b.ended)
            if self.pacer.advance(progress, now - last) or now - announced >= STILL_S:
                self.announce()
                announced = now
            if self.pacer.all_shown(progress):
                return
            last = now
            await asyncio.sleep(self.rules.tick_s)

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


# Battles as they are logged, and as their owners see them


def blind_battle(
    voter: Voter,
    prompt: str,
    draw: Draw,
    rules: Rules,
    now: datetime,
    *,
    sampler: str,
    prompt_set: str | None,
    prompt_id: str,
) -> NewBattle:
    """Draft a blind battle between the two models of a draw; ``sampler`` states what drew them."""
    return NewBattle(
        owner=voter,
        prompt=prompt,
        a=draw.a,
        b=draw.b,
        side_seed=draw.side_seed,
        sampler=sampler,
        sampler_version=VERSION,
        pair_probability=draw.pair_probability,
        pacing=rules.pacing,
        prompt_set=prompt_set,
        prompt_id=prompt_id,
        created=now,
    )


def live_answer(stored: StoredBattle, side: Side, model: Model) -> LiveAnswer:
    """Take up one side of the latest turn: to be asked for, or complete from before."""
    answer = _side(stored.turns[-1], side)
    live = LiveAnswer(model, _conversation(stored, side), attempt=answer.attempt)
    if answer.status is AnswerStatus.COMPLETE:
        live.text, live.finished = answer.text, Finished(tokens_out=answer.tokens_out)
    return live


def _conversation(stored: StoredBattle, side: Side) -> tuple[Message, ...]:
    """Give what a model is sent: every prompt, and its side's earlier answers between them."""
    *earlier, last = stored.turns
    messages = [
        message
        for turn in earlier
        for message in (Message("user", turn.prompt), Message("assistant", _side(turn, side).text))
    ]
    return (*messages, Message("user", last.prompt))


def _with_last(
    snapshot: Snapshot, a: ShownAnswer, b: ShownAnswer, attempt: int | None = None, **changes: Any
) -> Snapshot:
    """Change what is shown of the latest turn, and of the battle."""
    *earlier, last = snapshot.turns
    turn = ShownTurn(last.turn, last.prompt, a, b, attempt or last.attempt)
    return replace(snapshot, turns=(*earlier, turn), **changes)


def _side(turn: StoredTurn, side: Side) -> StoredAnswer:
    return turn.a if side is Side.A else turn.b


def answer_outcome(live: LiveBattle, side: Side, state: BattleState) -> AnswerOutcome:
    """Describe how one side ended, for the log: what the reader saw decides its status."""
    status = _status(live, side, state)
    answer = live.answers[side]
    text = live.shown(side) if status is AnswerStatus.STOPPED else answer.text
    return outcome_of(answer, status, text)


def outcome_of(answer: LiveAnswer, status: AnswerStatus, text: str) -> AnswerOutcome:
    """Say for the log what became of an answer."""
    finished = answer.finished or Finished()
    failure = answer.failure
    return AnswerOutcome(
        text=text,
        status=status,
        reasoning=answer.reasoning,
        error_class=failure.failure if failure else None,
        error_detail=failure.detail if failure else None,
        finish_reason=finished.finish_reason or None,
        first_token_s=answer.first_token_s,
        duration_s=answer.duration_s,
        tokens_in=finished.tokens_in,
        tokens_out=finished.tokens_out,
        price=answer.model.price,
        request_id=finished.request_id or None,
        needs=needs(answer.pieces) if answer.finished and answer.pieces else None,
    )


def _status(live: LiveBattle, side: Side, state: BattleState) -> AnswerStatus:
    if live.answers[side].failure:
        return AnswerStatus.FAILED
    if live.shown_whole(side):
        return AnswerStatus.COMPLETE
    interrupted = state is BattleState.INTERRUPTED
    return AnswerStatus.INTERRUPTED if interrupted else AnswerStatus.STOPPED


def running_snapshot(begun: Snapshot, live: LiveBattle) -> Snapshot:
    """Show what a running battle has released: no side is called complete before the end."""
    a, b = (live.shown(side) for side in Side)
    return released(begun, a, b, begun.turns[-1].attempt, rest=live.pacer.rest_offered)


def released(begun: Snapshot, a: str, b: str, attempt: int, *, rest: bool) -> Snapshot:
    """Show so much of both answers of a running battle."""
    one, other = (ShownAnswer(text, AnswerStatus.STREAMING) for text in (a, b))
    state = BattleState.STREAMING if a or b else BattleState.CREATED
    return _with_last(begun, one, other, attempt, state=state, rest_offered=rest)


def ended_snapshot(
    begun: Snapshot,
    outcomes: Mapping[Side, AnswerOutcome],
    state: BattleState,
    message: str | None,
) -> Snapshot:
    """Show a battle that has ended so, as reading it would, if its models stay unknown."""
    last = begun.turns[-1]
    before = {Side.A: last.a, Side.B: last.b}
    a, b = (
        _shown(outcomes[side]) if answer.status is AnswerStatus.STREAMING else answer
        for side, answer in before.items()
    )
    return _with_last(begun, a=a, b=b, state=state, message=message)


def lost_snapshot(begun: Snapshot) -> Snapshot:
    """Show a battle whose end could not be written: it is not one to vote on."""
    nothing = ShownAnswer("", AnswerStatus.INTERRUPTED)
    return _with_last(begun, nothing, nothing, state=BattleState.FAILED, message=NOT_SAVED)


def stored_snapshot(stored: StoredBattle, asked_since: datetime | None = None) -> Snapshot:
    """Show a battle as the log has it.

    Parameters
    ----------
    asked_since : datetime, optional
        See `arena.domain.battle.current_state`; without it no battle has expired.
    """
    voted, state = None, stored.state
    if asked_since is not None:
        state = current_state(state, stored.mode, stored.asked, asked_since)
    if stored.choice:
        gold = is_gold(stored.prompt_set)
        voted = Receipt.of(stored.choice, _reveal(stored), gold=gold, withheld=stored.withheld)
    continued = _reveal(stored) if stored.mode is Mode.CONTINUED else None
    return Snapshot(
        battle_id=stored.public_id,
        state=state,
        created=stored.created,
        turns=tuple(_shown_turn(turn, stored.repicks) for turn in stored.turns),
        message=EXPIRED if state is BattleState.EXPIRED else stored.message,
        receipt=voted,
        models=voted.reveal if voted else continued,
        remarks=stored.remarks,
    )


def _reveal(stored: StoredBattle) -> Reveal:
    last = stored.turns[-1]
    return Reveal(_revealed(last.a), _revealed(last.b))


def _shown_turn(turn: StoredTurn, repicks: int) -> ShownTurn:
    """Show a turn; that a model was replaced unseen, which is in the first turn, does not show."""
    attempt = turn.a.attempt + turn.b.attempt - 1 - (repicks if turn.turn == 1 else 0)
    return ShownTurn(turn.turn, turn.prompt, _shown(turn.a), _shown(turn.b), attempt)


def _shown(answer: StoredAnswer | AnswerOutcome) -> ShownAnswer:
    """Show what was an answer: a failed or unfinished one is kept, but is none."""
    seen = answer.status in (AnswerStatus.COMPLETE, AnswerStatus.STOPPED)
    return ShownAnswer(answer.text if seen else "", answer.status)


def _revealed(answer: StoredAnswer) -> RevealedModel:
    return RevealedModel(
        id=answer.model_id,
        name=answer.model_name,
        latency_s=answer.first_token_s,
        tokens=answer.tokens_out,
        cost=answer.cost,
        cut=cut_of(answer.finish_reason),
    )
