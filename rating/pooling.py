"""Partial pooling: Bradley-Terry strengths by category, shrunken towards those of all categories.

A tie is half a win. On prompt t of category c the log-odds of i over j are::

    theta[i] - theta[j] + delta[c, i] - delta[c, j] + eps[t, i] - eps[t, j]

with ``delta ~ N(0, tau ** 2)`` and ``eps ~ N(0, tau_prompt ** 2)``; theta is free, of sum zero.
`Tree` holds the votes, `fit_pooled` fits at given standard deviations, and `fitted_variance`
estimates these by marginal likelihood (Laplace). `spread` gives the covariance of the strengths,
`oddness` tests each category against the others, and `on_unseen_prompts` cross-validates.

A prompt belongs to one category, so both levels are eliminated block by block: no matrix has more
rows than there are models.

References
----------
.. [1] A. Gelman and J. Hill, Data Analysis Using Regression and Multilevel/Hierarchical Models,
   2007, chapters 12-14 (partial pooling).
.. [2] L. Tierney and J. B. Kadane, "Accurate approximations for posterior moments and marginal
   densities", JASA 81(393), 1986, pp. 82-86 (the Laplace approximation).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from rating.comparisons import Comparisons, Votes
from rating.covariance import activity
from rating.errors import ConvergenceError, DataError
from rating.leave_out import influence_variance, quantile
from rating.typing import Floats, Integers, Ints

# Penalised fit


MAX_STEPS = 100
MAX_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Categorised:
    """Votes with a category each.

    Attributes
    ----------
    data : Comparisons
        All of them. A prompt that is in two categories counts as two.
    categories : tuple of str
    category : ndarray of shape (n_cells,), int64
        Position in ``categories`` of each cell of ``data``.
    """

    data: Comparisons
    categories: tuple[str, ...]
    category: Ints

    @classmethod
    def of(cls, groups: Mapping[str, Votes]) -> "Categorised":
        """Put the votes of categories together; one without a vote of any weight is excluded.

        Voters, and prompts, are known if they are in every category.

        Raises
        ------
        DataError
            If there is no vote, or the votes carry style.
        """
        there = {name: votes for name, votes in groups.items() if votes.data.weight.any()}
        if not there:
            raise DataError("There are no votes to pool.")
        parts = [votes.data.subset(votes.data.weight > 0) for votes in there.values()]
        if any(part.features is not None for part in parts):
            raise DataError("Categories are pooled without style: leave it out.")
        models = sorted({model for part in parts for model in part.models})
        place = {model: code for code, model in enumerate(models)}
        sides = [np.array([place[m] for m in part.models])[part.pairs] for part in parts]
        category = np.repeat(np.arange(len(parts)), [len(part.votes) for part in parts])
        voters = [
            votes.voters or tuple(map(str, range(votes.data.n_voters))) for votes in there.values()
        ]
        voter, n_voters = _joined(voters, [part.voter for part in parts])
        prompt, n_prompts = _joined(
            [[(c, t) for t in range(part.n_prompts)] for c, part in enumerate(parts)],
            [part.prompt for part in parts],
        )
        whole = Comparisons(
            models=tuple(models),
            pairs=np.concatenate(sides),
            outcome=np.concatenate([part.outcome for part in parts]),
            votes=np.concatenate([part.votes for part in parts]),
            weight=np.concatenate([part.weight for part in parts]),
            weight_sq=np.concatenate([part.weight_sq for part in parts]),
            voter=voter,
            n_voters=n_voters,
            n_self=sum(part.n_self for part in parts),
            prompt=prompt,
            n_prompts=n_prompts,
        )
        return cls(whole, tuple(there), category)

    @cached_property
    def votes(self) -> Floats:
        """Votes in each category, shape (n_categories,), by weight."""
        votes = np.bincount(self.category, self.data.weight, len(self.categories))
        return votes.astype(np.float64)


def _joined(
    names: Sequence[Sequence[object]], codes: Sequence[Integers | None]
) -> tuple[Ints | None, int]:
    """Give the clusters of all parts numbers by name; None where some part has none."""
    if any(part is None for part in codes):
        return None, 0
    place: dict[object, int] = {}
    of_part = [np.array([place.setdefault(name, len(place)) for name in part]) for part in names]
    rows = [code[part] for code, part in zip(of_part, codes, strict=True)]
    return np.concatenate(rows), len(place)


class Tau(NamedTuple):
    """Standard deviations in nats: of categories, and of prompts within them (0: none)."""

    category: float
    prompt: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Nodes of one level that hold equally many models.

    Attributes
    ----------
    node : ndarray of shape (n,), int64
    models : ndarray of shape (n, m), int64
        The models of each.
    row : ndarray of shape (n_rows,), int64
        The rows that lie in them.
    at, a, b : ndarray of shape (n_rows,), int64
        The block of each row, and the places of both sides in it.
    """

    node: Ints
    models: Ints
    row: Ints
    at: Ints
    a: Ints
    b: Ints

    def laplacians(self, value: Floats) -> Floats:
        """Sum ``value (e_a - e_b)(e_a - e_b)'`` by block, shape (n, m, m)."""
        n, m = self.models.shape
        value = value[self.row]
        place = (self.at * m + self.a) * m + self.b
        table = np.bincount(place, value, n * m * m).reshape(n, m, m)
        table = table + table.transpose(0, 2, 1)
        result = -table
        result[:, np.arange(m), np.arange(m)] += table.sum(axis=2)
        return np.asarray(result)

    def sums(self, value: Floats) -> Floats:
        """Sum ``value (e_a - e_b)`` by block, shape (n, m)."""
        n, m = self.models.shape
        value = value[self.row]
        up = np.bincount(self.at * m + self.a, value, n * m)
        return np.asarray(up - np.bincount(self.at * m + self.b, value, n * m)).reshape(n, m)

    def gaps(self, x: Floats) -> Floats:
        """Return ``x[a] - x[b]`` of the rows, x of shape (n, m)."""
        return np.asarray(x[self.at, self.a] - x[self.at, self.b])


