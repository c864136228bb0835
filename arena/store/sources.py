"""Applications whose votes come in, and the battles that they sent."""

import hmac
import secrets
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import insert
from sqlmodel import Session, col, func, select

from arena.domain.battle import AnswerStatus, BattleState, Side
from arena.domain.model import BESIDE, MOST_ORIGINS, MOST_VERSIONS, Model, Source, VersionAnswer
from arena.domain.vote import attributes
from arena.errors import (
    BadComparisonError,
    LimitError,
    PausedSourceError,
    RoomError,
    UnknownBattleError,
    UnknownSourceError,
)
from arena.store import battles, log
from arena.store.chain import AnswerKey, AnswerOutcome, NewBattle
from arena.store.people import note
from arena.store.tables import (
    OWNER,
    BattleRow,
    ModelRow,
    SourcePairRow,
    SourceRow,
    VoteRow,
    VoterRow,
)
from rating.sentences import Sentence

HOUR = timedelta(hours=1)


class SentPair(NamedTuple):
    """A battle that a source sent.

    Attributes
    ----------
    owner : str
        Id of the voter who reads it.
    vote_key_hash : str or None
        Of what a page votes with; None where the vote came along.
    erased : bool
        Whether its words were erased.
    """

    battle_id: str
    source: Source
    owner: str
    vote_key_hash: str | None
    erased: bool


def add(
    session: Session,
    name: str,
    token_hash: str,
    by: str,
    now: datetime,
    *,
    origins: Collection[str],
    per_hour: int,
    share: float,
) -> None:
    """Register a source; notes who did.

    Raises
    ------
    RoomError
        If there is one of the name, or was: its votes would look like those of this one.
    """
    if _named(session, name) is not None:
        msg = Sentence("There is a source %(name)s already: choose another name.", name=repr(name))
        raise RoomError(msg)
    row = SourceRow(
        name=name,
        token_hash=token_hash,
        origins=list(origins),
        per_hour=per_hour,
        share=share,
        salt=secrets.token_hex(32),
        created=now,
    )
    session.add(row)
    detail = {"origins": row.origins, "per_hour": per_hour, "share": share}
    note(session, by, "add source", name, detail, now)


def revoke(session: Session, name: str, by: str, now: datetime) -> None:
    """Let a source in no more, neither its token nor its pages; its votes stay.

    Raises
    ------
    RoomError
        If there is no such source, or it is revoked.
    """
    row = _let_in(session, name)
    row.revoked = now
    note(session, by, "revoke source", name, {}, now)


def change(
    session: Session,
    name: str,
    by: str,
    now: datetime,
    *,
    added: Collection[str] = (),
    removed: Collection[str] = (),
    per_hour: int | None = None,
    share: float | None = None,
    paused: bool | None = None,
    token_hash: str | None = None,
) -> Source:
    """Change what a source may do, and give it as it then is; notes who did, and what.

    What is empty or None stays.

    Parameters
    ----------
    added, removed : collection of str
        Origins.
    paused : bool or None
        Whether it is let in no more for now, or again.

    Raises
    ------
    RoomError
        If there is no such source, it is revoked, has not the origin that is to go, or would
        have too many.
    """
    row = _let_in(session, name)
    if lacking := [origin for origin in removed if origin not in row.origins]:
        msg = Sentence(
            "The source %(name)s has no origin %(origin)s; it has: %(known)s.",
            name=name,
            origin=repr(lacking[0]),
            known=", ".join(row.origins) or "none",
        )
        raise RoomError(msg)
    left = [origin for origin in row.origins if origin not in removed]
    row.origins = list(dict.fromkeys((*left, *added)))
    if len(row.origins) > MOST_ORIGINS:
        msg = Sentence(
            "A source has up to %(most)s origins, and would have %(n)s: remove some.",
            most=MOST_ORIGINS,
            n=len(row.origins),
        )
        raise RoomError(msg)
    row.per_hour = row.per_hour if per_hour is None else per_hour
    row.share = row.share if share is None else share
    if paused is not None:
        row.paused = (row.paused or now) if paused else None
    row.token_hash = token_hash or row.token_hash
    detail = {"origins": row.origins, "per_hour": row.per_hour, "share": row.share} | {
        "paused": row.paused is not None,
        "new_token": token_hash is not None,
    }
    note(session, by, "change source", name, detail, now)
    return _source(row)


