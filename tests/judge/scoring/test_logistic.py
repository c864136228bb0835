"""Logistic regression on shares, against other programs."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import LogisticRegression

from judge.scoring.logistic import Rows, fit_logistic
from rating.errors import NotIdentifiedError


def drawn(n: int = 120, *, whole: bool = False) -> Rows:
    rng = np.random.default_rng(3)
    design = np.column_stack([np.tanh(rng.normal(size=n)), np.ones(n), rng.normal(size=n)])
    chance = 1 / (1 + np.exp(-design @ [-1.2, 0.3, 0.8]))
    share = rng.binomial(1, chance) * 1.0 if whole else rng.beta(2 * chance, 2 * (1 - chance))
    return Rows(design, share, rng.uniform(0.1, 1, n))


def loss(x: np.ndarray, rows: Rows) -> float:
    return rows.evaluate(x).loss


def slope(x: np.ndarray, rows: Rows) -> np.ndarray:
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
    found = fit_logistic(rows)
    other = minimize(loss, np.zeros(3), args=(rows,), jac=slope, options={"gtol": 1e-9})
    np.testing.assert_allclose(found.coefficients, other.x, atol=1e-6)
    assert check_grad(loss, slope, np.array([0.3, -0.2, 0.1]), rows) < 1e-5
    assert np.abs(rows.evaluate(found.coefficients).gradient).max() <= 1e-9


def test_a_row_twice_is_a_row_of_weight_two() -> None:
    rows = drawn()
    twice = Rows(
        np.vstack([rows.design, rows.design]),
        np.r_[rows.share, rows.share],
        np.r_[rows.weight, rows.weight],
    )
    heavier = Rows(rows.design, rows.share, 2 * rows.weight)
    np.testing.assert_allclose(
        fit_logistic(twice).coefficients, fit_logistic(heavier).coefficients, atol=1e-8
    )


def test_separated_rows_have_no_fit_and_one_that_contradicts_gives_it() -> None:
    x = np.arange(8.0) - 3.5
    design = np.column_stack([x, np.ones(8)])
    share = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(NotIdentifiedError, match="separated"):
        fit_logistic(Rows(design, share, np.ones(8)))
    share[0] = 1.0
    assert np.isfinite(fit_logistic(Rows(design, share, np.ones(8))).coefficients).all()


def test_only_wins_are_separated_by_the_intercept() -> None:
    rows = drawn()
    with pytest.raises(NotIdentifiedError, match="separated"):
        fit_logistic(Rows(rows.design, np.ones(len(rows.share)), rows.weight))


def test_a_single_share_between_leaves_the_rest_separated() -> None:
    x = np.arange(8.0) - 3.5
    design = np.column_stack([x, np.ones(8)])
    share = np.array([0, 0, 0, 0, 0.5, 1, 1, 1])
    with pytest.raises(NotIdentifiedError, match="separated"):
        fit_logistic(Rows(design, share, np.ones(8)))


def test_a_column_that_does_not_vary_is_refused() -> None:
    rows = drawn()
    design = np.column_stack([rows.design, 2 * rows.design[:, 1]])
    with pytest.raises(NotIdentifiedError, match="3 of 4 coefficients"):
        fit_logistic(Rows(design, rows.share, rows.weight))
