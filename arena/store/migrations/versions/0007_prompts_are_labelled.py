"""Prompts are labelled: what is said of a turn, by which version of which tagger."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "prompt_label",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("turn_id", sa.Integer(), nullable=False),
        sa.Column("facet", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("tagger", sa.String(), nullable=False),
        sa.Column("tagger_version", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["turn_id"], ["turn.id"], name=op.f("fk_prompt_label_turn_id_turn")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_label")),
        sa.UniqueConstraint(
            "turn_id", "tagger", "tagger_version", "facet", name=op.f("uq_prompt_label_turn_id")
        ),
    )
