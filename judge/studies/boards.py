"""Boards of people and judges: separability, correlations, and judges as rankers (JuStRank).

`separability` compares how scores and a reference order every two models; `correlations` and
`score_correlations` correlate them. `preferences` fits a board, `compare_boards` compares a
judge's with people's, `contest` two judges'. `system_ranking` estimates how decisive a judge is,
and which models it favours.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import scipy

from judge.studies.estimates import (
    FEW_PROMPTS,
    FEWEST_PEOPLE,
    NO_WIDTH,
    Draws,
    Ends,
    Estimate,
    interval,
    with_width,
)
from judge.studies.rows import Items, Labels
from rating import Comparisons, Fit, fit, hessian_covariance
from rating.covariance import activity, grouping, intersection
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.leave_out import drawn_sums, influence_variance, quantile, sums_within
from rating.typing import Bools, Floats, Ints

# Separability


Rule = Literal["overlap", "pairwise"]
Pair = tuple[str, str]
RULES: tuple[Rule, ...] = ("overlap", "pairwise")


@dataclass(frozen=True, slots=True, eq=False)
class IntervalEnds:
    """Scores with intervals, each shape (n_models,).

    Attributes
    ----------
    value, lower, upper : ndarray of float
        NaN where there is none.
    """

    value: Floats
    lower: Floats
    upper: Floats

    def known(self) -> Bools:
        """Tell which models have all three."""
        return ~np.isnan(self.value + self.lower + self.upper)

    def of(self, models: Bools) -> "IntervalEnds":
        """Return some of the models."""
        return IntervalEnds(self.value[models], self.lower[models], self.upper[models])

    def pairs(self) -> tuple[Floats, Floats, Floats]:
        """Return the gap of every two models, and the reach of both towards each other."""
        first, second = np.triu_indices(len(self.value), 1)
        gap = self.value[first] - self.value[second]
        down, up = self.value - self.lower, self.upper - self.value
        ahead = gap > 0
        own = np.where(ahead, down[first], up[first])
        return gap, own, np.where(ahead, up[second], down[second])


def separated(scores: IntervalEnds, rule: Rule) -> Floats:
    """Return 1 or -1 for pairs of models that are separated, else 0, shape (n_pairs,).

    Parameters
    ----------
    rule : {"overlap", "pairwise"}
        By intervals that do not overlap, as Arena-Hard; or by the interval of the difference,
        the square root of both reaches squared: right for independent scores, and for ratings
        with quasi-standard errors. Intervals that touch may well tell two models apart.
    """
    gap, own, other = scores.pairs()
    reach = own + other if rule == "overlap" else np.hypot(own, other)
    return np.where(np.abs(gap) > reach, np.sign(gap), 0.0)


def separability(
    models: Sequence[str],
    scores: IntervalEnds | None,
    reference: Floats,
    ends: Mapping[Rule, IntervalEnds] | None,
    *,
    level: float,
) -> dict[str, Any] | None:
    """Compare how scores and a reference order every two models.

    Parameters
    ----------
    models : sequence of str
    scores : Ends or None
        Of the benchmark; None where it has no intervals.
    reference : ndarray of shape (n_models,)
    ends : mapping of rule to Ends, or None
        Of the reference, where it has intervals: for the pairwise rule of quasi-standard errors.
    level : float
        Of the intervals of the benchmark.

    Returns
    -------
    dict or None
        Plain values: ``n``, models with intervals of whatever is compared; by rule, what
        `_confidence` gives; and ``order_brier``, the mean squared distance of the probability that
        the benchmark gives to one model being ahead of another from the reference's order, equal
        models half. None without intervals of either.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024 (arXiv:2406.11939).
    """
    if scores is None and ends is None:
        return None
    known = ~np.isnan(reference)
    for one in (scores, *(ends or {}).values()):
        known = known & (True if one is None else one.known())
    mine = None if scores is None else scores.of(known)
    names = [name for name, there in zip(models, known, strict=True) if there]
    rules: dict[str, Any] = {
        rule: _confidence(
            names,
            None if mine is None else separated(mine, rule),
            None if ends is None else separated(ends[rule].of(known), rule),
        )
        for rule in RULES
    }
    brier = None if mine is None else _order_brier(mine, reference[known], level)
    return {"n": int(known.sum()), **rules, "order_brier": brier}


def _confidence(
    models: Sequence[str], mine: Floats | None, theirs: Floats | None
) -> dict[str, Any]:
    """Give how far a benchmark is sure of what a reference is sure of, as plain values.

    Parameters
    ----------
    mine, theirs : ndarray of shape (n_pairs,), or None
        As `separated` gives them, of the benchmark and of the reference.

    Returns
    -------
    dict
        ``separated``, ``separated_by_reference``: share of the pairs that each tells apart.
        ``agreement``: the mean over the pairs that the reference tells apart, 1 where the
        benchmark does the same, -1 the other way, 0 where it does not.
        ``agreement_of_separated``: the share that both order alike of those that both tell apart.
        ``separated_of_reference``: the share of the reference's that the benchmark tells apart.
        ``agreement_over_all``: the sum of ``agreement`` over all pairs, as Arena-Hard's paper.
        Each None where it is not defined. ``left_out``: pairs that the reference does not tell
        apart. ``opposite``: those that both tell apart, and each the other way; the reference has
        the first ahead.
    """
    both = None if mine is None or theirs is None else mine * theirs
    of_reference = None if both is None or theirs is None else both[theirs != 0]
    signs = [] if theirs is None else [*zip(combinations(models, 2), theirs, strict=True)]
    return {
        "separated": None if mine is None else _mean(mine != 0),
        "separated_by_reference": None if theirs is None else _mean(theirs != 0),
        "agreement": None if of_reference is None else _mean(of_reference),
        "agreement_of_separated": None if both is None else _mean(both[both != 0] > 0),
        "separated_of_reference": None if of_reference is None else _mean(of_reference != 0),
        "agreement_over_all": None if both is None else _mean(both),
        "left_out": tuple(pair for pair, sign in signs if sign == 0),
        "opposite": tuple(
            pair if sign > 0 else pair[::-1]
            for (pair, sign), product in zip(signs, [] if both is None else both, strict=False)
            if product < 0
        ),
    }


def _order_brier(scores: IntervalEnds, reference: Floats, level: float) -> float | None:
    gap, own, other = scores.pairs()
    error = np.hypot(own, other) / quantile(level, np.inf)
    first, second = np.triu_indices(len(reference), 1)
    ahead = (np.sign(reference[first] - reference[second]) + 1) / 2
    sure = np.where(gap == 0, 0.0, np.sign(gap) * np.inf)  # without an error it is sure
    leads = np.divide(gap, error, out=sure, where=error > 0)
    return _mean((scipy.special.ndtr(leads) - ahead) ** 2)


def _mean(values: Floats | Bools) -> float | None:
    return float(np.mean(values)) if len(values) else None


# Correlations


MIN_MODELS = 3

FEW_MODELS = 10
"""Under this many models a correlation says little."""
_CELLS = 1 << 20
"""Differences of two models' scores that are held at once."""
KINDS = ("spearman", "kendall", "pearson")

