"""Rate every model: the fit, its spread, the ranks, and what a reader should know."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rating import __version__
from rating.comparisons import Comparisons, Votes
from rating.contrasts import (
    FEW_POINTS,
    Spread,
    clusters_of,
    few_points,
    named,
    on_clusters_behind,
    on_quasi_errors,
    on_ties,
    seen_of,
    spread,
)
from rating.covariance import KINDS, Activity, activity, difference_variances
from rating.errors import DataError
from rating.fitting import Fit, Parameter, fit
from rating.leave_out import quantiles
from rating.options import RateOptions
from rating.ranks import (
    EQUAL_NATS,
    MIN_EFFECTIVE_FOR_RANKS,
    RankRanges,
    joint_rank_ranges,
    quasi_standard_errors,
    rank_ranges,
)
from rating.report import DesignEffect, Estimate, ModelRating, Provenance, Report, VotesUsed
from rating.sentences import Sentence
from rating.typing import Floats

QUASI_WORST = 0.1
"""Quasi-standard errors that miss a pair by more than this are excluded."""

_ON_LOG_SCALE = ("nu", "theta")


def rate(votes: Votes | Comparisons, options: RateOptions | None = None) -> Report:
    """Rate every model, with intervals and ranks.

    Raises
    ------
    DataError
        If the options do not fit the votes.
    NotIdentifiedError
        If the votes determine no rating.
    ConvergenceError
        If an estimate was not reached.

    Examples
    --------
    >>> data = Comparisons.from_arrays(["x"] * 40, ["y"] * 40, ["model_a", "model_b"] * 20)
    >>> board = rate(data)
    >>> [(row.model, row.rank, round(row.rating), round(row.se)) for row in board.ratings]
    [('x', 1, 1000, 27), ('y', 1, 1000, 27)]
    """
    votes = votes if isinstance(votes, Votes) else Votes(votes)
    data, options = votes.data, options or RateOptions()
    if options.style != data.feature_names:
        raise DataError(f"style is {options.style}, and the votes carry {data.feature_names}.")
    options = options.resolved(data, in_parts=votes.parts is not None)
    fitted = fit(data, ties=options.ties, ridge=options.ridge, order_effect=options.order_effect)
    off = spread(
        fitted, data, options, np.random.default_rng(options.seed), votes.parts, votes.sampled
    )
    rng = np.random.default_rng([options.seed, 1])
    return report_of(fitted, votes, off, options, rng)


def report_of(
    fitted: Fit, votes: Votes, off: Spread, options: RateOptions, rng: np.random.Generator
) -> Report:
    """Put a fit and its spread together, with rank intervals: see `rate`."""
    data = votes.data
    voters = off.voters if data.voter is None else activity(data)
    quasi, worst = _quasi(off, fitted)
    ranges = _ranges(data, fitted, off, options, rng)
    rows = _rows(data, fitted, off, options, quasi, ranges)
    return Report(
        options=_as_used(options, off),
        provenance=Provenance(
            version=__version__, data_hash=votes.data_hash, style_sd=votes.style_sd
        ),
        votes=VotesUsed(
            used=data.n_votes,
            self_battles=data.n_self + votes.self_battles,
            dropped=dict(votes.dropped),
            voters=voters.n_clusters if voters else None,
            effective_voters=voters.effective if voters else None,
            top_voter_share=voters.top_share if voters else None,
        ),
        design_effect=_design_effect(off),
        log_loss=fitted.log_loss,
        deviance=fitted.deviance.value if fitted.deviance else None,
        parameters=_parameters(fitted, off, options),
        ratings=rows,
        quasi_se_error=worst,
        warnings=(
            *votes.warnings,
            *_warnings(data, options, off, voters, rows, worst, votes.sampled),
        ),
    )


def _as_used(options: RateOptions, off: Spread) -> RateOptions:
    """Name the clusters that were used, where one kind had too few."""
    if options.interval != "sandwich":
        return options
    kinds = () if off.inference is None else [kind.cluster for kind in off.inference.kinds]
    return replace(options, cluster="both" if len(kinds) == 2 else [*kinds, "none"][0])


def _design_effect(off: Spread) -> DesignEffect:
    if off.inference is None:
        return DesignEffect(None, None)
    return DesignEffect(*(off.inference.design_effect(kind) for kind in KINDS))


def _quasi(off: Spread, fitted: Fit) -> tuple[Floats, float | None]:
    """Return quasi-standard errors in nats, NaN where they would mislead, and their error."""
    unknown = np.full(fitted.n_models, np.nan)
    if off.inference is not None:
        variances = off.inference.pairs.table(off.inference.pairs.each.variance)
    elif off.drawn is not None:
        variances = difference_variances(off.drawn)
    else:
        return unknown, None
    try:
        quasi, worst = quasi_standard_errors(variances)
    except DataError:
        return unknown, None
    return (quasi if worst <= QUASI_WORST else unknown), worst


def _ranges(
    data: Comparisons, fitted: Fit, off: Spread, options: RateOptions, rng: np.random.Generator
) -> RankRanges | None:
    """Return the ranks that the votes allow; None where no claim can be made."""
    if options.interval == "none" or _too_few(data, off, options) is not None:
        return None
    if off.inference is not None:
        return joint_rank_ranges(off.inference, rng=rng, level=options.level)
    if off.drawn is None:
        return None
    return rank_ranges(fitted.theta, off.drawn, rng=rng, level=options.level)


def _too_few(data: Comparisons, off: Spread, options: RateOptions) -> str | None:
    """Name who is too few for any claim on ranks; None where claims can be made.

    By omitting voters or prompts, a claim on two models rests on what is behind these
    (`rating.ranks.joint_rank_ranges`). Other intervals have no such care.
    """
    if off.inference is not None and off.inference.kinds:
        return None
    needed = max(MIN_EFFECTIVE_FOR_RANKS, data.n_models)
    kinds = clusters_of(options)
    if options.claims == "population" and data.voter is not None and "voter" not in kinds:
        kinds = ("voter", *kinds)
    for kind in kinds:
        seen = off.voters if kind == "voter" and off.voters else activity(data, kind)
        if seen.effective < needed:
            return seen_of(seen, kind)
    few = not kinds and data.n_votes < needed
    return Sentence("%(n)s votes", n=int(data.n_votes)) if few else None


def _rows(
    data: Comparisons,
    fitted: Fit,
    off: Spread,
    options: RateOptions,
    quasi: Floats,
    ranges: RankRanges | None,
) -> tuple[ModelRating, ...]:
    per_nat = options.scale / math.log(10)
    theta = fitted.theta
    points = per_nat * theta + _shift(fitted, off, options, per_nat)
    ranks = 1 + (theta[:, None] > theta[None, :] + EQUAL_NATS).sum(axis=0)
    votes = data.votes_per_model()
    claimed = np.zeros(len(theta), dtype=bool) if ranges is None else ranges.claimed
    rows = [
        ModelRating(
            model=model,
            rating=float(points[i]),
            strength=float(off.estimate[i]),
            se=float(per_nat * off.se[i]),
            df=float(off.df[i]),
            effective_voters=float(off.effective[i]),
            quasi_se=float(per_nat * quasi[i]),
            lower=float(points[i] + per_nat * (off.low[i] - off.estimate[i])),
            upper=float(points[i] + per_nat * (off.high[i] - off.estimate[i])),
            rank=int(ranks[i]),
            rank_low=int(ranges.low[i]) if ranges is not None and claimed[i] else None,
            rank_high=int(ranges.high[i]) if ranges is not None and claimed[i] else None,
            votes=int(votes[i]),
        )
        for i, model in enumerate(fitted.models)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank, row.model)))


def _shift(fitted: Fit, off: Spread, options: RateOptions, per_nat: float) -> float:
    """Return the points of strength zero."""
    if options.anchor is not None:
        model, points = options.anchor
        return points - per_nat * float(fitted.theta[fitted.models.index(model)])
    if fitted.absolute:
        return options.mean
    return options.mean - per_nat * float(fitted.theta[off.averaged].mean())


def _parameters(fitted: Fit, off: Spread, options: RateOptions) -> dict[str, Estimate]:
    free = iter(zip(off.parameter_se, quantiles(options.level, off.parameter_df), strict=True))
    estimates = {}
    for p in fitted.parameters:
        error, wide = next(free) if p.free else (math.nan, math.nan)
        estimates[p.name] = _estimate(p, float(error), float(wide))
    return estimates


def _estimate(p: Parameter, error: float, wide: float) -> Estimate:
    lower, upper = p.raw - wide * error, p.raw + wide * error
    if p.name in _ON_LOG_SCALE and p.free:
        lower, upper = math.exp(lower), math.exp(upper)
    return Estimate(p.value, error, lower, upper)


def _warnings(
    data: Comparisons,
    options: RateOptions,
    off: Spread,
    voters: Activity | None,
    rows: tuple[ModelRating, ...],
    worst: float | None,
    sampled: int,
) -> Iterator[str]:
    if options.interval == "none":
        return
    yield from off.warnings
    yield from _on_clusters(data, options, voters, sampled)
    few = _too_few(data, off, options)
    if few is not None:
        yield _on_too_few(few, data.n_models)
    elif off.inference is not None and off.inference.kinds:
        yield from on_clusters_behind(off.inference)
    if options.interval == "sandwich" and options.ties == "half":
        yield from on_ties(data)
    rare = few_points(data)
    if rare and not _profiled(voters is None and not sampled, options):
        yield Sentence(
            "Fewer than %(n)s wins or losses (a tie counts 1/2) for %(names)s: their intervals "
            "are rough.",
            n=FEW_POINTS,
            names=named(rare),
        )
    unbounded = [row.model for row in rows if math.isinf(row.lower) or math.isinf(row.upper)]
    if unbounded:
        yield Sentence(
            "The interval has no finite end for %(names)s: it is given as null.",
            names=named(unbounded),
        )
    unknown = [row.model for row in rows if math.isnan(row.lower) and not math.isnan(row.se)]
    if unknown and options.interval == "sandwich":
        yield Sentence(
            "No interval is given for %(names)s: nearly all of the information comes from one "
            "voter or one prompt.",
            names=named(unknown),
        )
    if worst is not None and worst > QUASI_WORST:
        yield on_quasi_errors(worst)


def _on_too_few(who: str, models: int) -> Sentence:
    if who.startswith("One "):
        return Sentence(
            "%(who)s is too few to bound the ranks of %(models)s models: no rank is excluded.",
            who=who,
            models=models,
        )
    return Sentence(
        "%(who)s are too few to bound the ranks of %(models)s models: no rank is excluded.",
        who=who,
        models=models,
    )


def _on_clusters(
    data: Comparisons, options: RateOptions, voters: Activity | None, sampled: int
) -> Iterator[str]:
    """Describe what the intervals take as independent, and whom they speak for."""
    clustered = bool(clusters_of(options))
    if voters is None and not sampled and not clustered:
        yield Sentence(
            "Voters are not known: the intervals treat votes as independent, "
            "and are too narrow where people voted often."
        )
    elif voters is not None and options.claims == "these-voters":
        yield (
            f"Intervals and ranks are for these {voters.n_clusters} voters alone: how they "
            "would rate with endless votes, each with the same share of them. They do not hold "
            "for other people."
        )
    elif not clustered:
        cast = f"though a sample of them is of {sampled} voters"
        if voters is not None:
            cast = f"though {voters.n_clusters} voters cast them"
        yield (
            f"The intervals treat votes as independent, {cast}: they are too narrow where people "
            "voted often."
        )
    if data.prompt is None and options.interval == "sandwich" and clustered:
        yield Sentence(
            "Prompts are not known: the intervals are too narrow where people voted on the same "
            "prompts."
        )


def _profiled(unknown: bool, options: RateOptions) -> bool:
    """Whether rare models have intervals by profile likelihood."""
    if options.interval == "profile":
        return True
    plain = options.interval == "sandwich" and options.cluster == "none" and unknown
    return plain and options.reference is None and not options.weighted
