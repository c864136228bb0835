"""Krippendorff's alpha and Gwet's AC1."""

import json
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.reliability import Metric, Ratings, ac1, alpha
from rating.errors import DataError
from rating.typing import Floats
from tests.judge.studies.said import items_of, labelled, published, said, swapped

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "reliability.json").read_text())
METRICS = get_args(Metric)

matrices = st.lists(
    st.lists(st.sampled_from([np.nan, 0.0, 1.0, 2.0, 5.0]), min_size=3, max_size=3),
    min_size=2,
    max_size=12,
).map(np.array)


def _quick() -> dict[str, Any]:
    return {"rounds": 20, "rng": np.random.default_rng(1)}


@pytest.mark.parametrize("table", GOLDEN["tables"], ids=lambda table: table["source"][:30])
def test_published_tables_reach_their_figures(table: dict[str, Any]) -> None:
    ratings = Ratings.of_matrix(np.array(table["observers"], dtype=float).T)
    for name, want in table["expected"].items():
        found = (
            ac1(ratings, **_quick())
            if name == "ac1"
            else alpha(ratings, metric=cast(Metric, name), **_quick())
        )
        assert found.value == pytest.approx(want, abs=0.0005), name


def test_the_published_table_of_two_raters_and_its_standard_error() -> None:
    table = np.array(GOLDEN["crossed"]["table"])
    i, j = np.indices(table.shape)
    matrix = np.column_stack([np.repeat(k.ravel(), table.ravel()) for k in (i, j)]).astype(float)
    ratings = Ratings.of_matrix(matrix)
    assert alpha(ratings, **_quick()).value == pytest.approx(GOLDEN["crossed"]["alpha"], abs=5e-5)
    want, error = GOLDEN["crossed"]["ac1"]
    found = ac1(ratings, rounds=2000, rng=np.random.default_rng(1))
    assert found.n == 100
    assert found.value == pytest.approx(want, abs=5e-5)
    assert found.lower is not None
    assert found.upper is not None
    assert (found.upper - found.lower) / 2 / 1.96 == pytest.approx(error, rel=0.08)


@pytest.mark.published
def test_people_reach_the_published_alphas(published_data: Path) -> None:
    wanted = {"mtbench": (0.4855, 961), "llmfao": (0.2903, 2124)}
    for name, (value, n) in wanted.items():
        data = published(published_data / "votes" / name)
        found = alpha(Ratings.of_said(data.items, data.people), **_quick())
        assert found.n == n, name
        assert found.value == pytest.approx(value, abs=5e-5), name


def test_nearly_all_of_one_label_lowers_alpha_and_not_ac1() -> None:
    # 98 units on which both say A; one A against B, one B against A.
    votes = [(i, 1) for i in range(98) for _ in range(2)] + [(98, 1), (98, -1), (99, -1), (99, 1)]
    ratings = Ratings.of_said(items_of(100), said(votes))
    assert alpha(ratings, **_quick()).value == pytest.approx(-0.005, abs=0.001)
    assert ac1(ratings, **_quick()).value == pytest.approx(0.98, abs=0.001)


def test_coins_agree_no_more_than_chance_if_nobody_could_give_a_tie() -> None:
    rng = np.random.default_rng(1)
    votes = said([(i, int(x)) for i in range(4000) for x in rng.choice([-1, 1], 2)])
    items = items_of(4000)
    two, three = (Ratings.of_said(items, votes, ties=ties) for ties in (False, True))
    assert ac1(two, **_quick()).value == pytest.approx(0, abs=0.05)
    assert ac1(three, **_quick()).value == pytest.approx(1 / 3, abs=0.05)
    assert alpha(two, **_quick()).value == pytest.approx(alpha(three, **_quick()).value)


def test_ties_where_none_could_be_given_are_refused() -> None:
    with pytest.raises(DataError, match="2 ties where none could be given"):
        Ratings.of_said(items_of(2), said([(0, 0), (1, 0), (1, 1)]), ties=False)


def test_what_cannot_be_told_has_no_value() -> None:
    one_value = Ratings.of_said(items_of(2), said([(0, 1), (0, 1), (1, 1), (1, 1)]))
    assert alpha(one_value, **_quick()).value is None
    nobody_twice = Ratings.of_said(items_of(2), said([(0, 1), (1, -1)]))
    assert (alpha(nobody_twice, **_quick()).value, ac1(nobody_twice, **_quick()).n) == (None, 0)
    assert ac1(nobody_twice, **_quick()).value is None


def test_what_has_no_measure_is_refused() -> None:
    ratings = Ratings.of_said(items_of(1), said([(0, 1), (0, 0)]))
    with pytest.raises(DataError, match="from 0 up, not -1"):
        alpha(ratings, metric="ratio", **_quick())
    with pytest.raises(DataError, match="not 'cubic'"):
        alpha(ratings, metric=cast(Metric, "cubic"), **_quick())
    with pytest.raises(DataError, match="there is 1"):
        ac1(Ratings.of_matrix(np.ones((3, 2))), **_quick())


def _by_definition(matrix: Floats) -> float:
    """Compute nominal alpha from all pairs of ratings, one at a time."""
    units = [row[~np.isnan(row)] for row in matrix]
    units = [row for row in units if len(row) > 1]
    everything = np.concatenate(units) if units else np.array([])
    n = len(everything)
    expected = sum(float(x != y) for x in everything for y in everything) / (n * (n - 1) or 1)
    observed = sum(float(x != y) / (len(row) - 1) for row in units for x in row for y in row) / (
        n or 1
    )
    return 1 - observed / expected if expected else np.nan


@settings(max_examples=40)
@given(matrices)
def test_alpha_is_what_its_definition_says(matrix: Floats) -> None:
    found = alpha(Ratings.of_matrix(matrix), **_quick()).value
    want = _by_definition(matrix)
    assert found == (None if np.isnan(want) else pytest.approx(want))


@settings(max_examples=30)
@given(matrices, st.sampled_from(METRICS))
def test_who_is_which_observer_does_not_matter(matrix: Floats, metric: Metric) -> None:
    one, other = (
        alpha(Ratings.of_matrix(table), metric=metric, **_quick()).value
        for table in (matrix, matrix[::-1, ::-1])
    )
    assert one == (None if other is None else pytest.approx(other))


@settings(max_examples=30)
@given(labelled)
def test_turning_all_sides_round_changes_nothing(rows: list[tuple[int, int]]) -> None:
    ratings, turned = (
        Ratings.of_said(items_of(10), one) for one in (said(rows), swapped(said(rows)))
    )
    for measure in (alpha, ac1):
        one, other = measure(ratings, **_quick()), measure(turned, **_quick())
        assert one.value == (None if other.value is None else pytest.approx(other.value))
