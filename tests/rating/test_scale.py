import numpy as np
import pytest

from rating import to_nats, to_points


# The Elo expectation at these leads, in points.
@pytest.mark.parametrize(
    ("lead", "chance"), [(0, 0.5), (50, 0.5715), (100, 0.6401), (200, 0.7597), (400, 0.9091)]
)
def test_a_lead_in_points_is_the_elo_expectation(lead: float, chance: float) -> None:
    nats = to_nats(np.array([1000.0 + lead]))[0]
    assert 1 / (1 + np.exp(-nats)) == pytest.approx(chance, abs=5e-5)


def test_strengths_that_sum_to_zero_average_a_thousand_points() -> None:
    assert to_points(np.array([0.7, -0.2, -0.5])).mean() == pytest.approx(1000)


def test_points_and_nats_are_inverse(rng: np.random.Generator) -> None:
    theta = rng.normal(size=9)
    assert to_nats(to_points(theta)) == pytest.approx(theta, abs=1e-12)
