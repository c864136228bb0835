"""Audit of judges by repeated and swapped verdicts, coherence of prompts, and interventions.

`probe_judges` compares verdicts on the same cases over reruns and orders. `of_table` tests whether
prompts hang together, against random tables with the same margins. `interventions` and `altered`
change answers, and what is beside them, each with its control.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from judge.case import Case, CaseId, Message, Order
from judge.probe.audit import PARTS, Audit, discriminability
from judge.probe.ranking import Desideratum, on_consistency, on_reruns, unknown
from judge.probe.robustness import (
    Probe,
    RerunNoise,
    consistency,
    difference_multiplier,
    filled,
    honest_cases,
    injections,
)
from judge.probe.similarity import (
    INSERTED,
    PERTURBATIONS,
    REMOVED,
    RENAMED_LABELS,
    Kind,
    Place,
    doses,
    plain_text,
)
from judge.protocol import neutralised
from judge.studies.estimates import Draws, Estimate, clustered
from judge.studies.rows import Items
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError, RatingError
from rating.leave_out import (
    draw_counts,
    influence_factor,
    influence_variance,
    quantile,
    sums_within,
)
from rating.outcome import of_sides
from rating.tables.files import Files
from rating.tables.vote_filter import BOTH
from rating.typing import Bools, Floats, Ints

# Reruns and orders


NO_TRUTH = (
    "Verdicts alone do not determine this: the truth of these cases is unknown. Compare "
    "with votes of people on the same cases (arena study judge)."
)


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """Verdicts of a judge on the same cases, of several runs and orders.

    Attributes
    ----------
    cases : Items
    runs : mapping of str to ndarray of shape (n_cases,), float64
        By run: 1 for side A, 0 for a tie, -1 for side B, NaN where nothing was read.
    orders : mapping of str to ndarray of shape (n_cases,), float64
        The same by the order shown, in the case's own sides; empty where orders are not known.
    """

    cases: Items
    runs: Mapping[str, Floats]
    orders: Mapping[str, Floats]

    def only(self, rows: Bools | Ints) -> "Verdicts":
        """Return the verdicts on some cases."""
        runs, orders = (
            {name: label[rows] for name, label in labels.items()}
            for labels in (self.runs, self.orders)
        )
        return Verdicts(self.cases.only(rows), runs, orders)

    def read_by_all(self) -> "Verdicts":
        """Return the cases that every run and every order has a verdict on."""
        labels = np.array([*self.runs.values(), *self.orders.values()])
        return self.only(np.asarray(~np.isnan(labels).any(axis=0)))


class _Changed(NamedTuple):
    """How often two verdicts on one case differ, with the interval over prompts."""

    reruns: Estimate | None
    orders: Estimate | None


class _Board(NamedTuple):
    """Win rates and what they claim, errors over prompts; all claims together hold at 95%."""

    rate: Floats
    se: Floats
    above: Bools
    by_prompt: Floats
    """What each prompt adds to the mean of ``se**2`` over models."""


FEWEST_PROMPTS = 20
"""Fewest prompts on which boards are compared."""
RESAMPLED = 400
"""Draws of prompts behind the interval of a rank correlation."""


def audit_verdicts(name: str, verdicts: Verdicts, *, rng: np.random.Generator) -> Audit:
    """Audit a judge on cases that it judged more than once.

    Scores are win rates over the cases, ties half. Reruns: their noise is compared with the
    standard error of a win rate over prompts. Consistency: boards by run and by order, their
    rank correlations with an interval over prompts drawn again. Discriminability: the prompts in
    nine parts, or fewer, drawn at random. Validity and more votes need a truth, which verdicts do
    not hold. A judge passes or fails by whole intervals, whatever the number of prompts: with few
    of them it often does neither.

    Raises
    ------
    DataError
        If no case was read throughout, or a model is in none of those that were, or they are
        of a single prompt.
    """
    read = verdicts.read_by_all()
    met, models = np.unique(read.cases.pairs), read.cases.models
    if not len(met) or len(met) < len(models):
        lost = [models[i] for i in range(len(models)) if i not in met]
        raise DataError(f"No case that was parsed in every run and order has {', '.join(lost)}.")
    if len(np.unique(read.cases.prompt)) < 2:
        raise DataError("All cases are of one prompt: errors over prompts need two or more.")
    boards = {run: _board(read, label) for run, label in read.runs.items()}
    changed = verdicts_changed(read, rng=rng)
    return Audit(
        name,
        (
            _reruns(read, boards, changed),
            unknown("validity", NO_TRUTH),
            _discriminability(read, rng),
            _consistency(read, boards, changed, rng),
            unknown("monotone", NO_TRUTH),
        ),
    )


def verdicts_changed(verdicts: Verdicts, *, rng: np.random.Generator) -> _Changed:
    """Return how often two runs, and the two orders, differ on a case; None where there is one."""
    kinds = (verdicts.runs, verdicts.orders)
    return _Changed(*(_changed(verdicts, labels, rng) for labels in kinds))


def _changed(
    verdicts: Verdicts, labels: Mapping[str, Floats], rng: np.random.Generator
) -> Estimate | None:
    pairs = [*combinations(labels.values(), 2)]
    if not pairs:
        return None
    differ = np.mean([one != other for one, other in pairs], axis=0)
    rows = np.column_stack([differ, np.ones(len(differ))])
    stats = sums_within(verdicts.cases.prompt, rows, verdicts.cases.n_prompts)
    return clustered(stats, lambda sums: sums[:, 0] / sums[:, 1], Draws(rng), n=len(differ))


def _reruns(verdicts: Verdicts, boards: Mapping[str, _Board], changed: _Changed) -> Desideratum:
    if changed.reruns is None:
        return unknown("reruns", "There is one run: judge the same cases again, and give both.")
    noise, ends = _noise(verdicts, boards)
    se = float(np.sqrt(np.mean([board.se**2 for board in boards.values()])))
    alone = on_reruns(noise, se, ends, sample=_sample(verdicts))
    text = f"{alone.text} Two runs differ on {_percent(changed.reruns)} of the cases."
    numbers = {**alone.numbers, "verdicts_changed": changed.reruns.to_dict()}
    return replace(alone, text=text, numbers=numbers)


def _noise(
    verdicts: Verdicts, boards: Mapping[str, _Board]
) -> tuple[RerunNoise, tuple[float, float]]:
    """Measure what a rerun moves a win rate by, and the 95% interval of that over its error.

    The judge answers each case again, so the noise of a win rate is the sum of that of its cases:
    ``sum v_c / games^2``, v_c the variance of a case's score over runs. This many prompts tell it
    from few runs. The ratio's interval is that of a ratio of sums over prompts, on the log scale,
    Student's t. Of a judge that changed none, it is how large the ratio may be: with a share f of
    verdicts changed between two runs, the noise is ``sqrt(2 f)`` of the error of independent even
    cases, and Clopper and Pearson's upper end of f is ``1 - 0.025^(1 / n)``.
    """
    score = (1 + np.array([*verdicts.runs.values()])) / 2
    n_runs, n_cases = score.shape
    games = np.bincount(verdicts.cases.pairs.ravel(), minlength=len(verdicts.cases.models))
    part = (1 / games[verdicts.cases.pairs] ** 2).sum(axis=1) / len(games)
    there = np.unique(verdicts.cases.prompt)
    by_prompt = np.bincount(verdicts.cases.prompt, part * score.var(axis=0, ddof=1))
    moved = by_prompt[there].astype(np.float64)
    error = np.mean([board.by_prompt for board in boards.values()], axis=0)[there]
    sd, df = math.sqrt(float(moved.sum())), n_cases * (n_runs - 1)
    own = _reach(moved, np.ones(len(moved)))
    noise = RerunNoise(
        n_entrants=len(games),
        n_runs=n_runs,
        sd=sd,
        sd_lower=sd / own,
        sd_upper=sd * own,
        cv=sd / float(np.mean([board.rate for board in boards.values()])),
        smallest=difference_multiplier(df) * sd,
        smallest_averaged=difference_multiplier(df, n_runs) * sd,
    )
    if not sd:
        return noise, (0.0, math.sqrt(2 * (1 - 0.025 ** (1 / n_cases))))
    ratio, reach = noise.over(math.sqrt(float(error.sum()))), _reach(moved, error)
    return noise, (ratio / reach, ratio * reach)


def _reach(one: Floats, other: Floats) -> float:
    """Return the factor to either end of the interval of ``sqrt(sum one / sum other)``.

    On the log scale, by the influence of each prompt; 1 where one of the sums is zero.
    """
    if not (one.any() and other.any()):
        return 1.0
    n, influence = len(one), one / one.sum() - other / other.sum()
    return math.exp(quantile(0.95, n - 1) * math.sqrt(influence_variance(influence)) / 2)


def _consistency(
    verdicts: Verdicts, boards: Mapping[str, _Board], changed: _Changed, rng: np.random.Generator
) -> Desideratum:
    labels = {**verdicts.runs, **verdicts.orders}
    by_order = {order: _board(verdicts, label) for order, label in verdicts.orders.items()}
    every = [*boards.items(), *by_order.items()]
    if len(every) < 2:
        return unknown("consistency", "There is one board: give another run, or both orders.")
    rate, above = ([getattr(board, name) for _, board in every] for name in ("rate", "above"))
    ends = (-1.0, 1.0)
    if len(np.unique(verdicts.cases.prompt)) >= FEWEST_PROMPTS:
        ends = _lowest_correlation(verdicts, [*labels.values()], rng)
    alone = on_consistency(
        consistency([name for name, _ in every], np.array(rate), np.array(above)),
        sample=_sample(verdicts),
        ends=ends,
    )
    if changed.orders is None:
        return alone
    first, second = verdicts.orders.values()
    lean = float((first - second).mean()) / 2
    text = (
        f"{alone.text} With the order exchanged, the verdict changes on "
        f"{_percent(changed.orders)} of the cases; position shifts it by {lean:+z.3f} towards "
        "the answer shown first."
    )
    numbers = {"orders_changed": changed.orders.to_dict(), "lean_to_first": lean}
    return replace(alone, text=text, numbers={**alone.numbers, **numbers})


def _lowest_correlation(
    verdicts: Verdicts, labels: Sequence[Floats], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the 95% interval of the lowest rank correlation, over prompts drawn again.

    A draw that leaves a board flat, or a model out, counts as a correlation of -1.
    """
    tables = [_by_prompt(verdicts, label) for label in labels]
    weight = draw_counts(len(tables[0][0]), RESAMPLED, rng)
    with np.errstate(invalid="ignore"):
        ranks = [
            scipy.stats.rankdata((weight @ won) / (weight @ of), axis=1) for won, of in tables
        ]
        centred = [rank - rank.mean(axis=1, keepdims=True) for rank in ranks]
        unit = [rank / np.linalg.norm(rank, axis=1, keepdims=True) for rank in centred]
    each = [(one * other).sum(axis=1) for one, other in combinations(unit, 2)]
    lowest = np.nan_to_num(np.min(each, axis=0), nan=-1.0)
    low, high = np.quantile(lowest, [0.025, 0.975])
    return float(low), float(high)


