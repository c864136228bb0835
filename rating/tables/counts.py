"""Votes in: from a file or a table to counted cells of whole numbers, nothing passed over."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rating import Comparisons, Outcome
from rating.errors import DataError
from rating.tables import weights
from rating.tables.cells import Rows, counted, data_hash, ranked
from rating.tables.coding import Coded
from rating.tables.logged import LoggedColumns
from rating.tables.orders import one_row_a_case
from rating.tables.packing import narrowest
from rating.tables.reading import SAMPLING, Reading, opened_table
from rating.tables.sieve import OUTCOMES, Sieve, compact
from rating.tables.sources import Table
from rating.typing import Bools, Floats, Integers

OUTSIDE = "outside the window"
BOTH_BAD = "both bad"
REPLACED = "a model was replaced after the draw"
REST = "(none)"
"""Group of the votes that have no value in the column that parts them."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the votes: ``read == used + self_battles + sum(dropped.values())``.

    Attributes
    ----------
    self_battles : int
        Battles of a model against itself, set aside.
    dropped : dict of str to int
        Votes left out, by reason.
    """

    read: int
    used: int
    self_battles: int
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes counted in cells, which are sorted: the order of the votes leaves no trace.

    A cell is a distinct (voter, prompt, model on side A, model on side B, outcome), of what is
    known; with styles, a single vote or votes that are alike in the source.

    Attributes
    ----------
    models, voters, prompts : tuple of str
        Names, sorted; the arrays hold positions in them. Empty where not known.
    model_a, model_b, outcome : ndarray of shape (n_cells,), int
        ``outcome`` is the position in ``tuple(rating.Outcome)``. Whole numbers are of the
        narrowest type that holds them: mind sums and products.
    votes : ndarray of shape (n_cells,), int
        Votes of the cell.
    weight, weight_sq : ndarray of shape (n_cells,), float64, or None
        Sums of the votes' weights and of their squares; None where every vote weighs 1.
    voter, prompt : ndarray of shape (n_cells,), int, or None
    features : ndarray of shape (n_cells, n_features), float64, or None
        Styles in standard deviations; ``feature_scale`` holds these.
    unprompted : int
        Votes without a prompt where others have one, for which prompts are not known.
    data_hash : str
        SHA-256 of the sorted cells, names among them: the same votes have the same hash
        whatever the file and the order of its rows.
    """

    models: tuple[str, ...]
    model_a: Integers
    model_b: Integers
    outcome: Integers
    votes: Integers
    weight: Floats | None
    weight_sq: Floats | None
    voters: tuple[str, ...]
    voter: Integers | None
    prompts: tuple[str, ...]
    prompt: Integers | None
    features: Floats | None
    feature_names: tuple[str, ...]
    feature_scale: Floats | None
    report: Report
    data_hash: str
    unprompted: int = 0


def read_votes(source: object, reading: Reading | None = None) -> Votes:
    """Read votes from a file or a table.

    One row a vote, with the columns ``model_a``, ``model_b`` and ``winner``; or one row a pair,
    with ``n_model_a``, ``n_model_b``, ``n_tie`` and perhaps ``n_both_bad``.

    Parameters
    ----------
    source : path, table or LoggedColumns
        See `rating.tables.sources.opened`; or an arena's log, of which the votes that its policy
        leaves out do not count.

    Raises
    ------
    DataError
        If the source cannot be read or a column is not there; for labels that are unknown or
        missing; names that are missing, or differ only in case or spaces; voters that some votes
        have and others not; and if no vote is left.
    """
    reading = reading or Reading()
    votes = count_votes(source, reading)
    if not votes.report.used:
        log = f" in {source.name!r}" if isinstance(source, LoggedColumns) else ""
        msg = f"No votes to count{log}: {_told(votes.report)}."
        raise DataError(msg if votes.report.read or not log else f"There are no votes{log} yet.")
    return votes


