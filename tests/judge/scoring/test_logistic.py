"""Logistic regression on shares, and difficulties of instructions."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import LogisticRegression

from judge.scoring.logistic import RIDGE, Difficulty, estimate_difficulty, fit_logistic
from rating.errors import NotIdentifiedError
from rating.likelihood import Logistic
from tests.judge.scoring.synthetic import Leaderboard, leaderboard


def drawn(n: int = 120, *, whole: bool = False) -> Logistic:
    rng = np.random.default_rng(3)
    design = np.column_stack([np.tanh(rng.normal(size=n)), np.ones(n), rng.normal(size=n)])
    probability = 1 / (1 + np.exp(-design @ [-1.2, 0.3, 0.8]))
    share = (
        rng.binomial(1, probability) * 1.0
        if whole
        else rng.beta(2 * probability, 2 * (1 - probability))
    )
    return Logistic(design, share, rng.uniform(0.1, 1, n))


def loss(x: np.ndarray, rows: Logistic) -> float:
    return rows.evaluate(x).loss


def slope(x: np.ndarray, rows: Logistic) -> np.ndarray:
    return rows.evaluate(x).gradient


@pytest.mark.parametrize("whole", [False, True])
def test_scikit_learn_without_a_penalty_finds_the_same(whole: bool) -> None:
    rows = drawn(whole=whole)
    doubled = np.vstack([rows.design, rows.design])
    labels = np.repeat([1, 0], len(rows.share))
    weight = np.r_[rows.weight * rows.share, rows.weight * (1 - rows.share)]
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    other.fit(doubled, labels, sample_weight=weight)
    np.testing.assert_allclose(fit_logistic(rows).coefficients, other.coef_[0], atol=1e-6)


def test_scipy_finds_no_smaller_loss_and_the_gradient_is_right() -> None:
    rows = drawn()
    fitted = fit_logistic(rows)
    other = minimize(loss, np.zeros(3), args=(rows,), jac=slope, options={"gtol": 1e-9})
    np.testing.assert_allclose(fitted.coefficients, other.x, atol=1e-6)
    assert check_grad(loss, slope, np.array([0.3, -0.2, 0.1]), rows) < 1e-5
    assert np.abs(rows.evaluate(fitted.coefficients).gradient).max() <= 1e-9


def test_separated_rows_have_no_fit_and_one_that_contradicts_gives_it() -> None:
    x = np.arange(8.0) - 3.5
    design = np.column_stack([x, np.ones(8)])
    share = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(NotIdentifiedError, match="separated"):
        fit_logistic(Logistic(design, share, np.ones(8)))
    share[0] = 1.0
    assert np.isfinite(fit_logistic(Logistic(design, share, np.ones(8))).coefficients).all()


def test_a_single_share_between_leaves_the_rest_separated() -> None:
    x = np.arange(8.0) - 3.5
    design = np.column_stack([x, np.ones(8)])
    share = np.array([0, 0, 0, 0, 0.5, 1, 1, 1])
    with pytest.raises(NotIdentifiedError, match="separated"):
        fit_logistic(Logistic(design, share, np.ones(8)))


def test_a_column_that_does_not_vary_is_refused() -> None:
    rows = drawn()
    design = np.column_stack([rows.design, 2 * rows.design[:, 1]])
    with pytest.raises(NotIdentifiedError, match="separate the effect of 'column 4'"):
        fit_logistic(Logistic(design, rows.share, rows.weight))


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


def test_an_instruction_nobody_saw_is_at_zero() -> None:
    board = leaderboard(np.random.default_rng(6), n=20)
    model, instruction, share, length, _ = board.stacked()
    difficulty = estimate_difficulty(model, instruction, share, length, n_instructions=21)
    assert difficulty.value[20] == 0
    np.testing.assert_allclose(difficulty.value[:20], estimated(board).value, atol=1e-8)


def test_too_few_models_say_nothing_of_instructions() -> None:
    with pytest.raises(NotIdentifiedError, match="5 models or more, and 4 are here"):
        estimated(leaderboard(np.random.default_rng(7), n_models=4))