def _discriminability(verdicts: Verdicts, rng: np.random.Generator) -> Desideratum:
    if len(verdicts.runs) < 2:
        return unknown("discriminability", "There is one run: shares of variance need two.")
    tables = [_by_prompt(verdicts, label) for label in verdicts.runs.values()]
    order = rng.permutation(len(tables[0][0]))
    looks = (_looks(tables, order % parts, parts) for parts in PARTS)
    why = f"Some model is in no case of a part in {PARTS[-1]} of the prompts."
    return discriminability(looks, why, _sample(verdicts), rng)


def _looks(tables: Sequence[tuple[Floats, Floats]], part: Ints, parts: int) -> Floats | None:
    """Return win rates by model, run and part; None where a model is not in some part."""
    in_part = np.equal.outer(np.arange(parts), part).astype(np.float64)
    wins, games = (
        np.stack([in_part @ table[i] for table in tables]).transpose(2, 0, 1) for i in (0, 1)
    )
    return wins / games if games.all() else None


def _board(verdicts: Verdicts, label: Floats) -> _Board:
    """Rate by shares of the cases won; errors by the influence of each prompt on a ratio."""
    wins, games = _by_prompt(verdicts, label)
    rate = wins.sum(axis=0) / games.sum(axis=0)
    influence = (wins - rate * games) / games.sum(axis=0)
    n, pairs = int((games > 0).any(axis=1).sum()), len(rate) * (len(rate) - 1) / 2
    spread = influence_factor(n) * influence.T @ influence
    variance = np.diag(spread)
    square = variance[:, None] + variance - 2 * spread
    bar = quantile(1 - 0.05 / pairs, n - 1) * np.sqrt(square.clip(min=0))
    above = rate[:, None] - rate > np.maximum(bar, 1e-12)
    by_prompt = influence_factor(n) * (influence**2).mean(axis=1)
    return _Board(rate, np.sqrt(variance), above, by_prompt)


