"""How often the intervals hold the truth, on simulated votes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from rating import fit_bradley_terry, sandwich_covariance, standings
from tests.rating.simulation import Design

pytestmark = pytest.mark.slow

RUNS = 1000
POINTS = 400 / np.log(10)


def covered_by_standings(design: Design, seed: int) -> NDArray[np.float64]:
    """Share of models whose interval on the board holds the truth, run by run."""
    rng = np.random.default_rng(seed)
    truth = 1000 + POINTS * design.pseudo_true()
    shares = []
    for _ in range(RUNS):
        rows = sorted(standings(design.draw(rng), rng=rng).rows, key=lambda row: row.model)
        held = [row.lower <= t <= row.upper for row, t in zip(rows, truth, strict=True)]
        shares.append(np.mean(held))
    return np.array(shares)


def covered_as_if_independent(design: Design, seed: int) -> NDArray[np.float64]:
    """Share of models whose independent-votes interval holds the truth, run by run."""
    rng = np.random.default_rng(seed)
    truth = design.pseudo_true()
    shares = []
    for _ in range(RUNS):
        data = design.draw(rng)
        fit = fit_bradley_terry(data)
        error = np.sqrt(np.diag(sandwich_covariance(fit, data)))
        shares.append(np.mean(np.abs(fit.theta - truth) < 1.959964 * error))
    return np.array(shares)


def monte_carlo_error(shares: NDArray[np.float64]) -> float:
    return float(shares.std() / np.sqrt(len(shares)))


@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
@pytest.mark.parametrize(("n_voters", "heavy_tail"), [(200, 1.4), (500, 1.0)])
def test_intervals_hold_the_truth_as_often_as_they_say(
    n_voters: int, heavy_tail: float, taste: float
) -> None:
    design = Design(n_voters=n_voters, heavy_tail=heavy_tail, taste=taste)
    shares = covered_by_standings(design, seed=1)
    assert 0.93 <= shares.mean() <= 0.97
    assert monte_carlo_error(shares) < 0.004  # the band is more than four of these wide each way


@pytest.mark.parametrize(("taste", "at_most"), [(0.4, 0.93), (0.8, 0.85)])
def test_intervals_that_take_votes_as_independent_fail_under_heavy_voters(
    taste: float, at_most: float
) -> None:
    shares = covered_as_if_independent(Design(taste=taste), seed=2)
    assert shares.mean() + 3 * monte_carlo_error(shares) < at_most


def test_intervals_without_voters_are_right_when_votes_are_independent() -> None:
    design = Design(taste=0.0, tie_rate=0.3)
    shares = covered_as_if_independent(design, seed=3)
    assert 0.93 <= shares.mean() <= 0.97
