"""How numbers over prompts become estimates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.similarity import (
    NO_VALUE,
    UNKNOWN,
    AxisName,
    Drawn,
    Part,
    axis_of,
    compare,
    mean_of,
    means,
    scores_of,
    tie_groups,
)
from judge.studies.estimates import Draws, Estimate, clustered
from rating.errors import DataError
from tests.judge.probe.texts import fixed_rng as rng

numbers = st.floats(-100, 100).map(lambda x: round(x, 1))


@given(st.lists(st.tuples(numbers, numbers), min_size=1))
def test_net_sensitivity_changes_its_sign_with_the_sides(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    assert (compare(first, second) == -compare(second, first)).all()
    assert (compare(first, first) == 0).all()


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_billionth_of_the_larger_is_a_tie_and_two_are_not(size: float) -> None:
    close = size * np.array([1 + 0.5e-9, 1 - 0.5e-9, 1 + 2e-9, 1 - 2e-9])
    assert compare(close, np.full(4, size)).tolist() == [0, 0, 1, -1]


def test_nothing_and_next_to_nothing_are_no_tie() -> None:
    assert compare(np.array([1e-300, 0.0]), np.array([0.0, 0.0])).tolist() == [1, 0]


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_ties_share_a_number_in_the_order_of_values(values: list[int]) -> None:
    groups = tie_groups(np.array(values, dtype=float))
    assert groups.tolist() == [sorted(set(values)).index(v) for v in values]


def test_a_mean_is_that_of_drawing_clusters() -> None:
    values = np.random.default_rng(2).normal(size=(60, 1))
    cluster = np.repeat(np.arange(20), 3)
    (mean,) = means(values, rng=rng(), cluster=cluster)
    sums = np.array([[values[cluster == c].sum(), 3.0] for c in range(20)])
    want = clustered(sums, lambda s: s[:, 0] / s[:, 1], n=60, draws=Draws(rng()))
    assert mean.estimate().to_dict() == pytest.approx(want.to_dict())


def test_columns_are_drawn_together() -> None:
    values = np.random.default_rng(2).normal(size=(30, 1))
    first, second = means(np.hstack([values, -values]), rng=rng())
    assert mean_of([first, second]).rounds == pytest.approx(0)


def test_gaps_are_left_out_of_a_mean_and_not_taken_for_zero() -> None:
    values = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    first, second = means(values, rng=rng())
    assert (first.value, first.n) == (2, 2)
    assert (second.estimate(), second.n) == (Estimate(None, None, None, 0), 0)


def test_dependent_rows_make_a_wider_interval() -> None:
    of_cluster = np.random.default_rng(2).normal(size=20)
    values = np.repeat(of_cluster, 10)[:, None]
    (alone,) = means(values, rng=rng())
    (together,) = means(values, rng=rng(), cluster=np.repeat(np.arange(20), 10))
    assert together.rounds.std() == pytest.approx(math.sqrt(10) * alone.rounds.std(), rel=0.15)


def test_one_cluster_has_a_value_and_no_interval() -> None:
    (mean,) = means(np.array([[0.25]]), rng=rng())
    assert mean.estimate() == Estimate(0.25, None, None, 1)


def test_a_mean_leaves_out_what_has_no_data_and_not_what_is_undefined() -> None:
    known = Drawn(1.0, np.ones(1000), 5)
    assert mean_of([known, UNKNOWN]).value == 1
    assert math.isnan(mean_of([known, Drawn(math.nan, np.full(1000, np.nan), 5)]).value)
    assert mean_of([]) is UNKNOWN


def test_an_axis_without_a_value_or_with_few_clusters_says_so() -> None:
    axis = axis_of(AxisName.ROBUSTNESS, UNKNOWN, [], clusters=3, what="texts", data="made up")
    assert axis.estimate.value is None
    assert axis.warnings == (NO_VALUE, "3 texts: with fewer than 20, the interval is too narrow.")


def test_an_axis_as_plain_values() -> None:
    part = Part("removal", "0.1", Estimate(0.5, 0.4, 0.6, 7))
    value = Drawn(0.5, np.full(1000, 0.5), 7)
    axis = axis_of(AxisName.SENSITIVITY, value, [part], clusters=20, what="texts", data="made up")
    assert axis.part("removal", "0.1").upper == 0.6
    assert axis.to_dict() == {
        "name": "sensitivity",
        "value": 0.5,
        "lower": 0.5,
        "upper": 0.5,
        "n": 7,
        "parts": [
            {"group": "removal", "name": "0.1", "value": 0.5, "lower": 0.4, "upper": 0.6, "n": 7}
        ],
        "clusters": 20,
        "data": "made up",
        "warnings": [],
    }


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="1 of 2 scores of toy are no numbers, such as nan"):
        scores_of("toy", np.array([1.0, np.nan]))
