"""Where ratings differ: between items, between raters, and within; and what more would buy."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.estimates import FEWEST_PEOPLE, Estimate, over
from judge.studies.items import Items, Labels
from rating.leave_out import jackknife_variance, sums_within
from rating.typing import Floats
from rating.uncertainty.student import quantile


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
        Of a rater on an item: both what is their own taste and what is noise.
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
        others gains nothing; by the whole interval, else it cannot be told, which is "".

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

    Intervals are for other prompts and other raters, by leaving out each in turn, as those of
    `judge.studies.estimates.clustered` are widened; with fewer than three raters for these alone.
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

    >>> from judge.studies.items import Items, Labels
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
    shown = _cut_off(raw)
    item, _, rest, interaction, within = (
        _estimate(*of, n=labels.n, level=level)
        for of in zip(raw.tolist(), shown, square.tolist(), df.tolist(), strict=True)
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
