"""Powered ratings: their equations, and how uncertain they are by voter and by prompt."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.studies.power_tuning import Moments, Problem, row_scores
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.leave_out import jackknife_factor, two_way
from rating.likelihood.design import CHUNK_ENTRIES
from rating.likelihood.newton import anchored, identified_inverse
from rating.likelihood.objective import hessian, solve, win_probability
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.contrasts import WELL_FOUNDED
from rating.uncertainty.student import quantile, quantiles

_LEAST_LEFT = 1e-3
_ENDLESS = (
    "Votes and verdicts differ too much for so few votes: no ratings fit both best. "
    "Collect more votes, or rate by the votes alone."
)


def solved(problem: Problem, lam: float) -> Floats:
    """Return the strengths, shape (n_models,).

    Raises
    ------
    NotIdentifiedError
        If the verdicts taken off make the loss fall without end.
    """
    wins = powered_wins(problem, lam)
    try:
        theta = solve(wins, np.zeros(len(wins))).theta
    except ConvergenceError as error:
        raise NotIdentifiedError(_ENDLESS) from error
    if np.linalg.eigvalsh(anchored(hessian(theta, wins), len(wins), absolute=False))[0] <= 0:
        raise NotIdentifiedError(_ENDLESS)
    return theta


def powered_wins(problem: Problem, lam: float) -> Floats:
    """Return the score of row against column, which may be negative for what the judge takes off.

    The loss is linear in the scores, so that it is Bradley-Terry on this table, in votes.
    """
    weigh = problem.parts
    people, judge = np.nan_to_num(problem.people), np.nan_to_num(problem.judge)
    by_judge = lam * (weigh.rest - weigh.both)
    won = weigh.voted * people + by_judge * judge
    lost = weigh.voted * (1 - people) + by_judge * (1 - judge)
    k, n = len(problem.models), int(problem.voted.sum())
    a, b = problem.pairs.T
    table = np.bincount(a * k + b, won, k * k) + np.bincount(b * k + a, lost, k * k)
    return np.asarray(n * table.reshape(k, k))


def bread_at(problem: Problem, theta: Floats, lam: float) -> Floats:
    """Return the inverse curvature of the mean loss."""
    curvature = hessian(theta, powered_wins(problem, lam)) / int(problem.voted.sum())
    return identified_inverse(curvature, len(theta), absolute=False)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What votes, or verdicts without one, add to the gradient of the loss.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
    value : ndarray of shape (n,)
        What side A gains from side B.
    weight : ndarray of shape (n, 3)
        Of the row in the means over votes, over verdicts beside them, and over the rest.
    information : ndarray of shape (n,)
        What the row adds to the curvature along its gap; zero for verdicts.
    voter, prompt : ndarray of shape (n,), int64
        The voter is -1 for verdicts.
    """

    pairs: Ints
    value: Floats
    weight: Floats
    information: Floats
    voter: Ints
    prompt: Ints

    def only(self, rows: Ints) -> "Rows":
        """Return some rows, in the order given."""
        return Rows(*(column[rows] for column in self._columns()))

    def __add__(self, other: "Rows") -> "Rows":
        """Put other rows behind these."""
        columns = zip(self._columns(), other._columns(), strict=True)
        return Rows(*(np.concatenate(both) for both in columns))

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.pairs, self.value, self.weight, self.information, self.voter, self.prompt


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """How uncertain ratings are.

    Attributes
    ----------
    two_way, by_prompt, independent : ndarray of shape (m,)
        Variance of each contrast, such as a rating, in squared nats: with votes summed by voter
        and prompt, with votes and verdicts summed by prompt alone, and with none summed.
    df, prompt_df : ndarray of shape (m,)
        Degrees of freedom of the first two. Under 1 where one voter, or one prompt, decides it.
    effective : ndarray of shape (m,)
        Effective voters, or prompts, behind each: the fewer of the two.
    of_prompts : ndarray of shape (n_prompts,)
        What each prompt adds to the sum of the variances by prompt.
    added : ndarray of shape (m,)
        What prompts add to the first beside what voters show.
    """

    two_way: Floats
    by_prompt: Floats
    independent: Floats
    df: Floats
    prompt_df: Floats
    effective: Floats
    of_prompts: Floats
    added: Floats

    @property
    def variance(self) -> Floats:
        """The largest of the three: few voters may show too little by luck."""
        return np.maximum(np.maximum(self.two_way, self.by_prompt), self.independent)

    def half_width(self, level: float) -> Floats:
        """Return half of each interval; NaN where less than one degree of freedom is left."""
        floor = np.maximum(
            _reach(self.prompt_df, level) * np.sqrt(self.by_prompt),
            quantile(level, np.inf) * np.sqrt(self.independent),
        )
        return np.maximum(_reach(self.df, level) * np.sqrt(self.two_way), floor)


