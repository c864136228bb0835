"""Estimates with cluster-robust intervals: agreement, kappa, and variance components.

`clustered` gives a statistic its interval by drawing whole prompts, widened for raters; the
functions such as `percent_of` write an `Estimate` in a sentence. `variance_shares` splits the
variance of ratings between items, raters and the rest. `pair_agreement`, `own_agreement` and
`kappa` measure how often raters agree on an item, also beyond chance.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy

from judge.studies.rows import TIE, Items, Labels
from rating.errors import DataError
from rating.leave_out import drawn_sums, jackknife_variance, quantile, sums_within, two_way
from rating.typing import Floats, Ints

# Estimates and intervals


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its interval, and how many comparisons it is of.

    ``value`` is None where the data do not give it, and ``lower`` and ``upper`` where they do not
    give an interval: undefined is not zero.
    """

    value: float | None
    lower: float | None
    upper: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals are drawn.

    Attributes
    ----------
    rng : numpy.random.Generator
        Of the draws; an estimate that takes these `Draws` moves it on.
    rounds : int
        Draws behind an interval.
    level : float
        Of the intervals.
    """

    rng: np.random.Generator
    rounds: int = 1000
    level: float = 0.95


Statistic = Callable[[Floats], Floats]

Ends = tuple[float | None, float | None]


FEWEST_PEOPLE = 2.5
"""With fewer effective raters intervals are for other prompts, not for other people.

Three people who are not equally busy are a little less than three.
"""

FEW_PROMPTS = 20
"""Under this many prompts an interval from drawing them is too narrow: say so beside it."""

NO_WIDTH = 1e-9
"""An interval narrower than this has only the errors of arithmetic for its width."""


@dataclass(frozen=True, slots=True)
class MeanOfPrompts:
    """What is known beforehand of a statistic that is a weighted mean over prompts.

    Attributes
    ----------
    low, high : float
        The least and the largest value that a prompt can add: 0 and 1 of a share.
    weights : tuple of int
        Columns of the sums that hold the weights; several of a difference of means.
    """

    low: float
    high: float
    weights: tuple[int, ...]

    def opened(self, value: float, stats: Floats, level: float) -> Ends:
        """Return the interval where every prompt says the same.

        Of ``n`` effective prompts, ``(sum w)^2 / sum w^2``, none differs: at this level a share
        of up to ``1 - ((1 - level) / 2)^(1 / n)`` of all prompts does (Clopper-Pearson), and lies
        at worst at ``low`` or at ``high``.
        """
        weights = stats[:, self.weights]
        n = float((weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0)).min())
        others = 1 - ((1 - level) / 2) ** (1 / n)
        return value - others * (value - self.low), value + others * (self.high - value)


SHARE = MeanOfPrompts(0.0, 1.0, (1,))
"""A share of which the first column counts the cases that are so, and the second all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Raters:
    """What each rater, and each rater on each prompt, has a part in of the sums over prompts.

    Attributes
    ----------
    alone : ndarray of shape (n_raters, k)
        What the sums lose without a rater.
    on_prompts : ndarray of shape (n_raters_and_prompts, k)
        What they lose without a rater's rows on one prompt.
    effective : float
        Equally busy raters that these amount to.
    """

    alone: Floats
    on_prompts: Floats
    effective: float

    @classmethod
    def of(cls, items: Items, labels: Labels, each: Floats) -> "Raters":
        """Sum what each row has a part in, shape (n, k), over raters."""
        _, rater = np.unique(labels.rater, return_inverse=True)
        both = rater * items.n_prompts + items.prompt[labels.item]
        _, place = np.unique(both, return_inverse=True)
        busy = np.bincount(rater, (each != 0).any(axis=1))
        alone = sums_within(rater, each, len(busy))
        on_prompts = sums_within(place, each, int(place.max(initial=-1)) + 1)
        effective = float(busy.sum() ** 2 / (busy**2).sum()) if busy.any() else 0.0
        return cls(alone[busy > 0], on_prompts, effective)


