import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from rating import critical_value, rank_ranges

# Ten thousand draws leave about .02 on the quantile; four of those.
DRAW_ERROR = 0.08


def independent(n_models: int, variance: float = 0.04) -> np.ndarray:
    return variance * (np.eye(n_models) - 1 / n_models)


def test_two_models_need_the_ordinary_quantile(rng: np.random.Generator) -> None:
    bar = critical_value(independent(2), rng=rng, level=0.9)
    assert bar == pytest.approx(norm.ppf(0.95), abs=DRAW_ERROR)


@pytest.mark.parametrize("df", [np.inf, 10.0])
@pytest.mark.parametrize("n_models", [3, 8])
def test_equal_errors_need_tukeys_studentized_range(
    rng: np.random.Generator, n_models: int, df: float
) -> None:
    tukey = studentized_range.ppf(0.95, n_models, df) / np.sqrt(2)
    bar = critical_value(independent(n_models), rng=rng, df=df)
    assert bar == pytest.approx(tukey, abs=DRAW_ERROR)


def test_the_critical_value_is_the_next_draw_above_the_level() -> None:
    bar = critical_value(independent(2), rng=np.random.default_rng(5), level=0.95)
    z = np.random.default_rng(5).standard_normal((10_000, 2))
    drawn = np.sort(np.abs(z[:, 0] - z[:, 1]) / np.sqrt(2))
    # The level 0.95 is 9,499.05 of the 9,999 gaps above the smallest draw: rounded up, 9,500.
    assert bar == pytest.approx(drawn[9_500], rel=1e-9)
    assert drawn[9_499] < bar * (1 - 1e-7), "the draw below is another number"


def test_the_scale_of_the_errors_does_not_matter() -> None:
    small = critical_value(independent(5, 1e-6), rng=np.random.default_rng(3))
    large = critical_value(independent(5, 1e6), rng=np.random.default_rng(3))
    assert small == pytest.approx(large)


def test_many_models_fit_in_memory_by_chunks(rng: np.random.Generator) -> None:
    assert 4 < critical_value(independent(120), rng=rng) < 5.5


def test_far_apart_models_have_one_rank_each(rng: np.random.Generator) -> None:
    ranges = rank_ranges(np.array([0.0, 9.0, -9.0]), independent(3), rng=rng)
    assert ranges.low.tolist() == ranges.high.tolist() == [2, 1, 3]
