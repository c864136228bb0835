"""Votes counted in sorted cells, and their hash."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arena.publish.coding import Coded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

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

    keys: tuple[Ints, ...]
    n: Ints
    weight: Floats | None
    features: Floats | None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows with the same keys counted together; with features, only sorted."""

    keys: tuple[Ints, ...]
    n: Ints
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
    if measures:
        order = np.lexsort((*measures[::-1], *key[::-1]))
    elif len(key) > 1:
        order = np.lexsort(key[::-1])
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


def _joined(keys: Sequence[Ints]) -> tuple[Ints, ...]:
    """Give one number a row that sorts as the keys do; the keys, where it would not fit."""
    spans = [int(key.max(initial=0)) + 1 for key in keys]
    if math.prod(spans) > np.iinfo(np.int64).max:
        return tuple(keys)
    joined = np.zeros(len(keys[0]), dtype=np.int64)
    for key, span in zip(keys, spans, strict=True):
        joined *= span
        joined += key
    return (joined,)


def _starts(keys: Sequence[Ints], n: int) -> Ints:
    new = np.zeros(n, dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def _sums(values: NDArray[Any], starts: Ints) -> NDArray[Any]:
    return np.asarray(np.add.reduceat(values, starts)) if len(starts) else values[:0]


def ranked(column: Coded, live: NDArray[np.bool_]) -> tuple[tuple[str, ...], Ints]:
    """Give the names that the live rows hold, sorted, and for each live row its position.

    >>> ranked(Coded(("y", "x", "z"), np.array([0, 1, 2])), np.array([True, True, False]))
    (('x', 'y'), array([1, 0]))
    """
    codes = column.codes[live]
    there = np.bincount(codes, minlength=len(column.names))[: len(column.names)] > 0
    names = tuple(sorted({column.names[code] for code in np.flatnonzero(there)}))
    place = {name: position for position, name in enumerate(names)}
    places = np.array([place.get(name, -1) for name in column.names], dtype=np.int64)
    return names, places[codes]


def data_hash(names: Sequence[Sequence[str]], cells: Cells) -> str:
    """SHA-256 of the names and of the cells, as little-endian numbers of eight bytes."""
    digest = hashlib.sha256(json.dumps([CANONICAL, *names]).encode())
    arrays = [*cells.keys, cells.n, cells.weight, cells.weight_sq, cells.features]
    for array in arrays:
        if array is None:
            digest.update(b"-")
        else:
            kind = "<i8" if array.dtype.kind == "i" else "<f8"
            digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()
