"""The least that could stream a battle, to hold the arena against: see ``live.py``.

Text comes from a loop rather than from models, nothing is checked, and only votes are stored. With
``models`` as its last argument it reads two streams of the format of OpenAI, too, ten pieces a
second each, and stores each battle's opening and end; still nothing is checked.
"""

import asyncio
import json
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

TICK_S = 0.1
CHARACTERS_PER_S = 200


async def grow(seconds: float) -> AsyncIterator[str]:
    """Give a text as far as it has come, tick by tick."""
    text = "word " * 4000
    for tick in range(1, int(seconds / TICK_S) + 1):
        await asyncio.sleep(TICK_S)
        yield text[: int(tick * TICK_S * CHARACTERS_PER_S)]


async def sent(seconds: float) -> AsyncIterator[bytes]:
    """Give what an endpoint sends: an event a piece."""
    async for text in grow(seconds):
        piece = text[-int(TICK_S * CHARACTERS_PER_S) :]
        delta = {"choices": [{"index": 0, "delta": {"content": piece}}]}
        yield f"data: {json.dumps(delta)}\n\n".encode()


async def read(seconds: float, answer: list[str]) -> None:
    """Read what a model writes."""
    async for event in sent(seconds):
        reply = json.loads(event.removeprefix(b"data: "))
        answer.append(reply["choices"][0]["delta"]["content"])


class Battles:
    """Battles of two models each, stored when they begin and when they end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1)
        self._answers: dict[str, tuple[list[str], list[str]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._database = _opened()
        self._database.execute("CREATE TABLE battle (id TEXT PRIMARY KEY, prompt TEXT)")
        self._database.execute("CREATE TABLE answer (battle TEXT, side TEXT, text TEXT)")

    async def open(self) -> str:
        battle_id = uuid.uuid4().hex
        await self._write(self._begin, battle_id)
        self._answers[battle_id] = [], []
        task = asyncio.create_task(self._run(battle_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return battle_id

    async def follow(self, battle_id: str) -> AsyncIterator[str]:
        """Write what is new of both answers, tick by tick."""
        answers, seen = self._answers[battle_id], [0, 0]
        while battle_id in self._answers:
            await asyncio.sleep(TICK_S)
            for place, side in enumerate("ab"):
                if text := "".join(answers[place][seen[place] :]):
                    yield f"event: delta\ndata: {json.dumps({'side': side, 'text': text})}\n\n"
                seen[place] = len(answers[place])

    async def _run(self, battle_id: str) -> None:
        await asyncio.gather(*(read(self._seconds, a) for a in self._answers[battle_id]))
        await self._write(self._end, battle_id)
        del self._answers[battle_id]

    async def _write(self, act: Callable[[str], None], battle_id: str) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, act, battle_id)

    def _begin(self, battle_id: str) -> None:
        with self._database:
            self._database.execute("INSERT INTO battle VALUES (?, 'Go')", (battle_id,))
            rows = [(battle_id, side) for side in "ab"]
            self._database.executemany("INSERT INTO answer VALUES (?, ?, '')", rows)

    def _end(self, battle_id: str) -> None:
        answers = zip("ab", self._answers[battle_id], strict=True)
        rows = [("".join(text), battle_id, side) for side, text in answers]
        with self._database:
            update = "UPDATE answer SET text = ? WHERE battle = ? AND side = ?"
            self._database.executemany(update, rows)


def _opened() -> sqlite3.Connection:
    database = sqlite3.connect("bare.db", check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def bare_app(seconds: float, battles: Battles | None) -> FastAPI:
    """Make the application."""
    app = FastAPI()
    votes = _opened()
    votes.execute("CREATE TABLE IF NOT EXISTS vote (battle TEXT UNIQUE, outcome TEXT)")

    @app.get("/")
    async def page() -> None: ...

    @app.get("/health/ready")
    async def ready() -> None: ...

    @app.post("/api/v1/battles")
    async def open_battle() -> dict[str, str]:
        return {"battle_id": await battles.open() if battles else uuid.uuid4().hex}

    @app.get("/api/v1/battles/{battle_id}/events")
    async def follow(battle_id: str) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            seen = 0
            async for text in grow(seconds):
                for side in "ab":
                    yield f'event: delta\ndata: {{"side":"{side}","text":"{text[seen:]}"}}\n\n'
                seen = len(text)

        stream = battles.follow(battle_id) if battles else events()
        return StreamingResponse(stream, media_type="text/event-stream")

    @app.post("/api/v1/battles/{battle_id}/vote")
    def vote(battle_id: str, body: dict[str, str]) -> None:
        with votes:
            votes.execute("INSERT INTO vote VALUES (?, ?)", (battle_id, body["outcome"]))

    return app


if __name__ == "__main__":
    port, seconds, *with_models = sys.argv[1:]
    battles = Battles(float(seconds)) if with_models else None
    uvicorn.run(bare_app(float(seconds), battles), port=int(port), log_level="error")
