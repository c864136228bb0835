"""Estimates: a value with its interval, drawn over prompts, and how sentences write it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.studies.items import Items, Labels
from rating.errors import DataError
from rating.leave_out import drawn_sums, jackknife_variance, sums_within, two_way
from rating.typing import Floats
from rating.uncertainty.student import quantile


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
        by leaving out prompts, raters, and the rows of a rater on a prompt, one at a time, it is
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


NONE = "–"


def percent(value: float | None) -> str:
    """Write a share.

    >>> percent(0.6597), percent(None)
    ('66 %', '–')
    """
    return NONE if value is None else f"{100 * value:.0f} %"


def percent_of(estimate: Estimate) -> str:
    """Write a share with its interval; raises `ValueError` for a difference, see `gap_of`.

    >>> percent_of(Estimate(0.6597, 0.62, 0.697, 10))
    '66 % (62–70)'
    """
    if estimate.value is not None and estimate.value < -NO_WIDTH:
        raise ValueError(f"{estimate.value} is no share: write a difference by gap_of.")
    return _with_ends(estimate, percent(estimate.value), lambda x: f"{100 * x:.0f}")


def gap_of(estimate: Estimate) -> str:
    """Write a difference of two shares, in points of a per cent.

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


def plural(n: int, word: str) -> str:
    """Count things.

    >>> plural(1, "item"), plural(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