def _reach(df: Floats, level: float) -> Floats:
    return np.where(df >= 1, quantiles(level, df), np.nan)


def founded(problem: Problem, theta: Floats) -> Bools:
    """Return the models with `WELL_FOUNDED` effective voters and prompts behind their votes.

    Each against the average of all by their information, as `rating.uncertainty.contrasts` has it;
    all models where fewer than two have as many.
    """
    votes, _, means = _rows(problem, theta, 0.0)
    a, b = votes.pairs.T
    known = np.bincount(a, votes.information, len(theta))
    known += np.bincount(b, votes.information, len(theta))
    away = np.eye(len(theta)) - known / known.sum()
    influence = _Influence(bread_at(problem, theta, 0.0) @ away.T, means)
    fewest = np.minimum(*(influence.summed(votes, c).nu for c in (votes.voter, votes.prompt)))
    enough = fewest + 1 >= WELL_FOUNDED
    return enough if enough.sum() > 1 else np.ones(len(theta), dtype=bool)


def uncertainty(problem: Problem, theta: Floats, lam: float, contrasts: Floats) -> Uncertainty:
    """Give each contrast of the strengths its own variance and degrees of freedom.

    With V the variance of a contrast when its influence is summed by voter, by prompt, by voter
    and prompt, and not at all::

        A = max(0, V_prompt - V_voter_and_prompt)
        V = V_voter + A
        df = V^2 / (V_voter^2 / nu_voter + A^2 / nu_prompt)

    as in the two-way sum [1]_, but nothing of prompts is taken off what voters show. Half of an
    interval is ``t_df sqrt(V)``, but no less than ``t_nu_prompt sqrt(V_prompt)`` and
    ``z sqrt(V_none)``, which a few voters who agree by luck would fall below. A vote's
    influence is its own part of its item, less ``lam`` times the verdict's on the same; verdicts
    on items without votes have no voter and are summed by prompt in each of the three. A cluster
    of the share h of the information on a contrast, so of the votes, is taken by
    ``sqrt((U - 1) / U) / (1 - h)``: leaving it out (CR3), as if its votes were spread over models
    as all are. ``nu = 1 / sum h^2 - 1``.

    Parameters
    ----------
    contrasts : ndarray of shape (m, n_models)
        Rows sum to zero.

    References
    ----------
    .. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference with multiway
       clustering", Journal of Business and Economic Statistics 29(2), 2011, pp. 238-249.
    """
    votes, rest, means = _rows(problem, theta, lam)
    influence = _Influence(bread_at(problem, theta, lam) @ contrasts.T, means)
    n_prompts = int(problem.prompt.max()) + 1
    both = votes.voter * n_prompts + votes.prompt
    by_voter = influence.summed(votes, votes.voter)
    by_prompt = influence.summed(votes + rest, np.r_[votes.prompt, rest.prompt])
    by_both = influence.summed(votes, np.unique(both, return_inverse=True)[1])
    of_rest = influence.summed(rest, rest.prompt).variance
    of_voters = by_voter.variance + of_rest
    two_way_variance, df = two_way(
        (of_voters, by_voter.nu),
        (by_prompt.variance, by_prompt.nu),
        by_both.variance + of_rest,
    )
    return Uncertainty(
        two_way=two_way_variance,
        by_prompt=by_prompt.variance,
        independent=influence.apart(votes) + influence.apart(rest),
        df=df,
        prompt_df=by_prompt.nu,
        effective=np.minimum(by_voter.nu, by_prompt.nu) + 1,
        of_prompts=np.pad(by_prompt.each, (0, n_prompts - len(by_prompt.each))),
        added=two_way_variance - of_voters,
    )


