"""MT-bench by category: figures that another program gave, and what pooling is worth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from rating import Mix, RateOptions, Votes, rate_mix
from rating.pooling import (
    Categorised,
    Tau,
    Tree,
    fit_pooled,
    fitted_variance,
    losses,
    on_unseen_prompts,
)
from rating.tables.counts import rate_source
from rating.variants import POINTS_PER_NAT

pytestmark = pytest.mark.published

ORDER = ("gpt-4", "claude-v1", "gpt-3.5-turbo", "vicuna-13b-v1.2", "alpaca-13b", "llama-13b")


@pytest.fixture(scope="module")
def votes(mtbench_votes: dict[str, Votes]) -> Categorised:
    return Categorised.of(mtbench_votes)


def points(votes: Categorised, strengths: NDArray[np.float64]) -> list[float]:
    """Points of the models in `ORDER`."""
    return [1000 + POINTS_PER_NAT * strengths[votes.data.models.index(name)] for name in ORDER]


def test_the_marginal_likelihood_is_highest_where_it_was_seen(votes: Categorised) -> None:
    tree = Tree.of(votes, nested=False)
    best = fit_pooled(tree, Tau(0.30))
    seen = {
        0.02: -19.4,
        0.10: -11.2,
        0.20: -2.19,
        0.25: -0.43,
        0.35: -0.45,
        0.5: -4.36,
        1.2: -26.1,
    }
    for tau, below in seen.items():
        at = fit_pooled(tree, Tau(tau), best.at)
        assert at.log_marginal - best.log_marginal == pytest.approx(below, abs=0.05)
    variance = fitted_variance(tree)
    assert variance.tau == pytest.approx(0.30, abs=0.01)
    assert variance.lower < 0.25 < 0.35 < variance.upper


def test_ratings_of_categories_pooled_and_unpooled_are_those_seen(votes: Categorised) -> None:
    tree = Tree.of(votes, nested=False)
    coding, stem = (votes.categories.index(name) for name in ("coding", "stem"))
    pooled = fit_pooled(tree, Tau(0.30)).strengths
    assert points(votes, pooled[coding]) == pytest.approx(
        [1144, 1116, 1147, 1006, 872, 714], abs=1
    )
    assert points(votes, pooled[stem]) == pytest.approx([1249, 1161, 1085, 1022, 819, 663], abs=1)
    apart = fit_pooled(tree, Tau(1e3)).strengths[coding]
    assert points(votes, apart) == pytest.approx([1134, 1118, 1160, 1012, 877, 699], abs=1)
    together = fit_pooled(tree, Tau(1e-4)).strengths[coding]
    assert points(votes, together) == pytest.approx([1177, 1112, 1104, 990, 868, 749], abs=1)


def test_prompts_explain_part_of_what_categories_seem_to_differ_by(votes: Categorised) -> None:
    simple = fitted_variance(Tree.of(votes, nested=False))
    nested = fitted_variance(Tree.of(votes, nested=True))
    assert nested.best.log_marginal - simple.best.log_marginal == pytest.approx(26, abs=0.5)
    assert nested.best.tau.prompt == pytest.approx(0.50, abs=0.04)
    assert nested.tau == pytest.approx(0.25, abs=0.02)
    assert nested.lower == pytest.approx(0.14, abs=0.01)
    assert nested.upper == pytest.approx(0.40, abs=0.01)
    assert nested.gain == pytest.approx(4.9, abs=0.2)


def held_out(votes: Categorised, rng: np.random.Generator) -> NDArray[np.float64]:
    """Log loss on unseen prompts, five folds: one board, unpooled, pooled, and nested."""
    data = votes.data
    fold = rng.permutation(np.arange(data.n_prompts) % 5)
    simple = [(Tau(tau), False) for tau in (1e-3, 20.0, 0.30)]
    each = losses(votes, [*simple, (Tau(0.25, 0.50), True)], fold)
    return np.asarray(each @ data.weight / data.weight.sum())


def test_unpooled_boards_of_categories_are_worse_than_none_on_unseen_prompts(
    votes: Categorised,
) -> None:
    each = np.array([held_out(votes, np.random.default_rng(seed)) for seed in range(6)])
    one, apart, pooled, nested = each.mean(axis=0)
    # One draw of the folds gave .5418, .5467 and .5403, and which one is not known: some 230 ways
    # to deal out the prompts by seed 0 give other figures. Draws differ by .001, .003 and .003.
    for value, seen, column in zip(
        (one, apart, pooled), (0.5418, 0.5467, 0.5403), each.T, strict=False
    ):
        assert abs(value - seen) < 3 * column.std(ddof=1) * np.sqrt(1 + 1 / len(column))
    assert nested < pooled < one < apart


def test_eighty_prompts_are_too_few_to_show_that_order_beyond_doubt(votes: Categorised) -> None:
    best = fitted_variance(Tree.of(votes, nested=True)).best
    came = on_unseen_prompts(best, votes, np.random.default_rng(0))
    assert came is not None
    assert came.prompts == 80
    assert came.one == pytest.approx(0.541, abs=0.001)
    assert came.apart.value == pytest.approx(0.005, abs=0.002)
    assert came.pooled.value == pytest.approx(-0.003, abs=0.001)
    assert not came.apart.is_worse
    assert not came.pooled.is_better


def test_on_coding_prompts_drawn_anew_no_model_is_clearly_preferred(votes: Categorised) -> None:
    data, coding = votes.data, votes.categories.index("coding")
    assert data.prompt is not None
    rng = np.random.default_rng(0)
    of_category = [np.unique(data.prompt[votes.category == c]) for c in range(8)]
    pair = [data.models.index(name) for name in ("gpt-3.5-turbo", "gpt-4")]
    drawn: list[list[float]] = []
    for _ in range(150):
        times = np.zeros(data.n_prompts)
        for prompts in of_category:
            times += np.bincount(rng.choice(prompts, len(prompts)), minlength=len(times))
        weight = data.weight * times[data.prompt]
        there = weight > 0
        sample = replace(data.subset(there), weight=weight[there])
        part = replace(votes, data=sample, category=votes.category[there])
        tree = Tree.of(part, nested=False)
        gaps = [fit_pooled(tree, Tau(tau)).strengths[coding][pair] for tau in (0.30, 20.0, 1e-3)]
        drawn.append([1 / (1 + np.exp(second - first)) for first, second in gaps])
    ends = np.quantile(drawn, (0.025, 0.5, 0.975), axis=0).T
    pooled, apart, whole = ends
    assert pooled == pytest.approx([0.431, 0.507, 0.561], abs=0.02)
    assert apart == pytest.approx([0.436, 0.544, 0.627], abs=0.025)
    assert whole == pytest.approx([0.345, 0.398, 0.436], abs=0.02)


def test_the_command_s_boards_hold_every_model_and_say_what_they_borrow(
    mtbench_file: Path,
) -> None:
    result: dict[str, Any] = rate_source(
        mtbench_file, RateOptions(by="category", pool=True)
    ).to_dict()
    assert len(result["groups"]) == 8
    assert result["pooling"]["tau"] == pytest.approx(0.25 * POINTS_PER_NAT, abs=4)
    assert result["pooling"]["tau_prompt"] == pytest.approx(0.50 * POINTS_PER_NAT, abs=7)
    for board in result["groups"].values():
        assert {row["model"] for row in board["ratings"]} == {*ORDER}
        assert all(0.3 < row["borrowed"] < 0.6 for row in board["ratings"])
        assert board["method"]["cluster"] == "both"
    simple = rate_source(mtbench_file, RateOptions(by="category", pool=True, cluster="voter"))
    plain = simple.to_dict()
    assert plain["pooling"]["tau"] == pytest.approx(0.30 * POINTS_PER_NAT, abs=2)
    assert plain["pooling"]["tau_prompt"] is None
    coding = {row["model"]: row["rating"] for row in plain["groups"]["coding"]["ratings"]}
    assert coding["gpt-3.5-turbo"] == pytest.approx(1147, abs=1.5)


def test_ranks_under_other_mixes_are_those_seen(mtbench_votes: dict[str, Votes]) -> None:
    simple = RateOptions(by="category", pool=True, cluster="voter")
    board = rate_mix(mtbench_votes, Mix.of_shares({"coding": 1}), simple)
    reach = {(row.model, row.kappa): (row.best, row.worst) for row in board.envelope}
    near = [(1, 1), (2, 3), (2, 3), (4, 4), (5, 5), (6, 6)]
    assert [reach[model, 1.5] for model in ORDER] == near
    assert [reach[model, 2.0] for model in ORDER] == near
    expected = [(1, 2), (2, 3), (1, 3), (4, 4), (5, 5), (6, 6)]
    assert [reach[model, 8.0] for model in ORDER] == expected
    pair = next(x for x in board.pairs if {x.a, x.b} == {"gpt-3.5-turbo", "gpt-4"})
    assert pair.a == "gpt-3.5-turbo"
    assert pair.preferred == pytest.approx(0.507, abs=0.006)
    assert (pair.lower, pair.upper) == pytest.approx((0.431, 0.561), abs=0.035)
    assert board.n_effective == 397


def test_pooling_gives_every_language_a_board(published_data: Path) -> None:
    votes = pd.read_csv(published_data / "softelo" / "sample_annotations.csv")
    votes["winner"] = votes["human_pref"].map({1.0: "model_a", 0.0: "model_b", 0.5: "tie"})
    apart = rate_source(votes, RateOptions(by="meta_lang")).to_dict()
    pooled = rate_source(votes, RateOptions(by="meta_lang", pool=True)).to_dict()
    assert len(apart["groups"]) < 10 < len(apart["not_rated"])
    assert len(pooled["groups"]) == len(apart["groups"]) + len(apart["not_rated"]) == 34
    assert "not_rated" not in pooled
    assert all(len(board["ratings"]) == 14 for board in pooled["groups"].values())
    assert pooled["pooling"]["lower"] == 0
