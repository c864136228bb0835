"""Votes on systems that are made of parts, such as a model in a scaffold, from files."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rating.comparisons import Votes
from rating.errors import DataError
from rating.options import RateOptions
from rating.tables.coding import Coded, Table, coded_list
from rating.tables.columns import Reading
from rating.tables.counts import require_votes, votes_in
from rating.tables.sources import opened_table
from rating.tables.vote_filter import VoteFilter
from rating.typing import Bools

MODEL = "model"
"""Factor of the columns that any vote has, ``model_a`` and ``model_b``."""
JOINED = " · "
"""Between the parts of a system's name."""

Levels = dict[str, dict[str, str]]


def read_factors(
    source: object, factors: Sequence[str], reading: Reading | None = None
) -> tuple[Votes, Levels]:
    """Read votes on systems, and the level of each factor that a system has.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        As `rating.tables.counts.read_votes` takes it.
    factors : sequence of str
        Two or more: ``X`` is in the columns ``X_a`` and ``X_b``. A system is what has the same
        level of each.

    Returns
    -------
    Votes
        On systems, each named by its levels.
    dict of str to dict of str to str
        For each factor the level of each system, as `rating.rate_factors` takes it.

    Raises
    ------
    DataError
        As `rating.tables.counts.read_votes`; if a factor is named twice, has no columns, or is
        missing in a vote that counts; or if two systems would have one name.
    """
    reading = reading or Reading.of(RateOptions())
    if twice := next((name for name in factors if factors.count(name) > 1), None):
        raise DataError(f"The factor {twice!r} is named twice: name each once.")
    beside = tuple(f"{name}_{side}" for name in factors if name != MODEL for side in "ab")
    with opened_table(source, replace(reading, beside=beside), by=False) as table:
        if lacking := next((name for name in beside if name not in table.texts), None):
            msg = f"There is no column {lacking!r}: a factor X is in the columns X_a and X_b."
            raise DataError(msg)
        live = VoteFilter.of(table).live
        parts = [_parts(table, factors, side, live) for side in "ab"]
        systems = {part: JOINED.join(part) for side in parts for part in side if all(part)}
        _require_own_names(systems)
        names = [[systems.get(part) for part in side] for side in parts]
        texts = {
            f"model_{side}": coded_list(column) for side, column in zip("ab", names, strict=True)
        }
        votes = votes_in(replace(table, texts={**table.texts, **texts}), reading)
        levels = {
            name: {system: part[i] for part, system in systems.items()}
            for i, name in enumerate(factors)
        }
        return require_votes(votes, source), levels


def _parts(table: Table, factors: Sequence[str], side: str, live: Bools) -> list[tuple[str, ...]]:
    """Give the levels of one side of each row; empty where one is missing and does not count."""
    columns = []
    for name in factors:
        column = table.texts[f"{name}_{side}"]
        levels = _levels(column)
        missing = live & np.array([not level for level in levels], dtype=bool)
        if missing.any():
            n = int(missing.sum() if table.n is None else table.n[missing].sum())
            msg = f"The {name}_{side} is missing in {n} votes: name it, or leave these votes out."
            raise DataError(msg)
        columns.append(levels)
    return list(zip(*columns, strict=True))


def _levels(column: Coded) -> list[str]:
    names = [*(name.strip() for name in column.names), ""]
    return [names[code] for code in column.codes]


def _require_own_names(systems: dict[tuple[str, ...], str]) -> None:
    parts: dict[str, tuple[str, ...]] = {}
    for part, system in systems.items():
        if parts.setdefault(system, part) != part:
            msg = f"{part} and {parts[system]} would both be called {system!r}: rename a level."
            raise DataError(msg)
