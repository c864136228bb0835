"""Agreement of scores with ratings and votes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from judge.probe.people import (
    NO_CEILING,
    Alignment,
    RatedTexts,
    _net_agreement,
    draw_prompts,
    rank_correlation,
    rated_pairs,
)
from judge.probe.similarity import JACCARD, LENGTH_COUNTER, NO_VALUE, random_measure
from rating.errors import DataError
from tests.judge.probe.texts import fixed_rng as rng
from tests.judge.probe.texts import rated, rounds_at_nothing

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30)


def drawn(prompt: np.ndarray) -> np.ndarray:
    return draw_prompts(prompt, np.random.default_rng(1))


@given(rows)
def test_the_rank_correlation_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    prompt = np.arange(len(x))
    value = rank_correlation(x, y, prompt, drawn(prompt)).value
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(value)
    else:
        assert value == pytest.approx(spearmanr(x, y).statistic)


def test_each_round_is_the_rank_correlation_of_the_rows_that_were_drawn() -> None:
    x, y = np.random.default_rng(2).integers(0, 6, size=(2, 30)).astype(float)
    prompt = np.repeat(np.arange(10), 3)
    counts = drawn(prompt)
    correlation = rank_correlation(x, y, prompt, counts)
    for i in (1, 2, 3):
        times = counts[i][prompt].astype(int)
        want = spearmanr(np.repeat(x, times), np.repeat(y, times)).statistic
        assert correlation.rounds[i - 1] == pytest.approx(want)


def test_pairs_are_compared_within_a_prompt_alone() -> None:
    prompt = np.array([0, 1, 0, 1, 0])
    ratings = np.array([3.0, 1.0, 2.0, 2.0, 2.0])
    # Prompt 0: row 0 is above rows 2 and 4, which people tie. Prompt 1: row 3 is above row 1.
    right = rated_pairs(ratings, ratings, prompt, drawn(prompt))
    assert (right.value, right.n) == (1, 3)
    scores = np.array([3.0, 5.0, 3.0, 4.0, 1.0])  # a tie, agreement, and disagreement
    net = rated_pairs(scores, ratings, prompt, drawn(prompt))
    assert net.value == 0


def test_a_tie_is_neither_agreement_nor_disagreement() -> None:
    prompt = np.arange(3)
    votes = np.array([[3.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    verdict = np.array([1.0, 0.0, 1.0])
    net = _net_agreement(verdict, votes, prompt, drawn(prompt))
    assert net.value == pytest.approx((3 - 1 + 0 - 2) / 8)
    assert net.n == 8


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="Ratings 'x' of shape"):
        RatedTexts("x", ("a",), ("b", "c"), np.arange(2), ("d",), np.zeros((2, 1)))
    with pytest.raises(DataError, match="no number"):
        RatedTexts("x", ("a",), ("b",), np.arange(1), ("d",), np.array([[np.nan]]))


def summaries() -> Alignment:
    return Alignment((rated(),), "made up")


def test_an_oracle_is_at_one_with_ratings() -> None:
    plan = summaries()
    axis = plan.read(plan.truth(), rng=rng())
    assert axis.estimate.value == pytest.approx(1)
    assert (axis.part("accuracy", "summaries").value, axis.clusters) == (1, 30)
    assert axis.warnings == (NO_CEILING,)


def test_the_value_is_the_mean_of_pairs_and_ranks() -> None:
    axis = (plan := summaries()).read(plan.ask(JACCARD), rng=rng())
    pairs, rank = (
        axis.part(group, "summaries").value or 0 for group in ("net agreement", "rank correlation")
    )
    assert axis.estimate.value == pytest.approx((pairs + rank) / 2)


def test_sets_of_ratings_count_the_same() -> None:
    few, many = rated(12, seed=3), rated(40, seed=5)
    plan = Alignment((few, many), "made up")
    scores = plan.ask(JACCARD)
    axis = plan.read(scores, rng=rng())
    cut = np.split(scores, [len(few.texts)])
    alone = [
        Alignment((one,), "made up").read(own, rng=rng()).estimate.value or 0
        for one, own in zip((few, many), cut, strict=True)
    ]
    assert axis.estimate.value == pytest.approx(np.mean(alone))
    assert axis.clusters == 12 + 40


def test_lots_are_at_nothing() -> None:
    assert rounds_at_nothing(summaries(), 40) >= 33  # of 95%: fewer by chance once in 1,000
    axis = (plan := summaries()).read(plan.ask(random_measure(1)), rng=rng())
    assert axis.estimate.value == pytest.approx(0, abs=0.3)


def test_a_length_counter_does_well_where_people_like_what_is_long() -> None:
    estimate = (plan := summaries()).read(plan.ask(LENGTH_COUNTER), rng=rng()).estimate
    assert estimate.lower is not None
    assert estimate.lower > 0.5


def test_dimensions_are_shown_each_and_count_as_their_mean() -> None:
    one = rated()
    two = RatedTexts(
        "summaries",
        one.references,
        one.texts,
        one.prompt,
        ("relevance", "brevity"),
        np.hstack([one.ratings, 0.2 * (1 - one.ratings)]),
    )
    plan = Alignment((two,), "made up")
    axis = plan.read(plan.truth(), rng=rng())
    assert axis.estimate.value == pytest.approx(1)
    assert axis.part("rank correlation", "summaries, relevance").value == pytest.approx(1)
    assert axis.part("rank correlation", "summaries, brevity").value == pytest.approx(-1)


def test_scores_that_never_differ_have_no_value() -> None:
    plan = summaries()
    axis = plan.read(np.ones_like(plan.truth()), rng=rng())
    assert axis.estimate.value is None
    assert NO_VALUE in axis.warnings
    assert axis.part("net agreement", "summaries").value == 0
