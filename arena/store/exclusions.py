"""Votes that a policy leaves out from here on, and takes in again: rows that are only added."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Float, func, or_, select, type_coerce
from sqlmodel import Session, col

from arena.domain.room_view import BusyVoter, FlaggedBattle, LeftOut
from arena.domain.vote import DEFAULT, READMITTED
from arena.store import voting
from arena.store.counted import is_gold, is_newest, is_standing
from arena.store.tables import (
    BOTH_MODELS,
    AnswerRow,
    BattleRow,
    ExclusionRow,
    FlagRow,
    VoteRow,
    VoterRow,
)
from rating.outcome import SIDES

HELD = "held"
APPLIED = "applied"
LEAST_ID = 8
"""Characters of an id that name a voter."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why votes are left out, or taken in again.

    Attributes
    ----------
    version : str
        Of the rule.
    reason : str
        For people; leaderboards count the votes that are left out by it.
    """

    rule: str
    version: str
    reason: str


class VotedAnswer(NamedTuple):
    """An answer of a battle with a vote."""

    key: int | None
    battle: str
    model: str
    text: str


def whole_id(session: Session, target: str) -> str:
    """Give the id of the one voter whose id begins so; a whole id, or another, as it is."""
    ids = (col(VoterRow.id), col(VoterRow.person))
    begins = or_(*(one.startswith(target, autoescape=True) for one in ids))
    query = select(func.coalesce(VoterRow.person, VoterRow.id), col(VoterRow.id)).where(begins)
    known = session.connection().execute(query).all() if len(target) >= LEAST_ID else []
    owners = {owner for owner, _ in known}
    is_whole = target in owners | {one for _, one in known}
    return target if is_whole or len(owners) != 1 else str(owners.pop())


def busiest(session: Session, most: int) -> tuple[BusyVoter, ...]:
    """Count the votes of those who voted most here, whether they count or not."""
    voter = func.coalesce(VoterRow.person, VoterRow.id)
    votes = func.count()
    query = (
        select(voter, votes, func.max(col(VoteRow.created)))
        .join(VoteRow, col(VoteRow.voter_id) == col(VoterRow.id))
        .where(col(VoterRow.kind).in_(DEFAULT.kinds))
        .group_by(voter)
        .order_by(votes.desc(), voter)
        .limit(most)
    )
    return tuple(BusyVoter(*row) for row in session.connection().execute(query))


def battles_meant(session: Session, target: str) -> list[str]:
    """Give the battles whose votes a voter's id stands for, or a battle's; none if unknown.

    A person's id stands for what they cast before they signed in, too.
    """
    ids = (VoterRow.id, VoterRow.person, BattleRow.public_id)
    query = (
        select(col(BattleRow.public_id))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(or_(*(col(one) == target for one in ids)))
        .order_by(col(VoteRow.link))
    )
    return list(session.connection().scalars(query))


def rules(session: Session, policy: str) -> dict[str, str]:
    """Give the rule of the newest row on each vote that has any, by battle."""
    query = (
        select(col(BattleRow.public_id), col(ExclusionRow.rule))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(ExclusionRow, col(ExclusionRow.vote_id) == col(VoteRow.id))
        .where(is_newest(policy))
    )
    return dict(session.connection().execute(query).all())


def exclude(
    session: Session, policy: str, battles: Collection[str], grounds: Grounds, now: datetime
) -> int:
    """Leave out the votes on battles, but those that are out already; gives how many.

    Raises
    ------
    UnknownBattleError
        If a battle has no vote.
    """
    known = rules(session, policy)
    fresh = [one for one in battles if known.get(one, READMITTED) == READMITTED]
    for battle in fresh:
        voting.exclude(session, battle, policy=policy, **asdict(grounds), now=now)
    return len(fresh)


def readmit(
    session: Session,
    policy: str,
    battles: Collection[str],
    *,
    version: str,
    reason: str,
    now: datetime,
) -> int:
    """Take in again the votes on battles, those that are out; gives how many."""
    known = rules(session, policy)
    out = [one for one in battles if known.get(one, READMITTED) != READMITTED]
    counter = asdict(Grounds(READMITTED, version, reason))
    for battle in out:
        voting.exclude(session, battle, policy=policy, **counter, now=now)
    return len(out)


def flag(
    session: Session,
    grounds: Grounds,
    now: datetime,
    *,
    voter: str | None = None,
    battle: int | None = None,
    score: float | None = None,
) -> None:
    """Mark a voter or a battle, by its key; else a rule as a whole, with the share it is about."""
    row = FlagRow(voter_id=voter, battle_id=battle, score=score, created=now, **asdict(grounds))
    session.add(row)


def answers(session: Session) -> Iterator[VotedAnswer]:
    """Give the answers of battles up to the turn that was voted on, in the order of the votes."""
    query = (
        select(
            col(BattleRow.id),
            col(BattleRow.public_id),
            col(AnswerRow.model_id),
            col(AnswerRow.text),
        )
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(AnswerRow, col(AnswerRow.battle_id) == col(BattleRow.id))
        .where(col(AnswerRow.turn) <= col(VoteRow.turn), col(AnswerRow.nonce).is_not(None))
        .where(~is_gold())
        .order_by(col(VoteRow.link), col(AnswerRow.id))
    )
    for row in session.connection().execute(query.execution_options(yield_per=500)):
        yield VotedAnswer(row.id, row.public_id, row.model_id, row.text)


def flagged_battles(session: Session, rule: str, version: str) -> set[int]:
    """Give the keys of battles that a version of a rule has marked."""
    query = select(col(FlagRow.battle_id)).where(
        col(FlagRow.rule) == rule,
        col(FlagRow.version) == version,
        col(FlagRow.battle_id).is_not(None),
    )
    return {key for key in session.connection().scalars(query) if key is not None}


def left_out(session: Session, policy: str, most: int) -> tuple[LeftOut, ...]:
    """Count the votes that are left out by voter, rule and reason; those of most votes first."""
    voter = func.coalesce(VoterRow.person, VoterRow.id)
    grounds = (col(ExclusionRow.rule), col(ExclusionRow.reason))
    votes = func.count()
    query = (
        select(voter, *grounds, votes)
        .join(VoteRow, col(VoteRow.voter_id) == col(VoterRow.id))
        .join(ExclusionRow, col(ExclusionRow.vote_id) == col(VoteRow.id))
        .where(is_standing(policy))
        .group_by(voter, *grounds)
        .order_by(votes.desc(), voter)
        .limit(most)
    )
    return tuple(LeftOut(*row) for row in session.connection().execute(query))


def flagged(session: Session, policy: str, most: int) -> tuple[FlaggedBattle, ...]:
    """Give the battles that rules have marked, the last marked first."""
    out = select(col(ExclusionRow.vote_id)).where(is_standing(policy))
    query: Any = (
        select(
            col(BattleRow.public_id),
            *(one.label(side) for one, side in zip(BOTH_MODELS, SIDES, strict=True)),
            *map(col, (FlagRow.rule, FlagRow.reason, FlagRow.created)),
            col(VoteRow.id).in_(out).label("is_out"),
        )
        .join(FlagRow, col(FlagRow.battle_id) == col(BattleRow.id))
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .order_by(col(FlagRow.id).desc())
        .limit(most)
    )
    rows = session.connection().execute(query).all()
    return tuple(
        FlaggedBattle(
            battle=row.public_id,
            models=(row.a, row.b),
            rule=row.rule,
            reason=row.reason,
            created=row.created,
            counts=not row.is_out,
        )
        for row in rows
    )


def held(session: Session) -> dict[str, float]:
    """Give the rules that were held when last applied, with the share they would leave out."""
    of_rules = col(FlagRow.voter_id).is_(None) & col(FlagRow.battle_id).is_(None)
    newest = select(func.max(col(FlagRow.id))).where(of_rules).group_by(col(FlagRow.rule))
    query = (
        select(col(FlagRow.rule), type_coerce(col(FlagRow.score), Float))
        .where(col(FlagRow.id).in_(newest), col(FlagRow.reason) == HELD)
        .order_by(col(FlagRow.rule))
    )
    return dict(session.connection().execute(query).all())
