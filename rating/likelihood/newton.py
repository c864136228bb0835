"""Newton's method on a smooth objective."""

from typing import NamedTuple, Protocol

import numpy as np

from rating.errors import ConvergenceError
from rating.typing import Floats

MAX_STEPS = 100
_MAX_HALVINGS = 60


class Evaluation(NamedTuple):
    """An objective at a point: loss in nats, gradient (p,) and Hessian (p, p)."""

    loss: float
    gradient: Floats
    hessian: Floats


class Objective(Protocol):
    """What is minimised.

    Attributes
    ----------
    n_models : int
        The first ``n_models`` parameters are strengths.
    absolute : bool
        False when all strengths may move together without a change.
    total : float
        Sum of the weights, the scale of rounding errors.
    """

    @property
    def n_models(self) -> int: ...  # noqa: D102
    @property
    def absolute(self) -> bool: ...  # noqa: D102
    @property
    def total(self) -> float: ...  # noqa: D102

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian; an infinite loss outside the domain."""


class Optimum(NamedTuple):
    """Where `minimise` ended, what is there, and the steps taken."""

    x: Floats
    at: Evaluation
    iterations: int


def minimise(objective: Objective, start: Floats) -> Optimum:
    """Minimise by Newton's method, halving any step that does not descend.

    Converged when no entry of the gradient exceeds `tolerance`. Unless the
    scale is absolute, the strengths found sum to zero.

    Raises
    ------
    ConvergenceError
        After `MAX_STEPS` steps, or where the loss falls along a straight line.
    """
    x, at, close = start, objective.evaluate(start), tolerance(objective)
    for iteration in range(MAX_STEPS):
        if np.abs(at.gradient).max(initial=0.0) <= close:
            return Optimum(centred(objective, x), at, iteration)
        x, at = _descend(objective, x, at, _direction(objective, at))
    worst = float(np.abs(at.gradient).max())
    raise ConvergenceError(f"The gradient is still {worst:.3g} after {MAX_STEPS} Newton steps.")


def tolerance(objective: Objective) -> float:
    """Return 1e-9, or 1e-15 of all votes: what rounding leaves of a very large board."""
    return max(1e-9, 1e-15 * objective.total)


def centred(objective: Objective, x: Floats) -> Floats:
    """Make the strengths sum to zero, unless their scale is absolute."""
    if objective.absolute:
        return x
    k = objective.n_models
    return np.concatenate([x[:k] - x[:k].mean(), x[k:]])


def anchored(hessian: Floats, n_models: int, *, absolute: bool) -> Floats:
    """Give the flat direction, all strengths moving together, their mean curvature."""
    if absolute:
        return hessian
    filled = hessian.copy()
    filled[:n_models, :n_models] += np.diag(hessian)[:n_models].mean() / n_models
    return filled


def identified_inverse(matrix: Floats, n_models: int, *, absolute: bool) -> Floats:
    """Invert a symmetric matrix of all parameters on strengths that sum to zero.

    Rows of the result sum to zero over the strengths. With an absolute scale
    it is the plain inverse.
    """
    inverse = np.linalg.inv(anchored(matrix, n_models, absolute=absolute))
    if not absolute:
        inverse[:n_models] -= inverse[:n_models].mean(axis=0)
        inverse[:, :n_models] -= inverse[:, :n_models].mean(axis=1, keepdims=True)
    return np.asarray((inverse + inverse.T) / 2)


def _direction(objective: Objective, at: Evaluation) -> Floats:
    """Return the Newton step, or where the objective is not convex a damped one that descends."""
    curvature = anchored(at.hessian, objective.n_models, absolute=objective.absolute)
    scale = np.abs(np.diag(curvature)).max()
    if scale == 0:
        raise ConvergenceError("No curvature is left and the loss still falls: it has no minimum.")
    for damping in (0.0, *(10.0**power for power in range(-6, 3))):
        try:
            step = np.linalg.solve(
                curvature + damping * scale * np.eye(len(curvature)), at.gradient
            )
        except np.linalg.LinAlgError:
            continue
        if step @ at.gradient > 0:
            return np.asarray(step)
    return np.asarray(at.gradient / scale)


def _descend(
    objective: Objective, x: Floats, at: Evaluation, step: Floats
) -> tuple[Floats, Evaluation]:
    allowed = at.loss + 1e-12 * abs(at.loss)  # rounding of a sum is not an ascent
    for _ in range(_MAX_HALVINGS):
        there = objective.evaluate(x - step)
        if there.loss <= allowed:
            return x - step, there
        step = step / 2
    return x, at
