"""Topics of prompts are released: what was published, and what the next one goes on from."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0009"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "topic_release",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("shown", sa.JSON(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("waiting", sa.JSON(), nullable=False),
        sa.Column("topics", sa.LargeBinary(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_topic_release")),
        sa.UniqueConstraint("private", "number", name=op.f("uq_topic_release_private")),
    )