def _by_prompt(verdicts: Verdicts, label: Floats) -> tuple[Floats, Floats]:
    """Return wins and cases of each model on each prompt, shape (n_prompts, n_models)."""
    cases = verdicts.cases
    n_prompts, n_models = cases.n_prompts, len(cases.models)
    wins, games = np.zeros((n_prompts, n_models)), np.zeros((n_prompts, n_models))
    for side, score in ((0, (1 + label) / 2), (1, (1 - label) / 2)):
        np.add.at(wins, (cases.prompt, cases.pairs[:, side]), score)
        np.add.at(games, (cases.prompt, cases.pairs[:, side]), 1)
    return wins, games


def _sample(verdicts: Verdicts) -> str:
    return f"{len(np.unique(verdicts.cases.prompt)):,} prompts"


def _percent(share: Estimate) -> str:
    value = math.nan if share.value is None else share.value
    if share.lower is None or share.upper is None:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.1f}% ({100 * share.lower:.1f} to {100 * share.upper:.1f})"


ProbeCase = tuple[str, ...]
Labels = dict[ProbeCase, float]

UNNAMED = "judge"
CASE = ("battle_id", "item_id", "turn")
"""Columns that tell cases of one prompt and pair apart, where they are there."""
ORDERS = {Order.AB.value: "A first", Order.BA.value: "B first"}
OTHER = {order.value: order.other.value for order in Order}
SHOWN = (BOTH, Order.AB.value, "", Order.BA.value)
"""Which order's verdict counts as that of a run: the first of these that there is."""


