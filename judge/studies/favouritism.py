"""Which models a judge favours, beyond what a fair judge of the same strength would give them."""

import numpy as np

from judge.studies.estimates import Estimate
from judge.studies.gates import MIN_ITEMS, MIN_MODELS, MIN_PROMPTS
from judge.studies.items import Items, Labels
from rating.leave_out import MOST_CLUSTERS, jackknife_variance, sums_within, two_way
from rating.typing import Floats, Ints
from rating.uncertainty.clusters import effective_number
from rating.uncertainty.student import quantiles

ERROR = 0.05
"""Shared by all models that are tested: so often a fair judge is said to favour any."""
_HIGHEST = 3.0
_SIGNS = (1, -1, -1, 1, 1)
"""Of the moments below, seen from side B."""
_AT_ONCE = 4_000_000
"""Values of tables in memory at a time."""


def favouritism(items: Items, people: Labels, judge: Labels) -> dict[str, Estimate]:
    """Estimate for each model by how much of a win per item the judge favours it.

    With j and p the mean score of model m less 1/2 on an item, by verdicts and by votes, J_m and
    P_m their means over the items of m, and N_k items of model k without m::

        b_m   = J_m - kappa P_m
        kappa = sum_k (N_k J_k P_k - mean_k j p) / sum_k (N_k P_k^2 - mean_k p^2)

    over the models k except m, from 0 to 3. The judge's score less people's is no bias: a judge
    with less noise than a person gives strong models more. kappa is how much more, and the means
    of products take off what the noise of votes adds. All of this is computed again without each
    voter, each prompt, and each voter's votes on a prompt; with these variances the limits are
    ``b_m -+ t sqrt(max(V_voter + max(0, V_prompt - V_both), V_prompt, V_both))``, Student's t at
    `ERROR` over the models, with one less than the effective voters or prompts of m, the fewer.
    A judge that favours the best model also seems to be a stronger judge, which hides it.

    Returns
    -------
    dict of str to Estimate
        ``n`` is the number of items. No limits for a model on fewer than `MIN_ITEMS` items or
        `MIN_PROMPTS` prompts; empty under `MIN_MODELS` models.
    """
    scores = [one.mean(one.label / 2, items.n) for one in (people, judge)]
    used = ~np.isnan(scores[0] + scores[1]) & (items.pairs[:, 0] != items.pairs[:, 1])
    known, codes = np.unique(items.pairs[used], return_inverse=True)
    if len(known) < MIN_MODELS:
        return {}
    pairs, k, prompt = codes.reshape(-1, 2), len(known), items.prompt[used]
    p, j = (one[used] for one in scores)
    cast = people.only(used[people.item])
    item = (np.cumsum(used) - 1)[cast.item]
    n_raters = int(cast.rater.max(initial=0)) + 1
    cells, cell = np.unique(item * n_raters + cast.rater, return_inverse=True)
    at, voter = np.divmod(cells, n_raters)
    left = np.bincount(item)[at] - np.bincount(cell)
    votes = np.bincount(item, cast.label / 2)[at] - np.bincount(cell, cast.label / 2)
    others = np.divide(votes, left, out=np.zeros(len(at)), where=left > 0)
    moments = _moments(np.ones(len(p)), j, p)
    without = np.where(left[:, None] > 0, _moments(np.ones(len(at)), j[at], others), 0.0)
    total = _tables(pairs, moments, np.zeros(len(p), dtype=np.int64), 1, k)
    value = _beyond(total, np.zeros(k))[0]
    clusters = (prompt, voter, voter * items.n_prompts + prompt[at])
    changes = (-moments, without - moments[at], without - moments[at])
    of_pairs = (pairs, pairs[at], pairs[at])
    by_prompt, by_voter, by_both = (
        _variance(total, *one, value) for one in zip(of_pairs, changes, clusters, strict=True)
    )
    effective = [_effective(*one, k) for one in zip(of_pairs[:2], clusters[:2], strict=True)]
    df = np.minimum(*effective) - 1
    two = two_way((by_voter, df), (by_prompt, df), by_both)[0]
    error = np.sqrt(np.maximum(two, np.maximum(by_prompt, by_both)))
    n = np.bincount(pairs.ravel())
    on_prompts = np.unique(pairs.ravel() * items.n_prompts + prompt.repeat(2)) // items.n_prompts
    tested = (n >= MIN_ITEMS) & (np.bincount(on_prompts) >= MIN_PROMPTS) & (df >= 1) & (error > 0)
    level = 1 - ERROR / max(1, int(tested.sum()))
    reach = quantiles(level, np.where(tested, df, 1.0)) * error
    return {
        items.models[model]: Estimate(
            float(value[i]),
            float(value[i] - reach[i]) if tested[i] else None,
            float(value[i] + reach[i]) if tested[i] else None,
            int(n[i]),
        )
        for i, model in enumerate(known.tolist())
    }


