from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rating.errors import DataError
from rating.planning import (
    EXPLORATION,
    arena_pairs,
    gain_pairs,
    neighbour_contrast,
    score_variances,
    uniform_pairs,
    vote_gain,
    weighted_pairs,
)
from tests.rating.crowd import information, strengths, win_probabilities

Rule = Callable[[np.ndarray, float], np.ndarray]
"""From the scores of row against column, and the share of exploration, to probabilities."""


RIDGE = 0.1


def by_gain(wins: np.ndarray, exploration: float, top: int | None = None) -> np.ndarray:
    theta = strengths(wins, ridge=RIDGE)
    covariance = np.asarray(np.linalg.inv(information(theta, wins, RIDGE)), dtype=np.float64)
    return gain_pairs(theta, covariance, top=top, exploration=exploration)


RULES: dict[str, Rule] = {
    "uniform": lambda wins, _: uniform_pairs(len(wins)),
    "arena": lambda wins, share: arena_pairs(
        wins + wins.T, score_variances(wins), exploration=share
    ),
    "gain": by_gain,
    "weighted": lambda wins, share: weighted_pairs(
        np.arange(1.0, 1 + len(wins)), exploration=share
    ),
}


def board(seed: int, n_models: int = 6, per_pair: float = 20) -> np.ndarray:
    """Scores of a board whose pairs met unequally often, some never."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.6, n_models)
    counts = np.triu(rng.poisson(rng.exponential(per_pair, (n_models, n_models))), k=1)
    won = rng.binomial(counts, win_probabilities(theta))
    return (won + (counts - won).T).astype(float)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    n_models=st.integers(2, 9),
    share=st.floats(0.1, 1, allow_nan=False),
)
def test_chances_are_of_unordered_pairs_and_keep_the_floor(
    rule: str, seed: int, n_models: int, share: float
) -> None:
    probability = RULES[rule](board(seed, n_models), share)
    pairs = probability[np.triu_indices(n_models, k=1)]
    assert (probability == probability.T).all()
    assert (np.diag(probability) == 0).all()
    assert pairs.sum() == pytest.approx(1, abs=1e-12)
    assert (pairs >= share / len(pairs) * (1 - 1e-12)).all()


@pytest.mark.parametrize("rule", ["arena", "gain"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**16))
def test_relabelled_models_take_their_chances_along(rule: str, seed: int) -> None:
    wins = board(seed)
    order = np.random.default_rng(seed).permutation(6)
    moved = RULES[rule](wins[np.ix_(order, order)], EXPLORATION)
    assert moved == pytest.approx(RULES[rule](wins, EXPLORATION)[np.ix_(order, order)], abs=1e-6)


@pytest.mark.parametrize("rule", ["arena", "gain"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**16))
def test_a_new_model_gets_more_than_its_even_share(rule: str, seed: int) -> None:
    wins = board(seed, per_pair=200) + 50 * (1 - np.eye(6))
    wins[5, :] = wins[:, 5] = 0
    probability = RULES[rule](wins, EXPLORATION)
    assert probability[5].sum() > 2 / 6
    assert probability[5].sum() > probability[:5].sum(axis=1).max()


def test_a_heavier_model_gets_more() -> None:
    probability = weighted_pairs(np.array([5.0, 1.0, 1.0]), exploration=0.2)
    assert probability[0, 1] == pytest.approx(0.8 * 5 / 11 + 0.2 / 3)
    assert probability[1, 2] == pytest.approx(0.8 * 1 / 11 + 0.2 / 3)


def test_the_arena_rule_is_equation_nine() -> None:
    counts = np.array([[0, 10, 40], [10, 0, 90], [40, 90, 0]])
    variance = np.array([[0, 0.25, 0.2], [0.25, 0, 0.1], [0.2, 0.1, 0]])
    first, second = np.triu_indices(3, k=1)
    n, s = counts[first, second], variance[first, second]
    drop = np.sqrt(s / n) - np.sqrt(s / (n + 1))
    drawn = arena_pairs(counts, variance, exploration=1e-12)[first, second]
    assert drawn == pytest.approx(drop / drop.sum())


def test_the_gain_is_what_one_vote_takes_off_the_variances() -> None:
    """Against the inverse of the information with the vote in it."""
    wins = board(1) + 2 * (1 - np.eye(6))
    theta = strengths(wins, ridge=RIDGE)
    known = information(theta, wins, RIDGE)
    covariance = np.asarray(np.linalg.inv(known), dtype=np.float64)
    contrast = neighbour_contrast(theta, top=4)
    gain = vote_gain(theta, covariance, contrast)
    for i, j in [(0, 1), (2, 5), (3, 4)]:
        x = np.zeros(6)
        x[i], x[j] = 1, -1
        p = 1 / (1 + np.exp(theta[j] - theta[i]))
        after = np.linalg.inv(known + p * (1 - p) * np.outer(x, x))
        assert gain[i, j] == pytest.approx(np.trace(contrast @ (covariance - after)), rel=1e-9)


def test_the_top_is_the_only_thing_of_interest_when_asked_for() -> None:
    wins = 20.0 * (1 - np.eye(6))
    wins[:3, 3:] *= 1.2
    probability = by_gain(wins, EXPLORATION, top=2)
    theta = strengths(wins, ridge=RIDGE)
    first, second = np.argsort(-theta, kind="stable")[:2]
    assert probability[first, second] == probability.max()
    assert probability[3, 4] == pytest.approx(EXPLORATION / 15, rel=1e-6)


def test_neighbours_of_the_top_are_contrasted() -> None:
    contrast = neighbour_contrast(np.array([0.0, 2.0, 1.0, -1.0]), top=3)
    assert contrast.tolist() == [[1, 0, -1, 0], [0, 1, -1, 0], [-1, -1, 2, 0], [0, 0, 0, 0]]


def test_where_nothing_can_be_learnt_every_pair_is_alike() -> None:
    nothing = np.zeros((4, 4))
    assert arena_pairs(nothing, nothing) == pytest.approx(uniform_pairs(4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform_pairs(1), "A battle needs two models, not 1"),
        (lambda: weighted_pairs(np.array([1.0, 0.0])), "Weight 0.0 is not positive"),
        (lambda: weighted_pairs(np.ones(3), exploration=0), r"exploration must lie in \(0, 1\]"),
        (lambda: arena_pairs(np.array([[0, -1], [-1, 0]]), np.eye(2)), "counts holds -1"),
        (lambda: arena_pairs(np.array([[0, 1], [2, 0]]), np.eye(2)), "counts must be symmetric"),
        (lambda: arena_pairs(np.eye(2), np.full((2, 2), np.nan)), "variances holds nan"),
        (lambda: gain_pairs(np.zeros(3), np.eye(3), top=4), "top must lie between 2 and 3, not 4"),
        (lambda: gain_pairs(np.zeros(2), np.full((2, 2), np.inf)), "covariance must be finite"),
    ],
)
def test_what_makes_no_probability_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()
