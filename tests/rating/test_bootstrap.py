from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

from rating import Comparisons, DataError, Ties, bootstrap, fit, sandwich_covariance
from rating.covariance import Cluster
from rating.resampling import Bootstrap, PairRounds, PoissonTable, chord_newton, random_words
from tests.rating.builders import cr1, votes, wins
from tests.rating.drawn import draw

ROUNDS = 600
CLOSE = 5 / np.sqrt(2 * ROUNDS)
"""Five Monte Carlo errors of a standard deviation."""


def spread(draws: Bootstrap) -> np.ndarray:
    return np.asarray(draws.theta.std(axis=0))


@pytest.mark.parametrize("cluster", [None, "voter", "prompt"])
def test_the_spread_of_the_rounds_is_the_standard_error(
    rng: np.random.Generator, cluster: Cluster | None
) -> None:
    rows = draw(rng, "rao-kupper", n=8000, n_voters=300, n_prompts=200)
    data = rows.comparisons(voter=rows.voter, prompt=rows.prompt)
    one = fit(data)
    matrix = sandwich_covariance(one, data) if cluster is None else cr1(one, data, cluster)
    error = np.sqrt(np.diag(matrix))
    draws = bootstrap(one, data, rounds=ROUNDS, cluster=cluster, rng=rng)
    assert spread(draws) == pytest.approx(error, rel=CLOSE + 0.02)
    assert draws.n_degenerate == 0
    low, high = draws.interval()
    assert (low < one.theta).all()
    assert (high - low) / error == pytest.approx(np.full(5, 2 * 1.96), rel=0.25)


def test_copies_of_every_vote_count_only_without_their_voters(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=2000)
    data = rows.comparisons(voter=np.arange(2000), votes=np.full(2000, 4))
    one = fit(data)
    apart = spread(bootstrap(one, data, rounds=ROUNDS, rng=rng))
    together = spread(bootstrap(one, data, rounds=ROUNDS, cluster="voter", rng=rng))
    assert together / apart == pytest.approx(np.full(5, 2.0), rel=2 * CLOSE)


def test_unequal_weights_are_allowed_for(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=4000)
    data = rows.comparisons(weight=rng.choice([0.5, 4.0], size=4000))
    one = fit(data)
    error = np.sqrt(np.diag(sandwich_covariance(one, data)))
    draws = bootstrap(one, data, rounds=ROUNDS, rng=rng)
    assert spread(draws) == pytest.approx(error, rel=CLOSE + 0.02)


@pytest.mark.parametrize("ties", ["davidson", "grounded"])
def test_other_fits_are_refitted(rng: np.random.Generator, ties: Ties) -> None:
    rows = draw(rng, ties, n=1500)
    data = rows.comparisons(voter=rows.voter)
    one = fit(data, ties=ties)
    error = np.sqrt(np.diag(sandwich_covariance(one, data))[:5])
    draws = bootstrap(one, data, rounds=60, rng=rng)
    assert spread(draws) == pytest.approx(error, rel=5 / np.sqrt(120) + 0.02)
    by_voter = bootstrap(one, data, rounds=5, cluster="voter", rng=rng)
    assert np.isfinite(by_voter.theta).all()


def test_every_round_is_a_maximum_of_its_own_votes(rng: np.random.Generator) -> None:
    first, second = np.triu_indices(6, k=1)
    games = rng.poisson(60, (15, 40)).astype(float) + 5
    score = np.minimum(rng.poisson(25, (15, 40)) + 1.0, games - 1)
    one = PairRounds.of(first, second, 6, games, score)
    bread = np.asarray((np.eye(6) - 1 / 6) / 96, dtype=np.float64)  # 64 games between equals
    theta, done = chord_newton(one, np.zeros(6), bread, ridge=0.0)
    assert done.all()
    for r in range(40):
        probability = 1 / (1 + np.exp(theta[:, r] - theta[:, r][:, None]))
        won = one.wins(r)
        assert ((won + won.T) * probability - won).sum(axis=1) == pytest.approx(
            np.zeros(6), abs=1e-3
        )