def clustered(
    stats: Floats,
    statistic: Statistic,
    draws: Draws,
    *,
    n: int,
    mean: MeanOfPrompts | None = None,
    raters: Raters | None = None,
) -> Estimate:
    """Estimate a function of sums over prompts, with its interval.

    Whole prompts are drawn with replacement, as many as there are, so whatever depends within a
    prompt stays together. A round in which the statistic is not defined counts as endless at both
    ends, and is not dropped: an end that falls on one is None.

    Where all rounds are equal, for every prompt says the same or there is only one, drawing tells
    nothing of other prompts. A mean then has the interval of `MeanOfPrompts.opened`; any other
    statistic has none.

    Parameters
    ----------
    stats : ndarray of shape (n_prompts, k)
        What each prompt adds to the sums. A prompt that adds nothing is no part of the draw.
    statistic : callable
        Takes sums of shape (r, k) to values of shape (r,), NaN where not defined.
    n : int
        Comparisons behind the estimate, to hand on.
    mean : MeanOfPrompts, optional
        If the statistic is one.
    raters : Raters, optional
        Who said it, where the interval is to allow for other people as well. With the variances V
        by omitting prompts, raters, and the rows of a rater on a prompt, one at a time, it is
        widened to ``V_prompt + max(0, V_rater - V_rater_and_prompt)``, by Student's t, and to
        what ``V_rater`` asks for by itself: few people may differ little by chance. Not with
        fewer than `FEWEST_PEOPLE`.

    Returns
    -------
    Estimate
        Without a value where the statistic is not defined.

    References
    ----------
    .. [1] A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, 1997,
       section 3.8 (clusters) and 5.3 (percentiles).
    .. [2] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
       in the case of the binomial", Biometrika 26(4), 1934.

    Examples
    --------
    Four prompts of ten votes: 9, 8, 7 and 8 agree.

    >>> sums = np.array([[9.0, 10.0], [8.0, 10.0], [7.0, 10.0], [8.0, 10.0]])
    >>> draws = Draws(np.random.default_rng(1))
    >>> rate = clustered(sums, lambda s: s[:, 0] / s[:, 1], draws, n=40)
    >>> rate.value, rate.lower, rate.upper
    (0.8, 0.725, 0.875)
    """
    value = float(statistic(stats.sum(axis=0, keepdims=True))[0])
    if math.isnan(value):
        return Estimate(None, None, None, n)
    used = stats[(stats != 0).any(axis=1)]
    drawn = statistic(drawn_sums(used, draws.rounds if len(used) >= 2 else 0, draws.rng))
    drawn = np.append(drawn, value)  # of a single prompt, the only round
    if np.nanmax(drawn) - np.nanmin(drawn) > NO_WIDTH:
        lower, upper = with_width(*interval(drawn[:-1], draws.level))
        if raters is not None and lower is not None and upper is not None:
            wide = _widening(used, raters, statistic, draws.level)
            lower, upper = value - wide * (value - lower), value + wide * (upper - value)
            if mean is not None:
                lower, upper = max(lower, mean.low), min(upper, mean.high)
    else:
        lower, upper = (None, None) if mean is None else mean.opened(value, used, draws.level)
    return Estimate(value, lower, upper, n)


def _widening(stats: Floats, raters: Raters, statistic: Statistic, level: float) -> float:
    """Return how many times as wide an interval over prompts is that allows for raters."""

    def variance(sums: Floats) -> Floats:
        total = stats.sum(axis=0, keepdims=True)
        moved = np.nan_to_num(statistic(total - sums) - statistic(total))
        return jackknife_variance(moved, 0.0)

    prompts, by_rater, cells = map(variance, (stats, raters.alone, raters.on_prompts))
    nu = raters.effective - 1
    if raters.effective < FEWEST_PEOPLE or not (prompts > 0 and by_rater > 0):
        return 1.0
    freedom = np.asarray(len(stats) - 1.0), np.asarray(nu)
    total, df = two_way((prompts, freedom[0]), (by_rater, freedom[1]), cells)
    of_both = quantile(level, float(df)) * math.sqrt(total / prompts) if total > prompts else 0.0
    of_raters = quantile(level, nu) * math.sqrt(by_rater / prompts)
    return max(1.0, max(of_both, of_raters) / quantile(level, np.inf))


