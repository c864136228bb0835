import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rating
from rating import DataError, RateOptions, Report, rate
from rating.options import Interval
from tests.rating.builders import random_votes, votes
from tests.simulation import Design

TIE = ("x", "y", "tie")


def board(rows: Sequence[Sequence[str]], seed: int = 0) -> Report:
    return rate(votes(rows), RateOptions(seed=seed))


def claims_ranks(report: Report) -> bool:
    return "too few to bound the ranks" not in warnings_of(report)


def no_ranks(report: Report) -> bool:
    return {(row.rank_low, row.rank_high) for row in report.ratings} == {(None, None)}


def without_voters(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    return [row[:3] for row in rows]


def warnings_of(report: Report) -> str:
    return "\n".join(report.warnings)


def test_two_models_without_voters_have_the_interval_of_the_odds_ratio() -> None:
    report = board([("x", "y", "model_a")] * 300 + [("x", "y", "model_b")] * 100)
    x, y = report.ratings
    half_gap = np.log(3) / 2
    se = np.sqrt(1 / 300 + 1 / 100) / 2
    assert x.strength == pytest.approx(half_gap)
    assert x.rating == pytest.approx(1000 + 400 / np.log(10) * half_gap)
    assert x.se == pytest.approx(400 / np.log(10) * se)
    assert x.upper - x.lower == pytest.approx(2 * 1.959964 * x.se)
    assert (x.rank, x.rank_low, x.rank_high, x.votes) == (1, 1, 1, 400)
    assert (y.rank, y.rank_low, y.rank_high, y.votes) == (2, 2, 2, 400)
    used = report.votes
    assert (used.used, used.self_battles, report.options.cluster) == (400, 0, "none")
    assert used.voters is used.effective_voters is used.top_voter_share is None


def test_known_voters_are_allowed_for(rng: np.random.Generator) -> None:
    report = board(random_votes(rng, n=2000, n_voters=40))
    assert report.options.cluster == "voter"
    assert report.votes.voters == 40
    assert 30 < report.to_dict()["votes"]["effective_voters"] <= 40
    assert claims_ranks(report)
    row = report.ratings[0]
    assert row.upper - row.lower > 2 * 2.0 * row.se  # t with under 40 degrees of freedom


def test_the_result_is_the_same_to_the_last_bit_in_any_order(rng: np.random.Generator) -> None:
    rows = random_votes(rng, n=1000)
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    assert board(rows).to_dict() == board(shuffled).to_dict()


def test_the_generator_moves_nothing_but_rank_ranges(rng: np.random.Generator) -> None:
    rows = random_votes(rng, n=1000)
    one, two = board(rows, seed=1), board(rows, seed=2)
    assert [(r.rating, r.lower, r.rank) for r in one.ratings] == [
        (r.rating, r.lower, r.rank) for r in two.ratings
    ]


def test_equal_ratings_share_a_rank_and_the_next_is_skipped() -> None:
    rows = [("x", "z", "model_a"), ("y", "z", "model_a"), ("x", "y", "tie")] * 3
    report = board([*rows, ("z", "x", "model_a"), ("z", "y", "model_a")])
    assert [(row.model, row.rank) for row in report.ratings] == [("x", 1), ("y", 1), ("z", 3)]


def test_the_range_of_ranks_holds_the_rank() -> None:
    report = rate(Design().draw(np.random.default_rng(5)), RateOptions(seed=6))
    ranges = [(row.rank_low or 0, row.rank, row.rank_high or 0) for row in report.ratings]
    assert all(low <= rank <= high for low, rank, high in ranges)
    assert ranges[0][2] < 10


@pytest.mark.parametrize("interval", ["sandwich", "hessian", "profile", "bootstrap"])
def test_a_higher_level_widens_the_intervals(rng: np.random.Generator, interval: Interval) -> None:
    data = votes(random_votes(rng))
    narrow, wide = (
        rate(data, RateOptions(interval=interval, level=level, rounds=100)).ratings[0]
        for level in (0.8, 0.99)
    )
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, float("nan")])
def test_a_level_outside_zero_to_one_raises(level: float) -> None:
    with pytest.raises(DataError, match="level"):
        RateOptions(level=level)


