"""The HTTP API of battles: open, read, follow, stop, vote.

A battle is followed as a stream of events. `Position`, the id of each event, states how much a
reader has. So a stream resumes at any event without a log of events. Pages get finished blocks of
answers as HTML by `HtmlReader`, each rendered once for all who read.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from arena.api.middleware import Plain, language_of, responses
from arena.domain.battle import (
    CONFIDENCE,
    LONGEST_COMMENT,
    AnswerStatus,
    BattleState,
    Intent,
    Reason,
    Remarks,
    ShownAnswer,
    ShownTurn,
    Side,
    Snapshot,
    in_order,
)
from arena.domain.vote import Choice, Reveal, Voter
from arena.errors import UnknownBattleError
from arena.guard.access import FIRST_CONTACT, PERSONAL
from arena.parts import Parts
from judge.render.text import Block, Stream, render
from rating.tables.files import storable

# Events

_Show = Callable[[Snapshot], Awaitable[str]]
"""Renders what the battle page shows beside the answers."""


class Position(NamedTuple):
    """How much of a battle a reader has: characters of each side, and the events around them.

    ``closing`` is 1 after ``rest``, and grows with each event that ends the turn. Written as
    ``turn.attempt.a.b.closing``: what an event carries as its id.
    """

    turn: int = 1
    attempt: int = 1
    a: int = 0
    b: int = 0
    closing: int = 0

    def __str__(self) -> str:
        return f"{self.turn}.{self.attempt}.{self.a}.{self.b}.{self.closing}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read an event id; anything that is none starts from the beginning."""
        parts = text.split(".")
        if len(parts) != 5 or not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):
            return cls()
        return cls(*map(int, parts))


class Event(NamedTuple):
    """What happened to a battle, as its readers get it.

    ``delta``: more text on one side; ``rest``: both are complete, and the rest of both may be
    shown at once; ``battle`` and ``blocks``: rendered ones, see `HtmlReader`;
    ``done``: one side has shown its whole answer; ``ready``: both have, and the battle takes a
    vote; ``failed``: one gave none, and it takes none; ``state``: either of these, for pages.

    Attributes
    ----------
    position : Position
        What a reader of this event has.
    """

    name: Literal["battle", "delta", "blocks", "rest", "done", "failed", "ready", "state"]
    data: Mapping[str, object]
    position: Position

    def __str__(self) -> str:
        return f"id: {self.position}\nevent: {self.name}\ndata: {json.dumps(self.data)}\n\n"


def events_since(snapshot: Snapshot, position: Position) -> Iterator[Event]:
    """Tell what a reader at a position lacks of the latest turn as it stands."""
    turn = snapshot.turns[-1]
    if (position.turn, position.attempt) != (turn.turn, turn.attempt):
        position = Position(turn.turn, turn.attempt)
    if text := turn.a.text[position.a :]:
        position = position._replace(a=len(turn.a.text))
        yield Event("delta", {"side": Side.A, "text": text}, position)
    if text := turn.b.text[position.b :]:
        position = position._replace(b=len(turn.b.text))
        yield Event("delta", {"side": Side.B, "text": text}, position)
    closing = _closing(snapshot, position)
    yield from (event for event in closing if event.position.closing > position.closing)


def is_behind(snapshot: Snapshot, position: Position) -> bool:
    """Whether a reader at a position lacks anything, now or later."""
    return snapshot.state.running or next(events_since(snapshot, position), None) is not None


def _closing(snapshot: Snapshot, position: Position) -> list[Event]:
    """Give the events that end the turn, or before that the offer of the rest."""
    if snapshot.state.running:
        return [Event("rest", {}, position._replace(closing=1))] if snapshot.rest_offered else []
    turn = snapshot.turns[-1]
    sides = {Side.A: turn.a, Side.B: turn.b}
    if snapshot.state in (BattleState.READY, BattleState.VOTED, BattleState.SKIPPED):
        done = [
            Event("done", {"side": side, "status": one.status}, position._replace(closing=number))
            for number, (side, one) in enumerate(sides.items(), 2)
        ]
        return [*done, Event("ready", {}, position._replace(closing=4))]
    message = snapshot.message or ""
    failed = [side for side in sides if sides[side].status is AnswerStatus.FAILED]
    return [
        Event("failed", {"side": side, "message": message}, position._replace(closing=number))
        for number, side in enumerate(failed or sides, 2)
    ]


# Events for pages: answers as HTML

