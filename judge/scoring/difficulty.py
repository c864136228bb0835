"""How hard each instruction is, from the annotations of several models."""

from dataclasses import dataclass

import numpy as np

from judge.scoring.logistic import expit
from rating.errors import NotIdentifiedError
from rating.likelihood.newton import Evaluation, minimise
from rating.typing import Floats, Ints

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

    @property
    def n_models(self) -> int:
        return 0

    @property
    def absolute(self) -> bool:
        return True

    @property
    def total(self) -> float:
        return float(len(self.share))

    def evaluate(self, x: Floats) -> Evaluation:
        effect = self.effects(x)
        logit = self.design @ x + effect[self.instruction]
        chance = expit(logit)
        loss = (np.logaddexp(0, logit) - self.share * logit).sum()
        loss += RIDGE / 2 * (x @ x + effect @ effect)
        gradient = self.design.T @ (chance - self.share) + RIDGE * x
        cross, own = self.cross(chance)
        curved = self.design * (chance * (1 - chance))[:, None]
        hessian = (
            curved.T @ self.design + RIDGE * np.eye(len(x)) - cross.T @ (cross / own[:, None])
        )
        return Evaluation(float(loss), gradient, hessian)

    def effects(self, x: Floats) -> Floats:
        """Find the effect of each instruction given the rest, by Newton steps of at most 1."""
        shared = self.design @ x
        effect = np.zeros(self.size)
        for _ in range(_MAX_STEPS):
            chance = expit(shared + effect[self.instruction])
            slope = self._sums(chance - self.share) + RIDGE * effect
            step = slope / (self._sums(chance * (1 - chance)) + RIDGE)
            effect = effect - np.clip(step, -1, 1)
            if np.abs(step).max(initial=0.0) <= 1e-13 * (1 + np.abs(effect).max(initial=0.0)):
                return effect
        raise NotIdentifiedError("The effects of the instructions did not settle.")

    def cross(self, chance: Floats) -> tuple[Floats, Floats]:
        """Return the Hessian of effects by coefficients, and of each effect."""
        curve = chance * (1 - chance)
        moved = self.design * curve[:, None]
        return self.by_instruction(moved), self._sums(curve) + RIDGE

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
    instruction was shown cannot be told from its difficulty.

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
        msg = (
            f"Difficulties need {MIN_MODELS} models or more, and {n_models} "
            f"{'is' if n_models == 1 else 'are'} here: give difficulties with --items."
        )
        raise NotIdentifiedError(msg)
    design = _design(model, n_models, length, order)
    profile = _Profile(design, share, instruction, n_instructions)
    found = minimise(profile, np.zeros(design.shape[1]))
    return _difficulty(profile, found.x, found.at.hessian)


def _design(model: Ints, n_models: int, length: Floats, order: Floats | None) -> Floats:
    of_model = (model[:, None] == np.arange(n_models)).astype(np.float64)
    columns = [of_model, of_model * length[:, None]]
    return np.hstack(columns if order is None else [*columns, order[:, None]])


def _difficulty(profile: _Profile, x: Floats, hessian: Floats) -> Difficulty:
    """Collect the values, and how instructions move them through what they share.

    An instruction's own effect is settled by its own rows, so instructions stay independent
    and the profile's Hessian is the bread of the sandwich.
    """
    effect = profile.effects(x)
    chance = expit(profile.design @ x + effect[profile.instruction])
    cross, own = profile.cross(chance)
    pull = profile.by_instruction(profile.design * (profile.share - chance)[:, None])
    pull -= RIDGE * x / profile.size
    return Difficulty(
        effect, -cross / own[:, None], np.asarray(np.linalg.solve(hessian, pull.T).T)
    )