# What a reader is told


PROMPTS = (
    "Prompts are not known: the intervals are too narrow where people voted on the same prompts."
)
QUASI = (
    "Quasi-standard errors are omitted: they misstate the standard errors of differences by up to "
    "12%."
)
APART = (
    "The intervals treat votes as independent, though 20 voters cast them: they are too narrow "
    "where people voted often."
)
UNKNOWN = (
    "Voters are not known: the intervals treat votes as independent, and are too narrow where "
    "people voted often."
)
HALF = (
    "Ties count as half wins, for which intervals from the curvature of the likelihood are too "
    "wide: choose interval sandwich, or another model of ties."
)
THESE = (
    "Intervals and ranks are for these 20 voters alone: how they would rate with endless votes, "
    "each with the same share of them. They do not hold for other people."
)


@pytest.mark.parametrize(
    ("known", "options", "warnings"),
    [
        (True, {}, [PROMPTS, QUASI]),
        (True, {"cluster": "none"}, [APART]),
        (True, {"claims": "these-voters"}, [THESE]),
        (True, {"interval": "hessian"}, [HALF, APART]),
        (True, {"interval": "hessian", "ties": "davidson"}, [APART]),
        (True, {"interval": "bootstrap", "rounds": 100}, [QUASI.replace("12", "20")]),
        (False, {}, [UNKNOWN]),
        (False, {"interval": "none"}, []),
    ],
    ids=str,
)
def test_warnings_are_those_of_the_way_to_rate(
    rng: np.random.Generator, known: bool, options: dict[str, Any], warnings: list[str]
) -> None:
    rows = random_votes(rng)
    report = rate(votes(rows if known else without_voters(rows)), RateOptions(**options))
    assert list(report.warnings) == warnings


def test_a_board_of_one_busy_voter_says_so_and_claims_no_ranks(rng: np.random.Generator) -> None:
    rows = [
        (a, b, o, "busy" if i < 390 else v) for i, (a, b, o, v) in enumerate(random_votes(rng))
    ]
    report = board(rows)
    assert "One voter has 98% of the votes" in warnings_of(report)
    assert "that voter alone" in warnings_of(report)
    assert not claims_ranks(report)
    assert no_ranks(report)


def test_a_single_voter_gets_a_board(rng: np.random.Generator) -> None:
    report = board([(a, b, o, "ann") for a, b, o, _ in random_votes(rng)])
    used = report.votes
    assert (used.voters, used.effective_voters, used.top_voter_share) == (1, 1.0, 1.0)
    assert "One voter has 100% of the votes: the intervals hold for that" in warnings_of(report)
    assert report.options.cluster == "none"
    assert no_ranks(report)
    assert all(row.lower < row.rating < row.upper for row in report.ratings)


def test_fewer_effective_voters_than_models_are_few(rng: np.random.Generator) -> None:
    report = board(random_votes(rng, n=9000, n_models=25, n_voters=20))
    assert (
        "Few data for 25 models: 20 voters. Ranks are excluded only by Bonferroni-corrected t "
        "tests of pairs."
    ) in report.warnings
    assert no_ranks(report)


def test_a_handful_of_votes_claims_no_ranks() -> None:
    report = board([("x", "y", "model_a")] * 8 + [("x", "y", "model_b")])
    assert not claims_ranks(report)
    assert "9 votes are too few" in warnings_of(report)
    assert claims_ranks(board([("x", "y", "model_a"), ("x", "y", "model_b")] * 7 + [TIE]))
    chain = [(f"m{i:02}", f"m{i + 1:02}", "tie") for i in range(19)]
    assert "19 votes are too few to bound the ranks of 20 models" in warnings_of(board(chain))


def test_ten_voters_taken_as_independent_claim_no_ranks_of_other_people(
    rng: np.random.Generator,
) -> None:
    data = votes(random_votes(rng, n=4000, n_models=2, n_voters=10))
    report = rate(data, RateOptions(cluster="none"))
    assert "10 voters are too few to bound the ranks of 2 models" in warnings_of(report)
    assert no_ranks(report)
    assert claims_ranks(rate(data, RateOptions(cluster="none", claims="these-voters")))


