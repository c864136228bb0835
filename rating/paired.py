"""Models that were scored on the same items, compared pair by pair."""

import math
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal, Self, get_args

import numpy as np

from rating.errors import DataError
from rating.leave_out import (
    effective_count,
    jackknife_factor,
    jackknife_variance,
    normal_quantile,
    quantile,
    sums_within,
)
from rating.ranks import critical_value
from rating.report import Tabular, as_html
from rating.sentences import signed
from rating.typing import Floats, Ints

Require = Literal["better", "not-worse", "equivalent"]
Missing = Literal["pairs", "zero"]

FEWEST_CLUSTERS = 6
"""Effective clusters under which no interval is given: of 5 items that all differ, a sixteenth of
all ways to draw their signs are all alike."""
MOST_NEEDED = 10**9
"""Items above which no number is named."""
FEW_CHANGED = 10
"""Clusters that differ, under which an interval is computed with two more items."""
MANY_MISSING = 0.05
"""Share of the items that one of the models lacks, above which a warning says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Options of a paired comparison.

    Attributes
    ----------
    margin : float or None
        Equivalence or non-inferiority margin, in units of the score, such as 0.02.
    require : {"better", "not-worse", "equivalent"}
        Requirement for the first model, against each of the others.
    missing : {"pairs", "zero"}
        Items without a score of some or all models: exclude them, or count missing scores as 0.
    power : float
        Power for sample-size planning.
    level : float
        Confidence level of each interval, and of all pairs together where there are several.
    """

    margin: float | None = None
    require: Require = "better"
    missing: Missing = "pairs"
    power: float = 0.8
    level: float = 0.95

    def __post_init__(self) -> None:
        """Raise `DataError` for what no comparison can ask."""
        for name, value, known in (
            ("require", self.require, get_args(Require)),
            ("missing", self.missing, get_args(Missing)),
        ):
            if value not in known:
                raise DataError(f"--{name} must be one of {', '.join(known)}, not {value!r}.")
        if self.margin is None:
            if self.require != "better":
                msg = f"--require {self.require} needs a margin: add --margin, such as 0.02."
                raise DataError(msg)
        elif not 0 < self.margin < math.inf:
            msg = (
                f"--margin {self.margin:g} is no margin: give a difference above 0, such as 0.02."
            )
            raise DataError(msg)
        if not 0.5 < self.power < 1:
            raise DataError(f"--power must be between 0.5 and 1, such as 0.8, not {self.power:g}.")
        if not 0 < self.level < 1:
            raise DataError(f"--level must be between 0 and 1, such as 0.95, not {self.level:g}.")