def _blocks(node: Ints, a: Ints, b: Ints, n_models: int) -> list[_Blocks]:
    """Part the nodes by how many models they hold; every row lies in a node."""
    here, of_side = np.unique(np.r_[node, node] * n_models + np.r_[a, b], return_inverse=True)
    owner, model = np.divmod(here, n_models)
    start = np.searchsorted(owner, np.arange(node.max(initial=-1) + 2))
    size = np.diff(start)
    side_a, side_b = np.split(of_side, 2)
    blocks = []
    for m in np.unique(size[size > 0]):
        nodes = np.flatnonzero(size == m)
        row = np.flatnonzero(size[node] == m)
        first = start[node[row]]
        models = model[start[nodes][:, None] + np.arange(m)]
        at = np.searchsorted(nodes, node[row])
        blocks.append(_Blocks(nodes, models, row, at, side_a[row] - first, side_b[row] - first))
    return blocks


@dataclass(frozen=True, eq=False)
class Tree:
    """Votes merged to rows of one category, one prompt if prompts are a level, and one pair.

    Attributes
    ----------
    n_models, n_categories : int
    a, b, category : ndarray of shape (n_rows,), int64
    weight, score : ndarray of shape (n_rows,)
        All votes, and what side A won of them.
    prompts : list of Blocks
        Empty where prompts are no level.
    owner : ndarray of shape (n_prompts,), int64
        The category of each prompt; of itself where prompts are no level.
    node : ndarray of shape (n_rows,), int64
        Its prompt, or category.
    block, place : ndarray of shape (n_rows,), int64
        Which of ``prompts`` the row lies in, and which of its rows it is.
    row : ndarray of shape (n_cells,), int64
        The row of each cell of the votes.
    """

    n_models: int
    n_categories: int
    a: Ints
    b: Ints
    category: Ints
    weight: Floats
    score: Floats
    prompts: list[_Blocks]
    owner: Ints
    node: Ints
    block: Ints
    place: Ints
    row: Ints

    @classmethod
    def of(cls, votes: Categorised, *, nested: bool) -> "Tree":
        """Merge votes; nested: prompts are a level of their own.

        Raises
        ------
        DataError
            If prompts are to be a level and are not known.
        """
        data = votes.data
        if nested and data.prompt is None:
            raise DataError("The votes name no prompts that could be a level of their own.")
        k = data.n_models
        node: Ints = votes.category
        if nested and data.prompt is not None:
            node = data.prompt.astype(np.int64)
        left, right = data.pairs.astype(np.int64).T
        swap = left > right
        a, b = np.where(swap, right, left), np.where(swap, left, right)
        score = np.where(swap, 1 - data.score_a, data.score_a)
        key, row = np.unique((node * k + a) * k + b, return_inverse=True)
        owner = np.zeros(int(node.max()) + 1, dtype=np.int64)
        owner[node] = votes.category
        rest, b = np.divmod(key, k)
        node, a = np.divmod(rest, k)
        prompts = _blocks(node, a, b, k) if nested else []
        block, place = np.zeros((2, len(key)), dtype=np.int64)
        for number, one in enumerate(prompts):
            block[one.row], place[one.row] = number, np.arange(len(one.row))
        return cls(
            n_models=k,
            n_categories=len(votes.categories),
            a=a,
            b=b,
            category=owner[node],
            weight=np.bincount(row, data.weight, len(key)).astype(np.float64),
            score=np.bincount(row, data.weight * score, len(key)).astype(np.float64),
            prompts=prompts,
            owner=owner,
            node=node,
            block=block,
            place=place,
            row=row,
        )

    @cached_property
    def whole(self) -> _Blocks:
        """All rows as lying in their categories, each of which holds every model."""
        models = np.tile(np.arange(self.n_models), (self.n_categories, 1))
        row = np.arange(len(self.a))
        return _Blocks(np.arange(self.n_categories), models, row, self.category, self.a, self.b)

    def gap(self, at: "Point") -> Floats:
        """Return the log-odds of side A in each row."""
        gap = self.whole.gaps(at.theta + at.delta)
        for block, x in zip(self.prompts, at.eps, strict=True):
            gap[block.row] += block.gaps(x)
        return gap

    def upwards(self, block: _Blocks, value: Floats) -> Floats:
        """Sum a value of each prompt's models, or pairs of them, by category."""
        k = self.n_models
        place = self.owner[block.node][:, None] * k + block.models
        if value.ndim == 3:
            place = place[:, :, None] * k + block.models[:, None, :]
        shape = (self.n_categories, k, k)[: value.ndim]
        sums = np.bincount(place.ravel(), value.ravel(), int(np.prod(shape)))
        return sums.astype(np.float64).reshape(shape)

    def downwards(self, block: _Blocks, value: Floats) -> Floats:
        """Return what a value by category is for each prompt's models."""
        return np.asarray(value[self.owner[block.node][:, None], block.models])


