"""Intervals of newcomers over many planted sets of models."""

from dataclasses import replace

import numpy as np
import pytest

from tests.judge.studies.newcomers import Planted

SETS = 300
ALLOWED = 3 * np.sqrt(0.95 * 0.05 / SETS)
"""What chance adds to the bounds of 93 and 97 % that coverage has to keep."""


def covered(planted: Planted, sets: int = SETS) -> float:
    inside = []
    for seed in range(sets):
        rated, truth = planted.rated(1000 + seed)
        inside.append(rated.lower <= truth <= rated.upper)
    return float(np.mean(inside))


@pytest.mark.slow
@pytest.mark.parametrize("signal", [0.0, 1.0, 2.5])
def test_the_interval_of_a_newcomer_holds_its_rating_with_twenty_known_models(
    signal: float,
) -> None:
    assert 0.93 - ALLOWED / 3 <= covered(Planted(signal=signal)) <= 0.97 + ALLOWED / 3


@pytest.mark.slow
def test_the_interval_of_a_newcomer_holds_where_few_models_are_known() -> None:
    assert covered(Planted(n_known=6)) >= 0.95 - ALLOWED


@pytest.mark.slow
def test_the_interval_of_a_newcomer_holds_where_people_have_voted_little() -> None:
    assert covered(Planted(signal=2.5, n_votes=1000)) >= 0.95 - ALLOWED


@pytest.mark.slow
def test_the_interval_holds_for_a_newcomer_of_a_family_that_the_judge_favours() -> None:
    planted = Planted(n_known=24, own=4, favour=0.8)
    assert covered(planted) >= 0.95 - ALLOWED
    unaware = replace(planted, own=0, favour=0.0)
    assert covered(unaware, 100) >= 0.9
