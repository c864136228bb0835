import numpy as np
import pytest

from rating import DataError, field_rates, fit, infer, win_rates
from tests.rating.builders import random_votes, votes
from tests.simulation import Design


def test_two_models_have_the_interval_of_their_pair() -> None:
    data = votes([("x", "y", "model_a")] * 30 + [("x", "y", "model_b")] * 10)
    fitted = fit(data)
    off = infer(fitted, data, ())
    field, pair = field_rates(off, level=0.5), win_rates(off, level=0.5)
    assert field.rate[0] == pytest.approx(0.75)
    assert (field.low[0], field.high[0]) == pytest.approx((pair.low[0, 1], pair.high[0, 1]))


def test_a_rate_is_the_mean_over_the_others_and_all_average_one_half() -> None:
    data = Design().draw(np.random.default_rng(3))
    fitted = fit(data)
    off = infer(fitted, data, ("voter",))
    field, pair = field_rates(off), win_rates(off)
    assert field.rate == pytest.approx(np.nanmean(pair.expected, axis=1))
    assert field.rate.mean() == pytest.approx(0.5)
    assert (field.low < field.rate).all()
    assert (field.rate < field.high).all()


def test_the_interval_follows_the_gradient_of_the_rate(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng))
    fitted = fit(data)
    off = infer(fitted, data, ("voter",))
    step, theta = 1e-6, fitted.theta
    others = fitted.n_models - 1

    def rate_of(strengths: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float((1 / (1 + np.exp(strengths - strengths[0]))).sum() - 0.5) / others

    slope = [
        (rate_of(theta + step * unit) - rate_of(theta - step * unit)) / (2 * step)
        for unit in np.eye(fitted.n_models)
    ]
    error = np.sqrt(slope @ off.kinds[0].matrix @ np.array(slope))
    field = field_rates(off)
    odds = [np.log(x / (1 - x)) for x in (field.low[0], field.rate[0], field.high[0])]
    wide = error / (field.rate[0] * (1 - field.rate[0]))
    assert odds[2] - odds[1] == pytest.approx(odds[1] - odds[0])
    assert 1.96 < (odds[2] - odds[1]) / wide < 2.4  # Student's t of the effective voters


def test_another_model_of_ties_is_refused(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng))
    fitted = fit(data, ties="davidson")
    with pytest.raises(DataError, match="nu"):
        field_rates(infer(fitted, data, ("voter",)))


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_outside_zero_to_one_is_refused(level: float, rng: np.random.Generator) -> None:
    data = votes(random_votes(rng))
    fitted = fit(data)
    with pytest.raises(DataError, match="level"):
        field_rates(infer(fitted, data, ("voter",)), level=level)
