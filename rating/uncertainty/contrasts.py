"""How sure one contrast of the strengths is: its own variance and degrees of freedom."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from rating.comparisons import Comparisons, Parts, Sums
from rating.fitting import Fit
from rating.leave_out import Known, jackknife_variance, two_way
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.clusters import (
    Activity,
    Cluster,
    ClusterShares,
    activity_from,
    activity_sums,
    checked_activity,
    effective_number,
    grouping,
    information_by_cluster,
    intersection,
    require_two,
    squared_information,
    taste_covariance,
    taste_sums,
    totals,
    vectors_of_parameters,
)
from rating.uncertainty.covariance import (
    SIGNS_UP_TO,
    WILD_UP_TO,
    SignSums,
    jackknife,
    jackknife_of,
    left_out_sums,
    sandwich_covariance,
)
from rating.uncertainty.student import quantile, quantiles

WELL_FOUNDED = 15
"""Effective clusters behind a contrast from which its clusters alone say how sure it is."""
PRIOR_DF = 4.0
"""Degrees of freedom that the taste model counts for where nearly all else is missing."""
NEGLIGIBLE = 0.02
"""Share of the taste model in a variance below which it is left out."""
MOST_TERMS = 300_000_000
"""Cells times pairs up to which the effective clusters of pairs are counted, not bounded."""
CONTRASTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """What votes say of m contrasts, in nats.

    Attributes
    ----------
    value : ndarray of shape (m,)
    variance, df : ndarray of shape (m,)
        Of the value, and how well that variance is known; infinite for votes taken as
        independent, 0 where nothing can be said.
    by_clusters : ndarray of shape (m,)
        Variance without the taste model: what leaving out clusters shows by itself.
    independent : ndarray of shape (m,)
        Variance if no two votes had a cluster in common.
    by_prompt, prompt_df : ndarray of shape (m,)
        Variance, and its degrees of freedom, if only votes on one prompt depended on each other;
        as ``independent`` where prompts are not used beside voters.
    effective : ndarray of shape (m,)
        Effective clusters behind the contrast, ``(sum_c h_c)^2 / sum_c h_c^2`` with ``h_c`` the
        share of cluster c in its information; of two kinds the smaller; NaN without clusters.
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
        CR3, see `rating.uncertainty.covariance.jackknife`.
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
    def own(self) -> ClusterShares:
        """How the information on each model is shared by the clusters."""
        if self.square is not None:
            return ClusterShares.of(self.fit, np.sqrt(np.outer(self.square, self.square)))
        work = partial(_share_sums, fit=self.fit, cluster=self.cluster)
        return ClusterShares.of(self.fit, totals(self.parts.each(work))["shared"])

    def effective(self, contrasts: "Floats | Gaps") -> Floats:
        """Count the effective clusters of each contrast, shape (m,), in one go over the votes."""
        work = partial(_squares_of, fit=self.fit, cluster=self.cluster, contrasts=contrasts)
        bread = self.fit.inverse_information
        total = [quadratic(some, bread) for some in _some_at_once(contrasts)]
        square = totals(self.parts.each(work))["square"]
        return effective_number(np.concatenate([np.empty(0), *total]), square)

    def at_least(self, contrasts: Floats) -> Floats:
        """Bound the effective clusters of each contrast from below, shape (m,).

        ``h_c`` of a sum is at most the number of its terms times the sum of theirs.
        """
        squares = contrasts**2
        most = ((squares @ self.own.shared) * squares).sum(axis=1)
        total = quadratic(contrasts, self.fit.inverse_information)
        return effective_number(total, most * (contrasts != 0).sum(axis=1) ** 2)

    def variance(
        self, contrasts: Floats, independent: Floats, effective: Floats, trusted: float
    ) -> Known:
        """Return the variance of each contrast and its degrees of freedom.

        With G effective clusters behind the contrast and G0 behind the votes, ``nu = G - 1`` and
        ``n0 = 4 max(0, 1 - G / G0)``::

            (n0 max(independent, taste) + nu CR3) / (n0 + nu), of n0 + nu degrees of freedom

        where ``taste`` is what the fitted taste model expects: on a model that few clusters met,
        the differences between clusters on all the others are evidence as well. It is left out
        from ``trusted`` effective clusters on.
        """
        nu = np.maximum(effective - 1, 0.0)
        n0 = PRIOR_DF * np.maximum(0.0, 1 - effective / self.activity.effective)
        variance = quadratic(contrasts, self.matrix)
        part = (n0 > NEGLIGIBLE * (n0 + nu)) & (effective < trusted)
        if part.any():
            expected = np.maximum(independent[part], quadratic(contrasts[part], self.tasteful))
            mixed = n0[part] * expected + nu[part] * variance[part]
            variance[part] = mixed / (n0 + nu)[part]
        return variance, n0 + nu

    @cached_property
    def tasteful(self) -> Floats:
        """Covariance of the parameters under the fitted taste model."""
        work = partial(taste_sums, fit=self.fit, cluster=self.cluster)
        return taste_covariance(self.fit, self.parts.each(work, "tastes"))


