"""Strengths by category, drawn towards those of all categories by normal deviations.

Bradley-Terry, a tie half a win. On prompt t of category c the log-odds of i over j are::

    theta[i] - theta[j] + delta[c, i] - delta[c, j] + eps[t, i] - eps[t, j]

with ``delta ~ N(0, tau ** 2)`` and ``eps ~ N(0, tau_prompt ** 2)``; theta is free, of sum zero.
A prompt belongs to one category, so both levels are eliminated block by block: no matrix has more
rows than there are models.

References
----------
.. [1] A. Gelman and J. Hill, Data Analysis Using Regression and Multilevel/Hierarchical Models,
   2007, chapters 12-14 (partial pooling).
.. [2] L. Tierney and J. B. Kadane, "Accurate approximations for posterior moments and marginal
   densities", JASA 81(393), 1986, pp. 82-86 (the Laplace approximation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons, Votes
from rating.errors import ConvergenceError, DataError
from rating.typing import Floats, Integers, Ints

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
        """Put the votes of categories together; one without a vote of any weight is left out.

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
class Blocks:
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


def _blocks(node: Ints, a: Ints, b: Ints, n_models: int) -> list[Blocks]:
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
        blocks.append(Blocks(nodes, models, row, at, side_a[row] - first, side_b[row] - first))
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
    prompts: list[Blocks]
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
    def whole(self) -> Blocks:
        """All rows as lying in their categories, each of which holds every model."""
        models = np.tile(np.arange(self.n_models), (self.n_categories, 1))
        row = np.arange(len(self.a))
        return Blocks(np.arange(self.n_categories), models, row, self.category, self.a, self.b)

    def gap(self, at: "Point") -> Floats:
        """Return the log-odds of side A in each row."""
        gap = self.whole.gaps(at.theta + at.delta)
        for block, x in zip(self.prompts, at.eps, strict=True):
            gap[block.row] += block.gaps(x)
        return gap

    def upwards(self, block: Blocks, value: Floats) -> Floats:
        """Sum a value of each prompt's models, or pairs of them, by category."""
        k = self.n_models
        place = self.owner[block.node][:, None] * k + block.models
        if value.ndim == 3:
            place = place[:, :, None] * k + block.models[:, None, :]
        shape = (self.n_categories, k, k)[: value.ndim]
        sums = np.bincount(place.ravel(), value.ravel(), int(np.prod(shape)))
        return sums.astype(np.float64).reshape(shape)

    def downwards(self, block: Blocks, value: Floats) -> Floats:
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


class Level(NamedTuple):
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
    def of(cls, information: Floats, tau: float) -> "Level":
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
class Curvature:
    """The penalised Hessian, both levels eliminated.

    Attributes
    ----------
    prompts : list of Level
    categories : Level
    whole : ndarray of shape (n_models, n_models)
        What is left of it for the strengths over all categories; ones over the number of models
        are added, which fills the direction in which all move together.
    """

    prompts: list[Level]
    categories: Level
    whole: Floats

    @classmethod
    def of(cls, tree: Tree, tau: Tau, curve: Floats) -> "Curvature":
        """Eliminate prompts, then categories; ``curve`` is the information of each row."""
        prompts = [Level.of(block.laplacians(curve), tau.prompt) for block in tree.prompts]
        if prompts:
            parts = zip(tree.prompts, prompts, strict=True)
            information = sum(tree.upwards(block, level.left) for block, level in parts)
        else:
            information = tree.whole.laplacians(curve)
        categories = Level.of(np.asarray(information), tau.category)
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
        Laplace's approximation of the log of the integrated likelihood, but for a constant.
    """

    tree: Tree
    tau: Tau
    at: Point
    curvature: Curvature
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
        curvature = Curvature.of(tree, tau, tree.weight * p * (1 - p))
        step, worst = curvature.step(tree, tau, tree.weight * p - tree.score, at)
        if worst <= close:
            loss, penalty = _loss(tree, at), _penalty(tau, at)
            marginal = -loss - penalty - curvature.log_det / 2
            return Pooled(tree, tau, at, curvature, -loss, marginal)
        at = _descended(tree, tau, at, step)
    raise ConvergenceError(f"The pooled fit has not converged after {MAX_STEPS} Newton steps.")


def _descended(tree: Tree, tau: Tau, at: Point, step: Point) -> Point:
    """Make a step, halved until it descends: the objective is convex."""
    before = _loss(tree, at) + _penalty(tau, at)
    new = at
    for halvings in range(MAX_HALVINGS):
        new = at.moved(step, 0.5**halvings)
        if _loss(tree, new) + _penalty(tau, new) <= before + 1e-12 * abs(before):
            break
    return new


def _loss(tree: Tree, at: Point) -> float:
    gap = tree.gap(at)
    return float(tree.weight @ np.logaddexp(0.0, -gap) + (tree.weight - tree.score) @ gap)


def _penalty(tau: Tau, at: Point) -> float:
    penalty = float((at.delta**2).sum()) / tau.category**2
    penalty += sum(float((x**2).sum()) / tau.prompt**2 for x in at.eps)
    return penalty / 2
