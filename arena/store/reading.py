"""From rows to the values that the rest of the arena reads."""

from sqlmodel import Session, col, select

from arena.domain.battle import AnswerStatus, BattleState, Mode, Side
from arena.domain.vote import Choice
from arena.store.records import StoredAnswer, StoredBattle, StoredTurn
from arena.store.rows import row_id, vote_of
from arena.store.tables import AnswerRow, BattleRow, ModelRow, TurnRow


def stored_battle(session: Session, battle: BattleRow) -> StoredBattle:
    """Read a battle whole, with the turns of the one that it goes on from."""
    vote = vote_of(session, battle)
    return StoredBattle(
        public_id=battle.public_id,
        owner=battle.owner,
        mode=Mode(battle.mode),
        state=BattleState(battle.state),
        message=battle.message,
        created=battle.created,
        turns=_turns(session, battle),
        choice=Choice(vote.outcome) if vote else None,
    )


def _turns(session: Session, battle: BattleRow) -> tuple[StoredTurn, ...]:
    before = session.get(BattleRow, battle.continues) if battle.continues else None
    rows = session.exec(
        select(TurnRow).where(col(TurnRow.battle_id) == row_id(battle)).order_by(col(TurnRow.turn))
    ).all()
    earlier = _turns(session, before) if before else ()
    return (*earlier, *(_stored_turn(session, battle, turn) for turn in rows))


def _stored_turn(session: Session, battle: BattleRow, turn: TurnRow) -> StoredTurn:
    answers = session.exec(
        select(AnswerRow, ModelRow)
        .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
        .where(col(AnswerRow.battle_id) == row_id(battle), col(AnswerRow.turn) == turn.turn)
        .order_by(col(AnswerRow.attempt))
    ).all()
    latest = {Side(row.side): _stored_answer(row, model) for row, model in answers}
    return StoredTurn(turn=turn.turn, prompt=turn.prompt, a=latest[Side.A], b=latest[Side.B])


def _stored_answer(row: AnswerRow, model: ModelRow) -> StoredAnswer:
    return StoredAnswer(
        side=Side(row.side),
        attempt=row.attempt,
        model_id=model.id,
        model_name=model.name,
        text=row.text,
        status=AnswerStatus(row.status),
        first_token_s=row.first_token_s,
        tokens_out=row.tokens_out,
        cost=row.cost,
    )
