"""The audit of judges by their verdicts: the same cases again, and with the sides exchanged."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from judge.case import Order
from judge.probe.audit import PARTS, Audit, Audits, discriminability
from judge.probe.desiderata import Desideratum, on_consistency, on_reruns, unknown
from judge.probe.reliability import RerunNoise, consistency, difference_multiplier
from judge.studies.estimates import Draws, Estimate, clustered
from judge.studies.items import Items
from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError, RatingError
from rating.leave_out import draw_counts, influence_factor, influence_variance, sums_within
from rating.outcome import of_sides
from rating.tables.files import Files
from rating.tables.vote_filter import BOTH
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantile

NO_TRUTH = (
    "Verdicts alone do not tell: no truth is known of these cases. Votes of people on the same "
    "cases do, in a study of the judge."
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


class Changed(NamedTuple):
    """How often two verdicts on one case differ, with the interval over prompts."""

    reruns: Estimate | None
    orders: Estimate | None


class _Board(NamedTuple):
    """Win rates and what they claim, errors over prompts; all claims together hold at 95 %."""

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

    Scores are win rates over the cases, ties half. Reruns: their noise is held against the
    standard error of a win rate over prompts. Consistency: boards by run and by order, their
    rank correlations with an interval over prompts drawn anew. Discriminability: the prompts in
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
        raise DataError(f"No case that every run and order read is of {', '.join(lost)}.")
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


def verdicts_changed(verdicts: Verdicts, *, rng: np.random.Generator) -> Changed:
    """Return how often two runs, and the two orders, differ on a case; None where there is one."""
    kinds = (verdicts.runs, verdicts.orders)
    return Changed(*(_changed(verdicts, labels, rng) for labels in kinds))


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


def _reruns(verdicts: Verdicts, boards: Mapping[str, _Board], changed: Changed) -> Desideratum:
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
    """Measure what a rerun moves a win rate by, and the 95 % interval of that over its error.

    The judge answers each case anew, so the noise of a win rate is the sum of that of its cases:
    ``sum v_c / games^2``, v_c the variance of a case's score over runs. So many prompts tell it
    from few runs. The ratio's interval is that of a ratio of sums over prompts, on the log scale,
    Student's t; of a judge that changed no verdict, see `_still`.
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
        return noise, (0.0, _still(n_cases))
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


def _still(n_cases: int) -> float:
    """Return how large the ratio may be of a judge that changed none of its verdicts.

    With a share f of them changed between two runs, the noise is ``sqrt(2 f)`` of the error of
    independent even cases; Clopper and Pearson's upper end of f is ``1 - .025^(1 / n)``.
    """
    return math.sqrt(2 * (1 - 0.025 ** (1 / n_cases)))


def _consistency(
    verdicts: Verdicts, boards: Mapping[str, _Board], changed: Changed, rng: np.random.Generator
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
        f"{alone.text} Shown the other way round it says something else on "
        f"{_percent(changed.orders)} of the cases, and leans by {lean:+.3f} to the first place."
    )
    numbers = {"orders_changed": changed.orders.to_dict(), "lean_to_first": lean}
    return replace(alone, text=text, numbers={**alone.numbers, **numbers})


def _lowest_correlation(
    verdicts: Verdicts, labels: Sequence[Floats], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the 95 % interval of the lowest rank correlation, over prompts drawn anew.

    A draw that leaves a board flat, or a model out, counts as a correlation of -1.
    """
    tables = [_by_prompt(verdicts, label) for label in labels]
    n = len(tables[0][0])
    weight = draw_counts(n, RESAMPLED, rng)
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
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % ({100 * share.lower:.1f} to {100 * share.upper:.1f})"


Case = tuple[str, ...]
Labels = dict[Case, float]

UNNAMED = "judge"
CASE = ("battle_id", "item_id", "turn")
"""Columns that tell cases of one prompt and pair apart, where they are there."""
ORDERS = {Order.AB.value: "A first", Order.BA.value: "B first"}
OTHER = {order.value: order.other.value for order in Order}
SHOWN = (BOTH, Order.AB.value, "", Order.BA.value)
"""Which order's verdict counts as that of a run: the first of these that there is."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One verdict: ``label`` is 1 for side A of the case, NaN where unread."""

    judge: str
    run: str
    order: str
    case: Case
    label: float


def probe_judges(files: Sequence[str | Path | Files], *, seed: int) -> Audits:
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
    known: set[Case] = set()
    rows = [
        row for table in tables for row in _rows(table, extra, _run_name(table, len(files)), known)
    ]
    judges = list(dict.fromkeys(row.judge for row in rows))
    audits, counts = [], {}
    for judge in judges:
        verdicts = _verdicts([row for row in rows if row.judge == judge])
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
            msg = f"Of {judge!r}: {error}"
            raise DataError(msg) from error
        audits.append(audited)
    names = [Path(str(file)).name for file in files]
    about = {"files": names, "judges": counts, "seed": seed}
    return Audits(about, tuple(audits))


def _run_name(table: Annotations, n_files: int) -> str:
    return Path(table.source).name if n_files > 1 else "run 1"


def _rows(table: Annotations, extra: Sequence[str], run: str, known: set[Case]) -> Iterator[_Row]:
    """Read verdicts; a case with its sides exchanged is put into those it was first met in."""
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
        yield _Row(
            judges[i],
            runs[i],
            OTHER.get(order, order) if exchanged else order,
            turned if exchanged else case,
            -label if exchanged else label,
        )


def _verdicts(rows: Sequence[_Row]) -> Verdicts:
    twice = [key for key, n in Counter((r.run, r.order, r.case) for r in rows).items() if n > 1]
    if twice:
        run, order, case = twice[0]
        where = f"{run!r}, order {order!r}" if order else f"{run!r}"
        msg = (
            f"The case {' / '.join(case)} comes twice in {where}: name each run's file, or add a "
            "column that tells cases apart, one of "
        )
        raise DataError(msg + f"run, {', '.join(CASE)}.")
    cases = list(dict.fromkeys(row.case for row in rows))
    labels: dict[str, dict[str, Labels]] = {}
    for row in rows:
        labels.setdefault(row.run, {}).setdefault(row.order, {})[row.case] = row.label
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


def _column(cases: Sequence[Case], labels: Labels) -> Floats:
    return np.array([labels.get(case, np.nan) for case in cases])
