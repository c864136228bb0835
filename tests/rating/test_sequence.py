from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

from rating.errors import DataError
from rating.uncertainty.sequence import MIN_VOTERS, confidence_sequence, tightest_at

RUNS = 1000


class Crowd(NamedTuple):
    """Voters in order of arrival: their wins for one of two equal models, and their votes."""

    wins: np.ndarray
    votes: np.ndarray


def crowd(rng: np.random.Generator, *, n_voters: int, taste: float) -> Crowd:
    """Voters of heavy-tailed activity, fair on average."""
    votes = np.ceil(rng.lognormal(1.7, 1.0, n_voters))
    probability = 1 / (1 + np.exp(-taste * rng.standard_normal(n_voters)))
    return Crowd(rng.binomial(votes.astype(int), probability).astype(float), votes)


def test_one_vote_a_voter_is_the_published_formula() -> None:
    y = np.random.default_rng(1).integers(0, 2, 500).astype(float)
    sequence = confidence_sequence(y, np.ones(500), planned=200, level=0.9)
    t, rho = 321, tightest_at(200, level=0.9)
    seen = y[:t]
    reach = seen.std(ddof=1) * np.sqrt(
        2 * (t * rho**2 + 1) / (t**2 * rho**2) * np.log(np.sqrt(t * rho**2 + 1) / 0.1)
    )
    assert sequence.mean[t - 1] == pytest.approx(seen.mean())
    assert sequence.upper[t - 1] - sequence.mean[t - 1] == pytest.approx(reach)
    assert sequence.mean[t - 1] - sequence.lower[t - 1] == pytest.approx(reach)


def test_the_spread_is_of_voters_about_the_common_rate() -> None:
    """Against the linearised ratio, voter by voter, written out."""
    wins, votes = crowd(np.random.default_rng(2), n_voters=80, taste=0.8)
    sequence = confidence_sequence(wins, votes, planned=80)
    rate = wins.sum() / votes.sum()
    sd = np.sqrt(((wins - rate * votes) ** 2).sum() / 79) / votes.mean()
    rho = tightest_at(80)
    grown = 80 * rho**2 + 1
    reach = sd * np.sqrt(2 * grown / (80 * rho) ** 2 * np.log(np.sqrt(grown) / 0.05))
    assert sequence.upper[-1] == pytest.approx(rate + reach)


def test_it_is_tightest_about_where_it_was_planned() -> None:
    t = 2000
    width = [
        np.sqrt(2 * (t * r**2 + 1) / (t * r) ** 2 * np.log(np.sqrt(t * r**2 + 1) / 0.05))
        for r in (tightest_at(n) for n in (500, 1000, 2000, 4000, 8000))
    ]
    assert np.argmin(width) == 2
    # The price of peeking, at the planned number.
    assert width[2] * np.sqrt(t) / norm.ppf(0.975) == pytest.approx(1.55, abs=0.01)


def test_the_first_voters_make_no_claim() -> None:
    sequence = confidence_sequence(np.ones(60), np.ones(60), planned=60)
    assert np.isinf(sequence.upper[:MIN_VOTERS]).all()
    assert sequence.separated_at(0.5) == MIN_VOTERS + 1
    assert sequence.to_dict()["lower"][0] is None
    assert sequence.to_dict()["lower"][-1] == 1.0


def test_what_is_not_ruled_out_is_not_separated() -> None:
    y = np.tile([1.0, 0.0], 100)
    assert confidence_sequence(y, np.ones(200), planned=100).separated_at(0.5) is None


def test_swapping_win_and_loss_mirrors_the_interval() -> None:
    wins, votes = crowd(np.random.default_rng(3), n_voters=100, taste=0.4)
    one = confidence_sequence(wins, votes, planned=100)
    other = confidence_sequence(votes - wins, votes, planned=100)
    assert other.lower == pytest.approx(1 - one.upper)


@pytest.mark.parametrize(
    ("total", "votes", "planned", "message"),
    [
        ([1.0], [1.0, 1.0], 10, "Unequal columns: total 1, votes 2"),
        ([1.0, 0.0], [1.0, 0.0], 10, "Voter 1 has total 0.0 over 0.0 votes"),
        ([np.nan], [1.0], 10, "Voter 0 has total nan"),
        ([1.0], [1.0], 0, "planned must be at least one voter, not 0"),
    ],
)
def test_bad_rows_are_refused(
    total: list[float], votes: list[float], planned: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        confidence_sequence(np.array(total), np.array(votes), planned=planned)


def test_a_level_out_of_range_is_refused() -> None:
    with pytest.raises(DataError, match="level must lie between 0 and 1, not 1"):
        confidence_sequence(np.ones(2), np.ones(2), planned=2, level=1)


def ever_out(out: list[bool]) -> tuple[float, float]:
    """Share of the runs that were wrong at some look, and its Monte Carlo error."""
    share = float(np.mean(out))
    return share, float(np.sqrt(max(share * (1 - share), 1e-4) / len(out)))


@pytest.mark.slow
def test_a_fixed_interval_peeked_at_is_wrong_in_almost_half_of_all_runs() -> None:
    rng = np.random.default_rng(4)
    looks = np.arange(50, 20_001, 50)
    fixed, sequence = [], []
    for _ in range(RUNS):
        y = rng.integers(0, 2, 20_000).astype(float)
        mean = y.cumsum()[looks - 1] / looks
        reach = norm.ppf(0.975) * np.sqrt(mean * (1 - mean) / looks)
        fixed.append(bool((np.abs(mean - 0.5) > reach).any()))
        result = confidence_sequence(y, np.ones(20_000), planned=2000)
        sequence.append(result.separated_at(0.5) is not None)
    share, error = ever_out(fixed)
    assert share == pytest.approx(0.449, abs=4 * error)
    share, error = ever_out(sequence)
    assert share <= 0.05 + 3 * error  # looked at after every vote, not every fifty


@pytest.mark.slow
@pytest.mark.parametrize("taste", [0.0, 0.8])
def test_voters_as_rows_may_be_peeked_at(taste: float) -> None:
    rng = np.random.default_rng(5)
    out = [
        confidence_sequence(*crowd(rng, n_voters=2000, taste=taste), planned=500).separated_at(0.5)
        is not None
        for _ in range(RUNS)
    ]
    share, error = ever_out(out)
    assert share <= 0.05 + 3 * error


@pytest.mark.slow
def test_votes_as_rows_fail_where_voters_have_tastes() -> None:
    rng = np.random.default_rng(6)
    out = []
    for _ in range(300):
        wins, votes = crowd(rng, n_voters=2000, taste=0.8)
        rows = np.concatenate(
            [
                rng.permutation(np.arange(n) < w).astype(float)
                for w, n in zip(wins, votes.astype(int), strict=True)
            ]
        )
        sequence = confidence_sequence(rows, np.ones(len(rows)), planned=4000)
        out.append(sequence.separated_at(0.5) is not None)
    share, error = ever_out(out)
    assert share - 3 * error > 0.15
