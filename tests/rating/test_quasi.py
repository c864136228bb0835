import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rating import DataError, fit, quasi_standard_errors, sandwich_covariance
from rating.covariance import difference_variances
from tests.rating.drawn import draw

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(3, 8))
def test_independent_strengths_are_their_own_quasi_variances(seed: int, k: int) -> None:
    variance = np.random.default_rng(seed).uniform(0.1, 3, k)
    centre = np.eye(k) - 1 / k
    quasi = quasi_standard_errors(difference_variances(centre @ np.diag(variance) @ centre))
    assert quasi.qse == pytest.approx(np.sqrt(variance), rel=1e-6)
    assert quasi.worst_error < 1e-9


@settings(max_examples=10)
@given(seeds)
def test_a_general_optimiser_finds_the_same(seed: int) -> None:
    root = np.random.default_rng(seed).normal(size=(6, 5)) + 3 * np.eye(6, 5)
    root[5] += 2
    target = difference_variances(root @ root.T)
    i, j = np.triu_indices(6, k=1)

    def misfit(logs: np.ndarray) -> float:
        q = np.exp(logs)
        return float(((np.log(target[i, j]) - np.log(q[i] + q[j])) ** 2).sum())

    quasi = quasi_standard_errors(difference_variances(root @ root.T))
    theirs = minimize(misfit, np.log(np.full(6, target[i, j].mean() / 2)), tol=1e-10)
    q = quasi.qse**2
    ours = ((np.log(target[i, j]) - np.log(q[i] + q[j])) ** 2).sum()
    # a negative variance that helps the fit is set to zero, which the other cannot have
    assert ours <= theirs.fun + 1e-6 or (q == 0).any()


def test_two_models_share_their_variance() -> None:
    quasi = quasi_standard_errors(difference_variances(np.array([[1.0, -1.0], [-1.0, 1.0]])))
    assert quasi.qse == pytest.approx([np.sqrt(2), np.sqrt(2)])
    assert quasi.worst_error < 1e-12


def test_votes_taken_as_independent_leave_a_few_per_cent(rng: np.random.Generator) -> None:
    data = draw(rng, "half", n=20_000, theta=np.linspace(-1, 1, 12)).comparisons()
    quasi = quasi_standard_errors(difference_variances(sandwich_covariance(fit(data), data)))
    assert quasi.worst_error < 0.03


def test_a_matrix_that_no_single_numbers_describe_says_so() -> None:
    # four models in a ring, neighbours alike: 1 between neighbours, 9 across
    near, far = 1.0, 9.0
    target = np.array([[0, near, far, near], [near, 0, near, far]])
    target = np.vstack([target, target[:, [2, 3, 0, 1]]])
    centre = np.eye(4) - 1 / 4
    quasi = quasi_standard_errors(difference_variances(-centre @ target @ centre / 2))
    assert quasi.qse == pytest.approx(np.full(4, quasi.qse[0]))
    # equal ones fit the mean of the logs, 9^(1/3), four pairs near and two far
    assert quasi.worst_error == pytest.approx(1 - 9 ** (-1 / 3), abs=1e-6)


def test_what_has_no_quasi_variance_raises() -> None:
    for matrix in (np.array([[1.0]]), np.ones((3, 3))):
        with pytest.raises(DataError, match="two models and positive"):
            quasi_standard_errors(difference_variances(matrix))
