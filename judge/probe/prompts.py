"""Audit of a benchmark's prompts, and the clustering and retrieval axes of similarity measures.

`probe_prompts` asks whether groups of prompts differ, whether that changes the ranking, and what
explains it. `Clustering` and `Retrieval` test a measure on a collection: whether texts of a class
come together, and whether relevant ones are still found. `embed_all` embeds each text once;
replies are stored in a journal.
"""

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy

from judge.asking import REPORTED_S, in_words, wait_before_retry
from judge.calls import Journal, Key, key_of
from judge.case import CallError, Message, Order, Parameters, Reply, Request
from judge.probe.findings import explain, map_of, terms_of
from judge.probe.ranking import (
    MOST_CLUSTERED,
    boards_of_table,
    by_words,
    clusters_of,
    own_mix,
    reach_of_table,
    reach_of_votes,
)
from judge.probe.similarity import (
    CHARACTER_NOISE,
    RANDOM_CASE,
    WIDE_SPACING,
    WORD_SHUFFLE,
    Axis,
    AxisName,
    Measure,
    Part,
    Plan,
    axis_of,
    drawn_from,
    few,
    mean_of,
    means,
    parts_of,
    products,
    ratio,
    scores_of,
    tf_idf,
    tie_groups,
    words,
)
from judge.probe.verdicts import LEAST, SWEEPS, Coherence, margins, of_table, p_value, varying
from judge.studies.estimates import Estimate
from judge.tables.annotations import ASKED, PROMPT_IDS, Annotations, read_annotations
from rating.errors import DataError, RatingError
from rating.fitting import fit
from rating.goodness import Nested, Reweighted, Weighting, nested_test, reweighted
from rating.leave_out import quantile
from rating.mix import Mix, RankReach
from rating.outcome import of_sides
from rating.rows import VoteRows
from rating.tables.columns import Columns, Reading, quoted_names
from rating.tables.counts import read_rows
from rating.tables.duckdb_engine import columns_in_file
from rating.tables.files import Files, expanded, kind_of
from rating.tables.peers import mention
from rating.typing import Floats, Ints

# Audit of prompts


Progress = Callable[[int, int], None]
Groups = Mapping[str, tuple[Ints, tuple[str, ...]]]
"""Codes by column, and what they stand for."""

RESULTS = ("right", "correct", "win", "score", "preference", "value")
"""Columns of a table of results that hold the result, the first that is there."""
IDS = (*PROMPT_IDS, "idx", "session_id", "item_id")
"""Columns that may name the prompt, the first that is there."""
PREFERENCE = 1.5
"""Above it, AlpacaEval's judge prefers the model."""
SAMPLE = 400
"""Prompts of which every two are compared."""
GRADED = (
    "Graded results are drawn from a logistic model. If they do not follow it, for "
    "example because many are at one end of the scale, prompts can look heterogeneous. "
    "--right ABOVE makes results right or wrong, and the test exact."
)
DEALT = {
    "prompt": "groups permuted among prompts",
    "voter": "groups permuted among voters",
    "vote": "groups permuted among votes of the same voter on the same pair of models",
}
NO_VOTER = "groups permuted among votes on the same pair of models"


