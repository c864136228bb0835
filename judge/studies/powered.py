"""Prediction-powered Bradley-Terry: ratings by people from few votes and many verdicts.

`powered_ratings` rates models, and has the equations and sources; `powered_lead` estimates the
lead of one model over another. The weight of the verdicts makes an estimate most precise (`parts`,
`_tuned`); variances are by voter and by prompt (`_uncertainty`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from judge.studies.estimates import Estimate, finite
from judge.studies.rows import Items, Labels
from rating import Comparisons, connectivity
from rating.contrasts import WELL_FOUNDED
from rating.covariance import FEW_PROMPTS
from rating.decide import Lead, require_comparable
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.leave_out import jackknife_factor, quantile, quantiles, two_way
from rating.likelihood import (
    CHUNK_ENTRIES,
    anchored,
    hessian,
    identified_inverse,
    solve,
    win_probability,
)
from rating.typing import Bools, Floats, Ints
from rating.variants import to_points

# Weight of the verdicts


ASSUMPTION = (
    "Assumes that items with votes are a random subset of all judged items, or were drawn with "
    "known probabilities, and that items that share no prompt and no voter are independent."
)
"""Printed beside every estimate of this kind."""

NOTHING_TO_GAIN = "No item has a verdict without a vote, or none has both: the judge adds nothing."
NO_RESIDUALS = (
    "The verdicts explain every vote, prompt by prompt: their residual error on other "
    "items, and so the gain from them, is unknown."
)
_ALL = 1e-9
FEWEST_OF_A_PAIR = 20
"""Verdicts on items with votes, and on others, from which a judge's average of a pair is known."""
FEWEST_PROMPTS = 5
"""With votes on fewer, too few residuals show how far the judge is off."""


Parts = tuple[Floats, Floats, Floats]
"""What each item weighs in the three means that an estimate is made of: over the items with votes,
those that have a verdict as well, and the judged items without votes (all the judged ones where
chances are given). Each sums to one, or to zero where there are none.

The estimate solves ``mean_voted g(vote) - lam mean_both g(verdict) + lam mean_rest g(verdict) =
0``; the last two means are of one quantity, so a judge that is wrong in the same way on both moves
nothing.
"""


def parts(voted: Bools, judged: Bools, probability: Floats | None = None) -> Parts:
    """Weigh the items.

    Parameters
    ----------
    voted, judged : ndarray of shape (n,), bool
    probability : ndarray of shape (n,), optional
        With what probability an item was sent to people: those with votes then weigh
        ``1 / probability``. None where all were equally likely.

    Raises
    ------
    DataError
        If an item with votes had no chance between 0 and 1.
    """
    if probability is None:
        return _share(voted), _share(voted & judged), _share(judged & ~voted)
    wrong = probability[voted & ~((probability > 0) & (probability <= 1))]
    if wrong.size:
        raise DataError(
            f"An item with votes was sent to people with probability {wrong[0]}: give 0 < p <= 1."
        )
    weight = np.where(voted, 1 / np.where(voted, probability, 1.0), 0.0)
    return _share(weight), _share(weight * judged), _share(judged)


def _share(weight: Bools | Floats) -> Floats:
    total = float(weight.sum())
    return np.asarray(weight / total) if total else np.zeros(len(weight))


def _products(people: Floats, both: Floats, rest: Floats) -> Floats:
    """Multiply influences that were summed by prompt, shape (n_prompts, k), as `moments_at`."""
    judge = rest - both
    pairs = ((people, people), (people, judge), (judge, judge), (people, both), (both, both))
    return np.stack([one.T @ other for one, other in pairs])


def _tuned(moments: Floats, bread: Floats) -> float:
    """Return the ``lam`` in [0, 1] with the smallest trace of the covariance.

    With moments P, C and J as of `moments_at` and ``H^-`` given as ``bread``, that is of
    ``H^- (P + lam (C + C') + lam^2 J) H^-``: ``-tr(H^- C H^-) / tr(H^- J H^-)``. With independent
    items it is the published ``tr H^- (C + C') H^- / (2 (1 + n / N) tr H^- V H^-)`` [1]_. Zero
    where the judge's part does not vary.

    References
    ----------
    .. [1] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, section 6.
    """
    cross, spread = (float(np.trace(bread @ one @ bread)) for one in moments[1:3])
    if spread <= np.finfo(np.float64).tiny:
        return 0.0
    return float(np.clip(-cross / spread, 0.0, 1.0))


