"""Pooled boards of planted votes: what must hold of them whatever the votes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rating import (
    Comparisons,
    DataError,
    NotIdentifiedError,
    PooledRating,
    RateOptions,
    Votes,
    fit,
    rate,
    rate_pooled,
)
from rating.covariance import grouping, jackknife
from rating.mix import PooledFit, pooled_fit, pooled_strengths
from rating.pooling import Cast, Categorised, Point, Tau, Tree, borrowed, covariance_at, fit_pooled
from tests.rating.pooling.planted import World, planted

POOL = RateOptions(by="category", pool=True)


@pytest.fixture(scope="module")
def world() -> World:
    return planted(np.random.default_rng(1), 0.4, n_models=5, n_votes=900, n_voters=60)


@pytest.fixture(scope="module")
def pooled(world: World) -> PooledFit:
    return pooled_fit(world.groups, POOL)


def whole(world: World) -> Votes:
    """The votes as of one category."""
    return Votes(Categorised.of(world.groups).data)


def test_one_category_is_the_board_without_pooling(world: World) -> None:
    votes = whole(world)
    alone = rate_pooled({"all": votes}, POOL)
    report = rate(votes, RateOptions(by="category"))
    rows = alone.reports["all"].ratings
    for row, plain in zip(rows, report.ratings, strict=True):
        assert isinstance(row, PooledRating)
        assert row.borrowed == 0.0
        assert {**row.to_dict(), "borrowed": None} == {**plain.to_dict(), "borrowed": None}
    assert alone.to_dict()["pooling"] == dict.fromkeys(("tau", "lower", "upper", "tau_prompt"))


@pytest.mark.parametrize("tau", [0.01, 0.3, 3.0])
def test_one_category_has_its_own_strengths_and_errors_at_any_deviation(
    world: World, tau: float
) -> None:
    votes = Categorised.of({"all": whole(world)})
    tree = Tree.of(votes, nested=False)
    at = fit_pooled(tree, Tau(tau))
    plain = fit(votes.data)
    assert at.strengths[0] == pytest.approx(plain.theta, abs=1e-9)
    left_out = jackknife(plain, votes.data, grouping(votes.data, "voter"))[0]
    assert covariance_at(at, Cast.of(tree, votes)) == pytest.approx(left_out, rel=1e-3, abs=1e-6)


def test_without_deviation_every_category_is_the_whole_board(world: World) -> None:
    votes = Categorised.of(world.groups)
    at = fit_pooled(Tree.of(votes, nested=False), Tau(1e-5))
    theta = fit(votes.data).theta
    assert at.strengths == pytest.approx(np.tile(theta, (8, 1)), abs=1e-6)


def test_with_endless_deviation_every_category_stands_alone(world: World) -> None:
    votes = Categorised.of(world.groups)
    at = fit_pooled(Tree.of(votes, nested=False), Tau(1e4))
    own = fit(world.groups["a"].data).theta
    assert at.strengths[0] == pytest.approx(own, abs=1e-4)


def test_the_gradient_vanishes_at_the_fit_of_both_levels(world: World) -> None:
    groups = {name: with_prompts(votes) for name, votes in world.groups.items()}
    tree = Tree.of(Categorised.of(groups), nested=True)
    tau = Tau(0.3, 0.5)
    best = fit_pooled(tree, tau)

    def objective(at: Point) -> float:
        gap = tree.gap(at)
        loss = tree.weight @ np.logaddexp(0, -gap) + (tree.weight - tree.score) @ gap
        squares = [np.square(x).sum() / tau.prompt**2 for x in at.eps]
        return float(loss + (np.square(at.delta).sum() / tau.category**2 + sum(squares)) / 2)

    rng = np.random.default_rng(0)
    for _ in range(5):
        step = Point(
            rng.normal(size=best.at.theta.shape),
            rng.normal(size=best.at.delta.shape),
            tuple(rng.normal(size=x.shape) for x in best.at.eps),
        )
        ahead, behind = (objective(best.at.moved(step, size)) for size in (1e-4, -1e-4))
        assert ahead > objective(best.at) < behind
        assert (ahead - behind) / 2e-4 == pytest.approx(0, abs=1e-5)


def by_brute_force(votes: Categorised, tau: Tau) -> np.ndarray:
    """The covariance of the strengths by category, from all parameters in one matrix."""
    data, nested = votes.data, tau.prompt > 0
    k, c, t = data.n_models, len(votes.categories), data.n_prompts if nested else 0
    n, size = len(data.votes), k * (1 + c + t)
    assert data.voter is not None
    design = np.zeros((n, size))
    for i, ((a, b), category) in enumerate(zip(data.pairs, votes.category, strict=True)):
        starts = [0, k * (1 + category)]
        if nested and data.prompt is not None:
            starts.append(k * (1 + c + data.prompt[i]))
        for start in starts:
            design[i, start + a], design[i, start + b] = 1, -1
    spread = np.r_[np.full(k * c, tau.category), np.full(k * t, tau.prompt)]
    penalty = np.diag(np.r_[np.zeros(k), 1 / spread**2])
    flat = np.zeros(size)
    flat[:k] = 1
    x, p, hessian = np.zeros(size), np.zeros(n), penalty
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ x))
        hessian = (design.T * (data.weight * p * (1 - p))) @ design + penalty
        slope = design.T @ (data.weight * (p - data.score_a)) + penalty @ x
        x = x - np.linalg.solve(hessian + np.outer(flat, flat), slope)
    inverse = np.linalg.inv(hessian + np.outer(flat, flat))
    meat, voters = np.zeros((size, size)), np.unique(data.voter)
    for voter in voters:
        own = data.voter == voter
        part = design[own].T * (data.weight * p * (1 - p))[own]
        score = design[own].T @ (data.weight * (data.score_a - p))[own]
        alone = np.linalg.solve(np.eye(size) - part @ design[own] @ inverse, score)
        meat += np.outer(alone, alone)
    covariance = inverse @ (meat * (1 - 1 / len(voters)) + penalty) @ inverse
    to = np.zeros((c, k, size))
    for category in range(c):
        for model in range(k):
            to[category, model, model] = to[category, model, k * (1 + category) + model] = 1
    to = (to - to.mean(axis=1, keepdims=True)).reshape(c * k, size)
    return np.asarray(to @ covariance @ to.T)


@pytest.mark.parametrize("tau", [Tau(0.3), Tau(0.3, 0.5)])
@pytest.mark.parametrize("n_voters", [8, 100])
def test_the_covariance_is_that_of_all_parameters_in_one_matrix(tau: Tau, n_voters: int) -> None:
    rng = np.random.default_rng(4)
    groups = planted(rng, 0.4, n_models=5, n_votes=300, n_voters=n_voters, shares=(3, 2)).groups
    groups = {name: with_prompts(votes) for name, votes in groups.items()}
    votes = Categorised.of(groups)
    tree = Tree.of(votes, nested=tau.prompt > 0)
    at = fit_pooled(tree, tau)
    wanted = by_brute_force(votes, tau)
    assert covariance_at(at, Cast.of(tree, votes)) == pytest.approx(wanted, abs=1e-8)


def with_prompts(votes: Votes) -> Votes:
    n = len(votes.data.votes)
    return replace(votes, data=replace(votes.data, prompt=np.arange(n) % 7, n_prompts=7))


def test_a_random_split_of_a_category_leaves_the_whole_board(world: World) -> None:
    before = pooled_fit(world.groups, POOL)
    data = world.groups["a"].data
    half = np.random.default_rng(2).random(len(data.votes)) < 0.5
    parts = {f"a{side}": part(world.groups["a"], half == side) for side in (True, False)}
    after = pooled_fit({**world.groups, **parts} | {"a": Votes(part_of_none(data))}, POOL)
    assert after.best.overall == pytest.approx(before.best.overall, abs=0.1)
    assert after.variance.tau == pytest.approx(before.variance.tau, abs=0.12)
    assert before.variance.lower < after.variance.tau < before.variance.upper


@pytest.mark.slow
def test_twenty_random_splits_move_the_whole_board_by_less_than_three_hundredths_of_a_nat() -> (
    None
):
    """Mean of the absolute differences: a category that counts as two weighs more."""
    world = planted(np.random.default_rng(1), 0.4)
    before = pooled_strengths(world.groups, POOL)[1]
    data, off = world.groups["a"].data, []
    for seed in range(20):
        half = np.random.default_rng(seed).random(len(data.votes)) < 0.5
        parts = {f"a{side}": part(world.groups["a"], half == side) for side in (True, False)}
        split = {**world.groups, **parts} | {"a": Votes(part_of_none(data))}
        off.append(pooled_strengths(split, POOL)[1].best.overall - before.best.overall)
    assert 0 < np.abs(off).mean() <= 0.03


def part(votes: Votes, rows: np.ndarray) -> Votes:
    return replace(votes, data=votes.data.subset(rows))


def part_of_none(data: Comparisons) -> Comparisons:
    return data.subset(np.zeros(len(data.votes), dtype=bool))


def test_a_model_without_votes_in_a_category_borrows_all_of_its_rating(world: World) -> None:
    votes = world.groups["a"]
    stranger = votes.data.models.index("m02")
    rows = (votes.data.pairs != stranger).all(axis=1)
    boards = rate_pooled({**world.groups, "a": part(votes, rows)}, POOL).reports
    row = next(row for row in boards["a"].ratings if row.model == "m02")
    others = [one for one in boards["a"].ratings if one.model != "m02"]
    assert isinstance(row, PooledRating)
    assert row.votes == 0
    assert row.borrowed == pytest.approx(1.0, abs=0.01)
    for other in others:
        assert isinstance(other, PooledRating)
        assert other.borrowed < 0.5 < row.borrowed
        assert other.se < row.se


def test_the_smallest_category_borrows_most_and_a_mix_of_all_nothing(pooled: PooledFit) -> None:
    shares = np.array([borrowed(pooled.best, mix) for mix in np.eye(8)])
    assert shares.mean(axis=1).argmin() == 0
    assert shares.mean(axis=1).argmax() == 7
    assert (shares > 0).all()
    assert (shares < 1).all()
    assert borrowed(pooled.best, np.full(8, 1 / 8)) == pytest.approx(np.zeros(5))
    half = borrowed(pooled.best, np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0]))
    assert (half < shares[:2].max(axis=0)).all()


def test_voters_of_strong_tastes_widen_the_intervals() -> None:
    groups = planted(np.random.default_rng(3), 0.2, n_models=4, n_voters=30, taste=1.5).groups
    unknown = replace(POOL, cluster="none")
    by_voter, by_vote = (pooled_fit(groups, options) for options in (POOL, unknown))
    widths = [np.trace(one.covariance[0, :, 0]) for one in (by_voter, by_vote)]
    assert widths[0] > 2 * widths[1]
    assert np.isinf(by_vote.df)
    boards = rate_pooled(groups, unknown).reports
    assert boards["a"].options.cluster == "none"
    assert "treat votes as independent" in " ".join(boards["a"].warnings)


def test_the_result_is_plain_json_with_the_contract_s_names(world: World) -> None:
    plain = rate_pooled(world.groups, POOL).to_dict()
    json.dumps(plain, allow_nan=False)
    assert list(plain) == ["groups", "pooling", "warnings"]
    assert list(plain["pooling"]) == ["tau", "lower", "upper", "tau_prompt"]
    assert plain["pooling"]["lower"] < plain["pooling"]["tau"] < plain["pooling"]["upper"]
    ratings = plain["groups"]["h"]["ratings"]
    assert [row["rating"] for row in ratings] == sorted(
        (r["rating"] for r in ratings), reverse=True
    )
    assert sum(row["rating"] for row in ratings) == pytest.approx(5000)
    assert plain["groups"]["h"]["method"]["pool"] is True
    assert any(
        "Shrunk towards the whole board" in text for text in plain["groups"]["h"]["warnings"]
    )


def test_an_anchor_stands_where_it_is_put_in_every_category(
    world: World, pooled: PooledFit
) -> None:
    boards = rate_pooled(world.groups, replace(POOL, anchor=("m01", 1200.0), scale=800.0))
    per_nat = 800 / np.log(10)
    assert boards.pooling.tau == pytest.approx(per_nat * pooled.variance.tau)
    for board in boards.reports.values():
        own = next(row for row in board.ratings if row.model == "m01")
        for row in board.ratings:
            lead = per_nat * (row.strength - own.strength)
            assert row.rating == pytest.approx(1200 + lead)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": None}, "by which column"),
        ({"ties": "davidson"}, "ties 'davidson'"),
        ({"interval": "bootstrap"}, "interval 'bootstrap'"),
        ({"style": ("length",)}, "style"),
        ({"ridge": 1.0}, "ridge 1.0"),
        ({"order_effect": True}, "order_effect True"),
        ({"reference": "m01"}, "reference 'm01'"),
        ({"claims": "these-voters"}, "claims"),
    ],
)
def test_what_pooling_cannot_do_is_refused_by_name(options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        RateOptions(**{"by": "category", "pool": True, **options})  # type: ignore[arg-type]


def test_clusters_that_the_votes_do_not_carry_are_refused(world: World) -> None:
    with pytest.raises(DataError, match="carry no prompt"):
        rate_pooled(world.groups, replace(POOL, cluster="both"))
    with pytest.raises(DataError, match="without cluster 'prompt'"):
        rate_pooled(world.groups, replace(POOL, cluster="prompt"))


def test_votes_that_identify_no_rating_even_together_are_refused() -> None:
    def one_sided() -> Votes:
        return Votes(Comparisons.from_arrays(["x"] * 4, ["y"] * 4, ["model_a"] * 4))

    with pytest.raises(NotIdentifiedError):
        rate_pooled({"a": one_sided(), "b": one_sided()}, POOL)
    with pytest.raises(DataError, match="no votes to pool"):
        rate_pooled({}, POOL)


def test_the_votes_of_one_voter_count_as_independent(world: World) -> None:
    groups = {
        name: replace(
            votes,
            data=replace(votes.data, voter=0 * votes.data.outcome, n_voters=1),
            voters=("ann",),
        )
        for name, votes in world.groups.items()
    }
    alone, unknown = (pooled_fit(groups, replace(POOL, cluster=c)) for c in (None, "none"))
    assert alone.covariance == pytest.approx(unknown.covariance)
    assert np.isinf(alone.df)


def test_the_votes_of_one_voter_on_prompts_that_repeat_are_clustered_by_prompt() -> None:
    drawn = planted(
        np.random.default_rng(5), 0.3, n_models=4, n_votes=800, n_voters=1, n_prompts=5
    )
    boards = rate_pooled(drawn.groups, POOL)
    assert {board.options.cluster for board in boards.reports.values()} == {"prompt"}


def test_ties_alone_are_refused_for_they_show_no_spread() -> None:
    ties = Votes(Comparisons.from_arrays(["x"] * 9, ["y"] * 9, ["tie"] * 9))
    with pytest.raises(DataError, match="Ties alone join"):
        rate_pooled({"a": ties, "b": ties}, POOL)


def test_votes_of_no_weight_are_as_good_as_absent(world: World) -> None:
    data = world.groups["h"].data
    none = replace(data, weight=0 * data.weight, weight_sq=0 * data.weight)
    boards = rate_pooled({**world.groups, "h": replace(world.groups["h"], data=none)}, POOL)
    assert boards.not_rated == {"h": "No vote counts."}
    rest = {name: votes for name, votes in world.groups.items() if name != "h"}
    assert boards.reports == rate_pooled(rest, POOL).reports


def test_a_category_that_differs_more_than_the_others_is_named_on_its_own_board() -> None:
    odd = planted(np.random.default_rng(9), np.array([0.1, 0.1, 1.0] + 5 * [0.1]))
    boards = rate_pooled(odd.groups, POOL).reports
    named = {
        name: [text for text in board.warnings if "deviates more than" in text]
        for name, board in boards.items()
    }
    assert [name for name, texts in named.items() if texts] == ["c"]
    assert named["c"][0].startswith("Category c deviates more than the fitted")
    assert "rate its own votes without pooling" in named["c"][0]


def test_the_test_of_odd_categories_follows_their_names_and_those_of_models() -> None:
    odd = planted(np.random.default_rng(9), np.array([0.1, 0.6] + 6 * [0.1]), n_models=5)
    p = pooled_fit(odd.groups, POOL).odd
    assert p.argmin() == 1
    assert (p == 1).sum() > 3, "times eight, at most one"
    turned = dict(reversed(odd.groups.items()))
    np.testing.assert_allclose(pooled_fit(turned, POOL).odd, p[::-1], rtol=1e-3)
    renamed = {
        name: replace(votes, data=replace(votes.data, models=votes.data.models[::-1]))
        for name, votes in odd.groups.items()
    }
    np.testing.assert_allclose(pooled_fit(renamed, POOL).odd, p, rtol=1e-3)


def test_of_two_categories_none_is_odd() -> None:
    odd = planted(np.random.default_rng(9), np.array([0.1, 1.0]), shares=(1, 1))
    assert pooled_fit(odd.groups, POOL).odd.tolist() == [1, 1]
