"""Profile-likelihood intervals: right for models that seldom won, or seldom lost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rating.comparisons import Comparisons
from rating.errors import ConvergenceError, DataError
from rating.fitting import Fit
from rating.likelihood.newton import Evaluation, Objective, identified_inverse
from rating.typing import Floats
from rating.uncertainty.student import quantile

_MAX_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class ProfileIntervals:
    """Where the profile likelihood falls below the level asked for.

    Attributes
    ----------
    models : tuple of str
    low, high : ndarray of shape (n,)
        Nats, of the distance from the average of all models (grounded: of
        the strength itself).
    """

    models: tuple[str, ...]
    low: Floats
    high: Floats


def profile_intervals(
    fit: Fit, data: Comparisons, *, models: Sequence[str] | None = None, level: float = 0.95
) -> ProfileIntervals:
    """Invert the likelihood-ratio test of each model's rating.

    A rating t is kept while ``2 (L_max - max {L : theta_i = t})`` is within the
    quantile of chi-squared with one degree of freedom, L the log-likelihood
    less the penalty, if there is one. Votes count as independent: clusters
    have no likelihood. Under half wins ties make the interval too wide, as
    they do for the inverse information. Both ends are finite wherever the fit
    is: what has no finite fit raised before this.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    models : sequence of str, optional
        All of them by default.

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1, or a model unknown.
    ConvergenceError
        If an end is not found.

    References
    ----------
    .. [1] D. J. Venzon and S. H. Moolgavkar, "A method for computing
       profile-likelihood-based confidence intervals", Applied Statistics
       37(1), 1988, pp. 87-94. We profile by steps of Newton within the
       constraint, and find the root of the signed square root of the ratio.

    Examples
    --------
    Nine wins to one of two models: the gap, twice each rating, by its ratio.

    >>> from rating import fit
    >>> outcomes = ["model_a"] * 9 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 10, ["y"] * 10, outcomes)
    >>> found = profile_intervals(fit(data), data, models=["x"])
    >>> round(float(2 * found.low[0]), 3), round(float(2 * found.high[0]), 3)
    (0.525, 5.111)
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    names = fit.models if models is None else tuple(models)
    unknown = [name for name in names if name not in fit.models]
    if unknown:
        raise DataError(f"No such model in the fit: {unknown[0]!r}.")
    bound = quantile(level, np.inf)
    problem = fit.objective(data)
    best = problem.evaluate(fit.x)
    at = [fit.models.index(name) for name in names]
    ends = np.array([[_end(problem, fit.x, best, i, s * bound) for s in (-1, 1)] for i in at])
    low, high = ends.reshape(-1, 2).T
    return ProfileIntervals(names, low, high)


def _end(objective: Objective, x: Floats, best: Evaluation, i: int, target: float) -> float:
    """Find the rating at which the signed root of the likelihood ratio is ``target``.

    Newton's method on a function that always rises, kept within a bracket.
    """
    spread = identified_inverse(best.hessian, objective.n_models, absolute=objective.absolute)
    peak = rating = float(x[i])
    inside, outside = peak, np.sign(target) * np.inf
    step, point = target * float(np.sqrt(spread[i, i])), x
    for _ in range(_MAX_STEPS):
        rating = rating + step
        if not min(inside, outside) < rating < max(inside, outside):
            rating = (inside + outside) / 2
        point, slope, loss = _profile(objective, point, i, rating)
        root = np.sign(target) * np.sqrt(max(2 * (loss - best.loss), 0.0))
        if abs(root - target) <= 1e-8:
            return rating
        inside, outside = (rating, outside) if abs(root) < abs(target) else (inside, rating)
        step = (target - root) * root / slope if slope * root > 0 else (rating - peak)
    raise ConvergenceError(f"No end of the profile interval found near {rating:.3g} nats.")


def _profile(
    objective: Objective, start: Floats, i: int, rating: float
) -> tuple[Floats, float, float]:
    """Minimise with ``x[i]`` held at ``rating``; return where, its slope and the loss."""
    x = start + _held(objective, objective.evaluate(start), i, rating - start[i], along=True)
    at = objective.evaluate(x)
    for _ in range(_MAX_STEPS):
        step = _held(objective, at, i, 0.0)
        free = at.gradient @ step
        if abs(free) <= 1e-18 + 1e-14 * abs(at.loss) or np.abs(step).max() <= 1e-11:
            break
        there = objective.evaluate(x + step)
        while not there.loss <= at.loss + 1e-12 * abs(at.loss) and np.abs(step).max() > 1e-14:
            step = step / 2
            there = objective.evaluate(x + step)
        x, at = x + step, there
    return x, _multiplier(objective, at, i), at.loss


def _held(
    objective: Objective, at: Evaluation, i: int, change: float, *, along: bool = False
) -> Floats:
    """Return the Newton step that moves ``x[i]`` by ``change`` exactly.

    With ``along``, only the way the others follow that change.
    """
    spread = identified_inverse(at.hessian, objective.n_models, absolute=objective.absolute)
    free = np.zeros(len(spread)) if along else -spread @ at.gradient
    return np.asarray(free + spread[i] * (change - free[i]) / spread[i, i])


def _multiplier(objective: Objective, at: Evaluation, i: int) -> float:
    """Return the slope of the profile: how the loss changes with the rating held."""
    spread = identified_inverse(at.hessian, objective.n_models, absolute=objective.absolute)
    return float(spread[i] @ at.gradient / spread[i, i])