class Point(NamedTuple):
    """Strengths over all categories, deviations of categories and of prompts, in nats.

    Of shapes (n_models,), (n_categories, n_models) and, for each of `Tree.prompts`, (n, m).
    """

    theta: Floats
    delta: Floats
    eps: tuple[Floats, ...]

    def moved(self, step: "Point", size: float) -> "Point":
        """Return the point after a step."""
        eps = tuple(x + size * y for x, y in zip(self.eps, step.eps, strict=True))
        return Point(self.theta + size * step.theta, self.delta + size * step.delta, eps)


class _Level(NamedTuple):
    """A level of deviations, eliminated from the Hessian; all of shape (n, m, m).

    Attributes
    ----------
    information : ndarray
        On the deviations, without the penalty.
    inverse : ndarray
        Of the information with the penalty.
    left : ndarray
        Information that is left to the level above.
    log_det : float
        Of the information with the penalty, less that of the penalty.
    """

    information: Floats
    inverse: Floats
    left: Floats
    log_det: float

    @classmethod
    def of(cls, information: Floats, tau: float) -> "_Level":
        """Eliminate deviations of variance ``tau ** 2``."""
        opened = np.eye(information.shape[-1]) + tau**2 * information
        inverse = _symmetric(np.asarray(np.linalg.inv(opened), np.float64)) * tau**2
        left: Floats = inverse @ information
        log_det = float(np.linalg.slogdet(opened)[1].sum())
        return cls(information, inverse, _symmetric(left) / tau**2, log_det)

    def solve(self, right: Floats, above: Floats | None = None) -> Floats:
        """Return the deviations' own step, those above having made theirs; shapes (n, m)."""
        if above is not None:
            right = right + _times(self.information, above)
        return -_times(self.inverse, right)


def _symmetric(matrices: Floats) -> Floats:
    return np.asarray((matrices + matrices.transpose(0, 2, 1)) / 2)


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


