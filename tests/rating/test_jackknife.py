import numpy as np
import pytest

from rating import Comparisons, DataError, activity, fit, fit_bradley_terry, sandwich_covariance
from rating.covariance import Activity, grouping, leave_one_out
from rating.likelihood import solve
from tests.rating.builders import by_cluster, random_votes, strength, votes
from tests.simulation import Design

Row = tuple[str, str, str, str]


def jackknife_by_refits(rows: list[Row]) -> np.ndarray:
    """Fit without each voter in turn, from the votes."""
    full = fit_bradley_terry(votes(rows))
    voters = sorted({row[3] for row in rows})
    shifts = [
        fit_bradley_terry(votes([row for row in rows if row[3] != voter])).theta - full.theta
        for voter in voters
    ]
    return np.asarray((len(voters) - 1) / len(voters) * sum(np.outer(d, d) for d in shifts))


def covariance_of(rows: list[Row]) -> np.ndarray:
    data = votes(rows)
    return by_cluster(fit_bradley_terry(data), data)


def test_three_equal_voters_are_left_out_exactly(rng: np.random.Generator) -> None:
    rows = random_votes(rng, n=300, n_models=4, n_voters=3)
    assert covariance_of(rows) == pytest.approx(jackknife_by_refits(rows), rel=1e-7)


def test_the_mixture_of_steps_and_refits_is_the_jackknife_within_one_per_cent() -> None:
    data = Design(n_voters=120, taste=0.8).draw(np.random.default_rng(4))
    fit = fit_bradley_terry(data)
    assert data.voter is not None
    total = np.zeros((10, 10))
    for voter in range(data.n_voters):
        shift = solve(data.wins(data.voter != voter), fit.theta).theta - fit.theta
        total += np.outer(shift, shift)
    exact = np.sqrt(np.diag(total) * (data.n_voters - 1) / data.n_voters)
    ours = np.sqrt(np.diag(by_cluster(fit, data)))
    assert ours == pytest.approx(exact, rel=0.01)


def test_the_effective_number_of_voters_falls_with_unequal_activity() -> None:
    rows = [("x", "y", "tie", voter) for voter in "aaaaaaabbc"]
    spread = activity(votes(rows))
    counts = np.array([7, 2, 1])
    cv = counts.std() / counts.mean()
    assert spread.n_clusters == 3
    assert spread.effective == pytest.approx(3 / (1 + cv**2))
    assert spread.top_share == pytest.approx(0.7)
    one = Comparisons.from_arrays("xx", "yy", ["tie"] * 2, voter=["a", "b"], weight=[1.0, 0.0])
    assert activity(one) == Activity(1, 1.0, 1.0)  # a vote of weight zero is of no voter


def test_clustering_needs_voters_and_two_of_them() -> None:
    unknown = votes([("x", "y", "tie")])
    with pytest.raises(DataError, match="no voters"):
        by_cluster(fit_bradley_terry(unknown), unknown)
    alone = votes([("x", "y", "tie", "ann")])
    with pytest.raises(DataError, match="two voters"):
        by_cluster(fit_bradley_terry(alone), alone)


def test_a_model_that_one_voter_alone_rated_is_not_certain(rng: np.random.Generator) -> None:
    new = [("new", "m0", "model_a", "fan"), ("new", "m1", "model_b", "fan")]
    data = votes([*random_votes(rng), *new])
    fit = fit_bradley_terry(data)
    at = fit.models.index("new")
    assert by_cluster(fit, data)[at, at] >= 0.9 * sandwich_covariance(fit, data)[at, at] > 1


def test_a_group_that_one_voter_alone_joins_to_the_rest_is_not_certain(
    rng: np.random.Generator,
) -> None:
    pair = [
        (a, b, o, v) for v in "pqrst" for a, b, o in [("y", "z", "model_a"), ("z", "y", "model_a")]
    ]
    bridge = [("y", "m0", "model_a", "p"), ("m0", "y", "model_a", "p")]
    data = votes([*random_votes(rng), *pair, *bridge])
    fit = fit_bradley_terry(data)
    at = fit.models.index("y")
    assert by_cluster(fit, data)[at, at] >= 0.5 * sandwich_covariance(fit, data)[at, at] > 0.1


def test_a_model_beaten_by_one_voter_alone_gets_a_finite_interval(
    rng: np.random.Generator,
) -> None:
    top = [("top", "m0", "model_a", f"v{i}") for i in range(15)]
    data = votes([*random_votes(rng), *top, ("top", "m1", "model_b", "v3")])
    fit = fit_bradley_terry(data)
    assert strength(fit)["top"] == max(fit.theta)
    assert np.isfinite(by_cluster(fit, data)).all()


def test_every_voter_is_left_out_once_and_together_they_make_the_covariance() -> None:
    data = Design(n_voters=60, taste=0.8).draw(np.random.default_rng(12))
    fit = fit_bradley_terry(data)
    parts = list(leave_one_out(fit, data, grouping(data, "voter")))
    clusters, shift, share = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("clusters", "shift", "share")
    )
    assert sorted(clusters) == list(range(60))
    assert len(parts) > 2  # one of the light ones, and one for each heavy one
    assert share.sum() == pytest.approx(1)
    assert 59 / 60 * shift.T @ shift == pytest.approx(by_cluster(fit, data), rel=1e-9)


def test_many_cells_are_summed_in_blocks_of_any_size(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, k = 600, 4
    a = rng.integers(k, size=n)
    data = Comparisons.from_codes(
        [f"m{i}" for i in range(k)],
        a,
        (a + rng.integers(1, k, size=n)) % k,
        rng.integers(4, size=n),
        voter=rng.integers(30, size=n),
        features=rng.normal(size=(n, 2)),
        feature_names=["length", "lists"],
    )

    def estimates() -> list[np.ndarray]:
        best = fit(data, ties="rao-kupper", order_effect=True)
        return [best.x, sandwich_covariance(best, data), by_cluster(best, data)]

    whole = estimates()
    monkeypatch.setattr("rating.likelihood.BLOCK_ROWS", 7)
    for there, here in zip(whole, estimates(), strict=True):
        assert here == pytest.approx(there, rel=1e-9, abs=1e-13)
