"""Beside a vote stands what its voter remarked: reasons, a comment, confidence and intent."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "vote_remark",
        sa.Column("vote_id", sa.Integer(), nullable=False),
        sa.Column("reasons_a", sa.JSON(), nullable=False),
        sa.Column("reasons_b", sa.JSON(), nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("confidence", sa.Integer(), nullable=True),
        sa.Column("intent", sa.String(), nullable=True),
        sa.Column("before_reveal", sa.Boolean(), nullable=False),
        sa.Column("updated", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["vote_id"], ["vote.id"], name=op.f("fk_vote_remark_vote_id_vote")
        ),
        sa.PrimaryKeyConstraint("vote_id", name=op.f("pk_vote_remark")),
    )
