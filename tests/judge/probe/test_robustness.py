"""Superficial copies against copies whose meaning changed."""

import numpy as np
import pytest

from judge.probe.evaluators import BAG_OF_WORDS, LENGTH_COUNTER
from judge.probe.perturb import NEGATION, RANDOM_CASE, WIDE_SPACING, WORD_SHUFFLE, Kind
from judge.probe.robustness import Robustness
from judge.probe.similarity import LEVENSHTEIN, Measure
from tests.judge.probe.texts import rounds_at_nothing, texts


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def small(n: int = 40) -> Robustness:
    return Robustness.plan(texts(n), "made up", rng=rng())


def asked(measure: Measure, plan: Robustness | None = None) -> dict[tuple[str, str], float | None]:
    plan = plan or small()
    axis = plan.read(plan.ask(measure), rng=rng())
    return {(part.group, part.name): part.estimate.value for part in axis.parts}


def test_the_value_by_hand() -> None:
    # One text, one changed copy: one superficial copy scores above it, the other ties with it.
    plan = Robustness(
        ("x", "y"),
        (RANDOM_CASE, WIDE_SPACING, NEGATION),
        (("X", "Y"), ("x ", "y "), ("not x", "not y")),
        "made up",
    )
    scores = np.array([[1.0, 1.0], [0.9, 0.9], [0.5, 0.5], [0.5, 0.5]])
    axis = plan.read(scores, rng=rng())
    assert axis.estimate.value == 0.5
    assert axis.part("net sensitivity", "negation").value == 1
    assert axis.part("unchanged", "random case").value == 0
    assert axis.part("margin", "mean score").value == pytest.approx(0.2)
    assert axis.estimate.n == 4


def test_an_oracle_is_at_one() -> None:
    plan = small()
    axis = plan.read(plan.truth(), rng=rng())
    assert (axis.estimate.value, axis.estimate.lower) == (1, 1)


def test_a_bag_of_words_sees_no_order_at_all() -> None:
    found = asked(BAG_OF_WORDS)
    assert found["net sensitivity", "word shuffle"] == 0
    assert found["net sensitivity", "sentence shuffle"] == 0
    assert found["net sensitivity", "number changed"] == 1
    assert found["unchanged", "random case"] == found["unchanged", "wide spacing"] == 1


def test_a_length_counter_is_exposed() -> None:
    found = asked(LENGTH_COUNTER)
    blind = ("word shuffle", "sentence shuffle", "number changed")
    assert [found["net sensitivity", name] for name in blind] == [0, 0, 0]
    assert found["net sensitivity", "negation"] == -1  # it prefers the longer text
    assert found["net sensitivity", "conclusion dropped"] == 1


def test_what_compares_letters_notices_case_and_order() -> None:
    found = asked(LEVENSHTEIN)
    assert found["unchanged", "random case"] == 0
    assert found["net sensitivity", "word shuffle"] == 1


def test_lots_are_at_nothing() -> None:
    assert (
        rounds_at_nothing(small(60), 40) >= 33
    )  # of 95 %: fewer by chance less than once in 1,000


def test_copies_that_change_nothing_are_not_counted() -> None:
    plan = small()
    axis = plan.read(plan.ask(BAG_OF_WORDS), rng=rng())
    assert axis.part("unchanged", "Markdown stripped").n == 0
    assert axis.part("unchanged", "Markdown stripped").value is None
    assert axis.estimate.n == 40 * 3 * 5  # three superficial ones are left, five change meaning
    one = Robustness.plan(["alone"], "x", rng=rng(), perturbations=[WORD_SHUFFLE, RANDOM_CASE])
    assert one.copies[0] == (None,)
    assert one.read(one.truth(), rng=rng()).estimate.value is None


def test_plans_with_the_same_seed_are_the_same() -> None:
    assert small() == small()
    assert {each.kind for each in small().perturbations} == set(Kind)
