"""Releases of topics: prompts that go into the next one, and those that were made."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.domain.board_view import ReleasedTopics
from arena.domain.vote import Choice, Policy, VoterKind
from arena.store import log
from arena.store.counted import is_gold
from arena.store.tables import BattleRow, TopicReleaseRow, TurnRow, VoteRow, VoterRow
from judge.labels.released import Asked, Batches, Release, State

_KEEP = postgresql.insert(TopicReleaseRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""
_PERSON = func.coalesce(VoterRow.person, VoteRow.voter_id)
"""Who is behind a vote: devices of one person are one."""


def newest(session: Session, *, private: bool) -> ReleasedTopics | None:
    """Give the newest release; None before the first."""
    query = (
        select(
            col(TopicReleaseRow.number), col(TopicReleaseRow.created), col(TopicReleaseRow.shown)
        )
        .where(col(TopicReleaseRow.private) == private)
        .order_by(col(TopicReleaseRow.number).desc())
    )
    row = session.connection().execute(query.limit(1)).first()
    return ReleasedTopics(row.number, row.created, Release.of_dict(row.shown)) if row else None


def state(session: Session) -> State | None:
    """Give what the next private release goes on from; None before the first."""
    query = select(TopicReleaseRow).where(col(TopicReleaseRow.private))
    last = session.scalars(query.order_by(col(TopicReleaseRow.number).desc()).limit(1)).first()
    if last is None:
        return None
    first = session.scalars(query.where(col(TopicReleaseRow.number) == 1)).one()
    assert first.topics is not None, "the first release has no hierarchy"
    counts = {int(topic): n for topic, n in last.counts.items()}
    return State(first.topics, last.until, Batches(counts, frozenset(last.waiting)))


def asked(
    session: Session, policy: Policy, after: int = 0, also: Collection[int] = ()
) -> list[Asked]:
    """Give the prompts of votes that a policy counts and whose words are there.

    Of a battle all prompts up to the turn that was voted on are one. Keys are those of votes.

    Parameters
    ----------
    after : int
        Key of the newest vote that is left out, but for those of ``also``.
    """
    left_out = log.excluded_votes(session, policy.name)
    query = (
        select(VoteRow.id, _PERSON, VoteRow.outcome, VoterRow.kind, VoteRow.broken, TurnRow.prompt)  # type: ignore[call-overload]
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(col(TurnRow.turn) <= col(VoteRow.turn), col(TurnRow.nonce).is_not(None))
        .where(~is_gold())
        .where(col(VoteRow.id) > min([after, *(key - 1 for key in also)]))
        .order_by(col(VoteRow.id), col(TurnRow.turn))
    )
    texts: dict[tuple[int, str], list[str]] = defaultdict(list)
    for key, voter, outcome, kind, broken, prompt in session.connection().execute(query):
        counts = policy.why_not(Choice(outcome), VoterKind(kind), broken=broken) is None
        if counts and key not in left_out and (key > after or key in also):
            texts[key, voter].append(prompt)
    return [Asked(key, voter, "\n\n".join(parts)) for (key, voter), parts in texts.items()]


def battles(session: Session) -> dict[int, str]:
    """Give the public id of each vote's battle, by the key of the vote."""
    query = select(col(VoteRow.id), col(BattleRow.public_id)).join(
        BattleRow, col(BattleRow.id) == col(VoteRow.battle_id)
    )
    return {row.id: row.public_id for row in session.connection().execute(query)}


def add(
    session: Session, release: Release, after: State | None, number: int, now: datetime
) -> None:
    """Store a release; one of this number that is there stays, as two processes may make it."""
    batches = after.batches if after else Batches({})
    row = {
        "private": release.private,
        "number": number,
        "shown": release.to_dict(),
        "until": after.until if after else 0,
        "counts": {str(topic): n for topic, n in batches.counts.items()},
        "waiting": sorted(batches.waiting),
        "topics": after.topics if after and number == 1 else None,
        "created": now,
    }
    session.connection().execute(_KEEP, row)