def interval(drawn: Floats, level: float) -> Ends:
    """Return the percentile interval of rounds; NaN is endless at both ends, which is None.

    Raises
    ------
    DataError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    tails = (1 - level) / 2, (1 + level) / 2
    low = np.quantile(np.where(np.isnan(drawn), -np.inf, drawn), tails[0], method="lower")
    high = np.quantile(np.where(np.isnan(drawn), np.inf, drawn), tails[1], method="higher")
    return finite(low), finite(high)


def with_width(lower: float | None, upper: float | None) -> Ends:
    """Return the ends of an interval, None for both where it has no width.

    That no draw moves an estimate is not certainty: it says nothing of other data.
    """
    if lower is not None and upper is not None and upper - lower <= NO_WIDTH:
        return None, None
    return lower, upper


def over(part: Floats, whole: Floats) -> Floats:
    """Divide, NaN where there is nothing to divide by."""
    near_zero = np.abs(whole) < 1e-12
    return np.asarray(part / np.where(near_zero, np.nan, whole))


def ratio(sums: Floats) -> Floats:
    """Return the first column of sums over the second, as `clustered` takes a statistic."""
    return over(sums[:, 0], sums[:, 1])


def sums_by_prompt(items: Items, values: Floats) -> Floats:
    """Sum one row an item, shape (n_items, k), over the items of each prompt."""
    return sums_within(items.prompt, values, items.n_prompts)


def finite(value: np.floating) -> float | None:
    """Return a number, None for infinity or NaN."""
    return float(value) if np.isfinite(value) else None


# Estimates in sentences


NONE = "–"


def percent(value: float | None) -> str:
    """Write a share.

    >>> percent(0.6597), percent(None)
    ('66%', '–')
    """
    return NONE if value is None else f"{100 * value:.0f}%"


def percent_of(estimate: Estimate) -> str:
    """Write a share with its interval; raises `ValueError` for a difference, see `gap_of`.

    >>> percent_of(Estimate(0.6597, 0.62, 0.697, 10))
    '66% (62–70)'
    """
    if estimate.value is not None and estimate.value < -NO_WIDTH:
        raise ValueError(f"{estimate.value} is no share: write a difference by gap_of.")
    return _with_ends(estimate, percent(estimate.value), lambda x: f"{100 * x:.0f}")


def gap_of(estimate: Estimate) -> str:
    """Write a difference of two shares, in percentage points.

    >>> gap_of(Estimate(-0.05, -0.1, 0.004, 10))
    '−5 (−10 to +0)'
    """
    return _signed(estimate, 100)


def points_of(estimate: Estimate | None) -> str:
    """Write a difference of ratings.

    >>> points_of(Estimate(41.6, 30.2, 53, 10))
    '+42 (+30 to +53)'
    """
    return NONE if estimate is None else _signed(estimate, 1)


def signed_of(estimate: Estimate) -> str:
    """Write a difference of scores.

    >>> signed_of(Estimate(0.421, -0.3, 0.53, 10)), signed_of(Estimate(0.421, None, None, 10))
    ('+0.42 (−0.30 to +0.53)', '+0.42')
    """
    return _signed(estimate, 1, 2)


def number_of(estimate: Estimate, digits: int = 2) -> str:
    """Write a coefficient with its interval.

    >>> number_of(Estimate(0.476, 0.43, 0.52, 10))
    '0.48 (0.43 to 0.52)'
    """
    if estimate.value is None:
        return NONE
    return _with_ends(
        estimate, minus(f"{estimate.value:.{digits}f}"), lambda x: f"{x:.{digits}f}", " to "
    )


def minus(text: str) -> str:
    """Write a minus where a hyphen stands for one."""
    return text.replace("-", "−")


def joined(parts: Sequence[str]) -> str:
    """Join parts of a sentence.

    >>> joined(["x", "y", "z"])
    'x, y and z'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _signed(estimate: Estimate, times: float, digits: int = 0) -> str:
    if estimate.value is None:
        return NONE

    def signed(x: float) -> str:
        return minus(f"{times * x:+.{digits}f}")

    return _with_ends(estimate, signed(estimate.value), signed, " to ")


def _with_ends(
    estimate: Estimate, text: str, write: Callable[[float], str], between: str = "–"
) -> str:
    lower, upper = with_width(estimate.lower, estimate.upper)
    if estimate.value is None or lower is None or upper is None:
        return text
    return f"{text} ({minus(write(lower))}{between}{minus(write(upper))})"