def _explained(moments: Floats, bread: Floats) -> float | None:
    """Return the share of the votes' variance that endless verdicts would take away.

    The squared correlation of the votes' and the verdicts' influences over the prompts that have
    both; zero where it is negative, None where one of them does not vary.
    """
    votes, shared, verdicts = (float(np.trace(bread @ one @ bread)) for one in moments[[0, 3, 4]])
    if min(votes, verdicts) <= np.finfo(np.float64).tiny:
        return None
    return min(max(shared, 0.0) ** 2 / (votes * verdicts), 1.0)


def _gain(
    ratio: float,
    prompts: tuple[int, float],
    totals: tuple[Floats, Floats],
    explained: float | None,
    level: float,
) -> Estimate:
    """Give the ratio of the variances without and with the judge its interval.

    Delete-one jackknife over prompts of its logarithm, Student's t with the effective prompts less
    two, one for each variance. Under `FEW_PROMPTS` it would hold the truth in 0.70 to 0.88 of
    simulated cases, and where the verdicts explain every vote it would have no width: there the
    ratio has no value.

    Parameters
    ----------
    prompts : (int, float)
        As of `_prompts_with_votes`.
    totals : tuple of ndarray of shape (n_prompts,)
        What each prompt adds to the variance without the judge, and with it.
    explained : float or None
        See `_explained`.

    References
    ----------
    .. [1] R. G. Miller, "Jackknifing variances", Annals of Mathematical Statistics 39(2), 1968,
       pp. 567-582 (why the logarithm).
    """
    (n, effective), (alone, powered) = prompts, totals
    used = (alone > 0) | (powered > 0)
    without = [total.sum() - total[used] for total in totals]
    all_explained = explained is not None and explained > 1 - _ALL
    if n < FEW_PROMPTS or all_explained or min(x.min(initial=np.inf) for x in without) <= 0:
        return Estimate(None, None, None, n)
    moved = np.log(without[0] / without[1]) - np.log(alone.sum() / powered.sum())
    error = float(np.sqrt(jackknife_factor(n) * (moved @ moved)))
    far = float(np.exp(quantile(level, max(effective - 2, 1.0)) * error))
    return Estimate(ratio, ratio / far, ratio * far, n)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Items between rated models, in the order of their prompts.

    ``item`` is their index among all items; ``people`` and ``judge`` are mean scores of side A,
    NaN where there are none; ``parts`` is what each item weighs, and ``votes`` are all votes.
    """

    items: Items
    item: Ints
    people: Floats
    judge: Floats
    parts: Parts
    votes: Labels

    @property
    def voted(self) -> Bools:
        """Items with votes."""
        return ~np.isnan(self.people)

    @property
    def judged(self) -> Bools:
        """Items with verdicts."""
        return ~np.isnan(self.judge)

    @property
    def has_rest(self) -> bool:
        """Whether the judge can add anything."""
        return bool(self.parts[1].any() and self.parts[2].any())


def _prompts_with_votes(problem: Problem) -> tuple[int, float]:
    """Count the prompts that the votes are on, and the effective ones, ``(sum w)^2 / sum w^2``.

    Raises
    ------
    NotIdentifiedError
        If the votes are on fewer than `FEWEST_PROMPTS`.
    """
    voted = problem.voted
    total = np.bincount(problem.items.prompt[voted], problem.parts[0][voted])
    n = int((total > 0).sum())
    if n < FEWEST_PROMPTS:
        raise NotIdentifiedError(
            f"The votes are on {n} prompt{'s'[n == 1 :]}: combining them with verdicts needs "
            f"votes on at least {FEWEST_PROMPTS}."
        )
    return n, float(total.sum() ** 2 / (total @ total))


def _by_pair(problem: Problem, theta: Floats) -> Problem:
    """Let verdicts count pair by pair: as much on the rest as on the items with votes.

    What a judge makes of two models then cancels, whichever pairs it was asked about more often:
    only within a pair need the items with votes be as the others are. A pair with fewer than
    `FEWEST_OF_A_PAIR` verdicts of either kind goes by its votes. Verdicts are counted from the
    average of their pair, set to what people think of it, so that none of their spread is
    between pairs.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths by the votes alone.
    """
    k, (a, b) = len(problem.items.models), problem.items.pairs.T
    pair, turned = np.minimum(a, b) * k + np.maximum(a, b), a > b
    judge = np.where(turned, 1 - problem.judge, problem.judge)
    both, rest = problem.voted & problem.judged, problem.judged & ~problem.voted
    n_both, n_rest = (np.bincount(pair[rows], minlength=k * k) for rows in (both, rest))
    share = np.bincount(pair, problem.parts[0], k * k)
    share[np.minimum(n_both, n_rest) < FEWEST_OF_A_PAIR] = 0.0
    of_both, of_rest = (
        np.where(rows, (share / np.maximum(n, 1))[pair], 0.0)
        for rows, n in ((both, n_both), (rest, n_rest))
    )
    mean = np.bincount(pair, np.nan_to_num(judge), k * k) / np.maximum(n_both + n_rest, 1)
    centred = judge - mean[pair] + win_probability(theta).ravel()[pair]
    return replace(
        problem,
        judge=np.where(turned, 1 - centred, centred),
        parts=(problem.parts[0], of_both, of_rest),
    )


def row_scores(labels: Labels) -> Floats:
    """Return the score of side A in each row.

    1 for side A, 1/2 for a tie, 0 for side B; the probability where one was given.
    """
    return np.where(np.isnan(labels.probability), (labels.label + 1) / 2, labels.probability)


def problem_of(
    items: Items, people: Labels, judge: Labels, probability: Floats | None
) -> tuple[Problem, tuple[str, ...]]:
    """Keep the items between models with votes; also return a warning on models excluded."""
    a, b = items.pairs[people.item].T
    outcome = np.array([2, 0, 1])[people.label]  # tie, side A, side B: label -1 is the last
    data = Comparisons.from_codes(items.models, a, b, outcome)
    connected = connectivity(data)
    if not connected.is_identified:
        msg = f"The votes alone do not determine the ratings. {connected.describe()}"
        raise NotIdentifiedError(msg)
    models = data.models
    number = np.full(len(items.models), -1)
    for index, name in enumerate(models):
        number[items.models.index(name)] = index
    pairs = number[items.pairs]
    fit = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    used = np.flatnonzero(fit)[np.argsort(items.prompt[fit], kind="stable")]
    of_people, of_judge = (one.mean(row_scores(one), items.n)[used] for one in (people, judge))
    problem = Problem(
        items=Items(models, pairs[used], items.prompt[used]),
        item=used,
        people=of_people,
        judge=of_judge,
        parts=parts(
            ~np.isnan(of_people),
            ~np.isnan(of_judge),
            None if probability is None else probability[used],
        ),
        votes=people,
    )
    seen = np.zeros(len(items.models), dtype=bool)
    seen[items.pairs[judge.item].ravel()] = True
    lost = [items.models[i] for i in np.flatnonzero(seen & (number < 0))]
    warning = f"Judged, but not rated, because nobody voted on them: {', '.join(sorted(lost))}."
    return problem, (warning,) if lost else ()


# Equations and uncertainty


_LEAST_LEFT = 1e-3
_ENDLESS = (
    "Votes and verdicts differ too much for this number of votes: no maximum was found. "
    "Collect more votes, or rate by the votes alone."
)


def _solved(problem: Problem, lam: float) -> Floats:
    """Return the strengths, shape (n_models,).

    Raises
    ------
    NotIdentifiedError
        If the verdicts taken off make the loss fall without end.
    """
    wins = _powered_wins(problem, lam)
    try:
        theta = solve(wins, np.zeros(len(wins))).theta
    except ConvergenceError as error:
        raise NotIdentifiedError(_ENDLESS) from error
    if np.linalg.eigvalsh(anchored(hessian(theta, wins), len(wins), absolute=False))[0] <= 0:
        raise NotIdentifiedError(_ENDLESS)
    return theta


def _powered_wins(problem: Problem, lam: float) -> Floats:
    """Return the score of row against column, which may be negative for what the judge takes off.

    The loss is linear in the scores, so that it is Bradley-Terry on this table, in votes.
    """
    voted, both, rest = problem.parts
    people, judge = np.nan_to_num(problem.people), np.nan_to_num(problem.judge)
    by_judge = lam * (rest - both)
    won = voted * people + by_judge * judge
    lost = voted * (1 - people) + by_judge * (1 - judge)
    k, n = len(problem.items.models), int(problem.voted.sum())
    a, b = problem.items.pairs.T
    table = np.bincount(a * k + b, won, k * k) + np.bincount(b * k + a, lost, k * k)
    return np.asarray(n * table.reshape(k, k))


def bread_at(problem: Problem, theta: Floats, lam: float) -> Floats:
    """Return the inverse curvature of the mean loss."""
    curvature = hessian(theta, _powered_wins(problem, lam)) / int(problem.voted.sum())
    return identified_inverse(curvature, len(theta), absolute=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Uncertainty:
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


def _founded(problem: Problem, theta: Floats) -> Bools:
    """Return the models with `WELL_FOUNDED` effective voters and prompts behind their votes.

    Each against the average of all by their information, as `rating.contrasts` has it;
    all models where fewer than two have as many.
    """
    each, voter, prompt = _influence_of(problem, theta, 0.0, np.eye(len(theta)))
    a, b = each.pairs.T
    known = np.bincount(a, each.information, len(theta))
    known += np.bincount(b, each.information, len(theta))
    influence = replace(each, bread=each.bread @ (np.eye(len(theta)) - known / known.sum()).T)
    votes = np.arange(len(voter))  # without weight, no verdict has influence
    fewest = np.minimum(*(influence.summed(votes, unit)[1] for unit in (voter, prompt)))
    enough = fewest + 1 >= WELL_FOUNDED
    return enough if enough.sum() > 1 else np.ones(len(theta), dtype=bool)


def _uncertainty(problem: Problem, theta: Floats, lam: float, contrasts: Floats) -> _Uncertainty:
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
    by_voter, voter_nu, _ = influence.summed(votes, voter[votes])
    by_prompt, prompt_nu, of_prompts = influence.summed(np.arange(len(voter)), prompt)
    by_both, *_ = influence.summed(votes, both)
    of_rest, *_ = influence.summed(rest, prompt[rest])
    of_voters = by_voter + of_rest
    two_way_variance, df = two_way(
        (of_voters, voter_nu), (by_prompt, prompt_nu), by_both + of_rest
    )
    return _Uncertainty(
        two_way=two_way_variance,
        by_prompt=by_prompt,
        independent=influence.apart(votes) + influence.apart(rest),
        df=df,
        prompt_df=prompt_nu,
        effective=np.minimum(voter_nu, prompt_nu) + 1,
        of_prompts=np.pad(of_prompts, (0, n_prompts - len(of_prompts))),
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
    people, (weight, both, rest) = problem.votes, problem.parts
    expected = win_probability(theta)[a, b]
    parts = _parts(problem, theta)
    judge = parts[2].residual
    on_both, on_rest = -lam * both, lam * rest
    place = np.full(max(int(people.item.max()), int(problem.item.max())) + 1, -1)
    place[problem.item] = np.arange(len(problem.item))
    row = np.flatnonzero(place[people.item] >= 0)
    voted, left = place[people.item[row]], np.flatnonzero(on_rest > 0)
    share = 1 / np.bincount(voted, minlength=len(problem.item))[voted]
    residual = expected[voted] - row_scores(people)[row]
    nothing, none = np.zeros(len(voted)), np.zeros(len(left))
    of_votes = np.column_stack([share * weight[voted], share * on_both[voted], nothing])
    known = share * (weight * expected * (1 - expected))[voted]
    at = np.r_[voted, left]
    value = share * (weight[voted] * residual + (on_both * judge)[voted])
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

    def summed(self, rows: Ints, cluster: Ints) -> tuple[Floats, Floats, Floats]:
        """Sum the influence of some rows within clusters, and square it.

        Gives the variances, what they leave of freedom, and what each cluster adds to their sum.

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
        for block, n in _blocks(cluster, k):
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
        return variance, nu, each

    def apart(self, rows: Ints) -> Floats:
        """Return the variances when no two rows hang together."""
        k, pairs = len(self.bread), self.pairs[rows]
        value, weight = self.value[rows], self.weight[rows]
        (a, b), square = pairs.T, value**2
        table = np.bincount(a * k + b, square, k * k).reshape(k, k)
        table = table + table.T
        meat = np.diag(table.sum(axis=1)) - table
        cross = np.stack([_pull(pairs, value * one, k) for one in weight.T]).T @ self.means
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


