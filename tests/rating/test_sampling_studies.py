"""What the samplers are worth, and that their probabilities undo them: simulated boards."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from rating import Comparisons, fit
from rating.planning import (
    arena_pairs,
    gain_pairs,
    neighbour_contrast,
    score_variances,
    uniform_pairs,
    weighted_pairs,
)
from rating.variants import POINTS_PER_NAT
from tests.rating.crowd import information, strengths, win_probabilities

pytestmark = pytest.mark.slow

RIDGE = 0.1
TOP = 5


@dataclass
class Arena:
    """A board that draws its pairs by a rule, some votes at a time."""

    probability: np.ndarray
    """Of row over column; need not be Bradley-Terry."""
    rule: str
    rng: np.random.Generator
    wins: np.ndarray
    weighted: np.ndarray
    """The same votes, each weighing one over its pair's probability."""
    theta: np.ndarray
    top: int | None = TOP

    @classmethod
    def of(
        cls, probability: np.ndarray, rule: str, seed: int, past: np.ndarray, top: int | None = TOP
    ) -> "Arena":
        n_models = len(probability)
        rng = np.random.default_rng(seed)
        none = np.zeros((n_models, n_models))
        return cls(probability, rule, rng, past.copy(), none, np.zeros(n_models), top)

    def covariance(self) -> np.ndarray:
        known = information(self.theta, self.wins, RIDGE)
        return np.asarray(np.linalg.inv(known), dtype=np.float64)

    def probabilities(self) -> np.ndarray:
        if self.rule == "uniform":
            return uniform_pairs(len(self.probability))
        if self.rule == "arena":
            return arena_pairs(self.wins + self.wins.T, score_variances(self.wins))
        if self.rule == "weighted":
            return weighted_pairs(np.linspace(1, 5, len(self.probability)))
        return gain_pairs(self.theta, self.covariance(), top=self.top)

    def vote(self, n: int) -> None:
        self.theta = strengths(self.wins, start=self.theta, ridge=RIDGE)
        first, second = np.triu_indices(len(self.probability), k=1)
        pairs = self.probabilities()[first, second]
        times = self.rng.multinomial(n, pairs)
        won = self.rng.binomial(times, self.probability[first, second])
        for table, unit in ((self.wins, np.ones_like(pairs)), (self.weighted, 1 / pairs)):
            table[first, second] += unit * won
            table[second, first] += unit * (times - won)


def even_field() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-1, 1, 12), np.zeros((12, 12))


def close_top() -> tuple[np.ndarray, np.ndarray]:
    return np.r_[0.7 + 0.02 * np.arange(4), np.linspace(-1.5, 0, 8)], np.zeros((12, 12))


def newcomer() -> tuple[np.ndarray, np.ndarray]:
    """Two hundred votes on every pair but those of the second best, who just joined."""
    theta = np.linspace(-1, 1, 12)
    past = 200 * win_probabilities(theta)
    past[10, :] = past[:, 10] = 0
    np.fill_diagonal(past, 0)
    return theta, past


FIELDS = {"even": even_field, "close top": close_top, "newcomer": newcomer}
TARGETS = {"even": 20.0, "close top": 20.0, "newcomer": 18.0}


def votes_to_target(field: str, rule: str, seed: int) -> int:
    """Votes until the root mean square half width of the top's neighbours is on target."""
    theta, past = FIELDS[field]()
    arena = Arena.of(win_probabilities(theta), rule, seed, past)
    contrast = neighbour_contrast(theta, TOP)
    for votes in range(0, 40_000, 100):
        mean_square = np.trace(contrast @ arena.covariance()) / (TOP - 1)
        if votes and 1.96 * POINTS_PER_NAT * np.sqrt(mean_square) < TARGETS[field]:
            return votes
        arena.vote(100)
    raise AssertionError(f"{field} under {rule} is not on target after 40,000 votes.")


@pytest.mark.parametrize("field", FIELDS)
def test_the_gain_rule_separates_the_top_with_the_fewest_votes(
    field: str, record_property: Callable[[str, object], None]
) -> None:
    runs = 10
    needed = {
        rule: np.array([votes_to_target(field, rule, seed) for seed in range(runs)])
        for rule in ("uniform", "arena", "gain")
    }
    row: dict[str, object] = {"field": field, "points": TARGETS[field]}
    row |= {rule: round(votes.mean()) for rule, votes in needed.items()}
    row["mc_error"] = round(max(v.std() for v in needed.values()) / np.sqrt(runs))
    record_property("votes until the top five are told apart to so many points", row)
    spread = 3 * max(v.std() for v in needed.values()) * np.sqrt(2 / runs)
    assert needed["gain"].mean() + spread < 0.7 * needed["uniform"].mean()
    assert needed["arena"].mean() < needed["uniform"].mean() + spread
    if field == "newcomer":
        assert needed["arena"].mean() + spread < 0.8 * needed["uniform"].mean()


