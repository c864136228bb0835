"""A battle's events for pages: finished blocks of its answers come as HTML.

``blocks {"side", "blocks": [[index, html], ...], "tail"}``: blocks that are new or have changed,
by their place in the answer, and the text that follows them; ``delta {"side", "text"}``: more of
that text. Each connection begins with all there is, so a page that lost some misses nothing.
"""

import asyncio
from collections.abc import Iterator
from time import perf_counter
from weakref import WeakValueDictionary

from arena.api.events import Event, Position, events_since
from arena.domain.battle import AnswerStatus, ShownAnswer, ShownTurn, Side, Snapshot
from judge.render.stream import Block, Stream

LONG = 8_000
"""Characters of an answer from which on it is rendered beside the event loop."""
SLOW_S = 0.02
"""What a look may take on the event loop; an answer that took longer goes on beside it."""


class Answer:
    """An answer as it is rendered: every change of a block so far, and the text after them."""

    def __init__(self) -> None:
        self.changes: list[Block] = []
        self.tail = ""
        self._stream = Stream()
        self._taken = 0
        self._closed = False

    def take(self, shown: ShownAnswer) -> None:
        """Render what is new."""
        self.changes += self._stream.feed(shown.text[self._taken :])
        self._taken = len(shown.text)
        if shown.status is not AnswerStatus.STREAMING and not self._closed:
            self._closed = True
            self.changes += self._stream.close()
        self.tail = self._stream.tail


class Rendering:
    """The latest answers of a battle, rendered once for all who read them."""

    def __init__(self) -> None:
        self.answers: dict[Side, Answer] = {}
        self._attempt: tuple[int, int] | None = None
        self._slow = False
        self._one_at_a_time = asyncio.Lock()

    async def take(self, turn: ShownTurn) -> None:
        """Render what is new of both answers."""
        async with self._one_at_a_time:
            if self._attempt != (turn.turn, turn.attempt):
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
    """The battles that somebody reads now."""

    def __init__(self) -> None:
        self._read = WeakValueDictionary[str, Rendering]()

    def of(self, battle_id: str) -> Rendering:
        """Give a battle's rendering, which lasts as long as one reader holds it."""
        return self._read.setdefault(battle_id, Rendering())


class HtmlReader:
    """What a connection has of a battle."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering
        self._answers: dict[Side, Answer] = {}
        self._changes = dict.fromkeys(Side, 0)
        self._tails: dict[Side, str | None] = dict.fromkeys(Side)

    async def events(self, snapshot: Snapshot, position: Position) -> list[Event]:
        """Give what it lacks of the latest turn as it stands."""
        turn = snapshot.turns[-1]
        await self._rendering.take(turn)
        plain = list(events_since(snapshot, position))
        begun = (position.turn, position.attempt) == (turn.turn, turn.attempt)
        reached = Position(
            *(turn.turn, turn.attempt, len(turn.a.text), len(turn.b.text)),
            closing=position.closing if begun else 0,
        )
        news = [event for side in Side for event in self._news(side, reached)]
        return news + [event for event in plain if event.name != "delta"]

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
