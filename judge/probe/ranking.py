"""Robustness of a ranking to the prompt mix, and discriminability and validity of a measure.

`boards_of_table` and `reach_of_votes` rank models under other weights and mixes of prompts.
`signal_to_noise` and `variance_shares` measure how well a measure distinguishes models. The
functions ``on_...`` state each desideratum of a measure, and whether the figures show that it is
met.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy

from judge.probe.robustness import (
    LEAST_CORRELATION,
    MOST_NOISE,
    Consistency,
    RerunNoise,
    checked,
    not_rounding,
)
from judge.probe.similarity import tf_idf, words
from rating.errors import DataError
from rating.goodness import Reweighted, Scored, Weighting, compared
from rating.leave_out import quantile
from rating.mix import Mix, RankReach, envelope, pooled_strengths
from rating.options import RateOptions
from rating.rows import VoteRows
from rating.typing import Floats, Ints

# Other mixes of prompts


CLUSTERS = (8, 32, 128, 512)
"""Into how many clusters prompts are put by their words, where there are more prompts."""
MOST_CLUSTERED = 3000
"""Prompts of which every two are compared to put them into clusters."""


def by_words(texts: Sequence[str], codes: Ints) -> Iterator[Weighting]:
    """Weigh prompts by their words: alike ones share a weight, or one stands for its cluster.

    An inverse density, ``w_t = 1 / sum_k cos(t, k)`` over all prompts, itself among them, which
    weighs a prompt given n times as one; and the prompt in the middle of each cluster, those in
    the middle weighing the same.

    Parameters
    ----------
    texts : sequence of str, length n_prompts
    codes : ndarray of shape (n,), int64
        The prompt of each row.
    """
    if not any(map(words, texts)):
        return
    vectors, _ = tf_idf(texts).sides(texts, texts)
    density = (vectors @ vectors.sum(axis=0)).clip(min=1.0)
    yield Weighting("similar prompts share a weight", codes, 1 / density)
    if len(texts) > MOST_CLUSTERED:
        return
    cosine = (vectors @ vectors.T).toarray()
    for n, cluster in clusters_of(cosine, CLUSTERS).items():
        # one in each cluster counts: the text that is most like the others in it
        same = cluster[:, None] == cluster[None, :]
        likeness = (cosine * same).sum(axis=1)
        order = np.lexsort((-likeness, cluster))
        chosen = np.zeros(len(cluster))
        chosen[order[np.unique(cluster[order], return_index=True)[1]]] = 1.0
        yield Weighting(f"one prompt each of {n} clusters", codes, chosen)


def clusters_of(cosine: Floats, numbers: Sequence[int]) -> dict[int, Ints]:
    """Put texts into clusters by Ward's method, each time as many as asked for.

    Parameters
    ----------
    cosine : ndarray of shape (n, n)
        Of vectors of length 1, so that their distance is ``sqrt(2 - 2 cosine)``.

    Returns
    -------
    dict of int to ndarray of shape (n,), int64
        Clusters by number; a number is excluded where there are not more texts.

    References
    ----------
    .. [1] J. H. Ward, "Hierarchical grouping to optimize an objective function", JASA 58(301),
       1963, pp. 236-244.
    """
    numbers = [n for n in numbers if n < len(cosine)]
    if not numbers:
        return {}
    apart = np.sqrt((2 - 2 * cosine[np.triu_indices(len(cosine), 1)]).clip(min=0))
    tree = scipy.cluster.hierarchy.linkage(apart, "ward")
    cut = scipy.cluster.hierarchy.cut_tree(tree, numbers)
    return {n: column.astype(np.int64) for n, column in zip(numbers, cut.T, strict=True)}


def own_mix(mix: Mix, by: str, names: Sequence[str], codes: Ints) -> Weighting:
    """Weigh groups by shares of one's own (post-stratification).

    Raises
    ------
    DataError
        If there is no group of a name in the mix.
    """
    return Weighting(f"your mix of {by}", codes, mix.along(names))


# Votes


def reach_of_votes(rows: VoteRows) -> tuple[RankReach, ...]:
    """Return the ranks that models reach in mixes of the groups ``by``, which are pooled.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `rating.mix.pooled_strengths`.
    """
    votes, variance = pooled_strengths(
        rows.votes_by_group(), RateOptions(by="group", pool=True, interval="none")
    )
    return tuple(envelope(votes.data.models, variance.best.strengths, votes.votes))


# Tables of results


def boards_of_table(
    models: Sequence[str],
    values: Floats,
    groups: Mapping[str, tuple[Ints, tuple[str, ...]]],
    others: Sequence[Weighting],
    *,
    level: float,
) -> Iterator[Reweighted]:
    """Compare means of results with those in which prompts weigh otherwise.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
    groups : mapping of str to (ndarray of shape (n_prompts,), tuple of str)
        Codes by column, and what they stand for.
    others : sequence of Weighting
        A row of theirs is a prompt.
    """
    n = values.shape[1]
    one = np.zeros(n, dtype=np.int64)
    default = _scored(models, values, Weighting("", one, np.ones(1)))
    for by, (codes, names) in groups.items():
        same = Weighting(f"each {by} the same", codes, np.ones(len(names)))
        alone = (
            Weighting(f"{by} {name} alone", codes, own)
            for name, own in zip(names, np.eye(len(names)), strict=True)
        )
        for weighting in (same, *alone):
            yield compared(
                weighting.name, default, _scored(models, values, weighting), level=level
            )
    for weighting in others:
        yield compared(weighting.name, default, _scored(models, values, weighting), level=level)


def _scored(models: Sequence[str], values: Floats, weighting: Weighting) -> Scored:
    """Return mean results with weights, in hundredths of their range.

    What a prompt has a part in is its distance from the mean of its group, whose weight stays; of
    groups of one prompt each, from the mean of all.
    """
    n = values.shape[1]
    weight = weighting.each(np.ones(n)) / n
    group = weighting.codes if len(np.unique(weighting.codes)) < n else np.zeros(n, dtype=np.int64)
    values = 100 * values / (float(np.ptp(values)) or 1.0)
    side = (group[:, None] == np.arange(int(group.max()) + 1)) * weight[:, None]
    total = side.sum(axis=0)
    of_group = (values @ side) / np.where(total > 0, total, 1.0)
    return Scored(tuple(models), values @ weight, ((values - of_group[:, group]) * weight).T)


def reach_of_table(models: Sequence[str], values: Floats, group: Ints) -> tuple[RankReach, ...]:
    """Return the ranks that models reach in mixes of groups of prompts.

    Means of groups hold luck, which would widen the range, so what a group puts a model above or
    below its place on the whole is drawn towards 0 by ``tau^2 / (tau^2 + v)``: v its variance over
    prompts drawn again, and ``tau^2`` what the squares of all are above theirs, or 0.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
    group : ndarray of shape (n_prompts,), int64
    """
    sizes = np.bincount(group).astype(np.float64)
    side = (group[:, None] == np.arange(len(sizes))) / sizes
    ahead = values - values.mean(axis=0)
    of_group, whole = ahead @ side, ahead.mean(axis=1, keepdims=True)
    free = max(1, len(group) - len(sizes))
    variance = ((ahead - of_group[:, group]) ** 2).sum(axis=1, keepdims=True) / free
    luck = variance * (1 / sizes - 1 / len(group))
    spread = max(0.0, float(((of_group - whole) ** 2 - luck).mean()))
    total = spread + luck
    share = np.divide(spread, total, out=np.zeros_like(total), where=total > 0)
    return tuple(envelope(models, (whole + share * (of_group - whole)).T, sizes))


# Discriminability


COMFORTABLE = 2.0
"""Signal over noise from which models count as different; at 1 it is a coin flip."""
DEGREE = 2
_MOST_APART = 1e4
"""Largest distance of models that the inverse of the noncentral F distribution tells."""


@dataclass(frozen=True, slots=True)
class SignalToNoise:
    """How far models lie apart, in units of how far they wander.

    Attributes
    ----------
    signal : float
        Sd over models of their mean score.
    noise : float
        Pooled sd of what is left of each model's scores after its trend and after what all
        models share, over the root of how many snapshots a score is the mean of.
    ratio : float or None
        ``signal / noise``; None where nothing wanders, which leaves nothing to divide by.
    lower, upper : float or None
        95% interval of the ratio for such models at other moments, if noise is normal;
        ``upper`` is None where it is beyond what can be computed.
    n_models, n_snapshots : int
    """

    signal: float
    noise: float
    ratio: float | None
    lower: float | None
    upper: float | None
    n_models: int
    n_snapshots: int


def signal_to_noise(scores: Floats, *, averaged: int = 1) -> SignalToNoise:
    """Compare the spread of models with how each wanders around its own parabola.

    Noise is ``sqrt(sum of squared residuals / ((n_models - 1) (n_snapshots - 3)))`` after a
    least-squares polynomial of degree 2 in time for each model: three coefficients each, which
    the denominator takes off, so that a longer look does not make the noise larger. Residuals are
    first taken from their mean over models: what moves all of them sets none apart, and scores
    that sum to a constant would else seem quieter than they are. (The source takes nothing off,
    and divides by n_models.)

    The interval is that of the noncentral F distribution: ``averaged (1 + nc / (n_models - 1)) /
    n_snapshots`` is the squared ratio that models ``nc`` apart have on average.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_snapshots)
        At moments that lie equally apart.
    averaged : int
        Snapshots that the score in use is the mean of; with all of them, models that are alike
        have a ratio around one: what is left of the noise is all that sets them apart.

    Raises
    ------
    DataError
        With fewer than two models or four snapshots.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229.

    Examples
    --------
    Two models, ten points apart; one wanders by a point to and fro.

    >>> wander = np.array([1.0, -1, 1, -1, 1, -1])
    >>> ratio = signal_to_noise(np.stack([10 + wander, np.zeros(6)]))
    >>> round(ratio.signal, 3), round(ratio.noise, 3)
    (7.071, 0.956)
    """
    n_models, n_snapshots = checked(scores, "models", "snapshots").shape
    if n_models < 2 or n_snapshots < DEGREE + 2:
        msg = f"{n_models} models at {n_snapshots} moments: give 2 at {DEGREE + 2} or more."
        raise DataError(msg)
    signal = float(scores.mean(axis=1).std(ddof=1))
    left = detrended(scores - scores.mean(axis=0))
    free = (n_models - 1) * (n_snapshots - DEGREE - 1)
    noise = not_rounding(math.sqrt(float((left**2).sum()) / free / averaged), scores)
    if not noise:
        return SignalToNoise(signal, noise, None, None, None, *scores.shape)
    part, ratio = averaged / n_snapshots, signal / noise
    lower, upper = (
        None if apart is None else math.sqrt(part * (1 + apart / (n_models - 1)))
        for apart in _apart(ratio**2 / part, n_models - 1, free)
    )
    return SignalToNoise(signal, noise, ratio, lower, upper, *scores.shape)


def _apart(f: float, df: int, free: int) -> tuple[float, float | None]:
    """Return the ends of the noncentrality of an F statistic; None for an end out of reach."""
    low, high = (float(scipy.special.ncfdtrinc(df, free, p, f)) for p in (0.975, 0.025))
    return low, high if high < _MOST_APART else None


def detrended(scores: Floats) -> Floats:
    """Return what is left of each row after its least-squares parabola."""
    time = np.linspace(-1, 1, scores.shape[1])
    basis, _ = np.linalg.qr(np.vander(time, DEGREE + 1))
    return np.asarray(scores - (scores @ basis) @ basis.T)


NULL_DRAWS = 20_000
EXCHANGES = 999
_DRAWN_AT_ONCE = 2_000_000
MOST_P = 0.05


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Shares of the variance, and how likely the models' share is if none differs.

    Attributes
    ----------
    entrant, seed, snapshot : float
        In [0, 1], summing to one.
    p : float
        Chance of such a share of the models or a larger one where all scores are one noise.
    p_exchanged : float
        The same where models are exchanged at random at each snapshot.
    shape : tuple of int
        Models, seeds, snapshots.
    """

    entrant: float
    seed: float
    snapshot: float
    p: float
    p_exchanged: float
    shape: tuple[int, int, int]


