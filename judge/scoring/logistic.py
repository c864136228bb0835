"""Logistic regression on shares between 0 and 1, by exact maximum likelihood."""

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import ConvergenceError, NotIdentifiedError
from rating.likelihood.newton import Evaluation, minimise
from rating.typing import Floats

_SEPARATED = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is fitted: ``logit E[share] = design @ coefficients``.

    Attributes
    ----------
    design : ndarray of shape (n, k)
    share : ndarray of shape (n,)
        From 0 to 1; a share of 0.3 is three tenths of a win and seven of a loss.
    weight : ndarray of shape (n,)
    """

    design: Floats
    share: Floats
    weight: Floats

    @property
    def n_models(self) -> int:
        """None of the coefficients is a strength."""
        return 0

    @property
    def absolute(self) -> bool:
        """No direction is free."""
        return True

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def evaluate(self, x: Floats) -> Evaluation:
        """Return the loss in nats, its gradient and its Hessian."""
        logit = self.design @ x
        chance = expit(logit)
        loss = self.weight @ (np.logaddexp(0, logit) - self.share * logit)
        gradient = self.design.T @ (self.weight * (chance - self.share))
        curved = self.design * (self.weight * chance * (1 - chance))[:, None]
        return Evaluation(float(loss), gradient, curved.T @ self.design)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients (k,), the Hessian there (k, k), and the chance of each row (n,)."""

    coefficients: Floats
    hessian: Floats
    chance: Floats


def expit(x: Floats) -> Floats:
    """Return ``1 / (1 + exp(-x))``."""
    return np.asarray(scipy.special.expit(x))


def fit_logistic(rows: Rows) -> Fitted:
    """Fit by Newton's method to a gradient of 1e-9.

    Raises
    ------
    NotIdentifiedError
        If the columns of the design depend on each other, or separate the rows: some
        combination of them never contradicts a whole win or loss, so it would grow for ever.
    """
    _check_rank(rows)
    _check_separation(rows)
    start = np.zeros(rows.design.shape[1])
    try:
        found = minimise(rows, start)
    except ConvergenceError as error:
        msg = f"The rows have no maximum that can be reached. {error}"
        raise NotIdentifiedError(msg) from error
    return Fitted(found.x, found.at.hessian, expit(rows.design @ found.x))


def _check_rank(rows: Rows) -> None:
    n, k = rows.design.shape
    rank = int(np.linalg.matrix_rank(rows.design)) if n else 0
    if rank < k:
        msg = f"{n} rows tell apart {rank} of {k} coefficients: one of them does not vary."
        raise NotIdentifiedError(msg)


def _check_separation(rows: Rows) -> None:
    """Raise if a direction leaves all shares between alone and fits whole ones ever better.

    Maximises the gain of the whole rows over directions in a box, a linear programme (A. Albert
    and J. A. Anderson, "On the existence of maximum likelihood estimates in logistic regression
    models", Biometrika 71(1), 1984).
    """
    between = (rows.share > 0) & (rows.share < 1)
    if np.linalg.matrix_rank(rows.design[between]) == rows.design.shape[1]:
        return
    whole = rows.design[~between] * (2 * rows.share[~between] - 1)[:, None]
    found = scipy.optimize.linprog(
        -whole.sum(axis=0),
        A_ub=-whole,
        b_ub=np.zeros(len(whole)),
        A_eq=rows.design[between],
        b_eq=np.zeros(int(between.sum())),
        bounds=(-1, 1),
    )
    if -found.fun > _SEPARATED * max(1.0, float(np.abs(whole).max(initial=0.0))):
        msg = "Wins and losses are separated: no coefficients are finite. Collect more rows."
        raise NotIdentifiedError(msg)