@dataclass(frozen=True, slots=True, eq=False)
class ScoredItems:
    """Scores of models on items, the repeats of an item averaged.

    Attributes
    ----------
    models, items : tuple of str
    cluster : ndarray of shape (n_items,), int
        Numbered from 0; scores in one cluster may be correlated.
    mean : ndarray of shape (n_items, n_models)
        NaN where a model has no score.
    noise : ndarray of shape (n_items, n_models)
        Variance of the mean between repeats of an item, ``s^2 / r``; with one repeat, the mean
        variance of the model's other items. NaN for a model without repeats.
    zero : (ndarray, ndarray)
        ``mean`` and ``noise`` with each missing score of a row as 0.
    metric : str
        What the scores measure, such as acc.
    warnings : tuple of str
        What to know of their files.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    cluster: Ints
    mean: Floats
    noise: Floats
    zero: tuple[Floats, Floats]
    metric: str = "score"
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        models: tuple[str, ...],
        items: tuple[str, ...],
        rows: tuple[Ints, Ints, Floats],
        cluster: Ints | None = None,
    ) -> Self:
        """Average the repeats of each item.

        Parameters
        ----------
        rows : (ndarray, ndarray, ndarray), each of shape (n,)
            Positions of the item and of the model, and the score; NaN is no score.
        cluster : ndarray of shape (n_items,), optional
            By default each item is a cluster.

        Examples
        --------
        >>> rows = (np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), np.array([1.0, 0.0, 1.0, 0.0]))
        >>> ScoredItems.of(("x", "y"), ("p", "q"), rows).mean.tolist()
        [[0.5, nan], [1.0, 0.0]]
        """
        shape, cells = (len(items), len(models)), rows[0] * len(models) + rows[1]

        def averaged(cell: Ints, score: Floats) -> tuple[Floats, Floats]:
            n = np.bincount(cell, minlength=math.prod(shape))
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.bincount(cell, score, len(n)) / n
                squares = np.bincount(cell, (score - mean[cell]) ** 2, len(n)).reshape(shape)
                n = n.reshape(shape)
                pooled = squares.sum(axis=0) / np.maximum(n - 1, 0).sum(axis=0)
                return mean.reshape(shape), np.where(n > 1, squares / (n - 1), pooled) / n

        has = np.isfinite(rows[2])
        zero = averaged(cells, np.where(has, rows[2], 0.0))
        own = np.arange(len(items)) if cluster is None else cluster
        cluster = np.unique(own, return_inverse=True)[1]
        return cls(models, items, cluster, *averaged(cells[has], rows[2][has]), zero)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore:
    """A model by itself.

    Attributes
    ----------
    n, missing : int
        Items with a score of it, and items without.
    compared : int
        Items that the mean is over.
    mean, lower, upper : float, and float or None
        Over the items that are compared. The interval is not one of a difference: two that overlap
        say nothing of the pair.
    """

    model: str
    n: int
    missing: int
    compared: int
    mean: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models on the same items: how much higher ``a`` scores than ``b``.

    Attributes
    ----------
    n : int
        Items that both have.
    clusters : float
        Effective number of clusters.
    lower, upper : float or None
        None where there are too few clusters.
    a_higher, b_higher, equal : int
        Items by which model scores higher.
    repeats : float or None
        Share of the variance that is between repeats of an item; None without repeats.
    if_zero : float or None
        The difference with missing scores as 0; None where none is missing.
    equivalent : bool or None
        Whether the interval is inside of the margin; None without one.
    needed : int or None
        Items that show equivalence of equal models, if it is required; else a difference of the
        size of the margin, or without one of the size estimated. None where it is 0.
    passes : bool or None
        Whether what is required is shown (True), ruled out (False), or open (None).
    """

    a: str
    b: str
    n: int
    clusters: float
    difference: float
    se: float | None
    df: float | None
    lower: float | None
    upper: float | None
    a_higher: int
    b_higher: int
    equal: int
    repeats: float | None
    if_zero: float | None
    answer: str
    equivalent: bool | None
    needed: int | None
    passes: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Tabular):
    """What a paired comparison says.

    Attributes
    ----------
    items : int
        Items of the files, with or without a score.
    metric : str
        What the scores measure.
    pairs : tuple of Pair
        In the order of the models; the first model is in the first ones.
    """

    options: CompareOptions
    items: int
    metric: str
    models: tuple[ModelScore, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]

    @property
    def required(self) -> tuple[Pair, ...]:
        """The pairs of the first model, of which something is required."""
        return self.pairs[: len(self.models) - 1]

    @property
    def passes(self) -> bool | None:
        """Whether what is required holds in all pairs of the first model (see `Pair.passes`)."""
        every = {pair.passes for pair in self.required}
        return False if False in every else None if None in every else True

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words: of two models, or of what is required of the first of several."""
        ask = self.options
        ends = {True: "The comparison passes", False: "The comparison fails", None: "Inconclusive"}
        required = f"Required: {ask.require.replace('-', ' ')}. {ends[self.passes]}."
        if len(self.pairs) == 1:
            return (*_in_words(self.pairs[0], ask, self.items), required)
        first, n = self.models[0].model, len(self.required)
        shown = [pair.b for pair in self.required if pair.passes]
        names = f" ({', '.join(shown)})" if shown else ""
        return (
            f"{first} against {n} models, {ask.require.replace('-', ' ')}: shown for {len(shown)}"
            f"{names}.",
            f"{_items(self.pairs[0])} Intervals hold for all {len(self.pairs)} pairs together.",
            required,
        )

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One of plain values per pair."""
        return [asdict(one) for one in self.pairs]

    def _repr_html_(self) -> str:
        """Return the pairs as a table, for notebooks."""
        difference = f"difference in {self.metric}"
        level = f"{100 * self.options.level:g}% interval"
        head = ("model", "compared with", difference, level, "items", "answer")
        rows = (
            (one.a, one.b, signed(one.difference), _ends(one) or "none", f"{one.n:,}", one.answer)
            for one in self.pairs
        )
        return as_html(head, rows, (*self.sentences, *self.warnings))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "passes": self.passes,
            **asdict(self.options),
            "items": self.items,
            "metric": self.metric,
            "models": [asdict(one) for one in self.models],
            "pairs": self.rows,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }


