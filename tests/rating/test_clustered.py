"""Covariances by voter, by prompt and both, of every kind of fit."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from rating import (
    DataError,
    Fit,
    RateOptions,
    Ties,
    covariance,
    fit,
    hessian_covariance,
    infer,
    rate,
    sandwich_covariance,
)
from rating.comparisons import Comparisons
from rating.covariance import Cluster, grouping
from rating.leave_out import two_way
from rating.likelihood import cell_objective
from tests.rating.builders import by_cluster
from tests.rating.drawn import Drawn, draw
from tests.simulation import runs

ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]
CLUSTERS: list[Cluster] = ["voter", "prompt"]


def known(rows: Drawn) -> Comparisons:
    return rows.comparisons(
        voter=rows.voter, prompt=rows.prompt, features=rows.features, feature_names=["length"]
    )


def fitted(data: Comparisons, ties: Ties) -> Fit:
    return fit(data, ties=ties, order_effect=True)


@pytest.mark.parametrize("ties", ALL)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_cluster_left_out_by_refits(
    rng: np.random.Generator, ties: Ties, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covariance, "REFIT_LEVERAGE", 0.0)
    data = known(draw(rng, ties, n=900, style=(0.3,), n_voters=6, n_prompts=7, order=0.2))
    result = fitted(data, ties)
    index = getattr(data, cluster)
    shifts = [fitted(data.subset(index != c), ties).x - result.x for c in range(index.max() + 1)]
    u = len(shifts)
    expected = (u - 1) / u * sum(np.outer(d, d) for d in shifts)
    assert by_cluster(result, data, cluster) == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("ties", ALL)
def test_light_clusters_are_left_out_by_one_newton_step(
    rng: np.random.Generator, ties: Ties
) -> None:
    data = known(draw(rng, ties, n=2500, style=(0.3,), n_voters=60))
    result = fitted(data, ties)
    assert data.voter is not None
    total = np.zeros_like(result.hessian)
    for voter in range(60):
        rest = data.subset(data.voter != voter)
        at = cell_objective(result.likelihood, rest, order_effect=True).evaluate(result.x)
        step = np.linalg.pinv(at.hessian, rcond=1e-10) @ at.gradient
        total += np.outer(step, step)
    assert by_cluster(result, data) == pytest.approx(59 / 60 * total, rel=1e-5, abs=1e-10)


@pytest.mark.parametrize("ties", ALL)
def test_votes_with_a_cluster_of_their_own_are_left_out_without_repeating(
    rng: np.random.Generator, ties: Ties
) -> None:
    """Clusters of one cell have a formula of their own where a vote moves the gap alone."""
    rows = draw(rng, ties, n=900, style=(0.3,), order=0.2)
    voter = np.where(np.arange(900) < 500, 1000 + np.arange(900), rows.voter)
    data = rows.comparisons(voter=voter, features=rows.features, feature_names=["length"])
    result, groups = fitted(data, ties), grouping(data, "voter")
    parts = list(covariance.leave_one_out(result, data, groups))
    shift = np.concatenate([part.shift for part in parts])
    order = np.argsort(np.concatenate([part.clusters for part in parts]))
    u = len(shift)
    matrix, moved = covariance.jackknife(result, data, groups)
    assert matrix == pytest.approx((u - 1) / u * shift.T @ shift, rel=1e-6, abs=1e-12)
    lengths = (shift[order, :5] ** 2).sum(axis=1)
    assert moved == pytest.approx(lengths, rel=1e-6, abs=1e-12)


def test_clusters_beyond_one_chunk_are_all_counted(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = known(draw(rng, "davidson", style=(0.3,), n_voters=200))
    result = fitted(data, "davidson")
    whole = by_cluster(result, data)
    monkeypatch.setattr(covariance, "CHUNK_ENTRIES", 100)
    assert by_cluster(result, data) == pytest.approx(whole, rel=1e-6, abs=1e-12)


def test_two_ways_are_added_contrast_by_contrast(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=3000, n_voters=20, n_prompts=25)
    data = rows.comparisons(voter=rows.voter, prompt=rows.prompt)
    joint = rows.comparisons(voter=rows.voter * 25 + rows.prompt)
    fitted = fit(data)
    pair = np.array([[1.0, -1.0, 0.0, 0.0, 0.0]])
    voters, prompts, both = (
        float(pair[0] @ by_cluster(fitted, *known) @ pair[0])
        for known in ((data, "voter"), (data, "prompt"), (joint, "voter"))
    )
    ours = infer(fitted, data, ("voter", "prompt")).of(pair)
    assert ours.by_clusters[0] == pytest.approx(voters + max(0.0, prompts - both), rel=1e-8)
    by_voter, by_prompt = (infer(fitted, data, (kind,)).of(pair) for kind in CLUSTERS)
    assert (ours.by_prompt, ours.prompt_df) == (by_prompt.variance, by_prompt.df)
    one, other = ((each.variance, each.df) for each in (by_voter, by_prompt))
    total = two_way(one, other, np.array([both]))
    assert np.array([ours.variance, ours.df]) == pytest.approx(np.array(total))
    assert ours.effective == min(by_voter.effective, by_prompt.effective)


def test_the_boundary_has_no_error_for_the_parameter_of_ties(rng: np.random.Generator) -> None:
    rows = draw(rng, "half")
    data = rows.comparisons(voter=rows.voter)
    plain, davidson = fit(data), fit(data, ties="davidson")
    assert by_cluster(davidson, data) == pytest.approx(by_cluster(plain, data))


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper"])
def test_models_that_only_tied_are_not_certain(rng: np.random.Generator, ties: Ties) -> None:
    rows = draw(rng, ties, n=3000)
    tied = replace(rows, outcome=np.where((rows.a == 4) | (rows.b == 4), 2, rows.outcome))
    keep = (tied.a != 4) & (tied.b != 4) | (np.arange(3000) < 20)
    few = Drawn(
        tied.models,
        *(x[keep] for x in (tied.a, tied.b, tied.outcome)),
        *(x[keep] for x in (tied.voter, tied.prompt, tied.features)),
    )
    data = few.comparisons(voter=few.voter)
    fitted = fit(data, ties=ties)
    implied = hessian_covariance(fitted)[4, 4]
    for matrix in (sandwich_covariance(fitted, data), by_cluster(fitted, data)):
        assert matrix[4, 4] > 0.5 * implied


def test_clusters_that_are_not_known_or_alone_raise(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    fitted = fit(data)
    with pytest.raises(DataError, match="no voters"):
        infer(fitted, data, ("voter",))
    with pytest.raises(DataError, match="no prompts"):
        infer(fitted, data, ("prompt",))
    alone = draw(rng, "half", n_voters=1)
    with pytest.raises(DataError, match="two voters"):
        infer(fitted, alone.comparisons(voter=alone.voter), ("voter",))


def covered_under_other_ids(
    count: int, *, voter_ids: int = 1, n_prompts: int = 0, prompt_ids: int = 1, joined: bool
) -> float:
    """How often intervals of six models cover; persons and prompts have several ids each.

    2,400 votes by 80 people, random effects of 0.8 nats of people and of prompts on each model.
    Joined, the ids of a person, and of a prompt, are one cluster.
    """
    k, n, rng = 6, 2400, np.random.default_rng([voter_ids, n_prompts])
    theta, names = np.linspace(-0.8, 0.8, k), [f"m{i}" for i in range(k)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    sd = 0.8 * np.sqrt(2 if n_prompts else 1)
    gap = theta[:, None] - theta + 1e-12
    even = expit(gap[..., None] + np.sqrt(2) * sd * nodes) @ (weights / weights.sum())
    truth = np.zeros(k)
    for _ in range(50):  # Bradley-Terry on the marginal probabilities, all pairs alike
        p = expit(truth[:, None] - truth)
        curve = np.diag((p * (1 - p)).sum(axis=1)) - p * (1 - p)
        truth = truth + np.linalg.pinv(curve) @ (even - p).sum(axis=1)
    inside = []
    for _ in range(count):
        person = rng.integers(80, size=n)
        prompt = rng.integers(n_prompts, size=n) if n_prompts else np.arange(n)
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        liked = theta + rng.normal(0, 0.8, (80, k))[person]
        if n_prompts:
            liked = liked + rng.normal(0, 0.8, (n_prompts, k))[prompt]
        at = np.arange(n)
        won = rng.random(n) < expit(liked[at, a] - liked[at, b])
        ids = [rng.integers(many, size=n) * (not joined) for many in (voter_ids, prompt_ids)]
        data = Comparisons.from_codes(
            names,
            a,
            b,
            np.where(won, 0, 1),
            voter=person * voter_ids + ids[0],
            prompt=prompt * prompt_ids + ids[1] if n_prompts else None,
        )
        rows = {row.model: row for row in rate(data, RateOptions()).ratings}
        points = 1000 + 400 / np.log(10) * truth
        inside += [
            rows[m].lower <= one <= rows[m].upper for m, one in zip(names, points, strict=True)
        ]
    return float(np.mean(inside))


@pytest.mark.slow
@pytest.mark.parametrize(
    "ids", [{"voter_ids": 3}, {"n_prompts": 60, "prompt_ids": 3}], ids=["persons", "prompts"]
)
def test_intervals_take_the_ids_of_one_person_or_prompt_for_several(
    ids: dict[str, int], record_property: Callable[[str, object], None]
) -> None:
    count = runs(100)
    joined, apart = (covered_under_other_ids(count, joined=one, **ids) for one in (True, False))
    record_property(f"several ids, {count} boards", {**ids, "joined": joined, "apart": apart})
    assert joined >= 0.92
    assert apart < joined - 0.015
