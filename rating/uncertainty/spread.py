"""How far ratings may be off, by the interval asked for, and warnings on what that leaves open."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rating.comparisons import Comparisons, Parts
from rating.errors import DataError
from rating.fitting import Fit
from rating.likelihood.identification import decided_groups
from rating.options import RateOptions
from rating.sentences import Sentence
from rating.typing import Bools, Floats
from rating.uncertainty.bootstrap import bootstrap
from rating.uncertainty.clusters import (
    FEW_PROMPTS,
    KINDS,
    Activity,
    Cluster,
    activity,
    activity_from,
)
from rating.uncertainty.contrasts import WELL_FOUNDED, Inference, infer, voter_totals
from rating.uncertainty.profile import profile_intervals

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
    voters : Activity or None
        Of the voters, where the votes are in parts.
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
    voters: Activity | None = None


def spread(
    fit: Fit,
    data: Comparisons,
    options: RateOptions,
    rng: np.random.Generator,
    parts: Parts | None = None,
    sampled: int = 0,
) -> Spread:
    """Estimate how far each rating may be off.

    Parameters
    ----------
    options : RateOptions
        Resolved: see `RateOptions.resolved`.
    rng : numpy.random.Generator
        For the bootstrap, and for claims on ranks.
    parts : Parts, optional
        The votes by voter, where ``data`` does not know the voters.
    sampled : int
        Voters in a sample, where neither knows them.
    """
    if parts is None or options.interval == "none":
        return _spread(fit, data, options, rng, sampled=sampled)
    voters = activity_from(voter_totals(fit, data, parts))
    return replace(_spread(fit, data, options, rng, parts, voters), voters=voters)


def _spread(
    fit: Fit,
    data: Comparisons,
    options: RateOptions,
    rng: np.random.Generator,
    parts: Parts | None = None,
    voters: Activity | None = None,
    sampled: int = 0,
) -> Spread:
    match options.interval:
        case "sandwich":
            return _sandwich(fit, data, options, rng, parts, voters, sampled)
        case "hessian":
            return _hessian(fit, data, options)
        case "profile":
            ends = profile_intervals(fit, data, level=options.level)
            return replace(_hessian(fit, data, options), low=ends.low, high=ends.high)
        case "bootstrap":
            if parts is not None and clusters_of(options):
                raise DataError(
                    "The bootstrap draws voters who are all in memory, and these are in parts: "
                    "choose interval sandwich, or cluster none."
                )
            return _bootstrap(fit, data, options, rng)
        case "none":
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


def _hessian(fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    spread = _judged(Inference(fit, data, fit.inverse_information, (), None), options)
    if fit.ties != "half" or not data.weight[data.score_a == 0.5].any():
        return spread
    warning = (
        "Ties count as half wins, for which intervals from the curvature of the likelihood "
        "are too wide: choose interval sandwich, or another model of ties."
    )
    return replace(spread, warnings=(warning,))


def _sandwich(
    fit: Fit,
    data: Comparisons,
    options: RateOptions,
    rng: np.random.Generator,
    parts: Parts | None,
    voters: Activity | None,
    sampled: int,
) -> Spread:
    clusters, warnings = _usable(data, options, voters)
    spread = _judged(infer(fit, data, clusters, rng=rng, parts=parts), options)
    unknown = data.voter is None and voters is None and not sampled
    rare = unknown and options.reference is None and not options.weighted
    if options.cluster == "none" and rare:
        spread = _with_profiles(spread, fit, data, options)
    return replace(spread, warnings=(*warnings, *spread.warnings))


def _usable(
    data: Comparisons, options: RateOptions, voters: Activity | None
) -> tuple[tuple[Cluster, ...], tuple[str, ...]]:
    """Return the kinds of cluster with two effective ones, and what is to say of the others."""
    usable, warnings = [], []
    for kind in clusters_of(options):
        seen = voters or activity(data, kind)
        if seen.effective >= MIN_EFFECTIVE_FOR_CLUSTERS:
            usable.append(kind)
        else:
            warnings.append(_on_one(kind, round(100 * seen.top_share)))
    return tuple(usable), tuple(warnings)


def _on_one(kind: Cluster, percent: int) -> Sentence:
    if kind == "voter":
        return Sentence(
            "One voter has %(percent)s%% of the votes: the intervals speak for that voter alone.",
            percent=percent,
        )
    return Sentence(
        "One prompt has %(percent)s%% of the votes: the intervals speak for that prompt alone.",
        percent=percent,
    )


def clusters_of(options: RateOptions) -> tuple[Cluster, ...]:
    """Return the kinds of cluster that resolved options ask for."""
    return tuple(kind for kind in KINDS if options.cluster in (kind, "both"))


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
    enough = options.rounds > 1 and bool(np.isfinite(drawn.theta).all())
    spread = _plain(_from_reference(fit, options), _deviations(rounds), low, high, fit)
    warnings = []
    if drawn.n_degenerate:
        warnings.append(
            f"{drawn.n_degenerate} of {options.rounds} bootstrap rounds identify no rating of "
            "some model: they count as infinite, and no rank is claimed."
        )
    if alike.any():
        models = named([fit.models[i] for i in np.flatnonzero(alike)])
        warnings.append(
            f"All rounds of the bootstrap give {models} one rating: how far it may be off "
            "cannot be seen this way. Choose interval sandwich."
        )
    covariance = np.cov(drawn.theta.T) if enough else None
    return replace(spread, drawn=covariance, warnings=tuple(warnings))


def _with_profiles(spread: Spread, fit: Fit, data: Comparisons, options: RateOptions) -> Spread:
    """Take the profile likelihood for models that rarely won, or rarely lost."""
    rare = few_points(data)
    if not rare:
        return spread
    ends = profile_intervals(fit, data, models=rare, level=options.level)
    at = [fit.models.index(name) for name in rare]
    low, high = spread.low.copy(), spread.high.copy()
    low[at], high[at] = ends.low, ends.high
    warning = Sentence(
        "Intervals by profile likelihood, for they won or lost too rarely: %(names)s.",
        names=named(rare),
    )
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
    deviations = np.full(rounds.shape[1], np.nan)
    if finite.any():
        deviations[finite] = rounds[:, finite].std(axis=0, ddof=1)
    return deviations


FEW_POINTS = 10
NAMED_AT_MOST = 5


def seen_of(activity: Activity, kind: Cluster) -> Sentence:
    """Say how many voters or prompts there are.

    >>> seen_of(Activity(8, 7.2, 0.3), "voter"), seen_of(Activity(8, 8.0, 0.125), "voter")
    ('8 voters, as good as 7.2 equally busy ones,', '8 voters')
    """
    n, effective, of_voters = activity.n_clusters, float(activity.effective), kind == "voter"
    if n == 1:
        return Sentence("One voter") if of_voters else Sentence("One prompt")
    if effective > 0.95 * n:
        return Sentence("%(n)s voters", n=n) if of_voters else Sentence("%(n)s prompts", n=n)
    if of_voters:
        return Sentence(
            "%(n)s voters, as good as %(effective)s equally busy ones,", n=n, effective=effective
        )
    return Sentence(
        "%(n)s prompts, as good as %(effective)s equally busy ones,", n=n, effective=effective
    )


def on_clusters_behind(inference: Inference) -> Iterator[str]:
    """Say what rests on few voters, or prompts, and whether votes on one prompt are alike."""
    models = inference.fit.models
    few = [seen_of(kind.activity, kind.cluster) for kind in inference.shared if kind.is_small]
    if few:
        who = Sentence("%(a)s and %(b)s", a=few[0], b=few[1]) if len(few) == 2 else few[0]
        yield Sentence(
            "%(who)s are few for %(models)s models: a rank is ruled out only where a pair of "
            "models by itself leaves next to no doubt.",
            who=who,
            models=len(models),
        )
    newcomers = [models[i] for i in np.flatnonzero(~inference.founded)]
    if newcomers:
        nouns = {"voter": Sentence("voters"), "prompt": Sentence("prompts")}
        kinds = [nouns[kind.cluster] for kind in inference.shared]
        either = Sentence("%(a)s or %(b)s", a=kinds[0], b=kinds[-1])
        yield Sentence(
            "Fewer than %(n)s effective %(kinds)s stand behind %(names)s: the intervals there "
            "allow for tastes as they differ on other models, and the average is that of the "
            "others.",
            n=WELL_FOUNDED,
            kinds=either if len(kinds) == 2 else kinds[0],
            names=named(newcomers),
        )
    seen = inference.prompt_effect
    if seen is not None and seen.value > 1 + 2 * seen.error:
        yield Sentence(
            "Votes on one prompt are alike: that makes the variance %(times)s times as large, "
            "which the intervals allow for.",
            times=float(seen.value),
        )
    if inference.between is not None and inference.data.n_prompts < FEW_PROMPTS:
        yield Sentence(
            "%(n)s prompts say little of others like them: the intervals are rough.",
            n=inference.data.n_prompts,
        )


def on_quasi_errors(worst: float) -> str:
    """Say that quasi-standard errors would mislead, and by how much."""
    return f"Quasi-standard errors are left out: they would miss a difference by {worst:.0%}."


def on_ties(data: Comparisons) -> Iterator[str]:
    """Say which models only ties join to the others."""
    group = decided_groups(data)
    apart = np.flatnonzero(group != np.bincount(group).argmax())
    if len(apart) == len(group) - 1:
        yield Sentence("Every vote is a tie: the intervals are what the model implies.")
    elif apart.size:
        names = [data.models[i] for i in apart]
        yield Sentence(
            "Only ties join %(names)s to the other models: the intervals use the variance that "
            "the model implies there.",
            names=named(names),
        )


def few_points(data: Comparisons) -> tuple[str, ...]:
    """Name the models whose rarer outcome, won or lost, is under `FEW_POINTS` points."""
    wins = data.wins()
    rarer = np.minimum(wins.sum(axis=1), wins.sum(axis=0))
    return tuple(data.models[i] for i in np.flatnonzero(rarer < FEW_POINTS))


def named(models: Sequence[str]) -> str:
    """List models, the first few of many."""
    rest = len(models) - NAMED_AT_MOST
    shown = ", ".join(models[:NAMED_AT_MOST])
    return Sentence("%(names)s and %(n)s more", names=shown, n=rest) if rest > 0 else shown
