"""Counts of the length and formatting of answers, by vote, for style-adjusted boards."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "vote_style",
        sa.Column("vote_id", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["vote_id"], ["vote.id"], name=op.f("fk_vote_style_vote_id_vote")),
        sa.PrimaryKeyConstraint("vote_id", name=op.f("pk_vote_style")),
    )
