"""Rows counted as single numbers, and sorted, are those that plain numpy counts and sorts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rating import counting
from rating.counting import Cells, count

SIZES = (3, 200, 40_000)  # together beyond the table of all cells


@given(
    rows=st.lists(st.tuples(*(st.integers(-1, size - 1) for size in SIZES)), max_size=30),
    kinds=st.integers(1, len(SIZES)),
)
def test_rows_that_are_alike_are_counted_in_order(rows: list[tuple[int, ...]], kinds: int) -> None:
    """One column fits a table, three are sorted."""
    table = np.array(rows, dtype=np.int64).reshape(-1, len(SIZES))[:, :kinds]
    want, times = np.unique(table, axis=0, return_counts=True)
    key = counting.packed([*table.T], SIZES[:kinds])
    codes, n = counting.count_packed(key, SIZES[:kinds])
    assert np.column_stack(codes).tolist() == want.tolist()
    assert n.tolist() == times.tolist()
    assert [code.dtype for code in codes] == [np.int8, np.int16, np.int32][:kinds]


def test_rows_alike_on_both_sides_of_a_block_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_AT_ONCE", 4)
    codes = np.repeat([5, 7, 9, 30_000], [3, 4, 1, 6])
    unique, n = counting.count_packed(counting.packed([codes, codes], [40_000] * 2), [40_000] * 2)
    assert [column.tolist() for column in unique] == [[5, 7, 9, 30_000]] * 2
    assert n.tolist() == [3, 4, 1, 6]


def test_too_many_kinds_of_rows_for_one_number_are_left_alone() -> None:
    assert counting.fits([2**31 - 2, 2**31 - 2])
    assert not counting.fits([2**32, 2**32])


@given(data=st.data(), key_span=st.sampled_from([1, 3, 2**60]))
def test_rows_with_features_are_sorted_as_if_compared_in_full(
    data: st.DataObject, key_span: int
) -> None:
    n = data.draw(st.integers(0, 30))
    key = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, key_span - 1)))
    some = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 1e300])
    features = data.draw(hnp.arrays(np.float64, (n, 2), elements=some))
    cells = count(Cells((key,), np.ones(n, dtype=np.int64), None, None, features), [key_span])
    assert cells.features is not None
    order = np.lexsort((features[:, 1], features[:, 0], key))
    assert cells.keys[0].tolist() == key[order].tolist()
    assert cells.features.tolist() == features[order].tolist()
