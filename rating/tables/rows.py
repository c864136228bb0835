"""Votes of a file, a table or a log, one by one: for what goes by single votes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from rating.diagnosis.referee import (
    FOLDS,
    RIDGE,
    Forecast,
    HoldOut,
    Refereed,
    forecasts_of,
    outcomes_of,
    possible,
    referee,
)
from rating.errors import DataError
from rating.pooling.forecast import pooled_forecast
from rating.pooling.topical import ScoresOf, topical
from rating.rows import VoteRows
from rating.tables.coding import Coded, Table
from rating.tables.columns import UNLABELLED, Reading
from rating.tables.counts import ranked, styles
from rating.tables.sources import opened_table
from rating.tables.vote_filter import VoteFilter
from rating.typing import Integers, Ints

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
ANY_ORDER = (
    "Elo goes by the order of the votes, which is drawn here: it counts when time is held out."
)


def read_rows(source: object, reading: Reading, *, time: bool = False) -> VoteRows:
    """Read the votes that count.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedColumns
        As `rating.tables.counts.read_votes` takes it.
    reading : Reading
        Of which weights and a window are not used. ``columns.by`` is the role ``by``.
    time : bool
        Read when each vote was cast, and put them in that order.

    Raises
    ------
    DataError
        As `rating.tables.counts.read_votes`; and for a vote without a time that is to have one.
    """
    by = reading.columns.by is not None
    if time:
        reading = replace(reading, since=BEGINNING)
    with opened_table(source, reading, by=by) as table:
        rows = _rows(table, reading)
    if not rows.n:
        raise DataError(f"No votes to count: {_in_words(rows)}.")
    if rows.moment is None:
        return rows
    if not np.isfinite(rows.moment).all():
        missing = int((~np.isfinite(rows.moment)).sum())
        raise DataError(f"The time is missing in {missing} votes: leave them out.")
    return rows.taken(np.argsort(rows.moment, kind="stable"))


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
    moment = table.numbers["time"][live] if "time" in table.numbers else None
    return VoteRows(
        *_present(models, a[live], b[live]),
        outcome[live],
        votes.n[live].astype(np.int64),
        {role: codes.astype(np.int64) for role, (_, codes) in columns.items()},
        {role: names for role, (names, _) in columns.items()},
        moment,
        styles(table, reading, live)[0],
        reading.style,
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


def referee_source(
    source: object,
    reading: Reading,
    *,
    models: Sequence[str] = (),
    hold_out: HoldOut = "voter",
    folds: int = FOLDS,
    ridge: float = RIDGE,
    seed: int = 0,
    level: float = 0.95,
    scores: ScoresOf | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Refereed:
    """Hold ways to rate against votes that they have not seen, as `referee` does.

    Parameters
    ----------
    models : sequence of str
        Of `rating.diagnosis.referee.forecasts_of`, or ``pooled`` or ``topical``: see
        `rating.pooling.forecast.pooled_forecast` and `rating.pooling.topical`. By default all of
        the former that the votes allow.
    scores : callable, optional
        What the prompts are about, for ``topical``.

    Raises
    ------
    DataError
        If the votes cannot be read, or do not allow what was asked for.
    RatingError
        If a model cannot be fitted.
    """
    rows = read_rows(source, replace(reading, prompts=True), time=hold_out == "time")
    rng, outcomes = np.random.default_rng(seed), outcomes_of(rows)
    names = [*models] or possible(rows, style=bool(reading.style))
    drawn = np.random.default_rng([seed, 1])
    others: dict[str, Forecast] = {
        "pooled": partial(pooled_forecast, outcomes=outcomes),
        "topical": topical(scores, outcomes=outcomes, ridge=ridge),
    }
    forecasts = forecasts_of(names, ridge=ridge, outcomes=outcomes, rng=drawn, others=others)
    result = referee(
        rows, forecasts, hold_out=hold_out, folds=folds, rng=rng, level=level, progress=progress
    )
    if "elo" in names and rows.moment is None:
        return replace(result, warnings=(*result.warnings, ANY_ORDER))
    return result
