"""Intervals from prompts drawn with replacement."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm, t

from judge.studies.biases import on_moderation
from judge.studies.estimates import (
    SHARE,
    Draws,
    Estimate,
    Raters,
    clustered,
    gap_of,
    interval,
    number_of,
    percent_of,
    sums_by_prompt,
    with_width,
)
from rating.errors import DataError
from rating.leave_out import MOST_CLUSTERS, drawn_sums
from rating.typing import Floats
from tests.judge.studies.labels import items_of


def _mean(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1])


def test_another_program_finds_the_same_interval_of_a_ratio() -> None:
    rng = np.random.default_rng(1)
    size = rng.integers(1, 9, 60)
    stats = np.column_stack([rng.binomial(size, 0.7), size]).astype(float)
    estimate = clustered(stats, _mean, n=60, draws=Draws(np.random.default_rng(2), 20_000))
    other = bootstrap(
        (stats[:, 0], stats[:, 1]),
        lambda x, y, axis: x.sum(axis=axis) / y.sum(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert estimate.value == pytest.approx(stats[:, 0].sum() / stats[:, 1].sum())
    assert (estimate.lower, estimate.upper) == pytest.approx((other.low, other.high), abs=0.003)


def test_more_prompts_than_are_drawn_singly_keep_their_width() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=5 * MOST_CLUSTERS)
    stats = np.column_stack([values, np.ones(len(values))])
    drawn = _mean(drawn_sums(stats, 2000, np.random.default_rng(2)))
    assert drawn.std() == pytest.approx(values.std() / math.sqrt(len(values)), rel=0.06)
    assert drawn.mean() == pytest.approx(values.mean(), abs=4 * drawn.std() / math.sqrt(2000))


def test_a_round_that_is_not_defined_is_endless_not_dropped() -> None:
    drawn = np.array([0.4, 0.5, 0.6, np.nan])
    assert interval(drawn, 0.95) == (None, None)
    assert interval(np.r_[np.linspace(0, 1, 999), np.nan], 0.9)[0] == pytest.approx(
        0.05, abs=0.002
    )


def test_an_interval_ends_at_the_outer_ones_of_the_rounds_at_its_ends() -> None:
    # Of 101 gaps between 102 rounds, 2.525 are below the lower end: 2 rounds are below it.
    drawn = np.random.default_rng(1).permutation(np.arange(102.0))
    assert interval(drawn, 0.95) == (2, 99)


def test_what_is_not_defined_has_no_value_and_one_prompt_no_interval() -> None:
    rng = np.random.default_rng(1)
    empty = clustered(np.zeros((5, 2)), _mean, n=0, draws=Draws(rng))
    assert (empty.value, empty.lower, empty.upper) == (None, None, None)
    single = clustered(np.array([[3.0, 4.0], [0.0, 0.0]]), _mean, n=4, draws=Draws(rng))
    assert (single.value, single.lower, single.upper) == (0.75, None, None)


def test_a_level_outside_of_0_to_1_is_refused() -> None:
    with pytest.raises(DataError, match="not 95"):
        interval(np.zeros(3), 95)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=2, max_size=12))
def test_the_interval_holds_within_what_the_prompts_say(pairs: list[tuple[int, int]]) -> None:
    stats = np.array([(min(x, y), y) for x, y in pairs], dtype=float)
    estimate = clustered(stats, _mean, n=1, draws=Draws(np.random.default_rng(1), 50))
    rates = stats[:, 0] / stats[:, 1]
    if estimate.lower is None or estimate.upper is None:
        assert np.ptp(rates) < 1e-9
    else:
        assert rates.min() - 1e-12 <= estimate.lower < estimate.upper <= rates.max() + 1e-12


def test_prompts_of_one_mind_leave_the_interval_of_as_many_that_count() -> None:
    rng = np.random.default_rng(1)
    whole = clustered(np.full((30, 2), 4.0), _mean, n=120, mean=SHARE, draws=Draws(rng))
    assert (whole.value, whole.upper) == (1, 1)
    assert whole.lower == pytest.approx(0.025 ** (1 / 30))  # Clopper-Pearson
    # One prompt of 9 and nine of 1: (9 + 9)^2 / (81 + 9) = 3.6 effective prompts.
    uneven = np.repeat(np.array([[0.0, 9.0], [0.0, 1.0]]), [1, 9], axis=0)
    none = clustered(uneven, _mean, n=18, mean=SHARE, draws=Draws(rng))
    assert (none.value, none.lower) == (0, 0)
    assert none.upper == pytest.approx(1 - 0.025 ** (1 / 3.6))
    # Another prompt may be all of one side or all of the other.
    split = clustered(np.tile([1.0, 2.0], (30, 1)), _mean, n=60, mean=SHARE, draws=Draws(rng))
    away = 1 - 0.025 ** (1 / 30)
    assert (split.lower, split.upper) == pytest.approx((0.5 - away / 2, 0.5 + away / 2))


def test_an_interval_is_widened_for_raters_by_the_factor_calculated_by_hand() -> None:
    def half(raters: Raters | None) -> float:
        draws = Draws(np.random.default_rng(1))
        estimate = clustered(of_prompts, lambda s: s[:, 0], draws, n=20, raters=raters)
        assert estimate.upper is not None
        assert estimate.value == 0
        return estimate.upper

    signs = np.array([[1.0], [-1.0]])
    of_prompts, of_raters, of_both = np.tile(signs, (10, 1)), 3 * signs, signs / 4
    raters = Raters(np.tile(of_raters, (5, 1)), np.tile(of_both, (20, 1)), 10.0)
    # A sum moves by what is excluded: 20 prompts of 1, 10 raters of 3, 40 pairs of both of 1/4.
    prompt, rater, both = 19 / 20 * 20 * 1, 9 / 10 * 10 * 9, 39 / 40 * 40 / 16
    variance = prompt + rater - both
    df = variance**2 / (prompt**2 / 19 + (rater - both) ** 2 / 9)
    wide = t.ppf(0.975, df) / norm.ppf(0.975) * math.sqrt(variance / prompt)
    assert half(raters) / half(None) == pytest.approx(wide)


def test_what_is_no_mean_has_no_interval_where_no_draw_moves_it() -> None:
    estimate = clustered(np.full((30, 2), 4.0), _mean, Draws(np.random.default_rng(1)), n=120)
    assert (estimate.value, estimate.lower, estimate.upper) == (1, None, None)
    assert with_width(0.3, 0.3) == (None, None)
    assert with_width(0.3, None) == (0.3, None)


def test_rows_are_summed_within_their_prompt() -> None:
    items = items_of(3, prompt=[1, 0, 1])
    assert sums_by_prompt(items, np.array([[1.0], [2.0], [4.0]])).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize(
    ("estimate", "share", "gap"),
    [
        (Estimate(0.28, 0.02, 0.54, 9), "28% (2–54)", "+28 (+2 to +54)"),
        (Estimate(0.0, 0.0, 0.3, 9), "0% (0–30)", "+0 (+0 to +30)"),
        (Estimate(0.5, None, None, 9), "50%", "+50"),
        (Estimate(0.5, 0.5, 0.5, 9), "50%", "+50"),
        (Estimate(None, None, None, 9), "–", "–"),
    ],
)
def test_shares_and_differences_are_written_each_in_one_way(
    estimate: Estimate, share: str, gap: str
) -> None:
    assert percent_of(estimate) == share
    assert gap_of(estimate) == gap


def test_a_difference_is_never_written_as_a_share() -> None:
    less = Estimate(-0.1, -0.15, -0.05, 9)
    assert gap_of(less) == "−10 (−15 to −5)"
    with pytest.raises(ValueError, match=r"-0\.1 is no share"):
        percent_of(less)
    shares = Estimate(0.28, 0.02, 0.54, 9), Estimate(0.18, 0.1, 0.3, 12)
    gap = {"people": shares[0], "judge": shares[1], "difference": less}
    assert on_moderation(gap, "owl") == (
        "An answer that declines wins against one that does not in 28% (2–54) of 9 "
        "votes by people and in 18% (10–30) of 12 verdicts of owl; the difference is "
        "−10 (−15 to −5) percentage points."
    )
    assert number_of(Estimate(0.4, 0.4, 0.4, 9)) == "0.40"