def probe_judges(files: Sequence[str | Path | Files], *, seed: int) -> dict[str, Any]:
    """Audit judges by their verdicts.

    A file is a run, unless it has a column ``run``. Verdicts of one judge on the same case
    (prompt, pair of models, and what of battle_id, item_id and turn all files have) are compared.

    Raises
    ------
    DataError
        If a file cannot be read, a case comes twice in a run and an order, or a judge has no case
        that was read throughout.
    """
    tables = [read_annotations(file, peers=True) for file in files]
    extra = tuple(name for name in CASE if all(table.has(name) for table in tables))
    if len({str(file) for file in files}) < len(files):
        msg = f"A file is named twice: {', '.join(map(str, files))}. Name each run's own file."
        raise DataError(msg)
    known: set[ProbeCase] = set()
    labels: dict[str, dict[str, dict[str, Labels]]] = {}
    met: dict[str, dict[ProbeCase, None]] = {}
    for table in tables:
        name = Path(table.source).name if len(files) > 1 else "run 1"
        for judge, run, order, case, label in _rows(table, extra, name, known):
            own = labels.setdefault(judge, {}).setdefault(run, {}).setdefault(order, {})
            if case in own:
                where = f"{run!r}, order {order!r}" if order else f"{run!r}"
                raise DataError(
                    f"The case {' / '.join(case)} comes twice in {where}: name each run's file, "
                    f"or add a column that tells cases apart, one of run, {', '.join(CASE)}."
                )
            own[case] = label
            met.setdefault(judge, {})[case] = None
    audits, counts = [], {}
    for judge, by_run in labels.items():
        verdicts = _verdicts([*met[judge]], by_run)
        counts[judge] = {
            "runs": list(verdicts.runs),
            "orders": list(verdicts.orders),
            "cases": verdicts.cases.n,
            "read_throughout": verdicts.read_by_all().cases.n,
            "models": len(verdicts.cases.models),
        }
        try:
            audited = audit_verdicts(judge, verdicts, rng=np.random.default_rng(seed))
        except RatingError as error:
            raise DataError(f"Of {judge!r}: {error}") from error
        audits.append(audited.to_dict())
    names = [Path(str(file)).name for file in files]
    return {"about": {"files": names, "judges": counts, "seed": seed}, "audits": audits}


def _rows(
    table: Annotations, extra: Sequence[str], run: str, known: set[ProbeCase]
) -> Iterator[tuple[str, str, str, ProbeCase, float]]:
    """Give judge, run, order, case and label: 1 for side A, NaN where it was not parsed.

    A case with its sides exchanged is put into those it was first met in.
    """
    columns = [table.texts(name) for name in ("prompt_id", *of_sides("model"), *extra)]
    winner = table.need("winner")
    judges = table.texts("judge") if table.has("judge") else [UNNAMED] * table.n
    runs = table.texts("run") if table.has("run") else [run] * table.n
    orders = table.need("order") if table.has("order") else [None] * table.n
    for i, (prompt, a, b, *more) in enumerate(zip(*columns, strict=True)):
        case, turned = (prompt, a, b, *more), (prompt, b, a, *more)
        exchanged = turned in known
        known.add(turned if exchanged else case)
        label = table.label(i, winner[i])
        order = str(orders[i] or "")
        if exchanged:
            case, label, order = turned, -label, OTHER.get(order, order)
        yield judges[i], runs[i], order, case, label


def _verdicts(cases: Sequence[ProbeCase], labels: Mapping[str, Mapping[str, Labels]]) -> Verdicts:
    models = tuple(sorted({name for case in cases for name in case[1:3]}))
    place = {name: i for i, name in enumerate(models)}
    prompts = {name: i for i, name in enumerate(dict.fromkeys(case[0] for case in cases))}
    both = next((one for one in labels.values() if all(x in one for x in ORDERS)), {})
    return Verdicts(
        cases=Items(
            models,
            np.array([[place[case[1]], place[case[2]]] for case in cases], dtype=np.int64),
            np.array([prompts[case[0]] for case in cases], dtype=np.int64),
        ),
        runs={run: _column(cases, _shown(by_order)) for run, by_order in labels.items()},
        orders={name: _column(cases, both[order]) for order, name in ORDERS.items() if both},
    )


def _shown(by_order: Mapping[str, Labels]) -> Labels:
    order = next((one for one in SHOWN if one in by_order), None)
    if order is None:
        known = ", ".join(repr(one) for one in SHOWN if one)
        msg = f"There is no order {next(iter(by_order))!r}: the column order holds {known}."
        raise DataError(msg)
    return by_order[order]


def _column(cases: Sequence[ProbeCase], labels: Labels) -> Floats:
    return np.array([labels.get(case, np.nan) for case in cases])


# Coherence of prompts


Progress = Callable[[int, int], None]

DRAWS = 999
ANY = "any groups"
"""What the largest eigenvalue asks for: groups that nobody named."""

CURVEBALL = "all tables of right and wrong with these margins"
BOOTSTRAP = "tables drawn from the margins"

RIDGE = 0.3
"""Inverse variance of the difficulties: a prompt that all models fail is hard, not impossible."""
SWEEPS = 30
SWEEPS_OF_DRAWS = 12
"""Of tables drawn from margins, and of the table beside them."""
LEAST = 0.001
"""Added to the variance of a result: one that was certain does not weigh without end."""
BURN_IN, BETWEEN = 15, 4
"""Trades of a chain before the first table and between two, a model."""
LOGIT_BOUND = 12.0


