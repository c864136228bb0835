"""Rows of battles by their public ids, and the values that the arena reads from them."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row, bindparam
from sqlmodel import Session, col, select

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side
from arena.domain.vote import Choice
from arena.errors import UnknownBattleError
from arena.store.records import StoredAnswer, StoredBattle, StoredTurn
from arena.store.tables import AnswerRow, BattleRow, ModelRow, TurnRow, VoteRow

_BATTLE = (
    sa.select(
        col(BattleRow.id),
        col(BattleRow.owner),
        col(BattleRow.mode),
        col(BattleRow.state),
        col(BattleRow.message),
        col(BattleRow.created),
        col(BattleRow.continues),
        col(VoteRow.outcome),
    )
    .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
)
_BEFORE = sa.select(col(BattleRow.continues)).where(col(BattleRow.id) == bindparam("battle"))
_TURNS = (
    sa.select(col(TurnRow.turn), col(TurnRow.prompt))
    .where(col(TurnRow.battle_id) == bindparam("battle"))
    .order_by(col(TurnRow.turn))
)
_ANSWERS = (
    sa.select(
        col(AnswerRow.turn),
        col(AnswerRow.side),
        col(AnswerRow.attempt),
        col(AnswerRow.model_id),
        col(ModelRow.name),
        col(AnswerRow.text),
        col(AnswerRow.status),
        col(AnswerRow.first_token_s),
        col(AnswerRow.tokens_out),
        col(AnswerRow.cost),
    )
    .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
    .where(col(AnswerRow.battle_id) == bindparam("battle"))
    .order_by(col(AnswerRow.attempt))
)


def stored_battle(session: Session, battle_id: str, owner: str) -> StoredBattle:
    """Read a battle whole for its owner, with the turns of the one that it goes on from.

    Raises
    ------
    UnknownBattleError
        If there is none, or it is somebody else's.
    """
    connection = session.connection()
    battle = connection.execute(_BATTLE, {"public_id": battle_id}).one_or_none()
    if battle is None or battle.owner != owner:
        raise UnknownBattleError
    return StoredBattle(
        public_id=battle_id,
        owner=battle.owner,
        mode=Mode(battle.mode),
        state=BattleState(battle.state),
        message=battle.message,
        created=battle.created,
        turns=_turns(connection, battle.id, battle.continues),
        choice=Choice(battle.outcome) if battle.outcome else None,
    )


def _turns(connection: Connection, battle: int, before: int | None) -> tuple[StoredTurn, ...]:
    key = {"battle": battle}
    turns = connection.execute(_TURNS, key).all()
    newest = {
        (row.turn, row.side): _stored_answer(row) for row in connection.execute(_ANSWERS, key)
    }
    earlier: tuple[StoredTurn, ...] = ()
    if before is not None:
        earlier = _turns(connection, before, connection.scalar(_BEFORE, {"battle": before}))
    return earlier + tuple(
        StoredTurn(turn=turn, prompt=prompt, a=newest[turn, Side.A], b=newest[turn, Side.B])
        for turn, prompt in turns
    )


def _stored_answer(row: Row[*tuple[Any, ...]]) -> StoredAnswer:
    return StoredAnswer(
        side=Side(row.side),
        attempt=row.attempt,
        model_id=row.model_id,
        model_name=row.name,
        text=row.text,
        status=AnswerStatus(row.status),
        first_token_s=row.first_token_s,
        tokens_out=row.tokens_out,
        cost=row.cost,
    )


def row_id(row: BattleRow) -> int:
    """Give the key of a row that has been flushed."""
    assert row.id is not None, "the row was not flushed"
    return row.id


def find(session: Session, battle_id: str, *, lock: bool = False) -> BattleRow:
    """Find a battle, and with ``lock`` keep others from changing it until the commit."""
    query = select(BattleRow).where(col(BattleRow.public_id) == battle_id)
    row = session.exec(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise UnknownBattleError
    return row


def owned(session: Session, battle_id: str, owner: str, *, lock: bool = False) -> BattleRow:
    """Find a battle for its owner; somebody else's is as unknown as one that is not there."""
    row = find(session, battle_id, lock=lock)
    if row.owner != owner:
        raise UnknownBattleError
    return row


def latest(session: Session, battle: BattleRow, side: Side) -> AnswerRow:
    """Find the newest attempt of a side in the newest turn."""
    return session.exec(
        select(AnswerRow)
        .where(col(AnswerRow.battle_id) == row_id(battle), col(AnswerRow.side) == side)
        .order_by(col(AnswerRow.turn).desc(), col(AnswerRow.attempt).desc())
        .limit(1)
    ).one()
