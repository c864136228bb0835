"""The variances by leaving out clusters: factors, ways of clustering, and draws."""

import math

import numpy as np
import pytest
from scipy.stats import sem

from rating.leave_out import (
    clustered_variance,
    draw_counts,
    influence_variance,
    jackknife_variance,
    positive_part,
    two_way,
)

VALUES = np.random.default_rng(1).normal(size=(12, 3))


def test_both_ways_give_a_mean_its_standard_error() -> None:
    influence = (VALUES - VALUES.mean(axis=0)) / len(VALUES)
    without = (VALUES.sum(axis=0) - VALUES) / (len(VALUES) - 1)
    expected = sem(VALUES) ** 2
    assert influence_variance(influence) == pytest.approx(expected, rel=1e-12)
    assert jackknife_variance(without) == pytest.approx(expected, rel=1e-12)
    assert jackknife_variance(without, VALUES.mean(axis=0)) == pytest.approx(expected, rel=1e-12)


def test_around_another_value_than_their_mean_leave_outs_are_wider() -> None:
    without = np.array([1.0, 2.0, 6.0])
    assert jackknife_variance(without) == pytest.approx(2 / 3 * (4 + 1 + 9))
    assert jackknife_variance(without, 2.0) == pytest.approx(2 / 3 * (1 + 0 + 16))


def test_sums_within_clusters_count_once() -> None:
    cluster = np.array([7, 7, 7, 9, 9, 2, 2, 2, 2, 4, 4, 4])
    influence = (VALUES - VALUES.mean(axis=0)) / len(VALUES)
    sums = np.array([influence[cluster == one].sum(axis=0) for one in (2, 4, 7, 9)])
    assert clustered_variance(influence, cluster) == pytest.approx(4 / 3 * (sums**2).sum(axis=0))
    assert clustered_variance(influence[:, 0], cluster) == pytest.approx(
        4 / 3 * float(sums[:, 0] @ sums[:, 0])
    )


@pytest.mark.parametrize("n", [0, 1])
def test_less_than_two_clusters_show_nothing(n: int) -> None:
    assert influence_variance(np.zeros(n)) == math.inf
    assert influence_variance(np.zeros((5, 2)), n).tolist() == [math.inf, math.inf]


def test_voters_and_prompts_together_give_the_variance_of_a_crossed_mean() -> None:
    """The truth of a mean with effects of 30 voters (sd 1), 15 prompts (1.5) and votes (1)."""
    rng = np.random.default_rng(2)
    voter, prompt = np.repeat(np.arange(30), 6), np.tile(np.arange(15), 12)
    effects = [rng.normal(0, sd, (n, 300)) for n, sd in ((30, 1.0), (15, 1.5), (180, 1.0))]
    y = effects[0][voter] + effects[1][prompt] + effects[2]
    influence = (y - y.mean(axis=0)) / len(y)
    by_voter, by_prompt = (clustered_variance(influence, one) for one in (voter, prompt))
    voters, prompts = (by_voter, np.full(300, 29.0)), (by_prompt, np.full(300, 14.0))
    total, df = two_way(voters, prompts, influence_variance(influence))
    truth = 1 / 30 + 1.5**2 / 15 + 1 / 180
    assert total.mean() == pytest.approx(truth, rel=0.1)
    assert y.mean(axis=0).var() == pytest.approx(truth, rel=0.25)
    assert ((df > 13) & (df < 44)).all()


def test_prompts_that_add_nothing_leave_the_degrees_of_freedom_as_they_are() -> None:
    total, df = two_way(
        (np.array([2.0, 2.0]), np.array([9.0, np.inf])),
        (np.array([1.0, 1.0]), np.array([3.0, np.inf])),
        np.array([1.5, 1.5]),
    )
    assert total.tolist() == [2, 2]
    assert df.tolist() == [9, math.inf]


def test_a_difference_of_covariances_keeps_the_directions_above_zero() -> None:
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    matrix = turn @ np.diag([2.0, -1.0]) @ turn.T
    assert positive_part(matrix) == pytest.approx(turn @ np.diag([2.0, 0.0]) @ turn.T)


def test_every_round_draws_as_many_as_there_are() -> None:
    counts = draw_counts(7, 500, np.random.default_rng(1))
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean() == 1
