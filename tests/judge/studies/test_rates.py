"""Rules that read nothing, and what a judge says in both orders."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.estimates import Draws, pair_agreement
from judge.studies.reliability import always_first, larger, random_agreement, swaps
from judge.studies.rows import Labels
from rating.errors import DataError
from tests.judge.published import rows
from tests.judge.studies.labels import items_of, labels_of, swapped

agreement = partial(pair_agreement, draws=Draws(np.random.default_rng(1), 20))


swaps_ = partial(swaps, draws=Draws(np.random.default_rng(1), 20))

asked = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=30
)


def _spoken(labels: Labels) -> dict[int, int]:
    return dict(zip(labels.item.tolist(), labels.label.tolist(), strict=True))


def test_the_longer_response_wins_and_an_unknown_length_is_no_verdict() -> None:
    items = replace(items_of(4), gaps={"length": np.array([2.0, -0.1, 0.0, np.nan])})
    assert _spoken(larger(items, "length")) == {0: 1, 1: -1, 2: 0}


def test_a_feature_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(DataError, match="'format' is unknown for all responses; known are: none"):
        larger(items_of(2), "format")


def test_the_first_response_wins_unless_both_orders_were_asked() -> None:
    asked = labels_of([(0, 1), (1, 1), (2, 1), (2, 1), (3, 1)], first=[1, -1, 1, -1, 0])
    assert _spoken(always_first(items_of(4), asked)) == {0: 1, 1: -1, 2: 0}


def test_a_die_agrees_as_often_as_it_is_said_to() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    people = labels_of(enumerate(rng.choice([1, -1, 0], n, p=[0.6, 0.1, 0.3])))
    die = labels_of(enumerate(rng.integers(-1, 2, n)))
    for ties in (True, False):
        rate = agreement(items_of(n), die, people, ties=ties)
        assert rate.value == pytest.approx(random_agreement(ties=ties), abs=0.015)


def test_five_items_in_both_orders_by_hand() -> None:
    # Consistent; the first both times; the second both times; a tie and then the first; one order.
    labels = [(0, 1), (0, 1), (1, 1), (1, -1), (2, -1), (2, 1), (3, 0), (3, -1), (4, 1)]
    shares = swaps_(items_of(5), labels_of(labels, first=[1, -1] * 4 + [1]))
    assert (shares["consistent"].value, shares["consistent"].n) == (0.25, 4)
    assert (shares["to_first"].value, shares["to_second"].value) == (0.5, 0.25)


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
        shares = swaps_(items_of(len(verdicts)), labels_of(labels, first=[1, -1] * len(verdicts)))
        assert shares["consistent"].value == pytest.approx(want["equal"] / 100, abs=1e-12)
        checked += 1
    assert checked > 100


def test_without_both_orders_nothing_is_known() -> None:
    shares = swaps_(items_of(2), labels_of([(0, 1), (1, 1), (1, 1)], first=[1, 1, 0]))
    values = (shares["consistent"].value, shares["to_first"].value, shares["consistent"].n)
    assert values == (None, None, 0)


@settings(max_examples=30)
@given(asked)
def test_shares_add_up_and_do_not_depend_on_the_sides(drawn: list[tuple[int, int, int]]) -> None:
    one = labels_of([(i, label) for i, label, _ in drawn], first=[first for *_, first in drawn])
    values, turned = (
        [part.value for part in swaps_(items_of(5), labels).values()]
        for labels in (one, swapped(one))
    )
    if None in values:
        assert values == [None] * 3
    else:
        assert sum(v for v in values if v is not None) == pytest.approx(1)
    assert values == turned
