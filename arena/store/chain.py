"""The chain of votes: each carries the hash of the one before, so a later edit shows."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, update
from sqlmodel import Session, col, select

from arena.store.tables import BattleRow, ChainRow, VoteRow

HASHED = (
    "voter_id",
    "turn",
    "attempt_a",
    "attempt_b",
    "outcome",
    "key",
    "order_shown",
    "seconds_to_vote",
)

_HEAD_LOCKED = select(ChainRow.head).with_for_update()
_MOVE = update(ChainRow)


def extend(
    connection: Connection, vote: Mapping[str, object], created: datetime, battle_id: str
) -> dict[str, str]:
    """Move the chain's end to a vote about to be written; gives the vote's two hashes.

    Writers wait for one another here, until the transaction of each has ended.
    """
    before = connection.scalars(_HEAD_LOCKED).one()
    after = vote_hash(before, vote, created, battle_id)
    connection.execute(_MOVE, {"head": after})
    return {"previous_hash": before, "hash": after}


def head(session: Session) -> str:
    """Hash of the newest vote; empty before the first."""
    return session.exec(select(ChainRow)).one().head


def vote_hash(previous: str, vote: Mapping[str, object], created: datetime, battle_id: str) -> str:
    """SHA-256 of the previous hash and of what the vote says."""
    said = {name: vote[name] for name in HASHED}
    said["battle"] = battle_id
    said["created"] = created.isoformat()
    text = previous + json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def first_break(session: Session) -> str | None:
    """Public id of the first battle whose vote does not follow from the one before, if any."""
    previous = ""
    rows = session.exec(
        select(VoteRow, BattleRow.public_id)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .order_by(col(VoteRow.id))
    )
    for vote, battle_id in rows:
        said = {name: getattr(vote, name) for name in HASHED}
        follows = vote_hash(previous, said, vote.created, battle_id)
        if (vote.previous_hash, vote.hash) != (previous, follows):
            return battle_id
        previous = vote.hash
    return None


def ends_at_head(session: Session) -> bool:
    """Whether the newest vote is the one that the head names: false if the end was cut off."""
    last = session.exec(select(VoteRow.hash).order_by(col(VoteRow.id).desc()).limit(1)).first()
    return (last or "") == head(session)
