"""Boards of one's own mix: planted votes, and what must hold of any mix."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logit
from scipy.stats import t

from rating import DataError, Mix, MixBoard, RateOptions, fit, rate, rate_mix, rate_pooled
from rating.mix import (
    PooledFit,
    RankReach,
    envelope,
    least_differences,
    n_effective,
    pooled_fit,
    pooled_strengths,
    whole_of,
)
from tests.rating.pooling.planted import SHARES, World, planted

POOL = RateOptions(by="category", pool=True)
HALVES = Mix.of_shares({"a": 1, "b": 1})


@pytest.fixture(scope="module")
def world() -> World:
    return planted(np.random.default_rng(5), 0.4, n_models=5, n_votes=900, n_voters=60)


@pytest.fixture(scope="module")
def pooled(world: World) -> PooledFit:
    return pooled_fit(world.groups, POOL)


@pytest.fixture(scope="module")
def board(world: World) -> MixBoard:
    return rate_mix(world.groups, HALVES, POOL)


def reached(pooled: PooledFit, kappas: list[float]) -> list[RankReach]:
    votes = pooled.votes
    return envelope(votes.data.models, pooled.best.strengths, votes.votes, kappas)


def strengths(board: MixBoard) -> dict[str, float]:
    return {row.model: row.strength for row in board.report.ratings}


def test_the_strengths_are_the_mean_of_those_of_the_categories(
    world: World, board: MixBoard
) -> None:
    boards = rate_pooled(world.groups, POOL).reports
    each = [{row.model: row.strength for row in boards[name].ratings} for name in "ab"]
    wanted = {model: (each[0][model] + each[1][model]) / 2 for model in each[0]}
    assert strengths(board) == pytest.approx(wanted)


def test_a_mix_of_one_category_is_the_board_of_that_category(world: World) -> None:
    mixed = rate_mix(world.groups, Mix.of_shares({"c": 0.2}), POOL).report
    alone = rate_pooled(world.groups, POOL).reports["c"]
    wanted = {row.model: row for row in alone.ratings}
    for row in mixed.ratings:
        other = wanted[row.model]
        assert row.to_dict() | {"votes": 0} == pytest.approx(other.to_dict() | {"votes": 0})


def test_who_is_rated_higher_is_named_first_and_preferred(board: MixBoard) -> None:
    order = [row.model for row in board.report.ratings]
    assert [(x.a, x.b) for x in board.pairs] == [
        (a, b) for i, a in enumerate(order) for b in order[i + 1 :]
    ]
    for pair in board.pairs:
        assert 0 < pair.lower < pair.preferred < pair.upper < 1
    first, last = board.pairs[0], board.pairs[len(order) - 2]
    assert 0.45 < first.preferred < last.preferred


def test_a_preference_in_one_category_has_the_interval_of_the_difference(
    world: World, pooled: PooledFit
) -> None:
    names, c = pooled.votes.data.models, [*pooled.votes.categories].index("c")
    assert pooled.best.tau.prompt == 0, "then the log-odds are the difference"
    board = rate_mix(world.groups, Mix.of_shares({"c": 1}), replace(POOL, level=0.9))
    for row in board.report.ratings:
        assert row.upper - row.lower == pytest.approx(2 * t.ppf(0.95, pooled.df) * row.se)
    for pair in board.pairs:
        apart = np.array([(name == pair.a) - (name == pair.b) for name in names])
        error = np.sqrt(apart @ pooled.covariance[c][:, c] @ apart)
        width = 2 * t.ppf(0.95, pooled.df) * error
        assert logit(pair.upper) - logit(pair.lower) == pytest.approx(width)


def test_few_prompts_of_one_s_own_widen_the_preferences(world: World, pooled: PooledFit) -> None:
    few = rate_mix(world.groups, Mix.of_counts({"a": 1, "b": 1}), POOL)
    many = rate_mix(world.groups, Mix.of_counts({"a": 10_000, "b": 10_000}), POOL)
    given = rate_mix(world.groups, HALVES, POOL)
    own = []
    for name in "ab":
        pairs = rate_mix(world.groups, Mix.of_shares({name: 1}), POOL).pairs
        turned = {(x.b, x.a): 1 - x.preferred for x in pairs}
        own.append({(x.a, x.b): x.preferred for x in pairs} | turned)
    for one, other, sure in zip(few.pairs, many.pairs, given.pairs, strict=True):
        assert one.preferred == pytest.approx(other.preferred)
        p, apart = sure.preferred, own[0][sure.a, sure.b] - own[1][sure.a, sure.b]
        spread = (t.ppf(0.975, pooled.df) * apart / 2 / p / (1 - p)) ** 2
        square = [(logit(x.upper) - logit(x.lower)) ** 2 / 4 for x in (one, sure)]
        assert square[0] - square[1] == pytest.approx(spread / (2 + 1), abs=1e-9)  # Dirichlet's
        assert other.upper - other.lower == pytest.approx(sure.upper - sure.lower, rel=1e-3)


def test_effective_votes_are_those_of_the_categories_that_count(board: MixBoard) -> None:
    assert n_effective(np.array([0.5, 0.5, 0.0]), np.array([30.0, 10.0, 7.0])) == pytest.approx(
        1 / (0.25 / 30 + 0.25 / 10)
    )
    assert board.n_effective > 100


def test_a_mix_on_which_hardly_a_vote_stands_is_called_a_hint(world: World) -> None:
    few = rate_mix(world.groups, Mix.of_shares({"h": 1}), POOL)
    assert few.n_effective < 30
    assert any("only a hint" in text for text in few.report.warnings)
    assert not any(
        "a hint" in text for text in rate_mix(world.groups, HALVES, POOL).report.warnings
    )


def test_the_weighed_votes_of_one_category_are_that_category_alone(world: World) -> None:
    board = rate_mix(world.groups, Mix.of_shares({"a": 1}), POOL, reweighted=True)
    plain = fit(world.groups["a"].data)
    assert strengths(board) == pytest.approx(dict(zip(plain.models, plain.theta, strict=True)))
    assert board.report.options.weights == "mix"
    pair = board.pairs[0]
    gap = strengths(board)[pair.a] - strengths(board)[pair.b]
    assert pair.preferred == pytest.approx(1 / (1 + np.exp(-gap)))
    assert pair.lower < pair.preferred < pair.upper


def test_without_voters_the_errors_of_weighed_votes_are_those_of_votes_not_weighed(
    world: World,
) -> None:
    alone, options = Mix.of_shares({"a": 1}), replace(POOL, cluster="none")
    weighed = rate_mix(world.groups, alone, options, reweighted=True).report
    plain = rate(world.groups["a"], RateOptions(cluster="none"))
    assert [row.se for row in weighed.ratings] == pytest.approx([r.se for r in plain.ratings])


def test_votes_weighed_to_the_mix_that_they_have_are_the_whole_board(
    world: World, pooled: PooledFit
) -> None:
    votes = dict(zip(pooled.votes.categories, pooled.votes.votes, strict=True))
    board = rate_mix(world.groups, Mix.of_shares(votes), POOL, reweighted=True)
    plain = fit(pooled.votes.data)
    assert strengths(board) == pytest.approx(dict(zip(plain.models, plain.theta, strict=True)))
    assert board.n_effective == pytest.approx(sum(votes.values()))


def test_what_became_of_the_votes_of_all_categories_is_added_up(
    world: World, pooled: PooledFit
) -> None:
    changed = {
        n: replace(x, dropped={"skipped": 2}, self_battles=1) for n, x in world.groups.items()
    }
    whole = whole_of(changed, pooled)
    assert (whole.read, whole.self_battles, whole.dropped) == (900, 8, {"skipped": 16})


def test_with_kappa_one_the_envelope_is_the_board_of_the_votes_mix(
    world: World, pooled: PooledFit
) -> None:
    votes = dict(zip(pooled.votes.categories, pooled.votes.votes, strict=True))
    ranks = {
        row.model: row.rank
        for row in rate_mix(world.groups, Mix.of_shares(votes), POOL).report.ratings
    }
    for row in reached(pooled, [1.0, 1.0 + 1e-9]):
        assert (row.best, row.worst) == (ranks[row.model], ranks[row.model])


def test_the_least_differences_are_those_of_a_linear_program(pooled: PooledFit) -> None:
    beta, most = pooled.best.strengths, 1.7 * np.array(SHARES)
    least = least_differences(beta, most)
    for i in range(3):
        for j in range(3):
            solved = linprog(
                beta[:, i] - beta[:, j],
                A_eq=np.ones((1, 8)),
                b_eq=[1],
                bounds=[(0, m) for m in most],
            )
            assert least[i, j] == pytest.approx(solved.fun, abs=1e-9)


def test_every_mix_that_kappa_allows_stays_within_the_envelope(pooled: PooledFit) -> None:
    rng, kappa = np.random.default_rng(0), 4.0
    most = kappa * pooled.votes.votes / pooled.votes.votes.sum()
    reach = {row.model: row for row in reached(pooled, [kappa])}
    assert any(row.best < row.worst for row in reach.values())
    wider = {row.model: row for row in reached(pooled, [8.0])}
    for _ in range(300):
        mix = filled(rng, most)
        theta = mix @ pooled.best.strengths
        ranks = 1 + (theta[:, None] > theta).sum(axis=0)
        for model, rank in zip(pooled.votes.data.models, ranks, strict=True):
            assert reach[model].best <= rank <= reach[model].worst
            assert wider[model].best <= reach[model].best


def filled(rng: np.random.Generator, most: np.ndarray) -> np.ndarray:
    """Draw shares that sum to one, none above its most."""
    shares, rest = np.zeros(len(most)), 1.0
    for place in rng.permutation(len(most)):
        shares[place] = min(rest, most[place] * rng.choice([1.0, rng.random()]))
        rest -= shares[place]
    room = most - shares
    return np.asarray(shares + room * rest / room.sum())


@pytest.mark.slow
def test_with_many_votes_the_envelope_contains_the_true_ranks_of_twenty_worlds() -> None:
    most, seen = 2.0 * np.array(SHARES), 0
    for seed in range(20):
        world = planted(np.random.default_rng(seed), 0.5, n_models=4, n_votes=60_000, taste=0.0)
        votes, variance = pooled_strengths(world.groups, replace(POOL, cluster="none"))
        models = votes.data.models
        rows = envelope(models, variance.best.strengths, votes.votes, [2.0])
        best, worst = (np.array([getattr(row, end) for row in rows]) for end in ("best", "worst"))
        rng = np.random.default_rng(seed)
        for _ in range(100):
            theta = filled(rng, most) @ world.strengths
            if np.diff(np.sort(theta)).min() < 0.05:
                continue  # nobody can tell these apart
            ranks = 1 + (theta[:, None] > theta).sum(axis=0)
            assert ((best <= ranks) & (ranks <= worst)).all()
            seen += 1
    assert seen > 1000


def test_the_result_is_plain_json_with_the_contract_s_names(board: MixBoard) -> None:
    plain = board.to_dict()
    json.dumps(plain, allow_nan=False)
    assert plain["mix"] == {"a": 0.5, "b": 0.5}
    assert {"ratings", "n_effective", "n_prompts", "pooling", "method", "votes"} <= plain.keys()
    assert list(plain["pairs"][0]) == ["a", "b", "preferred", "lower", "upper"]
    assert list(plain["envelope"][0]) == ["model", "best", "worst", "kappa"]
    assert {row["kappa"] for row in plain["envelope"]} == {1.5, 2.0, 8.0}


def test_what_is_no_mix_is_refused(world: World) -> None:
    for shares in ({}, {"a": -1.0}, {"a": float("nan")}, {"a": 0.0}):
        with pytest.raises(DataError, match="Shares of a mix"):
            Mix.of_shares(shares)
    with pytest.raises(DataError, match="needs a prompt"):
        Mix.of_counts({})
    with pytest.raises(DataError, match=r"no category 'z'; there are 'a', 'b'"):
        rate_mix(world.groups, Mix.of_shares({"z": 1}), POOL)
    with pytest.raises(DataError, match="kappa must be 1 or more"):
        rate_mix(world.groups, HALVES, POOL, kappas=[0.5])