def count_votes(source: object, reading: Reading) -> Votes:
    """Read votes as `read_votes` does, of which none may count."""
    if isinstance(source, LoggedColumns):
        return _finish(_logged(source, reading), reading)
    with opened_table(source, reading, by=False) as table:
        return _finish(table, reading)


def _logged(log: LoggedColumns, reading: Reading) -> Table:
    log.require_own(reading.columns)
    if reading.style or reading.weight not in (None, SAMPLING):
        msg = (
            "The log holds no styles, and no weights but 'sampling': export the votes, add the "
            "columns, and read the file."
        )
        raise DataError(msg)
    people = [("voter", reading.voters), ("prompt", reading.prompts)]
    texts = ["model_a", "model_b", "winner", *(role for role, wanted in people if wanted)]
    numbers = [*(["weight", "repicks"] if reading.weight is not None else [])]
    numbers += ["time"] if reading.needs_time else []
    return compact(log.table([*texts, "left_out"], numbers))


def read_groups(source: object, reading: Reading) -> dict[str, Votes]:
    """Read votes apart by the values of ``reading.columns.by``, sorted.

    Votes without a value are in the group `REST`. A group may have no vote that counts.

    Raises
    ------
    DataError
        As `read_votes`.
    """
    if isinstance(source, LoggedColumns):
        source.require_own(reading.columns)
    with opened_table(source, reading, by=True) as table:
        return dict(_grouped(table, reading))


def _grouped(table: Table, reading: Reading) -> Iterator[tuple[str, Votes]]:
    column = table.texts["by"]
    names = {name for name in column.names if name.strip()}
    for name in [*sorted(names), REST]:
        same = [code for code, other in enumerate(column.names) if other == name]
        blank = [-1, *(c for c, other in enumerate(column.names) if not other.strip())]
        rows = np.isin(column.codes, blank if name == REST else same)
        if rows.any():
            yield name, _finish(_rows(table, rows), reading)


def comparisons(votes: Votes) -> Comparisons:
    """Give the votes to the estimators."""
    return Comparisons.from_codes(
        votes.models,
        votes.model_a,
        votes.model_b,
        votes.outcome,
        votes=votes.votes,
        weight=votes.weight,
        weight_sq=votes.weight_sq,
        voter=votes.voter,
        prompt=votes.prompt,
        features=votes.features,
        feature_names=votes.feature_names,
    )


def _told(report: Report) -> str:
    parts = [f"{report.read} read", f"{report.self_battles} of a model against itself"]
    return ", ".join([*parts, *(f"{n} dropped ({why})" for why, n in report.dropped.items())])


def _rows(table: Table, rows: Bools) -> Table:
    texts = {role: Coded(c.names, c.codes[rows]) for role, c in table.texts.items()}
    numbers = {role: values[rows] for role, values in table.numbers.items()}
    return Table(texts, numbers, None if table.n is None else table.n[rows], table.first)


def _finish(table: Table, reading: Reading) -> Votes:
    sieve = Sieve.of(table)
    sieve.drop_left_out()
    one_row_a_case(sieve)
    outcome = sieve.outcomes()
    names, a, b = sieve.models()
    moments = _moments(sieve) if reading.needs_time else None
    if moments is not None:
        sieve.drop(~weights.inside(moments, reading.since, reading.until), OUTSIDE)
    if "repicks" in table.numbers:
        sieve.drop(table.numbers["repicks"] > 0, REPLACED)
    both_bad = outcome == OUTCOMES.index(Outcome.BOTH_BAD)
    if reading.both_bad == "drop":
        sieve.drop(both_bad, BOTH_BAD)
    elif reading.both_bad == "tie":
        outcome[both_bad] = OUTCOMES.index(Outcome.TIE)
    sieve.set_aside_self_battles(a, b)
    unprompted = 0 if reading.all_prompts else sieve.unprompted()
    groups = {
        "voter": sieve.people("voter"),
        "prompt": None if unprompted else sieve.people("prompt"),
    }
    votes = _votes(sieve, reading, (names, a, b, outcome), groups, moments)
    return replace(votes, unprompted=unprompted)


