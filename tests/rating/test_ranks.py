from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, studentized_range, t

from rating import critical_value, fit, infer, rank_ranges
from rating.contrasts import Contrasts
from rating.ranks import joint_half_widths
from tests.simulation import Design

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


@pytest.mark.parametrize(("voters", "prompts"), [(200, 16), (16, 200), (14, 200)])
def test_a_claim_exceeds_the_bar_of_what_is_behind_it(voters: int, prompts: int) -> None:
    """Of 15 effective clusters and of fewer, one pair each varies most by them, prompts, votes."""
    design = Design(n_models=4, n_voters=voters, n_prompts=prompts, busy="even", each=200)
    data, rng = design.draw(np.random.default_rng(1)), np.random.default_rng(2)
    inference = infer(fit(data), data, ("voter", "prompt"), rng=rng)
    own, by_prompt, independent = np.tile(99 * np.eye(3) + 1, 2)
    one, effective = np.ones(6), np.repeat([15, 14.9], 3)
    each = Contrasts(one, 4 * own, 6 * one, own, independent, by_prompt, 9 * one, effective)
    vars(inference)["pairs"] = replace(inference.pairs, each=each)
    first, second = np.triu_indices(4, k=1)
    half = joint_half_widths(inference, rng=rng, level=0.9)[first, second]
    signs = [(kind.signs, kind.matrix) for kind in inference.kinds]
    bars = [of.critical_value(m, (first[:3], second[:3]), level=0.9) for of, m in signs if of]
    few = [2 * t.isf(1 / 120, 6), t.isf(1 / 120, 9), norm.isf(1 / 120)]  # 0.1 in 6 pairs of tails
    among = [max(bars), bars[-1], few[2]]
    if voters < 15:
        among, few[0] = [t.isf(1 / 120, 14), *few[1:]], t.isf(1 / 120, 13.9)
    assert half == pytest.approx(10 * np.r_[among, few])