def variance_shares(
    scores: Floats, *, rng: np.random.Generator, draws: int = NULL_DRAWS
) -> VarianceShares:
    """Share out the variance of scores over what varied.

    With scores of model v, seed s and snapshot t, and all variances of ddof 1::

        V_entrant  = Var_v (mean over s and t)
        V_seed     = mean_v Var_s (mean over t)
        V_snapshot = mean_{v, s} Var_t

    each over their sum. The models' share is not zero where models are alike: what is left of
    the noise after a mean stays in it. So it is compared with the same design filled with noise,
    ``p = (1 + #{null >= share}) / (draws + 1)``. That null takes every score for a look of its
    own. Where seeds see the same data, as reruns do, their noise is shared, and the mean over
    seeds takes less of it away: so a second null exchanges the models at each snapshot, all
    seeds together, and keeps whatever goes together within it. It takes snapshots as independent.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_seeds, n_snapshots)

    Raises
    ------
    DataError
        Unless there are two or more of each, or if no score differs from another.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229,
       whose null of 4 models, 3 seeds and 9 snapshots this gives.
    """
    shape = _checked_shape(checked(scores, "models", "seeds", "snapshots").shape)
    parts = _parts(scores)
    if not parts.any():
        raise DataError(f"All scores are {scores.flat[0]}: there is no variance to share out.")
    entrant, seed, snapshot = (float(part) for part in parts / parts.sum())
    null = _null_entrant_shares(shape, rng=rng, draws=draws)
    exchanged = _exchanged_entrant_shares(scores, rng=rng, draws=min(draws, EXCHANGES))
    return VarianceShares(
        entrant, seed, snapshot, _p(null, entrant), _p(exchanged, entrant), shape
    )


