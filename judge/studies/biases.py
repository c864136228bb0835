"""What moves a judge and what moves people, position, length, format and its own model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.studies.bias import Bias, Effect, bias
from judge.studies.data import JudgeSaid
from judge.studies.items import Estimate, Items, Said
from judge.studies.preferences import Preferences, from_influence
from rating.scale import POINTS_PER_NAT

SHORTEST = 3
"""Letters and digits that a judge's name and a model's must share to be taken as one."""


@dataclass(frozen=True, slots=True)
class Biases:
    """Effects by name: ``position``, ``length``, ``format`` and ``self``, in points.

    For ``self`` the effects are by how much the judge's own model leads the others' mean; the
    difference is what is left of the judge's after the line through the other models.

    Attributes
    ----------
    own_model : str or None
        The model that is the judge's own, as far as names tell.
    """

    effects: Mapping[str, Effect]
    own_model: str | None
    warnings: tuple[str, ...]


def biases(
    items: Items,
    people: Said,
    judge: JudgeSaid,
    boards: tuple[Preferences, Preferences],
    level: float,
) -> Biases:
    """Compare what moves votes and verdicts; raises as `judge.studies.bias.bias`."""
    own = own_model(judge.name, items.models)
    found = bias(items, people, judge.in_orders, own_model=own, level=level)
    effects = {"position": found.position, "length": found.length, "format": found.format}
    effects["self"] = _own(found, boards, own, level)
    return Biases(effects, own, found.warnings)


def own_model(judge: str, models: Sequence[str]) -> str | None:
    """Find the judge among the models: the name that begins like its own, the shortest of many.

    Examples
    --------
    >>> own_model("gpt-3.5", ["GPT 3.5 Turbo", "GPT 4", "GPT 3.5 Turbo (16k)"])
    'GPT 3.5 Turbo'
    >>> own_model("gpt-4 (both orders)", ["gpt-3.5-turbo", "gpt-4"])
    'gpt-4'
    """
    name = _bare(judge)
    alike = [
        model
        for model in models
        if min(len(_bare(model)), len(name)) >= SHORTEST
        and (_bare(model).startswith(name) or name.startswith(_bare(model)))
    ]
    return min(alike, key=lambda model: (abs(len(_bare(model)) - len(name)), model), default=None)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].casefold())


def _own(
    found: Bias, boards: tuple[Preferences, Preferences], own: str | None, level: float
) -> Effect:
    if found.self_preference is None or own is None:
        return Effect(None, None, None)
    names = tuple(sorted(set(boards[0].models) & set(boards[1].models)))
    leads = [_lead(board, names, own, level) for board in boards]
    return Effect(leads[0], leads[1], found.self_preference.excess)


def _lead(board: Preferences, names: tuple[str, ...], own: str, level: float) -> Estimate:
    """Estimate the lead of a model over the mean of the others, in points."""
    theta, influence = board.of_models(names)
    at = names.index(own)
    others = len(names) / (len(names) - 1)  # strengths sum to zero: of the mean of the others
    value, pull = theta[at] * others, influence[:, at] * others
    return from_influence(
        POINTS_PER_NAT * float(value), POINTS_PER_NAT * pull, n=len(names) - 1, level=level
    )
