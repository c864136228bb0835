import numpy as np
import pytest
from scipy.stats import norm

from rating.decide import boundary, tightest_at

RUNS = 1000


def test_the_boundary_is_the_published_formula() -> None:
    t, rho = 321, tightest_at(200, level=0.9)
    reach = np.sqrt(2 * (t * rho**2 + 1) / (t**2 * rho**2) * np.log(np.sqrt(t * rho**2 + 1) / 0.1))
    assert boundary(np.array([t]), rho, level=0.9) == pytest.approx([reach])


def test_it_is_tightest_about_where_it_was_planned() -> None:
    t = np.array([2000])
    width = [boundary(t, tightest_at(n))[0] for n in (500, 1000, 2000, 4000, 8000)]
    assert np.argmin(width) == 2
    # The price of peeking, at the planned number.
    assert width[2] * np.sqrt(2000) / norm.ppf(0.975) == pytest.approx(1.55, abs=0.01)


@pytest.mark.slow
def test_a_fixed_interval_peeked_at_is_wrong_in_almost_half_of_all_runs() -> None:
    rng = np.random.default_rng(4)
    t = np.arange(50, 20_001, 50)
    fixed, sequence = np.empty(RUNS, dtype=bool), np.empty(RUNS, dtype=bool)
    for run in range(RUNS):
        mean = rng.integers(0, 2, 20_000).cumsum()[t - 1] / t
        off, spread = np.abs(mean - 0.5), np.sqrt(mean * (1 - mean))
        fixed[run] = (off > spread * norm.ppf(0.975) / np.sqrt(t)).any()
        sequence[run] = (off > spread * boundary(t, tightest_at(2000))).any()
    error = np.sqrt(fixed.mean() * (1 - fixed.mean()) / RUNS)
    assert fixed.mean() == pytest.approx(0.449, abs=4 * error)
    assert sequence.mean() <= 0.05
