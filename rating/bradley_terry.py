"""Bradley-Terry strengths by Newton's method on counts."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rating.comparisons import Comparisons
from rating.connectivity import connectivity
from rating.errors import ConvergenceError, DataError, NotIdentifiedError

MAX_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerryFit:
    """A fitted Bradley-Terry model.

    Attributes
    ----------
    models : tuple of str, length n_models
    theta : ndarray of shape (n_models,)
        Strengths in nats (natural log-odds), summing to zero.
    n_votes : int
        Votes behind the fit.
    log_likelihood : float
        Weighted log-likelihood in nats, without the penalty; a tie
        contributes the mean of the logs of both sides' chances.
    log_loss : float
        Minus ``log_likelihood`` per unit of weight.
    hessian : ndarray of shape (n_models, n_models)
        Second derivatives of the minimised objective, penalty included.
    ridge : float
        The penalty used.
    iterations : int
        Newton steps taken.
    """

    models: tuple[str, ...]
    theta: NDArray[np.float64]
    n_votes: int
    log_likelihood: float
    log_loss: float
    hessian: NDArray[np.float64]
    ridge: float
    iterations: int


class Optimum(NamedTuple):
    """Where `solve` ended: strengths that sum to zero, and the steps taken."""

    theta: NDArray[np.float64]
    iterations: int


def fit_bradley_terry(data: Comparisons, *, ridge: float = 0.0) -> BradleyTerryFit:
    """Fit Bradley-Terry strengths by (penalised) maximum likelihood.

    With ``P(A beats B) = sigmoid(theta[a] - theta[b])`` and a tie of either
    kind counted as half a win for each side, minimise::

        -sum_i weight_i * (score_a_i * log P_i + (1 - score_a_i) * log(1 - P_i))
            + ridge / 2 * sum(theta ** 2)

    Parameters
    ----------
    data : Comparisons
    ridge : float, default 0
        Inverse variance of a normal prior on each strength, in the units of
        the summed log-likelihood in nats. Zero gives the maximum-likelihood
        fit, which may not exist.

    Raises
    ------
    NotIdentifiedError
        If there are no votes, or ``ridge == 0`` and the models are
        disconnected or some group never scored against the rest.
    ConvergenceError
        If the gradient does not vanish. No partial fit is returned.
    DataError
        If ``ridge`` is negative or not finite.

    References
    ----------
    .. [1] R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block
       designs", Biometrika 39(3/4), 1952, pp. 324-345.
    .. [2] L. R. Ford Jr., "Solution of a ranking problem from binary
       comparisons", American Mathematical Monthly 64(8), 1957, pp. 28-33.

    Examples
    --------
    Three wins to one: a gap of log 3.

    >>> outcomes = ["model_a", "model_a", "model_a", "model_b"]
    >>> fit = fit_bradley_terry(Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes))
    >>> round(float(fit.theta[0] - fit.theta[1]), 4)
    1.0986
    """
    _check_identified(data, ridge)
    wins = data.wins()
    theta, iterations = solve(wins, np.zeros(data.n_models), ridge=ridge)
    unpenalised = loss(theta, wins)
    return BradleyTerryFit(
        models=data.models,
        theta=theta,
        n_votes=data.n_votes,
        log_likelihood=-unpenalised,
        log_loss=unpenalised / float(wins.sum()),
        hessian=hessian(theta, wins, ridge=ridge),
        ridge=ridge,
        iterations=iterations,
    )


def solve(wins: NDArray[np.float64], start: NDArray[np.float64], *, ridge: float = 0.0) -> Optimum:
    """Minimise `loss` by Newton's method, halving any step that does not descend.

    Converged when no entry of the gradient exceeds 1e-9 (or 1e-15 of all
    votes, which is what rounding leaves of a very large board).

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column; a finite minimum must exist.
    start : ndarray of shape (n_models,)
        Where to begin, summing to zero.

    Raises
    ------
    ConvergenceError
        After `MAX_STEPS` steps.
    """
    tolerance = max(1e-9, 1e-15 * float(wins.sum()))
    theta = start
    for iteration in range(MAX_STEPS):
        slope = gradient(theta, wins, ridge=ridge)
        if np.abs(slope).max() <= tolerance:
            return Optimum(theta - theta.mean(), iteration)
        curvature = hessian(theta, wins, ridge=ridge)
        # The flat direction, all strengths moving together, is given the mean curvature.
        step = np.linalg.solve(curvature + np.diag(curvature).mean() / len(theta), slope)
        theta = _descend(theta, step, wins, ridge)
    worst = float(np.abs(gradient(theta, wins, ridge=ridge)).max())
    raise ConvergenceError(f"The gradient is still {worst:.3g} after {MAX_STEPS} Newton steps.")


def win_probability(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that row beats column, shape (n_models, n_models)."""
    return np.exp(-np.logaddexp(0.0, theta[None, :] - theta[:, None]))


def loss(theta: NDArray[np.float64], wins: NDArray[np.float64], *, ridge: float = 0.0) -> float:
    """Return the objective of `fit_bradley_terry` from the scores, in nats."""
    surprise = np.logaddexp(0.0, theta[None, :] - theta[:, None])
    return float((wins * surprise).sum() + ridge / 2 * (theta @ theta))


def gradient(
    theta: NDArray[np.float64], wins: NDArray[np.float64], *, ridge: float = 0.0
) -> NDArray[np.float64]:
    """Return the gradient of `loss`: expected less observed score, plus the penalty's."""
    expected = (wins + wins.T) * win_probability(theta)
    return np.asarray((expected - wins).sum(axis=1) + ridge * theta)


def hessian(
    theta: NDArray[np.float64], wins: NDArray[np.float64], *, ridge: float = 0.0
) -> NDArray[np.float64]:
    """Return the Hessian of `loss`: without a ridge, its rows sum to zero."""
    chance = win_probability(theta)
    information = (wins + wins.T) * chance * chance.T
    return np.asarray(np.diag(information.sum(axis=1) + ridge) - information)


def _check_identified(data: Comparisons, ridge: float) -> None:
    if not 0 <= ridge < np.inf:
        raise DataError(f"ridge must be finite and not negative, not {ridge}.")
    found = connectivity(data)
    if not data.weight.any() or (ridge == 0 and not found.is_identified):
        raise NotIdentifiedError(found.describe(), found.strong)


def _descend(
    theta: NDArray[np.float64],
    step: NDArray[np.float64],
    wins: NDArray[np.float64],
    ridge: float,
) -> NDArray[np.float64]:
    before = loss(theta, wins, ridge=ridge)
    allowed = before + 1e-12 * abs(before)  # rounding of a sum is not an ascent
    for _ in range(60):
        if loss(theta - step, wins, ridge=ridge) <= allowed:
            break
        step = step / 2
    return theta - step
