"""How far categories lie apart: their standard deviation by marginal likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from rating.pooling.model import Point, Pooled, Tau, Tree, fit_pooled
from rating.typing import Floats

SMALLEST, LARGEST = 1e-3, 5.0
"""Standard deviations that differ from none, and from no bound at all, in nats."""
GRID = 9
POINTS = 7
"""Standard deviations that intervals are averaged over."""
FAR = 4.0
"""Log marginal likelihood below the highest, up to which they are."""
_PRECISION = 2e-3


@dataclass(frozen=True, eq=False)
class Variance:
    """What the votes say of the standard deviation of categories.

    Attributes
    ----------
    best : Pooled
        At the highest marginal likelihood. `SMALLEST` stands for no deviation.
    tau : float
        Nats; 0 where the likelihood is highest without deviations.
    lower, upper : float
        Profile interval, in nats: 0 where no deviation lies in it, infinite where it has no end.
        The standard deviation of prompts stays at its estimate.
    gain : float
        Log marginal likelihood above that without deviations of categories.
    points : tuple of Pooled
        Fits at standard deviations evenly spaced, each as likely as any other beforehand.
    weights : ndarray of shape (n_points,)
        Their shares of the marginal likelihood.
    """

    best: Pooled
    tau: float
    lower: float
    upper: float
    gain: float
    points: tuple[Pooled, ...]
    weights: Floats


def fitted_variance(tree: Tree, *, level: float = 0.95) -> Variance:
    """Choose the standard deviations by Laplace's marginal likelihood.

    A logarithmic grid, then golden sections: of categories with those of prompts held, of prompts
    with those of categories held, and again.

    Raises
    ------
    ConvergenceError
        If a fit is not reached.
    """
    search = _Search(tree)
    prompt = 0.0
    category = search.best_category(prompt) if not tree.prompts else 0.3
    for _ in range(2 if tree.prompts else 0):
        prompt = search.best_prompt(category)
        category = search.best_category(prompt)
    best = search.at(category, prompt)
    none = search.at(SMALLEST, search.best_prompt(SMALLEST) if tree.prompts else 0.0)
    if none.log_marginal >= best.log_marginal:
        best, prompt = none, none.tau.prompt
    drop = float(scipy.special.chdtri(1, 1 - level)) / 2
    lower = search.end(best, drop, SMALLEST)
    upper = search.end(best, drop, LARGEST)
    first, last = search.end(best, FAR, SMALLEST), search.end(best, FAR, LARGEST)
    taus = first + (last - first) * (np.arange(POINTS) + 0.5) / POINTS
    points = tuple(search.at(float(tau), prompt) for tau in taus)
    share = np.exp([point.log_marginal - best.log_marginal for point in points])
    return Variance(
        best,
        0.0 if best is none else best.tau.category,
        0.0 if lower == SMALLEST else lower,
        np.inf if upper == LARGEST else upper,
        best.log_marginal - none.log_marginal,
        points,
        np.asarray(share / share.sum()),
    )


class _Search:
    """Fits of one tree, each started where the last one ended; only likelihoods are remembered."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._start: Point | None = None
        self._log_marginal: dict[Tau, float] = {}

    def at(self, category: float, prompt: float) -> Pooled:
        fit = fit_pooled(self._tree, Tau(category, prompt), self._start)
        self._start = fit.at
        self._log_marginal[fit.tau] = fit.log_marginal
        return fit

    def log_marginal(self, category: float, prompt: float) -> float:
        known = self._log_marginal.get(Tau(category, prompt))
        return self.at(category, prompt).log_marginal if known is None else known

    def best_category(self, prompt: float) -> float:
        return _highest(lambda tau: self.log_marginal(tau, prompt))

    def best_prompt(self, category: float) -> float:
        return _highest(lambda tau: self.log_marginal(category, tau))

    def end(self, best: Pooled, drop: float, bound: float) -> float:
        """Return where the likelihood has dropped so far, on the way to a bound; else that."""

        def above(log_tau: float) -> float:
            value = self.log_marginal(float(np.exp(log_tau)), best.tau.prompt)
            return value - best.log_marginal + drop

        if best.tau.category == bound or above(np.log(bound)) >= 0:
            return bound
        ends = np.log(best.tau.category), np.log(bound)
        return float(np.exp(scipy.optimize.brentq(above, *ends, xtol=_PRECISION)))


def _highest(value: Callable[[float], float]) -> float:
    """Return where a function of a standard deviation is highest."""
    grid = np.geomspace(SMALLEST, LARGEST, GRID)
    best = int(np.argmax([value(float(tau)) for tau in grid]))
    low, high = np.log(grid[[max(best - 1, 0), min(best + 1, GRID - 1)]])
    fine = scipy.optimize.minimize_scalar(
        lambda log_tau: -value(float(np.exp(log_tau))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": _PRECISION},
    )
    return float(np.exp(fine.x))