def _in_words(pair: Pair, ask: CompareOptions, items: int) -> list[str]:
    a, b = pair.a, pair.b
    within = "" if ask.margin is None else f"{ask.margin:g}"
    texts = [
        {
            "better": f"{a} scores higher than {b}.",
            "worse": f"{a} scores lower than {b}.",
            "equivalent": f"{a} and {b} are equivalent within {within}.",
            "not worse": f"{a} is not worse than {b} by more than {within}.",
            "inconclusive": f"Inconclusive: which of {a} and {b} scores higher.",
        }[pair.answer]
    ]
    if pair.equivalent and pair.answer != "equivalent":
        texts.append(f"They are equivalent within {within}.")
    difference = f"Difference: {signed(pair.difference)}"
    ends = _ends(pair)
    texts.append(
        f"{difference} ({ends}; {100 * ask.level:g}%, paired)."
        if ends
        else f"{difference}. No interval is given for fewer than {FEWEST_CLUSTERS} clusters."
    )
    texts.append(
        f"{_items(pair)} {a} is higher on {pair.a_higher:,}, {b} on {pair.b_higher:,}, and "
        f"{pair.equal:,} are equal."
    )
    if pair.repeats is not None:
        texts.append(f"Repeats of an item are {pair.repeats:.0%} of the variance.")
    if pair.if_zero is not None and ask.missing == "pairs":
        texts.append(
            f"With missing scores as 0, over {items:,} items, the difference is "
            f"{signed(pair.if_zero)}."
        )
    if pair.needed is not None:
        size = abs(pair.difference) if ask.margin is None else ask.margin
        what = "Equivalence within" if ask.require == "equivalent" else "A difference of"
        texts.append(
            f"{what} {size:.3g} takes about {pair.needed:,} items for {100 * ask.power:g}% power."
        )
    return texts


def _items(pair: Pair) -> str:
    clusters = f" in effectively {pair.clusters:,.1f} clusters" if pair.clusters < pair.n else ""
    return f"Items: {pair.n:,}{clusters}."


def _ends(pair: Pair) -> str:
    if pair.lower is None or pair.upper is None:
        return ""
    return f"{signed(pair.lower)} to {signed(pair.upper)}"


