"""What ratings by factors promise, on simulated votes; docs/evidence.md has the figures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rating import RateOptions
from rating.factors import FactorReport, rate_factors
from tests.systems import LEVELS, World

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
RUNS = 400
NULL = [World(taste=0.0), World(taste=0.6), World(voters=25, votes=30, taste=0.6)]
PLAIN = RateOptions()


def reports(world: World, seed: int) -> list[FactorReport]:
    rng = np.random.default_rng(seed)
    return [rate_factors(world.votes_of(rng), LEVELS, PLAIN) for _ in range(RUNS)]


def error_of(share: float) -> float:
    return float(np.sqrt(share * (1 - share) / RUNS))


@pytest.mark.parametrize("world", NULL, ids=str)
def test_intervals_of_parts_cover_and_the_test_seldom_sees_what_is_not_there(
    world: World, record_property: Record
) -> None:
    truth = rate_factors(world.expected(), LEVELS, RateOptions())
    wanted = {one.level: one.points for rows in truth.factors.values() for one in rows}
    every = reports(world, 1)
    covered = {
        level: np.mean(
            [
                one.lower <= wanted[level] <= one.upper
                for report in every
                for rows in report.factors.values()
                for one in rows
                if one.level == level
            ]
        )
        for level in wanted
    }
    rejected = np.mean([(report.additivity.p or 0.0) < 0.05 for report in every])
    low, high = min(covered.values()), max(covered.values())
    row = (
        f"| {world.voters} × {world.votes} | {world.taste:g} | {low:.3f} to {high:.3f} | "
        f"{rejected:.3f} |"
    )
    record_property(f"factors, {RUNS} runs a row", {"row": row})
    assert row in PAGE
    assert low > 0.95 - 3 * error_of(0.95) - 0.005
    assert high < 0.95 + 3 * error_of(0.95) + 0.01
    assert rejected < 0.05 + 3 * error_of(0.05)


@pytest.mark.parametrize("together", [0.5, 1.0])
def test_the_test_sees_a_model_that_a_scaffold_suits(
    together: float, record_property: Record
) -> None:
    world = World(taste=0.6, together=together, voters=100)
    power = np.mean([(report.additivity.p or 0.0) < 0.05 for report in reports(world, 2)])
    words = f"{power:.2f} at {together:g}"
    record_property(f"additivity, {RUNS} runs a row", {"row": words})
    assert words in PAGE
    assert power > {0.5: 0.15, 1.0: 0.7}[together]


def test_intervals_that_take_votes_as_independent_fail_under_tastes() -> None:
    """The planted error: with two scaffolds that each voter likes or not."""
    world = World(voters=25, votes=60, taste=1.0)
    truth = rate_factors(world.expected(), LEVELS, RateOptions())
    wanted = {one.level: one.points for one in truth.factors["model"]}
    rng, inside = np.random.default_rng(3), []
    for _ in range(RUNS):
        report = rate_factors(world.votes_of(rng), LEVELS, RateOptions(cluster="none"))
        inside += [one.lower <= wanted[one.level] <= one.upper for one in report.factors["model"]]
    assert np.mean(inside) < 0.9