# Variance components


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of scores: 1 for side A, a half for a tie, 0 for side B.

    ``score = mean + item + rater + rest``, the rest being how a rater differs on an item from
    what both are otherwise, and how they differ from themselves. In squared scores, and unbiased:
    one that is near 0 may come out below it.

    Attributes
    ----------
    within : float or None
        What of the rest is a rater's own noise, from items that they rated twice; None without.
    """

    item: float
    rater: float
    rest: float
    within: float | None

    @property
    def total(self) -> float:
        """Variance of a rating of another item by another rater."""
        return self.item + self.rater + self.rest


@dataclass(frozen=True, slots=True)
class Shares:
    """What part of the variance of ratings is of what.

    Attributes
    ----------
    item : Estimate
        Of items: some are won by side A with everybody. Krippendorff's alpha with the metric of
        intervals estimates the same.
    rater : Estimate
        Of raters: some prefer side A throughout.
    rest : Estimate
        Of a rater on an item: both their own preference and noise.
    interaction, within : Estimate
        The rest in its two parts; no value where nobody rated an item twice. Repeats have their
        sides exchanged, so a lean to a side is noise, and twice: the first is too small by it.
        Components below 0 count as 0, so that the shares are in all 1.
    components : Components or None
        None where no two raters share an item, or all scores are equal.
    """

    item: Estimate
    rater: Estimate
    rest: Estimate
    interaction: Estimate
    within: Estimate
    components: Components | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the regime."""
        named = {name: getattr(self, name).to_dict() for name in NAMES}
        components = None if self.components is None else asdict(self.components)
        return named | {"components": components, "regime": self.regime}

    @property
    def regime(self) -> str:
        """``diffuse`` where less than half of the variance is of items, ``concentrated``, or "".

        Diffuse, items tell about as much as each other, and rating some of them more often than
        others gains nothing; by the whole interval, else it cannot be determined, which is "".

        References
        ----------
        .. [1] W. Y. Lee, "How many human judgments are enough?", 2026, arXiv:2601.09084: there,
           the margins of prompts are alike.
        """
        lower, upper = self.item.lower, self.item.upper
        if lower is None or upper is None:
            return ""
        return "diffuse" if upper < HALF else "concentrated" if lower > HALF else ""


NAMES = ("item", "rater", "rest", "interaction", "within")
HALF = 0.5


def scores_of(labels: Labels) -> Floats:
    """Return 1, a half or 0 for side A, a tie, side B."""
    return np.asarray((labels.label + 1) / 2)


