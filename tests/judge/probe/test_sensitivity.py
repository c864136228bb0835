"""Scores against how much two texts have in common."""

import numpy as np
import pytest

from judge.probe.evaluators import BAG_OF_WORDS, LENGTH_COUNTER
from judge.probe.sensitivity import CONDITIONS, STEPS, UNRELATED, Sensitivity
from judge.probe.similarity import JACCARD, TF_IDF
from rating.errors import DataError
from tests.judge.probe.texts import rounds_at_nothing, texts


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def small(n: int = 40) -> Sensitivity:
    return Sensitivity.plan(texts(n), "made up", rng=rng())


def test_an_oracle_is_at_one_whatever_its_scale() -> None:
    plan = small()
    for scale, shift in ((1, 0), (3, -7), (0.01, 100)):
        axis = plan.read(scale * plan.truth() + shift, rng=rng())
        assert axis.estimate.value == pytest.approx(1)
        assert axis.part("net sensitivity", "removal").value == 1


def test_the_value_is_one_less_the_mean_error_of_what_unrelated_texts_leave() -> None:
    plan = small()
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
    plan = small()
    found = plan.read(np.ones_like(plan.truth()), rng=rng()).estimate
    assert (found.value, found.lower, found.upper) == (0, 0, 0)


def test_what_takes_unrelated_texts_for_the_same_is_negative() -> None:
    plan = small()
    value = plan.read(1 - plan.truth(), rng=rng()).estimate.value
    assert value == pytest.approx(-1)


def test_lots_are_at_nothing() -> None:
    assert (
        rounds_at_nothing(small(60), 40) >= 33
    )  # of 95 %: fewer by chance less than once in 1,000


def test_a_length_counter_is_exposed() -> None:
    axis = (plan := small(80)).read(plan.ask(LENGTH_COUNTER), rng=rng())
    assert axis.part("net sensitivity", "removal").value == 1
    assert axis.part("net sensitivity", "insertion").value == -1
    assert axis.estimate.upper is not None
    assert axis.estimate.upper < 0.5


def test_shares_of_words_follow_the_dose_and_the_cosine_does_not() -> None:
    plan = small()
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
    plan = small(3)
    assert all(i not in row for i, row in enumerate(plan.unrelated.tolist()))


def test_short_and_repeated_texts_make_no_probe() -> None:
    with pytest.raises(DataError, match="1 of 3 texts have 20 words"):
        Sensitivity.plan(["too short", *(2 * texts(1))], "x", rng=rng())
