"""Votes counted in sorted cells, and their hash."""

import hashlib
import itertools
import json
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.tables.coding import Coded
from rating.tables.packing import narrowest
from rating.typing import Bools, Floats, Integers

_HASHED_AT_ONCE = 1 << 16
_JOINED_LIMIT = 2**61

CANONICAL = "votes-1"
"""Version of what is hashed, and how."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that count: codes of each key, and what is summed.

    Attributes
    ----------
    keys : tuple of ndarray of shape (n,)
        Positions among names that are sorted, the most significant first.
    n : ndarray of shape (n,), int64
    weight : ndarray of shape (n,), float64, or None
        Weight of each vote of the row.
    features : ndarray of shape (n, n_features), or None
    """

    keys: tuple[Integers, ...]
    n: Integers
    weight: Floats | None
    features: Floats | None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows with the same keys counted together; with features, only sorted."""

    keys: tuple[Integers, ...]
    n: Integers
    weight: Floats | None
    weight_sq: Floats | None
    features: Floats | None


def counted(rows: Rows) -> Cells:
    """Sort the rows and count those together that are alike.

    Weights are summed in sorted order, so that the sums do not depend on that of the rows.
    """
    rows = _sorted(rows)
    weight = None if rows.weight is None else rows.n * rows.weight
    square = None if rows.weight is None else rows.n * rows.weight**2
    if rows.features is not None:
        return Cells(rows.keys, rows.n, weight, square, rows.features)
    starts = _starts(rows.keys, len(rows.n))
    if len(starts) == len(rows.n):
        return Cells(rows.keys, rows.n, weight, square, None)
    return Cells(
        tuple(key[starts] for key in rows.keys),
        _sums(rows.n, starts),
        None if weight is None else _sums(weight, starts),
        None if square is None else _sums(square, starts),
        None,
    )


def _sorted(rows: Rows) -> Rows:
    key = _joined(rows.keys)
    measures = [] if rows.features is None else list(rows.features.T)
    measures += [] if rows.weight is None else [rows.weight, rows.n]
    if len(key) > 1:
        order = np.lexsort((*measures[::-1], *key[::-1]))
    elif measures:
        order = _order(key[0], measures)
    elif (key[0][1:] >= key[0][:-1]).all():
        return rows
    else:
        order = np.argsort(key[0])
    return Rows(
        tuple(key[order] for key in rows.keys),
        rows.n[order],
        None if rows.weight is None else rows.weight[order],
        None if rows.features is None else rows.features[order],
    )


def _order(key: Integers, measures: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Order rows as ``np.lexsort`` would by key and then measures, in a tenth of the time.

    One number holds the key and as much of the first measure as fits beside it; only rows that
    are equal in both are compared in full.
    """
    bits = 63 - int(key.max(initial=0)).bit_length()
    packed = (key << bits) | (_in_order(measures[0]) >> np.uint64(64 - bits)).view(np.int64)
    order = np.argsort(packed)
    packed = packed[order]
    same = np.zeros(len(order) + 1, dtype=bool)
    same[1:-1] = packed[1:] == packed[:-1]
    tied = np.flatnonzero(same[1:] | same[:-1])
    rows = order[tied]
    order[tied] = rows[np.lexsort((*(m[rows] for m in measures[::-1]), key[rows]))]
    return order


def _in_order(measure: NDArray[Any]) -> NDArray[np.uint64]:
    """Give whole numbers that sort as the floats do: their bits, those of negative ones turned."""
    bits = (measure.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    negative = (bits >> np.uint64(63)).astype(bool)
    return np.where(negative, ~bits, bits | np.uint64(1 << 63))


def _joined(keys: Sequence[Integers]) -> tuple[Integers, ...]:
    """Give one number a row that sorts as the keys do; the keys, where it would not fit."""
    spans = [int(key.max(initial=0)) + 1 for key in keys]
    if math.prod(spans) > _JOINED_LIMIT:
        return tuple(keys)
    joined = np.zeros(len(keys[0]), dtype=np.int64)
    for key, span in zip(keys, spans, strict=True):
        joined *= span
        joined += key
    return (joined,)


def _starts(keys: Sequence[Integers], n: int) -> Integers:
    new = np.zeros(n, dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def _sums(values: NDArray[Any], starts: Integers) -> NDArray[Any]:
    return np.asarray(np.add.reduceat(values, starts)) if len(starts) else values[:0]


def ranked(column: Coded, live: Bools) -> tuple[tuple[str, ...], Integers]:
    """Give the names that the live rows hold, sorted, and for each live row its position.

    >>> ranked(Coded(("y", "x", "z"), np.array([0, 1, 2])), np.array([True, True, False]))
    (('x', 'y'), array([1, 0], dtype=int8))
    """
    codes = column.codes if live.all() else column.codes[live]
    there = np.zeros(len(column.names), dtype=bool)
    there[codes] = True
    order = sorted(np.flatnonzero(there).tolist(), key=column.names.__getitem__)
    names = [column.names[code] for code in order]
    if order == [*range(len(column.names))] and all(map(operator.lt, names, names[1:])):
        return tuple(names), codes
    new = np.fromiter(map(operator.ne, names, [None, *names[:-1]]), dtype=bool, count=len(names))
    places = np.zeros(len(column.names), dtype=narrowest(len(names)))
    places[order] = np.cumsum(new) - 1
    return tuple(itertools.compress(names, new)), places[codes]


def data_hash(names: Sequence[Sequence[str]], cells: Cells) -> str:
    """SHA-256 of the names and of the cells, as little-endian numbers of eight bytes."""
    digest = hashlib.sha256(json.dumps([CANONICAL, *names]).encode())
    arrays = [*cells.keys, cells.n, cells.weight, cells.weight_sq, cells.features]
    for array in arrays:
        if array is None:
            digest.update(b"-")
        else:
            kind = "<i8" if array.dtype.kind == "i" else "<f8"
            for first in range(0, len(array), _HASHED_AT_ONCE):
                part = array[first : first + _HASHED_AT_ONCE]
                digest.update(np.ascontiguousarray(part, dtype=kind).data)
    return digest.hexdigest()
