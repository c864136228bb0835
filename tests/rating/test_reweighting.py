"""Boards with other weights: identities, intervals of moves, and categories of MT-bench."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from rating import fit, to_points
from rating.goodness import Move, Reweighted, Scored, Weighting, compared, reweighted
from rating.rows import VoteRows
from rating.tables.columns import Reading
from rating.tables.counts import read_rows
from tests.rating.test_nesting import drawn


def named(rows: VoteRows) -> VoteRows:
    names = tuple(f"k{i}" for i in range(int(rows.groups["by"].max()) + 1))
    return replace(rows, names={"by": names})


def boards(rows: VoteRows, *others: Weighting) -> dict[str, Reweighted]:
    return {one.weighting: one for one in reweighted(rows, "kind", others=others)}


def some_prompts(rows: VoteRows) -> Weighting:
    """Weigh prompts unlike each other, and every fourth not at all."""
    codes = rows.groups["prompt"]
    return Weighting("some prompts", codes, np.arange(60).astype(np.float64) % 4)


def test_there_is_a_board_for_every_way_to_weigh() -> None:
    rows = named(drawn(1))
    ways = ["each prompt the same", "each kind the same", "each voter the same"]
    assert [*boards(rows)] == [*ways, *(f"kind k{i} alone" for i in range(6))]
    groups = {"voter": rows.groups["voter"], "prompt": 0 * rows.a}
    one = replace(rows, groups=groups, names={})
    assert [*boards(one)] == ["each voter the same"]


def test_totals_that_are_the_sizes_of_groups_change_nothing() -> None:
    rows = drawn(6)
    sizes = np.bincount(rows.groups["prompt"]).astype(float)
    one = boards(rows, Weighting("as it is", rows.groups["prompt"], 3 * sizes))["as it is"]
    assert all(abs(move.moved) < 1e-6 for move in one.moves)


def test_prompts_that_weigh_nothing_are_left_out() -> None:
    rows = drawn(7)
    chosen = rows.groups["prompt"] < 20
    some = boards(
        rows, Weighting("some", rows.groups["prompt"], (np.arange(60) < 20).astype(np.float64))
    )
    alone = boards(rows.taken(chosen))["each prompt the same"]
    scores = dict(zip(rows.models, to_points(fit(rows.comparisons()).theta), strict=True))
    part = rows.taken(chosen)
    as_it_is = dict(zip(part.models, to_points(fit(part.comparisons()).theta), strict=True))
    wanted = {move.model: as_it_is[move.model] + move.moved for move in alone.moves}
    moves = {move.model: scores[move.model] + move.moved for move in some["some"].moves}
    assert moves == pytest.approx(wanted)


def test_a_group_alone_is_the_board_of_its_votes() -> None:
    rows = named(drawn(2))
    alone = rows.taken(rows.groups["by"] == 3)
    scores = dict(zip(rows.models, to_points(fit(alone.comparisons()).theta), strict=True))
    whole = dict(zip(rows.models, to_points(fit(rows.comparisons()).theta), strict=True))
    moves = {one.model: one.moved for one in boards(rows)["kind k3 alone"].moves}
    assert moves == pytest.approx({name: scores[name] - whole[name] for name in scores})


def test_groups_of_the_same_size_change_nothing_when_they_weigh_the_same() -> None:
    rows = drawn(3, votes=600)
    even = replace(rows, groups={**rows.groups, "by": np.arange(600) % 4})
    one = boards(named(even))["each kind the same"]
    assert one.kendall == pytest.approx(1)
    assert one.places == 0
    assert all(abs(move.moved) < 1e-6 for move in one.moves)


def test_a_group_that_identifies_no_rating_says_why() -> None:
    rows = named(drawn(4))
    group = np.where((rows.a == 0) | (rows.b == 0), 0, 1)
    group[0 if group[0] else int(group.argmax())] = 2
    one = boards(named(replace(rows, groups={**rows.groups, "by": group})))["kind k2 alone"]
    assert (one.kendall, one.moves) == (None, ())
    assert one.why_not is not None
    assert "never won or tied against" in one.why_not


def test_the_interval_of_a_move_by_single_clusters_is_that_of_a_t_test() -> None:
    moved = np.array([4.0, 8.0, -2.0, 5.0, 1.0])
    influence = (moved - moved.mean()) / len(moved)
    default = Scored(("a", "b"), np.zeros(2), np.zeros((5, 2)))
    other = Scored(("a", "b"), moved.mean() * np.array([1, -1]), np.outer(influence, [1, -1]))
    theirs = ttest_1samp(moved, 0).confidence_interval(0.9)
    move = next(m for m in compared("w", default, other, level=0.9).moves if m.model == "a")
    assert (move.lower, move.upper) == pytest.approx((theirs.low, theirs.high))


def test_places_are_compared_with_the_default_ones_and_the_furthest_come_first() -> None:
    scores = np.array([30.0, 20.0, 10.0]), np.array([20.0, 5.0, 35.0])
    default, other = (Scored(("a", "b", "c"), each, np.zeros((5, 3))) for each in scores)
    one = compared("w", default, other, level=0.95)
    assert one.kendall == pytest.approx(-1 / 3)
    assert one.places == 2
    assert [(x.model, x.rank_default, x.rank, x.moved, x.lower) for x in one.moves] == [
        ("c", 3, 1, 25.0, None),
        ("b", 2, 3, -15.0, None),
        ("a", 1, 2, -10.0, None),
    ]
    both = Scored(("a", "b"), np.array([26.0, 14.0]), np.zeros((5, 2)))
    moves = compared("w", default, both, level=0.95).moves  # from 25 and 15, of the same mean
    assert [(x.model, x.rank, x.moved) for x in moves] == [("a", 1, 1.0), ("b", 2, -1.0)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["each prompt the same", "some prompts"])
def test_the_interval_of_a_move_is_that_of_leaving_voters_out(way: str) -> None:
    rows = named(drawn(5, taste=0.6))
    voters = np.unique(rows.groups["voter"])

    def moved(some: VoteRows) -> list[float]:
        one = boards(some, some_prompts(some))[way]
        return [move.moved for move in sorted(one.moves, key=lambda move: move.model)]

    without = np.array([moved(rows.taken(rows.groups["voter"] != one)) for one in voters])
    n = len(voters)
    jackknife = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    one = boards(rows, some_prompts(rows))[way]
    moves = sorted(one.moves, key=lambda move: move.model)
    reach = [(move.upper or 0) - move.moved for move in moves]
    assert np.array(reach) / 2.01 == pytest.approx(jackknife, rel=0.12)


@pytest.mark.published
def test_categories_of_mt_bench_alone_have_the_ratings_computed_elsewhere(
    published_data: Path,
) -> None:
    folder = published_data / "votes" / "mtbench"
    lines = (folder / "mt_bench_questions.jsonl").read_text("utf-8").splitlines()
    kind = {str(row["question_id"]): row["category"] for row in map(json.loads, lines)}
    rows = read_rows(folder / "votes.parquet", Reading(prompts=True, both_bad="tie"))
    names = tuple(sorted(set(kind.values())))
    of_prompt = np.array([names.index(kind[name]) for name in rows.names["prompt"]])
    groups = {**rows.groups, "by": of_prompt[rows.groups["prompt"]]}
    one = boards(replace(rows, groups=groups, names={**rows.names, "by": names}))
    whole = {"gpt-4": 1177, "claude-v1": 1112, "gpt-3.5-turbo": 1104}
    coding = {"gpt-4": 1134, "claude-v1": 1118, "gpt-3.5-turbo": 1160}
    moves = {move.model: move.moved for move in one["kind coding alone"].moves}
    for model, rating in coding.items():
        assert whole[model] + moves[model] == pytest.approx(rating, abs=1.1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_intervals_of_moves_hold_the_move_of_endless_votes() -> None:
    """200 crowds on the same prompts; where nothing moves, intervals are wider than they need."""

    def moves(rows: VoteRows, way: str) -> dict[str, Move]:
        return {one.model: one for one in boards(named(rows))[way].moves}

    law = {"by_category": 0.4, "by_prompt": 0.3, "taste": 0.5, "world": 9}
    many = drawn(0, votes=400_000, voters=40_000, **law)  # type: ignore[arg-type]
    for way, most in (("kind k2 alone", 0.975), ("each prompt the same", 1.0)):
        truth = {name: one.moved for name, one in moves(many, way).items()}
        inside = []
        for seed in range(1, 201):
            seen = moves(drawn(seed, **law), way)  # type: ignore[arg-type]
            inside += [
                (one.lower or 0) <= truth[name] <= (one.upper or 0) for name, one in seen.items()
            ]
        assert 0.92 <= np.mean(inside) <= most, way
