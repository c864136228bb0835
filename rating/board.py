"""Rate every model: the fit, its spread, the ranks, and what a reader should know."""

import math

import numpy as np
from numpy.typing import NDArray

from rating.cautions import (
    few_points,
    named,
    on_few_points,
    on_lone_models,
    on_quasi_errors,
    on_ranks,
    on_ties,
)
from rating.clusters import Activity, activity
from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.fit import Fit, Parameter, fit
from rating.options import RateOptions
from rating.quasi import quasi_standard_errors
from rating.ranks import (
    EQUAL_NATS,
    MIN_EFFECTIVE_FOR_RANKS,
    RankRanges,
    joint_rank_ranges,
    rank_ranges,
)
from rating.report import Estimate, ModelRating, Provenance, Report, VotesUsed
from rating.spread import Spread, quantile, spread

QUASI_WORST = 0.1
"""Quasi-standard errors that miss a pair by more than this are left out."""

_ON_LOG_SCALE = ("nu", "theta")

Floats = NDArray[np.float64]


def rate(
    data: Comparisons, options: RateOptions | None = None, source: Provenance | None = None
) -> Report:
    """Rate every model, and say how sure that is.

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
    options, source = options or RateOptions(), source or Provenance()
    if options.style != data.feature_names:
        raise DataError(f"style is {options.style}, and the votes carry {data.feature_names}.")
    options = options.resolved(data)
    found = fit(data, ties=options.ties, ridge=options.ridge, order_effect=options.order_effect)
    off = spread(found, data, options)
    voters = None if data.voter is None else activity(data)
    quasi, worst = _quasi(off, found)
    claimed = _few(data, voters, off) is None and off.covariance is not None
    ranges = _ranges(data, found, off, options, claimed=claimed)
    rows = _rows(data, found, off, options, quasi, ranges)
    return Report(
        options=options,
        provenance=source,
        votes=VotesUsed(
            used=data.n_votes,
            self_battles=data.n_self + source.self_battles,
            dropped=dict(source.dropped),
            voters=voters.n_clusters if voters else None,
            effective_voters=voters.effective if voters else None,
            top_voter_share=voters.top_share if voters else None,
        ),
        log_loss=found.log_loss,
        deviance=found.deviance.value if found.deviance else None,
        parameters=_parameters(found, off, options),
        ratings=rows,
        quasi_se_error=worst,
        warnings=_warnings(data, options, off, voters, rows, worst),
    )


def _few(
    data: Comparisons, voters: Activity | None, off: Spread
) -> tuple[Activity | None, str] | None:
    """Return the activity that is too small to claim ranks, and of whom; None if none is."""
    needed = max(MIN_EFFECTIVE_FOR_RANKS, data.n_models)
    if voters is not None and voters.effective < needed:
        return voters, "voter"
    if off.activity is not None and off.activity.effective < needed:
        return off.activity, "prompt"
    known = voters is not None or off.activity is not None
    return (None, "vote") if not known and data.n_votes < needed else None


def _quasi(off: Spread, found: Fit) -> tuple[Floats, float | None]:
    """Return quasi-standard errors in nats, NaN where they would mislead, and their error."""
    unknown = np.full(found.n_models, np.nan)
    if off.covariance is None:
        return unknown, None
    k = found.n_models
    try:
        quasi, worst = quasi_standard_errors(off.covariance[:k, :k])
    except DataError:
        return unknown, None
    return (quasi if worst <= QUASI_WORST else unknown), worst


def _ranges(
    data: Comparisons, found: Fit, off: Spread, options: RateOptions, *, claimed: bool
) -> RankRanges | None:
    k = found.n_models
    if options.interval == "none":
        return None
    if not claimed or off.covariance is None:
        return RankRanges(low=np.ones(k, dtype=np.int64), high=np.full(k, k))
    rng = np.random.default_rng(options.seed)
    if off.by_formula is not None:
        return joint_rank_ranges(found, data, off.by_formula, rng=rng, level=options.level)
    return rank_ranges(
        found.theta,
        off.covariance[:k, :k],
        rng=rng,
        df=off.df,
        level=options.level,
        comparable=np.array([name not in off.lone_models for name in found.models]),
    )


def _rows(
    data: Comparisons,
    found: Fit,
    off: Spread,
    options: RateOptions,
    quasi: Floats,
    ranges: RankRanges | None,
) -> tuple[ModelRating, ...]:
    per_nat = options.scale / math.log(10)
    points = per_nat * found.theta + _shift(found, options, per_nat)
    ranks = 1 + (found.theta[:, None] > found.theta[None, :] + EQUAL_NATS).sum(axis=0)
    votes = data.votes_per_model()
    rows = [
        ModelRating(
            model=model,
            rating=float(points[i]),
            strength=float(off.estimate[i]),
            se=float(per_nat * off.se[i]),
            quasi_se=float(per_nat * quasi[i]),
            lower=float(points[i] + per_nat * (off.low[i] - off.estimate[i])),
            upper=float(points[i] + per_nat * (off.high[i] - off.estimate[i])),
            rank=int(ranks[i]),
            rank_low=None if ranges is None else int(ranges.low[i]),
            rank_high=None if ranges is None else int(ranges.high[i]),
            votes=int(votes[i]),
        )
        for i, model in enumerate(found.models)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank, row.model)))


def _shift(found: Fit, options: RateOptions, per_nat: float) -> float:
    """Return the points of strength zero."""
    if options.anchor is None:
        return options.mean
    model, points = options.anchor
    return points - per_nat * float(found.theta[found.models.index(model)])


def _parameters(found: Fit, off: Spread, options: RateOptions) -> dict[str, Estimate]:
    wide, k = quantile(options.level, off.df), found.n_models
    known = off.covariance is not None and len(off.covariance) > k
    place = {p.name: k + i for i, p in enumerate(p for p in found.parameters if p.free)}
    estimates = {}
    for p in found.parameters:
        error = math.nan
        if known and p.free:
            assert off.covariance is not None
            error = math.sqrt(max(off.covariance[place[p.name], place[p.name]], 0.0))
        estimates[p.name] = _estimate(p, error, wide)
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
) -> tuple[str, ...]:
    if options.interval == "none":
        return ()
    said = list(off.warnings)
    if voters is None and not off.clustered:
        said.append(
            "Voters are not known: the intervals treat votes as independent, "
            "and are too narrow where people voted often."
        )
    elif voters is not None and not off.clustered and off.activity is None:
        said.append(
            f"The intervals treat votes as independent, though {voters.n_clusters} voters cast "
            "them: they are too narrow where people voted often."
        )
    few = _few(data, voters, off)
    if few is not None:
        said.append(on_ranks(data, *few))
    if off.lone_models:
        noun = "voter" if options.cluster in ("voter", "both") else "prompt"
        said.append(on_lone_models(off.lone_models, noun))
    if options.interval == "sandwich" and options.ties == "half":
        said += on_ties(data)
    if not _profiled(data, options) or not few_points(data):
        said += on_few_points(data)
    unbounded = [row.model for row in rows if math.isinf(row.lower) or math.isinf(row.upper)]
    if unbounded:
        said.append(f"The interval has no finite end for {named(unbounded)}: null stands for it.")
    if worst is not None and worst > QUASI_WORST:
        said.append(on_quasi_errors(worst))
    return tuple(said)


def _profiled(data: Comparisons, options: RateOptions) -> bool:
    """Whether rare models have intervals by profile likelihood."""
    if options.interval == "profile":
        return True
    plain = options.interval == "sandwich" and options.cluster == "none" and data.voter is None
    return plain and options.reference is None and not options.weighted
