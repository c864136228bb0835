"""How sure pooled strengths are: leaving out voters, with the bias that shrinking leaves.

With H the penalised Hessian, P the penalty and M the meat of leaving one voter out at a time, the
covariance is ``H^-1 (M + P) H^-1``: P stands for the deviations that other categories and prompts
would have shown. It is averaged over the standard deviation of categories by marginal likelihood,
and what the strengths vary with that is added.
"""

from dataclasses import dataclass

import numpy as np

from rating.pooling.model import Categorised, Pooled, Tree
from rating.pooling.variance import Variance
from rating.typing import Floats, Ints
from rating.uncertainty.clusters import activity

ENTRIES_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Spread:
    """Covariance of the strengths of all categories.

    Attributes
    ----------
    covariance : ndarray of shape (n_categories, n_models, n_categories, n_models)
        Squared nats; of strengths that sum to zero in each category.
    df : float
        Degrees of freedom: effective voters less one; infinite where voters are not known.
    """

    covariance: Floats
    df: float


def spread(variance: Variance, votes: Categorised) -> Spread:
    """Find the covariance of pooled strengths.

    Voters are left out one at a time (CR3); where they are not known, votes.
    """
    best, cast = variance.best, Cast.of(variance.best.tree, votes)
    total = np.zeros((best.strengths.size,) * 2)
    for weight, fit in zip(variance.weights, variance.points, strict=True):
        off = (fit.strengths - best.strengths).ravel()
        total += weight * (covariance_at(fit, cast) + np.outer(off, off))
    c, k = best.strengths.shape
    df = np.inf if votes.data.voter is None else activity(votes.data).effective - 1
    return Spread(_centred(total.reshape(c, k, c, k)), df)


def _centred(covariance: Floats) -> Floats:
    covariance = covariance - covariance.mean(axis=1, keepdims=True)
    return np.asarray(covariance - covariance.mean(axis=3, keepdims=True))


