"""Arena-Hard: verdicts of two games a prompt, and the uncertainty of prompts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.grammar import NOT_PLAYED
from judge.scoring.arena_hard import Games, arena_hard_score
from rating.errors import DataError

VERDICTS = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
OTHER = dict(zip(VERDICTS, reversed(VERDICTS), strict=True))
games = st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(VERDICTS)), min_size=2)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_two_prompts_by_hand() -> None:
    # The baseline is on side A in the first game. Prompt 1: 3 of 3 and 1 of 1; prompt 2: half
    # of 1 and 0 of 3: the model has 4.5 of 8.
    score = arena_hard_score([("B>>A", "A>B"), ("A=B", "B>>A")], rng())
    assert score.score == pytest.approx(100 * 4.5 / 8)
    assert (score.n_prompts, score.n_dropped) == (2, 0)


def test_the_baseline_against_itself_is_at_fifty_without_doubt() -> None:
    score = arena_hard_score([("A=B", "A=B")] * 20, rng())
    assert (score.score, score.standard_error, score.lower, score.upper) == (50, 0, 50, 50)


def test_a_prompt_with_a_game_without_a_verdict_is_left_out_and_counted() -> None:
    score = arena_hard_score([("B>A", "A>B"), ("B>A", None), (None, None), ("A=B", "A=B")], rng())
    assert (score.score, score.n_prompts, score.n_dropped) == (75.0, 2, 2)


def test_of_a_prompt_asked_in_one_order_that_game_counts() -> None:
    # 3 of 3; half of 1; 1 and 0 of 2; the last has no verdict where one was asked for.
    played = [("B>>A", NOT_PLAYED), (NOT_PLAYED, "A=B"), ("B>A", "B>A"), (None, NOT_PLAYED)]
    score = arena_hard_score(played, rng())
    assert score.score == pytest.approx(100 * 4.5 / 6)
    assert (score.n_prompts, score.n_dropped) == (3, 1)


def test_without_two_prompts_there_is_no_interval() -> None:
    assert math.isnan(arena_hard_score([], rng()).score)
    one = arena_hard_score([("B>A", "A>B")], rng())
    assert one.score == 100
    assert math.isnan(one.standard_error)


def test_both_games_of_a_prompt_are_resampled_together() -> None:
    # Two games that always agree carry the information of one: resampling the games or their
    # three copies apart would make the error a root of 2 or 6 too small.
    played: list[Games] = [("B>>A", "A>>B"), ("A>>B", "B>>A")] * 200
    score = arena_hard_score(played, rng(), draws=4000)
    assert score.standard_error == pytest.approx(100 * 0.5 / math.sqrt(400), rel=0.05)
    assert score.upper - score.lower == pytest.approx(2 * 1.96 * score.standard_error, rel=0.06)


def test_a_verdict_that_was_not_offered_is_refused() -> None:
    with pytest.raises(DataError, match="no verdict 'C'"):
        arena_hard_score([("C", "A>B")], rng())


@settings(max_examples=30)
@given(games)
def test_swapping_model_and_baseline_turns_the_score_round(played: list[tuple[str, str]]) -> None:
    score = arena_hard_score(played, rng(), draws=10)
    turned = arena_hard_score([(OTHER[a], OTHER[b]) for a, b in played], rng(), draws=10)
    assert turned.score == pytest.approx(100 - score.score)
    assert turned.standard_error == pytest.approx(score.standard_error)


@settings(max_examples=30)
@given(games)
def test_copies_and_the_order_of_prompts_leave_the_score_alone(
    played: list[tuple[str, str]],
) -> None:
    score = arena_hard_score(played, rng(), draws=10)
    again = arena_hard_score(list(reversed(played)) * 3, rng(), draws=10)
    assert again.score == pytest.approx(score.score)
