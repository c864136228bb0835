"""What intervals promise, on simulated boards; docs/statistics.md has the tables.

Each promise stands beside a planted error that breaks it.
"""

from collections.abc import Callable

import pytest

from tests.simulation import DESIGNS, TASTES, Share, at, coverage

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

BOARDS = 1000
SEED = 1


def holds(share: Share) -> bool:
    """Within two points of 95 %, and so sure that a right program is four errors inside."""
    return 0.93 <= share.mean <= 0.97 and share.error < 0.005


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_hold_the_truth_as_often_as_they_say(
    design: str, taste: float, record_property: Record
) -> None:
    found = coverage(at(design, taste), BOARDS, SEED)
    row = {"design": design, "taste": taste} | {name: str(x) for name, x in found.items()}
    record_property(f"95 % intervals that hold the truth, {BOARDS} boards a row", row)
    assert holds(found["CR3 t"])


@pytest.mark.parametrize("taste", [0.4, 0.8])
@pytest.mark.parametrize("design", ["D1", "D2"])
def test_intervals_that_take_votes_as_independent_fail_under_tastes(
    design: str, taste: float
) -> None:
    found = coverage(at(design, taste), BOARDS, SEED)["independent"]
    assert not holds(found)
    assert found.mean + 3 * found.error < 0.93


def test_they_are_right_where_votes_are_independent() -> None:
    """Without voters this is all there is; the outcomes that are half wins included."""
    assert holds(coverage(at("D1", 0.0), BOARDS, SEED)["independent"])
    assert holds(coverage(at("D1", 0.0, tie_rate=0.3), BOARDS, SEED)["independent"])
