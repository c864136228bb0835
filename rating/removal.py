"""Votes, voters or prompts in the order in which they hold one model above another."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from rating.clusters import Grouping, grouping
from rating.comparisons import Comparisons
from rating.fitting import Fit, has_finite_fit
from rating.jackknife import leave_one_out, without
from rating.newton import minimise
from rating.sandwich import hessian_covariance, scored_cells
from rating.typing import Floats, Ints

Unit = Literal["vote", "voter", "prompt"]

LEVEL_NATS = 1e-9
"""Models this close are level: neither is above the other."""

Pair = tuple[int, int]
Effects = dict[Pair, tuple[Ints, Floats]]
"""By pair, the units that widen its gap, most first, and how far it moves without each."""


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Units in the order in which they are taken out to bring one model below another.

    Attributes
    ----------
    gap : float
        Lead with all votes, nats.
    order : ndarray of shape (n,), int64
        Cells of ``whole`` if the units are votes, as often as they have votes;
        otherwise clusters.
    moved : ndarray of shape (n,)
        How far the lead moves without each, negative.
    whole : Comparisons
        All votes, whoever cast them.
    rest : callable
        From some of ``order`` to the votes that remain.
    """

    fit: Fit
    pair: Pair
    gap: float
    order: Ints
    moved: Floats
    whole: Comparisons
    rest: Callable[[Ints], Comparisons]

    def predicted(self, k: int) -> float:
        """Return the lead without the first k units, their influences added up."""
        return self.gap + float(self.moved[:k].sum())

    def refitted(self, k: int) -> float | None:
        """Return the lead that a refit without them gives; None if there is no finite fit."""
        rest = self.rest(self.order[:k])
        emptied = len(rest.votes) < len(self.whole.votes)  # else every pair meets as before
        if emptied and not has_finite_fit(self.fit, rest):
            return None
        theta = minimise(self.fit.objective(rest), self.fit.x).x
        return float(theta[self.pair[0]] - theta[self.pair[1]])

    def predicted_k(self) -> int | None:
        """Return the smallest k whose predicted lead is negative."""
        below = np.flatnonzero(self.gap + np.cumsum(self.moved) < -LEVEL_NATS)
        return int(below[0]) + 1 if below.size else None


def removals(
    fit: Fit, data: Comparisons, unit: Unit, pairs: Sequence[Pair], at_most: int
) -> Iterable[Removal]:
    """Yield, pair by pair, the units in the order in which they are taken out."""
    if unit == "vote":
        yield from _of_votes(fit, data.merged(), pairs, at_most)
        return
    groups = grouping(data, unit)
    effects, whole = _of_clusters(fit, data, groups, pairs, at_most), data.merged()
    for pair, (order, moved) in effects.items():
        rest = partial(_without_clusters, data, whole, groups)
        yield Removal(fit, pair, lead(fit, pair), order, moved, whole, rest)


def lead(fit: Fit, pair: Pair) -> float:
    """Return how far the first model is above the second, nats."""
    return float(fit.theta[pair[0]] - fit.theta[pair[1]])


def _of_votes(
    fit: Fit, whole: Comparisons, pairs: Sequence[Pair], at_most: int
) -> Iterable[Removal]:
    """Votes of a cell are alike: each is taken out as one, at its mean weight."""
    bread, cells = hessian_covariance(fit), scored_cells(fit, whole)
    each = whole.weight / whole.votes
    leverage = each * cells.curve[0, 0] * cells.design.inner(bread, 0, 0)
    pull = each * cells.slope[0] / (1 - np.minimum(leverage, 1 - 1e-9))
    for pair in pairs:
        contrast = bread[pair[0]] - bread[pair[1]]
        moved = pull * cells.design.gap(contrast)  # linear in the parameters
        first = _most_negative(moved, at_most)
        order = np.repeat(first, whole.votes[first])[:at_most]
        rest = partial(_without_votes, whole)
        yield Removal(fit, pair, lead(fit, pair), order, moved[order], whole, rest)


def _of_clusters(
    fit: Fit, data: Comparisons, groups: Grouping, pairs: Sequence[Pair], at_most: int
) -> Effects:
    """Keep the ``at_most`` most influential clusters of every pair, chunk by chunk."""
    kept: Effects = {pair: (np.empty(0, np.int64), np.empty(0)) for pair in pairs}
    for left_out in leave_one_out(fit, data, groups):
        clusters, shift = left_out.clusters, left_out.shift
        for pair, (order, moved) in kept.items():
            both = np.concatenate([moved, shift[:, pair[0]] - shift[:, pair[1]]])
            first = _most_negative(both, at_most)
            kept[pair] = np.concatenate([order, clusters])[first], both[first]
    return kept


def _most_negative(moved: Floats, at_most: int) -> Ints:
    """Return the places of the most negative values, the first of equal ones first."""
    places = np.flatnonzero(moved < 0)
    if len(places) > at_most:
        bar = np.partition(moved[places], at_most - 1)[at_most - 1]
        places = places[moved[places] <= bar]
    return places[np.argsort(moved[places], kind="stable")][:at_most]


def _without_votes(whole: Comparisons, cells: Ints) -> Comparisons:
    gone = np.bincount(cells, minlength=len(whole.votes))
    left = whole.votes - gone
    share = left / whole.votes
    rest = replace(
        whole, votes=left, weight=whole.weight * share, weight_sq=whole.weight_sq * share
    )
    return rest.subset(left > 0)


def _without_clusters(
    data: Comparisons, whole: Comparisons, groups: Grouping, clusters: Ints
) -> Comparisons:
    out = np.zeros(groups.size, dtype=bool)
    out[clusters] = True
    return without(data, whole, out[groups.index])