def compare(data: ScoredItems, options: CompareOptions | None = None) -> Comparison:
    """Compare every two models on the items that all of them have.

    With ``d_i`` the difference of the two models on item i, its mean D has the delete-one
    jackknife variance over clusters, and Student's t with ``(sum n_g)^2 / sum n_g^2 - 1`` degrees
    of freedom for clusters of ``n_g`` items. Where fewer than `FEW_CHANGED` clusters differ, the
    interval is that of the items and two more, in which one model has the highest score and the
    other the lowest, once each way. Intervals of several pairs are simultaneous: the largest of
    their absolute t statistics is drawn from a multivariate t.

    Raises
    ------
    DataError
        If there are fewer than two models, or no item that all of them have.

    References
    ----------
    .. [1] E. Miller, "Adding error bars to evals", arXiv:2411.00640, 2024 (clustered and paired).
    .. [2] D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of
       binomial proportions based on paired data", Journal of Educational and Behavioral
       Statistics 37(4), 2012, pp. 479-488 (the two more items).

    Examples
    --------
    >>> item, model = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    >>> score = np.where(model == 0, item < 30, item < 16).astype(float)
    >>> rows = ScoredItems.of(("x", "y"), tuple(map(str, range(40))), (item, model, score))
    >>> pair = compare(rows).pairs[0]
    >>> pair.difference, round(pair.lower, 3), round(pair.upper, 3)
    (0.35, 0.196, 0.504)
    """
    ask = CompareOptions() if options is None else options
    if len(data.models) < 2:
        there = ", ".join(map(repr, data.models)) or "none"
        raise DataError(f"A comparison needs two models, and there is {there}.")
    has = np.isfinite(data.mean)
    common = has.all(axis=1)
    if not common.any():
        raise DataError(_apart(data))
    used = common | (ask.missing == "zero")
    mean, noise = data.zero if ask.missing == "zero" else (data.mean, data.noise)
    noise = np.where(np.isfinite(mean), noise, 0.0)[used]
    mean, cluster = np.nan_to_num(mean[used]), data.cluster[used]
    low, high = float(mean.min()), float(mean.max())
    bounded = low >= 0 and high <= 1
    span = 1.0 if bounded else high - low
    places = [*combinations(range(len(data.models)), 2)]
    unit = 1e-12 * max(abs(low), abs(high)) or 1.0
    # Equal differences are to be equal: 0.3 - 0.2 is not 0.2 - 0.1 in floating point.
    apart = [np.round((mean[:, i] - mean[:, j]) / unit) * unit for i, j in places]
    between = [_clustered(d, cluster, span) for d in apart]
    bar = _bar(mean, cluster, min(one.df for one in between), ask.level)
    zero = np.nan_to_num(data.zero[0]).mean(axis=0)
    any_missing = not np.array_equal(data.zero[0], data.mean)
    reach = bar if len(between) > 1 else normal_quantile((1 - ask.level) / 2)
    # Equal models may fail to be equivalent at either end of the interval.
    beyond = normal_quantile((1 - ask.power) / (2 if ask.require == "equivalent" else 1))
    z = normal_quantile(1 - ask.power)
    many = (z / 2 + math.sqrt(z * z / 4 + FEW_CHANGED)) ** 2  # expected, so that enough differ
    pairs = []
    for (i, j), d, one in zip(places, apart, between, strict=True):
        estimated = one.effective >= FEWEST_CLUSTERS
        half = bar * math.sqrt(one.variance) if estimated else math.inf
        lower, upper = one.centre - half, one.centre + half
        if bounded and estimated:
            lower, upper = max(lower, -1.0), min(upper, 1.0)
        repeats = float((noise[:, i] + noise[:, j]).sum() / len(d) ** 2)
        size = ask.margin or abs(one.difference)
        ratio = (reach + beyond) / size if size else math.inf
        scale, without = ratio * ratio * len(d), _clustered(d, cluster).variance
        enough = many * len(d) / one.changed if one.changed else math.inf
        needed = min(scale * one.variance, max(scale * without, enough))
        is_known = estimated and 0 < needed < MOST_NEEDED
        pairs.append(
            Pair(
                a=data.models[i],
                b=data.models[j],
                n=len(d),
                clusters=one.effective,
                difference=one.difference,
                se=math.sqrt(one.variance) if estimated else None,
                df=one.df if estimated else None,
                lower=lower if estimated else None,
                upper=upper if estimated else None,
                a_higher=int((d > 0).sum()),
                b_higher=int((d < 0).sum()),
                equal=int((d == 0).sum()),
                repeats=None
                if math.isnan(repeats) or not one.variance
                else min(1.0, repeats / one.variance),
                if_zero=float(zero[i] - zero[j]) if any_missing else None,
                answer=_answer(lower, upper, ask.margin),
                equivalent=None if ask.margin is None else max(-lower, upper) < ask.margin,
                needed=max(FEWEST_CLUSTERS, math.ceil(needed)) if is_known else None,
                passes=_passes(lower, upper, ask),
            )
        )
    models = []
    for i, name in enumerate(data.models):
        alone = _clustered(mean[:, i], cluster)
        half = quantile(ask.level, alone.df) * math.sqrt(alone.variance)
        known = alone.effective >= FEWEST_CLUSTERS and half > 0
        models.append(
            ModelScore(
                model=name,
                n=int(has[:, i].sum()),
                missing=int((~has[:, i]).sum()),
                compared=len(mean),
                mean=alone.difference,
                lower=alone.centre - half if known else None,
                upper=alone.centre + half if known else None,
            )
        )
    return Comparison(
        options=ask,
        items=len(has),
        metric=data.metric,
        models=tuple(models),
        pairs=tuple(pairs),
        warnings=(*data.warnings, *_on_missing(models, len(has), int(common.sum()), ask)),
    )


