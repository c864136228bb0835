"""Finding rows: a battle by its public id and owner, and its latest answers."""

from sqlmodel import Session, col, select

from arena.domain.battle import Side
from arena.errors import UnknownBattleError
from arena.store.tables import AnswerRow, BattleRow


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
