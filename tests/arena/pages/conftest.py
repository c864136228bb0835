from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from arena.domain.board import Board, BoardRow, Health, PairCell, PastVote, Waiting
from arena.domain.model import Kind
from arena.domain.vote import Choice

NOW = datetime(2026, 6, 14, 14, 20, tzinfo=UTC)

MakeRow = Callable[..., BoardRow]
MakeBoard = Callable[..., Board]
MakePastVote = Callable[..., PastVote]


def a_row(model: str = "quartz-8b", rating: float = 1184.0, half: float = 12.0) -> BoardRow:
    return BoardRow(
        model=model,
        name=model,
        organisation="Stone Works",
        kind=Kind.MODEL,
        rating=rating,
        se=half / 2,
        lower=rating - half,
        upper=rating + half,
        rank=1,
        rank_low=2,
        rank_high=4,
        votes=412,
        win_rate=0.71,
        price_per_1000=0.41,
        median_s=2.1,
    )


def a_board(**changes: object) -> Board:
    fields: dict[str, object] = {
        "policy": "default-v1",
        "policy_rules": ("Votes by simulated voters are left out.",),
        "version": "3f9a1c2e",
        "updated": NOW - timedelta(minutes=2),
        "since": datetime(2026, 5, 3, 9, tzinfo=UTC),
        "votes": 2184,
        "voters": 56,
        "left_out": {"given within a second": 19, "the model named itself": 12},
        "by_voter": True,
        "effective_voters": 31.4,
        "top_voter_share": 0.083,
        "method": "Bradley-Terry, ties half",
        "level": 0.95,
        "anchor_mean": 1000.0,
        "rows": (a_row(), a_row("chalk-3b", 816.0, 20.0)),
        "waiting": (
            Waiting(
                model="tuff-13b",
                name="tuff-13b",
                organisation="",
                votes=34,
                reason="66 more votes needed",
            ),
        ),
        "pairs": (PairCell(row="quartz-8b", column="chalk-3b", share=0.75, n=40),),
        "health": (Health(model="quartz-8b", battles=440, failed=14, abandoned=8),),
        "warnings": (),
        "reason": None,
    }
    return Board(**(fields | changes))  # type: ignore[arg-type]


def a_past_vote(choice: Choice = Choice.A, minutes_ago: int = 5, prompt: str = "Hi") -> PastVote:
    named = choice is not Choice.SKIP
    return PastVote(
        battle_id=f"b{minutes_ago}",
        created=NOW - timedelta(minutes=minutes_ago),
        prompt=prompt,
        choice=choice,
        model_a_name="quartz-8b" if named else None,
        model_b_name="chalk-3b" if named else None,
    )


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def make_row() -> MakeRow:
    return a_row


@pytest.fixture
def make_board() -> MakeBoard:
    return a_board


@pytest.fixture
def make_past_vote() -> MakePastVote:
    return a_past_vote
