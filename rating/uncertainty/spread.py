"""How far ratings may be off, by the interval asked for."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rating.comparisons import Comparisons
from rating.fitting import Fit
from rating.options import RateOptions
from rating.typing import Bools, Floats
from rating.uncertainty.bootstrap import bootstrap
from rating.uncertainty.cautions import few_points, named
from rating.uncertainty.clusters import Cluster, activity
from rating.uncertainty.contrasts import Inference, infer
from rating.uncertainty.profile import profile_intervals
from rating.uncertainty.sandwich import hessian_covariance

MIN_EFFECTIVE_FOR_CLUSTERS = 2
ALIKE = 1e-5  # nats: rounds are solved to 1e-6 standard errors


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Standard errors and intervals, in nats.

    Attributes
    ----------
    estimate : ndarray of shape (n_models,)
        Strengths, less those of the average (see ``averaged``), or that of the reference.
    se, low, high : ndarray of shape (n_models,)
        Of the estimate; NaN where unknown, infinite where unbounded.
    df, effective : ndarray of shape (n_models,)
        Degrees of freedom, infinite for the normal distribution; effective clusters behind the
        rating, NaN without clusters.
    averaged : ndarray of shape (n_models,), bool
        Models whose average has the strength zero, unless the scale is absolute.
    parameter_se, parameter_df : ndarray of shape (n_free,)
        Of the free parameters beside the strengths; NaN where unknown.
    inference : Inference or None
        From which any other contrast is read; None where intervals have no formula.
    drawn : ndarray of shape (n_models, n_models), or None
        Covariance over the rounds of a bootstrap.
    warnings : tuple of str
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    df: Floats
    effective: Floats
    averaged: Bools
    parameter_se: Floats
    parameter_df: Floats
    inference: Inference | None = None
    drawn: Floats | None = None
    warnings: tuple[str, ...] = ()


class _Maker(Protocol):
    def __call__(
        self, fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
    ) -> Spread: ...


def spread(fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator) -> Spread:
    """Estimate how far each rating may be off.

    Parameters
    ----------
    options : RateOptions
        Resolved: see `RateOptions.resolved`.
    rng : numpy.random.Generator
        For the bootstrap, and for claims on ranks.
    """
    make: dict[str, _Maker] = {
        "none": _unknown,
        "hessian": _hessian,
        "sandwich": _sandwich,
        "profile": _profile,
        "bootstrap": _bootstrap,
    }
    return make[options.interval](fit, data, options, rng)


def _unknown(
    fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
) -> Spread:
    unknown = np.full(fit.n_models, np.nan)
    return _plain(_from_reference(fit, options), unknown, unknown, unknown, fit)


def _plain(estimate: Floats, se: Floats, low: Floats, high: Floats, fit: Fit) -> Spread:
    """Return a spread without degrees of freedom, around the average of all models."""
    k, n_free = fit.n_models, len(fit.x) - fit.n_models
    return Spread(
        estimate,
        se,
        low,
        high,
        df=np.full(k, np.inf),
        effective=np.full(k, np.nan),
        averaged=np.ones(k, dtype=bool),
        parameter_se=np.full(n_free, np.nan),
        parameter_df=np.full(n_free, np.inf),
    )


def _hessian(
    fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
) -> Spread:
    by_curvature = Inference(fit, data, hessian_covariance(fit), (), None)
    return replace(_judged(by_curvature, options), warnings=_on_half_ties(fit, data))


def _sandwich(
    fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
) -> Spread:
    clusters, warnings = _usable(data, options)
    spread = _judged(infer(fit, data, clusters, rng=rng), options)
    rare = data.voter is None and options.reference is None and not options.weighted
    if options.cluster == "none" and rare:
        spread = _with_profiles(spread, fit, data, options)
    return replace(spread, warnings=(*warnings, *spread.warnings))


def _usable(
    data: Comparisons, options: RateOptions
) -> tuple[tuple[Cluster, ...], tuple[str, ...]]:
    """Return the kinds of cluster with two effective ones, and what is to say of the others."""
    usable, warnings = [], []
    for kind in clusters_of(options):
        seen = activity(data, kind)
        if seen.effective >= MIN_EFFECTIVE_FOR_CLUSTERS:
            usable.append(kind)
        else:
            warnings.append(
                f"One {kind} has {seen.top_share:.0%} of the votes: the intervals speak for that "
                f"{kind} alone."
            )
    return tuple(usable), tuple(warnings)


def clusters_of(options: RateOptions) -> tuple[Cluster, ...]:
    """Return the kinds of cluster that resolved options ask for."""
    kinds: dict[str | None, tuple[Cluster, ...]] = {
        "voter": ("voter",),
        "prompt": ("prompt",),
        "both": ("voter", "prompt"),
    }
    return kinds.get(options.cluster, ())


def _judged(inference: Inference, options: RateOptions) -> Spread:
    fit = inference.fit
    each = inference.ratings()
    if options.reference is not None:
        identity = np.eye(len(fit.x))
        base = identity[fit.models.index(options.reference)]
        each = inference.of(identity[: fit.n_models] - base)
    half = each.half_width(options.level)
    if options.reference is not None:
        half[fit.models.index(options.reference)] = 0.0
    beside = inference.parameters()
    spread = _plain(each.value, np.sqrt(each.variance), each.value - half, each.value + half, fit)
    return replace(
        spread,
        df=each.df,
        effective=_effective_voters(inference),
        averaged=inference.founded,
        parameter_se=np.sqrt(beside.variance),
        parameter_df=beside.df,
        inference=inference,
    )


def _effective_voters(inference: Inference) -> Floats:
    """Return the effective voters behind each rating, NaN where voters were not used."""
    k = inference.fit.n_models
    for kind in inference.kinds:
        if kind.cluster == "voter":
            return kind.own.effective[:k]
    return np.full(k, np.nan)


def _profile(
    fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
) -> Spread:
    spread = _hessian(fit, data, options, rng)
    ends = profile_intervals(fit, data, level=options.level)
    return replace(spread, low=ends.low, high=ends.high)


def _bootstrap(
    fit: Fit, data: Comparisons, options: RateOptions, rng: np.random.Generator
) -> Spread:
    kinds = clusters_of(options)
    drawn = bootstrap(
        fit, data, rounds=options.rounds, cluster=kinds[0] if kinds else None, rng=rng
    )
    rounds = _rounds_from_reference(drawn.theta, fit, options)
    low, high = replace(drawn, theta=rounds).interval(options.level)
    alike = ~(high - low > ALIKE)
    if options.reference is not None:
        alike[fit.models.index(options.reference)] = False
    low[alike], high[alike] = np.nan, np.nan
    finite = np.isfinite(drawn.theta).all()
    enough = bool(finite) and options.rounds > 1
    spread = _plain(_from_reference(fit, options), _deviations(rounds), low, high, fit)
    return replace(
        spread,
        drawn=np.cov(drawn.theta.T) if enough else None,
        warnings=_on_rounds(drawn.n_degenerate, options.rounds)
        + _on_alike([fit.models[i] for i in np.flatnonzero(alike)]),
    )


def _on_alike(models: list[str]) -> tuple[str, ...]:
    if not models:
        return ()
    return (
        f"All rounds of the bootstrap give {named(models)} one rating: how far it may be off "
        "cannot be seen this way. Choose interval sandwich.",
    )


def _with_profiles(spread: Spread, fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    """Take the profile likelihood for models that rarely won, or rarely lost."""
    rare = few_points(data)
    if not rare:
        return spread
    ends = profile_intervals(fit, data, models=rare, level=options.level)
    at = [fit.models.index(name) for name in rare]
    low, high = spread.low.copy(), spread.high.copy()
    low[at], high[at] = ends.low, ends.high
    warning = f"Intervals by profile likelihood, for they won or lost too rarely: {named(rare)}."
    return replace(spread, low=low, high=high, warnings=(*spread.warnings, warning))


def _from_reference(fit: Fit, options: RateOptions) -> Floats:
    if options.reference is None:
        return fit.theta
    return np.asarray(fit.theta - fit.theta[fit.models.index(options.reference)])


def _rounds_from_reference(theta: Floats, fit: Fit, options: RateOptions) -> Floats:
    if options.reference is None:
        return theta
    base = fit.models.index(options.reference)
    with np.errstate(invalid="ignore"):
        rounds = theta - theta[:, [base]]
    rounds[:, base] = 0.0
    return rounds


def _deviations(rounds: Floats) -> Floats:
    """Return the standard deviation over rounds; NaN where one of them is not finite."""
    finite = np.isfinite(rounds).all(axis=0) & (len(rounds) > 1)
    found = np.full(rounds.shape[1], np.nan)
    if finite.any():
        found[finite] = rounds[:, finite].std(axis=0, ddof=1)
    return found


def _on_rounds(degenerate: int, rounds: int) -> tuple[str, ...]:
    if not degenerate:
        return ()
    return (
        f"{degenerate} of {rounds} bootstrap rounds identify no rating of some model: they count "
        "as infinite, and no rank is claimed.",
    )


def _on_half_ties(fit: Fit, data: Comparisons) -> tuple[str, ...]:
    tied = bool(data.weight[data.score_a == 0.5].any())
    if fit.ties != "half" or not tied:
        return ()
    return (
        "Ties count as half wins, for which intervals from the curvature of the likelihood "
        "are too wide: choose interval sandwich, or another model of ties.",
    )
