"""Votes of a file, table or log: counted, rated, by prompt mix, or row by row.

`read_votes` counts the votes of a source in cells, `read_groups` by the values of a column;
`rate_source` rates them, in parts where the voters do not fit in memory. `read_mix` and
`rate_mix_of` are for a prompt mix. `read_rows` gives single votes, for whatever needs their order,
voters or times.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import rating
from rating import RateOptions, Report
from rating.comparisons import Comparisons, Votes
from rating.counting import Cells, count, occurring
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.options import KAPPAS
from rating.outcome import OUTCOMES, SIDES, of_sides
from rating.rows import VoteRows
from rating.sentences import plural
from rating.tables import peers, sources, vote_filter
from rating.tables.coding import (
    MOMENTS,
    NUMERIC,
    ROW,
    Coded,
    LoggedVotes,
    Table,
    as_name,
    coded_list,
    fetch,
    kinds,
    numbered,
    ranked,
)
from rating.tables.columns import (
    JUDGES,
    KINDS,
    REQUIRED,
    SAMPLING,
    UNLABELLED,
    Columns,
    Reading,
    require,
)
from rating.tables.duckdb_engine import columns_in_file, rows_in_parquet, sampled_sizes
from rating.tables.files import Files, expanded, kind_of
from rating.tables.parquet import long_columns
from rating.tables.sources import (
    ClusterTable,
    only_of_text,
    opened,
    opened_table,
    require_one_kind,
    spark_engine,
)
from rating.tables.vote_filter import MOST_MODELS, VoteFilter
from rating.typing import Bools, Floats

if TYPE_CHECKING:
    from rating.remarks import RemarkReport
    from rating.tables import by_voter


# Votes in cells


CANONICAL = "votes-1"
"""Version of what is hashed, and how."""

_HASHED_AT_ONCE = 1 << 16

PARTED_FROM = 20_000_000
"""Votes in files from which voters are rated part by part."""
SAMPLE = 1_000_000
"""Votes of such files whose voters are looked at where intervals do not depend on voters."""

MODEL = "model"
"""Factor of the columns that any vote has, ``model_a`` and ``model_b``."""
JOINED = " · "
"""Between the parts of a system's name."""


def read_votes(source: object, reading: Reading | None = None) -> Votes:
    """Read votes from a file or a table.

    One row a vote, with the columns ``model_a``, ``model_b`` and ``winner``; or one row a pair,
    with ``n_model_a``, ``n_model_b``, ``n_tie`` and perhaps ``n_both_bad``.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedVotes
        See `rating.tables.sources.opened`; or an arena's log, of which the votes that its policy
        excludes do not count.

    Raises
    ------
    DataError
        If the source cannot be read or a column is not there; for labels that are unknown or
        missing; names that are missing, or differ only in case or spaces; voters that some votes
        have and others not; and if no vote is left.
    """
    reading = reading or Reading()
    return _require_votes(count_votes(source, reading), source)


def _require_votes(votes: Votes, source: object) -> Votes:
    """Give votes back; raises `DataError` where none counts."""
    if not votes.data.n_votes:
        log = f" in {source.name!r}" if isinstance(source, LoggedVotes) else ""
        parts = [f"{votes.read} read", f"{votes.self_battles} of a model against itself"]
        parts += [f"{n} dropped ({why})" for why, n in votes.dropped.items()]
        msg = f"No votes to count{log}: {', '.join(parts)}."
        raise DataError(msg if votes.read or not log else f"There are no votes{log} yet.")
    return votes


def count_votes(source: object, reading: Reading) -> Votes:
    """Read votes as `read_votes` does, of which none may count."""
    with opened_table(source, reading, by=False) as table:
        return _votes_in(table, reading)


