"""Boards by category and on a prompt mix, from partially pooled strengths.

`rate_pooled` rates every model in every category (`rating.pooling` has the likelihood); `rate_mix`
reweights the categories to a mix of one's own, with preferences, and with the ranks that models
reach under other mixes (`envelope`).
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rating import __version__
from rating.board import rate, report_of
from rating.comparisons import Comparisons, Votes
from rating.contrasts import MIN_EFFECTIVE_FOR_CLUSTERS
from rating.contrasts import spread as spread_of_fit
from rating.covariance import activity, difference_variances
from rating.errors import DataError
from rating.fitting import fit
from rating.identification import check_strengths, decided_groups
from rating.leave_out import quantile
from rating.options import KAPPAS, Clusters, RateOptions
from rating.pooling import (
    Categorised,
    Pooled,
    Tree,
    Variance,
    borrowed,
    fitted_variance,
    oddness,
    spread,
)
from rating.ranks import EQUAL_NATS, MIN_EFFECTIVE_FOR_RANKS, quasi_standard_errors, rank_ranges
from rating.report import DesignEffect, ModelRating, Provenance, Report, VotesUsed
from rating.sentences import Sentence, counted
from rating.typing import Bools, Floats

# Pooled boards by category


MOST_STRENGTHS = 4000
"""Models times categories up to which their joint covariance is held in memory."""

REPEATED = 5.0
"""Votes on the prompt of an average vote from which prompts are a level of their own."""


@dataclass(frozen=True, slots=True)
class PooledRating(ModelRating):
    """Rating of one model in a category.

    Attributes
    ----------
    borrowed : float
        Share of the rating that comes from votes in other categories, 0 to 1.
    """

    borrowed: float


@dataclass(frozen=True, slots=True)
class Pooling:
    """How far categories lie apart.

    Attributes
    ----------
    tau, lower, upper : float
        Standard deviation of a model's rating between categories, in points, with its profile
        interval; NaN with one category alone, and infinite where the interval has no end.
    tau_prompt : float or None
        That between prompts of a category; None where prompts were no level.
    """

    tau: float
    lower: float
    upper: float
    tau_prompt: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: finite numbers, or None."""
        plain = asdict(self)
        return {
            name: x if x is not None and math.isfinite(x) else None for name, x in plain.items()
        }