def test_rounds_that_stall_are_solved_by_themselves(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = draw(rng, "half", n=500).comparisons()
    one = fit(data)
    quick = bootstrap(one, data, rounds=30, rng=np.random.default_rng(1))
    monkeypatch.setattr("rating.resampling.MAX_CHORD_STEPS", 1)
    slow = bootstrap(one, data, rounds=30, rng=np.random.default_rng(1))
    assert quick.theta == pytest.approx(slow.theta, abs=1e-5)


def test_a_degenerate_round_counts_as_infinite_and_is_reported() -> None:
    top = [("x", "y", 30), ("y", "x", 30), ("x", "top", 1), ("top", "x", 30)]
    data = wins(top)
    draws = bootstrap(fit(data), data, rounds=400, rng=np.random.default_rng(0))
    share = draws.n_degenerate / 400
    assert share == pytest.approx(np.exp(-1), abs=0.12)  # the one lost vote is not drawn
    at = draws.models.index("top")
    assert np.isposinf(draws.theta[:, at]).sum() == draws.n_degenerate
    low, high = draws.interval()
    assert np.isfinite(low).all()
    assert np.isposinf(high[at])
    assert np.isfinite(np.delete(high, at)).all()


def test_a_model_that_a_round_cannot_compare_is_unbounded_both_ways() -> None:
    data = votes(
        [("x", "y", "model_a"), ("x", "y", "model_b")] * 30
        + [("z", "y", "model_a"), ("z", "y", "model_b")]
    )
    draws = bootstrap(fit(data), data, rounds=300, rng=np.random.default_rng(0))
    low, high = draws.interval()
    at = draws.models.index("z")
    assert np.isnan(draws.theta[:, at]).mean() == pytest.approx(np.exp(-2), abs=0.07)
    assert (low[at], high[at]) == (-np.inf, np.inf)


def test_a_general_round_without_a_fit_says_nothing_of_any_model() -> None:
    rows = [("x", "y", "model_a"), ("x", "y", "model_b")] * 8 + [("x", "y", "tie")]
    data = votes(rows)
    draws = bootstrap(fit(data, ties="davidson"), data, rounds=60, rng=np.random.default_rng(0))
    assert 0 < draws.n_degenerate < 60
    assert np.isnan(draws.theta[~np.isfinite(draws.theta).all(axis=1)]).all()


def test_the_generator_decides(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    one = fit(data)

    def again(seed: int) -> np.ndarray:
        return bootstrap(one, data, rounds=150, rng=np.random.default_rng(seed)).theta

    assert (again(3) == again(3)).all()
    assert (again(3) != again(4)).any()


def test_a_ridge_holds_every_round(rng: np.random.Generator) -> None:
    data = wins([("x", "y", 9)])
    draws = bootstrap(fit(data, ridge=0.5), data, rounds=50, rng=rng)
    assert draws.n_degenerate == 0


@pytest.mark.parametrize("mean", [0.3, 1.0, 8.0, 12.0, 400.0])
def test_numbers_drawn_have_the_moments_of_poisson(rng: np.random.Generator, mean: float) -> None:
    drawn = PoissonTable.of(np.full(20, mean)).sums(random_words(20, 20_000, rng)).ravel()
    n = len(drawn)
    assert drawn.mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / n))
    assert drawn.var() == pytest.approx(mean, rel=0.007 + 5 * np.sqrt((2 + 1 / mean) / n))
    skew = ((drawn - mean) ** 3).mean() / mean**1.5
    assert skew == pytest.approx(1 / np.sqrt(mean), abs=0.08)
    assert drawn.min() >= 0


@pytest.mark.parametrize("mean", [0.0, 1e-6, 0.3, 1.0, 5.5, 9.999])
def test_all_words_together_give_the_poisson_distribution(mean: float) -> None:
    words = np.arange(2**16, dtype=np.uint16)[None]
    drawn = PoissonTable.of(np.array([mean])).sums(words)[0].astype(int)
    share = np.bincount(drawn, minlength=40) / 2**16
    assert share.cumsum() == pytest.approx(poisson.cdf(np.arange(len(share)), mean), abs=2**-17)
    assert (np.diff(drawn) >= 0).all()


@pytest.mark.parametrize("mean", [10.0, 1000.0])
def test_all_words_together_have_the_moments_of_poisson(mean: float) -> None:
    words = np.arange(2**16, dtype=np.uint16)[None]
    drawn = PoissonTable.of(np.array([mean])).sums(words)[0]
    assert drawn.mean() == pytest.approx(mean, rel=1e-5)
    assert drawn.var() == pytest.approx(mean, rel=0.1 / mean + 1e-5)
    assert ((drawn - mean) ** 3).mean() == pytest.approx(mean, rel=0.1 / mean + 1e-3)


def test_bad_requests_raise(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    one = fit(data)
    with pytest.raises(DataError, match="rounds"):
        bootstrap(one, data, rounds=0, rng=rng)
    with pytest.raises(DataError, match="no voters"):
        bootstrap(one, data, cluster="voter", rng=rng)
    with pytest.raises(DataError, match="level"):
        bootstrap(one, data, rounds=5, rng=rng).interval(1.5)


def test_models_numbered_by_narrow_types_are_drawn_alike(rng: np.random.Generator) -> None:
    k, n = 40, 4000
    a = rng.integers(0, k, n)
    b = (a + rng.integers(1, k, n)) % k
    names = [f"model {i:02}" for i in range(k)]
    wide = Comparisons.from_codes(names, a, b, rng.integers(0, 3, n))
    narrow = replace(wide, pairs=wide.pairs.astype(np.int8))
    theta = [
        bootstrap(fit(data), data, rounds=5, rng=np.random.default_rng(0)).theta
        for data in (wide, narrow)
    ]
    assert (theta[0] == theta[1]).all()


def test_of_two_models_that_a_round_does_not_compare_neither_has_a_finite_interval() -> None:
    data = Comparisons.from_arrays(["x", "y"], ["y", "x"], ["model_a", "model_a"])
    draws = bootstrap(fit(data), data, rounds=200, rng=np.random.default_rng(0))
    assert np.isinf(draws.interval()).all()
