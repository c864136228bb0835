"""Whether the votes give every parameter a finite value, and which models can be compared."""

from dataclasses import dataclass

import numpy as np

from rating.comparisons import Comparisons
from rating.errors import NotIdentifiedError
from rating.likelihood import BOTH_BAD, TIE, A, B
from rating.outcome import Ties
from rating.sentences import Sentence
from rating.typing import Bools, Floats, Ints

Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Connectivity:
    """Connectivity of the comparison graph.

    Attributes
    ----------
    connected : tuple of tuple of str
        Connected components; strengths in different ones have no common scale.
    strong : tuple of tuple of str
        Strongly connected components: every model scored, directly or through
        others, against every other. Each is in one of ``connected``. Largest first, as above.
    unbeaten, winless : tuple of tuple of str
        The strong groups that never lost, or never won, so much as half a
        point against the rest of their connected group.
    """

    connected: Groups
    strong: Groups
    unbeaten: Groups
    winless: Groups

    @property
    def is_identified(self) -> bool:
        """Whether every strength has a finite maximum-likelihood value."""
        return len(self.strong) == 1

    def describe(self) -> str:
        """Say in plain words what stands in the way of a rating."""
        if self.is_identified:
            return "Every model can be compared with every other."
        if not self.strong:
            return Sentence("There are no votes between two different models yet.")
        if all(len(group) == 1 for group in self.connected):
            return Sentence("All weights of the votes are zero: no two models are compared.")
        if len(self.connected) > 1:
            return Sentence(
                "The models fall into %(n)s groups with no votes between them: %(groups)s. "
                "Collect votes across the groups.",
                n=len(self.connected),
                groups=_joined(self.connected),
            )
        return Sentence(
            "The other models never won or tied against: %(unbeaten)s. Never won or tied "
            "against the others: %(winless)s. Their strengths have no finite value: collect "
            "votes until both groups have scored, or rate with a ridge.",
            unbeaten=_joined(self.unbeaten),
            winless=_joined(self.winless),
        )


def connectivity(data: Comparisons) -> Connectivity:
    """Find the connected and strongly connected components of the comparison graph.

    A model scores against another by a win or a tie. All strengths are finite
    if and only if, however the models are split in two, each part scored
    against the other: the directed graph of scores is strongly connected.
    Votes of weight zero join nothing.

    References
    ----------
    .. [1] L. R. Ford Jr., "Solution of a ranking problem from binary
       comparisons", American Mathematical Monthly 64(8), 1957, pp. 28-33.

    Examples
    --------
    >>> data = Comparisons.from_arrays(["x", "y"], ["y", "z"], ["model_a", "tie"])
    >>> connectivity(data).strong
    (('y', 'z'), ('x',))
    """
    scored = data.wins() > 0
    strong = strong_groups(scored)
    groups = [np.flatnonzero(strong == label) for label in _largest_first(strong)]
    inside = [np.isin(np.arange(len(strong)), group) for group in groups]
    return Connectivity(
        connected=_named(data.models, strong_groups(scored | scored.T)),
        strong=_named(data.models, strong),
        unbeaten=_names_of(data.models, [g for g in inside if not scored[np.ix_(~g, g)].any()]),
        winless=_names_of(data.models, [g for g in inside if not scored[np.ix_(g, ~g)].any()]),
    )


def _describe_ground(models: tuple[str, ...], groups: Ints) -> tuple[str, Groups]:
    """Return which models are connected with the absolute zero, the last node, and which not."""
    apart = [models[i] for i in np.flatnonzero(groups[:-1] != groups[-1])]
    return (
        f"No absolute strength for {', '.join(apart)}: every model needs votes for it, "
        "and votes of both bad, its own or of models it can be compared with.",
        _named(models, groups[:-1]),
    )


def strong_groups(scored: Bools) -> Ints:
    """Label the strongly connected groups of a directed graph.

    Parameters
    ----------
    scored : ndarray of shape (n_models, n_models), bool
        Whether row scored against column. A symmetric one gives the
        connected groups.

    Returns
    -------
    ndarray of shape (n_models,), int64
        The index of the first member of each model's group.
    """
    reach = reachable(scored)
    mutual = reach & reach.T
    return mutual.argmax(axis=1) if len(mutual) else np.empty(0, dtype=np.int64)


def decided_groups(data: Comparisons) -> Ints:
    """Label the groups of models joined by votes that are not ties, shape (n_models,)."""
    decided = data.table()[..., [A, B]].sum(axis=-1) > 0
    return strong_groups(decided | decided.T)


def reachable(scored: Bools) -> Bools:
    """Return whether row scored against column, directly or through others, or is it."""
    reach = scored | np.eye(len(scored), dtype=bool)
    while True:
        step = reach.astype(np.float32)
        further = step @ step > 0
        if (further == reach).all():
            return reach
        reach = further


def _largest_first(labels: Ints) -> list[int]:
    distinct, sizes = np.unique(labels, return_counts=True)
    return [int(label) for label in distinct[np.argsort(-sizes, kind="stable")]]


def _named(models: tuple[str, ...], labels: Ints) -> Groups:
    return _names_of(models, [labels == label for label in _largest_first(labels)])


def _names_of(models: tuple[str, ...], members: list[Bools]) -> Groups:
    return tuple(tuple(models[i] for i in np.flatnonzero(group)) for group in members)


def _joined(groups: Groups) -> str:
    return "; ".join(", ".join(group) for group in groups)


def check_strengths(data: Comparisons, ties: Ties, *, ridge: float) -> None:
    """Raise unless the strengths are finite: connected by wins and ties, or held by a ridge.

    Raises
    ------
    NotIdentifiedError
        If there are no votes of positive weight; without a ridge, if the
        models are disconnected or some group never scored against the rest.
    """
    groups = connectivity(data)
    if not data.weight.any() or (ridge == 0 and ties != "grounded" and not groups.is_identified):
        raise NotIdentifiedError(groups.describe(), groups.strong)
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
    growing by one, the probability of no vote need vanish if the strengths can
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
    won = _decided(data)
    if not (won.any() if ridge > 0 else _has_negative_cycle(_lengths(data, won, ties))):
        raise NotIdentifiedError(
            "The chance of a tie has no finite parameter: no decided vote contradicts "
            "ever more ties. Collect more votes, or count ties as half a win.",
            connectivity(data).strong,
        )


def _decided(data: Comparisons) -> Bools:
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
    scored[:k, :k] = _decided(data) | (either[..., TIE] > 0)
    scored[:k, k] = scored[:k, :k].any(axis=1)
    scored[k, :k] = (either[..., BOTH_BAD] > 0).any(axis=1)
    groups = strong_groups(scored)
    if (groups != groups[0]).any():
        raise NotIdentifiedError(*_describe_ground(data.models, groups))


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