def read_groups(source: object, reading: Reading) -> dict[str, Votes]:
    """Read votes apart by the values of ``reading.columns.by``, sorted.

    Votes without a value are in the group `UNLABELLED`. A group may have no vote that counts.

    Raises
    ------
    DataError
        As `read_votes`.
    """
    groups: dict[str, Votes] = {}
    with opened_table(source, reading, by=True) as table:
        column = table.texts["by"]
        names = {name for name in column.names if name.strip()}
        for name in [*sorted(names), UNLABELLED]:
            same = [code for code, other in enumerate(column.names) if other == name]
            blank = [-1, *(c for c, other in enumerate(column.names) if not other.strip())]
            rows = np.isin(column.codes, blank if name == UNLABELLED else same)
            if rows.any():
                texts = {role: Coded(c.names, c.codes[rows]) for role, c in table.texts.items()}
                numbers = {role: values[rows] for role, values in table.numbers.items()}
                n = None if table.n is None else table.n[rows]
                groups[name] = _votes_in(Table(texts, numbers, n, table.first), reading)
    return groups


def _votes_in(table: Table, reading: Reading) -> Votes:
    """Count the votes of a table; raises `DataError` as `read_votes`, but none may count."""
    return _counted(VoteFilter.settled(table, reading), reading)


def _counted(rows: VoteFilter, reading: Reading) -> Votes:
    names, a, b, outcome = rows.names, rows.a, rows.b, rows.outcome
    groups, unprompted = rows.groups(all_prompts=reading.all_prompts)
    live = rows.live
    if not live.all():
        a, b, outcome = a[live], b[live], outcome[live]
    models, a, b = occurring(names, a, b)
    elsewhere = None if groups["voter"] is None else rows.table.parts
    if elsewhere is not None:
        groups = {**groups, "voter": None}
    people = {role: ranked(c, live) for role, c in groups.items() if c is not None}
    name_of = {role: names for role, (names, _) in people.items()}
    voters, prompts = (name_of.get(role, ()) for role in ("voter", "prompt"))
    features, scale = _styles(rows.table, reading, live)
    n, weight = rows.n[live], _weights(rows.table, reading, rows.moments, live)
    keys = (*(codes for _, codes in people.values()), a, b, outcome)
    sizes = [*map(len, name_of.values()), len(models), len(models), len(OUTCOMES)]
    total, square = (None, None) if weight is None else (n * weight, n * weight**2)
    cells = count(Cells(keys, n, total, square, features), sizes)
    warnings = []
    if n_orders := rows.dropped.get(vote_filter.IN_BOTH, 0):
        warnings.append(vote_filter.warning(n_orders))
    if unprompted:
        warnings.append(
            f"{plural(unprompted, 'vote names', 'votes name')} no prompt: prompts are not used; "
            "exclude such votes to let the intervals allow for prompts."
        )
    return Votes(
        Comparisons.of_cells(models, cells, list(people), reading.style),
        voters=voters,
        prompts=prompts,
        read=int(rows.n.sum()),
        self_battles=rows.self_battles,
        dropped=dict(sorted(rows.dropped.items())),
        style_sd={} if scale is None else dict(zip(reading.style, scale.tolist(), strict=True)),
        data_hash=_data_hash([models, voters, prompts, reading.style], cells),
        warnings=tuple(warnings),
        parts=None if elsewhere is None else elsewhere(models, live, a, b, outcome),
    )


def read_figures(source: object, reading: Reading) -> tuple[Votes, VoteRows]:
    """Read votes, and each one that counts with what was measured on its answers.

    That is, in columns for side A and B: ``cost_a`` (US dollars) and ``seconds_a``. Empty is not
    known.

    Raises
    ------
    DataError
        As `read_votes`; and for figures that cannot be.
    """
    from rating.value import MEASURES

    reading = replace(reading, figures=MEASURES)
    with opened_table(source, reading, by=False) as table:
        counting = VoteFilter.settled(table, reading)
        votes = _require_votes(_counted(counting, reading), source)
    names = [name for name in MEASURES if of_sides(name)[0] in table.numbers]
    measured = {column: table.numbers[column] for n in names for column in of_sides(n)}
    rows = counting.vote_rows(reading, measured)
    for name in names:
        values = rows.of_answers(name)
        bad = values[~(np.isnan(values) | ((values >= 0) & np.isfinite(values)))]
        if bad.size:
            a, b = of_sides(name)
            raise DataError(f"{a} and {b} hold {bad[0]:g}: make it a number from 0, or empty.")
    return votes, rows


