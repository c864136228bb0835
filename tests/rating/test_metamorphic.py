"""What must not matter, and what must matter in a known way: for every model and option."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rating import (
    Comparisons,
    Fit,
    RateOptions,
    Ties,
    fit,
    hessian_covariance,
    rate,
    sandwich_covariance,
)
from tests.rating.builders import by_cluster
from tests.rating.drawn import Drawn, draw

ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]
N, K = 120, 4

Floats = NDArray[np.float64]
Kind = tuple[Ties, bool]
"""The model of ties, and whether there are covariates."""
EVERY: list[Kind] = [(ties, covariates) for covariates in (False, True) for ties in ALL]
WITHOUT_ZERO = [kind for kind in EVERY if kind[0] != "grounded"]
AT_A_BOUNDARY = [kind for kind in WITHOUT_ZERO if kind[0] != "half"]

COVARIANCES: dict[str, Callable[[Fit, Comparisons], Floats]] = {
    "hessian": lambda fitted, _: hessian_covariance(fitted),
    "sandwich": sandwich_covariance,
    "by voter": by_cluster,
}

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=3)


@dataclass(frozen=True, slots=True)
class Case:
    """Some votes and how they are fitted: with an order effect and a style, or without."""

    rows: Drawn
    ties: Ties
    covariates: bool

    def data(self, rows: Drawn | None = None, **columns: Any) -> Comparisons:
        rows = rows or self.rows
        if self.covariates:
            columns |= {"features": rows.features, "feature_names": ["length"]}
        return rows.comparisons(**columns)

    def fit(self, data: Comparisons, ridge: float = 0.0) -> Fit:
        return fit(data, ties=self.ties, order_effect=self.covariates, ridge=ridge)


def case_of(kind: Kind, seed: int) -> Case:
    ties, covariates = kind
    source: Ties = "grounded" if ties == "half" else ties  # half wins draw no ties themselves
    rng, strengths = np.random.default_rng(seed), np.linspace(-0.6, 0.6, K)
    rows = draw(rng, source, n=N, theta=strengths, order=0.2, style=(0.3,), n_voters=40)
    return Case(rows, ties, covariates)


def every(kinds: list[Kind]) -> pytest.MarkDecorator:
    names = [f"{ties} with covariates" if more else ties for ties, more in kinds]
    return pytest.mark.parametrize("kind", kinds, ids=names)


def same(fitted: Fit, other: Fit) -> None:
    assert fitted.x == pytest.approx(other.x, abs=1e-7)
    assert fitted.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-7)


def errors_are_the_same(one: Floats, two: Floats) -> None:
    assert one == pytest.approx(two, rel=1e-5, abs=1e-9)


# Names, sides, rows


@every(EVERY)
@quick
@given(seed=seeds, order=st.permutations(range(K)))
def test_models_under_other_names_keep_their_strengths_and_errors(
    kind: Kind, seed: int, order: list[int]
) -> None:
    case = case_of(kind, seed)
    named = replace(case.rows, models=tuple(f"name {i}" for i in order))
    one, two = case.data(), case.data(named)
    fitted, other = case.fit(one), case.fit(two)
    place = np.arange(len(fitted.x))
    place[:K] = order
    assert other.x[place] == pytest.approx(fitted.x, abs=1e-7)
    errors_are_the_same(
        sandwich_covariance(other, two)[np.ix_(place, place)], sandwich_covariance(fitted, one)
    )


@every(EVERY)
@quick
@given(seed=seeds)
def test_swapped_sides_turn_the_order_effect_round_and_nothing_else(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    rows = case.rows
    outcome = np.array([1, 0, 2, 3])[rows.outcome]
    swapped = replace(rows, a=rows.b, b=rows.a, outcome=outcome, features=-rows.features)
    one, two = case.data(), case.data(swapped)
    fitted, other = case.fit(one), case.fit(two)
    sign = np.ones(len(fitted.x))
    if case.covariates:
        sign[K] = -1
    assert sign * other.x == pytest.approx(fitted.x, abs=1e-7)
    errors_are_the_same(
        np.outer(sign, sign) * sandwich_covariance(other, two), sandwich_covariance(fitted, one)
    )


@every(WITHOUT_ZERO)
@quick
@given(seed=seeds)
def test_reversed_results_turn_everything_round_but_the_ties(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    reversed_ = replace(case.rows, outcome=np.array([1, 0, 2, 3])[case.rows.outcome])
    fitted, other = case.fit(case.data()), case.fit(case.data(reversed_))
    sign = -np.ones(len(fitted.x))
    if "tie" in fitted.likelihood.coordinates:
        sign[-1] = 1
    assert sign * other.x == pytest.approx(fitted.x, abs=1e-7)


@every(EVERY)
@quick
@given(seed=seeds)
def test_the_order_of_the_rows_leaves_no_trace(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    rows = case.rows
    shuffled = rows.taken(np.random.default_rng(seed).permutation(N))
    one, two = case.data(voter=rows.voter), case.data(shuffled, voter=shuffled.voter)
    fitted, other = case.fit(one), case.fit(two)
    same(fitted, other)
    errors_are_the_same(by_cluster(fitted, one), by_cluster(other, two))


@every(EVERY)
@quick
@given(seed=seeds)
def test_equal_rows_may_be_counted_together_in_any_portions(kind: Kind, seed: int) -> None:
    """A row of n votes is as good as n rows, or as rows of some and of the rest."""
    case = case_of(kind, seed)
    rows, rng = case.rows, np.random.default_rng(seed)
    times = rng.integers(1, 5, size=N)
    part = rng.integers(0, times + 1)
    one = case.data(voter=rows.voter, votes=times)
    twice = rows.taken(np.repeat(np.arange(N), 2))
    portions = np.column_stack([part, times - part]).ravel()
    two = case.data(twice, voter=twice.voter, votes=portions)
    fitted, other = case.fit(one), case.fit(two)
    same(fitted, other)
    errors_are_the_same(by_cluster(fitted, one), by_cluster(other, two))


# Numbers of votes, and weights


@every(EVERY)
@quick
@given(seed=seeds, times=st.integers(2, 4))
def test_votes_cast_again_and_votes_of_more_weight_give_the_same_strengths(
    kind: Kind, seed: int, times: int
) -> None:
    """Again by others they are so many votes more; by weight they are no vote more."""
    case = case_of(kind, seed)
    once = case.data()
    again = case.data(votes=np.full(N, times))
    weighing = case.data(weight=np.full(N, float(times)))
    fitted, more, heavier = case.fit(once), case.fit(again), case.fit(weighing)
    assert more.x == pytest.approx(fitted.x, abs=1e-7)
    assert heavier.x == pytest.approx(fitted.x, abs=1e-7)
    assert more.log_likelihood == pytest.approx(times * fitted.log_likelihood)
    assert heavier.log_loss == pytest.approx(fitted.log_loss)
    before = sandwich_covariance(fitted, once)
    errors_are_the_same(times * sandwich_covariance(more, again), before)
    errors_are_the_same(sandwich_covariance(heavier, weighing), before)


@every(EVERY)
@quick
@given(seed=seeds, method=st.sampled_from(["hessian", "sandwich", "by voter"]))
def test_votes_cast_again_by_their_voters_add_no_certainty_by_voter(
    kind: Kind, seed: int, method: str
) -> None:
    case = case_of(kind, seed)
    once = case.data(voter=case.rows.voter)
    again = case.data(voter=case.rows.voter, votes=np.full(N, 3))
    gain = 1 if method == "by voter" else 3
    before, after = (COVARIANCES[method](case.fit(data), data) for data in (once, again))
    assert np.diag(after) * gain == pytest.approx(np.diag(before), rel=1e-4)


@every(EVERY)
@quick
@given(seed=seeds, scale=st.floats(0.01, 100))
def test_the_scale_of_the_weights_does_not_matter(kind: Kind, seed: int, scale: float) -> None:
    case = case_of(kind, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 3, N)
    one = case.data(weight=weight, voter=case.rows.voter)
    two = case.data(weight=scale * weight, voter=case.rows.voter)
    fitted, other = case.fit(one), case.fit(two)
    assert other.x == pytest.approx(fitted.x, abs=1e-6)
    assert other.log_loss == pytest.approx(fitted.log_loss)
    for method in ("sandwich", "by voter"):
        ours, theirs = COVARIANCES[method](fitted, one), COVARIANCES[method](other, two)
        assert theirs == pytest.approx(ours, rel=1e-4, abs=1e-9)


# Entrants, limits


@every([("half", False)])
@quick
@given(seed=seeds, friend=st.integers(0, K - 1))
def test_an_entrant_that_only_ties_one_model_stands_beside_it_and_moves_nobody(
    kind: Kind, seed: int, friend: int
) -> None:
    case = case_of(kind, seed)
    rows = replace(case.rows, models=(*case.rows.models, "entrant"))
    grown = replace(
        rows,
        a=np.append(rows.a, [friend, K]),
        b=np.append(rows.b, [K, friend]),
        outcome=np.append(rows.outcome, [2, 2]),
        voter=np.append(rows.voter, [0, 0]),
        prompt=np.append(rows.prompt, [0, 0]),
        features=np.append(rows.features, np.zeros((2, 1)), axis=0),
    )
    fitted = case.fit(case.data())
    other = case.fit(case.data(grown))
    at = [other.models.index(name) for name in fitted.models]
    theta = other.theta[at]
    assert other.theta[other.models.index("entrant")] == pytest.approx(theta[friend], abs=1e-7)
    assert theta - theta[0] == pytest.approx(fitted.theta - fitted.theta[0], abs=1e-7)


@every(EVERY)
@quick
@given(seed=seeds)
def test_an_endless_ridge_leaves_no_strength(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    fitted = case.fit(case.data(), ridge=1e9)
    assert np.abs(fitted.theta).max() < 1e-6


@every(EVERY)
@quick
@given(seed=seeds)
def test_a_vanishing_ridge_is_none(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    data = case.data()
    assert case.fit(data, ridge=1e-9).x == pytest.approx(case.fit(data).x, abs=1e-6)


@every(AT_A_BOUNDARY)
@quick
@given(seed=seeds)
def test_without_ties_their_models_are_bradley_terry(kind: Kind, seed: int) -> None:
    case = case_of(kind, seed)
    decided = replace(case.rows, outcome=case.rows.outcome % 2)
    data = case.data(decided)
    fitted = case.fit(data)
    plain = replace(case, ties="half").fit(data)
    assert fitted.x == pytest.approx(plain.x, abs=1e-7)
    assert not fitted.parameters[-1].free


# The scale


@every(EVERY[:4])
@quick
@given(seed=seeds, mean=st.floats(-2000, 2000), anchor=st.integers(0, K - 1))
def test_an_anchor_or_another_mean_moves_all_ratings_alike(
    kind: Kind, seed: int, mean: float, anchor: int
) -> None:
    case = case_of(kind, seed)
    data = case.data()
    plain = RateOptions(ties=case.ties, both_bad="outcome", interval="hessian")
    name = data.models[anchor]
    there = {row.model: row for row in rate(data, plain).ratings}
    for moved in (replace(plain, mean=mean), replace(plain, anchor=(name, mean))):
        rows = {row.model: row for row in rate(data, moved).ratings}
        by = rows[name].rating - there[name].rating
        for model, row in rows.items():
            old = there[model]
            assert row.rating - old.rating == pytest.approx(by, abs=1e-6)
            assert (row.se, row.strength, row.rank) == (old.se, old.strength, old.rank)
            assert row.upper - row.lower == pytest.approx(old.upper - old.lower, abs=1e-6)
        if moved.anchor:
            assert rows[name].rating == pytest.approx(mean, abs=1e-9)
