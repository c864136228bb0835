"""Votes as a file that other programs read: Parquet, CSV or JSON lines."""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import duckdb
import numpy as np

from arena.domain.policy import Policy
from arena.errors import DataError
from arena.publish.engine import connected
from arena.store.records import LoggedVote

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
}
"""Columns of an export; ``ts`` is in UTC, ``left_out`` the reason where a vote does not count."""

FORMATS = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
}


def export_votes(
    votes: Sequence[LoggedVote], policy: Policy, path: Path, *, everything: bool = False
) -> int:
    """Write the votes that a policy counts.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.jsonl``.
    everything : bool
        Write also what the policy leaves out, skips among it, with the reason.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    DataError
        If the ending is another, or the file cannot be written.
    """
    if path.suffix not in FORMATS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
        raise DataError(msg)
    rows = [row for vote in votes if (row := _row(vote, policy))[-1] is None or everything]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else {}
    try:
        _write({name: columns.get(name, ()) for name in COLUMNS}, path)
    except duckdb.Error as error:
        msg = f"Cannot write {str(path)!r}: {str(error).splitlines()[0]}."
        raise DataError(msg) from error
    return len(rows)


def _row(vote: LoggedVote, policy: Policy) -> tuple[object, ...]:
    return (
        vote.battle_id,
        vote.prompt_id,
        vote.model_a,
        vote.model_b,
        vote.outcome.value,
        vote.voter,
        None,
        np.datetime64(vote.created.astimezone(UTC).replace(tzinfo=None), "us"),
        vote.voter_kind.value,
        vote.pair_probability,
        vote.repicks,
        vote.pacing,
        vote.seconds_to_vote,
        policy.why_not(vote.outcome, vote.voter_kind, vote.exclusions),
    )


def _write(columns: dict[str, Sequence[object]], path: Path) -> None:
    arrays = {name: _array(COLUMNS[name], values) for name, values in columns.items()}
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    with connected() as connection:
        connection.register("votes", arrays)
        target = str(path).replace("'", "''")
        query = f"SELECT {casts} FROM votes"  # noqa: S608 - the names are ours
        connection.execute(f"COPY ({query}) TO '{target}' ({FORMATS[path.suffix]})")


def _array(kind: str, values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    numpy_kind = {"DOUBLE": "float64", "BIGINT": "int64", "TIMESTAMP": "datetime64[us]"}.get(
        kind, "object"
    )
    return np.array(values, dtype=numpy_kind)