def _votes(
    sieve: Sieve,
    reading: Reading,
    battles: tuple[tuple[str, ...], Integers, Integers, Integers],
    groups: Mapping[str, Coded | None],
    moments: Floats | None,
) -> Votes:
    live = sieve.live
    names, a, b, outcome = battles
    if not live.all():
        a, b, outcome = a[live], b[live], outcome[live]
    models, (a, b) = _renumbered(names, a, b)
    people = {role: ranked(c, live) for role, c in groups.items() if c is not None}
    features, scale = _features(sieve.table, reading, live)
    weight = _weights(sieve.table, reading, moments, live)
    keys = (*(codes for _, codes in people.values()), a, b, outcome)
    cells = counted(Rows(keys, sieve.n[live], weight, features))
    *clusters, a, b, outcome = cells.keys
    cluster = dict(zip(people, clusters, strict=True))
    name_of = {role: named for role, (named, _) in people.items()}
    report = Report(
        read=int(sieve.n.sum()),
        used=int(cells.n.sum()),
        self_battles=sieve.self_battles,
        dropped=dict(sorted(sieve.dropped.items())),
    )
    hashed = [models, name_of.get("voter", ()), name_of.get("prompt", ()), reading.style]
    return Votes(
        models=models,
        model_a=a,
        model_b=b,
        outcome=outcome,
        votes=cells.n,
        weight=cells.weight,
        weight_sq=cells.weight_sq,
        voters=name_of.get("voter", ()),
        voter=cluster.get("voter"),
        prompts=name_of.get("prompt", ()),
        prompt=cluster.get("prompt"),
        features=cells.features,
        feature_names=reading.style,
        feature_scale=scale,
        report=report,
        data_hash=data_hash(hashed, cells),
    )


def _renumbered(
    names: tuple[str, ...], a: Integers, b: Integers
) -> tuple[tuple[str, ...], tuple[Integers, Integers]]:
    """Leave out the models that have no battle against another."""
    there = np.zeros(len(names), dtype=bool)
    there[a] = there[b] = True
    if there.all():
        return names, (a, b)
    models = tuple(names[model] for model in np.flatnonzero(there))
    place = (np.cumsum(there) - 1).astype(narrowest(len(models)))
    return models, (place[a], place[b])


def _moments(sieve: Sieve) -> Floats:
    """When each vote was cast, in seconds since 1970 UTC."""
    column = sieve.table.texts.get("time")
    if column is None:
        moments = sieve.table.numbers["time"]
    else:
        parsed = [weights.parse_moment(text) if text.strip() else np.nan for text in column.names]
        moments = np.array([*parsed, np.nan])[column.codes]
    missing = sieve.live & ~np.isfinite(moments)
    if missing.any():
        msg = (
            f"The time is missing in {int(sieve.n[missing].sum())} votes. "
            "Leave them out, or read without a window and a half-life."
        )
        raise DataError(msg)
    return moments


def _weights(table: Table, reading: Reading, moments: Floats | None, live: Bools) -> Floats | None:
    weight = None
    if reading.weight == SAMPLING:
        weight = weights.sampling_weights(table.numbers["weight"][live])
    elif reading.weight is not None:
        weight = weights.given_weights(table.numbers["weight"][live], reading.weight)
    if reading.half_life_days is not None and moments is not None:
        now = float(moments[live].max(initial=-np.inf))
        age = weights.decay(moments[live], reading.half_life_days, now)
        weight = age if weight is None else weight * age
    return weight


def _features(table: Table, reading: Reading, live: Bools) -> tuple[Floats | None, Floats | None]:
    """Give the styles of live rows in standard deviations, and these."""
    if not reading.style:
        return None, None
    columns = []
    for name in reading.style:
        if name in table.numbers:
            columns.append(weights.given_difference(table.numbers[name][live], name))
        else:
            a, b = (table.numbers[f"{name}_{side}"][live] for side in "ab")
            columns.append(weights.style_difference(a, b, name))
    return weights.standardised(np.column_stack(columns), reading.style)