def read_factors(
    source: object, factors: Sequence[str], reading: Reading | None = None
) -> tuple[Votes, dict[str, dict[str, str]]]:
    """Read votes on systems, and the level of each factor that a system has.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        As `read_votes` takes it.
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
        As `read_votes`; if a factor is named twice, has no columns, or is
        missing in a vote that counts; or if two systems would have one name.
    """
    reading = reading or Reading.of(RateOptions())
    if twice := next((name for name in factors if factors.count(name) > 1), None):
        raise DataError(f"The factor {twice!r} is named twice: name each once.")
    beside = tuple(column for name in factors if name != MODEL for column in of_sides(name))
    with opened_table(source, replace(reading, beside=beside), by=False) as table:
        if lacking := next((name for name in beside if name not in table.texts), None):
            msg = f"There is no column {lacking!r}: a factor X is in the columns X_a and X_b."
            raise DataError(msg)
        live = VoteFilter.of(table).live
        parts = [_parts(table, factors, side, live) for side in SIDES]
        systems = {part: JOINED.join(part) for side in parts for part in side if all(part)}
        named: dict[str, tuple[str, ...]] = {}
        for part, system in systems.items():
            if named.setdefault(system, part) != part:
                msg = (
                    f"{part} and {named[system]} would both be called {system!r}: rename a level."
                )
                raise DataError(msg)
        names = [[systems.get(part) for part in side] for side in parts]
        texts = {
            role: coded_list(column) for role, column in zip(of_sides(MODEL), names, strict=True)
        }
        votes = _votes_in(replace(table, texts={**table.texts, **texts}), reading)
        levels = {
            name: {system: part[i] for part, system in systems.items()}
            for i, name in enumerate(factors)
        }
        return _require_votes(votes, source), levels


def _parts(table: Table, factors: Sequence[str], side: str, live: Bools) -> list[tuple[str, ...]]:
    """Give the levels of one side of each row; empty where one is missing and does not count."""
    columns = []
    for name in factors:
        column = table.texts[f"{name}_{side}"]
        names = [*(name.strip() for name in column.names), ""]
        levels = [names[code] for code in column.codes]
        missing = live & np.array([not level for level in levels], dtype=bool)
        if missing.any():
            n = int(missing.sum() if table.n is None else table.n[missing].sum())
            where = f"The {name}_{side} is missing in {plural(n, 'vote')}"
            raise DataError(f"{where}: name it, or exclude such votes.")
        columns.append(levels)
    return list(zip(*columns, strict=True))


def _weights(table: Table, reading: Reading, moments: Floats | None, live: Bools) -> Floats | None:
    weight = None
    if reading.weight == SAMPLING:
        weight = sources.sampling_weights(table.numbers["weight"][live])
    elif reading.weight is not None:
        weight = sources.given_weights(table.numbers["weight"][live], reading.weight)
    if reading.half_life_days is not None and moments is not None:
        now = float(moments[live].max(initial=-np.inf))
        age = sources.decay(moments[live], reading.half_life_days, now)
        weight = age if weight is None else weight * age
    return weight


def _styles(table: Table, reading: Reading, live: Bools) -> tuple[Floats | None, Floats | None]:
    """Give the styles of live rows in standard deviations, and these."""
    if not reading.style:
        return None, None
    columns = []
    for name in reading.style:
        if name in table.numbers:
            columns.append(sources.given_difference(table.numbers[name][live], name))
        else:
            a, b = (table.numbers[column][live] for column in of_sides(name))
            columns.append(sources.style_difference(a, b, name))
    return sources.standardised(columns, reading.style)


