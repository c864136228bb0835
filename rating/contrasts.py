"""Confidence intervals of ratings and of their differences.

`infer` collects what inference about any contrast of the strengths needs, and `Inference` gives
each contrast its own cluster-robust variance and degrees of freedom. `profile_intervals` inverts
the likelihood-ratio test, for models that seldom won or seldom lost. `spread` gives every rating
the interval that the options ask for, with warnings where few voters or prompts are behind it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from rating.comparisons import Comparisons, Parts, Sums
from rating.covariance import (
    FEW_PROMPTS,
    KINDS,
    SIGNS_UP_TO,
    WILD_UP_TO,
    Activity,
    Cluster,
    ClusterShares,
    SignSums,
    activity,
    activity_from,
    activity_sums,
    checked_activity,
    effective_number,
    grouping,
    information_by_cluster,
    intersection,
    jackknife,
    jackknife_of,
    left_out_sums,
    sandwich_covariance,
    squared_information,
    taste_covariance,
    taste_sums,
    totals,
    vectors_of_parameters,
)
from rating.errors import ConvergenceError, DataError
from rating.fitting import Fit
from rating.identification import decided_groups
from rating.leave_out import Known, jackknife_variance, quantile, quantiles, two_way
from rating.likelihood import Evaluation, Objective, identified_inverse, one_thread
from rating.options import RateOptions
from rating.resampling import bootstrap
from rating.sentences import Sentence, counted
from rating.typing import Bools, Floats, Ints

# Variances of contrasts


WELL_FOUNDED = 15
"""Effective clusters behind a contrast from which its variance is that of the clusters alone."""
PRIOR_DF = 4.0
"""Degrees of freedom that the random-effects model counts for where nearly all else is missing."""
NEGLIGIBLE = 0.02
"""Share of the random-effects model in a variance below which it is excluded."""
MOST_TERMS = 300_000_000
"""Cells times pairs up to which the effective clusters of pairs are counted, not bounded."""
CONTRASTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Estimates of m contrasts, in nats.

    Attributes
    ----------
    value : ndarray of shape (m,)
    variance, df : ndarray of shape (m,)
        Variance of the value, and its degrees of freedom: infinite for independent votes, 0 if
        the variance is not estimated.
    by_clusters : ndarray of shape (m,)
        Variance without the random-effects model: what omitting clusters shows by itself.
    independent : ndarray of shape (m,)
        Variance if no two votes had a cluster in common.
    by_prompt, prompt_df : ndarray of shape (m,)
        Variance, and its degrees of freedom, if only votes on one prompt depended on each other;
        as ``independent`` where prompts are not used beside voters.
    effective : ndarray of shape (m,)
        Effective number of clusters of the contrast, ``(sum_c h_c)^2 / sum_c h_c^2`` with ``h_c``
        the share of cluster c in its information; the smaller of both kinds; NaN without clusters.
    """

    value: Floats
    variance: Floats
    df: Floats
    by_clusters: Floats
    independent: Floats
    by_prompt: Floats
    prompt_df: Floats
    effective: Floats

    def half_width(self, level: float) -> Floats:
        """Return half the width of each interval; NaN where ``df`` is under one.

        The largest of ``t sqrt(variance)``, of that by prompt, and of ``z sqrt(independent)``:
        never narrower than if votes were independent, or voters did not matter, for a few voters
        who happen to agree show no spread.
        """
        reach = quantiles(level, self.df) * np.sqrt(self.variance)
        known = (self.df >= 1) & (self.independent > 0)
        return np.where(known, np.fmax(reach, self.floor(level)), np.nan)

    def floor(self, level: float) -> Floats:
        """Return what half of an interval is at least, whatever the voters show."""
        by_prompt = quantiles(level, self.prompt_df) * np.sqrt(self.by_prompt)
        return np.fmax(by_prompt, quantile(level, np.inf) * np.sqrt(self.independent))


