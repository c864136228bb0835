"""A card: what an evaluator does on each of the five axes, and never one number for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from judge.probe.axes import Axis, AxisName
from judge.probe.perturb import VERSION
from judge.probe.similarity import Measure
from rating.typing import Floats


class Plan(Protocol):
    """The questions of one axis, made once and put to every evaluator alike."""

    def ask(self, measure: Measure) -> Floats:
        """Return the scores that a measure gives."""
        ...

    def truth(self) -> Floats:
        """Return the scores that an oracle gives, in the same shape."""
        ...

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate the axis from scores."""
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """A profile of one evaluator: there is no average over its axes.

    Attributes
    ----------
    evaluator : str
        Its name.
    definition : str
        What it computes, in a line; for a judge the model and the method.
    axes : tuple of Axis
        In the order of `AxisName`; an axis that the evaluator was not asked about is not there.
    seed : int
        Of the draws behind the intervals.
    version : int
        Of the perturbations.
    """

    evaluator: str
    definition: str
    axes: tuple[Axis, ...]
    seed: int
    version: int = VERSION

    def axis(self, name: AxisName) -> Axis | None:
        """Return an axis, None where the evaluator was not asked about it."""
        return next((axis for axis in self.axes if axis.name is name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "evaluator": self.evaluator,
            "definition": self.definition,
            "axes": [axis.to_dict() for axis in self.axes],
            "seed": self.seed,
            "perturbations_version": self.version,
        }


def card_of(measure: Measure, plans: Sequence[Plan], *, seed: int) -> Card:
    """Ask a measure of similarity everything that is planned.

    The same seed draws the same prompts for every measure, so cards of the same plans compare
    over the same draws.
    """
    axes = tuple(plan.read(plan.ask(measure), rng=np.random.default_rng(seed)) for plan in plans)
    return Card(measure.name, measure.definition, axes, seed)


def oracle_card(plans: Sequence[Plan], *, seed: int) -> Card:
    """Return the card of an evaluator that knows every answer: what the axes can reach."""
    axes = tuple(plan.read(plan.truth(), rng=np.random.default_rng(seed)) for plan in plans)
    return Card("oracle", "knows every answer", axes, seed)
