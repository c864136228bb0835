"""Rank robustness: how many votes, removed or added, a rank depends on.

`fewest_to_flip` finds the fewest votes, voters or prompts whose removal exchanges two models, by
influence and exact refits. `certify` bounds how many added votes, whatever they say, cannot change
the top ranks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise, permutations
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np

from rating.comparisons import Comparisons
from rating.covariance import Grouping, grouping, leave_one_out, without
from rating.errors import DataError
from rating.fitting import Fit, has_finite_fit
from rating.likelihood import Evaluation, ScoreTable, minimise, solve
from rating.outcome import OUTCOMES
from rating.typing import Floats, Ints

# Removed votes, voters or prompts


Unit = Literal["vote", "voter", "prompt"]

LEVEL_NATS = 1e-9
"""Models this close are level: neither is above the other."""

Pair = tuple[int, int]
Effects = dict[Pair, tuple[Ints, Floats]]
"""By pair, the units that widen its gap, most first, and how far it moves without each."""


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Units in the order in which they are taken out to bring one model below another.

    Attributes
    ----------
    gap : float
        Lead with all votes, nats.
    order : ndarray of shape (n,), int64
        Cells of ``whole`` if the units are votes, as often as they have votes;
        otherwise clusters.
    moved : ndarray of shape (n,)
        How far the lead moves without each, negative.
    whole : Comparisons
        All votes.
    rest : callable
        From some of ``order`` to the votes that remain.
    """

    fit: Fit
    pair: Pair
    gap: float
    order: Ints
    moved: Floats
    whole: Comparisons
    rest: Callable[[Ints], Comparisons]

    def predicted(self, k: int) -> float:
        """Return the lead without the first k units, their influences added up."""
        return self.gap + float(self.moved[:k].sum())

    def refitted(self, k: int) -> float | None:
        """Return the lead that a refit without them gives; None if there is no finite fit."""
        rest = self.rest(self.order[:k])
        emptied = len(rest.votes) < len(self.whole.votes)  # else every pair meets as before
        if emptied and not has_finite_fit(self.fit, rest):
            return None
        theta = minimise(self.fit.objective(rest), self.fit.x).x
        return float(theta[self.pair[0]] - theta[self.pair[1]])

    def predicted_k(self) -> int | None:
        """Return the smallest k whose predicted lead is negative."""
        below = np.flatnonzero(self.gap + np.cumsum(self.moved) < -LEVEL_NATS)
        return int(below[0]) + 1 if below.size else None


def removals(
    fit: Fit, data: Comparisons, unit: Unit, pairs: Sequence[Pair], at_most: int
) -> Iterable[Removal]:
    """Yield, pair by pair, the units in the order in which they are taken out."""
    if unit == "vote":
        yield from _of_votes(fit, data.merged(), pairs, at_most)
        return
    groups = grouping(data, unit)
    effects, whole = _of_clusters(fit, data, groups, pairs, at_most), data.merged()
    for pair, (order, moved) in effects.items():
        rest = partial(_without_clusters, data, whole, groups)
        yield Removal(fit, pair, _lead(fit, pair), order, moved, whole, rest)


def _lead(fit: Fit, pair: Pair) -> float:
    """Return how far the first model is above the second, nats."""
    return float(fit.theta[pair[0]] - fit.theta[pair[1]])


def _of_votes(
    fit: Fit, whole: Comparisons, pairs: Sequence[Pair], at_most: int
) -> Iterable[Removal]:
    """Votes of a cell are alike: each is taken out as one, at its mean weight."""
    bread, cells = fit.inverse_information, fit.scored(whole)
    each = whole.weight / whole.votes
    leverage = each * cells.curve[0, 0] * cells.design.inner(bread, 0, 0)
    pull = each * cells.slope[0] / (1 - np.minimum(leverage, 1 - 1e-9))
    for pair in pairs:
        contrast = bread[pair[0]] - bread[pair[1]]
        moved = pull * cells.design.gap(contrast)  # linear in the parameters
        first = _most_negative(moved, at_most)
        order = np.repeat(first, whole.votes[first])[:at_most]
        rest = partial(_without_votes, whole)
        yield Removal(fit, pair, _lead(fit, pair), order, moved[order], whole, rest)


