from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rating import (
    Comparisons,
    DataError,
    NotIdentifiedError,
    Ties,
    fit,
    fit_bradley_terry,
    hessian_covariance,
)
from rating.likelihood import AT_BOUNDARY, LIKELIHOODS, Likelihood, cell_objective
from tests.rating.builders import golden, votes, wins
from tests.rating.drawn import draw

seeds = st.integers(0, 2**32 - 1)
ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]
WITH_PARAMETER: list[Ties] = ["davidson", "rao-kupper", "grounded"]
EVERY_LIKELIHOOD = [*LIKELIHOODS.values(), AT_BOUNDARY["grounded"]]


def puddings() -> Comparisons:
    kinds = ("model_a", "model_b", "tie")
    rows = golden("ties_puddings")["data"]["counts"]
    return votes(
        [
            (a, b, kind)
            for a, b, *counts in rows
            for kind, n in zip(kinds, counts, strict=True)
            for _ in range(n)
        ]
    )


@pytest.mark.parametrize("ties", ["half", "davidson", "rao-kupper"])
def test_the_puddings_of_davidson(ties: Ties) -> None:
    expected = golden("ties_puddings")["expected"][ties]
    fitted = fit(puddings(), ties=ties)
    strengths = np.exp(fitted.theta)
    assert strengths / strengths.sum() == pytest.approx(expected["strengths"], abs=1e-6)
    if ties != "half":
        assert fitted.parameters[-1].value == pytest.approx(expected["parameter"], abs=1e-6)
        assert fitted.log_likelihood == pytest.approx(expected["log_likelihood"], abs=1e-5)


def test_the_error_of_log_nu_is_the_published_one() -> None:
    variance = hessian_covariance(fit(puddings(), ties="davidson"))[-1, -1]
    expected = golden("ties_puddings")["expected"]["davidson"]["se_log"]
    assert np.sqrt(variance) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("likelihood", EVERY_LIKELIHOOD)
@settings(max_examples=50)
@given(gap=st.floats(-6, 6), tie=st.floats(0.05, 3), level=st.floats(-3, 3))
def test_the_chances_of_all_outcomes_add_up_to_one(
    likelihood: Likelihood, gap: float, tie: float, level: float
) -> None:
    outcomes = np.array(likelihood.outcomes)
    same = np.ones(len(outcomes))
    local = likelihood.loss(outcomes, gap * same, tie, level * same)
    assert np.exp(-local.value).sum() == pytest.approx(1, abs=1e-12)
    # so do their slopes, weighted: the expected score vanishes
    for slope in local.slope:
        assert np.exp(-local.value) @ slope == pytest.approx(0, abs=1e-9)


def test_chances_are_those_of_the_formulas_by_hand() -> None:
    a, b, bad = np.exp(0.7), np.exp(-0.4), 1.0
    gap, level = np.array([1.1]), np.array([0.15])
    raw: dict[Ties, float] = {"davidson": np.log(0.8), "rao-kupper": 0.5, "grounded": 0.5}
    probability = {
        (name, code): float(
            np.exp(-LIKELIHOODS[name].loss(np.array([code]), gap, tie, level).value[0])
        )
        for name, tie in raw.items()
        for code in range(4)
    }
    even = 0.8 * np.sqrt(a * b)
    t = np.exp(0.5)
    assert probability["davidson", 0] == pytest.approx(a / (a + b + even))
    assert probability["davidson", 3] == pytest.approx(even / (a + b + even))
    assert probability["rao-kupper", 1] == pytest.approx(b / (b + t * a))
    assert probability["rao-kupper", 2] == pytest.approx(1 - b / (b + t * a) - a / (a + t * b))
    assert probability["grounded", 0] == pytest.approx(a / (a + t * b + bad))
    assert probability["grounded", 3] == pytest.approx(1 / (1 + a + b))
    rest = 1 - a / (a + t * b + 1) - b / (b + t * a + 1) - 1 / (1 + a + b)
    assert probability["grounded", 2] == pytest.approx(rest)