def moments_at(problem: Problem, theta: Floats) -> Floats:
    """Sum over prompts the products of influences, some prompts at a time, shape (5, k, k).

    Of the votes' with itself, of the votes' with the verdicts' (those on the rest less those on
    items with both), and of the latter with itself; then, for the verdicts on items with both
    alone, the second and the third again. A prompt that people and judge share is one term of each
    sum: what they have in common is counted.
    """
    k, parts = len(theta), _parts(problem, theta)
    total = np.zeros((5, k, k))
    for rows, n_prompts in _blocks(problem.items.prompt, k):
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
        total += _products(*summed)
    return total


class _Part(NamedTuple):
    """One of the three means that an estimate is made of: see `Parts`."""

    weight: Floats
    residual: Floats
    mean: Floats


def _parts(problem: Problem, theta: Floats) -> list[_Part]:
    a, b = problem.items.pairs.T
    expected = win_probability(theta)[a, b]
    people = expected - np.nan_to_num(problem.people)
    judge = expected - np.nan_to_num(problem.judge)
    return [
        _Part(weight, residual, _pull(problem.items.pairs, weight * residual, len(theta)))
        for weight, residual in zip(problem.parts, (people, judge, judge), strict=True)
    ]


def _pull(pairs: Ints, value: Floats, k: int) -> Floats:
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


