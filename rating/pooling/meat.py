"""The scores of voters, or votes, each as without the pull that it has on a pooled fit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from rating.pooling.model import Categorised, Pooled, Tree
from rating.typing import Floats, Ints

ENTRIES_AT_ONCE = 1 << 21

MOST_ROWS = 2000
"""Rows of one voter that are left out with the pull that they have through their prompts."""


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


def meat_of_voters(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Sum ``z z'`` over voters, ``z = (1 - H_u H^-1)^-1 s_u`` the score of one left out (CR3).

    Parameters
    ----------
    bread : ndarray of shape (n_categories, n_models, n_categories, n_models)
        ``H^-1`` of the strengths by category, prompts eliminated.

    Returns
    -------
    ndarray of shape (n_categories * n_models,) * 2
    """
    assert cast.start is not None
    size = fit.at.delta.size
    meat, n = np.zeros((size, size)), len(cast.start) - 1
    for rows in _alike(cast.start, size):
        scores = _left_out(fit, cast, rows, bread)
        meat += (scores.T @ scores).toarray()
    return meat * (1 - 1 / n)


def _alike(start: Ints, size: int) -> Iterator[Ints]:
    """Yield the rows of voters who have equally many, shape (some voters, n)."""
    length = np.diff(start)
    for n in np.unique(length).tolist():
        first = start[:-1][length == n]
        at_once = max(1, ENTRIES_AT_ONCE // (n * max(size, n)))
        for part in np.array_split(first, -(-len(first) // at_once)):
            yield part[:, None] + np.arange(n)


def _left_out(fit: Pooled, cast: Cast, own: Ints, bread: Floats) -> "scipy.sparse.csr_array":
    """Return the scores of some voters, each left out of the fit, a voter a row."""
    tree, rows = fit.tree, cast.row[own]
    voters, n = rows.shape
    p, weight = fit.probability[rows], cast.weight[own]
    residual, curve = cast.score[own] - weight * p, weight * p * (1 - p)
    along = _directions(fit, rows.ravel()).reshape(voters, n, -1)
    if n > (MOST_ROWS if tree.prompts else fit.at.delta.size):
        return _of_busy(fit, rows, residual, curve, along, bread)
    left = np.eye(n) - curve[:, :, None] * _pull(fit, rows, along, bread)
    value = np.linalg.solve(left, residual[..., None]) * along
    return _by_strength(tree, rows, value)


def _by_strength(tree: Tree, rows: Ints, value: Floats) -> "scipy.sparse.csr_array":
    """Sum values of shape (n_voters, n, n_models) by voter, category and model."""
    voters, k = len(rows), tree.n_models
    voter, row, model = np.nonzero(value)
    column = tree.category[rows[voter, row]] * k + model
    shape = (voters, tree.n_categories * k)
    return scipy.sparse.csr_array((value[voter, row, model], (voter, column)), shape=shape)


def _pull(fit: Pooled, rows: Ints, along: Floats, bread: Floats) -> Floats:
    """Return ``x_i' H^-1 x_j`` of each voter's rows, shape (n_voters, n, n)."""
    tree = fit.tree
    category = tree.category[rows]
    if not tree.prompts:
        size = fit.at.delta.size
        first, second = (category * tree.n_models + side[rows] for side in (tree.a, tree.b))
        sides, flat = ((first, 1.0), (second, -1.0)), bread.reshape(size, size)
        terms = (x * y * flat[i[:, :, None], j[:, None, :]] for i, x in sides for j, y in sides)
        return np.asarray(sum(terms))
    moved = np.empty((*rows.shape, fit.at.delta.size))
    placed = np.zeros((*rows.shape, tree.n_categories, tree.n_models))
    for one in np.unique(category):
        at = category == one
        moved[at] = along[at] @ bread[one].reshape(tree.n_models, -1)
        placed[at, one] = along[at]
    pull = moved @ placed.reshape(moved.shape).transpose(0, 2, 1)
    voter, row = np.arange(len(rows))[:, None, None], np.arange(rows.shape[1])[:, None]
    node, a, b = tree.node[rows], tree.a[rows], tree.b[rows]
    own = along[voter, row, a[:, None, :]] - along[voter, row, b[:, None, :]]
    alike = node[:, :, None] == node[:, None, :]
    return np.asarray(pull + np.where(alike, fit.tau.prompt**2 * own, 0.0))


def _of_busy(
    fit: Pooled, rows: Ints, residual: Floats, curve: Floats, along: Floats, bread: Floats
) -> "scipy.sparse.csr_array":
    """Return the scores of voters with more rows than there are strengths, solved in these."""
    tree, size = fit.tree, fit.at.delta.size
    k, scores = tree.n_models, []
    plain = _by_strength(tree, rows, residual[..., None] * along).toarray()
    for voter, score in enumerate(plain):
        information = np.zeros((size, size))
        category = tree.category[rows[voter]]
        for one in np.unique(category):
            own, place = along[voter][category == one], slice(one * k, (one + 1) * k)
            weighed = own * curve[voter][category == one][:, None]
            information[place, place] = weighed.T @ own
        opened = np.eye(size) - information @ bread.reshape(size, size)
        scores.append(np.linalg.solve(opened, score))
    return scipy.sparse.csr_array(np.array(scores))


def meat_of_votes(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Sum ``z z'`` over votes that are independent, each left out: see `meat_of_voters`."""
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