@dataclass(frozen=True, slots=True)
class Coherence:
    """A statistic of how far prompts hang together, and what it is where they do not.

    Attributes
    ----------
    of : str
        The column of the groups, or `ANY`.
    n_groups : int or None
    statistic, null_mean, null_sd : float
    p : float
        ``(1 + draws at least as large) / (draws + 1)``.
    draws : int
    null : str
        What was drawn.
    explained : float or None
        Share of the squared residuals that lies between the groups, above what it is where
        prompts do not hang together.
    design_effect : float or None
        Variance of the scores by group over that of independent prompts (of ratings: votes).
    """

    of: str
    n_groups: int | None
    statistic: float
    null_mean: float
    null_sd: float
    p: float
    draws: int
    null: str
    explained: float | None
    design_effect: float | None


def p_value(statistic: float, drawn: Floats) -> float:
    """Return the share of all values, the one seen among them, that are as large.

    >>> p_value(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    close = 1e-9 * max(1.0, abs(statistic))  # sums in another order differ in their last digits
    return float((1 + (drawn >= statistic - close).sum()) / (len(drawn) + 1))


def of_table(
    values: Floats,
    groups: Mapping[str, Ints],
    *,
    draws: int = DRAWS,
    rng: np.random.Generator,
    progress: Progress = lambda *_: None,
) -> tuple[Coherence, ...]:
    """Ask whether prompts hang together in a table of results, beyond abilities and difficulties.

    With ``Z = (Y - P) / sqrt(P (1 - P) + 0.001)``, P of a logistic model of abilities and
    difficulties: the largest eigenvalue of ``Z Z' / n_prompts`` (groups that nobody named), and
    for given groups c ``sum_c |sum_(t in c) z_t|^2 / n_c / n_models``.

    Where all results are 0 or 1, abilities and difficulties are held by the sums of rows and
    columns: given these, all tables are equally likely, and they are drawn by the curveball chain.
    P is of the sums alone, and so the same for all. Graded results are drawn from the fitted model
    (beta, with the dispersion of the residuals) and fitted again; statistics are then over the
    dispersion.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
        From 0 to 1.
    groups : mapping of str to ndarray of shape (n_prompts,), int64
        Codes by column.

    Raises
    ------
    DataError
        For a value outside, or fewer than three models or prompts that are not all alike.

    References
    ----------
    .. [1] G. Strona et al., "A fast and unbiased procedure to randomize ecological binary
       matrices with fixed row and column totals", Nature Communications 5, 2014, 4114.
    .. [2] N. D. Verhelst, "An efficient MCMC algorithm to sample binary matrices with fixed
       marginals", Psychometrika 73, 2008 (the Rasch model).
    .. [3] W. Siska et al., "Examining the robustness of LLM evaluation to the distributional
       assumptions of benchmarks", ACL 2024, arXiv 2404.16966, whose question this is.
    """
    table = varying(values)
    binary = bool(np.isin(table, (0.0, 1.0)).all())
    seen = _Statistics(table, groups, binary=binary, sweeps=SWEEPS if binary else SWEEPS_OF_DRAWS)
    observed = seen.of(table)
    drawn = np.empty((draws, len(observed)))
    tables = curveball(table, rng) if binary else _from_margins(seen, rng)
    for row, other in zip(range(draws), tables, strict=False):
        drawn[row] = seen.of(other)
        progress(row + 1, draws)
    return tuple(_coherences(seen, observed, drawn, CURVEBALL if binary else BOOTSTRAP))


def varying(values: Floats) -> Floats:
    """Exclude models whose results are all alike: their ability has no finite value.

    Raises
    ------
    DataError
        As `of_table`.
    """
    if not ((values >= 0) & (values <= 1)).all():
        raise DataError("A result lies outside 0 to 1: give results from 0 to 1.")
    table: Floats = values[values.min(axis=1) < values.max(axis=1)]
    if min(table.shape) < 3:
        m, n = table.shape
        msg = f"{m} models whose results vary, and {n} prompts: there must be three of each."
        raise DataError(msg)
    return table


def margins(table: Floats, sweeps: int) -> Floats:
    """Return the probabilities of a logistic model of abilities and difficulties, as the table.

    Alternating Newton steps on the sums of rows and of columns, the latter with `RIDGE`.
    """
    ability, ease = np.zeros((len(table), 1)), np.zeros((1, table.shape[1]))
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    for _ in range(sweeps):
        p = _logistic(ability + ease)
        known = (p * (1 - p)).sum(axis=1, keepdims=True)
        ability += np.clip((rows - p.sum(axis=1, keepdims=True)) / known, -2, 2)
        p = _logistic(ability + ease)
        known = (p * (1 - p)).sum(axis=0, keepdims=True) + RIDGE
        ease += (columns - p.sum(axis=0, keepdims=True) - RIDGE * ease) / known
        np.clip(ability, -LOGIT_BOUND, LOGIT_BOUND, out=ability)
    return _logistic(ability + ease)


def _logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


class _Statistics:
    """The statistics of a table, with what all tables share made once."""

    def __init__(
        self, table: Floats, groups: Mapping[str, Ints], *, binary: bool, sweeps: int
    ) -> None:
        self.binary, self.sweeps = binary, sweeps
        self.names = tuple(groups)
        self.sizes = [np.bincount(codes).astype(np.float64) for codes in groups.values()]
        self.sides = [
            (np.arange(len(size)) == codes[:, None]) / np.sqrt(size)
            for codes, size in zip(groups.values(), self.sizes, strict=True)
        ]
        self.probability = margins(table, sweeps)
        self.residual = table - self.probability

    def of(self, table: Floats) -> Floats:
        """Return the eigenvalue, then the statistic of each grouping."""
        p = self.probability if self.binary else margins(table, self.sweeps)
        z = (table - p) / np.sqrt(p * (1 - p) + LEAST)
        top = np.linalg.eigvalsh(z @ z.T / z.shape[1])[-1]
        values = [top, *(float(((z @ side) ** 2).sum()) / len(z) for side in self.sides)]
        scale = 1.0 if self.binary else _dispersion(table, p)
        return np.asarray(np.array(values) / scale, dtype=np.float64)

    @property
    def total(self) -> float:
        """All squared residuals, on the scale of the statistic of groups."""
        p = self.probability
        scale = 1 if self.binary else _dispersion(self.residual + p, p)
        return float((self.residual**2 / (p * (1 - p) + LEAST)).sum() / len(p) / scale)

    def design_effect(self, place: int) -> float:
        """Return the variance of scores by group over that of independent prompts."""
        sums = self.residual @ (self.sides[place] * np.sqrt(self.sizes[place]))
        return float((sums**2).sum() / (self.residual**2).sum())


def _dispersion(table: Floats, p: Floats) -> float:
    """Return the mean squared residual over ``p (1 - p)``: about 1 for right and wrong."""
    free = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(((table - p) ** 2 / (p * (1 - p) + LEAST)).sum() / free)


def _coherences(
    seen: _Statistics, observed: Floats, drawn: Floats, null: str
) -> Iterator[Coherence]:
    for place, of in enumerate((ANY, *seen.names)):
        mean = float(drawn[:, place].mean())
        grouped = place > 0
        yield Coherence(
            of,
            len(seen.sizes[place - 1]) if grouped else None,
            float(observed[place]),
            mean,
            float(drawn[:, place].std(ddof=1)),
            p_value(float(observed[place]), drawn[:, place]),
            len(drawn),
            null,
            (float(observed[place]) - mean) / seen.total if grouped else None,
            seen.design_effect(place - 1) if grouped else None,
        )


def curveball(table: Floats, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw tables of 0 and 1 with the sums of rows and columns of one, without end.

    A trade takes two models, pools the prompts that only one of them got right, and deals them
    out again at random, to each as many as it had.
    """
    now = table.astype(bool)
    _trade(now, BURN_IN * len(now), rng)
    while True:
        yield now.astype(np.float64)
        _trade(now, BETWEEN * len(now), rng)


