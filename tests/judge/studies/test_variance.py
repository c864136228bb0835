"""Parts of the variance of ratings, and the half-widths of designs, by hand and by identities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f

from judge.studies.estimates import (
    Components,
    Draws,
    Estimate,
    _jackknifed,
    _Moments,
    _raw_shares,
    scores_of,
    variance_shares,
)
from judge.studies.plan import enough, plan_ratings, preference, rater_plan_half_width
from judge.studies.rows import Items, Labels
from rating.errors import DataError
from tests.judge.studies.crowds import Crowd


def crossed(rng: np.random.Generator) -> tuple[Items, Labels]:
    """Every one of five raters on every one of forty items."""
    items, labels, _ = Crowd(item=1.2, rater=0.8, ties=0.2).draw(rng, 40, 5, 5)
    return items, labels


def test_where_all_rate_all_the_parts_are_those_of_the_analysis_of_variance() -> None:
    items, labels = crossed(np.random.default_rng(1))
    table = np.zeros((40, 5))
    table[labels.item, labels.rater] = scores_of(labels)
    n, k = table.shape
    by_item, by_rater, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    rest = ((table - by_item[:, None] - by_rater + mean) ** 2).sum() / ((n - 1) * (k - 1))
    of_items = k * by_item.var(ddof=1)
    of_raters = n * by_rater.var(ddof=1)
    shares = variance_shares(items, labels)
    parts = shares.components
    assert parts is not None
    assert parts.rest == pytest.approx(rest)
    assert parts.item == pytest.approx((of_items - rest) / k)
    assert parts.rater == pytest.approx((of_raters - rest) / n)
    ratios = np.maximum(of_raters / rest / f.ppf([0.975, 0.025], k - 1, n * k - k) - 1, 0) / n
    wanted = ratios / (ratios + 1 + parts.item / rest)
    assert (shares.rater.lower, shares.rater.upper) == pytest.approx(tuple(wanted))


def test_shares_add_up_and_stay_when_the_order_of_rows_or_the_names_change() -> None:
    rng = np.random.default_rng(2)
    items, labels, twice = Crowd(item=1, rater=1, taste=1).draw(rng, 80, 6, 3, 10)
    shares = variance_shares(items, labels, twice)
    values = [one.value or 0 for one in (shares.item, shares.rater, shares.rest)]
    assert sum(values) == pytest.approx(1)
    assert (shares.interaction.value or 0) + (shares.within.value or 0) == pytest.approx(values[2])
    name = rng.permutation(6)
    mixed = labels.only(rng.permutation(labels.n))
    moved = [replace(one, rater=name[one.rater]) for one in (mixed, *twice)]
    again = variance_shares(items, moved[0], (moved[1], moved[2]))
    for part in ("item", "rater", "rest", "within"):
        one, other = getattr(shares, part), getattr(again, part)
        assert (one.value, one.lower, one.upper) == pytest.approx(
            (other.value, other.lower, other.upper)
        )


def test_intervals_leave_out_what_they_say_they_leave_out() -> None:
    rng = np.random.default_rng(3)
    items, labels, twice = Crowd(item=1, rater=0.5).draw(rng, 30, 4, 2, 5)
    whole = variance_shares(items, labels, twice).components
    assert whole is not None
    moments = _Moments.of(items, labels, twice)
    for left, of in ((moments.prompts, items.prompt[labels.item]), (moments.raters, labels.rater)):
        for at in range(len(left)):
            rows = labels.only(of != at)
            again = [
                one.only((items.prompt[one.item] if left is moments.prompts else one.rater) != at)
                for one in twice
            ]
            alone = _Moments.of(items, rows, (again[0], again[1]))
            assert _raw_shares(left[at : at + 1]) == pytest.approx(_raw_shares(alone.whole))


def test_the_variance_of_shares_is_the_jackknife_over_items_of_the_analysis_of_variance() -> None:
    def shares(table: np.ndarray) -> np.ndarray:
        n, k = table.shape
        by_item, by_rater = table.mean(axis=1, keepdims=True), table.mean(axis=0)
        off = table - by_item - by_rater + table.mean()
        rest = (off**2).sum() / ((n - 1) * (k - 1))
        item = by_item.var(ddof=1) - rest / k
        rater = by_rater.var(ddof=1) - rest / n
        return np.asarray(np.array([item, rater, rest]) / (item + rater + rest))

    items, labels = crossed(np.random.default_rng(5))
    table = np.zeros((40, 5))
    table[labels.item, labels.rater] = scores_of(labels)
    without = np.array([shares(np.delete(table, i, axis=0)) for i in range(40)])
    wanted = 39 / 40 * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    moments = _Moments.of(replace(items, prompt=np.arange(40)), labels, None)
    assert _jackknifed(moments.prompts)[:3] == pytest.approx(wanted)


def test_a_diffuse_study_is_told_from_a_concentrated_one() -> None:
    rng = np.random.default_rng(4)
    for crowd, regime in ((Crowd(item=0.3), "diffuse"), (Crowd(item=8), "concentrated")):
        items, labels, _ = crowd.draw(rng, 150, 6, 3)
        assert variance_shares(items, labels).regime == regime
    items, labels, _ = Crowd(item=3).draw(rng, 20, 3, 2)
    assert variance_shares(items, labels).regime == ""


def test_the_half_width_now_is_about_what_the_parts_say() -> None:
    rng = np.random.default_rng(5)
    items, labels, _ = Crowd(item=1.5, rater=0.4).draw(rng, 300, 12, 3)
    parts = variance_shares(items, labels).components
    assert parts is not None
    share = preference(items, labels, Draws(rng))
    now = enough(share, 0.05, ratings=900, prompts=300).half_width
    assert rater_plan_half_width(parts, 300, 3, 12) == pytest.approx(now, rel=0.15)


def test_more_items_help_where_items_differ_and_either_does_where_they_do_not() -> None:
    items, labels, _ = Crowd().draw(np.random.default_rng(6), 100, 20, 3)
    share = Estimate(0.5, 0.42, 0.58, 300)
    words = {}
    for name, parts in (
        ("differ", Components(0.2, 0.0, 0.05, None)),
        ("alike", Components(0.0, 0.0, 0.25, None)),
        ("raters", Components(0.02, 0.15, 0.08, None)),
    ):
        plan = plan_ratings(items, labels, parts, share, 0.05, 0.95)
        words[name] = " ".join(plan.sentences)
        each = [one.each for one in plan.designs]
        assert each == [1, 2, 3, 5, 8]
        needed = [one.items and one.items * one.each for one in plan.designs]
        assert [one.ratings for one in plan.designs] == needed
        assert (plan.one_more, plan.same_on_new, plan.twice_as_many) == pytest.approx(
            (
                rater_plan_half_width(parts, 100, 4, plan.raters),
                rater_plan_half_width(parts, 133, 3, plan.raters),
                rater_plan_half_width(parts, 100, 3, 2 * plan.raters),
            )
        )
        if name != "raters":
            widths = [one.half_width for one in plan.designs]
            assert widths == sorted(widths, reverse=True)
            assert (plan.enough.more or 0) > 0
    assert "rate more items" in words["differ"]
    assert "about equal" in words["alike"]
    assert "cannot be reached. With twice as many raters" in words["raters"]


def test_enough_is_enough_and_says_how_much_more_it_takes() -> None:
    wide = Estimate(0.5, 0.4, 0.6, 100)
    assert enough(wide, 0.05, ratings=100, prompts=50).more == 300
    assert enough(wide, 0.1, ratings=100, prompts=50).reached
    few = enough(wide, 0.2, ratings=10, prompts=5)
    assert (few.reached, few.more) == (False, 30)
    unknown = enough(Estimate(None, None, None, 0), 0.1, ratings=3, prompts=3)
    assert (unknown.reached, unknown.more, unknown.half_width) == (False, None, None)
    with pytest.raises(DataError, match="must be above 0, not 0"):
        enough(wide, 0.0, ratings=100, prompts=50)
