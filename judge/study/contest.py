"""Two judges' boards against the same people's."""

from dataclasses import dataclass

import numpy as np

from judge.study.boards import around, common_models, correlated, moved_boards
from judge.study.items import Estimate
from judge.study.preferences import Preferences


@dataclass(frozen=True, slots=True)
class Contest:
    """By how much one judge's board goes better with people's than another judge's.

    Attributes
    ----------
    models : tuple of str
        Those on all three boards.
    spearman, kendall, pearson : Estimate
        The first judge's correlation less the second's, as found: with an interval that holds 0
        the two are not told apart. Without an interval where they are the same in every draw.
    """

    models: tuple[str, ...]
    spearman: Estimate
    kendall: Estimate
    pearson: Estimate


def contest(
    people: Preferences,
    first: Preferences,
    second: Preferences,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Contest:
    """Compare two judges' boards with people's, the same prompts drawn for all three.

    Intervals as in `judge.study.boards.compare_boards`.
    """
    names = common_models(people, first, second)
    moved = moved_boards((people, first, second), names, rounds, rng)
    ours, theirs = (correlated(moved, 0, judge, freed=False) for judge in (1, 2))
    gaps = {kind: around(ours[kind] - theirs[kind], len(names), level) for kind in ours}
    return Contest(names, gaps["spearman"], gaps["kendall"], gaps["pearson"])
