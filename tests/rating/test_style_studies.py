"""What style control promises, on simulated boards; docs/evidence.md has the table.

Each promise stands beside a planted error that breaks it.
"""

from collections.abc import Callable

import numpy as np
import pytest

from tests.simulation import DESIGNS, TASTES, at
from tests.styled import errors_off, styles

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

BOARDS = 500
SEED = 1


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("design", DESIGNS)
def test_style_is_unbiased_covered_and_seldom_seen_where_nobody_minds(
    design: str, taste: float, record_property: Record
) -> None:
    result = styles(at(design, taste), BOARDS, SEED)
    row: dict[str, object] = {"design": design, "taste": taste}
    row["bias"] = f"{result.miss[:, 0].mean():+.4f}"
    row["MC errors"] = " ".join(f"{off:+.1f}" for off in errors_off(result.miss))
    row["covered"], row["null"] = str(result.covered), str(result.null_rejected)
    row["independent"] = str(result.independent)
    record_property(f"style, {BOARDS} boards a row", row)
    assert np.abs(errors_off(result.miss)).max() < 3
    assert 0.92 <= result.covered.mean <= 0.975
    assert 0.03 <= result.null_rejected.mean <= 0.075


@pytest.mark.parametrize("design", ["D1", "D2"])
def test_intervals_of_style_that_take_votes_as_independent_fail_under_tastes(design: str) -> None:
    result = styles(at(design, 0.8), BOARDS, SEED).independent
    assert result.mean + 3 * result.error < 0.92


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("design", DESIGNS)
def test_ratings_are_free_of_the_style_only_where_it_is_in_the_fit(
    design: str, taste: float
) -> None:
    result = styles(at(design, taste), BOARDS, SEED)
    assert abs(errors_off(result.rating_miss)) < 3
    assert errors_off(result.rating_miss_ignoring) > 10
