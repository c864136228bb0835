"""Battles with two whole answers to one prompt, for a judge to compare."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlmodel import Session, col, select

from arena.domain.battle import AnswerStatus, Mode, Side
from arena.store.tables import AnswerRow, BattleRow, TurnRow


@dataclass(frozen=True, slots=True)
class AnsweredBattle:
    """What was asked and answered, and by whom."""

    battle_id: str
    prompt_id: str | None
    model_a: str
    model_b: str
    prompt: str
    text_a: str
    text_b: str


def answered(session: Session) -> list[AnsweredBattle]:
    """Give the blind battles of one turn whose newest answers are both complete.

    In a later turn each side goes on from answers of its own: there is no common prompt to
    compare two answers to.
    """
    several = select(TurnRow.battle_id).where(col(TurnRow.turn) > 1)
    rows = session.exec(
        select(BattleRow, TurnRow.prompt, AnswerRow)
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .join(AnswerRow, col(AnswerRow.battle_id) == col(BattleRow.id))
        .where(BattleRow.mode == Mode.ANONYMOUS, col(BattleRow.id).not_in(several))
        .order_by(col(BattleRow.id), col(AnswerRow.attempt))
    )
    newest: dict[str, tuple[BattleRow, str, dict[str, AnswerRow]]] = {}
    for battle, prompt, answer in rows:
        sides = newest.setdefault(battle.public_id, (battle, prompt, {}))[2]
        sides[answer.side] = answer
    return [
        _battle(battle, prompt, sides)
        for battle, prompt, sides in newest.values()
        if _whole(sides.values())
    ]


def _whole(answers: Collection[AnswerRow]) -> bool:
    return len(answers) == 2 and all(a.status == AnswerStatus.COMPLETE for a in answers)


def _battle(battle: BattleRow, prompt: str, sides: dict[str, AnswerRow]) -> AnsweredBattle:
    a, b = sides[Side.A], sides[Side.B]
    return AnsweredBattle(
        battle_id=battle.public_id,
        prompt_id=battle.prompt_id,
        model_a=a.model_id,
        model_b=b.model_id,
        prompt=prompt,
        text_a=a.text,
        text_b=b.text,
    )
