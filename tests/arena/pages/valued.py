"""Quality and cost as the page shows them, of a planted world."""

from dataclasses import replace
from functools import cache

import numpy as np

from arena.domain.board_view import Valued
from judge.ifeval import Share
from judge.labels.safety import ALL, COLUMNS, Rate, SafetyTable
from judge.studies.estimates import Estimate
from rating.outcome import of_sides
from rating.value import value
from tests.arena.pages.conftest import NOW
from tests.rating.value.planted import TEN

SAFETY = SafetyTable(
    {
        model: {
            column: Rate(model, ALL, *column, Share(rate, rate - 0.04, rate + 0.05, n, 0), ends)
            for column, rate in zip(COLUMNS, rates, strict=False)
        }
        for model, n, rates, ends in (
            ("m1", 400, (0.81, 0.12, 0.19, 0.42), Estimate(0.85, 0.78, 0.93, 400)),
            ("m0", 60, (0.62, 0.06, 0.38), None),
            ("<i>m77</i>", 400, (0.3, 0.05, 0.7), None),
        )
    }
)
NAMES = {f"m{i}": name for i, name in enumerate(("Obsidian XL", "Basalt <b>large</b>", "Quartz"))}


@cache
def valued(*, priced: bool = True, safety: SafetyTable | None = None) -> Valued:
    """Ten models, of which the last has no price; or none has."""
    world = replace(TEN, each=40)
    votes, figures = world.draw(np.random.default_rng(0))
    cost = figures.of_answers("cost")
    measured = {"seconds": (12.0 - figures.pairs) * cost**0.1}
    if priced:
        measured["cost"] = np.where(figures.pairs == 9, np.nan, cost)
    numbers = {
        column: values
        for name, both in measured.items()
        for column, values in zip(of_sides(name), both.T, strict=True)
    }
    board = value(votes, replace(figures, numbers=numbers))
    return Valued("default-v1", "abc-1", NOW, NAMES, board, None, safety)


def nothing(reason: str) -> Valued:
    return Valued("default-v1", "abc-1", NOW, {}, None, reason)
