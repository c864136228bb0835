"""Whether intervals of costs hold, and what is called dominated or cheapest is so."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rating.value.board import value
from rating.value.figures import Rounds, paired_means
from tests.rating.value.planted import TEN, World

Record = Callable[[str, object], None]

RUNS = 1000
COVERED = {
    "many voters": TEN,
    "thirty voters": replace(TEN, n_voters=30, each=40),
    "voters unlike each other": replace(TEN, n_voters=100, each=8, voter_sd=0.6),
    "fifteen voters": replace(TEN, n_voters=15, each=40, voter_sd=0.4),
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
        drawn = paired_means(figures, "cost", Rounds.of(figures, 400, rng))
        low, high = drawn.interval(0.95)
        hits.append((low <= truth) & (truth <= high))
        ends = np.quantile(drawn.rounds[:, 1:] / drawn.rounds[:, [0]], [0.025, 0.975], axis=0)
        ratio = truth[1:] / truth[0]
        of_ratio.append((ends[0] <= ratio) & (ratio <= ends[1]))
        relative.append(drawn.value / truth)
    covered, covered_ratio = float(np.mean(hits)), float(np.mean(of_ratio))
    bias = float(np.mean(relative) - 1)
    row = {"world": name, "cost": round(covered, 4), "ratio": round(covered_ratio, 4)}
    record_property("Intervals of costs, 95 %", row | {"bias": round(bias, 4)})
    assert 0.92 <= covered <= 0.97
    assert 0.92 <= covered_ratio <= 0.97
    assert abs(bias) < 0.015


@pytest.mark.slow
def test_the_dominated_are_recognised_and_no_other(record_property: Record) -> None:
    recognised, wrongly = [], []
    for seed in range(200):
        board = value(*replace(TEN, each=60).draw(np.random.default_rng(seed)))
        beaten = {row.model for row in board.models if row.cost and row.cost.dominated > 0.95}
        recognised.append(len(beaten & {"m7", "m8", "m9"}) / 3)
        wrongly.append(len(beaten - {"m7", "m8", "m9"}))
    row = {"recognised": float(np.mean(recognised)), "wrongly": sum(wrongly)}
    record_property("Dominated, three of ten", row)
    assert np.mean(recognised) > 0.98
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
    wrong = []
    for seed in range(300):
        named = value(*world.draw(np.random.default_rng(seed))).cheapest
        wrong.append(named is not None and named != "m0")
    record_property("Cheapest near the best", {"wrongly": round(float(np.mean(wrong)), 4)})
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