def _report(
    about: Mapping[str, Any],
    together: Sequence[Coherence],
    boards: Iterable[Reweighted],
    reach: Mapping[str, Sequence[RankReach]],
    likeness: Mapping[str, Any] | None,
    explained: Mapping[str, Any] | None,
    warnings: Iterable[str],
) -> dict[str, Any]:
    """Return what the audit says of prompts as plain values for JSON.

    Parameters
    ----------
    together : sequence of Coherence
        Of the groups asked for, then of the others that can be asked for.
    boards : iterable of Reweighted
        Of other mixes of prompts, beside the one there is.
    reach : mapping of str to sequence of RankReach
        By column of groups: the ranks that each model reaches in mixes of them.
    """
    first, *others = [asdict(one) for one in together]
    envelope = [{"by": by, **asdict(row)} for by, rows in reach.items() for row in rows]
    return {
        "about": about,
        "together": first | {"also": others, "map": likeness},
        "ranking": {"boards": [one.to_dict() for one in boards], "envelope": envelope},
        "explained": explained,
        "warnings": [*warnings],
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
    mix : Mix or None
        Shares of the first of ``by`` to weigh groups by.
    """

    by: tuple[str, ...] = ()
    prompts: Files | None = None
    value: str | None = None
    right: float | None = None
    mix: Mix | None = None
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
) -> dict[str, Any]:
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
        table = replace(files, columns=(*files.columns, *columns))
        return _of_results(read_annotations(table, "results"), asked, known, progress)
    return _of_votes(source, asked, known, Columns.named(columns), progress)


def _is_table(files: Files) -> bool:
    """Tell a table of results, a model and a prompt a row, from votes."""
    path = expanded(files.paths)[0]
    named = {ours for ours, _ in files.columns}
    is_table = kind_of(path) in ("Parquet", "text")
    there = columns_in_file(path) if is_table else [*read_annotations(path).columns]
    return "model" in {*there, *named} and not {*of_sides("model")} <= {*there, *named}


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


# Tables of results


def _of_results(
    table: Annotations, asked: Asked, known: Annotations | None, progress: Progress
) -> dict[str, Any]:
    value = asked.value or next((name for name in RESULTS if table.has(name)), "score")
    models, prompts, given, groups, n_left_out = _read_results(table, value, asked, known)
    right = PREFERENCE if asked.right is None and value == "preference" else asked.right
    values = _from_0_to_1(given, right)
    codes = {name: one for name, (one, _) in groups.items()}
    rng = np.random.default_rng(asked.seed)
    together = of_table(values, codes, draws=asked.draws, rng=rng, progress=progress)
    graded = not np.isin(values, (0, 1)).all()
    texts = _Known.of(known, prompts).texts(prompts)
    alike, some = _alike_results(values, asked)
    texts_of_some = None if texts is None else [texts[at] for at in some]
    failed = (varying(values)[:, some] == 0).all(axis=0).astype(np.float64)
    of_some = {by: one[some] for by, one in codes.items()}
    terms = terms_of(texts_of_some, of_some, failed)
    return _report(
        {
            "results": int(given.size),
            "models": len(models),
            "prompts": len(prompts),
            "left_out": n_left_out,
            "value": value,
            "right_above": right,
            "by": [*groups],
            "seed": asked.seed,
        },
        (*together[1:], together[0]),
        boards_of_table(
            models,
            given,
            groups,
            [*_others(asked, texts, np.arange(len(prompts)), groups)],
            level=asked.level,
        ),
        {by: reach_of_table(models, given, one) for by, (one, _) in groups.items()},
        _map(alike, some, groups, texts_of_some),
        _explained(alike, terms, asked, progress),
        (*((GRADED,) if graded else ()), *_not_clustered(texts)),
    )


def _read_results(
    table: Annotations, value: str, asked: Asked, known: Annotations | None
) -> tuple[tuple[str, ...], tuple[str, ...], Floats, Groups, int]:
    """Give models, the prompts that all of them have, results as they are, groups, and the rest.

    The last is the number of prompts that some model has no result on.
    """
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
        raise DataError(f"{msg} Exclude models with few results.")
    names = tuple(prompts[complete].tolist())
    of_file = _Known.of(known, names)
    groups = {
        one: of_file.groups(one, names) or _own_groups(table, one, prompt, complete)
        for one in asked.by
    }
    return tuple(models.tolist()), names, values[:, complete], groups, int((~complete).sum())


def _own_groups(
    table: Annotations, column: str, prompt: Ints, complete: Any
) -> tuple[Ints, tuple[str, ...]]:
    if not table.has(column):
        there = quoted_names([*table.columns])
        raise DataError(f"There is no column {column!r} to group prompts by; there are {there}.")
    values, names = _coded([str(one) for one in table.need(column)])
    first = np.zeros(len(complete), dtype=np.int64)
    first[prompt] = values
    if (first[prompt] != values)[complete[prompt]].any():
        msg = f"{column!r} differs between results on one prompt, so it does not group prompts: "
        raise DataError(msg + "give one value per prompt.")
    seen, codes = np.unique(first[complete], return_inverse=True)
    return codes.astype(np.int64), tuple(names[code] for code in seen.tolist())


def _from_0_to_1(values: Floats, right: float | None) -> Floats:
    if right is not None:
        return np.asarray((values > right).astype(np.float64))
    low, high = float(values.min()), float(values.max())
    if (low >= 0 and high <= 1) or low == high:
        return values.clip(0, 1)
    return (values - low) / (high - low)


def _alike_results(values: Floats, asked: Asked) -> tuple[Floats, Ints]:
    """Return how alike some prompts are in who does better on them than expected, and which."""
    table = varying(values)
    p = margins(table, SWEEPS)
    z = (table - p) / np.sqrt(p * (1 - p) + LEAST)
    some = _some(z.shape[1], asked)
    return z[:, some].T @ z[:, some] / len(z), some


# Both


def _some(n: int, asked: Asked) -> Ints:
    return np.sort(np.random.default_rng([asked.seed, 1]).permutation(n)[: asked.sample])


def _others(
    asked: Asked, texts: Sequence[str] | None, codes: Ints, groups: Groups
) -> Iterator[Weighting]:
    """Weigh by one's own mix, where there is one, and by words, where they are known.

    Parameters
    ----------
    codes : ndarray of shape (n,), int64
        The prompt of each row.
    groups : mapping of str to (ndarray of shape (n,), tuple of str)
    """
    if asked.mix is not None:
        if not groups:
            raise DataError("A mix consists of groups: name their column with --by.")
        by, (of_row, names) = next(iter(groups.items()))
        yield own_mix(asked.mix, by, names, of_row)
    if texts is not None:
        yield from by_words(texts, codes)


def _not_clustered(texts: Sequence[str] | None) -> Iterator[str]:
    if texts is not None and len(texts) > MOST_CLUSTERED:
        yield (
            f"{len(texts):,} prompts are more than {MOST_CLUSTERED:,}, and are not clustered by "
            "their words."
        )


CELLS_BY_WORDS = 8


def _map(
    alike: Floats, some: Ints, groups: Groups, texts: Sequence[str] | None
) -> dict[str, Any] | None:
    """Lay out how alike some prompts are by the first of the groups, or else by their words."""
    if groups:
        by, (codes, names) = next(iter(groups.items()))
        return map_of(by, alike, codes[some], names)
    if texts is None or len(texts) <= CELLS_BY_WORDS or not any(map(words, texts)):
        return None
    cosine = tf_idf(texts).matrix(texts, texts)
    codes = clusters_of(cosine, (CELLS_BY_WORDS,))[CELLS_BY_WORDS]
    return map_of("words", alike, codes, [f"{n}" for n in range(1, CELLS_BY_WORDS + 1)])


def _explained(
    alike: Floats, terms: Mapping[str, Floats], asked: Asked, progress: Progress
) -> dict[str, Any] | None:
    rng = np.random.default_rng([asked.seed, 2])
    try:
        return explain(alike, terms, draws=asked.draws, rng=rng, progress=progress)
    except DataError:
        return None


# Votes


def _of_votes(
    source: object, asked: Asked, known: Annotations | None, columns: Columns, progress: Progress
) -> dict[str, Any]:
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
        msg = "There is nothing to test homogeneity with: name the prompts, or give --by a column."
        raise DataError(" ".join([msg, *warnings]))
    texts = given.texts(prompts) if prompts else None
    own_groups = {by: (own.groups["by"], own.names["by"]) for by, own in grouped.items()}
    of_row = rows.groups.get("prompt", np.arange(rows.n))
    others = [*_others(asked, texts, of_row, own_groups)]
    boards = {
        one.weighting: one
        for by, own in (grouped or {"group": rows}).items()
        for one in reweighted(own, by, others=others, level=asked.level)
    }
    reach: dict[str, tuple[RankReach, ...]] = {}
    for by, own in grouped.items():
        try:
            reach[by] = reach_of_votes(own)
        except RatingError as error:
            warnings.append(f"Ranks in other mixes of {by}: {error}")
    of_prompts = {
        by: (of, own.names["by"])
        for by, own in grouped.items()
        if (of := _by_prompt(own)) is not None
    }
    likeness: dict[str, Any] | None = None
    explained: dict[str, Any] | None = None
    if prompts:
        alike, some = _alike_votes(rows, asked)
        texts_of_some = None if texts is None else [texts[at] for at in some]
        terms = terms_of(texts_of_some, {by: of[some] for by, (of, _) in of_prompts.items()})
        likeness = _map(alike, some, of_prompts, texts_of_some)
        explained = _explained(alike, terms, asked, progress)
    return _report(
        {
            "votes": rows.n_votes,
            "models": len(rows.models),
            "prompts": len(prompts) or None,
            "voters": len(rows.names.get("voter", ())) or None,
            "by": [*asked.by],
            "seed": asked.seed,
        },
        together,
        boards.values(),
        reach,
        likeness,
        explained,
        (*warnings, *_not_clustered(texts)),
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
    rows: VoteRows, asked: Asked, rng: np.random.Generator, warnings: list[str], progress: Progress
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
            f"{100 * share:.0f}% of the votes are by people who voted in one group of {by} only, "
            "although on several prompts: differences may be between people, not prompts."
        )


def _by_prompt(rows: VoteRows) -> Ints | None:
    """Return the group of each prompt; None unless each lies in one whole."""
    if "prompt" not in rows.groups:
        return None
    prompt, group = rows.groups["prompt"], rows.groups["by"]
    first = np.zeros(len(rows.names["prompt"]), dtype=np.int64)
    first[prompt] = group
    return first if (first[prompt] == group).all() else None


def _alike_votes(rows: VoteRows, asked: Asked) -> tuple[Floats, Ints]:
    """Return how alike some prompts are in whom their votes put ahead, and which they are."""
    names, prompt = rows.names["prompt"], rows.groups["prompt"]
    data = rows.comparisons(prompt=prompt)
    fitted = fit(data)
    assert data.prompt is not None
    sums = fitted.scored(data).scores(data.prompt.astype(np.int64), len(names))
    sums /= np.sqrt(np.bincount(prompt, rows.times, len(names)))[:, None]
    some = _some(len(names), asked)
    return sums[some] @ fitted.inverse_information @ sums[some].T, some


# Clustering and retrieval


HALVES = 20
"""Random halves of the texts, each clustered again, behind an interval."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Texts, and the class each belongs to.

    Attributes
    ----------
    label : ndarray of shape (n_texts,)
        Number of the class, from 0.
    """

    texts: tuple[str, ...]
    label: Ints
    data: str

    @classmethod
    def plan(cls, texts: Sequence[str], labels: Sequence[str], data: str) -> Self:
        """Give each class a number.

        Raises
        ------
        DataError
            If lengths differ, or there are fewer than two classes or four texts.
        """
        if len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels: give each text one.")
        classes, label = np.unique(np.array(labels), return_inverse=True)
        if len(classes) < 2 or len(texts) < 4:
            msg = f"{len(texts)} texts of {len(classes)} classes: clustering needs four of two."
            raise DataError(msg)
        return cls(tuple(texts), label, data)

    def ask(self, measure: Measure) -> Floats:
        """Score every text against every other, shape (n_texts, n_texts)."""
        return scores_of(measure.name, measure.fit(self.texts).matrix(self.texts, self.texts))

    def truth(self) -> Floats:
        """Return what an oracle answers: 1 for texts of one class, else 0."""
        return np.equal.outer(self.label, self.label).astype(np.float64)

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Cluster the texts, and compare with their classes.

        Average linkage over ``1 - (s(x, y) / s(x, x) + s(y, x) / s(y, y)) / 2``, cut into as many
        clusters as there are classes. The value is the V-measure ``2 h c / (h + c)``, adjusted
        for what a random assignment with these sizes of clusters gets. Its interval is
        ``value +- t sd``, cut at 1, sd over random halves of the texts, each clustered again: that
        of half of the texts is the standard error of all. Texts are put into a random order
        first, because ties go by order, and a file may hold the classes one after the other.

        Returns
        -------
        Axis
            Parts: ``v_measure``, ``homogeneity``, ``completeness``, and the adjusted Rand index.

        References
        ----------
        .. [1] A. Rosenberg and J. Hirschberg, "V-measure", EMNLP 2007.
        .. [2] N. X. Vinh, J. Epps and J. Bailey, "Information theoretic measures for clusterings
           comparison", JMLR 11, 2010: the adjusted mutual information over the mean entropy.
        .. [3] J. Shao and C. F. J. Wu, "A general theory for jackknife variance estimation",
           Annals of Statistics 17(3), 1989: omitting half.
        """
        n = len(self.texts)
        own = np.diagonal(scores)[:, None]
        share = np.divide(scores, own, out=np.zeros_like(scores), where=own > 0)
        share += share.T
        distance = np.clip(1 - share / 2, 0, None)
        np.fill_diagonal(distance, 0)

        orders = [rng.permutation(n)[:size] for size in (n, *[n // 2] * HALVES)]
        whole, *halves = [_figures(distance[np.ix_(o, o)], self.label[o]) for o in orders]
        reach = quantile(0.95, HALVES - 1) * np.std(halves, axis=0, ddof=1)
        drawn = [
            Estimate(float(v), float(v - r), float(min(v + r, 1)), n)
            for v, r in zip(whole, reach, strict=True)
        ]
        parts = tuple(
            Part("agreement with classes", name, one)
            for name, one in zip(FIGURES, drawn, strict=True)
        )
        return Axis(AxisName.CLUSTERING, drawn[0], parts[1:], n, self.data, few(n, "texts"))


FIGURES = ("adjusted V-measure", "V-measure", "homogeneity", "completeness", "adjusted Rand index")


def _figures(distance: Floats, label: Ints) -> tuple[float, ...]:
    # Imported here: it takes a second, and most processes never need it.
    from sklearn import metrics

    close = scipy.spatial.distance.squareform(distance, checks=False)
    tree = scipy.cluster.hierarchy.linkage(close, "average")
    group = scipy.cluster.hierarchy.fcluster(tree, len(np.unique(label)), "maxclust")
    homogeneity, completeness, v = metrics.homogeneity_completeness_v_measure(label, group)
    return (
        float(metrics.adjusted_mutual_info_score(label, group)),
        float(v),
        float(homogeneity),
        float(completeness),
        float(metrics.adjusted_rand_score(label, group)),
    )


DEPTH = 10
NOISE = 0.5
"""Length of the foreign words behind a question, over its own."""
DISTURBED = (RANDOM_CASE, CHARACTER_NOISE, WIDE_SPACING, WORD_SHUFFLE)
FOREIGN = "foreign words"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Questions, clean and disturbed, and the texts to find.

    Attributes
    ----------
    questions : tuple of tuple of str
        ``questions[t][q]`` is question q under disturbance t; the first row is clean.
    disturbances : tuple of str
        Names of the rows behind the first.
    relevant : ndarray of shape (n_questions, n_texts), float64
        How relevant a text is to a question; 0 for not at all.
    """

    questions: tuple[tuple[str, ...], ...]
    disturbances: tuple[str, ...]
    texts: tuple[str, ...]
    relevant: Floats
    data: str

    @classmethod
    def plan(
        cls,
        questions: Sequence[str],
        texts: Sequence[str],
        relevant: Mapping[tuple[int, int], float],
        data: str,
        *,
        rng: np.random.Generator,
    ) -> Self:
        """Disturb the questions.

        Parameters
        ----------
        relevant : mapping
            From the indices of a question and a text to how relevant it is.

        Raises
        ------
        DataError
            If a question has no relevant text, or there are fewer texts than are ranked.
        """
        gains = np.zeros((len(questions), len(texts)))
        for (question, text), gain in relevant.items():
            gains[question, text] = gain
        lost = np.flatnonzero(gains.max(axis=1, initial=0) <= 0)
        if len(lost):
            msg = f"Question {lost[0]}, {questions[lost[0]]!r}, has no relevant text:"
            raise DataError(f"{msg} exclude it.")
        if len(texts) < DEPTH:
            raise DataError(f"{len(texts)} texts to find: the first {DEPTH} are ranked.")
        made = [tuple(each.apply(q, rng) for q in questions) for each in DISTURBED]
        foreign = tuple(_with_foreign(q, texts[int(rng.integers(len(texts)))]) for q in questions)
        names = (*(each.name for each in DISTURBED), FOREIGN)
        return cls((tuple(questions), *made, foreign), names, tuple(texts), gains, data)

    def ask(self, measure: Measure) -> Floats:
        """Score texts for questions, shape (1 + n_disturbances, n_questions, n_texts)."""
        asked = [question for row in self.questions for question in row]
        scores = measure.fit(self.texts).matrix(asked, self.texts)
        return scores_of(measure.name, scores).reshape(-1, *self.relevant.shape)

    def truth(self) -> Floats:
        """Return what an oracle answers: how relevant a text is."""
        return np.repeat(self.relevant[None], len(self.questions), axis=0)

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate what of the best ranking is left when questions are disturbed.

        The value is the mean over disturbances of NDCG@10, adjusted for the mean over all orders
        of the texts: ``(NDCG - floor) / (1 - floor)``. Texts that tie share their ranks.

        Returns
        -------
        Axis
            Parts: ``NDCG@10``, unadjusted, of clean and disturbed questions; ``kept``, that of
            each disturbance over that of clean questions, and their mean (RR). A measure that
            finds nothing has nothing to lose: its share kept says little.

        References
        ----------
        .. [1] K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
           ACM TOIS 20(4), 2002; with ties: F. McSherry and M. Najork, ECIR 2008.
        """
        table = np.array([_ndcg(row, self.relevant) for row in scores]).T
        floor = _ndcg(np.zeros_like(self.relevant), self.relevant)
        adjusted = (table - floor[:, None]) / (1 - floor[:, None])
        drawn = means(np.hstack([adjusted, table]), rng=rng)
        k = len(self.questions)
        clean, disturbed = drawn[k], drawn[k + 1 :]
        shares = [drawn_from(ratio, one, clean, n=one.n) for one in disturbed]
        parts = [
            *parts_of("NDCG@10", ("clean", *self.disturbances), drawn[k:]),
            *parts_of("kept", self.disturbances, shares),
            Part("kept", "mean", mean_of(shares).estimate()),
        ]
        return axis_of(
            AxisName.RETRIEVAL,
            mean_of(drawn[1:k]),
            parts,
            clusters=table.shape[0],
            what="questions",
            data=self.data,
        )


def _with_foreign(question: str, text: str) -> str:
    n = max(1, round(NOISE * len(question.split())))
    return " ".join([question, *text.split()[:n]])


def _ndcg(scores: Floats, gains: Floats) -> Floats:
    """Return NDCG@10 of each question, shape (n_questions,)."""
    discount = 1 / np.log2(np.arange(2, DEPTH + 2))
    best = np.sort(gains, axis=1)[:, ::-1][:, :DEPTH] @ discount
    ranked = np.array([_gains_by_rank(s, g) for s, g in zip(scores, gains, strict=True)])
    return np.asarray(ranked @ discount / best)


def _gains_by_rank(scores: Floats, gains: Floats) -> Floats:
    """Return the gain at each of the first ranks, the mean of those that tie there."""
    group = tie_groups(-scores)
    sizes = np.bincount(group)
    return np.asarray(np.repeat(np.bincount(group, gains) / sizes, sizes)[:DEPTH])


# Embeddings


Vectors = Mapping[str, Floats]

AT_ONCE = 64
"""Texts in one request."""
LOOK_AGAIN_S = 1.0
"""Between looks for texts that another process asks about."""
_EMBEDDED = Parameters(max_tokens=0)


Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Embeds texts with one model, once: a vector for each, in their order. Raises `CallError`."""


def embedding_measure(model: str, vectors: Vectors) -> Measure:
    """Return the cosine of a model's embeddings; a vector of zeros is like nothing."""

    def units(texts: Sequence[str]) -> Floats:
        rows = np.array([vectors[text] for text in texts])
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(length > 0, length, 1))

    scorer = products(lambda references, texts: (units(references), units(texts)))
    return Measure(f"{model} cosine", f"cosine of embeddings by {model}", lambda _: scorer)


def texts_asked(plans: Iterable[Plan]) -> tuple[str, ...]:
    """Return every text that is scored under these plans, once."""
    met: dict[str, None] = {}

    def noted(references: Sequence[str], texts: Sequence[str]) -> tuple[Floats, Floats]:
        met.update(dict.fromkeys([*references, *texts]))
        return np.zeros((len(references), 1)), np.zeros((len(texts), 1))

    for plan in plans:
        plan.ask(Measure("texts", "notes what it is asked", lambda _: products(noted)))
    return tuple(met)


async def embed_all(
    texts: Iterable[str],
    embed: Embed,
    journal: Journal,
    *,
    model: str,
    sleep: Callable[[float], Awaitable[None]],
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Vectors:
    """Embed texts, each once for ever: what the journal holds is not asked again.

    A vector is kept as the reply to its text, as JSON, under a key of the text and the model. A
    run that broke off goes on where it was, and what another process asks about is waited for.

    Parameters
    ----------
    model : str
        What embeds, down to its revision.
    progress : callable
        Takes the number of texts that have a vector, and the number of all.

    Raises
    ------
    CallError
        If the endpoint fails for good; what came before is kept.
    DataError
        If it returns another number of vectors, or vectors of another length.
    """
    request = {text: Request((Message("user", text),), _EMBEDDED) for text in dict.fromkeys(texts)}
    key = {text: key_of(one, f"embedding: {model}", Order.AB) for text, one in request.items()}
    vectors = await _recalled(journal, key)
    left = [text for text in key if text not in vectors]
    while left:
        for start in range(0, len(left), AT_ONCE):
            progress(len(vectors), len(key))
            batch = {text: key[text] for text in left[start : start + AT_ONCE]}
            async with _claimed(journal, batch) as ours:
                if ours:
                    made = await _patiently(embed, ours, sleep, rng)
                    replies = [Reply(text=json.dumps([*map(float, one)])) for one in made]
                    rows = zip(ours, replies, strict=True)
                    await asyncio.gather(*(journal.keep(key[t], request[t], r) for t, r in rows))
            vectors |= await _recalled(journal, batch)
        left = [text for text in left if text not in vectors]
        if left:
            await sleep(LOOK_AGAIN_S)
    progress(len(vectors), len(key))
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise DataError(f"Embeddings by {model} differ in length: is it one model?")
    return vectors


async def _recalled(journal: Journal, key: Mapping[str, Key]) -> dict[str, Floats]:
    replies = await journal.recall(list(key.values()))
    return {
        text: np.array(json.loads(replies[name].text), dtype=np.float64)
        for text, name in key.items()
        if name in replies
    }


@asynccontextmanager
async def _claimed(journal: Journal, key: Mapping[str, Key]) -> AsyncIterator[list[str]]:
    """Give the texts that are ours to ask about; without an answer the claim is given up."""
    claimed = await journal.claim(list(key.values()))
    try:
        yield [text for text, name in key.items() if name in claimed]
    except BaseException:
        replies = await journal.recall(claimed)
        await journal.release(claimed - replies.keys())
        raise


async def _patiently(
    embed: Embed,
    batch: Sequence[str],
    sleep: Callable[[float], Awaitable[None]],
    rng: np.random.Generator,
) -> Sequence[Sequence[float]]:
    tries, waited = 0, 0.0
    while True:
        try:
            vectors = await embed(batch)
        except CallError as error:
            tries += 1
            wait = wait_before_retry(error, tries, rng, waited)
            if wait is None:
                raise
            if wait > REPORTED_S:
                mention(in_words(wait, error))
            waited += wait
            await sleep(wait)
        else:
            if len(vectors) != len(batch):
                raise DataError(f"{len(vectors)} embeddings for {len(batch)} texts.")
            return vectors
