"""Whether the votes give every parameter a finite value."""

import numpy as np

from rating.comparisons import Comparisons
from rating.connected import connectivity, describe_ground, strong_groups
from rating.errors import NotIdentifiedError
from rating.ties import BOTH_BAD, TIE, A, B, Ties
from rating.typing import Bools, Floats


def check_strengths(data: Comparisons, ties: Ties, *, ridge: float) -> None:
    """Raise unless the strengths are finite: connected by wins and ties, or held by a ridge.

    Raises
    ------
    NotIdentifiedError
        If there are no votes of positive weight; without a ridge, if the
        models are disconnected or some group never scored against the rest.
    """
    found = connectivity(data)
    if not data.weight.any() or (ridge == 0 and ties != "grounded" and not found.is_identified):
        raise NotIdentifiedError(found.describe(), found.strong)
    if ridge == 0 and ties == "grounded":
        _check_ground(data)


def has_ties(data: Comparisons, ties: Ties) -> bool:
    """Whether any vote is a tie; both bad counts as one unless grounded."""
    tied = data.outcome == TIE
    if ties != "grounded":
        tied |= data.outcome == BOTH_BAD
    return bool((tied & (data.weight > 0)).any())


def check_tie_parameter(data: Comparisons, ties: Ties, *, ridge: float) -> None:
    """Raise if ever more ties would fit ever better, once the strengths move apart in step.

    With a tie parameter (``2 log nu`` for Davidson, ``eta`` for Rao-Kupper)
    growing by one, the chance of no vote need vanish if the strengths can
    move so that every winner gains at least one on the loser, and no tied
    pair parts by more. Such a move exists if and only if the graph with an
    edge of length -1 from each winner to the loser, and of length +1 both
    ways along each tie, has no cycle of negative length; then the maximum is
    at infinity. Two wins of opposite sides between two models are such a
    cycle. Grounded, the absolute zero is one more node; the condition then is
    sufficient, not necessary: rare boards are refused that might be fitted.

    Raises
    ------
    NotIdentifiedError
        As derived above (ours, from the recession cone of the likelihood).
    """
    won = decided(data)
    if not (won.any() if ridge > 0 else _has_negative_cycle(_lengths(data, won, ties))):
        raise NotIdentifiedError(
            "The chance of a tie has no finite parameter: no decided vote contradicts "
            "ever more ties. Collect more votes, or count ties as half a win.",
            connectivity(data).strong,
        )


def decided(data: Comparisons) -> Bools:
    """Return whether row ever won against column, shape (n_models, n_models)."""
    table = data.table()
    return np.asarray((table[..., A] + table[..., B].T) > 0)


def _check_ground(data: Comparisons) -> None:
    """Raise unless the models and the absolute zero are strongly connected.

    A win scores against the loser and the zero, a tie against each other and
    the zero; both bad is the zero scoring against both.
    """
    table = data.table()
    either = table + table.transpose(1, 0, 2)
    k = data.n_models
    scored = np.zeros((k + 1, k + 1), dtype=bool)
    scored[:k, :k] = decided(data) | (either[..., TIE] > 0)
    scored[:k, k] = scored[:k, :k].any(axis=1)
    scored[k, :k] = (either[..., BOTH_BAD] > 0).any(axis=1)
    groups = strong_groups(scored)
    if (groups != groups[0]).any():
        raise NotIdentifiedError(*describe_ground(data.models, groups))


def _lengths(data: Comparisons, won: Bools, ties: Ties) -> Floats:
    table = data.table()
    either = table + table.transpose(1, 0, 2)
    drawn = either[..., TIE] > 0
    if ties != "grounded":
        drawn |= either[..., BOTH_BAD] > 0
    length = np.where(won, -1.0, np.where(drawn, 1.0, np.inf))
    if ties != "grounded":
        return length
    k = data.n_models
    full = np.full((k + 1, k + 1), np.inf)
    full[:k, :k] = length
    full[:k, k][won.any(axis=1)] = 0.0
    full[k, :k][(either[..., BOTH_BAD] > 0).any(axis=1)] = 0.0
    return full


def _has_negative_cycle(length: Floats) -> bool:
    """Search by the rounds of Bellman and Ford, from every node at once."""
    if (length + length.T < 0).any():
        return True
    distance = np.zeros(len(length))
    for _ in range(len(length) + 1):
        shorter = np.minimum(distance, (distance[:, None] + length).min(axis=0))
        if (shorter == distance).all():
            return False
        if (shorter < -len(length)).any():
            return True
        distance = shorter
    return True
