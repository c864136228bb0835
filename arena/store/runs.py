"""The record of boards: which votes, which policy, which code, and what came out."""

from dataclasses import asdict

from sqlmodel import Session, col, select

from arena.store.records import RatingRun
from arena.store.tables import RatingRow, RatingRunRow


def record(session: Session, run: RatingRun) -> None:
    """Write a run down, once for the same votes, policy and code."""
    known = select(RatingRunRow.id).where(
        col(RatingRunRow.policy) == run.policy,
        col(RatingRunRow.head) == run.head,
        col(RatingRunRow.code_version) == run.code_version,
    )
    if session.exec(known).first() is not None:
        return
    row = RatingRunRow(
        policy=run.policy,
        method=dict(run.method),
        code_version=run.code_version,
        head=run.head,
        votes=run.votes,
        created=run.created,
    )
    session.add(row)
    session.flush()
    assert row.id is not None, "the row was not flushed"
    session.add_all(RatingRow(run_id=row.id, **asdict(model)) for model in run.rows)