def everyone(session: Session) -> list[tuple[Source, int, int]]:
    """Read the sources, those that are revoked among them, with the pairs and votes they sent."""
    counts = (
        select(
            col(SourceRow.id),
            func.count(col(SourcePairRow.battle_id)),
            func.count(col(VoteRow.id)),
        )
        .outerjoin(SourcePairRow, col(SourcePairRow.source_id) == col(SourceRow.id))
        .outerjoin(VoteRow, col(VoteRow.battle_id) == col(SourcePairRow.battle_id))
        .group_by(col(SourceRow.id))
    )
    sent = {key: (pairs, votes) for key, pairs, votes in session.exec(counts)}
    rows = session.exec(select(SourceRow).order_by(col(SourceRow.name)))
    return [(_source(row), *sent[row.id]) for row in rows]


def of_token(session: Session, token_hash: str) -> Source:
    """Read the source that has a token.

    Raises
    ------
    UnknownSourceError, PausedSourceError
        If none has, or it is revoked; if it is paused.
    """
    row = session.exec(select(SourceRow).where(SourceRow.token_hash == token_hash)).one_or_none()
    return _source(_open(row))


def hold(session: Session, source: Source) -> None:
    """Let one transaction after the other take what a source sends.

    Raises
    ------
    UnknownSourceError, PausedSourceError
        If it was revoked or paused meanwhile.
    """
    _open(session.get_one(SourceRow, source.id, with_for_update=True))


def pair_of_key(session: Session, source: Source, key_hash: str) -> SentPair | None:
    """Read what a source sent under a key; None if nothing."""
    return _pair(session, SourcePairRow.source_id == source.id, SourcePairRow.key_hash == key_hash)


def pair_called(session: Session, battle_id: str) -> SentPair | None:
    """Read a pair by the battle's public id; None if no source sent it."""
    return _pair(session, BattleRow.public_id == battle_id)


def pair_to_vote_on(session: Session, battle_id: str, vote_key_hash: str) -> SentPair:
    """Read a pair for a page that has its key.

    Raises
    ------
    UnknownBattleError
        If there is no such pair, or its key is another.
    """
    pair = pair_called(session, battle_id)
    if pair is None or pair.vote_key_hash is None:
        raise UnknownBattleError
    if not hmac.compare_digest(pair.vote_key_hash, vote_key_hash):
        raise UnknownBattleError
    return pair


def vote_with(session: Session, battle_id: str, vote_key_hash: str) -> None:
    """Let a pair be voted on with a key, and with no other."""
    battle = select(BattleRow.id).where(BattleRow.public_id == battle_id).scalar_subquery()
    row = session.exec(select(SourcePairRow).where(SourcePairRow.battle_id == battle)).one()
    row.vote_key_hash = vote_key_hash


def take(
    session: Session,
    source: Source,
    new: NewBattle,
    sides: Mapping[Side, VersionAnswer],
    key_hash: str,
    vote_key_hash: str | None,
    now: datetime,
) -> None:
    """Write a battle with both answers, ready for its vote since it was created.

    Raises
    ------
    LimitError, BadComparisonError
        If the source has sent as much within the hour as it may, or has too many versions.
    """
    _refuse_beyond(session, source, now)
    _enter(session, source, [source.model(one.version) for one in sides.values()], now)
    battles.open_battle(session, new)
    ends = {
        AnswerKey(1, side, 1): AnswerOutcome(text=answer.text, status=AnswerStatus.COMPLETE)
        for side, answer in sides.items()
    }
    battles.close_answers(
        session, new.public_id, BattleState.READY, ends, message=None, now=new.created
    )
    key = col(BattleRow.id)
    battle = select(key).where(BattleRow.public_id == new.public_id).scalar_subquery()
    session.connection().execute(
        insert(SourcePairRow).values(
            battle_id=battle,
            source_id=source.id,
            key_hash=key_hash,
            vote_key_hash=vote_key_hash,
            created=now,
        )
    )


