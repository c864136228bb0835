import numpy as np
import pytest

from rating import Comparisons, fit_bradley_terry, hessian_covariance, sandwich_covariance
from rating.identification import decided_groups
from rating.likelihood import identified_inverse
from tests.rating.builders import random_votes, votes


def sandwich_by_hand(data: Comparisons) -> np.ndarray:
    """The textbook formula vote by vote, with the pseudo-inverse."""
    theta = fit_bradley_terry(data).theta
    bread, meat = np.zeros((2, data.n_models, data.n_models))
    for (a, b), score, weight, square in zip(
        data.pairs, data.score_a, data.weight, data.weight_sq, strict=True
    ):
        x = np.zeros(data.n_models)
        x[a], x[b] = 1, -1
        probability = 1 / (1 + np.exp(-(theta @ x)))
        bread += weight * probability * (1 - probability) * np.outer(x, x)
        meat += square * (score - probability) ** 2 * np.outer(x, x)
    inverse = np.linalg.pinv(bread)
    return np.asarray(inverse @ meat @ inverse)


def test_the_sandwich_is_the_textbook_formula(rng: np.random.Generator) -> None:
    rows = random_votes(rng)
    a, b, outcome, voter = zip(*rows, strict=True)
    data = Comparisons.from_arrays(a, b, outcome, voter=voter, weight=rng.random(len(a)))
    ours = sandwich_covariance(fit_bradley_terry(data), data)
    assert ours == pytest.approx(sandwich_by_hand(data), rel=1e-8)


def test_nothing_but_ties_gives_the_interval_that_the_model_implies() -> None:
    data = votes([("x", "y", "tie"), ("y", "z", "both_bad"), ("z", "x", "tie")])
    fit = fit_bradley_terry(data)
    assert sandwich_covariance(fit, data) == pytest.approx(hessian_covariance(fit))


def test_a_model_with_only_ties_is_not_certain(rng: np.random.Generator) -> None:
    rows = [*random_votes(rng), ("flat", "m0", "tie", "v"), ("flat", "m1", "tie", "v")]
    data = votes(rows)
    fit = fit_bradley_terry(data)
    flat = fit.models.index("flat")
    two_votes = 1 / (2 * 0.25)
    assert sandwich_covariance(fit, data)[flat, flat] > 0.6 * two_votes


def test_groups_joined_by_ties_alone_are_found() -> None:
    data = votes([("x", "y", "model_a"), ("y", "z", "tie"), ("z", "w", "model_b")])
    group = dict(zip(data.models, decided_groups(data).tolist(), strict=True))
    assert group["x"] == group["y"] != group["z"] == group["w"]


def test_the_identified_inverse_is_the_pseudo_inverse(rng: np.random.Generator) -> None:
    fit = fit_bradley_terry(votes(random_votes(rng)))
    assert identified_inverse(fit.hessian, 5, absolute=False) == pytest.approx(
        np.linalg.pinv(fit.hessian, rcond=1e-10), abs=1e-10
    )
