"""Rings are named by the votes of all members together; tastes, however common, are not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from rating import voters
from rating.errors import DataError
from rating.rows import VoteRows
from rating.voters import find_rings
from tests.rating.attacked import NAMES, TARGET, Arena, Moved

FAN = Arena(accounts=50, each=40)


@pytest.mark.parametrize(("sign", "direction"), [(1, "for"), (-1, "against")])
def test_a_ring_is_named_with_its_direction_and_its_votes_weigh_little(
    rng: np.random.Generator, sign: int, direction: str
) -> None:
    votes = replace(FAN, sign=sign).draw(rng)
    check = votes.check()
    (ring,) = check.rings
    assert (ring.model, ring.direction) == (NAMES[TARGET], direction)
    assert 45 <= ring.accounts <= 62
    assert ring.log_evidence > check.limit == pytest.approx(np.log(20 / 0.05))
    assert ring.gained.points * sign > 100
    assert ring.gained.ranks * sign >= 2
    on_it = (votes.left == TARGET) | (votes.right == TARGET)
    assert ring.share * len(np.unique(votes.voter[on_it])) == pytest.approx(50, abs=5)
    assert check.weight[votes.member[votes.voter] & on_it].mean() < 0.1
    assert check.weight[~on_it].min() == 1
    assert abs(Moved.by(votes, check.weight).points) < 20 < abs(Moved.by(votes).points)


def test_honest_voters_make_no_ring_and_keep_their_weight(rng: np.random.Generator) -> None:
    check = Arena().draw(rng).check()
    assert (check.rings, check.member) == ((), {})
    assert check.weight.min() == 1


def test_a_community_of_common_taste_is_shown_and_its_votes_count(
    rng: np.random.Generator,
) -> None:
    votes = Arena(community=0.3, liking=2.0, every=200).draw(rng)
    check = votes.check()
    assert check.rings == ()
    (group,) = check.groups
    assert group.model == NAMES[TARGET]
    assert group.share == pytest.approx(0.3, abs=0.11)
    assert group.gap == pytest.approx(2.0, abs=0.6)
    assert check.weight.min() == 1


def test_a_trait_of_behaviour_brings_a_small_ring_to_light(rng: np.random.Generator) -> None:
    votes = Arena(accounts=20, each=20).draw(rng)
    assert votes.check().rings == ()
    (ring,) = votes.check(votes.trait(rng)).rings
    assert ring.model == NAMES[TARGET]


def test_a_trait_alone_names_nobody(rng: np.random.Generator) -> None:
    votes = Arena().draw(rng)
    assert votes.check(np.arange(200) < 50).rings == ()


@pytest.mark.slow
def test_models_voters_and_sides_may_be_renamed(rng: np.random.Generator) -> None:
    votes = FAN.draw(rng)
    ring = votes.check().rings[0]
    shuffled = rng.permutation(len(votes.member))[votes.voter]
    columns = (votes.right, votes.left, 1 - votes.score, shuffled)
    turned = find_rings(VoteRows.scored(NAMES, *columns)).rings[0]
    assert turned.log_evidence == pytest.approx(ring.log_evidence)
    assert turned.accounts == ring.accounts
    assert turned.gained.points == pytest.approx(ring.gained.points)


def test_ties_are_no_evidence(rng: np.random.Generator) -> None:
    votes = FAN.draw(rng)
    tied = replace(votes, score=np.full(len(votes.score), 0.5))
    assert tied.check().rings == ()


def test_an_honest_voter_is_integrated_over_tastes() -> None:
    """Two votes on one model, by hand: a sum over a fine grid of tastes."""
    sides, score = (np.array([0, 0]), np.array([1, 2])), np.array([1.0, 0.0])
    votes = VoteRows.scored(("x", "y", "z"), *sides, score, np.zeros(2, int))
    seen = voters._seen(votes, 0, np.array([0.5, 0.0, -0.5]), 0.2)
    taste = np.linspace(-9, 9, 20001)
    density = np.exp(-(((taste - 0.3) / 0.7) ** 2) / 2)
    both = expit(0.5 + 0.2 + taste) * (1 - expit(1.0 + 0.2 + taste))
    expected = np.log((density * both).sum() / density.sum())
    (law,) = seen.honest(np.array([0.3]), np.array([0.7]))[0]
    assert law == pytest.approx(expected, abs=1e-6)


def test_evidence_is_the_mean_of_the_mixtures_over_the_best_honest_law() -> None:
    """One voter, by brute force over shares, loyalties and laws."""
    zero = np.zeros(3, int)
    votes = VoteRows.scored(("x", "y", "z"), zero, np.array([1, 2, 1]), np.ones(3), zero)
    seen = voters._seen(votes, 0, np.zeros(3), 0.0)
    each = [
        (1 - share) * np.exp(seen.honest(np.array([m]), np.array([s]))[0, 0]) + share * loyal**3
        for share in voters.SHARES
        for loyal in voters.LOYALTIES
        for m, s in zip(*voters.BESIDE_FANS, strict=True)
    ]
    evidence = voters._log_mixture(seen, "for", np.zeros(1, bool))
    assert evidence == pytest.approx(np.log(np.mean(each)))


def test_what_cannot_be_asked_is_quoted(rng: np.random.Generator) -> None:
    votes = Arena(n_honest=10).draw(rng).rows
    with pytest.raises(DataError, match="between 0 and 1, not 2"):
        find_rings(votes, alpha=2)
    with pytest.raises(DataError, match="3 traits for 10 voters"):
        find_rings(votes, trait=np.zeros(3, bool))
