"""What voters remark beside their votes: rows of their own, which no link of the chain binds."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlmodel import Session, col

from arena.domain.remarks import Intent, Remarks, in_order
from arena.domain.vote import Choice
from arena.errors import ERASED, NotReadyError, UnknownBattleError
from arena.store.tables import BattleRow, VoteRemarkRow, VoteRow, VoterRow
from rating.sentences import Sentence

VOTE_BEFORE_REASONS = Sentence("Vote first. Then you can say why.")
NOT_ASKED = Sentence("This arena does not ask why.")
REMARKED = ("reasons_a", "reasons_b", "comment", "confidence", "intent", "before_reveal")
"""Columns of what was remarked, by their names in an export."""

_ON: Any = (
    select(
        func.coalesce(VoterRow.person, VoterRow.id).label("owner"),
        col(BattleRow.erased),
        col(VoteRow.id).label("vote"),
        col(VoteRow.outcome),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .outerjoin(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
    .where(col(BattleRow.public_id) == bindparam("public_id"))
    .with_for_update(of=BattleRow)
)
_BESIDE = select(
    *(col(getattr(VoteRemarkRow, name)) for name in (*REMARKED, "updated", "vote_id"))
).where(col(VoteRemarkRow.vote_id).in_(bindparam("votes", expanding=True)))
_ADD = insert(VoteRemarkRow)
_CHANGE = update(VoteRemarkRow).where(col(VoteRemarkRow.vote_id) == bindparam("vote"))


def remark(
    session: Session,
    battle_id: str,
    owner: str,
    remarks: Remarks,
    now: datetime,
    *,
    asked: bool = True,
) -> None:
    """Write what was remarked beside a vote in the place of what was; the vote stays as it is.

    Parameters
    ----------
    asked : bool
        Whether the arena asks; where it does not, only withheld names can be asked for.

    Raises
    ------
    UnknownBattleError, NotReadyError
        Nothing is written then.
    """
    connection = session.connection()
    on = connection.execute(_ON, {"public_id": battle_id}).one_or_none()
    if on is None or on.owner != owner:
        raise UnknownBattleError
    if on.erased is not None:
        raise NotReadyError(ERASED)
    if on.outcome in (None, Choice.SKIP):
        raise NotReadyError(VOTE_BEFORE_REASONS)
    there = connection.execute(_BESIDE, {"votes": [on.vote]}).one_or_none()
    if not asked and (there is None or there.updated is not None):
        raise NotReadyError(NOT_ASKED)
    values = _values(replace(remarks, before_reveal=_before_reveal(there, remarks)), now)
    if there is None:
        connection.execute(_ADD, {"vote_id": on.vote, **values})
    else:
        connection.execute(_CHANGE.values(**values), {"vote": on.vote})


def withhold(session: Session, vote: int) -> None:
    """Let the names of a vote wait until something is remarked beside it."""
    session.connection().execute(
        _ADD, {"vote_id": vote, **_values(Remarks(before_reveal=True), None)}
    )


def of_votes(session: Session, votes: Collection[int]) -> dict[int, Any]:
    """Give the rows of what was remarked beside votes, by the votes' keys."""
    rows = session.connection().execute(_BESIDE, {"votes": list(votes)})
    return {row.vote_id: row for row in rows if row.updated is not None}


def of_battles(session: Session) -> dict[str, dict[str, Any]]:
    """Give what was remarked beside all votes, by public battle id, as an export has it."""
    query = (
        select(
            col(BattleRow.public_id),
            *(col(getattr(VoteRemarkRow, name)) for name in (*REMARKED, "updated")),
        )
        .join(VoteRow, col(VoteRow.id) == col(VoteRemarkRow.vote_id))
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .where(col(VoteRemarkRow.updated).is_not(None))
    )
    return {row.public_id: exported(row) for row in session.connection().execute(query)}


def exported(row: Any) -> dict[str, Any]:
    """Give a row by the names of columns of an export of votes."""
    return {
        "reasons_a": ",".join(row.reasons_a),
        "reasons_b": ",".join(row.reasons_b),
        "confidence": row.confidence,
        "voter_intent": row.intent,
        "before_reveal": int(row.before_reveal),
        "remarked": row.updated,
    }


def remarks_of(row: Any) -> Remarks:
    """Give what a row says."""
    return Remarks(
        reasons_a=in_order(row.reasons_a),
        reasons_b=in_order(row.reasons_b),
        comment=row.comment,
        confidence=row.confidence,
        intent=Intent(row.intent) if row.intent else None,
        before_reveal=row.before_reveal,
    )


def _before_reveal(there: Any, remarks: Remarks) -> bool:
    """Say whether what is to be written was, but for the intent, given before the reveal."""
    if there is None or not there.before_reveal:
        return False
    was = remarks_of(there)
    return there.updated is None or replace(was, intent=remarks.intent) == replace(
        remarks, before_reveal=True
    )


def _values(remarks: Remarks, now: datetime | None) -> dict[str, Any]:
    return {
        "reasons_a": list(remarks.reasons_a),
        "reasons_b": list(remarks.reasons_b),
        "comment": remarks.comment,
        "confidence": remarks.confidence,
        "intent": remarks.intent,
        "before_reveal": remarks.before_reveal,
        "updated": now,
    }