LONG = 8_000
"""Characters of an answer from which on it is rendered beside the event loop."""
BROKEN = (AnswerStatus.FAILED, AnswerStatus.INTERRUPTED)
"""How an answer ends of which nothing is shown any more."""
SLOW_S = 0.02
"""What a look may take on the event loop; an answer that took longer goes on beside it."""


class Answer:
    """An answer as it is rendered: every change of a block so far, and the text after them."""

    def __init__(self) -> None:
        self.changes: list[Block] = []
        self.tail = ""
        self._stream = Stream()
        self.taken = 0
        self._closed = False

    def take(self, shown: ShownAnswer) -> None:
        """Render what is new."""
        self.changes += self._stream.feed(shown.text[self.taken :])
        self.taken = len(shown.text)
        if shown.status is not AnswerStatus.STREAMING and not self._closed:
            self._closed = True
            self.changes += self._stream.close()
        self.tail = self._stream.tail


class _Rendering:
    """The latest answers of a battle, rendered once for all who read them."""

    def __init__(self) -> None:
        self.answers: dict[Side, Answer] = {}
        self._attempt: tuple[int, int] | None = None
        self._slow = False
        self._one_at_a_time = asyncio.Lock()

    async def take(self, turn: ShownTurn) -> None:
        """Render what is new of both answers."""
        async with self._one_at_a_time:
            status = {Side.A: turn.a.status, Side.B: turn.b.status}
            gone = any(one.taken and status[side] in BROKEN for side, one in self.answers.items())
            if gone or self._attempt != (turn.turn, turn.attempt):
                self._attempt = turn.turn, turn.attempt
                self.answers = {side: Answer() for side in Side}
            if self._slow or len(turn.a.text) + len(turn.b.text) > LONG:
                await asyncio.to_thread(self._take, turn)
            else:
                begun = perf_counter()
                self._take(turn)
                self._slow = perf_counter() - begun > SLOW_S

    def _take(self, turn: ShownTurn) -> None:
        self.answers[Side.A].take(turn.a)
        self.answers[Side.B].take(turn.b)


class Renderings:
    """The battles that a visitor is reading."""

    def __init__(self) -> None:
        self._read = WeakValueDictionary[str, _Rendering]()

    def of(self, battle_id: str) -> _Rendering:
        """Give a battle's rendering, which lasts as long as one reader holds it."""
        return self._read.setdefault(battle_id, _Rendering())


class HtmlReader:
    """What a connection has of a battle, and how its page shows the end of one.

    ``battle {"html", "remarks"}`` is all that the page shows beside the latest answers, and what
    the voter remarked. ``blocks {"side", "blocks": [[index, html], ...], "tail"}`` are blocks
    that are new or have changed, by their place in the answer, and the text that follows them;
    ``delta {"side", "text"}`` is more of that text. Each connection begins with all there is, as
    does each attempt, so a page that lost some misses nothing. ``state {"html"}`` ends them, in
    the place of ``ready`` and ``failed``.
    """

    def __init__(self, rendering: _Rendering, show: _Show) -> None:
        self._rendering = rendering
        self._show = show
        self._answers: dict[Side, Answer] = {}
        self._changes = dict.fromkeys(Side, 0)
        self._tails: dict[Side, str | None] = dict.fromkeys(Side)

    async def events(self, snapshot: Snapshot, position: Position) -> list[Event]:
        """Give what it lacks of the latest turn as it stands."""
        turn = snapshot.turns[-1]
        await self._rendering.take(turn)
        plain = list(events_since(snapshot, position))
        begins = self._answers != self._rendering.answers
        begun = (position.turn, position.attempt) == (turn.turn, turn.attempt)
        reached = Position(
            turn.turn, turn.attempt, len(turn.a.text), len(turn.b.text),
            closing=position.closing if begun else 0,
        )  # fmt: skip
        news = [event for side in Side for event in self._news(side, reached)]
        news += [event for event in plain if event.name in ("rest", "done")]
        last = [event for event in plain if event.name in ("ready", "failed")][-1:]
        html = {"html": await self._show(snapshot)} if begins or last else {}
        news += [Event("state", html, event.position) for event in last]
        if begins:
            body = BattleBody.model_validate(snapshot)
            data = html | body.model_dump(mode="json", include={"remarks"})
            news.insert(0, Event("battle", data, reached))
        return news

    def _news(self, side: Side, reached: Position) -> Iterator[Event]:
        answer = self._rendering.answers[side]
        if self._answers.get(side) is not answer:
            self._answers[side], self._changes[side], self._tails[side] = answer, 0, None
        changed = {block.index: block.html for block in answer.changes[self._changes[side] :]}
        before, tail = self._tails[side], answer.tail
        self._changes[side], self._tails[side] = len(answer.changes), tail
        if changed or before is None or not tail.startswith(before):
            data = {"side": side, "blocks": list(changed.items()), "tail": tail}
            yield Event("blocks", data, reached)
        elif tail != before:
            yield Event("delta", {"side": side, "text": tail[len(before) :]}, reached)


