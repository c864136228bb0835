"""The tables of version 0.1.0, from which migrations start; older databases are refused.

They are plain SQL, not the metadata of `arena.store.tables`: those are the tables of today, to
which the migrations after this one could not be applied. A new database gets the tables of today
without any migration; this revision is what those after it follow, and what they are tested on.
"""

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = None
branch_labels = None
depends_on = None

POSTGRESQL = {" id INTEGER": " id SERIAL", "DATETIME": "TIMESTAMP WITH TIME ZONE", "BLOB": "BYTEA"}
"""How the SQL for SQLite is written for PostgreSQL."""


def upgrade() -> None:
    """Make the tables."""
    sql = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    if op.get_bind().dialect.name == "postgresql":
        for ours, theirs in POSTGRESQL.items():
            sql = sql.replace(ours, theirs)
    for statement in sql.split(";\n")[:-1]:
        op.execute(statement)
