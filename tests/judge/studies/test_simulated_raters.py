"""Intervals of agreement allow for other people: docs/evidence.md has the table."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from judge.studies.estimates import Draws, Estimate, over_people, own_agreement, pair_agreement
from judge.studies.rows import Items, Labels
from tests.judge.studies.labels import holds
from tests.judge.studies.simulated import labels_of

Record = Callable[[str, object], None]

STUDIES = 400
N_ITEMS, VOTES_EACH = 300, 150
JUDGE_RIGHT = 0.8
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


def reliability(z: np.ndarray, sd: float) -> np.ndarray:
    """How often a person says what is right, by how reliable they are."""
    return np.asarray(1 / (1 + np.exp(-1.2 - sd * z)))


def truth(sd: float) -> tuple[float, float]:
    """Agreement of the judge with a person, and of two people, over all people."""
    right = float(reliability(NODES, sd) @ (WEIGHTS / WEIGHTS.sum()))
    judge = right * JUDGE_RIGHT + (1 - right) * (1 - JUDGE_RIGHT)
    return judge, right**2 + (1 - right) ** 2


def drawn(rng: np.random.Generator, people: int, sd: float) -> tuple[Items, Labels, Labels]:
    """Items of one prompt each with a right side; people and a judge that often see it."""
    right = rng.choice([-1, 1], N_ITEMS)
    rater = np.repeat(np.arange(people), VOTES_EACH)
    item = np.concatenate([rng.choice(N_ITEMS, VOTES_EACH, replace=False) for _ in range(people)])
    sees = rng.random(len(item)) < reliability(rng.normal(size=people), sd)[rater]
    votes = labels_of(item, np.where(sees, right[item], -right[item]), rater)
    judged = np.where(rng.random(N_ITEMS) < JUDGE_RIGHT, right, -right)
    verdicts = labels_of(np.arange(N_ITEMS), judged)
    items = Items(("x", "y"), np.tile([0, 1], (N_ITEMS, 1)), np.arange(N_ITEMS))
    return items, votes, verdicts


def figures(items: Items, votes: Labels, verdicts: Labels, seed: int) -> tuple[Estimate, ...]:
    draws = [Draws(np.random.default_rng(seed), 300) for _ in range(3)]
    return (
        pair_agreement(items, verdicts, votes, draws[0], ties=False),
        own_agreement(items, votes, draws[1], ties=False),
        over_people(items, verdicts, votes, draws[2], ties=False),
    )


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.0, 0.8])
@pytest.mark.parametrize("people", [5, 10, 20])
def test_agreement_is_covered_for_other_people_as_well(
    people: int, sd: float, record_property: Record
) -> None:
    rng = np.random.default_rng([people, round(10 * sd)])
    judge, own = truth(sd)
    wanted = (judge, own, judge - own)
    held, alone = np.zeros((STUDIES, 3)), np.zeros((STUDIES, 3))
    for study in range(STUDIES):
        items, votes, verdicts = drawn(rng, people, sd)
        nobody = replace(votes, rater=np.arange(votes.n))
        for table, text in ((held, votes), (alone, nobody)):
            rates = figures(items, text, verdicts, study)
            table[study] = [holds(one, value) for one, value in zip(rates, wanted, strict=True)]
    names = ("judge", "people", "judge less people")
    row = {"n": people, "sd": f"{sd:g}"}
    row |= {name: f"{share:.3f}" for name, share in zip(names, held.mean(axis=0), strict=True)}
    row |= {
        f"{n}, prompts alone": f"{s:.3f}" for n, s in zip(names, alone.mean(axis=0), strict=True)
    }
    record_property(f"agreement, {STUDIES} studies a row", row)
    error = math.sqrt(0.95 * 0.05 / STUDIES)
    assert (held.mean(axis=0) >= 0.93 - 3 * error).all()
    assert (held.mean(axis=0) <= 0.995).all()
    if sd:
        assert alone.mean(axis=0)[:2].max() < 0.9


def test_people_who_differ_widen_the_interval_of_a_judge_and_people_who_do_not_leave_it() -> None:
    rng = np.random.default_rng(1)
    widths = []
    for sd in (0.0, 1.5):
        items, votes, verdicts = drawn(rng, 12, sd)
        nobody = replace(votes, rater=np.arange(votes.n))
        pair = [figures(items, text, verdicts, 1)[0] for text in (votes, nobody)]
        widths.append([(one.upper or 0) - (one.lower or 0) for one in pair])
    assert widths[0][0] < 1.3 * widths[0][1]
    assert widths[1][0] > 1.2 * widths[1][1]