def variance_shares(
    items: Items, labels: Labels, twice: tuple[Labels, Labels] | None = None, level: float = 0.95
) -> Shares:
    """Part the variance of ratings, by moments of pairs of ratings.

    Half the mean squared difference of two ratings is ``rater + rest`` on one item by two raters,
    ``item + rest`` of one rater on two items, all three of different raters on different items,
    and ``within`` of one rater on one item: solved for the components, which are unbiased for any
    law of the scores as long as who rates what does not depend on them.

    Intervals are for other prompts and other raters, by omitting each in turn, as those of
    `clustered` are widened; with fewer than three raters for these alone.
    That of ``rater`` is by F of the spread of the raters' means, for raters of about as many
    ratings each.

    Parameters
    ----------
    labels : Labels
        First ratings; each rater at most once an item.
    twice : (Labels, Labels), optional
        First and second ratings of the same items by the same raters, row by row.

    References
    ----------
    .. [1] K. Gao and A. B. Owen, "Efficient moment calculations for variance components in large
       unbalanced crossed random effects models", Electronic Journal of Statistics 11(1), 2017.
    .. [2] S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, 1992, section 3.5.

    Examples
    --------
    Three raters who always agree on four items: all of the variance is of the items.

    >>> from judge.studies.rows import Items, Labels
    >>> item, rater = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> sign = np.repeat([1, -1, 1, -1], 3).astype(np.int8)
    >>> labels = Labels(item, rater, sign, 0 * sign, np.nan * sign)
    >>> items = Items(("x", "y"), np.tile([0, 1], (4, 1)), np.arange(4))
    >>> variance_shares(items, labels).item.value
    1.0
    """
    moments = _Moments.of(items, labels, twice)
    raw = _raw_shares(moments.whole)[0]
    nothing = Estimate(None, None, None, labels.n)
    if np.isnan(raw[:3]).any():
        return Shares(nothing, nothing, nothing, nothing, nothing, None)
    square, df = moments.uncertainty()
    item, _, rest, interaction, within = (
        _estimate(*of, n=labels.n, level=level)
        for of in zip(raw.tolist(), _cut_off(raw), square.tolist(), df.tolist(), strict=True)
    )
    total, *_, noise = _solved(moments.whole)
    components = Components(
        item=float(raw[0] * total[0]),
        rater=float(raw[1] * total[0]),
        rest=float(raw[2] * total[0]),
        within=None if np.isnan(noise[0]) else float(noise[0]),
    )
    return Shares(
        item=item,
        rater=_of_raters(components, moments.ratings, labels.n, level),
        rest=rest,
        interaction=interaction,
        within=replace(within, n=0 if twice is None else twice[0].n),
        components=components,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Sums over pairs of ratings, shape (1, 13): of all ratings, and without some.

    The number, sum and sum of squares of the scores; of pairs on one item the squared differences,
    the number, and both as `_terms` weighs them; the same of pairs of one rater; half the squared
    differences of repeats, and their number.

    Attributes
    ----------
    prompts, raters, cells : ndarray of shape (r, 13)
        What is left without each prompt, each rater, and each rater's ratings of a prompt.
    ratings : ndarray of shape (n_raters,)
        How many each rater gave.
    """

    whole: Floats
    prompts: Floats
    raters: Floats
    cells: Floats
    ratings: Floats

    @classmethod
    def of(cls, items: Items, labels: Labels, twice: tuple[Labels, Labels] | None) -> "_Moments":
        _, rater = np.unique(labels.rater, return_inverse=True)
        _, prompt = np.unique(items.prompt[labels.item], return_inverse=True)
        n_raters, n_prompts = (int(x.max(initial=-1)) + 1 for x in (rater, prompt))
        cells, cell = np.unique(prompt * n_raters + rater, return_inverse=True)
        of_prompt, of_rater = np.divmod(cells, max(n_raters, 1))
        score = scores_of(labels)
        powers = np.column_stack([np.ones(labels.n), score, score**2])
        on_item = sums_within(labels.item, powers, items.n)
        given = sums_within(rater, powers, n_raters)
        summed = sums_within(cell, powers, len(cells))
        noise = sums_within(cell, _noise(items, labels, twice), len(cells))
        own = _terms(on_item)[labels.item]
        less_item = sums_within(cell, _terms(on_item[labels.item] - powers) - own, len(cells))
        less_rater = _terms(given[of_rater] - summed) - _terms(given)[of_rater]
        parts = (powers, _terms(on_item), _terms(given), noise)
        whole = np.concatenate([part.sum(axis=0) for part in parts])[None]
        gone = np.hstack([-summed, less_item, less_rater, -noise])
        by_prompt = sums_within(of_prompt, gone, n_prompts)
        item_prompt = np.zeros(items.n, dtype=np.int64)
        item_prompt[labels.item] = prompt
        by_prompt[:, 3:7] = -sums_within(item_prompt, _terms(on_item), n_prompts)
        by_rater = sums_within(of_rater, gone, n_raters)
        by_rater[:, 7:11] = -_terms(given)
        return cls(whole, whole + by_prompt, whole + by_rater, whole + gone, given[:, 0])

    def uncertainty(self) -> tuple[Floats, Floats]:
        """Return the variance of each share and its degrees of freedom, shape (5,)."""
        by_prompt, by_rater, by_cell = map(_jackknifed, (self.prompts, self.raters, self.cells))
        effective = self.ratings.sum() ** 2 / (self.ratings**2).sum()
        more = np.maximum(by_rater - by_cell, 0.0) * (effective >= FEWEST_PEOPLE)
        total = by_prompt + more
        free = by_prompt**2 / (len(self.prompts) - 1) + more**2 / max(effective - 1, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return total, np.where(total > 0, total**2 / free, 1.0)


def _terms(sums: Floats) -> Floats:
    """Return squared differences and pairs of groups of scores, and both over their size.

    Parameters
    ----------
    sums : ndarray of shape (r, 3)
        Number, sum and sum of squares of each group.

    Returns
    -------
    ndarray of shape (r, 4)
        ``d = n q - s^2``, ``n (n - 1) / 2``, ``d / n`` and ``n - 1``; 0 of an empty group.
    """
    n, first, second = sums.T
    apart = n * second - first**2
    return np.column_stack(
        [apart, n * (n - 1) / 2, apart / np.where(n > 0, n, 1), np.maximum(n - 1, 0)]
    )


def _noise(items: Items, labels: Labels, twice: tuple[Labels, Labels] | None) -> Floats:
    """Return half the squared difference of each rating and its repeat, and how many it has."""
    noise = np.zeros((labels.n, 2))
    if twice is None or not twice[0].n:
        return noise
    first, second = twice
    key, wanted = (one.rater * items.n + one.item for one in (labels, first))
    order = np.argsort(key)
    at = order[np.searchsorted(key, wanted, sorter=order)]
    noise[at] = np.column_stack(
        [(scores_of(first) - scores_of(second)) ** 2 / 2, np.ones(first.n)]
    )
    return noise


def _solved(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the mean half squared differences: apart, on an item, of a rater, of repeats."""
    n, first, second, *rest = sums.T
    of_item, item_pairs, item_squares, item_free = rest[:4]
    of_rater, rater_pairs, rater_squares, rater_free = rest[4:8]
    apart = n * second - first**2 - of_item - of_rater
    pairs = n * (n - 1) / 2 - item_pairs - rater_pairs
    return (
        over(apart, 2 * pairs),
        over(item_squares, item_free),
        over(rater_squares, rater_free),
        over(rest[8], rest[9]),
    )


def _raw_shares(sums: Floats) -> Floats:
    """Return the shares before any is cut off at 0, shape (r, 5), NaN where there is none."""
    total, on_item, of_rater, noise = _solved(sums)
    item, rater, within = 1 - over(on_item, total), 1 - over(of_rater, total), over(noise, total)
    rest = 1 - item - rater
    return np.column_stack([item, rater, rest, rest - within, within])


def _jackknifed(left: Floats) -> Floats:
    """Return the variance of each share by what is left of the moments without each part."""
    shares = _raw_shares(left)
    known = np.isfinite(shares)
    mean = over(np.where(known, shares, 0.0).sum(axis=0), known.sum(axis=0))
    return jackknife_variance(np.where(known, shares, mean), np.nan_to_num(mean))


def _cut_off(raw: Floats) -> list[float]:
    """Give the shares as they are shown: none below 0, and in all 1."""
    item, rater, *_, noise = raw.tolist()
    item = min(max(item, 0.0), 1.0)
    rater = min(max(rater, 0.0), 1 - item)
    rest = 1 - item - rater
    within = min(noise, rest)  # NaN if it is not known
    return [item, rater, rest, rest - within, within]


def _estimate(
    raw: float, value: float, square: float, df: float, *, n: int, level: float
) -> Estimate:
    """Give a share with an interval around what it was before it was cut off."""
    if math.isnan(raw):
        return Estimate(None, None, None, n)
    if not square > 0:
        return Estimate(value, None, None, n)
    reach = quantile(level, df) * math.sqrt(square)
    lower, upper = max(0.0, raw - reach), min(1.0, raw + reach)
    return Estimate(value, min(lower, value), max(upper, value), n)


def _of_raters(components: Components, ratings: Floats, n: int, level: float) -> Estimate:
    """Give the raters' share, with the interval by F of their means' spread."""
    size, free = len(ratings) / (1 / ratings).sum(), len(ratings) - 1
    value = max(0.0, components.rater) / components.total
    if not components.rest > 0 or free < 1:
        return Estimate(value, None, None, n)
    spread = max(0.0, 1 + size * components.rater / components.rest)
    ends = [(1 + level) / 2, (1 - level) / 2]
    most = scipy.special.fdtri(free, max(n - len(ratings), 1), ends)
    ratios = np.maximum(spread / most - 1, 0) / size
    others = 1 + max(0.0, components.item) / components.rest
    lower, upper = (float(one / (one + others)) for one in ratios)
    return Estimate(value, min(lower, value), max(upper, value), n)


# Agreement of raters


Weighting = Literal["pairs", "items"]

LABELS = 3
"""Side B, tie, side A, in this order: a label plus one is its place."""
_GAP = MeanOfPrompts(-1.0, 1.0, (1, 3))


def pair_agreement(
    items: Items,
    first: Labels,
    second: Labels,
    draws: Draws,
    *,
    ties: bool,
    weighting: Weighting = "pairs",
) -> Estimate:
    """Estimate how often a judge and a person say the same of an item.

    Over all pairs of a row of ``first`` and a row of ``second`` of the same item. Repeating a
    rater's rows throughout changes nothing.

    Parameters
    ----------
    ties : bool
        Whether ties are a third label, on which both can agree; otherwise over pairs in which
        both preferred a side.
    weighting : {"pairs", "items"}
        Whether each pair or each item counts the same; an item of more votes has more pairs.

    Returns
    -------
    Estimate
        ``n`` is the number of pairs, or of items that have one. The interval draws prompts, and
        allows for other raters of ``second``, see `Raters`.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, section 4.2 (setups S1 and S2 are with and without ties).
    """
    one, other = (_by_side(counts(items, labels), ties=ties) for labels in (first, second))
    each = _pairs_with(one, second, ties=ties)
    return _rate(items, _between(one, other), second, each, weighting, draws)


def own_agreement(
    items: Items, labels: Labels, draws: Draws, *, ties: bool, weighting: Weighting = "pairs"
) -> Estimate:
    """Estimate how often two people, or two repetitions of a judge, agree on an item.

    Over all pairs of rows of an item by different raters: the human-human agreement that a judge
    is compared with. Several rows of one rater on an item are not several people, and are no pair.
    Parameters and result as of `pair_agreement`.
    """
    each = pairs_with_others(items, labels, ties=ties)
    return _rate(items, _own_pairs(items, labels, ties=ties), labels, each, weighting, draws)


def kappa(
    items: Items,
    first: Labels,
    second: Labels,
    draws: Draws,
    *,
    ties: bool = True,
    sides: bool = True,
) -> Estimate:
    """Estimate Cohen's kappa over the pairs of `pair_agreement`.

    ``(agreed - chance) / (1 - chance)``, with ``chance`` the agreement of two who choose labels
    independently, each as often as in the pairs. Undefined where only one label is used.

    Parameters
    ----------
    sides : bool
        Whether side A means the same on all items. If not, as where it is a model of the item's
        pair, every item counts half each way round: of labels with a share t of ties, either side
        then has ``(1 - t) / 2`` [2]_.

    References
    ----------
    .. [1] J. Cohen, "A coefficient of agreement for nominal scales", Educational and
       Psychological Measurement 20(1), 1960, pp. 37-46.
    .. [2] O. Bojar et al., "Findings of the 2015 Workshop on Statistical Machine Translation",
       WMT 2015, on inter-annotator agreement: ``P(E)`` from the share of ties, as C. Federmann's
       ``compute_agreement_scores.py`` (Appraise) computes it.
    """
    one, other = (_by_side(counts(items, labels), ties=ties) for labels in (first, second))
    pairs = one[:, :, None] * other[:, None, :]
    pairs = (pairs if sides else _both_ways(pairs)).reshape(items.n, -1)
    return clustered(sums_by_prompt(items, pairs), _kappas, draws, n=int(pairs.sum()))


def own_kappa(
    items: Items, labels: Labels, draws: Draws, *, ties: bool = True, sides: bool = True
) -> Estimate:
    """Estimate kappa over the pairs of `own_agreement`: Fleiss' for any number of raters per item.

    ``(agreed - chance) / (1 - chance)``, with ``chance`` the sum of the squared shares of the
    labels among all rows, also those of items of one row. ``sides`` as of `kappa`.

    References
    ----------
    .. [1] J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological
       Bulletin 76(5), 1971, pp. 378-382.
    """
    given = _by_side(counts(items, labels), ties=ties)
    pairs = _own_pairs(items, labels, ties=ties)
    stats = sums_by_prompt(items, np.column_stack([pairs, given if sides else _both_ways(given)]))
    return clustered(stats, _own_kappas, draws, n=int(pairs[:, 1].sum()))


def _both_ways(table: Floats) -> Floats:
    """Average counts of labels, shape (n, q, ...), with those of the items turned round."""
    return np.asarray((table + np.flip(table, tuple(range(1, table.ndim)))) / 2)


def majority(items: Items, labels: Labels) -> Labels:
    """Return what most rows of each item say, one row an item.

    A label that more rows have than any other; where two labels lead, the item is a tie.
    """
    table = counts(items, labels)
    leads = table == table.max(axis=1, keepdims=True)
    label = np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) - 1, TIE)
    item = np.flatnonzero(table.sum(axis=1) > 0)
    return Labels.of_one_rater(item, label[item])