def _of_clusters(
    fit: Fit, data: Comparisons, groups: Grouping, pairs: Sequence[Pair], at_most: int
) -> Effects:
    """Keep the ``at_most`` most influential clusters of every pair, chunk by chunk."""
    effects: Effects = {pair: (np.empty(0, np.int64), np.empty(0)) for pair in pairs}
    for left_out in leave_one_out(fit, data, groups):
        clusters, shift = left_out.clusters, left_out.shift
        for pair, (order, moved) in effects.items():
            both = np.concatenate([moved, shift[:, pair[0]] - shift[:, pair[1]]])
            first = _most_negative(both, at_most)
            effects[pair] = np.concatenate([order, clusters])[first], both[first]
    return effects


def _most_negative(moved: Floats, at_most: int) -> Ints:
    """Return the places of the most negative values, the first of equal ones first."""
    places = np.flatnonzero(moved < 0)
    if len(places) > at_most:
        bar = np.partition(moved[places], at_most - 1)[at_most - 1]
        places = places[moved[places] <= bar]
    return places[np.argsort(moved[places], kind="stable")][:at_most]


def _without_votes(whole: Comparisons, cells: Ints) -> Comparisons:
    gone = np.bincount(cells, minlength=len(whole.votes))
    left = whole.votes - gone
    share = left / whole.votes
    rest = replace(
        whole, votes=left, weight=whole.weight * share, weight_sq=whole.weight_sq * share
    )
    return rest.subset(left > 0)


def _without_clusters(
    data: Comparisons, whole: Comparisons, groups: Grouping, clusters: Ints
) -> Comparisons:
    out = np.zeros(groups.size, dtype=bool)
    out[clusters] = True
    return without(data, whole, out[groups.index])


AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class Dropped:
    """Votes of one kind: ``times`` votes with this outcome between these sides."""

    model_a: str
    model_b: str
    outcome: str
    times: int


@dataclass(frozen=True, slots=True)
class Flip:
    """Fewest votes, voters or prompts whose removal exchanges two models.

    Attributes
    ----------
    above, below : str
        The pair, in the estimated order.
    unit : {"vote", "voter", "prompt"}
    gap : float
        Lead of the first model, nats.
    k : int or None
        Units taken out, after which a refit really puts ``below`` first. An
        upper bound of the fewest there are: the units are taken in the order
        of their influence, and a cleverer choice may need less. None where
        no refit among those tried changed the places.
    share : float or None
        ``k`` over all units.
    predicted_k : int or None
        The same by influence alone; None beyond ``at_most``.
    predicted_gap, refitted_gap : float or None
        Lead without them, by influence and by an exact refit; where ``k`` is
        None, without all ``tried`` units. The refitted one is None where the
        votes left determine no finite strengths.
    dropped : tuple of Dropped
        The votes taken out, if the units are votes.
    clusters : tuple of int
        The voters or prompts taken out, by number, most influential first.
    tried : int
        The most units that were taken out together.
    """

    above: str
    below: str
    unit: Unit
    gap: float
    k: int | None
    share: float | None
    predicted_k: int | None
    predicted_gap: float | None
    refitted_gap: float | None
    dropped: tuple[Dropped, ...]
    clusters: tuple[int, ...]
    tried: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self)
        return plain | {name: list(plain[name]) for name in ("dropped", "clusters")}


