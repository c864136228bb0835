"""Words can go: battles are hidden or erased, and the ids of prompts get a secret."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "prompt_secret",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_secret")),
    )
    op.add_column("battle", sa.Column("hidden", UtcDateTime(), nullable=True))
    op.add_column("battle", sa.Column("erased", UtcDateTime(), nullable=True))
    op.add_column("answer", sa.Column("erased_chars", sa.Integer(), nullable=True))