@dataclass(frozen=True, eq=False)
class ByCluster:
    """What one kind of cluster says of a fit.

    Attributes
    ----------
    cluster : {"voter", "prompt"}
    activity : Activity
    matrix : ndarray of shape (n_parameters, n_parameters)
        CR3, see `rating.covariance.jackknife`.
    signs : SignSums or None
        For claims; None where none are made, or the multivariate t stands in.
    parts : Parts
        The votes.
    square : ndarray of shape (n_parameters,), or None
        Sum of the squared shares of the information on each parameter, where it is known; of two
        parameters the product of shares is then bounded (Cauchy and Schwarz), not summed.
    """

    fit: Fit
    cluster: Cluster
    activity: Activity
    matrix: Floats
    signs: SignSums | None
    parts: Parts
    square: Floats | None = None

    @property
    def is_small(self) -> bool:
        """Whether so few clusters voted that each claim on ranks must stand by itself."""
        return self.activity.effective < max(WELL_FOUNDED, self.fit.n_models)

    @cached_property
    @one_thread
    def own(self) -> ClusterShares:
        """How the information on each model is shared by the clusters."""
        if self.square is not None:
            return ClusterShares.of(self.fit, np.sqrt(np.outer(self.square, self.square)))
        work = partial(_share_sums, fit=self.fit, cluster=self.cluster)
        return ClusterShares.of(self.fit, totals(self.parts.each(work))["shared"])

    def effective(self, contrasts: "Floats | _Gaps") -> Floats:
        """Count the effective clusters of each contrast, shape (m,), in one go over the votes."""
        work = partial(_squares_of, fit=self.fit, cluster=self.cluster, contrasts=contrasts)
        bread = self.fit.inverse_information
        total = [_quadratic(some, bread) for some in _some_at_once(contrasts)]
        square = totals(self.parts.each(work))["square"]
        return effective_number(np.concatenate([np.empty(0), *total]), square)

    def at_least(self, contrasts: Floats) -> Floats:
        """Bound the effective clusters of each contrast from below, shape (m,).

        ``h_c`` of a sum is at most the number of its terms times the sum of theirs.
        """
        squares = contrasts**2
        most = ((squares @ self.own.shared) * squares).sum(axis=1)
        total = _quadratic(contrasts, self.fit.inverse_information)
        return effective_number(total, most * (contrasts != 0).sum(axis=1) ** 2)

    def variance(
        self, contrasts: Floats, independent: Floats, effective: Floats, trusted: float
    ) -> Known:
        """Return the variance of each contrast and its degrees of freedom.

        With G effective clusters behind the contrast and G0 behind the votes, ``nu = G - 1`` and
        ``n0 = 4 max(0, 1 - G / G0)``::

            (n0 max(independent, expected) + nu CR3) / (n0 + nu), of n0 + nu degrees of freedom

        where ``expected`` is what the fitted random-effects model expects: on a model that few
        clusters met, the differences between clusters on all the others are evidence as well. It
        is excluded from ``trusted`` effective clusters on.
        """
        nu = np.maximum(effective - 1, 0.0)
        n0 = PRIOR_DF * np.maximum(0.0, 1 - effective / self.activity.effective)
        variance = _quadratic(contrasts, self.matrix)
        part = (n0 > NEGLIGIBLE * (n0 + nu)) & (effective < trusted)
        if part.any():
            expected = np.maximum(independent[part], _quadratic(contrasts[part], self.tasteful))
            mixed = n0[part] * expected + nu[part] * variance[part]
            variance[part] = mixed / (n0 + nu)[part]
        return variance, n0 + nu

    @cached_property
    def tasteful(self) -> Floats:
        """Covariance of the parameters under the fitted random-effects model."""
        work = partial(taste_sums, fit=self.fit, cluster=self.cluster)
        return taste_covariance(self.fit, self.parts.each(work, "tastes"))


@dataclass(frozen=True, slots=True)
class _OnePart:
    """Votes in memory, as `Parts`."""

    data: Comparisons

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> Iterable[Sums]:
        """Call the function once; nothing needs to be kept."""
        return [work(self.data)]


def _square_sums(data: Comparisons, *, fit: Fit, cluster: Cluster, vectors: Floats) -> Sums:
    return {"square": squared_information(fit, data, grouping(data, cluster), vectors)}


def _squares_of(
    data: Comparisons, *, fit: Fit, cluster: Cluster, contrasts: "Floats | _Gaps"
) -> Sums:
    squares = [
        _square_sums(data, fit=fit, cluster=cluster, vectors=fit.inverse_information @ some.T)
        for some in _some_at_once(contrasts)
    ]
    return {"square": np.concatenate([np.empty(0), *(some["square"] for some in squares)])}


