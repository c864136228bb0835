"""Applications send votes: who they are, and what they sent."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "source",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("origins", sa.JSON(), nullable=False),
        sa.Column("per_hour", sa.Integer(), nullable=False),
        sa.Column("share", sa.Float(), nullable=False),
        sa.Column("salt", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("revoked", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
        sa.UniqueConstraint("name", name=op.f("uq_source_name")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_source_token_hash")),
    )
    op.create_table(
        "source_pair",
        sa.Column("battle_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("key_hash", sa.String(), nullable=False),
        sa.Column("vote_key_hash", sa.String(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["battle_id"], ["battle.id"], name=op.f("fk_source_pair_battle_id_battle")
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["source.id"], name=op.f("fk_source_pair_source_id_source")
        ),
        sa.PrimaryKeyConstraint("battle_id", name=op.f("pk_source_pair")),
        sa.UniqueConstraint("source_id", "key_hash", name=op.f("uq_source_pair_source_id")),
    )
    op.create_index("ix_source_pair_source_id_created", "source_pair", ["source_id", "created"])
