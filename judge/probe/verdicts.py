"""The audit of a judge by its own verdicts: the same cases again, and with the sides exchanged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.audit import PARTS, Audit
from judge.probe.desiderata import (
    Desideratum,
    on_consistency,
    on_discriminability,
    on_reruns,
    unknown,
)
from judge.probe.discriminability import signal_to_noise, variance_shares
from judge.probe.reliability import RerunNoise, consistency, difference_multiplier
from judge.studies.estimates import Draws, Estimate, clustered, sums_within
from rating.errors import DataError
from rating.typing import Bools, Floats, Ints

NO_TRUTH = (
    "Verdicts alone do not tell: no truth is known of these cases. Votes of people on the same "
    "cases do, in a study of the judge."
)


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What a judge said of the same cases, several times.

    Attributes
    ----------
    models : tuple of str, length n_models
    pairs : ndarray of shape (n_cases, 2), int64
        Models on side A and on side B of a case.
    prompt : ndarray of shape (n_cases,), int64
        Number of the prompt, from 0.
    runs : mapping of str to ndarray of shape (n_cases,), float64
        By run: 1 for side A, 0 for a tie, -1 for side B, NaN where nothing was read.
    orders : mapping of str to ndarray of shape (n_cases,), float64
        The same by the order shown, in the case's own sides; empty where orders are not known.
    """

    models: tuple[str, ...]
    pairs: Ints
    prompt: Ints
    runs: Mapping[str, Floats]
    orders: Mapping[str, Floats]

    def read_by_all(self) -> "Verdicts":
        """Return the cases that every run and every order has a verdict on."""
        labels = [*self.runs.values(), *self.orders.values()]
        read = ~np.isnan(labels).any(axis=0)
        return Verdicts(
            self.models,
            self.pairs[read],
            self.prompt[read],
            {name: label[read] for name, label in self.runs.items()},
            {name: label[read] for name, label in self.orders.items()},
        )


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
"""Prompts from which it is told whether boards agree."""
RESAMPLED = 400
"""Draws of prompts behind the interval of a rank correlation."""


def audit_verdicts(name: str, verdicts: Verdicts, *, rng: np.random.Generator) -> Audit:
    """Audit a judge on cases that it judged more than once.

    Scores are win rates over the cases, ties half. Reruns: their noise is held against the
    standard error of a win rate over prompts. Consistency: boards by run and by order, their
    rank correlations with an interval over prompts drawn anew. Discriminability: the prompts in
    nine parts, or fewer, drawn at random. Validity and more votes need a truth, which verdicts do
    not hold. A judge passes or fails by whole intervals, whatever the number of prompts: with few
    of them more cannot be told.

    Raises
    ------
    DataError
        If no case was read throughout, or a model is in none of those that were, or they are
        of a single prompt.
    """
    read = verdicts.read_by_all()
    met = np.unique(read.pairs)
    if not len(met) or len(met) < len(read.models):
        lost = [read.models[i] for i in range(len(read.models)) if i not in met]
        raise DataError(f"No case that every run and order read is of {', '.join(lost)}.")
    if len(np.unique(read.prompt)) < 2:
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
    stats = sums_within(verdicts.prompt, rows, int(verdicts.prompt.max()) + 1)
    return clustered(stats, lambda sums: sums[:, 0] / sums[:, 1], Draws(rng), n=len(differ))


def _reruns(verdicts: Verdicts, boards: Mapping[str, _Board], changed: Changed) -> Desideratum:
    if changed.reruns is None:
        return unknown("reruns", "There is one run: judge the same cases again, and give both.")
    noise, ends = _noise(verdicts, boards)
    se = float(np.sqrt(np.mean([board.se**2 for board in boards.values()])))
    alone = on_reruns(noise, se, ends, sample=_sample(verdicts))
    text = f"{alone.text} Two runs differ on {_percent(changed.reruns)} of the cases."
    return _with(alone, text, {"verdicts_changed": changed.reruns.to_dict()})


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
    games = np.bincount(verdicts.pairs.ravel(), minlength=len(verdicts.models))
    part = (1 / games[verdicts.pairs] ** 2).sum(axis=1) / len(games)
    there = np.unique(verdicts.prompt)
    by_prompt = np.bincount(verdicts.prompt, part * score.var(axis=0, ddof=1))
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
    n = len(one)
    influence = one / one.sum() - other / other.sum()
    error = math.sqrt(n / (n - 1) * float(influence @ influence))
    return math.exp(float(scipy.special.stdtrit(n - 1, 0.975)) * error / 2)


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
    if _n_prompts(verdicts) >= FEWEST_PROMPTS:
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
    return _with(alone, text, {"orders_changed": changed.orders.to_dict(), "lean_to_first": lean})


