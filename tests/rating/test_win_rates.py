from dataclasses import replace

import numpy as np
import pytest

from rating import (
    Comparisons,
    DataError,
    Inference,
    Ties,
    fit,
    goodness_of_fit,
    hessian_covariance,
    infer,
    win_rates,
)
from rating.ranks import _expected
from tests.rating.builders import golden, wins
from tests.rating.drawn import draw


def by_curvature(data: Comparisons) -> Inference:
    fitted = fit(data)
    return Inference(fitted, data, hessian_covariance(fitted), (), None)


ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]


@pytest.mark.parametrize("ties", ALL)
def test_rates_of_a_pair_add_up_to_one_and_lie_in_their_intervals(
    rng: np.random.Generator, ties: Ties
) -> None:
    rows = draw(rng, ties, order=0.3)
    data = rows.comparisons(voter=rows.voter)
    fitted = fit(data, ties=ties, order_effect=True)
    inference = infer(fitted, data, ("voter",))
    rates = win_rates(inference)
    off = ~np.eye(5, dtype=bool)
    assert (rates.expected + rates.expected.T)[off] == pytest.approx(np.ones(20))
    assert (rates.low + rates.high.T)[off] == pytest.approx(np.ones(20))
    assert (rates.low < rates.expected)[off].all()
    assert (rates.observed_low < rates.observed)[off].all()
    assert np.isnan(np.diag(rates.expected)).all()
    assert rates.expected[off] == pytest.approx(rates.observed[off], abs=0.15)
    wide = win_rates(inference, level=0.99)
    assert (wide.low < rates.low)[off].all()


@pytest.mark.parametrize("ties", ALL)
def test_the_variance_of_a_rate_is_the_delta_method_by_finite_differences(
    rng: np.random.Generator, ties: Ties
) -> None:
    data = draw(rng, ties, order=0.3).comparisons()
    fitted = fit(data, ties=ties, order_effect=True)
    inference = infer(fitted, data, ())
    pair = np.array([0]), np.array([3])
    variance = inference.of(_expected(fitted, *pair)[1]).variance

    def rate(x: np.ndarray) -> float:
        raw = [replace(p, raw=float(v)) for p, v in zip(fitted.parameters, x[5:], strict=True)]
        moved = replace(fitted, theta=x[:5], parameters=tuple(raw))
        return float(_expected(moved, *pair)[0][0])

    h = 1e-5 * np.eye(len(fitted.x))
    slope = np.array([(rate(fitted.x + s) - rate(fitted.x - s)) / 2e-5 for s in h])
    assert variance[0] == pytest.approx(slope @ inference.matrix @ slope, rel=1e-5)


def test_the_observed_share_has_wilsons_interval() -> None:
    data = wins([("x", "y", 8), ("y", "x", 2)])
    rates = win_rates(by_curvature(data))
    assert rates.n[0, 1] == 10
    assert (rates.observed[0, 1], rates.expected[0, 1]) == pytest.approx((0.8, 0.8))
    # Wilson 1927 for 8 of 10
    assert rates.observed_low[0, 1] == pytest.approx(0.490162, abs=1e-6)
    assert rates.observed_high[0, 1] == pytest.approx(0.943318, abs=1e-6)
    # ten votes of weight 2 are ten votes
    twice = win_rates(
        by_curvature(replace(data, weight=2 * data.weight, weight_sq=4 * data.weight_sq))
    )
    assert twice.observed_low[0, 1] == pytest.approx(rates.observed_low[0, 1])
    # log 4 with variance 1/8 + 1/2, back from log-odds
    reach = 1.959964 * np.sqrt(1 / 8 + 1 / 2)
    assert rates.low[0, 1] == pytest.approx(1 / (1 + np.exp(reach - np.log(4))), abs=1e-6)


def test_a_pair_that_never_met_is_expected_and_not_observed() -> None:
    data = wins([("x", "y", 3), ("y", "x", 1), ("y", "z", 3), ("z", "y", 1)])
    rates = win_rates(by_curvature(data))
    assert rates.expected[0, 2] == pytest.approx(9 / 10)  # odds of 3 times 3
    assert np.isnan(rates.observed[0, 2])
    assert np.isnan(rates.observed_low[0, 2])


def test_a_level_outside_zero_to_one_raises() -> None:
    data = wins([("x", "y", 3), ("y", "x", 1)])
    with pytest.raises(DataError, match="level"):
        win_rates(by_curvature(data), level=2)


# Goodness of fit


def test_the_citations_leave_the_published_deviance() -> None:
    example = golden("bradley_terry_citations")
    data = wins(example["data"]["wins"])
    goodness = goodness_of_fit(fit(data), data)
    assert goodness.g2_total == pytest.approx(example["expected"]["deviance"], abs=5e-4)
    assert goodness.df == 6 - 3
    assert goodness.pearson_total == pytest.approx(goodness.g2_total, rel=0.1)


@pytest.mark.parametrize("ties", ALL)
def test_a_true_model_leaves_about_its_degrees_of_freedom(
    rng: np.random.Generator, ties: Ties
) -> None:
    rows = draw(rng, ties, n=40_000, theta=np.linspace(-0.7, 0.7, 14), order=0.3)
    data = rows.comparisons()
    goodness = goodness_of_fit(fit(data, ties=ties, order_effect=True), data)
    per_pair = {"half": 1, "davidson": 2, "rao-kupper": 2, "grounded": 3}[ties]
    free = 13 + 1 + (ties != "half") + (ties == "grounded")
    assert goodness.df == 91 * per_pair - free
    for total in (goodness.pearson_total, goodness.g2_total):
        assert abs(total - goodness.df) < 4.5 * np.sqrt(2 * goodness.df)
    assert goodness.residual.std() == pytest.approx(1, abs=0.3)


def test_a_ring_of_upsets_is_seen(rng: np.random.Generator) -> None:
    data = wins(
        [
            ("x", "y", 60), ("y", "x", 20), ("y", "z", 60), ("z", "y", 20), ("z", "x", 60),
            ("x", "z", 20),
        ]
    )  # fmt: skip
    goodness = goodness_of_fit(fit(data), data)
    assert goodness.df == 1
    # every strength is zero: three times (60 - 40)^2 / 40 + (20 - 40)^2 / 40
    assert goodness.pearson_total == pytest.approx(60)
    # one degree of freedom for three pairs: each residual is all that the fit leaves
    assert goodness.residual == pytest.approx(np.sqrt(60) * np.array([1, -1, 1]))
