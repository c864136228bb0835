"""The leaderboard over HTTP."""

from collections.abc import Callable

from fastapi import APIRouter

from arena.api.problems import responses
from arena.api.schemas import LeaderboardBody, RatingBody
from arena.domain.board import Board


def leaderboard_router(board: Callable[[], Board]) -> APIRouter:
    """Make the route of the leaderboard."""
    router = APIRouter(prefix="/api/v1/leaderboard", tags=["leaderboard"])

    @router.get("", responses=responses(503))
    def read_leaderboard() -> LeaderboardBody:
        """Read the ratings with their intervals, best first."""
        return _body(board())

    return router


def _body(board: Board) -> LeaderboardBody:
    places = len(board.rows)
    return LeaderboardBody(
        policy=board.policy,
        updated=board.updated,
        version=board.version,
        votes=board.votes,
        ratings=[
            RatingBody(
                model=row.model,
                rating=row.rating,
                se=row.se,
                lower=row.lower,
                upper=row.upper,
                rank=row.rank,
                rank_low=row.rank_low or 1,
                rank_high=row.rank_high or places,
                votes=row.votes,
            )
            for row in board.rows
        ],
        warnings=[*([board.reason] if board.reason else []), *board.warnings],
    )