def fewest_to_flip(
    fit: Fit,
    data: Comparisons,
    *,
    unit: Unit = "vote",
    pairs: Iterable[tuple[str, str]] | None = None,
    at_most: int = AT_MOST,
) -> tuple[Flip, ...]:
    """Find the fewest votes, voters or prompts whose removal exchanges two models.

    The lead of i over j moves, without a vote of residual ``y - p`` and
    direction x, by about minus its influence::

        (y - p) x' H^- (e_i - e_j) / (1 - h),  h = p (1 - p) x' H^- x

    and without a voter or a prompt as `rating.covariance` leaves it out. Units
    are taken out in the order of their influence until the predicted lead is
    negative; exact refits then confirm, and move on or back to the first k
    whose refit changes the places.

    Parameters
    ----------
    fit : Fit
        Of these same votes; ties as half wins.
    unit : {"vote", "voter", "prompt"}
    pairs : iterable of (str, str), optional
        The higher model first. By default all neighbours on the board.
    at_most : int
        Most units taken out together.

    Returns
    -------
    tuple of Flip
        In the order of ``pairs``, from the top of the board.

    Raises
    ------
    DataError
        If the fit has a parameter of ties; if voters (prompts) are not known,
        or fewer than two; if a pair is not on the board, or upside down.

    References
    ----------
    .. [1] T. Broderick, R. Giordano and R. Meager, "An automatic finite-sample
       robustness metric", arXiv 2011.14999, 2020.
    .. [2] J. Huang, Y. Shen, D. Wei and T. Broderick, "Dropping just a handful
       of preferences can change top large language model rankings", arXiv
       2508.11847, 2025.

    Examples
    --------
    Seven wins to five: without two of the wins they are level, without three y leads.

    >>> sides = ["model_a"] * 7 + ["model_b"] * 5
    >>> data = Comparisons.from_arrays(["x"] * 12, ["y"] * 12, sides)
    >>> from rating.fitting import fit
    >>> fewest_to_flip(fit(data), data)[0].k
    3
    """
    if fit.likelihood.coordinates != ("gap",):
        raise DataError("What holds a rank is known for ties as half wins: fit with ties='half'.")
    if at_most < 1:
        raise DataError(f"at_most must be positive, not {at_most}.")
    chosen = _neighbours(fit) if pairs is None else [_placed(fit, *pair) for pair in pairs]
    return tuple(
        _flip(removal, data, unit) for removal in removals(fit, data, unit, chosen, at_most)
    )


def _neighbours(fit: Fit) -> list[Pair]:
    order = np.argsort(-fit.theta, kind="stable").tolist()
    return list(pairwise(order))


def _placed(fit: Fit, above: str, below: str) -> Pair:
    missing = [name for name in (above, below) if name not in fit.models]
    if missing:
        raise DataError(f"No votes on {', '.join(map(repr, missing))}.")
    pair = fit.models.index(above), fit.models.index(below)
    if above == below or _lead(fit, pair) < 0:
        raise DataError(f"{above!r} does not stand above {below!r}: name the higher model first.")
    return pair


def _flip(removal: Removal, data: Comparisons, unit: Unit) -> Flip:
    foreseen = removal.predicted_k()
    k, refits = _first_flip(removal, foreseen)
    tried = max(refits, default=0)
    shown = tried if k is None else k
    taken = removal.order[: k or 0]
    i, j = removal.pair
    total = data.n_votes if unit == "vote" else grouping(data, unit).size
    return Flip(
        above=data.models[i],
        below=data.models[j],
        unit=unit,
        gap=removal.gap,
        k=k,
        share=None if k is None else k / total,
        predicted_k=foreseen,
        predicted_gap=removal.predicted(shown) if shown else None,
        refitted_gap=refits.get(shown),
        dropped=_named(removal.whole, taken) if unit == "vote" else (),
        clusters=() if unit == "vote" else tuple(taken.tolist()),
        tried=tried,
    )


