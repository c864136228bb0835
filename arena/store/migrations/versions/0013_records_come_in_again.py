"""Records come in again, and votes can be taken out: links without votes beside them."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "chain_link",
        sa.Column("link", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("bound", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("link", name=op.f("pk_chain_link")),
    )
    imported = sa.Column("imported", sa.Integer(), server_default="0", nullable=False)
    op.add_column("vote_chain", imported)
    op.add_column("vote", sa.Column("transcript_hash", sa.String(), nullable=True))
    op.add_column("turn", sa.Column("scrubbed", sa.Integer(), nullable=True))
    op.add_column("answer", sa.Column("measured", sa.JSON(none_as_null=True), nullable=True))