def counts(items: Items, labels: Labels) -> Floats:
    """Count the labels of each item, shape (n_items, 3): side B, tie, side A."""
    if labels.n and not 0 <= labels.item.min() <= labels.item.max() < items.n:
        raise DataError(f"Items are 0 to {items.n - 1}, and a row is of item {labels.item.max()}.")
    place = LABELS * labels.item + labels.label + 1
    table = np.bincount(place, minlength=LABELS * items.n)
    return table.reshape(items.n, LABELS).astype(np.float64)


def by_rater(items: Items, labels: Labels) -> tuple[Ints, Floats, Ints]:
    """Count the labels that each rater gave each item.

    Returns
    -------
    tuple of ndarray
        The item of each rater and item, the counts as of `counts`, and the place in these of
        each row of ``labels``.
    """
    n_raters = int(labels.rater.max(initial=-1)) + 1
    cells, place = np.unique(labels.item * n_raters + labels.rater, return_inverse=True)
    table = np.bincount(LABELS * place + labels.label + 1, minlength=LABELS * len(cells))
    return cells // max(n_raters, 1), table.reshape(len(cells), LABELS).astype(np.float64), place


def _pairs_with(others: Floats, labels: Labels, *, ties: bool) -> Floats:
    """Count the pairs of each row with labels of its item: those that agree, and all.

    Parameters
    ----------
    others : ndarray of shape (n_items, q)
        Labels of others, by item; without ties the two sides alone.

    Returns
    -------
    ndarray of shape (n, 2)
    """
    return _paired(others[labels.item], labels, ties=ties)


