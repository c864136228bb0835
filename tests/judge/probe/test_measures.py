"""The audited measures are the board's own, and the others what they are named."""

import numpy as np
import pytest

from judge.probe.measures import (
    MEASURES,
    by_bootstrap,
    by_bradley_terry,
    by_online_elo,
    in_another_order,
)
from judge.probe.worlds import Votes, World
from rating import rate, to_nats
from rating.elo import online_elo


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def votes() -> Votes:
    return World.of_size(rng(1), n_models=5, n_voters=150, taste=0.5).cast(rng(2))


def test_the_default_is_what_the_board_shows(votes: Votes) -> None:
    found = by_bradley_terry(votes, rng())
    rows = {row.model: row for row in rate(votes.comparisons()).ratings}
    board = [rows[name] for name in votes.models]
    assert found.theta == pytest.approx([row.strength for row in board])
    assert found.half is not None
    halves = np.array([row.upper - row.lower for row in board]) / 2 * np.log(10) / 400
    assert found.half == pytest.approx(halves)


def test_intervals_as_if_votes_were_independent_are_narrower_under_tastes(votes: Votes) -> None:
    by_voter = by_bradley_terry(votes, rng())
    alone = by_bradley_terry(votes, rng(), independent=True)
    assert by_voter.half is not None
    assert alone.half is not None
    assert (alone.half < by_voter.half).all()
    assert alone.theta == pytest.approx(by_voter.theta)


def test_without_voters_the_default_takes_votes_as_independent(votes: Votes) -> None:
    unknown = Votes(votes.models, votes.a, votes.b, votes.score, None)
    found, alone = (
        by_bradley_terry(unknown, rng()),
        by_bradley_terry(votes, rng(), independent=True),
    )
    assert found.half == pytest.approx(alone.half)


def test_the_bootstrap_claims_what_the_formula_does_but_for_close_calls(votes: Votes) -> None:
    formula, drawn = by_bradley_terry(votes, rng()), by_bootstrap(votes, rng(3))
    assert formula.half is not None
    assert drawn.half == pytest.approx(formula.half, rel=0.35)
    assert not (formula.above & drawn.above.T).any()
    assert abs(int(formula.above.sum()) - int(drawn.above.sum())) <= 2


def test_a_claim_is_of_one_order_only_and_follows_the_strengths(votes: Votes) -> None:
    for measure in MEASURES:
        found = measure.rate(votes, rng())
        assert not (found.above & found.above.T).any()
        assert (found.theta[:, None] > found.theta)[found.above].all()
        assert abs(found.theta.sum()) < 1e-8


def test_strengths_alone_are_those_beside_intervals(votes: Votes) -> None:
    for measure in MEASURES:
        assert (measure.theta(votes, rng()) == measure.rate(votes, rng()).theta).all()


def test_online_elo_is_the_pass_over_the_votes_and_claims_every_difference(votes: Votes) -> None:
    found = by_online_elo(votes, rng())
    points = online_elo(votes.a, votes.b, votes.score, 5)
    assert found.theta == pytest.approx(to_nats(points))
    assert found.half is None
    assert found.above.sum() == 10


def test_order_moves_online_elo_and_nothing_else(votes: Votes) -> None:
    for measure in MEASURES:
        one = measure.rate(votes, rng()).theta
        other = in_another_order(measure.rate)(votes, rng(4)).theta
        moved = np.abs(one - other).max()
        assert (moved > 0.01) == (measure.name == "Online Elo")


def test_every_choice_of_every_measure_rates(votes: Votes) -> None:
    for measure in MEASURES:
        for rating in measure.knobs.values():
            assert np.isfinite(rating(votes, rng()).theta).all()
