"""Votes as a file that other programs read, with the hashes that prove it to be the record."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arena.boards.dataset_card import Written
from arena.domain.gold import is_gold
from arena.domain.vote import EVER, Choice, Days, Policy, VoterKind
from arena.store import chain
from arena.store.records import LoggedLink
from judge.labels.refusals import REFUSAL, refusing
from rating.tables.vote_filter import NO_VOTE
from rating.tables.writing import write_rows

COLUMNS = {
    "battle_id": "VARCHAR",
    "prompt_id": "VARCHAR",
    "model_a": "VARCHAR",
    "model_b": "VARCHAR",
    "winner": "VARCHAR",
    "voter": "VARCHAR",
    "person": "VARCHAR",
    "judge": "VARCHAR",
    "ts": "TIMESTAMP",
    "voter_kind": "VARCHAR",
    "pair_probability": "DOUBLE",
    "repicks": "BIGINT",
    "pacing": "VARCHAR",
    "seconds_to_vote": "DOUBLE",
    "left_out": "VARCHAR",
    "policy": "VARCHAR",
    "mode": "VARCHAR",
    "prompt_set": "VARCHAR",
    "sampler": "VARCHAR",
    "sampler_version": "VARCHAR",
    "fingerprint_a": "VARCHAR",
    "fingerprint_b": "VARCHAR",
    "turn": "BIGINT",
    "attempt_a": "BIGINT",
    "attempt_b": "BIGINT",
    "order_shown": "VARCHAR",
    "transcript_hash": "VARCHAR",
    "category": "VARCHAR",
    "language": "VARCHAR",
    "intent": "VARCHAR",
    "turns": "BIGINT",
    "chars": "BIGINT",
    "hard": "VARCHAR",
    "instructions": "VARCHAR",
    "refused_a": "BIGINT",
    "refused_b": "BIGINT",
    "topic": "VARCHAR",
    "tagger": "VARCHAR",
    "reasons_a": "VARCHAR",
    "reasons_b": "VARCHAR",
    "confidence": "BIGINT",
    "voter_intent": "VARCHAR",
    "before_reveal": "BIGINT",
    "remarked": "TIMESTAMP",
    "exclusion": "VARCHAR",
    "tombstone": "VARCHAR",
    "link_kind": "VARCHAR",
    "link": "BIGINT",
    "links": "BIGINT",
    "content": "VARCHAR",
    "hash": "VARCHAR",
}
"""Columns of an export; ``ts`` is in UTC, ``left_out`` the reason where a vote does not count.

The last five are of the chain: see `export_votes`. ``links`` is how many there are in all.
``person`` is whom the board counts ``voter`` as; no hash binds it.
"""

TOPIC = "topic"
"""Column beside the labels, of no tagger: what the prompt is about, if everybody can read it."""
NO_TOPICS: Mapping[str, str] = {}
OUTSIDE = "outside the days"
"""Why a vote is not shown that was cast before or after the days that an export is of."""

Row = Mapping[str, Any]


def export_votes(
    links: Iterable[LoggedLink],
    policy: Policy,
    path: Path,
    *,
    total: int,
    topics: Mapping[str, str] = NO_TOPICS,
    days: Days = EVER,
    everything: bool = False,
) -> Written:
    """Write the votes that a policy counts, in the order of the chain.

    Of the other links only the hashes are written, and in ``left_out`` why: so the chain has no
    gaps. An exclusion and a tombstone are written whole, as JSON; they are no votes.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    total : int
        How many links there are.
    topics : mapping
        What the prompt of a battle is about: see `TOPIC`.
    days : Days
        Of the votes outside these only the hashes are written, ``everything`` or not.
    everything : bool
        Write also what the policy leaves out, skips among it, with the reason.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    written, of_all = Written(), {"links": total, "policy": policy.name}

    def rows() -> Iterator[Row]:
        for link in links:
            is_vote, cast = link.kind == "vote", link.bound.get("ts")
            outside = cast is not None and is_vote and not days.cover(cast)
            reason = OUTSIDE if outside else _why_not(link, policy)
            is_out = is_vote and reason is not None and (outside or not everything)
            hides = is_out or link.withheld is not None
            if is_vote and not outside:
                written.count(reason, cast)
                written.rows += not hides
            yield _row(link, policy, reason, topics, hides=hides) | of_all

    write_rows(rows(), COLUMNS, path)
    return written


def _row(
    link: LoggedLink,
    policy: Policy,
    reason: str | None,
    topics: Mapping[str, str],
    *,
    hides: bool,
) -> dict[str, object]:
    hashes: dict[str, object] = {
        "link_kind": link.kind,
        "link": link.link,
        "content": link.content,
        "hash": link.hash,
        "left_out": reason,
    }
    if link.kind == "mark" or hides:
        return hashes
    if link.kind in ("exclusion", "tombstone"):
        return hashes | {link.kind: _as_json(link.bound)}
    shown = {name: link.bound[name] for name in (*chain.BOUND, "person")}
    topic = {TOPIC: topics.get(str(link.bound["battle_id"]))}
    return {**hashes, **_labelled(link.labels, policy), **topic, **link.remarks, **shown}


def _labelled(labels: Mapping[str, str], policy: Policy) -> dict[str, object]:
    """Give labels as columns, whether each side's answer refuses as 0 or 1."""
    known: dict[str, object] = {name: labels[name] for name in labels if name != REFUSAL}
    if REFUSAL in labels:
        known |= dict(zip(("refused_a", "refused_b"), refusing(labels[REFUSAL]), strict=True))
    return known | ({"tagger": " ".join(policy.tagger)} if labels else {})


def _why_not(link: LoggedLink, policy: Policy) -> str | None:
    if link.withheld is not None:
        return link.withheld
    return why_left_out(link.bound, policy, link.exclusions) if link.kind == "vote" else NO_VOTE


def why_left_out(vote: Row, policy: Policy, exclusions: tuple[str, ...]) -> str | None:
    """Say why a policy leaves a vote out, or None when it counts."""
    choice, kind = Choice(vote["winner"]), VoterKind(vote["voter_kind"])
    return policy.why_not(choice, kind, exclusions, gold=is_gold(vote["prompt_set"]))


def _as_json(bound: Row) -> str:
    moment = bound["ts"]
    if isinstance(moment, datetime):
        moment = moment.astimezone(UTC).isoformat()
    return json.dumps({**bound, "ts": moment})