def _refuse_beyond(session: Session, source: Source, now: datetime) -> None:
    """Raise `LimitError` if a source has sent as much within the hour as it may."""
    sent = (
        select(SourcePairRow.created)
        .where(SourcePairRow.source_id == source.id, col(SourcePairRow.created) > now - HOUR)
        .order_by(col(SourcePairRow.created).desc())
        .offset(source.per_hour - 1)
        .limit(1)
    )
    oldest = session.exec(sent).first()
    if oldest is not None:
        reached = Sentence(
            "The source %(name)s has sent %(n)s comparisons within an hour.",
            name=source.name,
            n=source.per_hour,
        )
        raise LimitError(reached, oldest + HOUR)


def _enter(session: Session, source: Source, versions: Collection[Model], now: datetime) -> None:
    """Note versions of a source in the log of models, those that are not there yet.

    Raises
    ------
    BadComparisonError
        If the source would have more than `MOST_VERSIONS`.
    """
    begins = col(ModelRow.id).startswith(f"{source.name}{BESIDE}", autoescape=True)
    known = set(session.exec(select(ModelRow.id).where(begins)))
    new = [model for model in versions if model.id not in known]
    if len(known) + len(new) > MOST_VERSIONS:
        msg = Sentence(
            "The source has %(n)s versions, which is the most: %(version)s would be another. Is "
            "it one? A run or a user is none.",
            n=len(known),
            version=repr(new[0].name),
        )
        raise BadComparisonError(msg)
    if new:
        log.register(session, new, now)


def _pair(session: Session, *which: bool) -> SentPair | None:
    query = (
        select(SourcePairRow, SourceRow, BattleRow.public_id, OWNER, BattleRow.erased)  # type: ignore[call-overload]
        .join(SourceRow, col(SourceRow.id) == col(SourcePairRow.source_id))
        .join(BattleRow, col(BattleRow.id) == col(SourcePairRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(*which)
    )
    row = session.exec(query).one_or_none()
    if row is None:
        return None
    sent, source, battle_id, owner_id, erased = row
    return SentPair(
        battle_id, _source(source), owner_id, sent.vote_key_hash, erased=erased is not None
    )


def _open(row: SourceRow | None) -> SourceRow:
    """Give a source that may send."""
    if row is None or row.revoked is not None:
        raise UnknownSourceError
    if row.paused is not None:
        raise PausedSourceError(row.name)
    return row


def _let_in(session: Session, name: str) -> SourceRow:
    """Give a source that is not revoked; raises `RoomError` if none of the name is there."""
    row = _named(session, name)
    if row is None or row.revoked is not None:
        known = session.exec(select(SourceRow.name).where(col(SourceRow.revoked).is_(None)))
        msg = Sentence(
            "There is no source %(name)s that is let in; those that are: %(known)s.",
            name=repr(name[:100]),
            known=", ".join(known) or "none",
        )
        raise RoomError(msg)
    return row


def _named(session: Session, name: str) -> SourceRow | None:
    return session.exec(select(SourceRow).where(SourceRow.name == name)).one_or_none()


def _source(row: SourceRow) -> Source:
    assert row.id is not None, "the row was not written"
    return Source(
        origins=tuple(row.origins),
        **attributes(
            row, "id", "name", "per_hour", "share", "created", "revoked", "salt", "paused"
        ),
    )
