"""What a licence and its watch promise, over many planted worlds."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from judge.studies.licence import ERROR, Grade, graded, labelled
from judge.studies.watch import ALARMS
from tests.judge.studies.licensed import MODELS, World, revoked_at

YEARS, DRIFTS, LICENCES = 600, 500, 600
A_YEAR = 3000
PROBABILITIES, VERDICTS = World(), World(right=(0.8,))


def beyond(rate: float, runs: int) -> float:
    """A rate, and what chance adds to it: three Monte Carlo errors."""
    return rate + 3 * float(np.sqrt(rate * (1 - rate) / runs))


Record = Callable[[str, object], None]


def revoked(
    record: Record, world: World, runs: int, n_votes: int, fall: float, n_labels: int = 2000
) -> float:
    """Share of licences that are revoked."""
    at = [
        revoked_at(
            world, np.random.default_rng(seed), n_labels=n_labels, n_votes=n_votes, fall=fall
        )
        for seed in range(runs)
    ]
    seen = [votes for votes in at if votes is not None]
    row: dict[str, object] = {"agreement": world.right, "taste": world.taste}
    row |= {"an item": world.per_item, "labels": n_labels, "fall": fall, "votes": n_votes}
    row |= {"revoked": f"{len(seen) / runs:.3f}", "median": float(np.median(seen) if seen else 0)}
    record("Licences that are revoked", row)
    return len(seen) / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        PROBABILITIES, replace(PROBABILITIES, taste=0.1),
        replace(PROBABILITIES, likes=0.1, per_item=3, tie_rate=0.15),
        VERDICTS, World(right=(0.65,)), World(right=(0.7, 0.85, 0.97)),
    ],
    ids=["probabilities", "tastes", "items", "verdicts", "poor", "sure"],
)  # fmt: skip
def test_an_unchanged_judge_loses_its_licence_in_at_most_one_year_in_twenty(
    world: World, record_property: Record
) -> None:
    assert revoked(record_property, world, YEARS, A_YEAR, 0.0) <= beyond(ALARMS, YEARS)


@pytest.mark.slow
def test_few_labels_do_not_make_false_alarms(record_property: Record) -> None:
    assert revoked(record_property, PROBABILITIES, YEARS, A_YEAR, 0.0, n_labels=400) <= beyond(
        ALARMS, YEARS
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "n_labels", "least"),
    [
        (PROBABILITIES, 2000, 0.9), (VERDICTS, 2000, 0.9),
        (replace(PROBABILITIES, taste=0.1), 2000, 0.8), (World(right=(0.65,)), 2000, 0.8),
        (PROBABILITIES, 400, 0.75),
    ],
    ids=["probabilities", "verdicts", "tastes", "poor", "few labels"],
)  # fmt: skip
def test_a_fall_of_ten_points_is_seen_within_three_hundred_votes(
    world: World, n_labels: int, least: float, record_property: Record
) -> None:
    assert revoked(record_property, world, DRIFTS, 300, 0.1, n_labels) >= least


def grades(world: World, margin: float, runs: int, n: int = 3000) -> list[dict[str, Grade]]:
    """The grade of each model, licence by licence."""
    licences = []
    for seed in range(runs):
        data = world.draw(np.random.default_rng(seed), n).data()
        rows = labelled(data, data.judges[0], "probabilities")
        models = graded(data, data.judges[0], rows, margin, known=True)
        licences.append({model.name: model.grade for model in models if model.votes})
    return licences


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        World(n_models=6, favoured=3, favour=0.25),
        World(n_models=6, favoured=3, favour=0.25, taste=0.1, per_voter=60),
        World(n_models=6, favoured=3, favour=0.25, per_item=3, likes=0.1),
    ],
    ids=["usual", "few people", "items"],
)
def test_no_model_beyond_the_margin_passes_in_more_than_one_licence_in_twenty(
    world: World, record_property: Record
) -> None:
    licences = grades(world, world.error, LICENCES)
    assert world.error == pytest.approx(7.5)
    for grade in ("PASS", "FAIL"):  # at the margin, both are wrong
        wrong = float(np.mean([grade in models.values() for models in licences]))
        row: dict[str, object] = {"taste": world.taste, "a voter": world.per_voter}
        row |= {"an item": world.per_item, "grade": grade, "of some model": f"{wrong:.3f}"}
        record_property("Six models whose errors are the margin", row)
        assert wrong <= beyond(ERROR, LICENCES)


@pytest.mark.slow
def test_a_judge_that_is_right_for_some_models_is_licensed_for_these_alone(
    record_property: Record,
) -> None:
    wanted = dict.fromkeys(MODELS[1:5], "PASS") | {"basalt": "FAIL"}
    licences = grades(World(favoured=1, favour=0.4), 12.0, 200)
    passed = float(np.mean([models["basalt"] == "PASS" for models in licences]))
    whole = float(np.mean([models == wanted for models in licences]))
    record_property("One model is favoured", {"it passes": passed, "the others do": whole})
    assert passed == 0
    assert whole >= 0.9
