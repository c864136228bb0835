"""One contrast at a time: effective voters, the taste model, prompts, and nothing too certain."""

import math
import re
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
from rating.contrasts import _ratio
from rating.covariance import grouping, information_by_cluster
from rating.leave_out import quantile
from rating.variants import POINTS_PER_NAT
from tests.rating.builders import random_votes, votes
from tests.rating.drawn import draw
from tests.simulation import D1, Design


def half_width(board: Report, model: str) -> float:
    row = next(row for row in board.ratings if row.model == model)
    return (row.upper - row.lower) / 2


def evenly_split(rng: np.random.Generator) -> Comparisons:
    """Three hundred voters, and m7, on which three of them voted, half for and half against it."""
    rows = [(a, b, o, v) for a, b, o, v in random_votes(rng, n=6000, n_models=7, n_voters=300)]
    rows += [("m7", "m0", o, f"v{v}") for v in range(3) for o in ["model_a", "model_b"] * 7]
    return votes(rows)


def on_shared_prompts(n_prompts: int = 60, liking: float = 0.8) -> Comparisons:
    design = replace(D1, spread=0.0, taste=0.0, n_prompts=n_prompts, liking=liking)
    return design.draw(np.random.default_rng(3))


# Never too certain


def test_the_error_of_a_ratio_of_sums_is_the_jackknife_calculated_by_hand() -> None:
    ratio = _ratio(np.array([1.0, 2.0, 3.0]), np.ones(3))
    assert ratio is not None
    # Without one of the three clusters the ratio is 5/2, 4/2 or 3/2.
    assert ratio == pytest.approx((6 / 3, np.sqrt(2 / 3 * (1 / 4 + 0 + 1 / 4))))


def test_voters_who_happen_to_agree_make_no_rating_certain(rng: np.random.Generator) -> None:
    data = evenly_split(rng)
    board = rate(data)
    independent = sandwich_covariance(fit(data), data)
    at = data.models.index("m7")
    least = 1.96 * POINTS_PER_NAT * math.sqrt(independent[at, at])
    assert half_width(board, "m7") >= 0.99 * least > 50


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


def test_effective_voters_of_even_ones_are_their_number() -> None:
    data = Design(n_models=2, n_voters=40, busy="even", each=30).draw(np.random.default_rng(1))
    board = rate(data)
    assert board.ratings[0].effective_voters == pytest.approx(40)
    assert board.ratings[0].df == pytest.approx(39)


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


def test_a_newcomer_is_judged_by_the_voters_who_met_it() -> None:
    board = Design(taste=0.8, spread=0.0, newcomer=(2, 60)).draw(np.random.default_rng(5))
    by_model = {row.model: row for row in rate(board).ratings}
    new, old = by_model["m09"], by_model["m00"]
    assert 1 < new.effective_voters < 3
    assert old.effective_voters > 15
    assert new.df < 8 < old.df
    assert new.upper - new.lower > 4 * (old.upper - old.lower)


def test_a_newcomer_moves_no_other_model_and_not_the_average() -> None:
    design = Design(spread=0.0, newcomer=(1, 80))
    data = design.draw(np.random.default_rng(6))
    old = data.subset((data.pairs != 9).all(axis=1))
    columns = (*old.pairs.T, old.outcome)
    rest = Comparisons.from_codes(data.models, *columns, votes=old.votes, voter=old.voter)
    with_it, without = ({row.model: row for row in rate(one).ratings} for one in (data, rest))
    others = [with_it[f"m{i:02}"].rating for i in range(9)]
    assert np.mean(others) == pytest.approx(1000)
    assert with_it["m03"].se == pytest.approx(without["m03"].se, rel=0.05)


# Prompts


def test_shared_prompts_widen_the_intervals_by_themselves() -> None:
    data = on_shared_prompts()
    by_both, by_voter = rate(data), rate(data, RateOptions(cluster="voter"))
    assert (by_both.options.cluster, by_voter.options.cluster) == ("both", "voter")
    assert half_width(by_both, "m03") > 1.15 * half_width(by_voter, "m03")
    assert (by_both.design_effect.prompt or 0) > 1.4
    assert "Votes on one prompt are correlated" in " ".join(by_both.warnings)
    assert by_voter.design_effect.prompt is None


def test_prompts_that_say_nothing_are_not_mentioned() -> None:
    board = rate(on_shared_prompts(liking=0.0))
    assert 0.8 < (board.design_effect.prompt or 0) < 1.2
    assert "correlated" not in " ".join(board.warnings)


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


