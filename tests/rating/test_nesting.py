"""Groups of votes: what is dealt among them, its size and power, and the null that is not used."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from rating.errors import DataError
from rating.goodness import Nested, nested_test
from rating.rows import VoteRows
from rating.tables.columns import Reading
from rating.tables.counts import read_rows

CATEGORIES, MODELS = 6, 5


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn(
    seed: int,
    *,
    prompts: int = 60,
    votes: int = 1500,
    voters: int = 50,
    by_prompt: float = 0.0,
    by_category: float = 0.0,
    taste: float = 0.0,
    world: int | None = None,
) -> VoteRows:
    """Votes in which prompts, categories and voters like models, each by so many nats.

    Worlds of the same number have the same prompts and categories, and other voters.
    """
    draw = rng(seed)
    own = draw if world is None else rng(world)
    category = np.arange(prompts) % CATEGORIES
    liking = by_prompt * own.normal(size=(prompts, MODELS))
    liking += by_category * own.normal(size=(CATEGORIES, MODELS))[category]
    prompt, voter = draw.integers(prompts, size=votes), draw.integers(voters, size=votes)
    a = draw.integers(MODELS, size=votes)
    b = (a + draw.integers(1, MODELS, size=votes)) % MODELS
    of_voter = taste * draw.normal(size=(voters, MODELS))
    theta = np.linspace(0.6, -0.6, MODELS)
    lead = theta[a] - theta[b] + liking[prompt, a] - liking[prompt, b]
    lead += of_voter[voter, a] - of_voter[voter, b]
    outcome = (draw.random(votes) > 1 / (1 + np.exp(-lead))).astype(np.int64)
    groups = {"voter": voter, "prompt": prompt, "by": category[prompt]}
    return VoteRows(tuple("mnopq"), a, b, outcome, np.ones(votes, dtype=np.int64), groups)


def p_of(rows: VoteRows, role: str = "by", *, draws: int = 99, seed: int = 0) -> float:
    test = nested_test(rows, rows.groups[role], draws=draws, rng=rng(seed))
    return float((1 + (test.drawn >= test.statistic - 1e-9).sum()) / (draws + 1))


def test_what_lies_in_one_group_whole_is_dealt() -> None:
    rows = drawn(1)
    voters = replace(rows, groups={**rows.groups, "by": rows.groups["voter"] % 3})
    mixed = replace(rows, groups={**rows.groups, "by": np.arange(rows.n) % 2})
    for one, unit in ((rows, "prompt"), (voters, "voter"), (mixed, "vote")):
        test = nested_test(one, one.groups["by"], draws=19, rng=rng())
        assert test.unit == unit
    assert nested_test(rows, rows.groups["prompt"], draws=19, rng=rng()).unit == "vote"


def test_planted_categories_are_found_and_those_of_nobody_are_not() -> None:
    assert p_of(drawn(2, by_category=0.5)) <= 0.02
    assert p_of(drawn(2)) > 0.05
    test = nested_test(drawn(2, by_category=0.5), drawn(2).groups["by"], draws=99, rng=rng())
    assert test.design_effect > 2
    assert (test.explained or 0) > 0.005


def test_counted_votes_are_those_of_single_ones() -> None:
    rows = drawn(3)
    twice = replace(rows, times=np.full(rows.n, 2))
    single = rows.taken(np.repeat(np.arange(rows.n), 2))
    tests = [nested_test(one, one.groups["by"], draws=19, rng=rng()) for one in (twice, single)]
    assert tests[0].statistic == pytest.approx(tests[1].statistic)
    assert tests[0].drawn == pytest.approx(tests[1].drawn)


def test_groups_of_votes_on_two_models_are_held_against_one_share_by_hand() -> None:
    """Of prompts of ten votes each x wins 8, 6, 5 and 1; the first two are of one category."""
    won, prompt = np.array([8, 6, 5, 1]), np.repeat(np.arange(4), 10)
    zero = np.zeros(40, dtype=np.int64)
    outcome = np.concatenate([np.repeat([0, 1], (n, 10 - n)) for n in won])
    groups = {"prompt": prompt, "by": prompt // 2}
    rows = VoteRows(("x", "y"), zero, zero + 1, outcome, zero + 1, groups)
    test = nested_test(rows, groups["by"], draws=200, rng=rng())
    # Half are won: a category's sum is 4 or -4, and the information of all votes is 40 / 4.
    assert test.unit == "prompt"
    assert test.statistic == pytest.approx((16 + 16) / 10)
    assert test.design_effect == pytest.approx(3.2)
    assert test.dealt == 1
    ways = [2 * sum((won - 5)[list(two)]) ** 2 / 10 for two in combinations(range(4), 2)]
    assert {*test.drawn.round(9)} == {*np.round(ways, 9)}
    # A category explains its squared sum over its own information, 20 / 4, of 40 squares of 1/4.
    explained = 2 * (3.2 - test.drawn[:50].mean()) / 40
    assert test.explained == pytest.approx(explained)


def test_names_of_groups_and_sides_change_nothing() -> None:
    rows = drawn(4, by_category=0.3)
    turned = replace(rows, a=rows.b, b=rows.a, outcome=1 - rows.outcome)
    named = replace(rows, groups={**rows.groups, "by": CATEGORIES - 1 - rows.groups["by"]})
    first, *others = (
        nested_test(one, one.groups["by"], draws=19, rng=rng()) for one in (rows, turned, named)
    )
    for other in others:
        assert other.statistic == pytest.approx(first.statistic)
        assert other.design_effect == pytest.approx(first.design_effect)


def test_what_cannot_be_dealt_is_refused() -> None:
    rows = drawn(5, votes=200)
    with pytest.raises(DataError, match="All votes are in one group"):
        nested_test(rows, np.zeros(rows.n, dtype=np.int64), draws=19, rng=rng())
    of_first = (rows.a == 0) | (rows.b == 0)
    n = 2 * min(of_first.sum(), (~of_first).sum())
    mixed = np.ravel(np.column_stack([np.flatnonzero(x)[: n // 2] for x in (of_first, ~of_first)]))
    twice = replace(rows.taken(mixed), groups={"voter": np.arange(n) // 2})
    with pytest.raises(DataError, match="No vote could be dealt"):
        nested_test(twice, np.arange(n) % 2, draws=19, rng=rng())


@pytest.mark.slow
@pytest.mark.published
def test_categories_of_mt_bench_differ_beyond_their_prompts(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    lines = (folder / "mt_bench_questions.jsonl").read_text("utf-8").splitlines()
    kind = {str(row["question_id"]): row["category"] for row in map(json.loads, lines)}
    rows = read_rows(folder / "votes.parquet", Reading(prompts=True, both_bad="tie"))
    names = sorted(set(kind.values()))
    of_prompt = np.array([names.index(kind[name]) for name in rows.names["prompt"]])
    group = of_prompt[rows.groups["prompt"]]
    test = nested_test(rows, group, draws=999, rng=rng())
    assert test.unit == "prompt"
    assert test.statistic == pytest.approx(15.43, abs=0.01)
    assert_drawn(test, mean=8.85, sd=1.94)
    assert 0.001 <= (1 + (test.drawn >= test.statistic).sum()) / 1000 <= 0.008
    among_votes = replace(rows, groups={})  # on the same pair: the null that is not used
    wrong = nested_test(among_votes, group, draws=999, rng=rng())
    assert wrong.statistic == pytest.approx(15.43, abs=0.01)
    assert_drawn(wrong, mean=2.96, sd=0.71)
    assert (1 + (wrong.drawn >= wrong.statistic).sum()) / 1000 == 0.001
    prompts = nested_test(among_votes, rows.groups["prompt"], draws=999, rng=rng())
    assert prompts.statistic == pytest.approx(9.93, abs=0.01)
    assert_drawn(prompts, mean=3.35, sd=0.26)


def assert_drawn(test: Nested, *, mean: float, sd: float) -> None:
    """Within three Monte Carlo errors of moments that were computed elsewhere, as often."""
    n = len(test.drawn)
    assert test.drawn.mean() == pytest.approx(mean, abs=3 * sd * np.sqrt(2 / n))
    assert test.drawn.std() == pytest.approx(sd, abs=3 * sd * np.sqrt(1 / n))


# Simulations: Monte Carlo error .015 at a size of .05

RUNS = 200
SIZE = 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)


def rejected(role: str = "by", *, bare: bool = False, **world: float) -> float:
    ps = []
    for seed in range(RUNS):
        rows = drawn(seed, **world)  # type: ignore[arg-type]
        if bare:  # neither prompts nor voters are known: votes are dealt within their pair
            rows = replace(rows, groups={role: rows.groups[role]})
        ps.append(p_of(rows, role, seed=seed))
    return float(np.mean(np.array(ps) <= 0.05))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("by_prompt", [0.0, 0.5])
@pytest.mark.parametrize("taste", [0.0, 0.5])
def test_categories_that_are_none_are_seldom_seen(by_prompt: float, taste: float) -> None:
    assert rejected(by_prompt=by_prompt, taste=taste) <= SIZE


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("taste", [0.0, 0.8])
def test_prompts_that_are_alike_are_seldom_told_apart(taste: float) -> None:
    assert rejected("prompt", taste=taste, voters=20) <= SIZE


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_planted_categories_and_prompts_are_seen() -> None:
    assert rejected(by_category=0.4) >= 0.8
    assert rejected("prompt", by_prompt=0.5, voters=10) >= 0.8


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_why_categories_are_not_dealt_among_votes() -> None:
    """Prompts that differ, in categories that mean nothing: votes on one prompt are alike."""
    assert rejected(by_prompt=0.5, bare=True) >= 0.3