def _lowest_correlation(
    verdicts: Verdicts, labels: Sequence[Floats], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the 95 % interval of the lowest rank correlation, over prompts drawn anew.

    A draw that leaves a board flat, or a model out, counts as a correlation of -1.
    """
    tables = [_by_prompt(verdicts, label) for label in labels]
    n = len(tables[0][0])
    weight = rng.multinomial(n, np.full(n, 1 / n), RESAMPLED)
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
    order = rng.permutation(int(verdicts.prompt.max()) + 1)[verdicts.prompt]
    looks = (_looks(verdicts, order % parts, parts) for parts in PARTS)
    scores = next((look for look in looks if look is not None), None)
    if scores is None:
        why = f"Some model is in no case of a part in {PARTS[-1]} of the prompts."
        return unknown("discriminability", why)
    try:
        shares = variance_shares(scores, rng=rng)
        ratio = signal_to_noise(scores[:, 0], averaged=scores.shape[2])
    except DataError as error:
        return unknown("discriminability", str(error))
    return on_discriminability(ratio, shares, sample=_sample(verdicts))


def _looks(verdicts: Verdicts, part: Ints, parts: int) -> Floats | None:
    """Return win rates by model, run and part; None where a model is not in some part."""
    scores = np.empty((len(verdicts.models), len(verdicts.runs), parts))
    for seed, label in enumerate(verdicts.runs.values()):
        for moment in range(parts):
            wins, games = _totals(verdicts, label, part == moment)
            if not games.all():
                return None
            scores[:, seed, moment] = wins / games
    return scores


def _board(verdicts: Verdicts, label: Floats) -> _Board:
    """Rate by shares of the cases won; errors by the influence of each prompt on a ratio."""
    wins, games = _by_prompt(verdicts, label)
    rate = wins.sum(axis=0) / games.sum(axis=0)
    influence = (wins - rate * games) / games.sum(axis=0)
    n, pairs = int((games > 0).any(axis=1).sum()), len(rate) * (len(rate) - 1) / 2
    spread = n / (n - 1) * influence.T @ influence
    variance = np.diag(spread)
    square = variance[:, None] + variance - 2 * spread
    bar = float(scipy.special.stdtrit(n - 1, 1 - 0.025 / pairs)) * np.sqrt(square.clip(min=0))
    above = rate[:, None] - rate > np.maximum(bar, 1e-12)
    by_prompt = n / (n - 1) * (influence**2).mean(axis=1)
    return _Board(rate, np.sqrt(variance), above, by_prompt)


def _by_prompt(verdicts: Verdicts, label: Floats) -> tuple[Floats, Floats]:
    """Return wins and cases of each model on each prompt, shape (n_prompts, n_models)."""
    n_prompts, n_models = int(verdicts.prompt.max()) + 1, len(verdicts.models)
    wins, games = np.zeros((n_prompts, n_models)), np.zeros((n_prompts, n_models))
    for side, score in ((0, (1 + label) / 2), (1, (1 - label) / 2)):
        np.add.at(wins, (verdicts.prompt, verdicts.pairs[:, side]), score)
        np.add.at(games, (verdicts.prompt, verdicts.pairs[:, side]), 1)
    return wins, games


def _totals(verdicts: Verdicts, label: Floats, cases: Bools) -> tuple[Floats, Floats]:
    n = len(verdicts.models)
    pairs, score = verdicts.pairs[cases], (1 + label[cases]) / 2
    won_a, won_b = (
        np.bincount(pairs[:, side], gain, n) for side, gain in ((0, score), (1, 1 - score))
    )
    return np.asarray(won_a + won_b, dtype=np.float64), np.bincount(
        pairs.ravel(), minlength=n
    ).astype(np.float64)


def _n_prompts(verdicts: Verdicts) -> int:
    return len(np.unique(verdicts.prompt))


def _sample(verdicts: Verdicts) -> str:
    return f"{_n_prompts(verdicts):,} prompts"


def _with(one: Desideratum, text: str, numbers: Mapping[str, Any]) -> Desideratum:
    return Desideratum(one.name, one.passed, one.rule, text, {**one.numbers, **numbers})


def _percent(share: Estimate) -> str:
    value = math.nan if share.value is None else share.value
    if share.lower is None or share.upper is None:
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % ({100 * share.lower:.1f} to {100 * share.upper:.1f})"