def pairs_with_others(items: Items, labels: Labels, *, ties: bool) -> Floats:
    """Count the pairs of each row with rows of other raters on its item, as `_pairs_with` does."""
    _, own, place = by_rater(items, labels)
    others = counts(items, labels)[labels.item] - own[place]
    return _paired(_by_side(others, ties=ties), labels, ties=ties)


def _paired(others: Floats, labels: Labels, *, ties: bool) -> Floats:
    place = np.array([0, 1, 2] if ties else [0, -1, 1])[labels.label + 1]
    there = (place >= 0).astype(np.float64)
    agree = others[np.arange(labels.n), place]
    return np.column_stack([agree * there, others.sum(axis=1) * there])


def _by_side(table: Floats, *, ties: bool) -> Floats:
    """Leave ties out of counts of labels, unless they are a label."""
    return table if ties else table[:, [0, 2]]


def _own_pairs(items: Items, labels: Labels, *, ties: bool) -> Floats:
    """Count pairs of rows of each item by different raters: those that agree, and all."""
    return sums_within(labels.item, pairs_with_others(items, labels, ties=ties), items.n) / 2


def _between(first: Floats, second: Floats) -> Floats:
    """Count pairs of rows of two sources on each item: those that agree, and all."""
    return np.column_stack([(first * second).sum(axis=1), first.sum(axis=1) * second.sum(axis=1)])


