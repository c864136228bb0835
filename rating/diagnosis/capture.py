"""How many new votes, whatever they say, cannot change the top ranks: a certificate."""

from dataclasses import dataclass
from itertools import permutations
from math import ceil
from typing import ClassVar

import numpy as np

from rating.errors import DataError
from rating.likelihood.newton import Evaluation, minimise
from rating.likelihood.objective import ScoreTable, solve
from rating.typing import Floats

BISECTIONS = 12


@dataclass(frozen=True, slots=True)
class Held:
    """Against what the first ranks hold.

    Attributes
    ----------
    ranks : int
        The first so many, each by the same model as before.
    votes : int
        New votes that cannot change them, whatever they say and on whatever pairs.
    accounts : int
        New accounts, of so many votes each as was asked for, that cannot.
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
        """From the parameters to the strengths of all models, but for the gap."""
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
    """Give what the first 1, 2, ... ranks hold against, of maximum-likelihood Bradley-Terry.

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
    bound is sure and not sharp: ``sufficient_votes`` says how far it may lie
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
        enough = min(enough, sufficient(wins, board.theta, (order[rank], order[rank + 1])))
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


def sufficient(wins: Floats, theta: Floats, pair: tuple[int, int]) -> int:
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
