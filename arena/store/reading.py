"""From rows to the values that the rest of the arena reads.

The statements are spelled out once and give columns: a battle is read with every vote, and as
rows of a session it takes three times as long.
"""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, select
from sqlmodel import Session, col

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side
from arena.domain.vote import Choice
from arena.errors import UnknownBattleError
from arena.store.records import StoredAnswer, StoredBattle, StoredTurn
from arena.store.tables import AnswerRow, BattleRow, ModelRow, TurnRow, VoteRow

_BATTLE = (
    select(
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
_BEFORE = select(col(BattleRow.continues)).where(col(BattleRow.id) == bindparam("battle"))
_TURNS = (
    select(col(TurnRow.turn), col(TurnRow.prompt))
    .where(col(TurnRow.battle_id) == bindparam("battle"))
    .order_by(col(TurnRow.turn))
)
_ANSWERS = (
    select(
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
