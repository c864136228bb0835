"""What rank ranges promise, on simulated boards; docs/statistics.md has the tables.

Each promise stands beside a planted error that breaks it.
"""

import math
from collections.abc import Callable

import pytest

from tests.simulation import DESIGNS, TASTES, RankStudy, at, ranks

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

BOARDS = 400
SEED = 1


def allowed(design: str, taste: float) -> float:
    """Share of boards that may claim something false: more where heavy voters have tastes."""
    return 0.08 if taste == 0.8 and design != "D3" else 0.05


def seldom_false(study: RankStudy, at_most: float) -> bool:
    error = math.sqrt(at_most * (1 - at_most) / BOARDS)
    return study.false.mean <= at_most + 3 * error


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("design", DESIGNS)
def test_equal_models_are_seldom_told_apart(
    design: str, taste: float, record_property: Record
) -> None:
    found = ranks(at(design, taste, spread=0.0), BOARDS, SEED)
    row = {"design": design, "taste": taste, "claimed": f"{found['wild'].claimed:.2f}"}
    row |= {rule: str(study.false) for rule, study in found.items()}
    record_property(f"equal models told apart somewhere, {BOARDS} boards a row", row)
    assert seldom_false(found["wild"], allowed(design, taste))
    assert not seldom_false(found["unadjusted"], 0.08)


@pytest.mark.parametrize("taste", TASTES)
def test_ranks_still_say_something(taste: float, record_property: Record) -> None:
    """The multivariate t claims a little more where heavy voters make it too bold."""
    found = ranks(at("D1", taste), BOARDS, SEED)
    row = {"design": "D1", "taste": taste}
    row |= {f"{rule}, apart": str(found[rule].apart) for rule in ("wild", "multivariate t")}
    row |= {f"{rule}, false": str(found[rule].false) for rule in ("wild", "multivariate t")}
    record_property(f"pairs told apart, {BOARDS} boards a row", row)
    assert seldom_false(found["wild"], 0.05)
    assert found["wild"].apart.mean > 0.9 * found["multivariate t"].apart.mean > 0.3
