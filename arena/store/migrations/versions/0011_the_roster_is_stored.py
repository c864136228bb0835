"""The roster is stored: models come and go without a restart, in all processes alike."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "roster_entry",
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("entry", sa.JSON(), nullable=False),
        sa.Column("standing", sa.String(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("updated", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_roster_entry_model_id_model")
        ),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_roster_entry")),
    )
    op.create_table(
        "roster_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roster_version")),
    )
    op.create_index(op.f("ix_vote_created"), "vote", ["created"])