NOISE_FREED = "_noise_freed"

FIGURES = (*KINDS, *(kind + NOISE_FREED for kind in KINDS))
"""Correlations as found, and freed of the noise in both boards."""


_NORMAL: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "spearman": (
        lambda r: np.asarray(2 * np.sin(math.pi * r / 6)),
        lambda r: np.asarray(6 / math.pi * np.arcsin(r / 2)),
    ),
    "kendall": (
        lambda r: np.asarray(np.sin(math.pi * r / 2)),
        lambda r: np.asarray(2 / math.pi * np.arcsin(r)),
    ),
    "pearson": (lambda r: r, lambda r: r),
}
"""From a correlation to Pearson's of a bivariate normal law that has it, and back."""

_NOTHING_LEFT = 1e-9


def correlations(scores: Floats, reference: Floats, *, top: int = 6) -> dict[str, float]:
    """Correlate scores with a reference, such as a judge's with people's.

    By name: `KINDS` over the models that have both, equal scores sharing their mean rank and
    Kendall's being tau-b, and ``pearson_top``. NaN where a column does not vary.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_models,)
        NaN where a model has no score: it is excluded.
    top : int
        How many of the best by ``reference`` ``pearson_top`` is over.

    Raises
    ------
    DataError
        If lengths differ, or fewer than three models have both scores.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench", ICLR 2025, table 3.
    """
    if scores.shape != reference.shape:
        msg = f"{len(scores)} scores and {len(reference)} of the reference: give one a model."
        raise DataError(msg)
    both = ~(np.isnan(scores) | np.isnan(reference))
    x, y = scores[both], reference[both]
    if len(x) < MIN_MODELS:
        msg = f"{len(x)} models have both scores: a correlation needs {MIN_MODELS} or more."
        raise DataError(msg)
    best = np.argsort(-y, kind="stable")[:top]
    by_kind = row_correlations(x[None], y[None])
    top_alone = {"pearson_top": _pearson(x[None, best], y[None, best])}
    return {kind: float(values[0]) for kind, values in (top_alone | by_kind).items()}


def row_correlations(scores: Floats, reference: Floats) -> dict[str, Floats]:
    """Correlate each row of scores with that of the reference, as `correlations` does over all.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_rows, n_models)
        Without NaN.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``pearson``, ``spearman`` and ``kendall``; NaN where a row of either does not vary.
    """
    x, y = np.ascontiguousarray(scores), np.ascontiguousarray(reference)  # rows are then summed
    rows, n = x.shape  # in the order in which one alone is
    at_once = max(1, _CELLS // (n * n))
    parts = [_together(x[i : i + at_once], y[i : i + at_once]) for i in range(0, rows, at_once)]
    names = ("pearson", "spearman", "kendall")
    return dict(zip(names, np.concatenate(parts, axis=1), strict=True))


def _together(x: Floats, y: Floats) -> Floats:
    sides = _signs(x), _signs(y)
    ranks = (signs.sum(axis=2) / 2 for signs in sides)  # the number below and half of the equal
    order = (signs.reshape(len(x), -1) for signs in sides)  # tau-b is their cosine
    return np.stack([_pearson(x, y), _pearson(*ranks), _cosine(*order)])


def _signs(x: Floats) -> Floats:
    """Return the signs of all differences within each row, shape (n_rows, n, n)."""
    return np.asarray(np.sign(x[:, :, None] - x[:, None, :]))


def _pearson(x: Floats, y: Floats) -> Floats:
    return _cosine(x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True))