def _rows(problem: Problem, theta: Floats, lam: float) -> tuple[Rows, Rows, Floats]:
    """Return the rows of votes and of verdicts on the rest, and the three means, shape (3, k)."""
    a, b = problem.pairs.T
    people, weigh = problem.votes, problem.parts
    expected = win_probability(theta)[a, b]
    parts = _parts(problem, theta)
    judge = parts[2].residual
    on_both, on_rest = -lam * weigh.both, lam * weigh.rest
    means = np.stack([part.mean for part in parts])
    place = np.full(max(int(people.item.max()), int(problem.item.max())) + 1, -1)
    place[problem.item] = np.arange(len(problem.item))
    row = np.flatnonzero(place[people.item] >= 0)
    at = place[people.item[row]]
    share = 1 / np.bincount(at, minlength=len(problem.item))[at]
    residual = expected[at] - row_scores(people)[row]
    nothing = np.zeros(len(at))
    votes = Rows(
        pairs=problem.pairs[at],
        value=share * (weigh.voted[at] * residual + (on_both * judge)[at]),
        weight=np.column_stack([share * weigh.voted[at], share * on_both[at], nothing]),
        information=share * (weigh.voted * expected * (1 - expected))[at],
        voter=np.unique(people.rater[row], return_inverse=True)[1],
        prompt=problem.prompt[at],
    )
    left = np.flatnonzero(on_rest > 0)
    none = np.zeros(len(left))
    rest = Rows(
        pairs=problem.pairs[left],
        value=(on_rest * judge)[left],
        weight=np.column_stack([none, none, on_rest[left]]),
        information=none,
        voter=np.full(len(left), -1),
        prompt=problem.prompt[left],
    )
    return votes, rest, means