N_MODELS = 5
CIRCLE = np.array([0.8, 0.4, 0.0, -0.4, -0.8])


def no_bradley_terry_field() -> np.ndarray:
    """Chances that no strengths explain: some models are better against their neighbours."""
    gap = CIRCLE[:, None] - CIRCLE[None, :]
    twist = 0.5 * np.sin(2 * np.pi * (np.arange(5)[:, None] - np.arange(5)[None, :]) / 5)
    probability = 1 / (1 + np.exp(-(gap + twist * (np.abs(gap) < 0.5))))
    np.fill_diagonal(probability, 0)
    return np.asarray(probability)


RULES = ["uniform", "weighted", "arena", "gain"]
RUNS = 3000
BATCH = 4000


@dataclass(frozen=True, slots=True)
class WeightStudy:
    """Errors over many boards, shape (n_boards, n_models) in nats or (n_boards, n_pairs).

    Attributes
    ----------
    weighted : ndarray
        Of the ratings, votes weighing one over the logged probability.
    unweighted : ndarray
        The planted error: of the ratings from the votes as they came.
    matrix : ndarray
        Of the weighted win matrix.
    """

    weighted: np.ndarray
    unweighted: np.ndarray
    matrix: np.ndarray


@cache
def weight_study(rule: str) -> WeightStudy:
    """Errors against what uniform pairs would show.

    Boards of 40,000 votes: with 4,000, as a board has them at first, 3,000
    boards begin to show the bias that maximum likelihood has by itself, of
    the order of one over the votes.
    """
    first, second = np.triu_indices(N_MODELS, k=1)
    probability, past = no_bradley_terry_field(), np.zeros((N_MODELS, N_MODELS))
    truth = strengths(probability)  # the test's own fit, of the field itself
    weighted, unweighted, matrix = [], [], []
    for seed in range(RUNS):
        arena = Arena.of(probability, rule, seed, past, top=2)
        for _ in range(10):
            arena.vote(BATCH)
        weighted.append(rated(arena.wins, arena.weighted) - truth)
        unweighted.append(rated(arena.wins, arena.wins) - truth)
        matrix.append(arena.weighted[first, second] / (10 * BATCH) - probability[first, second])
    return WeightStudy(np.array(weighted), np.array(unweighted), np.array(matrix))


def rated(wins: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Strengths by the program, from the wins of row over column and their weights."""
    a, b = np.nonzero(wins)
    votes = wins[a, b].astype(np.int64)
    names = [f"m{i}" for i in range(N_MODELS)]
    data = Comparisons.from_codes(names, a, b, 0 * a, votes=votes, weight=weight[a, b])
    return fit(data).theta


def in_monte_carlo_errors(errors: np.ndarray) -> np.ndarray:
    return np.asarray(errors.mean(axis=0) / (errors.std(axis=0) / np.sqrt(len(errors))))


@pytest.mark.parametrize("rule", RULES)
def test_weights_by_the_probability_undo_the_sampler(
    rule: str, record_property: Callable[[str, object], None]
) -> None:
    """The ratings are those under uniform pairs, though no Bradley-Terry model holds."""
    result = weight_study(rule)
    row: dict[str, object] = {"rule": rule}
    for name, errors in (("weighted", result.weighted), ("unweighted", result.unweighted)):
        worst = np.abs(in_monte_carlo_errors(errors)).argmax()
        row[name] = f"{POINTS_PER_NAT * errors[:, worst].mean():+.3f}"
        row[f"{name}, MC errors"] = f"{in_monte_carlo_errors(errors)[worst]:+.1f}"
    record_property(f"largest bias of a rating in points, {RUNS} boards a row", row)
    assert np.abs(in_monte_carlo_errors(result.weighted)).max() < 3


@pytest.mark.parametrize("rule", RULES)
def test_the_weighted_win_matrix_is_unbiased(rule: str) -> None:
    """The mean over battles of score / probability on the pair's place: equation 5."""
    # Ten pairs: 3.9 is passed by one of them once in a thousand studies.
    assert np.abs(in_monte_carlo_errors(weight_study(rule).matrix)).max() < 3.9


@pytest.mark.parametrize("rule", ["weighted", "arena", "gain"])
def test_without_the_weights_the_sampler_decides_the_ratings(rule: str) -> None:
    assert np.abs(in_monte_carlo_errors(weight_study(rule).unweighted)).max() > 10
