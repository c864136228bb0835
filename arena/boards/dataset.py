"""Votes as a file that other programs read, with the hashes that prove it to be the record."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arena.boards.dataset_card import Written
from arena.domain.gold import is_gold
from arena.domain.vote import BROKEN_ANSWER, EVER, Choice, Days, Policy, VoterKind
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
    "since": "TIMESTAMP",
    "until": "TIMESTAMP",
    "all_votes": "BIGINT",
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
    "excluded_vote": "VARCHAR",
    "transcript": "VARCHAR",
    "exclusion": "VARCHAR",
    "tombstone": "VARCHAR",
    "link_kind": "VARCHAR",
    "link": "BIGINT",
    "links": "BIGINT",
    "content": "VARCHAR",
    "hash": "VARCHAR",
}
"""Columns of an export; ``ts`` is in UTC, ``left_out`` the reason where a vote does not count.

The last nine are of the chain: see `export_votes`. ``links`` is how many there are in all.
A policy that counts votes on broken answers has no column ``transcript``.
``person`` is the voter that the board counts ``voter`` as; no hash binds it. Every row states the
scope of the file: ``policy``, ``since``, ``until``, and ``all_votes``, 1 if exported with --all.
"""

TOPIC = "topic"
"""Column beside the labels, of no tagger: what the prompt is about, if everybody can read it."""
NO_TOPICS: Mapping[str, str] = {}
OUTSIDE = "outside the days"
"""Why a vote is excluded that was cast before or after the days that an export is of."""

HASHES_ONLY = "hashes only"
"""What is counted as such: a vote whose hashes alone came by an import of version 0.1.0."""

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

    Of a vote that is excluded the columns of votes are empty, so that nobody counts it;
    ``left_out`` is why, and ``excluded_vote`` all that its hash binds, as JSON, so that anybody
    can verify that the rules exclude it. Of one that is excluded because an answer of it did not
    end as answers do, ``transcript`` is what its ``transcript_hash`` is the hash of, with the
    finish reasons and without the texts. Exclusions and deletion records are JSON, too.
    Of a vote that was deleted the hashes alone are written.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    total : int
        How many links there are.
    topics : mapping
        What the prompt of a battle is about: see `TOPIC`.
    days : Days
        Votes outside these are excluded, ``everything`` or not.
    everything : bool
        Write also what the policy excludes, skips among it, in the columns of votes.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    written = Written(of=what_of(policy.name, days, everything=everything))
    of_all = {
        "links": total,
        "policy": policy.name,
        "since": days.since,
        "until": days.until,
        "all_votes": int(everything),
    }

    def rows() -> Iterator[Row]:
        for link in links:
            if link.kind != "vote" or link.withheld is not None:
                reason: str | None = link.withheld or NO_VOTE
                shows = False
            else:
                broken = link.transcript is not None
                reason = why_excluded(link.bound, policy, days, link.exclusions, broken=broken)
                shows = is_shown(reason, everything=everything)
            if link.kind == "vote":
                is_alone = link.withheld not in (None, chain.TAKEN_OUT)
                outside = reason == OUTSIDE
                written.count(
                    HASHES_ONLY if is_alone else reason,
                    None if outside else link.bound.get("ts"),
                )
                written.rows += shows
            yield _row(link, policy, reason, topics, shows=shows) | of_all

    lacking = set() if policy.excludes_broken else {"transcript"}
    write_rows(rows(), {n: kind for n, kind in COLUMNS.items() if n not in lacking}, path)
    return written


def _row(
    link: LoggedLink,
    policy: Policy,
    reason: str | None,
    topics: Mapping[str, str],
    *,
    shows: bool,
) -> dict[str, object]:
    hashes: dict[str, object] = {
        "link_kind": link.kind,
        "link": link.link,
        "content": link.content,
        "hash": link.hash,
        "left_out": reason,
    }
    if link.kind == "mark" or link.withheld is not None:
        return hashes
    if link.kind in ("exclusion", "tombstone"):
        return hashes | {link.kind: as_json(link.bound)}
    if reason == BROKEN_ANSWER:
        hashes["transcript"] = link.transcript
    if not shows:
        return hashes | {"excluded_vote": as_json({n: link.bound[n] for n in chain.BOUND})}
    shown = {name: link.bound[name] for name in (*chain.BOUND, "person")}
    topic = {TOPIC: topics.get(str(link.bound["battle_id"]))}
    return {**hashes, **_labelled(link.labels, policy), **topic, **link.remarks, **shown}


def _labelled(labels: Mapping[str, str], policy: Policy) -> dict[str, object]:
    """Give labels as columns, whether each side's answer refuses as 0 or 1."""
    known: dict[str, object] = {name: labels[name] for name in labels if name != REFUSAL}
    if REFUSAL in labels:
        known |= dict(zip(("refused_a", "refused_b"), refusing(labels[REFUSAL]), strict=True))
    return known | ({"tagger": " ".join(policy.tagger)} if labels else {})


def why_excluded(
    vote: Row, policy: Policy, days: Days, exclusions: tuple[str, ...], *, broken: bool
) -> str | None:
    """Return why an export of a policy and of some days excludes a vote; None if it counts."""
    if not days.cover(vote["ts"]):
        return OUTSIDE
    choice, kind = Choice(vote["winner"]), VoterKind(vote["voter_kind"])
    gold = is_gold(vote["prompt_set"])
    return policy.why_not(choice, kind, exclusions, gold=gold, broken=broken)


def is_shown(reason: str | None, *, everything: bool) -> bool:
    """Return whether a vote is in the columns of votes, given why it is excluded."""
    return reason is None or (everything and reason != OUTSIDE)


def what_of(policy: str, days: Days, *, everything: bool) -> str:
    """Describe the scope of an export of votes in a sentence."""
    bounds = (("since", days.since), ("before", days.until))
    cast = " and ".join(f"{word} {moment:%Y-%m-%d %H:%M:%S}" for word, moment in bounds if moment)
    excluded = "in the columns of votes (--all)" if everything else "in excluded_vote"
    return f"Votes cast {cast or 'at any time'}; votes that {policy} excludes are {excluded}."


def as_json(bound: Row) -> str:
    """Write what a link binds, as an export has it."""
    moment = bound["ts"]
    if isinstance(moment, datetime):
        moment = moment.astimezone(UTC).isoformat()
    return json.dumps({**bound, "ts": moment})
