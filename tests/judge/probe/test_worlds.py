"""Simulated arenas: the truth is what endless votes reach, and a copy is like its original."""

import math

import numpy as np
import pytest

from judge.probe.people import (
    MEASURES,
    World,
    bradley_terry_strengths,
    by_bootstrap,
    by_bradley_terry,
    by_online_elo,
    in_another_order,
)
from rating import Comparisons, fit_bradley_terry, rate, to_nats
from rating.errors import NotIdentifiedError
from rating.rows import VoteRows
from rating.variants import online_elo
from tests.judge.probe.texts import rng
from tests.judge.probe.texts import world as made_up
from tests.simulation import D1


def counted(votes: VoteRows) -> Comparisons:
    return votes.comparisons(voter=votes.groups.get("voter"))


def small(taste: float = 0.0, tie_rate: float = 0.0) -> World:
    return made_up(rng(1), n_models=4, n_voters=60, taste=taste, tie_rate=tie_rate)


def test_without_tastes_and_ties_the_truth_is_the_strengths() -> None:
    world = small()
    assert world.truth() == pytest.approx(world.strengths, abs=1e-7)


def test_under_even_pairs_the_truth_is_that_of_the_other_harness() -> None:
    a, b = (codes.ravel() for codes in np.meshgrid(range(10), range(10)))
    apart = a != b
    sides = a[apart], b[apart]
    battles = VoteRows.scored(tuple(D1.names), *sides, np.full(len(sides[0]), 0.5))
    world = World(battles, D1.strengths, taste=0.4, tie_rate=0.0)
    assert world.truth() == pytest.approx(D1.pseudo_true(), abs=1e-7)


def test_the_oracle_s_votes_give_the_truth_exactly() -> None:
    world = small(taste=0.8, tie_rate=0.2)
    assert bradley_terry_strengths(world.oracle(), rng()) == pytest.approx(world.truth(), abs=1e-7)


def test_votes_cast_again_and_again_average_to_the_truth() -> None:
    world = made_up(rng(2), n_models=4, n_voters=300, taste=0.5, tie_rate=0.1)
    draw = rng(3)
    thetas = np.array([fit_bradley_terry(counted(world.cast(draw))).theta for _ in range(200)])
    error = thetas.std(axis=0, ddof=1) / math.sqrt(len(thetas))
    assert (np.abs(thetas.mean(axis=0) - world.truth()) < 4 * error + 0.005).all()


def test_a_voter_s_votes_go_together_as_far_as_tastes_do() -> None:
    world = small(taste=1.0)
    votes = world.battles
    same = (votes.voter[:, None] == votes.voter) & (votes.a[:, None] == votes.a)
    same &= (votes.b[:, None] == votes.b) & ~np.eye(votes.n, dtype=bool)
    draw = rng(4)
    liking = np.array([world.liking(draw) for _ in range(50)])
    first, second = np.nonzero(same)
    assert (liking[:, first] == liking[:, second]).all()
    spread = liking.std(axis=0).mean()
    assert spread == pytest.approx(math.sqrt(2), rel=0.1)


def test_ties_come_as_often_as_the_world_says() -> None:
    world = made_up(rng(5), n_voters=300, tie_rate=0.25)
    ties = (world.cast(rng(6)).score == 0.5).mean()
    assert abs(ties - 0.25) < 4 * math.sqrt(0.25 * 0.75 / world.battles.n)


def test_a_world_like_what_was_seen_has_its_strengths_tastes_and_battles() -> None:
    original = made_up(rng(7), n_models=6, n_voters=400, taste=0.7, tie_rate=0.2)
    votes = original.cast(rng(8))
    copy = World.like(votes)
    assert copy.strengths == pytest.approx(original.strengths, abs=0.3)
    assert copy.taste == pytest.approx(0.7, abs=0.2)
    assert copy.tie_rate == pytest.approx(0.2, abs=0.04)
    assert copy.battles is votes


def test_without_voters_a_copy_has_no_tastes() -> None:
    votes = small(taste=1.0).cast(rng(9))
    alone = VoteRows.scored(votes.models, votes.a, votes.b, votes.score)
    assert World.like(alone).taste == 0.0


def test_counted_votes_come_back_one_by_one_and_count_to_the_same() -> None:
    data = counted(small(taste=0.5, tie_rate=0.3).cast(rng(10)))
    again = counted(VoteRows.of(data, rng(11)))
    for name in ("models", "pairs", "outcome", "votes", "voter"):
        assert np.array_equal(getattr(again, name), getattr(data, name)), name


