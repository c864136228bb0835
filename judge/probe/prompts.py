"""The audit of a benchmark's prompts: do they hang together, does it matter, what explains it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from judge.probe.coherence import (
    LEAST,
    SWEEPS,
    Coherence,
    margins,
    of_table,
    p_value,
    varying,
)
from judge.probe.explained import Explained, explain, terms_of
from judge.studies.alignment import ASKED, PROMPTS
from judge.tables.annotations import Annotations, read_annotations
from rating.diagnosis.nesting import Nested, nested_test
from rating.diagnosis.reweighting import Reweighted, Scored, compared, reweighted
from rating.errors import DataError
from rating.fitting import fit
from rating.rows import VoteRows
from rating.tables.columns import Columns, Reading, quoted_names
from rating.tables.duckdb_engine import columns_in_file
from rating.tables.files import Files, expanded, kind_of
from rating.tables.rows import read_rows
from rating.typing import Floats, Ints

Progress = Callable[[int, int], None]

RESULTS = ("right", "correct", "win", "score", "preference", "value")
"""Columns of a table of results that hold the result, the first that is there."""
IDS = (*PROMPTS, "idx", "session_id", "item_id")
"""Columns that may name the prompt, the first that is there."""
PREFERENCE = 1.5
"""Above it, AlpacaEval's judge prefers the model."""
SAMPLE = 400
"""Prompts of which every two are compared."""
GRADED = (
    "Graded results are drawn from a logistic model: where theirs are not, as where they crowd at "
    "an end, prompts seem to hang together. --right ABOVE makes them right or wrong, and the test "
    "exact."
)
DEALT = {
    "prompt": "groups dealt among prompts",
    "voter": "groups dealt among voters",
    "vote": "groups dealt among votes of the same voter on the same pair of models",
}
NO_VOTER = "groups dealt among votes on the same pair of models"


