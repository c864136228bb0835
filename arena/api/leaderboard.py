"""The leaderboard over HTTP."""

from collections.abc import Callable

from fastapi import APIRouter

from arena.api.problems import responses
from arena.api.standings import LeaderboardBody
from arena.domain.board import Board


def leaderboard_router(board: Callable[[], Board]) -> APIRouter:
    """Make the route of the leaderboard."""
    router = APIRouter(prefix="/api/v1/leaderboard", tags=["leaderboard"])

    @router.get("", responses=responses(503))
    def read_leaderboard() -> LeaderboardBody:
        """Read the ratings with their intervals, best first, and what they rest on."""
        return LeaderboardBody.of(board())

    return router