def _rate(
    items: Items, pairs: Floats, labels: Labels, each: Floats, weighting: Weighting, draws: Draws
) -> Estimate:
    """Estimate the share of pairs that agree.

    Parameters
    ----------
    pairs : ndarray of shape (n_items, 2)
        Those of each item that agree, and all.
    each : ndarray of shape (n, 2)
        The pairs that each row of ``labels`` has a part in.
    """
    if weighting == "items":
        total = pairs[:, 1]
        size = np.where(total > 0, total, 1.0)
        agree = pairs[:, 0] / size
        # Without a row its item stays, and its rate becomes that of the other pairs.
        each = each / size[labels.item, None]
        each = np.column_stack([each[:, 0] - agree[labels.item] * each[:, 1], 0 * each[:, 1]])
        pairs = np.column_stack([agree, total > 0])
    raters, n = Raters.of(items, labels, each), int(pairs[:, 1].sum())
    return clustered(sums_by_prompt(items, pairs), ratio, draws, n=n, mean=SHARE, raters=raters)


def _kappas(sums: Floats) -> Floats:
    q = 3 if sums.shape[1] == 9 else 2
    tables = over(sums, sums.sum(axis=1, keepdims=True)).reshape(-1, q, q)
    agreed = np.trace(tables, axis1=1, axis2=2)
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return over(agreed - expected, 1 - expected)


def _own_kappas(sums: Floats) -> Floats:
    share = over(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
    expected = (share**2).sum(axis=1)
    return over(over(sums[:, 0], sums[:, 1]) - expected, 1 - expected)


def over_another(
    items: Items, first: Labels, second: Labels, people: Labels, draws: Draws, *, ties: bool
) -> Estimate:
    """Estimate the agreement of ``first`` with people less that of ``second``.

    Each over its own pairs, as `pair_agreement` counts them; a round draws
    the same prompts for both, so what makes a prompt easy for both cancels; other people are
    allowed for as well. ``n`` is the number of pairs of ``first``.
    """
    votes = _by_side(counts(items, people), ties=ties)
    both = [_by_side(counts(items, labels), ties=ties) for labels in (first, second)]
    parts = [_between(table, votes) for table in both]
    each = np.hstack([_pairs_with(table, people, ties=ties) for table in both])
    return _difference(items, parts[0], parts[1], Raters.of(items, people, each), draws)


def over_people(
    items: Items, judge: Labels, people: Labels, draws: Draws, *, ties: bool
) -> Estimate:
    """Estimate the agreement of a judge with people less that of two people.

    Both on the items that the judge has said something of. Below zero, a verdict is a poorer
    guess of a person's vote than the vote of another person.
    """
    votes = _by_side(counts(items, people), ties=ties)
    verdicts = counts(items, judge)
    judged = (verdicts.sum(axis=1) > 0)[:, None]
    with_judge = _by_side(verdicts, ties=ties)
    with_others = pairs_with_others(items, people, ties=ties) * judged[people.item]
    own = sums_within(people.item, with_others, items.n)
    with_others *= 2.0  # without a row, both of a pair lose it
    each = np.hstack([_pairs_with(with_judge, people, ties=ties), with_others])
    raters = Raters.of(items, people, each)
    return _difference(items, _between(with_judge, votes), own, raters, draws)


def _difference(
    items: Items, first: Floats, second: Floats, raters: Raters, draws: Draws
) -> Estimate:
    stats, n = sums_by_prompt(items, np.column_stack([first, second])), int(first[:, 1].sum())
    return clustered(stats, _of_sums, draws, n=n, mean=_GAP, raters=raters)


def _of_sums(sums: Floats) -> Floats:
    return ratio(sums[:, :2]) - ratio(sums[:, 2:])