@dataclass(frozen=True, slots=True)
class PromptsProbe:
    """What the audit says of prompts.

    Attributes
    ----------
    about : mapping of str to object
        The data.
    together : tuple of Coherence
        Of the groups asked for, then of the others that can be asked for.
    ranking : tuple of Reweighted
    explained : Explained or None
        None where prompts are not named.
    """

    about: Mapping[str, Any]
    together: tuple[Coherence, ...]
    ranking: tuple[Reweighted, ...]
    explained: Explained | None
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        first, *others = [one.to_dict() for one in self.together]
        return {
            "about": dict(self.about),
            "together": first | {"also": others},
            "ranking": {"boards": [one.to_dict() for one in self.ranking]},
            "explained": None if self.explained is None else self.explained.to_dict(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of prompts.

    Attributes
    ----------
    by : tuple of str
        Columns of groups, of the results or of ``prompts``.
    prompts : Files or None
        A prompt a row: its name, and groups and its text where they are known.
    value : str or None
        Column of a table of results.
    right : float or None
        Above it a result is right.
    """

    by: tuple[str, ...] = ()
    prompts: Files | None = None
    value: str | None = None
    right: float | None = None
    draws: int = 999
    sample: int = SAMPLE
    seed: int = 0
    level: float = 0.95


def probe_prompts(
    source: object,
    asked: Asked,
    *,
    columns: Sequence[tuple[str, str]] = (),
    progress: Progress = lambda *_: None,
) -> PromptsProbe:
    """Audit the prompts of votes, or of a table of results with the column ``model``.

    Raises
    ------
    DataError
        If the source cannot be read, holds no groups of a name asked for, or too little.
    NotIdentifiedError
        If votes identify no rating.
    """
    known = None if asked.prompts is None else read_annotations(asked.prompts, "prompts")
    files = Files.of(source)
    if files is not None and _is_table(files):
        return _of_results(
            read_annotations(_named(files, columns), "results"), asked, known, progress
        )
    return _of_votes(source, asked, known, Columns.named(columns), progress)


def _named(files: Files, columns: Sequence[tuple[str, str]]) -> Files:
    return replace(files, columns=(*files.columns, *columns))


def _is_table(files: Files) -> bool:
    """Tell a table of results, a model and a prompt a row, from votes."""
    path = expanded(files.paths)[0]
    named = {ours for ours, _ in files.columns}
    there = [*read_annotations(path).columns] if kind_of(path) == "JSON" else columns_in_file(path)
    return "model" in {*there, *named} and not {"model_a", "model_b"} <= {*there, *named}


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What a file says of prompts: rows by name, and its columns."""

    place: Mapping[str, int] = field(default_factory=dict)
    table: Annotations | None = None

    @classmethod
    def of(cls, table: Annotations | None, wanted: Sequence[str]) -> "_Known":
        if table is None:
            return cls()
        names = {str(name) for name in wanted}
        best: dict[str, int] = {}
        for column in (name for name in IDS if table.has(name)):
            rows = {str(x): row for row, x in enumerate(table.need(column)) if str(x) in names}
            best = rows if len(rows) > len(best) else best
        if not best:
            there = quoted_names([*table.columns])
            msg = f"{table.source!r} names none of the prompts; its columns are {there}."
            raise DataError(msg)
        return cls(best, table)

    def groups(self, column: str, prompts: Sequence[str]) -> tuple[Ints, tuple[str, ...]] | None:
        """Return a code a prompt and what codes stand for; None if there is no such column."""
        if self.table is None or not self.table.has(column):
            return None
        values = self.table.need(column)
        return _coded([str(values[self._row(name)]) for name in prompts])

    def texts(self, prompts: Sequence[str]) -> list[str] | None:
        """Return the text of each prompt; None unless all are known."""
        column = next((one for one in ASKED if self.table and self.table.has(one)), None)
        if self.table is None or column is None:
            return None
        values = [self.table.need(column)[self._row(name)] for name in prompts]
        return [one if isinstance(one, str) else "\n\n".join(map(str, one)) for one in values]

    def _row(self, name: str) -> int:
        if name not in self.place:
            source = "" if self.table is None else self.table.source
            raise DataError(f"{source!r} does not name the prompt {name!r}: give each a row.")
        return self.place[name]


def _coded(values: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    names, codes = np.unique(np.array(values, dtype=object).astype(str), return_inverse=True)
    return codes.astype(np.int64), tuple(names.tolist())


def _no_column(column: str, there: Sequence[str]) -> DataError:
    return DataError(
        f"There is no column {column!r} to group prompts by; there are {quoted_names(there)}."
    )


# Tables of results


@dataclass(frozen=True, slots=True, eq=False)
class _Results:
    """Results of models on the prompts that all of them have, as they are."""

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    values: Floats
    groups: Mapping[str, tuple[Ints, tuple[str, ...]]]
    left_out: int


def _of_results(
    table: Annotations, asked: Asked, known: Annotations | None, progress: Progress
) -> PromptsProbe:
    value = asked.value or next((name for name in RESULTS if table.has(name)), "score")
    results = _read_results(table, value, asked, known)
    right = PREFERENCE if asked.right is None and value == "preference" else asked.right
    values = _from_0_to_1(results.values, right)
    codes = {name: one for name, (one, _) in results.groups.items()}
    rng = np.random.default_rng(asked.seed)
    together = of_table(values, codes, draws=asked.draws, rng=rng, progress=progress)
    ordered = (*together[1:], together[0])
    graded = not np.isin(values, (0, 1)).all()
    texts = _Known.of(known, results.prompts).texts(results.prompts)
    return PromptsProbe(
        {
            "results": int(results.values.size),
            "models": len(results.models),
            "prompts": len(results.prompts),
            "left_out": results.left_out,
            "value": value,
            "right_above": right,
            "by": [*results.groups],
            "seed": asked.seed,
        },
        ordered,
        tuple(_boards(results, asked.level)),
        _explained_results(values, codes, texts, asked, progress),
        (GRADED,) if graded else (),
    )


def _read_results(
    table: Annotations, value: str, asked: Asked, known: Annotations | None
) -> _Results:
    models, model = np.unique(np.array(table.texts("model")), return_inverse=True)
    column = next((name for name in IDS if table.has(name)), None)
    if column is None:
        there = quoted_names([*table.columns])
        raise DataError(f"No column of {table.source!r} names the prompt; there are {there}.")
    prompts, prompt = np.unique(np.array(table.texts(column)), return_inverse=True)
    numbers, cell = table.numbers(value), model * len(prompts) + prompt
    given = ~np.isnan(numbers)
    n = np.bincount(cell[given], minlength=len(models) * len(prompts))
    sums = np.bincount(cell[given], numbers[given], len(n))
    whole = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
    values = whole.reshape(len(models), len(prompts))
    complete = ~np.isnan(values).any(axis=0)
    if not complete.any():
        msg = f"No prompt of {table.source!r} has a result of each of {len(models)} models."
        raise DataError(f"{msg} Leave out models that answered few.")
    names = tuple(prompts[complete].tolist())
    of_file = _Known.of(known, names)
    groups = {
        one: of_file.groups(one, names) or _own_groups(table, one, prompt, complete)
        for one in asked.by
    }
    return _Results(
        tuple(models.tolist()), names, values[:, complete], groups, int((~complete).sum())
    )


def _own_groups(
    table: Annotations, column: str, prompt: Ints, complete: Any
) -> tuple[Ints, tuple[str, ...]]:
    if not table.has(column):
        raise _no_column(column, [*table.columns])
    values, names = _coded([str(one) for one in table.need(column)])
    first = np.zeros(len(complete), dtype=np.int64)
    first[prompt] = values
    if (first[prompt] != values)[complete[prompt]].any():
        msg = f"{column!r} differs between results on one prompt, and is none of its groups: "
        raise DataError(msg + "give one value a prompt.")
    seen, codes = np.unique(first[complete], return_inverse=True)
    return codes.astype(np.int64), tuple(names[code] for code in seen.tolist())


def _from_0_to_1(values: Floats, right: float | None) -> Floats:
    if right is not None:
        return np.asarray((values > right).astype(np.float64))
    low, high = float(values.min()), float(values.max())
    if (low >= 0 and high <= 1) or low == high:
        return values.clip(0, 1)
    return (values - low) / (high - low)


def _boards(results: _Results, level: float) -> Iterator[Reweighted]:
    n = len(results.prompts)
    default = _scored(results, np.full(n, 1 / n), np.zeros(n, dtype=np.int64))
    for by, (codes, names) in results.groups.items():
        sizes = np.bincount(codes)
        same = _scored(results, 1 / (len(sizes) * sizes[codes]), codes)
        yield compared(f"each {by} the same", default, same, level=level)
        for code, name in enumerate(names):
            own = (codes == code).astype(np.int64)
            alone = _scored(results, own / sizes[code], own)
            yield compared(f"{by} {name} alone", default, alone, level=level)


def _scored(results: _Results, weight: Floats, group: Ints) -> Scored:
    """Return mean results with weights, in hundredths of their range.

    What a prompt has a part in is its distance from the mean of its group, whose weight stays.
    """
    values = 100 * results.values / (float(np.ptp(results.values)) or 1.0)
    side = group[:, None] == np.arange(int(group.max()) + 1)
    of_group = (values @ side) / side.sum(axis=0)
    return Scored(results.models, values @ weight, ((values - of_group[:, group]) * weight).T)


def _explained_results(
    values: Floats,
    groups: Mapping[str, Ints],
    texts: Sequence[str] | None,
    asked: Asked,
    progress: Progress,
) -> Explained | None:
    table = varying(values)
    p = margins(table, SWEEPS)
    z = (table - p) / np.sqrt(p * (1 - p) + LEAST)
    rng = np.random.default_rng([asked.seed, 1])
    some = _some(z.shape[1], asked.sample, rng)
    failed = (table == 0).all(axis=0)[some]
    terms = terms_of(
        None if texts is None else [texts[at] for at in some],
        {name: codes[some] for name, codes in groups.items()},
        failed.astype(np.float64),
    )
    return _explained(z[:, some].T @ z[:, some] / len(z), terms, asked.draws, rng, progress)


def _explained(
    alike: Floats,
    terms: Mapping[str, Floats],
    draws: int,
    rng: np.random.Generator,
    progress: Progress,
) -> Explained | None:
    try:
        return explain(alike, terms, draws=draws, rng=rng, progress=progress)
    except DataError:
        return None


def _some(n: int, sample: int, rng: np.random.Generator) -> Ints:
    return np.sort(rng.permutation(n)[:sample])


# Votes


def _of_votes(
    source: object,
    asked: Asked,
    known: Annotations | None,
    columns: Columns,
    progress: Progress,
) -> PromptsProbe:
    reading = Reading(columns, prompts=True, both_bad="tie")
    rows = read_rows(source, reading)
    prompts = rows.names.get("prompt", ())
    given = _Known.of(known, prompts)
    grouped = {by: _with_groups(source, reading, rows, given, by) for by in asked.by}
    rng = np.random.default_rng(asked.seed)
    together: list[Coherence] = []
    warnings: list[str] = []
    for by, own in grouped.items():
        test = partial(nested_test, draws=asked.draws, rng=rng, progress=progress)
        together.append(_coherence(by, own, own.groups["by"], test(own, own.groups["by"])))
        warnings += _on_voters(by, own)
    together += _of_prompts(rows, asked, rng, warnings, progress)
    if not together:
        msg = "Nothing tells whether prompts hang together: name them, or give --by a column."
        raise DataError(" ".join([msg, *warnings]))
    boards = {
        one.weighting: one
        for by, own in (grouped or {"group": rows}).items()
        for one in reweighted(own, by, level=asked.level)
    }
    groups = {by: own for by, own in grouped.items() if _by_prompt(own) is not None}
    return PromptsProbe(
        {
            "votes": rows.n_votes,
            "models": len(rows.models),
            "prompts": len(prompts) or None,
            "voters": len(rows.names.get("voter", ())) or None,
            "by": [*asked.by],
            "seed": asked.seed,
        },
        tuple(together),
        tuple(boards.values()),
        _explained_votes(rows, groups, given, asked, progress) if prompts else None,
        tuple(warnings),
    )


def _with_groups(
    source: object, reading: Reading, rows: VoteRows, given: _Known, by: str
) -> VoteRows:
    prompts = rows.names.get("prompt", ())
    of_prompt = given.groups(by, prompts) if prompts else None
    if of_prompt is None:
        return read_rows(source, replace(reading, columns=replace(reading.columns, by=by)))
    codes, names = of_prompt
    return replace(
        rows,
        groups={**rows.groups, "by": codes[rows.groups["prompt"]]},
        names={**rows.names, "by": names},
    )


def _coherence(of: str, rows: VoteRows, group: Ints, test: Nested) -> Coherence:
    null = DEALT[test.unit]
    if test.unit == "vote" and "voter" not in rows.groups:
        null = NO_VOTER
    return Coherence(
        of,
        len(np.unique(group)),
        test.statistic,
        float(test.drawn.mean()),
        float(test.drawn.std(ddof=1)),
        p_value(test.statistic, test.drawn),
        len(test.drawn),
        null,
        test.explained,
        test.design_effect,
    )


def _of_prompts(
    rows: VoteRows,
    asked: Asked,
    rng: np.random.Generator,
    warnings: list[str],
    progress: Progress,
) -> Iterator[Coherence]:
    """Ask of prompts themselves, where votes could have been on another."""
    if "prompt" not in rows.groups:
        return
    group = rows.groups["prompt"]
    try:
        test = nested_test(rows, group, draws=asked.draws, rng=rng, progress=progress)
    except DataError as error:
        warnings.append(f"Prompts by themselves: {error}")
        return
    yield _coherence("prompt", rows, group, test)


MOSTLY = 0.5


def _on_voters(by: str, rows: VoteRows) -> Iterator[str]:
    """Warn where voters keep to a group: its prompts are then judged by other people."""
    if not {"voter", "prompt"} <= rows.groups.keys():
        return
    voter, prompt, group = (rows.groups[role] for role in ("voter", "prompt", "by"))
    pairs = [np.unique(np.column_stack([voter, other]), axis=0)[:, 0] for other in (prompt, group)]
    n_prompts, n_groups = (np.bincount(one, minlength=int(voter.max()) + 1) for one in pairs)
    one_sided = ((n_prompts > 1) & (n_groups == 1))[voter]
    several = (n_prompts > 1)[voter]
    share = float(rows.times[one_sided].sum()) / max(1.0, float(rows.times[several].sum()))
    if share > MOSTLY:
        yield (
            f"{100 * share:.0f} % of the votes come from people who voted in one group of {by} "
            "alone, though on several prompts: what differs may be people, not prompts."
        )


def _by_prompt(rows: VoteRows) -> Ints | None:
    """Return the group of each prompt; None unless each lies in one whole."""
    if "prompt" not in rows.groups:
        return None
    prompt, group = rows.groups["prompt"], rows.groups["by"]
    first = np.zeros(len(rows.names["prompt"]), dtype=np.int64)
    first[prompt] = group
    return first if (first[prompt] == group).all() else None


def _explained_votes(
    rows: VoteRows,
    grouped: Mapping[str, VoteRows],
    given: _Known,
    asked: Asked,
    progress: Progress,
) -> Explained | None:
    names, prompt = rows.names["prompt"], rows.groups["prompt"]
    data = rows.comparisons(prompt=prompt)
    fitted = fit(data)
    assert data.prompt is not None
    sums = fitted.scored(data).scores(data.prompt.astype(np.int64), len(names))
    sums /= np.sqrt(np.bincount(prompt, rows.times, len(names)))[:, None]
    rng = np.random.default_rng([asked.seed, 1])
    some = _some(len(names), asked.sample, rng)
    texts = given.texts(names)
    groups = {by: of for by, own in grouped.items() if (of := _by_prompt(own)) is not None}
    terms = terms_of(
        None if texts is None else [texts[at] for at in some],
        {by: codes[some] for by, codes in groups.items()},
    )
    alike = sums[some] @ fitted.inverse_information @ sums[some].T
    return _explained(alike, terms, asked.draws, rng, progress)
