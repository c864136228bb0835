"""Powered ratings: their equations, and how uncertain they are by voter and by prompt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

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
    k, n = len(problem.items.models), int(problem.voted.sum())
    a, b = problem.items.pairs.T
    table = np.bincount(a * k + b, won, k * k) + np.bincount(b * k + a, lost, k * k)
    return np.asarray(n * table.reshape(k, k))


def bread_at(problem: Problem, theta: Floats, lam: float) -> Floats:
    """Return the inverse curvature of the mean loss."""
    curvature = hessian(theta, powered_wins(problem, lam)) / int(problem.voted.sum())
    return identified_inverse(curvature, len(theta), absolute=False)


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
    each, voter, prompt = _influence_of(problem, theta, 0.0, np.eye(len(theta)))
    a, b = each.pairs.T
    known = np.bincount(a, each.information, len(theta))
    known += np.bincount(b, each.information, len(theta))
    influence = replace(each, bread=each.bread @ (np.eye(len(theta)) - known / known.sum()).T)
    votes = np.arange(len(voter))  # without weight, no verdict has influence
    fewest = np.minimum(*(influence.summed(votes, unit).nu for unit in (voter, prompt)))
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
    influence, voter, prompt = _influence_of(problem, theta, lam, contrasts)
    n_prompts = problem.items.n_prompts
    votes, rest = np.flatnonzero(voter >= 0), np.flatnonzero(voter < 0)
    both = np.unique(voter[votes] * n_prompts + prompt[votes], return_inverse=True)[1]
    by_voter = influence.summed(votes, voter[votes])
    by_prompt = influence.summed(np.arange(len(voter)), prompt)
    by_both = influence.summed(votes, both)
    of_rest = influence.summed(rest, prompt[rest]).variance
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


def _influence_of(
    problem: Problem, theta: Floats, lam: float, contrasts: Floats
) -> tuple["_Influence", Ints, Ints]:
    """Return the influence of votes and then of verdicts on the rest, and voters and prompts.

    The voter is -1 for verdicts.

    Parameters
    ----------
    contrasts : ndarray of shape (m, n_models)
    """
    a, b = problem.items.pairs.T
    people, weigh = problem.votes, problem.parts
    expected = win_probability(theta)[a, b]
    parts = _parts(problem, theta)
    judge = parts[2].residual
    on_both, on_rest = -lam * weigh.both, lam * weigh.rest
    place = np.full(max(int(people.item.max()), int(problem.item.max())) + 1, -1)
    place[problem.item] = np.arange(len(problem.item))
    row = np.flatnonzero(place[people.item] >= 0)
    voted, left = place[people.item[row]], np.flatnonzero(on_rest > 0)
    share = 1 / np.bincount(voted, minlength=len(problem.item))[voted]
    residual = expected[voted] - row_scores(people)[row]
    nothing, none = np.zeros(len(voted)), np.zeros(len(left))
    of_votes = np.column_stack([share * weigh.voted[voted], share * on_both[voted], nothing])
    known = share * (weigh.voted * expected * (1 - expected))[voted]
    at = np.r_[voted, left]
    value = share * (weigh.voted[voted] * residual + (on_both * judge)[voted])
    influence = _Influence(
        bread=bread_at(problem, theta, lam) @ contrasts.T,
        means=np.stack([part.mean for part in parts]),
        pairs=problem.items.pairs[at],
        value=np.r_[value, (on_rest * judge)[left]],
        weight=np.vstack([of_votes, np.column_stack([none, none, on_rest[left]])]),
        information=np.r_[known, none],
    )
    voter = np.unique(people.rater[row], return_inverse=True)[1]
    return influence, np.r_[voter, np.full(len(left), -1)], problem.items.prompt[at]


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
    pairs : ndarray of shape (n, 2), int64
    value : ndarray of shape (n,)
        What side A gains from side B.
    weight : ndarray of shape (n, 3)
        Of the row in the means over votes, over verdicts beside them, and over the rest.
    information : ndarray of shape (n,)
        What the row adds to the curvature along its gap; zero for verdicts.
    """

    bread: Floats
    means: Floats
    pairs: Ints
    value: Floats
    weight: Floats
    information: Floats

    def summed(self, rows: Ints, cluster: Ints) -> _Summed:
        """Sum the influence of some rows within clusters, and square it.

        Parameters
        ----------
        cluster : ndarray of shape (n_rows,), int64
            Of each of these rows, numbers from 0.
        """
        k, m = self.bread.shape
        each = np.zeros(int(cluster.max(initial=-1)) + 1)
        variance, squares = np.zeros(m), np.zeros(m)
        informed = np.unique(cluster[self.information[rows] > 0])
        shrink = np.sqrt(jackknife_factor(len(informed))) if len(informed) else 1.0
        total = self._information(rows, np.zeros(len(rows), dtype=np.int64), 1)[0]
        order = np.argsort(cluster, kind="stable")
        rows, cluster = rows[order], cluster[order]
        for block, n in blocks(cluster, k):
            some, index = rows[block], cluster[block] - cluster[block.start]
            columns = self.pairs[some], self.value[some], self.weight[some]
            shift = _gradients(*columns, self.means, index, n) @ self.bread
            share = self._information(some, index, n) / np.where(total > 0, total, 1.0)
            left = np.maximum(1 - share, _LEAST_LEFT)
            shift *= np.where(share > 0, shrink / left, 1.0)
            square = shift**2
            variance += square.sum(axis=0)
            squares += (share**2).sum(axis=0)
            each[cluster[block.start] : cluster[block.start] + n] = square.sum(axis=1)
        with np.errstate(divide="ignore"):
            nu = np.where(squares > 0, 1 / squares - 1, 0.0)
        return _Summed(variance, nu, each)

    def apart(self, rows: Ints) -> Floats:
        """Return the variances when no two rows hang together."""
        k, pairs = len(self.bread), self.pairs[rows]
        value, weight = self.value[rows], self.weight[rows]
        (a, b), square = pairs.T, value**2
        table = np.bincount(a * k + b, square, k * k).reshape(k, k)
        table = table + table.T
        meat = np.diag(table.sum(axis=1)) - table
        cross = np.stack([pull(pairs, value * one, k) for one in weight.T]).T @ self.means
        centred = self.means.T @ (weight.T @ weight) @ self.means - cross - cross.T
        return np.diag(self.bread.T @ (meat + centred) @ self.bread).astype(np.float64)

    def _information(self, rows: Ints, cluster: Ints, n: int) -> Floats:
        """Sum what rows tell of each rating within clusters, which they are sorted by."""
        k, m = self.bread.shape
        total = np.zeros((n, m))
        known = self.information[rows]
        informed = np.flatnonzero(known > 0)
        size = max(1, CHUNK_ENTRIES // k)
        for start in range(0, len(informed), size):
            part = informed[start : start + size]
            a, b = self.pairs[rows[part]].T
            along = known[part, None] * (self.bread[a] - self.bread[b]) ** 2
            first = np.flatnonzero(np.diff(cluster[part], prepend=-1))
            total[cluster[part][first]] += np.add.reduceat(along, first)
        return total


def moments_at(problem: Problem, theta: Floats) -> Moments:
    """Sum the products of the prompts' influences, some prompts at a time."""
    k, parts = len(theta), _parts(problem, theta)
    total = Moments(*np.zeros((5, k, k)))
    for rows, n_prompts in blocks(problem.items.prompt, k):
        prompt = problem.items.prompt[rows] - problem.items.prompt[rows.start]
        summed = [
            _gradients(
                problem.items.pairs[rows],
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
    a, b = problem.items.pairs.T
    expected, weigh = win_probability(theta)[a, b], problem.parts
    people = expected - np.nan_to_num(problem.people)
    judge = expected - np.nan_to_num(problem.judge)
    return [
        _Part(weight, residual, pull(problem.items.pairs, weight * residual, len(theta)))
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
