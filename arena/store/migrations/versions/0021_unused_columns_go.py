"""Drop what was written and never used: ratings by run, and columns of votes and voters."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

COLUMNS = {"vote": ("tags_a", "tags_b", "comment_a", "comment_b"), "voter": ("consent_version",)}


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.drop_table("rating")
    for table, columns in COLUMNS.items():
        for column in columns:
            op.drop_column(table, column)
