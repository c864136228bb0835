"""One contrast at a time: effective voters, the taste model, prompts, and nothing too certain."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rating import (
    Comparisons,
    NotIdentifiedError,
    RateOptions,
    Report,
    activity,
    fit,
    infer,
    rate,
    sandwich_covariance,
)
from rating.contrasts import Contrasts, _Ratio, _ratio, on_clusters_behind
from rating.covariance import (
    grouping,
    information_by_cluster,
    intersection,
    jackknife,
    taste_covariance,
    taste_sums,
)
from rating.leave_out import quantile
from rating.variants import POINTS_PER_NAT
from tests.rating.builders import by_cluster, random_votes, votes
from tests.rating.drawn import draw
from tests.simulation import D1, Design


def half_width(board: Report, model: str) -> float:
    row = next(row for row in board.ratings if row.model == model)
    return (row.upper - row.lower) / 2


def on_shared_prompts(n_prompts: int = 60, liking: float = 0.8) -> Comparisons:
    design = replace(D1, spread=0.0, taste=0.0, n_prompts=n_prompts, liking=liking)
    return design.draw(np.random.default_rng(3))


# Never too certain


def test_the_error_of_a_ratio_of_sums_is_the_jackknife_calculated_by_hand() -> None:
    ratio = _ratio(np.array([1.0, 2.0, 3.0]), np.ones(3))
    assert ratio is not None
    # Without one of the three clusters the ratio is 5/2, 4/2 or 3/2.
    assert ratio == pytest.approx((6 / 3, np.sqrt(2 / 3 * (1 / 4 + 0 + 1 / 4))))


def test_half_an_interval_is_the_widest_of_three_and_takes_a_degree_of_freedom() -> None:
    """By clusters, by prompts, and of independent votes: t of 4, 9 and endless degrees."""
    one = np.ones(6)
    contrasts = Contrasts(
        value=0 * one,
        variance=np.array([4.0, 1, 1, 4, 4, 1]),
        df=np.array([4.0, 4, 4, 0.99, 4, 1]),
        by_clusters=one,
        independent=np.array([1.0, 1, 9, 1, 0, 1]),
        by_prompt=np.array([1.0, 4, 1, 1, 1, 1]),
        prompt_df=9 * one,
        effective=one,
    )
    half = [2 * 2.776445, 2 * 2.262157, 3 * 1.959964, math.nan, math.nan, 12.706205]
    assert contrasts.half_width(0.95) == pytest.approx(half, rel=1e-6, nan_ok=True)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 5), st.integers(4, 40))
@example(seed=4272111, n_models=4, n_voters=1, n=4)  # rounds that differ by rounding alone
def test_no_small_file_has_an_interval_of_no_width(
    seed: int, n_models: int, n_voters: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    outcome = rng.choice(4, size=n, p=rng.dirichlet(np.ones(4)))
    names = [f"m{i}" for i in range(n_models)]
    voter, prompt = rng.integers(n_voters, size=n), rng.integers(rng.integers(1, 6), size=n)
    data = Comparisons.from_codes(
        names, a, b, outcome, voter=voter, prompt=prompt if seed % 2 else None
    )
    for options in (RateOptions(), RateOptions(claims="these-voters"), BOOTSTRAP):
        try:
            board = rate(data, options)
        except NotIdentifiedError:
            return
        for row in board.ratings:
            finite = math.isfinite(row.lower) and math.isfinite(row.upper)
            assert not finite or row.upper - row.lower > 1e-6
            assert not finite or row.lower <= row.rating <= row.upper


BOOTSTRAP = RateOptions(interval="bootstrap", rounds=100)


def test_a_bootstrap_whose_rounds_are_all_alike_says_so() -> None:
    rows = [("x", "y", o, f"v{v}") for v in range(8) for o in ("model_a", "model_b")]
    board = rate(votes(rows), BOOTSTRAP)
    assert all(math.isnan(row.lower) for row in board.ratings)
    assert "All rounds of the bootstrap" in " ".join(board.warnings)
    assert board.to_dict()["ratings"][0]["upper"] is None


# Effective voters


def test_effective_voters_of_a_contrast_are_counted_from_the_definition(
    rng: np.random.Generator,
) -> None:
    data = votes(random_votes(rng, n=300, n_voters=7))
    inference = infer(fit(data), data, ("voter",))
    contrast = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    pull = np.linalg.pinv(inference.fit.hessian) @ contrast
    shares = np.zeros(7)
    for cells in [inference.fit.scored(data)]:
        gap = pull[cells.design.a] - pull[cells.design.b]
        assert data.voter is not None
        np.add.at(shares, data.voter, cells.weight * cells.curve[0, 0] * gap**2)
    effective = inference.kinds[0].effective(contrast[None])[0]
    assert effective == pytest.approx(shares.sum() ** 2 / (shares**2).sum())
    assert inference.kinds[0].at_least(contrast[None])[0] <= effective


@pytest.mark.parametrize("ties", ["half", "davidson", "rao-kupper", "grounded"])
def test_information_adds_up_over_clusters(rng: np.random.Generator, ties: str) -> None:
    rows = draw(rng, ties, order=0.2, style=(0.3,))  # type: ignore[arg-type]
    data = rows.comparisons(voter=rows.voter, features=rows.features, feature_names=("length",))
    fitted = fit(data, ties=ties, order_effect=True)  # type: ignore[arg-type]
    vectors = rng.normal(size=(len(fitted.x), 3))
    parts = information_by_cluster(fitted, data, grouping(data, "voter"), vectors)
    total = sum(part.sum(axis=0) for part in parts)
    assert total == pytest.approx(np.einsum("im,ij,jm->m", vectors, fitted.hessian, vectors))


def test_pairs_of_votes_give_the_same_information_as_cells(rng: np.random.Generator) -> None:
    rows = draw(rng, "half")
    plain = rows.comparisons(voter=rows.voter)
    apart = rows.comparisons(voter=rows.voter, features=0 * rows.features[:, :0], feature_names=())
    vectors = rng.normal(size=(5, 4))
    one, other = (
        np.concatenate(
            [*information_by_cluster(fit(data), data, grouping(data, "voter"), vectors)]
        )
        for data in (plain, apart)
    )
    assert np.sort(one.sum(axis=1)) == pytest.approx(np.sort(other.sum(axis=1)))


def test_what_few_voters_show_is_mixed_with_what_random_effects_let_expect() -> None:
    data = Design(taste=0.8, spread=0.0, newcomer=(2, 60)).draw(np.random.default_rng(5))
    inference = infer(fit(data), data, ("voter",))
    kind, judged = inference.kinds[0], inference.ratings()
    contrasts = np.eye(10) - inference.founded / inference.founded.sum()
    by_voter, expected, independent = (
        np.einsum("ij,jk,ik->i", contrasts, matrix, contrasts)
        for matrix in (kind.matrix, kind.tasteful, inference.matrix)
    )
    nu, prior = judged.effective - 1, 4 * (1 - judged.effective / kind.activity.effective)
    prior = np.maximum(prior, 0)
    mixed = (prior * np.maximum(expected, independent) + nu * by_voter) / (prior + nu)
    counts = prior > 0.02 * (prior + nu)
    assert judged.variance == pytest.approx(np.where(counts, mixed, by_voter))
    assert judged.df == pytest.approx(nu + prior)
    assert judged.by_clusters == pytest.approx(by_voter)
    assert judged.independent == pytest.approx(independent)
    assert judged.effective == pytest.approx(kind.own.effective)
    new = next(row for row in rate(data).ratings if row.model == "m09")
    error = POINTS_PER_NAT * np.sqrt(judged.variance[9])
    own = (error, judged.df[9], judged.effective[9])
    assert (new.se, new.df, new.effective_voters) == pytest.approx(own)
    assert (counts[9], inference.founded.tolist()) == (True, [True] * 9 + [False])


def test_random_effects_are_fitted_to_products_of_scores_of_different_votes() -> None:
    """Vote by vote, from the definition in `taste_covariance`."""
    data = Design(n_models=3, n_voters=40, taste=0.8).draw(np.random.default_rng(3))
    fitted = fit(data)
    plain, taste, products, expected, scale = np.zeros((3, 3)), np.zeros((3, 3)), [], [], []
    for voter in range(40):
        own = data.subset(np.flatnonzero(data.voter == voter))
        x = np.repeat(np.eye(3)[own.pairs[:, 0]] - np.eye(3)[own.pairs[:, 1]], own.votes, axis=0)
        p = 1 / (1 + np.exp(-x @ fitted.theta))
        score = x * (np.repeat(own.score_a, own.votes) - p)[:, None]
        each = np.einsum("n,ni,nj->nij", p * (1 - p), x, x)
        whole, square = each.sum(axis=0), (each @ each).sum(axis=0)
        plain, taste = plain + whole, taste + whole @ whole - square
        products.append((score.sum(axis=0) ** 2).sum() - (score**2).sum())
        expected.append(np.trace(whole @ whole - square))
        scale.append(np.trace(whole))
    variance, share = 0.0, np.divide(expected, scale)
    for _ in range(200):
        weight = (1 + variance * share) ** -2
        variance = max(0.0, float(weight @ products / (weight @ expected)))
    bread = np.linalg.pinv(fitted.hessian)
    ours = taste_covariance(fitted, [taste_sums(data, fit=fitted, cluster="voter")])
    assert ours == pytest.approx(bread @ (plain + variance * taste) @ bread, rel=1e-6)
    assert variance > 0.1


# Prompts


def test_shared_prompts_widen_the_intervals_by_themselves() -> None:
    data = on_shared_prompts()
    by_both, by_voter = rate(data), rate(data, RateOptions(cluster="voter"))
    assert (by_both.options.cluster, by_voter.options.cluster) == ("both", "voter")
    assert half_width(by_both, "m03") > 1.15 * half_width(by_voter, "m03")
    assert (by_both.design_effect.prompt or 0) > 1.4
    fitted = fit(data)
    by_prompt, by_pair = (
        jackknife(fitted, data, groups)[1].sum()
        for groups in (grouping(data, "prompt"), intersection(data))
    )
    assert by_both.design_effect.prompt == pytest.approx(by_prompt / by_pair)
    times = np.trace(by_cluster(fitted, data)) / np.trace(sandwich_covariance(fitted, data))
    assert by_both.design_effect.voter == by_voter.design_effect.voter == pytest.approx(times)
    assert "Votes on one prompt are correlated" in " ".join(by_both.warnings)
    assert by_voter.design_effect.prompt is None


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "One prompt has 100% of the votes: the intervals hold for that prompt alone."),
        (19, "There are only 19 prompts: for other prompts, the intervals are rough."),
        (20, None),
    ],
)
def test_few_prompts_are_mentioned(n: int, words: str | None) -> None:
    board = rate(on_shared_prompts(n))
    sentence = [text for text in board.warnings if re.search("only|alone", text)]
    assert sentence == ([words] if words else [])
    assert board.options.cluster == ("voter" if n == 1 else "both")


def crossed(n_voters: int, n_prompts: int, new: Sequence[str]) -> Comparisons:
    """Votes of every voter on every prompt; two voters alone met the new models, or on two."""
    n = 6 * n_voters * n_prompts
    i, more = np.arange(n), np.arange(40 * len(new))
    a, outcome = i // 6 % 3, (i // 2 + i // 7) % 2
    return Comparisons.from_codes(
        ["x", "y", "z", *new],
        np.r_[a, 3 + more // 40],
        np.r_[(a + 1) % 3, more % 3],
        np.r_[outcome, more % 2],
        voter=np.r_[i % n_voters, more // 2 % np.where(more < 40, 2, 20)],
        prompt=np.r_[i // n_voters % n_prompts, more // 4 % np.where(more < 40, 10, 2)],
    )


def test_few_voters_and_few_prompts_are_both_named() -> None:
    assert rate(crossed(13, 14, [])).warnings[0] == (
        "Few data for 3 models: 13 voters and 14 prompts. Ranks are excluded only by "
        "Bonferroni-corrected t tests of pairs."
    )
    assert rate(crossed(20, 25, ["n1", "n2"])).warnings[0] == (
        "n1, n2 have fewer than 15 effective voters or prompts: their intervals use the pooled "
        "between-voter variance of the other models, and the mean rating is that of the others."
    )


@pytest.mark.parametrize(("error", "seen"), [(0.14, True), (0.16, False)])
def test_prompts_are_mentioned_from_two_standard_errors_on(error: float, seen: bool) -> None:
    data = on_shared_prompts(liking=0.0)
    inference = infer(fit(data), data, ("voter", "prompt"))
    ratio = replace(inference, prompt_effect=_Ratio(1.3, error))
    assert any("correlated" in text for text in on_clusters_behind(ratio)) is seen


def test_distinct_prompts_leave_the_board_by_voter_to_the_last_digit() -> None:
    by_voter = Design(taste=0.4).draw(np.random.default_rng(7))
    rows = np.repeat(np.arange(len(by_voter.votes)), by_voter.votes)
    data = Comparisons.from_codes(
        by_voter.models,
        by_voter.pairs[rows, 0],
        by_voter.pairs[rows, 1],
        by_voter.outcome[rows],
        voter=None if by_voter.voter is None else by_voter.voter[rows],
        prompt=np.arange(len(rows)),
    )
    both, alone = rate(data).to_dict(), rate(data, RateOptions(cluster="voter")).to_dict()
    assert both["ratings"] == alone["ratings"]
    assert both["method"]["cluster"] == "both"


# Small teams


def team() -> Comparisons:
    """Eight people, five thousand votes, four models far from each other."""
    design = Design("team", n_models=4, n_voters=8, busy="even", each=625, taste=0.4, spread=0.7)
    return design.draw(np.random.default_rng(8))


def separated(board: Report) -> int:
    """Count the pairs of models on which one is claimed to be better."""
    return sum((row.rank_low or 1) - 1 for row in board.ratings)


def test_claims_for_these_voters_are_more_and_named() -> None:
    everybody, these = rate(team()), rate(team(), RateOptions(claims="these-voters"))
    assert separated(these) > separated(everybody) > 0
    assert (these.options.claims, these.options.cluster) == ("these-voters", "none")
    assert these.ratings[0].df == math.inf
    assert these.to_dict()["ratings"][0]["effective_voters"] is None


def test_claims_for_these_voters_still_allow_for_prompts() -> None:
    data = on_shared_prompts(n_prompts=30)
    these = rate(data, RateOptions(claims="these-voters"))
    assert these.options.cluster == "prompt"
    assert {math.isnan(row.effective_voters) for row in these.ratings} == {True}


def test_three_raters_of_many_shared_prompts_claim_little_of_others() -> None:
    """The spread over three people may be small by chance, and prompts cannot make up for it."""
    design = Design(
        "raters", n_models=5, n_voters=3, busy="even", each=900, spread=0.5, n_prompts=300
    )
    data = replace(design, taste=0.0, liking=0.5).draw(np.random.default_rng(9))
    assert separated(rate(data)) < separated(rate(data, RateOptions(claims="these-voters"))) / 2


# The pieces


def test_two_effective_voters_are_enough_for_an_interval() -> None:
    rows = [("x", "y", o, f"v{v}") for v in range(2) for o in ["model_a", "model_a", "model_b"]]
    board = rate(votes(rows * 5))
    assert board.ratings[0].df == pytest.approx(1.0)
    t = quantile(0.95, 1.0)
    assert t == pytest.approx(12.706, abs=1e-3)
    assert activity(votes(rows)).effective == 2
