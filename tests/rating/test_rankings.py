"""Rankings of more than two answers: Plackett-Luce, with ties and with intervals by voter."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import choix
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from rating import Comparisons, fit
from rating.errors import DataError, NotIdentifiedError
from rating.rankings import ASSUMED, Order, Rankings, rate_rankings
from rating.tables.sources import parsed, read_rankings
from tests.simulation import runs

NAMES = tuple(f"m{i}" for i in range(6))
RUNS = runs(300)


def drawn(
    rng: np.random.Generator, n: int, *, shown: int = 4, voters: int = 0, taste: float = 0.0
) -> Rankings:
    """Rankings of m0 to m5, m5 the strongest; each voter has a taste of their own."""
    theta = np.linspace(-1, 1, len(NAMES))
    voter = rng.integers(voters or n, size=n)
    own = theta + taste * rng.standard_normal((voters or n, len(NAMES)))
    orders = []
    for who in voter:
        some = rng.choice(len(NAMES), shown, replace=False)
        best_first = some[np.argsort(-(own[who][some] + rng.gumbel(size=shown)))]
        orders.append(tuple((int(i),) for i in best_first))
    voter = np.unique(voter, return_inverse=True)[1].astype(np.int64)
    return Rankings(NAMES, tuple(orders), voter if voters else None)


def strengths(rankings: Rankings) -> np.ndarray:
    of = {row.model: row.strength for row in rate_rankings(rankings).models}
    return np.array([of[name] for name in rankings.models])


@pytest.mark.parametrize("few", [-1, 10_000])
def test_equal_rankings_of_one_voter_count_each_in_their_order(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rating.tables.coding.FEW", few)
    path = tmp_path / "rankings.csv"
    path.write_text("ranking,voter\na > b,u\nb > a,u\na > b,u\na > b,v\n", encoding="utf-8")
    read = read_rankings(path)
    first, second = ((0,), (1,)), ((1,), (0,))
    assert read.orders == (first, second, first, first)
    assert read.voter is not None
    assert read.voter.tolist() == [0, 0, 0, 1]


@pytest.mark.slow
def test_without_ties_strengths_are_those_of_choix() -> None:
    rankings = drawn(np.random.default_rng(1), 400)
    plain = [tuple(place[0] for place in order) for order in rankings.orders]
    theirs = choix.opt_rankings(len(NAMES), plain, tol=1e-10)
    assert strengths(rankings) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_of_two_answers_with_ties_it_is_davidsons_model() -> None:
    rng = np.random.default_rng(2)
    pairs = [tuple(int(i) for i in rng.choice(4, 2, replace=False)) for _ in range(300)]
    outcomes = rng.choice(["model_a", "model_b", "tie"], 300, p=[0.5, 0.3, 0.2])
    both = {"model_a": lambda a, b: ((a,), (b,)), "model_b": lambda a, b: ((b,), (a,))}
    orders = [
        both[o](*pair) if o in both else (pair,) for pair, o in zip(pairs, outcomes, strict=True)
    ]
    report = rate_rankings(Rankings(NAMES[:4], tuple(orders)))
    left, right = ([f"m{pair[side]}" for pair in pairs] for side in (0, 1))
    data = Comparisons.from_arrays(left, right, outcomes)
    theirs = fit(data, ties="davidson")
    ours = {row.model: row.strength for row in report.models}
    assert [ours[name] for name in theirs.models] == pytest.approx(theirs.theta.tolist(), abs=1e-8)
    assert report.ties[2] == pytest.approx(float(np.exp(theirs.x[-1])), rel=1e-7)


def weighted_sum(theta: np.ndarray, ties: dict[int, float], left: tuple[int, ...]) -> float:
    return sum(
        ties.get(size, 1.0 if size == 1 else 0.0) * float(np.exp(theta[list(some)].mean()))
        for size in range(1, len(left) + 1)
        for some in combinations(left, size)
    )


def test_the_likelihood_is_the_product_of_choices_written_out() -> None:
    orders: tuple[Order, ...] = (
        ((0,), (1, 2), (3,)),
        ((3, 1), (0,)),
        ((2,), (0,), (3,), (1,)),
        ((1, 2, 3), (0,)),
        ((0, 1), (2, 3)),
    )
    report = rate_rankings(Rankings(NAMES[:4], orders))
    of = {row.model: row.strength for row in report.models}
    theta = np.array([of[name] for name in NAMES[:4]])
    loss = 0.0
    for order in orders:
        left = tuple(i for place in order for i in place)
        for place in order:
            if len(left) > 1:
                tie = report.ties[len(place)] if len(place) > 1 else 1.0
                mine = tie * float(np.exp(theta[list(place)].mean()))
                loss -= np.log(mine / weighted_sum(theta, report.ties, left))
            left = tuple(i for i in left if i not in place)
    assert report.log_loss == pytest.approx(loss / len(orders), rel=1e-12)
    assert sorted(report.ties) == [2, 3]
    seen = {row.model: (row.rankings, row.first) for row in report.models}
    assert seen == {"m0": (5, 2), "m1": (5, 3), "m2": (4, 2), "m3": (5, 2)}


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 5))
def test_names_and_the_order_of_rows_change_nothing(names: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = drawn(rng, 60, voters=12)
    renamed = tuple(tuple(tuple(names[i] for i in p) for p in order) for order in one.orders)
    rows = rng.permutation(60)
    assert one.voter is not None
    other = Rankings(NAMES, tuple(renamed[i] for i in rows), one.voter[rows])
    try:
        first, second = rate_rankings(one), rate_rankings(other)
    except NotIdentifiedError:
        return
    of = {row.model: (row.strength, row.se) for row in first.models}
    for row in second.models:
        before = NAMES[names.index(NAMES.index(row.model))]
        assert (row.strength, row.se) == pytest.approx(of[before], abs=1e-7)


def test_every_ranking_as_often_as_any_other_rates_all_alike() -> None:
    orders = [[[name] for name in order] for order in permutations("abc")]
    report = rate_rankings(Rankings.of(orders, list("uvwxyz")))
    assert [row.rating for row in report.models] == pytest.approx([1000] * 3, abs=1e-6)
    assert {(row.rank, row.rank_low, row.rank_high) for row in report.models} == {(1, None, None)}


def test_models_that_are_always_tied_have_no_ranks() -> None:
    report = rate_rankings(Rankings.of([[["a", "b", "c"]]] * 4))
    assert [(row.rank_low, row.rank_high) for row in report.models] == [(None, None)] * 3


@pytest.mark.parametrize(
    ("orders", "finite"),
    [
        (["abc", "abc", "abc", "ac b"], False),
        (["ab", "ab", "ab", "a b"], False),
        (["a b", "b a", "bc", "b c"], True),
        (["a b", "b c", "ac", "ac b"], True),
        (["ab", "a b", "b a"], True),
        (["ab c", "c ab", "a bc", "bc a"], True),
        (["ab c", "c ab", "ab c"], True),
    ],
)
def test_ties_alone_bound_no_strength(orders: list[str], finite: bool) -> None:
    rankings = Rankings.of([[list(place) for place in order.split()] for order in orders])
    if finite:
        assert all(abs(row.strength) < 10 for row in rate_rankings(rankings).models)
    else:
        with pytest.raises(NotIdentifiedError, match="ties aside"):
            rate_rankings(rankings)


def test_rankings_of_one_person_widen_the_intervals() -> None:
    rankings = drawn(np.random.default_rng(3), 300, voters=20, taste=1.0)
    alone = rate_rankings(Rankings(rankings.models, rankings.orders))
    by_voter = rate_rankings(rankings)
    assert by_voter.voters == 20
    assert by_voter.models[0].se > 1.3 * alone.models[0].se
    assert any("too narrow" in text for text in alone.warnings)
    assert (alone.voters, alone.to_dict()["df"]) == (None, None)
    assert by_voter.warnings == (ASSUMED,)
    rows, surer = alone.models, rate_rankings(replace(rankings, voter=None), level=0.999).models
    assert [row.rank for row in rows] == [1, 2, 3, 4, 5, 6]
    ranges = [[(row.rank_low or 1, row.rank_high or 6) for row in each] for each in (rows, surer)]
    assert all(low <= rank <= high for rank, (low, high) in enumerate(ranges[1], 1))
    assert np.diff(ranges[0]).sum() < np.diff(ranges[1]).sum() < 30


def test_the_standard_error_of_four_voters_on_two_models_is_that_calculated_by_hand() -> None:
    better, worse = ((0,), (1,)), ((1,), (0,))
    orders = [order for won in (8, 2, 6, 4) for order in [better] * won + [worse] * (10 - won)]
    rankings = Rankings(("a", "b"), tuple(orders), np.repeat(np.arange(4), 10))
    report = rate_rankings(rankings)
    # Half of all rankings are won: one has the information 1/4 on the difference, and the score
    # of a voter is wins - 5. Three of four voters are left, with thirty rankings.
    difference = np.sqrt(3 / 4 * (9 + 9 + 1 + 1)) / (30 / 4)
    assert [row.strength for row in report.models] == pytest.approx([0, 0], abs=1e-9)
    expected = 400 / np.log(10) * difference / 2
    assert [row.se for row in report.models] == pytest.approx([expected, expected])
    for level in (0.95, 0.5):
        row = rate_rankings(rankings, level=level).models[0]
        assert row.upper - row.rating == pytest.approx(stdtrit(3, (1 + level) / 2) * expected)


def test_the_standard_error_of_four_prompts_is_that_calculated_by_hand() -> None:
    """Each of 40 people ranked once, on four prompts: the prompts add what they differ by."""
    better, worse = ((0,), (1,)), ((1,), (0,))
    orders = [order for won in (8, 2, 6, 4) for order in [better] * won + [worse] * (10 - won)]
    voter, prompt = np.arange(40), np.repeat(np.arange(4), 10)
    report = rate_rankings(Rankings(("a", "b"), tuple(orders), voter, prompt))
    assert (report.voters, report.prompts) == (40, 4)
    alone = 39 / 40 * 40 * 0.5**2 / (39 / 4) ** 2  # a score of +-1/2 each; 39 are left
    by_prompt = 3 / 4 * (9 + 9 + 1 + 1) / (30 / 4) ** 2
    expected = 400 / np.log(10) * np.sqrt(by_prompt) / 2  # V_voter + V_prompt - V_both
    assert [row.se for row in report.models] == pytest.approx([expected] * 2)
    more = by_prompt - alone
    df = by_prompt**2 / (alone**2 / 39 + more**2 / 3)
    reach = stdtrit(3, 0.975) * expected  # by the prompts alone, which are fewer
    assert df > 3
    assert report.df == pytest.approx(df)
    assert [row.upper - row.rating for row in report.models] == pytest.approx([reach] * 2)
    apart = rate_rankings(Rankings(("a", "b"), tuple(orders), voter, voter))
    known = rate_rankings(Rankings(("a", "b"), tuple(orders), voter))
    assert [row.se for row in apart.models] == pytest.approx([row.se for row in known.models])


def test_prompts_are_read_and_an_empty_one_stands_by_itself() -> None:
    rows = {"ranking": ["a > b", "b > a", "a > b", "b > a"], "prompt_id": ["p", "p", None, ""]}
    read = read_rankings(pl.DataFrame(rows))
    assert read.prompt is not None
    assert len(np.unique(read.prompt)) == 3
    assert read.prompt[0] == read.prompt[1]
    one = read_rankings(pl.DataFrame({"ranking": rows["ranking"], "prompt": ["p"] * 4}))
    assert any("one prompt" in text for text in rate_rankings(one).warnings)


def test_a_model_that_was_always_last_is_named() -> None:
    orders = [[["a"], ["b"], ["last"]], [["b"], ["a"], ["last"]]]
    with pytest.raises(NotIdentifiedError, match="a, b; last"):
        rate_rankings(Rankings.of(orders))


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ([[["a"], ["a"]]], "Ranking 1 names 'a' twice"),
        ([[["a", "b"]], [["a"]]], "Ranking 2 has 1 models"),
        ([[["a"], [], ["b"]]], "Ranking 1 has an empty place"),
        ([[[str(i)] for i in range(13)]], "13 models: it takes 2 to 12"),
    ],
)
def test_a_ranking_that_cannot_be_is_named(orders: list[list[list[str]]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Rankings.of(orders)


def test_one_voter_gives_no_interval() -> None:
    rankings = Rankings.of([[["a"], ["b"]], [["b"], ["a"]]], ["u", "u"])
    with pytest.raises(DataError, match="One voter made all rankings"):
        rate_rankings(rankings)


@given(
    st.lists(st.lists(st.from_regex(r"\w[\w. -]{0,8}\w", fullmatch=True), min_size=1), min_size=1)
)
def test_a_ranking_is_read_as_it_was_written(ranking: list[list[str]]) -> None:
    assert parsed(" > ".join(" = ".join(place) for place in ranking)) == ranking


def test_rows_without_a_ranking_are_left_out_and_voters_are_needed_in_all_or_none() -> None:
    source = pl.DataFrame(
        {"ranking": ["a > b", None, " ", "b > a"], "voter": ["u", "v", None, "w"]}
    )
    read = read_rankings(source)
    assert read.orders == (((0,), (1,)), ((1,), (0,)))
    assert read.voter is not None
    assert read.voter.tolist() == [0, 1]
    reasons = [None, "rankings", "gold", "second showings"]
    study = read_rankings(pl.DataFrame({"ranking": ["a > b"] * 4, "left_out": reasons}))
    assert len(study.orders) == 2
    with pytest.raises(DataError, match="1 of 2 rankings"):
        read_rankings(pl.DataFrame({"ranking": ["a > b", "b > a"], "voter": ["u", None]}))
    with pytest.raises(DataError, match="Cannot read the ranking 'a > > b'"):
        read_rankings(pl.DataFrame({"ranking": ["a > > b"]}))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_lists_of_names_are_rankings_in_every_kind_of_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rankings.{ending}"
    lists = [["x", "y", "z"], ["z", "x", "y"]]
    frame = pl.DataFrame({"ranking": lists, "voter": ["u", "v"]})
    if ending == "jsonl":
        frame.write_ndjson(path)
    elif ending == "json":
        frame.write_json(path)
    elif ending == "csv":
        texts = [json.dumps(one) for one in lists]
        frame.with_columns(pl.Series("ranking", texts)).write_csv(path)
    else:
        frame.write_parquet(path)
    read = read_rankings(path)
    assert read.models == ("x", "y", "z")
    assert read.orders == (((0,), (1,), (2,)), ((2,), (0,), (1,)))
    assert read_rankings(frame).orders == read.orders


def test_marks_without_spaces_part_names_unless_a_name_holds_one() -> None:
    read = read_rankings(pl.DataFrame({"ranking": ["x>y>z", "z> x >y", "y > x > z"]}))
    assert read.orders == (((0,), (1,), (2,)), ((2,), (0,), (1,)), ((1,), (0,), (2,)))
    tight = read_rankings(pl.DataFrame({"ranking": ["gpt-4>a b", "a b>gpt-4"]}))
    assert tight.models == ("a b", "gpt-4")
    assert tight.orders == (((1,), (0,)), ((0,), (1,)))
    with pytest.raises(DataError, match="'x>y': a model is called 'x->y', so write ' > '"):
        read_rankings(pl.DataFrame({"ranking": ["x>y", "x->y > z"]}))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("x>y=z", "as in 'x > y = z'"),
        ("x<y", "as in 'x > y = z'"),
        ("x=y", "as in 'x > y = z'"),
        ("x>>y", "as in 'x > y = z'"),
        ('["x", 3]', '\\["x", "y", "z"\\]'),
        ('[{"value": "x", "rank": 1}]', '\\["x", \\["y", "z"\\]\\]'),
        ('["x", ""]', '\\["x", "y", "z"\\]'),
    ],
)
def test_a_ranking_that_cannot_be_read_names_the_form(text: str, form: str) -> None:
    with pytest.raises(DataError, match=f"{re.escape(text)}.*{form}"):
        read_rankings(pl.DataFrame({"ranking": [text]}))


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "taste"), [(0, 0.0), (25, 0.6), (60, 0.6)])
def test_intervals_cover(
    voters: int, taste: float, record_property: Callable[[str, object], None]
) -> None:
    """With tastes, the truth is what the same people rank in the long run."""
    rng = np.random.default_rng([voters, 7])
    truth = strengths(drawn(rng, 60_000, voters=60_000 if taste else 0, taste=taste))
    held = []
    for _ in range(RUNS):
        report = rate_rankings(drawn(rng, 300, voters=voters, taste=taste))
        of = {row.model: (row.lower, row.upper) for row in report.models}
        points = 1000 + 400 / np.log(10) * truth
        held += [of[n][0] <= p <= of[n][1] for n, p in zip(NAMES, points, strict=True)]
    covered = float(np.mean(held))
    row = {"voters": voters or "not known", "taste": taste, "covered": round(covered, 4)}
    record_property("Intervals of rankings, 95 %", row)
    assert 0.93 <= covered <= 0.97


def on_prompts(rng: np.random.Generator, n: int, voters: int, prompts: int) -> Rankings:
    """Rankings of four of six models; voters and prompts have random effects of 0.6 each."""
    theta = np.linspace(-1, 1, len(NAMES))
    voter, prompt = rng.integers(voters, size=n), rng.integers(prompts, size=n)
    own = theta + 0.6 * rng.standard_normal((voters, len(NAMES)))[voter]
    own = own + 0.6 * rng.standard_normal((prompts, len(NAMES)))[prompt]
    shown = np.argsort(rng.random(own.shape), axis=1)[:, :4]
    noisy = np.take_along_axis(own, shown, axis=1) + rng.gumbel(size=shown.shape)
    best_first = np.take_along_axis(shown, np.argsort(-noisy, axis=1), axis=1)
    orders = tuple(tuple((model,) for model in order) for order in best_first.tolist())
    return Rankings(NAMES, orders, voter, prompt)


def covered_on_prompts(prompts: int, count: int, *, known: bool = True) -> float:
    rng = np.random.default_rng([prompts, 11])
    truth = strengths(replace(on_prompts(rng, 60_000, 60_000, 60_000), voter=None, prompt=None))
    inside = []
    for _ in range(count):
        drawn_once = on_prompts(rng, 300, 60, prompts)
        report = rate_rankings(drawn_once if known else replace(drawn_once, prompt=None))
        of = {row.model: (row.lower, row.upper) for row in report.models}
        points = 1000 + 400 / np.log(10) * truth
        inside += [of[n][0] <= p <= of[n][1] for n, p in zip(NAMES, points, strict=True)]
    return float(np.mean(inside))


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [20, 60])
def test_intervals_cover_with_shared_prompts(
    prompts: int, record_property: Callable[[str, object], None]
) -> None:
    covered, alone = (covered_on_prompts(prompts, RUNS, known=known) for known in (True, False))
    row = {"prompts": prompts, "covered": round(covered, 4), "voters alone": round(alone, 4)}
    record_property("Intervals of rankings on shared prompts, 95 %", row)
    assert 0.92 <= covered <= 0.98
    assert alone < covered
