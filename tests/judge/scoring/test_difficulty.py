"""Difficulties estimated from the annotations of several models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from judge.scoring.difficulty import RIDGE, Difficulty, estimate_difficulty
from rating.errors import NotIdentifiedError
from tests.judge.studies.synthetic import Leaderboard, leaderboard


def estimated(board: Leaderboard, *, order: bool = False) -> Difficulty:
    model, instruction, share, length, shown = board.stacked()
    n = len(board.difficulty)
    return estimate_difficulty(
        model, instruction, share, length, shown if order else None, n_instructions=n
    )


def test_a_general_optimiser_finds_the_same_effects() -> None:
    board = leaderboard(np.random.default_rng(1), n=12, order_effect=-1)
    model, instruction, share, length, order = board.stacked()
    k = len(board.models)

    def loss(x: np.ndarray) -> float:
        logit = x[model] + x[k + model] * length + x[2 * k] * order + x[2 * k + 1 + instruction]
        return float((np.logaddexp(0, logit) - share * logit).sum() + RIDGE / 2 * (x @ x))

    other = minimize(loss, np.zeros(2 * k + 1 + 12), method="BFGS", options={"gtol": 1e-7})
    ours = estimated(board, order=True).value
    np.testing.assert_allclose(ours, other.x[2 * k + 1 :], atol=1e-5)


def test_instructions_that_models_do_well_on_come_out_high() -> None:
    board = leaderboard(np.random.default_rng(2), n_models=15)
    assert np.corrcoef(estimated(board).value, board.difficulty)[0, 1] > 0.9


def test_without_an_order_term_difficulties_absorb_the_order() -> None:
    board = leaderboard(np.random.default_rng(3), n_models=10, order_effect=-2)
    first = board.stacked()[4][: len(board.difficulty)] > 0

    def gap(values: np.ndarray) -> float:
        left = values - board.difficulty * np.polyfit(board.difficulty, values, 1)[0]
        return float(left[first].mean() - left[~first].mean())

    assert gap(estimated(board).value) < -1.0
    assert abs(gap(estimated(board, order=True).value)) < 0.4


def test_relabelling_models_and_instructions_changes_no_difficulty() -> None:
    board = leaderboard(np.random.default_rng(4), n=30)
    place = np.random.default_rng(5).permutation(30)
    models = tuple(
        replace(one, instruction=place[one.instruction]) for one in reversed(board.models)
    )
    other = estimated(replace(board, models=models))
    np.testing.assert_allclose(other.value[place], estimated(board).value, atol=1e-8)


def test_an_instruction_nobody_saw_is_at_zero() -> None:
    board = leaderboard(np.random.default_rng(6), n=20)
    model, instruction, share, length, _ = board.stacked()
    found = estimate_difficulty(model, instruction, share, length, n_instructions=21)
    assert found.value[20] == 0
    np.testing.assert_allclose(found.value[:20], estimated(board).value, atol=1e-8)


def test_too_few_models_say_nothing_of_instructions() -> None:
    with pytest.raises(NotIdentifiedError, match="5 models or more, and 4 are here"):
        estimated(leaderboard(np.random.default_rng(7), n_models=4))