def _trade(table: Any, trades: int, rng: np.random.Generator) -> None:
    for _ in range(trades):
        one, other = rng.choice(len(table), 2, replace=False)
        pool = np.flatnonzero(table[one] != table[other])
        dealt = np.zeros(len(pool), dtype=bool)
        dealt[: int(table[one, pool].sum())] = True
        rng.shuffle(dealt)
        table[one, pool], table[other, pool] = dealt, ~dealt


def _from_margins(seen: _Statistics, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw graded tables from the fitted model."""
    p = np.clip(seen.probability, 1e-6, 1 - 1e-6)
    precision = 1 / min(_dispersion(seen.residual + seen.probability, p), 1 - 1e-6) - 1
    while True:
        yield rng.beta(p * precision, (1 - p) * precision)


# Interventions


POSITION, LENGTH = "position", "length"
INJECTIONS, BIASES = "injections", "biases"
CHECKS = PEOPLE, HARMLESS, MEANING, MISSING = "people", "harmless", "meaning", "missing"
VOTES, SIDE_SWAP = "votes", "side swap"
CONSTANT = {"constant answer": "null answer", "constant checklist": "claimed checklist"}
"""Answers that say the same to every prompt (NullModel's kind), by the injection that they are."""

_CHANGES = {each.name: each for each in (*PERTURBATIONS, RENAMED_LABELS)}
DOSES = {
    f"{dose:.0%} {what}": (what, dose)
    for what, given in (("removed", REMOVED), ("inserted", INSERTED))
    for dose in given
}
"""Kinds of missing parts: of the words, this many are gone, or this many foreign ones come in."""


@cache
def _material() -> Mapping[str, Any]:
    return tomllib.loads((files("judge.probe") / "interventions.toml").read_text("utf-8"))


@cache
def kinds() -> Mapping[str, tuple[str, ...]]:
    """Name the interventions of each group, in the order in which they are reported."""
    of = {each: tuple(name for name in _CHANGES if _CHANGES[name].kind is each) for each in Kind}
    return {
        INJECTIONS: tuple(injections()),
        BIASES: (POSITION, *(name for name in _material() if name != "pairs"), *CONSTANT),
        PEOPLE: (VOTES,),
        HARMLESS: (SIDE_SWAP, *of[Kind.SUPERFICIAL]),
        MEANING: of[Kind.MEANING],
        MISSING: tuple(DOSES),
    }


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt with a better and a poorer answer.

    Attributes
    ----------
    case : Case
        The better one on side A.
    turned : bool
        Whether the file has it on side B.
    """

    case: Case
    turned: bool = False

    @property
    def as_given(self) -> Case:
        """The sides as they came."""
        return self.case.swapped() if self.turned else self.case

    @property
    def poor(self) -> str:
        """The answer that interventions speak for."""
        assert self.case.response_b is not None
        return self.case.response_b


Basis = Literal["own", "labels", "lot"]
"""Source of the poorer answer: our own pairs, labels in the file, or neither: a draw."""


@dataclass(frozen=True, slots=True)
class Material:
    """Pairs to intervene on.

    Attributes
    ----------
    n_left_out : int
        Pairs of equal answers, or of labels that are missing or tied.
    """

    pairs: tuple[Pair, ...]
    basis: Basis
    n_left_out: int = 0

    @property
    def honest(self) -> tuple[Case, ...]:
        """The better answer, or the first, on side A; of our own, those for injected answers."""
        if self.basis == "own":
            return honest_cases()
        return tuple(pair.as_given if self.basis == "lot" else pair.case for pair in self.pairs)


def own_material() -> Material:
    """Return prompts of our own, each with a right and a wrong answer."""
    pairs = (
        Pair(Case((Message("user", one["prompt"]),), one["good"], one["poor"]))
        for one in _material()["pairs"]
    )
    return Material(tuple(pairs), "own")


def material(cases: Sequence[Case], labels: Floats | None) -> Material:
    """Put the better answer of each case on side A, by its labels or by lot.

    The lot is drawn from the content of the case: not by what the judge says, whose noise would
    then look like obeying.

    Parameters
    ----------
    labels : ndarray of shape (n_cases,), or None
        1 for side A, -1 for side B, 0 or NaN for neither; a case that comes more often has the
        side that most of its labels are for. None draws.

    Raises
    ------
    DataError
        If nothing is left.
    """
    given = np.zeros(len(cases)) if labels is None else np.nan_to_num(labels)
    sides: dict[CaseId, float] = {}
    by_id = {case.id: case for case in cases if case.response_a != case.response_b}
    for case, label in zip(cases, given, strict=True):
        lot = 1 - 2 * (int(case.id[:8], 16) % 2)
        sides[case.id] = lot if labels is None else sides.get(case.id, 0) + label
    pairs = tuple(
        Pair(case) if sides[name] > 0 else Pair(case.swapped(), turned=True)
        for name, case in by_id.items()
        if sides[name]
    )
    if not pairs:
        raise DataError(
            f"None of {len(cases):,} pairs has two different answers and a better one: give "
            "others, or omit the column winner (or label) to choose one at random."
        )
    return Material(pairs, "lot" if labels is None else "labels", len(sides) - len(pairs))


def interventions(
    pairs: Iterable[Pair], chosen: Sequence[str], judge: str, *, single: bool = False
) -> tuple[Probe, ...]:
    """Make every chosen intervention on every pair, and its control.

    After the chosen ones comes `LENGTH`: a filler alone, beside the pair as it is. Kinds that
    say nothing of a pair are excluded for it.

    Parameters
    ----------
    chosen : sequence of str
        Of `kinds`.
    judge : str
        The name by which answers claim to be the judge's own.
    single : bool
        Show the changed answer alone, for marks; position, length and what is done to both
        answers at once then become what is done to the one, or are excluded.
    """
    made = tuple(
        replace(_intervened(kind, pair, judge), prompt=pair.case.prompt_id)
        for pair in pairs
        for kind in (*(one for one in kinds()[BIASES] if one in chosen), LENGTH)
    )
    return tuple(_alone(made)) if single else made


def _intervened(kind: str, pair: Pair, judge: str) -> Probe:
    if kind == POSITION:
        return Probe(kind, pair.case, pair.case, by_order=True)
    if kind == LENGTH:
        text = Template(_material()["verbosity"]["text"]).substitute(answer=pair.poor)
        return Probe(kind, _with_poor(pair, pair.poor + _filler(text, LENGTH)), pair.case)
    if kind in CONSTANT:
        answer = injections()[CONSTANT[kind]]
        rest = filled(_size(answer), _turn(kind))
        return Probe(kind, _with_poor(pair, answer), _with_poor(pair, rest))
    spec = _material()[kind]
    where = spec["where"]
    if where == "names":
        return Probe(kind, *_names(spec, pair, judge))
    text = Template(spec["text"]).substitute(answer=pair.poor)
    if where == "around":  # dressed; the control is stripped of all Markdown and filled up
        bare = plain_text(pair.poor, np.random.default_rng(0))
        rest = filled(_size(text) - _size(bare) - 1, _turn(kind))
        return Probe(kind, _with_poor(pair, text), _with_poor(pair, f"{bare} {rest}"))
    attack, control = (_added(where, pair, one) for one in (text, _filler(text, kind)))
    return Probe(kind, attack, control)


def _added(where: str, pair: Pair, text: str) -> Case:
    """Add a text: behind or before the poorer answer, behind the other one, or to the prompt."""
    case, poor = pair.case, pair.poor
    if where == "other":
        return replace(case, response_a=case.response_a + text)
    if where == "prompt":
        *before, last = case.prompt
        return replace(case, prompt=(*before, replace(last, content=last.content + text)))
    return _with_poor(pair, poor + text if where == "behind" else text + poor)


def _names(spec: Mapping[str, str], pair: Pair, judge: str) -> tuple[Case, Case]:
    """Name the writer of the poorer answer, and of the better one where there is a name."""
    name, other = Template(spec["name"]).substitute(judge=judge), spec.get("other")
    shown, hidden = (
        _with_poor(pair, _named(spec, one, pair.poor)) for one in (name, stand_in(len(name)))
    )
    if other is None:
        return shown, hidden
    good = pair.case.response_a
    return (
        replace(shown, response_a=_named(spec, other, good)),
        replace(hidden, response_a=_named(spec, stand_in(len(other)), good)),
    )


def stand_in(length: int) -> str:
    """Return a name that means nothing, of this many characters.

    Examples
    --------
    >>> stand_in(5), stand_in(14)
    ('Model', 'Model Number S')
    """
    name = "Model Number Seven of the Tenth Round, as Drawn by Lot"
    return (name * (length // len(name) + 1))[:length].rstrip().ljust(length, "x")


def _named(spec: Mapping[str, str], name: str, answer: str) -> str:
    return Template(spec["text"]).substitute(name=name) + answer


def _with_poor(pair: Pair, text: str) -> Case:
    return replace(pair.case, response_b=text)


def _filler(text: str, kind: str) -> str:
    """Return a filler as long as a judge is shown of a text, with the same space around it."""
    bare = text.strip()
    before, _, after = text.partition(bare)
    return before + filled(_size(bare), _turn(kind)) + after


def _size(text: str) -> int:
    return len(neutralised(text))


def _turn(kind: str) -> int:
    return (*kinds()[BIASES], LENGTH).index(kind)


def _alone(probes: Iterable[Probe]) -> Iterator[Probe]:
    """Show the answer that differs by itself: the better one where that one is changed."""
    for one in probes:
        if one.by_order:
            continue
        falls = one.case.response_a != one.control.response_a
        falls = falls and one.case.response_b == one.control.response_b
        case, control = (
            replace(arm if falls else arm.swapped(), response_b=None, earlier_b=())
            for arm in (one.case, one.control)
        )
        yield replace(one, case=case, control=control, falls=falls)


def altered(
    group: str,
    pairs: Sequence[Pair],
    chosen: Sequence[str],
    *,
    most: int | None = None,
    single: bool = False,
) -> tuple[Probe, ...]:
    """Change answers, and set each beside what it was.

    Harmless changes are made to both answers of a pair, with the pair as it is for the control;
    others to the better answer, which is set against its copy, with the answer against itself for
    the control. What is drawn is drawn from the content of the case: more pairs, or other kinds,
    change no question. A change that leaves an answer as it is is excluded.

    Parameters
    ----------
    chosen : sequence of str
        Of `kinds`.
    most : int, optional
        Change the first this many pairs; the foreign text of a pair is of one that follows it.
    single : bool
        Show the changed answer, and the answer as it was, alone, for marks.
    """
    made = (
        probe
        for at, pair in enumerate(pairs[:most])
        for probe in (
            _harmless(pair.as_given, chosen)
            if group == HARMLESS
            else _beside_copies(pair.case, _foreign(pairs, at), chosen)
        )
    )
    return tuple(_alone(made) if single else made)


def _harmless(case: Case, chosen: Sequence[str]) -> Iterator[Probe]:
    if SIDE_SWAP in chosen:
        yield Probe(SIDE_SWAP, case, case, by_order=True)
    for kind, change in _CHANGES.items():
        if kind in chosen:
            rng = _drawn_for(kind, case)
            a, b = (change.apply(text, rng) for text in (case.response_a, case.response_b or ""))
            changed = replace(case, response_a=a, response_b=b)
            if changed != case:
                yield Probe(kind, changed, case)


def _beside_copies(case: Case, foreign: str, chosen: Sequence[str]) -> Iterator[Probe]:
    original = case.response_a
    place = [*Place][int(_drawn_for(MISSING, case).integers(len(Place)))]
    copies = {
        kind: change.apply(original, _drawn_for(kind, case))
        for kind, change in _CHANGES.items()
        if kind in chosen
    } | {
        f"{one.dose:.0%} {'removed' if one.removal else 'inserted'}": one.text
        for one in doses(original, foreign)
        if one.place is place
    }
    itself = replace(case, response_b=original, earlier_b=case.earlier_a)
    for kind, copy in copies.items():
        if kind in chosen and copy != original:
            yield Probe(kind, replace(itself, response_b=copy), itself)


def _drawn_for(kind: str, case: Case) -> np.random.Generator:
    return np.random.default_rng([*f"{kind} {case.id}".encode()])


def _foreign(pairs: Sequence[Pair], at: int) -> str:
    """Return the answers to the next other prompt; nothing where there is none."""
    others = (pairs[(at + step) % len(pairs)].case for step in range(1, len(pairs)))
    other = next((one for one in others if one.prompt != pairs[at].case.prompt), None)
    return "" if other is None else f"{other.response_a} {other.response_b}"
