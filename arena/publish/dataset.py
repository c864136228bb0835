"""Votes as a file that other programs read, with the hashes that prove it to be the record."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from arena.domain.policy import DEFAULT, Policy
from arena.domain.vote import Choice
from arena.domain.voter import VoterKind
from arena.errors import DataError
from arena.publish.engine import connected
from arena.publish.escaping import in_csv_sql
from arena.publish.sieve import NO_VOTE
from arena.publish.sources import opened
from arena.store import chain
from arena.store.records import LoggedLink
from arena.store.verify import Link, Verified, follow

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

FORMATS = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
}

NUMPY = {"DOUBLE": "float64", "BIGINT": "int64"}

Row = Mapping[str, Any]


def export_votes(
    links: Sequence[LoggedLink], policy: Policy, path: Path, *, everything: bool = False
) -> int:
    """Write the votes that a policy counts, in the order of the chain.

    Of the other links only the hashes are written, and in ``left_out`` why: so the chain has no
    gaps. An exclusion is written whole, as JSON; it is no vote.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    everything : bool
        Write also what the policy leaves out, skips among it, with the reason.

    Returns
    -------
    int
        Number of votes written whole.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    if path.suffix not in FORMATS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)
    rows = [_row(link, policy, everything=everything) | {"links": len(links)} for link in links]
    try:
        _write({name: [row.get(name) for row in rows] for name in COLUMNS}, path)
    except duckdb.Error as error:
        msg = f"Cannot write {str(path)!r}: {str(error).splitlines()[0]}."
        raise DataError(msg) from error
    return sum("winner" in row for row in rows)


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
    rows = list(_read(path))
    mark = next((row["link"] for row in rows if row["link_kind"] == "mark"), 0)
    verified = follow((_link_of(row, before_the_mark=row["link"] < mark) for row in rows), noted)
    if verified.problem:
        return verified
    return replace(verified, problem=_cut_off(rows, verified) or _wrongly_left_out(rows))


def _row(link: LoggedLink, policy: Policy, *, everything: bool) -> dict[str, object]:
    hashes: dict[str, object] = {
        "link_kind": link.kind,
        "link": link.link,
        "content": link.content,
        "hash": link.hash,
    }
    match link.kind:
        case "mark":
            return hashes | {"left_out": NO_VOTE}
        case "exclusion":
            return hashes | {"left_out": NO_VOTE, "exclusion": _as_json(link.bound)}
    reason = _why_not(link.bound, policy, link.exclusions)
    shown = {name: link.bound[name] for name in chain.BOUND} if everything or not reason else {}
    return hashes | shown | {"left_out": reason}


def _why_not(vote: Row, policy: Policy, exclusions: tuple[str, ...]) -> str | None:
    return policy.why_not(Choice(vote["winner"]), VoterKind(vote["voter_kind"]), exclusions)


def _as_json(exclusion: Row) -> str:
    moment = exclusion["ts"]
    assert isinstance(moment, datetime)
    return json.dumps({**exclusion, "ts": moment.astimezone(UTC).isoformat()})


def _write(columns: Mapping[str, Sequence[object]], path: Path) -> None:
    arrays = {name: _array(COLUMNS[name], values) for name, values in columns.items()}
    casts = ", ".join(
        f"{in_csv_sql(name)} AS {name}"
        if path.suffix == ".csv" and kind == "VARCHAR"
        else f"CAST({name} AS {kind}) AS {name}"
        for name, kind in COLUMNS.items()
    )
    with connected() as connection:
        connection.register("votes", arrays)
        target = str(path).replace("'", "''")
        query = f"SELECT {casts} FROM votes"  # noqa: S608 - the names are ours
        connection.execute(f"COPY ({query}) TO '{target}' ({FORMATS[path.suffix]})")


def _array(kind: str, values: Sequence[object]) -> object:
    if kind == "TIMESTAMP":
        return np.array([_moment(value) for value in values], dtype="datetime64[us]")
    if kind == "VARCHAR":
        return np.array(values, dtype=object)
    absent = [value is None for value in values]
    filled = np.array([0 if value is None else value for value in values], dtype=NUMPY[kind])
    return np.ma.MaskedArray(filled, mask=absent)


def _moment(value: object) -> np.datetime64:
    if not isinstance(value, datetime):
        return np.datetime64("NaT", "us")
    return np.datetime64(value.astimezone(UTC).replace(tzinfo=None), "us")


def _read(path: Path) -> Iterator[Row]:
    """Read the rows of an export in the order of the chain."""
    names = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    with opened(path, lambda there: [name for name in COLUMNS if name in there]) as frame:
        if lacking := [name for name in COLUMNS if name not in frame.collect_schema().names()]:
            msg = (
                f"Cannot verify {str(path)!r}: it has no column {lacking[0]!r}. Give a file that "
                "`arena export votes` of this version wrote."
            )
            raise DataError(msg)
        rows: duckdb.DuckDBPyRelation = frame.to_native()
        for row in rows.project(names).order("link").fetchall():
            yield dict(zip(COLUMNS, row, strict=True))


def _link_of(row: Row, *, before_the_mark: bool) -> Link:
    return Link(
        link=row["link"],
        name=_name(row),
        content=row["content"],
        previous_hash=None,
        hash=row["hash"],
        bound=_bound(row),
        # what such a hash is made of is in the database alone; the mark binds the contents
        before_the_mark=(lambda _previous: str(row["hash"])) if before_the_mark else None,
        is_mark=row["link_kind"] == "mark",
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


def _cut_off(rows: Sequence[Row], verified: Verified) -> str | None:
    total = max((row["links"] for row in rows), default=0)
    if verified.links == total:
        return None
    return f"The file ends at link {verified.links} of {total}: rows at its end are missing."


def _wrongly_left_out(rows: Sequence[Row]) -> str | None:
    """Say which vote is left out, or is not, against the rules of the policy, if any."""
    reasons: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        if row["exclusion"] is not None and (bound := _exclusion(row))["policy"] == DEFAULT.name:
            reasons[bound["vote"]].append(bound["reason"])
    for row in rows:
        if row["link_kind"] == "vote" and row["winner"] is not None:
            why = _why_not(row, DEFAULT, tuple(reasons[row["link"]]))
            if row["left_out"] != why:
                return (
                    f"Link {row['link']}, {_the_vote(row)}, has {row['left_out']!r} in left_out, "
                    f"and by the policy it is {why!r}."
                )
        elif row["left_out"] is None:
            return f"Link {row['link']}, {_name(row)}, is left out without a reason."
    return None