def _data_hash(names: Sequence[Sequence[str]], cells: Cells) -> str:
    """SHA-256 of the names and of the cells, as little-endian numbers of eight bytes."""
    digest = hashlib.sha256(json.dumps([CANONICAL, *names]).encode())
    arrays = [*cells.keys, cells.votes, cells.weight, cells.weight_sq, cells.features]
    for array in arrays:
        if array is None:
            digest.update(b"-")
        else:
            kind = "<i8" if array.dtype.kind == "i" else "<f8"
            for first in range(0, len(array), _HASHED_AT_ONCE):
                part = array[first : first + _HASHED_AT_ONCE]
                digest.update(np.ascontiguousarray(part, dtype=kind).data)
    return digest.hexdigest()


# Ratings


Progress = Callable[[int, int], None]
"""Called with the groups rated so far and the groups in all."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Ratings of votes apart by the values of a column.

    Attributes
    ----------
    reports : mapping of str to Report
    not_rated : mapping of str to str
        Why the votes of a group identify no rating.
    """

    reports: Mapping[str, Report]
    not_rated: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``not_rated`` is there only if some group is not."""
        from rating.mix import by_itself

        plain: dict[str, Any] = {
            "groups": {value: report.to_dict() for value, report in self.reports.items()},
            "warnings": by_itself(self.reports),
        }
        return plain | ({"not_rated": dict(self.not_rated)} if self.not_rated else {})


def rate_source(
    source: object, options: RateOptions, progress: Progress | None = None
) -> "Report | Groups | rating.PooledBoards":
    """Rate votes.

    Parameters
    ----------
    source : path, table, LoggedVotes or ClusterTable
        As `read_votes` takes it; or a table of a cluster.

    Raises
    ------
    DataError
        If the votes cannot be read, or the options do not fit them.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if isinstance(source, ClusterTable):
        with spark_engine().connected(source) as frame:
            return rate_source(frame, options, progress)
    if options.pool:
        return rating.rate_pooled(read_groups(source, Reading.of(options)), options)
    if options.by is not None:
        return _rate_groups(source, options, progress)
    if _in_large_files(source) and all(map(importlib.util.find_spec, ("pyarrow", "fcntl"))):
        from rating.tables import by_voter  # pyarrow takes a quarter of a second

        if parquet := by_voter.Source.of(source, options):
            return _rate_parts(parquet, options, progress or (lambda done, total: None))
    reading, sampled = Reading.of(options), _sampled_voters(source, options)
    votes = read_votes(source, replace(reading, voters=reading.voters and not sampled))
    return rating.rate(replace(votes, sampled=sampled), options)


def _sampled_voters(source: object, options: RateOptions) -> int:
    """Count the voters of a sample, where no more is said of them than that there are many.

    0 where all are to be read: they are clusters, too few in the sample to bound any ranks, or
    what a row means depends on more than its columns.
    """
    alone = options.cluster == "none" or options.interval in ("hessian", "profile")
    files = Files.of(source)
    if not alone or options.claims != "population" or files is None or files.where is not None:
        return 0
    if not _in_large_files(files):
        return 0
    paths = expanded(files.paths)
    there = columns_in_file(paths[0])
    voter = dict(files.columns).get("voter", Reading.of(options).columns.find("voter", there))
    if voter is None or peers.recognised(there) is not None:
        return 0
    n = sampled_sizes(paths, voter, SAMPLE)
    return len(n) if n.sum() ** 2 >= MOST_MODELS * (n**2).sum() else 0


def _in_large_files(source: object) -> bool:
    files = Files.of(source)
    paths = [] if files is None else expanded(files.paths)
    if not paths or kind_of(paths[0]) != "Parquet":
        return False
    for path in paths:
        long_columns(path)  # raises for a footer that the engine would unpack without end
    return rows_in_parquet(paths) >= PARTED_FROM


