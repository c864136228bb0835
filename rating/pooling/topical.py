"""Strengths that go with what a prompt is about: a candidate of the referee."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its submodules load on first use

from rating.diagnosis.referee import Forecast, sigmoid, with_constant_ties
from rating.errors import DataError
from rating.likelihood.newton import Evaluation, minimise
from rating.likelihood.ties import TIE, A
from rating.pooling.variance import highest
from rating.rows import VoteRows
from rating.typing import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ScoresOf = Callable[[Sequence[str], Sequence[str]], Floats]
"""From the names of prompts to learn from, and of some to score, to scores of shape (n, k).

Those of the former have a mean of 0 and a standard deviation of 1; 0 is of a prompt of which
nothing is known.
"""

MOST = 4_000
"""Parameters of which the Hessian is still made: beyond, it takes minutes."""


@dataclass(frozen=True, slots=True, eq=False)
class Topical:
    """Strengths of models on prompts with scores z: ``theta + z @ slopes``, in nats.

    Attributes
    ----------
    theta : ndarray of shape (n_models,)
    slopes : ndarray of shape (k, n_models)
    tau : float
        Standard deviation of the slopes; about 1e-3 where the votes show none.
    """

    theta: Floats
    slopes: Floats
    tau: float

    def lead(self, rows: VoteRows, scores: Floats) -> Floats:
        """Return the log-odds of side A in each row, scores being those of its prompt."""
        strengths = self.theta + scores @ self.slopes
        at = np.arange(rows.n)
        return np.asarray(strengths[at, rows.a] - strengths[at, rows.b])


def fit_topical(rows: VoteRows, scores: Floats, *, ridge: float) -> Topical:
    """Fit votes for a side by penalised maximum likelihood, tau by Laplace's approximation.

    The log-odds of i over j on a prompt with scores z are::

        theta[i] - theta[j] + sum_k z[k] (slopes[k, i] - slopes[k, j])

    with ``slopes ~ N(0, tau ** 2)`` and ``theta ~ N(0, 1 / ridge)``.

    Parameters
    ----------
    rows : VoteRows
        For a side each.
    scores : ndarray of shape (n_rows, k)
    ridge : float
        Above 0.

    Raises
    ------
    DataError
        If there are more than `MOST` parameters, or there is no ridge.
    ConvergenceError
        If the minimum is not reached.

    References
    ----------
    .. [1] E. Frick et al., "Prompt-to-Leaderboard", arXiv 2502.14855, 2025, whose language model
       gives each prompt its own strengths: here words and a straight line take its place.
    """
    k, n_models = int(scores.shape[1]), len(rows.models)
    if ridge <= 0:
        raise DataError(f"Strengths by topic take a ridge above 0, not {ridge:g}.")
    if (size := (k + 1) * n_models) > MOST:
        msg = f"{n_models} models with {k} scores a prompt are {size:,} parameters, more than "
        raise DataError(f"{msg}{MOST:,}: leave out the topical model.")
    design = _design(rows, scores)
    x = np.zeros(size)

    def log_marginal(tau: float) -> float:
        nonlocal x
        problem = _Penalised(design, rows, n_models, ridge, tau)
        x, at, _ = minimise(problem, x)
        log_det = float(np.linalg.slogdet(at.hessian)[1])
        return -at.loss - log_det / 2 - k * n_models * math.log(tau)

    tau = highest(log_marginal)
    log_marginal(tau)
    theta, slopes = x[:n_models], x[n_models:].reshape(k, n_models)
    return Topical(theta, slopes, tau)


def _design(rows: VoteRows, scores: Floats) -> "csr_array":
    """Return what the log-odds of each row are made of, shape (n_rows, n_parameters)."""
    z = np.column_stack([np.ones(rows.n), scores])
    first = np.arange(z.shape[1]) * len(rows.models)
    column = np.hstack([first + rows.a[:, None], first + rows.b[:, None]])
    start = np.arange(rows.n + 1) * column.shape[1]
    shape = (rows.n, z.shape[1] * len(rows.models))
    return scipy.sparse.csr_array((np.hstack([z, -z]).ravel(), column.ravel(), start), shape=shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Penalised:
    """What `fit_topical` minimises at a given tau: the ridge makes the scale absolute."""

    design: "csr_array"
    rows: VoteRows
    n_models: int
    ridge: float
    tau: float
    absolute: bool = True

    @property
    def total(self) -> float:
        return float(self.rows.times.sum())

    def evaluate(self, x: Floats) -> Evaluation:
        times, won = self.rows.times, self.rows.outcome == A
        penalty = np.full(len(x), self.tau**-2)
        penalty[: self.n_models] = self.ridge
        lead = self.design @ x
        p = sigmoid(lead)
        loss = times @ np.logaddexp(0.0, np.where(won, -lead, lead)) + penalty @ x**2 / 2
        gradient = self.design.T @ (times * (p - won)) + penalty * x
        curved = self.design.multiply((times * p * (1 - p))[:, None]).tocsr()
        hessian = (self.design.T @ curved).toarray() + np.diag(penalty)
        return Evaluation(float(loss), np.asarray(gradient), np.asarray(hessian))


def topical_forecast(
    train: VoteRows, test: VoteRows, *, outcomes: Sequence[int], ridge: float, scores: ScoresOf
) -> Floats:
    """Foresee votes from strengths by what their prompts are about, with a constant share of ties.

    Fitted to votes for a side, as the referee's ``half`` is; scores are learnt from the prompts
    of the votes seen.

    Raises
    ------
    DataError
        If the votes do not name their prompts, or as `fit_topical`.
    """
    if "prompt" not in train.groups:
        raise DataError("The votes do not name their prompt: leave out the topical model.")
    names = train.names["prompt"]
    seen = [names[code] for code in np.unique(train.groups["prompt"])]
    z = scores(seen, names)
    decisive = train.taken(train.outcome < TIE)
    fitted = fit_topical(decisive, z[decisive.groups["prompt"]], ridge=ridge)
    lead = fitted.lead(test, z[test.groups["prompt"]])
    return with_constant_ties(sigmoid(lead), train, outcomes)


def topical(scores: ScoresOf | None, *, outcomes: Sequence[int], ridge: float) -> Forecast:
    """Return the forecast by topics; one that refuses, where nothing scores prompts."""
    if scores is None:
        return _without_scores
    return partial(topical_forecast, outcomes=outcomes, ridge=ridge, scores=scores)


def _without_scores(_train: VoteRows, _test: VoteRows) -> Floats:
    raise DataError("The topical model goes by the words of prompts: name a file of their texts.")
