"""Bradley-Terry on votes and verdicts together: its equations, and each prompt's part in them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from judge.studies.items import Items, Said
from judge.studies.power_tuning import Moments, Parts, parts
from rating import Comparisons, connectivity
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.likelihood.bradley_terry import hessian, solve, win_probability
from rating.likelihood.newton import anchored
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.covariance import CHUNK_ENTRIES, identified_inverse

_ENDLESS = (
    "Votes and verdicts differ too much for so few votes: no ratings fit both best. "
    "Collect more votes, or rate by the votes alone."
)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Items between rated models, in the order of their prompts.

    ``item`` is their index among all items; ``people`` and ``judge`` are mean scores of side A,
    NaN where there are none.
    """

    models: tuple[str, ...]
    item: Ints
    pairs: Ints
    prompt: Ints
    people: Floats
    judge: Floats
    chance: Floats | None

    @property
    def voted(self) -> Bools:
        """Items with votes."""
        return ~np.isnan(self.people)

    @property
    def judged(self) -> Bools:
        """Items with verdicts."""
        return ~np.isnan(self.judge)

    @property
    def parts(self) -> Parts:
        """What each item weighs."""
        return parts(self.voted, self.judged, self.chance)


def row_scores(said: Said) -> Floats:
    """Return the score of side A in each row.

    1 for side A, 1/2 for a tie, 0 for side B; the probability where one was given.
    """
    return np.where(np.isnan(said.chance), (said.label + 1) / 2, said.chance)


def scores(said: Said, n_items: int) -> Floats:
    """Return the mean score of side A of each item; NaN where nothing was said."""
    count = np.bincount(said.item, minlength=n_items)
    total = np.bincount(said.item, row_scores(said), n_items)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def problem_of(
    items: Items, people: Said, judge: Said, chance: Floats | None
) -> tuple[Problem, tuple[str, ...]]:
    """Keep the items between models with votes, and say who was left out."""
    models = _rated(items, people)
    number = np.full(len(items.models), -1)
    for index, name in enumerate(models):
        number[items.models.index(name)] = index
    pairs = number[items.pairs]
    fit = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    kept = np.flatnonzero(fit)[np.argsort(items.prompt[fit], kind="stable")]
    of_people, of_judge = scores(people, items.n)[kept], scores(judge, items.n)[kept]
    problem = Problem(
        models=models,
        item=kept,
        pairs=pairs[kept],
        prompt=items.prompt[kept],
        people=of_people,
        judge=of_judge,
        chance=None if chance is None else chance[kept],
    )
    seen = np.zeros(len(items.models), dtype=bool)
    seen[items.pairs[judge.item].ravel()] = True
    lost = [items.models[i] for i in np.flatnonzero(seen & (number < 0))]
    said = f"Judged, but not rated, for nobody voted on them: {', '.join(sorted(lost))}."
    return problem, (said,) if lost else ()


def _rated(items: Items, people: Said) -> tuple[str, ...]:
    """Return the models that votes determine, sorted."""
    a, b = items.pairs[people.item].T
    outcome = np.array([2, 0, 1])[people.label]  # tie, side A, side B: label -1 is the last
    data = Comparisons.from_codes(items.models, a, b, outcome)
    found = connectivity(data)
    if not found.is_identified:
        msg = f"The votes alone do not determine the ratings. {found.describe()}"
        raise NotIdentifiedError(msg)
    return data.models


def solved(problem: Problem, weigh: Parts, lam: float) -> Floats:
    """Return the strengths, shape (n_models,).

    Raises
    ------
    NotIdentifiedError
        If the verdicts taken off make the loss fall without end.
    """
    wins = powered_wins(problem, weigh, lam)
    try:
        theta = solve(wins, np.zeros(len(wins))).theta
    except ConvergenceError as error:
        raise NotIdentifiedError(_ENDLESS) from error
    if np.linalg.eigvalsh(anchored(hessian(theta, wins), len(wins), absolute=False))[0] <= 0:
        raise NotIdentifiedError(_ENDLESS)
    return theta


def powered_wins(problem: Problem, weigh: Parts, lam: float) -> Floats:
    """Return the score of row against column, which may be negative for what the judge takes off.

    The loss is linear in the scores, so that it is Bradley-Terry on this table, in votes.
    """
    people, judge = np.nan_to_num(problem.people), np.nan_to_num(problem.judge)
    by_judge = lam * (weigh.rest - weigh.both)
    won = weigh.voted * people + by_judge * judge
    lost = weigh.voted * (1 - people) + by_judge * (1 - judge)
    k, n = len(problem.models), int(problem.voted.sum())
    a, b = problem.pairs.T
    table = np.bincount(a * k + b, won, k * k) + np.bincount(b * k + a, lost, k * k)
    return np.asarray(n * table.reshape(k, k))


def bread_at(problem: Problem, weigh: Parts, theta: Floats, lam: float) -> Floats:
    """Return the inverse curvature of the mean loss."""
    curvature = hessian(theta, powered_wins(problem, weigh, lam)) / int(problem.voted.sum())
    return identified_inverse(curvature, len(theta), absolute=False)


def moments_at(problem: Problem, weigh: Parts, theta: Floats) -> Moments:
    """Sum the products of the prompts' influences, some prompts at a time."""
    a, b = problem.pairs.T
    expected = win_probability(theta)[a, b]
    people = expected - np.nan_to_num(problem.people)
    judge = expected - np.nan_to_num(problem.judge)
    k = len(theta)
    means = [
        pull(problem.pairs, weight * residual, k)
        for weight, residual in ((weigh.voted, people), (weigh.both, judge), (weigh.rest, judge))
    ]
    total = Moments(*np.zeros((5, k, k)))
    for rows, n_prompts in blocks(problem.prompt, k):
        prompt = problem.prompt[rows] - problem.prompt[rows.start]
        summed = [
            _pulls(prompt, n_prompts, problem.pairs[rows], weight[rows], residual[rows], mean)
            for weight, residual, mean in zip(
                (weigh.voted, weigh.both, weigh.rest), (people, judge, judge), means, strict=True
            )
        ]
        total += Moments.of(*summed)
    return total


def pull(pairs: Ints, value: Floats, k: int) -> Floats:
    """Return each model's sum of a value that one side of an item gains from the other."""
    gained = np.bincount(pairs[:, 0], value, k) - np.bincount(pairs[:, 1], value, k)
    return np.asarray(gained, dtype=np.float64)


def _pulls(
    prompt: Ints, n: int, pairs: Ints, weight: Floats, residual: Floats, mean: Floats
) -> Floats:
    """Sum ``weight (gradient - mean)`` by prompt, shape (n, n_models)."""
    k = len(mean)
    value = weight * residual
    gradient = np.bincount(prompt * k + pairs[:, 0], value, n * k)
    gradient -= np.bincount(prompt * k + pairs[:, 1], value, n * k)
    return np.asarray(gradient.reshape(n, k) - np.bincount(prompt, weight, n)[:, None] * mean)


def blocks(cluster: Ints, k: int) -> Iterator[tuple[slice, int]]:
    """Cut rows that are sorted by prompts or voters between these, so that sums fit in memory."""
    size = max(1, CHUNK_ENTRIES // k)
    start = 0
    while start < len(cluster):
        stop = int(np.searchsorted(cluster, cluster[start] + size))
        yield slice(start, stop), int(cluster[stop - 1] - cluster[start]) + 1
        start = stop