@dataclass(frozen=True, slots=True)
class _Clustered:
    """A mean over items: as it is, and for its interval the centre, variance and df.

    Attributes
    ----------
    changed : int
        Clusters that differ.
    """

    difference: float
    centre: float
    variance: float
    df: float
    effective: float
    changed: int


def _clustered(d: Floats, cluster: Ints, span: float = 0.0) -> _Clustered:
    """Estimate a mean by the jackknife over clusters, with two more items where few differ.

    Parameters
    ----------
    span : float
        By how much an item can differ; 0 adds no item.
    """
    difference = float(d.mean())
    known, cluster = np.unique(cluster, return_inverse=True)
    sizes = np.bincount(cluster)
    effective = effective_count(sizes)
    changed = min(len(np.unique(cluster[d != at])) for at in (0.0, np.median(d)))
    if span and changed < FEW_CHANGED:
        d = np.append(d, [span, -span])
        cluster = np.append(cluster, [len(known), len(known) + 1])
        sizes = np.append(sizes, [1, 1])
    without = _without_each(d[:, None], cluster, sizes)[:, 0]
    centre = float(d.mean())
    variance = float(jackknife_variance(without, centre))
    return _Clustered(difference, centre, variance, effective_count(sizes) - 1, effective, changed)


def _without_each(values: Floats, cluster: Ints, sizes: Ints) -> Floats:
    """Return the means without each cluster, shape (n_clusters, m); NaN of a single one."""
    sums = sums_within(cluster, values, len(sizes))
    left = (len(values) - sizes)[:, None]
    nothing = np.full_like(sums, np.nan)
    return np.asarray(np.divide(values.sum(axis=0) - sums, left, out=nothing, where=left > 0))


def _bar(mean: Floats, cluster: Ints, df: float, level: float) -> float:
    """Return by how many standard errors the intervals of all pairs reach out on either side."""
    alone = quantile(level, df)
    place = np.unique(cluster, return_inverse=True)[1]
    moved = _without_each(mean, place, np.bincount(place)) - mean.mean(axis=0)
    if not (df > 0 and moved.any()):
        return alone
    # Models that differ by a constant are one: their difference has only errors of rounding.
    moved = np.unique(np.round(moved / np.abs(moved).max(), 9), axis=1)
    if moved.shape[1] < 3:
        return alone
    covariance = jackknife_factor(len(moved)) * moved.T @ moved
    rng = np.random.default_rng(0)
    return max(alone, critical_value(covariance, rng=rng, df=df, level=level))


def _answer(lower: float, upper: float, margin: float | None) -> str:
    if lower > 0 or upper < 0:
        return "better" if lower > 0 else "worse"
    if margin is None or lower <= -margin:
        return "inconclusive"
    return "equivalent" if upper < margin else "not worse"


def _passes(lower: float, upper: float, ask: CompareOptions) -> bool | None:
    margin = ask.margin or 0.0
    line = 0.0 if ask.require == "better" else -margin
    top = margin if ask.require == "equivalent" else math.inf
    if lower > line and upper < top:
        return True
    return False if upper < line or lower > top else None


def _apart(data: ScoredItems) -> str:
    """Say that no item is common, with an item of each model."""
    examples = []
    for name, column in zip(data.models, np.isfinite(data.mean).T, strict=True):
        known = next((data.items[i] for i in np.flatnonzero(column)), None)
        examples.append(f"{name!r} has {'none' if known is None else repr(known)}")
    return f"No item has a score of every model: {', '.join(examples)}. Name items alike."


def _on_missing(
    models: list[ModelScore], items: int, common: int, ask: CompareOptions
) -> tuple[str, ...]:
    left = items - common
    if not left:
        return ()
    lacking = ", ".join(f"{one.model} {one.missing:,}" for one in models if one.missing)
    done = "are excluded" if ask.missing == "pairs" else "count as 0 where they lack a score"
    text = f"{left:,} of {items:,} items have no score of some model and {done}: {lacking}."
    if left > MANY_MISSING * items:
        text += " More than 5% are missing: the difference may depend on why."
    return (text,)
