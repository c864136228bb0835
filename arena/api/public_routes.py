"""What anybody may read: the leaderboard, and whether the server can take battles and votes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from arena.api.problems import Plain, responses
from arena.domain.board_view import Board, FitCheck, Hold, Moment, PairCell, RecordCheck
from arena.domain.evaluation import EvaluationCard
from arena.domain.model import Stage
from arena.errors import StoreError
from arena.guard.access import PROBES, VISITORS

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


class RatingBody(Plain):
    """One rated model, in points; ranks count from 1 and are null where none is ruled out.

    Shares of wins are against the others.
    """

    model: str
    rating: float
    se: float
    lower: float
    upper: float
    rank: int
    rank_low: int | None
    rank_high: int | None
    votes: int
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    voter_rating: float
    voter_rank: int
    stage: Stage
    family: str
    variants: int
    best_of: float | None
    declared: float | None
    otherwise: int


class NewcomerBody(Plain):
    """A model that a judge alone rates until ``until`` votes do, in points; it has no rank.

    ``votes`` are people's so far, on which its rating does not rest.
    """

    model: str
    stage: Stage
    votes: int
    until: int
    rating: float
    lower: float
    upper: float
    by: Literal["judge only"]
    judge: str
    calibrated_on: int
    warnings: list[str]


class LeaderboardBody(Plain):
    """A board; ``ratings`` is empty while the votes identify none, and ``warnings`` say why."""

    policy: str
    updated: datetime
    version: str
    data_hash: str | None
    votes: int
    voters: int
    effective_voters: float | None
    top_voter_share: float | None
    left_out: dict[str, int]
    ranks_claimed: bool
    ratings: list[RatingBody] = Field(validation_alias="rows")
    newcomers: list[NewcomerBody]
    pairs: list[PairCell]
    neighbours: list[Hold] = Field(validation_alias="holds")
    fit: FitCheck | None = Field(validation_alias="fit_check")
    history: list[Moment]
    record: RecordCheck | None
    warnings: list[str] = Field(validation_alias="all_warnings")


def public_router(
    board: Callable[[], Board],
    check: Callable[[], Awaitable[None]],
    card: Callable[[], EvaluationCard],
) -> APIRouter:
    """Make the routes.

    Parameters
    ----------
    check : callable
        Raises when battles and votes cannot be taken.
    card : callable
        The evaluation card; may block.
    """
    router = APIRouter()

    @router.get(
        "/api/v1/leaderboard",
        tags=["leaderboard"],
        dependencies=[VISITORS],
        response_model=LeaderboardBody,
        responses=responses(503),
    )
    def read_leaderboard() -> Board:
        """Read the ratings with their intervals, best first, and what they rest on."""
        return board()

    @router.get(
        "/api/v1/evaluation",
        tags=["leaderboard"],
        dependencies=[VISITORS],
        response_model=EvaluationCard,
        responses=responses(503),
    )
    def read_card() -> EvaluationCard:
        """Read the evaluation card: what is asked, how, what comes out, how it may be read."""
        return card()

    @router.get("/health/live", tags=["health"], dependencies=[PROBES])
    def live() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "live"}

    @router.get("/health/ready", tags=["health"], dependencies=[PROBES], responses=responses(503))
    async def ready() -> dict[str, str]:
        """Say that battles and votes are taken, and that the database takes a write."""
        await check()
        return {"status": "ready"}

    return router
