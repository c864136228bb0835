"""Applications can be paused: since when."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("source", sa.Column("paused", UtcDateTime(), nullable=True))
