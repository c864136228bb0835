"""Simultaneous rank intervals, quasi-standard errors, and win rates of a board.

`joint_rank_ranges` bounds all ranks by the differences that are claimed together;
`quasi_standard_errors` finds one variance per model that reproduces those of all differences.
`win_rates` gives expected and observed scores of all pairs, `field_rates` each model's mean
against the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from rating.comparisons import Comparisons
from rating.contrasts import WELL_FOUNDED, ByCluster, Inference, Pairs
from rating.covariance import difference_variances
from rating.errors import DataError
from rating.fitting import Fit
from rating.leave_out import quantile, quantiles
from rating.likelihood import SCORE_A
from rating.typing import Bools, Floats, Ints

# Simultaneous rank intervals


MIN_EFFECTIVE_FOR_RANKS = WELL_FOUNDED
"""Effective clusters behind the votes from which ranks are claimed by changed signs."""
EQUAL_NATS = 1e-9
"""Strengths this close share a rank."""
DRAWS = 10_000
DRAWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, eq=False)
class RankRanges:
    """Simultaneous rank intervals.

    Attributes
    ----------
    low, high : ndarray of shape (n_models,), int64
        Best and worst rank, 1 being the best of all.
    better : ndarray of shape (n_models, n_models), bool
        Whether the model of a row is better than that of a column, simultaneously.
    """

    low: Ints
    high: Ints
    better: Bools

    @classmethod
    def of(cls, better: Bools) -> Self:
        """Count whom each model stands above, and who above it."""
        low = np.asarray(1 + better.sum(axis=0))
        return cls(low, np.asarray(len(better) - better.sum(axis=1)), better)

    @property
    def claimed(self) -> Bools:
        """Models of which some rank is ruled out, shape (n_models,)."""
        return np.asarray((self.low > 1) | (self.high < len(self.low)))

    def among(self, models: Sequence[int]) -> Self:
        """Give the ranks that some models hold among themselves.

        Claims on more models at once hold for fewer, too, so these ranges are right together.
        """
        return self.of(self.better[np.ix_(models, models)])


def joint_rank_ranges(
    inference: Inference, *, rng: np.random.Generator, level: float = 0.95
) -> RankRanges:
    """Bound every model's rank by the differences that stand up together: the board's way.

    See `joint_half_widths`.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference
       for ranks with applications to mobility across neighbourhoods and
       academic achievement across countries", Review of Economic Studies
       91(1), 2024, pp. 476-518.
    """
    theta = inference.fit.theta
    half = joint_half_widths(inference, rng=rng, level=level)
    return RankRanges.of(theta[:, None] - theta > half)


def joint_half_widths(
    inference: Inference, *, rng: np.random.Generator, level: float = 0.95
) -> Floats:
    """Return what each difference must exceed to stand up with all others, shape (k, k).

    For votes taken as independent the bar is drawn from a multivariate normal, as in
    `rank_ranges`. With clusters, a difference with `WELL_FOUNDED` effective clusters behind it
    must exceed the largest t statistic when clusters change their sign (see
    `rating.covariance.SignSums`; where there are none that of a multivariate t),
    the larger one of voters and prompts. One with fewer must exceed Student's t, with its own
    degrees of freedom, at the level that all m pairs leave to one (Bonferroni). So must every
    difference where fewer clusters than `MIN_EFFECTIVE_FOR_RANKS`, or than models, stand behind
    the votes: there the random-effects model is not relied on, changed signs are too few to say
    anything, and of voters and prompts the fewer give the degrees of freedom, less one. No
    difference counts that independent votes, ``z`` at the same level, or prompts by themselves
    would not show.

    Parameters
    ----------
    inference : Inference
        Made with a generator.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        In nats; infinite on the diagonal.
    """
    k = inference.fit.n_models
    if not inference.kinds:
        matrix = inference.matrix[:k, :k]
        return critical_value(matrix, rng=rng, level=level) * _standard_errors(matrix)
    pairs = inference.pairs
    each, first, second = pairs.each, pairs.first, pairs.second
    small = any(kind.is_small for kind in inference.shared)
    founded = (each.effective >= WELL_FOUNDED) & (not small)
    one_of_all = 1 - (1 - level) / len(first)
    variance, df = (each.by_clusters, each.effective - 1) if small else (each.variance, each.df)
    bar = quantiles(one_of_all, df) * np.sqrt(variance)
    least = each.floor(one_of_all)
    if founded.any():
        among = first[founded], second[founded]
        bars = [_bar(inference, kind, among, rng, level) for kind in inference.shared]
        bar[founded] = max(bars) * np.sqrt(each.by_clusters[founded])
        least[founded] = quantile(one_of_all, np.inf) * np.sqrt(each.independent[founded])
        if len(bars) > 1:
            by_prompt = bars[1] * np.sqrt(each.by_prompt[founded])
            least[founded] = np.fmax(least[founded], by_prompt)
    half = np.full((k, k), np.inf)
    half[first, second] = half[second, first] = np.fmax(bar, least)
    return half


def _bar(
    inference: Inference,
    kind: ByCluster,
    pairs: tuple[Ints, Ints],
    rng: np.random.Generator,
    level: float,
) -> float:
    k = inference.fit.n_models
    matrix = kind.matrix[:k, :k]
    if kind.signs is None:
        return critical_value(matrix, rng=rng, df=kind.activity.effective - 1, level=level)
    return kind.signs.critical_value(matrix, pairs, level=level)


def rank_ranges(
    theta: Floats,
    covariance: Floats,
    *,
    rng: np.random.Generator,
    df: float = np.inf,
    level: float = 0.95,
) -> RankRanges:
    """Compute simultaneous rank intervals.

    Model i is better than j when ``theta[i] - theta[j]`` exceeds
    `critical_value` standard errors of that difference. Its range runs from
    1 + (models better than it) to n_models - (models worse than it).

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
    covariance : ndarray of shape (n_models, n_models)
    df : float, default infinity
        Degrees of freedom; infinity for the normal distribution.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference
       for ranks with applications to mobility across neighbourhoods and
       academic achievement across countries", Review of Economic Studies
       91(1), 2024, pp. 476-518. The maximum there is bootstrapped; here it is
       drawn from a multivariate t.

    Examples
    --------
    >>> ranges = rank_ranges(np.array([1.0, 0.0, -1.0]), np.diag([0.01, 0.3, 0.01]),
    ...                      rng=np.random.default_rng(1))
    >>> ranges.low.tolist(), ranges.high.tolist()
    ([1, 1, 2], [2, 3, 3])
    """
    bar = critical_value(covariance, rng=rng, df=df, level=level)
    better = theta[:, None] - theta[None, :] > bar * _standard_errors(covariance)
    return RankRanges.of(better)


def critical_value(
    covariance: Floats, *, rng: np.random.Generator, df: float = np.inf, level: float = 0.95
) -> float:
    """Simulate the quantile of the largest absolute t statistic over all pairs of models.

    `DRAWS` vectors of the multivariate normal or t with this covariance; the
    quantile is the next order statistic up, so never below the level.
    """
    errors, largest = _standard_errors(covariance), np.zeros(DRAWS)
    draws = np.ascontiguousarray(_draws(covariance, rng, df).T)
    for first in range(0, DRAWS, DRAWS_AT_ONCE):
        some = draws[:, first : first + DRAWS_AT_ONCE]
        top = largest[first : first + DRAWS_AT_ONCE]
        for i in range(len(draws) - 1):
            gaps = some[i] - some[i + 1 :]
            np.abs(gaps, out=gaps)
            gaps /= errors[i, i + 1 :, None]
            np.maximum(top, gaps.max(axis=0), out=top)
    return float(np.quantile(largest, level, method="higher"))


def _draws(covariance: Floats, rng: np.random.Generator, df: float) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T  # symmetric, hence unique
    normal = rng.standard_normal((DRAWS, len(values))) @ root
    if np.isinf(df):
        return np.asarray(normal)
    return np.asarray(normal / np.sqrt(rng.chisquare(df, (DRAWS, 1)) / df))


def _standard_errors(covariance: Floats) -> Floats:
    square = difference_variances(covariance)
    # No model is better than itself, nor than one from whom it never differed.
    return np.asarray(np.sqrt(np.where(square > 0, square, np.inf)))


# Quasi-standard errors


_MAX_STEPS = 200


class QuasiErrors(NamedTuple):
    """Quasi-standard errors and their accuracy.

    Attributes
    ----------
    qse : ndarray of shape (n_models,)
        Nats; the error of a difference is about ``sqrt(qse_i^2 + qse_j^2)``.
    worst_error : float
        Largest relative error of that over all pairs.
    """

    qse: Floats
    worst_error: float


def quasi_standard_errors(variances: Floats) -> QuasiErrors:
    """Find the variances q that best give the variance of every difference as ``q_i + q_j``.

    Minimises ``sum_(i<j) (log v_ij - log(q_i + q_j))^2`` by Gauss-Newton steps,
    where ``v_ij`` is the variance of the difference of i and j. They depend on no reference model.
    A q that would be negative ends at zero, and shows in ``worst_error``.

    Parameters
    ----------
    variances : ndarray of shape (n_models, n_models)
        Of the differences, see `difference_variances`; at least two models.

    Raises
    ------
    DataError
        If a difference has no positive variance, or there is one model only.

    References
    ----------
    .. [1] D. Firth and R. X. de Menezes, "Quasi-variances", Biometrika 91(1),
       2004, pp. 65-80, section 3.

    Examples
    --------
    Independent strengths are their own quasi-variances.

    >>> found = quasi_standard_errors(difference_variances(np.diag([1.0, 4.0, 9.0])))
    >>> found.qse.round(6).tolist()
    [1.0, 2.0, 3.0]
    """
    target = np.array(variances)
    k = len(target)
    off = ~np.eye(k, dtype=bool)
    if k < 2 or not (target[off] > 0).all():
        raise DataError("Quasi-standard errors need two models and positive pairwise variances.")
    np.fill_diagonal(target, 1.0)
    q = _start(target, off)
    for _ in range(_MAX_STEPS):
        total = np.where(off, q[:, None] + q, 1.0)
        slope = np.where(off, 1 / total, 0.0)
        miss = np.where(off, np.log(target) - np.log(total), 0.0)
        normal = slope**2 + np.diag((slope**2).sum(axis=1))
        step = np.asarray(np.linalg.lstsq(normal, (slope * miss).sum(axis=1))[0])
        while _misfit(q + step, target, off) > _misfit(q, target, off) + 1e-15:
            step = step / 2
        q = q + step
        if np.abs(step).max() <= 1e-12 * q.max():
            break
    q = q.clip(min=0)
    ratio = np.sqrt((q[:, None] + q)[off] / target[off])
    return QuasiErrors(np.sqrt(q), float(np.abs(ratio - 1).max()))


def _start(target: Floats, off: Bools) -> Floats:
    """Return the least-squares solution on the variances themselves, made positive."""
    k = len(target)
    sums = np.where(off, target, 0.0).sum(axis=1)
    if k == 2:
        return np.asarray(sums / 2)
    q = (sums - sums.sum() / (2 * (k - 1))) / (k - 2)
    return np.asarray(q.clip(min=1e-3 * sums / (k - 1)))


def _misfit(q: Floats, target: Floats, off: Bools) -> float:
    total = (q[:, None] + q)[off]
    if (total <= 0).any():
        return np.inf
    return float(((np.log(target[off]) - np.log(total)) ** 2).sum())


# Win rates


@dataclass(frozen=True, slots=True, eq=False)
class WinRates:
    """Expected and observed scores of row against column, a tie half a win.

    All arrays have shape (n_models, n_models).

    Attributes
    ----------
    models : tuple of str
    expected, low, high : ndarray
        Chance that row beats column, plus half that of a tie of either kind,
        each model as often on side A as on side B, features at zero; with
        its interval. NaN on the diagonal.
    observed, observed_low, observed_high : ndarray
        Share of the weighted score, with Wilson's interval; NaN for a pair
        that never met.
    n : ndarray
        Weight of the votes.
    """

    models: tuple[str, ...]
    expected: Floats
    low: Floats
    high: Floats
    observed: Floats
    observed_low: Floats
    observed_high: Floats
    n: Floats


def win_rates(inference: Inference, *, level: float = 0.95) -> WinRates:
    """Compute expected and observed win rates.

    The interval of the expected rate is by the delta method on its log-odds,
    with the variance and the degrees of freedom of the pair. The observed one
    takes votes as independent, ``weight^2 / weight_sq`` of them, and a tie as
    if it were decided: wide rather than narrow.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and
       statistical inference", JASA 22(158), 1927, pp. 209-212.

    Examples
    --------
    >>> from rating import fit, infer
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> float(win_rates(infer(fit(data), data, ())).expected[0, 1].round(6))
    0.75
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    fit, pairs = inference.fit, inference.pairs
    rate, slope = _expected(fit, pairs.first, pairs.second)
    on_odds = slope / (rate * (1 - rate))[:, None]
    reach = inference.of(on_odds, pairs.behind).half_width(level)
    odds = np.log(rate / (1 - rate))
    low, high = 1 / (1 + np.exp(reach - odds)), 1 / (1 + np.exp(-reach - odds))
    observed, observed_low, observed_high, n = _observed(inference.data, level)
    return WinRates(
        models=fit.models,
        expected=_mirrored(pairs, rate, 1 - rate),
        low=_mirrored(pairs, low, 1 - high),
        high=_mirrored(pairs, high, 1 - low),
        observed=observed,
        observed_low=observed_low,
        observed_high=observed_high,
        n=n,
    )


