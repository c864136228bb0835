"""How far the ranking hangs on whose votes, and which prompts, count how much."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from rating.elo import POINTS_PER_NAT, to_points
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.fitting import fit
from rating.leave_out import influence_variance
from rating.rows import VoteRows
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile


@dataclass(frozen=True, slots=True)
class Move:
    """How far another weighting moves a model.

    Attributes
    ----------
    rank_default, rank : int
        Equal scores share the better rank.
    moved, lower, upper : float or None
        Points; no interval where there are fewer than two clusters.
    """

    model: str
    rank_default: int
    rank: int
    moved: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class Reweighted:
    """A board with other weights, beside the default one.

    Attributes
    ----------
    weighting : str
    kendall : float or None
        tau-b with the default board, over the models on both.
    places : int or None
        Most places by which a model moves.
    moves : tuple of Move
        The largest in places first.
    why_not : str or None
        Why there is no such board.
    """

    weighting: str
    kendall: float | None
    places: int | None
    moves: tuple[Move, ...]
    why_not: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores of models, and what each cluster has a part in of them.

    Attributes
    ----------
    models : tuple of str
    scores : ndarray of shape (n_models,)
        In points.
    influence : ndarray of shape (n_clusters, n_models)
        Sums to zero over the clusters, up to rounding.
    """

    models: tuple[str, ...]
    scores: Floats
    influence: Floats