def _moments(n: Floats, j: Floats, p: Floats) -> Floats:
    return np.column_stack([n, j, p, j * p, p * p])


def _tables(pairs: Ints, moments: Floats, cluster: Ints, n: int, k: int) -> Floats:
    """Sum moments of items, seen from each model against each other, shape (n, 5, k, k)."""
    cell = cluster * k**2 + pairs @ np.array([k, 1])
    sums = [np.bincount(cell, one, n * k**2).reshape(n, k, k) for one in moments.T]
    return np.stack(
        [one + sign * one.swapaxes(1, 2) for one, sign in zip(sums, _SIGNS, strict=True)], axis=1
    )


def _beyond(tables: Floats, otherwise: Floats) -> Floats:
    """Return ``b_m`` of each sum of moments, shape (n, k); ``otherwise`` without an item of m."""
    own = tables.sum(axis=-1)
    n, j, p, jp, pp = np.moveaxis(own[..., None] - tables, 1, 0)  # of model k, without m
    size = np.where(np.eye(n.shape[-1], dtype=bool) | (n <= 0), np.inf, n)
    followed, spread = (
        ((one * p - noise) / size).sum(axis=1) for one, noise in ((j, jp), (p, pp))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = np.where(spread > 0, followed / spread, np.where(followed > 0, np.inf, 0.0))
        kappa = np.clip(np.nan_to_num(kappa), 0.0, _HIGHEST)
        return np.where(own[:, 0] > 0, (own[:, 1] - kappa * own[:, 2]) / own[:, 0], otherwise)


def _variance(total: Floats, pairs: Ints, change: Floats, cluster: Ints, value: Floats) -> Floats:
    """Return the jackknife variance of ``b_m``, one cluster left out at a time."""
    k = total.shape[-1]
    group = np.unique(cluster, return_inverse=True)[1] % MOST_CLUSTERS
    order = np.argsort(group, kind="stable")
    pairs, change, group = pairs[order], change[order], group[order]
    n, size = int(group[-1]) + 1, max(1, _AT_ONCE // (5 * k**2))
    parts = []
    for start in range(0, n, size):
        rows = slice(*np.searchsorted(group, [start, start + size]))
        width = min(size, n - start)
        moved = _tables(pairs[rows], change[rows], group[rows] - start, width, k)
        parts.append(_beyond(total + moved, value))
    return jackknife_variance(np.concatenate(parts), value)


def _effective(pairs: Ints, cluster: Ints, k: int) -> Floats:
    """Return the effective clusters of the rows of each model."""
    known, place = np.unique(cluster, return_inverse=True)
    cell = pairs.ravel() * len(known) + place.repeat(2)
    cells, counted = np.unique(cell, return_counts=True)
    n = counted.astype(np.float64)
    return effective_number(*sums_within(cells // len(known), np.column_stack([n, n**2]), k).T)
