"""Models that fail again and again are paused: for which failure."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("roster_entry", sa.Column("paused", sa.String(), nullable=True))