def _share_sums(data: Comparisons, *, fit: Fit, cluster: Cluster) -> Sums:
    groups, shared = grouping(data, cluster), np.zeros((len(fit.x), len(fit.x)))
    for share in information_by_cluster(fit, data, groups, vectors_of_parameters(fit)):
        shared += share.T @ share
    return {"shared": shared}


def _voter_sums(data: Comparisons, *, fit: Fit, whole: Comparisons) -> Sums:
    """Return what some voters add to a board: of each, all votes are there.

    It may run in any thread, process or machine: sums of what it returns, over parts of the
    votes by voter, are what `infer` needs.

    Parameters
    ----------
    data : Comparisons
        Votes of some voters, on the models of the fit; rows that are alike may stand apart.
    fit : Fit
        Of all votes.
    whole : Comparisons
        All votes, without voters.

    Returns
    -------
    mapping of str to ndarray
        ``spread`` and ``meat`` (or a zero) of `rating.covariance.left_out_sums`;
        ``square``, the
        squared shares of the information on each parameter, shape (n_parameters,); and
        ``clusters``, ``weight``, ``weight_sq`` and ``largest`` of
        `rating.covariance.activity_sums`, of which the last is no sum.
    """
    groups = grouping(data, "voter")
    spread, meat, _ = left_out_sums(fit, data, groups, whole, measured=False)
    square = _square_sums(data, fit=fit, cluster="voter", vectors=vectors_of_parameters(fit))
    meat = meat if meat.any() else np.zeros(())  # zero in almost all cases
    return {"spread": spread, "meat": meat, **square, **activity_sums(data, groups)}


class _Ratio(NamedTuple):
    """A ratio of variances and its standard error."""

    value: float
    error: float


def _voter_totals(fit: Fit, whole: Comparisons, parts: Parts) -> Sums:
    """Return `_voter_sums` over all parts."""
    return totals(parts.each(partial(_voter_sums, fit=fit, whole=whole), "voters"))


