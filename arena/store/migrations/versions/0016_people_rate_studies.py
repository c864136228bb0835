"""People rate the items of studies, apart from the votes of battles."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("guidelines", sa.String(), nullable=False),
        sa.Column("opened", sa.Boolean(), nullable=False),
        sa.Column("seed", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("name", name=op.f("uq_study_name")),
    )
    op.create_table(
        "study_item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("prompt_id", sa.String(), nullable=True),
        sa.Column("messages", sa.JSON(), nullable=False),
        sa.Column("responses", sa.JSON(), nullable=False),
        sa.Column("gold", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_item_study_id_study")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_item")),
        sa.UniqueConstraint("study_id", "item", name=op.f("uq_study_item_study_id")),
    )
    op.create_table(
        "study_rater",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("voter_id", sa.String(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("qualification", sa.Float(), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("looked", UtcDateTime(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"], ["study.id"], name=op.f("fk_study_rater_study_id_study")
        ),
        sa.ForeignKeyConstraint(
            ["voter_id"], ["voter.id"], name=op.f("fk_study_rater_voter_id_voter")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_rater")),
        sa.UniqueConstraint("study_id", "voter_id", name=op.f("uq_study_rater_study_id")),
    )
    op.create_index(op.f("ix_study_rater_voter_id"), "study_rater", ["voter_id"])
    op.create_table(
        "study_assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("rater_id", sa.Integer(), nullable=False),
        sa.Column("showing", sa.Integer(), nullable=False),
        sa.Column("order", sa.JSON(), nullable=False),
        sa.Column("shown", UtcDateTime(), nullable=False),
        sa.Column("reserved_until", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["study_item.id"], name=op.f("fk_study_assignment_item_id_study_item")
        ),
        sa.ForeignKeyConstraint(
            ["rater_id"], ["study_rater.id"], name=op.f("fk_study_assignment_rater_id_study_rater")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_assignment")),
        sa.UniqueConstraint(
            "item_id", "rater_id", "showing", name=op.f("uq_study_assignment_item_id")
        ),
    )
    op.create_index(op.f("ix_study_assignment_rater_id"), "study_assignment", ["rater_id"])
    op.create_table(
        "study_rating",
        sa.Column("assignment_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("choice", sa.String(), nullable=True),
        sa.Column("ranking", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("reasons", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("confidence", sa.Integer(), nullable=True),
        sa.Column("rubric", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"],
            ["study_assignment.id"],
            name=op.f("fk_study_rating_assignment_id_study_assignment"),
        ),
        sa.PrimaryKeyConstraint("assignment_id", name=op.f("pk_study_rating")),
    )
