"""Which votes count under a policy, and which battles are over, as clauses of queries."""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from arena.domain.battle import BattleState, Mode
from arena.domain.gold import GOLD
from arena.domain.vote import INHERITS, READMITTED, Choice, Policy
from arena.store.tables import AnswerRow, BattleRow, ExclusionRow, VoteRow, VoterRow

RUNNING = tuple(state for state in BattleState if state.running)
_ASKED = aliased(AnswerRow)
LAST_ASKED: ColumnElement[datetime] = (
    select(func.max(col(_ASKED.created)))
    .where(col(_ASKED.battle_id) == col(BattleRow.id))
    .correlate(BattleRow)
    .scalar_subquery()
)
"""When a model was last asked in a battle, in a query on battles."""
SETTLES = timedelta(minutes=5)
"""A battle is over so long after it expires: clocks differ, and a turn may be written late."""


def is_newest(policy: str) -> ColumnElement[bool]:
    """Say, in a query, whether a row is the newest on its vote."""
    newest = (
        select(func.max(col(ExclusionRow.link)))
        .where(col(ExclusionRow.policy).in_(INHERITS.get(policy, (policy,))))
        .group_by(col(ExclusionRow.vote_id))
    )
    return col(ExclusionRow.link).in_(newest)


def is_standing(policy: str) -> ColumnElement[bool]:
    """Say, in a query, whether a row is the newest on its vote and leaves it out."""
    return is_newest(policy) & (col(ExclusionRow.rule) != READMITTED)


def is_gold() -> ColumnElement[bool]:
    """Say, in a query on battles, whether one is a gold battle: see `arena.domain.gold`."""
    return func.coalesce(col(BattleRow.prompt_set), "").startswith(GOLD)


def is_over(asked_since: datetime) -> ColumnElement[bool]:
    """Say, in a query on battles, whether one can no longer be voted on.

    Public figures are of such battles alone. They have a vote or a skip, go on after a vote, or
    have expired: see `arena.domain.battle.current_state`.
    """
    decided = col(BattleRow.state).in_((BattleState.VOTED, BattleState.SKIPPED))
    asked = select(col(_ASKED.battle_id)).where(col(_ASKED.created) >= asked_since - SETTLES)
    left = col(BattleRow.state).not_in(RUNNING) & col(BattleRow.id).not_in(asked)
    return or_(decided, col(BattleRow.mode) != Mode.ANONYMOUS, left)


def is_counted(policy: Policy) -> ColumnElement[bool]:
    """Say, in a query on votes, battles and voters, whether a vote counts: `Policy.why_not`."""
    return and_(
        *([~col(VoteRow.broken)] if policy.excludes_broken else []),
        col(VoteRow.outcome) != Choice.SKIP,
        ~is_gold(),
        col(VoterRow.kind).in_(policy.kinds),
        col(VoteRow.id).not_in(select(col(ExclusionRow.vote_id)).where(is_standing(policy.name))),
    )


def reasons_on(session: Session, policy: str, votes: Collection[int]) -> dict[int, str]:
    """Give why those of some votes are left out that are, by their keys."""
    query = (
        select(col(ExclusionRow.vote_id), col(ExclusionRow.rule), col(ExclusionRow.reason))
        .where(
            col(ExclusionRow.vote_id).in_(votes),
            col(ExclusionRow.policy).in_(INHERITS.get(policy, (policy,))),
        )
        .order_by(col(ExclusionRow.link))
    )
    newest = {key: (rule, why) for key, rule, why in session.connection().execute(query)}
    return {key: why for key, (rule, why) in newest.items() if rule != READMITTED}
