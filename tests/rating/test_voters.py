import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rating.errors import DataError
from rating.voters import VoterCheck, check_voters
from tests.rating.crowd import Ballot, Crowd, Kind

CROWD = Crowd(n_models=6)
NAMES = [f"m{i}" for i in range(6)]


def checked(
    votes: Ballot, *, taste_sd: float = 0.6, alpha: float = 0.05
) -> tuple[VoterCheck, ...]:
    return check_voters(votes.rows(NAMES), CROWD.theta, taste_sd, alpha=alpha)


def of(kind: Kind, seed: int = 1, n_voters: int = 1, n_votes: int = 200) -> Ballot:
    return CROWD.draw(np.random.default_rng(seed), n_voters, n_votes, kind)


@pytest.mark.parametrize(
    ("kind", "leading", "words"),
    [
        ("coin", "coin", "a coin toss"),
        ("always-left", "always-left", "the left side whatever it shows"),
        ("always-right", "always-right", "the right side whatever it shows"),
        ("inverted", "inverted", "the opposite of what voters find better"),
        ("shill", "fan", "a vote for m5 wherever it appears"),
    ],
)
def test_a_careless_voter_is_named_for_what_it_does(kind: Kind, leading: str, words: str) -> None:
    check = checked(of(kind, n_votes=400))[0]
    assert check.flagged
    assert check.leading == leading
    assert check.model == ("m5" if kind == "shill" else None)
    assert words in check.reason
    assert f"flagged after {check.flagged_at} votes" in check.reason
    assert check.weight == 0


def test_a_vendetta_is_an_anti_fan() -> None:
    votes = of("honest", n_votes=300)
    best = votes.left == 0
    worst = votes.right == 0
    votes.score[best], votes.score[worst] = 0.0, 1.0
    check = checked(votes)[0]
    assert (check.flagged, check.leading, check.model) == (True, "anti-fan", "m0")


def test_an_honest_voter_keeps_the_weight() -> None:
    checks = checked(of("honest", n_voters=20))
    assert [check.weight for check in checks if not check.flagged] == [1.0] * 20
    assert all(check.flagged_at is None for check in checks)
    assert "honest voter" in checks[0].reason or "not enough to act on" in checks[0].reason


@pytest.mark.parametrize("lean", [0.0, 0.4])
def test_the_evidence_is_the_weighted_sum_of_likelihood_ratios(lean: float) -> None:
    """Written out for the votes up to the first look, without tastes."""
    votes = of("honest", n_votes=10)
    lead = CROWD.theta[votes.left] - CROWD.theta[votes.right]
    honest, opposite = (1 / (1 + np.exp(-to_left - lean)) for to_left in (lead, -lead))

    def likelihood(left: np.ndarray) -> float:
        return float(np.prod(np.where(votes.score == 1, left, 1 - left)))

    def fan(model: int, probability: float) -> np.ndarray:
        on = [votes.left == model, votes.right == model]
        return np.select(on, [probability, 1 - probability], honest)

    plain = [np.full(10, 0.5), np.full(10, 0.9), np.full(10, 0.1), opposite]
    fans = [fan(m, c) for m in range(6) for c in (0.95, 0.05)]
    evidence = 0.15 * sum(map(likelihood, plain)) + 0.4 / 12 * sum(map(likelihood, fans))
    check = check_voters(votes.rows(NAMES), CROWD.theta, 0.0, order_effect=lean)[0]
    assert check.log_e == pytest.approx(np.log(evidence / likelihood(honest)))


def test_the_maximum_runs_over_every_tenth_vote_and_the_last() -> None:
    votes = of("coin", n_votes=57)
    looks = [
        checked(Ballot(votes.left[:n], votes.right[:n], votes.score[:n], votes.voter[:n]))[0]
        for n in (10, 20, 30, 40, 50, 57)
    ]
    assert looks[-1].max_log_e == pytest.approx(max(0, *(look.log_e for look in looks)))
    assert [look.n for look in looks] == [10, 20, 30, 40, 50, 57]


def test_a_flag_is_not_taken_back() -> None:
    left = of("always-left", n_votes=30)
    honest = of("honest", seed=2, n_votes=300)
    both = Ballot(
        *(
            np.append(getattr(left, name), getattr(honest, name))
            for name in ("left", "right", "score", "voter")
        )
    )
    check = checked(both)[0]
    assert check.flagged
    assert check.log_e < check.max_log_e
    assert check.flagged_at is not None
    assert check.flagged_at <= 30


def test_ties_are_counted_and_otherwise_ignored() -> None:
    votes = of("honest", n_votes=40)
    mixed = Ballot(
        np.append(votes.left, [0, 1]),
        np.append(votes.right, [1, 2]),
        np.append(votes.score, [0.5, 0.5]),
        np.append(votes.voter, [0, 0]),
    )
    plain, tied = checked(votes)[0], checked(mixed)[0]
    assert (tied.n, tied.n_ties, tied.log_e) == (40, 2, plain.log_e)


