"""A battle as a stream of events, resumable at any of them without an event log."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from arena.domain.battle import AnswerStatus, BattleState, Side, Snapshot


@dataclass(frozen=True, slots=True)
class Delta:
    """More text on one side."""

    side: Side
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """One side has shown its whole answer."""

    side: Side


@dataclass(frozen=True, slots=True)
class Failed:
    """One side gave no answer; the battle takes no vote."""

    side: Side
    message: str


@dataclass(frozen=True, slots=True)
class Ready:
    """Both sides have shown their answers: the battle takes a vote."""


Event = Delta | Done | Failed | Ready


class Position(NamedTuple):
    """How much of a battle a reader has: characters of each side, and closing events.

    Written as ``turn.attempt.a.b.closing``: what an event carries as its id.
    """

    turn: int = 1
    attempt: int = 1
    a: int = 0
    b: int = 0
    closing: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read an event id; anything that is none starts from the beginning."""
        parts = text.split(".")
        if len(parts) != 5 or not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):
            return cls()
        return cls(*map(int, parts))


def events_since(snapshot: Snapshot, position: Position) -> Iterator[tuple[Event, Position]]:
    """Tell what a reader at a position lacks of the latest turn as it stands."""
    turn = snapshot.turns[-1]
    if (position.turn, position.attempt) != (turn.turn, turn.attempt):
        position = Position(turn.turn, turn.attempt)
    if text := turn.a.text[position.a :]:
        position = position._replace(a=len(turn.a.text))
        yield Delta(Side.A, text), position
    if text := turn.b.text[position.b :]:
        position = position._replace(b=len(turn.b.text))
        yield Delta(Side.B, text), position
    for number, event in enumerate(_closing(snapshot), 1):
        if number > position.closing:
            position = position._replace(closing=number)
            yield event, position


def is_behind(snapshot: Snapshot, position: Position) -> bool:
    """Whether a reader at a position lacks anything, now or later."""
    return snapshot.state.running or next(events_since(snapshot, position), None) is not None


def _closing(snapshot: Snapshot) -> list[Event]:
    if snapshot.state.running:
        return []
    turn = snapshot.turns[-1]
    if snapshot.state in (BattleState.READY, BattleState.VOTED, BattleState.SKIPPED):
        return [Done(Side.A), Done(Side.B), Ready()]
    sides = [(Side.A, turn.a), (Side.B, turn.b)]
    failed = [side for side, answer in sides if answer.status is AnswerStatus.FAILED]
    message = snapshot.message or ""
    return [Failed(side, message) for side in failed or [Side.A, Side.B]]
