"""A running battle names the process that runs it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("battle", sa.Column("process", sa.BigInteger(), nullable=True))
