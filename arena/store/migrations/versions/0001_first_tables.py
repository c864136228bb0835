"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

from arena.store.tables import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.create_table(
        "judgement",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("judge", sa.String(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("response", sa.JSON(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_judgement")),
    )
    op.create_table(
        "model",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("organisation", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
    )
    op.create_table(
        "rating_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("method", sa.JSON(), nullable=False),
        sa.Column("code_version", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rating_run")),
    )
    op.create_index(op.f("ix_rating_run_head"), "rating_run", ["head"], unique=False)

    op.create_table(
        "vote_chain",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote_chain")),
    )
    op.create_table(
        "voter",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("consent_version", sa.String(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_voter")),
    )
    op.create_table(
        "battle",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("model_a", sa.String(), nullable=False),
        sa.Column("model_b", sa.String(), nullable=False),
        sa.Column("side_seed", sa.Integer(), nullable=False),
        sa.Column("sampler", sa.String(), nullable=False),
        sa.Column("sampler_version", sa.String(), nullable=False),
        sa.Column("pair_probability", sa.Float(), nullable=False),
        sa.Column("prompt_set", sa.String(), nullable=True),
        sa.Column("prompt_id", sa.String(), nullable=True),
        sa.Column("system_prompt_hash_a", sa.String(), nullable=False),
        sa.Column("system_prompt_hash_b", sa.String(), nullable=False),
        sa.Column("pacing", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("ready", UtcDateTime(), nullable=True),
        sa.Column("app_version", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["model_a"], ["model.id"], name=op.f("fk_battle_model_a_model")),
        sa.ForeignKeyConstraint(["model_b"], ["model.id"], name=op.f("fk_battle_model_b_model")),
        sa.ForeignKeyConstraint(["owner"], ["voter.id"], name=op.f("fk_battle_owner_voter")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_battle")),
        sa.UniqueConstraint("public_id", name=op.f("uq_battle_public_id")),
    )
    op.create_index(op.f("ix_battle_owner"), "battle", ["owner"], unique=False)
    op.create_index(op.f("ix_battle_state"), "battle", ["state"], unique=False)

    op.create_table(
        "model_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model.id"], name=op.f("fk_model_event_model_id_model")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_event")),
    )
    op.create_index(op.f("ix_model_event_model_id"), "model_event", ["model_id"], unique=False)

    op.create_table(
        "rating",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("rating", sa.Float(), nullable=False),
        sa.Column("se", sa.Float(), nullable=False),
        sa.Column("lower", sa.Float(), nullable=False),
        sa.Column("upper", sa.Float(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("rank_low", sa.Integer(), nullable=False),
        sa.Column("rank_high", sa.Integer(), nullable=False),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_rating_model_id_model")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["rating_run.id"], name=op.f("fk_rating_run_id_rating_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rating")),
    )
    op.create_index(op.f("ix_rating_run_id"), "rating", ["run_id"], unique=False)

    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("judgement_hash", sa.String(), nullable=False),
        sa.Column("parser_version", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["judgement_hash"],
            ["judgement.hash"],
            name=op.f("fk_verdict_judgement_hash_judgement"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict")),
        sa.UniqueConstraint(
            "judgement_hash", "parser_version", name=op.f("uq_verdict_judgement_hash")
        ),
    )
    op.create_table(
        "answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("battle_id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("reasoning", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error_class", sa.String(), nullable=True),
        sa.Column("error_detail", sa.String(), nullable=True),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("first_token_s", sa.Float(), nullable=True),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("price_input", sa.Float(), nullable=True),
        sa.Column("price_output", sa.Float(), nullable=True),
        sa.Column("price_date", sa.Date(), nullable=True),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("decoding", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["battle_id"], ["battle.id"], name=op.f("fk_answer_battle_id_battle")
        ),
        sa.ForeignKeyConstraint(["model_id"], ["model.id"], name=op.f("fk_answer_model_id_model")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answer")),
        sa.UniqueConstraint(
            "battle_id", "turn", "side", "attempt", name=op.f("uq_answer_battle_id")
        ),
    )
    op.create_index(op.f("ix_answer_model_id"), "answer", ["model_id"], unique=False)

    op.create_table(
        "flag",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("battle_id", sa.Integer(), nullable=True),
        sa.Column("voter_id", sa.String(), nullable=True),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["battle_id"], ["battle.id"], name=op.f("fk_flag_battle_id_battle")
        ),
        sa.ForeignKeyConstraint(["voter_id"], ["voter.id"], name=op.f("fk_flag_voter_id_voter")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flag")),
    )
    op.create_index(op.f("ix_flag_battle_id"), "flag", ["battle_id"], unique=False)
    op.create_index(op.f("ix_flag_voter_id"), "flag", ["voter_id"], unique=False)

    op.create_table(
        "turn",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("battle_id", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["battle_id"], ["battle.id"], name=op.f("fk_turn_battle_id_battle")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turn")),
        sa.UniqueConstraint("battle_id", "turn", name=op.f("uq_turn_battle_id")),
    )
    op.create_table(
        "vote",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("battle_id", sa.Integer(), nullable=False),
        sa.Column("voter_id", sa.String(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("attempt_a", sa.Integer(), nullable=False),
        sa.Column("attempt_b", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("order_shown", sa.String(), nullable=False),
        sa.Column("seconds_to_vote", sa.Float(), nullable=False),
        sa.Column("tags_a", sa.JSON(), nullable=False),
        sa.Column("tags_b", sa.JSON(), nullable=False),
        sa.Column("comment_a", sa.String(), nullable=False),
        sa.Column("comment_b", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["battle_id"], ["battle.id"], name=op.f("fk_vote_battle_id_battle")
        ),
        sa.ForeignKeyConstraint(["voter_id"], ["voter.id"], name=op.f("fk_vote_voter_id_voter")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
        sa.UniqueConstraint("battle_id", name=op.f("uq_vote_battle_id")),
        sa.UniqueConstraint("hash", name=op.f("uq_vote_hash")),
    )
    op.create_index(op.f("ix_vote_voter_id"), "vote", ["voter_id"], unique=False)

    op.create_table(
        "exclusion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("vote_id", sa.Integer(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["vote_id"], ["vote.id"], name=op.f("fk_exclusion_vote_id_vote")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exclusion")),
    )
    op.create_index(op.f("ix_exclusion_vote_id"), "exclusion", ["vote_id"], unique=False)
    op.execute("INSERT INTO vote_chain (id, head) VALUES (1, '')")
