import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from rating import DataError, Ties, fit, profile_intervals
from tests.rating.builders import wins
from tests.rating.drawn import draw

ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]


def test_the_odds_of_two_models_by_the_likelihood_ratio() -> None:
    data = wins([("x", "y", 29), ("y", "x", 1)])
    intervals = profile_intervals(fit(data), data, level=0.9)

    def excess(gap: float) -> float:
        p = 1 / (1 + np.exp(-gap))
        best = 29 * np.log(29 / 30) + np.log(1 / 30)
        return float(2 * (best - 29 * np.log(p) - np.log(1 - p)) - 2.705543)

    peak = np.log(29)
    low, high = brentq(excess, -2, peak), brentq(excess, peak, 12)
    assert 2 * np.array([intervals.low[0], intervals.high[0]]) == pytest.approx(
        [low, high], abs=1e-6
    )
    assert intervals.low[1] == pytest.approx(-intervals.high[0], abs=1e-8)
    assert high - peak > 1.4 * (peak - low)  # far from symmetric: one loss only


@pytest.mark.parametrize("ties", ALL)
def test_a_general_optimiser_under_the_constraint_agrees(
    rng: np.random.Generator, ties: Ties
) -> None:
    data = draw(rng, ties, n=250).comparisons()
    one = fit(data, ties=ties, order_effect=True)
    problem = one.objective(data)
    intervals = profile_intervals(one, data, models=["m1"])
    best = problem.evaluate(one.x).loss
    constraints = [] if ties == "grounded" else [{"type": "eq", "fun": lambda x: x[:5].sum()}]
    for end in (intervals.low[0], intervals.high[0]):
        held = [*constraints, {"type": "eq", "fun": lambda x, end=end: x[1] - end}]
        theirs = minimize(
            lambda x: problem.evaluate(x).loss,
            one.x,
            jac=lambda x: problem.evaluate(x).gradient,
            constraints=held,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert 2 * (theirs.fun - best) == pytest.approx(3.841459, abs=1e-4)


def test_an_undefeated_model_held_by_a_ridge_has_finite_ends() -> None:
    data = wins([("top", "x", 5), ("x", "y", 3), ("y", "x", 3)])
    one = fit(data, ridge=0.2)
    intervals = profile_intervals(one, data, models=["top"])
    assert intervals.low[0] < one.theta[one.models.index("top")] < intervals.high[0] < 20


def test_bad_requests_raise() -> None:
    data = wins([("x", "y", 3), ("y", "x", 3)])
    with pytest.raises(DataError, match="level"):
        profile_intervals(fit(data), data, level=95)
    with pytest.raises(DataError, match="'z'"):
        profile_intervals(fit(data), data, models=["z"])