@dataclass(frozen=True, eq=False)
class Inference:
    """Quantities for inference about any contrast of a fit.

    Attributes
    ----------
    fit : Fit
    data : Comparisons
    matrix : ndarray of shape (n_parameters, n_parameters)
        Covariance for independent votes.
    kinds : tuple of ByCluster
        None, one, or voters and then prompts.
    between : ndarray of shape (n_parameters, n_parameters), or None
        CR3 of the votes of one voter on one prompt; None unless both kinds are there and prompts
        were shared.
    prompt_effect : Ratio or None
        Trace of the covariance by prompt over that of ``between``.
    """

    fit: Fit
    data: Comparisons
    matrix: Floats
    kinds: tuple[ByCluster, ...]
    between: Floats | None
    prompt_effect: _Ratio | None = None

    def design_effect(self, cluster: Cluster) -> float | None:
        """Return by how much votes that share a voter, or a prompt, raise the variance.

        Of the strengths together: by voter over that of independent votes; by prompt over that
        of the votes of one voter on one prompt. None where that was not looked at.
        """
        if cluster == "prompt" and self.between is not None:
            return None if self.prompt_effect is None else self.prompt_effect.value
        k = self.fit.n_models
        trace = {kind.cluster: float(np.trace(kind.matrix[:k, :k])) for kind in self.shared}
        alone = float(np.trace(self.matrix[:k, :k]))
        return trace[cluster] / alone if cluster in trace else None

    @cached_property
    def shared(self) -> tuple[ByCluster, ...]:
        """The kinds of cluster that tell votes apart: prompts only where voters share them."""
        return self.kinds if self.between is not None else self.kinds[:1]

    @one_thread
    def of(
        self,
        contrasts: Floats,
        effective: Sequence[Floats] | None = None,
        *,
        trusted: float = np.inf,
    ) -> Contrasts:
        """Judge contrasts of all parameters, each by itself.

        With voters and prompts, ``A = max(0, V_prompt - V_voter-and-prompt)`` is what prompts
        add, and ``V = V_voter + A`` has ``V^2 / (V_voter^2 / nu_voter + A^2 / nu_prompt)`` degrees
        of freedom. Where no two voters shared a prompt, A is zero.

        Parameters
        ----------
        contrasts : ndarray of shape (m, n_parameters)
        effective : sequence of ndarray of shape (m,), optional
            Effective clusters of each kind in `shared`; counted where not given.
        trusted : float
            Effective clusters from which the random-effects model is excluded.
        """
        value, m = contrasts @ self.fit.x, len(contrasts)
        independent = _quadratic(contrasts, self.matrix)
        if not self.kinds:
            endless, unknown = np.full(m, np.inf), np.full(m, np.nan)
            return Contrasts(
                value,
                independent,
                endless,
                independent,
                independent,
                independent,
                endless,
                unknown,
            )
        effective = effective or [kind.effective(contrasts) for kind in self.shared]
        mixed = [
            kind.variance(contrasts, independent, seen, trusted)
            for kind, seen in zip(self.shared, effective, strict=True)
        ]
        variance, df = self._together(contrasts, *mixed)
        plain = [(_quadratic(contrasts, kind.matrix), np.full(m, np.inf)) for kind in self.shared]
        by_clusters, _ = self._together(contrasts, *plain)
        by_prompt, prompt_df = mixed[1] if len(mixed) > 1 else (independent, np.full(m, np.inf))
        fewest = np.minimum.reduce(list(effective))
        return Contrasts(
            value, variance, df, by_clusters, independent, by_prompt, prompt_df, fewest
        )

    def _together(
        self, contrasts: Floats, by_voter: Known, by_prompt: Known | None = None
    ) -> Known:
        """Add to the variance by one kind of cluster what the other adds to it (Satterthwaite)."""
        if by_prompt is None or self.between is None:
            return by_voter
        return two_way(by_voter, by_prompt, _quadratic(contrasts, self.between))

    @cached_property
    def founded(self) -> Bools:
        """Models whose ratings rest on `WELL_FOUNDED` effective clusters, shape (n_models,).

        All of them where fewer than two do, and without clusters.
        """
        k = self.fit.n_models
        enough = np.ones(k, dtype=bool)
        for kind in self.shared:
            enough &= kind.own.effective[:k] >= WELL_FOUNDED
        return enough if enough.sum() > 1 else np.ones(k, dtype=bool)

    def ratings(self) -> Contrasts:
        """Judge each model against the average of the well-founded ones (`founded`).

        A new model whom few voters met would otherwise make the place of every other model
        uncertain. Strengths with a zero of their own are judged as they are.
        """
        k = self.fit.n_models
        contrasts = np.eye(k, len(self.fit.x))
        if not self.fit.absolute:
            contrasts[:, :k] -= self.founded / self.founded.sum()
        return self.of(contrasts, [kind.own.effective[:k] for kind in self.shared])

    def parameters(self) -> Contrasts:
        """Judge each free parameter beside the strengths."""
        k = self.fit.n_models
        beside = np.eye(len(self.fit.x))[k:]
        return self.of(beside, [kind.own.effective[k:] for kind in self.shared])

    @cached_property
    def pairs(self) -> "Pairs":
        """Judge every pair of models; see `Pairs`."""
        first, second = np.triu_indices(self.fit.n_models, k=1)
        gaps = _Gaps(first, second, len(self.fit.x))
        behind = tuple(self._effective_of(kind, gaps) for kind in self.shared)
        parts = []
        for start, some in enumerate(_some_at_once(gaps)):
            rows = slice(start * CONTRASTS_AT_ONCE, (start + 1) * CONTRASTS_AT_ONCE)
            parts.append(self.of(some, [seen[rows] for seen in behind], trusted=WELL_FOUNDED))
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Contrasts)}
        each = Contrasts(**{name: np.concatenate(column) for name, column in columns.items()})
        return Pairs(first, second, each, behind)

    def _effective_of(self, kind: ByCluster, gaps: "_Gaps") -> Floats:
        """Bound the effective clusters of pairs; count those that may be too few."""
        bounds = [kind.at_least(some) for some in _some_at_once(gaps)]
        most = MOST_TERMS // len(self.data.votes)
        effective, few = np.concatenate(bounds), np.concatenate([_few(s, most) for s in bounds])
        if few.any():
            effective[few] = kind.effective(gaps[few])
        return effective


