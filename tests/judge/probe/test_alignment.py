"""Alignment with people, from ratings, from votes, and from both."""

import numpy as np
import pytest

from judge.probe.alignment import NO_CEILING, Alignment
from judge.probe.axes import NO_VALUE
from judge.probe.evaluators import LENGTH_COUNTER, random_measure
from judge.probe.people import RatedTexts
from judge.probe.similarity import JACCARD
from rating.errors import DataError
from tests.judge.probe.texts import rated, rounds_at_nothing, voted


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def both() -> Alignment:
    return Alignment((rated(),), (voted(),), "made up")


def test_an_oracle_is_at_one_with_ratings_and_votes() -> None:
    plan = both()
    axis = plan.read(plan.truth(), rng=rng())
    assert axis.estimate.value == pytest.approx(1)
    assert axis.part("accuracy", "votes").value == 1
    assert axis.part("ceiling", "votes, reached over highest").value == 1
    assert axis.clusters == 30 + 60
    assert axis.warnings == ()


def test_the_value_is_the_mean_of_pairs_and_ranks() -> None:
    axis = (plan := both()).read(plan.ask(JACCARD), rng=rng())
    pairs = [axis.part("net agreement", name).value or 0 for name in ("summaries", "votes")]
    rank = axis.part("rank correlation", "summaries").value or 0
    assert axis.estimate.value == pytest.approx((np.mean(pairs) + rank) / 2)


def test_split_votes_hold_an_oracle_down_and_the_ceiling_says_how_far() -> None:
    plan = Alignment((), (voted(votes=(3, 1)),), "made up")
    axis = plan.read(plan.truth(), rng=rng())
    assert axis.estimate.value == 0.5
    assert axis.part("accuracy", "votes").value == 0.75
    assert axis.part("ceiling", "votes, people agree").value == 0.5


def test_ratings_alone_leave_the_ceiling_unknown() -> None:
    axis = (plan := Alignment((rated(),), (), "made up")).read(plan.truth(), rng=rng())
    assert axis.warnings == (NO_CEILING,)


def test_lots_are_at_nothing() -> None:
    assert rounds_at_nothing(both(), 40) >= 33  # of 95 %: fewer by chance less than once in 1,000
    axis = (plan := both()).read(plan.ask(random_measure(1)), rng=rng())
    assert axis.estimate.value == pytest.approx(0, abs=0.3)


def test_a_length_counter_does_well_where_people_like_what_is_long() -> None:
    plan = Alignment((rated(),), (), "made up")
    found = plan.read(plan.ask(LENGTH_COUNTER), rng=rng()).estimate
    assert found.lower is not None
    assert found.lower > 0.5


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
    plan = Alignment((two,), (), "made up")
    axis = plan.read(plan.truth(), rng=rng())
    assert axis.estimate.value == pytest.approx(1)
    assert axis.part("rank correlation", "summaries, relevance").value == pytest.approx(1)
    assert axis.part("rank correlation", "summaries, brevity").value == pytest.approx(-1)


def test_scores_that_never_differ_have_no_value() -> None:
    plan = both()
    axis = plan.read(np.ones_like(plan.truth()), rng=rng())
    assert axis.estimate.value is None
    assert NO_VALUE in axis.warnings
    assert axis.part("net agreement", "votes").value == 0


def test_alignment_needs_people() -> None:
    with pytest.raises(DataError, match="needs ratings or votes"):
        Alignment((), (), "made up")
