"""Variants of one producer: the best of many looks better than it is, and an order helps."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from rating import Comparisons, fit_bradley_terry, hessian_covariance
from rating.errors import DataError
from rating.typing import Floats
from rating.variants import (
    POINTS_PER_NAT,
    gini,
    project_on_order,
    selection_inflation,
    standard_error_apart,
)


@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_the_best_of_equal_variants_looks_better_by_the_mean_maximum(n: int) -> None:
    draws = np.random.default_rng(2).standard_normal((40_000, n)).max(axis=1)
    assert selection_inflation(1, n) == pytest.approx(draws.mean(), abs=4 * draws.std() / 200)
    assert selection_inflation(6.3, n) == pytest.approx(6.3 * selection_inflation(1, n))


def votes(strengths: Floats, n: int, rng: np.random.Generator | None = None) -> Comparisons:
    """Votes on every pair, n each: drawn, or as many as are expected."""
    first, second = np.triu_indices(len(strengths), k=1)
    p = 1 / (1 + np.exp(strengths[second] - strengths[first]))
    wins = rng.binomial(n, p) if rng else n * p
    names = np.array([f"m{i:02}" for i in range(len(strengths))])
    sides = ["model_a"] * len(p) + ["model_b"] * len(p)
    both = np.tile(names[first], 2), np.tile(names[second], 2)
    return Comparisons.from_arrays(*both, sides, weight=np.append(wins, n - wins))


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 5])
def test_the_best_of_ten_clones_is_right_on_average_once_corrected(others: int) -> None:
    rng = np.random.default_rng(7)
    truth = np.concatenate([np.zeros(10), np.linspace(-1, 1, others)])
    raw, corrected, errors = [], [], []
    for _ in range(600):
        data = votes(truth, 100, rng)
        fit = fit_bradley_terry(data)
        family = hessian_covariance(fit)[:10, :10]
        error = standard_error_apart(family)
        best = float(fit.theta[:10].max())
        raw.append(best)
        errors.append(error)
        corrected.append(best - selection_inflation(error, 10))
    noise = np.std(raw) / np.sqrt(len(raw)) * POINTS_PER_NAT
    assert noise < 0.35
    assert abs(np.mean(corrected)) * POINTS_PER_NAT < 1
    assert np.mean(raw) / np.mean(errors) == pytest.approx(1.54, abs=0.1)
    assert 13 < np.mean(raw) * POINTS_PER_NAT < 18


def test_a_true_order_never_takes_a_family_further_from_the_truth() -> None:
    rng = np.random.default_rng(8)
    truth = np.concatenate([np.linspace(0.4, -0.4, 6), np.linspace(-1, 1, 6)])
    order, gains = np.arange(6), []
    for _ in range(500):
        data = votes(truth, 12, rng)
        fit = fit_bradley_terry(data)
        family = hessian_covariance(fit)[:6, :6]
        projected = fit.theta.copy()
        projected[:6] = project_on_order(fit.theta[:6], family, order)
        before, after = (concordance(x[:6], truth[:6]) for x in (fit.theta, projected))
        assert after >= before
        gains.append(concordance(projected, truth) - concordance(fit.theta, truth))
    assert np.mean(gains) > 0.02, "among all models, on average"
    assert np.mean(np.array(gains) < 0) < 0.05, "though not each time"


def concordance(estimate: Floats, truth: Floats) -> float:
    """Pairs in the true order less those in the other, of all: Kendall's tau a."""
    first, second = np.triu_indices(len(truth), k=1)
    gaps = np.round(estimate[first] - estimate[second], 9)
    return float(np.mean(np.sign(gaps) * np.sign(truth[first] - truth[second])))


def test_the_projection_moves_least_what_is_known_best() -> None:
    moved = project_on_order(np.array([0.0, 2.0]), np.diag([1.0, 0.01]), np.array([1, 2]))
    assert moved == pytest.approx([2 - 0.02 / 1.01, 2 - 0.02 / 1.01])