def _few(effective: Floats, most: int) -> Bools:
    """Mark what has too few clusters behind it, if no more than some do."""
    few = effective < WELL_FOUNDED
    return np.asarray(few & (few.sum() <= most))


@dataclass(frozen=True, slots=True, eq=False)
class _Gaps:
    """Contrasts of the first model of each pair less the second, each with this many values."""

    first: Ints
    second: Ints
    n_parameters: int

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    def __getitem__(self, chosen: Bools | slice) -> "_Gaps":
        """Return some of the pairs."""
        return _Gaps(self.first[chosen], self.second[chosen], self.n_parameters)

    def laid_out(self) -> Floats:
        """Return the contrasts, shape (n_pairs, n_parameters)."""
        contrasts, row = np.zeros((len(self), self.n_parameters)), np.arange(len(self))
        contrasts[row, self.first], contrasts[row, self.second] = 1.0, -1.0
        return contrasts


def _some_at_once(contrasts: Floats | _Gaps) -> Iterator[Floats]:
    """Give contrasts laid out, as many at a time as fit in memory."""
    for first in range(0, len(contrasts), CONTRASTS_AT_ONCE):
        some = contrasts[first : first + CONTRASTS_AT_ONCE]
        yield some.laid_out() if isinstance(some, _Gaps) else some


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Every pair of models.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,), int64
        Positions of the models.
    each : Contrasts
        First less second. Of pairs with `WELL_FOUNDED` effective clusters or more, their number
        is a bound from below, and the variance is that by clusters alone.
    behind : tuple of ndarray of shape (n_pairs,)
        Effective clusters of each kind in `Inference.shared`, bounded likewise.
    """

    first: Ints
    second: Ints
    each: Contrasts
    behind: tuple[Floats, ...]

    def table(self, value: Floats) -> Floats:
        """Lay a value of each pair out by both models, whichever is first; zero between one."""
        size = int(self.second.max(initial=0)) + 1
        laid = np.zeros((size, size))
        laid[self.first, self.second] = laid[self.second, self.first] = value
        return laid


@one_thread
def infer(
    fit: Fit,
    data: Comparisons,
    clusters: Sequence[Cluster],
    *,
    rng: np.random.Generator | None = None,
    parts: Parts | None = None,
) -> Inference:
    """Estimate the quantities for inference about any contrast.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    clusters : sequence of {"voter", "prompt"}
        None, one, or voters and then prompts.
    rng : numpy.random.Generator, optional
        For claims on all models at once, see `rating.ranks`.
    parts : Parts, optional
        The votes by voter, where ``data`` does not know the voters.

    Raises
    ------
    DataError
        If the clusters are not known, or fewer than two of a kind voted.

    References
    ----------
    .. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference
       with multiway clustering", Journal of Business and Economic Statistics
       29(2), 2011, pp. 238-249.
    .. [2] A. V. Carter, K. T. Schnepel and D. G. Steigerwald, "Asymptotic
       behavior of a t-test robust to cluster heterogeneity", Review of
       Economics and Statistics 99(4), 2017, pp. 698-709 (effective clusters of
       one coefficient; ours are of the information, not of the variance).
    """
    if parts is not None:
        by_voter = tuple(_in_parts(fit, data, parts) for _ in clusters)
        return Inference(fit, data, sandwich_covariance(fit, data), by_voter, None)
    kinds, lengths = [], []
    for cluster in clusters:
        groups = grouping(data, cluster)
        activity = checked_activity(activity_sums(data, groups))
        many = activity.effective >= max(WELL_FOUNDED, fit.n_models)
        drawn = many and fit.n_models <= WILD_UP_TO and activity.effective <= SIGNS_UP_TO
        signs = SignSums(fit.n_models, rng) if drawn and rng is not None else None
        matrix, moved = jackknife(fit, data, groups, signs)
        kinds.append(ByCluster(fit, cluster, activity, matrix, signs, _OnePart(data)))
        lengths.append(moved)
    between, prompt_effect = None, None
    if len(kinds) == 2:
        crossed = intersection(data)
        if crossed.size > kinds[1].activity.n_clusters:
            between, moved = jackknife(fit, data, crossed)
            prompt = np.empty(crossed.size, dtype=np.int64)
            prompts = grouping(data, "prompt")
            prompt[crossed.index] = prompts.index
            part = np.bincount(prompt, moved, prompts.size)
            prompt_effect = _ratio(lengths[1], np.asarray(part, dtype=np.float64))
    independent = sandwich_covariance(fit, data)
    return Inference(fit, data, independent, tuple(kinds), between, prompt_effect)


def _in_parts(fit: Fit, whole: Comparisons, parts: Parts) -> ByCluster:
    """Judge by voters who are not all in memory at once.

    Changed signs would need as many draws of each, so that ranks are claimed as beyond
    `WILD_UP_TO` models; and what two models share is bounded by what each has.
    """
    sums = _voter_totals(fit, whole, parts)
    activity = checked_activity(sums)
    matrix = jackknife_of(fit, whole, activity.n_clusters, sums["spread"], sums["meat"])
    return ByCluster(fit, "voter", activity, matrix, None, parts, sums["square"])


def _ratio(whole: Floats, inside: Floats) -> _Ratio | None:
    """Divide sums over clusters, with the error by omitting one cluster at a time.

    None where a single cluster holds all of the divisor.
    """
    total, parts = float(whole.sum()), float(inside.sum())
    if parts <= inside.max():
        return None
    without = (total - whole) / (parts - inside)
    return _Ratio(total / parts, float(np.sqrt(jackknife_variance(without))))


def _quadratic(contrasts: Floats, matrix: Floats) -> Floats:
    """Return ``c' M c`` of each row, shape (m,), rounding below zero taken for zero."""
    return np.asarray(((contrasts @ matrix) * contrasts).sum(axis=1).clip(min=0))