@pytest.mark.parametrize("known", [True, False])
def test_nothing_but_ties_leaves_wide_intervals_and_a_warning(known: bool) -> None:
    rows = [("x", "y", "tie", f"v{i}") for i in range(30)]
    report = board(rows if known else without_voters(rows))
    assert "Every vote is a tie" in warnings_of(report)
    # thirty votes at p = 1/2: the gap has variance 4/30, each model a quarter of it
    assert report.ratings[0].se == pytest.approx(400 / np.log(10) * np.sqrt(1 / 30))
    assert {row.rank for row in report.ratings} == {1}
    assert no_ranks(report)


@pytest.mark.parametrize("known", [True, False])
def test_a_model_with_only_ties_is_named(rng: np.random.Generator, known: bool) -> None:
    rows = [*random_votes(rng), ("flat", "m0", "tie", "v1"), ("flat", "m1", "both_bad", "v2")]
    report = board(rows if known else without_voters(rows))
    assert "Only ties join flat" in warnings_of(report)
    flat = next(row for row in report.ratings if row.model == "flat")
    assert flat.se > 150
    davidson = rate(votes(rows), RateOptions(ties="davidson"))
    assert "Only ties" not in warnings_of(davidson)


def test_a_model_that_one_voter_alone_rated_is_none_of_the_average(
    rng: np.random.Generator,
) -> None:
    new = [("new", "m0", "model_a", "fan")] * 40 + [("new", "m1", "model_b", "fan")] * 20
    report = board([*random_votes(rng, n=4000, n_voters=60), *new])
    row = report.ratings[0]
    assert "new has fewer than 15 effective voters: its intervals" in warnings_of(report)
    assert (row.model, row.rank, row.rank_low, row.rank_high) == ("new", 1, None, None)
    assert row.effective_voters == pytest.approx(1.0, abs=0.1)
    assert np.mean([other.rating for other in report.ratings[1:]]) == pytest.approx(1000)


def test_models_with_few_points_are_named_and_long_lists_are_cut(rng: np.random.Generator) -> None:
    assert "wins or losses" not in warnings_of(board(random_votes(rng)))
    ten = [("x", "y", ("model_a", "model_b")[i % 2], f"v{i}") for i in range(20)]
    assert "wins or losses" not in warnings_of(board(ten))
    tied = warnings_of(board([("x", "y", "tie", "v0"), *ten[1:]]))
    assert "Fewer than 10 wins or losses (a tie counts 1/2) for x, y: their" in tied
    few = random_votes(rng, n=60, n_models=8)
    assert "m0, m1, m2, m3, m4 and 3 more" in warnings_of(board(few))


def test_one_rare_model_leaves_the_intervals_of_the_others_alone(rng: np.random.Generator) -> None:
    rows = random_votes(rng, n=20_000, n_models=8, n_voters=2000)
    rare = [("rare", "m0", "model_a", "v1"), ("rare", "m1", "model_b", "v2")]
    before = {row.model: row.se for row in board(rows).ratings}
    after = {row.model: row.se for row in board([*rows, *rare]).ratings}
    gap = 400 / np.log(10) * np.sqrt(2 / 1)  # the two votes alone
    assert after["rare"] > 0.5 * gap
    assert all(after[name] < 1.01 * before[name] for name in before)


def test_the_package_loads_what_is_used_of_it() -> None:
    slow = {"scipy.stats", "scipy.special", "duckdb", "narwhals", "pandas", "matplotlib"}
    code = (
        "import sys, rating; print({'numpy', 'scipy'} & set(sys.modules));"
        f"rating.rate, rating.fit, rating.bootstrap; print({slow} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["set()", "set()"]


def test_every_name_of_the_package_can_be_used() -> None:
    assert len(dir(rating)) > 50
    for name in dir(rating):
        member = getattr(rating, name)
        assert not isinstance(member, ModuleType), name
