"""A battle as a stream of events, resumable at any of them without an event log."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from arena.domain.battle import AnswerStatus, BattleState, Side, Snapshot


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
    shown at once; ``blocks``: rendered ones, see `arena.api.html_events`;
    ``done``: one side has shown its whole answer; ``ready``: both have, and the battle takes a
    vote; ``failed``: one gave none, and it takes none.

    Attributes
    ----------
    position : Position
        What a reader of this event has.
    """

    name: Literal["delta", "blocks", "rest", "done", "failed", "ready"]
    data: Mapping[str, object]
    position: Position


def events_since(snapshot: Snapshot, position: Position) -> Iterator[Event]:
    """Tell what a reader at a position lacks of the latest turn as it stands."""
    turn = snapshot.turns[-1]
    if (position.turn, position.attempt) != (turn.turn, turn.attempt):
        position = Position(turn.turn, turn.attempt)
    if text := turn.a.text[position.a :]:
        position = Position(
            turn.turn, turn.attempt, len(turn.a.text), position.b, position.closing
        )
        yield Event("delta", {"side": Side.A, "text": text}, position)
    if text := turn.b.text[position.b :]:
        position = Position(
            turn.turn, turn.attempt, position.a, len(turn.b.text), position.closing
        )
        yield Event("delta", {"side": Side.B, "text": text}, position)
    last = _offer if snapshot.state.running else _closing
    closing = last(snapshot, position)
    yield from (event for event in closing if event.position.closing > position.closing)


def is_behind(snapshot: Snapshot, position: Position) -> bool:
    """Whether a reader at a position lacks anything, now or later."""
    return snapshot.state.running or next(events_since(snapshot, position), None) is not None


def _offer(snapshot: Snapshot, position: Position) -> list[Event]:
    return [Event("rest", {}, position._replace(closing=1))] if snapshot.rest_offered else []


def _closing(snapshot: Snapshot, position: Position) -> list[Event]:
    """Give the events that end the turn."""
    turn = snapshot.turns[-1]
    sides = {Side.A: turn.a, Side.B: turn.b}
    if snapshot.state in (BattleState.READY, BattleState.VOTED, BattleState.SKIPPED):
        done = [
            Event(
                "done",
                {"side": side, "status": answer.status},
                position._replace(closing=number),
            )
            for number, (side, answer) in enumerate(sides.items(), 2)
        ]
        return [*done, Event("ready", {}, position._replace(closing=4))]
    message = snapshot.message or ""
    failed = [side for side in sides if sides[side].status is AnswerStatus.FAILED]
    return [
        Event("failed", {"side": side, "message": message}, position._replace(closing=number))
        for number, side in enumerate(failed or sides, 2)
    ]