@dataclass(frozen=True, slots=True)
class OnePart:
    """Votes in memory, as `Parts`."""

    data: Comparisons

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> Iterable[Sums]:
        """Call the function once; nothing needs to be kept."""
        return [work(self.data)]


def _square_sums(data: Comparisons, *, fit: Fit, cluster: Cluster, vectors: Floats) -> Sums:
    return {"square": squared_information(fit, data, grouping(data, cluster), vectors)}


def _squares_of(
    data: Comparisons, *, fit: Fit, cluster: Cluster, contrasts: "Floats | Gaps"
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


def voter_sums(data: Comparisons, *, fit: Fit, whole: Comparisons) -> Sums:
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
        ``spread`` and ``meat`` (or a zero) of `rating.uncertainty.covariance.LeftOutSums`;
        ``square``, the
        squared shares of the information on each parameter, shape (n_parameters,); and
        ``clusters``, ``weight``, ``weight_sq`` and ``largest`` of
        `rating.uncertainty.clusters.activity_sums`, of which the last is no sum.
    """
    groups = grouping(data, "voter")
    left_out = left_out_sums(fit, data, groups, whole, measured=False)
    square = _square_sums(data, fit=fit, cluster="voter", vectors=vectors_of_parameters(fit))
    meat = left_out.meat if left_out.meat.any() else np.zeros(())  # as good as always
    sums = {"spread": left_out.spread, "meat": meat}
    return {**sums, **square, **activity_sums(data, groups)}


class Ratio(NamedTuple):
    """A ratio of variances and its standard error."""

    value: float
    error: float


def voter_totals(fit: Fit, whole: Comparisons, parts: Parts) -> Sums:
    """Return `voter_sums` over all parts."""
    return totals(parts.each(partial(voter_sums, fit=fit, whole=whole), "voters"))


@dataclass(frozen=True, eq=False)
class Inference:
    """What is needed to judge any contrast of a fit.

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
    prompt_effect: Ratio | None = None

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
            Effective clusters from which the taste model is left out.
        """
        value, m = contrasts @ self.fit.x, len(contrasts)
        independent = quadratic(contrasts, self.matrix)
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
        plain = [(quadratic(contrasts, kind.matrix), np.full(m, np.inf)) for kind in self.shared]
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
        return two_way(by_voter, by_prompt, quadratic(contrasts, self.between))

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

        A newcomer whom few voters met would otherwise make the place of every other model
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
        gaps = Gaps(first, second, len(self.fit.x))
        behind = tuple(self._effective_of(kind, gaps) for kind in self.shared)
        parts = []
        for start, some in enumerate(_some_at_once(gaps)):
            rows = slice(start * CONTRASTS_AT_ONCE, (start + 1) * CONTRASTS_AT_ONCE)
            parts.append(self.of(some, [seen[rows] for seen in behind], trusted=WELL_FOUNDED))
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Contrasts)}
        each = Contrasts(**{name: np.concatenate(column) for name, column in columns.items()})
        return Pairs(first, second, each, behind)

    def _effective_of(self, kind: ByCluster, gaps: "Gaps") -> Floats:
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
class Gaps:
    """Contrasts of the first model of each pair less the second, each among so many parameters."""

    first: Ints
    second: Ints
    n_parameters: int

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    def __getitem__(self, chosen: Bools | slice) -> "Gaps":
        """Return some of the pairs."""
        return Gaps(self.first[chosen], self.second[chosen], self.n_parameters)

    def laid_out(self) -> Floats:
        """Return the contrasts, shape (n_pairs, n_parameters)."""
        contrasts, row = np.zeros((len(self), self.n_parameters)), np.arange(len(self))
        contrasts[row, self.first], contrasts[row, self.second] = 1.0, -1.0
        return contrasts


def _some_at_once(contrasts: Floats | Gaps) -> Iterator[Floats]:
    """Give contrasts laid out, so many at a time as fit in memory."""
    for first in range(0, len(contrasts), CONTRASTS_AT_ONCE):
        some = contrasts[first : first + CONTRASTS_AT_ONCE]
        yield some.laid_out() if isinstance(some, Gaps) else some


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


def infer(
    fit: Fit,
    data: Comparisons,
    clusters: Sequence[Cluster],
    *,
    rng: np.random.Generator | None = None,
    parts: Parts | None = None,
) -> Inference:
    """Estimate what is needed to judge any contrast.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    clusters : sequence of {"voter", "prompt"}
        None, one, or voters and then prompts.
    rng : numpy.random.Generator, optional
        For claims on all models at once, see `rating.uncertainty.ranks`.
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
        activity = checked_activity(data, groups)
        many = activity.effective >= max(WELL_FOUNDED, fit.n_models)
        drawn = many and fit.n_models <= WILD_UP_TO and activity.effective <= SIGNS_UP_TO
        signs = SignSums(fit.n_models, rng) if drawn and rng is not None else None
        left_out = jackknife(fit, data, groups, signs)
        kinds.append(ByCluster(fit, cluster, activity, left_out.matrix, signs, OnePart(data)))
        lengths.append(left_out.lengths)
    between, prompt_effect = None, None
    if len(kinds) == 2:
        crossed = intersection(data)
        if crossed.size > kinds[1].activity.n_clusters:
            inside = jackknife(fit, data, crossed)
            between = inside.matrix
            prompt = np.empty(crossed.size, dtype=np.int64)
            prompts = grouping(data, "prompt")
            prompt[crossed.index] = prompts.index
            part = np.bincount(prompt, inside.lengths, prompts.size)
            prompt_effect = _ratio(lengths[1], np.asarray(part, dtype=np.float64))
    independent = sandwich_covariance(fit, data)
    return Inference(fit, data, independent, tuple(kinds), between, prompt_effect)


def _in_parts(fit: Fit, whole: Comparisons, parts: Parts) -> ByCluster:
    """Judge by voters who are not all in memory at once.

    Changed signs would need as many draws of each, so that ranks are claimed as beyond
    `WILD_UP_TO` models; and what two models share is bounded by what each has.
    """
    sums = voter_totals(fit, whole, parts)
    activity = require_two(activity_from(sums))
    matrix = jackknife_of(fit, whole, activity.n_clusters, sums["spread"], sums["meat"])
    return ByCluster(fit, "voter", activity, matrix, None, parts, sums["square"])


def _ratio(whole: Floats, inside: Floats) -> Ratio | None:
    """Divide sums over clusters, with the error by leaving out one cluster at a time.

    None where a single cluster holds all of the divisor.
    """
    total, parts = float(whole.sum()), float(inside.sum())
    if parts <= inside.max():
        return None
    without = (total - whole) / (parts - inside)
    return Ratio(total / parts, float(np.sqrt(jackknife_variance(without))))


def quadratic(contrasts: Floats, matrix: Floats) -> Floats:
    """Return ``c' M c`` of each row, shape (m,), rounding below zero taken for zero."""
    return np.asarray(((contrasts @ matrix) * contrasts).sum(axis=1).clip(min=0))
