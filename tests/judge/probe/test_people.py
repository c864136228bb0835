"""Agreement of scores with ratings and votes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from judge.probe.people import (
    RatedTexts,
    VotedPairs,
    ceiling,
    draw_prompts,
    net_agreement,
    rank_correlation,
    rated_pairs,
)
from rating.errors import DataError
from tests.judge.probe.texts import voted

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30)


def drawn(prompt: np.ndarray) -> np.ndarray:
    return draw_prompts(prompt, np.random.default_rng(1))


@given(rows)
def test_the_rank_correlation_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    prompt = np.arange(len(x))
    found = rank_correlation(x, y, prompt, drawn(prompt)).value
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(x, y).statistic)


def test_each_round_is_the_rank_correlation_of_the_rows_that_were_drawn() -> None:
    x, y = np.random.default_rng(2).integers(0, 6, size=(2, 30)).astype(float)
    prompt = np.repeat(np.arange(10), 3)
    counts = drawn(prompt)
    found = rank_correlation(x, y, prompt, counts)
    for i in (1, 2, 3):
        times = counts[i][prompt].astype(int)
        want = spearmanr(np.repeat(x, times), np.repeat(y, times)).statistic
        assert found.rounds[i - 1] == pytest.approx(want)


def test_pairs_are_compared_within_a_prompt_alone() -> None:
    prompt = np.array([0, 1, 0, 1, 0])
    ratings = np.array([3.0, 1.0, 2.0, 2.0, 2.0])
    # Prompt 0: row 0 is above rows 2 and 4, which people tie. Prompt 1: row 3 is above row 1.
    right = rated_pairs(ratings, ratings, prompt, drawn(prompt))
    assert (right.value, right.n) == (1, 3)
    scores = np.array([3.0, 5.0, 3.0, 4.0, 1.0])  # a tie, agreement, and disagreement
    found = rated_pairs(scores, ratings, prompt, drawn(prompt))
    assert found.value == 0


def test_a_tie_is_neither_agreement_nor_disagreement() -> None:
    prompt = np.arange(3)
    votes = np.array([[3.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    said = np.array([1.0, 0.0, 1.0])
    found = net_agreement(said, votes, prompt, drawn(prompt))
    assert found.value == pytest.approx((3 - 1 + 0 - 2) / 8)
    assert found.n == 8


def test_the_ceiling_of_a_half_and_of_two_thirds() -> None:
    # Two pairs of votes 2:0 and one of 1:1: people agree on 2 of 3.
    votes = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0], [1.0, 0.0]])
    said = np.array([1.0, -1.0, 1.0, -1.0])  # the last pair has one vote: not counted
    found = ceiling(said, votes, np.arange(4), drawn(np.arange(4)))
    assert found["people agree"].value == pytest.approx(2 / 3)
    assert found["highest"].value == pytest.approx((1 + math.sqrt(1 / 3)) / 2)
    assert found["reached"].value == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found["reached"].n == 3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_no_evaluator_is_above_the_ceiling(shares: list[float]) -> None:
    # As many votes as there are people: the majority reaches what can be reached.
    votes = np.array([[round(1e6 * p), 1e6 - round(1e6 * p)] for p in shares])
    said = np.where(votes[:, 0] > votes[:, 1], 1.0, -1.0)
    found = ceiling(said, votes, np.arange(len(votes)), drawn(np.arange(len(votes))))
    lowest, highest = found["people agree"].value, found["highest"].value
    assert max(lowest, 0.5) - 1e-5 <= found["reached"].value <= highest + 1e-3


def test_single_votes_give_no_ceiling() -> None:
    said, votes = np.ones(2), np.array([[1.0, 0.0], [0.0, 1.0]])
    assert ceiling(said, votes, np.arange(2), drawn(np.arange(2))) == {}


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="Ratings 'x' of shape"):
        RatedTexts("x", ("a",), ("b", "c"), np.arange(2), ("d",), np.zeros((2, 1)))
    with pytest.raises(DataError, match="no number"):
        RatedTexts("x", ("a",), ("b",), np.arange(1), ("d",), np.array([[np.nan]]))
    pairs = voted(4)
    with pytest.raises(DataError, match="give two numbers for each"):
        VotedPairs(
            "x", pairs.prompts, pairs.responses_a, pairs.responses_b, pairs.prompt, np.ones((4, 3))
        )