def test_permuted_votes_are_as_many_of_each_kind_and_say_nothing() -> None:
    world = made_up(rng(12), n_models=3, n_voters=500, spread=2.0, tie_rate=0.2)
    votes = world.cast(rng(13))
    one_sided = votes.taken(np.flatnonzero(votes.a < votes.b))  # side A is the weaker one
    mixed = one_sided.permuted(rng(14))
    assert (mixed.score == 0.5).sum() == (one_sided.score == 0.5).sum()
    assert np.abs(fit_bradley_terry(counted(mixed)).theta).max() < 0.3
    assert np.abs(fit_bradley_terry(counted(one_sided)).theta).max() > 1


def test_votes_that_leave_a_model_out_say_which() -> None:
    votes = VoteRows.scored(("x", "y", "z"), np.array([0]), np.array([1]), np.array([1.0]))
    with pytest.raises(NotIdentifiedError, match="1 votes none is on z"):
        by_bradley_terry(votes, rng())


def test_both_kinds_of_tie_are_half_a_vote() -> None:
    data = Comparisons.from_arrays(["x"] * 3, ["y"] * 3, ["tie", "both_bad", "model_b"])
    assert sorted(VoteRows.of(data, rng()).score) == [0.0, 0.5, 0.5]


@pytest.fixture(scope="module")
def votes() -> VoteRows:
    return made_up(rng(1), n_models=5, n_voters=150, taste=0.5).cast(rng(2))


def test_the_default_is_what_the_board_shows(votes: VoteRows) -> None:
    rated = by_bradley_terry(votes, rng())
    rows = {row.model: row for row in rate(counted(votes)).ratings}
    board = [rows[name] for name in votes.models]
    assert rated.theta == pytest.approx([row.strength for row in board])
    assert rated.half is not None
    halves = np.array([row.upper - row.lower for row in board]) / 2 * np.log(10) / 400
    assert rated.half == pytest.approx(halves)


def test_intervals_as_if_votes_were_independent_are_narrower_under_tastes(votes: VoteRows) -> None:
    by_voter = by_bradley_terry(votes, rng())
    alone = by_bradley_terry(votes, rng(), independent=True)
    assert by_voter.half is not None
    assert alone.half is not None
    assert (alone.half < by_voter.half).all()
    assert alone.theta == pytest.approx(by_voter.theta)


def test_without_voters_the_default_takes_votes_as_independent(votes: VoteRows) -> None:
    unknown = VoteRows.scored(votes.models, votes.a, votes.b, votes.score)
    result, alone = (
        by_bradley_terry(unknown, rng()),
        by_bradley_terry(votes, rng(), independent=True),
    )
    assert result.half == pytest.approx(alone.half)


def test_the_bootstrap_claims_what_the_formula_does_but_for_close_calls(votes: VoteRows) -> None:
    formula, drawn = by_bradley_terry(votes, rng()), by_bootstrap(votes, rng(3))
    assert formula.half is not None
    assert drawn.half == pytest.approx(formula.half, rel=0.35)
    assert not (formula.above & drawn.above.T).any()
    assert abs(int(formula.above.sum()) - int(drawn.above.sum())) <= 2


def test_a_claim_is_of_one_order_only_and_follows_the_strengths(votes: VoteRows) -> None:
    for measure in MEASURES:
        rated = measure.rate(votes, rng())
        assert not (rated.above & rated.above.T).any()
        assert (rated.theta[:, None] > rated.theta)[rated.above].all()
        assert abs(rated.theta.sum()) < 1e-8


def test_strengths_alone_are_those_beside_intervals(votes: VoteRows) -> None:
    for measure in MEASURES:
        assert (measure.theta(votes, rng()) == measure.rate(votes, rng()).theta).all()


def test_online_elo_is_the_pass_over_the_votes_and_claims_every_difference(
    votes: VoteRows,
) -> None:
    rated = by_online_elo(votes, rng())
    points = online_elo(votes.a, votes.b, votes.score, 5)
    assert rated.theta == pytest.approx(to_nats(points))
    assert rated.half is None
    assert rated.above.sum() == 10


def test_order_moves_online_elo_and_nothing_else(votes: VoteRows) -> None:
    for measure in MEASURES:
        one = measure.rate(votes, rng()).theta
        other = in_another_order(measure.rate)(votes, rng(4)).theta
        moved = np.abs(one - other).max()
        assert (moved > 0.01) == (measure.name == "Online Elo")