def _rate_parts(source: "by_voter.Source", options: RateOptions, progress: Progress) -> Report:
    """Rate votes whose voters do not fit in memory."""
    from rating.tables import by_voter

    reading = Reading.of(options)
    with by_voter.work_folder(source, options, progress) as folder:
        counts = folder.counted(source)
        table = counts.as_table(source)
        voters = _require_votes(_votes_in(table, reading), source).voters
        texts = {role: column for role, column in table.texts.items() if role != "voter"}
        votes = _votes_in(replace(table, texts=texts), reading)
        if voters:
            models = votes.data.models
            parts = by_voter.StoredParts.of(folder, source, counts, models, reading.both_bad)
            votes = replace(votes, parts=parts)
        return rating.rate(votes, options)


def _rate_groups(source: object, options: RateOptions, progress: Progress | None) -> Groups:
    groups = read_groups(source, Reading.of(options))
    reports: dict[str, Report] = {}
    not_rated: dict[str, str] = {}
    for done, (value, votes) in enumerate(groups.items()):
        if progress is not None:
            progress(done, len(groups))
        try:
            reports[value] = rating.rate(votes, options)
        except (NotIdentifiedError, ConvergenceError) as error:
            not_rated[value] = str(error)
    if not reports:
        value, why = next(iter(not_rated.items()), (str(options.by), "There are no votes."))
        raise NotIdentifiedError(f"No group of {options.by!r} can be rated; of {value!r}: {why}")
    return Groups(reports, not_rated)


# Prompt mixes


def read_mix(source: object, column: str) -> "rating.Mix":
    """Count prompts by category.

    Parameters
    ----------
    source : path, sequence of paths, Files or table
        A prompt a row; as `rating.read_votes` takes it.
    column : str
        That of the category.

    Raises
    ------
    DataError
        If the source cannot be read, lacks the column, or a prompt has no category.
    """

    def wanted(there: Sequence[str]) -> list[str]:
        return [require(column, there)]

    with opened(source, wanted, holds="prompts", as_peers=False) as rows:
        name = as_name(rows, *wanted(rows.columns))
        counts = dict(rows.aggregate(f"{name}, count(*)", name).order("1").fetchall())
    if unnamed := sum(n for name, n in counts.items() if not (name and name.strip())):
        have = plural(unnamed, "prompt has", "prompts have")
        raise DataError(f"{have} no {column}: name it, or exclude such prompts.")
    return rating.Mix.of_counts(counts)


def rate_mix_of(
    source: object,
    mix: "rating.Mix",
    options: RateOptions,
    *,
    kappas: Sequence[float] = KAPPAS,
    reweighted: bool = False,
) -> "rating.MixBoard":
    """Rate the models of a source of votes on a mix: see `rating.rate_mix`.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `rating.rate_mix`, and if the votes cannot be read.
    """
    groups = read_groups(source, Reading.of(options))
    return rating.rate_mix(groups, mix, options, kappas=kappas, reweighted=reweighted)


# Single votes


def read_rows(source: object, reading: Reading) -> VoteRows:
    """Read the votes that count.

    Parameters
    ----------
    source : path, sequence of paths, Files, table or LoggedVotes
        As `read_votes` takes it.
    reading : Reading
        Of which weights and styles are not used, nor a window of votes in order. ``columns.by`` is
        the role ``by``.

    Raises
    ------
    DataError
        As `read_votes`; and of votes in order, if they do not name who cast
        them.
    """
    by = reading.columns.by is not None
    how = _in_order(source, reading) if reading.ordered else opened_table(source, reading, by=by)
    with how as table:
        numbers = {"trait": _traits(table), "time": _moments(table)} if reading.ordered else {}
        known = {role: values for role, values in numbers.items() if values is not None}
        rows = VoteFilter.settled(table, reading).vote_rows(reading, known)
    if not rows.n:
        is_named = isinstance(source, LoggedVotes) or Files.of(source) is not None
        where = f" in {str(source)!r}" if is_named else ""
        why = ", ".join(f"{n} {why}" for why, n in rows.dropped.items()) or "there are none"
        raise DataError(f"No votes to count{where}: {why}.")
    if reading.ordered and reading.voters and "voter" not in rows.groups:
        msg = f"The votes of {str(source)!r} do not name their voters: no voter can be examined."
        raise DataError(msg)
    return rows