# Profile-likelihood intervals


_MAX_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class ProfileIntervals:
    """Profile-likelihood intervals.

    Attributes
    ----------
    models : tuple of str
    low, high : ndarray of shape (n,)
        Nats, of the distance from the average of all models (grounded: of
        the strength itself).
    """

    models: tuple[str, ...]
    low: Floats
    high: Floats


@one_thread
def profile_intervals(
    fit: Fit, data: Comparisons, *, models: Sequence[str] | None = None, level: float = 0.95
) -> ProfileIntervals:
    """Invert the likelihood-ratio test of each model's rating.

    A rating t is kept while ``2 (L_max - max {L : theta_i = t})`` is within the
    quantile of chi-squared with one degree of freedom, L the log-likelihood
    less the penalty, if there is one. Votes count as independent: clusters
    have no likelihood. Under half wins ties make the interval too wide, as
    they do for the inverse information. Both ends are finite wherever the fit
    is: what has no finite fit raised before this.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    models : sequence of str, optional
        All of them by default.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1, or a model unknown.
    ConvergenceError
        If an end is not found.

    References
    ----------
    .. [1] D. J. Venzon and S. H. Moolgavkar, "A method for computing
       profile-likelihood-based confidence intervals", Applied Statistics
       37(1), 1988, pp. 87-94. We profile by steps of Newton within the
       constraint, and find the root of the signed square root of the ratio.

    Examples
    --------
    Nine wins to one of two models: the gap, twice each rating, by its ratio.

    >>> from rating import fit
    >>> outcomes = ["model_a"] * 9 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 10, ["y"] * 10, outcomes)
    >>> found = profile_intervals(fit(data), data, models=["x"])
    >>> round(float(2 * found.low[0]), 3), round(float(2 * found.high[0]), 3)
    (0.525, 5.111)
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    names = fit.models if models is None else tuple(models)
    unknown = [name for name in names if name not in fit.models]
    if unknown:
        raise DataError(f"No such model in the fit: {unknown[0]!r}.")
    bound = quantile(level, np.inf)
    problem = fit.objective(data)
    best = problem.evaluate(fit.x)
    at = [fit.models.index(name) for name in names]
    ends = np.array([[_end(problem, fit.x, best, i, s * bound) for s in (-1, 1)] for i in at])
    low, high = ends.reshape(-1, 2).T
    return ProfileIntervals(names, low, high)


def _end(objective: Objective, x: Floats, best: Evaluation, i: int, target: float) -> float:
    """Find the rating at which the signed root of the likelihood ratio is ``target``.

    Newton's method on a function that always rises, kept within a bracket.
    """
    spread = identified_inverse(best.hessian, objective.n_models, absolute=objective.absolute)
    peak = rating = float(x[i])
    inside, outside = peak, np.sign(target) * np.inf
    step, point = target * float(np.sqrt(spread[i, i])), x
    for _ in range(_MAX_STEPS):
        rating = rating + step
        if not min(inside, outside) < rating < max(inside, outside):
            rating = (inside + outside) / 2
        point, slope, loss = _profile(objective, point, i, rating)
        root = np.sign(target) * np.sqrt(max(2 * (loss - best.loss), 0.0))
        if abs(root - target) <= 1e-8:
            return rating
        inside, outside = (rating, outside) if abs(root) < abs(target) else (inside, rating)
        step = (target - root) * root / slope if slope * root > 0 else (rating - peak)
    raise ConvergenceError(f"No end of the profile interval found near {rating:.3g} nats.")


def _profile(
    objective: Objective, start: Floats, i: int, rating: float
) -> tuple[Floats, float, float]:
    """Minimise with ``x[i]`` held at ``rating``; return where, its slope and the loss."""
    x = start + _held(objective, objective.evaluate(start), i, rating - start[i], along=True)
    at = objective.evaluate(x)
    for _ in range(_MAX_STEPS):
        step = _held(objective, at, i, 0.0)
        free = at.gradient @ step
        if abs(free) <= 1e-18 + 1e-14 * abs(at.loss) or np.abs(step).max() <= 1e-11:
            break
        there = objective.evaluate(x + step)
        while not there.loss <= at.loss + 1e-12 * abs(at.loss) and np.abs(step).max() > 1e-14:
            step = step / 2
            there = objective.evaluate(x + step)
        x, at = x + step, there
    spread = identified_inverse(at.hessian, objective.n_models, absolute=objective.absolute)
    return x, float(spread[i] @ at.gradient / spread[i, i]), at.loss


def _held(
    objective: Objective, at: Evaluation, i: int, change: float, *, along: bool = False
) -> Floats:
    """Return the Newton step that moves ``x[i]`` by ``change`` exactly.

    With ``along``, only the way the others follow that change.
    """
    spread = identified_inverse(at.hessian, objective.n_models, absolute=objective.absolute)
    free = np.zeros(len(spread)) if along else -spread @ at.gradient
    return np.asarray(free + spread[i] * (change - free[i]) / spread[i, i])


# Intervals of ratings


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
    voters = None
    if parts is not None and options.interval != "none":
        voters = activity_from(_voter_totals(fit, data, parts))
    match options.interval:
        case "sandwich":
            off = _sandwich(fit, data, options, rng, parts, voters, sampled)
        case "hessian":
            off = _hessian(fit, data, options)
        case "profile":
            ends = profile_intervals(fit, data, level=options.level)
            off = replace(_hessian(fit, data, options), low=ends.low, high=ends.high)
        case "bootstrap":
            if parts is not None and clusters_of(options):
                raise DataError(
                    "The bootstrap draws voters who are all in memory, and these are in parts: "
                    "choose interval sandwich, or cluster none."
                )
            off = _bootstrap(fit, data, options, rng)
        case _:
            unknown = np.full(fit.n_models, np.nan)
            off = _plain(_from_reference(fit, options), unknown, unknown, unknown, fit)
    return replace(off, voters=voters)


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
    clusters, warnings = usable(data, options, voters)
    spread = _judged(infer(fit, data, clusters, rng=rng, parts=parts), options)
    unknown = data.voter is None and voters is None and not sampled
    rare = unknown and options.reference is None and not options.weighted
    if options.cluster == "none" and rare:
        spread = _with_profiles(spread, fit, data, options)
    return replace(spread, warnings=(*warnings, *spread.warnings))


def usable(
    data: Comparisons, options: RateOptions, voters: Activity | None = None
) -> tuple[tuple[Cluster, ...], tuple[str, ...]]:
    """Return the kinds of cluster with two effective ones, and what is to say of the others."""
    enough, warnings = [], []
    for kind in clusters_of(options):
        seen = voters or activity(data, kind)
        if seen.effective >= MIN_EFFECTIVE_FOR_CLUSTERS:
            enough.append(kind)
        else:
            warnings.append(_on_one(kind, round(100 * seen.top_share)))
    return tuple(enough), tuple(warnings)


def _on_one(kind: Cluster, percent: int) -> Sentence:
    if kind == "voter":
        return Sentence(
            "One voter has %(percent)s%% of the votes: the intervals hold for that voter alone.",
            percent=percent,
        )
    return Sentence(
        "One prompt has %(percent)s%% of the votes: the intervals hold for that prompt alone.",
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
    half, df = each.half_width(options.level), each.df
    if options.reference is not None:
        own = fit.models.index(options.reference)
        half[own], df[own] = 0.0, np.inf
    beside = inference.parameters()
    spread = _plain(each.value, np.sqrt(each.variance), each.value - half, each.value + half, fit)
    return replace(
        spread,
        df=df,
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
        "Intervals by profile likelihood, because these models won or lost too rarely: %(names)s.",
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


# Warnings


FEW_POINTS = 10
NAMED_AT_MOST = 5


def seen_of(activity: Activity, kind: Cluster) -> Sentence:
    """Describe how many voters or prompts there are.

    >>> seen_of(Activity(8, 7.2, 0.3), "voter"), seen_of(Activity(8, 8.0, 0.125), "voter")
    ('8 voters (effective sample size 7.2)', '8 voters')
    """
    n, effective, of_voters = activity.n_clusters, float(activity.effective), kind == "voter"
    if n == 1:
        return Sentence("One voter") if of_voters else Sentence("One prompt")
    if effective > 0.95 * n:
        return Sentence("%(n)s voters", n=n) if of_voters else Sentence("%(n)s prompts", n=n)
    if of_voters:
        return Sentence(
            "%(n)s voters (effective sample size %(effective)s)", n=n, effective=effective
        )
    return Sentence(
        "%(n)s prompts (effective sample size %(effective)s)", n=n, effective=effective
    )


def on_clusters_behind(inference: Inference) -> Iterator[str]:
    """Describe what rests on few voters, or prompts, and whether votes on one prompt are alike."""
    models = inference.fit.models
    few = [seen_of(kind.activity, kind.cluster) for kind in inference.shared if kind.is_small]
    if few:
        who = Sentence("%(a)s and %(b)s", a=few[0], b=few[1]) if len(few) == 2 else few[0]
        yield Sentence(
            "Few data for %(models)s models: %(who)s. Ranks are excluded only by "
            "Bonferroni-corrected t tests of pairs.",
            who=who,
            models=len(models),
        )
    newcomers = [models[i] for i in np.flatnonzero(~inference.founded)]
    if newcomers:
        nouns = {"voter": Sentence("voters"), "prompt": Sentence("prompts")}
        kinds = [nouns[kind.cluster] for kind in inference.shared]
        either = Sentence("%(a)s or %(b)s", a=kinds[0], b=kinds[-1])
        yield counted(
            "%(names)s has fewer than %(fewest)s effective %(kinds)s: its intervals use the "
            "pooled between-voter variance of the other models, and the mean rating is that of "
            "the others.",
            "%(names)s have fewer than %(fewest)s effective %(kinds)s: their intervals use the "
            "pooled between-voter variance of the other models, and the mean rating is that of "
            "the others.",
            len(newcomers),
            fewest=WELL_FOUNDED,
            kinds=either if len(kinds) == 2 else kinds[0],
            names=named(newcomers),
        )
    seen = inference.prompt_effect
    if seen is not None and seen.value > 1 + 2 * seen.error:
        yield Sentence(
            "Votes on one prompt are correlated: the design effect (factor of the variance) is "
            "%(times)s, which the intervals include.",
            times=float(seen.value),
        )
    if inference.between is not None and inference.data.n_prompts < FEW_PROMPTS:
        yield Sentence(
            "There are only %(n)s prompts: for other prompts, the intervals are rough.",
            n=inference.data.n_prompts,
        )


def on_quasi_errors(worst: float) -> str:
    """Say that quasi-standard errors would mislead, and by how much."""
    text = "Quasi-standard errors are omitted: they misstate the standard errors of differences"
    return f"{text} by up to {worst:.0%}."


def on_ties(data: Comparisons) -> Iterator[str]:
    """Return which models only ties join to the others."""
    group = decided_groups(data)
    apart = np.flatnonzero(group != np.bincount(group).argmax())
    if len(apart) == len(group) - 1:
        yield Sentence("Every vote is a tie: the intervals use the variance of the model.")
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
