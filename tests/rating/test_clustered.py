"""Covariances by voter, by prompt and both, of every kind of fit."""

from dataclasses import replace

import numpy as np
import pytest

from rating import (
    DataError,
    Fit,
    Ties,
    activity,
    covariance,
    fit,
    hessian_covariance,
    jackknife,
    sandwich,
)
from rating.clusters import Cluster
from rating.comparisons import Comparisons
from rating.likelihood import cell_objective
from tests.rating.drawn import Drawn, draw

ALL: list[Ties] = ["half", "davidson", "rao-kupper", "grounded"]
CLUSTERS: list[Cluster] = ["voter", "prompt"]


def known(rows: Drawn) -> Comparisons:
    return rows.comparisons(
        voter=rows.voter, prompt=rows.prompt, features=rows.features, feature_names=["length"]
    )


def fitted(data: Comparisons, ties: Ties) -> Fit:
    return fit(data, ties=ties, order_effect=True)


def refit_without(found: Fit, data: Comparisons, ties: Ties, kept: np.ndarray) -> np.ndarray:
    return fitted(data.subset(kept), ties).x - found.x


@pytest.mark.parametrize("ties", ALL)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_cluster_left_out_by_refits(
    rng: np.random.Generator, ties: Ties, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jackknife, "REFIT_LEVERAGE", 0.0)
    data = known(draw(rng, ties, n=900, style=(0.3,), n_voters=6, n_prompts=7, order=0.2))
    found = fitted(data, ties)
    index = getattr(data, cluster)
    shifts = [refit_without(found, data, ties, index != c) for c in range(index.max() + 1)]
    u = len(shifts)
    expected = (u - 1) / u * sum(np.outer(d, d) for d in shifts)
    ours = covariance(found, data, method="cr3", cluster=cluster)
    assert ours.matrix == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("ties", ALL)
def test_light_clusters_are_left_out_by_one_newton_step(
    rng: np.random.Generator, ties: Ties
) -> None:
    data = known(draw(rng, ties, n=2500, style=(0.3,), n_voters=60))
    found = fitted(data, ties)
    assert data.voter is not None
    total = np.zeros_like(found.hessian)
    for voter in range(60):
        rest = data.subset(data.voter != voter)
        at = cell_objective(found.likelihood, rest, order_effect=True).evaluate(found.x)
        step = np.linalg.pinv(at.hessian, rcond=1e-10) @ at.gradient
        total += np.outer(step, step)
    ours = covariance(found, data, method="cr3", cluster="voter")
    assert ours.matrix == pytest.approx(59 / 60 * total, rel=1e-5, abs=1e-10)


