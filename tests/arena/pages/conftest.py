from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from arena.domain.battle import BattleState, Mode
from arena.domain.board_view import (
    Adjusted,
    AdjustedRow,
    Board,
    BoardRow,
    Fewest,
    FitCheck,
    Hold,
    ModelRecord,
    PairCell,
    PastBattle,
    ShownBattle,
    ShownModel,
    ShownTurn,
    ShownVote,
    ShownVotes,
    StyleEffect,
    Waiting,
)
from arena.domain.model import Kind
from arena.domain.vote import Choice
from rating.report import ModelRating

NOW = datetime(2026, 6, 14, 14, 20, tzinfo=UTC)

MakeRow = Callable[..., BoardRow]
MakeBoard = Callable[..., Board]
MakePastBattle = Callable[..., PastBattle]


def a_row(model: str = "quartz-8b", rating: float = 1184.0, half: float = 12.0) -> BoardRow:
    return BoardRow(
        model=model,
        name=model,
        organisation="Stone Works",
        kind=Kind.MODEL,
        rating=rating,
        strength=(rating - 1000) / 174,
        se=half / 2,
        df=30.0,
        effective_voters=31.4,
        quasi_se=half / 3,
        lower=rating - half,
        upper=rating + half,
        rank=1,
        rank_low=2,
        rank_high=4,
        votes=412,
        win_rate=0.71,
        win_rate_low=0.67,
        win_rate_high=0.75,
        voter_rating=rating,
        voter_rank=1,
        price_per_1000=0.41,
        median_s=2.1,
    )


def a_pair(share: float | None = 0.7, n: int = 40, expected: float | None = 0.75) -> PairCell:
    low, high = (None, None) if expected is None else (expected - 0.1, expected + 0.05)
    return PairCell(
        row="quartz-8b", column="chalk-3b", share=share, n=n, expected=expected, low=low, high=high
    )


def a_hold(k: int | None = 12, more_votes: int | None = 1862) -> Hold:
    return Hold(
        above="quartz-8b",
        below="chalk-3b",
        lead=368.2,
        votes=Fewest(k=k, tried=60, of=2184),
        voters=Fewest(k=3, tried=4, of=56),
        prompts=None,
        separated=more_votes == 0,
        more_votes=more_votes,
    )


def a_record(
    model: str = "quartz-8b", battles: int = 440, failed: int = 14, abandoned: int = 8
) -> ModelRecord:
    return ModelRecord(
        id=model,
        name=model,
        organisation="Stone Works",
        kind=Kind.MODEL,
        battles=battles,
        failed=failed,
        abandoned=abandoned,
        price_per_1000=0.41,
        median_s=2.1,
    )


def a_model(name: str = "quartz-8b") -> ShownModel:
    return ShownModel(name, name, "Stone Works", Kind.MODEL, "MIT", NOW - timedelta(days=40))


def a_shown_vote(text: str = "Why is the sky blue?", model: str = "quartz-8b") -> ShownVote:
    return ShownVote(
        place=7,
        battle_id="b7",
        created=NOW - timedelta(hours=3),
        prompt=text,
        choice=Choice.A,
        model_a=a_model(model),
        model_b=a_model("chalk-3b"),
        seconds=31.0,
    )


def shown_votes(text: str = "Why is the sky blue?", model: str = "quartz-8b") -> ShownVotes:
    return ShownVotes("default-v3", (a_model(model),), (a_shown_vote(text, model),), 7)


def shown_battle(text: str = "Why is the sky blue?", model: str = "quartz-8b") -> ShownBattle:
    turns = (ShownTurn(text, text, "Scattering."), ShownTurn("And at dusk?", "Red.", text))
    return ShownBattle("default-v3", a_shown_vote(text, model), turns)


def adjusted_of(*rows: BoardRow) -> Adjusted:
    """Give ratings with style held equal, that were others without."""
    names = [one.name for one in fields(ModelRating)]
    return Adjusted(
        version="3f9a1c2e",
        votes=2000,
        effects=(StyleEffect(style="length", points=31.4, lower=12.2, upper=50.6),),
        rows=tuple(
            AdjustedRow(**{name: getattr(row, name) for name in names}, unadjusted=1000.0)
            for row in rows
        ),
    )


def a_board(**changes: object) -> Board:
    fields: dict[str, object] = {
        "policy": "default-v3",
        "policy_rules": ("Votes by simulated voters are excluded.",),
        "version": "3f9a1c2e",
        "data_hash": "c0ffee",
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
        "pairs": (a_pair(),),
        "holds": (a_hold(),),
        "fit_check": FitCheck(pairs=12, far=0, by_chance=0.6, p=0.4, left_out=3, worst=()),
        "history": (),
        "among": (),
        "health": (a_record(),),
        "warnings": (),
        "reason": None,
    }
    return Board(**(fields | changes))  # type: ignore[arg-type]


def a_past_battle(
    choice: Choice | None = Choice.A, minutes_ago: int = 5, prompt: str = "Hi"
) -> PastBattle:
    named = choice not in (None, Choice.SKIP)
    states = {None: BattleState.READY, Choice.SKIP: BattleState.SKIPPED}
    return PastBattle(
        battle_id=f"b{minutes_ago}",
        created=NOW - timedelta(minutes=minutes_ago),
        prompt=prompt,
        mode=Mode.ANONYMOUS,
        state=states.get(choice, BattleState.VOTED),
        choice=choice,
        model_a_name="quartz-8b" if named else None,
        model_b_name="chalk-3b" if named else None,
    )


@pytest.fixture
def make_row() -> MakeRow:
    return a_row


@pytest.fixture
def make_board() -> MakeBoard:
    return a_board


@pytest.fixture
def make_past_battle() -> MakePastBattle:
    return a_past_battle
