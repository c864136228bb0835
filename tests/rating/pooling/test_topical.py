"""Strengths by what prompts are about: planted slopes, limits, and worlds without any."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from rating import DataError
from rating.diagnosis.referee import Difference, forecasts_of, outcomes_of, referee
from rating.pooling.topical import MOST, Topical, _design, _Penalised, fit_topical, topical
from rating.rows import VoteRows

Floats = NDArray[np.float64]
MODELS, PROMPTS, VOTERS, SCORES = 6, 120, 50, 3
SLOPE = 0.4


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def scored(seed: int) -> Floats:
    z = rng(seed).normal(size=(PROMPTS, SCORES))
    return np.asarray((z - z.mean(axis=0)) / z.std(axis=0))


def drawn(
    seed: int, slope: float, *, n: int = 5000, ties: float = 0.2
) -> tuple[VoteRows, Topical]:
    """Votes on prompts of which each score shifts each model by so many nats."""
    draw = rng(seed)
    truth = Topical(np.linspace(1, -1, MODELS), draw.normal(0, slope, (SCORES, MODELS)), slope)
    a = draw.integers(MODELS, size=n)
    b = (a + draw.integers(1, MODELS, size=n)) % MODELS
    groups = {"voter": draw.integers(VOTERS, size=n), "prompt": draw.integers(PROMPTS, size=n)}
    names = {"prompt": tuple(map(str, range(PROMPTS)))}
    rows = VoteRows(tuple("uvwxyz"), a, b, a, np.ones(n, dtype=np.int64), groups, names)
    lead = truth.lead(rows, scored(seed)[groups["prompt"]])
    outcome = (draw.random(n) > 1 / (1 + np.exp(-lead))).astype(np.int64)
    outcome[draw.random(n) < ties] = 2
    return VoteRows(rows.models, a, b, outcome, rows.times, groups, names), truth


def given(seed: int, seen: Sequence[str], names: Sequence[str]) -> Floats:
    return scored(seed)[[int(name) for name in names]]


def ahead(rows: VoteRows, seed: int, hold_out: str) -> Difference:
    outcomes = outcomes_of(rows)
    by_topic = topical(partial(given, seed), outcomes=outcomes, ridge=0.05)
    known = forecasts_of(
        ("half", "topical"), ridge=0.05, outcomes=outcomes, rng=rng(), others={"topical": by_topic}
    )
    return referee(rows, known, hold_out=hold_out, rng=rng()).differences[0]  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("hold_out", ["voter", "prompt"])
def test_a_world_with_topics_is_foreseen_better_and_a_flat_one_is_not(hold_out: str) -> None:
    for slope, better in ((SLOPE, "topical"), (0.0, None)):
        rows, _ = drawn(1, slope)
        assert ahead(rows, 1, hold_out).better == better


def test_planted_slopes_and_how_far_they_spread_are_recovered() -> None:
    rows, truth = drawn(2, SLOPE, n=20_000, ties=0)
    fitted = fit_topical(rows, scored(2)[rows.groups["prompt"]], ridge=0.05)
    slopes = truth.slopes - truth.slopes.mean(axis=1, keepdims=True)
    assert fitted.slopes - fitted.slopes.mean(axis=1, keepdims=True) == pytest.approx(
        slopes, abs=0.12
    )
    assert fitted.tau == pytest.approx(slopes.std(), rel=0.2)
    assert fitted.theta == pytest.approx(truth.theta, abs=0.12)


def test_without_slopes_it_foresees_what_half_does() -> None:
    rows, _ = drawn(3, 0.0, n=1500)
    zeros = topical(
        lambda seen, names: np.zeros((len(names), SCORES)), outcomes=outcomes_of(rows), ridge=0.05
    )
    half = forecasts_of(("half",), ridge=0.05, outcomes=outcomes_of(rows), rng=rng())["half"]
    assert zeros(rows, rows) == pytest.approx(half(rows, rows), abs=1e-6)


def test_the_gradient_and_the_curvature_are_those_of_finite_differences() -> None:
    rows, _ = drawn(4, SLOPE, n=300, ties=0)
    design = _design(rows, scored(4)[rows.groups["prompt"]])
    problem = _Penalised(design, rows, MODELS, 0.05, 0.3)
    x = rng(5).normal(size=MODELS * (SCORES + 1)) / 2
    at = problem.evaluate(x)
    for place in range(len(x)):
        step = np.zeros(len(x))
        step[place] = 1e-5
        up, down = (problem.evaluate(x + sign * step) for sign in (1, -1))
        assert at.gradient[place] == pytest.approx((up.loss - down.loss) / 2e-5, abs=1e-4)
        curved = (up.gradient - down.gradient) / 2e-5
        assert at.hessian[place] == pytest.approx(curved, abs=1e-4)


def test_sides_exchanged_and_scores_turned_round_change_nothing() -> None:
    rows, _ = drawn(6, SLOPE, n=1500, ties=0)
    z = scored(6)[rows.groups["prompt"]]
    turned = VoteRows(rows.models, rows.b, rows.a, 1 - rows.outcome, rows.times)
    first, other = fit_topical(rows, z, ridge=0.05), fit_topical(turned, -z[:, ::-1], ridge=0.05)
    assert first.tau == pytest.approx(other.tau, rel=1e-3)
    assert first.theta == pytest.approx(other.theta, abs=1e-3)
    assert first.slopes == pytest.approx(-other.slopes[::-1], abs=1e-3)


def test_what_cannot_be_fitted_is_refused() -> None:
    rows, _ = drawn(7, 0.0, n=100, ties=0)
    with pytest.raises(DataError, match="a ridge above 0, not 0"):
        fit_topical(rows, np.zeros((100, 2)), ridge=0)
    with pytest.raises(DataError, match="parameters, more than 4,000: leave out"):
        fit_topical(rows, np.zeros((100, MOST // MODELS)), ridge=0.05)
    bare = VoteRows(rows.models, rows.a, rows.b, rows.outcome, rows.times)
    with pytest.raises(DataError, match="do not name their prompt"):
        topical(partial(given, 7), outcomes=(0, 1, 2), ridge=0.05)(bare, bare)
    with pytest.raises(DataError, match="name a file of their texts"):
        topical(None, outcomes=(0, 1, 2), ridge=0.05)(rows, rows)