# Bodies


class NewBattleBody(BaseModel):
    """A prompt for two models."""

    model_config = ConfigDict(json_schema_extra={"example": {"prompt": "What does yield do?"}})

    prompt: str


class OpenedBattle(Plain):
    """A battle that has begun."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "battle_id": "4f1c8f6e2d0b4d6d8a7c0d5f1f0e9a3b",
                "state": "created",
                "turn": 1,
            }
        }
    )

    battle_id: str
    state: BattleState
    turn: int


class VoteBody(BaseModel):
    """A choice, with a key that makes sending it twice harmless."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"outcome": Choice.A.value, "key": "0b8f3c1e-6c0e-4a36-9d2d-6a5f4f1f7a55"}
        }
    )

    outcome: Choice
    key: UUID


class ReceiptBody(Plain):
    """A committed vote; ``models`` is null for a skip, and while the names are withheld.

    ``gold`` is true where the answers were recorded and one is known to be right, once the names
    are shown: such a vote counts on no leaderboard. ``html`` is there if asked for.
    """

    outcome: Choice = Field(validation_alias="choice")
    models: Reveal | None = Field(validation_alias="reveal")
    gold: bool
    html: str | None = None


class RemarksBody(Plain):
    """What is remarked beside a vote, all of it optional; it never changes the vote.

    ``confidence`` is 1 for a guess, 2 for fairly sure, 3 for sure.
    """

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "reasons_a": ["useful", "clear_formatting"],
                "reasons_b": ["incorrect"],
                "comment": "",
                "confidence": 3,
                "intent": "quizzing",
            }
        },
    )

    reasons_a: list[Reason] = Field([], max_length=len(Reason))
    reasons_b: list[Reason] = Field([], max_length=len(Reason))
    comment: str = Field("", max_length=LONGEST_COMMENT)
    confidence: int | None = Field(None, ge=1, le=max(CONFIDENCE))
    intent: Intent | None = None


class SavedRemarksBody(RemarksBody):
    """Remarks that are saved; ``before_reveal`` states whether they were before the names."""

    before_reveal: bool


class RemarkedBody(Plain):
    """A vote and what is remarked beside it: the last that was sent."""

    vote: ReceiptBody = Field(validation_alias="receipt")
    remarks: SavedRemarksBody


class FollowedBody(Plain):
    """An instruction by its id, and whether each side follows it; null where unknown."""

    id: str
    a: bool | None
    b: bool | None


