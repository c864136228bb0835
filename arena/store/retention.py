"""What is older than the settings keep it: words, and whole battles without a vote."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlmodel import Session, col

from arena.domain.people import Gone, Perishable
from arena.store import erasing
from arena.store.counted import RUNNING
from arena.store.engine import alone
from arena.store.people import note
from arena.store.store import Store
from arena.store.tables import (
    ActRow,
    AnswerRow,
    BattleRow,
    FlagRow,
    PromptLabelRow,
    SourcePairRow,
    TurnRow,
    VoteRow,
)


def expire(store: Store, kind: Perishable, days: int, by: str, now: datetime) -> int:
    """Let some of what is too old go, and write down how much; gives the battles, 0 at the end.

    Replicas wait for one another: what one of them took is no longer there for the next.
    """
    before = now - timedelta(days=days)
    due = _WHICH[kind]
    with store.reading() as session:
        old = due(session, before)
        judgements = erasing.quoting(session, erasing.texts_of(session, old))
    if not old:
        return 0
    with store.writing() as session:
        alone(session.connection())
        still = [battle for battle in due(session, before) if battle in set(old)]
        gone = erasing.erase_words(session, still, judgements, now)
        if kind is Perishable.UNVOTED:
            _delete(session, still)
        if still:
            detail = {"battles": gone.battles, "days": days, "judgements": gone.judgements}
            note(session, by, erasing.EXPIRE, kind, detail, now)
    return len(old)


def gone(session: Session) -> dict[Perishable, Gone]:
    """Say how much went by itself so far, and when the last of it."""
    acts = select(col(ActRow.subject), col(ActRow.detail), col(ActRow.created)).where(
        col(ActRow.act) == erasing.EXPIRE
    )
    so_far: dict[Perishable, Gone] = {}
    for subject, detail, created in session.connection().execute(acts.order_by(col(ActRow.id))):
        kind = Perishable(subject)
        before = so_far[kind].battles if kind in so_far else 0
        so_far[kind] = Gone(before + detail["battles"], created)
    return so_far


def _words(session: Session, before: datetime) -> list[int]:
    return _due(session, before, col(BattleRow.erased).is_(None))


def _unvoted(session: Session, before: datetime) -> list[int]:
    votes = select(col(VoteRow.battle_id))
    later = select(col(BattleRow.continues)).where(col(BattleRow.continues).is_not(None))
    key = col(BattleRow.id)
    return _due(session, before, key.not_in(votes), key.not_in(later))


def _due(session: Session, before: datetime, *which: Any) -> list[int]:
    query = select(col(BattleRow.id)).where(
        col(BattleRow.created) < before, col(BattleRow.state).not_in(RUNNING), *which
    )
    return list(session.scalars(query.order_by(col(BattleRow.id)).limit(erasing.BATCH)))


_WHICH: dict[Perishable, Callable[[Session, datetime], list[int]]] = {
    Perishable.WORDS: _words,
    Perishable.UNVOTED: _unvoted,
}


def _delete(session: Session, battles: Collection[int]) -> None:
    turns = select(col(TurnRow.id)).where(col(TurnRow.battle_id).in_(battles))
    for rows in (
        delete(PromptLabelRow).where(col(PromptLabelRow.turn_id).in_(turns)),
        delete(FlagRow).where(col(FlagRow.battle_id).in_(battles)),
        delete(SourcePairRow).where(col(SourcePairRow.battle_id).in_(battles)),
        delete(AnswerRow).where(col(AnswerRow.battle_id).in_(battles)),
        delete(TurnRow).where(col(TurnRow.battle_id).in_(battles)),
        delete(BattleRow).where(col(BattleRow.id).in_(battles)),
    ):
        session.connection().execute(rows)
