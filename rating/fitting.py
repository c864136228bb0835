"""Fitting strengths, and what else the votes determine, by maximum likelihood."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rating.comparisons import Comparisons
from rating.errors import DataError, NotIdentifiedError
from rating.identification import check_strengths, check_tie_parameter, has_ties
from rating.likelihood import (
    AT_BOUNDARY,
    LIKELIHOODS,
    ORDER_EFFECT,
    STYLE,
    CellObjective,
    Deviance,
    Likelihood,
    Objective,
    Optimum,
    ScoredCells,
    anchored,
    cell_objective,
    check_covariates,
    check_not_separated,
    deviance,
    identified_inverse,
    information_left,
    minimise,
    objective,
    one_thread,
    solve,
)
from rating.outcome import Ties
from rating.typing import Floats


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter other than the strengths.

    Attributes
    ----------
    name : str
        ``order_effect``, ``style:NAME``, ``nu`` (Davidson) or ``theta``
        (Rao-Kupper, grounded: the threshold, at least 1).
    value : float
        As it is reported. Order effect and style: nats.
    raw : float
        As it is optimised: ``log nu``, ``log theta``, otherwise the value.
    free : bool
        False when ties never happened: nu is then 0 and theta 1 by rule, the
        boundary of what they may be, and neither has a standard error.
    """

    name: str
    value: float
    raw: float
    free: bool = True


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    Attributes
    ----------
    models : tuple of str, length n_models
    theta : ndarray of shape (n_models,)
        Strengths in nats (natural log-odds), summing to zero; for grounded
        ties on a scale with a zero of its own, which is kept.
    parameters : tuple of Parameter
        The order effect, then style, then the parameter of ties.
    ties : {"half", "davidson", "rao-kupper", "grounded"}
    order_effect : bool
    n_votes : int
        Number of votes.
    log_likelihood : float
        Weighted log-likelihood in nats, without the penalty; under half wins
        a tie contributes the mean of the logs of both sides' probabilities.
    log_loss : float
        Minus ``log_likelihood`` per unit of weight.
    deviance : Deviance or None
        Against the saturated model; None with features, whose rows are not
        repeated.
    hessian : ndarray of shape (n_models + n_free, n_models + n_free)
        Second derivatives of the minimised objective in the strengths and
        the free parameters, penalty included.
    ridge : float
        The penalty used.
    iterations : int
        Newton steps taken.
    likelihood : Likelihood
        Of one vote; at the boundary the one without ties.
    """

    models: tuple[str, ...]
    theta: Floats
    parameters: tuple[Parameter, ...]
    ties: Ties
    order_effect: bool
    n_votes: int
    log_likelihood: float
    log_loss: float
    deviance: Deviance | None
    hessian: Floats
    ridge: float
    iterations: int
    likelihood: Likelihood

    @cached_property
    def n_models(self) -> int:
        """Number of strengths."""
        return len(self.models)

    @cached_property
    def absolute(self) -> bool:
        """Whether the strengths have a zero of their own."""
        return "level" in self.likelihood.coordinates

    @cached_property
    def x(self) -> Floats:
        """Strengths and free parameters as they are optimised, in the order of ``hessian``."""
        return np.concatenate([self.theta, [p.raw for p in self.parameters if p.free]])

    @cached_property
    def inverse_information(self) -> Floats:
        """Inverse of ``hessian``, see `rating.hessian_covariance`; not to be changed in place."""
        return identified_inverse(self.hessian, self.n_models, absolute=self.absolute)

    def cells(self, data: Comparisons) -> CellObjective:
        """Return the likelihood of votes cell by cell, without the penalty."""
        return cell_objective(self.likelihood, data, order_effect=self.order_effect)

    def scored(self, data: Comparisons) -> ScoredCells:
        """Evaluate every cell at the parameters of the fit."""
        cells = self.cells(data)
        local = cells.local(self.x)
        return ScoredCells(cells.design, data.weight, data.weight_sq, local.slope, local.curve)

    def objective(self, data: Comparisons) -> Objective:
        """Return what this fit minimised, on other votes between the same models."""
        return objective(self.likelihood, data, ridge=self.ridge, order_effect=self.order_effect)


@one_thread
def fit(
    data: Comparisons, *, ties: Ties = "half", ridge: float = 0.0, order_effect: bool = False
) -> Fit:
    """Fit by (penalised) maximum likelihood, with Newton's method.

    Minimise the summed negative log-likelihood of the votes plus
    ``ridge / 2 * sum(theta ** 2)``. See `rating.likelihood` for the probability of each
    outcome given the gap::

        theta[a] - theta[b] + order_effect + features @ style

    Features are those of ``data`` and are not penalised. If no vote is a tie,
    the parameter of ties is at its boundary by rule, where the model is
    Bradley-Terry (grounded: Luce's rule with the zero as a third choice).

    Parameters
    ----------
    data : Comparisons
    ties : {"half", "davidson", "rao-kupper", "grounded"}
        The first three count both bad as a tie.
    ridge : float, default 0
        Inverse variance of a normal prior on each strength, in the units of
        the summed log-likelihood in nats. Zero gives the maximum-likelihood
        fit, which may not exist.
    order_effect : bool
        Whether side A may have an advantage, in nats.

    Raises
    ------
    NotIdentifiedError
        If there are no votes, or some parameter has no finite value.
    ConvergenceError
        If the gradient does not vanish. No partial fit is returned.
    DataError
        If ``ties`` is unknown, or ``ridge`` negative or not finite.

    References
    ----------
    .. [1] L. R. Ford Jr., "Solution of a ranking problem from binary
       comparisons", American Mathematical Monthly 64(8), 1957, pp. 28-33.
    .. [2] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, section 10.6
       (the order effect).

    Examples
    --------
    Three wins to one: a gap of log 3.

    >>> outcomes = ["model_a", "model_a", "model_a", "model_b"]
    >>> found = fit(Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes))
    >>> round(float(found.theta[0] - found.theta[1]), 4)
    1.0986
    """
    _check_options(ties, ridge)
    merged = data.merged()
    check_strengths(merged, ties, ridge=ridge)
    likelihood = _likelihood(merged, ties, ridge)
    problem = objective(likelihood, merged, ridge=ridge, order_effect=order_effect)
    names = _covariate_names(data, order_effect=order_effect)
    best = _optimum(problem, names, likelihood, merged)
    theta, free = np.split(best.x, [len(data.models)])
    unpenalised = best.at.loss - ridge / 2 * float(theta @ theta)
    return Fit(
        models=data.models,
        theta=theta,
        parameters=_parameters(free, names, likelihood, ties),
        ties=ties,
        order_effect=order_effect,
        n_votes=data.n_votes,
        log_likelihood=-unpenalised,
        log_loss=unpenalised / problem.total,
        deviance=None
        if data.features is not None
        else deviance(merged, likelihood, unpenalised, n_free=len(best.x)),
        hessian=best.at.hessian,
        ridge=ridge,
        iterations=best.iterations,
        likelihood=likelihood,
    )


def has_finite_fit(fit: Fit, data: Comparisons) -> bool:
    """Return whether other votes between the same models determine the same parameters."""
    try:
        check_strengths(data, fit.ties, ridge=fit.ridge)
        if "tie" in fit.likelihood.coordinates:
            check_tie_parameter(data, fit.ties, ridge=fit.ridge)
    except NotIdentifiedError:
        return False
    return "tie" not in fit.likelihood.coordinates or has_ties(data, fit.ties)


def fit_bradley_terry(data: Comparisons, *, ridge: float = 0.0) -> Fit:
    """Fit plain Bradley-Terry strengths, ties as half wins: `fit` with its defaults."""
    return fit(data, ridge=ridge)


def _covariate_names(data: Comparisons, *, order_effect: bool) -> tuple[str, ...]:
    """Name the coefficients in their order: the order effect, then ``style:NAME``."""
    first = (ORDER_EFFECT,) if order_effect else ()
    return (*first, *(STYLE + name for name in data.feature_names))


def _check_options(ties: str, ridge: float) -> None:
    if ties not in LIKELIHOODS:
        raise DataError(f"ties must be one of {', '.join(LIKELIHOODS)}, not {ties!r}.")
    if not 0 <= ridge < np.inf:
        raise DataError(f"ridge must be finite and not negative, not {ridge}.")


def _likelihood(data: Comparisons, ties: Ties, ridge: float) -> Likelihood:
    if ties == "half":
        return LIKELIHOODS[ties]
    if not has_ties(data, ties):
        return AT_BOUNDARY[ties]
    check_tie_parameter(data, ties, ridge=ridge)
    return LIKELIHOODS[ties]


def _optimum(
    problem: Objective, names: tuple[str, ...], likelihood: Likelihood, data: Comparisons
) -> Optimum:
    k = len(data.models)
    start = np.zeros(k + len(names) + ("tie" in likelihood.coordinates))
    if "tie" in likelihood.coordinates:
        start[-1] = 1.0  # inside the domain of every tie model
    if isinstance(problem, CellObjective) and not problem.absolute:
        start[:k] = solve(data.wins(), start[:k], ridge=problem.ridge).theta
    if not names:
        return minimise(problem, start)
    assert isinstance(problem, CellObjective)
    left = information_left(problem.design, problem.weight)
    check_covariates(names, problem.design, problem.weight, left)
    best = minimise(problem, start)
    curvature = anchored(best.at.hessian, k, absolute=problem.absolute)
    check_not_separated(names, k, left, curvature)
    return best


def _parameters(
    raw: Floats, names: tuple[str, ...], likelihood: Likelihood, ties: Ties
) -> tuple[Parameter, ...]:
    parameters = [Parameter(name, float(x), float(x)) for name, x in zip(names, raw, strict=False)]
    if ties == "half":
        return tuple(parameters)
    name = "nu" if ties == "davidson" else "theta"
    if "tie" in likelihood.coordinates:
        return (*parameters, Parameter(name, float(np.exp(raw[-1])), float(raw[-1])))
    at_boundary = -np.inf if ties == "davidson" else 0.0
    return (*parameters, Parameter(name, float(np.exp(at_boundary)), at_boundary, free=False))
