"""Whether intervals of costs hold, and what is called dominated or cheapest is so, simulated."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating.leave_out import quantile
from rating.value import paired_means, value
from tests.rating.value.planted import TEN, World
from tests.simulation import monte_carlo_error, runs

Record = Callable[[str, object], None]

RUNS = runs(400)
EQUAL = World(
    (1000.0,) * 4, (0.02, 0.01, 0.005, 0.002), each=15, n_prompts=60, suits_sd=0.5, likes_sd=0.8
)
COVERED = {
    "many voters": TEN,
    "thirty voters": replace(TEN, n_voters=30, each=40),
    "voters unlike each other": replace(TEN, n_voters=100, each=8, voter_sd=0.6),
    "fifteen voters": replace(TEN, n_voters=15, each=40, voter_sd=0.4),
    "sixty shared prompts": EQUAL,
    "twenty shared prompts": replace(EQUAL, n_prompts=20),
    "own prompts": replace(EQUAL, n_prompts=None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_intervals_of_costs_and_of_their_ratios_cover(name: str, record_property: Record) -> None:
    world = COVERED[name]
    truth = np.array(world.cost)
    hits, of_ratio, relative = [], [], []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        _, figures = world.draw(rng)
        taken = paired_means(figures, "cost")
        low, high = taken.interval(0.95)
        hits.append((low <= truth) & (truth <= high))
        c, t = taken.covariance, quantile(0.95, float(taken.df.min()))
        half = t * np.sqrt(c[0, 0] + np.diag(c)[1:] - 2 * c[0, 1:])
        gap = taken.logs[1:] - taken.logs[0] - np.log(truth[1:] / truth[0])
        of_ratio.append(np.abs(gap) <= half)
        relative.append(np.exp(taken.logs) / truth)
    covered, covered_ratio = float(np.mean(hits)), float(np.mean(of_ratio))
    bias = float(np.mean(relative) - 1)
    row = {"world": name, "cost": round(covered, 4), "ratio": round(covered_ratio, 4)}
    record_property("Intervals of costs, 95 %", row | {"bias": round(bias, 4)})
    assert 0.9 <= covered <= 0.97
    assert abs(covered_ratio - 0.95) <= 0.02 + 2 * monte_carlo_error(0.95, RUNS)
    assert abs(bias) < (0.015 if world.n_prompts is None else 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 6, 12])
def test_hardly_ever_is_one_of_equal_models_dominated(k: int, record_property: Record) -> None:
    world = replace(EQUAL, points=(1000.0,) * k, cost=(0.005,) * k)
    named, count = [], runs(200)
    for seed in range(count):
        board = value(*world.draw(np.random.default_rng(seed)))
        named.append(any(row.cost is not None and row.cost.dominated for row in board.models))
    record_property("somebody dominated", {"equal models": k, "named": float(np.mean(named))})
    assert np.mean(named) <= 0.001 + 2 * monte_carlo_error(0.001, count)


@pytest.mark.slow
@pytest.mark.parametrize("equal_in", ["quality", "cost"])
def test_models_that_differ_in_one_of_both_are_seldom_dominated(
    equal_in: str, record_property: Record
) -> None:
    points, cost = (1120.0, 1080.0, 1000.0, 940.0), (0.002, 0.004, 0.008, 0.016)
    world = replace(
        EQUAL,
        points=(1000.0,) * 4 if equal_in == "quality" else points,
        cost=(0.005,) * 4 if equal_in == "cost" else cost,
    )
    named, count = [], runs(200)
    for seed in range(count):
        board = value(*world.draw(np.random.default_rng(seed)))
        named.append(any(row.cost is not None and row.cost.dominated for row in board.models))
    record_property("somebody dominated", {"equal in": equal_in, "named": float(np.mean(named))})
    assert np.mean(named) <= 0.031 + 2 * monte_carlo_error(0.031, count)


@pytest.mark.slow
def test_the_dominated_are_recognised_and_no_other(record_property: Record) -> None:
    recognised, wrongly = [], []
    for seed in range(runs(100)):
        board = value(*replace(TEN, each=60).draw(np.random.default_rng(seed)))
        beaten = {row.model for row in board.models if row.cost and row.cost.dominated}
        recognised.append(len(beaten & {"m7", "m8", "m9"}) / 3)
        wrongly.append(len(beaten - {"m7", "m8", "m9"}))
    row = {"recognised": float(np.mean(recognised)), "wrongly": sum(wrongly)}
    record_property("Dominated, three of ten", row)
    assert np.mean(recognised) > 0.82
    assert sum(wrongly) == 0


@pytest.mark.slow
def test_the_cheapest_is_seldom_farther_from_the_best_than_it_says(
    record_property: Record,
) -> None:
    world = World(
        (1100, 1075, 1075, 1075, 1075, 1075, 1075),
        (0.02, 0.006, 0.005, 0.004, 0.003, 0.002, 0.001),
        n_voters=150,
        each=60,
    )
    # Six models five points too far from the best, each of which may look near by luck.
    wrong, count = [], runs(300)
    for seed in range(count):
        named = value(*world.draw(np.random.default_rng(seed))).cheapest
        wrong.append(named is not None and named != "m0")
    record_property("Cheapest near the best", {"wrongly": round(float(np.mean(wrong)), 4)})
    assert np.mean(wrong) <= 0.05 + 3 * monte_carlo_error(0.05, count)
