"""What sending chosen items to people promises, on simulated studies."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from judge.studies.plan import sending
from judge.studies.powered import powered_ratings
from judge.studies.rows import Items, Labels
from tests.judge.studies.simulated import Study, labels_of, ratio
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = 1000
SEED = 1
FIRST, MORE = 600, 600
CROWD = Study(n_models=4, n_prompts=6000, n_voted=6000, n_judged=0, suits=0.0)


def draw(rng: np.random.Generator) -> tuple[Items, Labels, Labels]:
    """Draw what everyone would say, and a judge that is their voice or, where unsure, a coin."""
    items, everyone, judge = CROWD.draw(rng)
    sure = rng.random(items.n) < 0.5
    p_shown = np.where(sure, 0.5 + 0.45 * everyone.label, 0.5 + 0.05 * judge.label)
    return items, everyone, replace(judge, probability=p_shown)


@cache
def bought() -> tuple[dict[str, Share], Share, dict[str, Share]]:
    """Coverage by how votes were bought, the gain of choosing, and biases of the weakest model.

    The gain is that of the printed variances, which coverage says are right.
    """
    rng, truth = np.random.default_rng(SEED), CROWD.truth
    covered, variances, first = defaultdict(list), defaultdict(list), defaultdict(list)
    for _ in range(STUDIES):
        items, everyone, judge = draw(rng)
        people = everyone.only(everyone.item < FIRST)
        plan = sending(items, people, judge, MORE)
        at = np.concatenate([people.item, plan.draw(rng)])
        votes = labels_of(at, everyone.label[at], everyone.rater[at])
        boards = {
            "chosen": powered_ratings(items, votes, judge, probability=plan.overall),
            "as if at random": powered_ratings(items, votes, judge),
            "at random": powered_ratings(
                items, everyone.only(everyone.item < FIRST + MORE), judge
            ),
        }
        for name, one in boards.items():
            inside = (one.ratings.lower <= truth) & (truth <= one.ratings.upper)
            covered[name].append(float(inside.mean()))
            variances[name].append(float(one.ratings.variance.mean()))
            first[name].append(float(one.ratings.theta[0] - truth[0]))
    return (
        {name: Share.of(np.array(values)) for name, values in covered.items()},
        ratio(np.array(variances["at random"]), np.array(variances["chosen"])),
        {name: Share.of(np.array(values)) for name, values in first.items()},
    )


def test_chosen_votes_hold_the_truth_if_their_chances_are_given(record_property: Record) -> None:
    covered, gain, biases = bought()
    for name, share in covered.items():
        row = {"votes": name, "covered": str(share), "bias": str(biases[name])}
        record_property(
            f"600 votes bought after 600, {STUDIES} studies", row | {"gain": str(gain)}
        )
    assert 0.93 <= covered["chosen"].mean <= 0.97
    assert abs(biases["chosen"].mean) < 4 * biases["chosen"].error + 0.01


def test_chosen_votes_taken_for_a_random_subset_mislead() -> None:
    covered, _, biases = bought()
    assert covered["as if at random"].mean + 3 * covered["as if at random"].error < 0.93
    assert abs(biases["as if at random"].mean) > 0.03


def test_choosing_is_worth_more_votes_than_chance() -> None:
    _, gain, _ = bought()
    assert gain.mean - 3 * gain.error > 1.05
