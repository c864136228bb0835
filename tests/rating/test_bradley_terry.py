import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

from rating import (
    Comparisons,
    ConvergenceError,
    DataError,
    NotIdentifiedError,
    fit_bradley_terry,
    hessian_covariance,
    likelihood,
)
from rating.likelihood import ScoreTable
from tests.rating.builders import golden, random_votes, strength, votes, wins

seeds = st.integers(0, 2**32 - 1)


# Worked examples


def test_the_worked_example_of_wikipedia() -> None:
    example = golden("bradley_terry_wikipedia")
    fit = fit_bradley_terry(wins(example["data"]["wins"]))
    strengths = {name: np.exp(theta) for name, theta in strength(fit).items()}
    assert strengths == pytest.approx(example["expected"]["strengths"], abs=5e-5)


def test_the_citations_between_journals() -> None:
    example = golden("bradley_terry_citations")
    expected = example["expected"]
    fit = fit_bradley_terry(wins(example["data"]["wins"]))
    covariance = hessian_covariance(fit)
    base = fit.models.index(expected["reference"])
    for name, theta in expected["theta"].items():
        i = fit.models.index(name)
        variance = covariance[i, i] + covariance[base, base] - 2 * covariance[i, base]
        assert fit.theta[i] - fit.theta[base] == pytest.approx(theta, abs=5e-6)
        assert np.sqrt(variance) == pytest.approx(expected["se"][name], abs=5e-6)


def test_three_wins_to_one_are_a_gap_of_log_three_and_a_known_loss() -> None:
    fit = fit_bradley_terry(wins([("x", "y", 3), ("y", "x", 1)]))
    assert fit.theta == pytest.approx([np.log(3) / 2, -np.log(3) / 2], abs=1e-12)
    assert fit.log_likelihood == pytest.approx(3 * np.log(0.75) + np.log(0.25))
    assert fit.log_loss == pytest.approx(-fit.log_likelihood / 4)
    assert fit.n_votes == 4
    sides = Comparisons.from_arrays("xx", "yy", ["model_a", "model_b"], weight=[3.0, 1.0])
    heavy, held = fit_bradley_terry(sides), fit_bradley_terry(sides, ridge=0.5)
    assert heavy.n_votes == 2
    assert heavy.log_loss == pytest.approx(fit.log_loss)
    p = 1 / (1 + np.exp(-2 * held.theta[0]))
    assert 4 * held.log_loss == pytest.approx(-3 * np.log(p) - np.log(1 - p))
    assert -held.log_likelihood == pytest.approx(4 * held.log_loss)


# Other implementations


def test_choix_finds_the_same_strengths(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng))
    theirs = choix.ilsr_pairwise_dense(data.wins(), max_iter=1000, tol=1e-12)
    assert fit_bradley_terry(data).theta == pytest.approx(theirs - theirs.mean(), abs=1e-7)


@pytest.mark.parametrize("ridge", [0.01, 0.3, 5.0])
def test_logistic_regression_finds_the_same_ridge_strengths(
    rng: np.random.Generator, ridge: float
) -> None:
    data = votes(random_votes(rng))
    design = np.zeros((len(data.pairs), data.n_models))
    rows = np.arange(len(design))
    design[rows, data.pairs[:, 0]], design[rows, data.pairs[:, 1]] = 1, -1
    theirs = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        np.vstack([design, design]),
        np.repeat([1, 0], len(design)),
        np.concatenate([data.weight * data.score_a, data.weight * (1 - data.score_a)]),
    )
    ours = fit_bradley_terry(data, ridge=ridge).theta
    assert ours == pytest.approx(theirs.coef_[0], abs=1e-5)


# Derivatives


@settings(max_examples=25)
@given(seeds, st.sampled_from([0.0, 0.7]))
def test_gradient_and_hessian_are_those_of_finite_differences(seed: int, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 4)) * 5
    np.fill_diagonal(scores, 0)
    theta = rng.normal(size=4)
    table = ScoreTable(scores, ridge)
    slope = approx_fprime(theta, lambda t: table.evaluate(t).loss)
    bend = approx_fprime(theta, lambda t: table.evaluate(t).gradient)
    assert table.evaluate(theta).gradient == pytest.approx(slope, abs=1e-4)
    assert table.evaluate(theta).hessian == pytest.approx(bend, abs=1e-4)


# Identities


def test_a_tie_is_half_a_win_for_each_side() -> None:
    ties = fit_bradley_terry(votes([("x", "y", "tie"), ("y", "x", "both_bad"), *UNEVEN]))
    halves = fit_bradley_terry(votes([("x", "y", "model_a"), ("x", "y", "model_b"), *UNEVEN]))
    assert ties.theta == pytest.approx(halves.theta, abs=1e-12)
    assert ties.log_likelihood == pytest.approx(halves.log_likelihood)


UNEVEN = [("x", "y", "model_a")] * 3


# Limits


def test_a_nearly_undefeated_model_is_placed_exactly() -> None:
    one = np.array([1, 1])
    data = Comparisons.from_codes(["x", "y"], one - 1, one, one * [0, 1], votes=one * [10**6, 1])
    fit = fit_bradley_terry(data)
    assert fit.theta[0] - fit.theta[1] == pytest.approx(np.log(1e6), rel=1e-9)


def test_a_long_chain_of_upsets_converges() -> None:
    better = np.repeat(np.arange(30), 2)
    outcome, votes = np.tile([0, 1], 30), np.tile([999, 1], 30)
    names = [f"m{i:02}" for i in range(31)]
    fit = fit_bradley_terry(
        Comparisons.from_codes(names, better, better + 1, outcome, votes=votes)
    )
    assert -np.diff(fit.theta) == pytest.approx(np.full(30, np.log(999)), rel=1e-7)


# What other programs answer in silence


UNIDENTIFIED = {
    "undefeated": [("x", "y", "tie"), ("top", "x", "model_a")],
    "disconnected": [("x", "y", "tie"), ("v", "w", "tie")],
}


def test_the_error_names_the_groups() -> None:
    with pytest.raises(NotIdentifiedError, match="v, w; x, y") as raised:
        fit_bradley_terry(votes(UNIDENTIFIED["disconnected"]))
    assert raised.value.groups == (("v", "w"), ("x", "y"))


def test_a_ridge_places_an_undefeated_model() -> None:
    fit = fit_bradley_terry(votes(UNIDENTIFIED["undefeated"]), ridge=0.1)
    assert fit.models[int(fit.theta.argmax())] == "top"


def test_a_ridge_cannot_rate_without_votes() -> None:
    weightless = Comparisons.from_arrays(["x"], ["y"], ["tie"], weight=[0.0])
    for data in (votes([]), weightless):
        with pytest.raises(NotIdentifiedError):
            fit_bradley_terry(data, ridge=1.0)


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf")])
def test_a_ridge_must_be_finite_and_not_negative(ridge: float) -> None:
    with pytest.raises(DataError, match="ridge"):
        fit_bradley_terry(votes(UNEVEN), ridge=ridge)


def test_an_unfinished_iteration_returns_no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "MAX_STEPS", 1)
    with pytest.raises(ConvergenceError, match="after 1 Newton"):
        fit_bradley_terry(votes([*UNEVEN, ("x", "y", "model_b")]))
