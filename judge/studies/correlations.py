"""Correlations of scores, of boards, and of scores from elsewhere with ratings."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.estimates import Draws, Ends, Estimate, interval, with_width
from rating.errors import DataError
from rating.typing import Floats

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


@dataclass(frozen=True, slots=True)
class Correlations:
    """How two columns of scores go together; NaN where a column does not vary.

    Attributes
    ----------
    pearson_top, pearson : float
        Over the models that are best by the reference, and over all.
    spearman : float
        Pearson of the ranks, equal scores sharing their mean rank.
    kendall : float
        tau-b.
    n_models : int
        With both scores.
    """

    pearson_top: float
    pearson: float
    spearman: float
    kendall: float
    n_models: int


def correlations(scores: Floats, reference: Floats, *, top: int = 6) -> Correlations:
    """Correlate scores with a reference, such as a judge's with people's.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_models,)
        NaN where a model has no score: it is left out.
    top : int
        How many of the best by ``reference`` the first correlation is over.

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
    return Correlations(
        pearson_top=float(_pearson(x[None, best], y[None, best])[0]),
        n_models=len(x),
        **{kind: float(values[0]) for kind, values in by_kind.items()},
    )


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
    starts = range(0, rows, at_once)
    parts = [_together(x[i : i + at_once], y[i : i + at_once]) for i in starts]
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


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Boards as found, and as each round moves them.

    Attributes
    ----------
    theta : tuple of ndarray of shape (1 + rounds, n_models)
        One a board; the first row is as found.
    noise : ndarray of shape (n_boards, n_boards)
        What the uncertainty of strengths adds to the variance of a board over its models, and to
        the covariance of two.
    """

    theta: tuple[Floats, ...]
    noise: Floats


def both_correlations(moved: Moved, first: int, second: int, level: float) -> dict[str, Estimate]:
    """Estimate each of `KINDS` as found and freed of noise, by the names of `FIGURES`."""
    n = moved.theta[0].shape[1]
    return {
        name: around(values, n, level)
        for freed, suffix in ((False, ""), (True, NOISE_FREED))
        for kind, values in correlated(moved, first, second, freed=freed).items()
        for name in (kind + suffix,)
    }


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
    one, other = moved.theta[first], moved.theta[second]
    if one.shape[1] < MIN_MODELS:
        return {kind: np.full(len(one), np.nan) for kind in KINDS}
    rows = row_correlations(other, one)
    places = np.ix_([first, second], [first, second])
    spread = one.var(axis=1, ddof=1), other.var(axis=1, ddof=1)
    times = int(freed) + (np.arange(len(one)) > 0)
    noise = times[:, None, None] * moved.noise[places]
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


@dataclass(frozen=True, slots=True)
class Figures:
    """How two boards, or scores and a board, go together, by the names of `FIGURES`.

    Attributes
    ----------
    spearman, kendall, pearson : Estimate
        As found; ``n`` is the number of models.
    spearman_noise_freed, kendall_noise_freed, pearson_noise_freed : Estimate
        Of boards of endless votes and verdicts: noise lowers a correlation.
    """

    spearman: Estimate
    kendall: Estimate
    pearson: Estimate
    spearman_noise_freed: Estimate
    kendall_noise_freed: Estimate
    pearson_noise_freed: Estimate


def figures_of(correlated: Figures | None) -> dict[str, dict[str, float | None]]:
    """Return the correlations of a comparison with their intervals; of None, all None."""
    ends = ("value", "lower", "upper")
    return {
        name: {end: getattr(getattr(correlated, name, None), end, None) for end in ends}
        for name in FIGURES
    }


@dataclass(frozen=True, slots=True)
class ScoreCorrelations(Figures):
    """How scores go with ratings, over the models that have both.

    The intervals are for these models: by how uncertain the ratings are. No figure has a value
    where the scores or the ratings do not vary, or under three models have both.

    Attributes
    ----------
    other_models : mapping of str to pair of float or None
        Percentile intervals for models like these: models drawn with replacement.
    warnings : tuple of str
    """

    other_models: dict[str, Ends]
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many models have both."""
        return self.spearman.n

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = {"n": self.n, **figures_of(self)}
        for kind, (lower, upper) in self.other_models.items():
            plain[kind]["other_models"] = {"lower": lower, "upper": upper}
        return plain


def score_correlations(
    ratings: Floats, covariance: Floats | None, scores: Floats, draws: Draws
) -> ScoreCorrelations:
    """Correlate scores with ratings.

    The interval for these models draws ratings from the normal law of their covariance and
    corrects each round for noise as `judge.studies.correlations.correlated` does, the scores being
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
    estimates = both_correlations(moved, 0, 1, draws.level)
    drawn = _models_drawn(ratings[both], scores[both], draws)
    ends = {kind: _ends(estimates[kind], drawn[kind], draws.level) for kind in KINDS}
    warnings = _warnings(int(both.sum()), estimates["pearson"])
    return ScoreCorrelations(**estimates, other_models=ends, warnings=warnings)


def _moved(ratings: Floats, covariance: Floats | None, scores: Floats, draws: Draws) -> Moved:
    n = len(ratings)
    if covariance is None or n < MIN_MODELS:
        return Moved((scores[None], ratings[None]), np.zeros((2, 2)))
    root = np.linalg.svd(covariance, hermitian=True)
    moves = draws.rng.normal(size=(draws.rounds, n)) * np.sqrt(root.S) @ root.Vh
    drawn = np.vstack([ratings, ratings + moves])
    spread = (np.trace(covariance) - covariance.sum() / n) / (n - 1)
    still = np.broadcast_to(scores, drawn.shape)
    return Moved((still, drawn), np.diag([0.0, float(spread)]))


def _models_drawn(ratings: Floats, scores: Floats, draws: Draws) -> dict[str, Floats]:
    if len(ratings) < MIN_MODELS:
        return {kind: np.full(draws.rounds, np.nan) for kind in KINDS}
    some = draws.rng.integers(len(ratings), size=(draws.rounds, len(ratings)))
    return row_correlations(scores[some], ratings[some])


def _ends(estimate: Estimate, drawn: Floats, level: float) -> Ends:
    return (None, None) if estimate.value is None else with_width(*interval(drawn, level))


def _warnings(n: int, estimate: Estimate) -> tuple[str, ...]:
    if n < MIN_MODELS:
        have = f"{n} model{' has' if n == 1 else 's have'} a score and a rating"
        return (f"{have}: a correlation needs {MIN_MODELS} or more.",)
    if estimate.value is None:
        return ("The scores or the ratings are all the same: there is no correlation.",)
    if n < FEW_MODELS:
        return (
            f"A correlation over {n} models says little: with other models it may well be "
            f"another. Compare {FEW_MODELS} or more.",
        )
    return ()
