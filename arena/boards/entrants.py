"""What a board says of the models as entrants: who left, and what that does to the others."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from arena.domain.board_view import ModelRecord
from arena.domain.model import Entrant
from rating import Comparisons
from rating.likelihood.identification import connectivity
from rating.sentences import Sentence
from rating.typing import Bools

MOST_AGAINST_RETIRED = 0.5
"""Share of a model's votes against retired models beyond which the board says so."""


def on_retired(
    data: Comparisons, entrants: Mapping[str, Entrant], records: Sequence[ModelRecord]
) -> tuple[str, ...]:
    """Say which ratings rest on models that have left.

    Parameters
    ----------
    data : Comparisons
        All counted votes.
    """
    left = np.array([entrants.get(m, Entrant()).retired for m in data.models], dtype=bool)
    apart = _apart(data, left)
    names = {record.id: record.name for record in records}
    warnings = []
    if apart:
        warnings.append(
            Sentence(
                "Only votes on models that have retired connect %(names)s with the other models: "
                "none of them has met one of those.",
                names=_joined(apart, names),
            )
        )
    if mostly := [model for model in _mostly_against(data, left) if model not in apart]:
        warnings.append(
            Sentence(
                "Most votes on these models are against models that have retired: %(names)s.",
                names=_joined(mostly, names),
            )
        )
    return tuple(warnings)


def _apart(data: Comparisons, left: Bools) -> list[str]:
    """Name the models outside the largest group, of those that stay, but for retired ones."""
    if not left.any():
        return []
    stay = {model for model, gone in zip(data.models, left, strict=True) if not gone}
    met_one: Bools = np.asarray(left[data.pairs].any(axis=1))
    direct = data.subset(~met_one)
    groups = [group for group in connectivity(direct).connected if stay.issuperset(group)]
    largest, *others = groups or [()]
    joined = next((set(g) for g in connectivity(data).connected if {*largest} & {*g}), set())
    return sorted(model for group in others for model in group if model in joined)


def _mostly_against(data: Comparisons, left: Bools) -> list[str]:
    """Name the models that stay with more than `MOST_AGAINST_RETIRED` against retired ones."""
    votes = data.table(data.votes).sum(axis=-1)
    votes = votes + votes.T
    against, of = votes[:, left].sum(axis=1), votes.sum(axis=1)
    mostly = ~left & (against > MOST_AGAINST_RETIRED * of)
    return sorted(data.models[i] for i in np.flatnonzero(mostly))


def _joined(models: Iterable[str], names: Mapping[str, str]) -> str:
    return ", ".join(names.get(model, model) for model in models)
