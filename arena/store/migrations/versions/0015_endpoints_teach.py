"""What endpoints of judges refuse is kept, and replies are found by their judge."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "endpoint_lesson",
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "name", name=op.f("pk_endpoint_lesson")),
    )
    op.create_index(op.f("ix_judgement_judge"), "judgement", ["judge"])