def test_one_who_only_ties_is_never_flagged() -> None:
    votes = Ballot(np.array([0]), np.array([1]), np.array([0.5]), np.array([3]))
    check = checked(votes)[0]
    assert (check.voter, check.n, check.n_ties, check.log_e) == (3, 0, 1, 0.0)
    assert (check.leading, check.weight) == (None, 1.0)


def test_no_votes_are_no_voters() -> None:
    none = np.array([], dtype=np.int64)
    assert checked(Ballot(none, none, np.array([]), none)) == ()


@settings(max_examples=25)
@given(st.integers(0, 2**16))
def test_voters_do_not_bear_on_each_other(seed: int) -> None:
    votes = of("honest", seed=seed, n_voters=3, n_votes=15)
    order = np.random.default_rng(seed).permutation(45)
    order = order[np.argsort(order % 15, kind="stable")]  # interleaved, each in time order
    mixed = checked(Ballot(votes.left[order], votes.right[order], votes.score[order], order // 15))
    for one, check in zip(checked(votes), mixed, strict=True):
        assert check.log_e == pytest.approx(one.log_e)


def test_a_voter_is_judged_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = of("honest", n_voters=5, n_votes=12)
    at_once = checked(votes)
    monkeypatch.setattr("rating.voters.VOTERS_AT_ONCE", 2)
    assert [check.voter for check in checked(votes)] == [0, 1, 2, 3, 4]
    assert [check.log_e for check in checked(votes)] == pytest.approx(
        [check.log_e for check in at_once]
    )


def test_names_follow_the_models() -> None:
    votes = of("shill", n_votes=300)
    order = np.array([3, 5, 0, 1, 4, 2])
    sides = (np.argsort(order)[votes.left], np.argsort(order)[votes.right])
    renamed = Ballot(*sides, votes.score, votes.voter).rows([NAMES[i] for i in order])
    moved = check_voters(renamed, CROWD.theta[order], 0.6)[0]
    plain = checked(votes)[0]
    assert (moved.model, moved.flagged_at) == (plain.model, plain.flagged_at)
    assert moved.log_e == pytest.approx(plain.log_e)


def test_the_bar_is_one_over_alpha() -> None:
    votes = of("coin", n_votes=150)
    check = checked(votes)[0]
    just = np.exp(-check.max_log_e)
    assert checked(votes, alpha=min(just * 1.001, 0.999))[0].flagged
    assert not checked(votes, alpha=just * 0.999)[0].flagged


def probability_of_wins(won: int, n: int, gap: float, taste_sd: float) -> float:
    """Chance of one sequence of votes on one pair under the taste model, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    log_probability = -np.logaddexp(0, -(gap + np.sqrt(2) * taste_sd * nodes))
    log_other = -np.logaddexp(0, gap + np.sqrt(2) * taste_sd * nodes)
    return float(weights @ np.exp(won * log_probability + (n - won) * log_other) / weights.sum())


@pytest.mark.parametrize("taste_sd", [0.0, 0.5, 0.8])
def test_on_average_the_evidence_against_an_honest_voter_is_one(taste_sd: float) -> None:
    """Over all 2^8 ways to vote eight times on two models, exactly."""
    theta, n = np.array([0.3, -0.3]), 8
    ways, order = np.arange(2**n), np.arange(n)
    score = ((ways[:, None] >> order) & 1).astype(float)
    left = np.tile(order % 2, 2**n)
    votes = Ballot(left, 1 - left, score.ravel(), np.repeat(ways, n))
    checks = check_voters(votes.rows("xy"), theta, taste_sd)
    first_won = np.where(order % 2 == 0, score, 1 - score).sum(axis=1).astype(int)
    probability = [probability_of_wins(won, n, 0.6, taste_sd) for won in range(n + 1)]
    assert [check.n for check in checks] == [n] * 2**n
    expected = sum(
        probability[won] * np.exp(check.log_e)
        for won, check in zip(first_won, checks, strict=True)
    )
    assert expected == pytest.approx(1, abs=0.02)  # what Laplace leaves


@pytest.mark.parametrize(
    ("taste_sd", "names", "alpha", "message"),
    [
        (-0.1, NAMES, 0.05, "taste_sd must be finite and not negative, not -0.1"),
        (0.5, [*NAMES, "x"], 0.05, "7 names for 6 strengths"),
        (0.5, NAMES, 1.0, "alpha must lie between 0 and 1, not 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(
    taste_sd: float, names: list[str], alpha: float, message: str
) -> None:
    votes = of("honest", n_votes=10)
    with pytest.raises(DataError, match=message):
        check_voters(votes.rows(names), CROWD.theta, taste_sd, alpha=alpha)
