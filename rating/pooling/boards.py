"""A board for each category, all of them pooled."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rating import __version__
from rating.board import rate
from rating.comparisons import Comparisons, Votes
from rating.errors import DataError
from rating.likelihood.identification import check_strengths, decided_groups
from rating.options import Clusters, RateOptions
from rating.pooling.model import Categorised, Pooled, Tree
from rating.pooling.spread import Spread, borrowed, oddness, spread
from rating.pooling.variance import Variance, fitted_variance
from rating.report import DesignEffect, ModelRating, Provenance, Report, VotesUsed
from rating.sentences import Sentence
from rating.typing import Bools, Floats
from rating.uncertainty.clusters import activity
from rating.uncertainty.covariance import difference_variances
from rating.uncertainty.ranks import (
    EQUAL_NATS,
    MIN_EFFECTIVE_FOR_RANKS,
    quasi_standard_errors,
    rank_ranges,
)
from rating.uncertainty.spread import MIN_EFFECTIVE_FOR_CLUSTERS
from rating.uncertainty.student import quantile

MOST_STRENGTHS = 4000
"""Models times categories up to which their joint covariance is held in memory."""

REPEATED = 5.0
"""Votes on the prompt of an average vote from which prompts are a level of their own."""


@dataclass(frozen=True, slots=True)
class PooledRating(ModelRating):
    """One model's line on the board of a category.

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
    """Boards of categories that borrow from each other.

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
        f"{100 * level:g} %, and the more boards, the more likely one of them claims a false "
        f"rank. For claims over all boards together (Bonferroni): --level {together:.6g}."
    ]


@dataclass(frozen=True, eq=False)
class PooledFit:
    """Pooled strengths with their spread.

    Attributes
    ----------
    votes : Categorised
    variance : Variance
    spread : Spread
    odd : ndarray of shape (n_categories,)
        See `rating.pooling.spread.oddness`.
    """

    votes: Categorised
    variance: Variance
    spread: Spread
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
    return PooledFit(votes, variance, spread(variance, votes), oddness(variance.best, votes))


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
    if options.cluster == "none" or _is_of_one(data):
        votes = replace(votes, data=replace(data, voter=None, n_voters=0))
    check_strengths(data.merged(), "half", ridge=0.0)
    if len(np.unique(decided_groups(data))) > 1:
        raise DataError(
            "Ties alone join some models, which shows no spread to pool by: rate without pool, or "
            "leave these models out."
        )
    tree = Tree.of(votes, nested=_is_nested(data, options))
    return votes, fitted_variance(tree, level=options.level)


def _is_of_one(data: Comparisons) -> bool:
    """Whether hardly more than one voter voted: too few to leave one out."""
    return data.voter is not None and activity(data).effective < MIN_EFFECTIVE_FOR_CLUSTERS


def _is_nested(data: Comparisons, options: RateOptions) -> bool:
    if data.prompt is None or options.cluster in ("voter", "none"):
        return False
    on_prompt = np.bincount(data.prompt, data.votes)
    return options.cluster == "both" or bool((on_prompt**2).sum() >= REPEATED * on_prompt.sum())


def rate_pooled(groups: Mapping[str, Votes], options: RateOptions) -> PooledBoards:
    """Rate every model in every category, borrowing from the other categories.

    See `rating.pooling.model` for the likelihood. A single category has nothing to borrow: its
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
        rows = tuple(PooledRating(**_fields(row), borrowed=0.0) for row in report.ratings)
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


def _fields(row: ModelRating) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ModelRating.__dataclass_fields__}


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
            np.einsum("c,cidj,d->ij", mix, pooled.spread.covariance, mix),
            options,
            votes=_votes_per_model(data.models, votes.data),
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
    variance = np.einsum("c,cidi,d->i", weights, pooled.spread.covariance, weights)
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


def _votes_per_model(models: tuple[str, ...], data: Comparisons) -> dict[str, int]:
    met = dict(zip(data.models, data.votes_per_model().tolist(), strict=True))
    return {model: met.get(model, 0) for model in models}


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
    models, df = pooled.votes.data.models, pooled.spread.df
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
            "Category %(category)s differs from the others more than they differ from each other. "
            "Its pooled ratings are drawn towards the others, and their intervals are too narrow: "
            "rate its own votes without pooling.",
            category=pooled.votes.categories[place],
        )
    low, high = 100 * share.min(), 100 * share.max()
    if high >= 1:
        yield Sentence(
            "Shrunk towards the whole board: %(low)s to %(high)s %% of each rating comes from "
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
    elif pooled.spread.df + 1 < MIN_EFFECTIVE_FOR_RANKS:
        yield Sentence(
            "%(voters)s effective voters are too few to claim a rank.",
            voters=float(pooled.spread.df + 1),
        )
    if data.prompt is None:
        yield Sentence(
            "Prompts are not known: the intervals are too narrow where people voted on the same "
            "prompts."
        )
