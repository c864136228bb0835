"""Votes as a file that other programs read, with the hashes that prove it to be the record."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import duckdb

from arena.boards.dataset_card import Written
from arena.domain.vote import DEFAULT, INHERITS, POLICIES, READMITTED, Choice, Policy, VoterKind
from arena.store import chain
from arena.store.chain import OF_EXCLUSION
from arena.store.records import LoggedLink
from arena.store.verify import Link, Verified, follow
from judge.labels.refusals import REFUSAL, refusing
from rating.errors import DataError
from rating.tables.sources import opened
from rating.tables.vote_filter import NO_VOTE
from rating.tables.writing import write_rows

COLUMNS = {
    "battle_id": "VARCHAR",
    "prompt_id": "VARCHAR",
    "model_a": "VARCHAR",
    "model_b": "VARCHAR",
    "winner": "VARCHAR",
    "voter": "VARCHAR",
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
    "exclusion": "VARCHAR",
    "link_kind": "VARCHAR",
    "link": "BIGINT",
    "links": "BIGINT",
    "content": "VARCHAR",
    "hash": "VARCHAR",
}
"""Columns of an export; ``ts`` is in UTC, ``left_out`` the reason where a vote does not count.

The last five are of the chain: see `export_votes`. ``links`` is how many there are in all.
"""

POLICY = {policy.name: policy for policy in POLICIES}

TOPIC = "topic"
"""Column beside the labels, of no tagger: what the prompt is about, if everybody can read it."""


EXACT = "__exact"
"""Whether the values of a row are spelled as the export spells them: a rating may read others."""
NO_TOPICS: Mapping[str, str] = {}
HASH = re.compile("[0-9a-f]{64}")

Row = Mapping[str, Any]


def export_votes(
    links: Iterable[LoggedLink],
    policy: Policy,
    path: Path,
    *,
    total: int,
    topics: Mapping[str, str] = NO_TOPICS,
    everything: bool = False,
) -> Written:
    """Write the votes that a policy counts, in the order of the chain.

    Of the other links only the hashes are written, and in ``left_out`` why: so the chain has no
    gaps. An exclusion is written whole, as JSON; it is no vote.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    total : int
        How many links there are.
    topics : mapping
        What the prompt of a battle is about: see `TOPIC`.
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
            reason = _why_not(link, policy)
            if link.kind == "vote":
                written.count(reason, link.bound["ts"])
                written.rows += reason is None or everything
            hides = reason is not None and not everything
            yield _row(link, policy, reason, topics, hides=hides) | of_all

    write_rows(rows(), COLUMNS, path)
    return written


def verify_export(path: Path, noted: str = "") -> Verified:
    """Follow the chain of an export, and hold what it leaves out against its policy's rules.

    What a policy left out and the file does not show cannot be held against anything: votes
    that were made to look left out are found in an export of all votes, or in the database.

    Parameters
    ----------
    noted : str
        As `arena.store.verify.verify` takes it.

    Raises
    ------
    DataError
        If the file cannot be read, or has no hashes.
    """
    return read_votes(path, noted)[0]


def read_votes(path: Path, noted: str = "") -> tuple[Verified, list[Row]]:
    """Verify an export, and give its votes in the order of the chain: see `verify_export`.

    A vote that the file does not show has the columns of the chain alone, and its ``left_out``;
    rows that no export has are left out.
    """
    try:
        rows = list(_read(path))
    except (RuntimeError, UnicodeError, OverflowError) as error:  # names that are no text
        msg = f"Cannot read {str(path)!r}: it is damaged ({error}). Take a whole copy."
        raise DataError(msg) from error
    votes = [row for row in rows if row["link_kind"] == "vote" and _malformed(row) is None]
    return _verified(rows, noted), votes


