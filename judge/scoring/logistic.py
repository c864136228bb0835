"""Logistic regression on shares, instruction difficulties, and intervals of bounded means.

`fit_logistic` fits shares between 0 and 1, `estimate_difficulty` a number per instruction over all
models, and `bounded` gives the interval of a mean on a scale with two ends.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from judge.ifeval import wilson
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.leave_out import quantile
from rating.likelihood import Evaluation, Logistic, minimise
from rating.typing import Floats, Ints

# Logistic regression


_SEPARATED = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Coefficients (k,), the Hessian there (k, k), and the probability of each row (n,)."""

    coefficients: Floats
    hessian: Floats
    probability: Floats


def fit_logistic(rows: Logistic, names: Sequence[str] = ()) -> Fitted:
    """Fit by Newton's method to a gradient of 1e-9.

    Parameters
    ----------
    names : sequence of str
        Of the columns of the design, for errors.

    Raises
    ------
    NotIdentifiedError
        If a column of the design depends on those before it, or they separate the rows: some
        combination of them never contradicts a whole win or loss, so it would grow for ever.
    """
    _check_rank(rows, names or [f"column {place + 1}" for place in range(rows.design.shape[1])])
    _check_separation(rows)
    start = np.zeros(rows.design.shape[1])
    try:
        minimum = minimise(rows, start)
    except ConvergenceError as error:
        msg = f"The likelihood of the rows has no finite maximum. {error}"
        raise NotIdentifiedError(msg) from error
    return Fitted(minimum.x, minimum.at.hessian, scipy.special.expit(rows.design @ minimum.x))


def _check_rank(rows: Logistic, names: Sequence[str]) -> None:
    n, k = rows.design.shape
    if n and np.linalg.matrix_rank(rows.design) == k:
        return
    for place, name in enumerate(names):
        if not n or np.linalg.matrix_rank(rows.design[:, : place + 1]) <= place:
            others = f" from {', '.join(names[:place])}" if place else ""
            raise NotIdentifiedError(
                f"{n} rows do not separate the effect of {name!r}{others}: its value is the same "
                "in all of them, or is collinear with these. Exclude it."
            )


def _check_separation(rows: Logistic) -> None:
    """Raise if a direction leaves all shares between alone and fits whole ones ever better.

    Maximises the gain of the whole rows over directions in a box, a linear programme (A. Albert
    and J. A. Anderson, "On the existence of maximum likelihood estimates in logistic regression
    models", Biometrika 71(1), 1984).
    """
    between = (rows.share > 0) & (rows.share < 1)
    if np.linalg.matrix_rank(rows.design[between]) == rows.design.shape[1]:
        return
    whole = rows.design[~between] * (2 * rows.share[~between] - 1)[:, None]
    best = scipy.optimize.linprog(
        -whole.sum(axis=0),
        A_ub=-whole,
        b_ub=np.zeros(len(whole)),
        A_eq=rows.design[between],
        b_eq=np.zeros(int(between.sum())),
        bounds=(-1, 1),
    )
    if -best.fun > _SEPARATED * max(1.0, float(np.abs(whole).max(initial=0.0))):
        raise NotIdentifiedError("Wins and losses are completely separated: collect more rows.")


# Difficulty of instructions


RIDGE = 0.5
"""Inverse variance of the normal prior on every coefficient, in nats on the summed loss. The
published difficulties of AlpacaEval have a standard deviation of 1.48: 0.46."""
MIN_MODELS = 5
"""With fewer models an instruction's effect is mostly the noise of its own few rows."""

_MAX_STEPS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Difficulty:
    """A number for each instruction: the higher, the better models do against the baseline.

    Attributes
    ----------
    value : ndarray of shape (n_instructions,)
    slope : ndarray of shape (n_instructions, p)
        How each value moves with the p coefficients that all instructions share.
    influence : ndarray of shape (n_instructions, p)
        How far each instruction moved these; both have no columns when the values are given.
    """

    value: Floats
    slope: Floats
    influence: Floats

    @classmethod
    def given(cls, value: Floats) -> "Difficulty":
        """Take values as certain."""
        none = np.zeros((len(value), 0))
        return cls(np.asarray(value, dtype=np.float64), none, none)


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    """The joint loss as a function of the shared coefficients, each instruction at its best."""

    design: Floats
    share: Floats
    instruction: Ints
    size: int
    n_models: ClassVar[int] = 0
    absolute: ClassVar[bool] = True

    @property
    def total(self) -> float:
        return float(len(self.share))

    def evaluate(self, x: Floats) -> Evaluation:
        effect = self.effects(x)
        logit = self.design @ x + effect[self.instruction]
        probability = scipy.special.expit(logit)
        loss = (np.logaddexp(0, logit) - self.share * logit).sum()
        loss += RIDGE / 2 * (x @ x + effect @ effect)
        gradient = self.design.T @ (probability - self.share) + RIDGE * x
        cross, own = self.cross(probability)
        curved = self.design * (probability * (1 - probability))[:, None]
        hessian = (
            curved.T @ self.design + RIDGE * np.eye(len(x)) - cross.T @ (cross / own[:, None])
        )
        return Evaluation(float(loss), gradient, hessian)

    def effects(self, x: Floats) -> Floats:
        """Find the effect of each instruction given the rest, by Newton steps of at most 1."""
        shared = self.design @ x
        effect = np.zeros(self.size)
        for _ in range(_MAX_STEPS):
            probability = scipy.special.expit(shared + effect[self.instruction])
            slope = self._sums(probability - self.share) + RIDGE * effect
            step = slope / (self._sums(probability * (1 - probability)) + RIDGE)
            effect = effect - np.clip(step, -1, 1)
            if np.abs(step).max(initial=0.0) <= 1e-13 * (1 + np.abs(effect).max(initial=0.0)):
                return effect
        raise NotIdentifiedError("The effects of the instructions did not converge.")

    def cross(self, probability: Floats) -> tuple[Floats, Floats]:
        """Return the Hessian of effects by coefficients, and of each effect."""
        curve = probability * (1 - probability)
        return self.by_instruction(self.design * curve[:, None]), self._sums(curve) + RIDGE

    def by_instruction(self, rows: Floats) -> Floats:
        return np.stack([self._sums(column) for column in rows.T], axis=1)

    def _sums(self, values: Floats) -> Floats:
        return np.bincount(self.instruction, values, self.size).astype(np.float64)


