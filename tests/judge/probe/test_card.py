"""Cards: five axes, the same questions and draws for every evaluator, and no average."""

import json

import pytest

from judge.probe.axes import AxisName
from judge.probe.card import Card, Plan, card_of, oracle_card
from judge.probe.evaluators import BAG_OF_WORDS, LENGTH_COUNTER, random_measure
from judge.probe.perturb import VERSION
from judge.probe.similarity import CLASSICAL, TF_IDF, Measure
from tests.judge.probe.texts import plans


@pytest.fixture(scope="module")
def planned() -> list[Plan]:
    return plans()


@pytest.mark.parametrize("measure", CLASSICAL, ids=lambda m: m.name)
def test_every_classical_measure_has_a_value_on_all_five_axes(
    planned: list[Plan], measure: Measure
) -> None:
    card = card_of(measure, planned, seed=1)
    assert [axis.name for axis in card.axes] == list(AxisName)
    for axis in card.axes:
        found = axis.estimate
        assert found.value is not None, axis.name
        assert found.lower is not None, axis.name
        assert found.upper is not None, axis.name
        assert -1 <= found.lower <= found.value + 1e-9 <= found.upper + 2e-9 <= 1 + 1e-6, axis.name


def test_an_oracle_is_near_one_on_every_axis(planned: list[Plan]) -> None:
    for axis in oracle_card(planned, seed=1).axes:
        assert axis.estimate.value == pytest.approx(1), axis.name


def test_planted_evaluators_are_told_from_each_other(planned: list[Plan]) -> None:
    length, bag = (card_of(one, planned, seed=1) for one in (LENGTH_COUNTER, BAG_OF_WORDS))
    for name in ("robustness", "clustering", "retrieval"):
        found = _value(length, AxisName(name))
        assert abs(found) < 0.25, name
    for name in ("sensitivity", "clustering", "retrieval"):
        assert _value(bag, AxisName(name)) > 0.5, name


def _value(card: Card, name: AxisName) -> float:
    axis = card.axis(name)
    assert axis is not None
    assert axis.estimate.value is not None
    return axis.estimate.value


def test_lots_are_near_nothing_on_every_axis(planned: list[Plan]) -> None:
    for axis in card_of(random_measure(5), planned, seed=1).axes:
        assert axis.estimate.value == pytest.approx(0, abs=0.25), axis.name


def test_the_same_seed_gives_the_same_card(planned: list[Plan]) -> None:
    assert card_of(TF_IDF, planned, seed=1) == card_of(TF_IDF, plans(), seed=1)


def test_a_card_is_plain_values_without_an_average(planned: list[Plan]) -> None:
    card = card_of(BAG_OF_WORDS, planned[1:3], seed=1)
    found = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert set(found) == {"evaluator", "definition", "axes", "seed", "perturbations_version"}
    assert [axis["name"] for axis in found["axes"]] == ["robustness", "sensitivity"]
    assert found["perturbations_version"] == VERSION
    assert card.axis(AxisName.RETRIEVAL) is None
