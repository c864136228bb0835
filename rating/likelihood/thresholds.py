"""Rao-Kupper with a threshold of ties for every group of votes, such as the votes on a prompt."""

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.errors import ConvergenceError, DataError
from rating.likelihood.ties import BOTH_BAD, TIE, A, B, RaoKupper
from rating.typing import Floats, Ints

NODES = 15
"""Of the Gauss-Hermite rule: on 8,931 votes 31 nodes move a log-loss by less than 1e-4."""
BOUNDS = (-5.0, 1.5)
"""Of the logarithm of the spread."""
MAX_STEPS = 500
OUTCOMES = (A, B, TIE)


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdFit:
    """Strengths, and thresholds that differ from group to group.

    With ``eta_t = exp(centre + spread * u_t)``, ``u_t`` standard normal, an outcome of group t has
    the probability of `rating.likelihood.ties.RaoKupper` at ``eta_t``.

    Attributes
    ----------
    models : tuple of str
    theta : ndarray of shape (n_models,)
        Nats, summing to zero.
    centre, spread : float
        Of the logarithm of the threshold; the threshold is in nats.
    weights : ndarray of shape (n_groups, n_nodes)
        What the votes of each group leave of the law of its threshold; rows sum to 1, and a group
        without votes has the prior.
    """

    models: tuple[str, ...]
    theta: Floats
    centre: float
    spread: float
    weights: Floats

    def probabilities(self, gap: Floats, group: Ints) -> Floats:
        """Return the probabilities of side A, side B and a tie, shape (n, 3).

        Parameters
        ----------
        gap : ndarray of shape (n,)
            Lead of side A, nats.
        group : ndarray of shape (n,), int
            A group of the fit, or -1 for one that it did not see.
        """
        law = np.vstack([self.weights, _rule()[1]])[group]
        given = np.zeros((len(gap), len(OUTCOMES)))
        for node, threshold in enumerate(self.thresholds):
            for place, code in enumerate(OUTCOMES):
                loss = RaoKupper().loss(np.full(len(gap), code), gap, threshold, np.empty(0))
                given[:, place] += law[:, node] * np.exp(-loss.value)
        return given

    @property
    def thresholds(self) -> list[float]:
        """The threshold at each node."""
        return [*np.exp(self.centre + self.spread * _rule()[0]).tolist()]


def fit_thresholds(data: Comparisons, *, ridge: float) -> ThresholdFit:
    """Fit by maximum marginal likelihood, the groups being the prompts of the votes.

    Minimise, w_k and u_k being the nodes of a Gauss-Hermite rule::

        -sum_t log sum_k w_k exp(sum_(i in t) log P(y_i | eta_k)) + ridge / 2 * sum(theta ** 2)

    Parameters
    ----------
    data : Comparisons
        With prompts; both bad is a tie.
    ridge : float
        Above 0.

    Raises
    ------
    DataError
        If the prompts are not known, or there is no ridge.
    ConvergenceError
        If the minimum is not reached.

    References
    ----------
    .. [1] P. V. Rao and L. L. Kupper, "Ties in paired-comparison experiments", JASA 62(317), 1967.
    .. [2] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, section 12.4 (random effects of
       ordinal answers). The law of the logarithm is ours: it holds a threshold above 0.
    """
    if data.prompt is None or ridge <= 0:
        raise DataError("Thresholds by prompt take votes that name it, and a ridge above 0.")
    problem = _Marginal(data, ridge)
    k = data.n_models
    start = np.concatenate([np.zeros(k), [0.0, -1.0]])
    best = scipy.optimize.minimize(
        problem.evaluate,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * (k + 1) + [BOUNDS],
        options={"maxiter": MAX_STEPS, "ftol": 1e-11, "gtol": 1e-5 * max(1.0, data.n_votes / 1e3)},
    )
    if not best.success:
        raise ConvergenceError(f"Thresholds by prompt were not reached: {best.message}.")
    theta, centre, spread = best.x[:k], float(best.x[k]), float(np.exp(best.x[k + 1]))
    law = problem.posterior(best.x)
    return ThresholdFit(data.models, theta - theta.mean(), centre, spread, law)


def _rule() -> tuple[Floats, Floats]:
    """Return nodes and weights of the standard normal law."""
    at, weight = np.polynomial.hermite_e.hermegauss(NODES)
    return at, weight / weight.sum()


@dataclass(frozen=True, slots=True, eq=False)
class _Marginal:
    """What `fit_thresholds` minimises, in strengths, centre and the logarithm of the spread."""

    data: Comparisons
    ridge: float

    def posterior(self, x: Floats) -> Floats:
        """Return the law of each group's node, shape (n_groups, n_nodes)."""
        return self._law(x)[1]

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        data, k = self.data, self.data.n_models
        theta, (at, _), spread = x[:k], _rule(), float(np.exp(x[k + 1]))
        log_total, law, slopes = self._law(x)
        gap, tie, wide = np.zeros(len(data.weight)), 0.0, 0.0
        for node, (by_gap, by_tie) in enumerate(slopes):
            part = data.weight * law[data.prompt, node]
            gap += part * by_gap
            eta = float(np.exp(x[k] + spread * at[node]))
            moved = eta * float(part @ by_tie)
            tie += moved
            wide += moved * spread * float(at[node])
        gradient = np.bincount(data.pairs[:, 0], gap, k) - np.bincount(data.pairs[:, 1], gap, k)
        loss = -float(log_total.sum()) + self.ridge / 2 * float(theta @ theta)
        return loss, np.concatenate([gradient + self.ridge * theta, [tie, wide]])

    def _law(self, x: Floats) -> tuple[Floats, Floats, list[tuple[Floats, Floats]]]:
        data, k, prompt = self.data, self.data.n_models, self.data.prompt
        assert prompt is not None
        at, weight = _rule()
        gap = x[data.pairs[:, 0]] - x[data.pairs[:, 1]]
        outcome = np.where(data.outcome == BOTH_BAD, TIE, data.outcome)
        log_joint = np.tile(np.log(weight), (data.n_prompts, 1))
        slopes = []
        for node in range(NODES):
            eta = float(np.exp(x[k] + np.exp(x[k + 1]) * at[node]))
            local = RaoKupper().loss(outcome, gap, eta, np.empty(0))
            log_joint[:, node] -= np.bincount(prompt, data.weight * local.value, data.n_prompts)
            slopes.append((local.slope[0], local.slope[1]))
        log_total = scipy.special.logsumexp(log_joint, axis=1)
        return log_total, np.exp(log_joint - log_total[:, None]), slopes
