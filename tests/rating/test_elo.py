import math

import numpy as np
import pytest

from rating.errors import DataError
from rating.variants import expected_score, online_elo
from tests.rating.builders import golden

Votes = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Of either side, the score of the first, and the number of models."""


def some_votes(seed: int, n: int = 400) -> Votes:
    rng, n_models = np.random.default_rng(seed), 6
    a = rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    return a, b, rng.choice([0.0, 0.5, 1.0], size=n), n_models


def one_vote_at_a_time(
    a: np.ndarray, b: np.ndarray, score: np.ndarray, n_models: int, k: float
) -> np.ndarray:
    """The rule as FastChat writes it, in points and on numpy scalars."""
    ratings = np.full(n_models, 1000.0)
    for i, j, y in zip(a, b, score, strict=True):
        expected = 1 / (1 + 10 ** ((ratings[j] - ratings[i]) / 400))
        ratings[i] += k * (y - expected)
        ratings[j] += k * (expected - y)
    return ratings


def test_a_lead_in_points_is_the_elo_expectation() -> None:
    example = golden("elo_expectation")
    probabilities = example["expected"]["chance"]
    for lead, probability in zip(example["data"]["lead"], probabilities, strict=True):
        assert expected_score(lead) == pytest.approx(probability, abs=5e-5)
        assert expected_score(-lead) == pytest.approx(1 - probability, abs=5e-5)


@pytest.mark.parametrize("k", [4.0, 32.0])
def test_the_fast_loop_is_the_rule_vote_by_vote(k: float) -> None:
    votes = some_votes(1)
    assert online_elo(*votes, k=k) == pytest.approx(one_vote_at_a_time(*votes, k), abs=1e-9)


def test_start_and_scale_only_move_and_stretch() -> None:
    votes = some_votes(4)
    plain = online_elo(*votes)
    assert online_elo(*votes, start=0.0) == pytest.approx(plain - 1000)
    assert online_elo(*votes, k=8, scale=800) - 1000 == pytest.approx(2 * (plain - 1000))


def test_votes_in_more_than_one_chunk_are_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = some_votes(5)
    whole = online_elo(*votes)
    monkeypatch.setattr("rating.variants.CHUNK_VOTES", 7)
    assert (online_elo(*votes) == whole).all()


def test_no_votes_leave_every_model_at_the_start() -> None:
    none = np.array([], dtype=np.int64)
    assert online_elo(none, none, np.array([]), 3).tolist() == [1000, 1000, 1000]


def test_small_steps_through_many_votes_come_to_the_bradley_terry_gap() -> None:
    rng = np.random.default_rng(8)
    n = 40_000
    score = (rng.random(n) < 0.75).astype(float)
    a, b = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    strong, weak = online_elo(a, b, score, 2, k=0.5)
    # In equilibrium the gap wanders with sd sqrt(k * 400 / ln 10 / 2) points.
    assert strong - weak == pytest.approx(400 * math.log10(3), abs=4 * math.sqrt(0.5 * 173.7 / 2))


@pytest.mark.parametrize(
    ("a", "b", "score", "k", "message"),
    [
        ([0, 1], [1], [1.0], 4, "have lengths a 2, b 1, score_a 1"),
        ([0], [2], [1.0], 4, "b holds the code 2; codes are from 0 to 1"),
        ([-1], [1], [1.0], 4, "a holds the code -1"),
        ([1], [1], [1.0], 4, "Model 1 meets itself"),
        ([0], [1], [1.5], 4, "Score 1.5"),
        ([0], [1], [np.nan], 4, "Score nan"),
        ([0], [1], [1.0], 0, "k must be positive and finite, not 0"),
    ],
)
def test_bad_votes_are_refused_with_their_value(
    a: list[int], b: list[int], score: list[float], k: float, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        online_elo(np.array(a), np.array(b), np.array(score), 2, k=k)