def _blocks(cluster: Ints, k: int) -> Iterator[tuple[slice, int]]:
    """Cut rows that are sorted by prompts or voters between these, so that sums fit in memory."""
    size = max(1, CHUNK_ENTRIES // k)
    start = 0
    while start < len(cluster):
        stop = int(np.searchsorted(cluster, cluster[start] + size))
        yield slice(start, stop), int(cluster[stop - 1] - cluster[start]) + 1
        start = stop


# Ratings and leads


UNLIKELY = 0.01
"""Under this chance a difference between the items with votes and the rest is reported."""
FEW_VOTERS = 15.0
_NO_PAIR = (
    f"No two models have {FEWEST_OF_A_PAIR} verdicts on items with votes and the same "
    "number on others: the judge adds no information to the votes."
)
_UNLIKE = "The judge's verdicts on the items with votes differ from those on the rest"

RATING = ("rating", "lower", "upper", "df")
POWERED = ("ratings", *(f"effective_sample_gain{end}" for end in ("", "_lower", "_upper")))


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Strengths with their uncertainty.

    Attributes
    ----------
    theta, lower, upper : ndarray of shape (n_models,)
        Nats; the strengths sum to zero over the models with 15 effective voters and prompts or
        more, over all if fewer than two have them. Ends are NaN where ``df`` is less than one.
    variance, df : ndarray of shape (n_models,)
        Of each strength, and the degrees of freedom by voters and prompts.
    averaged : ndarray of shape (n_models,), bool
        Models whose strengths sum to zero.
    """

    theta: Floats
    lower: Floats
    upper: Floats
    variance: Floats
    df: Floats
    averaged: Bools


@dataclass(frozen=True, slots=True, eq=False)
class PoweredRatings:
    """Ratings by people, with and without the judge's help.

    Attributes
    ----------
    models : tuple of str, length n_models
        Those with votes, sorted.
    ratings : Ratings
        By votes and verdicts together.
    human_only : Ratings
        By the votes alone; each item counts once, however many voted on it.
    judge_weight : float
        ``lam``: from 0, people alone, to 1.
    gain : Estimate
        Total variance of ``human_only`` over that of ``ratings``: as many times the votes would
        do without the judge. 1 without an interval where the judge has no weight, and no value
        where its verdicts explain every vote, or votes are on fewer than 20 prompts. ``n`` is the
        number of prompts with votes.
    explained : float or None
        Share of the variance of the votes that endless verdicts on other prompts would take away:
        the squared correlation of what votes and verdicts do to the ratings. None without items
        that have both.
    level : float
        Of the intervals.
    n, n_judged : int
        Items with votes, and items with a verdict and no vote.
    n_prompts : int
        Prompts of the items with votes.
    random_subset_p : float or None
        Chance of the judge differing so much between the items with votes and the rest, were the
        former a random subset; None where it cannot be tested.
    warnings : tuple of str
    assumption : str
    """

    models: tuple[str, ...]
    ratings: Ratings
    human_only: Ratings
    judge_weight: float
    gain: Estimate
    explained: float | None
    level: float
    n: int
    n_judged: int
    n_prompts: int
    random_subset_p: float | None
    warnings: tuple[str, ...]
    assumption: str = ASSUMPTION

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, by the names `POWERED`."""
        ratings, gain = self.ratings, self.gain
        points = (to_points(x) for x in (ratings.theta, ratings.lower, ratings.upper))
        rated = [
            {"model": model, **dict(zip(RATING, map(finite, row), strict=True))}
            for model, *row in zip(self.models, *points, ratings.df, strict=True)
        ]
        values = (rated, gain.value, gain.lower, gain.upper)
        return dict(zip(POWERED, values, strict=True))


def powered_ratings(
    items: Items,
    people: Labels,
    judge: Labels,
    *,
    level: float = 0.95,
    probability: Floats | None = None,
) -> PoweredRatings:
    """Rate models by people's preferences from the votes on some items and verdicts on more.

    Minimise, over strengths that sum to zero,

    ::

        mean_voted l(vote) - lam mean_both l(verdict) + lam mean_rest l(verdict)

    where ``l(s) = log(1 + exp(gap)) - s gap`` is the surprise of a score s of side A, a tie
    counting as half: the mean of an item's votes, and of a judge's probabilities where it gave
    them, its verdicts otherwise. The means are over the items with votes, those with a verdict as
    well, and those with a verdict alone; ``lam`` in [0, 1] minimises the total variance. What is
    estimated is Bradley-Terry under the pairs of the items, whatever the judge is like.

    Votes and verdicts are summed by voter and by prompt before they are squared, with Student's t
    for the effective voters and prompts behind each rating: see
    `_uncertainty`. The published covariance takes items as
    independent: too narrow where they share prompts, or votes share voters. ``lam`` is tuned on
    the covariance by prompt.

    Parameters
    ----------
    people, judge : Labels
        A judge's repetitions and orders are averaged. Where voters are not known, each vote is of
        a voter of its own: the intervals then allow for prompts alone.
    probability : ndarray of shape (n_items,), optional
        With what probability each item was sent to people, where it was not the same for all.

    Raises
    ------
    NotIdentifiedError
        If the votes alone leave a strength without a finite value, show no spread or are on
        fewer than five prompts, or the verdicts pull the loss down without end.
    DataError
        For a chance that is none.

    References
    ----------
    .. [1] P. Boyeau, A. N. Angelopoulos, N. Yosef, J. Malik and M. I. Jordan, "AutoEval done
       right: using synthetic data for model evaluation", arXiv 2403.07008, 2024, section 4.
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023, sections 5 and 6.
    """
    problem, left_out = problem_of(items, people, judge, probability)
    prompts = _prompts_with_votes(problem)
    alone = _solved(problem, 0.0)
    start = moments_at(problem, alone)
    bread = bread_at(problem, alone, 0.0)
    lam = _tuned(start, bread) if problem.has_rest else 0.0
    _check_spread(start)
    explained = _explained(start, bread)
    average = _founded(problem, alone)
    human_only, by_prompt = _ratings(problem, alone, 0.0, level, average)
    ratings, gain = human_only, Estimate(1.0, None, None, prompts[0])
    if lam > 0:
        ratings, powered_by_prompt = _ratings(problem, _solved(problem, lam), lam, level, average)
        ratio = float(human_only.variance.sum() / ratings.variance.sum())
        gain = _gain(ratio, prompts, (by_prompt, powered_by_prompt), explained, level)
    subset_p = _random_subset(problem, alone, start, *prompts)
    few = prompts[0] < FEW_PROMPTS
    on_prompts = f"Votes on {prompts[0]} prompts"
    rough = f"{on_prompts} are too few to resample: the intervals are approximate."
    unknown = f"{on_prompts} are too few to estimate the votes saved." if few else NO_RESIDUALS
    return PoweredRatings(
        models=problem.items.models,
        ratings=ratings,
        human_only=human_only,
        judge_weight=lam,
        gain=gain,
        explained=explained,
        level=level,
        n=int(problem.voted.sum()),
        n_judged=int((problem.judged & ~problem.voted).sum()),
        n_prompts=prompts[0],
        random_subset_p=subset_p,
        warnings=(
            *left_out,
            *([rough] if few else []),
            *_on_voters(people),
            *_without_interval(problem.items.models, ratings),
            *_on_parts(problem, subset_p),
            *([unknown] if gain.value is None else []),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredLead:
    """The lead of one model over another by votes and verdicts together.

    Attributes
    ----------
    judge_weight : float
        ``lam``, of least variance of this lead.
    verdicts : int
        Items with a verdict that counted; 0 where the judge has no weight.
    """

    lead: Lead
    judge_weight: float
    verdicts: int
    warnings: tuple[str, ...]


def powered_lead(
    items: Items, people: Labels, judge: Labels, between: tuple[str, str]
) -> PoweredLead:
    """Estimate the lead of one model over another from votes and verdicts.

    As `powered_ratings`, but that verdicts count pair by pair
    (`_by_pair`), and that ``lam`` in [0, 1] minimises the variance of
    this lead alone. Where the verdicts on the items with votes differ from those on the rest, pair
    by pair, the judge is excluded, and a warning says so.

    Raises
    ------
    NotIdentifiedError
        As `powered_ratings`; and if nobody voted on one of the two, votes do not link them, or
        either has won and lost too few.
    """
    problem, left_out = problem_of(items, people, judge, None)
    ends = _ends(problem, between)
    prompts = _prompts_with_votes(problem)
    contrast = np.zeros((1, len(problem.items.models)))
    contrast[0, ends[0]], contrast[0, ends[1]] = 1.0, -1.0
    theta = _solved(problem, 0.0)
    problem = _by_pair(problem, theta)
    start = moments_at(problem, theta)
    _check_spread(start)
    subset_p = _random_subset(problem, theta, start, *prompts)
    lam, warnings = 0.0, left_out
    if subset_p is not None and subset_p < UNLIKELY:
        warnings += (f"{_UNLIKE} (p = {subset_p:.2g}): the judge is excluded.",)
    elif problem.has_rest:
        toward = bread_at(problem, theta, 0.0) @ contrast[0]
        lam = _tuned(start, np.outer(toward, toward))
        theta = _solved(problem, lam)
    else:
        warnings += (_NO_PAIR,)
    errors = _uncertainty(problem, theta, lam, contrast)
    lead = Lead(
        value=float(contrast[0] @ theta),
        variance=float(errors.two_way[0]),
        df=float(errors.df[0]),
        of_prompts=float(errors.added[0]),
        by_prompt=float(errors.by_prompt[0]),
        prompt_df=float(errors.prompt_df[0]),
        independent=float(errors.independent[0]),
        effective=float(errors.effective[0]),
    )
    counted = (problem.parts[1] > 0) | (problem.parts[2] > 0)
    return PoweredLead(
        lead=lead,
        judge_weight=lam,
        verdicts=int(counted.sum()) if lam > 0 else 0,
        warnings=warnings,
    )


def _ends(problem: Problem, between: tuple[str, str]) -> tuple[int, int]:
    """Find the two among the rated models; raise where nothing can be told of them yet."""
    for name in between:
        if name not in problem.items.models:
            raise NotIdentifiedError(f"Nobody voted on {name!r} yet.")
    ends = problem.items.models.index(between[0]), problem.items.models.index(between[1])
    votes = problem.votes
    k = len(problem.items.models)
    place = np.full(int(max(problem.item.max(), votes.item.max())) + 1, -1)
    place[problem.item] = np.arange(len(problem.item))
    at = place[votes.item]
    (a, b), score = problem.items.pairs[at[at >= 0]].T, row_scores(votes)[at >= 0]
    wins = np.zeros((k, k))
    np.add.at(wins, (a, b), score == 1)
    np.add.at(wins, (b, a), score == 0)
    require_comparable(wins, ends)
    return ends


def _check_spread(moments: Floats) -> None:
    """Raise where every vote is as expected to the digit, as when all are ties."""
    if np.trace(moments[0]) <= np.finfo(np.float64).eps ** 2:
        raise NotIdentifiedError("The votes do not vary, such as ties alone: no intervals.")


def _ratings(
    problem: Problem, theta: Floats, lam: float, level: float, average: Bools
) -> tuple[Ratings, Floats]:
    """Return strengths with their intervals, and what each prompt adds to the variances."""
    errors = _uncertainty(problem, theta, lam, np.eye(len(theta)) - average / average.sum())
    half = errors.half_width(level)
    theta = theta - theta[average].mean()
    ratings = Ratings(theta, theta - half, theta + half, errors.variance, errors.df, average)
    return ratings, errors.of_prompts


def _random_subset(
    problem: Problem, theta: Floats, moments: Floats, n_prompts: int, effective: float
) -> float | None:
    """Test that verdicts on the items with votes are like those on the rest.

    The judge's part of the gradient has mean zero when the items with votes are a random subset;
    its square in units of its covariance is compared with an F distribution (Hotelling).
    """
    k, n, (_, both, rest) = len(theta), effective, problem.parts
    if not problem.has_rest or n <= 2 * k:
        return None
    a, b = problem.items.pairs.T
    residual = win_probability(theta)[a, b] - np.nan_to_num(problem.judge)
    gap = _pull(problem.items.pairs, (rest - both) * residual, k)
    square = n_prompts / (n_prompts - 1) * moments[2]
    if np.linalg.matrix_rank(square) < k - 1:
        return None
    statistic = float(gap @ np.linalg.pinv(square, rcond=1e-10, hermitian=True) @ gap)
    df = n - k + 1
    return float(scipy.special.fdtrc(k - 1, df, statistic * df / ((n - 1) * (k - 1))))


def _on_parts(problem: Problem, subset_p: float | None) -> tuple[str, ...]:
    warnings = []
    if not problem.has_rest:
        warnings.append(NOTHING_TO_GAIN)
    unjudged = int((problem.voted & ~problem.judged).sum())
    if unjudged:
        warnings.append(
            f"{unjudged} items have votes and no verdict: they count without the judge."
        )
    if subset_p is not None and subset_p < UNLIKELY:
        warnings.append(
            f"{_UNLIKE} (p = {subset_p:.2g}): these items are not a random subset, and ratings "
            "with the judge may be biased. Use the ratings by votes alone, or give the "
            "probabilities with which items were sent to people."
        )
    return tuple(warnings)


def _on_voters(people: Labels) -> tuple[str, ...]:
    count = np.bincount(people.rater).astype(np.float64)
    effective = float(count.sum() ** 2 / (count @ count))
    if effective >= FEW_VOTERS:
        return ()
    return (
        f"The effective sample size is {effective:.1f} voters: the intervals of ratings by "
        "people are for voters like these, and are wide for this reason.",
    )


def _without_interval(models: tuple[str, ...], ratings: Ratings) -> tuple[str, ...]:
    names = [model for model, low in zip(models, ratings.lower, strict=True) if np.isnan(low)]
    if not names:
        return ()
    return (
        "Ratings without an interval, because their effective sample size is below two "
        f"voters or prompts: {', '.join(names)}.",
    )
