"""Votes bind all that a board reads, and their texts behind nonces; exclusions join the chain.

Votes that are there keep their hashes. A mark after them binds what they are now: a change from
here on shows, one from before does not.
"""

import hashlib
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from arena.store import chain
from arena.store.tables import MarkRow, Table, UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Event = tuple[datetime, str]
"""When a model changed, and its fingerprint before that."""


def upgrade() -> None:
    """Bring the schema to this revision."""
    for table in ("turn", "answer"):
        op.add_column(table, sa.Column("nonce", sa.String()))
        op.add_column(table, sa.Column("text_hash", sa.String()))
    for table in ("vote", "exclusion"):
        op.add_column(table, sa.Column("link", sa.Integer()))
        op.add_column(table, sa.Column("content", sa.String()))
    for side in "ab":
        op.add_column("vote", sa.Column(f"fingerprint_{side}", sa.String()))
    for column in ("previous_hash", "hash"):
        op.add_column("exclusion", sa.Column(column, sa.String()))
    op.add_column(
        "vote_chain", sa.Column("links", sa.Integer(), server_default="0", nullable=False)
    )
    op.create_table(
        "chain_mark",
        sa.Column("link", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("link", name=op.f("pk_chain_mark")),
    )
    _mark(op.get_bind())
    for table in ("vote", "exclusion"):
        op.create_index(op.f(f"ix_{table}_link"), table, ["link"], unique=True)


def _mark(connection: sa.Connection) -> None:
    """Bind what is there."""
    for table in ("turn", "answer"):
        _give_nonces(connection, Table.metadata.tables[table])
    _number(connection)
    _give_fingerprints(connection)
    votes = Table.metadata.tables["vote"]
    write = (
        sa.update(votes)
        .where(votes.c.link == sa.bindparam("of_link"))
        .values(content=sa.bindparam("new_content"))
    )
    contents = hashlib.sha256()
    for batch in chain.votes(connection):
        new = [
            chain.vote_content(row._asdict() | {"transcript_hash": transcript.hash})
            for row, transcript in batch
        ]
        links = [row.link for row, _ in batch]
        pairs = zip(links, new, strict=True)
        connection.execute(
            write, [{"of_link": link, "new_content": content} for link, content in pairs]
        )
        contents.update("".join(new).encode())
    if connection.scalar(sa.select(sa.func.count()).select_from(votes)):
        content = chain.mark_content(contents.hexdigest())
        link = chain.extend(connection, "mark", content)
        connection.execute(sa.insert(MarkRow), link | {"created": datetime.now(UTC)})
    _chain_exclusions(connection)


def _give_nonces(connection: sa.Connection, table: sa.Table) -> None:
    random = {
        "sqlite": "lower(hex(randomblob(16)))",
        "postgresql": "replace(gen_random_uuid()::text, '-', '')",
    }[connection.dialect.name]
    connection.execute(sa.update(table).values(nonce=sa.text(random)))


def _number(connection: sa.Connection) -> None:
    """Give the votes their places in the chain: those in which they were written."""
    votes = Table.metadata.tables["vote"]
    place = sa.func.row_number().over(order_by=votes.c.id).label("place")
    numbered = sa.select(votes.c.id, place).subquery()
    connection.execute(
        sa.update(votes).where(votes.c.id == numbered.c.id).values(link=numbered.c.place)
    )
    ends = Table.metadata.tables["vote_chain"]
    n_votes = sa.select(sa.func.count()).select_from(votes).scalar_subquery()
    connection.execute(sa.update(ends).values(links=n_votes))


def _give_fingerprints(connection: sa.Connection) -> None:
    """Give votes the fingerprints that their models had when they were cast, by the events."""
    tables = Table.metadata.tables
    votes, battles, models = tables["vote"], tables["battle"], tables["model"]
    for model, fingerprint in connection.execute(sa.select(models.c.id, models.c.fingerprint)):
        changes = _changes(connection, model)
        for side in "ab":
            theirs = sa.select(battles.c.id).where(battles.c[f"model_{side}"] == model)
            cases = [(votes.c.created < moment, before) for moment, before in changes]
            now = sa.case(*cases, else_=fingerprint) if cases else fingerprint
            connection.execute(
                sa.update(votes)
                .where(votes.c.battle_id.in_(theirs))
                .values({f"fingerprint_{side}": now})
            )


def _changes(connection: sa.Connection, model: str) -> list[Event]:
    """Read when a model changed, and from what; an event that does not say it is passed over."""
    events = Table.metadata.tables["model_event"]
    query = (
        sa.select(events.c.created, events.c.detail)
        .where(events.c.model_id == model, events.c.event == "changed")
        .order_by(events.c.id)
    )
    changes = connection.execute(query)
    return [(created, detail["before"]) for created, detail in changes if "before" in detail]


def _chain_exclusions(connection: sa.Connection) -> None:
    rows = Table.metadata.tables["exclusion"]
    for row in connection.execute(chain.EXCLUSIONS).all():
        content = chain.exclusion_content(chain.of_exclusion(row))
        link = chain.extend(connection, "exclusion", content)
        connection.execute(sa.update(rows).where(rows.c.id == row.id).values(link))
