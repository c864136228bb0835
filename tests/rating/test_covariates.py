import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from rating import Fit, NotIdentifiedError, Ties, fit, hessian_covariance, sandwich_covariance
from tests.rating.builders import cr1, votes
from tests.rating.drawn import Drawn, draw

ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]
STYLE = (0.25, -0.1)
NAMES = ["length", "bold"]


def styled(rows: Drawn, ties: Ties = "half") -> Fit:
    data = rows.comparisons(features=rows.features, feature_names=NAMES)
    return fit(data, ties=ties, order_effect=True)


@pytest.mark.parametrize("ties", ALL)
def test_planted_order_effect_and_style_are_found(rng: np.random.Generator, ties: Ties) -> None:
    rows = draw(rng, ties, n=15_000, order=0.2, style=STYLE)
    fitted = styled(rows, ties)
    error = np.sqrt(np.diag(hessian_covariance(fitted)))[fitted.n_models :]
    raw = np.array([p.raw for p in fitted.parameters])
    expected = ["order_effect", "style:length", "style:bold"]
    assert [p.name for p in fitted.parameters[:3]] == expected
    assert (np.abs(raw[:3] - (0.2, *STYLE)) < 4 * error[:3]).all()
    assert error[:3].max() < 0.06
    assert fitted.deviance is None


def test_logistic_regression_finds_the_same_coefficients(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=2000, order=0.4, style=STYLE)
    design = np.zeros((2000, 5))
    design[np.arange(2000), rows.a], design[np.arange(2000), rows.b] = 1, -1
    design = np.column_stack([design, np.ones(2000), rows.features])
    theirs = LogisticRegression(C=1e10, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        design, rows.outcome == 0
    )
    ours = styled(rows)
    coefficients = theirs.coef_[0]
    assert ours.theta == pytest.approx(coefficients[:5] - coefficients[:5].mean(), abs=1e-4)
    assert [p.value for p in ours.parameters] == pytest.approx(coefficients[5:], abs=1e-4)


def test_the_order_effect_of_two_equal_models_is_the_log_odds_of_side_a() -> None:
    rows = [("x", "y", "model_a"), ("y", "x", "model_a")] * 3
    fitted = fit(votes([*rows, ("x", "y", "model_b"), ("y", "x", "model_b")]), order_effect=True)
    assert fitted.parameters[0].value == pytest.approx(np.log(3))
    assert fitted.theta == pytest.approx([0, 0], abs=1e-12)


def test_the_sandwich_with_features_is_the_textbook_formula(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=500, order=0.4, style=STYLE)
    data = rows.comparisons(features=rows.features, feature_names=NAMES)
    fitted = fit(data, order_effect=True)
    x = np.zeros((500, 5))
    x[np.arange(500), rows.a], x[np.arange(500), rows.b] = 1, -1
    x = np.column_stack([x, np.ones(500), rows.features])
    probability = expit(x @ fitted.x)
    bread = np.linalg.pinv((x * (probability * (1 - probability))[:, None]).T @ x)
    score = x * ((rows.outcome == 0) - probability)[:, None]
    expected = bread @ score.T @ score @ bread
    assert sandwich_covariance(fitted, data) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_constant_feature_of_zeros_and_a_copy_are_named(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", style=STYLE)
    zero = np.column_stack([rows.features[:, 0], np.zeros(3000)])
    with pytest.raises(NotIdentifiedError, match="style:bold is zero in every vote"):
        fit(rows.comparisons(features=zero, feature_names=NAMES))
    copy = np.column_stack([rows.features[:, 0], 3 * rows.features[:, 0]])
    with pytest.raises(NotIdentifiedError, match=r"style:bold cannot .* and style:length"):
        fit(rows.comparisons(features=copy, feature_names=NAMES))


def test_a_constant_of_each_model_is_a_strength(rng: np.random.Generator) -> None:
    rows = draw(rng, "half")
    size = np.arange(5.0)
    features = (size[rows.a] - size[rows.b])[:, None]
    with pytest.raises(
        NotIdentifiedError, match="style:size cannot be distinguished from the stren"
    ):
        fit(rows.comparisons(features=features, feature_names=["size"]))


def test_an_order_effect_needs_models_on_both_sides() -> None:
    rows = [("x", "y", "model_a"), ("x", "y", "model_b")]
    with pytest.raises(NotIdentifiedError, match="order_effect"):
        fit(votes(rows), order_effect=True)


def test_a_feature_that_foretells_every_vote_is_named(rng: np.random.Generator) -> None:
    rows = draw(rng, "half")
    features = np.where(rows.outcome == 0, 1.0, -1.0)[:, None] + rng.random((3000, 1)) / 2
    with pytest.raises(NotIdentifiedError, match="style:oracle foretells the votes"):
        fit(rows.comparisons(features=features, feature_names=["oracle"]))


@pytest.mark.slow
def test_style_is_unbiased_covered_and_seldom_seen_where_there_is_none() -> None:
    rng = np.random.default_rng(7)
    seen, runs = np.zeros((500, 2)), 500
    errors = np.zeros((500, 2))
    for run in range(runs):
        rows = draw(rng, "rao-kupper", n=1500, style=(0.25, 0.0), n_voters=60)
        data = rows.comparisons(features=rows.features, feature_names=NAMES, voter=rows.voter)
        fitted = fit(data, ties="rao-kupper")
        seen[run] = [p.raw for p in fitted.parameters[:2]]
        errors[run] = np.sqrt(np.diag(cr1(fitted, data)))[5:7]
    miss = seen - (0.25, 0.0)
    assert (np.abs(miss.mean(axis=0)) < 3 * miss.std(axis=0) / np.sqrt(runs)).all()
    outside = (np.abs(miss) > 1.96 * errors).mean(axis=0)
    assert 0.025 <= outside[0] <= 0.08
    assert 0.03 <= outside[1] <= 0.075
