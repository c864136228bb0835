"""Battles go on after their vote, and a model that fails at once is replaced."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("battle", sa.Column("repicks", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "battle",
        sa.Column(
            "continues",
            sa.Integer(),
            sa.ForeignKey("battle.id", name="fk_battle_continues_battle"),
            nullable=True,
        ),
        inline_references=True,
    )
    op.create_index(op.f("ix_answer_created"), "answer", ["created"], unique=False)
