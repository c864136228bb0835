"""Signal over noise: trends taken out, degrees of freedom paid for, and what has no ratio."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.discriminability import detrended, signal_to_noise
from rating.errors import DataError


@given(st.integers(0, 2**32), st.integers(4, 12))
def test_parabolas_are_taken_out_as_a_least_squares_fit_does(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(3, n))
    time = np.arange(n)
    known = [row - np.polyval(np.polyfit(time, row, 2), time) for row in scores]
    assert detrended(scores) == pytest.approx(np.array(known), abs=1e-9)
    trend = np.array([[1], [-2], [0.5]]) * time**2 - 3 * time
    assert detrended(scores + trend) == pytest.approx(detrended(scores), abs=1e-9)


@pytest.mark.parametrize("n", [5, 9, 30])
def test_noise_is_found_without_bias_however_long_one_looks(n: int) -> None:
    rng = np.random.default_rng(n)
    squares = [signal_to_noise(rng.normal(0, 2, (4, n))).noise ** 2 for _ in range(800)]
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 4) < 4 * error


def test_entrants_far_apart_stand_out_and_alike_ones_do_not() -> None:
    wander = np.random.default_rng(1).normal(size=(5, 9))
    far, near = (signal_to_noise(wander + gap * np.arange(5)[:, None]) for gap in (3, 0))
    assert far.ratio is not None
    assert near.ratio is not None
    assert far.ratio > 4
    assert near.ratio < 1


def test_alike_entrants_are_comfortable_by_the_whole_interval_one_time_in_forty_at_most() -> None:
    rng = np.random.default_rng(3)
    found = [signal_to_noise(rng.normal(size=(4, 9)), averaged=9) for _ in range(600)]
    above = np.mean([(one.lower or 0) > 1 for one in found])
    assert above <= 0.025 + 3 * np.sqrt(0.025 / 600)
    assert not any((one.lower or 0) >= 2 for one in found)


def test_the_interval_holds_the_ratio_that_entrants_have() -> None:
    rng, place = np.random.default_rng(4), np.array([0.0, 1, 2, 4])
    truth = np.sqrt(1 + 9 * place.var(ddof=1) / 1)
    held = []
    for _ in range(600):
        found = signal_to_noise(place[:, None] + rng.normal(size=(4, 9)), averaged=9)
        held.append((found.lower or 0) <= truth <= (found.upper or np.inf))
    assert np.mean(held) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 600))


def test_what_moves_all_entrants_alike_is_no_wandering_and_shares_are_not_quieter() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(3, 9))
    shared = signal_to_noise(scores + 5 * rng.normal(size=9))
    assert shared.noise == pytest.approx(signal_to_noise(scores).noise)
    halves = rng.normal(size=(4000, 9))
    wander = [signal_to_noise(np.stack([one, -one])).noise ** 2 for one in halves]
    assert np.mean(wander) == pytest.approx(2, rel=0.05), "of a difference, over two"


def test_alike_entrants_have_a_ratio_of_one_by_the_mean_of_all_looks() -> None:
    rng = np.random.default_rng(2)
    found = [signal_to_noise(rng.normal(size=(6, 9)), averaged=9) for _ in range(400)]
    signal, noise = (np.mean([getattr(one, x) ** 2 for one in found]) for x in ("signal", "noise"))
    assert signal / noise == pytest.approx(1, abs=0.1)


def test_scores_that_never_wander_have_no_ratio_rather_than_an_endless_one() -> None:
    found = signal_to_noise(np.repeat([[1.0], [3.0]], 6, axis=1))
    assert (found.noise, found.ratio) == (0.0, None)
    assert found.signal == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("shape", [(1, 9), (4, 3)])
def test_too_little_to_compare_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"{shape[0]} entrants at {shape[1]} moments"):
        signal_to_noise(np.zeros(shape))
