"""The chain of votes: each carries the hash of the one before, so a later edit shows."""

import hashlib
import json

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


def append(session: Session, vote: VoteRow, battle_id: str) -> None:
    """Add a vote at the end of the chain; writers wait for one another at its head."""
    head = session.exec(select(ChainRow).with_for_update()).one()
    vote.previous_hash = head.head
    vote.hash = vote_hash(vote, battle_id)
    head.head = vote.hash
    session.add(vote)


def head(session: Session) -> str:
    """Hash of the newest vote; empty before the first."""
    return session.exec(select(ChainRow)).one().head


def vote_hash(vote: VoteRow, battle_id: str) -> str:
    """SHA-256 of the previous hash and of what the vote says."""
    said = {name: getattr(vote, name) for name in HASHED}
    said["battle"] = battle_id
    said["created"] = vote.created.isoformat()
    text = vote.previous_hash + json.dumps(said, sort_keys=True, separators=(",", ":"))
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
        if vote.previous_hash != previous or vote.hash != vote_hash(vote, battle_id):
            return battle_id
        previous = vote.hash
    return None


def ends_at_head(session: Session) -> bool:
    """Whether the newest vote is the one that the head names: false if the end was cut off."""
    last = session.exec(select(VoteRow.hash).order_by(col(VoteRow.id).desc()).limit(1)).first()
    return (last or "") == head(session)