def _null_entrant_shares(
    shape: tuple[int, int, int], *, rng: np.random.Generator, draws: int = NULL_DRAWS
) -> Floats:
    """Draw the models' share where every score is the same normal noise, shape (draws,).

    For V models, S seeds and T snapshots of unit noise the three variances are independent::

        V_entrant  ~ chi2(V - 1) / ((V - 1) S T)
        V_seed     ~ chi2(V (S - 1)) / (V (S - 1) T)
        V_snapshot ~ chi2(V S (T - 1)) / (V S (T - 1))

    Examples
    --------
    >>> shares = _null_entrant_shares((4, 3, 9), rng=np.random.default_rng(1))
    >>> round(float((shares > 0.1).mean()), 3)
    0.021
    """
    v, s, t = _checked_shape(shape)
    df = np.array([v - 1, v * (s - 1), v * s * (t - 1)])
    parts = rng.chisquare(df, (draws, 3)) / (df * [s * t, t, 1])
    return np.asarray(parts[:, 0] / parts.sum(axis=1))


def _exchanged_entrant_shares(
    scores: Floats, *, rng: np.random.Generator, draws: int = EXCHANGES
) -> Floats:
    """Draw the models' share with models exchanged at each snapshot, shape (draws,)."""
    v, _, t = scores.shape
    by_snapshot = scores.transpose(2, 0, 1)
    at_once = max(1, _DRAWN_AT_ONCE // scores.size)
    shares = []
    for start in range(0, draws, at_once):
        n = min(at_once, draws - start)
        order = rng.permuted(np.tile(np.arange(v), (n, t, 1)), axis=2)
        given = by_snapshot[np.arange(t)[:, None], order]
        parts = _parts(given.transpose(0, 2, 3, 1))
        shares.append(parts[0] / parts.sum(axis=0))
    return np.concatenate(shares)


def _p(null: Floats, share: float) -> float:
    return (1 + int((null >= share * (1 - 1e-12)).sum())) / (len(null) + 1)


def _parts(scores: Floats) -> Floats:
    """Return the variances by model, seed and snapshot, of designs along any first axes."""
    over_time = scores.mean(axis=-1)
    return np.stack(
        [
            over_time.mean(axis=-1).var(axis=-1, ddof=1),
            over_time.var(axis=-1, ddof=1).mean(axis=-1),
            scores.var(axis=-1, ddof=1).mean(axis=(-1, -2)),
        ]
    )


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    if min(shape) < 2:
        msg = f"{' x '.join(map(str, shape))} models, seeds and snapshots: give two of each."
        raise DataError(msg)
    models, seeds, snapshots = shape
    return models, seeds, snapshots


# Desiderata


NAMES = ("reruns", "validity", "discriminability", "consistency", "monotone")
LEAST_COVERED, MOST_COVERED = 0.93, 0.97
SURE = 0.999
"""Level of the interval that a simulated figure is given for having been simulated."""
VERDICTS = {True: "passes", False: "fails", None: "cannot_tell"}
MOST_FALL = 0.01
"""Of the rank correlation with every doubling of the votes."""


@dataclass(frozen=True, slots=True)
class Desideratum:
    """One thing asked of a measure.

    Attributes
    ----------
    name : str
        One of `NAMES`.
    passed : bool or None
        True where the whole interval of the figure passes, False where none of it does; None
        otherwise, and ``text`` then gives the reason.
    rule : str
        What it takes to pass, with the threshold.
    text : str
        The outcome in words.
    numbers : mapping of str to object
        The same as numbers, for JSON.
    """

    name: str
    passed: bool | None
    rule: str
    text: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        return {
            "name": self.name,
            "passed": self.passed,
            "verdict": VERDICTS[self.passed],
            "rule": self.rule,
            "found": self.text,
            "numbers": {
                name: None if isinstance(one, float) and not math.isfinite(one) else one
                for name, one in self.numbers.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Simulated:
    """A mean over simulated arenas and its Monte Carlo error.

    Attributes
    ----------
    error : float
        Standard error.
    n : int
        Arenas, two or more.
    """

    mean: float
    error: float
    n: int

    @property
    def slack(self) -> float:
        """Half width of the `SURE` interval, Student's t."""
        return quantile(SURE, self.n - 1) * self.error

    @classmethod
    def of(cls, values: Floats) -> "Simulated":
        """Return the mean of one value an arena."""
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(float(values.mean()), error, len(values))


def unknown(name: str, why: str) -> Desideratum:
    """Return a desideratum that neither passed nor failed."""
    return Desideratum(name, None, _RULES[name], why)


def on_reruns(
    noise: RerunNoise, se: float, ends: tuple[float, float], *, sample: str
) -> Desideratum:
    """Ask that running the measure again moves a score by little of its standard error.

    Parameters
    ----------
    se : float
        Standard error of a score.
    ends : tuple of float
        95% interval of their ratio.
    sample : str
        What the scores are of, as ``"60 prompts"``.
    """
    ratio, (lower, upper) = noise.over(se), ends
    text = (
        f"A rerun changes a score by {noise.sd:.2g} (sd), {_share(ratio)} of its standard "
        f"error {se:.2g} ({_share(lower)} to {_share(upper)}); the smallest "
        f"reliable difference of two single-run scores is {noise.smallest:.2g}."
    )
    if noise.sd == 0:
        text = f"{noise.n_runs} runs gave the same scores."
    numbers = asdict(noise) | {"se": se, "ratio": ratio, "lower": lower, "upper": upper}
    passed = True if upper <= MOST_NOISE else False if lower > MOST_NOISE else None
    if passed is None:
        text = f"{_cannot_tell(sample)} {text}"
    return Desideratum("reruns", passed, _RULES["reruns"], text, numbers)


def on_validity(
    *,
    spearman: Simulated,
    rmse: float,
    covered: Simulated | None,
    permuted: Simulated,
    oracle: float,
    failed: int,
) -> Desideratum:
    """Ask for true intervals, no order out of nothing, and nothing better than the truth.

    Parameters
    ----------
    spearman : Simulated
        Rank correlation with the true strengths, of arenas whose truth is known.
    rmse : float
        Root mean squared error of a strength, in nats.
    covered : Simulated or None
        Share of the strengths inside their 95% interval; None where there are no intervals.
    permuted : Simulated
        Rank correlation when results are dealt out at random.
    oracle : float
        Rank correlation when every vote is what all voters together would say.
    failed : int
        Arenas whose votes gave no rating.
    """
    wrong = {
        "Its intervals are too narrow.": covered and covered.mean + covered.slack < LEAST_COVERED,
        "Its intervals are too wide.": covered and covered.mean - covered.slack > MOST_COVERED,
        "It finds an order although there is none.": abs(permuted.mean) > permuted.slack,
        "It ranks worse with perfect votes (an oracle's) than with people's.": oracle
        < spearman.mean,
        "It does not recover the true ranking.": spearman.mean <= spearman.slack,
    }
    faults = [text for text, is_so in wrong.items() if is_so]
    intervals = "it gives no intervals to check"
    if covered is not None:
        intervals = f"95% intervals cover {100 * covered.mean:.1f}% of the true ratings"
    text = (
        f"Rank correlation with the true ranking {spearman.mean:.2f}; {intervals}; {oracle:.2f} "
        f"with perfect votes (an oracle's), {permuted.mean:z.2f} with permuted ones."
    )
    numbers = {
        "spearman": spearman.mean,
        "rmse": rmse,
        "coverage": covered and covered.mean,
        "coverage_error": covered and covered.error,
        "permuted": permuted.mean,
        "permuted_error": permuted.error,
        "oracle": oracle,
        "arenas": spearman.n,
        "arenas_failed": failed,
    }
    if failed:
        text += f" The votes of {failed} more arenas gave no rating."
    words = " ".join([*faults, text])
    return Desideratum("validity", not faults, _RULES["validity"], words, numbers)


def on_discriminability(
    signal: SignalToNoise, shares: VarianceShares, *, sample: str
) -> Desideratum:
    """Ask that models lie further apart than they wander.

    It is never failed: models that show no difference may be equal.
    """
    ratio = "infinite" if signal.ratio is None else f"{signal.ratio:.1f}"
    upper = "infinity" if signal.upper is None else f"{signal.upper:.1f}"
    reach = "" if signal.lower is None else f" ({signal.lower:.1f} to {upper})"
    text = (
        f"Signal-to-noise ratio {ratio}{reach}; {100 * shares.entrant:.0f}% of the variance "
        f"is between models (p = {max(shares.p, shares.p_exchanged):.2g} under equal models), "
        f"{100 * shares.seed:.0f}% between reruns, {100 * shares.snapshot:.0f}% between "
        f"{signal.n_snapshots} parts."
    )
    numbers = {
        "signal_to_noise": asdict(signal) | {"n_entrants": signal.n_models},
        "variance_shares": asdict(shares) | {"shape": [*shares.shape]},
    }
    apart = signal.signal > 0 if signal.lower is None else signal.lower >= COMFORTABLE
    stands_out = apart and max(shares.p, shares.p_exchanged) <= MOST_P
    if not stands_out:
        text = f"{_cannot_tell(sample)} The models may be equal. {text}"
    rule = _RULES["discriminability"]
    return Desideratum("discriminability", stands_out or None, rule, text, numbers)


def on_consistency(
    agreement: Consistency, *, sample: str, ends: tuple[float, float] | None = None
) -> Desideratum:
    """Ask that boards with choices that should not matter say the same.

    Parameters
    ----------
    ends : tuple of float, optional
        95% interval of the lowest rank correlation over other samples; None where the boards are
        of one sample that they must agree on.
    """
    name, rule = "consistency", _RULES["consistency"]
    lowest, most = agreement.lowest, agreement.most_contradictions
    if lowest is None:
        why = "No rank correlation is defined: it needs three models that are not all equal."
        return Desideratum(name, None, rule, why, agreement.to_dict())
    lower, upper = (lowest, lowest) if ends is None else ends
    pairs = "no pair" if not most else f"{most} pair{'' if most == 1 else 's'}"
    reach = "" if upper - lower < 0.005 else f" ({lower:.2f} to {upper:.2f})"
    text = (
        f"Lowest rank correlation of {len(agreement.boards)} boards {lowest:.2f}{reach}; two "
        f"boards contradict each other on {pairs}; {100 * agreement.same_winner:.0f}% of them "
        "have the same winner."
    )
    passed = False if most else True if min(lowest, lower) >= LEAST_CORRELATION else None
    if passed is None:
        sure = lowest >= LEAST_CORRELATION
        why = "Other boards may differ more." if sure else "Differences are not certain."
        text = f"{_cannot_tell(sample)} {why} {text}"
    numbers = agreement.to_dict() | {"lowest": lowest, "lower": lower, "upper": upper}
    return Desideratum(name, passed, rule, text, numbers)


def on_monotone(spearman: Floats, shares: Floats) -> Desideratum:
    """Ask that more votes bring a measure nearer to the truth.

    Parameters
    ----------
    spearman : ndarray of shape (n_arenas, n_shares)
        Rank correlation with the truth after each share of the votes.
    shares : ndarray of shape (n_shares,)

    Notes
    -----
    The slope on log2 of the share is fitted in each arena by least squares; the interval is
    Student's t over arenas.
    """
    if len(spearman) < 2:
        return unknown("monotone", f"{len(spearman)} arena gave ratings at every moment.")
    time = np.log2(shares)
    time = time - time.mean()
    slope = spearman @ time / (time @ time)
    error = float(slope.std(ddof=1)) / math.sqrt(len(slope))
    reach = quantile(0.95, len(slope) - 1) * error
    lower, upper = float(slope.mean()) - reach, float(slope.mean()) + reach
    steps = ", ".join(f"{x:.2f}" for x in spearman.mean(axis=0))
    text = (
        f"Each doubling of the votes adds {slope.mean():.3f} ({lower:.3f} to {upper:.3f}) to "
        f"the rank correlation with the true ranking: {steps}."
    )
    numbers = {
        "slope": float(slope.mean()),
        "lower": lower,
        "upper": upper,
        "shares": shares.tolist(),
        "spearman": spearman.mean(axis=0).tolist(),
        "arenas": len(slope),
    }
    passed = True if lower >= -MOST_FALL else False if upper < 0 else None
    if passed is None:
        text = f"Too few arenas to exclude a decrease: simulate more. {text}"
    return Desideratum("monotone", passed, _RULES["monotone"], text, numbers)


def _cannot_tell(sample: str) -> str:
    return f"Inconclusive with {sample}."


def _share(ratio: float) -> str:
    return "infinitely" if math.isinf(ratio) else f"{100 * ratio:.0f}%"


_RULES = {
    "reruns": (
        "The sd over reruns is at most a third of a score's standard error: passed if the "
        "whole 95% interval is in that range, failed if none of it is."
    ),
    "validity": (
        f"On simulated arenas, 95% intervals cover {100 * LEAST_COVERED:.0f} to "
        f"{100 * MOST_COVERED:.0f}% of the true ratings, permuted votes give no order, and "
        "perfect votes (an oracle's) give the best one, within simulation error (99.9%)."
    ),
    "discriminability": (
        f"The spread between models is at least {COMFORTABLE:g} times their drift, by the "
        f"whole 95% interval, and larger than equal models would give (p at most {MOST_P:g}). "
        "Never failed: models that are not separated may be equal."
    ),
    "consistency": (
        "With choices that should not matter, no two boards contradict each other (otherwise "
        f"failed), and their rank correlations are at least {LEAST_CORRELATION:g}, by the "
        "whole 95% interval if samples differ."
    ),
    "monotone": (
        "The rank correlation with the true ranking does not decrease by more than "
        f"{MOST_FALL:g} per doubling of the votes (lower end of 95%)."
    ),
}
