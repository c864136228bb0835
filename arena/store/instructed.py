"""Votes on prompts with instructions that can be checked, as the log has them."""

from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from arena.domain.battle import AnswerStatus
from arena.domain.vote import DEFAULT
from arena.store.counted import is_counted
from arena.store.gold import voted_on
from arena.store.tables import AnswerRow, BattleRow, TurnRow, VoteRow, VoterRow
from judge.studies.instructed import ReadVote
from rating.outcome import Outcome
from rating.tables.escaping import storable

AT_ONCE = 500
"""Prompts that one query asks for."""


def votes(session: Session, prompts: Collection[str]) -> list[ReadVote]:
    """Give the votes that count, on whole answers to these prompts, in the order of the log."""
    a, b = aliased(AnswerRow), aliased(AnswerRow)
    query = (
        select(
            func.coalesce(col(VoterRow.person), col(VoterRow.id)),
            col(TurnRow.prompt),
            col(a.text),
            col(b.text),
            col(VoteRow.outcome),
            col(VoteRow.link),
        )
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .join(
            TurnRow,
            (col(TurnRow.battle_id) == col(VoteRow.battle_id))
            & (col(TurnRow.turn) == col(VoteRow.turn)),
        )
        .join(a, voted_on(a, "a"))
        .join(b, voted_on(b, "b"))
        .where(
            is_counted(DEFAULT),
            *(col(answer.status) == AnswerStatus.COMPLETE for answer in (a, b)),
            *(col(answer.nonce).is_not(None) for answer in (a, b)),
        )
    )
    as_given = {storable(prompt): prompt for prompt in prompts}
    names = [*as_given]
    rows = [
        row
        for start in range(0, len(names), AT_ONCE)
        for row in session.connection().execute(
            query.where(col(TurnRow.prompt).in_(names[start : start + AT_ONCE]))
        )
    ]
    return [
        ReadVote(voter, as_given[prompt], text_a, text_b, Outcome(choice))
        for voter, prompt, text_a, text_b, choice, _ in sorted(rows, key=lambda row: row[-1])
    ]
