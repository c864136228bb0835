"""Judges that read nothing."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from judge.studies.agreement import pair_agreement
from judge.studies.baselines import always_first, larger, random_agreement
from judge.studies.items import Said
from rating.errors import DataError
from tests.judge.studies.said import items_of, said

agreement = partial(pair_agreement, rounds=20, rng=np.random.default_rng(1))


def _spoken(found: Said) -> dict[int, int]:
    return dict(zip(found.item.tolist(), found.label.tolist(), strict=True))


def test_the_longer_response_wins_and_an_unknown_length_is_no_verdict() -> None:
    items = replace(items_of(4), gaps={"length": np.array([2.0, -0.1, 0.0, np.nan])})
    assert _spoken(larger(items, "length")) == {0: 1, 1: -1, 2: 0}


def test_a_feature_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(DataError, match="'format'; known of the responses: none"):
        larger(items_of(2), "format")


def test_the_first_response_wins_unless_both_orders_were_asked() -> None:
    asked = said([(0, 1), (1, 1), (2, 1), (2, 1), (3, 1)], first=[1, -1, 1, -1, 0])
    assert _spoken(always_first(items_of(4), asked)) == {0: 1, 1: -1, 2: 0}


def test_a_die_agrees_as_often_as_it_is_said_to() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    people = said(enumerate(rng.choice([1, -1, 0], n, p=[0.6, 0.1, 0.3])))
    die = said(enumerate(rng.integers(-1, 2, n)))
    for ties in (True, False):
        found = agreement(items_of(n), die, people, ties=ties)
        assert found.value == pytest.approx(random_agreement(ties=ties), abs=0.015)
