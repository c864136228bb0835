"""Processes share what they ask of judges, and a secret to ask it with."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "judgement_claim",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("process", sa.BigInteger(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_judgement_claim")),
    )
    op.create_table(
        "judging_seed",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("seed", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judging_seed")),
    )