def _first_flip(
    removal: Removal, foreseen: int | None
) -> tuple[int | None, dict[int, float | None]]:
    """Search the first k whose refit is negative, given that k - 1 leaves the order as it is.

    Between the most units known to leave the places as they are and the
    fewest known to change them, the next k is where the ratio of refitted to
    predicted movement points, within the bracket.
    """
    stays, flips = 0, len(removal.order) + 1
    k = foreseen or len(removal.order)
    refits: dict[int, float | None] = {}
    while flips - stays > 1:
        refits[k] = lead = removal.refitted(k)
        if lead is not None and lead < -LEVEL_NATS:
            flips = k
        else:
            stays = k
        k = _next(removal, k, lead, stays, flips)
    return (flips if flips in refits else None), refits


def _next(removal: Removal, k: int, lead: float | None, stays: int, flips: int) -> int:
    if lead is None or lead >= removal.gap:
        return (stays + flips) // 2
    moved = np.cumsum(-removal.moved) * (
        (removal.gap - lead) / (removal.gap - removal.predicted(k))
    )
    guess = int(np.searchsorted(moved, removal.gap, side="right")) + 1
    return min(max(guess, stays + 1), flips - 1)


def _named(whole: Comparisons, cells: Ints) -> tuple[Dropped, ...]:
    removed, at, times = np.unique(cells, return_index=True, return_counts=True)
    names = whole.models
    return tuple(
        Dropped(
            names[whole.pairs[cell, 0]],
            names[whole.pairs[cell, 1]],
            OUTCOMES[whole.outcome[cell]].value,
            int(times[n]),
        )
        for n, cell in sorted(enumerate(removed), key=lambda item: at[item[0]])
    )


# Added votes


BISECTIONS = 12


@dataclass(frozen=True, slots=True)
class Held:
    """Against what the first ranks hold.

    Attributes
    ----------
    ranks : int
        The first this many, each by the same model as before.
    votes : int
        New votes that cannot change them, whatever they say and on whatever pairs.
    accounts : int
        New accounts, of this many votes each as was asked for, that cannot.
    sufficient_votes : int
        New votes that do change them: all for the lower of two models against the higher.
    """

    ranks: int
    votes: int
    accounts: int
    sufficient_votes: int


