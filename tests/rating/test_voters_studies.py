"""How often honest voters are flagged, and careless ones found: simulated crowds."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from rating import Comparisons, fit
from rating.voters import VoterCheck, check_voters, fit_taste_sd
from tests.rating.crowd import Ballot, Crowd, Kind

pytestmark = pytest.mark.slow

N_VOTERS = 400
NAMES = [f"m{i:02}" for i in range(12)]

SIDED: tuple[Kind, ...] = ("always-left", "always-right")


class Board:
    """Strengths, order effect and taste sd as the arena would know them: of a population."""

    def __init__(self, crowd: Crowd, seed: int, careless: Sequence[Kind] = ()) -> None:
        self.crowd = crowd
        self.rng = np.random.default_rng(seed)
        votes = list(self._population(careless))
        left, right, score, voter = (
            np.concatenate(column)
            for column in zip(*[(v.left, v.right, v.score, v.voter) for v in votes], strict=True)
        )
        outcome = np.where(score == 1, 0, 1)
        fitted = fit(Comparisons.from_codes(NAMES, left, right, outcome), order_effect=True)
        self.theta, self.order_effect = fitted.theta, fitted.parameters[0].value
        rows = Ballot(left, right, score, voter).rows(NAMES)
        self.taste_sd = fit_taste_sd(rows, self.theta, self.order_effect)

    def _population(self, careless: Sequence[Kind]) -> Iterator[Ballot]:
        yield self.crowd.draw(self.rng, 300, 60)
        for number, kind in enumerate(careless, start=1):
            votes = self.crowd.draw(self.rng, 10, 60, kind)
            yield Ballot(votes.left, votes.right, votes.score, votes.voter + 1000 * number)

    def check(self, kind: Kind, n_votes: int, n_voters: int = N_VOTERS) -> tuple[VoterCheck, ...]:
        votes = self.crowd.draw(self.rng, n_voters, n_votes, kind)
        return check_voters(
            votes.rows(NAMES), self.theta, self.taste_sd, order_effect=self.order_effect
        )

    def flagged(self, kind: Kind, n_votes: int) -> float:
        return float(np.mean([check.flagged for check in self.check(kind, n_votes)]))


def monte_carlo_error(share: float) -> float:
    return float(np.sqrt(max(share * (1 - share), 0.01) / N_VOTERS))


@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("n_votes", [100, 300])
def test_honest_voters_are_seldom_flagged_though_looked_at_all_the_time(
    taste: float, n_votes: int
) -> None:
    share = Board(Crowd(taste=taste), seed=1).flagged("honest", n_votes)
    assert share <= 0.05 + 3 * monte_carlo_error(0.05)


@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("lean", [0.4, 0.8])
def test_honest_voters_who_all_lean_to_the_left_are_flagged_no_more_often(
    taste: float, lean: float, record_property: Callable[[str, object], None]
) -> None:
    board = Board(Crowd(taste=taste, lean=lean), seed=6)
    shares = {n: board.flagged("honest", n) for n in (100, 300)}
    careless = {kind: board.flagged(kind, 100) for kind in SIDED}
    board.order_effect = 0.0
    row = {"lean": lean, "taste": taste, "at_100": shares[100], "at_300": shares[300]}
    row |= {"without_order_effect": board.flagged("honest", 300)}
    record_property("honest voters flagged where all lean to the left", row)
    assert max(shares.values()) <= 0.05 + 3 * monte_carlo_error(0.05)
    assert min(careless.values()) >= 0.99


def test_a_test_that_knows_no_order_effect_punishes_people_who_lean() -> None:
    board = Board(Crowd(taste=0.4, spread=0.3, lean=0.8), seed=7)
    assert board.flagged("honest", 300) <= 0.05 + 3 * monte_carlo_error(0.05)
    board.order_effect = 0.0
    assert board.flagged("honest", 300) - 3 * monte_carlo_error(0.2) > 0.05


@pytest.mark.parametrize(
    ("kind", "at_100", "at_300"),
    [
        ("coin", 0.6, 0.97), ("always-left", 1.0, 1.0), ("always-right", 1.0, 1.0),
        ("inverted", 0.98, 0.99), ("shill", 0.98, 1.0),
    ],
)  # fmt: skip
def test_careless_voters_are_found(
    kind: Kind, at_100: float, at_300: float, record_property: Callable[[str, object], None]
) -> None:
    board = Board(Crowd(), seed=2)
    flagged = {n: board.flagged(kind, n) for n in (100, 300)}
    row = {"voter": kind, "at_100": flagged[100], "at_300": flagged[300]}
    record_property("voters flagged, taste sd .6", row)
    for share, expected in ((flagged[100], at_100), (flagged[300], at_300)):
        # Of this draw of voters, and of the population that the strengths come from.
        assert abs(share - expected) <= 4 * np.sqrt(2) * monte_carlo_error(expected)


def test_careless_voters_are_found_among_others_like_them() -> None:
    """A population of whom one in nine is careless widens the tastes and costs some power."""
    board = Board(Crowd(), seed=3, careless=["coin", "always-left", "inverted", "shill"])
    clean = Board(Crowd(), seed=3)
    assert clean.taste_sd < board.taste_sd < 1.5 * clean.taste_sd
    assert board.flagged("honest", 100) <= 0.05
    assert board.flagged("always-left", 100) == 1
    assert board.flagged("coin", 300) > 0.8
    assert board.flagged("shill", 300) > 0.9


def test_evidence_of_ten_to_one_is_met_by_an_honest_voter_once_in_ten_at_most() -> None:
    """Ville's bound, far out too: the mean of so heavy a tail is a poor statistic."""
    checks = Board(Crowd(), seed=4).check("honest", 30, n_voters=4000)
    evidence = np.exp([check.max_log_e for check in checks])
    for alpha in (0.1, 0.05, 0.01, 0.002):
        error = np.sqrt(alpha * (1 - alpha) / len(evidence))
        assert (evidence >= 1 / alpha).mean() <= alpha + 3 * error


def test_a_test_that_knows_no_tastes_punishes_unusual_people() -> None:
    board = Board(Crowd(taste=0.8), seed=5)
    board.taste_sd = 0.0
    assert board.flagged("honest", 100) - 3 * monte_carlo_error(0.3) > 0.1
