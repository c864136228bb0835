"""People are known: invitations, roles, one voter on several devices, and what admins did."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "person",
        sa.Column("voter_id", sa.String(), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("sessions", sa.Integer(), nullable=False),
        sa.Column("blocked", sa.Boolean(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["voter_id"], ["voter.id"], name=op.f("fk_person_voter_id_voter")),
        sa.PrimaryKeyConstraint("voter_id", name=op.f("pk_person")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_person_issuer")),
    )
    op.create_table(
        "invitation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("expires", UtcDateTime(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person"], ["person.voter_id"], name=op.f("fk_invitation_person_person")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitation_token_hash")),
    )
    op.create_table(
        "act",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("act", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_act")),
    )
    op.add_column("voter", sa.Column("person", sa.String(), nullable=True))
    op.create_index(op.f("ix_voter_person"), "voter", ["person"])