def report_source(
    source: object,
    columns: Columns,
    *,
    first: str = "quizzing",
    second: str = "asking",
    level: float = 0.95,
) -> "RemarkReport":
    """Read remarks and state what they say: see `rating.remarks.report_remarks`.

    Raises
    ------
    DataError
        As `read_rows`; and if there is no column of remarks, nothing in them, or no voter.
    """
    from rating.remarks import GIVEN, INTENT, reasons_of, report_remarks

    columns_of_text = (*GIVEN, INTENT)
    rows = read_rows(
        source, Reading(columns, prompts=True, both_bad="tie", beside=columns_of_text)
    )
    if rows.groups.keys().isdisjoint(columns_of_text):
        msg = (
            f"{str(source)!r} holds no remarks: the columns {', '.join(GIVEN)} or {INTENT} are "
            "needed, as arena export votes writes them."
        )
        raise DataError(msg)
    if "voter" not in rows.groups:
        raise DataError(f"{str(source)!r} does not name its voters: use --column voter=NAME.")
    if not reasons_of(rows) and not any(rows.names.get(INTENT, ())):
        raise DataError(f"Nothing was remarked beside the {rows.n_votes} votes of {source!s}.")
    return report_remarks(rows, first=first, second=second, level=level)


@contextmanager
def _in_order(source: object, reading: Reading) -> Iterator[Table]:
    """Read every vote as a row, with its number, and its time and trait where they are known.

    A log has its order and no traits; no time is read of it.
    """
    if isinstance(source, LoggedVotes):
        source.require_own(reading.columns)
        prompt = ("prompt",) if reading.prompts else ()
        yield source.in_order((*REQUIRED, "voter", *prompt, "left_out"))
        return

    def roles(there: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        texts, _ = reading.roles(there, by=False)
        must = ("winner", "voter") if reading.voters else ("winner",)
        needed = {role: reading.columns.need(role, there) for role in must}
        optional = {role: reading.columns.find(role, there) for role in ("time", "trait")}
        return texts | needed, {role: name for role, name in optional.items() if name is not None}

    def wanted(there: Sequence[str]) -> list[str]:
        own = {name for named in roles(there) for name in named.values()}
        return [name for name in there if name in {*own, *JUDGES, *KINDS}]

    with opened(source, wanted, once=True, named=reading.columns) as rows:
        texts, numbers = roles(rows.columns)
        require_one_kind(rows, str(source), reading.columns.asked)
        types = kinds(rows)
        for role, beside in (("time", MOMENTS), ("trait", {"boolean"})):
            if role in numbers and types[numbers[role]] not in beside | NUMERIC:
                texts[role] = numbers.pop(role)
        yield fetch(numbered(rows), only_of_text(rows, texts), {**numbers, "row": ROW})


def _moments(table: Table) -> Floats | None:
    """When each vote was cast, in seconds since 1970 UTC; None unless all votes say so."""
    moments = table.numbers.get("time")
    if column := table.texts.get("time"):
        parsed = [sources.parse_moment(text) if text.strip() else np.nan for text in column.names]
        moments = np.array([*parsed, np.nan])[column.codes]
    return moments if moments is not None and np.isfinite(moments).all() else None


def _traits(table: Table) -> Floats | None:
    """Whether each vote has the trait, 0 or 1; a missing value is none.

    Raises
    ------
    DataError
        If a text is neither true nor false.
    """
    values = table.numbers.get("trait")
    if column := table.texts.get("trait"):
        known = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0, "": 0.0}
        if odd := [text for text in column.names if text.strip().lower() not in known]:
            raise DataError(f"A column of a trait holds {odd[0]!r}: it takes true, false, 1 or 0.")
        each = [known[text.strip().lower()] for text in column.names]
        values = np.array([*each, 0.0])[column.codes]
    return None if values is None else (np.nan_to_num(values) != 0).astype(np.float64)