@dataclass(frozen=True, slots=True, eq=False)
class _Curvature:
    """The penalised Hessian, both levels eliminated.

    Attributes
    ----------
    prompts : list of Level
    categories : Level
    whole : ndarray of shape (n_models, n_models)
        What is left of it for the strengths over all categories; ones over the number of models
        are added, which fills the direction in which all move together.
    """

    prompts: list[_Level]
    categories: _Level
    whole: Floats

    @classmethod
    def of(cls, tree: Tree, tau: Tau, curve: Floats) -> "_Curvature":
        """Eliminate prompts, then categories; ``curve`` is the information of each row."""
        prompts = [_Level.of(block.laplacians(curve), tau.prompt) for block in tree.prompts]
        if prompts:
            parts = zip(tree.prompts, prompts, strict=True)
            information = sum(tree.upwards(block, level.left) for block, level in parts)
        else:
            information = tree.whole.laplacians(curve)
        categories = _Level.of(np.asarray(information), tau.category)
        k = tree.n_models
        return cls(prompts, categories, categories.left.sum(axis=0) + np.full((k, k), 1 / k))

    @property
    def log_det(self) -> float:
        """Log of the determinant, less that of the penalties."""
        below = sum(level.log_det for level in (*self.prompts, self.categories))
        return below + float(np.linalg.slogdet(self.whole)[1])

    def step(self, tree: Tree, tau: Tau, slope: Floats, at: Point) -> tuple[Point, float]:
        """Return Newton's step, and the largest entry of the gradient."""
        gradient = tree.whole.sums(slope)
        worst = [gradient.sum(axis=0), gradient + at.delta / tau.category**2]
        rights = []
        for block, level, x in zip(tree.prompts, self.prompts, at.eps, strict=True):
            rights.append(block.sums(slope) + x / tau.prompt**2)
            explained = _times(level.information, level.solve(rights[-1]))
            gradient = gradient + tree.upwards(block, explained)
        right = gradient + at.delta / tau.category**2
        left = gradient + _times(self.categories.information, self.categories.solve(right))
        theta = -np.linalg.solve(self.whole, left.sum(axis=0))
        delta = self.categories.solve(right, np.broadcast_to(theta, right.shape))
        parts = zip(tree.prompts, self.prompts, rights, strict=True)
        eps = (level.solve(r, tree.downwards(block, theta + delta)) for block, level, r in parts)
        largest = max(float(np.abs(x).max(initial=0.0)) for x in (*worst, *rights))
        return Point(theta, delta, tuple(eps)), largest


@dataclass(frozen=True, eq=False)
class Pooled:
    """A fit at given standard deviations.

    Attributes
    ----------
    tau : Tau
    at : Point
    curvature : Curvature
    log_likelihood : float
        Without the penalties.
    log_marginal : float
        Laplace's approximation of the log of the integrated likelihood, except a constant.
    """

    tree: Tree
    tau: Tau
    at: Point
    curvature: _Curvature
    log_likelihood: float
    log_marginal: float

    @cached_property
    def strengths(self) -> Floats:
        """Strengths by category in nats, each summing to zero, (n_categories, n_models)."""
        beta = self.at.theta + self.at.delta
        return np.asarray(beta - beta.mean(axis=1, keepdims=True))

    @cached_property
    def probability(self) -> Floats:
        """Probability of side A in each row of the tree, on its prompt."""
        return np.asarray(scipy.special.expit(self.tree.gap(self.at)))

    @cached_property
    def overall(self) -> Floats:
        """Strengths over all categories in nats, summing to zero, (n_models,)."""
        return np.asarray(self.at.theta - self.at.theta.mean())


def fit_pooled(tree: Tree, tau: Tau, start: Point | None = None) -> Pooled:
    """Fit by penalised maximum likelihood at given standard deviations, with Newton's method.

    Parameters
    ----------
    tree : Tree
    tau : Tau
        Above 0; that of prompts counts where these are a level.
    start : Point, optional

    Raises
    ------
    ConvergenceError
        If the gradient does not vanish, as where the votes identify no rating.
    """
    k, close = tree.n_models, max(1e-9, 1e-15 * float(tree.weight.sum()))
    eps = tuple(np.zeros(block.models.shape) for block in tree.prompts)
    at = start or Point(np.zeros(k), np.zeros((tree.n_categories, k)), eps)
    for _ in range(MAX_STEPS):
        p = scipy.special.expit(tree.gap(at))
        curvature = _Curvature.of(tree, tau, tree.weight * p * (1 - p))
        step, worst = curvature.step(tree, tau, tree.weight * p - tree.score, at)
        if worst <= close:
            loss, penalty = _loss(tree, at), _penalty(tau, at)
            marginal = -loss - penalty - curvature.log_det / 2
            return Pooled(tree, tau, at, curvature, -loss, marginal)
        before = _loss(tree, at) + _penalty(tau, at)
        new = at
        for halvings in range(MAX_HALVINGS):
            new = at.moved(step, 0.5**halvings)
            if _loss(tree, new) + _penalty(tau, new) <= before + 1e-12 * abs(before):
                break
        at = new
    raise ConvergenceError(f"The pooled fit has not converged after {MAX_STEPS} Newton steps.")


