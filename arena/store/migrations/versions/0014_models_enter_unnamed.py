"""Models may enter unnamed: whether an entry of the roster may be known, and since when."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("roster_entry", sa.Column("release", sa.String(), nullable=True))
    op.add_column("roster_entry", sa.Column("released", UtcDateTime(), nullable=True))
    op.add_column("roster_entry", sa.Column("secret", sa.String(), nullable=True))
    op.execute("UPDATE roster_entry SET release = 'released', secret = ''")
