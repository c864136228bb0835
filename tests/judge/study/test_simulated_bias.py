"""What the estimates of bias promise, on simulated studies with planted biases."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from judge.study.bias import Bias, bias
from judge.study.items import Estimate
from rating.scale import POINTS_PER_NAT
from tests.judge.study.moved import Moved, Mover
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = 500
SEED = 1
PLANTED = Moved(
    people=Mover(position=0.1, length=0.3),
    judge=Mover(position=0.5, length=0.6, favour=0.8),
    n=4000,
    tie_rate=0.0,
    shared=0.0,
)
ALIKE = Moved(people=Mover(position=0.2, length=0.4), judge=Mover(position=0.2, length=0.4))
"""People and judge are moved alike, share likings of the prompts, and say ties."""

TRUTH = {"position": 0.4, "length": 0.3, "self": 0.8}
"""Nats that PLANTED adds to the judge beyond people."""


def parts(found: Bias) -> dict[str, Estimate]:
    """The biases, and as a planted error the judge's own slope taken for one."""
    assert found.position.difference is not None
    assert found.length.difference is not None
    assert found.length.judge is not None
    assert found.self_preference is not None
    return {
        "position": found.position.difference,
        "length": found.length.difference,
        "self": found.self_preference.excess,
        "length, people left out": found.length.judge,
    }


@cache
def study(of: Moved) -> dict[str, list[tuple[float, float, float]]]:
    """Value, lower and upper end of each part in nats, of many studies."""
    rng, found = np.random.default_rng(SEED), defaultdict(list)
    for _ in range(STUDIES):
        for name, one in parts(bias(*of.draw(rng), own_model=of.models[-1])).items():
            assert one.value is not None
            assert one.lower is not None
            assert one.upper is not None
            ends = np.array([one.value, one.lower, one.upper]) / POINTS_PER_NAT
            found[name].append((float(ends[0]), float(ends[1]), float(ends[2])))
    return dict(found)


def off_and_covered(of: Moved, name: str, truth: float) -> tuple[Share, Share]:
    value, lower, upper = np.array(study(of)[name]).T
    held = ((lower <= truth) & (truth <= upper)).astype(np.float64)
    return Share.of(value - truth), Share.of(held)


@pytest.mark.parametrize("name", TRUTH)
def test_planted_biases_are_recovered(name: str, record_property: Record) -> None:
    off, covered = off_and_covered(PLANTED, name, TRUTH[name])
    row = {"bias": name, "planted": TRUTH[name], "off by": f"{off.mean:+.4f}±{off.error:.4f}"}
    record_property(f"planted biases, {STUDIES} studies", row | {"covered": str(covered)})
    # Maximum likelihood stretches every coefficient, here by .3 %.
    assert abs(off.mean) < 3 * off.error + 0.005 * TRUTH[name]
    assert 0.92 <= covered.mean <= 0.975


@pytest.mark.parametrize("name", TRUTH)
def test_a_judge_moved_as_people_are_is_seldom_called_biased(
    name: str, record_property: Record
) -> None:
    off, covered = off_and_covered(ALIKE, name, 0.0)
    row = {"bias": name, "planted": 0.0, "off by": f"{off.mean:+.4f}±{off.error:.4f}"}
    record_property(f"planted biases, {STUDIES} studies", row | {"covered": str(covered)})
    assert abs(off.mean) < 3 * off.error
    assert 0.03 <= 1 - covered.mean <= 0.075


@pytest.mark.parametrize("of", [PLANTED, ALIKE], ids=["planted", "alike"])
def test_what_people_like_as_well_is_mistaken_for_bias_if_they_are_left_out(of: Moved) -> None:
    truth = TRUTH["length"] if of is PLANTED else 0.0
    off, covered = off_and_covered(of, "length, people left out", truth)
    assert abs(off.mean) > 0.2
    assert covered.mean + 3 * covered.error < 0.5
