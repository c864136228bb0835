"""Whether the server lives, and whether it can take battles and votes."""

from collections.abc import Callable

from fastapi import APIRouter

from arena.api.problems import responses


def health_router(check_store: Callable[[], None]) -> APIRouter:
    """Make the routes of health; ``check_store`` raises when the database is away."""
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live")
    def live() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "live"}

    @router.get("/ready", responses=responses(503))
    def ready() -> dict[str, str]:
        """Say that battles and votes are taken."""
        check_store()
        return {"status": "ready"}

    return router