def test_a_covariance_of_no_numbers_together_still_gives_the_order() -> None:
    impossible = np.array([[1.0, 0.95, 0.0], [0.95, 1.0, 0.95], [0.0, 0.95, 1.0]])
    assert np.linalg.eigvalsh(impossible).min() < 0
    projected = project_on_order(np.array([0.0, 1.0, 2.0]), impossible, np.arange(3))
    assert (np.diff(projected) <= 1e-9).all()
    assert np.abs(projected - 1).max() < 1


def test_without_covariances_it_is_isotonic_regression() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        strength, variance = rng.normal(size=7), rng.uniform(0.1, 3, 7)
        expected = scipy.optimize.isotonic_regression(
            strength, weights=1 / variance, increasing=False
        ).x
        projected = project_on_order(strength, np.diag(variance), np.arange(7))
        assert projected == pytest.approx(expected, abs=1e-6)


def test_strengths_in_the_declared_order_stay_to_the_last_digit() -> None:
    strength = np.array([0.1, 0.7, -0.3])
    assert (project_on_order(strength, np.eye(3), np.array([2, 1, 3])) == strength).all()


def test_the_order_of_the_variants_in_the_arrays_does_not_matter() -> None:
    rng = np.random.default_rng(10)
    strength, root = rng.normal(size=5), rng.normal(size=(5, 5))
    order, mixed = np.arange(5), rng.permutation(5)
    covariance = root @ root.T
    projected = project_on_order(strength, covariance, order)
    of_mixed = project_on_order(strength[mixed], covariance[np.ix_(mixed, mixed)], order[mixed])
    assert of_mixed == pytest.approx(projected[mixed])


def test_a_clone_moves_mean_win_rates_but_no_rating_and_no_projection() -> None:
    truth = np.array([0.8, 0.5, 0.0, -0.6, -1.2])
    cloned = np.append(truth, truth[4])
    rates, thetas, projected = [], [], []
    for strengths in (truth, cloned):
        data = votes(strengths, 40)
        fit = fit_bradley_terry(data)
        wins = data.wins()
        rates.append((wins.sum(axis=1) / (wins + wins.T).sum(axis=1))[:4])
        family = np.array([3, 4, 5][: len(strengths) - 3])
        covariance = hessian_covariance(fit)[np.ix_(family, family)]
        theta = fit.theta.copy()
        theta[family] = project_on_order(theta[family], covariance, np.arange(len(family)))
        thetas.append((fit.theta - fit.theta[0])[:5])
        projected.append((theta - theta[0])[:5])
    assert np.abs(rates[1] - rates[0]).max() > 0.02
    assert np.abs(thetas[1] - thetas[0]).max() * POINTS_PER_NAT < 2
    assert np.abs(projected[1] - projected[0]).max() * POINTS_PER_NAT < 2


def test_shares_are_as_unequal_as_the_gini_index_says() -> None:
    assert gini(np.array([1, 2, 3, 4])) == pytest.approx(0.25)
    assert gini(np.array([10, 20, 30, 40])) == pytest.approx(gini(np.array([1, 2, 3, 4])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selection_inflation(1, 0), "n_variants must be at least 1, not 0"),
        (lambda: selection_inflation(-1, 2), "se must be finite and not negative, not -1"),
        (lambda: standard_error_apart(np.eye(3)[:2]), r"square matrix .*, not \(2, 3\)"),
        (lambda: standard_error_apart(np.full((2, 2), np.nan)), "must be finite"),
        (lambda: project_on_order(np.zeros(2), np.eye(3), np.arange(2)), "2 finite strengths"),
        (lambda: project_on_order(np.zeros(2), np.eye(2), np.array([1, 1])), "a place of its own"),
        (lambda: project_on_order(np.zeros(1), np.zeros((1, 1)), np.array([1])), "above zero"),
        (lambda: gini(np.array([0.0, 0.0])), r"one above, not \[0.0, 0.0\]"),
        (lambda: gini(np.array([-1.0, 2.0])), "zero or more"),
    ],
)
def test_what_says_nothing_of_variants_is_refused(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        call()
