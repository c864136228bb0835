"""How often each pair met and how it ended, counted by the database."""

from dataclasses import dataclass

from sqlmodel import Session, col, func, select

from arena.domain.vote import Choice
from arena.domain.voter import VoterKind
from arena.store.tables import BattleRow, ExclusionRow, VoteRow, VoterRow


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """Votes that are alike in all that is counted here."""

    model_a: str
    model_b: str
    outcome: Choice
    voter_kind: VoterKind
    votes: int


def newest_vote(session: Session) -> int:
    """Key of the newest vote; keys grow in the order of the log. 0 before the first."""
    return session.exec(select(func.max(VoteRow.id))).one() or 0


def outcomes_between(session: Session, after: int, until: int) -> list[PairOutcome]:
    """Count the votes after one and up to another, by their keys, skips among them."""
    return _counted(session, col(VoteRow.id) > after, col(VoteRow.id) <= until)


def excluded_outcomes(session: Session, policy: str, until: int) -> list[PairOutcome]:
    """Count the votes up to one that have an exclusion logged under a policy."""
    excluded = select(ExclusionRow.vote_id).where(col(ExclusionRow.policy) == policy)
    return _counted(session, col(VoteRow.id).in_(excluded), col(VoteRow.id) <= until)


def _counted(session: Session, *which: object) -> list[PairOutcome]:
    keys = (BattleRow.model_a, BattleRow.model_b, VoteRow.outcome, VoterRow.kind)
    query = (
        select(*keys, func.count())  # type: ignore[call-overload]
        .select_from(VoteRow)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .where(*which)
        .group_by(*keys)
    )
    return [
        PairOutcome(a, b, Choice(outcome), VoterKind(kind), votes)
        for a, b, outcome, kind, votes in session.exec(query)
    ]