def _loss(tree: Tree, at: Point) -> float:
    gap = tree.gap(at)
    return float(tree.weight @ np.logaddexp(0.0, -gap) + (tree.weight - tree.score) @ gap)


def _penalty(tau: Tau, at: Point) -> float:
    penalty = float((at.delta**2).sum()) / tau.category**2
    penalty += sum(float((x**2).sum()) / tau.prompt**2 for x in at.eps)
    return penalty / 2


# Scores of voters and votes, each excluded


ENTRIES_AT_ONCE = 1 << 21

MOST_ROWS = 2000
"""Rows of one voter that are excluded with the pull that they have through their prompts."""


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


def _meat_of_voters(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Sum ``z z'`` over voters, ``z = (1 - H_u H^-1)^-1 s_u`` the score of one excluded (CR3).

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
    """Return the scores of some voters, each excluded from the fit, a voter a row."""
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


def _meat_of_votes(fit: Pooled, cast: Cast, bread: Floats) -> Floats:
    """Sum ``z z'`` over votes that are independent, each excluded: see `_meat_of_voters`."""
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


# Marginal likelihood of the standard deviations


SMALLEST, LARGEST = 1e-3, 5.0
"""Standard deviations that differ from none, and from no bound at all, in nats."""
GRID = 9
POINTS = 7
"""Standard deviations that intervals are averaged over."""
FAR = 4.0
"""Log marginal likelihood below the highest, up to which they are."""
_PRECISION = 2e-3


@dataclass(frozen=True, eq=False)
class Variance:
    """What the votes say of the standard deviation of categories.

    Attributes
    ----------
    best : Pooled
        At the highest marginal likelihood. `SMALLEST` stands for no deviation.
    tau : float
        Nats; 0 where the likelihood is highest without deviations.
    lower, upper : float
        Profile interval, in nats: 0 where no deviation lies in it, infinite where it has no end.
        The standard deviation of prompts stays at its estimate.
    gain : float
        Log marginal likelihood above that without deviations of categories.
    points : tuple of Pooled
        Fits at standard deviations evenly spaced, each as likely as any other beforehand.
    weights : ndarray of shape (n_points,)
        Their shares of the marginal likelihood.
    """

    best: Pooled
    tau: float
    lower: float
    upper: float
    gain: float
    points: tuple[Pooled, ...]
    weights: Floats


def fitted_variance(tree: Tree, *, level: float = 0.95) -> Variance:
    """Choose the standard deviations by Laplace's marginal likelihood.

    A logarithmic grid, then golden sections: of categories with those of prompts held, of prompts
    with those of categories held, and again.

    Raises
    ------
    ConvergenceError
        If a fit is not reached.
    """
    search = _Search(tree)
    prompt = 0.0
    category = search.best_category(prompt) if not tree.prompts else 0.3
    for _ in range(2 if tree.prompts else 0):
        prompt = search.best_prompt(category)
        category = search.best_category(prompt)
    best = search.at(category, prompt)
    none = search.at(SMALLEST, search.best_prompt(SMALLEST) if tree.prompts else 0.0)
    if none.log_marginal >= best.log_marginal:
        best, prompt = none, none.tau.prompt
    drop = float(scipy.special.chdtri(1, 1 - level)) / 2
    lower = search.end(best, drop, SMALLEST)
    upper = search.end(best, drop, LARGEST)
    first, last = search.end(best, FAR, SMALLEST), search.end(best, FAR, LARGEST)
    taus = first + (last - first) * (np.arange(POINTS) + 0.5) / POINTS
    points = tuple(search.at(float(tau), prompt) for tau in taus)
    share = np.exp([point.log_marginal - best.log_marginal for point in points])
    return Variance(
        best,
        0.0 if best is none else best.tau.category,
        0.0 if lower == SMALLEST else lower,
        np.inf if upper == LARGEST else upper,
        best.log_marginal - none.log_marginal,
        points,
        np.asarray(share / share.sum()),
    )


class _Search:
    """Fits of one tree, each started where the last one ended; only likelihoods are remembered."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._start: Point | None = None
        self._log_marginal: dict[Tau, float] = {}

    def at(self, category: float, prompt: float) -> Pooled:
        fit = fit_pooled(self._tree, Tau(category, prompt), self._start)
        self._start = fit.at
        self._log_marginal[fit.tau] = fit.log_marginal
        return fit

    def log_marginal(self, category: float, prompt: float) -> float:
        known = self._log_marginal.get(Tau(category, prompt))
        return self.at(category, prompt).log_marginal if known is None else known

    def best_category(self, prompt: float) -> float:
        return _highest(lambda tau: self.log_marginal(tau, prompt))

    def best_prompt(self, category: float) -> float:
        return _highest(lambda tau: self.log_marginal(category, tau))

    def end(self, best: Pooled, drop: float, bound: float) -> float:
        """Return where the likelihood has dropped so far, on the way to a bound; else that."""

        def above(log_tau: float) -> float:
            value = self.log_marginal(float(np.exp(log_tau)), best.tau.prompt)
            return value - best.log_marginal + drop

        if best.tau.category == bound or above(np.log(bound)) >= 0:
            return bound
        ends = np.log(best.tau.category), np.log(bound)
        return float(np.exp(scipy.optimize.brentq(above, *ends, xtol=_PRECISION)))


def _highest(value: Callable[[float], float]) -> float:
    """Return where a function of a standard deviation is highest."""
    grid = np.geomspace(SMALLEST, LARGEST, GRID)
    best = int(np.argmax([value(float(tau)) for tau in grid]))
    low, high = np.log(grid[[max(best - 1, 0), min(best + 1, GRID - 1)]])
    fine = scipy.optimize.minimize_scalar(
        lambda log_tau: -value(float(np.exp(log_tau))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": _PRECISION},
    )
    return float(np.exp(fine.x))


# Covariance of the strengths


TAUS = 30
"""Standard deviations that tests of odd categories are averaged over."""
LEAST_DF, MOST_DF = 1e-3, 1e6


def spread(variance: Variance, votes: Categorised) -> tuple[Floats, float]:
    """Find the covariance of the strengths of all categories, and its degrees of freedom.

    Voters are omitted one at a time (CR3); where they are not known, votes. `covariance_at` is
    averaged over the standard deviation of categories by marginal likelihood, and what the
    strengths vary with that is added.

    Returns
    -------
    ndarray of shape (n_categories, n_models, n_categories, n_models)
        Squared nats; of strengths that sum to zero in each category.
    float
        Effective voters less one; infinite where voters are not known.
    """
    best, cast = variance.best, Cast.of(variance.best.tree, votes)
    total = np.zeros((best.strengths.size,) * 2)
    for weight, fit in zip(variance.weights, variance.points, strict=True):
        off = (fit.strengths - best.strengths).ravel()
        total += weight * (covariance_at(fit, cast) + np.outer(off, off))
    c, k = best.strengths.shape
    df = np.inf if votes.data.voter is None else activity(votes.data).effective - 1
    return _centred(total.reshape(c, k, c, k)), df


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


def covariance_at(fit: Pooled, cast: Cast) -> Floats:
    """Return the covariance at one fit, shape (n_categories * n_models,) * 2.

    ``H^-1 (M + P) H^-1``, with H the penalised Hessian, P the penalty, and M the sum of ``z z'``
    over voters, each omitted in turn: P stands for the deviations that other categories and
    prompts would have shown, which is the bias of shrinkage. Prompts, where they are a level, are
    eliminated throughout: a row's direction is what they let through of it.
    """
    bread, extra = _bread_and_extra(fit, cast)
    return np.asarray(bread + bread @ extra @ bread)


def _bread_and_extra(fit: Pooled, cast: Cast) -> tuple[Floats, Floats]:
    """Return the inverse Hessian, and what the scores vary more than independent votes say."""
    levels = fit.curvature.categories
    c, k = fit.at.delta.shape
    share = levels.inverse / fit.tau.category**2
    root = np.linalg.inv(fit.curvature.whole) - np.full((k, k), 1 / k)
    bread = np.einsum("cij,jl,dml->cidm", share, root, share, optimize=True)
    bread[np.arange(c), :, np.arange(c)] += levels.inverse
    bread = _centred(bread)
    meat = _meat_of_votes if cast.start is None else _meat_of_voters
    extra = meat(fit, cast, bread)
    for category, own in enumerate(_seen(fit)):
        at = slice(category * k, (category + 1) * k)
        extra[at, at] -= own
    return bread.reshape(c * k, c * k), extra


def _seen(fit: Pooled) -> Floats:
    """Return the information of the votes in each category, (n_categories, n_models, n_models)."""
    tree, seen = fit.tree, []
    if not tree.prompts:
        return fit.curvature.categories.information
    for block, level in zip(tree.prompts, fit.curvature.prompts, strict=True):
        through = level.inverse / fit.tau.prompt**2
        seen.append(tree.upwards(block, through @ level.information @ through))
    return np.asarray(sum(seen))


# Test of single categories


def oddness(fit: Pooled, votes: Categorised) -> Floats:
    """Test whether models differ more between a category and the others than among the others.

    Let s_c be the score of category c at the mean strengths of the other categories, H_c its
    information, and ``A_c = (I + tau^2 H_c)^-1``. The statistic ``|A_c s_c|^2`` is the score
    statistic of a larger standard deviation in this category: up to ``tau^4`` the squared length
    of its deviations, shrunken towards the other categories alone. It is compared with F by the
    mean and variance that it has where nothing is odd: the variance of s_c is its noise (voters
    deleted one at a time, CR3), ``tau^2 H_c^2`` and that of the other categories' mean. The
    denominator has the effective voters of the category less one as degrees of freedom. The p is
    averaged over tau, by the marginal likelihood of the other categories.

    Returns
    -------
    ndarray of shape (n_categories,)
        p times the number of categories (Bonferroni), at most 1; 1 with fewer than three
        categories, and where the others identify no rating.

    References
    ----------
    .. [1] X. Lin, "Variance component testing in generalised linear models with random effects",
       Biometrika 84(2), 1997, pp. 309-326.
    """
    information, (c, k) = fit.curvature.categories.information, fit.at.delta.shape
    others = information.sum(axis=0) - information
    tested = np.linalg.matrix_rank(others, hermitian=True) >= k - 1
    if c < 3 or not tested.any():
        return np.ones(c)
    each, flat = np.arange(c), np.full((k, k), 1 / k)
    noise = _bread_and_extra(fit, Cast.of(fit.tree, votes))[1].reshape(c, k, c, k)
    noise[each, :, each] += information
    score = (information @ (fit.at.theta + fit.at.delta)[..., None])[..., 0]
    score += fit.at.delta / fit.tau.category**2  # now at strengths of zero, to second order
    df = np.full(c, MOST_DF)
    if votes.data.voter is not None:
        parts = (votes.data.subset(votes.category == one) for one in each)
        df = np.array([min(MOST_DF, activity(part).effective - 1) for part in parts])
    likely, p = np.empty((2, TAUS, c))
    for row, tau in enumerate(np.geomspace(SMALLEST, LARGEST, TAUS)):
        opened = np.eye(k) + tau**2 * information
        through = np.asarray(np.linalg.inv(opened))
        left, pull = through @ information, (through @ score[..., None])[..., 0]
        total = np.where(tested[:, None, None], left.sum(axis=0) - left, np.eye(k)) + flat
        root, pulls = np.linalg.inv(total) - flat, pull.sum(axis=0) - pull
        mean = (root @ pulls[..., None])[..., 0]
        alone = tau**2 * (score * pull).sum(axis=1) - np.linalg.slogdet(opened)[1]
        joint = (mean * pulls).sum(axis=1) - np.linalg.slogdet(total)[1]
        likely[row] = (alone.sum() - alone + joint) / 2 + np.log(tau)  # tau flat, on a log grid
        moved = (through @ noise.reshape(c, k, c * k)).reshape(c, k, c, k)
        within = np.einsum("cidj,dlj->cdil", moved, through, optimize=True)
        rest = within.sum(axis=(0, 1)) - within.sum(axis=0) - within.sum(axis=1)
        rest += within[each, each] + tau**2 * ((left @ left).sum(axis=0) - left @ left)
        by = information @ root
        cross = by @ (moved.sum(axis=0).transpose(1, 0, 2) - moved[each, :, each])
        variance = noise[each, :, each] + tau**2 * information @ information
        variance += by @ rest @ by.transpose(0, 2, 1) - cross - cross.transpose(0, 2, 1)
        odd = through @ (score - (information @ mean[..., None])[..., 0])[..., None]
        spread = through @ variance @ through
        first, second = np.einsum("cii->c", spread), np.einsum("cij,cji->c", spread, spread)
        ratio = (odd**2).sum(axis=(1, 2)) / first
        p[row] = scipy.special.fdtrc(first**2 / second, np.maximum(df, LEAST_DF), ratio)
    weight = np.exp(likely - likely.max(axis=0))
    return np.where(tested, np.minimum(1.0, c * (weight * p).sum(axis=0) / weight.sum(axis=0)), 1)


# Cross-validation on unseen prompts


FOLDS = 5
DRAWS = 3
"""How often prompts are dealt out again; losses are averaged."""

FEWEST_PROMPTS = 20
"""Prompts from which an interval over them is worth something."""

TOGETHER, APART = Tau(1e-3), Tau(20.0)
"""One board for all categories; a board of its own for each."""


@dataclass(frozen=True, slots=True)
class Excess:
    """Log loss of boards a vote, less that of one board for all, with its interval; in nats."""

    value: float
    lower: float
    upper: float

    @property
    def is_worse(self) -> bool:
        """Whether one board for all is shown to be better."""
        return self.lower > 0

    @property
    def is_better(self) -> bool:
        """Whether these boards are shown to be better than one for all."""
        return self.upper < 0


@dataclass(frozen=True, slots=True)
class Unseen:
    """What boards of categories are worth on prompts that they were not fitted to.

    Attributes
    ----------
    prompts : int
    one : float
        Log loss a vote of one board for all categories, in nats.
    apart : Excess
        Of a board for each category by itself.
    pooled : Excess
        Of pooled boards.
    """

    prompts: int
    one: float
    apart: Excess
    pooled: Excess

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def on_unseen_prompts(fit: Pooled, votes: Categorised, rng: np.random.Generator) -> Unseen | None:
    """Hold pooled boards, boards apart and one board against votes on prompts excluded.

    Five folds of whole prompts, dealt out three times; the standard deviations stay those of all
    votes. Intervals of 95 % are over prompts: of each one's sum of differences (a cluster of
    votes), with Student's t.

    Returns
    -------
    Unseen or None
        None without prompts, with fewer than `FEWEST_PROMPTS`, and where a part of them
        identifies no rating.
    """
    data = votes.data
    if data.prompt is None or data.n_prompts < FEWEST_PROMPTS:
        return None
    fits = [(TOGETHER, False), (APART, False), (fit.tau, bool(fit.tree.prompts))]
    even = np.arange(data.n_prompts) % FOLDS
    try:
        drawn = [losses(votes, fits, rng.permutation(even)) for _ in range(DRAWS)]
    except ConvergenceError:
        return None
    one, apart, pooled = np.mean(drawn, axis=0)
    return Unseen(
        prompts=data.n_prompts,
        one=float(data.weight @ one / data.weight.sum()),
        apart=_excess(votes, apart - one),
        pooled=_excess(votes, pooled - one),
    )


def losses(votes: Categorised, fits: Sequence[tuple[Tau, bool]], fold: Ints) -> Floats:
    """Return the log loss of each vote by fits to the prompts of other folds.

    Parameters
    ----------
    fits : sequence of (Tau, bool)
        Standard deviations, and whether prompts are a level.
    fold : ndarray of shape (n_prompts,)

    Returns
    -------
    ndarray of shape (n_fits, n_cells)
        Nats; a tie is half a win of each side.

    Raises
    ------
    ConvergenceError
        If the votes on the other prompts identify no rating.
    """
    data = votes.data
    assert data.prompt is not None
    of_cell = fold[data.prompt]
    loss = np.zeros((len(fits), len(of_cell)))
    for number in np.unique(of_cell):
        seen, new = of_cell != number, of_cell == number
        part = replace(votes, data=data.subset(seen), category=votes.category[seen])
        trees = {nested: Tree.of(part, nested=nested) for _, nested in fits}
        a, b = data.pairs[new].T
        score, category = data.score_a[new], votes.category[new]
        for place, (tau, nested) in enumerate(fits):
            strengths = fit_pooled(trees[nested], tau).strengths
            gap = strengths[category, a] - strengths[category, b]
            loss[place, new] = np.logaddexp(0, -gap) + (1 - score) * gap
    return loss


def _excess(votes: Categorised, difference: Floats) -> Excess:
    data = votes.data
    assert data.prompt is not None
    total = np.bincount(data.prompt, data.weight * difference, data.n_prompts)
    weight = np.bincount(data.prompt, data.weight, data.n_prompts)
    mean = float(total.sum() / weight.sum())
    off = total - mean * weight
    n = int((weight > 0).sum())
    se = math.sqrt(influence_variance(off, n)) / float(weight.sum())
    reach = quantile(0.95, n - 1) * se
    return Excess(mean, mean - reach, mean + reach)
