"""Intervals of new models over many simulated sets."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating.errors import NotIdentifiedError
from tests.judge.studies.newcomers import Planted
from tests.simulation import monte_carlo_error, runs

SETS = runs(400)
HARD = Planted(hard=True, by_prompt=0.3, by_voter=0.3)
GRADED = replace(HARD, hard=False)


def near(share: float, wanted: float, sets: int = SETS) -> bool:
    """Whether a share is within two Monte Carlo errors, its own and 0.01 of the wanted one."""
    return bool(abs(share - wanted) <= 2 * np.sqrt(wanted * (1 - wanted) / sets + 0.01**2))


def drawn(planted: Planted, sets: int = SETS) -> tuple[float, float, float]:
    """Return coverage, median width and mean error in points of those that have an interval."""
    rows = []
    for seed in range(1000, 1000 + sets):
        try:
            rated, truth = planted.rated(seed)
        except NotIdentifiedError:
            continue
        if rated.lower is not None and rated.upper is not None:
            held = rated.lower <= truth <= rated.upper
            rows.append((held, rated.upper - rated.lower, rated.rating - truth))
    assert len(rows) >= 0.95 * sets
    (held, _, error), width = np.mean(rows, axis=0).tolist(), np.median([row[1] for row in rows])
    return held, float(width), error


@pytest.mark.slow
@pytest.mark.parametrize("judge", [HARD, GRADED], ids=["hard", "graded"])
@pytest.mark.parametrize(
    ("above", "coverage", "width"),
    [(None, 0.952, 151), (0.0, 0.940, 165), (0.3, 0.936, 180), (1.0, 0.92, 250)],
    ids=["typical", "best", "52 points above", "a nat above"],
)
def test_the_interval_of_a_new_model_holds_however_strong_it_is(
    judge: Planted,
    above: float | None,
    coverage: float,
    width: float,
    record_property: Callable[[str, object], None],
) -> None:
    held, wide, error = drawn(replace(judge, above=above))
    row = {"hard": judge.hard, "above": above, "covered": held, "width": wide, "wanted": coverage}
    record_property(f"a new model among 20, {SETS} sets", row)
    assert near(held, coverage)
    assert abs(error) < 25
    assert 0.5 * width < wide < 1.2 * width


@pytest.mark.slow
@pytest.mark.parametrize("above", [None, 0.0, 0.3], ids=["typical", "best", "above"])
def test_the_interval_of_a_new_model_holds_with_eight_known_ones(above: float | None) -> None:
    held, wide, _ = drawn(replace(HARD, n_known=8, above=above))
    assert near(held, 0.945)
    assert 150 < wide < 300


@pytest.mark.slow
def test_the_interval_of_a_new_model_holds_where_people_have_voted_little() -> None:
    held, _, _ = drawn(replace(HARD, signal=2.5, n_votes=1000))
    assert held >= 0.95 - 2 * monte_carlo_error(0.95, SETS)


@pytest.mark.slow
def test_the_interval_holds_for_a_new_model_of_a_family_that_the_judge_favours() -> None:
    held, _, _ = drawn(replace(HARD, n_known=24, own=4, favour=0.8))
    assert held >= 0.95 - 2 * monte_carlo_error(0.95, SETS)
