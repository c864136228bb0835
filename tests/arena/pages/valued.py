"""Quality and cost as the page shows them, of a planted world."""

from dataclasses import replace
from functools import cache

import numpy as np

from arena.boards.value import Valued
from rating.value.board import value
from rating.value.utility import Terms
from tests.arena.pages.conftest import NOW
from tests.rating.value.planted import TEN

NAMES = {f"m{i}": name for i, name in enumerate(("Obsidian XL", "Basalt <b>large</b>", "Quartz"))}


@cache
def valued(*, priced: bool = True, labelled: bool = True) -> Valued:
    """Ten models, of which the last has no price; or none has, and none is labelled."""
    world = replace(TEN, each=40)
    if labelled:
        world = replace(world, wrong=(0.2,) * 10, refused=(0.1,) * 10)
    votes, figures = world.draw(np.random.default_rng(0))
    values = dict(figures.values)
    values["seconds"] = (12.0 - figures.pairs) * values["cost"] ** 0.1
    values["cost"] = np.where(figures.pairs == 9, np.nan, values["cost"])
    if not priced:
        del values["cost"]
    board = value(votes, replace(figures, values=values))
    terms = Terms.of(board.draws, np.random.default_rng(0))
    return Valued("default-v1", "abc-1", NOW, NAMES, board, terms, None)


def nothing(reason: str) -> Valued:
    return Valued("default-v1", "abc-1", NOW, {}, None, None, reason)