class InstructionsBody(Plain):
    """The instructions of the prompt that was voted on which can be checked; often none."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"instructions": [{"id": "punctuation:no_comma", "a": True, "b": False}]}
        }
    )

    instructions: list[FollowedBody]


class AnswerBody(Plain):
    """What one side has shown so far; ``html`` is there if asked for and the answer has ended."""

    text: str
    status: AnswerStatus
    html: str | None = None


class TurnBody(Plain):
    """One prompt and both answers."""

    turn: int
    prompt: str
    a: AnswerBody
    b: AnswerBody


class BattleBody(Plain):
    """A battle as its owner may see it now.

    ``vote`` is null before the vote; ``models`` is null until a committed vote has revealed
    them, and stays known where the two go on after it. ``remarks`` is null until there are some.
    ``html`` is what the battle page shows beside the answers, there if asked for.
    """

    battle_id: str
    state: BattleState
    turn: int
    created: datetime
    turns: list[TurnBody]
    message: str | None
    vote: ReceiptBody | None = Field(validation_alias="receipt")
    models: Reveal | None
    remarks: SavedRemarksBody | None
    html: str | None = None


# Routes

Html = Annotated[bool, Query(description="Whether what the battle page shows comes as HTML, too")]
BattleId = Annotated[str, Path(description="As given when the battle was opened")]
UNBUFFERED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
FIELDS = {name: {"type": "string"} for name in ("id", "event", "data")}
STREAM: dict[str, Any] = {
    "description": "Events, as long as the battle runs",
    "content": {"text/event-stream": {"itemSchema": {"type": "object", "properties": FIELDS}}},
}
BEGUN: dict[str, Any] = {"response_model": OpenedBattle, "status_code": 201}
STANDING: dict[str, Any] = {
    "response_model": BattleBody,
    "response_model_exclude_unset": True,
    "responses": responses(404, 503),
}
STILL_HERE = ": still here\n\n"
EVENTS = """Server-sent events: `delta {"side", "text"}`, `rest {}` (both are complete, and what is
left may be shown at once), `done {"side"}`, `failed {"side", "message"}`, `ready {}`. Resumes
after `Last-Event-ID`; ends after `ready` or `failed`; asked again from there, answers 204. With
`html=1` the first is `battle {"html", "remarks"}`, what the page shows beside the latest answers,
and finished blocks come rendered: `blocks {"side", "blocks": [[index, html], ...], "tail"}`, each
in the place of the one that stood there, with the text that follows them; `delta` is then more of
that text, and `state {"html"}` ends them."""


class _EventStream(StreamingResponse):
    """Server-sent events.

    Written here because FastAPI's own, with two tasks and five hand-overs for each event, takes
    most of the time that a battle takes: see ``benchmarks/live.py``.
    """

    media_type = "text/event-stream"


async def _visitor(request: Request) -> Voter:
    """Tell who asks; a visitor without a cookie owns no battle.

    It waits for nothing, but FastAPI calls what is not async in a thread.
    """
    voter: Voter | None = getattr(request.state, "voter", None)
    if voter is None:
        raise UnknownBattleError
    return voter


Visitor = Annotated[Voter, Depends(_visitor)]


def battles_router(parts: Parts, view: Callable[..., Awaitable[str]]) -> APIRouter:
    """Make the routes of battles; a view shows a snapshot to its ``voter`` in a ``language``."""
    battles = parts.battles
    begin, router = (
        APIRouter(
            prefix="/api/v1/battles",
            tags=["battles"],
            dependencies=[access],
            responses=responses(400, 403, 421),
        )
        for access in (FIRST_CONTACT, PERSONAL)
    )
    renderings = Renderings()

    async def position(
        battle_id: BattleId, voter: Visitor, last_event_id: Annotated[str, Header()] = ""
    ) -> Position:
        """Find where a reader goes on, before the stream begins and its status is fixed."""
        reached = Position.parse(last_event_id)
        if not is_behind(await battles.look(battle_id, voter), reached):
            raise HTTPException(204)
        return reached

    async def place(voter: Visitor) -> AsyncIterator[None]:
        """Hold a reader's place until the stream has been sent."""
        with battles.reading(voter):
            yield

    async def showing(voter: Visitor, request: Request, html: Html = False) -> _Show | None:
        """Choose what renders for the page, if the page asks."""
        return partial(view, voter=voter, language=language_of(request.scope)) if html else None

    page = Depends(showing)

    @begin.post("", **BEGUN, responses=responses(413, 422, 429, 503))
    async def open_battle(body: NewBattleBody, voter: Visitor) -> Snapshot:
        """Begin a battle: two models, drawn at random, answer the prompt."""
        return await battles.open(voter, body.prompt)

    @router.get("/{battle_id}", response_model_exclude_unset=True, responses=responses(404, 503))
    async def read_battle(
        battle_id: BattleId, voter: Visitor, show: _Show | None = page
    ) -> BattleBody:
        """Read the transcript and the state; the models' names only after the vote."""
        snapshot = await battles.look(battle_id, voter)
        return await _for_page(snapshot, show) if show else BattleBody.model_validate(snapshot)

    @router.get("/{battle_id}/instructions", responses=responses(404, 409, 503))
    async def read_instructions(battle_id: BattleId, voter: Visitor) -> InstructionsBody:
        """Read which instructions each answer follows, once the vote has revealed the models."""
        followed = await battles.followed(battle_id, voter)
        return InstructionsBody(instructions=[FollowedBody.model_validate(f) for f in followed])

    @router.get(
        "/{battle_id}/events",
        response_class=Response,
        description=EVENTS,
        dependencies=[Depends(place)],
        responses=responses(404, 429, 503)
        | {200: STREAM, 204: {"description": "Nothing more will come"}},
    )
    async def follow_battle(
        battle_id: BattleId,
        voter: Visitor,
        reached: Annotated[Position, Depends(position)],
        show: _Show | None = page,
    ) -> _EventStream:
        reader = HtmlReader(renderings.of(battle_id), show) if show else None
        snapshots = battles.watch(battle_id, voter)
        return _EventStream(_messages(snapshots, reached, reader), headers=UNBUFFERED)

    @router.post("/{battle_id}/turns", **BEGUN, responses=responses(404, 409, 422, 429, 503))
    async def add_turn(battle_id: BattleId, body: NewBattleBody, voter: Visitor) -> Snapshot:
        """Ask the same two models the next thing, before the vote."""
        return await battles.reply(battle_id, voter, body.prompt)

    @router.post("/{battle_id}/regenerate", **BEGUN, responses=responses(404, 409, 429, 503))
    async def regenerate(battle_id: BattleId, voter: Visitor) -> Snapshot:
        """Let both models answer the latest prompt again, before the vote."""
        return await battles.regenerate(battle_id, voter)

    @router.post("/{battle_id}/retry", **BEGUN, responses=responses(404, 409, 429, 503))
    async def retry(battle_id: BattleId, voter: Visitor) -> Snapshot:
        """Ask again for the answers of the latest turn that failed or were cut off."""
        return await battles.retry(battle_id, voter)

    @router.post("/{battle_id}/continue", **BEGUN, responses=responses(404, 409, 422, 429, 503))
    async def go_on(battle_id: BattleId, body: NewBattleBody, voter: Visitor) -> Snapshot:
        """Talk on with two revealed models: a battle of its own, which is not counted."""
        return await battles.go_on(battle_id, voter, body.prompt)

    @router.post("/{battle_id}/stop", **STANDING)
    async def stop_battle(battle_id: BattleId, voter: Visitor) -> Snapshot:
        """End the answers where they are; both can be voted on if both have shown text."""
        return await battles.stop(battle_id, voter)

    @router.post("/{battle_id}/rest", **STANDING | {"responses": responses(404, 409, 503)})
    async def show_rest(battle_id: BattleId, voter: Visitor) -> Snapshot:
        """Show the rest of both answers at once, after the event `rest`."""
        return await battles.show_rest(battle_id, voter)

    @router.post(
        "/{battle_id}/vote",
        response_model_exclude_unset=True,
        responses=responses(404, 409, 422, 503),
    )
    async def vote(
        battle_id: BattleId, body: VoteBody, voter: Visitor, show: _Show | None = page
    ) -> ReceiptBody:
        """Vote, once; the models are revealed when the vote is committed."""
        receipt = await battles.vote(battle_id, voter, body.outcome, str(body.key))
        answer = ReceiptBody.model_validate(receipt)
        if show:
            answer.html = await show(await battles.look(battle_id, voter))
        return answer

    @router.post(
        "/{battle_id}/remarks",
        response_model_exclude_unset=True,
        responses=responses(404, 409, 422, 503),
    )
    async def remark(
        battle_id: BattleId, body: RemarksBody, voter: Visitor, show: _Show | None = page
    ) -> RemarkedBody:
        """Explain why, after the vote: all that was remarked, in the place of what was before.

        Where the arena asks before it shows the names, this reveals the models, also if nothing
        is remarked.
        """
        remarks = Remarks(
            reasons_a=in_order(body.reasons_a),
            reasons_b=in_order(body.reasons_b),
            comment=storable(body.comment.strip()),
            confidence=body.confidence,
            intent=body.intent,
        )
        snapshot = await battles.remark(battle_id, voter, remarks)
        answer = RemarkedBody.model_validate(snapshot)
        if show:
            answer.vote.html = await show(snapshot)
        return answer

    router.routes[:0] = begin.routes
    return router


async def _for_page(snapshot: Snapshot, show: _Show) -> BattleBody:
    """Add the finished answers to a battle as HTML, with their facts."""

    def add_answers() -> None:
        for turn in body.turns:
            for answer in (turn.a, turn.b):
                if answer.status is not AnswerStatus.STREAMING:
                    answer.html = render(answer.text)

    body = BattleBody.model_validate(snapshot)
    body.html = await show(snapshot)
    await asyncio.to_thread(add_answers)
    return body


async def _messages(
    looks: AsyncGenerator[Snapshot], reached: Position, reader: HtmlReader | None
) -> AsyncIterator[str]:
    """Write what is new at each look as events, or a comment where nothing is."""
    async with aclosing(looks) as snapshots:
        async for snapshot in snapshots:
            if reader:
                events = await reader.events(snapshot, reached)
            else:
                events = list(events_since(snapshot, reached))
            yield "".join(map(str, events)) or STILL_HERE
            reached = events[-1].position if events else reached
