"""The least that could stream a battle, to hold the arena against: see ``live.py``.

Text comes from a loop rather than from models, nothing is checked, and only votes are stored.
"""

import asyncio
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator

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


def bare_app(seconds: float) -> FastAPI:
    """Make the application."""
    app = FastAPI()
    votes = sqlite3.connect("bare.db", check_same_thread=False)
    votes.execute("PRAGMA journal_mode = WAL")
    votes.execute("PRAGMA synchronous = FULL")
    votes.execute("CREATE TABLE IF NOT EXISTS vote (battle TEXT UNIQUE, outcome TEXT)")

    @app.get("/")
    async def page() -> None: ...

    @app.get("/health/ready")
    async def ready() -> None: ...

    @app.post("/api/v1/battles")
    async def open_battle() -> dict[str, str]:
        return {"battle_id": uuid.uuid4().hex}

    @app.get("/api/v1/battles/{battle_id}/events")
    async def follow(battle_id: str) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            seen = 0
            async for text in grow(seconds):
                for side in "ab":
                    yield f'event: delta\ndata: {{"side":"{side}","text":"{text[seen:]}"}}\n\n'
                seen = len(text)

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.post("/api/v1/battles/{battle_id}/vote")
    def vote(battle_id: str, body: dict[str, str]) -> None:
        with votes:
            votes.execute("INSERT INTO vote VALUES (?, ?)", (battle_id, body["outcome"]))

    return app


if __name__ == "__main__":
    uvicorn.run(bare_app(float(sys.argv[2])), port=int(sys.argv[1]), log_level="error")
