"""Answers tell what their pieces took, from which later battles have their pace."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.add_column("answer", sa.Column("needs", sa.JSON(none_as_null=True)))