@pytest.mark.parametrize("ties", ALL)
def test_cr1_sums_the_scores_of_each_cluster(rng: np.random.Generator, ties: Ties) -> None:
    data = known(draw(rng, ties, n=1200, style=(0.3,), n_voters=12))
    found = fitted(data, ties)
    assert data.voter is not None
    bread, meat = hessian_covariance(found), np.zeros_like(found.hessian)
    for voter in range(12):
        own = data.subset(data.voter == voter)
        score = cell_objective(found.likelihood, own, order_effect=True).evaluate(found.x).gradient
        meat += np.outer(score, score)
    expected = 12 / 11 * bread @ meat @ bread
    ours = covariance(found, data, method="cr1", cluster="voter")
    assert ours.matrix == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_clusters_beyond_one_chunk_are_all_counted(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = known(draw(rng, "davidson", style=(0.3,), n_voters=200))
    found = fitted(data, "davidson")
    whole = {m: covariance(found, data, method=m).matrix for m in ("cr1", "cr3")}
    monkeypatch.setattr(sandwich, "CHUNK_ENTRIES", 100)
    monkeypatch.setattr(jackknife, "CHUNK_ENTRIES", 100)
    for method, matrix in whole.items():
        ours = covariance(found, data, method=method)  # type: ignore[arg-type]
        assert ours.matrix == pytest.approx(matrix, rel=1e-6, abs=1e-12)


def test_cells_split_in_two_are_the_same_votes(rng: np.random.Generator) -> None:
    rows = draw(rng, "rao-kupper", n=700)
    twice = [np.concatenate([x, x]) for x in (rows.a, rows.b, rows.outcome, rows.voter)]
    a, b, outcome, voter = twice
    split = Comparisons.from_codes(rows.models, a, b, outcome, voter=voter)
    whole = rows.comparisons(voter=rows.voter, votes=np.full(700, 2))
    one, two = fit(split, ties="rao-kupper"), fit(whole, ties="rao-kupper")
    assert one.x == pytest.approx(two.x, abs=1e-10)
    assert covariance(one, split).matrix == pytest.approx(covariance(two, whole).matrix, rel=1e-7)


def test_two_ways_are_one_more_than_their_intersection(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=3000, n_voters=20, n_prompts=25)
    data = rows.comparisons(voter=rows.voter, prompt=rows.prompt)
    joint = rows.comparisons(voter=rows.voter * 25 + rows.prompt)
    found = fit(data)
    parts = [covariance(found, data, method="cr1", cluster=c).matrix for c in CLUSTERS]
    both = covariance(found, joint, method="cr1", cluster="voter").matrix
    ours = covariance(found, data, method="cr1", cluster="both")
    assert not ours.clipped
    assert ours.matrix == pytest.approx(parts[0] + parts[1] - both, rel=1e-8, abs=1e-12)
    spread = [activity(data, c) for c in CLUSTERS]
    assert ours.df == pytest.approx(min(s.effective for s in spread) - 1)


def test_a_two_way_matrix_that_is_not_positive_is_clipped_and_says_so() -> None:
    boards = []
    for seed in range(20):
        rows = draw(np.random.default_rng(seed), "half", n=400, n_voters=4, n_prompts=4)
        data = rows.comparisons(voter=rows.voter, prompt=rows.prompt)
        boards.append(covariance(fit(data), data, method="cr1", cluster="both"))
    found = next(board for board in boards if board.clipped)
    assert np.linalg.eigvalsh(found.matrix)[0] > -1e-12
    assert any("not positive" in said for said in found.warnings)
    assert any("4 prompts are too few" in said for said in found.warnings)


def test_the_design_effect_sees_votes_that_hang_together(rng: np.random.Generator) -> None:
    rows = draw(rng, "half", n=1000)
    alone = rows.comparisons(voter=np.arange(1000))
    fives = rows.comparisons(voter=np.arange(1000), votes=np.full(1000, 5))
    assert covariance(fit(alone), alone, method="cr1").design_effect == pytest.approx(1000 / 999)
    assert covariance(fit(fives), fives, method="cr1").design_effect == pytest.approx(5000 / 999)


def test_independent_methods_have_no_clusters(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    for method in ("hessian", "sandwich"):
        found = covariance(fit(data), data, method=method)
        assert found.df == np.inf
        assert (found.cluster, found.activity, found.design_effect) == (None, None, None)


def test_the_boundary_has_no_error_for_the_parameter_of_ties(rng: np.random.Generator) -> None:
    rows = draw(rng, "half")
    data = rows.comparisons(voter=rows.voter)
    plain, davidson = fit(data), fit(data, ties="davidson")
    assert covariance(davidson, data).matrix == pytest.approx(covariance(plain, data).matrix)


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
    found = fit(data, ties=ties)
    implied = hessian_covariance(found)[4, 4]
    for method in ("sandwich", "cr3"):
        ours = covariance(found, data, method=method)
        assert ours.matrix[4, 4] > 0.5 * implied


def test_what_does_not_go_together_raises(rng: np.random.Generator) -> None:
    data = draw(rng, "half").comparisons()
    found = fit(data)
    with pytest.raises(DataError, match="no voters"):
        covariance(found, data)
    with pytest.raises(DataError, match="no prompts"):
        covariance(found, data, cluster="prompt")
    with pytest.raises(DataError, match="cr1 needs clusters"):
        covariance(found, data, method="cr1", cluster=None)
    with pytest.raises(DataError, match="'cr2'"):
        covariance(found, data, method="cr2")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'judge'"):
        covariance(found, data, cluster="judge")  # type: ignore[arg-type]
    other = Comparisons.from_arrays(["x", "y"], ["y", "x"], ["model_a"] * 2)
    with pytest.raises(DataError, match="same models"):
        covariance(found, other)
    alone = draw(rng, "half", n_voters=1)
    with pytest.raises(DataError, match="two voters"):
        covariance(found, alone.comparisons(voter=alone.voter), method="cr1")
