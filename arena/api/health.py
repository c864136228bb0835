"""Whether the server lives, and whether it can take battles and votes."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import APIRouter

from arena.api.problems import responses
from arena.errors import StoreError

FRESH_S = 1.0
"""How long a check holds: strangers may ask, and each check writes."""

PATIENCE_S = 3.0
"""How long a check is waited for; who asks for readiness gives up soon after."""


class Recent:
    """A check that blocks, made in a thread, once at a time and not more often than holds."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._latest: asyncio.Task[None] | None = None
        self._begun = 0.0

    async def check(self) -> None:
        """Raise what the latest check raised, or `StoreError` if it does not come to an end."""
        now = time.monotonic()
        if self._latest is None or (self._latest.done() and now > self._begun + FRESH_S):
            self._latest = asyncio.create_task(asyncio.to_thread(self._check))
            self._begun = now
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.shield(self._latest)
        except TimeoutError:
            msg = f"The database did not take a write within {PATIENCE_S:g} s."
            raise StoreError(msg) from None


def health_router(check: Callable[[], Awaitable[None]]) -> APIRouter:
    """Make the routes of health; ``check`` raises when battles and votes cannot be taken."""
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live")
    def live() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "live"}

    @router.get("/ready", responses=responses(503))
    async def ready() -> dict[str, str]:
        """Say that battles and votes are taken, and that the database takes a write."""
        await check()
        return {"status": "ready"}

    return router
