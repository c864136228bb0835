"""Noise of reruns: the published multipliers, their limits, and what must not become a number."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from judge.probe.robustness import MOST_NOISE, consistency, difference_multiplier, rerun_noise
from rating.errors import DataError


@pytest.mark.parametrize(
    ("df", "averaged", "known"), [(4, 1, 3.926), (4, 3, 2.267), (8, 5, 1.458)]
)
def test_the_multipliers_are_those_of_the_formula(df: int, averaged: int, known: float) -> None:
    assert round(difference_multiplier(df, averaged), 3) == known


@given(
    df=st.integers(1, 200), averaged=st.integers(1, 30), level=st.sampled_from([0.8, 0.95, 0.99])
)
def test_the_multiplier_falls_with_runs_and_ends_at_the_normal(
    df: int, averaged: int, level: float
) -> None:
    multiplier = difference_multiplier(df, averaged, level=level)
    assert multiplier > difference_multiplier(df + 1, averaged, level=level)
    assert multiplier > difference_multiplier(df, averaged + 1, level=level)
    limit = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt(2 / averaged)
    assert multiplier > limit
    assert difference_multiplier(10**8, averaged, level=level) == pytest.approx(limit, rel=1e-6)


@given(st.integers(0, 2**32), st.floats(0.1, 100), st.floats(-50, 50))
def test_noise_takes_the_unit_of_the_scores_and_no_notice_of_their_place(
    seed: int, unit: float, place: float
) -> None:
    scores = np.random.default_rng(seed).normal(size=(3, 4))
    noise, moved = rerun_noise(scores), rerun_noise(unit * scores + place)
    assert moved.sd == pytest.approx(unit * noise.sd)
    assert moved.smallest == pytest.approx(unit * noise.smallest)
    assert noise.sd == pytest.approx(math.sqrt(np.mean([stats.tvar(row) for row in scores])))


@pytest.mark.slow
def test_the_interval_of_the_ratio_holds_it_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(6), []
    for _ in range(2000):
        strengths = rng.normal(0, 3, (5, 4))
        noise = rerun_noise(strengths - strengths.mean(axis=0))
        se = 3 * math.sqrt(rng.chisquare(40) / 40)
        lower, upper = noise.over_interval(se, 40)
        held.append(lower <= math.sqrt(4 / 5) <= upper)
    assert abs(np.mean(held) - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_runs_that_agree_have_no_noise_and_scores_around_zero_no_variation() -> None:
    noise = rerun_noise(np.array([[1.0, 1.0], [-2.0, -2.0]]))
    assert (noise.sd, noise.smallest, noise.cv) == (0.0, 0.0, 0.0)
    assert rerun_noise(np.array([[-1.0, 1.0]])).cv is None
    assert noise.over(0.0) == 0.0


def test_noise_is_held_against_the_error_of_a_score() -> None:
    noise = rerun_noise(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
    ends = noise.sd * np.sqrt(4 / stats.chi2.ppf([0.975, 0.025], 4))
    assert (noise.sd_lower, noise.sd_upper) == pytest.approx(tuple(ends))
    assert noise.smallest_averaged == pytest.approx(difference_multiplier(4, 5) * noise.sd)
    assert noise.cv == pytest.approx(noise.sd / 3)
    assert noise.over(2 * noise.sd) == pytest.approx(0.5)
    assert noise.over(0.0) == math.inf
    assert math.sqrt(1 + MOST_NOISE**2) == pytest.approx(1.05, abs=0.005)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((2, 1)), "1 run gives no rerun noise"),
        (np.ones((0, 3)), r"shape \(0, 3\)"),
        (np.ones(3), r"shape \(3,\)"),
        (np.array([[1.0, math.nan]]), r"score at \(0, 1\) is nan"),
    ],
)
def test_scores_that_tell_nothing_are_refused(scores: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        rerun_noise(scores)


def test_a_multiplier_without_a_degree_of_freedom_is_refused() -> None:
    with pytest.raises(DataError, match="df 0"):
        difference_multiplier(0)


def claims(theta: np.ndarray, bar: float) -> np.ndarray:
    return np.asarray(theta[:, :, None] - theta[:, None, :] > bar)


@given(st.integers(0, 2**32), st.integers(3, 8))
def test_correlations_are_scipy_s_and_symmetric(seed: int, n: int) -> None:
    theta = np.random.default_rng(seed).normal(size=(3, n)).round(1)
    assume(np.ptp(theta, axis=1).all())  # of what does not vary scipy warns
    agreement = consistency("abc", theta, claims(theta, 0.0))
    known = stats.spearmanr(theta[0], theta[1]).statistic
    assert agreement.spearman[0, 1] == pytest.approx(known, nan_ok=True)
    assert agreement.spearman == pytest.approx(agreement.spearman.T, nan_ok=True)


@given(st.integers(0, 2**32))
def test_contradictions_are_the_pairs_claimed_in_opposite_orders(seed: int) -> None:
    theta = np.random.default_rng(seed).normal(size=(3, 5))
    above = claims(theta, 0.4)
    agreement = consistency("abc", theta, above)
    for x in range(3):
        for y in range(3):
            pairs = [
                (i, j) for i in range(5) for j in range(5) if above[x, i, j] and above[y, j, i]
            ]
            assert agreement.contradictions[x, y] == len(pairs)


def test_a_board_against_itself_never_contradicts() -> None:
    theta = np.tile(np.random.default_rng(1).normal(size=6), (2, 1))
    agreement = consistency("ab", theta, claims(theta, 0.1))
    assert (agreement.lowest, agreement.same_winner) == (1.0, 1.0)
    assert agreement.most_contradictions == 0


def test_boards_turned_round_contradict_on_every_pair_they_claim() -> None:
    up = np.arange(4.0)
    theta = np.stack([up, -up])
    agreement = consistency("ab", theta, claims(theta, 0.5))
    assert (agreement.lowest, agreement.same_winner) == (-1.0, 0.0)
    assert agreement.most_contradictions == 6


def test_a_flat_board_has_no_correlation_rather_than_none_at_all() -> None:
    theta = np.stack([np.arange(4.0), np.zeros(4)])
    agreement = consistency("ab", theta, claims(theta, 0.5))
    assert agreement.lowest is None
    assert agreement.to_dict()["spearman"] == [[1.0, None], [None, None]]


def test_one_board_is_refused() -> None:
    with pytest.raises(DataError, match="1 board cannot be compared"):
        consistency("a", np.ones((1, 3)), np.zeros((1, 3, 3), dtype=bool))
