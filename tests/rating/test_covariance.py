import numpy as np
import pytest

from rating import Comparisons, fit_bradley_terry, hessian_covariance, sandwich_covariance
from rating.identification import decided_groups
from rating.likelihood import identified_inverse
from tests.rating.builders import random_votes, votes, wins


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
    a, b, outcome, _ = zip(*rows, strict=True)
    data = Comparisons.from_arrays(a, b, outcome, weight=rng.random(len(a)))
    ours = sandwich_covariance(fit_bradley_terry(data), data)
    assert ours == pytest.approx(sandwich_by_hand(data), rel=1e-8)


def test_two_models_without_ties_have_the_binomial_variance() -> None:
    data = wins([("x", "y", 30), ("y", "x", 10)])
    fit = fit_bradley_terry(data)
    for v in (hessian_covariance(fit), sandwich_covariance(fit, data)):
        # the log-odds of 30 in 40 have variance 1/30 + 1/10
        assert v[0, 0] + v[1, 1] - 2 * v[0, 1] == pytest.approx(1 / 30 + 1 / 10)


def test_rows_sum_to_zero_and_the_rest_is_positive(rng: np.random.Generator) -> None:
    data = votes(random_votes(rng))
    fit = fit_bradley_terry(data)
    for v in (hessian_covariance(fit), sandwich_covariance(fit, data)):
        assert np.abs(v.sum(axis=1)).max() < 1e-12
        assert (np.linalg.eigvalsh(v)[1:] > 0).all()


def test_every_vote_cast_k_times_divides_the_error_by_the_root_of_k(
    rng: np.random.Generator,
) -> None:
    rows = random_votes(rng)
    once, nine = votes(rows), votes(rows * 9)
    v1 = sandwich_covariance(fit_bradley_terry(once), once)
    v9 = sandwich_covariance(fit_bradley_terry(nine), nine)
    assert np.sqrt(np.diag(v1) / np.diag(v9)) == pytest.approx(np.full(5, 3.0))


def test_a_common_weight_does_not_make_votes_surer(rng: np.random.Generator) -> None:
    rows = random_votes(rng)
    a, b, outcome, _ = zip(*rows, strict=True)
    plain = Comparisons.from_arrays(a, b, outcome)
    heavy = Comparisons.from_arrays(a, b, outcome, weight=[7.0] * len(a))
    assert sandwich_covariance(fit_bradley_terry(heavy), heavy) == pytest.approx(
        sandwich_covariance(fit_bradley_terry(plain), plain), rel=1e-9
    )


def test_half_win_ties_make_the_hessian_interval_too_wide(rng: np.random.Generator) -> None:
    data = votes(
        [
            (a, b, "tie", v) if rng.random() < 0.5 else (a, b, o, v)
            for a, b, o, v in random_votes(rng)
        ]
    )
    fit = fit_bradley_terry(data)
    assert (np.diag(hessian_covariance(fit)) > 1.3 * np.diag(sandwich_covariance(fit, data))).all()


def test_a_rare_model_does_not_widen_the_intervals_of_the_others(rng: np.random.Generator) -> None:
    rows = random_votes(rng, n=4000)
    rare = [("new", "m0", "model_a", "v"), ("new", "m1", "model_b", "v")]
    before, after = votes(rows), votes(rows + rare)
    v = sandwich_covariance(fit_bradley_terry(before), before)
    w = sandwich_covariance(fit_bradley_terry(after), after)
    gap_before = v[0, 0] + v[1, 1] - 2 * v[0, 1]
    assert w[0, 0] + w[1, 1] - 2 * w[0, 1] == pytest.approx(gap_before, rel=0.01)


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
