"""One model for people and judges: strengths, each judge's sensitivity, and what is left over."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.boards import preferences
from judge.studies.items import Items, Labels
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.typing import Floats, Ints

PEOPLE = "people"
LEAST_SENSITIVITY = 0.02
"""A judge that sees less than this share of what the others see has no place on their board."""
FEWEST_MODELS = 3
NARROWEST, WIDEST = 0.02, 2.0
"""Where the spread of what judges do to a model beyond strengths is looked for, in nats."""
_MOST_STEPS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Rater:
    """Rows of one judge, or of all people.

    Attributes
    ----------
    weight : ndarray of shape (labels.n,)
        For how much of a verdict each row stands, as a half in two orders.
    share : float
        For how many votes a verdict counts, and as much less do the rater's residuals.
    """

    name: str
    labels: Labels
    weight: Floats
    share: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class JudgeAware:
    """The fit of `judge_aware`.

    Attributes
    ----------
    models, raters : tuple of str
        Raters as given, without those left out.
    theta : ndarray of shape (n_models,)
        Nats, summing to zero.
    sensitivity : ndarray of shape (n_raters,)
        ``gamma``: nats of a rater for one of the anchor.
    first : ndarray of shape (n_raters,)
        ``alpha``, nats for being shown first; NaN where the rater's rows do not tell.
    residual : ndarray of shape (n_raters, n_models)
        ``r``, nats, shrunk; of people 0.
    spread : float
        ``tau``, the standard deviation of the residuals.
    influence : ndarray of shape (n_prompts + n_residuals, n_parameters)
        How far each prompt moved strengths, logs of sensitivities, position biases and residuals,
        and how far one standard deviation of each residual of a judge does: intervals allow for
        both.
    insensitive : tuple of str
        Raters left out, who see nothing of what the others see.
    """

    models: tuple[str, ...]
    raters: tuple[str, ...]
    theta: Floats
    sensitivity: Floats
    first: Floats
    residual: Floats
    spread: float
    influence: Floats
    insensitive: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Rows of all raters, and where each parameter stands.

    ``anchored`` is whether the first rater is people, whose sensitivity is 1 and who have no
    residuals. ``both_ways`` are the raters whose rows tell what being shown first is worth.
    """

    n_models: int
    n_raters: int
    rater: Ints
    a: Ints
    b: Ints
    score: Floats
    first: Floats
    weight: Floats
    prompt: Ints
    n_prompts: int
    anchored: bool
    both_ways: tuple[int, ...]
    share: Floats

    @property
    def log_gamma(self) -> slice:
        return slice(self.n_models, self.n_models + self.n_raters)

    @property
    def alpha(self) -> slice:
        start = self.n_models + self.n_raters
        return slice(start, start + self.n_raters)

    @property
    def residual(self) -> slice:
        start = self.n_models + 2 * self.n_raters
        return slice(start, start + self.n_raters * self.n_models)

    @property
    def size(self) -> int:
        return int(self.residual.stop)

    def of_rater(self, k: int) -> Ints:
        """Return where a rater's own parameters stand."""
        start = self.residual.start + k * self.n_models
        own = (self.log_gamma.start + k, self.alpha.start + k)
        return np.array([*own, *range(start, start + self.n_models)])

    def penalty(self, spread: float) -> Floats:
        """Return the quadratic form that holds what the rows leave open, and shrinks residuals."""
        diagonal = np.zeros(self.size)
        diagonal[self.residual] = np.repeat(self.share, self.n_models) / spread**2
        if self.anchored:
            diagonal[self.n_models] = 1e8
            diagonal[self.residual.start : self.residual.start + self.n_models] = 1e8
        one_way = [k for k in range(self.n_raters) if k not in self.both_ways]
        diagonal[[self.alpha.start + k for k in one_way]] = 1e8
        form = np.diag(diagonal)
        form[: self.n_models, : self.n_models] += 1.0  # strengths sum to zero
        if not self.anchored:
            form[self.log_gamma, self.log_gamma] += 1.0  # the mean log sensitivity is zero
        return form

    def linear(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ``eta``, each row's sensitivity, and its difference of strengths."""
        gamma = np.exp(x[self.log_gamma])[self.rater]
        apart = x[self.a] - x[self.b]
        r = x[self.residual].reshape(self.n_raters, self.n_models)
        beyond = r[self.rater, self.a] - r[self.rater, self.b]
        return gamma * apart + x[self.alpha][self.rater] * self.first + beyond, gamma, apart

    def slopes(self, gamma: Floats, apart: Floats) -> Any:
        """Return what each parameter does to ``eta``: sparse, of shape (n_rows, size)."""
        n, one = len(self.rater), np.ones(len(self.rater))
        at = self.residual.start + self.rater * self.n_models
        columns = (
            *(self.a, self.b, self.log_gamma.start + self.rater),
            *(self.alpha.start + self.rater, at + self.a, at + self.b),
        )
        values = np.stack([gamma, -gamma, gamma * apart, self.first, one, -one], axis=1)
        where = np.stack(columns, axis=1)
        starts = np.arange(0, 6 * n + 1, 6)
        return scipy.sparse.csr_matrix(
            (values.ravel(), where.ravel(), starts), shape=(n, self.size)
        )

    def curved(self, left: Floats, gamma: Floats, apart: Floats) -> Floats:
        """Return what the product of sensitivity and strength adds to the second derivative."""
        cross = np.zeros((self.n_models, self.n_raters))
        np.add.at(cross, (self.a, self.rater), left * gamma)
        np.add.at(cross, (self.b, self.rater), -left * gamma)
        own = np.bincount(self.rater, left * gamma * apart, self.n_raters)
        form = np.zeros((self.size, self.size))
        form[: self.n_models, self.log_gamma] = cross
        form[self.log_gamma, : self.n_models] = cross.T
        form[self.log_gamma, self.log_gamma] = np.diag(own)
        return form


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    x: Floats
    objective: float
    information: Floats

    def log_marginal(self, problem: _Problem, spread: float) -> float:
        """Return Laplace's log marginal likelihood of the spread, up to a constant.

        What is a judge's own counts by its share, as its verdicts do, so that a judge given twice
        at half the share changes nothing.
        """
        n, information = problem.n_models, self.information.copy()
        if not problem.anchored:  # strengths hold the scale here, that judges stand apart
            theta = self.x[:n]
            along = problem.n_raters * theta / float(theta @ theta)
            information[:n, :n] += np.outer(along, along)
            information[problem.log_gamma, problem.log_gamma] -= 1.0
        between, within = information[:n, :n].copy(), 0.0
        for k in range(int(problem.anchored), problem.n_raters):
            own = problem.of_rater(k)
            block, beside = information[np.ix_(own, own)], information[:n, own]
            between -= beside @ np.linalg.solve(block, beside.T)
            within += problem.share[k] * float(np.linalg.slogdet(block)[1])
        free = n * float(problem.share[int(problem.anchored) :].sum())
        log_det = within + float(np.linalg.slogdet(between)[1])
        return -self.objective - free * math.log(spread) - log_det / 2


def judge_aware(
    items: Items, raters: Sequence[Rater], *, spread: float | None = None
) -> JudgeAware:
    """Fit one model to the verdicts of several judges, and the votes of people beside them.

    For rater k and the models i and j of an item, a tie half a win for each,

    ::

        logit P_k(i over j) = gamma_k (theta_i - theta_j) + alpha_k first + r_ki - r_kj

    with ``gamma_k > 0`` and ``r_ki ~ N(0, tau^2)``. A judge's verdicts and residuals count by
    its share. People, if they are the first rater, are the anchor: their gamma is 1, they have no
    r. Without them the geometric mean of gamma is 1. Where a judge's rows show each pair of models
    one way round, alpha is not fitted. Newton's method on all parameters; ``tau`` maximises
    Laplace's marginal likelihood.

    Parameters
    ----------
    raters : sequence of Rater
        People first, by the name `PEOPLE`, if they are there.
    spread : float, optional
        ``tau``, where it is known.

    Returns
    -------
    JudgeAware
        Its influences are of the joint score, summed by prompt, with the observed information,
        and of the residuals, which are as random as the judges are.

    Raises
    ------
    NotIdentifiedError
        If the rows are on two models alone or leave a strength without a finite value, or fewer
        than two raters see any of what the others see.

    References
    ----------
    .. [1] Judge-aware ranking, 2026 (arXiv:2601.21817), and with judges that differ by model
       (arXiv:2605.05073). There the residuals are of low rank; here they are shrunk.
    """
    settled = _settled(items, _connected(items, raters), raters, spread)
    problem, x = settled.problem, settled.solution.x
    alpha = np.full(problem.n_raters, np.nan)
    alpha[list(problem.both_ways)] = x[problem.alpha][list(problem.both_ways)]
    return JudgeAware(
        models=settled.models,
        raters=tuple(rater.name for rater in settled.raters),
        theta=x[: problem.n_models],
        sensitivity=np.exp(x[problem.log_gamma]),
        first=alpha,
        residual=x[problem.residual].reshape(problem.n_raters, problem.n_models),
        spread=settled.spread,
        influence=_influence(problem, settled.solution, settled.spread),
        insensitive=settled.left_out,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Settled:
    """A solution, and the raters that have a part in it."""

    models: tuple[str, ...]
    raters: Sequence[Rater]
    left_out: tuple[str, ...]
    problem: _Problem
    spread: float
    solution: _Solution


def _settled(
    items: Items,
    models: tuple[str, ...],
    raters: Sequence[Rater],
    spread: float | None,
    left_out: tuple[str, ...] = (),
) -> _Settled:
    """Solve, without the raters who see nothing of what the others see, one after the other."""
    problem = _problem(items, models, raters)
    try:
        tau = _fitted_spread(problem) if spread is None else spread
        solution = _solved(problem, tau)
    except _Insensitive as error:
        left_out = (*left_out, raters[error.rater].name)
        others = [rater for k, rater in enumerate(raters) if k != error.rater]
        if len(others) < 2:
            msg = f"{' and '.join(left_out)} see nothing of what the others see: no board."
            raise NotIdentifiedError(msg) from None
        return _settled(items, models, others, spread, left_out)
    return _Settled(models, raters, left_out, problem, tau, solution)


class _Insensitive(Exception):
    """A sensitivity falls towards zero: fit again without this rater."""

    def __init__(self, rater: int) -> None:
        self.rater = rater


def _connected(items: Items, raters: Sequence[Rater]) -> tuple[str, ...]:
    """Name the models that all rows together rate; raises `NotIdentifiedError` as they do."""
    columns = ("item", "rater", "label", "first", "probability")
    every = Labels(
        *(np.concatenate([getattr(rater.labels, name) for rater in raters]) for name in columns)
    )
    models = preferences(items, every).models
    if len(models) < FEWEST_MODELS:
        msg = (
            f"The verdicts are on {' and '.join(models)} alone: how far these are apart and how "
            f"sensitive a judge is can be estimated from {FEWEST_MODELS} models on."
        )
        raise NotIdentifiedError(msg)
    return models


def _problem(items: Items, models: tuple[str, ...], raters: Sequence[Rater]) -> _Problem:
    place = np.array([models.index(m) if m in models else -1 for m in items.models])
    of_rater = [np.full(one.labels.n, k, dtype=np.int64) for k, one in enumerate(raters)]
    item = np.concatenate([one.labels.item for one in raters])
    label = np.concatenate([one.labels.label for one in raters]).astype(np.float64)
    first = np.concatenate([one.labels.first for one in raters]).astype(np.float64)
    a, b = place[items.pairs[item]].T
    rater = np.concatenate(of_rater)
    return _Problem(
        n_models=len(models),
        n_raters=len(raters),
        rater=rater,
        a=a,
        b=b,
        score=(1 + label) / 2,
        first=first,
        weight=np.concatenate([one.share * one.weight for one in raters]),
        prompt=items.prompt[item],
        n_prompts=items.n_prompts,
        anchored=raters[0].name == PEOPLE,
        both_ways=tuple(_shown_both_ways(rater, a * len(models) + b, first)),
        share=np.array([one.share for one in raters]),
    )


def _shown_both_ways(rater: Ints, pair: Ints, first: Floats) -> Iterator[int]:
    """Give the raters who were shown some pair of models both ways round."""
    for k in range(int(rater.max()) + 1):
        own = rater == k
        if np.isin(pair[own & (first > 0)], pair[own & (first < 0)]).any():
            yield k


def _fitted_spread(problem: _Problem) -> float:
    start: list[Floats] = [np.zeros(problem.size)]

    def against(log_spread: float) -> float:
        spread = math.exp(log_spread)
        solution = _solved(problem, spread, start[0])
        start[0] = solution.x
        return -solution.log_marginal(problem, spread)

    ends = (math.log(NARROWEST), math.log(WIDEST))
    best = scipy.optimize.minimize_scalar(
        against, bounds=ends, method="bounded", options={"xatol": 0.05}
    )
    return math.exp(float(best.x))


def _solved(problem: _Problem, spread: float, start: Floats | None = None) -> _Solution:
    """Maximise the penalised likelihood; sensitivities are held until strengths are near."""
    penalty = problem.penalty(spread)
    x = np.zeros(problem.size) if start is None else start
    if not x[: problem.n_models].any():
        held = penalty.copy()
        held[problem.log_gamma, problem.log_gamma] += 1e8 * np.eye(problem.n_raters)
        x = _newton(problem, held, x, 1e-3).x
    return _newton(problem, penalty, x, 1e-9)


def _newton(problem: _Problem, penalty: Floats, x: Floats, tolerance: float) -> _Solution:
    damping = 0.0
    objective = _objective(problem, penalty, x)
    scale = float(problem.weight.sum())
    for _ in range(_MOST_STEPS):
        eta, gamma, apart = problem.linear(x)
        p = scipy.special.expit(eta)
        slopes = problem.slopes(gamma, apart)
        left = problem.weight * (p - problem.score)
        gradient = slopes.T @ left + penalty @ x
        weighted = slopes.multiply((problem.weight * p * (1 - p))[:, None])
        expected = np.asarray((slopes.T @ weighted).todense()) + penalty
        if np.abs(gradient).max() <= tolerance * scale:
            return _Solution(x, objective, expected + problem.curved(left, gamma, apart))
        while True:
            damped = expected + damping * np.diag(np.diag(expected) + 1e-9)
            step = np.linalg.solve(damped, gradient)
            closer = _objective(problem, penalty, x - step)
            if closer <= objective + 1e-12 * abs(objective):
                break
            damping = max(10 * damping, 1e-3)
            if damping > 1e12:
                raise NotIdentifiedError("The board of people and judges does not converge.")
        damping = damping / 10 if damping > 1e-6 else 0.0
        x, objective = x - step, closer
        low = int(np.argmin(x[problem.log_gamma]))
        if x[problem.log_gamma][low] < math.log(LEAST_SENSITIVITY):
            raise _Insensitive(low)
    raise ConvergenceError(f"No board of people and judges after {_MOST_STEPS} steps.")


def _objective(problem: _Problem, penalty: Floats, x: Floats) -> float:
    eta, *_ = problem.linear(x)
    loss = problem.weight @ (np.logaddexp(0, eta) - problem.score * eta)
    return float(loss + x @ penalty @ x / 2)


def _influence(problem: _Problem, solution: _Solution, spread: float) -> Floats:
    """Return what each prompt moved, and below it what one sd of each residual moves.

    The estimate is off by ``H^-1 (scores - P r)``, with the penalty ``P = share / tau^2`` and
    residuals of variance ``tau^2``. For strengths, on which the residuals of all judges work,
    these are taken as alike as their errors, so that the sum of squares is ``H^-1 (S + P) H^-1``;
    for what is a judge's own they are its own, ``H^-1 (S + share P) H^-1``.
    """
    eta, gamma, apart = problem.linear(solution.x)
    left = problem.weight * (problem.score - scipy.special.expit(eta))
    scores = problem.slopes(gamma, apart).multiply(left[:, None]).tocsr()
    n = len(problem.prompt)
    by_prompt = scipy.sparse.csr_matrix(
        (np.ones(n), (problem.prompt, np.arange(n))), shape=(problem.n_prompts, n)
    )
    summed = np.asarray((by_prompt @ scores).todense())
    judged = int(problem.anchored)
    first = problem.residual.start + judged * problem.n_models
    shares = np.repeat(problem.share[judged:], problem.n_models)
    by_residual = np.zeros((len(shares), problem.size))
    by_residual[:, first:] = np.diag(np.sqrt(shares) / spread)
    pulls = np.concatenate([summed, by_residual])
    influence = np.asarray(np.linalg.solve(solution.information, pulls.T).T)
    influence[len(summed) :, problem.n_models :] *= np.sqrt(shares)[:, None]
    return influence
