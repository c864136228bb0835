import numpy as np
import pytest

from rating import to_nats, to_points
from tests.rating.builders import golden


def test_a_lead_in_points_is_the_elo_expectation() -> None:
    example = golden("elo_expectation")
    nats = to_nats(1000 + np.array(example["data"]["lead"], dtype=np.float64))
    assert 1 / (1 + np.exp(-nats)) == pytest.approx(example["expected"]["chance"], abs=5e-5)


def test_points_and_nats_are_inverse(rng: np.random.Generator) -> None:
    theta = rng.normal(size=9)
    assert to_nats(to_points(theta)) == pytest.approx(theta, abs=1e-12)
