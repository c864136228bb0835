"""Boards of one's own mix of categories: ratings, preferences, and ranks under other mixes."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rating.board import report_of
from rating.comparisons import Votes
from rating.errors import DataError
from rating.fitting import fit
from rating.options import RateOptions
from rating.pooling.boards import PooledFit, Pooling, pooled_fit, pooling_of, report_of_mix
from rating.report import Report
from rating.sentences import counted
from rating.typing import Floats
from rating.uncertainty.spread import spread
from rating.uncertainty.student import quantile

FEW = 30.0
"""Effective votes behind a mix below which its board is only a hint."""

KAPPAS: tuple[float, ...] = (1.5, 2.0, 8.0)
"""How many times its share among the votes a category may have in other mixes, by default."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of categories.

    Attributes
    ----------
    shares : mapping of str to float
        Positive; they sum to one.
    prompts : int or None
        How many prompts of one's own the shares were counted from; None where they were given.
    """

    shares: Mapping[str, float]
    prompts: int | None = None

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> "Mix":
        """Take the shares of one's own prompts.

        >>> Mix.of_counts({"coding": 3, "writing": 1}).shares
        {'coding': 0.75, 'writing': 0.25}
        """
        total = sum(counts.values())
        if total <= 0:
            raise DataError("A mix needs a prompt at least.")
        return cls({name: n / total for name, n in counts.items() if n}, total)

    @classmethod
    def of_shares(cls, shares: Mapping[str, float]) -> "Mix":
        """Take shares as they are given, of any sum.

        Raises
        ------
        DataError
            If one is negative or not finite, or none is positive.

        Examples
        --------
        >>> Mix.of_shares({"coding": 1, "writing": 3}).shares
        {'coding': 0.25, 'writing': 0.75}
        """
        total = sum(shares.values())
        if not all(0 <= share < math.inf for share in shares.values()) or not 0 < total < math.inf:
            raise DataError("Shares of a mix are numbers from 0, and one of them is above 0.")
        return cls({name: share / total for name, share in shares.items() if share})

    def along(self, categories: Sequence[str]) -> Floats:
        """Return the shares in the order of some categories.

        Raises
        ------
        DataError
            If the mix holds another category.
        """
        unknown = sorted(self.shares.keys() - {*categories})
        if unknown:
            raise DataError(
                f"The votes have no category {', '.join(map(repr, unknown[:5]))}; there are "
                f"{', '.join(map(repr, sorted(categories)[:12]))}."
            )
        return np.array([self.shares.get(name, 0.0) for name in categories])


@dataclass(frozen=True, slots=True)
class Preference:
    """The probability that a is preferred to b, a tie half, with its interval."""

    a: str
    b: str
    preferred: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class RankReach:
    """Best and worst rank of a model over the mixes that kappa allows: see `envelope`."""

    model: str
    best: int
    worst: int
    kappa: float


@dataclass(frozen=True, slots=True)
class MixBoard:
    """A board of one's own mix.

    Attributes
    ----------
    report : Report
        The ratings, best first.
    mix : Mix
    n_effective : float
        Votes behind it, ``1 / sum_c q_c^2 / n_c``.
    pairs : tuple of Preference
        The higher rated model first.
    envelope : tuple of RankReach
    pooling : Pooling
    """

    report: Report
    mix: Mix
    n_effective: float
    pairs: tuple[Preference, ...]
    envelope: tuple[RankReach, ...]
    pooling: Pooling

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        pairs = [asdict(pair) for pair in self.pairs]
        for pair in pairs:
            for name in ("lower", "upper"):
                pair[name] = pair[name] if math.isfinite(pair[name]) else None
        return self.report.to_dict() | {
            "mix": dict(self.mix.shares),
            "n_prompts": self.mix.prompts,
            "n_effective": self.n_effective,
            "pairs": pairs,
            "envelope": [asdict(row) for row in self.envelope],
            "pooling": self.pooling.to_dict(),
        }


def rate_mix(
    groups: Mapping[str, Votes],
    mix: Mix,
    options: RateOptions,
    *,
    kappas: Sequence[float] = KAPPAS,
    reweighted: bool = False,
) -> MixBoard:
    """Rate every model on one's own mix of categories.

    The strengths are ``sum_c q_c theta_c``, those of the pooled categories: log-odds averaged over
    the mix. Preferences are averaged as probabilities, prompts of a category and, where the mix
    was counted from n prompts, the mix itself (Dirichlet) drawn anew.

    Parameters
    ----------
    groups : mapping of str to Votes
        As `rating.read_groups` reads them.
    kappas : sequence of float
        See `envelope`.
    reweighted : bool
        Weigh votes by ``q_c / p_c`` instead, p_c the share of their category, without pooling
        (post-stratification). The envelope stays that of pooled categories.

    Raises
    ------
    DataError
        If the mix holds a category without votes, or as `rating.rate_pooled`.
    NotIdentifiedError, ConvergenceError
        As `rating.rate_pooled`.
    """
    pooled = pooled_fit(groups, options)
    whole = whole_of(groups, pooled)
    return board_of_mix(pooled, whole, mix, options, kappas=kappas, reweighted=reweighted)


def board_of_mix(
    pooled: PooledFit,
    whole: Votes,
    mix: Mix,
    options: RateOptions,
    *,
    kappas: Sequence[float] = KAPPAS,
    reweighted: bool = False,
) -> MixBoard:
    """Rate every model on a mix as `rate_mix` does, from a fit that is there.

    Parameters
    ----------
    whole : Votes
        See `whole_of`.
    """
    shares = mix.along(pooled.votes.categories)
    if reweighted:
        report, pairs = _reweighted(pooled, whole, shares, options)
    else:
        report = report_of_mix(pooled, whole, shares, options)
        pairs = _preferences(pooled, shares, mix.prompts, options.level)
    place = {row.model: number for number, row in enumerate(report.ratings)}
    effective = n_effective(shares, pooled.votes.votes)
    return MixBoard(
        report=replace(report, warnings=(*report.warnings, *_warnings(effective))),
        mix=mix,
        n_effective=effective,
        pairs=tuple(sorted(_turned(pairs, place), key=lambda x: (place[x.a], place[x.b]))),
        envelope=tuple(
            sorted(
                envelope(
                    pooled.votes.data.models, pooled.best.strengths, pooled.votes.votes, kappas
                ),
                key=lambda reach: (reach.kappa, place[reach.model]),
            )
        ),
        pooling=pooling_of(pooled, options),
    )


def n_effective(shares: Floats, votes: Floats) -> float:
    """Return how many votes stand behind a mix: ``1 / sum_c q_c^2 / n_c``.

    >>> n_effective(np.array([0.5, 0.5]), np.array([100.0, 100.0]))
    200.0
    """
    used = shares > 0
    return float(1 / (shares[used] ** 2 / votes[used]).sum())


def whole_of(groups: Mapping[str, Votes], pooled: PooledFit) -> Votes:
    """Put together what became of the votes of all categories."""
    dropped: Counter[str] = Counter()
    for votes in groups.values():
        dropped.update(votes.dropped)
    hashes = [f"{name}\0{votes.data_hash}" for name, votes in groups.items()]
    return Votes(
        pooled.votes.data,
        read=sum(votes.read for votes in groups.values()),
        self_battles=sum(votes.self_battles for votes in groups.values()),
        dropped=dict(dropped),
        data_hash=hashlib.sha256("\0".join(hashes).encode()).hexdigest(),
        warnings=tuple(
            dict.fromkeys(text for votes in groups.values() for text in votes.warnings)
        ),
    )


def _warnings(effective: float) -> Iterator[str]:
    if effective < FEW:
        yield counted(
            "Effectively %(n)s vote stands behind this mix: under %(few)s it is only a hint.",
            "Effectively %(n)s votes stand behind this mix: under %(few)s it is only a hint.",
            round(effective),
            few=round(FEW),
        )


def _turned(pairs: Sequence[Preference], place: Mapping[str, int]) -> Iterator[Preference]:
    """Name the higher rated model of each pair first."""
    for x in pairs:
        if place[x.a] < place[x.b]:
            yield x
        else:
            yield Preference(x.b, x.a, 1 - x.preferred, 1 - x.upper, 1 - x.lower)


def _preferences(
    pooled: PooledFit, shares: Floats, prompts: int | None, level: float
) -> list[Preference]:
    """Average the probabilities of each pair over the mix, with intervals on the log-odds.

    The variance is that of the strengths, to first order, plus that of the mix: of shares drawn
    from a Dirichlet distribution of n prompts, ``(sum q p^2 - (sum q p)^2) / (n + 1)``.
    """
    used = np.flatnonzero(shares)
    q, strengths = shares[used], pooled.best.strengths[used]
    covariance = pooled.spread.covariance[used][:, :, used]
    models = pooled.votes.data.models
    wide = quantile(level, pooled.spread.df)
    scatter = np.sqrt(2) * pooled.best.tau.prompt
    rows = []
    for i in range(len(models)):
        for j in range(i + 1, len(models)):
            p, slope = _on_new_prompts(strengths[:, i] - strengths[:, j], scatter)
            own = covariance[:, i] - covariance[:, j]
            own = own[:, :, i] - own[:, :, j]
            mean = float(q @ p)
            variance = float((q * slope) @ own @ (q * slope))
            if prompts is not None:
                variance += max(0.0, float(q @ p**2) - mean**2) / (prompts + 1)
            middle = math.log(mean / (1 - mean))
            reach = wide * math.sqrt(variance) / (mean * (1 - mean))
            ends = (1 / (1 + math.exp(-end)) for end in (middle - reach, middle + reach))
            rows.append(Preference(models[i], models[j], mean, *ends))
    return rows


def _on_new_prompts(gap: Floats, scatter: float) -> tuple[Floats, Floats]:
    """Return the probability of a win, and its slope, over normal differences between prompts."""
    p = 1 / (1 + np.exp(-(gap[:, None] + scatter * _NODES)))
    weight = _WEIGHTS / _WEIGHTS.sum()
    return p @ weight, (p * (1 - p)) @ weight


def envelope(
    models: Sequence[str], strengths: Floats, votes: Floats, kappas: Sequence[float] = KAPPAS
) -> list[RankReach]:
    """Bound every model's rank over all mixes near that of the votes.

    Mixes q with ``q_c <= kappa p_c``, p_c the share of category c among the votes. The least and
    the largest difference of two models are exact: the best categories are filled up in turn.
    With kappa 1 there is one such mix, that of the votes.

    Parameters
    ----------
    strengths : ndarray of shape (n_categories, n_models)
    votes : ndarray of shape (n_categories,)

    Raises
    ------
    DataError
        If a kappa is under 1 or not finite.
    """
    reached = []
    for kappa in kappas:
        if not 1 <= kappa < math.inf:
            raise DataError(f"kappa must be 1 or more, and finite, not {kappa:g}.")
        least = least_differences(strengths, kappa * votes / votes.sum())
        ahead = (least > 1e-12).sum(axis=0)  # of each column: rows above it in every mix
        below_somewhere = (least < -1e-12).sum(axis=1)
        for number, model in enumerate(models):
            best, worst = int(ahead[number]), int(below_somewhere[number])
            reached.append(RankReach(model, 1 + best, 1 + worst, float(kappa)))
    return reached


def least_differences(strengths: Floats, most: Floats) -> Floats:
    """Return the least of ``sum_c q_c (strength of row - of column)`` over shares up to ``most``.

    Parameters
    ----------
    strengths : ndarray of shape (n_categories, n_models)
    most : ndarray of shape (n_categories,)
        Of a sum of 1 or more.

    Examples
    --------
    >>> least_differences(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.75, 0.75])).tolist()
    [[0.0, -0.5], [-0.5, 0.0]]
    """
    gaps = strengths[:, :, None] - strengths[:, None, :]
    order = np.argsort(gaps, axis=0)
    filled = np.cumsum(most[order], axis=0).clip(max=1.0)
    share = np.diff(filled, axis=0, prepend=0.0)
    return np.asarray((share * np.take_along_axis(gaps, order, axis=0)).sum(axis=0))


def _reweighted(
    pooled: PooledFit, whole: Votes, shares: Floats, options: RateOptions
) -> tuple[Report, list[Preference]]:
    """Rate the votes as one board, those of each category weighed up or down to the mix."""
    votes = pooled.votes
    factor = (shares / votes.votes * votes.votes.sum())[votes.category]
    used = factor > 0
    data = votes.data.subset(used)
    data = replace(
        data, weight=data.weight * factor[used], weight_sq=data.weight_sq * factor[used] ** 2
    )
    options = replace(options, by=None, pool=False).resolved(data)
    fitted = fit(data)
    off = spread(fitted, data, options, np.random.default_rng(options.seed))
    rng = np.random.default_rng([options.seed, 1])
    report = report_of(fitted, replace(whole, data=data), off, options, rng)
    report = replace(report, options=replace(report.options, weights="mix"))
    assert off.inference is not None
    pairs = off.inference.pairs
    value, reach = pairs.each.value, pairs.each.half_width(options.level)
    middle, low, high = (1 / (1 + np.exp(-x)) for x in (value, value - reach, value + reach))
    names = fitted.models
    return report, [
        Preference(names[a], names[b], float(p), float(lower), float(upper))
        for a, b, p, lower, upper in zip(pairs.first, pairs.second, middle, low, high, strict=True)
    ]
