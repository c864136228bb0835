"""${message}."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    ${upgrades if upgrades else "pass"}
