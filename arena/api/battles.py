"""Battles over HTTP: open, read, follow, stop, vote."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from arena.api.problems import responses
from arena.api.schemas import BattleBody, NewBattleBody, OpenedBattle, ReceiptBody, VoteBody
from arena.domain.battle import Snapshot
from arena.domain.voter import Voter
from arena.errors import UnknownBattleError
from arena.play.battles import Battles
from arena.play.events import Delta, Done, Event, Failed, Position, Ready, is_behind, stream

BattleId = Annotated[str, Path(description="As given when the battle was opened")]
EVENTS = """Server-sent events: `delta {"side", "text"}`, `done {"side"}`,
`failed {"side", "message"}`, `ready {}`. Resumes after `Last-Event-ID`; ends after `ready` or
`failed`; asked again from there, answers 204."""


def visitor(request: Request) -> Voter:
    """Tell who asks; somebody without a cookie owns no battle."""
    voter: Voter | None = getattr(request.state, "voter", None)
    if voter is None:
        raise UnknownBattleError
    return voter


Visitor = Annotated[Voter, Depends(visitor)]


def battles_router(battles: Battles) -> APIRouter:
    """Make the routes of battles."""
    router = APIRouter(prefix="/api/v1/battles", tags=["battles"])

    async def position(
        battle_id: BattleId,
        voter: Visitor,
        last_event_id: Annotated[str, Header()] = "",
    ) -> Position:
        """Find where a reader goes on, before the stream begins and its status is fixed."""
        reached = Position.parse(last_event_id)
        if not is_behind(await battles.look(battle_id, voter), reached):
            raise HTTPException(204)
        return reached

    @router.post("", status_code=201, responses=responses(413, 422, 429, 503))
    async def open_battle(body: NewBattleBody, voter: Visitor) -> OpenedBattle:
        """Begin a battle: two models, drawn at random, answer the prompt."""
        return _opened(await battles.open(voter, body.prompt))

    @router.get("/{battle_id}", responses=responses(404, 503))
    async def read_battle(battle_id: BattleId, voter: Visitor) -> BattleBody:
        """Read the transcript and the state; the models' names only after the vote."""
        return BattleBody.of(await battles.look(battle_id, voter))

    @router.get(
        "/{battle_id}/events",
        response_class=EventSourceResponse,
        description=EVENTS,
        responses={204: {"description": "Nothing more will come"}, **responses(404, 503)},
    )
    async def follow_battle(
        battle_id: BattleId, voter: Visitor, reached: Annotated[Position, Depends(position)]
    ) -> AsyncIterator[ServerSentEvent]:
        async with (
            aclosing(battles.watch(battle_id, voter)) as snapshots,
            aclosing(stream(snapshots, reached)) as events,
        ):
            async for event, position in events:
                yield _message(event, position)

    @router.post(
        "/{battle_id}/turns", status_code=201, responses=responses(404, 409, 422, 429, 503)
    )
    async def add_turn(battle_id: BattleId, body: NewBattleBody, voter: Visitor) -> OpenedBattle:
        """Ask the same two models the next thing, before the vote."""
        return _opened(await battles.reply(battle_id, voter, body.prompt))

    @router.post(
        "/{battle_id}/regenerate", status_code=201, responses=responses(404, 409, 429, 503)
    )
    async def regenerate(battle_id: BattleId, voter: Visitor) -> OpenedBattle:
        """Let both models answer the latest prompt anew, before the vote."""
        return _opened(await battles.regenerate(battle_id, voter))

    @router.post("/{battle_id}/retry", status_code=201, responses=responses(404, 409, 429, 503))
    async def retry(battle_id: BattleId, voter: Visitor) -> OpenedBattle:
        """Ask again for the answers of the latest turn that failed or were cut off."""
        return _opened(await battles.retry(battle_id, voter))

    @router.post(
        "/{battle_id}/continue", status_code=201, responses=responses(404, 409, 422, 429, 503)
    )
    async def go_on(battle_id: BattleId, body: NewBattleBody, voter: Visitor) -> OpenedBattle:
        """Talk on with two revealed models: a battle of its own, which is not counted."""
        return _opened(await battles.go_on(battle_id, voter, body.prompt))

    @router.post("/{battle_id}/stop", responses=responses(404, 503))
    async def stop_battle(battle_id: BattleId, voter: Visitor) -> BattleBody:
        """End the answers where they are; both can be voted on if both have shown text."""
        return BattleBody.of(await battles.stop(battle_id, voter))

    @router.post("/{battle_id}/vote", responses=responses(404, 409, 422, 503))
    async def vote(battle_id: BattleId, body: VoteBody, voter: Visitor) -> ReceiptBody:
        """Vote, once; the models are revealed when the vote is committed."""
        return ReceiptBody.of(await battles.vote(battle_id, voter, body.outcome, str(body.key)))

    return router


def _opened(snapshot: Snapshot) -> OpenedBattle:
    return OpenedBattle(battle_id=snapshot.battle_id, state=snapshot.state, turn=snapshot.turn)


def _message(event: Event, position: Position) -> ServerSentEvent:
    name, data = _name_and_data(event)
    return ServerSentEvent(event=name, data=data, id=str(position))


def _name_and_data(event: Event) -> tuple[str, dict[str, str]]:
    match event:
        case Delta(side, text):
            return "delta", {"side": side.value, "text": text}
        case Done(side):
            return "done", {"side": side.value}
        case Failed(side, message):
            return "failed", {"side": side.value, "message": message}
        case Ready():
            return "ready", {}
