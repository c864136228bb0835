"""Expected utility: worked by hand, absent terms, and where the first place turns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rating import DataError, NotIdentifiedError
from rating.sentences import Sentence
from rating.value.board import value
from rating.value.figures import Drawn
from rating.value.utility import TERMS, Terms, Weights, read_weights
from tests.rating.value.planted import TEN

NONE = Weights(wrong=0, refusal=0, dollars=0, seconds=0)


def _drawn(values: list[float], left_out: dict[str, Sentence] | None = None) -> Drawn:
    value = np.array(values)
    return Drawn(value, np.tile(value, (50, 1)), left_out or {}, np.full(len(values), 9))


def _terms(**less: list[float]) -> Terms:
    each = {name: _drawn(values) for name, values in less.items()}
    return Terms(("x", "y", "z"), _drawn([0.6, 0.5, 0.4]), each)


def test_utility_is_the_sum_of_its_parts_as_worked_by_hand() -> None:
    terms = _terms(wrong=[0.1, 0, 0], refusal=[0, 0.2, 0], dollars=[20, 5, 1], seconds=[4, 2, 1])
    done = terms.weighed(Weights(wrong=2, refusal=0.5, dollars=0.01, seconds=0.02))
    assert {row.model: round(row.utility, 9) for row in done.models} == {
        "x": 0.02,  # .6 - 3 * .1 - .01 * 20 - .02 * 4
        "y": 0.31,  # .5 - .5 * .2 - .05 - .04
        "z": 0.37,  # .4 - .01 - .02
    }
    assert [row.model for row in done.models] == ["z", "y", "x"]
    assert all(sum(row.parts.values()) == pytest.approx(row.utility) for row in done.models)


def test_an_answer_preferred_though_wrong_counts_nothing_at_a_weight_of_zero() -> None:
    done = _terms(wrong=[0.1, 0, 0]).weighed(NONE)
    assert done.models[0].model == "x"
    assert done.models[0].utility == pytest.approx(0.5)


def test_a_term_without_data_is_absent_with_a_sentence_and_not_zero() -> None:
    done = _terms(dollars=[20, 5, 1]).weighed(Weights())
    assert set(done.models[0].parts) == {"preferred", "dollars"}
    assert [note.split(":")[0] for note in done.notes] == [
        "No answer is labelled as wrong or harmful",
        "No answer is labelled as a refusal or none",
        "No time is known",
    ]
    assert {turn.weight for turn in done.turns} == {"dollars"}


def test_a_model_whose_term_is_not_known_is_left_out_where_that_term_weighs() -> None:
    cost = _drawn([20, np.nan, 1], {"y": Sentence("no price is known")})
    terms = Terms(("x", "y", "z"), _drawn([0.6, 0.5, 0.4]), {"dollars": cost})
    weighed = terms.weighed(Weights(dollars=0.02))
    assert weighed.left_out == {"y": "no price is known"}
    assert [row.model for row in weighed.models] == ["z", "x"]
    assert [row.model for row in terms.weighed(NONE).models] == ["x", "y", "z"]


def test_where_nobody_has_all_that_is_weighed_that_is_said() -> None:
    cost = _drawn([20, np.nan, np.nan], dict.fromkeys("yz", Sentence("no price is known")))
    terms = Terms(("x", "y", "z"), _drawn([0.6, 0.5, 0.4]), {"dollars": cost})
    with pytest.raises(NotIdentifiedError, match="no price is known"):
        terms.weighed(Weights(dollars=0.1))


def test_the_weight_that_turns_the_first_place_is_where_two_lines_cross() -> None:
    (turn,) = _terms(dollars=[20, 5, 1]).weighed(Weights(dollars=0)).turns
    # .6 - 20 w = .5 - 5 w at w = 1 / 150; against z at .2 / 19.
    assert turn.above == pytest.approx(1 / 150)
    assert turn.first_above == "y"
    assert (turn.below, turn.first_below) == (None, None)
    assert turn.lead_without == pytest.approx(0.1)
    (turn,) = _terms(dollars=[20, 5, 1]).weighed(Weights(dollars=0.01)).turns
    assert turn.below == pytest.approx(1 / 150)
    assert turn.first_below == "x"
    assert turn.above == pytest.approx(0.1 / 4)
    assert turn.first_above == "z"


@given(st.integers(0, 10_000))
def test_at_every_turn_another_model_is_first_beyond_and_not_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    less = {name: rng.random(3).tolist() for name in TERMS}
    terms = _terms(**less)
    weights = Weights(*rng.random(4))
    done = terms.weighed(weights)
    for turn in done.turns:
        for end, other, sign in (
            (turn.below, turn.first_below, -1),
            (turn.above, turn.first_above, 1),
        ):
            if end is None:
                continue
            before, beyond = (max(end + sign * step, 0.0) for step in (-1e-6, 1e-6))
            there = [
                terms.weighed(replace(weights, **{turn.weight: w})).models[0].model
                for w in (before, beyond)
            ]
            assert there[0] == done.models[0].model
            assert there[1] == other or end < 1e-6


def test_the_planted_trade_of_mistakes_against_preference_is_recovered() -> None:
    world = replace(TEN, each=60, wrong=(0.5, 0.02) + (0.1,) * 8, refused=(0.0,) * 9 + (0.5,))
    votes, figures = world.draw(np.random.default_rng(0))
    terms = Terms.of(value(votes, figures).draws, np.random.default_rng(1))
    careless, careful = (terms.weighed(replace(NONE, wrong=w)).models[0].model for w in (0.0, 3.0))
    assert careless == careful == "m1"  # half of what m0 wins with is wrong
    refusing = {row.model: row for row in terms.weighed(replace(NONE, refusal=1.0)).models}
    assert refusing["m9"].parts["refusal"] == pytest.approx(-0.5, abs=0.05)
    by_wrong = terms.weighed(NONE)
    share = {row.model: -row.parts["wrong"] for row in by_wrong.models}
    assert share["m0"] == pytest.approx(0.5 * 0.7, abs=0.05)  # wrong as often as right, and won


def test_intervals_are_joint_and_the_first_is_likely_first() -> None:
    votes, figures = replace(TEN, each=60).draw(np.random.default_rng(0))
    terms = Terms.of(value(votes, figures).draws, np.random.default_rng(1))
    done = terms.weighed(replace(NONE, dollars=0.01))
    assert all(row.lower <= row.utility <= row.upper for row in done.models)
    assert sum(row.first for row in done.models) == pytest.approx(1)
    assert done.models[0].first == max(row.first for row in done.models)


def test_shares_of_refusals_from_elsewhere_weigh_only_where_votes_have_none() -> None:
    votes, figures = replace(TEN, each=60).draw(np.random.default_rng(0))
    terms = Terms.of(value(votes, figures).draws, np.random.default_rng(1))
    words = {"note": Sentence("From a pack."), "missing": Sentence("not asked")}
    counted = {"m0": (30.0, 100), "m1": (5.0, 100), "other": (1.0, 2)}
    lent = terms.with_refusals(counted, np.random.default_rng(0), **words)
    done = lent.weighed(replace(NONE, refusal=1.0))
    parts = {row.model: row.parts["refusal"] for row in done.models}
    assert parts == pytest.approx({"m0": -0.3, "m1": -0.05})
    assert {*done.left_out.values()} == {"not asked"}
    assert "From a pack." in done.notes
    low, high = np.quantile(lent.less["refusal"].rounds[:, 0], [0.025, 0.975])
    assert (low, high) == pytest.approx((0.217, 0.394), abs=0.01)  # Beta(30.5, 70.5)
    again = lent.with_refusals({"m0": (1.0, 2), "m1": (1.0, 2)}, np.random.default_rng(0), **words)
    assert again is lent
    assert terms.with_refusals({"m0": (1.0, 2)}, np.random.default_rng(0), **words) is terms


@pytest.mark.parametrize(
    "text", ["wrong", "wrong=x", "price=1", "wrong=-1", "wrong=inf", "wrong=nan"]
)
def test_what_is_no_weight_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(DataError, match="weight"):
        read_weights(text)
