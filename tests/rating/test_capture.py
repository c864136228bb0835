"""The certified number of new votes moves no rank, however they are cast; refits say so."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from rating.errors import DataError
from rating.influence import certify
from rating.likelihood import solve

Floats = NDArray[np.float64]


def a_board(rng: np.random.Generator) -> Floats:
    """Votes of a random arena of three to eight models, each pair met."""
    n = int(rng.integers(3, 9))
    theta = rng.normal(0, rng.uniform(0.5, 1.5), n)
    met = np.triu(rng.integers(20, 400, (n, n)), 1)
    won = rng.binomial(met, 1 / (1 + np.exp(theta[None, :] - theta[:, None])))
    wins = won + (met - won).T + 0.5
    np.fill_diagonal(wins, 0.0)
    return np.asarray(wins, dtype=np.float64)


def greediest(wins: Floats, votes: int, ranks: int) -> Floats:
    """Cast votes by the influence on the weakest lead of the first ranks, in ten parts."""
    after = wins.copy()
    for part in np.array_split(np.arange(votes), min(10, votes)):
        theta = solve(after, np.zeros(len(wins))).theta
        order = np.argsort(-theta)
        gaps = [(theta[order[k]] - theta[order[k + 1]], k) for k in range(ranks)]
        _, k = min(gaps)
        above, below = order[k], order[k + 1]
        p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        games = (after + after.T) * p * p.T
        information = np.diag(games.sum(axis=1)) - games + 1 / len(wins)
        inverse = np.linalg.inv(information)
        along = inverse[below] - inverse[above]
        gain = (along[:, None] - along[None, :]) * p.T  # a vote of row over column
        winner, loser = np.unravel_index(gain.argmax(), gain.shape)
        after[winner, loser] += len(part)
    return after


def first(wins: Floats, ranks: int) -> list[int]:
    return [int(model) for model in np.argsort(-solve(wins, np.zeros(len(wins))).theta)[:ranks]]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(100))
def test_no_attack_of_so_many_votes_changes_the_first_ranks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wins = a_board(rng)
    order = first(wins, len(wins))
    ranks = certify(wins, 1, most_ranks=3)
    enough = [one.sufficient_votes for one in ranks]
    assert enough == sorted(enough, reverse=True)
    for held in ranks:
        attacks = []
        for k in range(held.ranks):
            for below in order[k + 1 :]:
                straight = wins.copy()
                straight[below, order[k]] += held.votes
                attacks.append(straight)
        if held.votes:
            attacks.append(greediest(wins, held.votes, held.ranks))
            scattered = wins.copy()
            pairs = rng.integers(len(wins), size=(held.votes, 2))
            np.add.at(scattered, tuple(pairs[pairs[:, 0] != pairs[:, 1]].T), 1)
            attacks.append(scattered)
        for after in attacks:
            assert first(after, held.ranks) == order[: held.ranks]
        assert held.votes < held.sufficient_votes


def test_the_bound_is_not_empty_and_as_many_votes_as_suffice_do_change_a_rank() -> None:
    ratios = []
    for seed in range(30):
        wins = a_board(np.random.default_rng(seed))
        order = first(wins, len(wins))
        held = certify(wins, 1, most_ranks=1)[0]
        over = wins.copy()
        over[order[1], order[0]] += held.sufficient_votes + 1
        assert first(over, 1) != order[:1]
        ratios.append(held.votes / held.sufficient_votes)
    assert np.median(ratios) > 0.15


def test_two_models_by_hand() -> None:
    """30 to 10: from level to log 3 is the only way to lose, and to move by."""
    wins = np.array([[0.0, 30.0], [10.0, 0.0]])
    rise = 40 * np.log(2) + 30 * np.log(0.75) + 10 * np.log(0.25)
    at_once = np.log(3)  # the other way round the same rise is reached later: by widest
    further = brentq(lambda s: loss(np.log(3) + s) - loss(np.log(3)) - rise, 0, 9)
    x = np.linspace(0, max(at_once, further), 9999)
    bound = rise / (x / (1 + np.exp(x - np.log(3)))).max()
    assert certify(wins, 1)[0].votes == int(np.ceil(bound)) - 1
    assert certify(wins, 2)[0].accounts == (int(np.ceil(bound)) - 1) // 2


def loss(gap: float) -> float:
    return float(30 * np.log1p(np.exp(-gap)) + 10 * np.log1p(np.exp(gap)))


def test_an_account_without_votes_is_refused() -> None:
    with pytest.raises(DataError, match="0 votes an account"):
        certify(np.array([[0.0, 3.0], [1.0, 0.0]]), 0)
