"""Votes of a file, a table or a log, one by one: for what goes by single votes."""

import numpy as np

from rating.errors import DataError
from rating.rows import VoteRows
from rating.tables.coding import Coded, Table
from rating.tables.columns import UNLABELLED, Reading
from rating.tables.counts import ranked
from rating.tables.sources import opened_table
from rating.tables.vote_filter import VoteFilter
from rating.typing import Integers, Ints


def read_rows(source: object, reading: Reading) -> VoteRows:
    """Read the votes that count.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedColumns
        As `rating.tables.counts.read_votes` takes it.
    reading : Reading
        Of which weights, a window and styles are not used. ``columns.by`` is the role ``by``.

    Raises
    ------
    DataError
        As `rating.tables.counts.read_votes`.
    """
    by = reading.columns.by is not None
    with opened_table(source, reading, by=by) as table:
        rows = _rows(table, reading)
    if not rows.n:
        raise DataError(f"No votes to count: {_in_words(rows)}.")
    return rows


def _in_words(rows: VoteRows) -> str:
    return ", ".join(f"{n} {why}" for why, n in rows.dropped.items()) or "there are none"


def _rows(table: Table, reading: Reading) -> VoteRows:
    votes = VoteFilter.of(table)
    outcome: Ints = votes.outcomes().astype(np.int64)
    models, a, b = votes.models()
    votes.settle_both_bad(outcome, reading.both_bad)
    votes.set_aside_self_battles(a, b)
    people, _ = votes.groups(all_prompts=reading.all_prompts)
    live = votes.live
    columns = {role: ranked(column, live) for role, column in people.items() if column}
    if "by" in table.texts:
        columns["by"] = ranked(_with_rest(table.texts["by"]), live)
    for name in reading.beside:
        if name in table.texts:
            columns[name] = ranked(_with_rest(table.texts[name]), live)
    return VoteRows(
        *_present(models, a[live], b[live]),
        outcome[live],
        votes.n[live].astype(np.int64),
        {role: codes.astype(np.int64) for role, (_, codes) in columns.items()},
        {role: names for role, (names, _) in columns.items()},
        dict(sorted(votes.dropped.items())),
    )


def _with_rest(column: Coded) -> Coded:
    names = [name.strip() or UNLABELLED for name in column.names]
    return Coded((*names, UNLABELLED), np.where(column.codes < 0, len(names), column.codes))


def _present(
    names: tuple[str, ...], a: Integers, b: Integers
) -> tuple[tuple[str, ...], Ints, Ints]:
    there = np.unique(np.concatenate([a, b]))
    place = np.zeros(len(names), dtype=np.int64)
    place[there] = np.arange(len(there))
    return tuple(names[model] for model in there.tolist()), place[a], place[b]
