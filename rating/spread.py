"""How far ratings may be off, by the interval asked for."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from rating.bootstrap import bootstrap
from rating.cautions import few_points, named
from rating.clusters import Activity, Cluster, activity
from rating.comparisons import Comparisons
from rating.covariance import Covariance, covariance
from rating.fit import Fit
from rating.options import RateOptions
from rating.profile import profile_intervals

MIN_EFFECTIVE_FOR_CLUSTERS = 2

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Standard errors and intervals, in nats.

    Attributes
    ----------
    estimate : ndarray of shape (n_models,)
        Strengths, less that of the reference if there is one.
    se, low, high : ndarray of shape (n_models,)
        Of the estimate; NaN where unknown, infinite where unbounded.
    covariance : ndarray or None
        Of the strengths and free parameters, from which differences are read;
        None without.
    by_formula : Covariance or None
        Where it came from; None for one counted from rounds of a bootstrap.
    df : float
        Degrees of freedom; infinite for the normal distribution.
    activity : Activity or None
        Of the clusters; None without.
    clustered : bool
        Whether clusters were left out, or drawn.
    lone_models : tuple of str
        Models that one cluster alone joins to the rest.
    warnings : tuple of str
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    covariance: Floats | None
    by_formula: Covariance | None = None
    df: float = np.inf
    activity: Activity | None = None
    clustered: bool = False
    lone_models: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Maker(Protocol):
    def __call__(self, fit: Fit, data: Comparisons, options: RateOptions) -> Spread: ...


def spread(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    """Estimate how far each rating may be off.

    Parameters
    ----------
    options : RateOptions
        Resolved: see `RateOptions.resolved`.
    """
    make: dict[str, _Maker] = {
        "none": _unknown,
        "hessian": _hessian,
        "sandwich": _sandwich,
        "profile": _profile,
        "bootstrap": _bootstrap,
    }
    return make[options.interval](fit, data, options)


def quantile(level: float, df: float) -> float:
    """Return by how many standard errors an interval reaches out on either side."""
    if np.isinf(df):
        return float(scipy.special.ndtri((1 + level) / 2))
    return float(scipy.special.stdtrit(df, (1 + level) / 2))


def _unknown(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    estimate = _from_reference(fit, options)
    unknown = np.full(fit.n_models, np.nan)
    return Spread(estimate, unknown, unknown, unknown, None)


def _hessian(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    found = covariance(fit, data, method="hessian", cluster=None)
    return replace(_wald(fit, found, options), warnings=_on_half_ties(fit, data))


def _sandwich(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    if options.cluster == "none":
        found = _wald(fit, covariance(fit, data, method="sandwich", cluster=None), options)
        rare = data.voter is None and options.reference is None and not options.weighted
        return _with_profiles(found, fit, data, options) if rare else found
    kinds: tuple[Cluster, ...] = ("voter", "prompt")
    wanted = kinds if options.cluster == "both" else [k for k in kinds if k == options.cluster]
    busy = [activity(data, kind) for kind in wanted]
    least = min(busy, key=lambda one: one.effective)
    if least.effective < MIN_EFFECTIVE_FOR_CLUSTERS:
        found = _wald(fit, covariance(fit, data, method="sandwich", cluster=None), options)
        noun = wanted[busy.index(least)]
        said = (
            f"One {noun} has {least.top_share:.0%} of the votes: the intervals treat votes as "
            f"independent, and speak for that {noun} alone."
        )
        return replace(found, activity=least, warnings=(said,))
    by = covariance(fit, data, method="cr3", cluster=options.cluster)
    return _wald(fit, by, options)


def _profile(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    found = _hessian(fit, data, options)
    ends = profile_intervals(fit, data, level=options.level)
    return replace(found, low=ends.low, high=ends.high)


def _bootstrap(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    cluster: Cluster | None = None if options.cluster == "none" else options.cluster  # type: ignore[assignment]
    rng = np.random.default_rng(options.seed)
    drawn = bootstrap(fit, data, rounds=options.rounds, cluster=cluster, rng=rng)
    rounds = _rounds_from_reference(drawn.theta, fit, options)
    low, high = replace(drawn, theta=rounds).interval(options.level)
    finite = np.isfinite(drawn.theta).all()
    enough = bool(finite) and options.rounds > 1
    return Spread(
        estimate=_from_reference(fit, options),
        se=_deviations(rounds),
        low=low,
        high=high,
        covariance=np.cov(drawn.theta.T) if enough else None,
        activity=None if cluster is None else activity(data, cluster),
        clustered=cluster is not None,
        warnings=_on_rounds(drawn.n_degenerate, options.rounds),
    )


def _wald(fit: Fit, found: Covariance, options: RateOptions) -> Spread:
    estimate, at = _from_reference(fit, options), found.strengths
    variance = np.diag(at)
    if options.reference is not None:
        base = fit.models.index(options.reference)
        variance = variance + at[base, base] - 2 * at[base]
        variance[base] = 0.0
    errors = np.sqrt(variance.clip(min=0))
    reach = quantile(options.level, found.df) * errors
    return Spread(
        estimate=estimate,
        se=errors,
        low=estimate - reach,
        high=estimate + reach,
        covariance=found.matrix,
        by_formula=found,
        df=found.df,
        activity=found.activity,
        clustered=found.cluster is not None,
        lone_models=found.lone_models,
        warnings=found.warnings,
    )


def _with_profiles(found: Spread, fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    """Take the profile likelihood for models that rarely won, or rarely lost."""
    rare = few_points(data)
    if not rare:
        return found
    ends = profile_intervals(fit, data, models=rare, level=options.level)
    at = [fit.models.index(name) for name in rare]
    low, high = found.low.copy(), found.high.copy()
    low[at], high[at] = ends.low, ends.high
    said = f"Intervals by profile likelihood, for they won or lost too rarely: {named(rare)}."
    return replace(found, low=low, high=high, warnings=(*found.warnings, said))


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