def borrowed(fit: Pooled, mix: Floats) -> Floats:
    """Return the share of each strength on a mix that comes from votes in other categories.

    In matrices, the strengths of category c are ``(1 - R) x + R theta``: x of its own votes alone,
    ``R = (1 + tau^2 W)^-1`` with W its information, theta the mean over categories, each weighed
    by ``V = R W``. Votes outside the mix then have the weight ``sum_c q_c R_c (sum V)^-1 V_out``,
    of which this is the diagonal for strengths as distances from the average.

    Parameters
    ----------
    mix : ndarray of shape (n_categories,)
        Shares that sum to one.

    Returns
    -------
    ndarray of shape (n_models,)
        From 0 to 1.
    """
    levels, k = fit.curvature.categories, fit.tree.n_models
    drawn = np.tensordot(mix, levels.inverse, axes=1) / fit.tau.category**2
    outside = levels.left[mix == 0].sum(axis=0)
    weight = drawn @ np.linalg.solve(fit.curvature.whole, outside)
    weight = weight - weight.mean(axis=0)
    weight = weight - weight.mean(axis=1, keepdims=True)
    return np.asarray((np.diag(weight) / (1 - 1 / k)).clip(0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """What each voter cast, merged to rows of the tree, a voter after the other.

    Attributes
    ----------
    start : ndarray of shape (n_voters + 1,), or None
        Where the rows of each voter begin; None where voters are not known: a row is then as many
        votes of one score.
    row : ndarray of shape (n,), int64
        Of the tree.
    weight, weight_sq, score : ndarray of shape (n,)
        Sums of weights and of their squares, and what side A of the row won of the weight.
    """

    start: Ints | None
    row: Ints
    weight: Floats
    weight_sq: Floats
    score: Floats

    @classmethod
    def of(cls, tree: Tree, votes: Categorised) -> "Cast":
        """Merge the votes of each voter."""
        data = votes.data
        score = np.where(data.pairs[:, 0] > data.pairs[:, 1], 1 - data.score_a, data.score_a)
        first = np.rint(2 * score).astype(np.int64) if data.voter is None else data.voter
        key, place = np.unique(
            first.astype(np.int64) * len(tree.a) + tree.row, return_inverse=True
        )
        owner, row = np.divmod(key, len(tree.a))
        sums = [
            np.bincount(place, value, len(key)).astype(np.float64)
            for value in (data.weight, data.weight_sq, data.weight * score)
        ]
        start = None
        if data.voter is not None:
            start = np.r_[np.flatnonzero(np.diff(owner, prepend=-1)), len(owner)]
        return cls(start, row, *sums)


def covariance_at(fit: Pooled, cast: Cast) -> Floats:
    """Return the covariance at one fit, shape (n_categories * n_models,) * 2.

    Prompts, where they are a level, are eliminated throughout: a row's direction is what they let
    through of it.
    """
    levels = fit.curvature.categories
    c, k = fit.at.delta.shape
    share = levels.inverse / fit.tau.category**2
    root = np.linalg.inv(fit.curvature.whole) - np.full((k, k), 1 / k)
    bread = np.einsum("cij,jl,dml->cidm", share, root, share, optimize=True)
    bread[np.arange(c), :, np.arange(c)] += levels.inverse
    bread = _centred(bread)
    inside = _by_votes(fit, cast, bread) if cast.start is None else _by_voters(fit, cast, bread)
    for category, own in enumerate(_seen(fit)):
        at = slice(category * k, (category + 1) * k)
        inside[at, at] -= own
    flat = bread.reshape(c * k, c * k)
    return np.asarray(flat + flat @ inside @ flat)


def _seen(fit: Pooled) -> Floats:
    """Return the information of the votes in each category, (n_categories, n_models, n_models)."""
    tree, seen = fit.tree, []
    if not tree.prompts:
        return fit.curvature.categories.information
    for block, level in zip(tree.prompts, fit.curvature.prompts, strict=True):
        through = level.inverse / fit.tau.prompt**2
        seen.append(tree.upwards(block, through @ level.information @ through))
    return np.asarray(sum(seen))


def _directions(fit: Pooled, rows: Ints) -> Floats:
    """Return the direction of some rows of the tree, shape (n_rows, n_models)."""
    tree = fit.tree
    along = np.zeros((len(rows), tree.n_models))
    if not tree.prompts:
        at = np.arange(len(rows))
        along[at, tree.a[rows]], along[at, tree.b[rows]] = 1.0, -1.0
        return along
    for number, (block, level) in enumerate(zip(tree.prompts, fit.curvature.prompts, strict=True)):
        at = np.flatnonzero(tree.block[rows] == number)
        own = tree.place[rows[at]]
        node = block.at[own]
        through = level.inverse[node, block.a[own]] - level.inverse[node, block.b[own]]
        along[at[:, None], block.models[node]] = through / fit.tau.prompt**2
    return along


def _by_voters(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Return the meat of voters, each of whose scores is as without the pull it has on the fit."""
    assert cast.start is not None
    c, k = fit.at.delta.shape
    meat, batch = np.zeros((c * k, c * k)), []
    for first, last in zip(cast.start[:-1], cast.start[1:], strict=True):
        batch.append(_left_out(fit, cast, slice(first, last), bread))
        if len(batch) * c * k > ENTRIES_AT_ONCE:
            meat += _squared(batch)
            batch = []
    n = len(cast.start) - 1
    return (meat + _squared(batch)) * (1 - 1 / n)


def _squared(batch: list[Floats]) -> Floats | float:
    scores = np.array(batch)
    return scores.T @ scores if batch else 0.0


def _left_out(fit: Pooled, cast: Cast, own: slice, bread: Floats) -> Floats:
    """Return ``(1 - H_u H^-1)^-1 s_u`` of a voter, shape (n_categories * n_models,)."""
    tree, rows = fit.tree, cast.row[own]
    p = fit.probability[rows]
    along, category = _directions(fit, rows), tree.category[rows]
    names, where = np.unique(category, return_inverse=True)
    spread_out = np.zeros((len(rows), len(names), tree.n_models))
    spread_out[np.arange(len(rows)), where] = along
    flat = spread_out.reshape(len(rows), -1)
    inner = bread[names][:, :, names]
    pull = flat @ inner.reshape(flat.shape[1], -1) @ flat.T
    if tree.prompts:
        alike = tree.node[rows][:, None] == tree.node[rows]
        moved = along[:, tree.a[rows]] - along[:, tree.b[rows]]
        pull += np.where(alike, fit.tau.prompt**2 * moved, 0.0)
    weight = cast.weight[own]
    pulled = np.eye(len(rows)) - (weight * p * (1 - p))[:, None] * pull
    score = np.zeros((tree.n_categories, tree.n_models))
    score[names] = np.einsum(
        "i,icm->cm", np.linalg.solve(pulled, cast.score[own] - weight * p), spread_out
    )
    return score.ravel()


def _by_votes(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Return the meat of votes that are independent, each left out of the fit."""
    tree, (c, k) = fit.tree, fit.at.delta.shape
    meat = np.zeros((c, k, c, k))
    p = fit.probability[cast.row]
    residual = cast.score / cast.weight - p
    each = cast.weight_sq / cast.weight
    for category in range(c):
        own = np.flatnonzero(tree.category[cast.row] == category)
        for part in np.array_split(own, max(1, len(own) * k // ENTRIES_AT_ONCE)):
            rows = cast.row[part]
            along = _directions(fit, rows)
            pull = np.einsum("ij,jl,il->i", along, bread[category, :, category], along)
            if tree.prompts:
                at = np.arange(len(rows))
                pull += fit.tau.prompt**2 * (along[at, tree.a[rows]] - along[at, tree.b[rows]])
            left = 1 - each[part] * p[part] * (1 - p[part]) * pull
            value = cast.weight_sq[part] * (residual[part] / left) ** 2
            meat[category, :, category] += (along * value[:, None]).T @ along
    return np.asarray(meat.reshape(c * k, c * k))