def _mirrored(pairs: Pairs, value: Floats, other: Floats) -> Floats:
    """Lay out a value of each pair, and that of its second model; NaN on the diagonal."""
    size = int(pairs.second[-1]) + 1
    laid = np.full((size, size), np.nan)
    laid[pairs.first, pairs.second], laid[pairs.second, pairs.first] = value, other
    return laid


def _expected(fit: Fit, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the rates of pairs, and their derivatives in all parameters."""
    k, n = fit.n_models, np.arange(len(first))
    rate, slope, along = np.zeros(len(first)), np.zeros((3, len(first))), np.zeros(len(first))
    order = fit.x[k] if fit.order_effect else 0.0
    gap, level = fit.theta[first] - fit.theta[second], (fit.theta[first] + fit.theta[second]) / 2
    for side in (1.0, -1.0):
        share, change = _score(fit, side * gap + order, level)
        rate += (share if side > 0 else 1 - share) / 2
        slope += np.stack([change[0], side * change[1], side * change[2]]) / 2
        along += side * change[0] / 2
    on_gap, on_tie, on_level = slope
    on_all = np.zeros((len(first), len(fit.x)))
    on_all[n, first] = on_gap + on_level / 2
    on_all[n, second] = on_level / 2 - on_gap
    if fit.order_effect:
        on_all[:, k] = along
    if "tie" in fit.likelihood.coordinates:
        on_all[:, -1] = on_tie
    return rate, on_all


def _score(fit: Fit, gap: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Return side A's expected score and its derivatives in gap, tie parameter and level."""
    names = fit.likelihood.coordinates
    share, change = np.zeros(len(gap)), np.zeros((3, len(gap)))
    for code in fit.likelihood.outcomes:
        outcome = np.full(len(gap), code)
        local = fit.likelihood.loss(outcome, gap, float(fit.x[-1]), level)
        part = SCORE_A[code] * np.exp(-local.value)
        share += part
        for name, value in zip(names, local.slope, strict=True):
            change[("gap", "tie", "level").index(name)] -= part * value
    return share, change


def _observed(data: Comparisons, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return observed shares, their Wilson limits, and the weight behind them."""
    wins = data.wins()
    n = wins + wins.T
    square = data.table(data.weight_sq).sum(axis=-1)
    square = square + square.T
    met = n > 0
    share = np.where(met, wins, np.nan) / np.where(met, n, 1.0)
    votes = n**2 / np.where(met, square, 1.0)
    z2 = quantile(level, np.inf) ** 2
    scale = np.where(met, votes, 1.0) + z2
    middle = (votes * share + z2 / 2) / scale
    reach = np.sqrt(z2 * (votes * share * (1 - share) + z2 / 4)) / scale
    return share, middle - reach, middle + reach, n


@dataclass(frozen=True, slots=True, eq=False)
class FieldRates:
    """Expected score of each model against the others, weighted equally.

    Attributes
    ----------
    models : tuple of str
    rate, low, high : ndarray of shape (n_models,)
        Expected score, a tie half a win, and its interval.
    """

    models: tuple[str, ...]
    rate: Floats
    low: Floats
    high: Floats


def field_rates(inference: Inference, *, level: float = 0.95) -> FieldRates:
    """Average a model's expected win rate over all the others.

    ``w_i = sum_(j != i) p_ij / (n_models - 1)`` with
    ``p_ij = sigmoid(theta_i - theta_j)``. The interval is by the delta method
    on the log-odds of ``w_i``: others' errors count. Its effective voters are those behind the
    rating, see `rating.contrasts`.

    Parameters
    ----------
    inference : Inference
        Of a fit with ties as half wins and without an order effect.

    Raises
    ------
    DataError
        If the fit has other parameters, or ``level`` is not between 0 and 1.

    Examples
    --------
    >>> from rating import Comparisons, fit, infer
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> field_rates(infer(fit(data), data, ())).rate.round(6).tolist()
    [0.75, 0.25]
    """
    fit = inference.fit
    if fit.parameters:
        named = ", ".join(p.name for p in fit.parameters)
        raise DataError(f"Rates against the field are of strengths alone; this fit has {named}.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    probability = 1 / (1 + np.exp(fit.theta[None, :] - fit.theta[:, None]))
    others = fit.n_models - 1
    rate = (probability.sum(axis=1) - 0.5) / others
    slope = -probability * (1 - probability) / others
    np.fill_diagonal(slope, 0.0)
    np.fill_diagonal(slope, -slope.sum(axis=1))
    slope /= (rate * (1 - rate))[:, None]
    behind = [kind.own.effective for kind in inference.shared]
    reach = inference.of(slope, behind).half_width(level)
    odds = np.log(rate / (1 - rate))
    return FieldRates(
        models=fit.models,
        rate=rate,
        low=1 / (1 + np.exp(reach - odds)),
        high=1 / (1 + np.exp(-reach - odds)),
    )