@dataclass(frozen=True, slots=True)
class PooledBoards:
    """Partially pooled ratings by category.

    Attributes
    ----------
    reports : mapping of str to Report
        With `PooledRating` rows: every model has one in every category.
    pooling : Pooling
    not_rated : mapping of str to str
        Why a category has no board.
    """

    reports: Mapping[str, Report]
    pooling: Pooling
    not_rated: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``not_rated`` is there only if some category is not."""
        plain: dict[str, Any] = {
            "groups": {value: report.to_dict() for value, report in self.reports.items()},
            "pooling": self.pooling.to_dict(),
            "warnings": by_itself(self.reports),
        }
        return plain | ({"not_rated": dict(self.not_rated)} if self.not_rated else {})


def by_itself(reports: Mapping[str, Report]) -> list[str]:
    """Say that each of several boards claims its ranks by itself, and how to claim all at once."""
    if len(reports) < 2:
        return []
    level = next(iter(reports.values())).options.level
    together = 1 - (1 - level) / len(reports)
    return [
        f"Each of the {len(reports)} boards is by itself: its intervals and ranks are claimed at "
        f"{100 * level:g}%, and the more boards, the more likely one of them claims a false "
        f"rank. For claims over all boards together (Bonferroni): --level {together:.6g}."
    ]


@dataclass(frozen=True, eq=False)
class PooledFit:
    """Pooled strengths with their spread.

    Attributes
    ----------
    votes : Categorised
    variance : Variance
    covariance, df : ndarray and float
        See `rating.pooling.spread`.
    odd : ndarray of shape (n_categories,)
        See `rating.pooling.oddness`.
    """

    votes: Categorised
    variance: Variance
    covariance: Floats
    df: float
    odd: Floats

    @property
    def best(self) -> Pooled:
        """The fit at the highest marginal likelihood."""
        return self.variance.best


def pooled_fit(groups: Mapping[str, Votes], options: RateOptions) -> PooledFit:
    """Fit the votes of all categories together, with the spread of the strengths.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `pooled_strengths`.
    """
    votes, variance = pooled_strengths(groups, options)
    return PooledFit(votes, variance, *spread(variance, votes), oddness(variance.best, votes))


def pooled_strengths(
    groups: Mapping[str, Votes], options: RateOptions
) -> tuple[Categorised, Variance]:
    """Fit the votes of all categories together.

    Prompts are a level of their own where they are known and repeat, or where clusters of both
    kinds are asked for; with clusters by voter they are not.

    Raises
    ------
    DataError
        If there are no votes, too many categories, or no voters or prompts where they are needed.
    NotIdentifiedError
        If all votes together identify no rating.
    ConvergenceError
        If a fit is not reached.
    """
    if options.cluster == "prompt":
        raise DataError("Groups are pooled without cluster 'prompt': leave one of them out.")
    votes = Categorised.of(groups)
    data = votes.data
    if (size := len(votes.categories) * data.n_models) > MOST_STRENGTHS:
        raise DataError(
            f"{len(votes.categories)} categories of {data.n_models} models are {size:,} "
            f"strengths, and at most {MOST_STRENGTHS:,} are pooled: merge the rarest categories."
        )
    replace(options, by=None, pool=False).resolved(data)
    # Of hardly more than one voter none can be excluded.
    alone = data.voter is not None and activity(data).effective < MIN_EFFECTIVE_FOR_CLUSTERS
    if options.cluster == "none" or alone:
        votes = replace(votes, data=replace(data, voter=None, n_voters=0))
    check_strengths(data.merged(), "half", ridge=0.0)
    if len(np.unique(decided_groups(data))) > 1:
        raise DataError(
            "Ties alone join some models, which shows no spread to pool by: rate without pool, or "
            "leave these models out."
        )
    tree = Tree.of(votes, nested=_is_nested(data, options))
    return votes, fitted_variance(tree, level=options.level)


def _is_nested(data: Comparisons, options: RateOptions) -> bool:
    if data.prompt is None or options.cluster in ("voter", "none"):
        return False
    on_prompt = np.bincount(data.prompt, data.votes)
    return options.cluster == "both" or bool((on_prompt**2).sum() >= REPEATED * on_prompt.sum())


def rate_pooled(groups: Mapping[str, Votes], options: RateOptions) -> PooledBoards:
    """Rate every model in every category, with partial pooling.

    See `rating.pooling` for the likelihood. A single category has nothing to borrow: its
    board is that of `rating.rate`.

    Parameters
    ----------
    groups : mapping of str to Votes
        As `rating.read_groups` reads them.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `pooled_strengths`.
    """
    there = {name: votes for name, votes in groups.items() if votes.data.weight.any()}
    empty = {name: "No vote counts." for name in groups if name not in there}
    if len(there) == 1:
        (name, votes), unknown = next(iter(there.items())), math.nan
        report = rate(votes, replace(options, pool=False))
        rows = tuple(PooledRating(**asdict(row), borrowed=0.0) for row in report.ratings)
        alone = replace(report, ratings=rows, options=replace(report.options, pool=True))
        return PooledBoards({name: alone}, Pooling(unknown, unknown, unknown, None), empty)
    pooled = pooled_fit(there, options)
    alone_in = np.eye(len(there))
    reports = {
        name: report_of_mix(pooled, there[name], mix, options)
        for name, mix in zip(pooled.votes.categories, alone_in, strict=True)
    }
    return PooledBoards(reports, pooling_of(pooled, options), empty)


def pooling_of(pooled: PooledFit, options: RateOptions) -> Pooling:
    """Say in points how far categories lie apart."""
    per_nat, variance = options.scale / math.log(10), pooled.variance
    prompt = per_nat * pooled.best.tau.prompt if pooled.best.tree.prompts else None
    return Pooling(
        per_nat * variance.tau, per_nat * variance.lower, per_nat * variance.upper, prompt
    )


def report_of_mix(pooled: PooledFit, votes: Votes, mix: Floats, options: RateOptions) -> Report:
    """Rate every model on a mix of categories, by the mean of its strengths.

    Parameters
    ----------
    votes : Votes
        What the report is to say of votes.
    mix : ndarray of shape (n_categories,)
        Shares that sum to one.
    """
    data, fit = pooled.votes.data, pooled.best
    share = borrowed(fit, mix)
    met = dict(zip(votes.data.models, votes.data.votes_per_model().tolist(), strict=True))
    voters = None if votes.data.voter is None else activity(votes.data)
    return Report(
        options=replace(options, cluster=cluster_of(pooled)),
        provenance=Provenance(__version__, votes.data_hash, votes.style_sd),
        votes=VotesUsed(
            used=votes.data.n_votes,
            self_battles=votes.data.n_self + votes.self_battles,
            dropped=dict(votes.dropped),
            voters=voters.n_clusters if voters else None,
            effective_voters=voters.effective if voters else None,
            top_voter_share=voters.top_share if voters else None,
        ),
        design_effect=DesignEffect(None, None),
        log_loss=_log_loss(fit, mix > 0),
        deviance=None,
        parameters={},
        ratings=_rows(
            pooled,
            mix @ fit.strengths,
            np.einsum("c,cidj,d->ij", mix, pooled.covariance, mix),
            options,
            votes={model: met.get(model, 0) for model in data.models},
            share=share,
        ),
        quasi_se_error=None,
        warnings=(*votes.warnings, *_warnings(pooled, mix, share, options.level)),
    )


def contrast(pooled: PooledFit, weights: Floats) -> tuple[Floats, Floats]:
    """Weigh each model's strengths by category; returns values and standard errors, in nats.

    Parameters
    ----------
    weights : ndarray of shape (n_categories,)
        Shares of a mix, or a difference of two mixes.
    """
    variance = np.einsum("c,cidi,d->i", weights, pooled.covariance, weights)
    return weights @ pooled.best.strengths, np.sqrt(variance)


def cluster_of(pooled: PooledFit) -> Clusters:
    """Name the clusters that the intervals allow for."""
    if pooled.votes.data.voter is None:
        return "prompt" if pooled.best.tree.prompts else "none"
    return "both" if pooled.best.tree.prompts else "voter"


def _log_loss(fit: Pooled, chosen: Bools) -> float:
    tree = fit.tree
    own = chosen[tree.category]
    p, weight, score = fit.probability[own], tree.weight[own], tree.score[own]
    loss = -(score @ np.log(p) + (weight - score) @ np.log1p(-p))
    return float(loss / weight.sum())


def _rows(
    pooled: PooledFit,
    strengths: Floats,
    covariance: Floats,
    options: RateOptions,
    *,
    votes: Mapping[str, int],
    share: Floats,
) -> tuple[PooledRating, ...]:
    """Rate models by strengths that sum to zero, best first.

    Parameters
    ----------
    strengths : ndarray of shape (n_models,)
        Nats.
    covariance : ndarray of shape (n_models, n_models)
    votes : mapping of str to int
        By model.
    share : ndarray of shape (n_models,)
    """
    models, df = pooled.votes.data.models, pooled.df
    per_nat = options.scale / math.log(10)
    known = options.interval != "none"
    se = np.sqrt(np.diag(covariance)) if known else np.full(len(models), np.nan)
    wide = quantile(options.level, df)
    quasi = quasi_standard_errors(difference_variances(covariance)).qse
    ranks = 1 + (strengths[:, None] > strengths[None, :] + EQUAL_NATS).sum(axis=0)
    claims = known and df + 1 >= max(MIN_EFFECTIVE_FOR_RANKS, len(models))
    rng = np.random.default_rng([options.seed, 1])
    ranges = (
        rank_ranges(strengths, covariance, rng=rng, df=df, level=options.level) if claims else None
    )
    zero = options.mean
    if options.anchor is not None:
        zero = options.anchor[1] - per_nat * strengths[models.index(options.anchor[0])]
    rows = []
    for i, model in enumerate(models):
        claimed = ranges is not None and bool(ranges.claimed[i])
        rows.append(
            PooledRating(
                model=model,
                rating=float(zero + per_nat * strengths[i]),
                strength=float(strengths[i]),
                se=float(per_nat * se[i]),
                df=df,
                effective_voters=df + 1 if math.isfinite(df) else math.nan,
                quasi_se=float(per_nat * quasi[i]) if known else math.nan,
                lower=float(zero + per_nat * (strengths[i] - wide * se[i])),
                upper=float(zero + per_nat * (strengths[i] + wide * se[i])),
                rank=int(ranks[i]),
                rank_low=int(ranges.low[i]) if ranges is not None and claimed else None,
                rank_high=int(ranges.high[i]) if ranges is not None and claimed else None,
                votes=votes[model],
                borrowed=float(share[i]),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.rank, row.model)))


def _warnings(pooled: PooledFit, mix: Floats, share: Floats, level: float) -> Iterator[Sentence]:
    for place in np.flatnonzero((pooled.odd < 1 - level) & (mix > 0)).tolist():
        yield Sentence(
            "Category %(category)s deviates more than the fitted standard deviation between "
            "categories explains. Its pooled ratings are drawn towards the others, and their "
            "intervals are too narrow: rate its own votes without pooling.",
            category=pooled.votes.categories[place],
        )
    low, high = 100 * share.min(), 100 * share.max()
    if high >= 1:
        yield Sentence(
            "Shrunk towards the whole board: %(low)s to %(high)s%% of each rating comes from "
            "votes in other categories.",
            low=round(low),
            high=round(high),
        )
    data = pooled.votes.data
    if data.voter is None:
        yield Sentence(
            "The intervals treat votes as independent, and are too narrow where people voted "
            "often."
        )
    elif pooled.df + 1 < MIN_EFFECTIVE_FOR_RANKS:
        yield Sentence(
            "%(voters)s effective voters are too few to claim a rank.", voters=float(pooled.df + 1)
        )
    if data.prompt is None:
        yield Sentence(
            "Prompts are not known: the intervals are too narrow where people voted on the same "
            "prompts."
        )


# Boards on a prompt mix


FEW = 30.0
"""Effective votes behind a mix below which its board is only a hint."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of categories.

    Attributes
    ----------
    shares : mapping of str to float
        Positive; they sum to one.
    prompts : int or None
        Number of prompts from which the shares were counted; None if they were given.
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
    """Ratings reweighted to a prompt mix.

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
    """Rate every model on a mix of categories.

    The strengths are ``sum_c q_c theta_c``, those of the pooled categories: log-odds averaged over
    the mix. Preferences are averaged as probabilities, prompts of a category and, where the mix
    was counted from n prompts, the mix itself (Dirichlet) drawn again.

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
        report=replace(report, warnings=(*report.warnings, *_mix_warnings(effective))),
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


def _mix_warnings(effective: float) -> Iterator[str]:
    if effective < FEW:
        yield counted(
            "This mix has %(n)s effective vote: under %(few)s, the result is only a hint.",
            "This mix has %(n)s effective votes: under %(few)s, the result is only a hint.",
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
    covariance = pooled.covariance[used][:, :, used]
    models = pooled.votes.data.models
    wide = quantile(level, pooled.df)
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
    off = spread_of_fit(fitted, data, options, np.random.default_rng(options.seed))
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
