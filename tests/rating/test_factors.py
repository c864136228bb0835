"""Ratings by factors: the fit, what it says of the parts, and whether these add up."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, f
from sklearn.linear_model import LogisticRegression

from rating import (
    Comparisons,
    DataError,
    NotIdentifiedError,
    RateOptions,
    covariance,
    fit,
    infer,
    rate,
    sandwich_covariance,
)
from rating.covariance import grouping, intersection, jackknife
from rating.factors import FactorReport, _additivity, rate_factors
from rating.leave_out import positive_part
from tests.rating.drawn import draw
from tests.systems import LEVELS, MODELS, NAMES, SCAFFOLDS, World

PER_NAT = 400 / math.log(10)
WORLD = World()


def drawn(seed: int = 0, world: World = WORLD) -> dict[str, Any]:
    return world.draw(np.random.default_rng(seed))


def rated(votes: dict[str, Any], **options: Any) -> FactorReport:
    return rate_factors(Comparisons.from_arrays(**votes), LEVELS, RateOptions(**options))


def approx(*values: float) -> list[Any]:
    return [pytest.approx(value, rel=1e-6) for value in values]


def points(report: FactorReport, factor: str) -> dict[str, float]:
    return {one.level: one.points for one in report.factors[factor]}


def errors(report: FactorReport, factor: str) -> dict[str, float]:
    return {one.level: one.se for one in report.factors[factor]}


def by_sklearn(votes: dict[str, Any]) -> dict[str, float]:
    """Fit the same with dummies of levels, a tie being half a win of each."""
    levels = [*MODELS, *SCAFFOLDS]
    has = np.array([[level in name.split(" · ") for level in levels] for name in NAMES], float)
    a, b = ([NAMES.index(name) for name in votes[side]] for side in ("model_a", "model_b"))
    x = has[a] - has[b]
    score = np.array([{"model_a": 1.0, "model_b": 0.0, "tie": 0.5}[o] for o in votes["outcome"]])
    both = np.vstack([x, x])
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    won = np.r_[np.ones(len(x)), np.zeros(len(x))]
    model.fit(both, won, sample_weight=np.r_[score, 1 - score])
    return dict(zip(levels, model.coef_[0] * PER_NAT, strict=True))


def test_the_parts_are_those_of_a_logistic_regression_on_dummies() -> None:
    votes = drawn()
    report, other = rated(votes), by_sklearn(votes)
    for factor, levels in (("model", MODELS), ("scaffold", SCAFFOLDS)):
        mean = np.mean([other[level] for level in levels])
        wanted = {level: other[level] - mean for level in levels}
        assert points(report, factor) == pytest.approx(wanted, abs=0.01)


def test_which_factor_stands_first_does_not_matter() -> None:
    votes = Comparisons.from_arrays(**drawn())
    turned = {name: LEVELS[name] for name in ("scaffold", "model")}
    one, other = rate_factors(votes, LEVELS), rate_factors(votes, turned)
    for factor in LEVELS:
        assert points(one, factor) == pytest.approx(points(other, factor), abs=1e-6)
        assert errors(one, factor) == pytest.approx(errors(other, factor), rel=1e-6)
    assert dict(one.sums) == pytest.approx(dict(other.sums))


def test_exchanging_the_sides_of_all_votes_changes_nothing() -> None:
    votes = drawn()
    turned = {"model_a": "model_b", "model_b": "model_a"}
    swapped = votes | {
        "model_a": votes["model_b"],
        "model_b": votes["model_a"],
        "outcome": [turned.get(one, one) for one in votes["outcome"]],
    }
    one, other = rated(votes), rated(swapped)
    assert points(one, "model") == pytest.approx(points(other, "model"), abs=1e-6)
    assert one.additivity.p == pytest.approx(other.additivity.p, rel=1e-6)


def test_parts_of_systems_that_differ_in_one_factor_alone_count() -> None:
    """Both sides have the same model, which no plain rating of models would count."""
    a, b = ["m · x"] * 24, ["m · y"] * 8 + ["n · x"] * 8 + ["m · x · z"] * 8
    won = (["model_a"] * 6 + ["model_b"] * 2) * 3
    levels = {
        "model": {"m · x": "m", "m · y": "m", "n · x": "n", "m · x · z": "m"},
        "tool": {"m · x": "x", "m · y": "y", "n · x": "x", "m · x · z": "x"},
        "effort": {"m · x": "low", "m · y": "low", "n · x": "low", "m · x · z": "high"},
    }
    report = rate_factors(Comparisons.from_arrays(a, b, won), levels)
    half, error = PER_NAT * math.log(3) / 2, PER_NAT * math.sqrt(1 / 6 + 1 / 2) / 2
    reach = 1.959964 * error
    for factor, first, second in (
        ("model", "m", "n"),
        ("tool", "x", "y"),
        ("effort", "low", "high"),
    ):
        best, other = (astuple(one) for one in report.factors[factor])
        assert best == (first, *approx(half, error, half - reach, half + reach), 3, 24)
        assert other == (second, *approx(-half, error, -half - reach, reach - half), 1, 8)
    assert report.sums == pytest.approx(
        {name: 1000 + half * (1.5 if name == "m · x" else -0.5) for name in levels["tool"]}
    )
    assert (report.votes, report.level, report.additivity.terms) == (24, 0.95, 0)
    assert report.additivity.p is None
    assert report.warnings == (
        "Voters are not known: the intervals treat votes as independent, and are too narrow where "
        "people voted often.",
    )


def test_errors_are_those_of_the_strengths_where_parts_are_all_the_systems_have() -> None:
    """With no way to differ, the sums of parts are the plain ratings, and so is their spread."""
    votes = drawn()
    whole = {"m1 · plain", "m2 · plain", "m3 · plain", "m1 · tools"}
    rows = [
        n
        for n in range(len(votes["voter"]))
        if {votes["model_a"][n], votes["model_b"][n]} <= whole
    ]
    fewer = {name: [column[n] for n in rows] for name, column in votes.items()}
    report = rated(fewer)
    assert report.systems is not None
    plain = {one.model: one for one in report.systems.ratings}
    assert dict(report.sums) == pytest.approx(
        {n: one.rating for n, one in plain.items()}, abs=1e-4
    )
    twice = 2 * errors(report, "scaffold")["tools"]
    gap = rate_gap(fewer, "m1 · tools", "m1 · plain")
    assert twice == pytest.approx(gap, rel=0.02)


def rate_gap(votes: dict[str, Any], one: str, other: str) -> float:
    board = rate(Comparisons.from_arrays(**votes), RateOptions(reference=other))
    return next(row.se for row in board.ratings if row.model == one)


def test_points_and_intervals_are_on_the_scale_and_the_level_asked_for() -> None:
    votes = drawn()
    plain, other = rated(votes), rated(votes, scale=200.0, mean=0.0, level=0.5)
    assert dict(other.sums) == pytest.approx({n: (x - 1000) / 2 for n, x in plain.sums.items()})
    assert other.level == 0.5
    for factor in LEVELS:
        for one, half in zip(plain.factors[factor], other.factors[factor], strict=True):
            assert (half.points, half.se) == pytest.approx((one.points / 2, one.se / 2))
            narrower = 0.674490 / 1.959964 / 2  # Student's t of many voters, and half the points
            width = half.upper - half.lower
            assert width == pytest.approx(narrower * (one.upper - one.lower), rel=0.05)


def test_order_effect_and_other_ties_leave_the_parts_where_they_are() -> None:
    votes = drawn(2, World(voters=400))
    plain = rated(votes)
    for options in ({"order_effect": True}, {"ties": "davidson"}, {"ties": "rao-kupper"}):
        report = rated(votes, **options)
        for factor, level in (("model", "m1"), ("scaffold", "tools")):
            assert 0.9 < points(report, factor)[level] / points(plain, factor)[level] < 1.4


@pytest.mark.slow
def test_compiled_loops_give_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    votes = drawn()
    slow = errors(rated(votes), "scaffold")
    monkeypatch.setattr(covariance, "COMPILED_FROM", 0)
    assert errors(rated(votes), "scaffold") == pytest.approx(slow, rel=1e-6)


def test_votes_between_systems_of_one_model_say_nothing_of_tastes_for_models() -> None:
    drawn_votes = draw(np.random.default_rng(5), "half", n=900, style=(0.4,))
    data = Comparisons.from_codes(
        drawn_votes.models,
        drawn_votes.a,
        drawn_votes.b,
        drawn_votes.outcome,
        voter=drawn_votes.voter,
        features=drawn_votes.features,
        feature_names=("part",),
    )
    within = np.arange(len(data.pairs)) % 3 == 0
    pairs = np.where(within[:, None], data.pairs[:, :1], data.pairs)
    both = replace(data, pairs=pairs)
    fitted = fit(both)
    with_them = covariance.taste_sums(both, fit=fitted, cluster="voter")
    without = covariance.taste_sums(both.subset(~within), fit=fitted, cluster="voter")
    for name in ("products", "expected"):
        assert with_them[name] == pytest.approx(without[name], abs=1e-9)


def test_planted_interaction_is_seen_and_no_interaction_is_not() -> None:
    adding = rated(drawn(3, World(voters=300))).additivity
    other = rated(drawn(3, World(voters=300, together=1.0))).additivity
    assert adding.terms == other.terms == 2
    assert adding.p is not None
    assert other.p is not None
    assert adding.p > 0.01
    assert other.p < 1e-6


def test_parts_are_rated_where_a_system_that_never_lost_has_no_rating() -> None:
    a = ["m · x"] * 4 + ["m · y"] * 6 + ["n · x"] * 6
    b = ["n · x"] * 4 + ["n · y"] * 6 + ["n · y"] * 6
    won = ["model_a"] * 4 + (["model_a"] * 4 + ["model_b"] * 2) * 2
    levels = {
        "model": {"m · x": "m", "m · y": "m", "n · x": "n", "n · y": "n"},
        "tool": {"m · x": "x", "m · y": "y", "n · x": "x", "n · y": "y"},
    }
    report = rate_factors(Comparisons.from_arrays(a, b, won), levels)
    assert report.systems is None
    assert "The other models never won or tied against: m · x" in report.additivity.reason
    assert points(report, "model")["m"] == pytest.approx(PER_NAT * math.log(8 / 2) / 2, abs=1e-6)
    assert report.to_dict()["systems"] is None


def test_few_voters_test_nothing() -> None:
    test = rated(drawn(0, World(voters=2, votes=90))).additivity
    assert test.p is None
    assert "too few to test 2 ways to differ" in test.reason
    assert rated(drawn()).warnings == ()
    (alone,) = rated(drawn(0, World(voters=1, votes=180))).warnings
    assert alone == "One voter has nearly all votes: the intervals speak for that voter alone."


def interactions(systems: Sequence[str]) -> np.ndarray[Any, Any]:
    """What a scaffold adds to the first model less what it adds to the second, or the third."""
    models = [name.split(" · ")[0] for name in systems]
    sign = [-1.0 if name.endswith("tools") else 1.0 for name in systems]
    each = [[(m == "m1") - (m == other) for m in models] for other in ("m2", "m3")]
    return np.array(each) * sign


def test_additivity_by_voters_and_prompts_is_hotelling_s_by_hand() -> None:
    votes = drawn(0, World(voters=30, votes=60))
    prompts = [f"p{i % 25}" for i in range(len(votes["voter"]))]
    data = Comparisons.from_arrays(**votes, prompt=prompts)
    fitted, contrasts = fit(data), interactions(data.models)
    inference = infer(fitted, data, ("voter", "prompt"))
    by_voter, by_prompt, by_both = (
        jackknife(fitted, data, groups)[0]
        for groups in (grouping(data, "voter"), grouping(data, "prompt"), intersection(data))
    )
    clustered = by_voter + positive_part(by_prompt - by_both)
    gaps, known = contrasts @ fitted.theta, inference.of(contrasts).df.min()
    values = [
        gaps @ np.linalg.solve(contrasts @ matrix @ contrasts.T, gaps) / 2 * (known - 1) / known
        for matrix in (clustered, sandwich_covariance(fitted, data))
    ]
    test = _additivity(inference, contrasts)
    assert (test.statistic, test.df) == pytest.approx((min(values), known - 1))
    assert test.p == pytest.approx(f.sf(min(values), 2, known - 1))


def test_confounded_parts_are_named() -> None:
    a, b = ["m · x", "m · x", "n · y"] * 4, ["n · y", "o · x", "o · x"] * 4
    levels = {
        "model": {"m · x": "m", "n · y": "n", "o · x": "o"},
        "tool": {"m · x": "x", "n · y": "y", "o · x": "x"},
    }
    votes = Comparisons.from_arrays(a, b, ["model_a", "model_b", "tie"] * 4)
    with pytest.raises(NotIdentifiedError) as refused:
        rate_factors(votes, levels)
    assert str(refused.value) == (
        "The votes cannot tell apart model m, o from n; tool x from y: in every vote these differ "
        "together or not at all. Collect votes between systems that differ in one factor alone."
    )


def test_a_part_that_always_wins_has_no_finite_value() -> None:
    votes = drawn()
    votes["outcome"] = [
        "model_a"
        if a.endswith("tools") and b.endswith("plain")
        else "model_b"
        if b.endswith("tools") and a.endswith("plain")
        else outcome
        for a, b, outcome in zip(votes["model_a"], votes["model_b"], votes["outcome"], strict=True)
    ]
    with pytest.raises(NotIdentifiedError, match="scaffold=tools"):
        rated(votes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": 1.0}, "ridge 1.0"),
        ({"interval": "hessian"}, "interval 'hessian'"),
        ({"ties": "grounded", "both_bad": "outcome"}, "zero of their own"),
    ],
)
def test_what_factors_are_not_rated_with_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        rated(drawn(), **options)


def test_levels_that_say_nothing_are_refused() -> None:
    votes = Comparisons.from_arrays(**drawn())
    with pytest.raises(DataError, match="two or more"):
        rate_factors(votes, {"model": LEVELS["model"]})
    with pytest.raises(DataError, match="All systems have the scaffold 'x'"):
        rate_factors(votes, LEVELS | {"scaffold": dict.fromkeys(NAMES, "x")})
    with pytest.raises(DataError, match="has no scaffold"):
        rate_factors(votes, LEVELS | {"scaffold": {}})


def test_unknown_voters_are_mentioned() -> None:
    votes = {name: column for name, column in drawn().items() if name != "voter"}
    report = rated(votes)
    assert report.to_dict()["additivity"]["df"] is None
    data = Comparisons.from_arrays(**votes)
    contrasts = interactions(data.models)
    gaps, matrix = contrasts @ fit(data).theta, sandwich_covariance(fit(data), data)
    statistic = gaps @ np.linalg.solve(contrasts @ matrix @ contrasts.T, gaps) / 2
    assert report.additivity.statistic == pytest.approx(statistic)
    assert report.additivity.p == pytest.approx(chi2.sf(2 * statistic, 2))
