"""Fits to votes or verdicts, and the part of each prompt in them."""

import numpy as np
import pytest

from judge.scoring.logistic import Rows, fit_logistic
from judge.studies.items import Items
from judge.studies.preferences import POSITION, from_influence, preferences
from rating import Comparisons, fit_bradley_terry
from rating.errors import NotIdentifiedError
from tests.judge.studies.moved import Moved, Mover
from tests.judge.studies.said import items_of, said, swapped
from tests.rating.builders import cr1

MOVED = Moved(people=Mover(position=0.3, length=0.2), n=600, n_prompts=40)


def test_three_wins_to_one_are_a_gap_of_log_3() -> None:
    found = preferences(items_of(4), said([(0, 1), (1, 1), (2, 1), (3, -1)]))
    assert found.theta[0] - found.theta[1] == pytest.approx(np.log(3))
    assert (found.models, found.n, found.slopes) == (("m0", "m1"), 4, {})


def test_another_program_finds_the_same_strengths_and_slopes() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(1))
    found = preferences(items, people, (POSITION, "length"))
    a, b = items.pairs[people.item].T
    strengths = (np.arange(8) == a[:, None]).astype(float) - (np.arange(8) == b[:, None])
    design = np.column_stack(
        [strengths[:, 1:], people.first, items.gaps["length"][people.item]]
    ).astype(float)
    other = fit_logistic(Rows(design, (people.label + 1) / 2, np.ones(people.n))).coefficients
    assert found.theta - found.theta[0] == pytest.approx(np.r_[0, other[:7]], abs=1e-7)
    assert list(found.slopes.values()) == pytest.approx(other[7:].tolist(), abs=1e-7)


def test_the_influences_are_those_behind_the_clustered_covariance() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(1))
    found = preferences(items, people)
    a, b = items.pairs[people.item].T
    data = Comparisons.from_codes(
        items.models,
        a,
        b,
        np.array([1, 2, 0])[people.label + 1],
        prompt=items.prompt[people.item],
    )
    wanted = cr1(fit_bradley_terry(data), data, "prompt")
    n = int((found.influence != 0).any(axis=1).sum())
    ours = n / (n - 1) * found.influence.T @ found.influence
    assert ours == pytest.approx(wanted, abs=1e-9)
    assert found.influence.sum(axis=0) == pytest.approx(np.zeros(8), abs=1e-9)


def test_leaving_a_prompt_out_moves_the_fit_about_as_its_influence_says() -> None:
    items, people, _ = Moved(n=3000, n_prompts=60).draw(np.random.default_rng(2))
    whole = preferences(items, people, (POSITION,))
    without = preferences(items, people.only(items.prompt[people.item] != 7), (POSITION,))
    moved = (
        np.r_[whole.theta, whole.slopes[POSITION]] - np.r_[without.theta, without.slopes[POSITION]]
    )
    assert whole.influence[7] == pytest.approx(moved, rel=0.15, abs=0.003)


def test_turning_all_sides_round_turns_no_strength() -> None:
    items, people, _ = MOVED.draw(np.random.default_rng(3))
    found = preferences(items, people, (POSITION, "length"))
    turned = Items(
        items.models, items.pairs[:, ::-1], items.prompt, {"length": -items.gaps["length"]}
    )
    other = preferences(turned, swapped(people), (POSITION, "length"))
    assert other.theta == pytest.approx(found.theta, abs=1e-9)
    assert other.slopes == pytest.approx(found.slopes, abs=1e-9)
    assert other.influence == pytest.approx(found.influence, abs=1e-9)


def test_a_row_without_a_gap_and_a_battle_with_oneself_are_left_out() -> None:
    pairs = np.array([[0, 1], [0, 1], [0, 0], [0, 1]])
    items = Items(("x", "y"), pairs, np.arange(4), {"length": np.array([1.0, -1.0, 0.5, np.nan])})
    people = said([(0, 1), (0, -1), (1, 1), (1, -1), (2, 1), (3, 1)])
    assert preferences(items, people).n == 5
    assert preferences(items, people, ("length",)).n == 4


def test_what_the_rows_do_not_tell_is_refused_in_the_words_of_ratings() -> None:
    with pytest.raises(NotIdentifiedError, match="no finite value"):
        preferences(items_of(2), said([(0, 1), (1, 1)]))
    with pytest.raises(NotIdentifiedError, match="There are no votes"):
        preferences(items_of(2), said([]))


def test_an_interval_from_influences_is_students() -> None:
    # Three prompts that move the value by 1, -1 and 0.5: (3 / 2) * 2.25, t of 2 df is 4.303.
    found = from_influence(10.0, np.array([1.0, -1.0, 0.5, 0.0]), n=9, level=0.95)
    assert found.upper == pytest.approx(10 + 4.3027 * np.sqrt(1.5 * 2.25), abs=1e-3)
    assert (found.value, found.n) == (10.0, 9)
    assert from_influence(1.0, np.array([0.0, 2.0]), n=3, level=0.9).lower is None
