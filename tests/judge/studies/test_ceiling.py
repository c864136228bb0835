"""How far any judge can agree with people."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from judge.studies.agreement import majority
from judge.studies.ceiling import CONDITION, Ceiling, ceiling
from judge.studies.items import Items, Said
from tests.judge.studies.said import items_of, labelled, published, repeated, said, swapped

ceiling_ = partial(ceiling, rounds=20, rng=np.random.default_rng(1))


def _drawn(share: np.ndarray, votes: int, rng: np.random.Generator) -> tuple[Items, Said, Said]:
    """Draw votes where a share of people prefers side A, and the verdicts of the best judge."""
    label = np.where(rng.random((len(share), votes)) < share[:, None], 1, -1)
    item = np.repeat(np.arange(len(share)), votes)
    best = np.where(share > 0.5, 1, -1)
    people = said(zip(item, label.ravel(), strict=True))
    return items_of(len(share)), people, said(enumerate(best))


def _values(found: Ceiling) -> dict[str, float | None]:
    return {name: getattr(found, name).value for name in Ceiling.__slots__}


def test_the_agreement_of_the_arenas_experts_leaves_a_judge_81_to_89_percent() -> None:
    # 81 of 100 items on which two people agree; the square root of 2 * .81 - 1 is .7874.
    people = said([(i, s) for i in range(100) for s in (1, 1 if i < 81 else -1)])
    found = ceiling_(items_of(100), people)
    assert found.people.value == found.lowest.value == 0.81
    assert found.highest.value == pytest.approx(0.8937, abs=5e-5)
    assert (found.fitted.value, found.judge.value, found.to_highest.value) == (None, None, None)
    assert "two people or more" in CONDITION


@pytest.mark.parametrize(("a", "reached"), [(1.0, 0.75), (0.5, 0.5 + 1 / math.pi)])
def test_a_planted_law_of_opinion_gives_back_the_best_judge(a: float, reached: float) -> None:
    # Uniform shares: E max(p, 1 - p) = 3/4; arcsine shares: 1/2 + 1/pi.
    rng = np.random.default_rng(5)
    items, people, best = _drawn(rng.beta(a, a, 6000), 4, rng)
    found = ceiling(items, people, best, rounds=200, rng=rng)
    assert found.fitted.lower is not None
    assert found.fitted.upper is not None
    assert found.fitted.value == pytest.approx(reached, abs=0.01)
    assert found.fitted.lower < reached < found.fitted.upper
    assert found.judge.value == pytest.approx(reached, abs=0.015)
    values = _values(found)
    assert values["lowest"] < values["judge"] < values["highest"]  # type: ignore[operator]
    assert found.fitted.n == 6000


def test_with_one_share_everywhere_the_best_judge_reaches_the_highest_bound() -> None:
    rng = np.random.default_rng(5)
    share = rng.choice([0.15, 0.85], 4000)
    items, people, best = _drawn(share, 2, rng)
    found = ceiling_(items, people, best)
    assert found.to_highest.value == pytest.approx(1, abs=0.015)
    assert found.judge.value == pytest.approx(0.85, abs=0.015)


def test_people_of_one_mind_leave_everything_to_a_judge() -> None:
    people = said([(i, 1) for i in range(30) for _ in range(3)])
    found = ceiling_(items_of(30), people, said([(i, 1) for i in range(30)]))
    assert found.lowest.value == found.highest.value == found.to_people.value == 1
    assert found.fitted.value == pytest.approx(1, abs=0.01)


def test_people_who_toss_coins_leave_a_judge_a_half() -> None:
    people = said([(i, s) for i in range(30) for s in (1, -1, 1, -1)])
    found = ceiling_(items_of(30), people)
    assert found.people.value == pytest.approx(1 / 3)
    assert found.lowest.value == found.highest.value == 0.5
    assert found.fitted.value == pytest.approx(0.5, abs=0.02)


def test_only_items_that_both_decided_and_two_people_voted_on_count() -> None:
    people = said([(0, 1), (0, 1), (1, 1), (1, 0), (2, 1), (2, -1), (3, 1), (3, 1)])
    judge = said([(0, 1), (1, 1), (2, 1), (3, 0)])
    found = ceiling_(items_of(4), people, judge)
    assert {getattr(found, name).n for name in ("people", "judge", "to_people")} == {2}
    assert (found.people.value, found.judge.value) == (0.5, 0.75)
    assert found.to_people.value == 1.5


def test_without_items_voted_on_twice_there_is_no_ceiling() -> None:
    found = ceiling_(items_of(2), said([(0, 1), (1, -1)]), said([(0, 1)]))
    assert set(_values(found).values()) == {None}


@pytest.mark.published
def test_the_majority_reaches_more_than_one_person_does(published_data: Path) -> None:
    data = published(published_data / "votes" / "llmfao")
    found = ceiling_(data.items, data.people, majority(data.items, data.people))
    values = _values(found)
    # It has seen the votes that it is compared with, so it may pass the bound for judges.
    assert values["people"] < values["fitted"] < values["judge"]  # type: ignore[operator]
    gpt_4 = ceiling_(data.items, data.people, data.judges["gpt-4"])
    assert gpt_4.to_people.value == pytest.approx(0.977, abs=0.001)


@settings(max_examples=30)
@given(labelled, labelled)
def test_bounds_are_in_order_and_sides_do_not_matter(
    votes: list[tuple[int, int]], verdicts: list[tuple[int, int]]
) -> None:
    items, people, judge = items_of(10), said(votes), said(verdicts)
    found = _values(ceiling_(items, people, judge))
    if found["people"] is not None:
        assert 0.5 <= found["lowest"] <= found["highest"] <= 1  # type: ignore[operator]
    for other in (
        ceiling_(items, swapped(people), swapped(judge)),
        ceiling_(items, people, repeated(judge, 3)),
    ):
        for name, value in _values(other).items():
            assert value == (None if found[name] is None else pytest.approx(found[name])), name
