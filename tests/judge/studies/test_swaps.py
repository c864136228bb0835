"""What a judge says in both orders."""

from collections import defaultdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.swaps import swaps
from tests.judge.published import rows
from tests.judge.studies.said import items_of, said, swapped

swaps_ = partial(swaps, rounds=20, rng=np.random.default_rng(1))
asked = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=30
)


def test_five_items_in_both_orders_by_hand() -> None:
    # Consistent; the first both times; the second both times; a tie and then the first; one order.
    labels = [(0, 1), (0, 1), (1, 1), (1, -1), (2, -1), (2, 1), (3, 0), (3, -1), (4, 1)]
    found = swaps_(items_of(5), said(labels, first=[1, -1] * 4 + [1]))
    assert (found.consistent.value, found.consistent.n) == (0.25, 4)
    assert (found.to_first.value, found.to_second.value) == (0.5, 0.25)


@pytest.mark.published
def test_judges_without_an_unread_order_are_as_consistent_as_published(
    published_data: Path,
) -> None:
    cells = defaultdict(list)
    for row in rows(published_data / "judge" / "llmbar_swap.parquet"):
        cells[row["subset"], row["llm"], row["strategy"]].append((row["w_ab"], row["w_ba"]))
    checked = 0
    for want in rows(published_data / "judge" / "llmbar_published.csv"):
        verdicts = cells[want["subset"], want["llm"], want["strategy"]]
        if not all(w in {"1", "2"} for pair in verdicts for w in pair):
            continue
        labels = [(i, 1 if w == "1" else -1) for i, pair in enumerate(verdicts) for w in pair]
        found = swaps_(items_of(len(verdicts)), said(labels, first=[1, -1] * len(verdicts)))
        assert found.consistent.value == pytest.approx(want["equal"] / 100, abs=1e-12)
        checked += 1
    assert checked > 100


def test_without_both_orders_nothing_is_known() -> None:
    found = swaps_(items_of(2), said([(0, 1), (1, 1), (1, 1)], first=[1, 1, 0]))
    assert (found.consistent.value, found.to_first.value, found.consistent.n) == (None, None, 0)


@settings(max_examples=30)
@given(asked)
def test_shares_add_up_and_do_not_depend_on_the_sides(drawn: list[tuple[int, int, int]]) -> None:
    one = said([(i, label) for i, label, _ in drawn], first=[first for *_, first in drawn])
    found, turned = swaps_(items_of(5), one), swaps_(items_of(5), swapped(one))
    values = [found.consistent.value, found.to_first.value, found.to_second.value]
    if None in values:
        assert values == [None] * 3
    else:
        assert sum(v for v in values if v is not None) == pytest.approx(1)
    assert values == [turned.consistent.value, turned.to_first.value, turned.to_second.value]