def test_votes_whose_prompts_are_not_known_say_so(rng: np.random.Generator) -> None:
    assert "Prompts are not known" in " ".join(rate(votes(random_votes(rng))).warnings)


def test_degrees_of_freedom_of_two_variances_are_between_theirs() -> None:
    data = on_shared_prompts(n_prompts=20)
    inference = infer(fit(data), data, ("voter", "prompt"))
    both = inference.ratings()
    prompts = inference.kinds[1].own.effective - 1
    assert (both.df > prompts.min()).all()
    voters = infer(fit(data), data, ("voter",)).ratings()
    assert (both.variance > voters.variance).all()


def test_few_voters_never_make_a_board_surer_than_its_prompts_allow() -> None:
    design = Design("raters", n_models=5, n_voters=3, busy="even", each=900, n_prompts=100)
    for seed in range(5):
        data = replace(design, taste=0.0, liking=0.8).draw(np.random.default_rng(seed))
        everybody, these = rate(data), rate(data, RateOptions(claims="these-voters"))
        for name in data.models:
            assert half_width(everybody, name) >= 0.999 * half_width(these, name)


# Small teams


def team() -> Comparisons:
    """Eight people, five thousand votes, four models far from each other."""
    design = Design("team", n_models=4, n_voters=8, busy="even", each=625, taste=0.4, spread=0.7)
    return design.draw(np.random.default_rng(8))


def separated(board: Report) -> int:
    """Count the pairs of models on which one is claimed to be better."""
    return sum((row.rank_low or 1) - 1 for row in board.ratings)


def ranges(board: Report) -> list[tuple[int | None, int | None]]:
    return [(row.rank_low, row.rank_high) for row in board.ratings]


def test_a_small_team_may_claim_what_stands_by_itself() -> None:
    board = rate(team())
    assert board.options.claims == "population"
    assert any(low is not None for low, _ in ranges(board))
    assert "8 voters" in " ".join(board.warnings)


def test_claims_for_these_voters_are_more_and_named() -> None:
    everybody, these = rate(team()), rate(team(), RateOptions(claims="these-voters"))
    assert separated(these) > separated(everybody) > 0
    assert (these.options.claims, these.options.cluster) == ("these-voters", "none")
    assert "for these 8 voters alone" in " ".join(these.warnings)
    assert these.ratings[0].df == math.inf
    assert these.to_dict()["ratings"][0]["effective_voters"] is None


def test_claims_for_these_voters_still_allow_for_prompts() -> None:
    data = on_shared_prompts(n_prompts=30)
    assert rate(data, RateOptions(claims="these-voters")).options.cluster == "prompt"


def test_three_raters_of_many_shared_prompts_claim_little_of_others() -> None:
    """The spread over three people may be small by chance, and prompts cannot make up for it."""
    design = Design(
        "raters", n_models=5, n_voters=3, busy="even", each=900, spread=0.5, n_prompts=300
    )
    data = replace(design, taste=0.0, liking=0.5).draw(np.random.default_rng(9))
    assert separated(rate(data)) < separated(rate(data, RateOptions(claims="these-voters"))) / 2


def test_one_voter_speaks_for_one_voter_and_no_rank_is_claimed(rng: np.random.Generator) -> None:
    one = votes([(a, b, o, "ann") for a, b, o, _ in random_votes(rng, n=2000)])
    board = rate(one)
    assert board.options.cluster == "none"
    assert set(ranges(board)) == {(None, None)}
    assert "that voter alone" in " ".join(board.warnings)


# The pieces


def test_two_effective_voters_are_enough_for_an_interval() -> None:
    rows = [("x", "y", o, f"v{v}") for v in range(2) for o in ["model_a", "model_a", "model_b"]]
    board = rate(votes(rows * 5))
    assert board.ratings[0].df == pytest.approx(1.0)
    t = quantile(0.95, 1.0)
    assert t == pytest.approx(12.706, abs=1e-3)
    assert activity(votes(rows)).effective == 2


def test_tastes_are_seen_by_the_products_of_scores() -> None:
    """The taste model's variance is the plain one without tastes, and far more with them."""
    ratio = []
    for taste in (0.0, 0.8):
        data = Design(taste=taste, spread=0.0).draw(np.random.default_rng(10))
        inference = infer(fit(data), data, ("voter",))
        ratio.append(np.trace(inference.kinds[0].tasteful) / np.trace(inference.matrix))
    assert ratio[0] == pytest.approx(1.0, abs=0.25)
    assert ratio[1] > 1.7