def _cosine(x: Floats, y: Floats) -> Floats:
    size = np.sqrt(np.vecdot(x, x) * np.vecdot(y, y))
    return np.asarray(np.vecdot(x, y) / np.where(size > 0, size, np.nan))


Moved = tuple[tuple[Floats, ...], Floats]
"""Boards, shape (1 + rounds, n_models) each: as found, then as each round moves them. And, shape
(n_boards, n_boards), what the uncertainty of strengths adds to the variance of a board over its
models, and to the covariance of two."""


def _both_correlations(moved: Moved, level: float) -> dict[str, Estimate]:
    """Estimate each of `KINDS` as found and freed of noise, by the names of `FIGURES`.

    Freed of noise, one that is clipped, with an interval from -1 to 1, has no value: the noise
    leaves too little of the boards' variance to tell. Nor has any where the noise is not known.

    A rank correlation of n models takes few values: limits are moved outwards to the next one,
    else an interval excludes orders that the data allow. Without ties the values lie 12 / (n^3 -
    n) apart (Spearman) and 4 / (n^2 - n) (Kendall); with ties in one column none reaches 1.
    """
    rows, n = moved[0][0].shape
    figures = {
        kind + suffix: around(values, n, level)
        for freed, suffix in ((False, ""), (True, NOISE_FREED))
        for kind, values in correlated(moved, 0, 1, freed=freed).items()
    }
    for kind in KINDS:
        one = figures[kind + NOISE_FREED]
        clipped = [abs(x or 0.0) > 1 - NO_WIDTH for x in (one.value, one.lower, one.upper)]
        if rows == 1 or (all(clipped) and one.lower != one.upper):
            figures[kind + NOISE_FREED] = Estimate(None, None, None, one.n)
    if n < MIN_MODELS:
        return figures
    best = row_correlations(np.sort(moved[0][0][-1:]), np.arange(float(n))[None])
    for kind, step in (("spearman", 12 / (n**3 - n)), ("kendall", 4 / (n**2 - n))):
        top = float(best[kind][0])
        for name in (kind, kind + NOISE_FREED):
            one = figures[name]
            if one.value is not None and one.lower is not None and one.upper is not None:
                low = np.ceil((top - one.lower) * top / step - NO_WIDTH) * step / top
                high = np.floor((top - one.upper) * top / step + NO_WIDTH) * step / top
                value, low, high = np.clip([one.value, top - low, top - high], -top, top).tolist()
                figures[name] = Estimate(value, low, high, one.n)
    return figures


def correlated(moved: Moved, first: int, second: int, *, freed: bool) -> dict[str, Floats]:
    """Correlate two boards in each row: the data, then each round, less the noise of drawing.

    The boards found hold the noise of the data, and a round as much again. With ``s`` the
    variances of a row's boards, ``n`` their noise and k how often it is taken away, a correlation
    r becomes

    ::

        (r sqrt(s_1 s_2) - k n_12) / sqrt((s_1 - k n_1) (s_2 - k n_2))

    clipped to -1 and 1, where it ends up if noise leaves no variance. Rank correlations go
    through the Pearson correlation of the normal law that has them, and back.

    Parameters
    ----------
    freed : bool
        Whether the noise of the data is taken away as well: k is 1 for the data and 2 for a
        round, else 0 and 1.

    Returns
    -------
    dict of str to ndarray of shape (1 + rounds,)
        For each of `KINDS`; NaN where a board does not vary, or has fewer than three models.

    References
    ----------
    .. [1] C. Spearman, "The proof and measurement of association between two things", American
       Journal of Psychology 15(1), 1904 (the correction for attenuation).
    .. [2] M. Kendall and J. D. Gibbons, Rank Correlation Methods, 5th ed., 1990.
    """
    one, other = moved[0][first], moved[0][second]
    if one.shape[1] < MIN_MODELS:
        return {kind: np.full(len(one), np.nan) for kind in KINDS}
    rows = row_correlations(other, one)
    places = np.ix_([first, second], [first, second])
    spread = one.var(axis=1, ddof=1), other.var(axis=1, ddof=1)
    times = int(freed) + (np.arange(len(one)) > 0)
    noise = times[:, None, None] * moved[1][places]
    left = {kind: _without_noise(kind, rows[kind], spread, noise) for kind in KINDS}
    return {kind: np.where(times > 0, left[kind], rows[kind]) for kind in KINDS}


def around(values: Floats, n: int, level: float) -> Estimate:
    """Return the first value, with the percentile interval of the others, widened to hold it.

    Without an interval where the others are all equal.
    """
    value = float(values[0])
    if math.isnan(value):
        return Estimate(None, None, None, n)
    if len(values) == 1:
        return Estimate(value, None, None, n)
    lower, upper = interval(values[1:], level)
    if lower is None or upper is None:
        return Estimate(value, lower, upper, n)
    return Estimate(value, *with_width(min(lower, value), max(upper, value)), n)


