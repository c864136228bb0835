"""Two orders made one verdict."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.calls import orders_within_budget
from judge.case import Order
from judge.grammar import Preference
from judge.verdict import Verdict, consistency, position_effect, preference_for_a, reconcile
from rating import Outcome
from rating.errors import DataError

A, B, TIE, BAD = Outcome.A, Outcome.B, Outcome.TIE, Outcome.BOTH_BAD
ANSWERS = (A, B, TIE, BAD, None)


@pytest.mark.parametrize(
    ("as_is", "swapped", "outcome", "leaning"),
    [
        (A, B, A, None), (B, A, B, None), (TIE, TIE, TIE, None), (BAD, BAD, BAD, None),
        (A, A, TIE, "first"), (B, B, TIE, "second"), (A, TIE, TIE, "first"),
        (TIE, A, TIE, "first"), (B, TIE, TIE, "second"), (TIE, BAD, TIE, None),
        (A, None, None, None), (None, B, None, None), (None, TIE, None, None),
        (None, None, None, None),
    ],
)  # fmt: skip
def test_a_win_needs_both_orders(
    as_is: Outcome | None, swapped: Outcome | None, outcome: Outcome | None, leaning: str | None
) -> None:
    verdict = reconcile("c", as_is, swapped)
    assert (verdict.outcome, verdict.inconsistent) == (outcome, leaning)


@pytest.mark.parametrize(("one", "other"), list(itertools.product(ANSWERS, repeat=2)))
def test_naming_the_sides_the_other_way_round_turns_the_verdict_and_not_the_leaning(
    one: Outcome | None, other: Outcome | None
) -> None:
    here, there = reconcile("c", one, other), reconcile("c", other, one)
    assert there.outcome == (here.outcome and here.outcome.swapped())
    assert there.inconsistent == here.inconsistent


def test_consistency_counts_by_direction_and_leaves_the_undecided_out() -> None:
    pairs = [(A, B)] * 5 + [(A, A)] * 3 + [(B, B)] + [(A, None)] * 7
    agreement = consistency([reconcile("c", *pair) for pair in pairs])
    assert (agreement["n_consistent"], agreement["n_undecided"]) == (5, 7)
    assert (agreement["n_first"], agreement["n_second"]) == (3, 1)
    assert (agreement["rate"], agreement["first_rate"]) == (5 / 9, 3 / 4)


def test_rates_without_cases_are_none_and_not_zero() -> None:
    agreement = consistency([Verdict("c", None)])
    assert agreement["rate"] is None
    assert agreement["first_rate"] is None


PREFERENCES = st.floats(0, 1).map(Preference)


@given(PREFERENCES, PREFERENCES)
def test_the_mean_preference_does_not_know_the_order(one: Preference, other: Preference) -> None:
    here, there = preference_for_a(one, other), preference_for_a(other, one)
    assert here is not None
    assert there == pytest.approx(1 - here)
    assert preference_for_a(one, None) is None


def test_an_effect_from_one_case_is_refused() -> None:
    with pytest.raises(DataError, match="at least two"):
        position_effect([(Preference(1.0), Preference(1.0))])


def test_the_error_of_two_cases_is_half_of_their_difference() -> None:
    fair, leaning = (Preference(1.0), Preference(0.0)), (Preference(1.0), Preference(1.0))
    effect = position_effect([fair, leaning])
    assert (effect.effect, effect.standard_error) == pytest.approx((0.25, 0.25))


def judge_who_leans(
    merit: float, leaning: float, order: Order, rng: np.random.Generator
) -> Preference:
    shown = merit if order is Order.AB else 1 - merit
    return Preference(float(np.clip(shown + leaning + rng.normal(0, 0.05), 0, 1)))


def test_a_subset_asked_twice_takes_a_planted_leaning_off_those_asked_once() -> None:
    """True mean .5; all shown in one order, so that without the correction it would be .7."""
    rng = np.random.default_rng(5)
    merits = rng.uniform(0.3, 0.7, 600)
    both = [tuple(judge_who_leans(m, 0.2, o, rng) for o in Order) for m in merits[:150]]
    effect = position_effect([(one, other) for one, other in both])
    once = [judge_who_leans(m, 0.2, Order.AB, rng) for m in merits[150:]]
    raw = np.mean([p.first for p in once])
    corrected = np.mean([effect.corrected(p, Order.AB) for p in once])
    error = np.hypot(effect.standard_error, np.std(merits) / np.sqrt(len(once)))
    assert effect.effect == pytest.approx(0.2, abs=4 * effect.standard_error)
    assert raw > 0.65
    assert corrected == pytest.approx(0.5, abs=4 * error)


def test_a_budget_swaps_the_share_it_was_given_and_is_fair_about_who_comes_first() -> None:
    """4,000 draws: 4 standard errors are .024 of the share and .032 of the coin."""
    orders = [orders_within_budget(f"case {n}", seed="s", share=0.2) for n in range(4000)]
    assert np.mean([len(asked) == 2 for asked in orders]) == pytest.approx(0.2, abs=0.026)
    assert np.mean([asked[0] is Order.AB for asked in orders]) == pytest.approx(0.5, abs=0.032)
    assert all(set(asked) == set(Order) for asked in orders if len(asked) == 2)
    assert {asked[0] for asked in orders if len(asked) == 2} == set(Order), "drawn apart"


def test_a_larger_share_only_adds_orders_and_another_seed_draws_anew() -> None:
    names = [f"case {n}" for n in range(200)]
    few = [orders_within_budget(name, seed="s", share=0.2) for name in names]
    more = [orders_within_budget(name, seed="s", share=0.6) for name in names]
    other = [orders_within_budget(name, seed="t", share=0.2) for name in names]
    assert all(set(one) <= set(two) for one, two in zip(few, more, strict=True))
    assert few != other


def test_a_share_is_a_share() -> None:
    with pytest.raises(DataError, match=r"1\.5"):
        orders_within_budget("c", seed="s", share=1.5)
