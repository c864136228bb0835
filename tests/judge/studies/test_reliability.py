"""Krippendorff's alpha, Gwet's AC1, and the highest agreement that people allow."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.estimates import Draws, majority
from judge.studies.reliability import CONDITION, Ceiling, Ratings, ac1, alpha, ceiling
from judge.studies.rows import Items, Labels
from rating.errors import DataError
from rating.typing import Floats
from tests.judge.studies.labels import items_of, labelled, labels_of, published, repeated, swapped

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "reliability.json").read_text())


matrices = st.lists(
    st.lists(st.sampled_from([np.nan, 0.0, 1.0, 2.0, 5.0]), min_size=3, max_size=3),
    min_size=2,
    max_size=12,
).map(np.array)


ceiling_ = partial(ceiling, draws=Draws(np.random.default_rng(1), 20))


def _quick() -> Draws:
    return Draws(np.random.default_rng(1), 20)


def of_matrix(matrix: Floats) -> Ratings:
    """Count a matrix of shape (n_units, n_raters), NaN where a rating is missing."""
    values = np.unique(matrix[~np.isnan(matrix)])
    table = (matrix[:, :, None] == values).sum(axis=1).astype(np.float64)
    pairs = np.einsum("nk,nl->nkl", table, table) - table[:, :, None] * np.eye(len(values))
    return Ratings(values, table, pairs, np.arange(len(matrix)))


@pytest.mark.parametrize("table", GOLDEN["tables"], ids=lambda table: table["source"][:30])
def test_published_tables_reach_their_figures(table: dict[str, Any]) -> None:
    ratings = of_matrix(np.array(table["observers"], dtype=float).T)
    for name, measure in (("nominal", alpha), ("ac1", ac1)):
        if (want := table["expected"].get(name)) is not None:
            assert measure(ratings, _quick()).value == pytest.approx(want, abs=0.0005), name


def test_the_published_table_of_two_raters_and_its_standard_error() -> None:
    table = np.array(GOLDEN["crossed"]["table"])
    i, j = np.indices(table.shape)
    matrix = np.column_stack([np.repeat(k.ravel(), table.ravel()) for k in (i, j)]).astype(float)
    ratings = of_matrix(matrix)
    assert alpha(ratings, _quick()).value == pytest.approx(GOLDEN["crossed"]["alpha"], abs=5e-5)
    want, error = GOLDEN["crossed"]["ac1"]
    coefficient = ac1(ratings, draws=Draws(np.random.default_rng(1), 2000))
    assert coefficient.n == 100
    assert coefficient.value == pytest.approx(want, abs=5e-5)
    assert coefficient.lower is not None
    assert coefficient.upper is not None
    assert (coefficient.upper - coefficient.lower) / 2 / 1.96 == pytest.approx(error, rel=0.08)


@pytest.mark.published
def test_people_reach_the_published_alphas(published_data: Path) -> None:
    wanted = {"mtbench": (0.4849, 960), "llmfao": (0.2903, 2124)}
    for name, (value, n) in wanted.items():
        data = published(published_data / "votes" / name)
        coefficient = alpha(Ratings.of_labels(data.items, data.people), _quick())
        assert coefficient.n == n, name
        assert coefficient.value == pytest.approx(value, abs=5e-5), name


def test_nearly_all_of_one_label_lowers_alpha_and_not_ac1() -> None:
    # 98 units on which both say A; one A against B, one B against A.
    votes = [(i, 1) for i in range(98) for _ in range(2)] + [(98, 1), (98, -1), (99, -1), (99, 1)]
    ratings = Ratings.of_labels(items_of(100), labels_of(votes))
    assert alpha(ratings, _quick()).value == pytest.approx(-0.005, abs=0.001)
    assert ac1(ratings, _quick()).value == pytest.approx(0.98, abs=0.001)


def test_coins_agree_no_more_than_chance_if_nobody_could_give_a_tie() -> None:
    rng = np.random.default_rng(1)
    votes = labels_of([(i, int(x)) for i in range(4000) for x in rng.choice([-1, 1], 2)])
    items = items_of(4000)
    two, three = (Ratings.of_labels(items, votes, ties=ties) for ties in (False, True))
    assert ac1(two, _quick()).value == pytest.approx(0, abs=0.05)
    assert ac1(three, _quick()).value == pytest.approx(1 / 3, abs=0.05)
    assert alpha(two, _quick()).value == pytest.approx(alpha(three, _quick()).value)


def test_ties_where_none_could_be_given_are_refused() -> None:
    with pytest.raises(DataError, match="2 ties where none could be given"):
        Ratings.of_labels(items_of(2), labels_of([(0, 0), (1, 0), (1, 1)]), ties=False)


def test_what_cannot_be_told_has_no_value() -> None:
    one_value = Ratings.of_labels(items_of(2), labels_of([(0, 1), (0, 1), (1, 1), (1, 1)]))
    assert alpha(one_value, _quick()).value is None
    nobody_twice = Ratings.of_labels(items_of(2), labels_of([(0, 1), (1, -1)]))
    assert (alpha(nobody_twice, _quick()).value, ac1(nobody_twice, _quick()).n) == (None, 0)
    assert ac1(nobody_twice, _quick()).value is None


def test_what_has_no_measure_is_refused() -> None:
    with pytest.raises(DataError, match="there is 1"):
        ac1(of_matrix(np.ones((3, 2))), _quick())


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
    coefficient = alpha(of_matrix(matrix), _quick()).value
    want = _by_definition(matrix)
    assert coefficient == (None if np.isnan(want) else pytest.approx(want))


@settings(max_examples=30)
@given(labelled)
def test_turning_all_sides_round_changes_nothing(rows: list[tuple[int, int]]) -> None:
    ratings, turned = (
        Ratings.of_labels(items_of(10), one) for one in (labels_of(rows), swapped(labels_of(rows)))
    )
    for measure in (alpha, ac1):
        one, other = measure(ratings, _quick()), measure(turned, _quick())
        assert one.value == (None if other.value is None else pytest.approx(other.value))


def _drawn(
    share: np.ndarray, votes: int, rng: np.random.Generator
) -> tuple[Items, Labels, Labels]:
    """Draw votes where a share of people prefers side A, and the verdicts of the best judge."""
    label = np.where(rng.random((len(share), votes)) < share[:, None], 1, -1)
    item = np.repeat(np.arange(len(share)), votes)
    best = np.where(share > 0.5, 1, -1)
    people = labels_of(zip(item, label.ravel(), strict=True))
    return items_of(len(share)), people, labels_of(enumerate(best))


def _values(bounds: Ceiling) -> dict[str, float | None]:
    return {name: getattr(bounds, name).value for name in Ceiling.__slots__}


def test_the_agreement_of_the_arenas_experts_leaves_a_judge_81_to_89_percent() -> None:
    # 81 of 100 items on which two people agree; the square root of 2 * .81 - 1 is .7874.
    people = labels_of([(i, s) for i in range(100) for s in (1, 1 if i < 81 else -1)])
    bounds = ceiling_(items_of(100), people)
    assert bounds.people.value == bounds.lowest.value == 0.81
    assert bounds.highest.value == pytest.approx(0.8937, abs=5e-5)
    assert (bounds.fitted.value, bounds.judge.value, bounds.to_highest.value) == (None, None, None)
    assert "the judge and at least two people" in CONDITION


@pytest.mark.parametrize(("a", "reached"), [(1.0, 0.75), (0.5, 0.5 + 1 / math.pi)])
def test_a_planted_law_of_opinion_gives_back_the_best_judge(a: float, reached: float) -> None:
    # Uniform shares: E max(p, 1 - p) = 3/4; arcsine shares: 1/2 + 1/pi.
    rng = np.random.default_rng(5)
    items, people, best = _drawn(rng.beta(a, a, 6000), 4, rng)
    bounds = ceiling(items, people, best, draws=Draws(rng, 200))
    assert bounds.fitted.lower is not None
    assert bounds.fitted.upper is not None
    assert bounds.fitted.value == pytest.approx(reached, abs=0.01)
    assert bounds.fitted.lower < reached < bounds.fitted.upper
    assert bounds.judge.value == pytest.approx(reached, abs=0.015)
    values = _values(bounds)
    assert values["lowest"] < values["judge"] < values["highest"]  # type: ignore[operator]
    assert bounds.fitted.n == 6000


def test_with_one_share_everywhere_the_best_judge_reaches_the_highest_bound() -> None:
    rng = np.random.default_rng(5)
    share = rng.choice([0.15, 0.85], 4000)
    items, people, best = _drawn(share, 2, rng)
    bounds = ceiling_(items, people, best)
    assert bounds.to_highest.value == pytest.approx(1, abs=0.015)
    assert bounds.judge.value == pytest.approx(0.85, abs=0.015)


def test_people_of_one_mind_leave_everything_to_a_judge() -> None:
    people = labels_of([(i, 1) for i in range(30) for _ in range(3)])
    bounds = ceiling_(items_of(30), people, labels_of([(i, 1) for i in range(30)]))
    assert bounds.lowest.value == bounds.highest.value == bounds.to_people.value == 1
    assert bounds.fitted.value == pytest.approx(1, abs=0.01)


def test_people_who_toss_coins_leave_a_judge_a_half() -> None:
    people = labels_of([(i, s) for i in range(30) for s in (1, -1, 1, -1)])
    bounds = ceiling_(items_of(30), people)
    assert bounds.people.value == pytest.approx(1 / 3)
    assert bounds.lowest.value == bounds.highest.value == 0.5
    assert bounds.fitted.value == pytest.approx(0.5, abs=0.02)


def test_only_items_that_both_decided_and_two_people_voted_on_count() -> None:
    people = labels_of([(0, 1), (0, 1), (1, 1), (1, 0), (2, 1), (2, -1), (3, 1), (3, 1)])
    judge = labels_of([(0, 1), (1, 1), (2, 1), (3, 0)])
    bounds = ceiling_(items_of(4), people, judge)
    assert {getattr(bounds, name).n for name in ("people", "judge", "to_people")} == {2}
    assert (bounds.people.value, bounds.judge.value) == (0.5, 0.75)
    assert bounds.to_people.value == 1.5


def test_without_items_voted_on_twice_there_is_no_ceiling() -> None:
    bounds = ceiling_(items_of(2), labels_of([(0, 1), (1, -1)]), labels_of([(0, 1)]))
    assert set(_values(bounds).values()) == {None}


@pytest.mark.published
def test_the_majority_reaches_more_than_one_person_does(published_data: Path) -> None:
    data = published(published_data / "votes" / "llmfao")
    bounds = ceiling_(data.items, data.people, majority(data.items, data.people))
    values = _values(bounds)
    # It has seen the votes that it is compared with, so it may pass the bound for judges.
    assert values["people"] < values["fitted"] < values["judge"]  # type: ignore[operator]
    gpt_4 = ceiling_(data.items, data.people, data.judges["gpt-4"])
    assert gpt_4.to_people.value == pytest.approx(0.977, abs=0.001)


@settings(max_examples=30)
@given(labelled, labelled)
def test_bounds_are_in_order_and_sides_do_not_matter(
    votes: list[tuple[int, int]], verdicts: list[tuple[int, int]]
) -> None:
    items, people, judge = items_of(10), labels_of(votes), labels_of(verdicts)
    values = _values(ceiling_(items, people, judge))
    if values["people"] is not None:
        assert 0.5 <= values["lowest"] <= values["highest"] <= 1  # type: ignore[operator]
    for other in (
        ceiling_(items, swapped(people), swapped(judge)),
        ceiling_(items, people, repeated(judge, 3)),
    ):
        for name, value in _values(other).items():
            assert value == (None if values[name] is None else pytest.approx(values[name])), name


def test_coins_that_vote_four_times_an_item_are_not_reliable() -> None:
    item, person, _ = (x.ravel() for x in np.indices((400, 2, 4)))
    label = np.random.default_rng(5).choice([-1, 1], len(item))
    people = labels_of(zip(item, label, strict=True), rater=person.tolist())
    items = items_of(400)
    ratings = Ratings.of_labels(items, people, ties=False)
    assert alpha(ratings, _quick()).value == pytest.approx(0, abs=0.06)
    assert ac1(ratings, _quick()).value == pytest.approx(0, abs=0.06)
    bounds = ceiling(items, people, draws=_quick())
    assert bounds.people.value == pytest.approx(0.5, abs=0.03)
    assert bounds.fitted.value is None  # no item has three people
    alone = labels_of(zip(item, label, strict=True), rater=(0 * person).tolist())
    assert alpha(Ratings.of_labels(items, alone), _quick()).value is None
    assert ceiling(items, alone, draws=_quick()).people.n == 0


def test_the_fitted_ceiling_is_that_of_one_vote_per_person() -> None:
    """Shares from Beta(1/2, 1/2); people who vote again by the same share change nothing."""
    rng = np.random.default_rng(6)
    item, person, again = (x.ravel() for x in np.indices((3000, 4, 3)))
    label = np.where(rng.random(len(item)) < rng.beta(0.5, 0.5, 3000)[item], 1, -1)
    one = again == 0
    reached = []
    for rows in (one, one | True):
        people = labels_of(zip(item[rows], label[rows], strict=True), rater=person[rows].tolist())
        reached.append(ceiling(items_of(3000), people, draws=_quick()).fitted.value)
    # E max(p, 1 - p) of Beta(1/2, 1/2) is 1/2 + 1 / pi.
    assert reached == pytest.approx([0.5 + 1 / np.pi] * 2, abs=0.012)


def test_several_criteria_of_one_person_are_not_several_people() -> None:
    """Two people, two criteria: each says the same of both, and the two never agree."""
    rows = [(unit, sign) for unit in range(6) for sign in (1, 1, -1, -1)]
    people = labels_of(rows, rater=[0, 0, 1, 1] * 6)
    ratings = Ratings.of_labels(items_of(6), people, ties=False)
    # Observed disagreement 1, expected 24 / 2 * 24 / 2 * 2 / (24 * 23).
    assert alpha(ratings, _quick()).value == pytest.approx(1 - 23 / 12)