def _without_noise(kind: str, raw: Floats, spread: tuple[Floats, Floats], noise: Floats) -> Floats:
    to_normal, back = _NORMAL[kind]
    left = [np.maximum(s - noise[:, k, k], _NOTHING_LEFT * s) for k, s in enumerate(spread)]
    shared = to_normal(raw) * np.sqrt(spread[0] * spread[1]) - noise[:, 0, 1]
    whole = np.sqrt(left[0] * left[1])
    return back(np.clip(shared / np.where(whole > 0, whole, np.nan), -1, 1))


def figures_of(figures: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    """Return the correlations of a comparison with their intervals, None where there are none."""
    ends = ("value", "lower", "upper")
    return {name: {end: getattr(figures.get(name), end, None) for end in ends} for name in FIGURES}


@dataclass(frozen=True, slots=True)
class ScoreCorrelations:
    """How scores go with ratings, over the models that have both.

    The intervals are for these models: by how uncertain the ratings are. No figure has a value
    where the scores or the ratings do not vary, or under three models have both.

    Attributes
    ----------
    figures : mapping of str to Estimate
        By the names of `FIGURES`.
    other_models : mapping of str to pair of float or None
        Percentile intervals for models like these: models drawn with replacement.
    warnings : tuple of str
    """

    figures: dict[str, Estimate]
    other_models: dict[str, Ends]
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many models have both."""
        return self.figures["spearman"].n

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = {"n": self.n, **figures_of(self.figures)}
        for kind, (lower, upper) in self.other_models.items():
            plain[kind]["other_models"] = {"lower": lower, "upper": upper}
        return plain


def score_correlations(
    ratings: Floats, covariance: Floats | None, scores: Floats, draws: Draws
) -> ScoreCorrelations:
    """Correlate scores with ratings.

    The interval for these models draws ratings from the normal law of their covariance and
    corrects each round for noise as `correlated` does, the scores being
    exact: a benchmark's own uncertainty is not in it. The interval for other models draws models
    with replacement, scores and ratings as found; a round in which a column does not vary counts
    as endless at both ends. Where all rounds are equal, there is no interval.

    Parameters
    ----------
    ratings, scores : ndarray of shape (n_models,)
        In any units; a score is NaN where a model has none.
    covariance : ndarray of shape (n_models, n_models), or None
        Of the ratings, in their unit squared; only what it says of differences counts. None
        gives no interval for these models.

    Raises
    ------
    DataError
        If shapes differ.

    References
    ----------
    .. [1] C. Spearman, "The proof and measurement of association between two things", American
       Journal of Psychology 15(1), 1904 (the correction for attenuation).
    """
    if ratings.shape != scores.shape:
        raise DataError(f"{len(ratings)} ratings and {len(scores)} scores: give one a model.")
    both = ~np.isnan(scores)
    if covariance is not None:
        covariance = covariance[np.ix_(both, both)]
    moved = _moved(ratings[both], covariance, scores[both], draws)
    figures = _both_correlations(moved, draws.level)
    n, drawn = int(both.sum()), dict.fromkeys(KINDS, np.full(draws.rounds, np.nan))
    if n >= MIN_MODELS:
        some = draws.rng.integers(n, size=(draws.rounds, n))
        drawn = row_correlations(scores[both][some], ratings[both][some])
    ends: dict[str, Ends] = {
        kind: (None, None)
        if figures[kind].value is None
        else with_width(*interval(drawn[kind], draws.level))
        for kind in KINDS
    }
    warnings = _few_models(n, f"{n} model{' has' if n == 1 else 's have'} a score and a rating")
    if n >= MIN_MODELS and figures["pearson"].value is None:
        warnings = ["All scores or all ratings are equal: the correlation is undefined."]
    return ScoreCorrelations(figures, ends, tuple(warnings))


def _moved(ratings: Floats, covariance: Floats | None, scores: Floats, draws: Draws) -> Moved:
    n = len(ratings)
    if covariance is None or n < MIN_MODELS:
        return (scores[None], ratings[None]), np.zeros((2, 2))
    root = np.linalg.svd(covariance, hermitian=True)
    moves = draws.rng.normal(size=(draws.rounds, n)) * np.sqrt(root.S) @ root.Vh
    drawn = np.vstack([ratings, ratings + moves])
    spread = (np.trace(covariance) - covariance.sum() / n) / (n - 1)
    return (np.broadcast_to(scores, drawn.shape), drawn), np.diag([0.0, float(spread)])


def _few_models(n: int, have: str) -> list[str]:
    """Warn where few models are compared."""
    if n < MIN_MODELS:
        return [f"{have}: a correlation needs {MIN_MODELS} or more."]
    if n < FEW_MODELS:
        return [f"A correlation over {n} models says little: use at least {FEW_MODELS}."]
    return []


# Boards


POSITION = "position"
"""Term that is 1 where side A was shown first and -1 where side B was."""
ERROR = 0.05
"""Of all pairs of models together: so often a board claims a wrong order of any."""
_OUTCOME = np.array([1, 2, 0])
"""Position in ``tuple(Outcome)`` of the labels -1, 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """Bradley-Terry strengths, ties half, and the slopes of other terms.

    Attributes
    ----------
    models : tuple of str, length n_models
        Those compared with another, sorted.
    theta : ndarray of shape (n_models,)
        Nats, summing to zero.
    slopes : dict of str to float
        Nats by which one more of a term moves the preference for side A.
    influence : ndarray of shape (n_prompts, n_models + n_slopes)
        How far each prompt of the items moved strengths and slopes, in nats; they sum to zero.
    n : int
        Rows behind the fit.
    n_voters : int or None
        Voters whose part is in the influences.
    """

    models: tuple[str, ...]
    theta: Floats
    slopes: dict[str, float]
    influence: Floats
    n: int
    n_voters: int | None = None

    def pull(self, term: str) -> Floats:
        """Return how far each prompt moved a slope, shape (n_prompts,)."""
        at = list(self.slopes).index(term)
        return np.asarray(self.influence[:, len(self.models) + at])

    def of_models(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return strengths and influence of some models, centred again."""
        at = [self.models.index(name) for name in names]
        theta, influence = self.theta[at], self.influence[:, at]
        return theta - theta.mean(), influence - influence.mean(axis=1, keepdims=True)


def preferences(
    items: Items, labels: Labels, terms: tuple[str, ...] = (), *, people: bool = False
) -> Preferences:
    """Fit ``logit P(side A) = theta_a - theta_b + sum of slope * term``, a tie half a win.

    Parameters
    ----------
    terms : tuple of str
        `POSITION`, or names of ``items.gaps``. A row with a gap that is not known is excluded; a
        row whose order is not known keeps 0.
    people : bool
        Whether the raters are people: the influences of prompts are then raised by what the
        raters add to their variance, for the strengths together and for each slope, so that
        whatever is read from them allows for other people as well.

    Raises
    ------
    NotIdentifiedError
        If the rows leave a strength or a slope without a finite value.
    """
    columns = [_term(items, labels, name) for name in terms]
    features = np.stack(columns, axis=1) if columns else np.empty((labels.n, 0))
    a, b = items.pairs[labels.item].T
    used = ~np.isnan(features).any(axis=1) & (a != b)
    prompt = items.prompt[labels.item[used]]
    data = Comparisons.from_codes(
        items.models,
        a[used],
        b[used],
        _OUTCOME[labels.label[used] + 1],
        voter=np.unique(labels.rater[used], return_inverse=True)[1] if people else None,
        prompt=prompt,
        features=features[used] if terms else None,
        feature_names=terms,
    )
    try:
        fitted = fit(data)
    except ConvergenceError as error:
        raise NotIdentifiedError(str(error)) from error
    influence = np.zeros((items.n_prompts, len(fitted.x)))
    moved = _influence(fitted, data)
    influence[np.unique(prompt)] = np.where(np.abs(moved) > NO_WIDTH, moved, 0.0)
    slopes = {name: p.value for name, p in zip(terms, fitted.parameters, strict=True)}
    n_voters = data.n_voters if people else None
    return Preferences(fitted.models, fitted.theta, slopes, influence, int(used.sum()), n_voters)


def from_influence(value: float, influence: Floats, *, n: int, level: float) -> Estimate:
    """Give a value the interval that the prompts' influences on it imply.

    Student's t with prompts less one, on ``sqrt(U / (U - 1) sum influence^2)``; prompts without
    influence are not counted, and fewer than two give no interval, nor does one without a width.

    Parameters
    ----------
    influence : ndarray of shape (n_prompts,)
    """
    n_prompts = int((np.abs(influence) > NO_WIDTH).sum())
    if n_prompts < 2:
        return Estimate(value, None, None, n)
    error = math.sqrt(influence_variance(influence, n_prompts))
    reach = quantile(level, n_prompts - 1) * error
    return Estimate(value, *with_width(value - reach, value + reach), n)


def _term(items: Items, labels: Labels, name: str) -> Floats:
    return labels.first.astype(np.float64) if name == POSITION else items.gaps[name][labels.item]


def _influence(fitted: Fit, data: Comparisons) -> Floats:
    assert data.prompt is not None
    index = data.prompt.astype(np.int64)
    cells, bread = fitted.scored(data), hessian_covariance(fitted)
    influence = np.asarray(-cells.scores(index, data.n_prompts) @ bread)
    if data.voter is None or activity(data).effective < FEWEST_PEOPLE:
        return influence
    both = intersection(data)
    by_voter, inside = (
        cells.scores(groups.index, groups.size) @ bread
        for groups in (grouping(data, "voter"), both)
    )
    own, k = (influence**2).sum(axis=0), fitted.n_models
    added = influence_variance(by_voter, data.n_voters) - (inside**2).sum(axis=0)
    own[:k], added[:k] = own[:k].sum(), added[:k].sum()
    return np.asarray(influence * np.sqrt(1 + added.clip(min=0) / np.where(own > 0, own, 1.0)))


@dataclass(frozen=True, slots=True)
class BoardsCompared:
    """How a judge's board goes with people's.

    Attributes
    ----------
    models : tuple of str
        Those on both boards.
    figures : mapping of str to Estimate
        Correlations by the names of `FIGURES`: as found, of boards of as many votes and verdicts,
        and of boards of endless ones: noise lowers a correlation.
    separability : mapping
        As of `separability`, with people as the reference: by intervals that do not overlap, and
        by those of differences, by prompt. Of ``order_brier`` pairs of the same strength without
        an error are excluded; None where no other is there.
    warnings : tuple of str
    """

    models: tuple[str, ...]
    figures: dict[str, Estimate]
    separability: dict[str, Any]
    warnings: tuple[str, ...]


def compare_boards(people: Preferences, judge: Preferences, draws: Draws) -> BoardsCompared:
    """Compare two boards over the models that both have.

    Intervals carry the uncertainty of both: whole prompts are drawn, votes and verdicts together,
    and both boards move by the prompts' influences (one step, no refits). Noise in either board
    lowers a correlation, and drawing adds it once more, so percentiles of the rounds would lie
    too low, and those shifted by the median's bias still do: each round is corrected for noise as
    in `correlated`, once for the correlation of boards of this size, twice for that of endless
    votes and verdicts. The models are taken as given: other models are not inferred about.

    Separation, and agreement where both are confident, are those of Arena-Hard, with intervals by
    prompt in place of its rounds; a pair that people do not separate is excluded.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024 (arXiv:2406.11939).
    """
    names = common_models(people, judge)
    moved = _moved_boards((people, judge), names, draws)
    sides = [board.of_models(names) for board in (people, judge)]
    apart, different = (
        _confidence(names, *(rule(*side, draws.level) for side in reversed(sides)))
        for rule in (_separated, _different)
    )
    n = len(names)
    warnings = _few_models(n, f"{n} model{' is' if n == 1 else 's are'} on both boards")
    n_prompts = min(int((one.influence != 0).any(axis=1).sum()) for one in (people, judge))
    if n_prompts < max(FEW_PROMPTS, n):
        warnings.append(
            f"{n_prompts} prompt{'s'[n_prompts == 1 :]} are too few to estimate the joint "
            f"uncertainty of {n} ratings: the intervals of the correlations are too narrow."
        )
    return BoardsCompared(
        models=names,
        figures=_both_correlations(moved, draws.level),
        separability={
            "n": n,
            "overlap": apart,
            "pairwise": different,
            "order_brier": _boards_order_brier(sides[0][0], *sides[1]),
        },
        warnings=tuple(warnings),
    )


def common_models(*boards: Preferences) -> tuple[str, ...]:
    """Return the models that are on all boards, sorted."""
    names = set(boards[0].models).intersection(*(board.models for board in boards[1:]))
    return tuple(sorted(names))


def _moved_boards(boards: tuple[Preferences, ...], names: tuple[str, ...], draws: Draws) -> Moved:
    """Draw prompts, the same for all boards, and move each by their influences on it."""
    centred = [board.of_models(names) for board in boards]
    together = np.hstack([influence for _, influence in centred])
    used = (together != 0).any(axis=1)
    drawn = drawn_sums(together[used], draws.rounds if used.sum() >= 2 else 0, draws.rng)
    moved = zip(centred, np.split(drawn, len(boards), axis=1), strict=True)
    pulls = [influence.ravel() for _, influence in centred]
    return (
        tuple(np.vstack([theta, theta + part]) for (theta, _), part in moved),
        np.array([[x @ y for y in pulls] for x in pulls]) / max(1, len(names) - 1),
    )


def _separated(theta: Floats, influence: Floats, level: float) -> Floats:
    """Return 1 or -1 for pairs of models whose intervals lie apart, else 0, shape (n_pairs,)."""
    n_prompts = int((influence != 0).any(axis=1).sum())
    if n_prompts < 2:
        return np.zeros(len(theta) * (len(theta) - 1) // 2)
    error = np.sqrt(influence_variance(influence, n_prompts))
    reach = quantile(level, n_prompts - 1) * error
    first, second = np.triu_indices(len(theta), 1)
    gap = theta[first] - theta[second]
    return np.where(np.abs(gap) > reach[first] + reach[second], np.sign(gap), 0.0)


def _different(
    theta: Floats, influence: Floats, level: float, n_voters: int | None = None
) -> Floats:
    """Return 1 or -1 for pairs of models whose difference excludes 0, else 0, as above."""
    n_prompts = int((influence != 0).any(axis=1).sum())
    first, second = np.triu_indices(len(theta), 1)
    n = n_prompts if n_voters is None else min(n_prompts, n_voters)
    if n < 2:
        return np.zeros(len(first))
    error = np.sqrt(influence_variance(influence[:, first] - influence[:, second], n_prompts))
    gap = theta[first] - theta[second]
    return np.where(np.abs(gap) > quantile(level, n - 1) * error, np.sign(gap), 0.0)


def ranked(board: Preferences, names: tuple[str, ...]) -> Floats:
    """Return 1 or -1 for pairs of models that a board certainly ranks, else 0, shape (n_pairs,).

    By the interval of the difference, Student's t with one less than the voters or prompts, the
    fewer, at `ERROR` over all pairs.
    """
    level = 1 - ERROR / max(1, math.comb(len(names), 2))
    return _different(*board.of_models(names), level, board.n_voters)


def reversed_pairs(people: Preferences, judge: Preferences) -> tuple[Pair, ...]:
    """Return the pairs that people and the judge certainly rank the opposite way.

    The first is ahead by people. A pair is here only where both boards are certain, so that the
    two share no error.
    """
    names = common_models(people, judge)
    both = (ranked(board, names) for board in (judge, people))
    opposite: tuple[Pair, ...] = _confidence(names, *both)["opposite"]
    return opposite


def _boards_order_brier(people: Floats, theta: Floats, influence: Floats) -> float | None:
    first, second = np.triu_indices(len(theta), 1)
    square = influence.T @ influence
    own = np.diag(square)
    error = np.sqrt(np.maximum(own[first] + own[second] - 2 * square[first, second], 0))
    gap = theta[first] - theta[second]
    sure = (gap != 0) | (error > 0)  # of two models that it never tells apart, it says nothing
    with np.errstate(divide="ignore"):
        probability = scipy.special.ndtr(gap[sure] / error[sure])
    above = (np.sign(people[first] - people[second]) + 1) / 2
    return _mean((probability - above[sure]) ** 2)


def contest(
    people: Preferences, first: Preferences, second: Preferences, draws: Draws
) -> dict[str, Estimate]:
    """Compare two judges' boards with people's, the same prompts drawn for all three.

    By kind, the first judge's correlation less the second's, as found, over the models on all
    three boards: an interval that holds 0 does not show a difference. Without one where they are
    the same in every draw. Intervals as in `compare_boards`.
    """
    names = common_models(people, first, second)
    moved = _moved_boards((people, first, second), names, draws)
    ours, theirs = (correlated(moved, 0, judge, freed=False) for judge in (1, 2))
    return {kind: around(ours[kind] - theirs[kind], len(names), draws.level) for kind in KINDS}


# System ranking


FEWEST_ITEMS = 20
"""Of a pair of models: with fewer, a win rate says little but chance."""
FEWEST_PAIRS = 3
_LOWEST, _HIGHEST = 0.05, 20.0
_GRID = np.geomspace(_LOWEST, _HIGHEST, 25)
_FINE = np.linspace(-1, 1, 9) * np.log(_GRID[1] / _GRID[0])
"""Logarithms around the best point of the grid, as far as its neighbours."""
_AT_ONCE = 2_000_000
"""Values of the curve in memory at a time."""


@dataclass(frozen=True, slots=True)
class SystemRanking:
    """How the win rates of a judge stand to those of people, over pairs of models.

    Attributes
    ----------
    decisiveness : Estimate
        Of the curve by which the judge's win rates follow those of people: above 1 it makes gaps
        wider, below 1 narrower.
    bias : mapping of str to Estimate
        By model: mean over its opponents of the judge's win rate less what the curve gives.
    bias_sd : Estimate
        Standard deviation of these, as published. It is above 0 by chance alone.
    bias_sd_noise_freed : float
        Less what other prompts would make of a judge without any; 0 where that is all of it.
    n_pairs : int
        Pairs of models with `FEWEST_ITEMS` items or more.
    """

    decisiveness: Estimate
    bias: dict[str, Estimate]
    bias_sd: Estimate
    bias_sd_noise_freed: float
    n_pairs: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "decisiveness": self.decisiveness.to_dict(),
            "bias": [{"model": model} | one.to_dict() for model, one in self.bias.items()],
            "bias_sd": self.bias_sd.to_dict(),
            "bias_sd_noise_freed": self.bias_sd_noise_freed,
            "pairs": self.n_pairs,
        }


def system_ranking(items: Items, people: Labels, judge: Labels, draws: Draws) -> SystemRanking:
    """Hold a judge's win rates over pairs of models against those of people.

    With ``g`` the win rate of one model over another by people and ``p`` by the judge, on the
    items that both have labels on, a tie half a win and each item counting once::

        p_ab ~ I(g_ab; alpha, alpha)        the cumulative beta distribution
        bias_a = mean over b of (p_ab - I(g_ab; alpha, alpha))
        bias_sd = sd over a of bias_a

    ``alpha`` is the decisiveness, here by least squares over pairs. Win rates by people are of a
    sample, and what chance there is in them draws ``alpha`` towards 1 where it is above.
    Intervals draw whole prompts.

    Raises
    ------
    NotIdentifiedError
        If fewer than `FEWEST_PAIRS` pairs of models have `FEWEST_ITEMS` items.

    References
    ----------
    .. [1] A. Gera et al., "JuStRank: Benchmarking LLM Judges for System Ranking", ACL 2025,
       section 6. The paper does not state how the curve is fitted; what is freed of noise is ours.
    """
    pairs, stats = _by_prompt(items, people, judge)
    sums = np.vstack([stats.sum(axis=0), drawn_sums(stats, draws.rounds, draws.rng)])
    gold, own = _win_rates(sums)
    alpha = decisiveness(gold, own)
    lifted = own - curve(gold, alpha[:, None])
    models = np.unique(pairs)
    bias = np.stack([_bias(lifted, pairs, int(model)) for model in models], axis=1)
    spread = bias.std(axis=1)
    noise = float(np.nanvar(bias[1:], axis=0).mean()) if draws.rounds else 0.0
    n = len(pairs)

    def estimate(values: Floats, count: int) -> Estimate:
        return Estimate(float(values[0]), *with_width(*interval(values[1:], draws.level)), count)

    return SystemRanking(
        decisiveness=estimate(alpha, n),
        bias={
            items.models[model]: estimate(bias[:, place], int((pairs == model).sum()))
            for place, model in enumerate(models)
        },
        bias_sd=estimate(spread, len(models)),
        bias_sd_noise_freed=float(np.sqrt(max(spread[0] ** 2 - noise, 0.0))),
        n_pairs=n,
    )


def curve(gold: Floats, alpha: Floats) -> Floats:
    """Return the win rates of a judge of a decisiveness who favours nobody.

    Examples
    --------
    >>> curve(np.array([0.2, 0.5, 0.8]), np.array(1.0)).round(3).tolist()
    [0.2, 0.5, 0.8]
    >>> curve(np.array([0.2, 0.5, 0.8]), np.array(2.0)).round(3).tolist()
    [0.104, 0.5, 0.896]
    """
    return np.asarray(scipy.special.betainc(alpha, alpha, gold))


def decisiveness(gold: Floats, own: Floats) -> Floats:
    """Fit ``alpha`` by least squares over pairs, from 0.05 to 20.

    Parameters
    ----------
    gold, own : ndarray of shape (r, n_pairs)
        Win rates by people and by the judge; of each row, a fit.

    Returns
    -------
    ndarray of shape (r,)
    """
    at_once = max(1, _AT_ONCE // (gold.shape[1] * len(_GRID)))
    parts = range(0, len(gold), at_once)
    return np.concatenate([_fitted(gold[i : i + at_once], own[i : i + at_once]) for i in parts])


def _fitted(gold: Floats, own: Floats) -> Floats:
    """Take the best point of a grid, of a finer one around it, and the vertex of a parabola."""
    coarse = np.log(_GRID)[None] + np.zeros((len(gold), 1))
    middle = _best(gold, own, coarse)[0]
    fine = middle[:, None] + _FINE
    losses = _best(gold, own, fine)[1]
    at = np.clip(losses.argmin(axis=1), 1, len(_FINE) - 2)
    before, here, after = (losses[np.arange(len(gold)), at + step] for step in (-1, 0, 1))
    bend = before - 2 * here + after
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend > 0, 0.5 * (before - after) / bend, 0.0)
    best = fine[np.arange(len(gold)), at] + (_FINE[1] - _FINE[0]) * np.clip(shift, -1.0, 1.0)
    return np.asarray(np.clip(np.exp(best), _LOWEST, _HIGHEST))


def _best(gold: Floats, own: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Return the point of least loss of each row, and the losses at all points."""
    losses = np.stack(
        [((own - curve(gold, np.exp(a)[:, None])) ** 2).sum(axis=1) for a in logs.T], axis=1
    )
    return logs[np.arange(len(logs)), losses.argmin(axis=1)], losses


def _by_prompt(items: Items, people: Labels, judge: Labels) -> tuple[Ints, Floats]:
    """Give the pairs that have enough items, and what each prompt adds to their sums.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2)
    stats : ndarray of shape (n_prompts, 3 n_pairs)
        Wins by people, by the judge, and items, of the first model of each pair.
    """
    by_people, by_judge = (one.mean((one.label + 1) / 2, items.n) for one in (people, judge))
    a, b = items.pairs.T
    used = np.flatnonzero(~np.isnan(by_people) & ~np.isnan(by_judge) & (a != b))
    turned = a[used] > b[used]
    sides = np.sort(items.pairs[used], axis=1)
    pairs, which, counts = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
    enough = np.flatnonzero(counts >= FEWEST_ITEMS)
    if len(enough) < FEWEST_PAIRS:
        raise NotIdentifiedError(
            f"{len(enough)} pairs of models have at least {FEWEST_ITEMS} items with labels of "
            f"people and of the judge; {FEWEST_PAIRS} are needed."
        )
    place = np.full(len(pairs), -1)
    place[enough] = np.arange(len(enough))
    column = place[which.ravel()]
    rows = column >= 0
    wins = [np.where(turned, 1 - one[used], one[used])[rows] for one in (by_people, by_judge)]
    stats = np.zeros((int(rows.sum()), 3 * len(enough)))
    for part, values in enumerate((*wins, np.ones(int(rows.sum())))):
        stats[np.arange(len(stats)), part * len(enough) + column[rows]] = values
    return pairs[enough], sums_within(items.prompt[used][rows], stats, items.n_prompts)


def _win_rates(sums: Floats) -> tuple[Floats, Floats]:
    """Divide; of a pair that no drawn prompt has, the rate is one half by both."""
    people, judge, n = np.split(sums, 3, axis=1)
    of_people, of_judge = (np.where(n > 0, won / np.maximum(n, 1), 0.5) for won in (people, judge))
    return of_people, of_judge


def _bias(lifted: Floats, pairs: Ints, model: int) -> Floats:
    first, second = (pairs == model).T
    signed = np.concatenate([lifted[:, first], -lifted[:, second]], axis=1)
    return np.asarray(signed.mean(axis=1))
