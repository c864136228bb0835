"""The chain of the record: each link carries the hash of the one before, so a later edit shows.

A link is a vote, an exclusion of one, or the mark from which hashes bind all that is bound today.
Its ``content`` is the SHA-256 of what it binds, and its ``hash`` that of its place, its kind, its
content and the previous link's hash. So the chain of votes that are not shown can be followed by
hashes alone.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import Connection, select, update
from sqlmodel import Session, col

from arena.store.records import LinkKind
from arena.store.tables import ChainRow

BOUND = (
    "battle_id",
    "prompt_set",
    "prompt_id",
    "mode",
    "model_a",
    "model_b",
    "fingerprint_a",
    "fingerprint_b",
    "sampler",
    "sampler_version",
    "pair_probability",
    "repicks",
    "pacing",
    "turn",
    "attempt_a",
    "attempt_b",
    "order_shown",
    "winner",
    "voter",
    "voter_kind",
    "ts",
    "seconds_to_vote",
    "transcript_hash",
)
"""What a vote binds, by the names of an export's columns."""

BOUND_BEFORE_THE_MARK = (
    "voter_id",
    "turn",
    "attempt_a",
    "attempt_b",
    "outcome",
    "key",
    "order_shown",
    "seconds_to_vote",
)

_END_LOCKED = select(col(ChainRow.head), col(ChainRow.links)).with_for_update()
_MOVE = update(ChainRow)


def text_hash(nonce: str, text: str) -> str:
    """SHA-256 of a text behind its nonce."""
    return _sha256(canonical([nonce, text]))


def vote_content(bound: Mapping[str, object]) -> str:
    """SHA-256 of what a vote binds: see `BOUND`; None counts as an empty text."""
    return _content("vote", {name: bound[name] for name in BOUND})


def exclusion_content(bound: Mapping[str, object]) -> str:
    """SHA-256 of an exclusion: the link of its vote, its policy, rule, version, reason, time."""
    return _content("exclusion", bound)


def mark_content(contents: str) -> str:
    """SHA-256 of the mark, which binds all votes before it as they were when it was set.

    Parameters
    ----------
    contents : str
        SHA-256 of their contents, one after another.
    """
    return _content("mark", {"contents": contents})


def link_hash(previous: str, link: int, kind: str, content: str) -> str:
    """SHA-256 of a link: of its place, its kind and content, and the previous link's hash."""
    return _sha256(canonical([previous, link, kind, content]))


def hash_before_the_mark(
    previous: str, vote: Mapping[str, object], created: datetime, battle_id: str
) -> str:
    """Hash of a vote before the mark: of the previous hash and of little more than the choice."""
    bound = {name: vote[name] for name in BOUND_BEFORE_THE_MARK}
    bound |= {"battle": battle_id, "created": created.isoformat()}
    return _sha256(previous + canonical(bound))


def extend(connection: Connection, kind: LinkKind, content: str) -> dict[str, object]:
    """Move the chain's end to a link about to be written; gives the columns of the link.

    Writers wait for one another here, until the transaction of each has ended.
    """
    before = connection.execute(_END_LOCKED).one()
    link = before.links + 1
    after = link_hash(before.head, link, kind, content)
    connection.execute(_MOVE, {"head": after, "links": link})
    return {"link": link, "content": content, "previous_hash": before.head, "hash": after}


def head(session: Session) -> str:
    """Hash of the newest link; empty before the first."""
    return session.connection().scalars(select(col(ChainRow.head))).one()


def canonical(value: object) -> str:
    """Write a value as JSON in the one way that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=repr)


def plain(value: object) -> object:
    """Give a value as it is hashed: alike on every database, whatever somebody put into it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else repr(value)
    return "" if value is None else value


def _content(kind: LinkKind, bound: Mapping[str, object]) -> str:
    values = {name: plain(value) for name, value in bound.items()}
    return _sha256(canonical(values | {"kind": kind}))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