def compared(weighting: str, default: Scored, other: Scored, *, level: float) -> Reweighted:
    """Compare a board with the default one, over the models on both.

    The interval of a move is Student's t on the clusters' influences on it, one step from both
    boards: the clusters are the same, so what moves both alike is in neither end.
    """
    names = [name for name in default.models if name in other.models]
    mine, theirs = (_on(board, names) for board in (default, other))
    ranks = _ranks(mine.scores), _ranks(theirs.scores)
    influence = theirs.influence - mine.influence
    n = int((influence != 0).any(axis=1).sum())
    reach = np.full(len(names), np.nan)
    if n >= 2:
        error = np.sqrt(influence_variance(influence, n))
        reach = quantile(level, n - 1) * error
    moved = theirs.scores - mine.scores
    moves = [
        Move(
            name,
            int(ranks[0][at]),
            int(ranks[1][at]),
            float(moved[at]),
            None if math.isnan(reach[at]) else float(moved[at] - reach[at]),
            None if math.isnan(reach[at]) else float(moved[at] + reach[at]),
        )
        for at, name in enumerate(names)
    ]
    moves.sort(key=lambda one: (-abs(one.rank - one.rank_default), -abs(one.moved), one.model))
    places = max((abs(one.rank - one.rank_default) for one in moves), default=None)
    return Reweighted(weighting, _kendall(mine.scores, theirs.scores), places, tuple(moves))


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """What groups of votes, or of prompts, weigh.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,), int64
        The group of each row.
    totals : ndarray of shape (n_groups,)
        What each group weighs, all of it together; what weighs 0 is left out.
    """

    name: str
    codes: Ints
    totals: Floats

    def each(self, times: Floats | Ints) -> Floats:
        """Return the weight of each row, shape (n,), the mean over what rows stand for being 1.

        Examples
        --------
        >>> Weighting("", np.array([0, 0, 1]), np.ones(2)).each(np.ones(3)).tolist()
        [0.75, 0.75, 1.5]
        """
        sizes = np.bincount(self.codes, times, len(self.totals))
        weight = np.divide(self.totals, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        weight = weight[self.codes]
        return np.asarray(weight * times.sum() / float(weight @ times))


def reweighted(
    rows: VoteRows, by: str = "group", *, others: Sequence[Weighting] = (), level: float = 0.95
) -> list[Reweighted]:
    """Rate votes with other weights: prompts, groups and voters equal; each group alone.

    Parameters
    ----------
    by : str
        What the role ``by`` is called.
    others : sequence of Weighting
        Other ways to weigh.

    Raises
    ------
    NotIdentifiedError
        If the votes identify no rating with the weights they have.

    Notes
    -----
    Clusters are voters where known, else prompts, else votes. Ties are half.
    """
    cluster, n = _clusters(rows)
    default = _rated(rows, None, None, cluster, n)
    boards = []
    for weighting in (*_weightings(rows, by), *others):
        try:
            own = None if weighting.codes is cluster else weighting.codes
            board = _rated(rows, weighting.each(rows.times), own, cluster, n)
        except (NotIdentifiedError, ConvergenceError) as error:
            boards.append(Reweighted(weighting.name, None, None, (), str(error)))
        else:
            boards.append(compared(weighting.name, default, board, level=level))
    return boards


def weighed(rows: VoteRows, weighting: str, weight: Floats, *, level: float = 0.95) -> Reweighted:
    """Rate votes with weights that are given, and taken as fixed; raises as `reweighted`.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Of one vote of each row.
    """
    cluster, n = _clusters(rows)
    default = _rated(rows, None, None, cluster, n)
    return compared(weighting, default, _rated(rows, weight, None, cluster, n), level=level)


def _clusters(rows: VoteRows) -> tuple[Ints, int]:
    roles = ("voter", "prompt")
    cluster = next((rows.groups[r] for r in roles if r in rows.groups), np.arange(rows.n))
    return cluster, int(cluster.max()) + 1


def _weightings(rows: VoteRows, by: str) -> Iterator[Weighting]:
    """Weigh all groups of a kind the same, and each of the role ``by`` alone."""
    for role, title in {"prompt": "prompt", "by": by, "voter": "voter"}.items():
        codes = rows.groups.get(role)
        if codes is not None and len(np.unique(codes)) > 1:
            yield Weighting(f"each {title} the same", codes, np.ones(int(codes.max()) + 1))
    names = rows.names.get("by", ())
    for name, alone in zip(names, np.eye(len(names)), strict=True):
        yield Weighting(f"{by} {name} alone", rows.groups["by"], alone)


def _rated(
    rows: VoteRows, weight: Floats | None, group: Ints | None, cluster: Ints, n: int
) -> Scored:
    """Rate votes with weights; those by the size of a group change with the votes in it.

    A cluster takes its own weight with it, and so is no group.
    """
    if weight is not None:
        used = weight > 0
        if group is not None:
            group = np.unique(group[used], return_inverse=True)[1]
        rows, weight, cluster = rows.taken(used), weight[used], cluster[used]
    data = rows.comparisons(weight=weight, voter=cluster, prompt=group)
    fitted = fit(data)
    assert data.voter is not None
    cells, seen = fitted.scored(data), np.unique(cluster)
    scores = cells.scores(data.voter.astype(np.int64), len(seen))
    if data.prompt is not None:  # the mean of a group stands in for what is left out of it
        of_group = cells.scores(data.prompt.astype(np.int64), data.n_prompts)
        place = (data.voter, data.prompt)
        mass = scipy.sparse.csr_array((data.weight, place), (len(seen), data.n_prompts))
        scores = scores - mass @ (of_group / mass.sum(axis=0)[:, None])
    influence = np.zeros((n, len(fitted.models)))
    influence[seen] = -POINTS_PER_NAT * (scores @ fitted.inverse_information)
    return Scored(fitted.models, to_points(fitted.theta), influence)


def _on(board: Scored, names: list[str]) -> Scored:
    at = [board.models.index(name) for name in names]
    scores, influence = board.scores[at], board.influence[:, at]
    if len(names) == len(board.models):
        return Scored(tuple(names), scores, influence)
    centre = scores.mean() - board.scores.mean()
    influence = influence - influence.mean(axis=1, keepdims=True)
    return Scored(tuple(names), scores - centre, influence)


def _ranks(scores: Floats) -> Ints:
    return np.asarray(1 + (scores[None, :] > scores[:, None]).sum(axis=1))


def _kendall(one: Floats, other: Floats) -> float | None:
    signs = [np.sign(x[:, None] - x[None, :]).ravel() for x in (one, other)]
    size = math.sqrt(float(signs[0] @ signs[0]) * float(signs[1] @ signs[1]))
    return float(signs[0] @ signs[1]) / size if size else None
