"""Paired comparisons, against scipy, statsmodels and figures that can be checked by hand."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rating.errors import DataError
from rating.paired import CompareOptions, Comparison, Pair, ScoredItems, compare
from rating.typing import Floats

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/paired_clusters.json").read_text("utf-8"))


def scored(score: Floats, cluster: list[int] | None = None) -> ScoredItems:
    """Scores of shape (n_items, n_models), or with repeats as a third axis."""
    score = np.asarray(score, dtype=np.float64)
    score = score[..., None] if score.ndim == 2 else score
    item, model, _ = (part.ravel() for part in np.indices(score.shape))
    names = tuple("abcdef"[: score.shape[1]])
    of = None if cluster is None else np.array(cluster)
    items = tuple(f"q{n}" for n in range(len(score)))
    return ScoredItems.of(names, items, (item, model, score.ravel()), of)


def pair_of(score: Any, cluster: list[int] | None = None, **options: Any) -> Pair:
    (pair,) = compare(scored(score, cluster), CompareOptions(**options)).pairs
    return pair


def ends(pair: Pair) -> tuple[float, float]:
    assert pair.lower is not None
    assert pair.upper is not None
    return pair.lower, pair.upper


def counts(a: int, b: int, equal: int) -> Floats:
    """Right and wrong: a items that only the first has right, b that only the second has."""
    rows = [[1, 0]] * a + [[0, 1]] * b + [[1, 1]] * (equal - equal // 2) + [[0, 0]] * (equal // 2)
    return np.array(rows, dtype=np.float64)


def test_without_clusters_it_is_the_paired_t_test(rng: np.random.Generator) -> None:
    score = rng.normal([0.3, 0], 1, (60, 2))
    expected = stats.ttest_rel(*score.T).confidence_interval(0.9)
    pair = pair_of(score, level=0.9)
    assert pair.difference == pytest.approx(float(np.mean(score[:, 0] - score[:, 1])), rel=1e-12)
    assert ends(pair) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert pair.n == 60
    assert pair.clusters == pytest.approx(60)
    assert pair.df == pytest.approx(59)
    alone = stats.ttest_1samp(score[:, 0], 0).confidence_interval(0.9)
    first = comparison(np.column_stack([score, score[:, 0] ** 2]), level=0.9).models[0]
    assert (first.lower, first.upper) == pytest.approx((alone.low, alone.high), rel=1e-9)
    fives = stats.ttest_1samp(score[:, 0].reshape(12, 5).mean(axis=1), 0).confidence_interval()
    clustered = comparison(score, [n // 5 for n in range(60)]).models[0]
    assert (clustered.lower, clustered.upper) == pytest.approx((fives.low, fives.high))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["desc"])
def test_clusters_have_the_errors_of_statsmodels(case: dict[str, Any]) -> None:
    pair = pair_of(case["scores"], case["cluster"])
    n_clusters = len(set(case["cluster"]))
    assert pair.difference == pytest.approx(case["difference"], rel=1e-9)
    assert pair.se is not None
    bias_reduced = pair.se * math.sqrt(n_clusters / (n_clusters - 1))
    assert bias_reduced == pytest.approx(case["gee_bias_reduced_se"], rel=1e-9)
    if case["equal"]:
        assert pair.se == pytest.approx(case["ols_cluster_se"], rel=1e-9)


def test_intervals_are_those_of_evalstats_within_the_errors_of_its_draws() -> None:
    peer = GOLDEN["evalstats"]
    pair = pair_of(peer["scores"])
    lower, upper = ends(pair)
    assert pair.difference == pytest.approx(peer["difference"], rel=1e-9)
    assert (lower, upper) == pytest.approx(peer["intervals"]["t_interval"], rel=1e-9)
    drawn = peer["intervals"]["bootstrap"]
    assert drawn == pytest.approx((lower, upper), abs=0.02 * (upper - lower))


def test_where_few_items_differ_two_are_added_as_bonett_and_price_do() -> None:
    pair = pair_of(counts(6, 1, 33))
    n, centre = 40 + 2, (7 - 2) / 42
    error = math.sqrt((9 / n - centre**2) / (n - 1))
    half = stats.t.ppf(0.975, n - 1) * error
    assert pair.difference == pytest.approx(5 / 40)
    assert ends(pair) == pytest.approx((centre - half, centre + half), rel=1e-9)
    for n, df in ((9, 122**2 / 362 - 1), (10, 39)):  # of forty clusters of three items
        score = np.repeat(counts(n, 0, 40 - n), 3, axis=0)
        assert pair_of(score, [k // 3 for k in range(120)]).df == pytest.approx(df)


@pytest.mark.parametrize("a", [0, 12, 40])
def test_no_interval_has_no_width(a: int) -> None:
    """Equal on all items, or one ahead on all."""
    lower, upper = ends(pair_of(counts(a, 0, 40 - a)))
    assert -1 <= lower < upper <= 1
    assert (lower > 0) is (a > 0)
    first = comparison(counts(a, 0, 40 - a)).models[0]
    assert (first.lower is None, first.upper is None) == (a == 40, a == 40)  # it has all right


def test_repeats_are_averaged_and_their_part_is_that_of_an_analysis_of_variance(
    rng: np.random.Generator,
) -> None:
    score = rng.random((50, 2, 4)) < rng.random((50, 1, 1))
    whole = pair_of(score)
    averaged = pair_of(score.mean(axis=2))
    assert ends(whole) == pytest.approx(ends(averaged), rel=1e-12)
    within = (score.var(axis=2, ddof=1) / 4).sum() / 50**2
    assert whole.se is not None
    assert whole.repeats == pytest.approx(within / whole.se**2, rel=1e-9)
    assert averaged.repeats is None
    sentence = f"Repeats of an item are {100 * within / whole.se**2:.0f}% of the variance."
    assert sentence in comparison(score.astype(np.float64)).sentences


def test_items_that_one_lacks_are_left_out_and_counted_or_zero() -> None:
    score = counts(20, 5, 75)
    score[:8, 1] = np.nan
    data = scored(score)
    result = compare(data)
    (pair,) = result.pairs
    assert (result.items, pair.n) == (100, 92)
    assert pair.difference == pytest.approx(7 / 92)
    counted = [(one.n, one.missing, one.compared) for one in result.models]
    assert counted == [(100, 0, 92), (92, 8, 92)]
    lacking = "8 of 100 items have no score of some model and"
    many = " More than 5% are missing: the difference may depend on why."
    assert result.warnings == (f"{lacking} are excluded: b 8.{many}",)
    as_zero = compare(data, CompareOptions(missing="zero"))
    assert as_zero.warnings == (f"{lacking} count as 0 where they lack a score: b 8.{many}",)
    sentence = "With missing scores as 0, over 100 items, the difference is +0.150."
    assert [sentence in one.sentences for one in (result, as_zero)] == [True, False]
    score[:3, 1] = 1
    assert "5 of 100 items" in comparison(score).warnings[0]
    assert "5%" not in comparison(score).warnings[0]
    assert pair.if_zero == pytest.approx(as_zero.pairs[0].difference)
    assert as_zero.pairs[0].n == 100


def test_items_without_any_score_are_missing_and_zero_for_both() -> None:
    score = counts(14, 4, 82)
    score[50:] = np.nan
    data = scored(score)
    result = compare(data)
    assert (result.items, result.pairs[0].n) == (100, 50)
    assert result.pairs[0].difference == pytest.approx(0.2)
    assert result.pairs[0].if_zero == pytest.approx(0.1)
    assert [one.missing for one in result.models] == [50, 50]
    assert "50 of 100 items" in result.warnings[0]
    as_zero = compare(data, CompareOptions(missing="zero")).pairs[0]
    assert as_zero.n == 100
    assert as_zero.difference == pytest.approx(0.1)


def test_repeats_without_a_score_are_zero_as_well() -> None:
    score = np.repeat(counts(14, 4, 22)[..., None], 4, axis=2)
    score[:10, 0, 2:] = np.nan
    data = scored(score)
    zero = compare(scored(np.nan_to_num(score)), CompareOptions(missing="zero")).pairs[0]
    assert compare(data).pairs[0].if_zero == pytest.approx(5 / 40)
    assert asdict(compare(data, CompareOptions(missing="zero")).pairs[0]) == {
        **asdict(zero),
        "if_zero": 5 / 40,
    }


def test_several_models_are_compared_on_the_items_that_all_have() -> None:
    rng = np.random.default_rng(4)
    score = rng.normal([0.9, 0.2, 0.1, 0], 1, (80, 4))
    score[0, 3] = np.nan
    result = compare(scored(score))
    names = [(pair.a, pair.b) for pair in result.pairs]
    assert names == [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert {pair.n for pair in result.pairs} == {79}
    alone = pair_of(score[1:, :2])
    lower, upper = ends(result.pairs[0])
    assert lower < ends(alone)[0] < ends(alone)[1] < upper
    (first, *_) = result.pairs
    assert first.se is not None
    power = ((upper - lower) / 2 + 0.841621 * first.se) / first.difference
    assert first.needed == math.ceil(79 * power**2), "simultaneous, as the interval is"
    half = comparison(score, level=0.5).pairs[0]
    assert lower < ends(half)[0] < ends(half)[1] < upper
    assert result.passes is True
    assert [pair.b for pair in result.required] == ["b", "c", "d"]
    assert compare(scored(score[:, [1, 3, 0, 2]])).passes is False, "better than d, worse than a"


def test_the_same_model_twice_changes_no_simultaneous_interval(rng: np.random.Generator) -> None:
    score = rng.normal(size=(60, 3))
    for shift in (0.0, 0.1):
        twice = np.column_stack([score, score[:, 2] + shift])
        one, two = (compare(scored(each)).pairs[0] for each in (score, twice))
        assert ends(one) == pytest.approx(ends(two), rel=0.02)


SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=12, max_size=60).map(
    lambda rows: np.array(rows, dtype=np.float64)
)


@given(SCORES, st.permutations(range(12)))
def test_swapping_the_models_and_the_items_order_changes_signs_alone(
    score: Floats, order: list[int]
) -> None:
    pair = pair_of(score)
    turned = pair_of(score[:, ::-1])
    shuffled = pair_of(np.concatenate([score[:12][order], score[12:]]))
    assert turned.difference == pytest.approx(-pair.difference)
    if pair.lower is not None and pair.se:
        lower, upper = ends(pair)
        assert ends(turned) == pytest.approx((-upper, -lower), abs=1e-9)
        assert ends(shuffled) == pytest.approx((lower, upper), abs=1e-9)
    assert (turned.a_higher, turned.b_higher) == (pair.b_higher, pair.a_higher)


def test_no_sign_of_few_items_is_shown_nor_any_count_of_rounding() -> None:
    assert pair_of(counts(5, 0, 0)).answer == "inconclusive"
    assert pair_of(counts(6, 0, 0)).answer == "better"
    tens = np.round(np.linspace(0.1, 0.8, 40), 2)
    by_scale = [pair_of(np.stack([k * (tens + 0.1), k * tens], 1)) for k in (1, 64)]
    assert [pair.a_higher for pair in by_scale] == [40, 40]
    for pair, difference in zip(by_scale, (0.1, 6.4), strict=True):
        assert ends(pair)[0] < difference < ends(pair)[1]
    same = pair_of(np.stack([tens * 3, tens + tens + tens], 1))
    assert (same.equal, same.needed) == (40, None)
    for pair in (pair_of(counts(20, 5, 15), margin=1e-200), pair_of(counts(30, 0, 0))):
        assert pair.needed is None or pair.needed >= 6


def test_under_six_effective_clusters_there_is_no_interval() -> None:
    score = counts(20, 5, 15)
    pair = pair_of(score, [*range(1, 7), *[0] * 34])
    assert (pair.lower, pair.answer, pair.passes, pair.needed) == (
        None, "inconclusive", None,
        None,
    )  # fmt: skip
    text = " ".join(comparison(score, [0] * 40).sentences)
    assert "No interval is given for fewer than 6 clusters." in text
    assert "Items: 40 in effectively 1.0 clusters. a is higher on 20" in text
    assert "Items: 40. a is" in " ".join(comparison(score).sentences)
    three = comparison(np.column_stack([score, score[:, 0]]), [n % 10 for n in range(40)])
    assert three.sentences[0] == "a against 2 models, better: shown for 1 (b)."
    assert three.sentences[1].startswith("Items: 40 in effectively 10.0 clusters.")


def comparison(score: Floats, cluster: list[int] | None = None, **options: Any) -> Comparison:
    return compare(scored(score, cluster), CompareOptions(**options))


@pytest.mark.parametrize(
    ("flips", "require", "answer", "passes"),
    [
        ((40, 10), "better", "better", True),
        ((10, 40), "better", "worse", False),
        ((20, 20), "better", "equivalent", None),
        ((20, 20), "not-worse", "equivalent", True),
        ((10, 60), "not-worse", "worse", False),
        ((20, 20), "equivalent", "equivalent", True),
        ((100, 4), "equivalent", "better", False),
        ((4, 100), "equivalent", "worse", False),
        ((80, 70), "equivalent", "not worse", None),
        ((80, 70), "not-worse", "not worse", True),
    ],
)
def test_what_is_required_is_shown_ruled_out_or_open(
    flips: tuple[int, int], require: str, answer: str, passes: bool | None
) -> None:
    result = comparison(counts(*flips, 800 - sum(flips)), margin=0.03, require=require)
    assert (result.pairs[0].answer, result.passes) == (answer, passes)
    assert result.sentences[0] == SENTENCES[answer]
    ends = {True: "The comparison passes", False: "The comparison fails", None: "Inconclusive"}
    assert result.sentences[-1] == f"Required: {require.replace('-', ' ')}. {ends[passes]}."


SENTENCES = {
    "better": "a scores higher than b.",
    "worse": "a scores lower than b.",
    "equivalent": "a and b are equivalent within 0.03.",
    "not worse": "a is not worse than b by more than 0.03.",
}


def test_a_model_may_be_better_and_yet_equivalent() -> None:
    result = comparison(counts(14, 2, 784), margin=0.05)
    assert result.pairs[0].equivalent is True
    assert result.sentences[:2] == (SENTENCES["better"], "They are equivalent within 0.05.")


def test_the_items_needed_are_those_of_the_formula() -> None:
    pair = pair_of(counts(60, 40, 300), margin=0.04, level=0.9)
    assert pair.se is not None
    expected = (1.644854 + 0.841621) ** 2 * pair.se**2 * 400 / 0.04**2
    assert pair.needed == math.ceil(expected)
    more = math.ceil(expected * ((1.644854 + 1.281552) / (1.644854 + 0.841621)) ** 2)
    for ask, power, what in (
        ("equivalent", 0.8, "Equivalence within"),
        ("better", 0.9, "A difference of"),
    ):
        options: dict[str, Any] = {"margin": 0.04, "require": ask, "power": power, "level": 0.9}
        result = comparison(counts(60, 40, 300), **options)
        assert result.pairs[0].needed == more
        sentence = f"{what} 0.04 takes about {more:,} items for {100 * power:g}% power."
        assert sentence in result.sentences
    lower = comparison(counts(40, 70, 290))
    needed = f"A difference of 0.075 takes about {lower.pairs[0].needed:,} items for 80% power."
    assert needed in lower.sentences


def test_the_items_needed_are_no_more_than_those_without_pseudo_items() -> None:
    score = np.zeros((100, 2))
    score[:5, 0] = 3
    score[5:] = np.linspace(0, 100, 95)[:, None]
    expected = 20 * 13.05  # 10 or more of these differ in 0.8 of samples, if one in 20 does
    assert stats.binom.sf(9, math.ceil(expected), 0.05) == pytest.approx(0.8, abs=0.05)
    pair = pair_of(score, margin=0.5, require="equivalent")
    assert pair.needed == pytest.approx(expected, abs=1)
    assert pair_of(counts(39, 0, 1)).needed == 6


def test_only_intervals_of_scores_from_zero_to_one_end_at_one() -> None:
    score = counts(39, 0, 1)
    assert (ends(pair_of(score))[1], ends(pair_of(score[:, ::-1]))[0]) == (1, -1)
    assert ends(pair_of(score + 5))[1] == pytest.approx(1.035, abs=0.001)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"require": "equivalent"}, "needs a margin"),
        ({"margin": 0.0}, "is no margin"),
        ({"require": "best", "margin": 0.1}, "--require must be one of"),
        ({"missing": "drop"}, "--missing must be one of"),
        ({"power": 0.5}, "--power"),
        ({"level": 1.0}, "--level"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        CompareOptions(**options)


def test_nothing_to_compare_is_an_error_with_examples() -> None:
    with pytest.raises(DataError, match="two models"):
        compare(scored(np.ones((30, 1))))
    apart = np.array([[1.0, np.nan]] * 10 + [[np.nan, 0.0]] * 10)
    with pytest.raises(DataError, match=r"'a' has 'q0', 'b' has 'q10'"):
        compare(scored(apart))
