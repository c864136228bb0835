"""Boards of the same votes: correlations, contradictions, and the winner."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from judge.probe.consistency import consistency
from rating.errors import DataError


def claims(theta: np.ndarray, bar: float) -> np.ndarray:
    return np.asarray(theta[:, :, None] - theta[:, None, :] > bar)


@given(st.integers(0, 2**32), st.integers(3, 8))
def test_correlations_are_scipy_s_and_symmetric(seed: int, n: int) -> None:
    theta = np.random.default_rng(seed).normal(size=(3, n)).round(1)
    assume(np.ptp(theta, axis=1).all())  # of what does not vary scipy warns
    found = consistency("abc", theta, claims(theta, 0.0))
    known = stats.spearmanr(theta[0], theta[1]).statistic
    assert found.spearman[0, 1] == pytest.approx(known, nan_ok=True)
    assert found.spearman == pytest.approx(found.spearman.T, nan_ok=True)


@given(st.integers(0, 2**32))
def test_contradictions_are_the_pairs_claimed_in_opposite_orders(seed: int) -> None:
    theta = np.random.default_rng(seed).normal(size=(3, 5))
    above = claims(theta, 0.4)
    found = consistency("abc", theta, above)
    for x in range(3):
        for y in range(3):
            pairs = [
                (i, j) for i in range(5) for j in range(5) if above[x, i, j] and above[y, j, i]
            ]
            assert found.contradictions[x, y] == len(pairs)


def test_a_board_against_itself_never_contradicts() -> None:
    theta = np.tile(np.random.default_rng(1).normal(size=6), (2, 1))
    found = consistency("ab", theta, claims(theta, 0.1))
    assert (found.lowest, found.most_contradictions, found.same_winner) == (1.0, 0, 1.0)


def test_boards_turned_round_contradict_on_every_pair_they_claim() -> None:
    up = np.arange(4.0)
    theta = np.stack([up, -up])
    found = consistency("ab", theta, claims(theta, 0.5))
    assert (found.lowest, found.most_contradictions, found.same_winner) == (-1.0, 6, 0.0)


def test_a_flat_board_has_no_correlation_rather_than_none_at_all() -> None:
    theta = np.stack([np.arange(4.0), np.zeros(4)])
    found = consistency("ab", theta, claims(theta, 0.5))
    assert found.lowest is None
    assert found.to_dict()["spearman"] == [[1.0, None], [None, None]]


def test_one_board_is_refused() -> None:
    with pytest.raises(DataError, match="1 board has nothing"):
        consistency("a", np.ones((1, 3)), np.zeros((1, 3, 3), dtype=bool))
