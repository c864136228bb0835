"""Votes on gold battles, as the log has them."""

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from arena.domain.gold import right_of
from arena.domain.vote import Choice
from arena.store.counted import is_gold
from arena.store.tables import AnswerRow, BattleRow, VoteRow, VoterRow
from judge.studies.gold_voters import GoldVote
from rating.outcome import Outcome


def votes(session: Session) -> list[GoldVote]:
    """Give the votes on gold battles in the order of the log; a skip is none."""
    a, b = aliased(AnswerRow), aliased(AnswerRow)
    query = (
        select(
            func.coalesce(col(VoterRow.person), col(VoterRow.id)),
            func.coalesce(col(BattleRow.prompt_id), col(BattleRow.public_id)),
            col(BattleRow.prompt_set),
            col(VoteRow.outcome),
            _length(a),
            _length(b),
        )
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .outerjoin(a, voted_on(a, "a"))
        .outerjoin(b, voted_on(b, "b"))
        .where(is_gold(), col(VoteRow.outcome) != Choice.SKIP)
        .order_by(col(VoteRow.link))
    )
    return [
        GoldVote(voter, item, Outcome(right), Outcome(choice), length_a, length_b)
        for voter, item, marked, choice, length_a, length_b in session.connection().execute(query)
        if (right := right_of(marked)) is not None
    ]


def _length(answer: type[AnswerRow]) -> ColumnElement[int]:
    return func.coalesce(col(answer.erased_chars), func.length(col(answer.text)))


def voted_on(answer: type[AnswerRow], side: str) -> ColumnElement[bool]:
    """Say, in a query on votes and answers, whether one is what was voted on, on its side."""
    attempt = col(VoteRow.attempt_a) if side == "a" else col(VoteRow.attempt_b)
    return (
        (col(answer.battle_id) == col(VoteRow.battle_id))
        & (col(answer.turn) == col(VoteRow.turn))
        & (col(answer.side) == side)
        & (col(answer.attempt) == attempt)
    )
