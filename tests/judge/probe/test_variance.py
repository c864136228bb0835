"""Variance shares against the published null, an analysis of variance, and known designs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.variance import null_entrant_shares, variance_shares
from rating.errors import DataError

DESIGN = (4, 3, 9)
PUBLISHED_DRAWS = 10_000
"""Draws that the published chances could be of, at the least."""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("share", "known"), [(0.2, 0.0002), (0.1, 0.024), (0.05, 0.200)])
def test_the_null_is_the_published_one(share: float, known: float) -> None:
    null = null_entrant_shares(DESIGN, rng=rng(1), draws=200_000)
    error = math.sqrt(known * (1 - known) * (1 / PUBLISHED_DRAWS + 1 / 200_000))
    assert abs((null > share).mean() - known) < 3 * error


def test_the_null_by_formula_is_that_of_designs_filled_with_noise() -> None:
    noise = rng(2).normal(size=(1000, *DESIGN))
    drawn = np.array([variance_shares(one, rng=rng(), draws=1).entrant for one in noise])
    null = null_entrant_shares(DESIGN, rng=rng(3), draws=200_000)
    for share in (0.02, 0.05, 0.1):
        known = (null > share).mean()
        error = math.sqrt(known * (1 - known) / len(drawn))
        assert abs((drawn > share).mean() - known) < 4 * error


@given(st.integers(0, 2**32))
def test_shares_are_those_written_out_and_sum_to_one(seed: int) -> None:
    scores = rng(seed).normal(size=(3, 2, 4))
    found = variance_shares(scores, rng=rng(), draws=10)

    def variance(values: list[float]) -> float:
        mean = sum(values) / len(values)
        return sum((x - mean) ** 2 for x in values) / (len(values) - 1)

    means = [[run.mean() for run in entrant] for entrant in scores]
    parts = [
        variance([sum(runs) / len(runs) for runs in means]),
        sum(variance(runs) for runs in means) / 3,
        sum(variance(list(run)) for entrant in scores for run in entrant) / 6,
    ]
    shares = [found.entrant, found.seed, found.snapshot]
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


def test_reruns_of_the_same_data_do_not_pass_for_looks_of_their_own() -> None:
    """All seeds alike: the first null claims too often that entrants differ, the second not."""
    looks = np.repeat(rng(7).normal(size=(200, 4, 1, 9)), 3, axis=2)
    found = [variance_shares(one, rng=rng(8), draws=199) for one in looks]
    claimed, kept = (
        np.mean([getattr(one, name) <= 0.05 for one in found]) for name in ("p", "p_exchanged")
    )
    assert claimed > 0.2
    assert abs(kept - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_scores_without_variance_or_without_two_of_each_are_refused() -> None:
    with pytest.raises(DataError, match="All scores are 1"):
        variance_shares(np.ones(DESIGN), rng=rng())
    with pytest.raises(DataError, match="4 x 1 x 9"):
        variance_shares(rng().normal(size=(4, 1, 9)), rng=rng())
