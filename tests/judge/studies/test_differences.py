"""Differences of agreement: against what two rates give, and where they are certain."""

import numpy as np
import pytest

from judge.studies.agreement import over_another, over_people, own_agreement, pair_agreement
from judge.studies.items import Items, Said

SEED = 7


def said(item: np.ndarray, label: np.ndarray) -> Said:
    n = len(item)
    return Said(
        item.astype(np.int64),
        np.arange(n),
        label.astype(np.int8),
        np.zeros(n, dtype=np.int8),
        np.full(n, np.nan),
    )


def drawn() -> tuple[Items, Said, Said, Said]:
    """Three votes an item, a judge that is right in three of four, and one that says A."""
    rng = np.random.default_rng(SEED)
    n = 200
    items = Items(("x", "y"), np.tile([0, 1], (n, 1)), np.arange(n) // 4)
    truth = rng.choice([-1, 0, 1], n)
    noise = rng.choice([-1, 0, 1], (3, n))
    votes = np.where(rng.random((3, n)) < 0.7, truth, noise)
    people = said(np.tile(np.arange(n), 3), votes.ravel())
    judge = said(np.arange(n), np.where(rng.random(n) < 0.75, truth, -truth))
    return items, people, judge, said(np.arange(n), np.ones(n))


@pytest.mark.parametrize("ties", [True, False])
def test_a_difference_is_that_of_both_rates(ties: bool) -> None:
    items, people, judge, always = drawn()

    def rng() -> np.random.Generator:
        return np.random.default_rng(SEED)

    rates = [
        pair_agreement(items, one, people, ties=ties, rng=rng()).value for one in (judge, always)
    ]
    own = own_agreement(items, people, ties=ties, rng=rng()).value
    assert rates[0] is not None
    assert rates[1] is not None
    assert own is not None
    found = over_another(items, judge, always, people, ties=ties, rng=rng())
    assert found.value == pytest.approx(rates[0] - rates[1])
    assert over_people(items, judge, people, ties=ties, rng=rng()).value == pytest.approx(
        rates[0] - own
    )


def test_the_same_verdicts_differ_by_no_more_than_prompts_of_one_mind_leave() -> None:
    items, people, judge, _ = drawn()
    found = over_another(items, judge, judge, people, ties=True, rng=np.random.default_rng(SEED))
    away = 1 - 0.025 ** (1 / items.n_prompts)
    assert (found.value, found.lower, found.upper) == pytest.approx((0, -away, away))


def test_what_both_share_cancels_so_the_interval_is_narrower_than_apart() -> None:
    items, people, judge, _ = drawn()
    nearly = said(judge.item, np.where(np.arange(200) < 10, -judge.label, judge.label))
    found = over_another(items, judge, nearly, people, ties=True, rng=np.random.default_rng(SEED))
    alone = pair_agreement(items, judge, people, ties=True, rng=np.random.default_rng(SEED))
    assert found.lower is not None
    assert found.upper is not None
    assert alone.lower is not None
    assert alone.upper is not None
    assert found.upper - found.lower < alone.upper - alone.lower


def test_people_count_only_where_the_judge_said_something() -> None:
    items, people, judge, _ = drawn()
    part = judge.only(judge.item < 100)
    alike = people.only(people.item < 100)
    found = over_people(items, part, people, ties=True, rng=np.random.default_rng(SEED))
    assert found == over_people(items, part, alike, ties=True, rng=np.random.default_rng(SEED))


def test_without_two_votes_an_item_there_is_no_difference_from_people() -> None:
    items, people, judge, _ = drawn()
    found = over_people(
        items, judge, people.only(np.arange(200)), ties=True, rng=np.random.default_rng(SEED)
    )
    assert (found.value, found.lower, found.upper) == (None, None, None)
