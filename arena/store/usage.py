"""What has been taken: prompts and votes by voter, and dollars."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import bindparam
from sqlmodel import Session, col, func, select

from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoteRow

_PROMPTS = (
    select(TurnRow.created)
    .join(BattleRow, col(BattleRow.id) == col(TurnRow.battle_id))
    .where(col(BattleRow.owner) == bindparam("voter"), col(TurnRow.created) > bindparam("since"))
    .order_by(col(TurnRow.created))
)
"""Spelled out, for it is asked before every battle: see `arena.store.opening`."""


def prompts_of(session: Session, voter: str, since: datetime) -> Sequence[datetime]:
    """Moments after ``since`` at which a voter sent prompts, oldest first."""
    asked = {"voter": voter, "since": since}
    return session.connection().scalars(_PROMPTS, asked).all()


def votes_of(session: Session, voters: Collection[str]) -> int:
    """Count the votes of voters, by their ids."""
    return session.exec(
        select(func.count()).select_from(VoteRow).where(col(VoteRow.voter_id).in_(voters))
    ).one()


def spent(session: Session, since: datetime) -> Sequence[tuple[datetime, float]]:
    """Dollars of answers asked for after ``since``, oldest first.

    Where a model did not count its tokens, or not believably, each character that it wrote
    counts as one; answers without a price are left out.
    """
    written = func.length(col(AnswerRow.text)) + func.length(col(AnswerRow.reasoning))
    at_most = col(AnswerRow.price_output) * written / 1_000_000
    dollars = func.coalesce(col(AnswerRow.cost), at_most)
    answers = (
        select(AnswerRow.created, dollars)
        .where(col(AnswerRow.created) > since, dollars > 0)
        .order_by(col(AnswerRow.created))
    )
    return [(created, cost) for created, cost in session.exec(answers)]