@dataclass(frozen=True, slots=True, eq=False)
class _AtGap:
    """The objective of plain Bradley-Terry where one model leads another by a fixed gap.

    Its parameters are the strengths without the first model's.
    """

    wins: Floats
    pair: tuple[int, int]
    gap: float
    absolute: ClassVar[bool] = False

    @property
    def n_models(self) -> int:
        return len(self.wins) - 1

    @property
    def total(self) -> float:
        return float(self.wins.sum())

    @property
    def _spread(self) -> Floats:
        """From the parameters to the strengths of all models, except the gap."""
        ahead, behind = self.pair
        spread = np.delete(np.eye(len(self.wins)), ahead, axis=1)
        spread[ahead] = spread[behind]
        return spread

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian."""
        spread = self._spread
        theta = spread @ x
        theta[self.pair[0]] += self.gap
        at = ScoreTable(self.wins).evaluate(theta)
        return Evaluation(at.loss, spread.T @ at.gradient, spread.T @ at.hessian @ spread)


def certify(wins: Floats, votes_per_account: int, most_ranks: int = 5) -> tuple[Held, ...]:
    """Give what the first 1, 2, ... ranks compare with, of maximum-likelihood Bradley-Terry.

    Let L be the negative log-likelihood of the votes, theta its minimum, and
    theta' = theta + d that of L and n added votes. As the gradient of L at
    theta' is that of the added votes, and L is convex::

        L(theta') - L(theta) <= sum_v (1 - p_v(theta')) (d_winner - d_loser)
                             <= n max { x sigmoid(G - x) : 0 <= x <= span(d) }

    with G the largest gap of theta; a tie adds less. For j to reach i above
    it, the left side is D(i, j) at least, the loss where the two are level.
    Call S(s) the loss at which some two models lie s further apart than in
    theta, at least. As S is convex and ``sigmoid(G - x)`` falls, the smallest
    n for which both hold is at the span s* with ``S(s*) = D``::

        n >= D / max { x sigmoid(G - x) : 0 <= x <= s* }

    The first K ranks hold while no model below reaches one of theirs. The
    bound is sure and not sharp: ``sufficient_votes`` states how far it may lie
    from the truth. It holds for votes on these models.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column; the maximum-likelihood fit must exist.
    votes_per_account : int
        Votes that one account can cast at most.

    Raises
    ------
    DataError
        If ``votes_per_account`` is below 1.
    ConvergenceError
        If a fit does not converge, as where it does not exist.

    References
    ----------
    .. [1] Own derivation, from the convexity of L; cf. R. Min et al.,
       "Improving Your Model Ranking on Chatbot Arena by Vote Rigging", ICML
       2025, for attacks.

    Examples
    --------
    Two models, 30 wins to 10: level from 20 votes on, and not before the 9th.

    >>> certify(np.array([[0.0, 30.0], [10.0, 0.0]]), 1)
    (Held(ranks=1, votes=8, accounts=8, sufficient_votes=20),)
    """
    if votes_per_account < 1:
        raise DataError(f"{votes_per_account} votes an account: give 1 or more.")
    board = _Board(wins, solve(wins, np.zeros(len(wins))).theta)
    order = [int(model) for model in np.argsort(-board.theta)]
    held: list[Held] = []
    rise, enough = np.inf, np.inf
    for rank in range(min(most_ranks, len(wins) - 1)):
        rise = min(rise, *(board.rise((order[rank], below), 0.0) for below in order[rank + 1 :]))
        enough = min(enough, _sufficient(wins, board.theta, (order[rank], order[rank + 1])))
        most = board.most_per_vote(board.widest(rise))  # 0 where the two are level already
        votes = max(0, ceil(rise / most) - 1) if rise > 0 else 0
        held.append(Held(rank + 1, votes, votes // votes_per_account, int(enough)))
    return tuple(held)


@dataclass(frozen=True, slots=True, eq=False)
class _Board:
    wins: Floats
    theta: Floats

    def rise(self, pair: tuple[int, int], gap: float) -> float:
        """Return how much less likely the votes are where the pair is so far apart."""
        problem = _AtGap(self.wins, pair, gap)
        at = minimise(problem, np.delete(self.theta, pair[0])).at.loss
        return max(0.0, float(at - ScoreTable(self.wins).evaluate(self.theta).loss))

    def most_per_vote(self, span: float) -> float:
        """Return the largest ``x sigmoid(G - x)`` up to a span, on a fine grid and beyond it."""
        x = np.linspace(0.0, span, 2001)
        largest_gap = float(np.ptp(self.theta))
        return float((x / (1 + np.exp(x - largest_gap))).max()) + span / 2000

    def widest(self, rise: float) -> float:
        """Return by how much at most two models' gap may grow at so large a rise, and more."""
        span = 0.0
        for pair in permutations(range(len(self.wins)), 2):
            gap = float(self.theta[pair[0]] - self.theta[pair[1]])
            if self.rise(pair, gap + span) >= rise:
                continue
            high = max(2 * span, 0.1)
            while self.rise(pair, gap + high) < rise:
                high *= 2
            for _ in range(BISECTIONS):
                middle = (span + high) / 2
                is_below = self.rise(pair, gap + middle) < rise
                span, high = (middle, high) if is_below else (span, middle)
            span = high
        return span


def _sufficient(wins: Floats, theta: Floats, pair: tuple[int, int]) -> int:
    """Return the fewest votes for the second of a pair, against the first, that level the two."""
    i, j = pair

    def leads(votes: int) -> bool:
        more = wins.copy()
        more[j, i] += votes
        after = solve(more, theta).theta
        return bool(after[i] - after[j] > 1e-9)

    high = 1
    while leads(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if leads(middle) else (low, middle)
    return high