@dataclass(frozen=True, slots=True, eq=False)
class _Summed:
    """Variances of influence summed within clusters, and what they leave of freedom."""

    variance: Floats
    nu: Floats
    each: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Influence:
    """How far rows move the ratings, around the three means.

    Attributes
    ----------
    bread : ndarray of shape (n_models, m)
        The inverse curvature times each contrast.
    """

    bread: Floats
    means: Floats

    def summed(self, rows: Rows, cluster: Ints) -> _Summed:
        """Sum influence within clusters, and square it.

        Parameters
        ----------
        cluster : ndarray of shape (n,), int64
            Numbers from 0.
        """
        k, m = self.bread.shape
        each = np.zeros(int(cluster.max(initial=-1)) + 1)
        variance, squares = np.zeros(m), np.zeros(m)
        informed = np.unique(cluster[rows.information > 0])
        shrink = np.sqrt(jackknife_factor(len(informed))) if len(informed) else 1.0
        total = self._information(rows, np.zeros(len(rows.value), dtype=np.int64), 1)[0]
        order = np.argsort(cluster, kind="stable")
        rows, cluster = rows.only(order), cluster[order]
        for block, n in blocks(cluster, k):
            part, index = rows.only(np.arange(block.start, block.stop)), cluster[block]
            index = index - index[0]
            shift = (
                _gradients(part.pairs, part.value, part.weight, self.means, index, n) @ self.bread
            )
            share = self._information(part, index, n) / np.where(total > 0, total, 1.0)
            left = np.maximum(1 - share, _LEAST_LEFT)
            shift *= np.where(share > 0, shrink / left, 1.0)
            square = shift**2
            variance += square.sum(axis=0)
            squares += (share**2).sum(axis=0)
            each[cluster[block.start] : cluster[block.start] + n] = square.sum(axis=1)
        with np.errstate(divide="ignore"):
            nu = np.where(squares > 0, 1 / squares - 1, 0.0)
        return _Summed(variance, nu, each)

    def apart(self, rows: Rows) -> Floats:
        """Return the variances when no two rows hang together."""
        k, (a, b) = len(self.bread), rows.pairs.T
        square = rows.value**2
        table = np.bincount(a * k + b, square, k * k).reshape(k, k)
        table = table + table.T
        meat = np.diag(table.sum(axis=1)) - table
        cross = np.stack([pull(rows.pairs, rows.value * one, k) for one in rows.weight.T])
        cross = cross.T @ self.means
        centred = self.means.T @ (rows.weight.T @ rows.weight) @ self.means - cross - cross.T
        return np.diag(self.bread.T @ (meat + centred) @ self.bread).astype(np.float64)

    def _information(self, rows: Rows, cluster: Ints, n: int) -> Floats:
        """Sum what rows tell of each rating within clusters, which they are sorted by."""
        k, m = self.bread.shape
        total = np.zeros((n, m))
        informed = np.flatnonzero(rows.information > 0)
        size = max(1, CHUNK_ENTRIES // k)
        for start in range(0, len(informed), size):
            part = informed[start : start + size]
            a, b = rows.pairs[part].T
            along = rows.information[part, None] * (self.bread[a] - self.bread[b]) ** 2
            first = np.flatnonzero(np.diff(cluster[part], prepend=-1))
            total[cluster[part][first]] += np.add.reduceat(along, first)
        return total


def moments_at(problem: Problem, theta: Floats) -> Moments:
    """Sum the products of the prompts' influences, some prompts at a time."""
    k, parts = len(theta), _parts(problem, theta)
    total = Moments(*np.zeros((5, k, k)))
    for rows, n_prompts in blocks(problem.prompt, k):
        prompt = problem.prompt[rows] - problem.prompt[rows.start]
        summed = [
            _gradients(
                problem.pairs[rows],
                (part.weight * part.residual)[rows],
                part.weight[rows, None],
                part.mean[None],
                prompt,
                n_prompts,
            )
            for part in parts
        ]
        total += Moments.of(*summed)
    return total


class _Part(NamedTuple):
    """One of the three means that an estimate is made of: see `Parts`."""

    weight: Floats
    residual: Floats
    mean: Floats


def _parts(problem: Problem, theta: Floats) -> list[_Part]:
    a, b = problem.pairs.T
    expected, weigh = win_probability(theta)[a, b], problem.parts
    people = expected - np.nan_to_num(problem.people)
    judge = expected - np.nan_to_num(problem.judge)
    return [
        _Part(weight, residual, pull(problem.pairs, weight * residual, len(theta)))
        for weight, residual in ((weigh.voted, people), (weigh.both, judge), (weigh.rest, judge))
    ]


def pull(pairs: Ints, value: Floats, k: int) -> Floats:
    """Return each model's sum of a value that one side of an item gains from the other."""
    gained = np.bincount(pairs[:, 0], value, k) - np.bincount(pairs[:, 1], value, k)
    return np.asarray(gained, dtype=np.float64)


def _gradients(
    pairs: Ints, value: Floats, weight: Floats, means: Floats, cluster: Ints, n: int
) -> Floats:
    """Sum ``value (e_a - e_b) - weight means`` within clusters, shape (n, n_models)."""
    k, (a, b) = means.shape[1], pairs.T
    total = np.bincount(cluster * k + a, value, n * k)
    total -= np.bincount(cluster * k + b, value, n * k)
    summed = np.stack([np.bincount(cluster, one, n) for one in weight.T], axis=1)
    return np.asarray(total.reshape(n, k) - summed @ means)


def blocks(cluster: Ints, k: int) -> Iterator[tuple[slice, int]]:
    """Cut rows that are sorted by prompts or voters between these, so that sums fit in memory."""
    size = max(1, CHUNK_ENTRIES // k)
    start = 0
    while start < len(cluster):
        stop = int(np.searchsorted(cluster, cluster[start] + size))
        yield slice(start, stop), int(cluster[stop - 1] - cluster[start]) + 1
        start = stop
