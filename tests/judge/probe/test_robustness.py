"""Superficial copies against copies whose meaning changed, and copies in doses."""

import numpy as np
import pytest

from judge.probe.robustness import CONDITIONS, STEPS, UNRELATED, Robustness, Sensitivity
from judge.probe.similarity import (
    BAG_OF_WORDS,
    JACCARD,
    LENGTH_COUNTER,
    LEVENSHTEIN,
    NEGATION,
    RANDOM_CASE,
    TF_IDF,
    WIDE_SPACING,
    WORD_SHUFFLE,
    Kind,
    Measure,
)
from rating.errors import DataError
from tests.judge.probe.texts import fixed_rng as rng
from tests.judge.probe.texts import rounds_at_nothing, texts


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
    figures = asked(BAG_OF_WORDS)
    assert figures["net sensitivity", "word shuffle"] == 0
    assert figures["net sensitivity", "sentence shuffle"] == 0
    assert figures["net sensitivity", "number changed"] == 1
    assert figures["unchanged", "random case"] == figures["unchanged", "wide spacing"] == 1


def test_a_length_counter_is_exposed() -> None:
    figures = asked(LENGTH_COUNTER)
    blind = ("word shuffle", "sentence shuffle", "number changed")
    assert [figures["net sensitivity", name] for name in blind] == [0, 0, 0]
    assert figures["net sensitivity", "negation"] == -1  # it prefers the longer text
    assert figures["net sensitivity", "conclusion dropped"] == 1


def test_what_compares_letters_notices_case_and_order() -> None:
    figures = asked(LEVENSHTEIN)
    assert figures["unchanged", "random case"] == 0
    assert figures["net sensitivity", "word shuffle"] == 1


def test_lots_are_at_nothing() -> None:
    rounds = rounds_at_nothing(small(60), 40)
    assert rounds >= 33  # of 95 %: fewer less than once in 1,000


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


def dosed(n: int = 40) -> Sensitivity:
    return Sensitivity.plan(texts(n), "made up", rng=rng())


def test_an_oracle_is_at_one_whatever_its_scale() -> None:
    plan = dosed()
    for scale, shift in ((1, 0), (3, -7), (0.01, 100)):
        axis = plan.read(scale * plan.truth() + shift, rng=rng())
        assert axis.estimate.value == pytest.approx(1)
        assert axis.part("net sensitivity", "removal").value == 1


def test_the_value_is_one_less_the_mean_error_of_what_unrelated_texts_leave() -> None:
    plan = dosed()
    scores = plan.truth()
    n = len(plan.texts)
    scores[n : n + n * UNRELATED] = 0.2
    target = np.array([one.target for one in plan.copies])
    level = np.clip((target - 0.2) / 0.8, 0, 1)
    errors = [
        np.mean([abs(level - target)[i] for i in _copies(plan, condition)])
        for condition in CONDITIONS
    ]
    assert plan.read(scores, rng=rng()).estimate.value == pytest.approx(1 - np.mean(errors))


def _copies(plan: Sensitivity, condition: tuple[bool, float, str]) -> list[int]:
    return [
        i for i, one in enumerate(plan.copies) if (one.removal, one.dose, one.place) == condition
    ]


def test_what_never_changes_is_at_nothing() -> None:
    plan = dosed()
    estimate = plan.read(np.ones_like(plan.truth()), rng=rng()).estimate
    assert (estimate.value, estimate.lower, estimate.upper) == (0, 0, 0)


def test_what_takes_unrelated_texts_for_the_same_is_negative() -> None:
    plan = dosed()
    value = plan.read(1 - plan.truth(), rng=rng()).estimate.value
    assert value == pytest.approx(-1)


def test_lots_fall_with_no_dose() -> None:
    rounds = rounds_at_nothing(dosed(60), 40)
    assert rounds >= 33  # of 95 %: fewer less than once in 1,000


def test_a_length_counter_falls_with_what_is_taken_and_rises_with_what_is_put_in() -> None:
    axis = (plan := dosed(80)).read(plan.ask(LENGTH_COUNTER), rng=rng())
    assert axis.part("net sensitivity", "removal").value == 1
    assert axis.part("net sensitivity", "insertion").value == -1
    assert axis.estimate.upper is not None
    assert axis.estimate.upper < 0.5


def test_shares_of_words_follow_the_dose_and_the_cosine_does_not() -> None:
    plan = dosed()
    bag, jaccard, cosine = (
        plan.read(plan.ask(one), rng=rng()).estimate for one in (BAG_OF_WORDS, JACCARD, TF_IDF)
    )
    assert bag.value is not None
    assert jaccard.lower is not None
    assert cosine.upper is not None
    assert bag.value > 0.9
    assert jaccard.lower > cosine.upper


def test_steps_are_between_neighbouring_doses_of_one_place() -> None:
    for first, second in STEPS:
        assert CONDITIONS[first][0] == CONDITIONS[second][0]
        assert CONDITIONS[first][2] == CONDITIONS[second][2]
        assert CONDITIONS[first][1] < CONDITIONS[second][1]
    assert len(STEPS) == 3 * 3 + 3 * 2


def test_no_text_is_unrelated_to_itself() -> None:
    plan = dosed(3)
    assert all(i not in row for i, row in enumerate(plan.unrelated.tolist()))


def test_short_and_repeated_texts_make_no_probe() -> None:
    with pytest.raises(DataError, match="1 of 3 texts have 20 words"):
        Sensitivity.plan(["too short", *(2 * texts(1))], "x", rng=rng())