def estimate_difficulty(
    model: Ints,
    instruction: Ints,
    share: Floats,
    length: Floats,
    order: Floats | None = None,
    *,
    n_instructions: int,
) -> Difficulty:
    """Estimate difficulties in one logistic regression over all models.

    ``logit P(model m wins on i) = theta_m + phi_m length_mi + alpha order_mi + u_i``, with a
    normal prior of variance ``1 / RIDGE`` on every coefficient; ``u_i`` is the difficulty. The
    published difficulties come from such a fit with free effects, the first being zero: a few
    models leave those infinite wherever all lose, and without the prior the order in which an
    instruction was shown cannot be separated from its difficulty.

    Parameters
    ----------
    model, instruction : ndarray of shape (n,), int64
        Positions from 0; every model is used, and an instruction that is not is at 0.
    share : ndarray of shape (n,)
        Won by the model, 0 to 1.
    length : ndarray of shape (n,)
        Length term, as `judge.scoring.length_control.length_term` makes it.
    order : ndarray of shape (n,), optional
        1/2 where the model was shown first, -1/2 where second.

    Raises
    ------
    NotIdentifiedError
        With fewer than `MIN_MODELS` models.
    """
    n_models = int(model.max(initial=-1)) + 1
    if n_models < MIN_MODELS:
        raise NotIdentifiedError(
            f"Difficulties need {MIN_MODELS} models or more, and {n_models} "
            f"{'is' if n_models == 1 else 'are'} here: give difficulties with --items."
        )
    of_model = (model[:, None] == np.arange(n_models)).astype(np.float64)
    columns = [of_model, of_model * length[:, None]]
    design = np.hstack(columns if order is None else [*columns, order[:, None]])
    profile = _Profile(design, share, instruction, n_instructions)
    minimum = minimise(profile, np.zeros(design.shape[1]))
    return _difficulty(profile, minimum.x, minimum.at.hessian)


def _difficulty(profile: _Profile, x: Floats, hessian: Floats) -> Difficulty:
    """Collect the values, and how instructions move them through what they share.

    An instruction's own effect is settled by its own rows, so instructions stay independent
    and the profile's Hessian is the bread of the sandwich.
    """
    effect = profile.effects(x)
    probability = scipy.special.expit(profile.design @ x + effect[profile.instruction])
    cross, own = profile.cross(probability)
    pull = profile.by_instruction(profile.design * (profile.share - probability)[:, None])
    pull -= RIDGE * x / profile.size
    return Difficulty(
        effect, -cross / own[:, None], np.asarray(np.linalg.solve(hessian, pull.T).T)
    )


# Intervals of means


LEVEL = 0.95


def bounded(
    mean: float, standard_error: float, n: int, low: float, high: float
) -> dict[str, float]:
    """Give the 95% interval of a mean as ``lower`` and ``upper``, within its scale.

    Wilson's interval for as many wins and losses as would have this standard error, with the
    quantile of Student's t for ``n - 1`` degrees of freedom. Where all values are alike, which
    leaves no standard error to go by, for ``n`` of them.

    Parameters
    ----------
    mean, standard_error : float
        NaN where they are not known.
    n : int
        Values behind the mean, or groups of them that stand and fall together.
    low, high : float
        The ends of the scale.

    Returns
    -------
    dict
        NaN for both where the standard error is not known.

    References
    ----------
    .. [1] E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small
       expected number of positive counts estimated from survey data", Survey Methodology 24(2),
       1998, pp. 193-201.

    Examples
    --------
    >>> ends = bounded(50.0, 5.0, 101, 0.0, 100.0)
    >>> round(ends["lower"], 1), round(ends["upper"], 1)
    (40.3, 59.7)
    """
    if n < 2 or math.isnan(mean) or math.isnan(standard_error):
        return {"lower": math.nan, "upper": math.nan}
    wide = high - low
    share, error = (mean - low) / wide, standard_error / wide
    size = share * (1 - share) / error**2 if error > 0 and 0 < share < 1 else float(n)
    lower, upper = wilson(share, size, LEVEL, n - 1)
    return {"lower": low + wide * lower, "upper": low + wide * upper}


def unbounded(mean: float, standard_error: float, n: int) -> dict[str, float]:
    """Give the 95% interval of a mean on a scale whose ends are not known, by Student's t.

    NaN for both where there is no standard error, or all values are alike: then nothing tells how
    far others might be.

    Examples
    --------
    >>> ends = unbounded(5.0, 0.5, 11)
    >>> round(ends["lower"], 2), round(ends["upper"], 2)
    (3.89, 6.11)
    """
    if n < 2 or not standard_error > 0:
        return {"lower": math.nan, "upper": math.nan}
    reach = quantile(LEVEL, n - 1) * standard_error
    return {"lower": mean - reach, "upper": mean + reach}
