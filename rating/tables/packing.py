"""Rows of several codes as single numbers, so that those which are alike can be counted."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.typing import Bools, Integers, Ints

LIMIT = np.iinfo(np.int64).max
DENSE_CELLS = 1 << 22
"""Cells up to which a table of all of them is counted; above it, rows are sorted."""

_AT_ONCE = 1 << 20


def fits(sizes: Sequence[int]) -> bool:
    """Whether codes from -1 up to below each size fit in one number."""
    return math.prod(size + 1 for size in sizes) <= LIMIT


def packed(codes: Sequence[Integers], sizes: Sequence[int]) -> Ints:
    """Give one number a row, the first code the most significant.

    >>> packed([np.array([0, -1]), np.array([2, 1])], [1, 3]).tolist()
    [7, 2]
    """
    key = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        key *= size + 1
        key += code
        key += 1
    return key


def counted(key: NDArray[Any], sizes: Sequence[int]) -> tuple[list[Integers], Integers]:
    """Count the rows that are alike: the codes of each kind in sorted order, and its rows.

    A long key is sorted in place: the keys of twenty million votes should exist once.
    """
    if math.prod(size + 1 for size in sizes) <= DENSE_CELLS:
        rows = np.bincount(key, minlength=1)
        cells = np.flatnonzero(rows)
        return unpacked(cells, sizes), rows[cells]
    key.sort()
    n = sum(int(np.count_nonzero(new)) for _, new in _beginnings(key))
    codes = [np.empty(n, dtype=narrowest(size)) for size in sizes]
    starts, done = np.empty(n + 1, dtype=narrowest(len(key))), 0
    for first, new in _beginnings(key):
        at = first + np.flatnonzero(new)
        starts[done : done + len(at)] = at
        for column, part in zip(codes, unpacked(key[at], sizes), strict=True):
            column[done : done + len(at)] = part
        done += len(at)
    starts[-1] = len(key)
    return codes, np.diff(starts)


def _beginnings(key: NDArray[Any]) -> Iterator[tuple[int, Bools]]:
    """Tell of some sorted numbers at a time which differ from the one before."""
    for first in range(0, len(key), _AT_ONCE):
        part = key[first : first + _AT_ONCE]
        new = np.ones(len(part), dtype=bool)
        new[1:] = part[1:] != part[:-1]
        new[0] = first == 0 or part[0] != key[first - 1]
        yield first, new


def unpacked(key: NDArray[Any], sizes: Sequence[int]) -> list[Integers]:
    """Give back the codes of `packed`, each in the narrowest type that holds it."""
    codes: list[Integers] = []
    for size in reversed(sizes):
        key, code = np.divmod(key, size + 1)
        codes.insert(0, (code - 1).astype(narrowest(size)))
    return codes


def narrowest(size: int) -> np.dtype[Any]:
    """Give the smallest type of whole number that holds positions among so many, and -1.

    >>> narrowest(300)
    dtype('int16')
    """
    return np.min_scalar_type(-size - 1)
