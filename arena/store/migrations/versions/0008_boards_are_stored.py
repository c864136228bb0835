"""Boards are stored for all processes, and the votes in the columns that boards read."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision; both tables are filled by the arena, as it runs."""
    op.create_table(
        "vote_block",
        sa.Column("last", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("names", sa.JSON(), nullable=False),
        sa.Column("votes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("last", name=op.f("pk_vote_block")),
    )
    op.create_table(
        "board",
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("board", sa.String(), nullable=False),
        sa.Column("took_s", sa.Float(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("policy", name=op.f("pk_board")),
    )