@pytest.mark.parametrize("likelihood", EVERY_LIKELIHOOD)
@settings(max_examples=6)
@given(seeds)
def test_gradient_and_hessian_are_those_of_finite_differences(
    likelihood: Likelihood, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = draw(rng, "grounded", n=40, style=(0.3, 0.1))
    data = rows.comparisons(features=rows.features, feature_names=["p", "q"])
    if likelihood is AT_BOUNDARY["grounded"]:
        data = data.subset(data.outcome != 2)
    cells = cell_objective(likelihood, data, ridge=0.3, order_effect=True)
    x = np.append(rng.normal(size=cells.design.n_parameters - 1), rng.uniform(0.2, 2))
    at, h = cells.evaluate(x), 1e-6
    steps = h * np.eye(len(x))
    slope = [(cells.evaluate(x + s).loss - cells.evaluate(x - s).loss) / (2 * h) for s in steps]
    bend = [
        (cells.evaluate(x + s).gradient - cells.evaluate(x - s).gradient) / (2 * h) for s in steps
    ]
    assert at.gradient == pytest.approx(slope, rel=1e-5, abs=1e-5)
    assert at.hessian == pytest.approx(np.array(bend), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("ties", ALL)
@settings(max_examples=15)
@given(seeds)
def test_the_gradient_vanishes(ties: Ties, seed: int) -> None:
    data = draw(np.random.default_rng(seed), ties, n=400).comparisons()
    fitted = fit(data, ties=ties)
    slope = cell_objective(fitted.likelihood, data).evaluate(fitted.x).gradient
    assert np.abs(slope).max() <= 2e-9
    if ties != "grounded":
        assert abs(fitted.theta.sum()) < 1e-12


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper"])
@settings(max_examples=15)
@given(seeds)
def test_without_ties_every_model_of_ties_is_bradley_terry(ties: Ties, seed: int) -> None:
    rows = draw(np.random.default_rng(seed), "half", n=300)
    plain, fitted = fit(rows.comparisons()), fit(rows.comparisons(), ties=ties)
    assert fitted.theta == pytest.approx(plain.theta, abs=1e-12)
    assert fitted.log_likelihood == plain.log_likelihood
    at_boundary = {"davidson": ("nu", 0.0), "rao-kupper": ("theta", 1.0)}[ties]
    assert [(p.name, p.value, p.free) for p in fitted.parameters] == [(*at_boundary, False)]


def test_grounded_without_ties_is_luce_with_a_third_choice(rng: np.random.Generator) -> None:
    rows = draw(rng, "grounded", n=3000)
    data = replace(rows, outcome=np.where(rows.outcome == 2, 3, rows.outcome)).comparisons()
    fitted = fit(data, ties="grounded")
    assert (fitted.parameters[0].value, fitted.parameters[0].free) == (1.0, False)
    pi = np.exp(fitted.theta)
    table = data.table()
    games = table.sum(axis=-1)
    bad = (games / (1 + pi[:, None] + pi)).sum()
    assert bad == pytest.approx(table[..., 3].sum())  # a score equation of the maximum


def test_both_bad_is_a_tie_unless_grounded(rng: np.random.Generator) -> None:
    rows = draw(rng, "grounded")
    as_ties = replace(rows, outcome=np.minimum(rows.outcome, 2))
    for ties in ALL[:3]:
        one, two = fit(rows.comparisons(), ties=ties), fit(as_ties.comparisons(), ties=ties)
        assert one.x == pytest.approx(two.x, abs=1e-12)
    grounded = fit(rows.comparisons(), ties="grounded")
    assert grounded.theta.mean() == pytest.approx(0, abs=0.2)
    assert abs(grounded.theta.sum()) > 1e-6  # its own zero, not the average


@pytest.mark.parametrize("ties", WITH_PARAMETER)
def test_a_ridge_pulls_strengths_but_not_the_parameter_of_ties_to_zero(ties: Ties) -> None:
    data = draw(np.random.default_rng(3), ties, tie=1.0).comparisons()
    fitted = fit(data, ties=ties, ridge=1e7)
    assert np.abs(fitted.theta).max() < 1e-3
    assert fitted.parameters[-1].raw > 0.3


# What has no finite fit


def test_nothing_but_ties_has_no_finite_parameter() -> None:
    data = votes([("x", "y", "tie"), ("y", "z", "tie"), ("z", "x", "tie")])
    for ties in ("davidson", "rao-kupper"):
        for ridge in (0.0, 1.0):
            with pytest.raises(NotIdentifiedError, match="chance of a tie"):
                fit(data, ties=ties, ridge=ridge)


def test_an_undefeated_model_that_tied_has_a_finite_fit_under_half_wins_only() -> None:
    data = votes([("x", "y", "model_a")] * 5 + [("x", "y", "tie")])
    assert np.isfinite(fit(data).theta).all()
    with pytest.raises(NotIdentifiedError, match="chance of a tie"):
        fit(data, ties="davidson")


def test_two_wins_around_a_tie_bound_the_chance_of_ties() -> None:
    data = votes([("x", "y", "model_a"), ("y", "z", "model_a"), ("x", "z", "tie")])
    assert fit(data, ties="davidson").parameters[0].value < 10
    longer = votes([("x", "y", "model_a"), ("y", "z", "tie"), ("z", "x", "tie")])
    with pytest.raises(NotIdentifiedError, match="chance of a tie"):
        fit(longer, ties="rao-kupper")


def test_grounded_strengths_need_votes_of_both_bad(rng: np.random.Generator) -> None:
    data = draw(rng, "rao-kupper").comparisons()
    with pytest.raises(NotIdentifiedError, match="No absolute strength for m0, m1"):
        fit(data, ties="grounded")
    with pytest.raises(NotIdentifiedError, match="No absolute strength"):
        fit(votes([("x", "y", "both_bad")] * 3), ties="grounded")


def test_a_grounded_model_may_be_undefeated_but_not_never_bad() -> None:
    rows = [("x", "y", "model_a"), ("x", "y", "both_bad"), ("y", "x", "tie")]
    rows += [("y", "z", "model_a"), ("z", "y", "model_a"), ("z", "y", "tie")]
    assert np.isfinite(fit(votes(rows), ties="grounded").theta).all()
    rows = [("x", "top", "both_bad"), ("top", "x", "model_a"), ("y", "x", "both_bad")]
    rows += [("x", "y", "model_a"), ("x", "y", "model_b")]
    assert np.isfinite(fit(votes(rows), ties="grounded").theta).all()


@pytest.mark.parametrize("ties", ALL)
def test_disconnected_models_raise(ties: Ties) -> None:
    rows = [("x", "y", "model_a"), ("y", "x", "model_a"), ("v", "w", "tie")]
    with pytest.raises(NotIdentifiedError):
        fit(votes(rows), ties=ties)


def test_an_unknown_model_of_ties_raises() -> None:
    with pytest.raises(DataError, match="'rao'"):
        fit(wins([("x", "y", 1), ("y", "x", 1)]), ties="rao")  # type: ignore[arg-type]


def test_the_short_name_is_the_plain_fit(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    assert (fit_bradley_terry(data, ridge=0.5).theta == fit(data, ridge=0.5).theta).all()