def _verified(rows: Sequence[Row], noted: str) -> Verified:
    whole = list(takewhile(lambda row: _malformed(row) is None, rows))
    mark = next((row["link"] for row in whole if row["link_kind"] == "mark"), 0)
    odd = rows[len(whole)] if len(whole) < len(rows) else None
    links = (_link_of(row, is_old=row["link"] < mark) for row in whole)
    verified = follow(links, "" if odd else noted)
    if verified.problem:
        return verified
    problem = _malformed(odd) if odd else _cut_off(rows, verified) or _doubled(rows)
    return replace(verified, problem=problem or _wrongly_left_out(rows))


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
    if link.kind == "exclusion":
        return hashes | {"exclusion": _as_json(link.bound)}
    if link.kind == "mark" or hides:
        return hashes
    shown = {name: link.bound[name] for name in chain.BOUND}
    topic = {TOPIC: topics.get(str(link.bound["battle_id"]))}
    return {**hashes, **_labelled(link.labels, policy), **topic, **shown}


def _labelled(labels: Mapping[str, str], policy: Policy) -> dict[str, object]:
    """Give labels as columns, whether each side's answer refuses as 0 or 1."""
    known: dict[str, object] = {name: labels[name] for name in labels if name != REFUSAL}
    if REFUSAL in labels:
        known |= dict(zip(("refused_a", "refused_b"), refusing(labels[REFUSAL]), strict=True))
    return known | ({"tagger": " ".join(policy.tagger)} if labels else {})


def _why_not(link: LoggedLink, policy: Policy) -> str | None:
    return _why_left_out(link.bound, policy, link.exclusions) if link.kind == "vote" else NO_VOTE


def _why_left_out(vote: Row, policy: Policy, exclusions: tuple[str, ...]) -> str | None:
    return policy.why_not(Choice(vote["winner"]), VoterKind(vote["voter_kind"]), exclusions)


def _as_json(exclusion: Row) -> str:
    moment = exclusion["ts"]
    assert isinstance(moment, datetime)
    return json.dumps({**exclusion, "ts": moment.astimezone(UTC).isoformat()})


