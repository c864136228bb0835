"""The leaderboard over HTTP, in points and shares."""

from collections.abc import Callable
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from arena.api.problems import responses
from arena.domain.board_view import Board


class Plain(BaseModel):
    """Read from the plain values of the arena, by their names."""

    model_config = ConfigDict(from_attributes=True)


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


class PairBody(Plain):
    """Row against column: what it won of ``n`` votes, and what the ratings expect."""

    row: str
    column: str
    n: int
    share: float | None
    expected: float | None
    low: float | None
    high: float | None


class FewestBody(Plain):
    """Taken away, ``k`` of so many turn an order; null if none that was tried does."""

    k: int | None
    tried: int
    of: int


class NeighboursBody(Plain):
    """What holds one model above the next."""

    above: str
    below: str
    lead: float
    votes: FewestBody
    voters: FewestBody | None
    prompts: FewestBody | None
    separated: bool
    more_votes: int | None


class MisfitBody(Plain):
    """A pair that the ratings describe badly."""

    row: str
    column: str
    share: float
    expected: float
    n: int


class FitBody(Plain):
    """Of ``pairs`` with votes enough, ``far`` lie beyond two standard errors.

    ``by_chance`` would if one rating a model described all votes; ``p`` is of all pairs together.
    """

    pairs: int
    far: int
    by_chance: float | None
    p: float | None
    left_out: int
    worst: list[MisfitBody]


class PastRatingBody(Plain):
    """A rating as it was."""

    model: str
    rating: float
    lower: float
    upper: float


class MomentBody(Plain):
    """The board from the votes cast before a date."""

    when: datetime
    votes: int
    ratings: list[PastRatingBody]


class RecordBody(Plain):
    """How the record of votes was at its last check; ``problem`` is the first break, if any."""

    at: datetime
    links: int
    head: str
    problem: str | None


class LeaderboardBody(BaseModel):
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
    ratings: list[RatingBody]
    pairs: list[PairBody]
    neighbours: list[NeighboursBody]
    fit: FitBody | None
    history: list[MomentBody]
    record: RecordBody | None
    warnings: list[str]

    @classmethod
    def of(cls, board: Board) -> "LeaderboardBody":
        """Say what a board says."""
        return cls(
            policy=board.policy,
            updated=board.updated,
            version=board.version,
            data_hash=board.data_hash,
            votes=board.votes,
            voters=board.voters,
            effective_voters=board.effective_voters,
            top_voter_share=board.top_voter_share,
            left_out=dict(board.left_out),
            ranks_claimed=any(row.rank_low is not None for row in board.rows),
            ratings=[RatingBody.model_validate(row) for row in board.rows],
            pairs=[PairBody.model_validate(pair) for pair in board.pairs],
            neighbours=[NeighboursBody.model_validate(hold) for hold in board.holds],
            fit=board.fit_check and FitBody.model_validate(board.fit_check),
            history=[MomentBody.model_validate(moment) for moment in board.history],
            record=board.record and RecordBody.model_validate(board.record),
            warnings=[*([board.reason] if board.reason else []), *board.warnings],
        )


def leaderboard_router(board: Callable[[], Board]) -> APIRouter:
    """Make the route of the leaderboard."""
    router = APIRouter(prefix="/api/v1/leaderboard", tags=["leaderboard"])

    @router.get("", responses=responses(503))
    def read_leaderboard() -> LeaderboardBody:
        """Read the ratings with their intervals, best first, and what they rest on."""
        return LeaderboardBody.of(board())

    return router
