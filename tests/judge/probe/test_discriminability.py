"""Signal over noise: trends taken out, degrees of freedom paid for, and what has no ratio."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.ranking import _null_entrant_shares, detrended, signal_to_noise, variance_shares
from rating.errors import DataError
from tests.judge.probe.texts import rng


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


def test_alike_entrants_are_comfortable_by_the_whole_interval_one_time_in_forty_at_most() -> None:
    rng = np.random.default_rng(3)
    ratios = [signal_to_noise(rng.normal(size=(4, 9)), averaged=9) for _ in range(600)]
    above = np.mean([(one.lower or 0) > 1 for one in ratios])
    assert above <= 0.025 + 3 * np.sqrt(0.025 / 600)
    assert not any((one.lower or 0) >= 2 for one in ratios)


def test_the_interval_holds_the_ratio_that_entrants_have() -> None:
    rng, place = np.random.default_rng(4), np.array([0.0, 1, 2, 4])
    truth = np.sqrt(1 + 9 * place.var(ddof=1) / 1)
    held = []
    for _ in range(600):
        ratio = signal_to_noise(place[:, None] + rng.normal(size=(4, 9)), averaged=9)
        held.append((ratio.lower or 0) <= truth <= (ratio.upper or np.inf))
    assert np.mean(held) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 600))


def test_what_moves_all_entrants_alike_is_no_wandering_and_shares_are_not_quieter() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(3, 9))
    shared = signal_to_noise(scores + 5 * rng.normal(size=9))
    assert shared.noise == pytest.approx(signal_to_noise(scores).noise)
    halves = rng.normal(size=(4000, 9))
    wander = [signal_to_noise(np.stack([one, -one])).noise ** 2 for one in halves]
    assert np.mean(wander) == pytest.approx(2, rel=0.05), "of a difference, over two"


def test_scores_that_never_wander_have_no_ratio_rather_than_an_endless_one() -> None:
    ratio = signal_to_noise(np.repeat([[1.0], [3.0]], 6, axis=1))
    assert (ratio.noise, ratio.ratio) == (0.0, None)
    assert ratio.signal == pytest.approx(np.sqrt(2))
    moving = signal_to_noise(np.random.default_rng(1).normal(size=(5, 9)))
    assert moving.ratio == moving.signal / moving.noise


@pytest.mark.parametrize("shape", [(1, 9), (4, 3)])
def test_too_little_to_compare_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"{shape[0]} models at {shape[1]} moments"):
        signal_to_noise(np.zeros(shape))


DESIGN = (4, 3, 9)
PUBLISHED_DRAWS = 10_000
"""Draws that the published chances could be of, at the least."""


@pytest.mark.parametrize(("share", "known"), [(0.2, 0.0002), (0.1, 0.024), (0.05, 0.200)])
def test_the_null_is_the_published_one(share: float, known: float) -> None:
    null = _null_entrant_shares(DESIGN, rng=rng(1), draws=200_000)
    error = math.sqrt(known * (1 - known) * (1 / PUBLISHED_DRAWS + 1 / 200_000))
    assert abs((null > share).mean() - known) < 3 * error


def test_the_null_by_formula_is_that_of_designs_filled_with_noise() -> None:
    noise = rng(2).normal(size=(1000, *DESIGN))
    drawn = np.array([variance_shares(one, rng=rng(), draws=1).entrant for one in noise])
    null = _null_entrant_shares(DESIGN, rng=rng(3), draws=200_000)
    for share in (0.02, 0.05, 0.1):
        known = (null > share).mean()
        error = math.sqrt(known * (1 - known) / len(drawn))
        assert abs((drawn > share).mean() - known) < 4 * error


@given(st.integers(0, 2**32))
def test_shares_are_those_written_out_and_sum_to_one(seed: int) -> None:
    scores = rng(seed).normal(size=(3, 2, 4))
    by_source = variance_shares(scores, rng=rng(), draws=10)

    def variance(values: list[float]) -> float:
        mean = sum(values) / len(values)
        return sum((x - mean) ** 2 for x in values) / (len(values) - 1)

    means = [[run.mean() for run in entrant] for entrant in scores]
    parts = [
        variance([sum(runs) / len(runs) for runs in means]),
        sum(variance(runs) for runs in means) / 3,
        sum(variance(list(run)) for entrant in scores for run in entrant) / 6,
    ]
    shares = [by_source.entrant, by_source.seed, by_source.snapshot]
    assert shares == pytest.approx([part / sum(parts) for part in parts])
    assert sum(shares) == pytest.approx(1)


def test_each_source_alone_takes_all_the_variance() -> None:
    ramp = np.arange(24.0)
    entrants = np.broadcast_to(ramp[:4, None, None], (4, 3, 9))
    seeds = np.broadcast_to(ramp[None, :3, None], (4, 3, 9))
    moments = np.broadcast_to(ramp[None, None, :9], (4, 3, 9))
    assert variance_shares(entrants, rng=rng()).entrant == 1
    assert variance_shares(seeds, rng=rng()).seed == 1
    assert variance_shares(moments, rng=rng()).snapshot == 1


def test_entrants_that_differ_are_told_from_the_null_and_alike_ones_seldom() -> None:
    noise = rng(5).normal(size=(200, *DESIGN))
    apart = noise[0] + np.arange(4)[:, None, None]
    assert variance_shares(apart, rng=rng()).p < 0.001
    alike = [variance_shares(one, rng=rng(6), draws=199).p <= 0.05 for one in noise]
    assert abs(np.mean(alike) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_a_share_that_no_draw_reaches_has_the_p_value_of_one_in_all_values() -> None:
    apart = rng(5).normal(size=DESIGN) + 100 * np.arange(4)[:, None, None]
    shares = variance_shares(apart, rng=rng(), draws=9)
    assert (shares.p, shares.p_exchanged) == (1 / 10, 1 / 10)


def test_reruns_of_the_same_data_do_not_pass_for_looks_of_their_own() -> None:
    """All seeds alike: the first null claims too often that entrants differ, the second not."""
    looks = np.repeat(rng(7).normal(size=(200, 4, 1, 9)), 3, axis=2)
    ratios = [variance_shares(one, rng=rng(8), draws=199) for one in looks]
    claimed, exchanged = (
        np.mean([getattr(one, name) <= 0.05 for one in ratios]) for name in ("p", "p_exchanged")
    )
    assert claimed > 0.2
    assert abs(exchanged - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_scores_without_variance_or_without_two_of_each_are_refused() -> None:
    with pytest.raises(DataError, match="All scores are 1"):
        variance_shares(np.ones(DESIGN), rng=rng())
    with pytest.raises(DataError, match="4 x 1 x 9"):
        variance_shares(rng().normal(size=(4, 1, 9)), rng=rng())
