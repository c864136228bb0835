import numpy as np
import pytest
from scipy.optimize import minimize

from rating.errors import DataError
from rating.voters import Ballots, Marginals, fit_taste_sd, log_marginals
from tests.rating.crowd import Ballot, Crowd, strengths

NAMES = [f"m{i}" for i in range(12)]


def by_quadrature(wins: np.ndarray, theta: np.ndarray, taste_sd: float) -> float:
    """The integral over every model's taste, on a grid of Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    k = len(theta)
    at = np.indices((40,) * k).reshape(k, -1)
    liking = theta[:, None] + taste_sd * nodes[at]
    log_probability = -np.logaddexp(0, liking[None, :] - liking[:, None])
    votes = np.exp(np.tensordot(wins, log_probability))
    return float(np.log(weights[at].prod(axis=0) @ votes / (2 * np.pi) ** (k / 2)))


def log_marginal(tables: np.ndarray, theta: np.ndarray, taste_sd: float) -> Marginals:
    """Of voters given as tables of wins of row over column."""
    ballots = []
    for table in tables.astype(int):
        winner, loser = np.indices(table.shape)
        left, right = (np.repeat(codes.ravel(), table.ravel()) for codes in (winner, loser))
        ballots.append(Ballots(left, right, np.ones(len(left), dtype=bool)))
    return log_marginals(ballots, theta, taste_sd)


def pair(won: float, lost: float) -> np.ndarray:
    return np.array([[[0.0, won], [lost, 0.0]]])


@pytest.mark.parametrize("taste_sd", [0.3, 0.8])
@pytest.mark.parametrize(("won", "lost"), [(1, 0), (3, 2), (10, 0), (20, 30)])
def test_two_models_agree_with_the_integral(won: float, lost: float, taste_sd: float) -> None:
    theta = np.array([0.4, -0.4])
    marginal = log_marginal(pair(won, lost), theta, taste_sd).log_probability[0]
    assert marginal == pytest.approx(by_quadrature(pair(won, lost)[0], theta, taste_sd), abs=0.06)


def test_three_models_agree_with_the_integral() -> None:
    wins = np.array([[[0.0, 3, 5], [2, 0, 1], [0, 4, 0]]])
    theta = np.array([0.5, 0.0, -0.5])
    marginal = log_marginal(wins, theta, 0.5).log_probability[0]
    assert marginal == pytest.approx(by_quadrature(wins[0], theta, 0.5), abs=0.03)


@pytest.mark.parametrize("taste_sd", [0.0, 0.4, 0.8])
def test_the_chances_of_all_that_may_happen_sum_to_one(taste_sd: float) -> None:
    """Of the 2^12 ways to vote twelve times on one pair, by the number won."""
    ways = np.array([1, 12, 66, 220, 495, 792, 924, 792, 495, 220, 66, 12, 1])
    tables = np.concatenate([pair(w, 12 - w) for w in range(13)])
    marginal = log_marginal(tables, np.array([0.3, -0.3]), taste_sd).log_probability
    assert (ways * np.exp(marginal)).sum() == pytest.approx(1, abs=0.02)


def test_without_tastes_it_is_the_likelihood() -> None:
    marginal = log_marginal(pair(3, 1), np.array([np.log(2), 0.0]), 0.0).log_probability[0]
    assert marginal == pytest.approx(3 * np.log(2 / 3) + np.log(1 / 3))


def test_the_liking_is_the_penalised_maximum() -> None:
    rng = np.random.default_rng(1)
    wins = rng.poisson(3, (1, 5, 5)) * (1.0 - np.eye(5))
    theta = np.linspace(1, -1, 5)

    def lack(taste: np.ndarray) -> float:
        liking = theta + taste
        loss = np.logaddexp(0, liking[None, :] - liking[:, None])
        return float((wins[0] * loss).sum() + (taste**2).sum() / 2 / 0.7**2)

    best = minimize(lack, np.zeros(5), tol=1e-10).x
    assert log_marginal(wins, theta, 0.7).liking[0] == pytest.approx(theta + best, abs=1e-4)


def test_a_very_wide_taste_and_one_sided_votes_still_settle() -> None:
    marginal = log_marginal(pair(400, 0), np.array([-3.0, 3.0]), 5.0)
    assert np.isfinite(marginal.log_probability).all()
    assert marginal.liking[0, 0] > marginal.liking[0, 1]


def test_models_not_met_change_nothing() -> None:
    wide = np.zeros((1, 4, 4))
    wide[0, :2, :2] = pair(3, 1)
    theta = np.array([0.3, -0.1, 2.0, 1.0])
    narrow = log_marginal(pair(3, 1), theta[:2], 0.6)
    marginal = log_marginal(wide, theta, 0.6)
    assert marginal.log_probability == pytest.approx(narrow.log_probability)
    assert marginal.liking[0, 2:] == pytest.approx(theta[2:])


def test_voters_are_taken_one_by_one_whatever_they_met(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    theta = rng.normal(size=6)
    ballots = []
    for n in (1, 2, 5, 5, 40):
        left = rng.integers(6, size=n)
        right = (left + rng.integers(1, 6, n)) % 6
        ballots.append(Ballots(left, right, rng.random(n) < 0.5))
    together = log_marginals(ballots, theta, 0.5)
    monkeypatch.setattr("rating.voters.CHUNK_ENTRIES", 1)
    for row, votes in enumerate(ballots):
        table = np.zeros((1, 6, 6))
        winner = np.where(votes.won, votes.left, votes.right)
        np.add.at(table[0], (winner, votes.left + votes.right - winner), 1)
        alone = log_marginal(table, theta, 0.5)
        assert together.log_probability[row] == pytest.approx(alone.log_probability[0])
        assert together.liking[row] == pytest.approx(alone.liking[0])
    by_ones = log_marginals(ballots, theta, 0.5)
    assert by_ones.log_probability == pytest.approx(together.log_probability)


@pytest.mark.parametrize("taste", [0.4, 0.8])
def test_the_spread_of_tastes_is_recovered(taste: float) -> None:
    crowd = Crowd(taste=taste)
    votes = crowd.draw(np.random.default_rng(3), 300, 60)
    theta = strengths(votes.wins(12))
    fitted_sd = fit_taste_sd(votes.rows(NAMES), theta)
    assert fitted_sd == pytest.approx(taste, rel=0.2)


def test_voters_of_one_taste_have_next_to_none() -> None:
    crowd = Crowd(taste=0.0)
    votes = crowd.draw(np.random.default_rng(4), 300, 60)
    theta = strengths(votes.wins(12))
    assert fit_taste_sd(votes.rows(NAMES), theta) < 0.15


def test_ties_do_not_change_the_spread() -> None:
    votes = Crowd().draw(np.random.default_rng(5), 40, 30)
    theta = Crowd().theta
    plain = fit_taste_sd(votes.rows(NAMES), theta)
    tied = Ballot(
        np.append(votes.left, votes.left[:50]),
        np.append(votes.right, votes.right[:50]),
        np.append(votes.score, np.full(50, 0.5)),
        np.append(votes.voter, votes.voter[:50]),
    )
    assert fit_taste_sd(tied.rows(NAMES), theta) == plain


@pytest.mark.parametrize(
    ("left", "right", "score", "voter", "message"),
    [
        ([0, 0], [1], [1.0], [0], "lengths a 2, b 1"),
        ([0], [2], [1.0], [0], "code 2; codes are from 0 to 1"),
        ([0], [1], [1.0], [-1], "code -1; codes are 0 or more"),
        ([1], [1], [1.0], [0], "Model 1 meets itself"),
        ([0], [1], [0.7], [0], "Score 0.7 is no vote"),
        ([0], [1], [0.5], [0], "None of 1 votes is decisive"),
    ],
)
def test_what_are_no_votes_is_refused(
    left: list[int], right: list[int], score: list[float], voter: list[int], message: str
) -> None:
    votes = Ballot(*map(np.array, (left, right, score, voter)))
    with pytest.raises(DataError, match=message):
        fit_taste_sd(votes.rows("xy"), np.zeros(2))
