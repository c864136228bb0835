"""Mark votes on broken answers, and label answers that name a model."""

from collections import defaultdict

import sqlalchemy as sa
from alembic import op

from arena.domain.vote import TRUNCATED, WHOLE, is_on_broken_answer

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

USUAL = ("", *(word for one in WHOLE | TRUNCATED for word in (one, one.upper())))
"""Finish reasons of nearly all answers, which need not be looked at."""
BATCH = 500

_answer = sa.table(
    "answer", *map(sa.column, ("battle_id", "turn", "side", "attempt", "finish_reason"))
)
_vote = sa.table(
    "vote", *map(sa.column, ("battle_id", "turn", "attempt_a", "attempt_b", "link", "broken"))
)
_chain = sa.table("vote_chain", sa.column("imported"))


def upgrade() -> None:
    """Bring the schema to this revision."""
    broken: sa.Column[bool] = sa.Column(
        "broken", sa.Boolean(), server_default=sa.false(), nullable=False
    )
    op.add_column("vote", broken)
    connection, after, changed = op.get_bind(), 0, 0
    imported = connection.scalars(sa.select(_chain.c.imported)).one()
    while battles := _after(connection, after):
        on_broken = _on_broken_answers(connection, battles, imported)
        mark = sa.update(_vote).where(_vote.c.battle_id.in_(on_broken)).values(broken=sa.true())
        changed += connection.execute(mark).rowcount if on_broken else 0
        after = battles[-1]
    names_itself = sa.text("tagger = 'self-naming' AND value <> 'none'")
    op.create_index(
        "ix_prompt_label_names_itself",
        "prompt_label",
        ["turn_id"],
        sqlite_where=names_itself,
        postgresql_where=names_itself,
    )
    if changed:  # boards read votes in blocks, which are made again
        connection.execute(sa.delete(sa.table("vote_block")))


def _after(connection: sa.Connection, battle: int) -> list[int]:
    """Give the next battles with an unusual finish reason."""
    query = (
        sa.select(_answer.c.battle_id)
        .where(_answer.c.battle_id > battle, _answer.c.finish_reason.not_in(USUAL))
        .distinct()
        .order_by(_answer.c.battle_id)
        .limit(BATCH)
    )
    return [*connection.scalars(query)]


def _on_broken_answers(connection: sa.Connection, battles: list[int], imported: int) -> list[int]:
    answers = defaultdict(list)
    query = sa.select(_answer).where(_answer.c.battle_id.in_(battles))
    for battle, *answer in connection.execute(query.order_by(_answer.c.attempt)):
        answers[battle].append(tuple(answer))
    query = sa.select(_vote).where(_vote.c.battle_id.in_(battles), _vote.c.link > imported)
    return [
        vote.battle_id
        for vote in connection.execute(query)
        if is_on_broken_answer(
            answers[vote.battle_id], vote.turn, {"a": vote.attempt_a, "b": vote.attempt_b}
        )
    ]
