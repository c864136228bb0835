"""Which votes count under a policy, as clauses of queries, and why others do not."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, func, select
from sqlmodel import Session, col

from arena.domain.gold import GOLD
from arena.domain.vote import INHERITS, READMITTED, Choice, Policy
from arena.store.tables import BattleRow, ExclusionRow, VoteRow, VoterRow


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


def is_counted(policy: Policy) -> ColumnElement[bool]:
    """Say, in a query on votes, battles and voters, whether a vote counts: `Policy.why_not`."""
    return and_(
        col(VoteRow.outcome) != Choice.SKIP,
        ~is_gold(),
        col(VoterRow.kind).in_(policy.kinds),
        col(VoteRow.id).not_in(select(col(ExclusionRow.vote_id)).where(is_standing(policy.name))),
    )


def reasons(session: Session, policy: str) -> dict[int, str]:
    """Give why votes are left out, by their keys."""
    query = select(col(ExclusionRow.vote_id), col(ExclusionRow.reason)).where(is_standing(policy))
    return dict(session.connection().execute(query).all())


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