def _read(path: Path) -> Iterator[Row]:
    """Read the rows of an export in the order of the chain, with whether each is `EXACT`."""
    with opened(path, lambda there: [*there]) as frame:
        there = frame.collect_schema().names()
        if odd := [*(name for name in COLUMNS if name not in there), *({*there} - {*COLUMNS})]:
            has = "has no column" if odd[0] in COLUMNS else "has a column"
            msg = (
                f"Cannot verify {str(path)!r}: it {has} {odd[0]!r}. Give a file as "
                "`arena export votes` of this version wrote it."
            )
            raise DataError(msg)
        rows: duckdb.DuckDBPyRelation = frame.to_native()
        values = [f"TRY_CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items()]
        exact = f"{' AND '.join(map(_is_exact, COLUMNS))} AS {EXACT}"
        for row in rows.project(", ".join([*values, exact])).order("link").fetchall():
            yield dict(zip((*COLUMNS, EXACT), row, strict=True))


def _is_exact(name: str) -> str:
    """Give the expression of SQL for whether a value is of its column's kind, and nothing more."""
    kind = COLUMNS[name]
    back = f"CAST(TRY_CAST({name} AS {kind}) AS VARCHAR)"
    if kind == "DOUBLE":  # which has many spellings, and one value
        return f"(TRY_CAST({name} AS DOUBLE) IS NULL) = ({name} IS NULL)"
    return f"{back} IS NOT DISTINCT FROM CAST({name} AS VARCHAR)"


def _malformed(row: Row) -> str | None:
    """Say what is wrong with a row as such, if anything: what no export has."""
    try:
        fits = row[EXACT] and _fits(row)
    except (ValueError, TypeError, KeyError, RecursionError):
        fits = False
    return None if fits else f"The row of link {row['link']} is not as an export writes it."


def _fits(row: Row) -> bool:
    hashes = all(HASH.fullmatch(row[name] or "") for name in ("content", "hash"))
    if not hashes or row["link"] is None or row["links"] is None or row["judge"] is not None:
        return False
    if row["policy"] not in POLICY:
        return False
    shown = {name for name in chain.BOUND if row[name] is not None}
    match row["link_kind"]:
        case "mark":
            return not shown and row["exclusion"] is None and row["left_out"] == NO_VOTE
        case "exclusion":
            return not shown and row["left_out"] == NO_VOTE and _is_exclusion(_exclusion(row))
        case "vote":
            return row["exclusion"] is None and (_is_hidden(row, shown) or _is_vote(row, shown))
    return False


def _is_hidden(row: Row, shown: set[str]) -> bool:
    reason = row["left_out"] or ""
    return not shown and reason.strip() == reason and reason not in ("", NO_VOTE)


def _is_vote(row: Row, shown: set[str]) -> bool:
    known = Choice(row["winner"]) and VoterKind(row["voter_kind"]) and row["left_out"] != ""
    whole = shown | {"prompt_id", "prompt_set"} == {*chain.BOUND}
    return bool(known) and whole and isinstance(row["ts"], datetime)


def _is_exclusion(bound: dict[str, Any]) -> bool:
    texts = all(isinstance(bound[name], str) for name in OF_EXCLUSION if name != "vote")
    return texts and isinstance(bound["vote"], int) and {*bound} == {*OF_EXCLUSION}


def _link_of(row: Row, *, is_old: bool) -> Link:
    return Link(
        link=row["link"],
        kind=row["link_kind"],
        name=_name(row),
        content=row["content"],
        previous_hash=None,
        hash=row["hash"],
        bound=_bound(row),
        is_old=is_old,  # what such a hash is made of is in the database alone
    )


def _name(row: Row) -> str:
    match row["link_kind"]:
        case "mark":
            return "the mark"
        case "exclusion":
            return "an exclusion"
    return "a vote that is not shown" if row["winner"] is None else _the_vote(row)


def _the_vote(row: Row) -> str:
    return f"the vote on battle {row['battle_id']!r}"


def _bound(row: Row) -> str | None:
    if row["exclusion"] is not None:
        return chain.exclusion_content(_exclusion(row))
    if row["winner"] is None:
        return None
    return chain.vote_content({**row, "ts": row["ts"].replace(tzinfo=UTC)})


def _exclusion(row: Row) -> dict[str, Any]:
    bound: dict[str, Any] = json.loads(row["exclusion"])
    return bound


def _doubled(rows: Sequence[Row]) -> str | None:
    counts = Counter(row["battle_id"] for row in rows if row["battle_id"] is not None)
    twice = next((battle for battle, n in counts.items() if n > 1), None)
    return twice and f"The battle {twice!r} is voted on twice."


def _cut_off(rows: Sequence[Row], verified: Verified) -> str | None:
    total = max((row["links"] for row in rows), default=0)
    if verified.links == total:
        return None
    return f"The file ends at link {verified.links} of {total}: rows at its end are missing."


def _wrongly_left_out(rows: Sequence[Row]) -> str | None:
    """Say which vote is left out, or is not, against the rules of the policy, if any."""
    names = {row["policy"] for row in rows}
    if len(names) > 1:
        return f"The rows are of several policies, {', '.join(sorted(names))}."
    policy = POLICY[names.pop()] if names else DEFAULT
    reads = INHERITS.get(policy.name, (policy.name,))
    reasons: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        if row["exclusion"] is not None and (bound := _exclusion(row))["policy"] in reads:
            is_counter = bound["rule"] == READMITTED
            reasons[bound["vote"]] = [] if is_counter else [bound["reason"]]
    for row in rows:
        if row["link_kind"] == "vote" and row["winner"] is not None:
            why = _why_left_out(row, policy, tuple(reasons[row["link"]]))
            if row["left_out"] != why:
                return (
                    f"Link {row['link']}, {_the_vote(row)}, has {row['left_out']!r} in left_out, "
                    f"and by the policy it is {why!r}."
                )
    return None
